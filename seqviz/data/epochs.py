"""Which examples an epoch has, and in which batches: both depend on seed and number alone.

Shapes: `E` examples of an epoch. Lengths are in pieces unless a name ends in ``_words``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqviz.constants import MAX_JOINED, MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.data.encoded import EncodedCorpus
from seqviz.data.pairs import CorpusError


@dataclass(frozen=True)
class WeightedCorpus:
    """A corpus and how often an epoch goes through it.

    Attributes:
        corpus: encoded.
        repeat: passes of an epoch. The fraction of a pass takes blocks of consecutive pairs, other ones
            in each epoch until all have had their turn.
        variants: the same corpus rewritten in other ways: further passes of an epoch read these in turn.
    """

    corpus: EncodedCorpus
    repeat: float = 1
    variants: tuple[EncodedCorpus, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.repeat) and self.repeat >= 0):
            raise CorpusError(
                f"expected a repeat of 0 or more, got {self.repeat} for {self.corpus.information['name']}; "
                "0.25 reads a quarter in each epoch"
            )

    @property
    def passes(self) -> list[EncodedCorpus]:
        """What each pass of an epoch reads; the last one may be a part of a pass."""
        read = (self.corpus, *self.variants)
        return [read[number % len(read)] for number in range(math.ceil(self.repeat))]


@dataclass(frozen=True)
class Epoch:
    """The examples of one pass over the data, each one or more consecutive pairs.

    Attributes, all (E,): `corpus` index into the list of sources, `read` the pass, `first` pair, `count`
    of pairs, `source_length` and `target_length` in pieces with the end token, `source_words`.
    """

    corpus: np.ndarray
    read: np.ndarray
    first: np.ndarray
    count: np.ndarray
    source_length: np.ndarray
    target_length: np.ndarray
    source_words: np.ndarray

    def __len__(self) -> int:
        return len(self.corpus)

    def length_histogram(self) -> list[int]:
        """Examples by source words: entry `n` counts those of `n` words, 0 … 100."""
        return np.bincount(self.source_words, minlength=MAX_SOURCE_WORDS + 1).tolist()


def plan_epoch(
    sources: Sequence[WeightedCorpus], *, seed: int, epoch: int, join_probability: float = 0.15
) -> Epoch:
    """Decide which examples an epoch has. Every pair occurs exactly once in every whole pass.

    With `join_probability` an example is 2 to 8 (uniform) consecutive pairs of one document, fewer
    where the document or a length cap ends the join. The result depends on the arguments alone.

    Raises:
        CorpusError: no corpus, or none that is repeated at least once.
    """
    columns: list[np.ndarray] = []
    for index, source in enumerate(sources):
        for number, corpus in enumerate(source.passes):
            random = np.random.default_rng([seed, epoch, index, number])
            share = min(1.0, source.repeat - number)
            block = np.zeros(len(corpus), np.int64)
            if share < 1:
                block = np.arange(len(corpus)) // BLOCK
            first = _join(corpus, random, join_probability, block)
            count = np.diff(np.append(first, len(corpus)))
            if share < 1:
                mine = _blocks(int(block[-1]) + 1, share, [seed, index], epoch)[block[first]]
                first, count = first[mine], count[mine]
            words = np.concatenate([[0], np.cumsum(corpus.source_words, dtype=np.int64)])
            end = first + count
            columns.append(
                np.stack(
                    [
                        np.full(len(first), index),
                        np.full(len(first), number),
                        first,
                        count,
                        corpus.source_offsets[end] - corpus.source_offsets[first] + 1,
                        corpus.target_offsets[end] - corpus.target_offsets[first] + 1,
                        words[end] - words[first],
                    ]
                )
            )
    if not columns:
        raise CorpusError(
            "expected at least one corpus that an epoch goes through, got none; give a corpus with a "
            "repeat of 1 or more"
        )
    return Epoch(*np.concatenate(columns, axis=1))


BLOCK = 64
"""Consecutive pairs that the fraction of a pass takes together, so that they can still be joined."""


def _blocks(total: int, share: float, seed: Sequence[int], epoch: int) -> np.ndarray:
    """Which blocks an epoch reads, true or false for each: the next `share` of a fixed random order."""
    order = np.random.default_rng([*seed, 2]).permutation(total)
    begin, end = round(epoch * share * total), round((epoch + 1) * share * total)
    chosen = np.zeros(total, bool)
    chosen[order[np.arange(begin, max(end, begin + 1)) % total]] = True
    return chosen


def _join(
    corpus: EncodedCorpus, random: np.random.Generator, probability: float, block: np.ndarray
) -> np.ndarray:
    """First pair of every example of one pass over a corpus; no example crosses a document or block."""
    total = len(corpus)
    starts_join = (random.random(total) < probability).tolist()
    sizes = random.integers(2, MAX_JOINED + 1, total).tolist()
    words = corpus.source_words.tolist()
    source_lengths = np.diff(corpus.source_offsets).tolist()
    target_lengths = np.diff(corpus.target_offsets).tolist()
    document = list(zip(corpus.document.tolist(), block.tolist(), strict=True))
    firsts: list[int] = []
    at = 0
    while at < total:
        firsts.append(at)
        end = at + 1
        if starts_join[at]:
            w, s, t = words[at], source_lengths[at], target_lengths[at]
            while end < total and end - at < sizes[at] and document[end] == document[at]:
                w += words[end]
                s += source_lengths[end]
                t += target_lengths[end]
                if w > MAX_SOURCE_WORDS or s > MAX_SOURCE_PIECES or t > MAX_TARGET_PIECES:
                    break
                end += 1
        at = end
    return np.array(firsts, np.int64)


def plan_batches(epoch: Epoch, *, batch_tokens: int, seed: int, number: int) -> list[np.ndarray]:
    """Cut an epoch into batches of at most `batch_tokens` target tokens, in random order.

    Examples of like length stand together (ties in random order), so that little is padded; then
    the batches are shuffled. An example longer than `batch_tokens` makes a batch of its own.

    Returns:
        Arrays of example numbers; together they hold every example once.
    """
    random = np.random.default_rng([seed, number, 1])
    order = random.permutation(len(epoch))
    order = order[np.lexsort((epoch.source_length[order], epoch.target_length[order]))]
    lengths = epoch.target_length[order]
    cuts, filled = [], 0
    for position, length in enumerate(lengths.tolist()):
        if filled and filled + length > batch_tokens:
            cuts.append(position)
            filled = 0
        filled += length
    batches = np.split(order, cuts)
    return [batches[i] for i in random.permutation(len(batches))]
