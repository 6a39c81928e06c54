"""The figure of `seqviz.lab.gradient`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from seqviz.drawing.figures.base import add_legend_below, in_own_style, power_of_ten
from seqviz.drawing.figures.lab.panels import DASHES, add_panels, add_titles, new_figure
from seqviz.drawing.styles import FAINT, MODEL_STYLES, style_of, visible

GRADIENT_FLOOR = 1e-6
"""Smallest relative gradient that is drawn; the curves of a fading one go on below."""


@in_own_style
def gradient(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """How a gradient fades with distance: before training, and after it in both directions.

    Args:
        report: as in ``models/report/gradient.json``; read are ``at_start["project"]``, ``trained``,
            ``share`` and the number of seeds.
        language: "en" or "zh".
    Raises:
        ValueError: no curves in the report, an unknown language.
    """
    start, trained = (report.get("at_start") or {}).get("project"), report.get("trained")
    if not start or not trained:
        raise ValueError(
            "expected the content of a gradient report (json.load of a file that "
            "'seqviz lab gradient' wrote), got one without curves"
        )
    tall = 10.75  # inches
    figure = new_figure(tall, language, "lab.gradient.figure")
    # Below the first there is room for its legend.
    axes = add_panels(figure, ((7.75, 2.6), (4.15, 2.05), (1.2, 2.05)))
    share = report.get("share")
    for one in axes:
        one.set_yscale("log")
        one.yaxis.set_major_formatter(FuncFormatter(power_of_ten))
        if share:
            one.axhline(share, color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    biases = sorted((_forget_bias(k) for k in start if k.startswith(_LSTM_KEY)), reverse=True)
    for key, found in start.items():
        style, dash, label, said = MODEL_STYLES["transformer"], (), f"curve_{key}", {}
        if key.startswith(_LSTM_KEY):
            bias, style = _forget_bias(key), MODEL_STYLES["lstm"]
            dash = DASHES[min(biases.index(bias), len(DASHES) - 1)]
            label, said = "curve_lstm", {"bias": f"{bias:g}"}
        elif key == "rnn":
            style, dash = MODEL_STYLES["rnn"], MODEL_STYLES["rnn"].dash
        elif key != "self-attention":
            dash = DASHES[2]
        figure.name(_fading(axes[0], found, style.color, dash), label, **said)
    add_legend_below(axes[0], 2)
    for one, end in zip(axes[1:], ("forward", "backward"), strict=True):
        for number, (name, ends) in enumerate(trained.items()):
            style = style_of(name, number)
            _fading(one, ends[end], style.color, style.dash, visible(style.label))
    add_legend_below(axes[2], 2)
    if "transformer" in trained:
        note = figure.text(0.02, 0.1 / tall, "", ha="left", va="bottom")
        figure.say(note, "memory").set(fontsize=8.5, color=FAINT)
    seeds = (report.get("settings") or {}).get("num_seeds", start["rnn"]["n"])
    for one, (key, values, across, up) in zip(
        axes,
        (
            ("start", {"seeds": seeds}, "steps", "of_first"),
            ("forward", {}, "pieces", "of_largest"),
            ("backward", {}, "pieces", "of_largest"),
        ),
        strict=True,
    ):
        add_titles(figure, one, key, across, up, **values)
        one.set_xlim(left=0)
        bottom, top = one.get_ylim()
        one.set_ylim(max(bottom, GRADIENT_FLOOR), top)
        if share:
            note = one.text(one.get_xlim()[1], share * 1.15, "", ha="right", va="bottom")
            figure.say(note, "share", percent=f"{100 * share:g}")
            note.set(fontsize=8.5, color=FAINT)
    return figure


_LSTM_KEY = "lstm-forget-"


def _forget_bias(key: str) -> float:
    return float(key.removeprefix(_LSTM_KEY))


def _fading(
    axes: Axes, found: Mapping[str, Any], color: str, dash: tuple[float, ...], label: str = "_"
) -> Line2D:
    """One curve by distance 0, 1, 2, … with its band."""
    median, low, high = (np.array(found[key], dtype=float) for key in ("median", "low", "high"))
    distance = np.arange(len(median))
    [line] = axes.plot(
        distance,
        median,
        color=color,
        linestyle=(0, dash) if dash else "-",
        linewidth=1.7,
        label=label,
        zorder=4,
    )
    axes.fill_between(distance, low, high, color=color, alpha=0.14, linewidth=0, zorder=2)
    return line
