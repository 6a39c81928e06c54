"""The telephone game: what of a sentence reaches the decoder.

A model with one fixed vector hands each word on, from word to word, to the ends of the sentence and into the
vector: the shades are measured. A decoder that looks back reads each word's own state, one step away:
nothing is handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from seqviz.constants import MODELS
from seqviz.drawing.styles import escape
from seqviz.lab import two_digits
from seqviz.language import Language
from seqviz.ui import cards, curves
from seqviz.ui.service import Service

WIDTH, HEIGHT = 460.0, 64.0
FOOT, BOX = HEIGHT - 10, 13.0
"""Where the words stand, and the middle of the decoder's box."""
FAINTEST = 0.05
"""Opacity of what reaches the decoder with no strength at all: still to be seen."""


def game(service: Service, text: str, language: str) -> list[str]:
    """One picture for each model; those that cannot be drawn say why.

    Args:
        text: English, read at once.
    Raises:
        ValueError: an empty text, or one that is too long to be read at once.
    """
    drawn = []
    for name in MODELS:
        try:
            words, shares = _reached(service, name, text)
        except RuntimeError as error:  # the model could not be loaded
            drawn.append(_frame(name, language, cards.problem(str(error))))
        else:
            drawn.append(picture(name, words, shares, language))
    return drawn


def _reached(
    service: Service, name: str, text: str
) -> tuple[tuple[str, ...], Sequence[float] | None]:
    """The words, and how strongly each acts on the fixed vector; None where the decoder looks back."""
    if MODELS[name].has_one_vector:
        found = service.reach(name, text)
        return found.words, found.shares("vector").tolist()
    from seqviz.looking.reach import read_at_once

    return read_at_once(service.translator(name), text).pieces.words, None


def picture(name: str, words: Sequence[str], shares: Sequence[float] | None, language: str) -> str:
    """The ways of the words to the decoder, the sentence in shades, and what they say.

    Args:
        shares: by word, 0 to 1, the strongest 1; None where each word reaches the decoder by itself.
    """
    say = Language.of(language).say
    model = say(f"model.{name}")
    if shares is None:
        steps, said = say("lab.game_step"), say("lab.game_direct")
        alt = say("lab.game_alt_direct", model=model)
    else:
        # From the middle to the nearer end, then into the vector.
        steps = say("lab.game_steps", steps=(len(words) + 1) // 2)
        weakest = min(range(len(words)), key=lambda i: shares[i])
        said = say("lab.game_kept", percent=percent(median(shares), language))
        share = percent(shares[weakest], language)
        alt = say("lab.game_alt", model=model, word=words[weakest], share=share)
    body = (
        f"{_path(len(words), shares, alt)}{_sentence(words, shares, language)}"
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


def _path(count: int, shares: Sequence[float] | None, alt: str) -> str:
    """Dots for words: joined in a chain whose ends lead to the decoder, or each by a line of its own."""
    places = [12 + (WIDTH - 24) * (i + 0.5) / count for i in range(count)]
    strengths = [1.0] * count if shares is None else [max(FAINTEST, share) for share in shares]
    goal = (WIDTH / 2, BOX)
    if shares is None:
        lines = [((place, FOOT), goal, 1.0) for place in places]
    else:
        lines = [
            ((a, FOOT), (b, FOOT), (one + other) / 2)
            for (a, one), (b, other) in pairwise(zip(places, strengths, strict=True))
        ]
        lines += [((places[0], FOOT), goal, 1.0), ((places[-1], FOOT), goal, 1.0)]
    drawn = [
        f'<line x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}" stroke-opacity="{strength:.3f}"/>'
        for (x1, y1), (x2, y2), strength in lines
    ]
    radius = min(4.0, 150 / count)
    drawn += [
        f'<circle cx="{place:.1f}" cy="{FOOT:g}" r="{radius:.1f}" fill-opacity="{strength:.3f}"/>'
        for place, strength in zip(places, strengths, strict=True)
    ]
    drawn.append(f'<rect x="{goal[0] - 9:g}" y="{BOX - 9:g}" width="18" height="18" rx="3"/>')
    return (
        f'<svg class="path" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(drawn)}</svg>'
    )


def _sentence(words: Sequence[str], shares: Sequence[float] | None, language: str) -> str:
    """The words, each on a ground of the model's colour that is as strong as its share."""
    marked = " ".join(
        f'<span style="--share:{100 * share:.1f}%" title="{escape(percent(share, language))}">{escape(word)}</span>'
        for word, share in zip(words, shares or [1.0] * len(words), strict=True)
    )
    return f'<p class="passed" lang="en" translate="no">{marked}</p>'
