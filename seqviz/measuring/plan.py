"""What an evaluation translates: a test set, a sample of it, runs of sentences and their cuts.

Length of a sentence: words of its source, as its language has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from seqviz import handwritten
from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.data.pairs import CorpusError, Pair, read_pairs
from seqviz.files import file_digest
from seqviz.text_languages import DEFAULT_LANGUAGES, LanguagePair, TextLanguage

DEFAULT = LanguagePair.of(*DEFAULT_LANGUAGES)

BUCKETS = (
    (1, 10),
    (11, 20),
    (21, 30),
    (31, 40),
    (41, 50),
    (51, 60),
    (61, 80),
    (81, 100),
)
"""Words of a sentence, both ends included."""

LONG = (51, 70)
"""Words of a run of sentences."""

PARTS = (4, 2, 1)
"""Into how many parts a run is cut, from the shortest inputs to the longest."""


class Texts(Protocol):
    """What is to be translated, and whose loss is to be measured."""

    def sources(self) -> list[str]:
        """Every text to translate, once, longest first."""
        ...

    def texts(self) -> list[tuple[str, str]]:
        """Every (source, target) whose loss is measured, once, longest first."""
        ...


@dataclass(frozen=True)
class Run:
    """Consecutive sentences of one document, and the ways in which they are cut.

    Attributes:
        first, count: which pairs of the file.
        cuts: for each of `PARTS` the parts, each (source, target) of joined sentences.
    """

    first: int
    count: int
    cuts: Mapping[int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Plan:
    """What an evaluation translates.

    Attributes:
        pairs: of the natural curve.
        runs: of the same-content curve.
        skipped: pairs of the file that are not evaluated, by reason.
        data: name, digest and size of the file.
        sample, seed: how many sentences were asked for, None for all.
        languages: of the pairs.
    """

    pairs: tuple[Pair, ...]
    runs: tuple[Run, ...]
    skipped: Mapping[str, int]
    data: Mapping[str, Any]
    sample: int | None = None
    seed: int = 1
    languages: LanguagePair = DEFAULT

    def sources(self) -> list[str]:
        """Every text to translate, once, longest first."""
        found = dict.fromkeys(pair.source for pair in self.pairs)
        found.update(dict.fromkeys(source for source, _ in self._parts()))
        return sorted(found, key=len, reverse=True)

    def texts(self) -> list[tuple[str, str]]:
        """Every (source, target) whose loss is measured, once, longest first."""
        found = dict.fromkeys((pair.source, pair.target) for pair in self.pairs)
        found.update(dict.fromkeys(self._parts()))
        return sorted(found, key=lambda text: len(text[1]), reverse=True)

    def _parts(self) -> Iterable[tuple[str, str]]:
        return (part for run in self.runs for cut in run.cuts.values() for part in cut)


def plan(
    path: str | os.PathLike[str],
    *,
    sample: int | None = None,
    seed: int = 1,
    runs: bool = True,
    languages: LanguagePair = DEFAULT,
) -> Plan:
    """Read a corpus file and decide what is translated.

    Args:
        path: corpus file, see `seqviz.data.pairs.read_pairs`.
        sample: about so many sentences, spread evenly over the buckets as far as they hold enough,
            and a quarter as many runs; None takes all.
        seed: of the sample.
        runs: also the same-content curve.
        languages: of the pairs; lengths are counted as the source language has words.
    Raises:
        CorpusError: see `seqviz.data.pairs.read_pairs`; also when no pair can be evaluated.
        ValueError: a sample below 1.
    """
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise ValueError(f"expected a sample of at least 1 sentence, got {sample!r}")
    path = Path(path)
    every = list(read_pairs(path))
    kept: list[Pair] = []
    skipped: dict[str, int] = {}
    for pair in every:
        reason = None
        if not pair.source.strip() or not pair.target.strip():
            reason = "empty side"
        elif words_in(pair.source, languages.source) > MAX_SOURCE_WORDS:
            reason = f"over {MAX_SOURCE_WORDS} source words"
        if reason:
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            kept.append(pair)
    if not kept:
        reasons = ", ".join(f"{count} {why}" for why, count in skipped.items())
        raise CorpusError(f"{path}: no pair can be evaluated ({reasons})")
    found = find_runs(every, languages) if runs else []
    if sample is not None:
        random = np.random.default_rng([seed, 17])
        lengths = [words_in(pair.source, languages.source) for pair in kept]
        kept = [kept[i] for i in _stratified(lengths, sample, random)]
        size = min(len(found), -(-sample // 4))
        chosen = sorted(random.permutation(len(found))[:size].tolist())
        found = [found[i] for i in chosen]
    return Plan(
        pairs=tuple(kept),
        runs=tuple(found),
        skipped=skipped,
        data={"name": path.name, "sha256": file_digest(path), "lines": len(every)},
        sample=sample,
        seed=seed,
        languages=languages,
    )


def thinned(plan: Plan, count: int | None) -> Plan:
    """The plan with `count` sentences at even distances, as long as the file's are; None keeps all.

    Raises:
        ValueError: a count below 1.
    """
    if count is not None and count < 1:
        raise ValueError(f"expected at least 1 sentence, got {count}")
    if count is None or count >= len(plan.pairs):
        return plan
    chosen = np.linspace(0, len(plan.pairs) - 1, count).round().astype(int)
    return replace(plan, pairs=tuple(plan.pairs[i] for i in chosen), sample=count)


def written(use: str) -> Plan:
    """The project's own hand-written pairs, such as "development", as a plan without runs.

    Raises:
        KeyError: no such texts.
    """
    pairs, file = handwritten.texts(use), handwritten.FILE
    return Plan(
        pairs=tuple(Pair(text["id"], text["english"], text["french"]) for text in pairs),
        runs=(),
        skipped={},
        data={"name": file.name, "sha256": file_digest(file), "lines": len(pairs)},
    )


def words_in(text: str, language: TextLanguage = DEFAULT.source) -> int:
    """Length of a text as this project counts it, see `TextLanguage.unit`."""
    return language.length(text)


def _stratified(lengths: Sequence[int], size: int, random: np.random.Generator) -> list[int]:
    """Numbers of about `size` sentences, as evenly over the buckets as they allow, in order."""
    members = [
        random.permutation([i for i, n in enumerate(lengths) if low <= n <= high]).astype(int)
        for low, high in BUCKETS
    ]
    chosen: list[int] = []
    left = size
    # The smallest bucket first: what it lacks is shared among those that hold more.
    for number, group in enumerate(sorted(members, key=len)):
        share = left // (len(members) - number)
        chosen += group[:share].tolist()
        left -= min(share, len(group))
    return sorted(chosen)


def find_runs(pairs: Sequence[Pair], languages: LanguagePair = DEFAULT) -> list[Run]:
    """Runs of at least four whole sentences with `LONG` words together, none sharing a sentence.

    From the first sentence on, the shortest run that fits is taken, and the search goes on behind it.
    """
    lengths = [words_in(pair.source, languages.source) for pair in pairs]
    usable = [bool(n and pair.target.strip()) for n, pair in zip(lengths, pairs, strict=True)]
    found: list[Run] = []
    first = 0
    while first < len(pairs):
        total, end = 0, first
        run = None
        while end < len(pairs) and usable[end] and pairs[end].document == pairs[first].document:
            total += lengths[end]
            end += 1
            if total > LONG[1]:
                break
            if total >= LONG[0] and end - first >= max(PARTS):
                cuts = {n: _cut(pairs[first:end], n, languages) for n in PARTS}
                run = Run(first, end - first, cuts)
                break
        if run:
            found.append(run)
            first = end
        else:
            first += 1
    return found


def _cut(pairs: Sequence[Pair], parts: int, languages: LanguagePair) -> tuple[tuple[str, str], ...]:
    """Sentences as so many parts, cut where the longest part is shortest."""
    lengths = [words_in(pair.source, languages.source) for pair in pairs]
    best: tuple[int, ...] = ()
    shortest = None
    for cuts in combinations(range(1, len(pairs)), parts - 1):
        edges = (0, *cuts, len(pairs))
        longest = max(sum(lengths[a:b]) for a, b in pairwise(edges))
        if shortest is None or longest < shortest:
            shortest, best = longest, edges
    return tuple(
        (
            languages.source.join(pair.source.strip() for pair in pairs[a:b]),
            languages.target.join(pair.target.strip() for pair in pairs[a:b]),
        )
        for a, b in pairwise(best)
    )
