"""Quality by length: scores of every bucket of lengths, the effect of length, where it breaks.

Two curves answer two questions. *natural*: how good are translations of sentences that are this
long? (Long sentences are also harder.) *same-content*: runs of consecutive sentences, 51 to 70 words
together, are cut into 4, 2 or 1 parts and each part is translated on its own; every point scores the
same reference text, and only the length of what the model holds at once changes.

Intervals: see `seqviz.scores`; they cover the choice of test sentences, not of training seeds.

Shapes: `N` texts of a group, `R` resamples, `T` pieces or words of a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from seqviz import corpus, coverage, scores
from seqviz.evaluation import BUCKETS, LONG, PARTS, Output, Outputs, Plan, words_in
from seqviz.version import versions

SCHEMA = 1
"""Of ``length.json``; `check` refuses any other."""

SHORT = (26, 35)
"""The effect of length is measured between so many words and `evaluation.LONG`."""

THIN = 50
"""A bucket of fewer sentences is marked as thin: its score says little."""

LEGEND = {
    "low, high": "of a bucket: English words of a sentence, both included",
    "…_low, …_high": "95 % interval, percentiles of the paired bootstrap over texts",
    "n": "texts of a bucket",
    "thin": f"fewer than {THIN} texts",
    "words": "mean English words held at once; words_low and words_high: its 5th and 95th percentile",
    "parts": "into how many parts a run of whole sentences was cut, each translated on its own; low and high "
    "are then the mean length of a run's parts, single ones differ (words_low, words_high)",
    "bleu, chrf": "corpus scores, 0 to 100",
    "loss": "teacher forcing, nats a target token, without the end token",
    "found": "share of English content words whose likely translation the output holds, 0 to 1",
    "repeated, limit": "shares of outputs that repeat themselves, or were cut at the output limit, 0 to 1",
    "loss_change": "loss at the long length minus loss at the short one",
    "bleu_ratio": "BLEU at the long length divided by BLEU at the short one",
    "bleu_drop": "BLEU at the short length minus BLEU at the long one",
    "pairs": "the measure of first minus that of second",
    "positions": "by the way texts were cut: natural (long sentences), or 4, 2, 1 parts of a run",
}
"""What the names in the report mean, part of every report."""

MEASURES = ("loss_change", "bleu_ratio", "bleu_drop")

POSITIONS = tuple((low, low + 9) for low in range(1, 100, 10))
"""Bins of positions in a text, in words of the source or pieces of the target, from 1."""


def length_report(
    plan: Plan,
    outputs: Mapping[str, Outputs],
    *,
    number: int = 1_000,
    num_beams: int = 1,
    prediction: Mapping[str, Any] | None = None,
    lexicon: coverage.Lexicon | None = None,
) -> dict[str, Any]:
    """Everything that was measured, ready to be written as JSON.

    Schema, besides what every report has (``schema``, ``data``, ``versions``):

    - ``models[name]``: ``weights_sha256``, ``target_tokens``.
    - ``curves[curve][name]``: ``buckets``, each ``low, high, n, words, thin`` (fewer than `THIN`),
      ``bleu, chrf, loss`` with ``…_low, …_high``, ``brevity_penalty, length_ratio``, ``repeated, limit``
      (shares of outputs), ``found`` (share of content words, if there is a lexicon); null where there
      is nothing to measure. In the same-content curve also ``parts``, and ``loss`` is over the same
      tokens at every point. The natural curve has ``overall``, the same over all sentences.
    - ``effects[curve]``: ``models[name]`` and ``pairs`` (first, second) with ``loss_change`` (long minus
      short), ``bleu_ratio`` (long over short), ``bleu_drop`` (short minus long), each ``value, low,
      high``; of a pair, first minus second. Between `SHORT` and `LONG` words; ``bleu, chrf, loss`` of a
      model are [short, long].
    - ``length_histogram``: training examples of 0, 1, 2, … source words.
    - ``positions``: ``loss[cut][name]`` by piece of the target, ``found[cut][name]`` by word of the
      source, in bins with ``n`` pieces or judged words of ``texts`` texts; cut is "natural" (sentences of `LONG` words) or the number of parts a run was cut into.
    - ``prediction``: digest of the prediction, and of each hypothesis what came out.

    Args:
        plan: what was translated.
        outputs: of each model.
        number: of resamples.
        num_beams: with which it was translated.
        prediction: content of ``prediction.json``.
        lexicon: for ``found``; None leaves it out.
    Raises:
        ValueError: an output is missing.
    """
    groups = {
        "natural": [*(_natural(plan, b) for b in BUCKETS)],
        "same-content": [_same_content(plan, parts) for parts in PARTS] if plan.runs else [],
    }
    effect_groups = {
        "natural": (_natural(plan, SHORT), _natural(plan, LONG)),
        "same-content": (_same_content(plan, 2), _same_content(plan, 1)),
    }
    marker = _Marker(lexicon)
    counts: dict[tuple[str, str], _Counts] = {}

    def counted(group: _Group, name: str) -> _Counts:
        key = (group.key, name)
        if key not in counts:
            counts[key] = _Counts.of(group, outputs[name], marker)
        return counts[key]

    draws = _Draws(number, plan.seed)
    curves: dict[str, Any] = {}
    effects: dict[str, Any] = {}
    for curve, found in groups.items():
        if not found:
            continue
        curves[curve] = {name: {"buckets": []} for name in outputs}
        for group in found:
            for name in outputs:
                curves[curve][name]["buckets"].append(_bucket(group, counted(group, name), draws))
        effects[curve] = _effects(
            {name: tuple(counted(g, name) for g in effect_groups[curve]) for name in outputs},
            effect_groups[curve],
            draws,
        )
    everything = _everything(plan)
    for name in outputs:
        curves["natural"][name]["overall"] = _bucket(everything, counted(everything, name), draws)
    return {
        "schema": SCHEMA,
        "legend": LEGEND,
        "data": {
            **plan.data,
            "pairs": len(plan.pairs),
            "runs": len(plan.runs),
            "skipped": dict(plan.skipped),
            "sample": plan.sample,
            "seed": plan.seed,
        },
        "versions": versions(),
        "num_beams": num_beams,
        "resamples": number,
        "signatures": scores.signatures(),
        "models": {name: out.information for name, out in outputs.items()},
        "length_histogram": next((out.length_histogram for out in outputs.values()), None),
        "curves": curves,
        "effects": effects,
        "positions": _positions(plan, outputs, draws, marker),
        "prediction": _verdicts(prediction, effects) if prediction else None,
    }


def overall(plan: Plan, outputs: Mapping[str, Outputs], number: int = 1_000) -> dict[str, Any]:
    """Scores of each model over all sentences of a plan, as ``overall`` in `length_report`.

    Args:
        number: of resamples.
    """
    group, marker, draws = _everything(plan), _Marker(None), _Draws(number, plan.seed)
    return {
        name: _bucket(group, _Counts.of(group, out, marker), draws) for name, out in outputs.items()
    }


def _everything(plan: Plan) -> _Group:
    return _natural(plan, (1, corpus.MAX_SOURCE_WORDS))


@dataclass(frozen=True)
class _Group:
    """Texts that are scored together; each is one or more parts translated on their own."""

    key: str
    low: int
    high: int
    parts: int
    texts: tuple[tuple[tuple[str, str], ...], ...]  # text → parts → (source, target)


def _natural(plan: Plan, bucket: tuple[int, int]) -> _Group:
    low, high = bucket
    texts = tuple(((p.source, p.target),) for p in plan.pairs if low <= words_in(p.source) <= high)
    return _Group(f"natural-{low}-{high}", low, high, 1, texts)


def _same_content(plan: Plan, parts: int) -> _Group:
    low, high = (int(edge / parts + 0.5) for edge in LONG)
    return _Group(
        f"same-content-{parts}", low, high, parts, tuple(run.cuts[parts] for run in plan.runs)
    )


class _Marker:
    """Found words of a text, each text looked at once."""

    def __init__(self, lexicon: coverage.Lexicon | None) -> None:
        self.lexicon = lexicon
        self._known: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, source: str, output: str) -> tuple[np.ndarray, np.ndarray]:
        """For each word of the source: 1 if it is found, 1 if it was judged."""
        key = (source, output)
        if key not in self._known:
            marks = coverage.mark(source, output, self.lexicon)
            self._known[key] = (
                np.array([mark.found is True for mark in marks], float),
                np.array([mark.found is not None for mark in marks], float),
            )
        return self._known[key]


@dataclass(frozen=True)
class _Counts:
    """Counts of each text of a group: what every score of any resample is made of."""

    bleu: np.ndarray  # (N, BLEU_COUNTS)
    chrf: np.ndarray  # (N, CHRF_COUNTS)
    loss: np.ndarray  # (N, 2): loss, tokens
    found: np.ndarray  # (N, 2): found, judged
    repeated: float
    limit: float

    @classmethod
    def of(cls, group: _Group, outputs: Outputs, marker: _Marker) -> _Counts:
        hypotheses, references = [], []
        loss = np.zeros((len(group.texts), 2))
        found = np.zeros((len(group.texts), 2))
        parts: list[Output] = []
        for number, text in enumerate(group.texts):
            made = []
            for source, target in text:
                if source not in outputs.translations:
                    raise ValueError(f"expected a translation of {source[:60]!r}, found none")
                made.append(outputs.translations[source])
                nats = outputs.losses.get((source, target))
                if nats is not None:
                    loss[number] += nats.sum(), len(nats)
                if marker.lexicon is not None:
                    hits, judged = marker(source, made[-1].text)
                    found[number] += hits.sum(), judged.sum()
            parts += made
            hypotheses.append(" ".join(output.text for output in made if output.text))
            references.append(" ".join(target for _, target in text))
        bleu, chrf = scores.sentence_counts(hypotheses, references)
        share = max(1, len(parts))
        return cls(
            bleu=bleu,
            chrf=chrf,
            loss=loss,
            found=found,
            repeated=sum(output.repeated for output in parts) / share,
            limit=sum(output.limit for output in parts) / share,
        )


class _Draws:
    """Resamples by size of the group: the same for every model, and in both groups of an effect."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed = number, seed
        self._last: tuple[str, np.ndarray] | None = None

    def __call__(self, group: _Group) -> np.ndarray:
        # Cuts of the same runs share their draws: they are the same texts.
        key = "same-content" if group.key.startswith("same-content") else group.key
        if self._last is None or self._last[0] != key:
            seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
            draws = scores.resamples(len(group.texts), self.number, (self.seed, seed))
            self._last = (key, draws)
        return self._last[1]


def _number(value: float, digits: int = 3) -> float | None:
    """A number that JSON can hold, None where there is none."""
    return round(float(value), digits) if np.isfinite(value) else None


_SCORES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], int]] = {
    "bleu": ("bleu", scores.bleu, 2),
    "chrf": ("chrf", scores.chrf, 2),
    "loss": ("loss", scores.ratio, 4),
    "found": ("found", scores.ratio, 4),
}


def _bucket(group: _Group, counts: _Counts, draws: _Draws) -> dict[str, Any]:
    n = len(group.texts)
    made: dict[str, Any] = {"low": group.low, "high": group.high, "n": n, "thin": n < THIN}
    if group.key.startswith("same-content"):
        made["parts"] = group.parts
    lengths = [words_in(source) for text in group.texts for source, _ in text]
    made["words"] = round(float(np.mean(lengths)), 1) if lengths else None
    if lengths:
        middle = np.percentile(lengths, [5, 95])
        made["words_low"], made["words_high"] = (round(float(edge)) for edge in middle)
    for name, (source, score, digits) in _SCORES.items():
        rows: np.ndarray = getattr(counts, source)
        value = float(score(rows.sum(axis=0))) if n else np.nan
        made[name] = _number(value, digits)
        found = scores.interval(scores.resampled(score, rows, draws(group))) if n else None
        low, high = found or (np.nan, np.nan)
        made[f"{name}_low"], made[f"{name}_high"] = _number(low, digits), _number(high, digits)
    total = counts.bleu.sum(axis=0)
    made["brevity_penalty"] = _number(float(scores.brevity_penalty(total)), 4) if n else None
    made["length_ratio"] = _number(float(scores.length_ratio(total)), 4) if n else None
    made["repeated"] = round(counts.repeated, 4) if n else None
    made["limit"] = round(counts.limit, 4) if n else None
    return made


def _effects(
    counts: Mapping[str, tuple[_Counts, _Counts]],
    groups: tuple[_Group, _Group],
    draws: _Draws,
) -> dict[str, Any]:
    """The effect of length for each model, and the difference of it for each pair of models."""
    values: dict[str, dict[str, float]] = {}
    spread: dict[str, dict[str, np.ndarray]] = {}
    sums: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in counts}
    for side, group in enumerate(groups):
        chosen = draws(group) if group.texts else np.zeros((0, 0))
        for name, both in counts.items():
            rows = both[side]
            sums[name].append(
                {
                    "bleu": np.append(
                        scores.bleu(rows.bleu.sum(axis=0))[None],
                        scores.resampled(scores.bleu, rows.bleu, chosen),
                    ),
                    "loss": np.append(
                        scores.ratio(rows.loss.sum(axis=0))[None],
                        scores.resampled(scores.ratio, rows.loss, chosen),
                    ),
                    "chrf": scores.chrf(rows.chrf.sum(axis=0))[None],
                }
            )
    for name, (short, long) in sums.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            both = {
                "loss_change": long["loss"] - short["loss"],
                "bleu_ratio": long["bleu"] / short["bleu"],
                "bleu_drop": short["bleu"] - long["bleu"],
            }
        empty = not all(group.texts for group in groups)
        values[name] = {m: float("nan") if empty else float(both[m][0]) for m in MEASURES}
        spread[name] = {m: both[m][1:] for m in MEASURES}

    def entry(value: float, resampled: np.ndarray) -> dict[str, float | None]:
        low, high = scores.interval(resampled) or (np.nan, np.nan)
        return {"value": _number(value, 4), "low": _number(low, 4), "high": _number(high, 4)}

    return {
        "short": {"low": groups[0].low, "high": groups[0].high, "n": len(groups[0].texts)},
        "long": {"low": groups[1].low, "high": groups[1].high, "n": len(groups[1].texts)},
        "models": {
            name: {
                **{m: entry(values[name][m], spread[name][m]) for m in MEASURES},
                **{
                    m: [_number(float(side[m][0]), 2 if m != "loss" else 4) for side in sums[name]]
                    for m in ("bleu", "chrf", "loss")
                },
            }
            for name in counts
        },
        "pairs": [
            {
                "first": first,
                "second": second,
                **{
                    m: entry(
                        values[first][m] - values[second][m], spread[first][m] - spread[second][m]
                    )
                    for m in MEASURES
                },
            }
            for first, second in combinations(counts, 2)
        ],
    }


def _positions(
    plan: Plan, outputs: Mapping[str, Outputs], draws: _Draws, marker: _Marker
) -> dict[str, Any]:
    """Loss by position in the target and found words by position in the source, in long texts."""
    groups = {"natural": _natural(plan, LONG)}
    groups |= {str(parts): _same_content(plan, parts) for parts in PARTS if plan.runs}
    made: dict[str, Any] = {"loss": {}, "found": {}}
    for cut, group in groups.items():
        if not group.texts:
            continue
        chosen = draws(group)
        made["loss"][cut] = {
            name: _by_position(
                [
                    np.concatenate([out.losses.get(part, np.zeros(0)) for part in text])
                    for text in group.texts
                ],
                None,
                chosen,
                "loss",
            )
            for name, out in outputs.items()
        }
        if marker.lexicon is None:
            continue
        answers: dict[str, Callable[[str, str], str]] = {"reference": lambda _, target: target}
        for name, out in outputs.items():
            answers[name] = lambda source, _, out=out: out.translations[source].text
        made["found"][cut] = {}
        for name, answer in answers.items():
            rows = [[marker(s, answer(s, t)) for s, t in text] for text in group.texts]
            made["found"][cut][name] = _by_position(
                [np.concatenate([hits for hits, _ in row]) for row in rows],
                [np.concatenate([judged for _, judged in row]) for row in rows],
                chosen,
                "found",
            )
    return made


def _by_position(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray] | None,
    draws: np.ndarray,
    name: str,
) -> list[dict[str, Any]]:
    """Means of values over bins of positions, with intervals over texts.

    Args:
        values: of each text, (T,).
        weights: of each value, such as 1 for a word that was judged; None for 1 everywhere.
        draws: resamples of the texts.
        name: of the value in the result.
    """
    longest = POSITIONS[-1][1]
    table = np.zeros((len(values), longest, 2))
    for number, row in enumerate(values):
        size = min(len(row), longest)
        weight = np.ones(len(row)) if weights is None else weights[number]
        table[number, :size, 0] = (row * weight)[:size]
        table[number, :size, 1] = weight[:size]
    made = []
    for low, high in POSITIONS:
        counts = table[:, low - 1 : high].sum(axis=1)
        n = int(counts[:, 1].sum())
        if not n:
            continue
        bounds = scores.interval(scores.resampled(scores.ratio, counts, draws))
        texts = int((counts[:, 1] > 0).sum())
        made.append(
            {
                "low": low,
                "high": high,
                "n": n,
                "texts": texts,
                "thin": texts < THIN,
                name: _number(float(scores.ratio(counts.sum(axis=0))), 4),
                f"{name}_low": _number(bounds[0], 4) if bounds else None,
                f"{name}_high": _number(bounds[1], 4) if bounds else None,
            }
        )
    return made


def _verdicts(prediction: Mapping[str, Any], effects: Mapping[str, Any]) -> dict[str, Any]:
    """What came out of every hypothesis of the prediction."""
    found = []
    for hypothesis in prediction["hypotheses"]:
        first, second = hypothesis["first"], hypothesis["second"]
        entry = None
        for pair in effects.get(hypothesis["curve"], {}).get("pairs", ()):
            measured = pair[hypothesis["measure"]]
            if (pair["first"], pair["second"]) == (first, second):
                entry = measured
            elif (pair["second"], pair["first"]) == (first, second):
                low, high = measured["low"], measured["high"]
                entry = {
                    "value": _negative(measured["value"]),
                    "low": _negative(high),
                    "high": _negative(low),
                }
        verdict = "undecided"
        low, high = (entry["low"], entry["high"]) if entry else (None, None)
        if low is not None and high is not None and (low > 0 or high < 0):
            as_expected = (low > 0) == (hypothesis["expected"] == "above")
            verdict = "holds" if as_expected else "contradicted"
        found.append({**hypothesis, **(entry or {}), "verdict": verdict})
    return {"written": prediction.get("written"), "hypotheses": found}


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def check(content: Any, where: str = "the report") -> dict[str, Any]:
    """A length report, checked.

    Raises:
        ValueError: another schema, or something that is not a length report.
    """
    if not isinstance(content, dict) or "schema" not in content:
        raise ValueError(f"{where}: expected a length report, got something else; measure it anew")
    if content["schema"] != SCHEMA:
        raise ValueError(
            f"{where}: expected a length report of schema {SCHEMA}, got schema {content['schema']!r}; "
            "measure it anew with 'seqviz evaluate'"
        )
    try:
        for curve in content["curves"].values():
            for name, model in curve.items():
                if name not in content["models"]:
                    raise KeyError(name)
                for bucket in model["buckets"]:
                    if not bucket["low"] <= bucket["high"] or bucket["n"] < 0:
                        raise ValueError(f"bucket {bucket['low']} to {bucket['high']}")
        if "natural" not in content["curves"] or not content["effects"]:
            raise KeyError("natural")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{where}: not a whole length report ({error}); measure it anew with 'seqviz evaluate'"
        ) from error
    return content
