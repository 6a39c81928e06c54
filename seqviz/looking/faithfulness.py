"""Does the word that attention or saliency ranks first matter? Take it away, and see.

For each French content word of a human translation: the English word ranked first is removed from the source,
and the French sentence is read again. What the removal costs is the loss of that French word's pieces now
minus before. A ranking that means something costs more than the removal of a random English word.

Deletion leaves sentences that no one writes, so a cost says that the model leaned on the word, no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqviz import scores
from seqviz.coverage.stems import FUNCTION_WORDS
from seqviz.looking.alignment import diagonal_links, forced_pair, links, teacher_forced
from seqviz.looking.alignment_report import HeadChoice
from seqviz.looking.saliency import saliency
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator

LEGEND = {
    "cost": "loss of a French word's pieces after the removal minus before, nats a word, mean over words",
    "random": "the same, mean over all English words of the sentence that the ranking did not choose",
    "gain": "cost minus random, with its 95 % interval over sentence pairs",
    "words": "French words that have a sure link, a content word at its other end, and a ranking",
}


def deletion_report(
    translators: Mapping[str, Translator],
    pairs: Sequence[Mapping[str, Any]],
    choice: Mapping[str, HeadChoice],
    *,
    number: int = 1_000,
) -> dict[str, Any]:
    """What removing the word ranked first costs, for each model and ranking.

    Args:
        translators: by name.
        pairs: as in `looking.alignment.head_error_rates`.
        choice: head and reading of each model with cross-attention.
        number: resamples of sentence pairs.
    Returns:
        ``legend``, and by model in ``models`` the rankings "attention", "saliency", "aligned" (the word that
        people linked) and "diagonal", each ``words, cost, random, gain``.
    """
    return {
        "legend": LEGEND,
        "models": {
            name: _of_model(translator, pairs, choice.get(name), number)
            for name, translator in translators.items()
        },
    }


def _of_model(
    translator: Translator,
    pairs: Sequence[Mapping[str, Any]],
    chosen: HeadChoice | None,
    number: int,
) -> dict[str, Any]:
    rows: dict[str, list[np.ndarray]] = {}
    for pair in pairs:
        forced = forced_pair(translator, pair)
        costs = removal_costs(translator, forced)  # (English words, French words)
        asked = _asked(pair)
        for ranking, first in _rankings(translator, forced, pair, chosen).items():
            found = np.zeros(3)  # words, cost, random
            for target in asked:
                source = first.get(target)
                if source is None or len(costs) < 2:
                    continue
                others = np.delete(costs[:, target], source)
                found += 1, costs[source, target], others.mean()
            rows.setdefault(ranking, []).append(found)
    draws = scores.resamples(len(pairs), number, (1, 31))
    return {ranking: _entry(np.array(found), draws) for ranking, found in rows.items()}


def _entry(rows: np.ndarray, draws: np.ndarray) -> dict[str, Any]:
    words, cost, by_chance = rows.sum(axis=0)
    if not words:
        return {"words": 0, "cost": None, "random": None, "gain": None}
    gains = np.stack([rows[:, 1] - rows[:, 2], rows[:, 0]], axis=1)
    low, high = scores.interval(scores.resampled(scores.ratio, gains, draws)) or (None, None)
    return {
        "words": int(words),
        "cost": round(float(cost / words), 4),
        "random": round(float(by_chance / words), 4),
        "gain": {
            "value": round(float((cost - by_chance) / words), 4),
            "low": None if low is None else round(low, 4),
            "high": None if high is None else round(high, 4),
        },
    }


def _asked(pair: Mapping[str, Any]) -> list[int]:
    """French words with a sure link to an English content word."""
    english = pair["english"].split()
    content = {
        i
        for i, word in enumerate(english)
        if word.strip(".,;:!?\"'()").lower() not in FUNCTION_WORDS
    }
    return sorted({target for source, target in pair["sure"] if source in content})


def _rankings(
    translator: Translator,
    forced: Translation,
    pair: Mapping[str, Any],
    chosen: HeadChoice | None,
) -> dict[str, dict[int, int]]:
    """For each ranking the English word that it puts first, by French word."""
    found = {}
    if chosen is not None:
        map_ = forced.attention("cross").at(chosen.reading)
        found["attention"] = links(map_, chosen.layer, chosen.head)
    found["saliency"] = links(saliency(translator, forced).shares(specials=True))
    found["diagonal"] = diagonal_links(len(forced.source_words), len(forced.target_words))
    # Of several English words that people linked to one French word the first.
    found["aligned"] = frozenset(
        (min(i for i, k in pair["sure"] if k == j), j) for _, j in pair["sure"]
    )
    return {ranking: {j: i for i, j in linked} for ranking, linked in found.items()}


def removal_costs(translator: Translator, forced: Translation) -> np.ndarray:
    """What each French word's loss gains when one English word is removed.

    Args:
        forced: from `teacher_forced`.
    Returns:
        (English words, French words), nats."""
    words = forced.source_words
    before = _word_losses(forced)
    costs = np.zeros((len(words), len(forced.target_words)))
    for i in range(len(words) if len(words) > 1 else 0):  # of one word nothing would be left
        rest = " ".join(word for k, word in enumerate(words) if k != i)
        costs[i] = _word_losses(teacher_forced(translator, rest, forced.text)) - before
    return costs


def _word_losses(forced: Translation) -> np.ndarray:
    losses = np.zeros(len(forced.target_words))
    for number, log_prob in zip(
        forced.target_pieces.word_of_piece, forced.token_log_probs, strict=True
    ):
        if number >= 0:
            losses[number] -= log_prob
    return losses
