"""The figures of `seqviz.lab.cost` and `seqviz.lab.training_cost`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from seqviz.drawing.figures.base import add_legend_below, add_line, in_own_style
from seqviz.drawing.figures.lab.panels import add_panels, add_titles, doubling_axis, new_figure
from seqviz.drawing.styles import FAINT, INK, MODEL_STYLES, style_of

STYLES = {
    "rnn": MODEL_STYLES["rnn"],
    "lstm": MODEL_STYLES["lstm"],
    "attention-naive": replace(MODEL_STYLES["transformer"], dash=(2.0, 1.5), marker="D"),
    "attention-fused": MODEL_STYLES["transformer"],
    "attention": MODEL_STYLES["transformer"],
}


@in_own_style
def cost(report: Mapping[str, Any], *, language: str = "en", width: int | None = None) -> Figure:
    """Time, memory and use of the hardware of one layer by length, and what generation costs.

    Args:
        report: as in ``models/report/cost.json``, or what `seqviz.lab.cost.live` gives.
        language: "en" or "zh".
        width: of the layers that are drawn; None for the report's ``width_shown``.
    Raises:
        ValueError: no layers in the report, a width that it has not, an unknown language.
    """
    if not report.get("layers") or not report.get("decoding"):
        raise ValueError(
            "expected the content of a cost report (json.load of a file that 'seqviz lab cost' wrote), got "
            "one without layers"
        )
    key = str(report["width_shown"] if width is None else width)
    if key not in report["layers"]:
        raise ValueError(f"expected width to be one of {', '.join(report['layers'])}, got {width}")
    lengths, layers = report["lengths"], report["layers"][key]
    tokens = report["settings"]["tokens"]
    positions = report["decoding"]["positions"]
    tall = 14.4  # inches
    figure = new_figure(tall, language, "lab.cost.figure")
    time, memory, share, step, state = add_panels(
        figure,
        ((11.8, 2.2), (8.65, 1.75), (6.2, 1.5), (3.6, 1.7), (0.9, 1.3)),
        left=0.175,
    )
    for name, found in layers.items():
        style, trained = STYLES[name], found["forward_backward"]
        for axes, values in (
            (time, 1e6 * np.array(trained["seconds"]) / tokens),
            (memory, np.array(trained["peak_bytes"]) / 2**20),
            (share, 100 * np.array(trained["share_of_matmul_rate"])),
        ):
            line = add_line(axes, np.array(lengths), values, style, zorder=4)
            figure.name(line, f"layer_{name}")
    for name, found in report["decoding"]["layers"][key].items():
        style = STYLES[name]
        for axes, values in (
            (step, 1e6 * np.array(found["seconds"])),
            (state, np.array(found["state_bytes"]) / 1024),
        ):
            line = add_line(axes, np.array(positions), values, style, zorder=4)
            figure.name(line, f"layer_{name}")
    for axes, values in zip(
        (time, memory, share, step, state), (lengths,) * 3 + (positions,) * 2, strict=True
    ):
        doubling_axis(axes, values)
        if axes is share:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.yaxis.set_minor_formatter(_few_labels(axes))
            axes.tick_params(axis="y", which="minor", labelsize=8.5, labelcolor=INK)
    crossing = report["crossing"][key]["operations"]
    for axes, values in ((time, lengths), (step, positions)):
        if values[0] <= crossing <= values[-1]:
            axes.axvline(crossing, color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
            note = axes.text(
                crossing, 1.0, "", transform=axes.get_xaxis_transform(), ha="right", va="top"
            )
            figure.say(note, "crossing").set(fontsize=8.5, color=INK)
    for axes, heading, across, up in (
        (time, "time", "length", "time_axis"),
        (memory, "memory", "length", "memory_axis"),
        (share, "share", "length", "share_axis"),
        (step, "decoding", "position", "decoding_axis"),
        (state, "state", "position", "state_axis"),
    ):
        add_titles(figure, axes, heading, across, up, width=int(key), tokens=f"{tokens:,}")
    for axes in (time, step):
        add_legend_below(axes, 2)
    note = figure.text(0.02, 0.1 / tall, "", ha="left", va="bottom")
    figure.say(note, "note").set(fontsize=8.5, color=INK)
    return figure


def _few_labels(axes: Axes) -> FuncFormatter:
    """Names 2 and 5 between powers of ten where an axis spans fewer than two of these."""

    def label(value: float, _: Any = None) -> str:
        low, high = axes.get_ylim()
        first = value / 10 ** np.floor(np.log10(value) + 1e-9)
        return f"{value:,g}" if high < 100 * low and round(float(first), 6) in (2, 5) else ""

    return FuncFormatter(label)


@in_own_style
def training_cost(report: Mapping[str, Any], *, language: str = "en") -> Figure:
    """Loss of the trained models by target tokens, by operations and by seconds.

    Args:
        report: as in ``models/report/training_cost.json``. Without rates there is no panel of seconds.
        language: "en" or "zh".
    Raises:
        ValueError: no models in the report, an unknown language.
    """
    models = report.get("models")
    if not models or any("points" not in found for found in models.values()):
        raise ValueError(
            "expected the content of a training cost report (json.load of a file that 'seqviz lab "
            "training-cost' wrote), got one without curves"
        )
    timed = all(found["points"]["seconds"] for found in models.values())
    units = {"tokens": 1e-6, "operations": 1e-12, "seconds": 1 / 60}
    if not timed:
        del units["seconds"]
    tall = 3.05 * len(units) + 0.85
    figure = new_figure(tall, language, "lab.training_cost.figure")
    bottoms = [tall - 2.5 - 3.05 * number for number in range(len(units))]
    panels = add_panels(figure, [(bottom, 2.15) for bottom in bottoms], left=0.125)
    finals = [found["final_loss"] for found in models.values()]
    shown = min(finals), 1.8 * max(finals) - 0.8 * min(finals)
    margin = 0.06 * (shown[1] - shown[0])
    for axes, (unit, scale) in zip(panels, units.items(), strict=True):
        for number, (name, found) in enumerate(models.items()):
            style = style_of(name, number)
            paid = scale * np.array(found["points"][unit])
            loss = np.array(found["points"]["loss"])
            add_line(axes, paid, loss, style, zorder=4, label=style.label)
            axes.lines[-1].set_markersize(4)
            axes.axhline(found["final_loss"], color=style.color, linewidth=0.7, dashes=(3, 3))
        axes.set_xlim(left=0)
        axes.set_ylim(shown[0] - margin, shown[1])
        curves = {found["curve"] for found in models.values()}
        up = "dev" if curves == {"dev"} else "train"
        add_titles(figure, axes, f"loss_by_{unit}", f"loss_by_{unit}_axis", up)
    add_legend_below(panels[-1], 2)
    note = figure.text(0.02, 0.08 / tall, "", ha="left", va="bottom")
    key = "levels" if timed else "no_seconds"
    figure.say(note, key).set(fontsize=8.5, color=INK)
    return figure
