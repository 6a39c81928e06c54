"""Figures of the lab's experiments, one function an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from seqviz.plotting.base import (
    LabelledFigure,
    add_legend_below,
    add_line,
    clean_axes,
    power_of_ten,
)
from seqviz.styles import FAINT, INK, MODEL_STYLES, OTHER_STYLES, style_of, visible

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
        "cost_time": "Training step, {width} wide: time",
        "cost_time_axis": "ms for 1,000 tokens",
        "cost_memory": "Training step, {width} wide: peak memory",
        "cost_memory_axis": "MiB for {tokens} tokens",
        "cost_share": "Training step, {width} wide: use of the hardware",
        "cost_share_axis": "% of matmul rate",
        "cost_length": "length N (tokens a sentence)",
        "cost_decoding": "Generating one more token, {width} wide: time",
        "cost_decoding_axis": "µs a token",
        "cost_state": "Generating one more token, {width} wide: memory kept",
        "cost_state_axis": "KiB a layer",
        "cost_position": "tokens before it",
        "cost_crossing": "N = 2 D",
        "cost_rnn": "tanh RNN",
        "cost_lstm": "LSTM",
        "cost_attention": "attention, fused",
        "cost_attention-fused": "attention, fused",
        "cost_attention-naive": "attention, scores in memory",
        "cost_note": "N = 2 D: from there on attention takes more operations than the LSTM",
        "training_cost_tokens": "Loss by what was read",
        "training_cost_tokens_axis": "million target tokens",
        "training_cost_operations": "Loss by what was computed",
        "training_cost_operations_axis": "10¹² operations of matrix products",
        "training_cost_seconds": "Loss by time",
        "training_cost_seconds_axis": "minutes on an idle machine",
        "training_cost_dev": "loss, nats a token",
        "training_cost_train": "training loss, nats a token",
        "training_cost_levels": "dashes: final loss of each model",
        "training_cost_no_seconds": "dashes: final loss of each model; no training speed is known, so no times",
        "learning_right": "right answers (%)",
        "learning_rnn": "tanh RNN",
        "learning_lstm": "LSTM",
        "learning_lstm-forget-3": "LSTM, forget bias 3",
        "learning_attention": "attention",
        "learning_chance": "chance",
        "recall_alone": "Trained at one distance alone",
        "recall_mixed": "Trained on all distances at once",
        "recall_learning": "All at once: on the way, at distance {last}",
        "recall_distance": "distance (noise tokens in between)",
        "recall_steps": "batches of {batch_size} sequences",
        "recall_note": "Band: 95 % interval over {num_seeds} seeds; dots: seeds.\nLearned with {steps} batches a run; no limit.",
        "capacity_longest": "Longest sequence copied ({good} % right)",
        "capacity_length": "Right symbols by length",
        "capacity_fails": "Where the fixed vector first falls below {good} %",
        "capacity_width": "width h of the state",
        "capacity_symbols": "length (symbols)",
        "capacity_position": "position in the sequence",
        "capacity_right": "right symbols (%)",
        "capacity_lstm": "fixed vector",
        "capacity_lstm-attention": "with attention",
        "capacity_max": "longest trained",
        "capacity_fixed": "fixed vector, h = {width}",
        "capacity_attended": "with attention (all h)",
        "capacity_at": "h = {width}, length {length}",
        "capacity_note": "Median of {num_seeds} seeds, dots: seeds; below: their mean.\nLearned with {steps} batches a run; no limit.",
        "extrapolation_parity": "Parity: is the number of ones odd?",
        "extrapolation_last-write": "Last write: which symbol was written last?",
        "extrapolation_lookup": "Lookup: which value stood beside this key?",
        "extrapolation_length": "length (log scale)",
        "extrapolation_trained": "trained",
        "extrapolation_note": "Band: 95 % interval over {num_seeds} seeds; dots: seeds.\nTwo layers, {steps} batches a run; sinusoidal positions.",
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
        "cost_time": "训练一步，宽度 {width}：时间",
        "cost_time_axis": "每千词元毫秒",
        "cost_memory": "训练一步，宽度 {width}：内存峰值",
        "cost_memory_axis": "{tokens} 个词元的 MiB",
        "cost_share": "训练一步，宽度 {width}：硬件用了多少",
        "cost_share_axis": "矩阵乘法速率的 %",
        "cost_length": "长度 N（每句词元数）",
        "cost_decoding": "再生成一个词元，宽度 {width}：时间",
        "cost_decoding_axis": "每词元微秒",
        "cost_state": "再生成一个词元，宽度 {width}：需保留的内存",
        "cost_state_axis": "每层 KiB",
        "cost_position": "之前的词元数",
        "cost_crossing": "N = 2 D",
        "cost_rnn": "tanh RNN",
        "cost_lstm": "LSTM",
        "cost_attention": "融合注意力",
        "cost_attention-fused": "融合注意力",
        "cost_attention-naive": "注意力，分数写入内存",
        "cost_note": "N = 2 D：从这里起，注意力的运算量超过 LSTM",
        "training_cost_tokens": "损失随所读词元",
        "training_cost_tokens_axis": "目标词元（百万）",
        "training_cost_operations": "损失随运算量",
        "training_cost_operations_axis": "矩阵乘法的运算（10¹² 次）",
        "training_cost_seconds": "损失随时间",
        "training_cost_seconds_axis": "在空闲机器上的分钟数",
        "training_cost_dev": "损失（每词元纳特）",
        "training_cost_train": "训练损失（每词元纳特）",
        "training_cost_levels": "虚线：各模型的最终损失",
        "training_cost_no_seconds": "虚线：各模型的最终损失；没有训练速度的测量，故无时间",
        "learning_right": "正确率（%）",
        "learning_rnn": "tanh RNN",
        "learning_lstm": "LSTM",
        "learning_lstm-forget-3": "LSTM，遗忘偏置 3",
        "learning_attention": "注意力",
        "learning_chance": "随机猜测",
        "recall_alone": "只在一种距离上训练",
        "recall_mixed": "各种距离混在一起训练",
        "recall_learning": "混在一起训练的过程：距离 {last}",
        "recall_distance": "距离（中间的噪声符号数）",
        "recall_steps": "训练批数（每批 {batch_size} 条序列）",
        "recall_note": "色带：{num_seeds} 个随机种子的 95% 区间；小点：各种子。\n每次训练 {steps} 批的结果，并非极限。",
        "capacity_longest": "能复制的最长序列（{good}% 正确）",
        "capacity_length": "各长度下的符号正确率",
        "capacity_fails": "固定向量初次低于 {good}% 的长度：错在何处",
        "capacity_width": "状态的宽度 h",
        "capacity_symbols": "长度（符号）",
        "capacity_position": "在序列中的位置",
        "capacity_right": "正确的符号（%）",
        "capacity_lstm": "固定向量",
        "capacity_lstm-attention": "加注意力",
        "capacity_max": "训练的最大长度",
        "capacity_fixed": "固定向量，h = {width}",
        "capacity_attended": "加注意力（所有 h）",
        "capacity_at": "h = {width}，长度 {length}",
        "capacity_note": "{num_seeds} 个随机种子的中位数，小点：各种子；下面两图为平均。\n每次训练 {steps} 批的结果，并非极限。",
        "extrapolation_parity": "奇偶：1 的个数是奇数吗？",
        "extrapolation_last-write": "最后写入：最后写入的是哪个符号？",
        "extrapolation_lookup": "按键取值：这个键旁边的值是什么？",
        "extrapolation_length": "长度（对数刻度）",
        "extrapolation_trained": "训练过",
        "extrapolation_note": "色带：{num_seeds} 个随机种子的 95% 区间；小点：各种子。\n两层，每次训练 {steps} 批；正弦位置编码。",
    },
}


WIDTH = 4.7
"""Inches of every figure here: on a phone of 390 pixels a letter of 9 points then has 9.5 pixels."""


def _panels(
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


def _label(
    figure: LabelledFigure, axes: Axes, heading: str, across: str, up: str, **values: Any
) -> None:
    """Give axes their heading and the names of both axes, by the keys of `TEXTS`."""
    tall = figure.get_size_inches()[1]
    at = axes.get_position()
    above = figure.text(0.02, at.y1 + 0.13 / tall, "", fontsize=11, color=INK, ha="left")
    figure.say(above, heading, **values)
    figure.say(axes.xaxis.label, across, **values).set(fontsize=10, color=INK)
    figure.say(axes.yaxis.label, up, **values).set(fontsize=10, color=INK)


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
    # Below the first there is room for its legend.
    axes = _panels(figure, ((7.75, 2.6), (4.15, 2.05), (1.2, 2.05)))
    share = report.get("share")
    for one in axes:
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
        _label(figure, one, key, across, up, **values)
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


# ---------------------------------------------------------------------------------------------
# Cost

_COST_STYLES = {
    "rnn": MODEL_STYLES["rnn"],
    "lstm": MODEL_STYLES["lstm"],
    "attention-naive": replace(MODEL_STYLES["transformer"], dash=(2.0, 1.5), marker="D"),
    "attention-fused": MODEL_STYLES["transformer"],
    "attention": MODEL_STYLES["transformer"],
}


def _doubling_axis(axes: Axes, values: Sequence[int]) -> None:
    """A logarithmic axis with a tick at each value."""
    axes.set_xscale("log", base=2)
    # Labels of neighbours that would touch are left out, the last one never.
    shown = [value for at, value in enumerate(reversed(values)) if len(values) < 8 or at % 2 == 0]
    axes.set_xticks(shown, [f"{value:,}" for value in shown])
    axes.set_xticks([], minor=True)


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    time, memory, share, step, state = _panels(
        figure,
        ((11.8, 2.2), (8.65, 1.75), (6.2, 1.5), (3.6, 1.7), (0.9, 1.3)),
        left=0.175,
    )
    for name, found in layers.items():
        style, trained = _COST_STYLES[name], found["forward_backward"]
        label = figure.words(f"cost_{name}")
        for axes, values in (
            (time, 1e6 * np.array(trained["seconds"]) / tokens),
            (memory, np.array(trained["peak_bytes"]) / 2**20),
            (share, 100 * np.array(trained["share_of_matmul_rate"])),
        ):
            add_line(axes, np.array(lengths), values, style, zorder=4, label=label)
    for name, found in report["decoding"]["layers"][key].items():
        style, label = _COST_STYLES[name], figure.words(f"cost_{name}")
        for axes, values in (
            (step, 1e6 * np.array(found["seconds"])),
            (state, np.array(found["state_bytes"]) / 1024),
        ):
            add_line(axes, np.array(positions), values, style, zorder=4, label=label)
    for axes, values in zip(
        (time, memory, share, step, state), (lengths,) * 3 + (positions,) * 2, strict=True
    ):
        _doubling_axis(axes, values)
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
            figure.say(note, "cost_crossing").set(fontsize=8.5, color=INK)
    for axes, heading, across, up in (
        (time, "cost_time", "cost_length", "cost_time_axis"),
        (memory, "cost_memory", "cost_length", "cost_memory_axis"),
        (share, "cost_share", "cost_length", "cost_share_axis"),
        (step, "cost_decoding", "cost_position", "cost_decoding_axis"),
        (state, "cost_state", "cost_position", "cost_state_axis"),
    ):
        _label(figure, axes, heading, across, up, width=int(key), tokens=f"{tokens:,}")
    for axes, names in ((time, layers), (step, report["decoding"]["layers"][key])):
        legend = add_legend_below(axes, 2)
        for text, name in zip(legend.get_texts(), names, strict=True):
            figure.say(text, f"cost_{name}")
    note = figure.text(0.02, 0.1 / tall, "", ha="left", va="bottom")
    figure.say(note, "cost_note").set(fontsize=8.5, color=INK)
    return figure


def _few_labels(axes: Axes) -> FuncFormatter:
    """Names 2 and 5 between powers of ten where an axis spans fewer than two of these."""

    def label(value: float, _: Any = None) -> str:
        low, high = axes.get_ylim()
        first = value / 10 ** np.floor(np.log10(value) + 1e-9)
        return f"{value:,g}" if high < 100 * low and round(float(first), 6) in (2, 5) else ""

    return FuncFormatter(label)


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    bottoms = [tall - 2.5 - 3.05 * number for number in range(len(units))]
    panels = _panels(figure, [(bottom, 2.15) for bottom in bottoms], left=0.125)
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
        up = "training_cost_dev" if curves == {"dev"} else "training_cost_train"
        _label(figure, axes, f"training_cost_{unit}", f"training_cost_{unit}_axis", up)
    add_legend_below(panels[-1], 2)
    note = figure.text(0.02, 0.08 / tall, "", ha="left", va="bottom")
    key = "training_cost_levels" if timed else "training_cost_no_seconds"
    figure.say(note, key).set(fontsize=8.5, color=INK)
    return figure


_LEARNING_STYLES = {
    "attention": MODEL_STYLES["transformer"],
    "lstm-forget-3": OTHER_STYLES[0],
    "lstm": MODEL_STYLES["lstm"],
    "rnn": MODEL_STYLES["rnn"],
}
"""Of the small models; later ones are drawn smaller and above, so that equal curves can all be seen."""


def _accuracies(axes: Axes, across: Sequence[float], kind: str, found: Mapping[str, Any]) -> None:
    """One curve in percent, with its band and its seeds where there are some."""
    style, number = _LEARNING_STYLES[kind], list(_LEARNING_STYLES).index(kind)
    right = 100 * np.array(found["mean"])
    add_line(axes, np.array(across), right, style, zorder=4 + number, label=kind)
    axes.lines[-1].set(markersize=8.5 - 1.6 * number, linewidth=2.6 - 0.4 * number)
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
    figure.say(note, "learning_chance").set(fontsize=8.5, color=INK)


def _note(figure: LabelledFigure, key: str, budget: Mapping[str, Any]) -> None:
    """At the foot of a figure: how its curves were made."""
    note = figure.text(0.02, 0.08 / figure.get_size_inches()[1], "", ha="left", va="bottom")
    values = {name: f"{value:,}" for name, value in budget.items()}
    figure.say(note, key, **values).set(fontsize=8.5, color=INK, linespacing=1.4)


def _learning_legend(figure: LabelledFigure, axes: Axes, kinds: Sequence[str]) -> None:
    legend = add_legend_below(axes, 2)
    for text, kind in zip(legend.get_texts(), kinds, strict=True):
        figure.say(text, f"learning_{kind}")


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    alone, mixed, learning = _panels(figure, ((7.0, 2.1), (4.15, 2.0), (1.45, 1.75)))
    for axes, training in ((alone, "alone"), (mixed, "mixed")):
        for kind, found in report[training].items():
            _accuracies(axes, distances, kind, found["accuracy"])
        _doubling_axis(axes, distances)
        _label(figure, axes, f"recall_{training}", "recall_distance", "learning_right")
    for kind, found in report["mixed"].items():
        way = found["learning"]
        far = {"mean": [row[-1] for row in way["accuracy"]]}
        _accuracies(learning, way["steps"], kind, far)
    learning.set_xlim(left=0)
    _label(
        figure,
        learning,
        "recall_learning",
        "recall_steps",
        "learning_right",
        last=distances[-1],
        batch_size=budget["batch_size"],
    )
    for axes, end in ((alone, "left"), (mixed, "left"), (learning, "right")):
        _chance_line(figure, axes, report["chance"], end)
    _learning_legend(figure, learning, list(report["mixed"]))
    _note(figure, "recall_note", budget)
    return figure


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    places = [(tall - 2.4, 2.0), (tall - 5.55, 2.0), (tall - 8.85, 1.7)]
    panels = _panels(figure, places if fails else places[:2])
    longest, by_length = panels[:2]
    dashes = {
        str(width): _GRADIENT_DASHES[min(number, len(_GRADIENT_DASHES) - 1)]
        for number, width in enumerate(reversed(widths))
    }
    for context in ("lstm-attention", "lstm"):
        style = MODEL_STYLES[context]
        reached = [one["longest"] for one in report[context].values()]
        medians = np.array([one["median"] for one in reached])
        add_line(longest, np.array(widths), medians, style, zorder=4, label=context)
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
            _stroke(by_length, right, style.color, dashes[width], "_")
    _doubling_axis(longest, widths)
    longest.set_ylim(0, 1.12 * report["max_length"])
    longest.axhline(report["max_length"], color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    limit = longest.text(
        0.01, 1.02 * report["max_length"], "", transform=longest.get_yaxis_transform(), va="bottom"
    )
    figure.say(limit, "capacity_max").set(fontsize=8.5, color=INK)
    _label(figure, longest, "capacity_longest", "capacity_width", "capacity_symbols", **good)
    legend = add_legend_below(longest, 2)
    for text, context in zip(legend.get_texts(), ("lstm-attention", "lstm"), strict=True):
        figure.say(text, f"capacity_{context}")
    _label(figure, by_length, "capacity_length", "capacity_symbols", "capacity_right")
    _percent_axis(by_length, report["max_length"])
    by_length.axhline(100 * report["good"], color=FAINT, linewidth=0.9, dashes=(2, 2), zorder=1)
    for width in report["lstm"]:
        _stroke(by_length, np.array([]), MODEL_STYLES["lstm"].color, dashes[width], width)
    _stroke(by_length, np.array([]), MODEL_STYLES["lstm-attention"].color, (), "attention")
    legend = add_legend_below(by_length, 2)
    for text, width in zip(legend.get_texts(), [*report["lstm"], None], strict=True):
        if width is None:
            figure.say(text, "capacity_attended")
        else:
            figure.say(text, "capacity_fixed", width=width)
    if fails:
        for width, found in fails.items():
            right = 100 * np.array(found["by_position"])
            _stroke(panels[2], right, MODEL_STYLES["lstm"].color, dashes[width], width)
        _percent_axis(panels[2], max(found["length"] for found in fails.values()))
        _label(figure, panels[2], "capacity_fails", "capacity_position", "capacity_right", **good)
        legend = add_legend_below(panels[2], 2)
        for text, (width, found) in zip(legend.get_texts(), fails.items(), strict=True):
            figure.say(text, "capacity_at", width=width, length=found["length"])
    _note(figure, "capacity_note", report["budget"])
    return figure


def _stroke(
    axes: Axes, values: np.ndarray, color: str, dash: tuple[float, ...], label: str
) -> None:
    """A curve over 1, 2, 3, …; a label that begins with "_" is in no legend."""
    axes.plot(
        np.arange(1, len(values) + 1),
        values,
        color=color,
        linestyle=(0, dash) if dash else "-",
        linewidth=1.7,
        label=label,
        zorder=4,
    )


def _percent_axis(axes: Axes, last: int) -> None:
    axes.set_ylim(0, 106)
    axes.set_yticks(range(0, 101, 25))
    axes.set_xlim(0, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


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
    figure = LabelledFigure(WIDTH, tall, language, TEXTS)
    places = [(tall - 2.35 - 2.75 * number, 1.95) for number in range(len(tasks))]
    panels = _panels(figure, places)
    for axes, (task, found) in zip(panels, tasks.items(), strict=True):
        for kind, measured in found["models"].items():
            _accuracies(axes, lengths, kind, measured["accuracy"])
        axes.set_xscale("log")
        shown = [value for value in (1, 2, 5, 10, 20, 40, 100) if value <= lengths[-1]]
        axes.set_xticks(shown, [str(value) for value in shown])
        axes.set_xticks([], minor=True)
        axes.set_xlim(lengths[0] * 0.93, lengths[-1] * 1.08)
        axes.axvspan(lengths[0] * 0.93, trained, color=FAINT, alpha=0.13, linewidth=0, zorder=0)
        note = axes.text(trained * 0.97, 2, "", ha="right", va="bottom")
        figure.say(note, "extrapolation_trained").set(fontsize=8.5, color=INK)
        _label(figure, axes, f"extrapolation_{task}", "extrapolation_length", "learning_right")
        _chance_line(figure, axes, found["chance"])
    _learning_legend(figure, panels[-1], list(next(iter(tasks.values()))["models"]))
    _note(figure, "extrapolation_note", report["budget"])
    return figure


FIGURES: dict[str, Callable[..., Figure]] = {
    "gradient": gradient,
    "recall": recall,
    "capacity": capacity,
    "cost": cost,
    "training_cost": training_cost,
    "extrapolation": extrapolation,
}
"""By name of the report in ``models/report/``."""
