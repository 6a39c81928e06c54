"""Forgotten, or never known: what became of each word when its sentence stood in a longer text.

    states = coverage.remembered(
        ["The cat sleeps.", "My uncle sings."],            # the sentences of a text
        ["Le chat dort.", "Mon oncle mange."],             # output for each sentence alone
        "Le chat dort. Mon père mange.",                   # output for the whole text
    )
    [[word.state for word in sentence] for sentence in states]
    # [[None, "kept", "kept"], [None, "forgotten", "never knew"]]

A model that cannot say a word in a sentence of its own has nothing to forget. So a missing word counts as
forgotten only if the model says it when the sentence stands alone. "Says" is `mark`'s *found*: a likely
translation stands in the output, which is a sign and no proof; `forgetting` therefore takes what chance
gives, from outputs of other texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from seqviz.coverage.lexicon import Lexicon
from seqviz.coverage.marks import Word, mark

State = Literal["kept", "forgotten", "never knew"]


class Remembered(NamedTuple):
    """One whitespace word of a sentence.

    Attributes:
        text: the word with its punctuation.
        state: "never knew": not found when its sentence stands alone; "kept": found alone and in the longer
            text; "forgotten": found alone, not in the longer text. None for function words, punctuation and
            words that the table knows nothing about.
    """

    text: str
    state: State | None


def remembered(
    sentences: Sequence[str],
    alone: Sequence[str],
    together: str,
    lexicon: Lexicon | None = None,
) -> list[list[Remembered]]:
    """Say of each word of a text whether the model knew it, and whether it kept it.

    Args:
        sentences: source sentences, in the order of the text.
        alone: the output for each of them alone.
        together: the output for all of them as one text, joined by spaces.
        lexicon: None takes the shipped one.
    Returns:
        for each sentence one `Remembered` for each of ``sentence.split()``.
    Raises:
        ValueError: not one output for each sentence.
    """
    if len(sentences) != len(alone):
        raise ValueError(
            f"expected one output for each of {len(sentences)} sentences, got {len(alone)}"
        )
    lexicon = lexicon or Lexicon.load()
    marks = [mark(*pair, lexicon) for pair in zip(sentences, alone, strict=True)]
    return states(marks, mark(" ".join(sentences), together, lexicon))


def states(alone: Sequence[Sequence[Word]], together: Sequence[Word]) -> list[list[Remembered]]:
    """What `remembered` says, from marks.

    Args:
        alone: marks of each sentence in the output for it alone.
        together: marks of the whole text in the output for it.
    """
    whole = iter(together)
    return [
        [Remembered(word.text, state_of(word, next(whole))) for word in sentence]
        for sentence in alone
    ]


def state_of(alone: Word, together: Word) -> State | None:
    """State of one word from its mark in the sentence alone and its mark in the longer text."""
    if alone.found is None or together.found is None:
        return None
    if not alone.found:
        return "never knew"
    return "kept" if together.found else "forgotten"


def forgetting(words: Iterable[Remembered]) -> tuple[int, int]:
    """How many words were forgotten, and how many were known: forgotten or kept."""
    states = [word.state for word in words]
    forgotten = states.count("forgotten")
    return forgotten, forgotten + states.count("kept")
