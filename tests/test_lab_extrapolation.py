"""Beyond the trained lengths: tasks with answers worked out otherwise, and a report that can be had again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tiny_lab
import torch

from seqviz.lab import extrapolation, readers

SMALL = tiny_lab.EXTRAPOLATION


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return extrapolation.EXPERIMENT.measure(SMALL)


# ---------------------------------------------------------------------------------------------
# Tasks, answered one symbol after the other


def test_parity_is_that_of_the_ones_read() -> None:
    batch = extrapolation.draw("parity", 100, 9, readers.generator(1))
    for bits, answers in zip(batch.inputs[0].tolist(), batch.targets.tolist()):
        assert answers == [sum(bits[: n + 1]) % 2 for n in range(9)]
    assert 0.4 < batch.targets[:, -1].double().mean() < 0.6


def test_the_last_write_counts_and_noise_does_not() -> None:
    batch = extrapolation.draw("last-write", 400, 12, readers.generator(1))
    (symbols,) = batch.inputs
    for row, answers in zip(symbols.tolist(), batch.targets.tolist()):
        state = None
        for symbol, answer in zip(row, answers):
            state = symbol if symbol < 8 else state
            assert answer == state
    later = symbols[:, 1:]
    assert (later < 8).double().mean() == pytest.approx(extrapolation.WRITES, abs=0.03)
    assert set(later.flatten().tolist()) == set(range(16))
    counts = batch.targets[:, -1].bincount(minlength=8)
    assert counts.max() < 2 * 400 / 8  # each answer about equally often: chance is 1/8


@pytest.mark.parametrize("length", [1, 4, 128])
def test_lookup_asks_for_one_of_the_pairs(length: int) -> None:
    batch = extrapolation.draw("lookup", 60, length, readers.generator(1))
    (pairs,) = batch.inputs
    assert pairs.shape == (60, length + 1, 2) and batch.targets.shape == (60, 1)
    for row, (answer,) in zip(pairs.tolist(), batch.targets.tolist()):
        *known, (asked, mark) = row
        table = dict(known)
        assert len(table) == length  # no key twice
        assert mark == 136 and table[asked] - 128 == answer
        assert all(0 <= key < 128 <= value < 136 for key, value in known)


def test_any_pair_may_be_asked_for() -> None:
    (pairs,) = extrapolation.draw("lookup", 300, 5, readers.generator(2)).inputs
    asked = (pairs[:, :5, 0] == pairs[:, 5:, 0]).double().argmax(dim=1)
    assert asked.bincount(minlength=5).min() > 30


def test_chance_is_what_a_blind_answer_gets() -> None:
    for task, expected in (("parity", 1 / 2), ("last-write", 1 / 8), ("lookup", 1 / 8)):
        assert extrapolation.chance(task) == expected
        answers = extrapolation.draw(task, 4000, 10, readers.generator(4)).targets[:, -1]
        assert (answers == 0).double().mean() == pytest.approx(expected, abs=0.03)


def test_unknown_tasks_and_too_many_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="one of parity, last-write, lookup, got 'sort'"):
        extrapolation.draw("sort", 1, 1, readers.generator(1))
    with pytest.raises(ValueError, match="at most 128 pairs, one a key, got 129"):
        extrapolation.draw("lookup", 1, 129, readers.generator(1))


def test_the_answer_behind_the_last_symbol_is_scored() -> None:
    class First(torch.nn.Module):
        """Right everywhere but at the end."""

        def forward(self, bits: torch.Tensor) -> torch.Tensor:
            answers = bits.cumsum(dim=1) % 2
            answers[:, -1] = 1 - answers[:, -1]
            return torch.nn.functional.one_hot(answers, 2).float()

    assert extrapolation.held_out(SMALL, "parity", First(), 6, 1) == 0


# ---------------------------------------------------------------------------------------------
# The experiment


def test_a_recurrent_model_carries_parity_beyond_the_trained_lengths() -> None:
    settings = extrapolation.Settings(steps=400, width=32, trained_length=10, lengths=(10, 40))
    with readers.one_thread():
        model = extrapolation.run(settings, "parity", "lstm", 0.005, 1)
        assert extrapolation.held_out(settings, "parity", model, 40, 1) > 0.95


def test_attention_looks_up_what_it_was_trained_on() -> None:
    settings = extrapolation.Settings(steps=450, width=32, trained_length=5, lengths=(5,))
    with readers.one_thread():
        model = extrapolation.run(settings, "lookup", "attention", 0.005, 1)
        assert extrapolation.held_out(settings, "lookup", model, 5, 1) > 0.95


def test_the_results_have_every_number(results: dict[str, Any]) -> None:
    assert list(results["tasks"]) == list(extrapolation.TASKS)
    for found in results["tasks"].values():
        assert list(found["models"]) == list(extrapolation.MODELS)
        sizes = [one["parameters"] for one in found["models"].values()]
        assert (
            max(sizes) / min(sizes) < 1.25
        )  # at a width of 8 the wider state's answers weigh much
        for one in found["models"].values():
            assert len(one["accuracy"]["seeds"]) == 2 and len(one["accuracy"]["mean"]) == 3
            assert [rate for rate, _ in one["search"]["tried"]] == [0.003, 0.01]
            assert one["rate"] == one["search"]["chosen"]


def test_the_learning_rate_is_chosen_on_trained_lengths_alone(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(extrapolation, "run", lambda *given: None)
    monkeypatch.setattr(
        extrapolation, "held_out",
        lambda s, t, m, n, seed, stream=readers.TEST: seen.append((stream, seed, n)) or 0.5,
    )  # fmt: skip
    extrapolation._measure(SMALL, "parity", "lstm", lambda line: None)
    searched = {n for stream, seed, n in seen if stream == readers.VALIDATION}
    tested = {(seed, n) for stream, seed, n in seen if stream == readers.TEST}
    assert searched == {1, 3}
    assert tested == {(seed, n) for seed in (1, 2) for n in (1, 3, 6)}


def test_the_sentence_is_made_of_the_numbers(results: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(results))
    changed["tasks"]["parity"]["models"]["attention"]["accuracy"]["mean"] = [1.0, 0.97, 0.51]
    said = extrapolation.sentence(changed, "en")
    assert "Trained on lengths 1–3; right answers at length 3 / 6." in said
    assert "Parity (chance 50 %): tanh RNN" in said and "attention 97 % / 51 %." in said
    assert "Mean of 2 seeds, 10 batches of 4 sequences each" in said
    chinese = extrapolation.sentence(changed, "zh")
    assert "奇偶（随机猜测 50%）" in chinese and "注意力 97% / 51%。" in chinese
