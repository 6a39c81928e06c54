"""A small line plot as inline SVG: the browser draws it, in its own fonts and in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from seqviz.styles import MODEL_STYLES

WIDTH, HEIGHT = 460.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 34.0, 14.0, 12.0, 42.0

Point = tuple[float, float]


def curves(
    points: Mapping[str, Sequence[Point]],
    *,
    ticks: Sequence[int],
    axis: str,
    alt: str,
    bands: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
    marker: bool = False,
) -> str:
    """Curves of the models over sentence length.

    Args:
        points: (words, score) by model, in ascending order; scores 0 to 100.
        ticks: word counts marked on the horizontal axis.
        axis: its label.
        alt: what the picture shows, for those who do not see it.
        bands: (words, low, high) by model.
        marker: draw a vertical line at the CSS variable ``--at``, which is an x of this picture.
    """
    bands = bands or {}
    scores = [score for model in points.values() for _, score in model]
    scores += [high for band in bands.values() for _, _, high in band]
    top = min(100.0, max(40.0, 20.0 * math.ceil(max(scores, default=0.0) / 20.0)))
    low, high = min(ticks), max(ticks)

    def x(words: float) -> float:
        return x_of(words, low, high)

    def y(score: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - score / top)

    parts = []
    for score in range(0, int(top) + 1, 20):
        parts.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y(score):.1f}" '
            f'y2="{y(score):.1f}"/><text x="{LEFT - 7:g}" y="{y(score) + 4:.1f}" '
            f'text-anchor="end">{score}</text>'
        )
    for tick in ticks:
        parts.append(
            f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18:g}" text-anchor="middle">{tick}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6:g}" '
        f'text-anchor="middle">{escape(axis)}</text>'
    )
    if marker:
        parts.append(f'<line class="marker" x1="0" x2="0" y1="{TOP:g}" y2="{HEIGHT - BOTTOM:g}"/>')
    for model, band in bands.items():
        edge = [(x(at), y(above)) for at, _, above in band]
        edge += [(x(at), y(below)) for at, below, _ in reversed(band)]
        outline = " ".join(f"{a:.1f},{b:.1f}" for a, b in edge)
        parts.append(f'<polygon points="{outline}" fill="var(--{model})" fill-opacity="0.13"/>')
    for model, curve in points.items():
        at = [(x(words), y(score)) for words, score in curve]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in at)
        parts.append(f'<polyline points="{line}" {stroke(model)}/>')
        parts += [symbol(model, a, b) for a, b in at]
    return (
        f'<svg class="curves" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(parts)}</svg>'
    )


def x_of(words: float, low: float, high: float) -> float:
    """Where a number of words lies in the picture whose ticks go from `low` to `high`."""
    return LEFT + 10 + (WIDTH - LEFT - RIGHT - 20) * (words - low) / max(1.0, high - low)


def stroke(model: str) -> str:
    """Attributes of a model's line."""
    dash = " ".join(f"{1.2 * length:g}" for length in MODEL_STYLES[model].dash)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" stroke="var(--{model})" stroke-width="2" stroke-linejoin="round"{dashed}'


def symbol(model: str, x: float, y: float) -> str:
    """A model's marker."""
    fill = f'fill="var(--{model})"'
    if model == "rnn":
        return f'<rect x="{x - 2.5:.1f}" y="{y - 2.5:.1f}" width="5" height="5" {fill}/>'
    if model == "lstm":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {fill}/>'
    if model == "lstm-attention":
        corners = f"{x:.1f},{y - 5:.1f} {x + 4.6:.1f},{y + 3.6:.1f} {x - 4.6:.1f},{y + 3.6:.1f}"
        return f'<polygon points="{corners}" {fill}/>'
    return f'<rect x="{x - 3.7:.1f}" y="{y - 3.7:.1f}" width="7.4" height="7.4" {fill}/>'


def key(model: str) -> str:
    """A short piece of a model's line with its marker, for a legend."""
    return (
        f'<svg class="key" viewBox="0 0 34 12" aria-hidden="true">'
        f'<line x1="2" x2="32" y1="6" y2="6" {stroke(model)}/>{symbol(model, 17, 6)}</svg>'
    )
