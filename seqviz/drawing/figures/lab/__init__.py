"""Figures of the lab's experiments, one function an experiment: a report in, a figure out."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from seqviz.drawing.figures.lab.costs import cost, training_cost
from seqviz.drawing.figures.lab.fading import gradient
from seqviz.drawing.figures.lab.learning import capacity, extrapolation, recall

FIGURES: dict[str, Callable[..., Figure]] = {
    "gradient": gradient,
    "recall": recall,
    "capacity": capacity,
    "cost": cost,
    "training_cost": training_cost,
    "extrapolation": extrapolation,
}
"""By name of the report in ``models/report/``."""
