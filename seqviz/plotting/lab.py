"""Figures of the lab's experiments, one function an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from seqviz.plotting.base import (
    LabelledFigure,
    add_legend_below,
    clean_axes,
    power_of_ten,
)
from seqviz.styles import FAINT, INK, MODEL_STYLES, style_of, visible

TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "gradient_start": "Before training: one layer, {seeds} seeds",
        "gradient_forward": "After training: end state of the forward direction",
        "gradient_backward": "After training: end state of the backward direction",
        "gradient_steps": "distance (steps)",
        "gradient_pieces": "distance from the end state (pieces)",
        "gradient_of_first": "gradient ÷ that at distance 0",
        "gradient_of_largest": "gradient ÷ the text’s largest",
        "gradient_rnn": "tanh RNN",
        "gradient_lstm": "LSTM, forget bias {bias}",
        "gradient_self-attention": "self-attention",
        "gradient_transformer-layer": "whole encoder layer",
        "gradient_share": "{percent} %",
        "gradient_memory": "Transformer: its memory at the last and at the first position",
    },
    "zh": {
        "gradient_start": "训练之前：单层，{seeds} 个随机种子",
        "gradient_forward": "训练之后：正向的终点状态",
        "gradient_backward": "训练之后：反向的终点状态",
        "gradient_steps": "距离（步）",
        "gradient_pieces": "到终点状态的距离（词元）",
        "gradient_of_first": "梯度与距离 0 处之比",
        "gradient_of_largest": "梯度与该文最大值之比",
        "gradient_rnn": "tanh RNN",
        "gradient_lstm": "LSTM，遗忘偏置 {bias}",
        "gradient_self-attention": "自注意力",
        "gradient_transformer-layer": "整个编码器层",
        "gradient_share": "{percent}%",
        "gradient_memory": "Transformer：最后一个和第一个位置上的编码器输出",
    },
}


WIDTH = 4.7
"""Inches of every figure here: on a phone of 390 pixels a letter of 9 points then has 9.5 pixels."""

GRADIENT_FLOOR = 1e-6
"""Smallest relative gradient that is drawn; the curves of a fading one go on below."""

_GRADIENT_DASHES = ((), (6.0, 3.0), (1.5, 2.0), (8.0, 2.0, 1.5, 2.0))
"""Of the LSTM's forget biases, from the largest."""


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    # One under the other, for narrow screens; below the first there is room for its legend.
    axes = [
        figure.add_axes((0.155, bottom / tall, 0.82, height / tall))
        for bottom, height in ((7.75, 2.6), (4.15, 2.05), (1.2, 2.05))
    ]
    share = report.get("share")
    for one in axes:
        clean_axes(one)
        one.set_yscale("log")
        one.yaxis.set_major_formatter(FuncFormatter(power_of_ten))
        if share:
            one.axhline(share, color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    entries: list[tuple[str, dict[str, Any]]] = []
    biases = sorted((_forget_bias(k) for k in start if k.startswith(_LSTM_KEY)), reverse=True)
    for key, found in start.items():
        style, dash = MODEL_STYLES["transformer"], ()
        if key.startswith(_LSTM_KEY):
            bias, style = _forget_bias(key), MODEL_STYLES["lstm"]
            dash = _GRADIENT_DASHES[min(biases.index(bias), len(_GRADIENT_DASHES) - 1)]
            entries.append(("gradient_lstm", {"bias": f"{bias:g}"}))
        else:
            if key == "rnn":
                style, dash = MODEL_STYLES["rnn"], MODEL_STYLES["rnn"].dash
            elif key != "self-attention":
                dash = _GRADIENT_DASHES[2]
            entries.append((f"gradient_{key}", {}))
        _fading(axes[0], found, style.color, dash, "-")
    legend = add_legend_below(axes[0], 2)
    for text, (key, values) in zip(legend.get_texts(), entries, strict=True):
        figure.say(text, key, **values)
    for one, end in zip(axes[1:], ("forward", "backward"), strict=True):
        for number, (name, ends) in enumerate(trained.items()):
            style = style_of(name, number)
            _fading(one, ends[end], style.color, style.dash, visible(style.label))
    add_legend_below(axes[2], 2)
    if "transformer" in trained:
        note = figure.text(0.02, 0.1 / tall, "", ha="left", va="bottom")
        figure.say(note, "gradient_memory").set(fontsize=8.5, color=FAINT)
    seeds = (report.get("settings") or {}).get("num_seeds", start["rnn"]["n"])
    for one, (key, values, across, up) in zip(
        axes,
        (
            ("gradient_start", {"seeds": seeds}, "gradient_steps", "gradient_of_first"),
            ("gradient_forward", {}, "gradient_pieces", "gradient_of_largest"),
            ("gradient_backward", {}, "gradient_pieces", "gradient_of_largest"),
        ),
        strict=True,
    ):
        at = one.get_position()
        heading = figure.text(0.02, at.y1 + 0.13 / tall, "", fontsize=11, color=INK, ha="left")
        figure.say(heading, key, **values)
        figure.say(one.xaxis.label, across).set(fontsize=10, color=INK)
        figure.say(one.yaxis.label, up).set(fontsize=10, color=INK)
        one.set_xlim(left=0)
        bottom, top = one.get_ylim()
        one.set_ylim(max(bottom, GRADIENT_FLOOR), top)
        if share:
            note = one.text(one.get_xlim()[1], share * 1.15, "", ha="right", va="bottom")
            figure.say(note, "gradient_share", percent=f"{100 * share:g}")
            note.set(fontsize=8.5, color=FAINT)
    return figure


_LSTM_KEY = "lstm-forget-"


def _forget_bias(key: str) -> float:
    return float(key.removeprefix(_LSTM_KEY))


def _fading(
    axes: Axes, found: Mapping[str, Any], color: str, dash: tuple[float, ...], label: str
) -> None:
    """One curve by distance 0, 1, 2, … with its band."""
    median, low, high = (np.array(found[key], dtype=float) for key in ("median", "low", "high"))
    distance = np.arange(len(median))
    axes.plot(
        distance,
        median,
        color=color,
        linestyle=(0, dash) if dash else "-",
        linewidth=1.7,
        label=label,
        zorder=4,
    )
    axes.fill_between(distance, low, high, color=color, alpha=0.14, linewidth=0, zorder=2)
