"""What was measured about heads and alignments: the report, and the head that it chose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqviz import handwritten, scores
from seqviz.looking.alignment import (
    alignment_counts,
    alignment_error_rate,
    best_head,
    cross_attention,
    diagonal_links,
    error_rates,
    forced_pair,
    head_statistics,
    links,
)
from seqviz.looking.saliency import saliency
from seqviz.report import Report, read_training
from seqviz.shipped import models_folder
from seqviz.translating.translator import Translator

RESAMPLES = 1_000

NOTE = (
    "AER on so few pairs is a small sample: read a difference only where the intervals are far apart. They "
    "cover the choice of sentence pairs, not that of the head, of the annotator or of a training seed. The "
    "human translation was forced on the models, so this is not about their own output. A head that agrees "
    "with alignments is not thereby a reason for what the model writes. Layers and heads are counted from 0."
)


def aligned_pairs() -> list[dict[str, Any]]:
    """The project's hand-aligned pairs: those at even places to choose on, the others to report."""
    return handwritten.texts("aligned")


def pairs_digest(pairs: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of texts and links, so that a report can tell that they have changed."""
    keys = ("english", "french", "sure", "possible")
    content = json.dumps([[pair[key] for key in keys] for pair in pairs], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def alignment_report(
    translators: Mapping[str, Translator],
    pairs: Sequence[Mapping[str, Any]],
    *,
    number: int = RESAMPLES,
) -> dict[str, Any]:
    """Choose a head on every second pair, and score it on the others beside all else that links words.

    Args:
        translators: by name.
        pairs: as in `head_error_rates`; those at even places are chosen on.
        number: resamples of sentence pairs for the intervals.
    Returns:
        ``choice`` by model with several heads; ``heads`` by model with cross-attention: each head's ``aer``
        on the pairs chosen on, ``entropy`` in bits and ``end_mass`` 0–1 (means over these pairs), (L, H);
        ``results`` on the other pairs: ``links``, ``precision``, ``recall``, ``aer`` with its 95 %
        interval, and what was scored in ``says``. A model's name stands for its attention (of several heads
        the chosen one), ``<name>:mean`` for the mean of all heads, ``<name>:saliency``, ``diagonal``.
    """
    chosen_on, reported = pairs[0::2], pairs[1::2]
    choice: dict[str, dict[str, int]] = {}
    heads: dict[str, Any] = {}
    scored: dict[str, tuple[str, np.ndarray]] = {}

    def score(key: str, says: str, found: Sequence[frozenset[tuple[int, int]]]) -> None:
        counts = [alignment_counts(a, pair) for a, pair in zip(found, reported, strict=True)]
        scored[key] = (says, np.array(counts))

    for name, translator in translators.items():
        forced = [forced_pair(translator, pair) for pair in reported]
        if "cross" in forced[0].attentions:
            choosing = [cross_attention(forced_pair(translator, pair)) for pair in chosen_on]
            rates = error_rates(choosing, chosen_on)
            statistics = [head_statistics(map_) for map_ in choosing]
            heads[name] = {
                "aer": rates.round(4).tolist(),
                "entropy": np.mean([s.entropy for s in statistics], axis=0).round(4).tolist(),
                "end_mass": np.mean([s.end_mass for s in statistics], axis=0).round(4).tolist(),
            }
            layer, head = best_head(rates)
            maps = [translation.attention("cross") for translation in forced]
            says = "attention"
            if rates.size > 1:
                choice[name] = {"layer": layer, "head": head}
                says = f"attention of layer {layer}, head {head}, the best on the other pairs"
                score(f"{name}:mean", "mean over all layers and heads", [links(m) for m in maps])
            score(name, says, [links(m, layer, head) for m in maps])
        score(
            f"{name}:saliency",
            "gradient × input",
            [links(saliency(translator, t).shares(specials=True)) for t in forced],
        )
    lengths = [(len(p["english"].split()), len(p["french"].split())) for p in reported]
    score("diagonal", "words at the same place, no model", [diagonal_links(*n) for n in lengths])

    draws = scores.resamples(len(reported), number, (1,))
    return {
        "note": NOTE,
        "choice": choice,
        "heads": heads,
        "resamples": number,
        "results": {key: _scored(says, counts, draws) for key, (says, counts) in scored.items()},
    }


def _scored(says: str, counts: np.ndarray, draws: np.ndarray) -> dict[str, Any]:
    agree_sure, agree, number, sure = (int(n) for n in counts.sum(axis=0))
    low, high = (
        scores.interval(scores.resampled(alignment_error_rate, counts, draws)) or (None,) * 2
    )
    return {
        "says": says,
        "links": number,
        "precision": round(agree / number, 4) if number else None,
        "recall": round(agree_sure / sure, 4),
        "aer": {
            "value": round(float(alignment_error_rate(counts.sum(axis=0))), 4),
            "low": None if low is None else round(low, 4),
            "high": None if high is None else round(high, 4),
        },
    }


def aligned_head(model: str | Translator) -> tuple[int, int] | None:
    """The head of a shipped model's cross-attention that is closest to alignments made by hand.

    Args:
        model: name of a shipped model, or a loaded one.
    Returns:
        layer and head, counted from 0, as ``models/report/attention.json`` has them; None where that was
        not measured on these very weights, or the model has no heads to choose from.
    """
    models = models_folder()
    if isinstance(model, Translator):
        name, training = model.name, model.training
    else:
        name, training = model, read_training(models).get(model, {})
    report = Report.read(models / "report" / "attention.json")
    if report is None or name not in report.results["choice"] or not report.is_of(name, training):
        return None
    chosen = report.results["choice"][name]
    return chosen["layer"], chosen["head"]
