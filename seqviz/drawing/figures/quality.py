"""Quality by length, where a sentence breaks, losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.drawing.figures.base import (
    LabelledFigure,
    add_legend,
    add_line,
    clean_axes,
    in_own_style,
)
from seqviz.drawing.styles import FAINT, INK, style_of

METRICS = ("bleu", "chrf", "brevity_penalty", "length_ratio")
THIN = 50
"""A bucket with fewer sentences is drawn in grey."""

TEXTS = "length.figure"
"""Table of the words of all figures here."""


@in_own_style
def length_curve(
    report: Mapping[str, Any],
    *,
    curve: str = "natural",
    metric: str = "bleu",
    language: str = "en",
) -> Figure:
    """Translation quality over sentence length, a line for each model, with its interval.

    Args:
        report: as in ``models/report/length.json``. Read are ``report["curves"][curve][model]["buckets"]``,
            a list of ``{"low", "high", "n", metric, …}`` with bounds in English words, both included,
            where ``{metric}_low`` and ``{metric}_high`` bound an interval if they are there; and
            ``report["length_histogram"]`` if it is there: training sentences of 0, 1, 2, … words.
        curve: a key of ``report["curves"]``: "natural" or "same-content".
        metric: one of `METRICS`. BLEU and chrF from 0 to 100.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown metric or language, no such curve, or nothing in it to draw.
    """
    figure = LabelledFigure(8, 4.8, language, TEXTS)
    axes = figure.add_axes((0.085, 0.2, 0.895, 0.66))
    thin = _draw_curve(figure, axes, report, curve, metric)
    heading = figure.text(0.085, 0.965, "", fontsize=11.5, color=INK, ha="left", va="center")
    figure.say(heading, curve if figure.knows(curve) else "words")
    if thin:
        note = figure.text(0.98, 0.965, "", ha="right", va="center")
        figure.say(note, "thin", n=THIN).set(fontsize=8.5, color=FAINT)
    _draw_histogram(figure, axes, report.get("length_histogram"))
    add_legend(axes, above=True)
    return figure


@in_own_style
def length_curves(
    report: Mapping[str, Any], *, metric: str = "bleu", language: str = "en"
) -> Figure:
    """Both curves of a report side by side on one scale; arguments and errors as `length_curve`."""
    figure = LabelledFigure(11.5, 4.8, language, TEXTS)
    left = figure.add_axes((0.055, 0.2, 0.575, 0.66))
    right = figure.add_axes((0.7, 0.2, 0.29, 0.66))
    thin = False
    for axes, curve in ((left, "natural"), (right, "same-content")):
        thin = _draw_curve(figure, axes, report, curve, metric) or thin
        at = axes.get_position().x0
        heading = figure.text(at, 0.965, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, curve)
    if metric in ("bleu", "chrf", "brevity_penalty"):
        top = max(axes.get_ylim()[1] for axes in (left, right))
        left.set_ylim(0, top)
        right.set_ylim(0, top)
    if thin:
        note = figure.text(left.get_position().x1, 0.965, "", ha="right", va="center")
        figure.say(note, "thin", n=THIN).set(fontsize=8.5, color=FAINT)
    for axes in (left, right):
        _draw_histogram(figure, axes, report.get("length_histogram"))
    add_legend(left, above=True)
    return figure


def _draw_curve(
    figure: LabelledFigure, axes: Axes, report: Mapping[str, Any], curve: str, metric: str
) -> bool:
    """Draw a curve of the report into axes; returns whether a bucket is thin.

    Raises:
        ValueError: an unknown metric, no such curve, or nothing in it to draw.
    """
    if metric not in METRICS:
        raise ValueError(f"expected metric to be one of {', '.join(METRICS)}, got {metric!r}")
    curves = report.get("curves", {}) if isinstance(report, Mapping) else {}
    if not curves:
        raise ValueError(
            "expected the content of a length report (json.load of a file that 'seqviz evaluate' wrote), "
            f"got {type(report).__name__} without curves"
        )
    if curve not in curves:
        raise ValueError(f"expected curve to be one of {', '.join(curves)}, got {curve!r}")
    models = {
        name: [b for b in entry.get("buckets", []) if b.get("n") and b.get(metric) is not None]
        for name, entry in curves[curve].items()
    }
    models = {name: buckets for name, buckets in models.items() if buckets}
    if not models:
        raise ValueError(f"expected a bucket with {metric} in the {curve} curve, got none")
    clean_axes(axes)
    longest = max(bucket["high"] for buckets in models.values() for bucket in buckets)
    any_thin = False
    for number, (name, buckets) in enumerate(models.items()):
        style = style_of(name, number)
        buckets = sorted(buckets, key=lambda b: (b["low"], b["high"]))
        x = np.array([_middle(b) for b in buckets])
        y = np.array([float(b[metric]) for b in buckets])
        thick = np.array([b["n"] >= THIN for b in buckets])
        low, high = (
            np.array([float(b.get(f"{metric}_{side}", np.nan) or 0) for b in buckets])
            for side in ("low", "high")
        )
        axes.fill_between(
            x, low, high, where=thick, color=style.color, alpha=0.16, linewidth=0, zorder=2
        )
        for i in np.flatnonzero(~(thick[1:] & thick[:-1])):
            axes.plot(x[i : i + 2], y[i : i + 2], color=FAINT, linewidth=1, alpha=0.7, zorder=3)
        add_line(axes, x, np.where(thick, y, np.nan), style, zorder=5, label=style.label)
        axes.plot(
            x[~thick],
            y[~thick],
            style.marker,
            color=FAINT,
            markerfacecolor="none",
            zorder=4,
            markersize=6,
        )
        any_thin = any_thin or not thick.all()
    right = longest if curve == "same-content" else max(MAX_SOURCE_WORDS, longest)
    axes.set_xlim(0, right * 1.01)
    if metric in ("bleu", "chrf", "brevity_penalty"):
        axes.set_ylim(bottom=0)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.04)
    _label_buckets(axes, models.values())
    key = "held" if curve == "same-content" else "words"
    figure.say(axes.xaxis.label, _of(report, key)).set(fontsize=10, color=INK)
    figure.say(axes.yaxis.label, metric).set(fontsize=10, color=INK)
    corner = axes.text(-0.012, -0.095, "", transform=axes.transAxes, ha="right", va="center")
    figure.say(corner, "n").set(fontsize=8.5, color=FAINT)
    if axes.get_xlim()[1] > MAX_SOURCE_WORDS + 2:
        axes.axvspan(
            MAX_SOURCE_WORDS, axes.get_xlim()[1], color=FAINT, alpha=0.14, linewidth=0, zorder=0
        )
        note = axes.text(MAX_SOURCE_WORDS + 1, axes.get_ylim()[1] * 0.98, "", va="top", ha="left")
        figure.say(note, "extrapolation").set(fontsize=8.5, color=FAINT)
    return any_thin


def _label_buckets(axes: Axes, models: Iterable[Sequence[Mapping[str, Any]]]) -> None:
    """Buckets and their n under the axis."""
    shown: dict[tuple[int, int], tuple[int, float]] = {}
    for buckets in models:
        for bucket in buckets:
            key = (bucket["low"], bucket["high"])
            shown[key] = max(shown.get(key, (0, 0.0)), (bucket["n"], _middle(bucket)))
    ticks = sorted(shown)
    axes.set_xticks(
        [shown[tick][1] for tick in ticks],
        [f"{_range(*tick)}\n{shown[tick][0]:,}" for tick in ticks],
        fontsize=8.5,
        color=INK,
        linespacing=1.45,
    )


def _middle(bucket: Mapping[str, Any]) -> float:
    """Where a bucket stands on the axis: the mean length in it, if that is known."""
    return float(bucket.get("words") or (bucket["low"] + bucket["high"]) / 2)


@in_own_style
def where_it_breaks(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Loss by position in the target, and words found by position in the source, in long sentences.

    Args:
        report: as in ``models/report/length.json``; read is ``report["positions"]``, cut "natural".
        language: "en" or "zh".
    Raises:
        ValueError: no positions in the report.
    """
    positions = report.get("positions") or {}
    panels = [
        (key, positions[key]["natural"])
        for key in ("loss", "found")
        if positions.get(key, {}).get("natural")
    ]
    if not panels:
        raise ValueError("expected losses or found words by position in the report, got none")
    figure = LabelledFigure(5.75 * len(panels), 4.2, language, TEXTS)
    any_thin = False
    width = 0.98 / len(panels)
    for number, (key, models) in enumerate(panels):
        axes = figure.add_axes((number * width + 0.12 * width, 0.15, 0.85 * width, 0.66))
        clean_axes(axes)
        for place, (name, bins) in enumerate(models.items()):
            x = np.array([(b["low"] + b["high"]) / 2 for b in bins])
            y = np.array([b[key] for b in bins], dtype=float)
            low, high = (
                np.array([b.get(f"{key}_{side}") for b in bins], dtype=float)
                for side in ("low", "high")
            )
            if name == "reference":
                axes.plot(x, y, color=FAINT, linewidth=1.2, zorder=3)
                note = axes.text(x[-1], y[-1] + 0.015, "", ha="right", va="bottom")
                figure.say(note, "reference").set(fontsize=8.5, color=FAINT)
                continue
            style = style_of(name, place)
            thick = np.array([not b.get("thin") for b in bins])
            axes.fill_between(
                x, low, high, where=thick, color=style.color, alpha=0.16, linewidth=0, zorder=2
            )
            axes.plot(x, y, color=FAINT, linewidth=1, alpha=0.7, zorder=3)
            add_line(axes, x, np.where(thick, y, np.nan), style, zorder=5, label=style.label)
            any_thin = any_thin or not thick.all()
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        if key == "found":
            axes.set_ylim(0, 1.02)
        figure.say(axes.xaxis.label, _of(report, f"position_{key}")).set(fontsize=10, color=INK)
        figure.say(axes.yaxis.label, key).set(fontsize=10, color=INK)
        at = axes.get_position().x0
        heading = figure.text(at, 0.955, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, _of(report, f"breaks_{key}"))
        if number == 0:
            add_legend(axes, above=True)
    if any_thin:
        note = figure.text(0.98, 0.955, "", ha="right", va="center")
        figure.say(note, "thin", n=THIN).set(fontsize=8.5, color=FAINT)
    return figure


def _of(report: Mapping[str, Any], key: str) -> str:
    """The key of a text that names what lengths are counted in: by itself, English words."""
    if not report.get("unit"):
        return key
    return f"{key}_in_words" if report["unit"] == "words" else f"{key}_in_characters"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _draw_histogram(figure: LabelledFigure, axes: Axes, counts: Any) -> None:
    """Training sentences by length behind the curves, up to a fifth of the height; no axis of its own."""
    counts = np.asarray(counts if counts is not None else [], dtype=float)
    if not counts.size or not counts.max() > 0:
        return
    bottom, top = axes.get_ylim()
    heights = counts / counts.max() * (top - bottom) * 0.2
    drawn = axes.fill_between(
        np.arange(counts.size),
        bottom,
        bottom + heights,
        step="mid",
        color=FAINT,
        alpha=0.3,
        linewidth=0,
        zorder=1,
    )
    figure.name(drawn, "trained")
    axes.set_ylim(bottom, top)


# ---------------------------------------------------------------------------------------------
# Losses


@in_own_style
def loss_curves(trainings: Mapping[str, Mapping[str, Any]], *, language: str = "en") -> Figure:
    """Loss over target tokens seen: training thin, validation with markers.

    Args:
        trainings: what ``training.json`` says, by name of the model; read is ``losses``:
            ``{"train": [[tokens, loss], …], "dev": [[tokens, loss], …]}``.
        language: "en" or "zh".
    Raises:
        ValueError: no loss in any of them.
    """
    figure = LabelledFigure(7, 4.2, language, TEXTS)
    axes = figure.add_axes((0.1, 0.13, 0.87, 0.83))
    clean_axes(axes)
    drawn = 0
    for number, (name, training) in enumerate(trainings.items()):
        style = style_of(name, number)
        losses = training.get("losses", {})
        points = {
            kind: np.array(losses.get(kind) or np.empty((0, 2)), dtype=float)
            for kind in ("train", "dev")
        }
        if len(points["train"]):
            axes.plot(
                *(points["train"].T / [[1e6], [1]]), color=style.color, linewidth=0.9, alpha=0.45
            )
        if len(points["dev"]):
            tokens, loss = points["dev"].T
            add_line(axes, tokens / 1e6, loss, style, zorder=4, label=style.label)
        elif len(points["train"]):
            axes.plot([], [], color=style.color, linewidth=0.9, label=style.label)
        drawn += len(points["train"]) + len(points["dev"])
    if not drawn:
        raise ValueError(
            f"expected losses of {', '.join(trainings) or 'at least one model'}, found none"
        )
    axes.set_xlim(left=0)
    figure.say(axes.xaxis.label, "tokens").set(fontsize=10, color=INK)
    figure.say(axes.yaxis.label, "loss").set(fontsize=10, color=INK)
    add_legend(axes)
    return figure
