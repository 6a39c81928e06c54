"""IBM Model 1 in both directions: how probable it is that two words translate each other.

Shapes: `N` sentences, `C` cells (one for each target word and source word of a sentence, the empty
word included on both sides), `U` different pairs of a source and a target word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

ITERATIONS = 5


@dataclass(frozen=True)
class Alignments:
    """What both directions of Model 1 say about the different pairs of words, each (U,).

    Attributes:
        source, target: ids of the pair; 0 is the empty word.
        forward: t(target | source).
        backward: t(source | target).
        aligned: expected number of alignments in which both directions agree.
    """

    source: np.ndarray
    target: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    aligned: np.ndarray


@dataclass(frozen=True)
class _Cells:
    """The cells of some sentences, in the order sentence, target word, source word.

    Attributes:
        pair: number of the pair of words of each cell, (C,).
        column: which source word (of all these sentences) a cell belongs to, (C,).
        row_lengths: cells of each target word.
        columns: source words of these sentences.
    """

    pair: np.ndarray
    column: np.ndarray
    row_lengths: np.ndarray
    columns: int

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Sum over the source words of each target word, at every cell, (C,)."""
        starts = np.cumsum(self.row_lengths) - self.row_lengths
        return np.repeat(np.add.reduceat(values, starts), self.row_lengths)

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Sum over the target words of each source word, at every cell, (C,)."""
        return np.bincount(self.column, values, self.columns)[self.column]


def align(
    sources: Sequence[Sequence[int] | np.ndarray],
    targets: Sequence[Sequence[int] | np.ndarray],
    *,
    iterations: int = ITERATIONS,
    block: int = 6_000_000,
    progress: Callable[[str], None] = lambda line: None,
) -> Alignments:
    """Estimate IBM Model 1 in both directions by expectation and maximisation.

    Both start uniform. In each direction the given side has the empty word besides its own.

    Args:
        sources, targets: word ids of N sentences, from 1 on.
        iterations: steps of the estimation.
        block: cells that are worked on at once; memory is about 60 bytes for each, and 4 to 8 for
            each cell of the corpus.
    Source: Brown et al. 1993, section 4.1; agreement of two directions as in Liang et al. 2006, but
        only counted after the training.
    """
    blocks, source, target = _lay_out(sources, targets, block)
    progress(f"{sum(len(c.pair) for c in blocks):,} cells, {len(source):,} pairs of stems")

    # An empty word explains but is not explained: its own probability is 0, in every step.
    forward = (target > 0).astype(np.float64)
    backward = (source > 0).astype(np.float64)
    for step in range(iterations):
        counts = np.zeros((2, len(source)))
        for cells in blocks:
            p, q = forward[cells.pair], backward[cells.pair]
            counts[0] += np.bincount(cells.pair, _share(p, cells.by_row(p)), len(source))
            counts[1] += np.bincount(cells.pair, _share(q, cells.by_column(q)), len(source))
        forward = _share(counts[0], np.bincount(source, counts[0])[source])
        backward = _share(counts[1], np.bincount(target, counts[1])[target])
        progress(f"step {step + 1} of {iterations}")

    aligned = np.zeros(len(source))
    for cells in blocks:
        p, q = forward[cells.pair], backward[cells.pair]
        both = _share(_share(p, cells.by_row(p)) * q, cells.by_column(q))
        aligned += np.bincount(cells.pair, both, len(source))
    return Alignments(source, target, forward, backward, aligned)


def _share(values: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Values as parts of their totals; 0 of nothing is 0."""
    return values / np.maximum(totals, np.finfo(np.float64).tiny)


def _blocks(
    source_lengths: np.ndarray, target_lengths: np.ndarray, most: int
) -> Iterator[tuple[int, int]]:
    """Ranges of sentences with at most about so many cells."""
    cells = np.cumsum(source_lengths * target_lengths)
    first = 0
    while first < len(cells):
        before = cells[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(cells, before + most, side="right")))
        yield first, last
        first = last


def _cells_of(
    sources: np.ndarray,
    source_lengths: np.ndarray,
    targets: np.ndarray,
    target_lengths: np.ndarray,
    width: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys of the cells of some sentences, and their layout; see `_Cells`."""
    row_lengths = np.repeat(source_lengths, target_lengths)
    row_starts = np.cumsum(row_lengths) - row_lengths
    first_source = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
    column = np.arange(row_lengths.sum()) + np.repeat(first_source - row_starts, row_lengths)
    keys = sources[column].astype(np.int64) * width + np.repeat(targets, row_lengths)
    return keys, column.astype(np.int32), row_lengths


def _lay_out(
    sources: Sequence[Sequence[int] | np.ndarray],
    targets: Sequence[Sequence[int] | np.ndarray],
    most: int,
) -> tuple[list[_Cells], np.ndarray, np.ndarray]:
    """The cells of all sentences in blocks, and the ids of the pairs of words in them, each (U,)."""
    source_lengths = np.array([len(s) + 1 for s in sources], np.int64)
    target_lengths = np.array([len(t) + 1 for t in targets], np.int64)
    flat_sources = np.array([i for s in sources for i in (0, *s)], np.int32)
    flat_targets = np.array([i for t in targets for i in (0, *t)], np.int32)
    width = int(flat_targets.max()) + 1
    source_ends, target_ends = np.cumsum(source_lengths), np.cumsum(target_lengths)

    blocks: list[_Cells] = []
    different: list[np.ndarray] = []
    inverses: list[np.ndarray] = []
    for first, last in _blocks(source_lengths, target_lengths, most):
        s = slice(source_ends[first] - source_lengths[first], source_ends[last - 1])
        t = slice(target_ends[first] - target_lengths[first], target_ends[last - 1])
        keys, column, row_lengths = _cells_of(
            flat_sources[s],
            source_lengths[first:last],
            flat_targets[t],
            target_lengths[first:last],
            width,
        )
        unique, inverse = np.unique(keys, return_inverse=True)
        different.append(unique)
        inverses.append(inverse.astype(np.int32))
        blocks.append(_Cells(inverses[-1], column, row_lengths, s.stop - s.start))
    keys = np.unique(np.concatenate(different))
    blocks = [
        _Cells(
            np.searchsorted(keys, u).astype(np.int32)[c.pair], c.column, c.row_lengths, c.columns
        )
        for u, c in zip(different, blocks, strict=True)
    ]
    del different, inverses
    source, target = (keys // width).astype(np.int32), (keys % width).astype(np.int32)
    return blocks, source, target
