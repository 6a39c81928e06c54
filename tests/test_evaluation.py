"""What is translated, that it is remembered, and that an evaluation can be stopped and go on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqviz.corpus import CorpusError, Pair
from seqviz.coverage import Lexicon
from seqviz.measuring import plan as plans
from seqviz.measuring import translate
from seqviz.measuring.everyday import everyday
from seqviz.measuring.outputs import Work
from seqviz.training import save_model
from seqviz.translating.loading import load
from seqviz.translating.translator import Translator


def _write(path: Path, pairs: list[tuple[str, str, str]]) -> Path:
    path.write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    return path


def _sentence(words: int, letter: str = "w") -> str:
    return " ".join(f"{letter}{i}" for i in range(words))


# -- the plan


def test_pairs_that_cannot_be_evaluated_are_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    rows = ["a\tone two\tun deux", "a\t\tvide", "a\tempty\t ", "a\t" + _sentence(101) + "\tlong"]
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode() + b"\r\n")
    plan = plans.plan(file)
    assert plan.pairs == (Pair("a", "one two", "un deux"),)
    assert plan.skipped == {"empty side": 2, "over 100 source words": 1}
    assert plan.data["lines"] == 4
    assert plan.sources() == ["one two"]


def test_a_file_without_a_usable_pair_is_an_error(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.tsv", [("a", "", "b"), ("a", _sentence(101), "c")])
    with pytest.raises(CorpusError, match="1 empty side, 1 over 100 source words"):
        plans.plan(file)


@pytest.mark.parametrize("sample", [0, -1, True])
def test_a_sample_has_at_least_one_sentence(tmp_path: Path, sample: int) -> None:
    file = _write(tmp_path / "t.tsv", [("a", "b", "c")])
    with pytest.raises(ValueError, match="sample of at least 1"):
        plans.plan(file, sample=sample)


def test_a_sample_is_seeded_and_even_over_the_lengths(tmp_path: Path) -> None:
    lengths = [5] * 500 + [15] * 300 + [25] * 100 + [35] * 40 + [45] * 8
    rows = [("a", f"s{i} {_sentence(n - 1)}", "x") for i, n in enumerate(lengths)]
    file = _write(tmp_path / "t.tsv", rows)
    plan = plans.plan(file, sample=200)
    counts = {n: sum(plans.words_in(p.source) == n for p in plan.pairs) for n in (5, 15, 45)}
    assert len(plan.pairs) == 200
    assert counts[45] == 8  # all there are
    assert abs(counts[5] - counts[15]) <= 1
    assert plan.pairs == plans.plan(file, sample=200).pairs
    assert plan.pairs != plans.plan(file, sample=200, seed=2).pairs
    assert len(plans.plan(file, sample=10_000).pairs) == len(lengths)


def test_runs_are_whole_sentences_of_one_document() -> None:
    pairs = [Pair("a", _sentence(15, "x"), "x"), Pair("b", _sentence(14), "p")]
    pairs += [Pair("b", _sentence(n), t) for n, t in ((16, "q"), (20, "r"), (7, "s"), (30, "t"))]
    (run,) = plans.find_runs(pairs)
    assert (run.first, run.count) == (1, 4)
    assert [len(run.cuts[parts]) for parts in plans.PARTS] == [4, 2, 1]
    assert run.cuts[1][0][1] == "p q r s"
    assert [target for _, target in run.cuts[2]] == ["p q", "r s"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), max_size=60))
def test_runs_never_share_a_sentence_and_every_cut_has_the_same_text(
    rows: list[tuple[str, int]],
) -> None:
    pairs = [Pair(d, _sentence(n), f"t{i}") for i, (d, n) in enumerate(rows)]
    end = 0
    for run in plans.find_runs(pairs):
        assert run.first >= end
        end = run.first + run.count
        assert len({pair.document for pair in pairs[run.first : end]}) == 1
        whole = run.cuts[1][0]
        assert plans.LONG[0] <= plans.words_in(whole[0]) <= plans.LONG[1]
        for parts, cut in run.cuts.items():
            assert len(cut) == parts
            assert tuple(" ".join(side) for side in zip(*cut)) == whole
        lengths = [plans.words_in(pair.source) for pair in pairs[run.first : end]]
        for parts in (2, 4):
            best = min(
                max(sum(lengths[a:b]) for a, b in zip((0, *c), (*c, len(lengths))))
                for c in combinations(range(1, len(lengths)), parts - 1)
            )
            assert max(plans.words_in(source) for source, _ in run.cuts[parts]) == best


# -- losses


@pytest.mark.parametrize("name", ["lstm", "lstm-attention", "transformer"])
def test_losses_are_log_probabilities_of_the_target(
    tiny_model: Callable[..., Any],
    tiny_tokenizer: Any,
    sentence_pairs: list[tuple[str, str]],
    name: str,
) -> None:
    translator = Translator(tiny_model(name), tiny_tokenizer, name=name)
    pairs = [*sentence_pairs[:12], ("", "rien"), ("nothing", ""), ("a " * 200, "trop long")]
    found = translator.losses(pairs)
    assert [len(row) for row in found[12:]] == [0, 0, 0]
    for (source, target), row in zip(pairs[:12], found):
        ids = tiny_tokenizer(source, add_special_tokens=False).input_ids
        labels = tiny_tokenizer(target, add_special_tokens=False).input_ids
        config = translator.model.config
        with torch.no_grad():
            logits = translator.model(
                input_ids=torch.tensor([[*ids, config.eos_token_id]]),
                attention_mask=torch.ones(1, len(ids) + 1, dtype=torch.long),
                decoder_input_ids=torch.tensor([[config.decoder_start_token_id, *labels[:-1]]]),
            ).logits[0]
        expected = [-float(logits[i].log_softmax(-1)[label]) for i, label in enumerate(labels)]
        np.testing.assert_allclose(row, expected, atol=1e-4)


# -- the work


@pytest.fixture
def folders(tmp_path: Path, tiny_model: Callable[..., Any], tiny_tokenizer: Any) -> dict[str, Path]:
    made = {}
    for name in ("lstm", "lstm-attention"):
        made[name] = tmp_path / "models" / name
        report = {"model": name, "dev_loss": 1.0, "target_tokens": 5, "length_histogram": [0, 3]}
        save_model(tiny_model(name), tiny_tokenizer, made[name], report)
    return made


@pytest.fixture
def corpus_file(tmp_path: Path, sentence_pairs: list[tuple[str, str]]) -> Path:
    return _write(tmp_path / "test.tsv", [("d", s, t) for s, t in sentence_pairs[:40]])


def _run(plan: plans.Plan, works: dict[str, Work], **options: Any) -> list[int]:
    seen: list[int] = []
    translate.run(
        plan, list(works.values()), workers=1, say=lambda done, *_: seen.append(done), **options
    )
    return seen


def test_outputs_are_those_of_the_translator_and_are_remembered(
    tmp_path: Path, folders: dict[str, Path], corpus_file: Path
) -> None:
    plan = plans.plan(corpus_file)
    assert plan.runs

    def works() -> dict[str, Work]:
        return {name: Work(tmp_path / "w", f) for name, f in folders.items()}

    first = works()
    assert _run(plan, first)
    again = works()
    assert _run(plan, again) == []  # nothing is computed twice
    for name, work in again.items():
        outputs = work.outputs(plan)
        translator = load(folders[name])
        assert outputs.information["target_tokens"] == 5
        assert outputs.length_histogram == [0, 3]
        for pair, made in zip(plan.pairs, translator.translate([p.source for p in plan.pairs])):
            output = outputs.translations[pair.source]
            assert output.text == made.text
            assert output.limit == ("limit" in {note.kind for note in made.notes})
        pair = plan.pairs[3]
        np.testing.assert_allclose(
            outputs.losses[pair.source, pair.target],
            translator.losses([(pair.source, pair.target)])[0],
            atol=2e-4,
        )


def test_a_killed_evaluation_goes_on_where_it_was(
    tmp_path: Path, folders: dict[str, Path], corpus_file: Path
) -> None:
    plan = plans.plan(corpus_file)
    work = Work(tmp_path / "w", folders["lstm"])
    _run(plan, {"lstm": work})
    expected = work.outputs(plan)
    for file in (tmp_path / "w").iterdir():
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:5]) + lines[5][:-3])  # the sixth line is half-written
    again = Work(tmp_path / "w", folders["lstm"])
    missing = sum(len(job.items) for job in again.jobs(plan))
    assert missing == len(plan.sources()) + len(plan.texts()) - 10
    _run(plan, {"lstm": again})
    found = Work(tmp_path / "w", folders["lstm"]).outputs(plan)
    assert found.translations == expected.translations
    for text, row in expected.losses.items():
        np.testing.assert_allclose(found.losses[text], row, atol=2e-4)


def test_other_weights_or_beams_are_other_work(
    tmp_path: Path,
    folders: dict[str, Path],
    corpus_file: Path,
    tiny_model: Any,
    tiny_tokenizer: Any,
) -> None:
    plan = plans.plan(corpus_file, runs=False)
    _run(plan, {"lstm": Work(tmp_path / "w", folders["lstm"])})
    assert not Work(tmp_path / "w", folders["lstm"]).jobs(plan)
    assert Work(tmp_path / "w", folders["lstm"], num_beams=2).jobs(plan)
    save_model(tiny_model("lstm", seed=9), tiny_tokenizer, folders["lstm"], {"dev_loss": 1.0})
    assert Work(tmp_path / "w", folders["lstm"]).jobs(plan)


@pytest.mark.slow
def test_processes_give_what_one_gives(
    tmp_path: Path, folders: dict[str, Path], corpus_file: Path
) -> None:
    plan = plans.plan(corpus_file)
    outputs = []
    for number in (1, 2):
        work = Work(tmp_path / f"w{number}", folders["lstm-attention"])
        translate.run(plan, [work], workers=number)
        outputs.append(work.outputs(plan))
    assert outputs[0].translations == outputs[1].translations


# -- everyday texts


class _Says:
    """A translator that knows some sentences."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known

    def translate(self, texts: list[str], **_: Any) -> list[Any]:
        return [type("T", (), {"text": self.known.get(text, "")})() for text in texts]


def _text(id_: str, *sentences: str) -> dict[str, Any]:
    return {"id": id_, "sentences": [{"english": sentence} for sentence in sentences]}


def test_the_text_whose_first_sentence_is_read_best_comes_first() -> None:
    texts = [
        _text("unread", "The dog sleeps.", "It rains."),
        _text("half", "The boy eats the bread.", "The dog sleeps."),
        _text("same", "The boy eats the bread.", "It rains."),
    ]
    known = {"The boy eats the bread.": "le garçon mange", "The dog sleeps.": "chut"}
    whole = "The boy eats the bread. The dog sleeps."
    found = everyday({"lstm": _Says(known | {whole: "rien"})}, texts, Lexicon.load())
    assert found["found"]["unread"] == {"found": 0, "judged": 2}
    assert found["found"]["half"] == {"found": 2, "judged": 3} == found["found"]["same"]
    assert found["first"] == "half"  # of equal ones the first
    assert found["mean"] == pytest.approx((0 + 2 / 3 + 2 / 3) / 3, abs=1e-4)
    assert found["reads"]  # two thirds reach 60 %
    assert found["outputs"]["half"]["lstm"] == {
        "alone": ["le garçon mange", "chut"],
        "stages": ["le garçon mange", "rien"],
    }
    silent = everyday({"lstm": _Says({})}, texts, Lexicon.load())
    assert not silent["reads"] and silent["mean"] == 0 and silent["first"] == "unread"
