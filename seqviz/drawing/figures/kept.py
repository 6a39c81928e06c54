"""What is left of a curve's first point, and circles beside those that people make, by length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqviz.drawing.figures.base import (
    LabelledFigure,
    add_legend,
    add_line,
    clean_axes,
    in_own_style,
)
from seqviz.drawing.styles import FAINT, INK, style_of

TEXTS = "length.figure"
"""Table of the words of the figures."""

CURVES = ("natural", "same-content")


@in_own_style
def kept(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Share of the first point's BLEU that is left, over the words held at once, for both curves.

    Args:
        report: as in ``models/report/length.json``, with ``bleu_kept`` in its buckets.
        language: "en" or "zh".
    Raises:
        ValueError: a report without these shares.
    """
    figure, panels = _panels(report, "bleu_kept", language)
    for axes, _ in panels:
        axes.axhline(100, color=FAINT, linewidth=1, zorder=1)
        figure.say(axes.yaxis.label, "kept").set(fontsize=10, color=INK)
    return figure


@in_own_style
def circles(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Share of outputs that repeat themselves, with that of human translations as a line, for both curves.

    Args:
        report: as in ``models/report/length.json``, with ``references``.
        language: "en" or "zh".
    Raises:
        ValueError: a report without these shares.
    """
    figure, panels = _panels(report, "repeated", language)
    for axes, curve in panels:
        points = [p for p in report.get("references", {}).get(curve, []) if p["n"]]
        if points:
            x, y = ([p[key] for p in points] for key in ("words", "repeated"))
            axes.plot(x, 100 * np.array(y), color=INK, linewidth=1.2, linestyle=":", zorder=4)
            note = axes.text(x[-1], 100 * y[-1], "", ha="right", va="bottom", zorder=6)
            figure.say(note, "reference").set(fontsize=8.5, color=INK)
        figure.say(axes.yaxis.label, "circles").set(fontsize=10, color=INK)
    return figure


def drawable(report: Mapping[str, Any], measure: str) -> bool:
    """Some length of the report has enough sentences for this measure."""
    return any(points for models in _points(report, measure).values() for points in models.values())


def _points(report: Mapping[str, Any], measure: str) -> dict[str, dict[str, list[Any]]]:
    """By curve and model, the buckets of enough sentences."""
    curves = report.get("curves", {})
    return {
        curve: {
            name: [b for b in entry["buckets"] if b.get(measure) is not None and not b["thin"]]
            for name, entry in curves[curve].items()
        }
        for curve in CURVES
        if curve in curves
    }


def _panels(
    report: Mapping[str, Any], measure: str, language: str
) -> tuple[LabelledFigure, list[tuple[Axes, str]]]:
    """Both curves of a measure in percent, side by side; thin buckets are left out."""
    if not drawable(report, measure):
        raise ValueError(
            f"expected a length report with {measure} of enough sentences, found none; measure it anew with "
            "'seqviz evaluate'"
        )
    figure = LabelledFigure(11.5, 4.2, language, TEXTS)
    panels = []
    for number, (curve, models) in enumerate(_points(report, measure).items()):
        axes = figure.add_axes((0.06 + 0.5 * number, 0.13, 0.42, 0.7))
        clean_axes(axes)
        for place, (name, points) in enumerate(models.items()):
            style = style_of(name, place)
            x, y, low, high = (
                np.array([np.nan if b.get(key) is None else b[key] for b in points], float)
                for key in ("words", measure, f"{measure}_low", f"{measure}_high")
            )
            axes.fill_between(
                x, 100 * low, 100 * high, color=style.color, alpha=0.16, linewidth=0, zorder=2
            )
            add_line(axes, x, 100 * y, style, zorder=5, label=style.label)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        at = axes.get_position().x0
        heading = figure.text(at, 0.96, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, curve)
        key = "held" if curve == "same-content" else "words"
        figure.say(axes.xaxis.label, key).set(fontsize=10, color=INK)
        if number == 0:
            add_legend(axes, above=True)
        panels.append((axes, curve))
    return figure, panels
