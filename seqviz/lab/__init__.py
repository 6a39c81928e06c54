"""The lab: one measured experiment a file.

Each has settings (`seqviz.lab.settings`), a function from them to numbers, a sentence made from the numbers
(together `seqviz.lab.experiment.Experiment`), a command (``seqviz lab NAME``) that reruns it, a report in
``models/report/`` and a figure.
"""

from __future__ import annotations

SCHEMA = 1
EXPERIMENTS = ("gradient", "recall", "capacity", "cost", "training_cost", "extrapolation")
"""Reports of the lab, in the order of the page: memory, the bottleneck, cost, limits."""


def two_digits(number: float) -> str:
    """Two digits that count, without an exponent; whole numbers from 10 on: 0.0042, 9.3, 37, 1204."""
    if number >= 9.95:
        return f"{number:.0f}"
    return f"{float(f'{number:.1e}'):g}" if number >= 1e-4 else f"{number:.1g}"
