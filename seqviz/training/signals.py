"""Signals: the first asks a run to save and end, the second ends it at once."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Any


class StopRequest:
    """Turns the first Ctrl-C or SIGTERM into a request to save and stop; the second one interrupts.

    Args:
        grace: seconds in which a second signal counts as the first: a scheduler may signal a process
            that its launcher signals too.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.asked = False
        self._grace, self._asked_at = grace, 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        with contextlib.suppress(ValueError):  # not in the main thread: then nobody can signal us
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: object) -> None:
        if not self.asked:
            self.asked, self._asked_at = True, time.monotonic()
        elif time.monotonic() - self._asked_at >= self._grace:
            raise KeyboardInterrupt(
                "stopped at once by a second signal; the same command goes on from the last whole state"
            )
