"""The lab: one measured experiment a file.

Each is a function with typed settings that returns numbers, a command (``seqviz lab NAME``) that reruns
it, a report in ``models/report/``, a figure, and a sentence made from the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA = 1
EXPERIMENTS = ("gradient", "recall", "capacity", "cost", "training_cost", "extrapolation")
"""Reports of the lab, in the order of the page: memory, the bottleneck, cost, limits."""


def document(
    command: str, data: Any, settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """A report: what was run, on what, with which versions and hardware, and what came out.

    Args:
        command: that gives the same numbers again.
        data: what was measured on, in plain types.
        settings: of the experiment, seeds among them, in plain types.
        results: the experiment's own keys.
    """
    from datetime import UTC, datetime

    from seqviz.version import hardware, versions

    return {
        "schema": SCHEMA,
        "command": command,
        "data": data,
        "versions": versions(),
        "hardware": hardware(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": dict(settings),
        **results,
    }


def two_digits(number: float) -> str:
    """Two digits that count, without an exponent; whole numbers from 10 on: 0.0042, 9.3, 37, 1204."""
    if number >= 9.95:
        return f"{number:.0f}"
    return f"{float(f'{number:.1e}'):g}" if number >= 1e-4 else f"{number:.1g}"
