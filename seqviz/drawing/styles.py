"""How models and weights look, wherever they are drawn: colours, dashes, markers, ramps, labels.

Knows no drawing library, so that the page and the figures can share it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from seqviz.constants import MODELS

INK = "#1b1b1f"
"""Colour of all text and axes in figures; on a page it becomes that of the page's text."""
FAINT = "#8b8b93"
"""Colour of what stands back; readable on light and dark paper."""


@dataclass(frozen=True)
class ModelStyle:
    """What tells a model from the others, in colour and without.

    Attributes:
        label: name to print.
        color: "#rrggbb", from the palette of Okabe and Ito.
        dash: lengths of stroke and gap in points; empty for a solid line.
        marker: matplotlib's name of the marker.
        symbol: the marker as a character.
    """

    label: str
    color: str
    dash: tuple[float, ...]
    marker: str
    symbol: str


_LOOKS: dict[str, tuple[str, tuple[float, ...], str, str]] = {
    "rnn": ("#767676", (1.0, 2.0), "s", "▪"),
    "lstm": ("#D55E00", (6.0, 3.0), "o", "●"),
    "lstm-attention": ("#009E73", (), "^", "▲"),
    "transformer": ("#0072B2", (), "s", "■"),
}
MODEL_STYLES = {name: ModelStyle(kind.label, *_LOOKS[name]) for name, kind in MODELS.items()}
"""The four models in historical order."""

OTHER_STYLES = (
    ModelStyle("", "#CC79A7", (4.0, 2.0, 1.0, 2.0), "D", "◆"),
    ModelStyle("", "#56B4E9", (8.0, 2.0), "v", "▼"),
    ModelStyle("", "#8C6D00", (3.0, 1.5), "P", "✚"),
)


def style_of(name: str, number: int = 0) -> ModelStyle:
    """The style of a model; one of the project's own by name, any other by `number`."""
    if name in MODEL_STYLES:
        return MODEL_STYLES[name]
    other = OTHER_STYLES[number % len(OTHER_STYLES)]
    return ModelStyle(name, other.color, other.dash, other.marker, other.symbol)


# ---------------------------------------------------------------------------------------------
# Ramps

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#1d2024"
"""What a weight of 0 looks like on a light and on a dark page."""


@lru_cache(maxsize=64)
def ramp(color: str, dark: bool = False) -> np.ndarray:
    """Colours from paper through `color` to a darker (on dark paper: lighter) shade of it.

    Lightness changes evenly from end to end, so that equal steps of weight look equal; the hue stays.

    Args:
        color: "#rrggbb".
        dark: for a dark page.
    Returns:
        (256, 3) of uint8; read only.
    """
    paper = _to_oklab(DARK_PAPER if dark else LIGHT_PAPER)
    middle = _to_oklab(color)
    end_lightness = 0.86 if dark else 0.30
    lightness = np.linspace(paper[0], end_lightness, 256)
    # Most colourful where the lightness is that of the model's colour, half as colourful at the end.
    peak = (middle[0] - paper[0]) / (end_lightness - paper[0])
    peak = float(np.clip(peak, 0.25, 0.75))
    chroma = np.interp(np.linspace(0, 1, 256), [0, peak, 1], [0, 1, 0.55])
    return _freeze(_to_srgb(np.stack([lightness, chroma * middle[1], chroma * middle[2]], axis=1)))


@lru_cache(maxsize=4)
def diverging_ramp(dark: bool = False) -> np.ndarray:
    """Colours for numbers from -1 to 1: purple, paper, orange. (256, 3) of uint8; read only."""
    negative, positive = ramp("#7B5AA6", dark), ramp("#C8791B", dark)
    return _freeze(np.concatenate([negative[::-2], positive[::2]]))


def _freeze(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


# Björn Ottosson's OKLab (2020), in which equal distances look about equal.
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _to_oklab(color: str) -> np.ndarray:
    if not re.fullmatch("#[0-9a-fA-F]{6}", color):
        raise ValueError(f"expected a colour as #rrggbb, got {color!r}")
    srgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return _TO_LAB @ np.cbrt(_TO_LMS @ linear)


def _to_srgb(oklab: np.ndarray) -> np.ndarray:
    lms = (oklab @ np.linalg.inv(_TO_LAB).T) ** 3
    linear = np.clip(lms @ np.linalg.inv(_TO_LMS).T, 0, 1)
    srgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(srgb * 255).astype(np.uint8)


# ---------------------------------------------------------------------------------------------
# Labels

_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    """`text` as markup: ``& < > " '`` escaped, and what markup may not hold replaced by U+FFFD."""
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def visible(text: str) -> str:
    """`text` as a label: what no font shows or XML forbids becomes U+FFFD, an empty or blank text "␣"."""
    return _INVISIBLE.sub("\ufffd", text) if text.strip(" \u00a0\u3000") else "␣"


def shorten(text: str, length: int = 24) -> str:
    """`text` with its middle cut out if it is longer than `length` characters."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def label_width(text: str) -> float:
    """Rough width of a label in em: Chinese 1, a narrow letter less, a combining mark nothing."""
    total = 0.0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in (
            "Mn",
            "Me",
            "Cf",
        ):
            continue
        if unicodedata.east_asian_width(character) in "WF":
            total += 1.0
        elif character in "iljtfI.,;:'!|() ":
            total += 0.33
        elif character in "mwMW@%—":
            total += 0.87
        else:
            total += 0.68 if character.isupper() else 0.56
    return total
