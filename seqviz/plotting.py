"""Data in, matplotlib `Figure` out: attention maps, quality by length, losses.

    figure = seqviz.plotting.attention(translation.attention("cross").words())
    seqviz.plotting.save(figure, "attention.svg")

No pyplot, no change of global settings, no file but in `save`, no model. Every figure is new and
belongs to the caller alone, so that many threads can draw at once.
"""

from __future__ import annotations

import io
import os
import re
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from seqviz.attention_map import AttentionMap
from seqviz.styles import MODEL_STYLES, ModelStyle, diverging_ramp, ramp, shorten, style_of, visible
from seqviz.words import words

INK = "#1b1b1f"
"""Colour of all text and axes; `inline_svg` replaces it by that of the page's text."""
FAINT = "#8b8b93"
"""Colour of what stands back; readable on light and dark paper."""
BASE_FONT = "DejaVu Sans"
"""Comes with matplotlib."""

METRICS = ("bleu", "chrf", "brevity_penalty", "length_ratio")
THIN = 50
"""A bucket with fewer sentences is drawn in grey."""
TRAINED_WORDS = 100
"""Longest training sentence, in English words; beyond it a curve is extrapolation."""

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "weight": "attention weight",
        "share": "share of gradient × input",
        "source_saliency": "English, depended on",
        "target_saliency": "French, written",
        "kind_saliency": "which English words the French depends on",
        "hidden_saliency": "{percent} % lies on special tokens, not shown",
        "source": "source (read)",
        "target": "target (written)",
        "source_cross": "English, read",
        "target_cross": "French, written",
        "source_encoder": "English word looked at",
        "target_encoder": "English word that looks",
        "source_decoder": "French word looked at",
        "target_decoder": "French word that looks",
        "kind_cross": "French looks at English",
        "kind_encoder": "English looks at English",
        "kind_decoder": "French looks at French",
        "layer": "layer {layer} of {layers}",
        "head": "head {head} of {heads}",
        "all": "mean of {layers} layers × {heads} heads",
        "mean_heads": "mean of {heads} heads",
        "mean_layers": "mean of {layers} layers",
        "hidden": "{percent} % of the weight lies on special tokens, not shown",
        "vector": "all that the decoder will ever know",
        "vector_numbers": "number",
        "words": "English words in the sentence",
        "bleu": "BLEU",
        "chrf": "chrF",
        "brevity_penalty": "brevity penalty",
        "length_ratio": "length, hypothesis ÷ reference",
        "natural": "Test sentences by their own length",
        "same-content": "Same text, in larger and larger parts",
        "held": "English words held at once (mean of a run)",
        "position_loss": "position in the French, in pieces",
        "position_found": "position in the English, in words",
        "found": "share of content words found",
        "breaks_loss": "Sentences of 51–70 words: loss along the translation",
        "breaks_found": "… and which English words are found in it",
        "reference": "human translation",
        "n": "n",
        "trained": "length of training sentences",
        "extrapolation": "longer than any\ntraining sentence",
        "thin": "grey: fewer than {n} sentences",
        "tokens": "target tokens seen (millions)",
        "loss": "loss (nats a token)",
        "dev": "validation",
        "train": "training",
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
        "weight": "注意力权重",
        "share": "梯度 × 输入的占比",
        "source_saliency": "被依赖的英语词",
        "target_saliency": "法语译文",
        "kind_saliency": "译文依赖原文的哪些词",
        "hidden_saliency": "另有 {percent}% 落在未显示的特殊符号上",
        "source": "原文",
        "target": "译文",
        "source_cross": "英语原文",
        "target_cross": "法语译文",
        "source_encoder": "被看的英语词",
        "target_encoder": "在看的英语词",
        "source_decoder": "被看的法语词",
        "target_decoder": "在看的法语词",
        "kind_cross": "译文看原文",
        "kind_encoder": "原文看原文",
        "kind_decoder": "译文看译文",
        "layer": "第 {layer} 层（共 {layers} 层）",
        "head": "第 {head} 个头（共 {heads} 个）",
        "all": "{layers} 层 × {heads} 个头的平均",
        "mean_heads": "{heads} 个头的平均",
        "mean_layers": "{layers} 层的平均",
        "hidden": "另有 {percent}% 的权重落在未显示的特殊符号上",
        "vector": "解码器所能知道的，全在这里",
        "vector_numbers": "第几个数",
        "words": "句子的英语词数",
        "bleu": "BLEU",
        "chrf": "chrF",
        "brevity_penalty": "长度惩罚因子",
        "length_ratio": "译文与参考译文的长度比",
        "natural": "测试句按自身长度分组",
        "same-content": "同一段文字，每次读入的部分越来越长",
        "held": "一次读入的英语词数（每段平均）",
        "position_loss": "在法语译文中的位置（词元）",
        "position_found": "在英语原文中的位置（词）",
        "found": "实词在译文中找到的比例",
        "breaks_loss": "51–70 词的句子：损失随译文位置的变化",
        "breaks_found": "……以及哪些英语词在译文中找得到",
        "reference": "人工译文",
        "n": "句数",
        "trained": "训练句的长度分布",
        "extrapolation": "超出训练时\n见过的长度",
        "thin": "灰色：不足 {n} 句",
        "tokens": "训练见过的目标词元（百万）",
        "loss": "损失（nat / 词元）",
        "dev": "验证",
        "train": "训练",
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


class _Figure(Figure):
    """A figure that knows the English of its own words, for files that no Chinese font can serve."""

    def __init__(self, width: float, height: float, language: str) -> None:
        if language not in _TEXTS:
            raise ValueError(
                f"expected language to be one of {', '.join(_TEXTS)}, got {language!r}"
            )
        super().__init__(figsize=(width, height), dpi=100, facecolor="white")
        self.language = language
        self.english: list[tuple[Text, str]] = []

    def words(self, key: str, language: str | None = None, **values: Any) -> str:
        return _TEXTS[language or self.language][key].format(**values)

    def say(self, text: Text, key: str, **values: Any) -> Text:
        """Give `text` the words of `key`; remember them in English."""
        return self.say_all(text, [(key, values)])

    def say_all(
        self,
        text: Text,
        keys: list[tuple[str, dict[str, Any]]],
        model: str | None = None,
        joint: str = ", ",
    ) -> Text:
        said, english = (
            (f"{_name(model, language)} · " if model else "")
            + joint.join(self.words(key, language, **values) for key, values in keys)
            for language in (self.language, "en")
        )
        text.set(text=said, parse_math=False, fontfamily=_families(said))
        if said != english:
            self.english.append((text, english))
        return text


def _name(model: str, language: str) -> str:
    """What a model is called; one of the user's own by its own name."""
    return words(f"model_{model}", language) if model in MODEL_STYLES else visible(model)


# ---------------------------------------------------------------------------------------------
# Attention


def attention(
    map: AttentionMap,
    layer: int | None = None,
    head: int | None = None,
    *,
    language: str = "en",
    title: str | None = None,
    color_max: float = 1.0,
) -> Figure:
    """One attention matrix: target down, source across, every row and column labelled.

    The figure grows with the number of words, so that labels are legible and never overlap. Two figures
    with the same `color_max` can be compared.

    Args:
        map: of pieces or words; `map.words()` hides the special tokens, and the figure says what they held.
        layer, head: counted from 0 (the figure counts from 1); None for the mean.
        language: of axis titles: "en" or "zh".
        title: in place of model, kind, layer and head.
        color_max: weight of the darkest colour.
    Raises:
        ValueError: an empty map, a `color_max` not in (0, 1], an unknown language.
        IndexError: no such layer or head.
    """
    figure = _Figure(1, 1, language)
    _lay_out(figure, [_AttentionPanel(figure, map, layer, head, title, color_max)])
    return figure


def attention_side_by_side(
    maps: Sequence[tuple[AttentionMap, int | None, int | None]],
    *,
    language: str = "en",
    color_max: float = 1.0,
) -> Figure:
    """Several attention matrices in one figure, on one scale.

    Args:
        maps: each with its layer and head, as for `attention`.
        language, color_max: as for `attention`.
    Raises:
        ValueError: no map at all, or as `attention`.
        IndexError: no such layer or head.
    """
    if not maps:
        raise ValueError("expected at least one map, got none")
    figure = _Figure(1, 1, language)
    _lay_out(figure, [_AttentionPanel(figure, *one, None, color_max) for one in maps])
    return figure


def _lay_out(figure: _Figure, panels: Sequence[_AttentionPanel]) -> None:
    """Give a figure the size that its panels need, and put them beside each other."""
    apart = 0.3  # inches
    width = sum(panel.width for panel in panels) + apart * (len(panels) - 1)
    height = max(panel.height for panel in panels)
    figure.set_size_inches(width, height)
    left = 0.0
    for panel in panels:
        panel.place(left, width, height)
        left += panel.width + apart


class _AttentionPanel:
    """One attention matrix of a figure. It knows its size in inches before it has a place.

    Sizes are known only once the labels are there: they are measured, then the page is laid out.
    """

    def __init__(
        self,
        figure: _Figure,
        map: AttentionMap,
        layer: int | None,
        head: int | None,
        title: str | None,
        color_max: float,
    ) -> None:
        weights = map.head(layer, head)  # (T, S)
        self.rows, self.columns = weights.shape
        if not self.rows or not self.columns:
            raise ValueError(
                f"expected a map with tokens on both sides, got {self.rows} target and "
                f"{self.columns} source tokens"
            )
        if not 0 < color_max <= 1:
            raise ValueError(f"expected color_max above 0 and at most 1, got {color_max}")
        self.figure, self.kind, self.color_max = figure, map.kind, color_max
        style = style_of(map.model)
        self.cell = float(np.clip(4.2 / max(weights.shape), 0.2, 0.5))  # inches
        # Points; at 45° a line of text needs 1.41 of its height.
        self.size = float(np.clip(self.cell * 30, 7.5, 11))
        self.axes = figure.add_axes((0, 0, 1, 1), label=f"panel {len(figure.axes)}")
        self.image = self.axes.imshow(
            weights,
            cmap=ListedColormap(ramp(style.color) / 255),
            vmin=0,
            vmax=color_max,
            interpolation="nearest",
            aspect="auto",
        )
        self._label(map)
        renderer = FigureCanvasAgg(figure).get_renderer()

        def extent(text: Text) -> tuple[float, float]:
            with _settings():  # `save` says which characters no font has
                box = text.get_window_extent(renderer)
            return box.width / figure.dpi, box.height / figure.dpi

        self.extent = extent
        across = [extent(tick.label2) for tick in self.axes.xaxis.get_major_ticks()]
        down = [extent(tick.label1)[0] for tick in self.axes.yaxis.get_major_ticks()]
        self.gap, self.bar, self.line = 0.1, 0.14, self.size / 72 * 1.6
        hidden = float(map.hidden(layer, head).mean())
        self.left = max(down) + self.line + 2 * self.gap
        self.top = max(height for _, height in across) + 2.1 * self.line + 2 * self.gap
        self.bottom = (1.9 * self.line if hidden >= 0.0005 else 0) + self.gap
        overhang = max((i + 0.5) * self.cell + w for i, (w, _) in enumerate(across))
        overhang -= self.columns * self.cell
        right = max(overhang + self.gap, self.gap + self.bar + 0.75)
        self.heading = figure.text(
            0, 0, "", fontsize=self.size + 1.5, color=INK, ha="left", va="top"
        )
        if title is None:
            _say_heading(figure, self.heading, map, layer, head)
        else:
            shown = visible(title)
            self.heading.set(text=shown, parse_math=False, fontfamily=_families(shown))
        self.below = figure.text(
            0, 0, "", fontsize=self.size - 1, color=FAINT, ha="left", va="bottom"
        )
        if hidden >= 0.0005:
            key = "hidden_saliency" if map.kind == "saliency" else "hidden"
            figure.say(self.below, key, percent=f"{100 * hidden:.1f}".removesuffix(".0"))
        said = max(extent(self.heading)[0], extent(self.below)[0])
        self.width = max(self.left + self.columns * self.cell + right, said + 2 * self.gap)
        self.height = self.top + self.rows * self.cell + self.bottom

    def _label(self, map: AttentionMap) -> None:
        """Every row and column gets its token."""
        axes = self.axes
        labels = [
            [shorten(visible(t)) for t in tokens]
            for tokens in (map.source_tokens, map.target_tokens)
        ]
        look: dict[str, Any] = {
            "parse_math": False,
            "fontfamily": _families("".join(map.source_tokens + map.target_tokens)),
            "fontsize": self.size,
            "color": INK,
        }
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xticks(
            range(self.columns),
            labels[0],
            rotation=45,
            ha="left",
            va="center",
            rotation_mode="anchor",
            **look,
        )
        axes.set_yticks(range(self.rows), labels[1], **look)
        axes.tick_params(length=2.5, width=0.6, pad=2, color=FAINT)
        axes.set_xticks(np.arange(self.columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(self.rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color=INK, alpha=0.1, linewidth=0.5)
        axes.tick_params(which="minor", length=0)
        axes.spines[:].set(color=FAINT, linewidth=0.6)

    def place(self, left: float, width: float, height: float) -> None:
        """Put the panel `left` inches into a figure of that size, at its top."""
        figure, gap, line = self.figure, self.gap, self.line
        wide, high = self.columns * self.cell, self.rows * self.cell
        bottom = height - self.height
        foot = bottom + self.bottom
        start = left + self.left
        self.axes.set_position((start / width, foot / height, wide / width, high / height))
        self.heading.set_position(((left + gap) / width, 1 - gap / height))
        self.below.set_position(((left + gap) / width, (bottom + gap) / height))
        for axis, key, x, y in (
            ("x", f"source_{self.kind}", start, height - gap - 1.7 * line),
            ("y", f"target_{self.kind}", left + gap, foot + high / 2),
        ):
            text = figure.text(x / width, y / height, "", fontsize=self.size, color=FAINT)
            figure.say(text, key if key in _TEXTS["en"] else key.split("_")[0])
            if axis == "x":
                text.set(ha="left", va="top")
            else:
                text.set(ha="left", va="center", rotation=90)
        bar_height = min(high, 2.4)
        bar_axes = figure.add_axes(
            (
                (start + wide + gap) / width,
                (foot + high - bar_height) / height,
                self.bar / width,
                bar_height / height,
            ),
            label=f"bar {len(figure.axes)}",
        )
        colorbar = figure.colorbar(self.image, cax=bar_axes, extend="neither")
        top = self.color_max
        ticks = [0, top / 2, top] if bar_height < 1.5 else np.linspace(0, top, 5)
        labels = [f"{t:.3f}".rstrip("0").rstrip(".") for t in ticks]
        if top < 1:
            labels[-1] = f"≥ {labels[-1]}"
        colorbar.set_ticks(list(ticks), labels=labels)
        bar_axes.tick_params(
            labelsize=self.size - 1.5, length=2, width=0.6, color=FAINT, labelcolor=INK
        )
        colorbar.outline.set(edgecolor=FAINT, linewidth=0.6)  # type: ignore[operator]
        key = "share" if self.kind == "saliency" else "weight"
        figure.say(bar_axes.yaxis.label, key).set(fontsize=self.size - 1, color=FAINT)
        if self.extent(bar_axes.yaxis.label)[1] > bar_height:
            bar_axes.yaxis.label.set_visible(False)


def _say_heading(
    figure: _Figure, text: Text, map: AttentionMap, layer: int | None, head: int | None
) -> None:
    numbers = {
        "layers": map.num_layers,
        "heads": map.num_heads,
        "layer": None if layer is None else layer + 1,
        "head": None if head is None else head + 1,
    }
    keys = [(f"kind_{map.kind}", {})]
    if map.num_layers * map.num_heads > 1:
        if layer is None and head is None:
            keys.append(("all", numbers))
        else:
            keys.append(("mean_layers" if layer is None else "layer", numbers))
            keys.append(("mean_heads" if head is None else "head", numbers))
    figure.say_all(text, keys, model=map.model, joint=" · ")


def vector(
    numbers: np.ndarray, *, model: str, language: str = "en", title: str | None = None
) -> Figure:
    """The one vector that a model without attention hands to its decoder, as a bar of its numbers.

    Args:
        numbers: each from -1 to 1, (D,).
        model: name of the model.
        language: "en" or "zh".
        title: in place of the model's name and what is shown.
    Raises:
        ValueError: not one row of numbers, an unknown language.
    """
    numbers = np.asarray(numbers, dtype=float)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"expected one vector (numbers), got shape {numbers.shape}")
    figure = _Figure(8, 1.9, language)
    axes = figure.add_axes((0.04, 0.3, 0.83, 0.42))
    image = axes.imshow(
        numbers[None],
        cmap=ListedColormap(diverging_ramp() / 255),
        vmin=-1,
        vmax=1,
        interpolation="nearest",
        aspect="auto",
    )
    axes.set_yticks([])
    last = numbers.size - 1
    axes.set_xticks([0, last] if last else [0], [str(n + 1) for n in ([0, last] if last else [0])])
    axes.tick_params(labelsize=9, color=FAINT, labelcolor=INK, length=3, width=0.8)
    axes.spines[:].set(color=FAINT, linewidth=0.6)
    figure.say(axes.xaxis.label, "vector_numbers").set(fontsize=9.5, color=INK)
    heading = figure.text(0.04, 0.93, "", fontsize=11.5, color=INK, ha="left", va="top")
    if title is None:
        figure.say_all(heading, [("vector", {})], model=model)
    else:
        heading.set(text=visible(title), parse_math=False, fontfamily=_families(title))
    bar = figure.add_axes((0.895, 0.3, 0.014, 0.42))
    colorbar = figure.colorbar(image, cax=bar)
    colorbar.set_ticks([-1, 0, 1], labels=["−1", "0", "1"])
    bar.tick_params(labelsize=9, color=FAINT, labelcolor=INK, length=2, width=0.6)
    colorbar.outline.set(edgecolor=FAINT, linewidth=0.6)  # type: ignore[operator]
    return figure


# ---------------------------------------------------------------------------------------------
# Quality by length


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
    figure = _Figure(8, 4.8, language)
    axes = figure.add_axes((0.085, 0.2, 0.895, 0.66))
    thin = _draw_curve(figure, axes, report, curve, metric)
    heading = figure.text(0.085, 0.965, "", fontsize=11.5, color=INK, ha="left", va="center")
    figure.say(heading, curve if curve in _TEXTS["en"] else "words")
    if thin:
        note = figure.text(0.98, 0.965, "", ha="right", va="center")
        figure.say(note, "thin", n=THIN).set(fontsize=8.5, color=FAINT)
    histogram = _draw_histogram(axes, report.get("length_histogram"))
    legend = _legend(axes, above=True)
    if histogram is not None:
        figure.say(legend.get_texts()[-1], "trained")
    return figure


def length_curves(
    report: Mapping[str, Any], *, metric: str = "bleu", language: str = "en"
) -> Figure:
    """Both curves of a report side by side on one scale; arguments and errors as `length_curve`."""
    figure = _Figure(11.5, 4.8, language)
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
        histogram = _draw_histogram(axes, report.get("length_histogram"))
    legend = _legend(left, above=True)
    if histogram is not None:
        figure.say(legend.get_texts()[-1], "trained")
    return figure


def _draw_curve(
    figure: _Figure, axes: Axes, report: Mapping[str, Any], curve: str, metric: str
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
    _clean(axes)
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
        _line(axes, x, np.where(thick, y, np.nan), style, zorder=5, label=style.label)
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
    right = longest if curve == "same-content" else max(TRAINED_WORDS, longest)
    axes.set_xlim(0, right * 1.01)
    if metric in ("bleu", "chrf", "brevity_penalty"):
        axes.set_ylim(bottom=0)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.04)

    # Buckets and their n under the axis.
    shown: dict[tuple[int, int], tuple[int, float]] = {}
    for buckets in models.values():
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
    figure.say(axes.xaxis.label, "held" if curve == "same-content" else "words").set(
        fontsize=10, color=INK
    )
    figure.say(axes.yaxis.label, metric).set(fontsize=10, color=INK)
    corner = axes.text(-0.012, -0.095, "", transform=axes.transAxes, ha="right", va="center")
    figure.say(corner, "n").set(fontsize=8.5, color=FAINT)
    if axes.get_xlim()[1] > TRAINED_WORDS + 2:
        axes.axvspan(
            TRAINED_WORDS, axes.get_xlim()[1], color=FAINT, alpha=0.14, linewidth=0, zorder=0
        )
        note = axes.text(TRAINED_WORDS + 1, axes.get_ylim()[1] * 0.98, "", va="top", ha="left")
        figure.say(note, "extrapolation").set(fontsize=8.5, color=FAINT)
    return any_thin


def _middle(bucket: Mapping[str, Any]) -> float:
    """Where a bucket stands on the axis: the mean length in it, if that is known."""
    return float(bucket.get("words") or (bucket["low"] + bucket["high"]) / 2)


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
    figure = _Figure(5.75 * len(panels), 4.2, language)
    any_thin = False
    width = 0.98 / len(panels)
    for number, (key, models) in enumerate(panels):
        axes = figure.add_axes((number * width + 0.12 * width, 0.15, 0.85 * width, 0.66))
        _clean(axes)
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
            _line(axes, x, np.where(thick, y, np.nan), style, zorder=5, label=style.label)
            any_thin = any_thin or not thick.all()
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        if key == "found":
            axes.set_ylim(0, 1.02)
        figure.say(axes.xaxis.label, f"position_{key}").set(fontsize=10, color=INK)
        figure.say(axes.yaxis.label, key).set(fontsize=10, color=INK)
        at = axes.get_position().x0
        heading = figure.text(at, 0.955, "", fontsize=11.5, color=INK, ha="left", va="center")
        figure.say(heading, f"breaks_{key}")
        if number == 0:
            _legend(axes, above=True)
    if any_thin:
        note = figure.text(0.98, 0.955, "", ha="right", va="center")
        figure.say(note, "thin", n=THIN).set(fontsize=8.5, color=FAINT)
    return figure


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _draw_histogram(axes: Axes, counts: Any) -> PolyCollection | None:
    """Training sentences by length behind the curves, up to a fifth of the height; no axis of its own."""
    counts = np.asarray(counts if counts is not None else [], dtype=float)
    if not counts.size or not counts.max() > 0:
        return None
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
        label="-",  # its place in the legend; the words come later
    )
    axes.set_ylim(bottom, top)
    return drawn


# ---------------------------------------------------------------------------------------------
# Losses


def loss_curves(trainings: Mapping[str, Mapping[str, Any]], *, language: str = "en") -> Figure:
    """Loss over target tokens seen: training thin, validation with markers.

    Args:
        trainings: what ``training.json`` says, by name of the model; read is ``losses``:
            ``{"train": [[tokens, loss], …], "dev": [[tokens, loss], …]}``.
        language: "en" or "zh".
    Raises:
        ValueError: no loss in any of them.
    """
    figure = _Figure(7, 4.2, language)
    axes = figure.add_axes((0.1, 0.13, 0.87, 0.83))
    _clean(axes)
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
            _line(axes, tokens / 1e6, loss, style, zorder=4, label=style.label)
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
    _legend(axes)
    return figure


def _clean(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.8)
    axes.tick_params(color=FAINT, labelcolor=INK, labelsize=9, length=3, width=0.8)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.patch.set_alpha(0)


def _line(
    axes: Axes, x: np.ndarray, y: np.ndarray, style: ModelStyle, *, zorder: float, label: str
) -> None:
    axes.plot(
        x,
        y,
        color=style.color,
        linestyle=(0, style.dash) if style.dash else "-",
        linewidth=1.8,
        marker=style.marker,
        markersize=5.5,
        markeredgewidth=0,
        label=visible(label),
        zorder=zorder,
    )


def _legend(axes: Axes, above: bool = False) -> Legend:
    """Inside the axes where it is emptiest, or in one line above them, where it can hide nothing."""
    place: dict[str, Any] = {"loc": "best"}
    if above:
        place = {
            "loc": "lower left",
            "bbox_to_anchor": (0, 1.0),
            "ncols": 5,
            "columnspacing": 1.4,
            "borderaxespad": 0,
            "borderpad": 0.2,
        }
    legend = axes.legend(frameon=False, fontsize=9, labelcolor=INK, handlelength=2.6, **place)
    for text in legend.get_texts():
        text.set(parse_math=False, fontfamily=_families(text.get_text()))
    return legend


# ---------------------------------------------------------------------------------------------
# Fonts

_PREFERRED_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "Microsoft YaHei",
    "SimHei",
    "Noto Sans",
    "Arial Unicode MS",
)


@lru_cache(maxsize=1)
def _fonts() -> tuple[tuple[str, str], ...]:
    """(family, file) of the installed upright fonts, base font first, then those that look best."""
    found = {}
    for font in font_manager.fontManager.ttflist:
        if font.style == "normal" and font.weight in (400, "normal", "regular", "book"):
            found.setdefault(font.name, font.fname)
    rank = {name: number for number, name in enumerate((BASE_FONT, *_PREFERRED_FONTS))}
    # Fonts without pictures of letters ("Last Resort", symbol fonts) must not win.
    poor = re.compile("last ?resort|cmex|cmsy|cmmi|STIXSize|STIXNonUni", re.IGNORECASE)
    names = [name for name in found if not poor.search(name)]
    return tuple((n, found[n]) for n in sorted(names, key=lambda n: (rank.get(n, len(rank)), n)))


@lru_cache(maxsize=64)
def _characters(file: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(file).get_charmap())
    except (OSError, RuntimeError):  # a damaged or unreadable font is no font
        return frozenset()


def _choose_fonts(characters: Iterable[str]) -> tuple[list[str], set[str]]:
    """Families that together have the characters, base font first, and the characters that none has."""
    wanted = {
        ord(c)
        for c in characters
        if not c.isspace() and unicodedata.category(c) not in ("Cf", "Mn", "Me")
    }
    families: list[str] = []
    for family, file in _fonts():
        has = _characters(file)
        if not families or wanted & has:
            families.append(family)
            wanted = wanted - has
        if not wanted:
            break
    return families, {chr(c) for c in wanted}


def _families(text: str) -> list[str]:
    return [*_choose_fonts(set(visible(text)))[0], "sans-serif"]


# ---------------------------------------------------------------------------------------------
# Files

_LOCK = threading.RLock()


@contextmanager
def _settings(changed: Any = None) -> Iterator[None]:
    """Other settings of matplotlib for a moment, and no warning about missing glyphs.

    Settings and warning filters belong to the whole process. Without the lock one thread puts back what
    another still needs, and a thread's SVG has outlines for text.
    """
    with _LOCK, rc_context(changed) if changed else nullcontext(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save(
    figure: Figure,
    target: str | os.PathLike[str] | IO[Any],
    format: str | None = None,
    *,
    dpi: float = 200,
) -> str | None:
    """Write a figure. Text in an SVG stays text, so that the reader's fonts draw it.

    Args:
        figure: from a function above, or any other.
        target: a path, or a file object open for bytes.
        format: "png", "svg" or "pdf"; None takes it from the path's ending.
        dpi: of a PNG.
    Returns:
        what had to be drawn otherwise for want of a font, as a sentence; None if nothing.
    Raises:
        ValueError: no such format.
    """
    if format is None:
        if not isinstance(target, str | os.PathLike):
            raise ValueError(
                "expected format to be one of png, svg, pdf for a file object, got None"
            )
        format = Path(target).suffix.removeprefix(".").lower()
    if format not in ("png", "svg", "pdf"):
        raise ValueError(f"expected format to be one of png, svg, pdf; got {format!r}")
    said: list[str] = []
    replaced: list[tuple[Text, str]] = []
    if format != "svg":
        own = getattr(figure, "english", [])
        if any(_choose_fonts(text.get_text())[1] for text, _ in own):
            for text, english in own:
                replaced.append((text, text.get_text()))
                text.set_text(english)
            said.append("no installed font has the labels' characters: labels are in English")
        missing = _missing_characters(figure)
        if missing:
            shown = " ".join(sorted(missing)[:20])
            said.append(f"no installed font has {shown}: drawn as boxes; an SVG shows them")
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[
        format
    ]
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "seqviz", "pdf.fonttype": 42}
    try:
        with _settings(settings):
            figure.savefig(
                target, format=format, dpi=72 if format == "svg" else dpi, metadata=metadata
            )
    finally:
        for text, words in replaced:
            text.set_text(words)
    return "; ".join(said) or None


def _missing_characters(figure: Figure) -> set[str]:
    texts = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    return _choose_fonts({c for text in texts if text.get_visible() for c in text.get_text()})[1]


def inline_svg(figure: Figure, label: str = "") -> str:
    """A figure as an ``<svg>`` element for a page: as wide as its box, its text in the page's colour.

    The paper is transparent, so that the page may be light or dark.

    Args:
        figure: from a function above.
        label: what the picture shows, for a reader who does not see it.
    """
    from html import escape

    buffer = io.BytesIO()
    paper = figure.get_facecolor()
    figure.set_facecolor("none")
    try:
        save(figure, buffer, "svg")
    finally:
        figure.set_facecolor(paper)
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    # Matplotlib leaves out fill where it is black; ours never is, so every INK is written out.
    text = text.replace(INK, "currentColor")
    style = 'style="display:block;width:100%;height:auto" role="img"'
    return text.replace("<svg ", f'<svg {style} aria-label="{escape(label)}" ', 1)


# ---------------------------------------------------------------------------------------------
# The lab: fading gradient

GRADIENT_FLOOR = 1e-6
"""Smallest relative gradient that is drawn; the curves of a fading one go on below."""

_GRADIENT_DASHES = ((), (6.0, 3.0), (1.5, 2.0), (8.0, 2.0, 1.5, 2.0))
"""Of the LSTM's forget biases, from the largest."""


def gradient_curves(report: Mapping[str, Any], *, language: str = "en") -> Figure:
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
    tall = 10.4  # inches
    figure = _Figure(5.75, tall, language)
    # One under the other, for narrow screens; below the first there is room for its legend.
    axes = [
        figure.add_axes((0.125, bottom / tall, 0.85, height / tall))
        for bottom, height in ((7.4, 2.6), (3.8, 2.05), (1.0, 2.05))
    ]
    share = report.get("share")
    for one in axes:
        _clean(one)
        one.set_yscale("log")
        one.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
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
    legend = _legend_below(axes[0], 2)
    for text, (key, values) in zip(legend.get_texts(), entries, strict=True):
        figure.say(text, key, **values)
    for one, end in zip(axes[1:], ("forward", "backward"), strict=True):
        for number, (name, ends) in enumerate(trained.items()):
            style = style_of(name, number)
            _fading(one, ends[end], style.color, style.dash, visible(style.label))
    _legend_below(axes[2], 4)
    if "transformer" in trained:
        note = figure.text(0.125, 0.1 / tall, "", ha="left", va="bottom")
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
        heading = figure.text(0.02, at.y1 + 0.13 / tall, "", fontsize=11.5, color=INK, ha="left")
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


def _legend_below(axes: Axes, columns: int) -> Legend:
    """Under the axes' own label, where it can hide nothing."""
    figure = axes.get_figure()
    assert figure is not None
    inches = axes.get_position().height * figure.get_size_inches()[1]
    legend = axes.legend(
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=2.6,
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.5 / inches),
        ncols=columns,
        columnspacing=1.2,
        borderaxespad=0,
    )
    for text in legend.get_texts():
        text.set(parse_math=False, fontfamily=_families(text.get_text()))
    return legend


def _power_of_ten(value: float, _: Any = None) -> str:
    """1e-3 as 0.001, smaller ones as a power of ten."""
    return f"{value:g}" if value >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")
