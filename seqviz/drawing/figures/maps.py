"""Attention maps and the one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text

from seqviz.drawing.figures.base import (
    LabelledFigure,
    changed_settings,
    families,
    in_own_style,
)
from seqviz.drawing.names import ending, name_of, which
from seqviz.drawing.styles import FAINT, INK, diverging_ramp, ramp, shorten, style_of, visible
from seqviz.language import Language
from seqviz.maps import AttentionMap

TEXTS = "attention.figure"
"""Table of the words of all figures here."""


@in_own_style
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
    figure = LabelledFigure(1, 1, language, TEXTS)
    _lay_out(figure, [_AttentionPanel(figure, map, layer, head, title, color_max)])
    return figure


@in_own_style
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
    figure = LabelledFigure(1, 1, language, TEXTS)
    _lay_out(figure, [_AttentionPanel(figure, *one, None, color_max) for one in maps])
    return figure


def _lay_out(figure: LabelledFigure, panels: Sequence[_AttentionPanel]) -> None:
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
        figure: LabelledFigure,
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
        self.ending = ending(map.languages)
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
            with changed_settings():  # `save` says which characters no font has
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
            self.heading.set(text=shown, parse_math=False, fontfamily=families(shown))
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
        style: dict[str, Any] = {
            "parse_math": False,
            "fontfamily": families("".join(map.source_tokens + map.target_tokens), map.languages),
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
            **style,
        )
        axes.set_yticks(range(self.rows), labels[1], **style)
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
        for axis, key, otherwise, x, y in (
            ("x", f"source_{self.kind}{self.ending}", "source", start, height - gap - 1.7 * line),
            ("y", f"target_{self.kind}{self.ending}", "target", left + gap, foot + high / 2),
        ):
            text = figure.text(x / width, y / height, "", fontsize=self.size, color=FAINT)
            figure.say(text, key if figure.knows(key) else otherwise)
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
    figure: LabelledFigure, text: Text, map: AttentionMap, layer: int | None, head: int | None
) -> None:
    def words(spoken: Language) -> str:
        return f"{name_of(map.model, spoken)} · {which(map, layer, head, spoken)}"

    figure.say_by(text, words)


@in_own_style
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
    figure = LabelledFigure(8, 1.9, language, TEXTS)
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
        figure.say_by(
            heading,
            lambda spoken: f"{name_of(model, spoken)} · {spoken.within(TEXTS).say('vector')}",
        )
    else:
        heading.set(text=visible(title), parse_math=False, fontfamily=families(title))
    bar = figure.add_axes((0.895, 0.3, 0.014, 0.42))
    colorbar = figure.colorbar(image, cax=bar)
    colorbar.set_ticks([-1, 0, 1], labels=["−1", "0", "1"])
    bar.tick_params(labelsize=9, color=FAINT, labelcolor=INK, length=2, width=0.6)
    colorbar.outline.set(edgecolor=FAINT, linewidth=0.6)  # type: ignore[operator]
    return figure
