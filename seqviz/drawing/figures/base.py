"""What all figures are made of: the figure that knows its words, axes, legends, fonts, files."""

from __future__ import annotations

import io
import os
import re
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec

import numpy as np
from matplotlib import font_manager, rc_context, rcParams, rcParamsDefault
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from seqviz.drawing.inline import as_element
from seqviz.drawing.styles import FAINT, INK, ModelStyle, visible
from seqviz.language import Language

BASE_FONT = "DejaVu Sans"
"""Comes with matplotlib."""


class LabelledFigure(Figure):
    """A figure that knows the English of its own words, for files that no Chinese font can serve.

    Args:
        width, height: in inches.
        language: "en" or "zh".
        table: of texts, which holds all words of this figure.
    Raises:
        ValueError: an unknown language.
    """

    def __init__(self, width: float, height: float, language: str | Language, table: str) -> None:
        self.language, self.table = Language.of(language), table
        super().__init__(figsize=(width, height), dpi=100, facecolor="white")
        self.english: list[tuple[Text, str]] = []
        self.named: dict[Artist, tuple[str, dict[str, Any]]] = {}

    def knows(self, key: str) -> bool:
        """The figure's table has this text."""
        return key in self.language.within(self.table)

    def say(self, text: Text, key: str, **values: Any) -> Text:
        """Give `text` the words of `key`; remember them in English."""
        return self.say_by(text, lambda spoken: spoken.within(self.table).say(key, **values))

    def say_by(self, text: Text, words: Callable[[Language], str]) -> Text:
        """Give `text` what is said in a language; remember it in English."""
        said, english = words(self.language), words(Language.of("en"))
        text.set(text=said, parse_math=False, fontfamily=families(said))
        if said != english:
            self.english.append((text, english))
        return text

    def name(self, drawn: Artist, key: str, **values: Any) -> None:
        """Say in the legend what is drawn."""
        drawn.set_label(self.language.within(self.table).say(key, **values))
        self.named[drawn] = key, values

    def draw(self, renderer: Any) -> None:
        with own_settings():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        with own_settings():
            super().savefig(fname, **options)


def clean_axes(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.8)
    axes.tick_params(color=FAINT, labelcolor=INK, labelsize=9, length=3, width=0.8)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.patch.set_alpha(0)


def add_line(
    axes: Axes, x: np.ndarray, y: np.ndarray, style: ModelStyle, *, zorder: float, label: str = "_"
) -> Line2D:
    """A model's line with its markers; without a label it is in no legend until it is named."""
    [line] = axes.plot(
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
    return line


def add_legend(axes: Axes, above: bool = False) -> Legend:
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
    _say_legend(axes, legend)
    return legend


def add_legend_below(axes: Axes, columns: int) -> Legend:
    """Under the axes' own label, where it can hide nothing."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
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
    _say_legend(axes, legend)
    return legend


def _say_legend(axes: Axes, legend: Legend) -> None:
    """Give a legend the words by which what is drawn was named, in fonts that have them."""
    figure = axes.get_figure()
    drawn, _ = axes.get_legend_handles_labels()
    for text, artist in zip(legend.get_texts(), drawn, strict=True):
        text.set(parse_math=False, fontfamily=families(text.get_text()))
        if isinstance(figure, LabelledFigure) and artist in figure.named:
            key, values = figure.named[artist]
            figure.say(text, key, **values)


def power_of_ten(value: float, _: Any = None) -> str:
    """1e-3 as 0.001, smaller ones as a power of ten."""
    return f"{value:g}" if value >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")


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


_FONTS_OF = {
    "ja": ("Noto Sans CJK JP", "Noto Sans JP", "Source Han Sans JP", "Hiragino Sans", "Yu Gothic"),
    "ko": ("Noto Sans CJK KR", "Noto Sans KR", "Source Han Sans KR", "Apple SD Gothic Neo"),
}
"""Languages that draw some Chinese characters otherwise than Chinese does, with fonts that do so."""


def _choose_fonts(
    characters: Iterable[str], languages: Iterable[str] = ()
) -> tuple[list[str], set[str]]:
    """Families that together have the characters, base font first, and the characters that none has.

    Args:
        languages: codes of ISO 639-1, whose own fonts come before the others.
    """
    own = [name for code in languages for name in _FONTS_OF.get(code, ())]
    fonts = _fonts()[:1] + tuple(sorted(_fonts()[1:], key=lambda font: font[0] not in own))
    wanted = {
        ord(c)
        for c in characters
        if not c.isspace() and unicodedata.category(c) not in ("Cf", "Mn", "Me")
    }
    families: list[str] = []
    for family, file in fonts:
        has = _characters(file)
        if not families or wanted & has:
            families.append(family)
            wanted = wanted - has
        if not wanted:
            break
    return families, {chr(c) for c in wanted}


def families(text: str, languages: Iterable[str] = ()) -> list[str]:
    """Of fonts that together have the characters of a text."""
    return [*_choose_fonts(set(visible(text)), languages)[0], "sans-serif"]


# ---------------------------------------------------------------------------------------------
# Files

_LOCK = threading.RLock()
_WINDOWS = ("backend", "interactive")  # asking for the backend would choose one
_FILES = ("svg.", "pdf.", "ps.", "savefig.bbox", "savefig.pad", "savefig.dpi", "savefig.format")
_SAVED = {"svg.fonttype": "none", "svg.hashsalt": "seqviz", "pdf.fonttype": 42}

P = ParamSpec("P")


@contextmanager
def changed_settings(changed: Any = None) -> Iterator[None]:
    """Other settings of matplotlib for a moment, and no warning about missing glyphs.

    Settings and warning filters belong to the whole process. Without the lock one thread puts back what
    another still needs, and a thread's SVG has outlines for text.
    """
    with _LOCK, rc_context(changed) if changed else nullcontext(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@contextmanager
def own_settings(
    changed: dict[str, Any] | None = None, kept: tuple[str, ...] = _FILES
) -> Iterator[None]:
    """The settings that matplotlib comes with, whatever style the caller has, and those of `changed`.

    Args:
        kept: beginnings of the names that stay as the caller has them: what a file holds, such as letters
            or outlines.
    """
    with _LOCK:
        wanted = {
            name: value
            for name, value in dict.items(rcParamsDefault)
            if not name.startswith(_WINDOWS + kept) and dict.__getitem__(rcParams, name) != value
        }
        with changed_settings({**wanted, **(changed or {})}):
            yield


def in_own_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """The function draws alike in every style of the caller, and leaves the style as it was."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with own_settings():
            return draw(*args, **kwargs)

    return drawn


def save(
    figure: Figure,
    target: str | os.PathLike[str] | IO[Any],
    format: str | None = None,
    *,
    dpi: float = 200,
    language: str | Language = "en",
) -> str | None:
    """Write a figure. Text in an SVG stays text, so that the reader's fonts draw it.

    Args:
        figure: from a function above, or any other.
        target: a path, or a file object open for bytes.
        format: "png", "svg" or "pdf"; None takes it from the path's ending.
        dpi: of a PNG.
        language: of the sentence that is returned.
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
    spoken, said = Language.of(language), []
    replaced: list[tuple[Text, str]] = []
    if format != "svg":
        own = getattr(figure, "english", [])
        if any(_choose_fonts(text.get_text())[1] for text, _ in own):
            for text, english in own:
                replaced.append((text, text.get_text()))
                text.set_text(english)
            said.append(spoken.say("figure.in_english"))
        missing = _missing_characters(figure)
        if missing:
            shown = " ".join(sorted(missing)[:20])
            said.append(spoken.say("figure.boxes", shown=shown))
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[
        format
    ]
    own = isinstance(figure, LabelledFigure)
    try:
        with own_settings(_SAVED, kept=()) if own else changed_settings(_SAVED):
            figure.savefig(
                target, format=format, dpi=72 if format == "svg" else dpi, metadata=metadata
            )
    finally:
        for text, words in replaced:
            text.set_text(words)
    return spoken.join(said, "clauses") or None


def _missing_characters(figure: Figure) -> set[str]:
    texts = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    return _choose_fonts({c for text in texts if text.get_visible() for c in text.get_text()})[1]


def inline_svg(figure: Figure, label: str = "") -> str:
    """A figure as an ``<svg>`` element for a page; see `seqviz.drawing.inline.as_element`.

    Args:
        figure: from a function above.
        label: what the picture shows, for a reader who does not see it.
    """
    buffer = io.BytesIO()
    save(figure, buffer, "svg")
    return as_element(buffer.getvalue().decode(), label)
