"""What was measured about heads and alignments: the report, and the head that it chose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from seqviz.maps import READINGS, AttentionMap
from seqviz.report import Report, read_training
from seqviz.shipped import models_folder
from seqviz.translating.result import Translation
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


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Aligned pairs of a JSON file.

    Raises:
        ValueError: no list of pairs with ``english``, ``french``, ``sure`` and ``possible``.
    """
    try:
        pairs = json.loads(path.read_text(encoding="utf-8"))
        return [{key: pair[key] for key in _PARTS} for pair in pairs]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: expected a list of pairs with {', '.join(_PARTS)}, got something else "
            f"({type(error).__name__}: {error}); see 'seqviz alignment --help'"
        ) from error


_PARTS = ("english", "french", "sure", "possible")


def pairs_digest(pairs: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of texts and links, so that a report can tell that they have changed."""
    content = json.dumps([[pair[key] for key in _PARTS] for pair in pairs], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


class HeadChoice(NamedTuple):
    """A head, counted from 0, and the step at which it is read (`AttentionMap.at`)."""

    layer: int
    head: int
    reading: str


Linker = Callable[[Translation], frozenset[tuple[int, int]]]
"""Links of a forced translation."""


def alignment_report(
    translators: Mapping[str, Translator],
    pairs: Sequence[Mapping[str, Any]],
    *,
    public: Sequence[Mapping[str, Any]] = (),
    number: int = RESAMPLES,
) -> dict[str, Any]:
    """Choose head and reading on every second pair, and score them on others beside all else that links words.

    Args:
        translators: by name.
        pairs: as in `head_error_rates`; those at even places are chosen on.
        public: pairs by other people; nothing is chosen on them.
        number: resamples of sentence pairs for the intervals.
    Returns:
        ``choice`` by model with cross-attention: ``layer, head, reading``. ``heads`` by the same: each
        head's ``aer`` on the pairs chosen on and ``aer_reading`` (the same read one step later), ``entropy``
        in bits and ``end_mass`` 0–1 (means over these pairs), (L, H), and ``best`` of each reading. ``results`` on the other pairs:
        ``links``, ``precision``, ``recall``, ``aer`` with its 95 % interval, and what was scored in
        ``says``. A model's name stands for its chosen head and reading; ``<name>:predicting`` and
        ``<name>:reading`` for the best head of each reading, ``<name>:mean`` for the mean of all heads in
        the chosen reading, ``<name>:saliency``, ``diagonal``. ``own_as_public`` and ``public`` are like
        ``results``, on the same pairs and on the public ones, possible links counted as sure; null without
        public pairs.
    """
    chosen_on, reported = pairs[0::2], pairs[1::2]
    choice: dict[str, HeadChoice] = {}
    heads: dict[str, Any] = {}
    linkers: dict[str, tuple[str, Translator | None, Linker]] = {}
    for name, translator in translators.items():
        choosing = [forced_pair(translator, pair) for pair in chosen_on]
        if "cross" in choosing[0].attentions:
            maps = [cross_attention(translation) for translation in choosing]
            rates = {reading: error_rates(maps, chosen_on, reading) for reading in READINGS}
            heads[name] = _every_head(maps, rates)
            best = {r: HeadChoice(*best_head(rates[r]), r) for r in READINGS}
            choice[name] = min(best.values(), key=lambda c: rates[c.reading][c.layer, c.head])
            heads[name]["best"] = {r: best[r]._asdict() for r in READINGS}
            for key, chosen in (
                (name, choice[name]),
                *((f"{name}:{r}", best[r]) for r in READINGS),
            ):
                linkers[key] = (
                    _says(chosen, maps[0].num_heads),
                    translator,
                    _attention_links(*chosen),
                )
            if maps[0].num_layers * maps[0].num_heads > 1:
                reading = choice[name].reading
                says = f"mean over all layers and heads, {_READ[reading]}"
                linkers[f"{name}:mean"] = says, translator, _attention_links(None, None, reading)
        linkers[f"{name}:saliency"] = "gradient × input", translator, _saliency_links(translator)
    linkers["diagonal"] = "words at the same place, no model", None, _diagonal

    def results(texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        draws = scores.resamples(len(texts), number, (1,))
        return _results(texts, linkers, draws)

    as_sure = [{**p, "sure": [*p["sure"], *p["possible"]], "possible": []} for p in public]
    own = [{**p, "sure": [*p["sure"], *p["possible"]], "possible": []} for p in reported]
    return {
        "note": NOTE,
        "choice": {name: chosen._asdict() for name, chosen in choice.items()},
        "heads": heads,
        "resamples": number,
        "results": results(reported),
        "own_as_public": results(own) if public else None,
        "public": results(as_sure) if public else None,
    }


_READ = {"predicting": "read where the word is chosen", "reading": "read one step later"}


def _says(chosen: HeadChoice, num_heads: int) -> str:
    head = f" of layer {chosen.layer}, head {chosen.head}, the best on the other pairs"
    return f"attention{head if num_heads > 1 else ''}, {_READ[chosen.reading]}"


def _every_head(maps: Sequence[AttentionMap], rates: Mapping[str, np.ndarray]) -> dict[str, Any]:
    statistics = [head_statistics(map_) for map_ in maps]
    return {
        "aer": rates["predicting"].round(4).tolist(),
        "aer_reading": rates["reading"].round(4).tolist(),
        "entropy": np.mean([s.entropy for s in statistics], axis=0).round(4).tolist(),
        "end_mass": np.mean([s.end_mass for s in statistics], axis=0).round(4).tolist(),
    }


def _attention_links(layer: int | None, head: int | None, reading: str) -> Linker:
    return lambda forced: links(forced.attention("cross").at(reading), layer, head)


def _saliency_links(translator: Translator) -> Linker:
    return lambda forced: links(saliency(translator, forced).shares(specials=True))


def _diagonal(forced: Translation) -> frozenset[tuple[int, int]]:
    return diagonal_links(len(forced.source_words), len(forced.target_words))


def _results(
    pairs: Sequence[Mapping[str, Any]],
    linkers: Mapping[str, tuple[str, Translator | None, Linker]],
    draws: np.ndarray,
) -> dict[str, Any]:
    forced: dict[int, list[Translation]] = {}
    found = {}
    any_model = next(translator for _, translator, _ in linkers.values() if translator)
    for key, (says, translator, linker) in linkers.items():
        model = translator or any_model
        if id(model) not in forced:
            forced[id(model)] = [forced_pair(model, pair) for pair in pairs]
        counts = [
            alignment_counts(linker(translation), pair)
            for translation, pair in zip(forced[id(model)], pairs, strict=True)
        ]
        found[key] = _scored(says, np.array(counts), draws)
    return found


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


def aligned_head(model: str | Translator) -> HeadChoice | None:
    """The head of a shipped model's cross-attention that is closest to alignments made by hand.

    Args:
        model: name of a shipped model, or a loaded one.
    Returns:
        layer and head, counted from 0, and at which step it is read (`AttentionMap.at`), as
        ``models/report/attention.json`` has them; None where that was not measured on these very weights,
        or the model has no cross-attention.
    """
    models = models_folder()
    if isinstance(model, Translator):
        name, training = model.name, model.training
    else:
        name, training = model, read_training(models).get(model, {})
    report = Report.read(models / "report" / "attention.json")
    if report is None or name not in report.results["choice"] or not report.is_of(name, training):
        return None
    return HeadChoice(**report.results["choice"][name])
