"""Cost of one layer: operations as PyTorch counts them, memory by hand, and a report that says what it measured."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from seqviz import cli, plotting
from seqviz import report as reports
from seqviz.lab import cost, two_digits

SMALL = cost.Settings(
    widths=(8, 16),
    lengths=(8, 16, 64),
    tokens=64,
    num_heads=2,
    positions=(3, 40),
    repeats=1,
    round_seconds=1e-6,
    matmul_size=32,
)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return cost.report(SMALL, lambda line: None)


# ---------------------------------------------------------------------------------------------
# By formula


def counted(call: Any) -> int:
    """Operations as PyTorch counts them; recurrent layers are counted where they are plain products."""
    counter = FlopCounterMode(display=False)
    with counter, torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        call()
    return counter.get_total_flops()


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("layer", cost.LAYERS)
def test_operations_are_those_that_pytorch_counts(layer: str) -> None:
    made = cost.make_layer(layer, SMALL, 16)
    states = cost._inputs(SMALL, 3, 10, 16)
    expected = cost.operations(layer, 16, 10) * 30
    assert counted(cost.step_call(made, states, "forward")) == expected
    # No gradient goes on to the state of zeros before the first step.
    gates = {"rnn": 1, "lstm": 4}.get(layer, 0)
    saved = 2 * 3 * gates * 16 * 16
    assert counted(cost.step_call(made, states, "forward_backward")) == 3 * expected - saved


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_the_lstm_in_products_written_out_takes_as_many() -> None:
    layer = cost.make_layer("lstm", SMALL, 8)
    states = cost._inputs(SMALL, 2, 6, 8)
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

    assert counted(loop) == 12 * cost.operations("lstm", 8, 6) == 12 * 16 * 64
    torch.testing.assert_close(torch.stack(found, dim=1), cost._run(layer, states))


def test_formulas_by_hand() -> None:
    # D = 8: 8 · 64 + 4 · 10 · 8; where N = 2 D attention takes as many as the LSTM.
    assert cost.operations("attention-fused", 8, 10) == 832
    assert cost.operations("attention-naive", 8, 16) == cost.operations("lstm", 8, 16) == 1024
    assert cost.operations("rnn", 8, 999) == 256
    # 2 sentences, 3 heads, 5 × 5 scores of 4 bytes.
    assert cost.score_bytes("attention-naive", 10, 5, 3) == 2 * 3 * 25 * 4
    assert cost.score_bytes("attention-fused", 10, 5, 3) == cost.score_bytes("lstm", 10, 5, 3) == 0
    assert [cost.state_bytes(layer, 8, 5) for layer in ("rnn", "lstm", "attention-fused")] == [
        32, 64, 320,
    ]  # fmt: skip
    assert [cost.path_length("lstm", n) for n in (0, 1, 59)] == [0, 1, 59]
    assert [cost.path_length("attention-fused", n) for n in (0, 1, 59)] == [0, 1, 1]


# ---------------------------------------------------------------------------------------------
# The layers


@pytest.mark.parametrize("layer", cost.ATTENTION_LAYERS)
def test_attention_is_that_of_pytorch(layer: str) -> None:
    made = cost.make_layer(layer, SMALL, 16)
    assert isinstance(made, cost.SelfAttention)
    states = cost._inputs(SMALL, 3, 10, 16)
    swapped = states.transpose(0, 1)
    expected, _ = functional.multi_head_attention_forward(
        swapped, swapped, swapped, 16, 2, made.projection.weight, made.projection.bias, None, None,
        False, 0.0, made.output.weight, made.output.bias, need_weights=False,
    )  # fmt: skip
    torch.testing.assert_close(made(states), expected.transpose(0, 1))


@torch.no_grad()
@pytest.mark.parametrize("layer", cost.ATTENTION_LAYERS)
def test_a_step_with_a_cache_is_the_last_row_of_the_whole(layer: str) -> None:
    made = cost.make_layer(layer, SMALL, 16)
    assert isinstance(made, cost.SelfAttention)
    states = cost._inputs(SMALL, 1, 7, 16)
    keys, values = torch.full((2, 1, 2, 9, 8), math.nan)  # what lies behind must not be read
    for position in range(7):
        last = made.step(states[:, position : position + 1], keys, values, position)
    torch.testing.assert_close(last, made(states)[:, -1:])


def test_layers_leave_the_random_state_and_have_weights_of_the_seed() -> None:
    before = torch.random.get_rng_state()
    one, same, other = (
        cost.make_layer("lstm", replace(SMALL, seed=seed), 8).weight_hh_l0 for seed in (1, 1, 2)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert 0.3 < one.abs().max() <= 1 / math.sqrt(8)


# ---------------------------------------------------------------------------------------------
# Measuring


def test_peak_memory_by_hand() -> None:
    first = torch.ones(1000)

    def call() -> None:
        second = first.clone()  # 4,000 bytes
        third = second.repeat(3)  # 12,000 more
        del second
        fourth = third.clone()  # 12,000 more, 4,000 fewer
        del third, fourth
        first.clone()

    assert cost.peak_bytes(call) == 24_000


def test_memory_from_before_does_not_lower_the_peak() -> None:
    kept = [torch.ones(1000)]

    def keep() -> None:
        kept.append(torch.ones(1000))

    def replace_it() -> None:
        kept.clear()
        kept.append(torch.ones(1000).clone())

    for _ in range(3):
        cost.peak_bytes(keep)  # its memory is known to the profiler
        assert cost.peak_bytes(replace_it) == 8_000


def test_peak_memory_holds_the_scores_of_naive_attention_alone() -> None:
    settings = replace(SMALL, lengths=(256,), tokens=256)
    states = cost._inputs(settings, 1, 256, 8)
    peak = {
        (layer, mode): cost.peak_bytes(
            cost.step_call(cost.make_layer(layer, settings, 8), states, mode)
        )
        for layer in cost.ATTENTION_LAYERS
        for mode in cost.MODES
    }
    scores = cost.score_bytes("attention-naive", 256, 256, 2)
    assert peak["attention-naive", "forward"] > 2 * scores  # before and after the softmax
    assert peak["attention-fused", "forward"] < scores
    for layer in cost.ATTENTION_LAYERS:
        assert peak[layer, "forward_backward"] > peak[layer, "forward"]


def test_the_profiler_is_right_and_quiet_in_any_thread() -> None:
    """As on the page, where a visitor's request is a thread of its own."""
    code = """
import threading, torch
from seqviz.lab import cost
square = torch.ones(64, 64)
found = []
for _ in range(2):
    work = lambda: found.append(cost.peak_bytes(lambda: torch.mm(square, square)))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
work()
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(done.stdout) == [64 * 64 * 4] * 3
    assert done.stderr == ""


def test_the_profiler_is_quiet_and_others_are_heard(capfd) -> None:
    def call() -> None:
        os.write(2, b"something else\n")

    cost.peak_bytes(call)
    assert capfd.readouterr().err == "something else\n"


def test_timings_are_taken_in_turn_and_the_best_counts(monkeypatch) -> None:
    order: list[str] = []
    clock = {"a": iter([9.0, 4.0, 2.0, 3.0]), "b": iter([9.0, 7.0, 7.0, 7.0])}

    def seconds(call: Any, calls: int, device: str) -> float:
        order.append(name := call())
        return next(clock[name])

    monkeypatch.setattr(cost, "_seconds", seconds)
    found = cost.timed({"a": lambda: "a", "b": lambda: "b"}, repeats=3)  # type: ignore[dict-item]
    assert order == ["a", "b"] * 4  # the first of each warms up
    assert found == {"a": {"seconds": 2.0, "spread": 1.5}, "b": {"seconds": 7.0, "spread": 1.0}}


def test_a_round_lasts_and_gives_the_seconds_of_one_call(monkeypatch) -> None:
    clock = [0.0]

    def call() -> None:
        clock[0] += 0.25

    monkeypatch.setattr(cost.time, "perf_counter", lambda: clock[0])
    found = cost.timed({"a": call}, repeats=2, round_seconds=0.7)
    assert found["a"] == {"seconds": 0.25, "spread": 1.0}
    assert clock[0] / 0.25 == 2 + 2 * 3  # two warm up; three take 0.7 s


def test_a_backward_pass_starts_from_no_gradients() -> None:
    layer = cost.make_layer("lstm", SMALL, 8)
    call = cost.step_call(layer, cost._inputs(SMALL, 2, 5, 8), "forward_backward")
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
                seconds = length[0] / 16 if name[0] in cost.ATTENTION_LAYERS else 1.0
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
    found = cost.cost(SMALL)
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
    again = cost.cost(SMALL)
    assert results["complete"] and set(results["layers"]) == {"8", "16"}
    assert results["num_threads"] == torch.get_num_threads()
    assert set(results["load_average"]) == {"before", "after"}
    assert results["data"] == {"inputs": "random numbers", "seed": 1}
    for width, layers in results["layers"].items():
        assert list(layers) == list(cost.LAYERS)
        for layer, found in layers.items():
            assert found["path_length"] == (
                [7, 15, 63] if layer in cost.RECURRENT_LAYERS else [1] * 3
            )
            for mode in cost.MODES:
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


def test_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    with cost.threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with pytest.raises(RuntimeError), cost.threads(before + 1):
        raise RuntimeError
    assert torch.get_num_threads() == before


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


def test_live_measures_one_at_a_time(monkeypatch) -> None:
    running, most = [0], [0]

    def slow(*_: Any) -> dict[str, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.02)
        running[0] -= 1
        return {}

    monkeypatch.setattr(cost, "cost", slow)
    started = [threading.Thread(target=cost.live) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert most[0] == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"widths": ()}, "widths to be rising whole numbers from 2 to 4096, got ()"),
        ({"lengths": (64, 32)}, "lengths to be rising whole numbers from 2 to 65536, got (64, 32)"),
        ({"positions": (0, 3)}, "positions to be rising whole numbers from 1"),
        ({"widths": (6,)}, "widths divisible by num_heads, got 6 and 4; try 4"),
        ({"lengths": (32, 48), "tokens": 64}, "got 48 and 64; try tokens 96 or a multiple"),
        ({"repeats": True}, "repeats to be a whole number from 1 to 1000, got True"),
        ({"round_seconds": 0.0}, "round_seconds above 0 and at most 10, got 0.0; try 0.02"),
        ({"device": "tpu"}, "device to be one of cpu, cuda, got 'tpu'"),
    ],
)
def test_bad_settings_say_what_to_do(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        cost.Settings(**changed)
    assert message in str(caught.value)


def test_other_wrong_use_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="layer to be one of rnn, lstm, .*, got 'gru'"):
        cost.operations("gru", 8, 8)
    with pytest.raises(ValueError, match="layer to be one of"):
        cost.make_layer("gru", SMALL, 8)
    with pytest.raises(ValueError, match="a distance of 0 or more, got -1"):
        cost.path_length("lstm", -1)
    with pytest.raises(ValueError, match="mode to be one of forward, forward_backward, got 'back'"):
        cost.step_call(torch.nn.Identity(), torch.ones(1, 1, 1), "back")


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
    with pytest.raises(ValueError, match="language to be one of en, zh, got 'fr'"):
        cost.sentence(found, "fr")


@pytest.mark.parametrize(
    ("number", "said"), [(0.123, "0.12"), (1.0, "1"), (1.96, "2"), (12.6, "13"), (1234.0, "1234")]
)
def test_digits(number: float, said: str) -> None:
    assert two_digits(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(512, "512 bytes"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB")]
)
def test_sizes(number: float, said: str) -> None:
    assert cost._size(number) == said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_labels_every_curve(results, tmp_path: Path, language: str) -> None:
    plotting.save(plotting.lab.cost(results, language=language), tmp_path / "cost.svg")
    drawn = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    expected = {
        "en": ["tanh RNN", "LSTM", "attention, fused", "attention, scores in memory", "16 wide"],
        "zh": ["tanh RNN", "LSTM", "融合注意力", "注意力，分数写入内存", "宽度 16"],
    }[language]
    for text in [*expected, "N = 2 D", "64"]:
        assert text in drawn


def test_the_figure_draws_what_the_report_has(results) -> None:
    figure = plotting.lab.cost(results, width=8)
    time_axes, memory, share, step, state = figure.axes
    layers, decoding = results["layers"]["8"], results["decoding"]["layers"]["8"]
    for axes, key, scale in (
        (time_axes, "seconds", 1e6 / 64),
        (memory, "peak_bytes", 1 / 2**20),
        (share, "share_of_matmul_rate", 100),
    ):
        for line, layer in zip(axes.lines, cost.LAYERS):
            expected = [scale * value for value in layers[layer]["forward_backward"][key]]
            assert list(line.get_xdata()) == [8, 16, 64]
            assert line.get_ydata() == pytest.approx(expected)
    for line, layer in zip(step.lines, ("lstm", "attention")):
        assert line.get_ydata() == pytest.approx([1e6 * s for s in decoding[layer]["seconds"]])
    assert [line.get_ydata()[-1] for line in state.lines] == [64 / 1024, 4 * 2 * 8 * 40 / 1024]
    crossing = [line for line in time_axes.lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in crossing] == [16]


def test_the_figure_refuses_what_is_no_report(results) -> None:
    with pytest.raises(ValueError, match="content of a cost report"):
        plotting.lab.cost({"layers": {}})
    with pytest.raises(ValueError, match="width to be one of 8, 16, got 9"):
        plotting.lab.cost(results, width=9)


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["seqviz", "lab", "cost", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


def test_the_command_writes_report_and_figures(monkeypatch, tmp_path, capsys) -> None:
    out = tmp_path / "new" / "cost.json"
    options = (
        "--width 8 --length 4 --length 8 --position 3 --tokens 16 --repeats 1 --threads 1".split()
    )
    assert run(monkeypatch, *options, "--out", str(out)) == 0
    said = capsys.readouterr()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert said.out.strip() == found["says"]["en"] == cost.sentence(found)
    assert "8 tokens a sentence, 2 at once" in said.err
    assert found["command"] == f"seqviz lab cost {' '.join(options)}"
    for key in ("schema", "data", "versions", "hardware", "created", "settings"):
        assert found[key]
    assert found["hardware"].endswith("1 threads") and found["num_threads"] == 1
    assert sorted(p.name for p in out.parent.iterdir()) == ["cost.json", "cost.svg", "cost.zh.svg"]
    assert run(monkeypatch, "--width", "7", "--out", str(out)) == 1
    assert "widths divisible by num_heads, got 7 and 4" in capsys.readouterr().err
    assert run(monkeypatch, "--out", str(tmp_path)) == 2


# ---------------------------------------------------------------------------------------------
# The committed report


@pytest.fixture(scope="module")
def committed(models_folder: Path) -> dict[str, Any]:
    found = reports.read_report(models_folder, "cost")
    assert found is not None
    return found


def test_the_report_has_the_operations_and_memory_of_today(committed: dict[str, Any]) -> None:
    assert committed["complete"]
    for width, layers in committed["layers"].items():
        for layer, found in layers.items():
            assert found["operations_per_token"] == [
                cost.operations(layer, int(width), length) for length in committed["lengths"]
            ]
