"""What one layer costs: recurrence takes N steps one after the other, attention compares N × N words.

    results = EXPERIMENT.measure(Settings())  # numbers of the report
    live()                                    # the same on this machine, small, in some seconds

One recurrent layer and one self-attention layer of the same width read random numbers. The number of
tokens at once is constant: twice the length, half the sentences. So what changes with the length is
only what the length itself does.

    operations a token, forward (multiplications and additions of matrix products)
    tanh RNN         4 D²             W_x x_t, W_h h_{t-1}
    LSTM            16 D²             the same for four gates
    self-attention   8 D² + 4 N D     query, key, value, output; scores and weighted sum

Attention costs fewer operations than the LSTM where N < 2 D (Vaswani et al. 2017, table 1, compare N² D
with N D², without constants: N < D), and never fewer than the tanh RNN. Time is another matter: the
steps of a recurrence wait for each other, each a product of small matrices, while attention is a few large
ones. When a text is generated, both go one step at a time, and then attention has to read all it wrote.

Shapes: `B` sentences, `N` length in tokens, `D` width, `H` heads.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from seqviz.lab import two_digits
from seqviz.lab.experiment import Experiment, Say, quiet
from seqviz.lab.layers import (
    ATTENTION_LAYERS,
    LAYERS,
    MODES,
    SelfAttention,
    fill,
    inputs_of,
    make_layer,
    operations,
    path_length,
    score_bytes,
    state_bytes,
    step_call,
)
from seqviz.lab.settings import Cost as Settings
from seqviz.lab.timing import kernel_busy, matmul_rate, peak_bytes, threads, timed
from seqviz.language import Language
from seqviz.version import hardware

LIVE = Settings(
    widths=(128,),
    lengths=(32, 64, 128, 256, 512, 1024),
    tokens=1024,
    positions=(32, 128, 512, 2048),
    repeats=3,
    round_seconds=0.004,
    matmul_size=512,
)
"""For a page that answers while a visitor waits."""

Cells = dict[tuple[int, int], dict[str, Any]]
"""Measured values by width and by length or position, and then by layer."""


def _measure_layers(settings: Settings, width: int, length: int) -> dict[str, dict[str, Any]]:
    """Time and memory of every layer at one width and length, by layer and mode."""
    states = inputs_of(settings, settings.tokens // length, length, width)
    calls = {}
    for layer in LAYERS:
        made = make_layer(layer, settings, width)
        for mode in MODES:
            calls[layer, mode] = step_call(made, states, mode)
    found: dict[str, dict[str, Any]] = {layer: {} for layer in LAYERS}
    times = timed(calls, settings.repeats, settings.round_seconds, settings.device)
    for (layer, mode), seconds in times.items():
        cell: dict[str, Any] = dict(seconds)
        cell["peak_bytes"] = peak_bytes(calls[layer, mode], settings.device)
        if settings.device == "cuda":
            cell["kernel_busy"] = kernel_busy(calls[layer, mode], seconds["seconds"])
        found[layer][mode] = cell
    return found


def _measure_decoding(settings: Settings, width: int, position: int) -> dict[str, dict[str, Any]]:
    """Time and memory of one step of generation behind `position` tokens, one sentence."""
    lstm = fill(nn.LSTMCell(width, width, device="meta"), settings, width)
    attention = make_layer("attention-fused", settings, width)
    assert isinstance(attention, SelfAttention)
    state = inputs_of(settings, 1, 1, width)
    cell = (torch.zeros_like(state[0]), torch.zeros_like(state[0]))
    keys, values = inputs_of(
        settings, 2, 1, settings.num_heads, position + 1, width // settings.num_heads
    )

    def recur() -> None:
        with torch.no_grad():
            lstm(state[0], cell)

    def attend() -> None:
        with torch.no_grad():
            attention.step(state, keys, values, position)

    steps = {"lstm": recur, "attention": attend}
    found = timed(steps, settings.repeats, settings.round_seconds, settings.device)
    return {
        layer: {**seconds, "state_bytes": state_bytes(kind, width, position)}
        for (layer, seconds), kind in zip(found.items(), ("lstm", "attention-fused"), strict=True)
    }


# ---------------------------------------------------------------------------------------------
# What follows from the measurements


def crossing(
    lengths: Sequence[int], first: Sequence[float], second: Sequence[float]
) -> float | None:
    """Length at which `second`, cheaper before, first becomes dearer than `first`; None if it never does.

    Between two lengths both are taken as straight lines on logarithmic axes.

    Args:
        lengths: rising.
        first, second: costs at these lengths, above 0.
    """
    gaps = [math.log(b / a) for a, b in zip(first, second, strict=True)]
    for before, after, low, high in zip(gaps, gaps[1:], lengths, lengths[1:], strict=False):
        if before < 0 <= after:
            return low * (high / low) ** (-before / (after - before))
    return None


def _columns(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows of the same keys as lists by key."""
    return {key: [cell[key] for cell in cells] for key in cells[0]}


def _layers(settings: Settings, cells: Cells, rate: float) -> dict[str, Any]:
    """All that is known of the layers, by width and layer, lists by length."""
    return {
        str(width): {
            layer: _layer_columns(
                settings, layer, width, [cells[width, n][layer] for n in settings.lengths], rate
            )
            for layer in LAYERS
        }
        for width in settings.widths
    }


def _layer_columns(
    settings: Settings, layer: str, width: int, cells: Sequence[Mapping[str, Any]], rate: float
) -> dict[str, Any]:
    """All that is known of one layer at one width, lists by length."""
    lengths = settings.lengths
    forward = [operations(layer, width, length) for length in lengths]
    columns: dict[str, Any] = {
        "operations_per_token": forward,
        "score_bytes": [
            score_bytes(layer, settings.tokens, n, settings.num_heads) for n in lengths
        ],
        "path_length": [path_length(layer, length - 1) for length in lengths],
    }
    for mode in MODES:
        found = _columns([cell[mode] for cell in cells])
        passes = 1 if mode == "forward" else 3
        found["flops_per_second"] = [
            passes * each * settings.tokens / seconds
            for each, seconds in zip(forward, found["seconds"], strict=True)
        ]
        found["share_of_matmul_rate"] = [each / rate for each in found["flops_per_second"]]
        columns[mode] = found
    return columns


def _decoding(settings: Settings, steps: Cells) -> dict[str, Any]:
    """What one more token costs, by width and layer, lists by position."""
    positions = list(settings.positions)
    found: dict[str, Any] = {"positions": positions, "layers": {}, "crossing": {}}
    for width in settings.widths:
        columns = {
            layer: _columns([steps[width, position][layer] for position in positions])
            for layer in ("lstm", "attention")
        }
        found["layers"][str(width)] = columns
        found["crossing"][str(width)] = {
            "operations": 2 * width,
            **_faster(positions, columns["lstm"]["seconds"], columns["attention"]["seconds"]),
        }
    return found


def _faster(
    lengths: Sequence[int], lstm: Sequence[float], attention: Sequence[float]
) -> dict[str, Any]:
    """Where attention, by the clock, becomes slower than the LSTM, and where it is faster."""
    pairs = zip(lengths, lstm, attention, strict=True)
    return {
        "seconds": crossing(lengths, lstm, attention),
        "attention_faster_at": [n for n, a, b in pairs if b < a],
    }


def _crossings(layers: Mapping[str, Any], lengths: Sequence[int], width: int) -> dict[str, Any]:
    """Where attention and the LSTM cross at one width, by operations and by measured time."""
    found: dict[str, Any] = {"operations": 2 * width}
    for mode in MODES:
        lstm = layers["lstm"][mode]["seconds"]
        found[mode] = {
            layer: _faster(lengths, lstm, layers[layer][mode]["seconds"])
            for layer in ATTENTION_LAYERS
        }
    return found


def _doubling(layers: Mapping[str, Any], lengths: Sequence[int]) -> dict[str, Any] | None:
    """What the longest doubling of the length does, the number of tokens being the same."""
    pairs = [(at, lengths.index(2 * n)) for at, n in enumerate(lengths) if 2 * n in lengths]
    if not pairs:
        return None
    low, high = pairs[-1]
    found: dict[str, Any] = {"from": lengths[low], "to": lengths[high]}
    for layer, columns in layers.items():
        training = columns["forward_backward"]
        found[layer] = {
            "operations": _ratio(columns["operations_per_token"], low, high),
            "seconds": _ratio(training["seconds"], low, high),
            "seconds_forward": _ratio(columns["forward"]["seconds"], low, high),
            "peak_bytes": _ratio(training["peak_bytes"], low, high),
            "score_bytes": _ratio(columns["score_bytes"], low, high),
        }
    return found


def _ratio(values: Sequence[float], low: int, high: int) -> float | None:
    return values[high] / values[low] if values[low] else None


def shown_width(widths: Sequence[int], lengths: Sequence[int]) -> int:
    """The width that a figure shows: the largest whose crossing 2 D lies inside the lengths."""
    inside = [width for width in widths if lengths[0] < 2 * width < lengths[-1]]
    return inside[-1] if inside else widths[-1]


LEGEND = {
    "layers": "by width, then by layer (rnn: tanh RNN; attention-naive holds its score matrix in memory, "
    "attention-fused does not); lists by lengths. All lengths have the same number of tokens at once, "
    "settings.tokens, so twice the length is half the sentences",
    "operations_per_token": "forward, by formula: multiplications and additions of matrix products; forward "
    "and backward take three times as many",
    "score_bytes": "of the N × N scores of all sentences, by formula",
    "path_length": "steps within the layer from the first token to the last",
    "forward, forward_backward": "without gradients; and with a backward pass to inputs and weights",
    "seconds": "for settings.tokens tokens, best of settings.repeats timings taken in turn with the others",
    "spread": "median timing divided by the best: far above 1 where other work disturbed it",
    "peak_bytes": "most memory held at one time beyond inputs and weights: results, what the backward pass "
    "needs, gradients",
    "share_of_matmul_rate": "operations by formula a second, divided by the rate of a large square matrix "
    "product on the same device with as many threads; not a processor's load",
    "kernel_busy": "CUDA only: time in which some kernel runs divided by all time",
    "crossing": "by width: operations is the length 2 D above which attention takes more operations than the "
    "LSTM (than a tanh RNN it always takes more); seconds the first length at which attention, faster "
    "before, is measured slower than the LSTM, null where there is none; attention_faster_at all lengths at "
    "which it is measured faster",
    "doubling": "by width: ratio of two lengths, at the same number of tokens. A sentence's own ratio is twice "
    "as large, since half the sentences share it; null: there are no scores",
    "decoding": "one layer, one sentence, one more token behind `positions` tokens: seconds of the step, and "
    "state_bytes that have to be kept (LSTM: its state; attention: keys and values), by formula. The LSTM "
    "steps by nn.LSTMCell, which is quicker at this than nn.LSTM; crossing as above",
    "matmul": "the rates of the square product that were measured between the others; the best one counts",
    "complete": "false where time ran out before all lengths or positions were measured; those are left out",
}


def cost(settings: Settings, say: Say, deadline: float | None = None) -> dict[str, Any]:
    """Run the experiment. Times depend on the machine and on what else it does; all else does not.

    Args:
        deadline: value of `time.monotonic` after which no new part begins; the first part of each kind is
            always done.
    Returns:
        ``legend``, ``lengths``, ``layers``, ``crossing``, ``doubling``, ``decoding``, ``matmul``,
        ``load_average``, ``num_threads``, ``width_shown``, ``complete``.
    """
    started, load_before = time.monotonic(), os.getloadavg()[0]

    def begun(parts: Sequence[int], share: float) -> Iterator[int]:
        """Those that there is time for: before so large a share of it is over."""
        for number, part in enumerate(parts):
            given = math.inf if deadline is None else deadline - started
            if number and time.monotonic() > started + share * given:
                return
            yield part

    with threads(settings.num_threads), torch.inference_mode(False), torch.enable_grad():
        rates = [matmul_rate(settings.matmul_size, settings.device)]
        cells: Cells = {}
        lengths: list[int] = []
        for length in begun(settings.lengths, 0.7):
            say(f"{length} tokens a sentence, {settings.tokens // length} at once")
            for width in settings.widths:
                cells[width, length] = _measure_layers(settings, width, length)
            lengths.append(length)
            rates.append(matmul_rate(settings.matmul_size, settings.device))
        steps: Cells = {}
        positions: list[int] = []
        for position in begun(settings.positions, 1.0):
            say(f"one step behind {position} tokens")
            for width in settings.widths:
                steps[width, position] = _measure_decoding(settings, width, position)
            positions.append(position)
        measured = replace(settings, lengths=tuple(lengths), positions=tuple(positions))
        layers = _layers(measured, cells, max(rates))
        return {
            "legend": LEGEND,
            "hardware": hardware(settings.device),
            "num_threads": torch.get_num_threads(),
            "load_average": {
                "before": round(load_before, 2),
                "after": round(os.getloadavg()[0], 2),
            },
            "complete": measured == settings,
            "lengths": lengths,
            "width_shown": shown_width(settings.widths, lengths),
            "matmul": {"flops_per_second": max(rates), "all": rates},
            "layers": layers,
            "crossing": {
                width: _crossings(found, lengths, int(width)) for width, found in layers.items()
            },
            "doubling": {width: _doubling(found, lengths) for width, found in layers.items()},
            "decoding": _decoding(measured, steps),
        }


_ONE_AT_A_TIME = threading.Lock()


def live(
    seconds: float = 8.0,
    settings: Settings = LIVE,
    say: Say = quiet,
) -> dict[str, Any]:
    """`cost` on the machine that serves a page, while a visitor waits.

    Two calls never measure at once: the second waits, since each would spoil the other's times. PyTorch's
    threads stay as they are.

    Args:
        seconds: after which no new length or position is begun, so that it takes little longer; what is
            left out then, ``complete`` says.
        settings: small ones.
        say: takes a line whenever a part begins.
    Returns:
        as `cost`, with ``settings``.
    Raises:
        ValueError: no time above 0.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"expected seconds above 0, got {seconds!r}; try 8")
    with _ONE_AT_A_TIME:
        results = cost(settings, say, time.monotonic() + seconds)
    return {"settings": asdict(settings), **results, "says": EXPERIMENT.says(results)}


# ---------------------------------------------------------------------------------------------
# In words


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `cost` or `live`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.cost")
    lengths, width = results["lengths"], str(results["width_shown"])
    layers, crossed = results["layers"][width], results["crossing"][width]
    longest = {"length": lengths[-1], "width": width}
    steps, one = (layers[layer]["path_length"][-1] for layer in ("lstm", "attention-fused"))
    share = {
        layer.removeprefix("attention-"): two_digits(
            100 * found["forward_backward"]["share_of_matmul_rate"][-1]
        )
        for layer, found in layers.items()
    }
    fused = crossed["forward_backward"]["attention-fused"]
    said = [
        words.say("path", steps=steps, one=one, **longest),
        words.say("share", **share, **longest),
        words.say(
            "operations", crossing=crossed["operations"], measured=_when(fused, lengths, words)
        ),
    ]
    doubled = results["doubling"][width]
    if doubled:
        scores = doubled["attention-naive"]["score_bytes"]
        said.append(
            words.say(
                "doubling",
                low=doubled["from"],
                high=doubled["to"],
                lstm=two_digits(doubled["lstm"]["seconds"]),
                naive=two_digits(doubled["attention-naive"]["seconds"]),
                fused=two_digits(doubled["attention-fused"]["seconds"]),
                scores=two_digits(scores),
                own=two_digits(scores * doubled["to"] / doubled["from"]),
            )
        )
    step = results["decoding"]["layers"][width]
    said.append(
        words.say(
            "decoding",
            position=results["decoding"]["positions"][-1],
            lstm_time=_time(step["lstm"]["seconds"][-1]),
            lstm_bytes=_size(step["lstm"]["state_bytes"][-1]),
            attention_time=_time(step["attention"]["seconds"][-1]),
            attention_bytes=_size(step["attention"]["state_bytes"][-1]),
        )
    )
    if not results["complete"]:
        said.append(words.say("halted"))
    return words.join(said)


def _when(fused: Mapping[str, Any], lengths: Sequence[int], words: Language) -> str:
    """At which of the measured lengths fused attention was faster than the LSTM."""
    faster = fused["attention_faster_at"]
    if faster == lengths or not faster:
        return words.say("all" if faster else "none", first=lengths[0], last=lengths[-1])
    if faster == lengths[: len(faster)]:
        return words.say("below", at=two_digits(fused["seconds"]))
    return words.say("some", list=words.join(map(str, faster), "names"))


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{two_digits(seconds)} s"
    return (
        f"{two_digits(1e3 * seconds)} ms" if seconds >= 1e-3 else f"{two_digits(1e6 * seconds)} µs"
    )


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{two_digits(number)} {unit}"
        number /= 1024
    return f"{two_digits(number)} GiB"


EXPERIMENT = Experiment(
    "cost",
    Settings,
    cost,
    sentence,
    lambda settings, results: {"inputs": "random numbers", "seed": settings.seed},
)
