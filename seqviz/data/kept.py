"""Which pairs of a corpus file are trained on, and why the others are not: every loss is counted.

What makes a pair of a public corpus worth keeping at all is asked before, in `seqviz.data.cleaning`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqviz.constants import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.data.pairs import (
    CorpusError,
    Pair,
    UnusableLine,
    numbered_lines,
    oddities,
    pair_digest,
    parse_line,
)
from seqviz.text_languages import TextLanguage

MAX_LENGTH_RATIO = 4.0
"""Longest side over shortest, in pieces plus `_RATIO_SLACK`."""
_RATIO_SLACK = 6
MAX_LINE_CHARACTERS = 20_000
_MAX_UNUSABLE = 0.1
"""Share of lines that are not UTF-8 or have not three columns, beyond which a file is refused."""


@dataclass
class Tally:
    """What was dropped and what is odd in a file, by reason, with the first line of each."""

    lines: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    odd: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)

    def drop(self, why: str, number: int) -> None:
        self._count(self.dropped, why, number)

    def wonder(self, what: str, number: int) -> None:
        self._count(self.odd, what, number)

    def _count(self, found: Counter[str], what: str, number: int) -> None:
        found[what] += 1
        self.first_lines[what] = min(number, self.first_lines.get(what, number))

    def found(self) -> dict[str, Any]:
        return {
            "dropped": dict(sorted(self.dropped.items())),
            "odd": dict(sorted(self.odd.items())),
            "first_lines": dict(sorted(self.first_lines.items())),
        }


Numbered = tuple[int, Pair]
"""A pair with the number of its line."""


def kept_pairs(
    path: Path,
    tally: Tally,
    held_out: frozenset[bytes],
    longest: int | None,
    language: TextLanguage,
) -> Iterator[Numbered]:
    """Yield the pairs whose text may be trained on.

    Raises:
        CorpusError: after the last line, when too many lines hold no pair.
    """
    before: Pair | None = None
    unusable = 0
    example = ""
    for number, raw in numbered_lines(path):
        try:
            pair = parse_line(number, raw)
        except UnusableLine as error:
            tally.lines += 1
            tally.drop(error.reason, number)
            example = example or f"line {number}: {error}"
            unusable += 1
            continue
        if pair is None:
            continue
        tally.lines += 1
        for what in oddities(number, raw, pair):
            tally.wonder(what, number)
        why = unfit_text(pair, before, held_out, longest, language)
        if why is None:
            yield number, pair
        else:
            tally.drop(why, number)
        before = pair
    if unusable > _MAX_UNUSABLE * tally.lines:
        raise CorpusError(
            f"{path}: expected a pair in nearly every line, got {unusable:,} of {tally.lines:,} lines "
            f"without one; the first, {example}"
        )


def unfit_text(
    pair: Pair,
    before: Pair | None,
    held_out: frozenset[bytes],
    longest: int | None,
    language: TextLanguage,
) -> str | None:
    """Why a pair is dropped as it stands; None if it is not. `before` is the pair of the line before."""
    if len(pair.source) + len(pair.target) > MAX_LINE_CHARACTERS:
        return f"line over {MAX_LINE_CHARACTERS} characters"
    if not pair.source.strip() or not pair.target.strip():
        return "empty side"
    if pair == before:
        return "repeats the line before"
    if held_out and pair_digest(pair.source, pair.target) in held_out:
        return "held out for testing"
    if longest is not None and language.length(pair.source) > longest:
        return f"over the {longest} source words asked for"
    return None


def unfit_pieces(words: int, source: Sequence[int], target: Sequence[int]) -> str | None:
    """Why a pair is dropped once it is cut into pieces; None if it is not."""
    longest, shortest = max(len(source), len(target)), min(len(source), len(target))
    if not shortest:
        return "empty side"
    if words > MAX_SOURCE_WORDS:
        return f"over {MAX_SOURCE_WORDS} source words"
    if len(source) > MAX_SOURCE_PIECES:
        return f"over {MAX_SOURCE_PIECES} source pieces"
    if len(target) > MAX_TARGET_PIECES:
        return f"over {MAX_TARGET_PIECES} target pieces"
    if longest + _RATIO_SLACK > MAX_LENGTH_RATIO * (shortest + _RATIO_SLACK):
        return f"length ratio over {MAX_LENGTH_RATIO:g}"
    return None
