"""The same everyday sentences alone and in chains: quality, and what is forgotten."""

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

TEXTS = "chains.figure"
"""Table of the words of the figure."""

MEASURES = ("bleu", "forgotten")


@in_own_style
def chains(report: Mapping[str, Any], *, which: str = "all", language: str = "en") -> Figure:
    """BLEU and the share of known words that are forgotten, over the words held at once.

    Args:
        report: as in ``models/report/chains.json``, see `seqviz.measuring.chains`.
        which: a key of ``report["sets"]``: "all" or "unseen".
        language: "en" or "zh".
    Raises:
        ValueError: no such set, or no model in it.
    """
    sets = report.get("sets", {})
    if which not in sets or not sets[which]["models"]:
        raise ValueError(
            f"expected a chains report with the set {which!r}, found "
            f"{', '.join(sets) or 'no sets'}; measure it with 'seqviz chains'"
        )
    models = sets[which]["models"]
    figure = LabelledFigure(11.5, 4.4, language, TEXTS)
    for number, measure in enumerate(MEASURES):
        axes = figure.add_axes((0.06 + 0.5 * number, 0.15, 0.42, 0.68))
        clean_axes(axes)
        _draw(figure, axes, models, measure)
        at = axes.get_position().x0
        heading = figure.text(at, 0.96, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, f"{measure}_heading")
        if number == 0:
            add_legend(axes, above=True)
    return figure


def _draw(
    figure: LabelledFigure, axes: Axes, models: Mapping[str, list[dict[str, Any]]], measure: str
) -> None:
    """One measure of every model with its interval; chance is dotted, sizes beyond training are grey."""
    scale = 100 if measure == "forgotten" else 1
    for number, (name, points) in enumerate(models.items()):
        style = style_of(name, number)
        x, y, low, high, chance = (
            np.array([np.nan if p.get(key) is None else p[key] for p in points], float)
            for key in ("words", measure, f"{measure}_low", f"{measure}_high", f"{measure}_chance")
        )
        axes.fill_between(
            x, scale * low, scale * high, color=style.color, alpha=0.16, linewidth=0, zorder=2
        )
        if np.isfinite(chance).any():
            axes.plot(x, scale * chance, ":", color=style.color, linewidth=1, alpha=0.8, zorder=3)
        add_line(axes, x, scale * y, style, zorder=5, label=style.label)
    points = next(iter(models.values()))
    axes.set_xticks(
        [p["words"] for p in points],
        [f"{p['words']:.0f}\n{p['sentences']}" for p in points],
        fontsize=8.5,
        color=INK,
        linespacing=1.45,
    )
    axes.set_xlim(0, points[-1]["words"] * 1.04)
    axes.set_ylim(0, 102 if measure == "forgotten" else None)
    beyond = [p["words"] for p in points if not p["trained"]]
    if beyond:
        edge = (max(p["words"] for p in points if p["trained"]) + beyond[0]) / 2
        axes.axvspan(edge, axes.get_xlim()[1], color=FAINT, alpha=0.14, linewidth=0, zorder=0)
        note = axes.text(axes.get_xlim()[1], axes.get_ylim()[1], "", va="bottom", ha="right")
        figure.say(note, "beyond").set(fontsize=8.5, color=FAINT)
    figure.say(axes.xaxis.label, "words").set(fontsize=10, color=INK)
    figure.say(axes.yaxis.label, measure).set(fontsize=10, color=INK)
