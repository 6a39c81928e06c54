"""Validation while a run goes on: early stopping, the best state, a picture, a tracker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_training import (  # noqa: F401
    BUDGET,
    Trace,
    dev,
    folder,
    newest,
    no_cuda,
    run,
    sources,
    uninterrupted,
    weights,
)

from seqviz.training import TrainingError, watching
from seqviz.training import run as runs
from seqviz.training.log import Log

OFTEN = {"dev_sample": 5, "dev_every_tokens": 400}


@pytest.fixture
def losses(monkeypatch):
    """``losses([3, 1, 2])`` are what the next validations find; later ones find the last."""

    def set_losses(values):
        left = list(values)
        monkeypatch.setattr(
            runs, "mean_loss", lambda *_, **__: float(left.pop(0) if len(left) > 1 else left[0])
        )

    return set_losses


def rows(place: Path) -> list[tuple[int, float]]:
    found = Log(place / "run" / "log.jsonl", True).rows()
    return [(row["tokens"], row["dev_loss"]) for row in found if "dev_loss" in row]


def assert_written_is(state: Path, place: Path) -> None:
    model = load_file(place / "models/lstm-attention/model.safetensors")
    kept = load_file(state / "model.safetensors")
    for key, value in model.items():
        assert torch.equal(value, kept[key].half()), key


def test_patience_ends_a_run_with_its_best_state(run, tmp_path, dev, losses, capfd):  # noqa: F811
    losses([3, 2, 2.5, 2, 2.1])
    trace = Trace()
    result = run(trace, tokens=10**6, dev=dev, patience=3, **OFTEN)
    found = rows(tmp_path)
    assert result.finished and len(found) == 6  # three without a lower one, and the last state's
    best = newest(tmp_path / "run" / "best")
    assert result.report["target_tokens"] == found[1][0] < trace.steps[-1][1]
    assert result.report["dev_loss"] == 2.0 and result.report["rate_at_end"] == 1.0
    assert len(list((tmp_path / "run" / "best").glob("checkpoint-*"))) == 1
    assert_written_is(best, tmp_path)
    said = capfd.readouterr().err
    assert f"the lowest validation loss, 2.000, was that after {found[1][0]:,} target" in said

    # The same command writes the same again; without patience the run goes on from its last state.
    again = run(trace, tokens=10**6, dev=dev, patience=3, **OFTEN)
    assert again.report["weights_sha256"] == result.report["weights_sha256"]
    more = Trace()
    run(more, tokens=10**6, dev=dev, stop_at=trace.steps[-1][0] + 1, **OFTEN)
    assert more.steps[0][0] == trace.steps[-1][0] + 1


def test_patience_counts_over_stops_and_lost_states(run, tmp_path, dev, losses):  # noqa: F811
    """A stopped run ends where an undisturbed one does, also where its newest states and log rows are lost."""
    real = [3, 2, 2.5, 2, 2.1, 2.2, 2.3]
    losses(real)
    whole = Trace()
    first = run(whole, tokens=10**6, dev=dev, patience=3, run_folder=tmp_path / "whole", **OFTEN)
    last = whole.steps[-1][0]

    losses(real)
    trace = Trace()
    run(trace, tokens=10**6, dev=dev, patience=3, stop_at=4, **OFTEN)
    validated = len(rows(tmp_path))
    run(trace, tokens=10**6, dev=dev, patience=3, stop_at=last - 2, **OFTEN)
    shutil.rmtree(newest(tmp_path / "run"))  # back to step 4
    losses(real[validated:])
    parts = run(Trace(), tokens=10**6, dev=dev, patience=3, **OFTEN)
    assert parts.report["target_tokens"] == first.report["target_tokens"]
    assert parts.report["weights_sha256"] == first.report["weights_sha256"]


def test_keeping_the_best_state_changes_no_step(run, tmp_path, dev, uninterrupted):  # noqa: F811
    steps, final = uninterrupted
    trace = Trace()
    result = run(trace, tokens=BUDGET, dev=dev, patience=100, mixed_precision="no", **OFTEN)
    assert trace.steps == steps
    *before, last = [loss for _, loss in rows(tmp_path)]
    assert ("rate_at_end" in result.report) == (min(before) < last)
    found = weights(tmp_path / "run" / f"cooldown-{BUDGET}")
    assert all(torch.equal(value, found[key]) for key, value in final.items())


def test_finish_cools_down_a_run_that_patience_ended(run, tmp_path, dev, losses):  # noqa: F811
    losses([3, 2, 2.5])
    ended = Trace()
    run(ended, tokens=10**6, dev=dev, patience=1, **OFTEN)
    losses([1])  # what the cool-down finds
    trace = Trace()
    result = run(trace, tokens=10**6, dev=dev, patience=1, finish="cooldown", **OFTEN)
    assert trace.steps[0][0] == ended.steps[-1][0] + 1
    assert result.report["dev_loss"] == 1.0
    assert "best" in {path.name for path in (tmp_path / "run").glob("cooldown-*/*")}


def test_a_damaged_best_state_is_said(run, tmp_path, dev, losses):  # noqa: F811
    losses([3, 2, 2.5])
    run(Trace(), tokens=10**6, dev=dev, patience=2, **OFTEN)
    path = newest(tmp_path / "run" / "best") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(TrainingError, match="expected a whole state in .*/best, got a damaged one"):
        run(Trace(), tokens=10**6, dev=dev, patience=2, **OFTEN)


def test_without_patience_nothing_is_kept(run, tmp_path, dev, losses):  # noqa: F811
    losses([1, 2, 3])
    result = run(Trace(), tokens=2_000, dev=dev, **OFTEN)
    assert result.report["dev_loss"] == 3.0 and "rate_at_end" not in result.report
    assert not list((tmp_path / "run").rglob("best"))


def test_patience_needs_a_development_corpus(run, tmp_path):  # noqa: F811
    with pytest.raises(TrainingError, match="development corpus with --patience, got none"):
        run(Trace(), tokens=BUDGET, patience=2)
    assert not (tmp_path / "run").exists()


def test_the_picture_is_drawn_anew_at_each_validation(run, tmp_path, dev):  # noqa: F811
    pictures = []

    def look(position, loss):
        path = tmp_path / "run" / "losses.svg"
        if path.is_file():
            pictures.append(path.read_text(encoding="utf-8"))

    run(Trace(), tokens=1_500, dev=dev, on_step=look, **OFTEN)
    distinct = list(dict.fromkeys(pictures))
    assert len(distinct) >= 2 and all(text.startswith("<?xml") for text in distinct)
    assert "validation" in distinct[-1] or "loss" in distinct[-1]


def test_losses_go_to_tensorboard_and_are_taken_back_with_the_state(run, tmp_path, dev):  # noqa: F811
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = {"tokens": BUDGET, "dev": dev, "tracker": "tensorboard", **OFTEN}
    run(Trace(), stop_at=4, **arguments)
    run(Trace(), stop_at=9, **arguments)
    shutil.rmtree(newest(tmp_path / "run"))
    run(Trace(), **arguments)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("dev_loss")]
    assert [step for step, _ in found] == [tokens for tokens, _ in rows(tmp_path)]
    assert [value for _, value in found] == pytest.approx([loss for _, loss in rows(tmp_path)])


def test_a_tracker_that_is_not_there_is_one_line(run, tmp_path, monkeypatch):  # noqa: F811
    with pytest.raises(TrainingError, match="a tracker of tensorboard, got 'paper'"):
        run(Trace(), tokens=BUDGET, tracker="paper")
    monkeypatch.setattr(watching, "is_tensorboard_available", lambda: False)
    with pytest.raises(TrainingError, match=r"found none; pip install 'seqviz\[tracking\]'"):
        run(Trace(), tokens=BUDGET, tracker="tensorboard")
    assert not (tmp_path / "run").exists()


def test_states_saved_before_losses_were_kept_in_them_are_read(run, tmp_path):  # noqa: F811
    run(Trace(), tokens=BUDGET, stop_at=2)
    for path in (tmp_path / "run").glob("checkpoint-*/position.json"):
        position = json.loads(path.read_text())
        del position["dev_loss"]
        path.write_text(json.dumps(position))
        (path.parent / "digests.json").unlink()
    assert run(Trace(), tokens=BUDGET, stop_at=3).position.step == 3
