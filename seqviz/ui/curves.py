"""A small line plot as inline SVG: the browser draws it, in its own fonts and in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from seqviz.drawing.styles import MODEL_STYLES, escape

WIDTH, HEIGHT = 460.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 34.0, 10.0, 12.0, 42.0

Point = tuple[float, float]


def curves(
    points: Mapping[str, Sequence[Point]],
    *,
    ticks: Sequence[int],
    axis: str,
    alt: str,
    bands: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
    thin: Collection[float] = (),
    histogram: Sequence[float] = (),
    marker: bool = False,
    step: float | None = None,
) -> str:
    """Curves of the models over sentence length.

    Args:
        points: (words, score) by model, in ascending order; scores 0 to 100, unless `step` is given.
        ticks: word counts marked on the horizontal axis; the first and the last are its ends.
        axis: its label.
        alt: what the picture shows, for those who do not see it.
        bands: (words, low, high) by model.
        thin: words at which a score rests on few sentences: drawn in grey.
        histogram: how many sentences of 0, 1, 2, … words there are, drawn faintly behind.
        marker: draw a vertical line at the CSS variable ``--words``.
        step: between the lines of the grid, for values other than scores.
    """
    bands = bands or {}
    scores = [score for model in points.values() for _, score in model]
    scores += [high for band in bands.values() for _, _, high in band]
    most = max(scores, default=0.0)
    if step:
        top = step * math.ceil(most / step)
    else:
        step = 20 if most > 40 else 10
        top = min(100.0, max(20.0, step * math.ceil(most / step)))
    low, high = min(ticks), max(ticks)
    floor = HEIGHT - BOTTOM

    def x(words: float) -> float:
        return x_of(words, low, high)

    def y(score: float) -> float:
        return TOP + (floor - TOP) * (1.0 - min(score, top) / top)

    parts = []
    if shown := [(x(n), count) for n, count in enumerate(histogram) if low <= n <= high]:
        scale = 0.22 * (floor - TOP) / max(1.0, *(count for _, count in shown))
        outline = " ".join(f"{a:.1f},{floor - scale * count:.1f}" for a, count in shown)
        ends = f"{shown[0][0]:.1f},{floor:g} {outline} {shown[-1][0]:.1f},{floor:g}"
        parts.append(f'<polygon class="histogram" points="{ends}"/>')
    for score in (step * line for line in range(round(top / step) + 1)):
        parts.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y(score):.1f}" '
            f'y2="{y(score):.1f}"/><text x="{LEFT - 7:g}" y="{y(score) + 4:.1f}" '
            f'text-anchor="end">{score:g}</text>'
        )
    for tick in ticks:
        parts.append(
            f'<text x="{x(tick):.1f}" y="{floor + 18:g}" text-anchor="middle">{tick}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 5:g}" '
        f'text-anchor="middle">{escape(axis)}</text>'
    )
    if marker:
        origin, unit = x(0), x(1) - x(0)
        parts.append(
            f'<line class="marker" style="--origin:{origin:.2f}px;--unit:{unit:.3f}px" '
            f'x1="0" x2="0" y1="{TOP:g}" y2="{floor:g}"/>'
        )
    for model, band in bands.items():
        edge = [(x(at), y(above)) for at, _, above in band]
        edge += [(x(at), y(below)) for at, below, _ in reversed(band)]
        outline = " ".join(f"{a:.1f},{b:.1f}" for a, b in edge)
        parts.append(f'<polygon points="{outline}" fill="var(--{model})" fill-opacity="0.13"/>')
    for model, curve in points.items():
        for grey, run in _runs(curve, thin):
            line = " ".join(f"{x(words):.1f},{y(score):.1f}" for words, score in run)
            parts.append(f'<polyline points="{line}" {stroke(model, grey)}/>')
        parts += [symbol(model, x(words), y(s), words in thin) for words, s in curve]
    return (
        f'<svg class="curves" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(parts)}</svg>'
    )


def _runs(curve: Sequence[Point], thin: Collection[float]) -> list[tuple[bool, list[Point]]]:
    """Pieces of a curve, and whether each is grey: it has a thin point at one of its ends."""
    runs: list[tuple[bool, list[Point]]] = []
    for start, end in pairwise(curve):
        grey = start[0] in thin or end[0] in thin
        if runs and runs[-1][0] == grey:
            runs[-1][1].append(end)
        else:
            runs.append((grey, [start, end]))
    return runs


def x_of(words: float, low: float, high: float) -> float:
    """Where a number of words lies in the picture whose ticks go from `low` to `high`."""
    return LEFT + 10 + (WIDTH - LEFT - RIGHT - 20) * (words - low) / max(1.0, high - low)


def stroke(model: str, thin: bool = False) -> str:
    """Attributes of a model's line; grey and fine where it rests on few sentences."""
    dash = " ".join(f"{1.2 * length:g}" for length in MODEL_STYLES[model].dash)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    color, width = ("var(--faint)", 1) if thin else (f"var(--{model})", 2)
    return f'fill="none" stroke="{color}" stroke-width="{width}" stroke-linecap="round"{dashed}'


def symbol(model: str, x: float, y: float, thin: bool = False) -> str:
    """A model's marker; hollow and grey where it rests on few sentences."""
    fill = 'fill="var(--paper)" stroke="var(--faint)"' if thin else f'fill="var(--{model})"'
    shape = MODEL_STYLES[model].symbol
    if shape == "▪":
        return f'<rect x="{x - 2.5:.1f}" y="{y - 2.5:.1f}" width="5" height="5" {fill}/>'
    if shape == "●":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {fill}/>'
    if shape == "▲":
        corners = f"{x:.1f},{y - 5:.1f} {x + 4.6:.1f},{y + 3.6:.1f} {x - 4.6:.1f},{y + 3.6:.1f}"
        return f'<polygon points="{corners}" {fill}/>'
    return f'<rect x="{x - 3.7:.1f}" y="{y - 3.7:.1f}" width="7.4" height="7.4" {fill}/>'


def key(model: str) -> str:
    """A short piece of a model's line with its marker, for a legend."""
    return (
        f'<svg class="key" viewBox="0 0 34 12" aria-hidden="true">'
        f'<line x1="2" x2="32" y1="6" y2="6" {stroke(model)}/>{symbol(model, 17, 6)}</svg>'
    )
