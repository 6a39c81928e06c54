"""Recall: sequences that leak nothing, attention that solves them, and a report that can be had again."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from seqviz import cli, plotting
from seqviz.lab import learning, recall

SMALL = recall.Settings(
    distances=(1, 3),
    search_distances=(2,),
    num_seeds=2,
    steps=16,
    batch_size=8,
    width=8,
    num_heads=2,
    num_symbols=4,
    rates=(0.003, 0.01),
    num_validation=16,
    num_test=32,
)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return recall.recall(SMALL)


# ---------------------------------------------------------------------------------------------
# The task


@pytest.mark.parametrize("distance", [1, 5, 40])
def test_nothing_but_the_first_symbol_tells_the_answer(distance: int) -> None:
    settings = recall.Settings()
    batch = recall.draw(settings, 500, distance, learning.generator(3))
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


def test_a_batch_is_of_one_of_the_distances_and_each_comes(monkeypatch) -> None:
    seen = []
    real = recall.draw
    monkeypatch.setattr(
        recall, "draw", lambda s, n, d, g: (seen.append((n, d)), real(s, n, d, g))[1]
    )
    settings = replace(SMALL, distances=(2, 5, 7), steps=60)
    recall.run(settings, "rnn", settings.distances, 0.01, 1)
    trained = [distance for size, distance in seen if size == settings.batch_size]
    assert len(trained) == 60 and set(trained) == {2, 5, 7}


def test_all_kinds_of_model_are_trained_on_the_same_batches(monkeypatch) -> None:
    seen: dict[str, list[Any]] = {}

    def watching(model: Any, draw: Any, steps: int, *rest: Any) -> None:
        seen[type(model).__name__] = [draw().inputs[0].tolist() for _ in range(3)]

    monkeypatch.setattr(recall, "train", watching)
    for kind in ("lstm", "attention"):
        recall.run(SMALL, kind, SMALL.distances, 0.01, 1)
    assert seen["RecurrentReader"] == seen["AttentionReader"]


def test_test_sequences_are_not_those_of_training_or_validation(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        recall, "accuracy", lambda model, batch: (seen.append(batch.inputs[0]), 0.5)[1]
    )
    monkeypatch.setattr(recall, "train", lambda model, draw, *rest: seen.append(draw().inputs[0]))
    settings = replace(SMALL, batch_size=32, num_validation=32)
    model, _ = recall.run(settings, "rnn", (9,), 0.01, 1)
    for stream in (learning.TEST, learning.VALIDATION):
        recall.held_out(settings, model, 9, 1, stream)
    recall.held_out(settings, model, 9, 1)
    train, test, validation, again = (rows.tolist() for rows in seen)
    assert test == again
    for one, other in ((train, test), (test, validation), (train, validation)):
        assert not any(row in other for row in one)


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
    with learning.one_thread():
        model, _ = recall.run(settings, "attention", (5, 20, 80), 0.01, 1)
        for distance in (5, 20, 80):
            assert recall.held_out(settings, model, distance, 1) >= 0.99, distance


def test_a_tanh_rnn_learns_a_short_distance() -> None:
    settings = recall.Settings(steps=240, width=32, num_symbols=8, num_test=256)
    with learning.one_thread():
        model, way = recall.run(settings, "rnn", (3,), 0.001, 1)
        assert recall.held_out(settings, model, 3, 1) >= 0.99
    assert way["steps"] == [30 * n for n in range(1, 9)]
    assert way["accuracy"][0][0] < way["accuracy"][-1][0]


def test_the_results_have_every_number(results: dict[str, Any]) -> None:
    assert results["chance"] == 0.25 and results["distances"] == [1, 3]
    for training in recall.TRAININGS:
        assert list(results[training]) == list(learning.KINDS)
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


def test_the_same_settings_give_the_same_numbers(results: dict[str, Any]) -> None:
    state = torch.random.get_rng_state()
    said: list[str] = []
    again = recall.recall(SMALL, said.append)
    assert json.dumps(again) == json.dumps(results)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert any(line.startswith("alone, attention, seed 2: ") for line in said)
    other, _ = recall.run(SMALL, "lstm", (1, 3), 0.01, 3)
    same, _ = recall.run(SMALL, "lstm", (1, 3), 0.01, 1)
    assert not torch.equal(other.answer.weight, same.answer.weight)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"width": 6, "num_heads": 4}, "got 6 and 4; try 4"),
        ({"distances": (5, 5)}, "distances to be rising whole numbers from 1 to 2000, got (5, 5)"),
        ({"distances": (0, 5)}, "distances to be rising whole numbers from 1 to 2000, got (0, 5)"),
        ({"num_seeds": 99}, "num_seeds to be a whole number from 1 to 20, got 99"),
        ({"steps": 0}, "steps to be a whole number from 1 to"),
        ({"rates": (2.0,)}, "learning rates above 0 and below 1, got (2.0,)"),
        ({"kinds": ("rnn", "gru")}, "kinds to be some of rnn, lstm, lstm-forget-3, attention"),
        ({"kinds": ()}, "each once, got ()"),
    ],
)
def test_bad_settings_say_what_to_do(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        recall.Settings(**changed)
    assert message in str(caught.value)


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
    with pytest.raises(ValueError, match="language to be one of en, zh, got 'fr'"):
        recall.sentence(changed, "fr")


# ---------------------------------------------------------------------------------------------
# Command and figure


def test_the_command_writes_report_and_figures(monkeypatch, tmp_path, capsys) -> None:
    out = tmp_path / "recall.json"
    options = (
        "--distance 1 --distance 2 --search-distance 1 --seeds 1 --steps 3 --width 8 --rate 0.01"
    )
    monkeypatch.setattr(
        sys, "argv", ["seqviz", "lab", "recall", *options.split(), "--out", str(out)]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)
    said = capsys.readouterr()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert said.out.strip() == found["says"]["en"]
    assert "mixed, rnn: learning rate 0.01" in said.err
    assert found["command"] == f"seqviz lab recall {options}"
    assert found["settings"]["distances"] == [1, 2] and found["settings"]["steps"] == 3
    for key in ("schema", "data", "versions", "hardware", "created", "legend"):
        assert found[key]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "recall.json",
        "recall.svg",
        "recall.zh.svg",
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_labels_every_curve(
    results: dict[str, Any], tmp_path: Path, language: str
) -> None:
    figure = plotting.lab.recall(results, language=language)
    plotting.save(figure, tmp_path / "recall.svg")
    drawn = (tmp_path / "recall.svg").read_text(encoding="utf-8")
    expected = {
        "en": ["tanh RNN", "LSTM, forget bias 3", "attention", "chance", "Trained at one distance"],
        "zh": ["tanh RNN", "LSTM，遗忘偏置 3", "注意力", "随机猜测", "只在一种距离上训练"],
    }[language]
    for text in expected:
        assert text in drawn
    alone = figure.axes[0]
    drawn_lines = {line.get_label(): line.get_ydata() for line in alone.get_lines()}
    assert list(drawn_lines["rnn"]) == pytest.approx(
        [100 * value for value in results["alone"]["rnn"]["accuracy"]["mean"]]
    )


def test_the_figure_refuses_what_is_no_report() -> None:
    with pytest.raises(ValueError, match="content of a recall report"):
        plotting.lab.recall({"mixed": {}})
