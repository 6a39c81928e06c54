"""Which words of a source have a likely translation in an output, and how far such marks can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from seqviz.coverage.lexicon import Lexicon
from seqviz.coverage.stems import (
    FUNCTION_WORDS,
    english_stem,
    english_words,
    fold,
    french_stem,
    french_words,
)


class Word(NamedTuple):
    """One whitespace word of a source.

    Attributes:
        text: the word with its punctuation.
        content: whether there is anything to look for; False for function words and punctuation.
        found: whether the output holds a likely translation; None if the word is not content, or if
            the table knows nothing about it.
    """

    text: str
    content: bool
    found: bool | None


class _Output:
    """Where an output holds which stems, spellings and numbers: numbers of its words."""

    def __init__(self, text: str) -> None:
        words = french_words(text)
        self.length = len(words)
        self.stems: dict[str, list[int]] = {}
        self.spellings: dict[str, list[int]] = {}
        self.numbers: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for part in {word, *word.split("-")}:
                self.stems.setdefault(french_stem(part), []).append(place)
                self.spellings.setdefault(fold(part), []).append(place)
            if digits := _DIGITS.match(word):
                self.numbers.setdefault(digits[0], []).append(place)


class _Wanted(NamedTuple):
    stem: str
    places: set[int] | None  # where the output may hold it; None if that cannot be judged


_DIGITS = re.compile("[0-9]+")


def mark(source: str, output: str, lexicon: Lexicon | None = None) -> list[Word]:
    """Say of each whitespace word of a source whether the output holds a likely translation.

    A number or a name must be spelled the same, or nearly. Of several words in one (*cat/dog*) at
    least half must be found.

    Args:
        source: English text.
        output: French text.
        lexicon: None takes the shipped one.
    Returns:
        one `Word` for each of ``source.split()``.
    """
    lexicon = lexicon or Lexicon.load()
    held = _Output(output)
    texts = source.split()
    capitals = source.upper() == source
    wanted: list[list[_Wanted]] = []
    looked: dict[tuple[str, bool], list[_Wanted]] = {}
    first = True
    for text in texts:
        row = []
        for word in english_words(text):
            acronym = len(word) > 1 and word.isupper() and not capitals
            if acronym or word.lower() not in FUNCTION_WORDS:
                name = word[0].isupper() and not capitals and (acronym or not first)
                if (word, name) not in looked:
                    looked[word, name] = list(_look_for(word, name, held, lexicon))
                row.extend(looked[word, name])
        wanted.append(row)
        first = text.rstrip("\"')]")[-1:] in (".", "!", "?", ":")
    hits = _assign(wanted, held.length)
    return [
        Word(text, bool(row), _verdict([hits[i, k] for k in range(len(row))]))
        for i, (text, row) in enumerate(zip(texts, wanted, strict=True))
    ]


def counts(marks: Sequence[Word]) -> tuple[int, int]:
    """How many words were found, and how many were judged."""
    judged = [word.found for word in marks if word.found is not None]
    return sum(judged), len(judged)


def _look_for(word: str, name: bool, held: _Output, lexicon: Lexicon) -> Iterator[_Wanted]:
    """What of the output matches a content word; its parts if only they are known."""
    stem, spelling = english_stem(word), fold(word.lower())
    if digits := _DIGITS.match(word):
        places = set(held.numbers.get(digits[0], ()))
        yield _Wanted(
            digits[0], places.union(*(held.stems.get(t, ()) for t in lexicon.translations(word)))
        )
        return
    translations = lexicon.translations(word)
    parts = [p for p in word.split("-") if p and p.lower() not in FUNCTION_WORDS]
    if not translations and "-" in word and parts and spelling not in held.spellings:
        for part in parts:
            yield from _look_for(part, name, held, lexicon)
        return
    places = {place for t in translations for place in held.stems.get(t, ())}
    if not translations or not lexicon.meanings(spelling):
        # A French word of other meaning is no match: *car*, *pays*, *main*.
        places.update(held.spellings.get(spelling, ()))
    if name or not translations:
        for other, at in held.spellings.items():
            if _alike(spelling, other):
                places.update(at)
    yield _Wanted(stem, places if places or translations or name else None)


def _alike(one: str, other: str) -> bool:
    """Whether two spellings differ at most in their last letters (*Bosnia*, *Bosnie*)."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    shared = same.index(False) if False in same else len(same)
    return shared >= max(4, 0.65 * max(len(one), len(other)))


def _assign(wanted: Sequence[Sequence[_Wanted]], length: int) -> dict[tuple[int, int], bool | None]:
    """Give the words of each stem as many hits as the output has; the nearest ones get them."""
    same: dict[str, list[tuple[int, int]]] = {}
    hits: dict[tuple[int, int], bool | None] = {}
    for i, row in enumerate(wanted):
        for k, (stem, places) in enumerate(row):
            hits[i, k] = None if places is None else bool(places)
            if places:
                same.setdefault(stem, []).append((i, k))
    for occurrences in same.values():
        each = {id(places): places for i, k in occurrences if (places := wanted[i][k].places)}
        places = set().union(*each.values())
        if len(occurrences) <= len(places):
            continue
        left = list(occurrences)
        for place in sorted(places):
            at = (place + 0.5) / length
            left.remove(min(left, key=lambda ik: abs((ik[0] + 0.5) / len(wanted) - at)))
        hits.update(dict.fromkeys(left, False))
    return hits


def _verdict(hits: Sequence[bool | None]) -> bool | None:
    judged = [hit for hit in hits if hit is not None]
    return 2 * sum(judged) >= len(judged) if judged else None


# ---------------------------------------------------------------------------------------------
# How far the marks can be trusted


def evaluate(lexicon: Lexicon, aligned: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Precision and recall of "not found" on hand-aligned pairs.

    Each English content word with a sure link is looked for twice: in the French as it is, where it
    should be found, and in the French without the words linked to it (sure or possible), where it
    should not. A word that cannot be judged is never flagged, and so lowers the recall.

    Args:
        aligned: pairs as in ``texts.json``: ``english``, ``french``, ``sure`` and ``possible`` links
            between whitespace words.
    Returns:
        ``pairs``, ``words`` (content words with a sure link), ``flagged_missing`` (of them, rightly
        not found), ``flagged_present`` (wrongly not found), ``precision``, ``recall`` and
        ``unjudged``, the share of words without a verdict on the French as it is; the three are 0–1,
        None where nothing was counted. ``errors`` lists each wrong verdict: word, text it was looked
        for in, expected.
    """
    words = missing = present = unjudged = 0
    errors: list[tuple[str, str, str]] = []
    for pair in aligned:
        english, french = pair["english"], pair["french"].split()
        sure = {source for source, _ in pair["sure"]}
        whole = mark(english, pair["french"], lexicon)
        for i in sorted(sure):
            if not whole[i].content:
                continue
            linked = {t for s, t in (*pair["sure"], *pair["possible"]) if s == i}
            rest = " ".join(word for t, word in enumerate(french) if t not in linked)
            without = mark(english, rest, lexicon)[i]
            words += 1
            unjudged += whole[i].found is None
            present += whole[i].found is False
            missing += without.found is False
            if whole[i].found is False:
                errors.append((whole[i].text, pair["french"], "found"))
            if without.found is not False:
                errors.append((whole[i].text, rest, "not found"))
    flagged = missing + present
    return {
        "pairs": len(aligned),
        "words": words,
        "flagged_missing": missing,
        "flagged_present": present,
        "precision": missing / flagged if flagged else None,
        "recall": missing / words if words else None,
        "unjudged": unjudged / words if words else None,
        "errors": errors,
    }
