"""What one layer costs: recurrence takes N steps one after the other, attention compares N × N words.

    results = cost(Settings())  # numbers of the report
    live()                      # the same on this machine, small, in some seconds

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

Shapes: `B` sentences, `N` length in tokens, `D` width, `H` heads, `P` longest position.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from seqviz.lab import two_digits
from seqviz.lab.checks import check_language, check_rising, check_whole
from seqviz.version import hardware

RECURRENT_LAYERS = ("rnn", "lstm")
ATTENTION_LAYERS = ("attention-naive", "attention-fused")
LAYERS = RECURRENT_LAYERS + ATTENTION_LAYERS
"""A tanh RNN, an LSTM, attention that writes its N × N scores to memory, attention in one fused kernel."""

MODES = ("forward", "forward_backward")
"""Reading alone, without gradients; and a training step's forward and backward pass."""

BYTES = 4
"""Of one number in single precision."""


@dataclass(frozen=True)
class Settings:
    """Of the experiment; the defaults are those of the committed report.

    Args:
        widths: of inputs and states.
        lengths: N, tokens a sentence, rising.
        tokens: B × N, the same for every length.
        num_heads: of self-attention.
        positions: at which one step of generation is timed, rising.
        repeats: timings of each kind, in turn with all others; the best one counts.
        round_seconds: a timing lasts at least so long; quick calls are repeated within it.
        matmul_size: rows and columns of the square product that the machine's rate is measured by.
        num_threads: of PyTorch; None for what it has.
        device: "cpu" or "cuda".
        seed: of weights and inputs. It changes no time to speak of.
    Raises:
        ValueError: a number out of its range, lengths that do not divide `tokens`, an unknown device.
    """

    widths: tuple[int, ...] = (64, 128, 256, 512)
    lengths: tuple[int, ...] = (32, 64, 128, 256, 512, 1024, 2048)
    tokens: int = 4096
    num_heads: int = 4
    positions: tuple[int, ...] = (32, 128, 512, 2048, 8192)
    repeats: int = 5
    round_seconds: float = 0.02
    matmul_size: int = 1024
    num_threads: int | None = None
    device: str = "cpu"
    seed: int = 1

    def __post_init__(self) -> None:
        check_whole(
            self,
            tokens=(1, 1 << 20),
            num_heads=(1, 64),
            repeats=(1, 1000),
            matmul_size=(16, 1 << 14),
            seed=(0, 1 << 31),
        )
        if self.num_threads is not None:
            check_whole(self, num_threads=(1, 1024))
        check_rising(self, "widths", 2, 4096)
        check_rising(self, "lengths", 2, 1 << 16)
        check_rising(self, "positions", 1, 1 << 20)
        for width in self.widths:
            if width % self.num_heads:
                raise ValueError(
                    f"expected widths divisible by num_heads, got {width} and {self.num_heads}; try "
                    f"{max(self.num_heads, width // self.num_heads * self.num_heads)}"
                )
        for length in self.lengths:
            if self.tokens % length:
                raise ValueError(
                    f"expected lengths that divide tokens, got {length} and {self.tokens}; try tokens "
                    f"{math.lcm(*self.lengths)} or a multiple of it"
                )
        if not 0 < self.round_seconds <= 10:
            raise ValueError(
                f"expected round_seconds above 0 and at most 10, got {self.round_seconds!r}; try 0.02"
            )
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"expected device to be one of cpu, cuda, got {self.device!r}")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("expected a CUDA device, PyTorch finds none; try device cpu")


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


# ---------------------------------------------------------------------------------------------
# By formula


def operations(layer: str, width: int, length: int) -> int:
    """Operations a token, forward: 2 for each multiplication with its addition, in matrix products.

    Biases, nonlinearities and the softmax are left out. A backward pass takes twice as many.

    Args:
        layer: one of `LAYERS`.
        width: D, of input and state.
        length: N.
    Raises:
        ValueError: an unknown layer.
    """
    if _known(layer) in ATTENTION_LAYERS:
        return 8 * width**2 + 4 * length * width
    return (16 if layer == "lstm" else 4) * width**2


def score_bytes(layer: str, tokens: int, length: int, num_heads: int) -> int:
    """Memory of the attention scores of `tokens` tokens in sentences of `length`: B H N² numbers.

    Fused attention never holds more than a part of them, a recurrence has none: 0.
    """
    return BYTES * num_heads * tokens * length if _known(layer) == "attention-naive" else 0


def state_bytes(layer: str, width: int, position: int) -> int:
    """What generation has to keep of `position` tokens: a state, or a key and a value for each token."""
    if _known(layer) in ATTENTION_LAYERS:
        return BYTES * 2 * width * position
    return BYTES * width * (2 if layer == "lstm" else 1)


def path_length(layer: str, distance: int) -> int:
    """Steps that a word's information takes to another one `distance` words away, within one layer.

    A recurrence passes it on from state to state; with attention any word reads any other at once.

    Raises:
        ValueError: an unknown layer, or a distance below 0.
    """
    if distance < 0:
        raise ValueError(f"expected a distance of 0 or more, got {distance}")
    return min(distance, 1) if _known(layer) in ATTENTION_LAYERS else distance


def _known(layer: str) -> str:
    if layer not in LAYERS:
        raise ValueError(f"expected layer to be one of {', '.join(LAYERS)}, got {layer!r}")
    return layer


# ---------------------------------------------------------------------------------------------
# The layers


class SelfAttention(nn.Module):
    """softmax(Q Kᵀ / √(D/H)) V with its four projections (Vaswani et al. 2017), without a mask.

    Args:
        width: D.
        num_heads: H.
        fused: one kernel that holds only a part of the scores at a time, in place of three products
            with the whole score matrix between them.
        device: of the weights.
    """

    def __init__(self, width: int, num_heads: int, fused: bool, device: str = "cpu") -> None:
        super().__init__()
        self.num_heads, self.fused = num_heads, fused
        self.projection = nn.Linear(width, 3 * width, device=device)
        self.output = nn.Linear(width, width, device=device)

    def forward(self, states: Tensor) -> Tensor:
        """(B, N, D) → (B, N, D)."""
        return self.output(self._merge(self._attend(*self._project(states))))

    def step(self, state: Tensor, keys: Tensor, values: Tensor, position: int) -> Tensor:
        """One step of generation behind `position` tokens.

        Args:
            state: (B, 1, D).
            keys, values: cache with room for more, (B, H, P, D/H); the step writes its own into it.
        Returns:
            (B, 1, D).
        """
        query, key, value = self._project(state)  # (B, H, 1, D/H)
        keys[:, :, position : position + 1] = key
        values[:, :, position : position + 1] = value
        seen = slice(0, position + 1)
        return self.output(self._merge(self._attend(query, keys[:, :, seen], values[:, :, seen])))

    def _project(self, states: Tensor) -> list[Tensor]:
        """Query, key and value, each (B, H, N, D/H)."""
        split = self.projection(states).unflatten(-1, (3, self.num_heads, -1))
        return [part.transpose(1, 2) for part in split.unbind(dim=2)]

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.fused:
            return functional.scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, N, N)
        return scores.softmax(dim=-1) @ value

    def _merge(self, heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).flatten(-2)


def make_layer(layer: str, settings: Settings, width: int) -> nn.Module:
    """A layer with weights of `settings.seed`, uniform within ±1/√D. The global random state stays.

    Raises:
        ValueError: an unknown layer.
    """
    if _known(layer) in ATTENTION_LAYERS:
        made: nn.Module = SelfAttention(
            width, settings.num_heads, layer == "attention-fused", device="meta"
        )
    else:
        kind = nn.LSTM if layer == "lstm" else nn.RNN
        made = kind(width, width, batch_first=True, device="meta")
    return _fill(made, settings, width)


def _fill(made: nn.Module, settings: Settings, width: int) -> nn.Module:
    made = made.to_empty(device=settings.device)
    draw = torch.Generator().manual_seed(settings.seed)
    with torch.no_grad():
        for parameter in made.parameters():
            numbers = torch.empty(parameter.shape).uniform_(-1, 1, generator=draw)
            parameter.copy_(numbers / math.sqrt(width))
    return made


def _inputs(settings: Settings, *shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(settings.seed)
    return torch.randn(shape, generator=draw).to(settings.device)


def _run(layer: nn.Module, states: Tensor) -> Tensor:
    """(B, N, D) → (B, N, D)."""
    found = layer(states)
    return found if isinstance(found, Tensor) else found[0]


def step_call(layer: nn.Module, states: Tensor, mode: str) -> Callable[[], None]:
    """What is timed and weighed: one call of a layer in one of `MODES`.

    Args:
        states: (B, N, D). A backward pass goes on to them, as to the layer below, and to the weights.
    Raises:
        ValueError: an unknown mode.
    """
    if mode not in MODES:
        raise ValueError(f"expected mode to be one of {', '.join(MODES)}, got {mode!r}")
    if mode == "forward":

        def forward() -> None:
            with torch.no_grad():
                _run(layer, states)

        return forward
    inputs = states.detach().clone().requires_grad_()
    upstream = torch.ones_like(inputs)

    def forward_backward() -> None:
        inputs.grad = None
        for parameter in layer.parameters():
            parameter.grad = None
        _run(layer, inputs).backward(upstream)

    return forward_backward


# ---------------------------------------------------------------------------------------------
# Measuring


def matmul_rate(size: int, device: str = "cpu", repeats: int = 3) -> float:
    """Operations a second of a large square matrix product in single precision, the best of `repeats`.

    Args:
        size: rows and columns.
    """
    draw = torch.Generator().manual_seed(0)
    factor = torch.randn(size, size, generator=draw).to(device)
    product = torch.empty_like(factor)

    def multiply() -> None:
        torch.mm(factor, factor, out=product)

    calls = _calls(multiply, device, 0.02)
    return 2 * size**3 / min(_seconds(multiply, calls, device) for _ in range(repeats))


def _calls(call: Callable[[], None], device: str, round_seconds: float) -> int:
    """How often to call for a timing of so many seconds; warms up."""
    call()
    return max(1, min(10_000, math.ceil(round_seconds / _seconds(call, 1, device))))


def _seconds(call: Callable[[], None], calls: int, device: str) -> float:
    """Seconds of one call, in the mean of `calls`."""
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    if device == "cuda":  # a call returns before its kernels are done
        torch.cuda.synchronize()
    return max((time.perf_counter() - started) / calls, 1e-9)


def timed(
    calls: Mapping[Any, Callable[[], None]],
    repeats: int,
    round_seconds: float = 0.02,
    device: str = "cpu",
) -> dict[Any, dict[str, float]]:
    """Seconds of each call, taken in turn, so that other work on the machine meets all alike.

    Args:
        calls: by name.
        repeats: rounds.
        round_seconds: least time of one call's round; quick calls are repeated within it.
    Returns:
        by name ``seconds``, the best round, and ``spread``, the median round divided by the best.
    """
    numbers = {name: _calls(call, device, round_seconds) for name, call in calls.items()}
    rounds: dict[Any, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            rounds[name].append(_seconds(call, numbers[name], device))
    found = {}
    for name, seconds in rounds.items():
        ordered = sorted(seconds)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        found[name] = {"seconds": ordered[0], "spread": middle / ordered[0]}
    return found


def peak_bytes(call: Callable[[], None], device: str = "cpu") -> int:
    """Most memory that `call` holds at one time beyond what was there before.

    On a CPU the running sum of what PyTorch's allocator gives and takes back in this thread, as its
    profiler sees it; scratch space inside a product's own library is not in it. On CUDA the
    allocator's own count.
    """
    if device == "cuda":
        call()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    assert seen.profiler is not None and seen.profiler.kineto_results is not None
    changes: list[tuple[int, int, int]] = []
    left = list(seen.profiler.kineto_results.experimental_event_tree())
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.tag.name == "Allocation":
            place, size = event.extra_fields.ptr, event.extra_fields.alloc_size
            changes.append((event.start_time_ns, place, size))
    held: dict[int, int] = {}
    most = now = 0
    for _, place, size in sorted(changes, key=lambda one: one[0]):
        if size > 0:
            held[place] = size
            now += size
        else:  # what was taken before `call` and is given back in it counts for nothing
            now -= held.pop(place, 0)
        most = max(most, now)
    return most


_QUIET = threading.Lock()
_PROFILER = (b"profiler", b"profiling", b"registerclient")
"""Words that a line of the profiler's library has; the last when it is used in another thread than first."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what the profiler's own library says on standard error at every start and stop.

    It writes past Python, so the process's standard error is another file meanwhile; what else comes, in
    this or another thread, follows behind.
    """
    with _QUIET, tempfile.TemporaryFile() as aside:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            aside.seek(0)
            for line in aside:
                if not any(word in line.lower() for word in _PROFILER):
                    os.write(2, line)
            os.close(before)


def kernel_busy(call: Callable[[], None], seconds: float) -> float:
    """Share of the time in which a CUDA kernel runs: kernels' seconds in one call ÷ `seconds` of it.

    The driver's "utilisation" is of this kind: it says nothing about how much a kernel gets done.
    """
    torch.cuda.synchronize()
    with _quiet(), profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    busy = sum(event.self_device_time_total for event in seen.key_averages())  # microseconds
    return min(1.0, 1e-6 * busy / seconds)


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """PyTorch computes with so many threads inside; None changes nothing."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        if number is not None:
            torch.set_num_threads(before)


def _measure_layers(settings: Settings, width: int, length: int) -> dict[str, dict[str, Any]]:
    """Time and memory of every layer at one width and length, by layer and mode."""
    states = _inputs(settings, settings.tokens // length, length, width)
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
    lstm = _fill(nn.LSTMCell(width, width, device="meta"), settings, width)
    attention = make_layer("attention-fused", settings, width)
    assert isinstance(attention, SelfAttention)
    state = _inputs(settings, 1, 1, width)
    cell = (torch.zeros_like(state[0]), torch.zeros_like(state[0]))
    keys, values = _inputs(
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


def _layer_columns(
    cells: Mapping[tuple[int, int], dict[str, dict[str, Any]]],
    settings: Settings,
    rate: float,
    width: int,
    layer: str,
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
        found = _columns([cells[width, length][layer][mode] for length in lengths])
        passes = 1 if mode == "forward" else 3
        found["flops_per_second"] = [
            passes * each * settings.tokens / seconds
            for each, seconds in zip(forward, found["seconds"], strict=True)
        ]
        found["share_of_matmul_rate"] = [each / rate for each in found["flops_per_second"]]
        columns[mode] = found
    return columns


def _crossings(layers: Mapping[str, Any], lengths: Sequence[int], width: int) -> dict[str, Any]:
    """Where attention and the LSTM cross at one width, by operations and by measured time."""
    found: dict[str, Any] = {"operations": 2 * width}
    for mode in MODES:
        lstm = layers["lstm"][mode]["seconds"]
        found[mode] = {}
        for layer in ATTENTION_LAYERS:
            seconds = layers[layer][mode]["seconds"]
            pairs = zip(lengths, lstm, seconds, strict=True)
            found[mode][layer] = {
                "seconds": crossing(lengths, lstm, seconds),
                "attention_faster_at": [n for n, a, b in pairs if b < a],
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


def cost(
    settings: Settings | None = None,
    say: Callable[[str], None] = lambda line: None,
    deadline: float | None = None,
) -> dict[str, Any]:
    """Run the experiment. Times depend on the machine and on what else it does; all else does not.

    Args:
        settings: None for those of the committed report.
        say: takes a line whenever a part begins.
        deadline: value of `time.monotonic` after which no new part begins; the first part of each kind is
            always done.
    Returns:
        ``legend``, ``lengths``, ``layers``, ``crossing``, ``doubling``, ``decoding``, ``matmul``,
        ``load_average``, ``num_threads``, ``width_shown``, ``complete``, ``says`` (the sentence, by language).
    """
    settings = settings or Settings()
    with threads(settings.num_threads), torch.inference_mode(False), torch.enable_grad():
        return _cost(settings, say, deadline)


def _cost(settings: Settings, say: Callable[[str], None], deadline: float | None) -> dict[str, Any]:
    def late(share: float) -> bool:
        return deadline is not None and time.monotonic() > started + share * (deadline - started)

    started, load_before = time.monotonic(), os.getloadavg()[0]
    rates = [matmul_rate(settings.matmul_size, settings.device)]
    cells: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
    lengths: list[int] = []
    for length in settings.lengths:
        if lengths and late(0.7):
            break
        say(f"{length} tokens a sentence, {settings.tokens // length} at once")
        for width in settings.widths:
            cells[width, length] = _measure_layers(settings, width, length)
        lengths.append(length)
        rates.append(matmul_rate(settings.matmul_size, settings.device))
    steps: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
    positions: list[int] = []
    for position in settings.positions:
        if positions and late(1.0):
            break
        say(f"one step behind {position} tokens")
        for width in settings.widths:
            steps[width, position] = _measure_decoding(settings, width, position)
        positions.append(position)
    rate = max(rates)
    measured = replace(settings, lengths=tuple(lengths), positions=tuple(positions))
    layers = {
        str(width): {layer: _layer_columns(cells, measured, rate, width, layer) for layer in LAYERS}
        for width in settings.widths
    }
    decoding: dict[str, Any] = {"positions": positions, "layers": {}, "crossing": {}}
    for width in settings.widths:
        columns = {
            layer: _columns([steps[width, position][layer] for position in positions])
            for layer in ("lstm", "attention")
        }
        decoding["layers"][str(width)] = columns
        seconds = [columns[layer]["seconds"] for layer in ("lstm", "attention")]
        decoding["crossing"][str(width)] = {
            "operations": 2 * width,
            "seconds": crossing(positions, *seconds),
            "attention_faster_at": [
                n for n, a, b in zip(positions, *seconds, strict=True) if b < a
            ],
        }
    results: dict[str, Any] = {
        "legend": LEGEND,
        "hardware": hardware(settings.device),
        "num_threads": torch.get_num_threads(),
        "load_average": {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)},
        "complete": measured == settings,
        "lengths": lengths,
        "width_shown": shown_width(settings.widths, lengths),
        "matmul": {"flops_per_second": rate, "all": rates},
        "layers": layers,
        "crossing": {
            width: _crossings(found, lengths, int(width)) for width, found in layers.items()
        },
        "doubling": {width: _doubling(found, lengths) for width, found in layers.items()},
        "decoding": decoding,
    }
    results["says"] = {language: sentence(results, language) for language in _SENTENCES}
    return results


def report(
    settings: Settings, say: Callable[[str], None], command: str = "seqviz lab cost"
) -> dict[str, Any]:
    """`cost` as the content of a report file."""
    from seqviz.lab import document

    results = cost(settings, say)
    data = {"inputs": "random numbers", "seed": settings.seed}
    return document(command, data, asdict(settings), results)


_ONE_AT_A_TIME = threading.Lock()


def live(
    seconds: float = 8.0,
    settings: Settings = LIVE,
    say: Callable[[str], None] = lambda line: None,
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
    return {"settings": asdict(settings), **results}


# ---------------------------------------------------------------------------------------------
# In words

_SENTENCES: dict[str, dict[str, str]] = {
    "en": {
        "path": "From the first of {length} tokens to the last a recurrent layer takes {steps} steps, "
        "self-attention {one}.",
        "share": "At width {width} and {length} tokens, forward and backward together, the LSTM reached {lstm} % "
        "of this machine’s rate for large matrix products, attention {naive} % with its scores in memory "
        "and {fused} % fused.",
        "operations": "By operations attention is cheaper than the LSTM below {crossing} tokens; {measured}.",
        "all": "by the clock fused attention was faster at every length measured, {first} to {last} tokens",
        "none": "by the clock it was faster at no length measured, {first} to {last} tokens",
        "below": "by the clock fused attention was faster up to about {at} tokens",
        "some": "by the clock fused attention was faster at {list} tokens",
        "doubling": "From {low} to {high} tokens, the total being the same, the time became {lstm} times as long in "
        "the LSTM, {naive} times in attention with its scores in memory and {fused} times fused; the memory "
        "of the scores grew {scores}-fold, for one sentence {own}-fold.",
        "decoding": "Behind {position} tokens, the next one took the LSTM {lstm_time} with {lstm_bytes} of state, "
        "attention {attention_time} with {attention_bytes} of keys and values.",
        "joint": ", ",
        "halted": "Time ran out: longer texts were not measured.",
    },
    "zh": {
        "path": "从 {length} 个词元中的第一个到最后一个，循环层要走 {steps} 步，自注意力只要 {one} 步。",
        "share": "宽度 {width}、{length} 个词元时，前向加反向合计，LSTM 达到本机大矩阵乘法速率的 {lstm}%，"
        "分数矩阵写入内存的注意力为 {naive}%，融合注意力为 {fused}%。",
        "operations": "按运算量，{crossing} 个词元以下注意力比 LSTM 便宜；{measured}。",
        "all": "按实测时间，融合注意力在所测的每个长度（{first} 到 {last} 个词元）都更快",
        "none": "按实测时间，它在所测的任何长度（{first} 到 {last} 个词元）都不更快",
        "below": "按实测时间，融合注意力在约 {at} 个词元以内更快",
        "some": "按实测时间，融合注意力在 {list} 个词元时更快",
        "doubling": "总词元数不变，长度从 {low} 增到 {high}，LSTM 的时间变为 {lstm} 倍，分数矩阵写入内存的注意力为 "
        "{naive} 倍，融合注意力为 {fused} 倍；分数所占内存变为 {scores} 倍，单个句子则为 {own} 倍。",
        "decoding": "前面有 {position} 个词元时，生成下一个词元，LSTM 用 {lstm_time}、状态 {lstm_bytes}；"
        "注意力用 {attention_time}、键和值 {attention_bytes}。",
        "joint": "、",
        "halted": "时间用完，更长的文本没有测量。",
    },
}


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `cost` or `live`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    check_language(language, _SENTENCES)
    words = _SENTENCES[language]
    lengths, width = results["lengths"], str(results["width_shown"])
    layers, crossed = results["layers"][width], results["crossing"][width]
    share = {
        layer: two_digits(100 * found["forward_backward"]["share_of_matmul_rate"][-1])
        for layer, found in layers.items()
    }
    fused = crossed["forward_backward"]["attention-fused"]
    faster = fused["attention_faster_at"]
    if faster == lengths or not faster:
        measured = words["all" if faster else "none"].format(first=lengths[0], last=lengths[-1])
    elif faster == lengths[: len(faster)]:
        measured = words["below"].format(at=two_digits(fused["seconds"]))
    else:
        measured = words["some"].format(list=words["joint"].join(map(str, faster)))
    said = [
        words["path"].format(
            length=lengths[-1],
            steps=layers["lstm"]["path_length"][-1],
            one=layers["attention-fused"]["path_length"][-1],
        ),
        words["share"].format(
            width=width,
            length=lengths[-1],
            lstm=share["lstm"],
            naive=share["attention-naive"],
            fused=share["attention-fused"],
        ),
        words["operations"].format(crossing=crossed["operations"], measured=measured),
    ]
    doubled = results["doubling"][width]
    if doubled:
        scores = doubled["attention-naive"]["score_bytes"]
        said.append(
            words["doubling"].format(
                low=doubled["from"],
                high=doubled["to"],
                lstm=two_digits(doubled["lstm"]["seconds"]),
                naive=two_digits(doubled["attention-naive"]["seconds"]),
                fused=two_digits(doubled["attention-fused"]["seconds"]),
                scores=two_digits(scores),
                own=two_digits(scores * doubled["to"] / doubled["from"]),
            )
        )
    steps = results["decoding"]["layers"][width]
    said.append(
        words["decoding"].format(
            position=results["decoding"]["positions"][-1],
            lstm_time=_time(steps["lstm"]["seconds"][-1]),
            lstm_bytes=_size(steps["lstm"]["state_bytes"][-1]),
            attention_time=_time(steps["attention"]["seconds"][-1]),
            attention_bytes=_size(steps["attention"]["state_bytes"][-1]),
        )
    )
    if not results["complete"]:
        said.append(words["halted"])
    return (" " if language == "en" else "").join(said)


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
