"""Markup of a translation: its words, and what happened to it.

Every string from a person or a model passes `html.escape` here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from seqviz.constants import MODELS
from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.translating.notes import Note, merged, said
from seqviz.translating.output import french_for_display, repeated_spans

if TYPE_CHECKING:
    from seqviz.translating.result import Translation


def title(model: str, language: str) -> str:
    """ "2015 · LSTM + attention", plain text."""
    return f"{MODELS[model].year} · {Language.of(language).say(f'model.{model}')}"


# ---------------------------------------------------------------------------------------------
# The words of a translation


def french(text: str) -> str:
    """French typography for reading, plain text."""
    return french_for_display(text)


Meanings = Callable[[str], Sequence[str]]
"""English meanings of a French word; none where they are not known."""


def target(
    text: str, language: str, meanings: Meanings | None = None, invented: Collection[str] = ()
) -> str:
    """A French text as markup, what it repeats underlined.

    A word's title holds its English meanings where `meanings` knows them.

    Args:
        invented: numbers that the source has not; they are marked.
    """
    words = text.split()
    repeated: set[int] = set()
    for start, end in repeated_spans(words):
        repeated.update(range(start, end))

    def word(index: int) -> str:
        shown = escape(french(words[index]))
        if holds_number(words[index], invented):
            return f'<b class="wrong">{shown}</b>'
        known = meanings(words[index]) if meanings else ()
        if not known:
            return shown
        said = Language.of(language).say("card.meaning", text=", ".join(known))
        return f'<span title="{escape(said)}">{shown}</span>'

    runs = []
    for again, group in groupby(range(len(words)), key=lambda index: index in repeated):
        run = " ".join(map(word, group))
        runs.append(f'<span class="again">{run}</span>' if again else run)
    return " ".join(runs)


def holds_number(word: str, numbers: Collection[str]) -> bool:
    """One of these numbers, or a group of its digits, stands in the word."""
    groups = (re.escape(group) for number in numbers for group in number.split())
    return any(re.search(rf"(?<!\d){group}(?!\d)", word) for group in groups)


# ---------------------------------------------------------------------------------------------
# What happened


def notes(
    told: Iterable[Note], language: str, *, elsewhere: Collection[str] = ("language",)
) -> str:
    """What a reader should know, each kind once, as a list; empty where nothing happened.

    Args:
        elsewhere: kinds that the page says in another place.
    """
    shown = [said(note, language) for note in merged(told) if note.kind not in elsewhere]
    if not shown:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in shown)
    return f'<ul class="notes">{items}</ul>'


def problem(message: str) -> str:
    """An error, as what it says."""
    return f'<p class="problem" role="alert">{escape(message)}</p>'


# ---------------------------------------------------------------------------------------------
# Numbers


def budget(training: dict[str, Any], language: str) -> str:
    """Training budget and overall score, as markup."""
    say = Language.of(language).say
    tokens = training.get("target_tokens")
    score = training.get("dev_bleu") or {}
    if isinstance(tokens, int | float):
        seen = say("card.trained", tokens=Language.of(language).number(tokens))
    else:
        seen = say("card.trained_unknown")
    if isinstance(score.get("score"), int | float):
        bleu = say("card.bleu", score=f"{score['score']:.1f}")
        bleu = f'<span title="{escape(str(score.get("signature", "")))}">{escape(bleu)}</span>'
    else:
        bleu = escape(say("card.bleu_unknown"))
    return f"{escape(seen)}<br>{bleu}"


def speed(translations: Sequence[Translation], language: str) -> str:
    """Seconds and tokens a second, as markup."""
    seconds = sum(translation.seconds for translation in translations)
    tokens = sum(len(translation.target_tokens) for translation in translations)
    if not seconds:
        return ""
    digits = 2 if seconds < 10 else 1
    return escape(
        Language.of(language).say(
            "card.speed",
            seconds=f"{seconds:.{digits}f}",
            speed=f"{tokens / seconds:,.0f}",
        )
    )
