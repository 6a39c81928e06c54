"""The telephone game: a sentence handed on from word to word, shaded by what still reaches the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqviz.constants import MODELS
from seqviz.drawing.styles import escape
from seqviz.lab import two_digits
from seqviz.language import Language
from seqviz.ui import cards, curves
from seqviz.ui.service import Service

if TYPE_CHECKING:
    import numpy as np

    from seqviz.lab.gradient import Reach

ENDS = ("forward", "backward")
WIDTH = 460.0
CHAIN_HEIGHT, ARCS_HEIGHT = 22.0, 74.0
FAINTEST = 0.05
"""Opacity of what reaches the end with no strength at all: still to be seen."""


def game(service: Service, text: str, end: str, language: str) -> list[str]:
    """One picture for each model; those that cannot be drawn say why.

    Args:
        text: English, read at once.
        end: one of `ENDS`, the direction in which the recurrent encoders read.
    Raises:
        ValueError: an empty text, or one that is too long to be read at once.
    """
    drawn = []
    for name in MODELS:
        try:
            found = service.reach(name, text)
        except RuntimeError as error:  # the model could not be loaded
            drawn.append(_frame(name, language, cards.problem(str(error))))
        else:
            drawn.append(picture(name, found, end, language))
    return drawn


def picture(name: str, found: Reach, end: str, language: str) -> str:
    """A model's path through the sentence, the sentence in shades, and what they say."""
    say = Language.of(language).say
    shares = found.shares(end)
    count = len(found.words)
    # In the order of reading, whichever direction that is.
    handed = shares if end == "forward" else shares[::-1]
    first = max(1, count // 3)
    kept = say(
        "lab.game_kept" if first > 1 else "lab.game_kept_one",
        count=first,
        percent=percent(float(handed[:first].mean()), language),
    )
    if MODELS[name].is_recurrent:
        steps = say("lab.game_steps", steps=count - 1)
        note = say("lab.game_decoder") if MODELS[name].looks_back else ""
    else:
        steps = say("lab.game_step")
        note = say(f"lab.game_memory_{end}")
    said = Language.of(language).join(part for part in (kept, note) if part)
    alt = say(
        "lab.game_alt",
        model=say(f"model.{name}"),
        first=found.words[0 if end == "forward" else -1],
        share=percent(float(handed[0]), language),
    )
    body = (
        f"{_path(name, shares, end, alt)}{_sentence(found.words, shares, language)}"
        f'<p class="small">{escape(said)}</p>'
    )
    return _frame(name, language, body, steps)


def percent(share: float, language: str) -> str:
    """A share as a percentage with up to two digits that count: 0.0042 → "0.42 %"."""
    said = two_digits(100 * share) if share >= 1e-4 else "< 0.01"
    return Language.of(language).say("lab.game_percent", number=said)


def waiting(language: str) -> list[str]:
    """The pictures before their models have answered."""
    said = f'<p class="waiting">{escape(Language.of(language).say("lab.game_waiting"))}</p>'
    return [_frame(name, language, said) for name in MODELS]


def _frame(name: str, language: str, body: str, aside: str = "") -> str:
    side = f'<p class="small steps">{escape(aside)}</p>' if aside else ""
    return (
        f'<section class="telephone" data-model="{name}"><header><h3>{curves.key(name)}'
        f"{escape(cards.title(name, language))}</h3>{side}</header>{body}</section>"
    )


def _path(name: str, shares: np.ndarray, end: str, alt: str) -> str:
    """Dots for words: joined in a chain, or each by an arc to the end of the sentence."""
    count = len(shares)
    forward = end == "forward"
    height = CHAIN_HEIGHT if MODELS[name].is_recurrent else ARCS_HEIGHT
    foot = height - 11
    goal = WIDTH - 14 if forward else 14.0
    left = 12 if forward else 32
    places = [left + (WIDTH - 44) * (i + 0.5) / count for i in range(count)]
    nexts = [*places[1:], goal] if forward else [goal, *places[:-1]]
    drawn = []
    for place, after, share in zip(places, nexts, shares, strict=True):
        opacity = f'stroke-opacity="{max(FAINTEST, share):.3f}"'
        if MODELS[name].is_recurrent:
            drawn.append(
                f'<line x1="{place:.1f}" x2="{after:.1f}" y1="{foot:g}" y2="{foot:g}" {opacity}/>'
            )
        else:
            top = foot - 12 - 92 * abs(goal - place) / WIDTH
            drawn.append(
                f'<path d="M{place:.1f} {foot:g} Q{(place + goal) / 2:.1f} {top:.1f} '
                f'{goal:.1f} {foot:g}" fill="none" {opacity}/>'
            )
    radius = min(4.0, 150 / count)
    drawn += [
        f'<circle cx="{place:.1f}" cy="{foot:g}" r="{radius:.1f}" '
        f'fill-opacity="{max(FAINTEST, share):.3f}"/>'
        for place, share in zip(places, shares, strict=True)
    ]
    drawn.append(f'<rect x="{goal - 6:.1f}" y="{foot - 6:g}" width="12" height="12" rx="2"/>')
    return (
        f'<svg class="path" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(drawn)}</svg>'
    )


def _sentence(source: tuple[str, ...], shares: np.ndarray, language: str) -> str:
    """The words, each on a ground of the model's colour that is as strong as its share."""
    marked = " ".join(
        f'<span style="--share:{100 * share:.1f}%" title="{escape(percent(float(share), language))}">{escape(word)}</span>'
        for word, share in zip(source, shares, strict=True)
    )
    return f'<p class="passed" lang="en" translate="no">{marked}</p>'
