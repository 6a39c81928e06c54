"""Texts that grow: those written by hand, and a visitor's own: by sentences, a single one by clauses or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.handwritten import stages_of
from seqviz.language import Language

OWN = "own"
"""Stands for the visitor's own text where the id of a passage is expected."""
MAX_CHARACTERS = 5_000
"""Longest text the page takes."""
MAX_WORDS = MAX_SOURCE_WORDS
"""Longest own text: no model was trained on longer ones."""
MAX_STAGES = 12
"""An own text of more sentences grows by several at a time."""
FEWEST_WORDS = 3
"""Of the shortest stage of a single sentence."""
_OPENS_CLAUSE = frozenset(
    "although because but if since so though unless until when where which while who whose".split()
)


class Stage(NamedTuple):
    """One length of a growing text.

    Attributes:
        english: the text.
        french, chinese: reference and meaning; None for an own text.
        sentences: that it consists of; empty where one sentence grows.
    """

    english: str
    french: str | None = None
    chinese: str | None = None
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Growth:
    """A text at all its lengths, the shortest first.

    Attributes:
        id: of the passage, or `OWN`.
        stages: at least one.
        notes: what a visitor should know, as keys of `seqviz.language` with their values.
    """

    id: str
    stages: tuple[Stage, ...]
    notes: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def counts(self) -> list[int]:
        """English words of each stage."""
        return [len(stage.english.split()) for stage in self.stages]

    def clamp(self, stage: Any) -> int:
        """The stage, from 0, that a slider means by a number from 1; the nearest one there is."""
        number = stage if isinstance(stage, int | float) and stage == stage else 1
        return int(min(max(number, 1), len(self.stages))) - 1


class GrowthError(ValueError):
    """A text that cannot grow; `say` says why in a language of the page."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(Language.of("en").say(key, **values))
        self._key, self._values = key, values

    def say(self, language: str) -> str:
        return Language.of(language).say(self._key, **self._values)


def passage(entry: dict[str, Any]) -> Growth:
    """A hand-written passage."""
    return Growth(
        entry["id"],
        tuple(Stage(s["english"], s["french"], s["chinese"]) for s in entry["stages"]),
    )


def everyday(entry: dict[str, Any]) -> Growth:
    """A hand-written text of short sentences, one more at each stage."""
    english, french, chinese = (stages_of(entry, key) for key in ("english", "french", "chinese"))
    sentences = [sentence["english"] for sentence in entry["sentences"]]
    stages = (
        Stage(*texts, sentences=tuple(sentences[:end]))
        for end, texts in enumerate(zip(english, french, chinese, strict=True), start=1)
    )
    return Growth(entry["id"], tuple(stages))


def whole(text: str) -> Growth:
    """A visitor's text of any length, all of it at once; with its sentences if it is no longer than `MAX_WORDS`."""
    every = tuple(sentences(text))
    english = " ".join(every)
    long = len(english.split()) > MAX_WORDS
    return Growth(OWN, (Stage(english, sentences=() if long else every),))


def own(text: Any) -> Growth:
    """A visitor's text, one sentence more at each stage; a single sentence grows by clauses or words.

    Raises:
        GrowthError: no text, nothing in it, or a first sentence over the cap.
    """
    if not isinstance(text, str):
        raise GrowthError("length.own_type", kind=type(text).__name__)
    if len(text) > MAX_CHARACTERS:
        raise GrowthError(
            "translate.too_long", number=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}"
        )
    every = sentences(text)
    if not every:
        raise GrowthError("length.own_empty", limit=MAX_WORDS)
    used = within_cap(every)
    if not used:
        raise GrowthError("length.own_cap", number=len(every[0].split()), limit=MAX_WORDS)
    notes: list[tuple[str, dict[str, Any]]] = []
    if len(used) < len(every):
        values = {"number": len(used), "total": len(every), "limit": MAX_WORDS}
        notes.append(("length.own_cut", values))
    ends = steps(len(used), MAX_STAGES)
    if len(ends) < len(used):
        notes.append(("length.own_grouped", {"number": len(used), "stages": len(ends)}))
    if len(used) == len(every) == 1:
        grown, note = _sentence(used[0])
        return Growth(OWN, grown, ((note, {}),))
    stages = (Stage(" ".join(used[:end]), sentences=tuple(used[:end])) for end in ends)
    return Growth(OWN, tuple(stages), tuple(notes))


def _sentence(sentence: str) -> tuple[tuple[Stage, ...], str]:
    """The stages of one sentence, each with its end mark, and the key of what to say of them."""
    words = sentence.split()
    if len(words) <= FEWEST_WORDS:
        return (Stage(sentence, sentences=(sentence,)),), "length.own_single"
    inside = range(FEWEST_WORDS, len(words))
    ends = [end for end in inside if words[end - 1][-1] in ",;:–—" or words[end] in _OPENS_CLAUSE]
    key = "length.own_clauses"
    if len(ends) < 2:
        ends = [FEWEST_WORDS - 1 + step for step in steps(len(inside), MAX_STAGES - 1)]
        key = "length.own_words"
    ends = [ends[step - 1] for step in steps(len(ends), MAX_STAGES - 1)]
    found = re.search(r"[.!?…]+$", sentence)
    mark = found.group() if found else ""
    parts = [" ".join(words[:end]).rstrip(" ,;:–—") + mark for end in ends]
    return tuple(Stage(part) for part in (*parts, sentence)), key


def paragraphs(text: str) -> list[str]:
    """Paragraphs, which blank lines separate; wrapped lines inside one are joined."""
    blocks = re.split(r"\n[^\S\n]*(?:\n[^\S\n]*)+", re.sub(r"\r\n?", "\n", text))
    joined = (" ".join(line.strip() for line in block.split("\n")).strip() for block in blocks)
    return [block for block in joined if block]


def sentences(text: str) -> list[str]:
    """Sentences of a text as the models read it; the end of a paragraph ends a sentence."""
    from seqviz.data.tokenizer import normalize
    from seqviz.translating.inputs import split_sentences

    return [s for block in paragraphs(text) for s in split_sentences(normalize(block))]


def within_cap(every: Sequence[str]) -> list[str]:
    """The first sentences that have `MAX_WORDS` words or fewer together."""
    used: list[str] = []
    count = 0
    for sentence in every:
        count += len(sentence.split())
        if count > MAX_WORDS:
            break
        used.append(sentence)
    return used


def steps(number: int, most: int) -> list[int]:
    """Ascending ends of at most `most` about equal steps from 1 to `number`."""
    if number <= most:
        return list(range(1, number + 1))
    return [1 + round(i * (number - 1) / (most - 1)) for i in range(most)]


def places_before(before: str, after: str) -> list[int | None]:
    """Where each word of `after` stood in `before`; None for a new one. Punctuation does not count."""
    old, grown = (
        [word.strip(".,?!;:").lower() for word in text.split()] for text in (before, after)
    )
    places: list[int | None] = [None] * len(grown)
    for block in SequenceMatcher(None, old, grown, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            places[block.b + step] = block.a + step
    return places
