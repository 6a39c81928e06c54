"""Our scores are sacreBLEU's, and the intervals those of a slow and obvious bootstrap."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from seqviz import scores

WORDS = (
    "le la chat chien dort mange sous table , . l'homme qu'il vote contre rapport 1995 % ?".split()
)


def _sentences(seed: int, number: int) -> tuple[list[str], list[str]]:
    """References, and outputs that are the references with words dropped, changed or repeated."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(number)]
    hypotheses = []
    for reference in references:
        words = [draw.choice([w, w, w, draw.choice(WORDS), ""]) for w in reference.split()]
        hypotheses.append(" ".join(word for word in words if word))
    return hypotheses, references


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text("abé .,?'", max_size=40), st.text("abé .,?'", max_size=40))))
def test_scores_equal_sacrebleu(pairs: list[tuple[str, str]]) -> None:
    if not pairs:
        pairs = [("", "a")]
    hypotheses, references = map(list, zip(*pairs))
    bleu, chrf = scores.sentence_counts(hypotheses, references)
    expected = BLEU().corpus_score(hypotheses, [references])
    assert scores.bleu(bleu.sum(axis=0)) == pytest.approx(expected.score, abs=1e-9)
    assert scores.chrf(chrf.sum(axis=0)) == pytest.approx(
        CHRF().corpus_score(hypotheses, [references]).score, abs=1e-9
    )
    if expected.ref_len:
        assert scores.brevity_penalty(bleu.sum(axis=0)) == pytest.approx(expected.bp)
        assert scores.length_ratio(bleu.sum(axis=0)) == pytest.approx(expected.ratio)


def test_scores_equal_sacrebleu_on_text_like_text() -> None:
    hypotheses, references = _sentences(1, 300)
    bleu, chrf = scores.sentence_counts(hypotheses, references)
    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert 10 < expected < 90
    assert scores.bleu(bleu.sum(axis=0)) == pytest.approx(expected)
    assert scores.chrf(chrf.sum(axis=0)) == pytest.approx(
        CHRF().corpus_score(hypotheses, [references]).score
    )


def test_scores_equal_the_command_of_sacrebleu(tmp_path: Path) -> None:
    hypotheses, references = _sentences(2, 60)
    (tmp_path / "out").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(tmp_path / "ref"),
        "-i",
        str(tmp_path / "out"),
    ]
    command += ["-m", "bleu", "chrf", "-b", "-w", "6", "-f", "text"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    bleu, chrf = scores.sentence_counts(hypotheses, references)
    found = [float(scores.bleu(bleu.sum(axis=0))), float(scores.chrf(chrf.sum(axis=0)))]
    assert [float(x) for x in said] == pytest.approx(found, abs=1e-5)


def test_signatures_are_those_of_the_plain_metrics() -> None:
    found = scores.signatures()
    assert found["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert found["chrf"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_intervals_equal_a_slow_reference() -> None:
    hypotheses, references = _sentences(3, 40)
    counts, _ = scores.sentence_counts(hypotheses, references)
    draws = scores.resamples(40, 200, (1, 2))
    fast = scores.resampled(scores.bleu, counts, draws)
    slow = []
    for row in draws.astype(int):
        chosen = [i for i, times in enumerate(row) for _ in range(times)]
        assert len(chosen) == 40
        slow.append(
            BLEU()
            .corpus_score([hypotheses[i] for i in chosen], [[references[i] for i in chosen]])
            .score
        )
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    ordered = sorted(slow)
    low, high = scores.interval(fast) or (0.0, 0.0)
    assert ordered[4] <= low <= ordered[5]
    assert ordered[194] <= high <= ordered[195]


def test_draws_are_seeded_and_fair() -> None:
    draws = scores.resamples(50, 2_000, (7,))
    np.testing.assert_array_equal(draws, scores.resamples(50, 2_000, (7,)))
    assert (draws.sum(axis=1) == 50).all()
    assert abs(draws.mean() - 1) < 1e-12
    assert np.abs(draws.mean(axis=0) - 1).max() < 0.15
    assert not np.array_equal(draws, scores.resamples(50, 2_000, (8,)))


def test_an_interval_needs_values_that_exist() -> None:
    assert scores.interval(np.array([])) is None
    assert scores.interval(np.array([1.0, np.nan])) is None
    assert scores.interval(np.array([2.0, 2.0])) == (2.0, 2.0)


def test_nothing_said_scores_nothing() -> None:
    bleu, chrf = scores.sentence_counts(["", ""], ["le chat dort", "oui"])
    assert scores.bleu(bleu.sum(axis=0)) == 0
    assert scores.chrf(chrf.sum(axis=0)) == 0
    assert scores.brevity_penalty(bleu.sum(axis=0)) == 0


def test_numbers_of_sentences_must_agree() -> None:
    for function in (scores.corpus_bleu, scores.sentence_counts):
        with pytest.raises(ValueError, match="as many hypotheses as references, got 1 and 2"):
            function(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="at least one sentence"):
        scores.corpus_bleu([], [])
    bleu, chrf = scores.sentence_counts([], [])
    assert bleu.shape == (0, scores.BLEU_COUNTS)
    assert chrf.shape == (0, scores.CHRF_COUNTS)


def test_accents_may_be_written_in_two_ways() -> None:
    texts = [
        "Où est l'école ? Elle a été fermée.",
        "Le garçon ne répond pas à la première question.",
    ]
    apart = [unicodedata.normalize("NFD", text) for text in texts]
    for hypotheses, references in ((texts, apart), (apart, texts)):
        assert scores.corpus_bleu(hypotheses, references)["score"] == 100
        bleu, chrf = scores.sentence_counts(hypotheses, references)
        assert scores.bleu(bleu.sum(0)) == scores.chrf(chrf.sum(0)) == pytest.approx(100)
        found = scores.sentence_scores(hypotheses[0], references[0])
        assert found == {"bleu": pytest.approx(100), "chrf": pytest.approx(100)}


def test_one_sentence_has_no_interval() -> None:
    counts = np.array([[3.0, 4.0]])
    draws = scores.resamples(1, 50, [3])
    assert scores.interval(scores.resampled(scores.ratio, counts, draws)) is None
    one, _ = scores.sentence_counts(["le chat dort sous la table"], ["le chat dort sur la table"])
    assert scores.interval(scores.resampled(scores.bleu, one, draws)) is None
    whole = np.vstack([np.ones((1, 1)), draws])
    assert scores.resampled(scores.ratio, counts, whole)[0] == 0.75
    two = scores.resampled(
        scores.ratio, np.array([[3.0, 4.0], [1, 4]]), scores.resamples(2, 50, [3])
    )
    assert scores.interval(two) == (0.25, 0.75)


def test_sentence_scores_of_a_perfect_output() -> None:
    assert scores.sentence_scores("le chat dort", "le chat dort") == pytest.approx(
        {"bleu": 100.0, "chrf": 100.0}
    )
