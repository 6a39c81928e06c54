"""What a mix takes of each corpus: repeats, parts of a pass, short pairs, one rewriting a pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqviz import corpus
from seqviz.data import mix
from seqviz.data.noise import Noise


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a.tsv", mix.Part(Path("a.tsv"))),
        ("a.tsv:3", mix.Part(Path("a.tsv"), 3)),
        ("a.tsv:0.25", mix.Part(Path("a.tsv"), 0.25)),
        ("a.tsv:2:15", mix.Part(Path("a.tsv"), 2, 15)),
        ("c:/x.tsv:2", mix.Part(Path("c:/x.tsv"), 2)),
    ],
)
def test_parts(text, part):
    assert mix.parse(text) == part


@pytest.mark.parametrize(
    ("text", "said"), [("a:0", "a repeat above 0"), ("a:2:0", "1 to 100"), ("a:2:101", "1 to 100")]
)
def test_a_part_that_cannot_be(text, said):
    with pytest.raises(corpus.CorpusError, match=said):
        mix.parse(text)


@pytest.fixture
def encoded(tmp_path, tiny_tokenizer):
    path = tmp_path / "pairs.tsv"
    rows = [f"d\tThe boat is {'very ' * (n % 9)}green.\tLe bateau est vert.\n" for n in range(1000)]
    path.write_text("".join(rows), encoding="utf-8")

    def encode(text: str, **arguments):
        part = mix.parse(text.replace("FILE", str(path)))
        return mix.sources([part], tiny_tokenizer, tmp_path / "encoded", **arguments)

    return encode


def test_a_quarter_of_a_pass_is_another_one_in_each_epoch(encoded):
    sources = encoded("FILE:0.25")
    read = []
    for number in range(4):
        epoch = corpus.plan_epoch(sources, seed=1, epoch=number, join_probability=0.5)
        pairs = [
            pair
            for first, count in zip(epoch.first, epoch.count, strict=True)
            for pair in range(first, first + count)
        ]
        assert len(pairs) == len(set(pairs)) and 150 < len(pairs) < 350
        assert (epoch.count > 1).any()
        read += pairs
    assert sorted(read) == list(range(1000))


def test_only_short_pairs(encoded):
    (source,) = encoded("FILE:1:8")
    assert source.corpus.source_words.max() == 8
    assert source.corpus.information["longest"] == 8
    assert any(
        "8 source words asked for" in reason for reason in source.corpus.information["dropped"]
    )


def test_each_pass_is_rewritten_in_its_own_way(encoded):
    noise = Noise.parse("lower_case=0.5")
    assert noise is not None
    (source,) = encoded("FILE:2", noise=noise)
    first, second = source.passes
    assert not np.array_equal(first.source[:200], second.source[:200])
    assert np.array_equal(first.target, second.target)
    assert source.corpus.information["noise"]["lower_case"] == 0.5
    (again,) = encoded("FILE:2", noise=noise)
    assert np.array_equal(first.source, again.corpus.source)


@pytest.mark.parametrize("text", ["lower_case=1.5", "lower_case=nan", "colour=0.1", "loud"])
def test_shares_that_cannot_be(text):
    with pytest.raises(ValueError, match="noise: expected"):
        Noise.parse(text)
