"""What became of a growing text in each model: its output at every stage, and the state of each English word.

A word's state (`seqviz.coverage.memory`) compares the stage with what the model could say before: where the
text is made of sentences, with each sentence alone; where one sentence grows, with all stages before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from seqviz.ui import growth
from seqviz.ui.growth import Growth

if TYPE_CHECKING:
    from seqviz.coverage import Remembered, Word
    from seqviz.translating.notes import Note


@dataclass(frozen=True)
class Output:
    """What a model wrote at one stage.

    Attributes:
        text: French.
        marks: for each English word of the stage, whether the output has it; empty without a lexicon.
        alone: the same for outputs of its sentences alone; empty where one sentence grows.
        apart: those outputs, joined; None for a single sentence.
        notes: what happened.
    """

    text: str
    marks: tuple[Word, ...] = ()
    alone: tuple[Word, ...] = ()
    apart: str | None = None
    notes: tuple[Note, ...] = ()

    @property
    def numbers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Numbers in digits that only the English has, and those that only the French has."""
        found = [note.values for note in self.notes if note.kind == "numbers"]
        return found[0] if found else ((), ())


class Came(NamedTuple):
    """Content words of a stage, counted by their state."""

    kept: int
    forgotten: int
    never: int

    @property
    def judged(self) -> int:
        return self.kept + self.forgotten + self.never

    @property
    def known(self) -> int:
        return self.kept + self.forgotten


def words_at(text: Growth, outputs: Sequence[Output | None], stage: int) -> list[Remembered]:
    """The English words of a stage with their states; none where they are not judged.

    Args:
        outputs: one for each stage, None where it is not known yet.
        stage: from 0; its output is known.
    """
    from seqviz.coverage.memory import Remembered, state_of

    here = outputs[stage]
    if here is None or not here.marks:
        return []
    known = here.alone or _known_before(text, outputs, stage)
    return [
        Remembered(now.text, state_of(before, now))
        for before, now in zip(known, here.marks, strict=True)
    ]


def _known_before(text: Growth, outputs: Sequence[Output | None], stage: int) -> Sequence[Word]:
    """For each word of a stage the best that the model did with it, at this stage or one before."""
    known: Sequence[Word] = ()
    english = ""
    for output, one in zip(outputs[: stage + 1], text.stages, strict=False):
        if output is None:
            continue
        places = growth.places_before(english, one.english)
        known = [
            known[place] if place is not None and known[place].found else now
            for place, now in zip(places, output.marks, strict=True)
        ]
        english = one.english
    return known


def came(words: Sequence[Remembered]) -> Came:
    """How many words were kept, forgotten and never known."""
    states = [word.state for word in words]
    return Came(*(states.count(state) for state in ("kept", "forgotten", "never knew")))
