"""The figures of the made-up tasks: `seqviz.lab.recall`, `seqviz.lab.capacity` and `seqviz.lab.extrapolation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from seqviz.drawing.figures.base import LabelledFigure, add_legend_below, add_line, in_own_style
from seqviz.drawing.figures.lab.panels import (
    DASHES,
    add_note,
    add_panels,
    add_titles,
    doubling_axis,
    new_figure,
)
from seqviz.drawing.styles import FAINT, INK, MODEL_STYLES, OTHER_STYLES

STYLES = {
    "attention": MODEL_STYLES["transformer"],
    "lstm-forget-3": OTHER_STYLES[0],
    "lstm": MODEL_STYLES["lstm"],
    "rnn": MODEL_STYLES["rnn"],
}
"""Of the small models; later ones are drawn smaller and above, so that equal curves can all be seen."""


def _accuracies(
    figure: LabelledFigure, axes: Axes, across: Sequence[float], kind: str, found: Mapping[str, Any]
) -> None:
    """One curve in percent, with its band and its seeds where there are some."""
    style, number = STYLES[kind], list(STYLES).index(kind)
    right = 100 * np.array(found["mean"])
    line = add_line(axes, np.array(across), right, style, zorder=4 + number)
    line.set(markersize=8.5 - 1.6 * number, linewidth=2.6 - 0.4 * number)
    figure.name(line, f"kind_{kind}")
    if found.get("low"):
        low, high = (100 * np.array(found[key]) for key in ("low", "high"))
        axes.fill_between(across, low, high, color=style.color, alpha=0.12, linewidth=0, zorder=2)
    for row in found.get("seeds", ()):
        axes.plot(
            across,
            100 * np.array(row),
            linestyle="",
            marker=".",
            markersize=5,
            markeredgewidth=0,
            color=style.color,
            alpha=0.6,
            zorder=3,
        )


def _chance_line(figure: LabelledFigure, axes: Axes, chance: float, end: str = "left") -> None:
    """Labelled at the end where the curves are far from it."""
    axes.set_ylim(0, 106)
    axes.set_yticks(range(0, 101, 25))
    axes.axhline(100 * chance, color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    note = axes.text(
        0.01 if end == "left" else 0.99,
        100 * chance + 1.5,
        "",
        transform=axes.get_yaxis_transform(),
        ha=end,
        va="bottom",
    )
    figure.say(note, "chance").set(fontsize=8.5, color=INK)


@in_own_style
def recall(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Right answers after a stretch of noise: trained at one distance, trained on all, and on the way.

    Args:
        report: as in ``models/report/recall.json``.
        language: "en" or "zh".
    Raises:
        ValueError: no models in the report, an unknown language.
    """
    if not report.get("alone") or not report.get("mixed"):
        raise ValueError(
            "expected the content of a recall report (json.load of a file that 'seqviz lab recall' "
            "wrote), got one without models"
        )
    distances, budget = report["distances"], report["budget"]
    tall = 9.55
    figure = new_figure(tall, language, "lab.learning.figure")
    alone, mixed, learning = add_panels(figure, ((7.0, 2.1), (4.15, 2.0), (1.45, 1.75)))
    for axes, training in ((alone, "alone"), (mixed, "mixed")):
        for kind, found in report[training].items():
            _accuracies(figure, axes, distances, kind, found["accuracy"])
        doubling_axis(axes, distances)
        add_titles(figure, axes, f"recall_{training}", "recall_distance", "right")
    for kind, found in report["mixed"].items():
        way = found["learning"]
        far = {"mean": [row[-1] for row in way["accuracy"]]}
        _accuracies(figure, learning, way["steps"], kind, far)
    learning.set_xlim(left=0)
    add_titles(
        figure,
        learning,
        "recall_learning",
        "recall_steps",
        "right",
        last=distances[-1],
        batch_size=budget["batch_size"],
    )
    for axes, end in ((alone, "left"), (mixed, "left"), (learning, "right")):
        _chance_line(figure, axes, report["chance"], end)
    add_legend_below(learning, 2)
    add_note(figure, "recall_note", budget)
    return figure


@in_own_style
def capacity(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """How long a sequence is copied through a state of some width, and where copying first fails.

    Args:
        report: as in ``models/report/capacity.json``.
        language: "en" or "zh".
    Raises:
        ValueError: no models in the report, an unknown language.
    """
    if not report.get("lstm") or not report.get("lstm-attention"):
        raise ValueError(
            "expected the content of a capacity report (json.load of a file that 'seqviz lab capacity' "
            "wrote), got one without models"
        )
    good = {"good": f"{100 * report['good']:g}"}
    widths = [int(width) for width in report["lstm"]]
    fails = {width: one["fails"] for width, one in report["lstm"].items() if one["fails"]}
    tall = 10.3 if fails else 7.3
    figure = new_figure(tall, language, "lab.learning.figure")
    places = [(tall - 2.4, 2.0), (tall - 5.55, 2.0), (tall - 8.85, 1.7)]
    panels = add_panels(figure, places if fails else places[:2])
    longest, by_length = panels[:2]
    dashes = {
        str(width): DASHES[min(number, len(DASHES) - 1)]
        for number, width in enumerate(reversed(widths))
    }
    for context in ("lstm-attention", "lstm"):
        style = MODEL_STYLES[context]
        reached = [one["longest"] for one in report[context].values()]
        medians = np.array([one["median"] for one in reached])
        line = add_line(longest, np.array(widths), medians, style, zorder=4)
        figure.name(line, f"context_{context}")
        for width, one in zip(widths, reached, strict=True):
            longest.scatter(
                [width] * len(one["seeds"]),
                one["seeds"],
                s=9,
                color=style.color,
                alpha=0.6,
                zorder=5,
            )
        for width, one in report[context].items():
            right = 100 * np.array(one["accuracy"]["mean"])
            _stroke(by_length, right, style.color, dashes[width])
    doubling_axis(longest, widths)
    longest.set_ylim(0, 1.12 * report["max_length"])
    longest.axhline(report["max_length"], color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    limit = longest.text(
        0.01, 1.02 * report["max_length"], "", transform=longest.get_yaxis_transform(), va="bottom"
    )
    figure.say(limit, "capacity_max").set(fontsize=8.5, color=INK)
    add_titles(figure, longest, "capacity_longest", "capacity_width", "capacity_symbols", **good)
    add_legend_below(longest, 2)
    add_titles(figure, by_length, "capacity_length", "capacity_symbols", "capacity_right")
    _percent_axis(by_length, report["max_length"])
    by_length.axhline(100 * report["good"], color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    for width in report["lstm"]:
        line = _stroke(by_length, np.array([]), MODEL_STYLES["lstm"].color, dashes[width])
        figure.name(line, "capacity_fixed", width=width)
    line = _stroke(by_length, np.array([]), MODEL_STYLES["lstm-attention"].color, ())
    figure.name(line, "capacity_attended")
    add_legend_below(by_length, 2)
    if fails:
        for width, found in fails.items():
            right = 100 * np.array(found["by_position"])
            line = _stroke(panels[2], right, MODEL_STYLES["lstm"].color, dashes[width])
            figure.name(line, "capacity_at", width=width, length=found["length"])
        _percent_axis(panels[2], max(found["length"] for found in fails.values()))
        add_titles(
            figure, panels[2], "capacity_fails", "capacity_position", "capacity_right", **good
        )
        add_legend_below(panels[2], 2)
    add_note(figure, "capacity_note", report["budget"])
    return figure


def _stroke(axes: Axes, values: np.ndarray, color: str, dash: tuple[float, ...]) -> Line2D:
    """A curve over 1, 2, 3, …; in no legend until it is named."""
    [line] = axes.plot(
        np.arange(1, len(values) + 1),
        values,
        color=color,
        linestyle=(0, dash) if dash else "-",
        linewidth=1.7,
        label="_",
        zorder=4,
    )
    return line


def _percent_axis(axes: Axes, last: int) -> None:
    axes.set_ylim(0, 106)
    axes.set_yticks(range(0, 101, 25))
    axes.set_xlim(0, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@in_own_style
def extrapolation(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Right answers by length, within the trained lengths and beyond them: one panel a task.

    Args:
        report: as in ``models/report/extrapolation.json``.
        language: "en" or "zh".
    Raises:
        ValueError: no tasks in the report, an unknown language.
    """
    tasks = report.get("tasks")
    if not tasks:
        raise ValueError(
            "expected the content of an extrapolation report (json.load of a file that 'seqviz lab "
            "extrapolation' wrote), got one without tasks"
        )
    lengths, trained = report["lengths"], report["trained_length"]
    tall = 2.75 * len(tasks) + 1.1
    figure = new_figure(tall, language, "lab.learning.figure")
    places = [(tall - 2.35 - 2.75 * number, 1.95) for number in range(len(tasks))]
    panels = add_panels(figure, places)
    for axes, (task, found) in zip(panels, tasks.items(), strict=True):
        for kind, measured in found["models"].items():
            _accuracies(figure, axes, lengths, kind, measured["accuracy"])
        axes.set_xscale("log")
        shown = [value for value in (1, 2, 5, 10, 20, 40, 100) if value <= lengths[-1]]
        axes.set_xticks(shown, [str(value) for value in shown])
        axes.set_xticks([], minor=True)
        axes.set_xlim(lengths[0] * 0.93, lengths[-1] * 1.08)
        axes.axvspan(lengths[0] * 0.93, trained, color=FAINT, alpha=0.13, linewidth=0, zorder=0)
        note = axes.text(trained * 0.97, 2, "", ha="right", va="bottom")
        figure.say(note, "extrapolation_trained").set(fontsize=8.5, color=INK)
        add_titles(figure, axes, f"extrapolation_{task}", "extrapolation_length", "right")
        _chance_line(figure, axes, found["chance"])
    add_legend_below(panels[-1], 2)
    add_note(figure, "extrapolation_note", report["budget"])
    return figure
