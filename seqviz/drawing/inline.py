"""An SVG file as an element of a page: the page's colours and fonts, light or dark."""

from __future__ import annotations

import re
from html import escape

from seqviz.drawing.styles import FAINT, INK, MODEL_STYLES

_PAGE_COLOURS = {
    INK: "currentColor",
    FAINT: f"var(--faint, {FAINT})",
    **{
        style.color.lower(): f"var(--{name}, {style.color.lower()})"
        for name, style in MODEL_STYLES.items()
    },
}
"""Colours of a figure by those of the page, which knows a model's by its name."""
_UNUSED_ID = re.compile(
    r' id="(?:figure|axes|patch|matplotlib\.axis|[xy]tick|line2d|text|legend'
    r'|PolyCollection|FillBetweenPolyCollection|LineCollection|QuadMesh)_\d+"'
)
"""Of groups that nothing refers to; two figures on a page would have the same ones."""


def as_element(svg: str, label: str = "") -> str:
    """A figure as an ``<svg>`` element: as wide as its box, no paper of its own.

    Args:
        svg: content of a file that `figures.save` wrote.
        label: what the picture shows, for a reader who does not see it.
    Raises:
        ValueError: no SVG.
    """
    if "<svg" not in svg:
        raise ValueError(f"expected an SVG file, got {svg[:40]!r}")
    text = svg[svg.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    # A style sheet would hold for the whole page.
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    # The first patch is the paper.
    text = re.sub(r'style="fill: #ffffff"', 'style="fill: none"', text, count=1)
    text = re.sub(r" font-family: [^;\"]*;", "", text)
    text = _UNUSED_ID.sub("", text)
    # Matplotlib leaves out fill where it is black; ours never is, so every colour is written out.
    for color, by_page in _PAGE_COLOURS.items():
        text = text.replace(color, by_page)
    style = (
        'style="display:block;width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt" '
        'role="img"'
    )
    return text.replace("<svg ", f'<svg {style} aria-label="{escape(label)}" ', 1)
