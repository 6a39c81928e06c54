"""Recall: sequences that leak nothing, attention that solves them, and a report that can be had again."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import tiny_lab
import torch

from seqviz import plotting
from seqviz.lab import readers, recall, settings

SMALL = tiny_lab.RECALL


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return recall.EXPERIMENT.measure(SMALL)


# ---------------------------------------------------------------------------------------------
# The task


@pytest.mark.parametrize("distance", [1, 5, 40])
def test_nothing_but_the_first_symbol_tells_the_answer(distance: int) -> None:
    settings = recall.Settings()
    batch = recall.draw(settings, 500, distance, readers.generator(3))
    (symbols,) = batch.inputs
    assert symbols.shape == (500, distance + 2) and batch.targets.shape == (500, 1)
    for row, answer in zip(symbols.tolist(), batch.targets[:, 0].tolist()):
        assert row[0] == answer < 16
        assert all(16 <= noise < 32 for noise in row[1:-1])
        assert row[-1] == 32
    assert set(batch.targets[:, 0].tolist()) == set(range(16))
    # Each answer about as often as the others: knowing nothing gives 1/16.
    assert settings.chance == 1 / 16
    counts = batch.targets.flatten().bincount(minlength=16)
    assert counts.max() < 2 * 500 / 16


# ---------------------------------------------------------------------------------------------
# Half way


def test_half_way_lies_between_on_the_logarithm() -> None:
    """Level (1 + 0) / 2: from 1 at 10 to 0 at 1000, half of the logarithm is 100."""
    assert recall.half_way((10, 1000), (1.0, 0.0), 0.0) == pytest.approx(100)
    # Level 0.6 with chance 0.2; from 0.9 at 4 to 0.5 at 8: three quarters of the way, 4 · 2^0.75.
    found = recall.half_way((2, 4, 8), (1.0, 0.9, 0.5), 0.2)
    assert found == pytest.approx(4 * 2**0.75, rel=1e-5)


def test_half_way_is_the_first_fall() -> None:
    found = recall.half_way((1, 2, 4, 8), (1.0, 0.0, 1.0, 0.0), 0.0)
    assert found == pytest.approx(math.sqrt(2), rel=1e-5)


@pytest.mark.parametrize("accuracies", [(1.0, 0.9), (0.4, 0.9), (0.1, 0.1), (1.0, 0.55)])
def test_half_way_is_none_within_or_never(accuracies: tuple[float, float]) -> None:
    assert recall.half_way((5, 10), accuracies, 0.1) is None


# ---------------------------------------------------------------------------------------------
# The experiment


def test_attention_solves_recall() -> None:
    settings = recall.Settings(steps=200, width=32, num_symbols=8, num_test=256)
    with readers.one_thread():
        model, _ = recall.run(settings, "attention", (5, 20, 80), 0.01, 1)
        for distance in (5, 20, 80):
            assert recall.held_out(settings, model, distance, 1) >= 0.99, distance


def test_a_tanh_rnn_learns_a_short_distance() -> None:
    settings = recall.Settings(steps=240, width=32, num_symbols=8, num_test=256)
    with readers.one_thread():
        model, way = recall.run(settings, "rnn", (3,), 0.001, 1)
        assert recall.held_out(settings, model, 3, 1) >= 0.99
    assert way["steps"] == [30 * n for n in range(1, 9)]
    assert way["accuracy"][0][0] < way["accuracy"][-1][0]


def test_the_results_have_every_number(results: dict[str, Any]) -> None:
    assert results["chance"] == 0.25 and results["distances"] == [1, 3]
    for training in recall.TRAININGS:
        assert list(results[training]) == list(settings.KINDS)
        for kind, found in results[training].items():
            rows = found["accuracy"]["seeds"]
            assert len(rows) == 2 and all(len(row) == 2 for row in rows)
            for at, mean in enumerate(found["accuracy"]["mean"]):
                assert mean == pytest.approx(sum(row[at] for row in rows) / 2)
            assert found["half_way"]["seeds"] == [recall.half_way((1, 3), r, 0.25) for r in rows]
            assert found["learning"]["steps"] == [2, 4, 6, 8, 10, 12, 14, 16]
            assert all(len(row) == 2 for row in found["learning"]["accuracy"])
            tried = results["search"][training][kind]
            assert [rate for rate, _ in tried["tried"]] == [0.003, 0.01]
            assert found["rate"] == tried["chosen"]


def test_seeds_differ() -> None:
    other, _ = recall.run(SMALL, "lstm", (1, 3), 0.01, 3)
    same, _ = recall.run(SMALL, "lstm", (1, 3), 0.01, 1)
    assert not torch.equal(other.answer.weight, same.answer.weight)


def test_the_sentence_is_made_of_the_numbers(results: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(results))
    changed["distances"] = [10, 1000]
    for training in recall.TRAININGS:
        for kind, means in (
            ("rnn", [1.0, 0.25]), ("lstm", [0.3, 0.3]), ("lstm-forget-3", [1.0, 0.9]),
            ("attention", [1.0, 0.9999]),
        ):  # fmt: skip
            changed[training][kind]["accuracy"]["mean"] = means
    changed["mixed"]["lstm"]["accuracy"]["mean"] = [1.0, 0.42]
    said = recall.sentence(changed, "en")
    assert "alone, accuracy falls half way to chance after 100 noise tokens in the tanh RNN" in said
    assert "before 10 in the LSTM, nowhere up to 1000 in the LSTM with forget bias 3" in said
    assert "LSTM 30 % / 42 %" in said and "attention model 99.9 % / 99.9 %" in said
    assert "what 16 batches of 8 sequences taught, in the mean of 2 seeds" in said
    chinese = recall.sentence(changed, "zh")
    assert "tanh RNN 在 100 个噪声符号之后，LSTM 不到 10 个" in chinese
    assert "LSTM 30% / 42%" in chinese
    for found in changed["mixed"].values():
        found["accuracy"]["mean"] = [1.0, 0.9]
    assert "it does so nowhere up to 1000 in any model." in recall.sentence(changed, "en")
    assert "所有模型到 1000 个都没有。" in recall.sentence(changed, "zh")
    assert "注意力模型到 1000 个都没有。" in recall.sentence(changed, "zh")


# ---------------------------------------------------------------------------------------------
# Figure


def test_the_figure_draws_what_the_report_has(results: dict[str, Any]) -> None:
    figure = plotting.lab.recall(results)
    alone = figure.axes[0]
    drawn_lines = {line.get_label(): line.get_ydata() for line in alone.get_lines()}
    assert list(drawn_lines["tanh RNN"]) == pytest.approx(
        [100 * value for value in results["alone"]["rnn"]["accuracy"]["mean"]]
    )
