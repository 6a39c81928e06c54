"""Chains of strangers: everyday sentences that have nothing to do with each other, one after another.

Whatever long sentences are harder for, they are harder for in themselves. Here every point scores the same
sentences; only how many of them a model holds at once changes. In each of `SHUFFLES` orders the sentences
are cut into units of `UNIT`, and each unit into chains of `SIZES` sentences.

The report's results, for ``sets["all"]`` and ``sets["unseen"]`` (without pairs whose French side stands in
the training corpora):

- ``n`` sentences, ``units`` of an order, ``single[name]``: ``bleu, chrf, loss`` of single sentences, each a unit.
- ``references``: of each size ``repeated``, the share of human texts that count as repeating themselves.
- ``models[name]``: of each size a point, ``sentences``, ``words`` (mean of a chain), ``trained`` (whether
  training joined so many), and the measures of `LEGEND`, each with ``…_low, …_high`` and ``…_orders``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqviz import coverage, scores
from seqviz.constants import MAX_JOINED, MAX_SOURCE_WORDS
from seqviz.data.pairs import CorpusError, Pair, read_pairs
from seqviz.measuring.counts import Counts, Group, Marker, rounded
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import words_in
from seqviz.report import Report
from seqviz.translating.output import repeated_spans

SCHEMA = 1

SIZES = (1, 2, 4, 8, 12)
"""Sentences of a chain."""
UNIT = 24
"""Sentences that are scored as one text, the same at every size: what all sizes divide."""
SHUFFLES = 5
"""Orders in which strangers meet."""
MAX_WORDS = 12
"""Words of the longest sentences that are taken."""

LEGEND = {
    "bleu, chrf": f"corpus scores over units of {UNIT} sentences, 0 to 100; single: over sentences",
    "loss": "teacher forcing, nats a target token, without the end token",
    "brevity_penalty, length_ratio": "of BLEU",
    "repeated, limit": "shares of outputs that repeat themselves, or were cut at the output limit, 0 to 1",
    "found": "share of English content words whose likely translation the output holds, 0 to 1",
    "found_chance": "the same in the output for another chain of like length",
    "found_reference": "the same in the human translation",
    "known": "share of judged content words that are found when their sentence stands alone, 0 to 1",
    "known_chance": "the same in the output for another single sentence of like length",
    "forgotten": "of the words found alone, the share that is not found in the chain, 0 to 1",
    "forgotten_chance": "the same in the output for another chain of like length: all but chance is forgotten",
    "bleu_kept, chrf_kept": "score divided by the score at one sentence",
    "loss_change": "loss minus the loss at one sentence",
    "…_low, …_high": "95 % interval, paired bootstrap over the units of an order, mean of the orders",
    "…_orders": "smallest and largest value of the orders",
}
"""What the names in the report mean, part of every report."""


@dataclass(frozen=True)
class Chains:
    """Sentences and the orders in which they are chained.

    Attributes:
        pairs: a whole number of units.
        orders: numbers of the pairs, each order holding every one once.
        skipped: pairs of the file that are not used, by reason.
    """

    pairs: tuple[Pair, ...]
    orders: tuple[tuple[int, ...], ...]
    skipped: Mapping[str, int]

    def of_size(self, size: int, order: int) -> list[tuple[Pair, ...]]:
        """The chains of one size in one order."""
        numbers = self.orders[order]
        return [
            tuple(self.pairs[i] for i in numbers[start : start + size])
            for start in range(0, len(numbers), size)
        ]

    def sources(self) -> list[str]:
        """Every text to translate, once, longest first."""
        return sorted({source for source, _ in self._joined()}, key=lambda text: (-len(text), text))

    def texts(self) -> list[tuple[str, str]]:
        """Every (source, target) whose loss is measured, once, longest first."""
        return sorted(set(self._joined()), key=lambda text: (-len(text[1]), text))

    def _joined(self) -> Iterable[tuple[str, str]]:
        return (
            joined(chain)
            for order in range(len(self.orders))
            for size in SIZES
            for chain in self.of_size(size, order)
        )


def joined(chain: Sequence[Pair]) -> tuple[str, str]:
    """A chain as one text, source and target."""
    return (
        " ".join(pair.source.strip() for pair in chain),
        " ".join(pair.target.strip() for pair in chain),
    )


def chains(
    path: str | os.PathLike[str],
    *,
    sample: int | None = 2_000,
    seed: int = 1,
    seen: frozenset[str] = frozenset(),
) -> Chains:
    """Sentences of a corpus file, in five random orders.

    Args:
        path: corpus file, see `corpus.read_pairs`.
        sample: at most so many sentences, drawn at random; None takes all.
        seed: of sample and orders.
        seen: French sides (see `plain`) whose pairs are left out.
    Raises:
        CorpusError: see `corpus.read_pairs`; also where fewer than two units are left.
    """
    path = Path(path)
    kept: list[Pair] = []
    skipped: dict[str, int] = {}
    sources: set[str] = set()
    for pair in read_pairs(path):
        reason = None
        if not pair.source.strip() or not pair.target.strip():
            reason = "empty side"
        elif words_in(pair.source) > MAX_WORDS:
            reason = f"over {MAX_WORDS} source words"
        elif plain(pair.target) in seen:
            reason = "French side stands in the training corpora"
        elif plain(pair.source) in sources:
            reason = "same English as another pair"
        sources.add(plain(pair.source))
        if reason:
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            kept.append(pair)
    random = np.random.default_rng([seed, 23])
    size = len(kept) if sample is None else min(sample, len(kept))
    size -= size % UNIT
    if size < 2 * UNIT:
        reasons = ", ".join(f"{count} {why}" for why, count in skipped.items()) or "none left out"
        raise CorpusError(
            f"{path}: expected at least {2 * UNIT} sentences of at most {MAX_WORDS} words, got "
            f"{len(kept)} ({reasons}); give a larger file"
        )
    taken = tuple(kept[i] for i in sorted(random.permutation(len(kept))[:size].tolist()))
    lengths = np.array([words_in(pair.source) for pair in taken])
    return Chains(taken, tuple(_order(lengths, random) for _ in range(SHUFFLES)), skipped)


def _order(lengths: np.ndarray, random: np.random.Generator) -> tuple[int, ...]:
    """A random order whose longest chains fit into what is read at once."""
    longest = max(SIZES)
    order = random.permutation(len(lengths))
    for _ in range(1_000):
        words = lengths[order].reshape(-1, longest).sum(axis=1)
        too_long = np.flatnonzero(words > MAX_SOURCE_WORDS)
        if not len(too_long):
            return tuple(order.tolist())
        # Each sentence of such a chain changes places with any other.
        for place in (too_long[:, None] * longest + np.arange(longest)).ravel():
            other = random.integers(len(order))
            order[place], order[other] = order[other], order[place]
    raise CorpusError(
        f"expected sentences of which {longest} in a row have at most {MAX_SOURCE_WORDS} words, got "
        f"{lengths.mean():.1f} words a sentence; give a file of shorter ones"
    )


def plain(text: str) -> str:
    """A text's letters and digits, lower-cased: the same for two ways to set the same words."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def seen_targets(paths: Iterable[str | os.PathLike[str]]) -> frozenset[str]:
    """French sides of corpora, as `plain` text."""
    return frozenset(plain(pair.target) for path in paths for pair in read_pairs(path))


def chains_report(
    sets: Mapping[str, tuple[Chains, Mapping[str, Outputs]]],
    lexicon: coverage.Lexicon,
    data: Mapping[str, Any],
    *,
    number: int = 1_000,
    seed: int = 1,
    command: str = "seqviz chains",
    device: str | None = None,
) -> Report:
    """Everything that was measured; what it holds stands above.

    Args:
        sets: "all" and perhaps "unseen": chains and the outputs of each model.
        lexicon: for found words.
        data: what was measured on.
        number: of resamples.
        seed: of the resamples.
        command: that measures it.
        device: on which it was translated.
    """
    marker = Marker(lexicon)
    models = {
        name: out.information for _, outputs in sets.values() for name, out in outputs.items()
    }
    results = {
        "legend": LEGEND,
        "sizes": list(SIZES),
        "unit": UNIT,
        "orders": SHUFFLES,
        "resamples": number,
        "seed": seed,
        "signatures": scores.signatures(),
        "sets": {
            which: _set(drawn, outputs, marker, number, seed)
            for which, (drawn, outputs) in sets.items()
        },
    }
    return Report.now(command, data, results, models, device=device or "cpu", schema=SCHEMA)


def _set(
    drawn: Chains, outputs: Mapping[str, Outputs], marker: Marker, number: int, seed: int
) -> dict[str, Any]:
    singles = Group("single", 1, MAX_WORDS, 1, tuple((joined((p,)),) for p in drawn.pairs))
    return {
        "n": len(drawn.pairs),
        "units": len(drawn.pairs) // UNIT,
        "skipped": dict(drawn.skipped),
        "single": {name: _single(singles, out, marker) for name, out in outputs.items()},
        "references": [
            {"sentences": size, "repeated": _repeated_references(drawn, size)} for size in SIZES
        ],
        "models": {
            name: _points(drawn, out, marker, number, seed) for name, out in outputs.items()
        },
    }


def _single(group: Group, outputs: Outputs, marker: Marker) -> dict[str, float | None]:
    counts = Counts.of(group, outputs, marker)
    return {
        "bleu": rounded(float(scores.bleu(counts.bleu.sum(axis=0))), 2),
        "chrf": rounded(float(scores.chrf(counts.chrf.sum(axis=0))), 2),
        "loss": rounded(float(scores.ratio(counts.loss.sum(axis=0))), 4),
    }


def _repeated_references(drawn: Chains, size: int) -> float:
    targets = [
        joined(chain)[1] for order in range(SHUFFLES) for chain in drawn.of_size(size, order)
    ]
    return round(sum(bool(repeated_spans(text.split())) for text in targets) / len(targets), 4)


# ---------------------------------------------------------------------------------------------
# One model


def _points(
    drawn: Chains, outputs: Outputs, marker: Marker, number: int, seed: int
) -> list[dict[str, Any]]:
    """A point of each size: the mean of the orders."""
    units = len(drawn.pairs) // UNIT
    by_order: list[list[dict[str, np.ndarray]]] = []
    for order in range(len(drawn.orders)):
        draws = scores.resamples(units, number, (seed, 29, order))
        # The whole first: every unit once.
        draws = np.concatenate([np.ones((1, units)), draws])
        points = [_measures(drawn, size, order, outputs, marker, draws) for size in SIZES]
        first = points[0]
        for point in points:
            with np.errstate(divide="ignore", invalid="ignore"):
                point["bleu_kept"] = point["bleu"] / first["bleu"]
                point["chrf_kept"] = point["chrf"] / first["chrf"]
            point["loss_change"] = point["loss"] - first["loss"]
        by_order.append(points)
    return [_point(drawn, size, [points[i] for points in by_order]) for i, size in enumerate(SIZES)]


def _point(drawn: Chains, size: int, orders: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    words = sum(words_in(pair.source) for pair in drawn.pairs) * size / len(drawn.pairs)
    made: dict[str, Any] = {
        "sentences": size,
        "words": round(words, 1),
        "trained": size <= MAX_JOINED,
    }
    for name in orders[0]:
        values = [float(found[name][0]) for found in orders]
        ends = [scores.interval(found[name][1:]) or (np.nan, np.nan) for found in orders]
        low, high = np.mean(ends, axis=0)
        digits = 2 if name in ("bleu", "chrf") else 4
        made[name] = rounded(float(np.mean(values)), digits)
        made[f"{name}_low"], made[f"{name}_high"] = rounded(low, digits), rounded(high, digits)
        made[f"{name}_orders"] = [rounded(min(values), digits), rounded(max(values), digits)]
    return made


_OF_COUNTS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "bleu": ("bleu", scores.bleu),
    "chrf": ("chrf", scores.chrf),
    "loss": ("loss", scores.ratio),
    "brevity_penalty": ("bleu", scores.brevity_penalty),
    "length_ratio": ("bleu", scores.length_ratio),
    "repeated": ("repeated", scores.ratio),
    "limit": ("limit", scores.ratio),
    "found": ("found", scores.ratio),
}


def _measures(
    drawn: Chains, size: int, order: int, outputs: Outputs, marker: Marker, draws: np.ndarray
) -> dict[str, np.ndarray]:
    """Every measure of one size in one order: of the whole, then of each resample, (1 + R,)."""
    found = drawn.of_size(size, order)
    in_unit = UNIT // size
    texts = [joined(chain) for chain in found]
    units = tuple(tuple(texts[i : i + in_unit]) for i in range(0, len(texts), in_unit))
    counts = Counts.of(
        Group(f"chains-{size}", 1, size * MAX_WORDS, in_unit, units), outputs, marker
    )
    made = {
        name: scores.resampled(score, getattr(counts, rows), draws)
        for name, (rows, score) in _OF_COUNTS.items()
    }
    rows = np.zeros((len(MEMORY), len(found), 2))
    other = _neighbours(texts)
    for i, chain in enumerate(found):
        rows[:, i] = _memory(chain, texts[i], texts[other[i]][0], outputs, marker)
    for name, of_chains in zip(MEMORY, rows, strict=True):
        of_units = of_chains.reshape(len(units), in_unit, 2).sum(axis=1)
        made[name] = scores.resampled(scores.ratio, of_units, draws)
    if size == 1:
        made["known_chance"] = made["found_chance"]
    return made


MEMORY = ("found_chance", "found_reference", "known", "forgotten", "forgotten_chance")


def _memory(
    chain: Sequence[Pair],
    text: tuple[str, str],
    other: str,
    outputs: Outputs,
    marker: Marker,
) -> list[tuple[int, int]]:
    """Counts of one chain for each measure of `MEMORY`: how many, and of how many.

    Args:
        other: source of the chain whose output stands for chance.
    """
    source, target = text
    said = {text: outputs.translations[text].text for text in (source, other)}
    alone = [
        marker.marks(single, outputs.translations[single].text)
        for single in (pair.source.strip() for pair in chain)
    ]
    own, by_chance = marker.marks(source, said[source]), marker.marks(source, said[other])

    def forgotten(together: list[coverage.Word]) -> tuple[int, int]:
        words = coverage.states(alone, together)
        return coverage.forgetting(word for sentence in words for word in sentence)

    return [
        coverage.counts(by_chance),
        coverage.counts(marker.marks(source, target)),
        coverage.counts([word for sentence in alone for word in sentence]),
        forgotten(own),
        forgotten(by_chance),
    ]


def _neighbours(texts: Sequence[tuple[str, str]]) -> list[int]:
    """For each text the number of another one of like length in words; the same for every model."""
    order = sorted(range(len(texts)), key=lambda i: (words_in(texts[i][0]), i))
    found = [0] * len(texts)
    for place, i in enumerate(order):
        found[i] = order[place - 1] if place else order[1]
    return found
