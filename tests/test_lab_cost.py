"""Cost of one layer: operations as PyTorch counts them, memory by hand, and a report that says what it measured."""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_lab
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from seqviz import plotting
from seqviz.lab import cost, layers, timing
from seqviz.report import Report

SMALL = tiny_lab.COST


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return cost.EXPERIMENT.report(SMALL).content()


# ---------------------------------------------------------------------------------------------
# By formula


def counted(call: Any) -> int:
    """Operations as PyTorch counts them; recurrent layers are counted where they are plain products."""
    counter = FlopCounterMode(display=False)
    with counter, torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        call()
    return counter.get_total_flops()


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("layer", layers.LAYERS)
def test_operations_are_those_that_pytorch_counts(layer: str) -> None:
    made = layers.make_layer(layer, SMALL, 16)
    states = layers.inputs_of(SMALL, 3, 10, 16)
    expected = layers.operations(layer, 16, 10) * 30
    assert counted(layers.step_call(made, states, "forward")) == expected
    # No gradient goes on to the state of zeros before the first step.
    gates = {"rnn": 1, "lstm": 4}.get(layer, 0)
    saved = 2 * 3 * gates * 16 * 16
    assert counted(layers.step_call(made, states, "forward_backward")) == 3 * expected - saved


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_the_lstm_in_products_written_out_takes_as_many() -> None:
    layer = layers.make_layer("lstm", SMALL, 8)
    states = layers.inputs_of(SMALL, 2, 6, 8)
    into, within, first, second = (p.detach() for p in layer.parameters())
    found = []

    def loop() -> None:
        hidden, cell = torch.zeros(2, 8), torch.zeros(2, 8)
        for t in range(6):
            gates = states[:, t] @ into.T + hidden @ within.T + first + second
            i, f, g, o = gates.chunk(4, dim=-1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            found.append(hidden)

    assert counted(loop) == 12 * layers.operations("lstm", 8, 6) == 12 * 16 * 64
    torch.testing.assert_close(torch.stack(found, dim=1), layers.run(layer, states))


def test_formulas_by_hand() -> None:
    # D = 8: 8 · 64 + 4 · 10 · 8; where N = 2 D attention takes as many as the LSTM.
    assert layers.operations("attention-fused", 8, 10) == 832
    assert layers.operations("attention-naive", 8, 16) == layers.operations("lstm", 8, 16) == 1024
    assert layers.operations("rnn", 8, 999) == 256
    # 2 sentences, 3 heads, 5 × 5 scores of 4 bytes.
    assert layers.score_bytes("attention-naive", 10, 5, 3) == 2 * 3 * 25 * 4
    assert (
        layers.score_bytes("attention-fused", 10, 5, 3) == layers.score_bytes("lstm", 10, 5, 3) == 0
    )
    assert [layers.state_bytes(layer, 8, 5) for layer in ("rnn", "lstm", "attention-fused")] == [
        32, 64, 320,
    ]  # fmt: skip
    assert [layers.path_length("lstm", n) for n in (0, 1, 59)] == [0, 1, 59]
    assert [layers.path_length("attention-fused", n) for n in (0, 1, 59)] == [0, 1, 1]


# ---------------------------------------------------------------------------------------------
# The layers


@pytest.mark.parametrize("layer", layers.ATTENTION_LAYERS)
def test_attention_is_that_of_pytorch(layer: str) -> None:
    made = layers.make_layer(layer, SMALL, 16)
    assert isinstance(made, layers.SelfAttention)
    states = layers.inputs_of(SMALL, 3, 10, 16)
    swapped = states.transpose(0, 1)
    expected, _ = functional.multi_head_attention_forward(
        swapped, swapped, swapped, 16, 2, made.projection.weight, made.projection.bias, None, None,
        False, 0.0, made.output.weight, made.output.bias, need_weights=False,
    )  # fmt: skip
    torch.testing.assert_close(made(states), expected.transpose(0, 1))


@torch.no_grad()
@pytest.mark.parametrize("layer", layers.ATTENTION_LAYERS)
def test_a_step_with_a_cache_is_the_last_row_of_the_whole(layer: str) -> None:
    made = layers.make_layer(layer, SMALL, 16)
    assert isinstance(made, layers.SelfAttention)
    states = layers.inputs_of(SMALL, 1, 7, 16)
    keys, values = torch.full((2, 1, 2, 9, 8), math.nan)  # what lies behind must not be read
    for position in range(7):
        last = made.step(states[:, position : position + 1], keys, values, position)
    torch.testing.assert_close(last, made(states)[:, -1:])


def test_layers_leave_the_random_state_and_have_weights_of_the_seed() -> None:
    before = torch.random.get_rng_state()
    one, same, other = (
        layers.make_layer("lstm", replace(SMALL, seed=seed), 8).weight_hh_l0 for seed in (1, 1, 2)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert 0.3 < one.abs().max() <= 1 / math.sqrt(8)


def test_peak_memory_holds_the_scores_of_naive_attention_alone() -> None:
    settings = replace(SMALL, lengths=(256,), tokens=256)
    states = layers.inputs_of(settings, 1, 256, 8)
    peak = {
        (layer, mode): timing.peak_bytes(
            layers.step_call(layers.make_layer(layer, settings, 8), states, mode)
        )
        for layer in layers.ATTENTION_LAYERS
        for mode in layers.MODES
    }
    scores = layers.score_bytes("attention-naive", 256, 256, 2)
    assert peak["attention-naive", "forward"] > 2 * scores  # before and after the softmax
    assert peak["attention-fused", "forward"] < scores
    for layer in layers.ATTENTION_LAYERS:
        assert peak[layer, "forward_backward"] > peak[layer, "forward"]


def test_a_backward_pass_starts_from_no_gradients() -> None:
    layer = layers.make_layer("lstm", SMALL, 8)
    call = layers.step_call(layer, layers.inputs_of(SMALL, 2, 5, 8), "forward_backward")
    call()
    first = layer.weight_hh_l0.grad.clone()
    call()
    torch.testing.assert_close(layer.weight_hh_l0.grad, first)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # On logarithmic axes y = x meets y = 8 at 8.
        ([8, 8, 8], [2, 4, 16], 8.0),
        ([8, 8, 8], [2, 8, 16], 4.0),
        ([8, 8, 8], [9, 9, 16], None),
        ([8, 8, 8], [2, 3, 4], None),
        ([8, 8, 8], [9, 7, 7], None),
    ],
)
def test_crossing(first: list[float], second: list[float], expected: float | None) -> None:
    found = cost.crossing([2, 4, 16], first, second)
    assert found == (expected and pytest.approx(expected))


# ---------------------------------------------------------------------------------------------
# The experiment


def test_shares_ratios_and_crossings_by_hand(monkeypatch) -> None:
    """With known seconds: the LSTM takes 1 s a step, attention N / 16 s, half as long without gradients."""

    def timed(calls: Any, *_: Any) -> dict[Any, dict[str, float]]:
        found = {}
        for name, call in calls.items():
            call()
            if isinstance(name, str):
                seconds = 1.0 if name == "lstm" else length[0] / 16
            else:
                seconds = length[0] / 16 if name[0] in layers.ATTENTION_LAYERS else 1.0
                seconds /= 1 if name[1] == "forward_backward" else 2
            found[name] = {"seconds": seconds, "spread": 1.0}
        return found

    length = [0]
    measure, step = cost._measure_layers, cost._measure_decoding

    def at(function: Any) -> Any:
        def call(settings: Any, width: int, number: int) -> Any:
            length[0] = number
            return function(settings, width, number)

        return call

    monkeypatch.setattr(cost, "timed", timed)
    monkeypatch.setattr(cost, "_measure_layers", at(measure))
    monkeypatch.setattr(cost, "_measure_decoding", at(step))
    monkeypatch.setattr(cost, "matmul_rate", lambda *_: 1e6)
    found = cost.EXPERIMENT.measure(SMALL)
    lstm = found["layers"]["8"]["lstm"]
    # 64 tokens · 16 · 8² operations, three times with the backward pass, in 1 s.
    assert lstm["forward_backward"]["flops_per_second"] == [196_608.0] * 3
    assert lstm["forward"]["share_of_matmul_rate"] == pytest.approx([0.131072] * 3)
    fused = found["layers"]["16"]["attention-fused"]
    assert fused["forward_backward"]["flops_per_second"][1] == 3 * 64 * (8 * 256 + 4 * 16 * 16)
    crossed = found["crossing"]["8"]
    assert crossed["operations"] == 16
    assert crossed["forward_backward"]["attention-naive"] == {
        "seconds": pytest.approx(16), "attention_faster_at": [8],
    }  # fmt: skip
    assert found["doubling"]["8"]["from"] == 8 and found["doubling"]["8"]["to"] == 16
    doubled = found["doubling"]["8"]["attention-naive"]
    assert doubled["seconds"] == 2 and doubled["score_bytes"] == 2
    assert doubled["operations"] == (8 * 64 + 4 * 16 * 8) / (8 * 64 + 4 * 8 * 8)
    assert found["doubling"]["8"]["lstm"]["score_bytes"] is None
    decoding = found["decoding"]
    assert decoding["layers"]["8"]["attention"]["seconds"] == [3 / 16, 2.5]
    assert decoding["layers"]["8"]["attention"]["state_bytes"] == [4 * 2 * 8 * 3, 4 * 2 * 8 * 40]
    assert decoding["layers"]["8"]["lstm"]["state_bytes"] == [64, 64]
    assert decoding["crossing"]["8"]["seconds"] == pytest.approx(16)
    assert decoding["crossing"]["8"]["attention_faster_at"] == [3]


def test_the_report_has_its_keys_and_what_is_no_time_comes_again(results) -> None:
    again = cost.EXPERIMENT.measure(SMALL)
    assert results["complete"] and set(results["layers"]) == {"8", "16"}
    assert results["num_threads"] == torch.get_num_threads()
    assert set(results["load_average"]) == {"before", "after"}
    assert results["data"] == {"inputs": "random numbers", "seed": 1}
    for width, measured in results["layers"].items():
        assert list(measured) == list(layers.LAYERS)
        for layer, found in measured.items():
            assert found["path_length"] == (
                [7, 15, 63] if layer in layers.RECURRENT_LAYERS else [1] * 3
            )
            for mode in layers.MODES:
                assert all(value > 0 for value in found[mode]["seconds"])
                assert all(value >= 1 for value in found[mode]["spread"])
                assert (
                    found[mode]["peak_bytes"] == again["layers"][width][layer][mode]["peak_bytes"]
                )
            assert (
                found["operations_per_token"]
                == again["layers"][width][layer]["operations_per_token"]
            )
    # The largest width whose crossing lies inside the lengths: 2 · 16 < 64.
    assert results["width_shown"] == 16


def test_live_gives_the_same_keys_and_stops_in_time(results) -> None:
    with torch.inference_mode():
        whole = cost.live(1000, SMALL)
        cut = cost.live(1e-9, SMALL)
    own = {"schema", "command", "data", "versions", "created"}
    assert set(whole) == set(results) - own
    assert whole["complete"] and not cut["complete"]
    assert cut["lengths"] == [8] and cut["decoding"]["positions"] == [3]
    assert "Time ran out" in cut["says"]["en"] and "时间用完" in cut["says"]["zh"]
    assert cut["doubling"] == {"8": None, "16": None}
    json.dumps(cut)
    for language in ("en", "zh"):
        plotting.lab.cost(cut, language=language)
    with pytest.raises(ValueError, match="expected seconds above 0, got 0; try 8"):
        cost.live(0)


def test_live_measures_one_at_a_time(monkeypatch, results) -> None:
    running, most = [0], [0]

    def slow(*_: Any) -> dict[str, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.02)
        running[0] -= 1
        return results

    monkeypatch.setattr(cost, "cost", slow)
    started = [threading.Thread(target=cost.live) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert most[0] == 1


def test_other_wrong_use_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="layer to be one of rnn, lstm, .*, got 'gru'"):
        layers.operations("gru", 8, 8)
    with pytest.raises(ValueError, match="layer to be one of"):
        layers.make_layer("gru", SMALL, 8)
    with pytest.raises(ValueError, match="a distance of 0 or more, got -1"):
        layers.path_length("lstm", -1)
    with pytest.raises(ValueError, match="mode to be one of forward, forward_backward, got 'back'"):
        layers.step_call(torch.nn.Identity(), torch.ones(1, 1, 1), "back")


# ---------------------------------------------------------------------------------------------
# In words, figure, command


def test_the_sentence_is_made_of_the_numbers(results) -> None:
    found = json.loads(json.dumps(results))
    layers = found["layers"]["16"]
    for layer, share in (("lstm", 0.1234), ("attention-naive", 0.5), ("attention-fused", 0.0567)):
        layers[layer]["forward_backward"]["share_of_matmul_rate"][-1] = share
    crossed = found["crossing"]["16"]["forward_backward"]["attention-fused"]
    crossed |= {"seconds": 23.4, "attention_faster_at": [8, 16]}
    doubled = found["doubling"]["16"]
    for layer, ratio in (("lstm", 1.04), ("attention-naive", 1.96), ("attention-fused", 1.5)):
        doubled[layer]["seconds"] = ratio
    steps = found["decoding"]["layers"]["16"]
    steps["lstm"]["seconds"][-1], steps["attention"]["seconds"][-1] = 12.3e-6, 4.56e-3
    said = cost.sentence(found, "en")
    for part in (
        "the last a recurrent layer takes 63 steps, self-attention 1.",
        "the LSTM reached 12 % of this machine’s rate",
        "attention 50 % with its scores in memory and 5.7 % fused",
        "below 32 tokens; by the clock fused attention was faster up to about 23 tokens",
        "From 8 to 16 tokens",
        "1 times as long in the LSTM, 2 times in attention with its scores in memory and 1.5 times",
        "scores grew 2-fold, for one sentence 4-fold",
        "Behind 40 tokens, the next one took the LSTM 12 µs with 128 bytes",
        "attention 4.6 ms with 5 KiB",
    ):
        assert part in said, part
    chinese = cost.sentence(found, "zh")
    for part in ("LSTM 达到本机大矩阵乘法速率的 12%", "在约 23 个词元以内更快", "状态 128 bytes"):
        assert part in chinese, part
    for faster, part in (
        ([8, 16, 64], "at every length measured, 8 to 64 tokens"),
        ([], "at no length measured, 8 to 64 tokens"),
        ([8, 64], "faster at 8, 64 tokens"),
    ):
        crossed["attention_faster_at"] = faster
        assert part in cost.sentence(found, "en")


@pytest.mark.parametrize(
    ("number", "said"), [(512, "512 bytes"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB")]
)
def test_sizes(number: float, said: str) -> None:
    assert cost._size(number) == said


def test_a_width_is_drawn_that_the_report_has(results) -> None:
    with pytest.raises(ValueError, match="width to be one of 8, 16, got 9"):
        plotting.lab.cost(results, width=9)


def test_the_figure_draws_what_the_report_has(results) -> None:
    figure = plotting.lab.cost(results, width=8)
    time_axes, memory, share, step, state = figure.axes
    measured, decoding = results["layers"]["8"], results["decoding"]["layers"]["8"]
    for axes, key, scale in (
        (time_axes, "seconds", 1e6 / 64),
        (memory, "peak_bytes", 1 / 2**20),
        (share, "share_of_matmul_rate", 100),
    ):
        for line, layer in zip(axes.lines, layers.LAYERS):
            expected = [scale * value for value in measured[layer]["forward_backward"][key]]
            assert list(line.get_xdata()) == [8, 16, 64]
            assert line.get_ydata() == pytest.approx(expected)
    for line, layer in zip(step.lines, ("lstm", "attention")):
        assert line.get_ydata() == pytest.approx([1e6 * s for s in decoding[layer]["seconds"]])
    assert [line.get_ydata()[-1] for line in state.lines] == [64 / 1024, 4 * 2 * 8 * 40 / 1024]
    crossing = [line for line in time_axes.lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in crossing] == [16]


# ---------------------------------------------------------------------------------------------
# The committed report


@pytest.fixture(scope="module")
def committed(models_folder: Path) -> dict[str, Any]:
    found = Report.read(models_folder / "report" / "cost.json")
    assert found is not None
    return found.content()


def test_the_report_has_the_operations_and_memory_of_today(committed: dict[str, Any]) -> None:
    assert committed["complete"]
    for width, measured in committed["layers"].items():
        for layer, found in measured.items():
            assert found["operations_per_token"] == [
                layers.operations(layer, int(width), length) for length in committed["lengths"]
            ]
