"""Markup of a translation: its words, what happened to it, and the drawing of its model.

Every string from a person or a model passes `html.escape` here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from seqviz.constants import MODELS
from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.translating.notes import merged, said
from seqviz.translating.output import french_for_display, repeated_spans

if TYPE_CHECKING:
    from seqviz.translating.result import Translation


def title(model: str, language: str) -> str:
    """ "2015 · LSTM + attention", plain text."""
    return f"{MODELS[model].year} · {Language.of(language).say(f'model.{model}')}"


def card(model: str, language: str, body: str, *, footer: str = "", busy: bool = False) -> str:
    """A model's card around `body`, which is markup."""
    spoken = Language.of(language)
    waiting = ' aria-busy="true"' if busy else ""
    return (
        f'<section class="card" data-model="{model}"{waiting}>'
        f'<header><h2><span class="year">{MODELS[model].year}</span> '
        f"{escape(spoken.say(f'model.{model}'))}</h2>"
        f"{drawing(model, language)}"
        f'<p class="how">{escape(spoken.within("how").say(model))}</p></header>'
        f"{body}" + (f'<footer class="small">{footer}</footer>' if footer else "") + "</section>"
    )


# ---------------------------------------------------------------------------------------------
# The words of a translation


def word_probabilities(translation: Translation) -> list[float]:
    """Mean probability of the pieces of each target word, 0 to 1."""
    sums = [0.0] * len(translation.target_words)
    counts = [0] * len(translation.target_words)
    for index, log_prob in zip(
        translation.target_word_index, translation.token_log_probs, strict=False
    ):
        if index >= 0:
            sums[index] += math.exp(log_prob)
            counts[index] += 1
    return [total / count if count else 1.0 for total, count in zip(sums, counts, strict=True)]


def french(text: str) -> str:
    """French typography for reading, plain text."""
    return french_for_display(text)


Meanings = Callable[[str], Sequence[str]]
"""English meanings of a French word; none where they are not known."""


def target_text(
    translation: Translation, language: str = "en", meanings: Meanings | None = None
) -> str:
    """The translation, each word in ink as strong as the model was sure, repetitions underlined.

    A word's title holds its probability and, where `meanings` knows them, its English meanings.
    """
    if not translation.target_tokens and any(note.kind == "copied" for note in translation.notes):
        return escape(translation.text)  # no model was sure of it
    repeated: set[int] = set()
    for start, end in repeated_spans(translation.target_words):
        repeated.update(range(start, end))
    sure = word_probabilities(translation)

    def word(index: int) -> str:
        say = Language.of(language).say
        text = translation.target_words[index]
        known = meanings(text) if meanings else ()
        said = say("card.sure", percent=f"{100 * sure[index]:.0f}")
        if known:
            said = f"{say('card.meaning', text=', '.join(known))} · {said}"
        return (
            f'<span style="--sure:{sure[index]:.2f}" title="{escape(said)}">'
            f"{escape(french(text))}</span>"
        )

    shown = []
    for again, group in groupby(range(len(sure)), key=lambda index: index in repeated):
        run = " ".join(map(word, group))
        shown.append(f'<span class="again">{run}</span>' if again else run)
    return " ".join(shown)


def target(
    translations: Sequence[Translation], language: str, meanings: Meanings | None = None
) -> str:
    """A text of one or more paragraphs, or that the model wrote nothing."""
    if any(item.source.strip() for item in translations) and not any(
        item.text for item in translations
    ):
        return f'<p class="waiting">{escape(Language.of(language).say("card.silent"))}</p>'
    paragraphs = [
        target_text(translation, language, meanings)
        for translation in translations
        if translation.text
    ]
    return (
        '<div class="target" lang="fr" translate="no">'
        + "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        + "</div>"
    )


# ---------------------------------------------------------------------------------------------
# What happened


def notes(translations: Iterable[Translation], language: str) -> str:
    """What a reader should know, each kind once, as a list; empty where nothing happened."""
    found = merged(note for translation in translations for note in translation.notes)
    # The language is said once for all models, beside the text.
    shown = [said(note, language) for note in found if note.kind != "language"]
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


# ---------------------------------------------------------------------------------------------
# How the source reaches the decoder


def drawing(model: str, language: str) -> str:
    """A small picture: source words above, target words below, and the ways between them."""
    xs = [16 + 27 * i for i in range(7)]
    top, middle, bottom = 10.0, 35.0, 60.0
    lines, dots = [], []

    def line(
        x1: float, y1: float, x2: float, y2: float, strength: float, width: float = 1.4
    ) -> None:
        lines.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
            f'stroke-opacity="{strength:g}" stroke-width="{width:g}"/>'
        )

    kind = MODELS[model]
    if kind.has_one_vector:
        centre = sum(xs) / len(xs)
        for x in xs:
            line(x, top, centre, middle, 0.45)
            line(centre, middle, x, bottom, 0.45)
        dots.append(f'<circle cx="{centre:g}" cy="{middle:g}" r="6.5"/>')
    elif kind.is_recurrent:
        for target_index, x2 in enumerate(xs):
            chosen = target_index == 4
            for source_index, x1 in enumerate(xs):
                weight = math.exp(-abs(source_index - target_index) / 0.9)
                if chosen:
                    line(x1, top, x2, bottom, 0.25 + 0.75 * weight, 1 + 3 * weight)
                elif source_index == target_index:
                    line(x1, top, x2, bottom, 0.2)
    else:
        for x1 in xs:
            for x2 in xs:
                line(x1, top, x2, bottom, 0.3, 1)
    if kind.is_recurrent:  # words are read, and written, one after the other
        for y in (top, bottom):
            line(xs[0], y, xs[-1], y, 0.9, 1.4)
    for y in (top, bottom):
        dots += [f'<circle cx="{x:g}" cy="{y:g}" r="3.6"/>' for x in xs]
    label = escape(Language.of(language).within("drawing").say(model))
    return (
        f'<svg class="drawing" viewBox="0 0 194 70" role="img" aria-label="{label}">'
        f'<g stroke="var(--{model})" fill="none" stroke-linecap="round">{"".join(lines)}</g>'
        f'<g fill="var(--{model})">{"".join(dots)}</g></svg>'
    )
