"""A picture to send on: a sentence, and how many of its words each model's output has."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from seqviz.drawing.figures.base import LabelledFigure, families, in_own_style
from seqviz.drawing.names import name_of
from seqviz.drawing.styles import FAINT, INK, label_width, shorten, style_of, visible

WIDTH, HEIGHT = 12.0, 6.3
"""Inches; at 100 pixels an inch the size in which links are shown elsewhere."""
LINES, LINE_WIDTH = 4, 34.0
"""Most lines of the sentence, and their width in em."""


@in_own_style
def share_card(
    sentence: str,
    found: Mapping[str, tuple[int, int] | None],
    link: str = "",
    *,
    language: str = "en",
) -> Figure:
    """A card with one's own sentence.

    Args:
        sentence: English; cut after some lines.
        found: by model, words found and words looked for; None where there was nothing to look for.
        link: printed at the foot.
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
    left = 0.055
    figure.text(left, 0.9, "seqviz", fontsize=15, fontweight="bold", color="#5f636a", va="center")
    title = figure.text(left, 0.82, "", fontsize=25, color=INK, va="center")
    figure.say(title, "title").set_fontweight("bold" if language == "en" else "normal")
    lines = wrapped(f"“{' '.join(sentence.split())}”", LINE_WIDTH, LINES)
    for number, line in enumerate(lines):
        figure.text(
            left,
            0.715 - 0.068 * number,
            visible(line),
            fontsize=20,
            color=INK,
            va="center",
            parse_math=False,
            fontfamily=families(line),
        )
    top, step = 0.37, 0.078
    for number, (name, counts) in enumerate(found.items()):
        style, y = style_of(name, number), top - step * number
        label = figure.text(
            left, y, name_of(name, language), fontsize=16, color=INK, va="center", parse_math=False
        )
        label.set_fontfamily(families(label.get_text()))
        start, full = 0.27, 0.43
        for share, color in (
            (1.0, "#dcd9d0"),
            (counts[0] / counts[1] if counts and counts[1] else 0, style.color),
        ):
            figure.add_artist(
                Rectangle((start, y - 0.016), full * share, 0.032, facecolor=color, linewidth=0)
            )
        said = figure.text(0.725, y, "", fontsize=16, color=INK, va="center")
        if counts and counts[1]:
            figure.say(said, "found", found=counts[0], judged=counts[1])
        else:
            figure.say(said, "unknown")
    figure.say(figure.text(left, 0.065, "", fontsize=11.5, color="#5f636a", va="center"), "note")
    if link:
        figure.text(
            0.945,
            0.9,
            visible(shorten(link, 60)),
            fontsize=12,
            color=FAINT,
            ha="right",
            va="center",
            parse_math=False,
        )
    return figure


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
