"""Times and memory of a call: by hand, in turn, in any thread, and without a word of the profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from seqviz.lab import timing


def test_peak_memory_by_hand() -> None:
    first = torch.ones(1000)

    def call() -> None:
        second = first.clone()  # 4,000 bytes
        third = second.repeat(3)  # 12,000 more
        del second
        fourth = third.clone()  # 12,000 more, 4,000 fewer
        del third, fourth
        first.clone()

    assert timing.peak_bytes(call) == 24_000


def test_memory_from_before_does_not_lower_the_peak() -> None:
    kept = [torch.ones(1000)]

    def keep() -> None:
        kept.append(torch.ones(1000))

    def replace_it() -> None:
        kept.clear()
        kept.append(torch.ones(1000).clone())

    for _ in range(3):
        timing.peak_bytes(keep)  # its memory is known to the profiler
        assert timing.peak_bytes(replace_it) == 8_000


def test_the_profiler_is_right_and_quiet_in_any_thread() -> None:
    """As on the page, where a visitor's request is a thread of its own."""
    code = """
import threading, torch
from seqviz.lab import timing
square = torch.ones(64, 64)
found = []
for _ in range(2):
    work = lambda: found.append(timing.peak_bytes(lambda: torch.mm(square, square)))
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

    timing.peak_bytes(call)
    assert capfd.readouterr().err == "something else\n"


def test_timings_are_taken_in_turn_and_the_best_counts(monkeypatch) -> None:
    order: list[str] = []
    clock = {"a": iter([9.0, 4.0, 2.0, 3.0]), "b": iter([9.0, 7.0, 7.0, 7.0])}

    def seconds(call: Any, calls: int, device: str) -> float:
        order.append(name := call())
        return next(clock[name])

    monkeypatch.setattr(timing, "_seconds", seconds)
    found = timing.timed({"a": lambda: "a", "b": lambda: "b"}, repeats=3)  # type: ignore[dict-item]
    assert order == ["a", "b"] * 4  # the first of each warms up
    assert found == {"a": {"seconds": 2.0, "spread": 1.5}, "b": {"seconds": 7.0, "spread": 1.0}}


def test_a_round_lasts_and_gives_the_seconds_of_one_call(monkeypatch) -> None:
    clock = [0.0]

    def call() -> None:
        clock[0] += 0.25

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    found = timing.timed({"a": call}, repeats=2, round_seconds=0.7)
    assert found["a"] == {"seconds": 0.25, "spread": 1.0}
    assert clock[0] / 0.25 == 2 + 2 * 3  # two warm up; three take 0.7 s


def test_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    with timing.threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with pytest.raises(RuntimeError), timing.threads(before + 1):
        raise RuntimeError
    assert torch.get_num_threads() == before
