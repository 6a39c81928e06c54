"""What the lab's figures are made of: panels one under the other, with their names, and a note at the foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from seqviz.drawing.figures.base import LabelledFigure, clean_axes
from seqviz.drawing.styles import INK

WIDTH = 4.7
"""Inches of every figure here: on a phone of 390 pixels a letter of 9 points then has 9.5 pixels."""


DASHES = ((), (6.0, 3.0), (1.5, 2.0), (8.0, 2.0, 1.5, 2.0))
"""Of curves of one kind, from the largest."""


def new_figure(tall: float, language: str, table: str) -> LabelledFigure:
    """A figure with the texts of a table, so many inches tall.

    Raises:
        ValueError: an unknown language.
    """
    return LabelledFigure(WIDTH, tall, language, table)


def add_panels(
    figure: LabelledFigure, places: Sequence[tuple[float, float]], left: float = 0.155
) -> list[Axes]:
    """Axes one under the other, for narrow screens.

    Args:
        places: bottom and height of each, in inches.
    """
    tall = figure.get_size_inches()[1]
    made = [
        figure.add_axes((left, bottom / tall, 0.975 - left, height / tall))
        for bottom, height in places
    ]
    for one in made:
        clean_axes(one)
    return made


def add_titles(
    figure: LabelledFigure, axes: Axes, heading: str, across: str, up: str, **values: Any
) -> None:
    """Give axes their heading and the names of both axes, by the keys of its texts."""
    tall = figure.get_size_inches()[1]
    at = axes.get_position()
    above = figure.text(0.02, at.y1 + 0.13 / tall, "", fontsize=11, color=INK, ha="left")
    figure.say(above, heading, **values)
    figure.say(axes.xaxis.label, across, **values).set(fontsize=10, color=INK)
    figure.say(axes.yaxis.label, up, **values).set(fontsize=10, color=INK)


def doubling_axis(axes: Axes, values: Sequence[int]) -> None:
    """A logarithmic axis with a tick at each value."""
    axes.set_xscale("log", base=2)
    # Labels of neighbours that would touch are left out, the last one never.
    shown = [value for at, value in enumerate(reversed(values)) if len(values) < 8 or at % 2 == 0]
    axes.set_xticks(shown, [f"{value:,}" for value in shown])
    axes.set_xticks([], minor=True)


def add_note(figure: LabelledFigure, key: str, budget: Mapping[str, Any]) -> None:
    """At the foot of a figure: how its curves were made."""
    note = figure.text(0.02, 0.08 / figure.get_size_inches()[1], "", ha="left", va="bottom")
    values = {name: f"{value:,}" for name, value in budget.items()}
    figure.say(note, key, **values).set(fontsize=8.5, color=INK, linespacing=1.4)
