"""A picture to send on: a sentence, and what each model made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from seqviz.drawing.figures.base import LabelledFigure, families, in_own_style
from seqviz.drawing.names import name_of
from seqviz.drawing.styles import FAINT, INK, label_width, shorten, style_of, visible

WIDTH, HEIGHT = 12.0, 6.3
"""Inches; at 100 pixels an inch the size in which links are shown elsewhere."""
LINES, LINE_WIDTH = 2, 42.0
"""Most lines of the sentence, and their width in em."""
SOFT = "#5f636a"
LEFT, RIGHT = 0.05, 0.95
FIRST_LANE, LANE = 0.715, 0.163
"""Where the first lane begins, and the height of one, in shares of the card."""


@in_own_style
def share_card(
    sentence: str,
    found: Mapping[str, tuple[int, int] | None],
    link: str = "",
    *,
    outputs: Mapping[str, Sequence[str]] | None = None,
    language: str = "en",
) -> Figure:
    """A card with one's own sentence.

    Args:
        sentence: English; cut after some lines.
        found: by model, words found and words looked for; None where there was nothing to look for.
        link: printed at the head.
        outputs: by model, what it wrote and what that means; each on a line of its own, cut at its end.
        language: "en" or "zh".
    Raises:
        ValueError: no model, more found than looked for, an unknown language.
    """
    if not found:
        raise ValueError("expected words found of at least one model, got none")
    for name, counts in found.items():
        if counts is not None and not 0 <= counts[0] <= counts[1]:
            raise ValueError(
                f"expected words found from 0 to {counts[1]} of {name}, got {counts[0]}"
            )
    figure = LabelledFigure(WIDTH, HEIGHT, language, "card.figure")
    figure.set_facecolor("#faf9f6")
    title = figure.text(LEFT, 0.935, "", fontsize=19, color=INK, va="center")
    figure.say(title, "title").set_fontweight("bold" if language == "en" else "normal")
    named = f"seqviz · {shorten(link, 50)}" if link else "seqviz"
    _write(figure, RIGHT, 0.935, named, 12, FAINT).set_horizontalalignment("right")
    for number, line in enumerate(wrapped(f"“{' '.join(sentence.split())}”", LINE_WIDTH, LINES)):
        _write(figure, LEFT, 0.85 - 0.062 * number, line, 17, INK)
    for number, (name, counts) in enumerate(found.items()):
        top = FIRST_LANE - LANE * number
        _lane(figure, top, style_of(name, number).color, name_of(name, language), counts)
        for line, (text, size, color) in enumerate(
            zip((outputs or {}).get(name, ()), (13.5, 12), (INK, SOFT), strict=False)
        ):
            cut = wrapped(" ".join(text.split()), 50.0 * 14 / size, 1)
            _write(
                figure,
                LEFT + 0.02,
                top - 0.06 - 0.047 * line,
                "".join(cut).rstrip("”"),
                size,
                color,
            )
    figure.say(figure.text(LEFT, 0.04, "", fontsize=10.5, color=SOFT, va="center"), "note")
    return figure


def _lane(
    figure: LabelledFigure, top: float, color: str, name: str, counts: tuple[int, int] | None
) -> None:
    """Mark and name, a bar of the words found, and how many they are."""
    figure.add_artist(Rectangle((LEFT, top - 0.115), 0.006, 0.14, facecolor=color, linewidth=0))
    _write(figure, LEFT + 0.02, top, name, 13, INK).set_fontweight("bold")
    start, full = 0.62, 0.15
    share = counts[0] / counts[1] if counts and counts[1] else 0
    for width, shade in ((1.0, "#dcd9d0"), (share, color)):
        bar = Rectangle((start, top - 0.012), full * width, 0.024, facecolor=shade, linewidth=0)
        figure.add_artist(bar)
    said = figure.text(RIGHT, top, "", fontsize=12, color=INK, va="center", ha="right")
    if counts and counts[1]:
        figure.say(said, "found", found=counts[0], judged=counts[1])
    else:
        figure.say(said, "unknown")


def _write(figure: Figure, x: float, y: float, text: str, size: float, color: str) -> Text:
    """Text as it is, in a font that has its letters."""
    return figure.text(
        x,
        y,
        visible(text),
        fontsize=size,
        color=color,
        va="center",
        parse_math=False,
        fontfamily=families(text),
    )


def wrapped(text: str, width: float, most: int) -> list[str]:
    """Lines of a text, cut between words or, where one is longer than a line, inside it.

    Args:
        width: of a line, in em.
        most: lines; the last one ends in "…" where something is left out.
    """
    lines, line = [], ""
    for word in text.split(" "):
        while label_width(word) > width:  # longer than a line
            part = word
            while label_width(f"{line} {part}".strip()) > width and part:
                part = part[:-1]
            line = f"{line} {part}".strip()
            word = word[len(part) :]
            lines.append(line)
            line = ""
        joined = f"{line} {word}".strip()
        if label_width(joined) > width:
            lines.append(line)
            line = word
        else:
            line = joined
    if line:
        lines.append(line)
    if len(lines) > most:
        last = lines[most - 1]
        lines = [*lines[: most - 1], f"{last.rstrip('.,;: ')} …”"]
    return lines
