"""`finish` ends a run early: by a cool-down from where it stands, or at once."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load_file
from test_training import (  # noqa: F401
    BUDGET,
    Trace,
    assert_equal_weights,
    folder,
    newest,
    no_cuda,
    run,
    sources,
    uninterrupted,
    weights,
)

from seqviz.training import TrainingError


def test_a_finished_run_is_one_whose_budget_was_this_from_the_start(run, tmp_path):  # noqa: F811
    """Bit for bit, also where the cool-down was stopped; and a larger budget goes on from before it."""
    trace = Trace()
    seen = run(trace, tokens=10**9, stop_at=10).position.tokens
    budget = math.ceil(seen / 0.8)
    for stop in (11, 12):
        assert not run(trace, tokens=10**9, finish="cooldown", stop_at=stop).finished
    result = run(trace, finish="cooldown")  # with the budget or without it
    assert result.finished and result.report["budget"] == budget
    assert "rate_at_end" not in result.report
    assert trace.factors[9] == 1.0 and trace.factors[-1] < 0.5

    planned = Trace()
    run(planned, tokens=budget, run_folder=tmp_path / "planned")
    assert trace.steps == planned.steps
    found = weights(tmp_path / "run" / f"cooldown-{budget}")
    assert_equal_weights(found, weights(tmp_path / "planned" / f"cooldown-{budget}"))


@pytest.mark.parametrize("finish", ["cooldown", "now"])
def test_a_larger_budget_goes_on_from_before_the_end(run, tmp_path, uninterrupted, finish):  # noqa: F811
    steps, final = uninterrupted
    trace, more = Trace(), Trace()
    run(trace, tokens=BUDGET, stop_at=10)
    assert run(Trace(), finish=finish).finished
    assert run(more, tokens=BUDGET).finished
    assert trace.steps + more.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_a_cooldown_that_has_begun_goes_on(run, tmp_path, uninterrupted):  # noqa: F811
    """`finish` lowers a budget and never raises it."""
    steps, final = uninterrupted
    trace = Trace()
    run(trace, tokens=BUDGET, stop_at=len(steps) - 2)
    assert run(trace, tokens=BUDGET, finish="cooldown").finished
    assert trace.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_a_budget_just_ahead_stays(run):  # noqa: F811
    trace = Trace()
    seen = run(trace, tokens=10**9, stop_at=10).position.tokens
    result = run(trace, tokens=seen + 300, finish="cooldown")
    assert result.report["budget"] == seen + 300


def test_finish_now_takes_no_step_and_says_at_which_rate_it_ends(run, tmp_path, capfd):  # noqa: F811
    before = run(Trace(), tokens=BUDGET, stop_at=10)
    state = newest(tmp_path / "run")
    kept = {path.name: path.read_bytes() for path in state.iterdir()}
    trace = Trace()
    result = run(trace, tokens=BUDGET, finish="now")
    assert result.finished and trace.steps == []
    assert result.report["target_tokens"] == before.position.tokens == result.report["budget"]
    assert result.report["rate_at_end"] == 1.0
    assert "ending here, at 100% of the full learning rate" in capfd.readouterr().err
    model = load_file(tmp_path / "models/lstm-attention/model.safetensors")
    trained = weights(tmp_path / "run")
    for key, value in model.items():
        assert torch.equal(value, trained[key].half()), key
    # The run folder is as it was.
    assert {path.name: path.read_bytes() for path in state.iterdir()} == kept
    assert not list((tmp_path / "run").glob("cooldown-*"))


def test_finish_now_within_a_cooldown(run, uninterrupted):  # noqa: F811
    steps, _ = uninterrupted
    run(Trace(), tokens=BUDGET, stop_at=len(steps) - 2)
    result = run(Trace(), tokens=BUDGET, finish="now")
    assert result.position.step == len(steps) - 2
    assert 0 < result.report["rate_at_end"] < 1


@pytest.mark.parametrize("finish", ["cooldown", "now"])
def test_nothing_to_finish(run, finish):  # noqa: F811
    with pytest.raises(TrainingError, match="expected a saved state in .*/run to finish, found"):
        run(Trace(), tokens=BUDGET, finish=finish)


def test_no_such_finish(run, tmp_path):  # noqa: F811
    with pytest.raises(TrainingError, match="None, cooldown or now, got 'soon'"):
        run(Trace(), finish="soon")
    assert not (tmp_path / "run").exists()
