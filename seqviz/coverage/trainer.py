"""Makes the table of likely translations from corpora; nothing here is needed to mark a text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqviz.coverage.lexicon import SCHEMA, LexiconError
from seqviz.coverage.model1 import ITERATIONS, Alignments, align
from seqviz.coverage.stems import (
    FUNCTION_WORDS,
    english_stem,
    english_words,
    french_stem,
    french_words,
)
from seqviz.files import file_digest

MAX_WORDS = 25
"""Longer pairs say little about single words and cost the square of their length."""
MIN_COUNT = 2
"""Stems that occur less often in the corpus share one id, which no entry is made of."""
MIN_ALIGNED = 1.5
"""Expected alignments below which a pair of stems is no entry."""
MIN_OF_ENGLISH = 0.015
"""A French stem is a translation from this share of the English stem's alignments on …"""
MIN_OF_FRENCH = 0.15
"""… or from this share of its own alignments on: rare inflected forms."""
MIN_EITHER = 0.004
"""In both cases the other share is at least this much."""
MIN_MEANING = 0.08
"""Share of a French stem's alignments from which on an English word is shown as a meaning."""
MAX_TRANSLATIONS, MAX_MEANINGS = 40, 3
_LEFT_OVER = frozenset(("ca", "wo"))
"""Of *can't* and *won't*."""


def estimate(
    files: Sequence[tuple[str | os.PathLike[str], int]],
    *,
    pairs: int = 250_000,
    seed: int = 1,
    iterations: int = ITERATIONS,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Make a lexical table from corpora of English and French; `save` writes it.

    Args:
        files: corpus files, each with its share of the pairs: one with share 2 gives twice as many as
            one with share 1. A file with fewer pairs gives them all, and the others fill up.
        pairs: pairs that are read in all. Those with over `MAX_WORDS` words on a side do not count.
        seed: of the choice of pairs.
    Raises:
        CorpusError: see `seqviz.data.pairs.read_pairs`.
        LexiconError: nothing usable in the files.
    """
    from seqviz.version import versions

    numbers, sides = _draw(files, pairs, seed, french_stem, progress)
    table = _table(sides, iterations, progress)
    return {
        "schema": SCHEMA,
        "data": [
            {"name": Path(path).name, "sha256": file_digest(path), "pairs": number}
            for (path, _), number in zip(files, numbers, strict=True)
        ],
        "pairs": len(sides.sources),
        "seed": seed,
        "iterations": iterations,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "translations": {e: " ".join(f) for e, f in sorted(table.translations.items())},
        "meanings": {f: " ".join(e) for f, e in sorted(table.meanings.items())},
    }


def meanings_of_forms(
    files: Sequence[tuple[str | os.PathLike[str], int]],
    *,
    words: int = 12_000,
    pairs: int = 250_000,
    seed: int = 1,
    iterations: int = ITERATIONS,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """The likeliest English word for each of the commonest French forms, as `estimate` finds it.

    Forms are not stemmed: *mange* and *mangé* have meanings of their own. A form with a digit has none.
    Content words go first: *lève* is aligned with *up* more often than with *gets*.

    Args:
        files, pairs, seed, iterations, progress: see `estimate`.
        words: how many forms are looked at, the commonest in the pairs first.
    """
    _, sides = _draw(files, pairs, seed, str, progress)
    found = _table(sides, iterations, progress).meanings
    common = (form for form in sides.french.common() if not any(c.isdigit() for c in form))
    return {form: _content_first(found[form]) for form in islice(common, words) if form in found}


def _content_first(meanings: Sequence[str]) -> str:
    content = (word for word in meanings if word.lower() not in FUNCTION_WORDS | _LEFT_OVER)
    return next(content, meanings[0])


class _Sides(NamedTuple):
    """Pairs as word ids, and what the ids stand for."""

    english: _Vocabulary
    french: _Vocabulary
    sources: list[list[int]]
    targets: list[list[int]]


def _draw(
    files: Sequence[tuple[str | os.PathLike[str], int]],
    pairs: int,
    seed: int,
    french_stem: Callable[[str], str],
    progress: Callable[[str], None],
) -> tuple[list[int], _Sides]:
    """Draw pairs from all files; also says how many each gave."""
    usable: list[list[tuple[str, str]]] = []
    for path, _ in files:
        usable.append(_usable_pairs(path))
        progress(f"{Path(path).name}: {len(usable[-1]):,} pairs of at most {MAX_WORDS} words")
    wanted = _shares([len(rows) for rows in usable], [share for _, share in files], pairs)
    random = np.random.default_rng(seed)
    english, french = _Vocabulary(english_stem), _Vocabulary(french_stem)
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    for rows, number in zip(usable, wanted, strict=True):
        for i in np.sort(random.choice(len(rows), number, replace=False)):
            words, others = english_words(rows[i][0]), french_words(rows[i][1])
            if words and others:
                sources.append(english.ids(words))
                targets.append(french.ids(others))
        rows.clear()
    progress(f"{len(sources):,} pairs, {len(english.words()):,} English words")
    if not sources:
        raise LexiconError(
            f"expected at least one pair with 1 to {MAX_WORDS} words on both sides, got none; "
            "check the columns of the files"
        )
    return wanted, _Sides(english, french, sources, targets)


def _table(sides: _Sides, iterations: int, progress: Callable[[str], None]) -> _Table:
    """Align the pairs and keep what translates each other; meanings are English words as they stand."""
    source_stems, target_stems = sides.english.stem_ids(), sides.french.stem_ids()
    aligned = align(
        [source_stems[s] for s in sides.sources],
        [target_stems[t] for t in sides.targets],
        iterations=iterations,
        progress=progress,
    )
    table = _select(aligned, sides.english.stems, sides.french.stems)
    meanings = _surfaces(
        table.meanings,
        [(s, source_stems[s].tolist()) for s in sides.sources],
        [set(target_stems[t].tolist()) for t in sides.targets],
        sides.english,
        sides.french,
    )
    return _Table(table.translations, meanings)


def _usable_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """English and French of the pairs that are not too long on either side."""
    from seqviz.data.pairs import read_pairs

    return [
        (pair.source, pair.target)
        for pair in read_pairs(path)
        if pair.source.count(" ") + 1 <= MAX_WORDS >= pair.target.count(" ") + 1
    ]


def _shares(counts: Sequence[int], shares: Sequence[int], total: int) -> list[int]:
    """How many of its pairs each file gives; what a small file cannot give, the others do."""
    given = [0] * len(counts)
    open_files = set(range(len(counts)))
    left = total
    while open_files:
        sum_of_shares = sum(shares[i] for i in open_files)
        small = {i for i in open_files if counts[i] * sum_of_shares <= left * shares[i]}
        for i in small or open_files:
            given[i] = counts[i] if small else left * shares[i] // sum_of_shares
        if not small:
            break
        left -= sum(counts[i] for i in small)
        open_files -= small
    return given


class _Vocabulary:
    """Ids of words and of their stems; stems are numbered from 2 on, rare ones share id 1."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        self._stem = stem
        self._ids: dict[str, int] = {}
        self._counts: Counter[int] = Counter()
        self.stems: list[str] = ["", ""]

    def ids(self, words: Sequence[str]) -> list[int]:
        ids = [self._ids.setdefault(word, len(self._ids)) for word in words]
        self._counts.update(ids)
        return ids

    def words(self) -> list[str]:
        return list(self._ids)

    def common(self) -> list[str]:
        """Words, the commonest first; words as common as each other in alphabetical order."""
        return sorted(self._ids, key=lambda word: (-self._counts[self._ids[word]], word))

    def stem_ids(self) -> np.ndarray:
        """The stem's id of every word."""
        stems = [self._stem(word) for word in self._ids]
        counts: Counter[str] = Counter()
        for number, stem in enumerate(stems):
            counts[stem] += self._counts[number]
        self.stems = ["", "", *(s for s, n in counts.items() if s and n >= MIN_COUNT)]
        numbers = {stem: number for number, stem in enumerate(self.stems) if stem}
        return np.array([numbers.get(stem, 1) for stem in stems], np.int32)


class _Table(NamedTuple):
    translations: dict[str, list[str]]  # English stem -> French stems, best first
    meanings: dict[str, list[str]]  # French stem -> English stems, best first


def _select(aligned: Alignments, english: Sequence[str], french: Sequence[str]) -> _Table:
    """Keep the pairs of stems that translate each other; see the constants above."""
    real = (aligned.source > 1) & (aligned.target > 1)
    source, target = aligned.source[real], aligned.target[real]
    count = aligned.aligned[real]
    tiny = np.finfo(np.float64).tiny
    of_english = count / np.maximum(np.bincount(source, count)[source], tiny)
    of_french = count / np.maximum(np.bincount(target, count)[target], tiny)
    likely = (
        (count >= MIN_ALIGNED)
        & ((of_english >= MIN_OF_ENGLISH) | (of_french >= MIN_OF_FRENCH))
        & (np.minimum(of_english, of_french) >= MIN_EITHER)
    )
    translations: dict[str, list[str]] = {}
    for i in np.flatnonzero(likely)[np.argsort(-of_english[likely], kind="stable")]:
        word = english[int(source[i])]
        if word not in FUNCTION_WORDS and len(row := translations.setdefault(word, [])) < (
            MAX_TRANSLATIONS
        ):
            row.append(french[int(target[i])])
    shown = (count >= MIN_ALIGNED) & (of_french >= MIN_MEANING)
    meanings: dict[str, list[str]] = {}
    for i in np.flatnonzero(shown)[np.argsort(-of_french[shown], kind="stable")]:
        if len(row := meanings.setdefault(french[int(target[i])], [])) < MAX_MEANINGS:
            row.append(english[int(source[i])])
    return _Table(translations, meanings)


def _surfaces(
    meanings: dict[str, list[str]],
    sources: Sequence[tuple[list[int], list[int]]],
    targets: Sequence[set[int]],
    english: _Vocabulary,
    french: _Vocabulary,
) -> dict[str, list[str]]:
    """Replace English stems by the word that stands most often opposite the French stem.

    The first word of a sentence hardly counts: its capital says nothing about the word.
    """
    number = {stem: i for i, stem in enumerate(english.stems)}
    wanted = [[number[e] for e in meanings.get(stem, ())] for stem in french.stems]
    seen: dict[tuple[int, int], Counter[int]] = {}
    for (words, stems), others in zip(sources, targets, strict=True):
        at = {
            stem: (word, 100 if i else 1)
            for i, (word, stem) in enumerate(zip(words, stems, strict=True))
        }
        for f in others:
            for e in wanted[f]:
                if e in at:
                    word, weight = at[e]
                    seen.setdefault((f, e), Counter())[word] += weight
    words = english.words()
    result: dict[str, list[str]] = {}
    for f, stem in enumerate(french.stems):
        rows = [seen[f, e].most_common(1)[0][0] for e in wanted[f] if (f, e) in seen]
        if rows:
            result[stem] = [words[i] for i in rows]
    return result
