"""How long a call takes and how much memory it holds: best of several rounds, taken in turn with the others.

found = timed({"lstm": run_lstm, "attention": run_attention}, repeats=5)
found["lstm"]["seconds"], peak_bytes(run_lstm)
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


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
            fields: Any = event.extra_fields  # of an allocation: the tag says it, not the type
            changes.append((event.start_time_ns, fields.ptr, fields.alloc_size))
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
