"""Bits that the source tells a model, by length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from seqviz.drawing.figures.base import (
    LabelledFigure,
    add_legend,
    add_line,
    clean_axes,
    in_own_style,
)
from seqviz.drawing.styles import INK, style_of

TEXTS = "bits.figure"
"""Table of the words of the figure."""

MEASURES = ("bits", "bits_a_word")


@in_own_style
def bits(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Bits of a sentence and bits a word over the words of the sentence; thin buckets are left out.

    Args:
        report: as in ``models/report/bits.json``, see `seqviz.measuring.bits`.
        language: "en" or "zh".
    Raises:
        ValueError: no model in it.
    """
    models = report.get("curves", {}).get("natural", {})
    if not models:
        raise ValueError("expected a report of 'seqviz bits', found no curves in it")
    figure = LabelledFigure(11.5, 4.4, language, TEXTS)
    for number, measure in enumerate(MEASURES):
        axes = figure.add_axes((0.06 + 0.5 * number, 0.13, 0.42, 0.7))
        clean_axes(axes)
        for place, (name, buckets) in enumerate(models.items()):
            style = style_of(name, place)
            points = [b for b in buckets if b["n"] and not b["thin"]]
            x, y, low, high = (
                np.array([np.nan if b.get(key) is None else b[key] for b in points], float)
                for key in ("words", measure, f"{measure}_low", f"{measure}_high")
            )
            axes.fill_between(x, low, high, color=style.color, alpha=0.16, linewidth=0, zorder=2)
            add_line(axes, x, y, style, zorder=5, label=style.label)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        at = axes.get_position().x0
        heading = figure.text(at, 0.96, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, f"{measure}_heading")
        figure.say(axes.xaxis.label, "words").set(fontsize=10, color=INK)
        figure.say(axes.yaxis.label, measure).set(fontsize=10, color=INK)
        if number == 0:
            add_legend(axes, above=True)
    return figure
