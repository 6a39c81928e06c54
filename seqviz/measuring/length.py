"""Quality by length: scores of every bucket of lengths, the effect of length, where it breaks.

Two curves answer two questions. *natural*: how good are translations of sentences that are this
long? (Long sentences are also harder.) *same-content*: runs of consecutive sentences, 51 to 70 words
together, are cut into 4, 2 or 1 parts and each part is translated on its own; every point scores the
same reference text, and only the length of what the model holds at once changes.

The report's results:

- ``models[name]``: ``weights_sha256``, ``target_tokens``.
- ``curves[curve][name]``: ``buckets``, each ``low, high, n, words, thin`` (fewer than `THIN`), ``bleu,
  chrf, loss`` with ``…_low, …_high``, ``brevity_penalty, length_ratio``, ``repeated, limit`` (shares of
  outputs), ``found`` (share of content words, if there is a lexicon); null where there is nothing to
  measure. In the same-content curve also ``parts``, and ``loss`` is over the same tokens at every point.
  The natural curve has ``overall``, the same over all sentences.
- ``effects[curve]``: ``models[name]`` and ``pairs`` (first, second) with ``loss_change`` (long minus
  short), ``bleu_ratio`` (long over short), ``bleu_drop`` (short minus long), each ``value, low, high``;
  of a pair, first minus second. Between `SHORT` and `LONG` words; ``bleu, chrf, loss`` of a model are
  [short, long]. ``chrf_ratio`` as ``bleu_ratio``.
- ``anchors[curve][short]``: the same from shorter texts on, by their words: "1-10", "11-20"; of runs "13-18",
  their four parts.
- ``references[curve]``: of each bucket ``repeated``, the share of human translations that count as repeating
  themselves. Of each bucket of a model also ``bleu_kept`` and the like, see `kept`.
- ``length_histogram``: training examples of 0, 1, 2, … source words.
- ``positions``: ``loss[cut][name]`` by piece of the target, ``found[cut][name]`` by word of the source,
  in bins with ``n`` pieces or judged words of ``texts`` texts; cut is "natural" (sentences of `LONG`
  words) or the number of parts a run was cut into.
- ``languages, unit``: of source and target, and what lengths are counted in; left out for English and French
  and words.
- ``prediction``: digest of the prediction, and of each hypothesis what came out.

Intervals: see `seqviz.scores`; they cover the choice of test sentences, not of training seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from seqviz import coverage, scores
from seqviz.measuring import kept
from seqviz.measuring.counts import (
    THIN,
    Counts,
    Draws,
    Group,
    Marker,
    everything,
    natural,
    rounded,
    same_content,
)
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import BUCKETS, LONG, PARTS, Plan, words_in
from seqviz.measuring.positions import positions
from seqviz.report import Report
from seqviz.text_languages import LanguagePair

SCHEMA = 1
"""Of ``length.json``; `check` refuses any other."""

SHORT = (26, 35)
"""The effect of length is measured between so many words and `plan.LONG`."""

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
    "chrf_ratio": "chrF at the long length divided by chrF at the short one",
    "bleu_drop": "BLEU at the short length minus BLEU at the long one",
    "pairs": "the measure of first minus that of second",
    "positions": "by the way texts were cut: natural (long sentences), or 4, 2, 1 parts of a run",
    "anchors": "the effect of length from shorter texts on, by their words",
    **kept.LEGEND,
}
"""What the names in the report mean, part of every report."""


def legend(languages: LanguagePair) -> dict[str, str]:
    """`LEGEND`, which speaks of English, for other languages of the source."""
    unit = f"{languages.source.name} {languages.source.unit}"
    return {key: text.replace("English words", unit) for key, text in LEGEND.items()}


def said(languages: LanguagePair) -> dict[str, Any]:
    """What a report says of languages other than those of the shipped models."""
    if languages.is_default:
        return {}
    return {"languages": list(languages.codes), "unit": languages.source.unit}


MEASURES = ("loss_change", "bleu_ratio", "chrf_ratio", "bleu_drop")

ANCHORS = ((1, 10), (11, 20))
"""Words of the short sentences from which the effect of length is measured once more."""


def length_report(
    plan: Plan,
    outputs: Mapping[str, Outputs],
    *,
    number: int = 1_000,
    num_beams: int = 1,
    prediction: Mapping[str, Any] | None = None,
    lexicon: coverage.Lexicon | None = None,
    command: str = "seqviz evaluate",
    device: str | None = None,
) -> Report:
    """Everything that was measured; what it holds stands above.

    Args:
        plan: what was translated.
        outputs: of each model.
        number: of resamples.
        num_beams: with which it was translated.
        prediction: content of ``prediction.json``, with the file's ``sha256`` if that is to be told.
        lexicon: for ``found``; None leaves it out.
        command: that measures it.
        device: on which it was translated.
    Raises:
        ValueError: an output is missing.
    """
    marker, draws = Marker(lexicon), Draws(number, plan.seed)
    measured = _curves(plan, outputs, marker, draws)
    data = {
        **plan.data,
        "pairs": len(plan.pairs),
        "runs": len(plan.runs),
        "skipped": dict(plan.skipped),
        "sample": plan.sample,
        "seed": plan.seed,
    }
    results = {
        "legend": legend(plan.languages),
        **said(plan.languages),
        "num_beams": num_beams,
        "resamples": number,
        "signatures": scores.signatures(plan.languages.target),
        "length_histogram": next((out.length_histogram for out in outputs.values()), None),
        **measured,
        "positions": positions(plan, outputs, draws, marker),
        "prediction": _verdicts(prediction, measured) if prediction else None,
    }
    models = {name: out.information for name, out in outputs.items()}
    return Report.now(command, data, results, models, device=device or "cpu", schema=SCHEMA)


def _curves(
    plan: Plan, outputs: Mapping[str, Outputs], marker: Marker, draws: Draws
) -> dict[str, Any]:
    """The curves by length, the effect of length on each, from three starts, and what people do."""
    groups = {"natural": [natural(plan, bucket) for bucket in BUCKETS]}
    long = natural(plan, LONG)
    ends = {"natural": (natural(plan, SHORT), long)}
    starts = {"natural": [(natural(plan, bucket), long) for bucket in ANCHORS]}
    if plan.runs:
        groups["same-content"] = [same_content(plan, parts) for parts in PARTS]
        ends["same-content"] = (same_content(plan, 2), same_content(plan, 1))
        starts["same-content"] = [(same_content(plan, 4), same_content(plan, 1))]
    known: dict[tuple[str, str], Counts] = {}

    def counted(group: Group, name: str) -> Counts:
        key = (group.key, name)
        if key not in known:
            known[key] = Counts.of(group, outputs[name], marker)
        return known[key]

    def buckets(found: list[Group], name: str) -> list[dict[str, Any]]:
        every = [counted(group, name) for group in found]
        left = kept.shares(found, every, draws)
        return [
            _bucket(group, counts, draws)
            | share
            | kept.above_chance(group, outputs[name], marker, draws)
            for group, counts, share in zip(found, every, left, strict=True)
        ]

    def effect(both: tuple[Group, Group]) -> dict[str, Any]:
        counts = {name: (counted(both[0], name), counted(both[1], name)) for name in outputs}
        return _effects(counts, both, draws)

    curves: dict[str, Any] = {
        curve: {name: {"buckets": buckets(found, name)} for name in outputs}
        for curve, found in groups.items()
    }
    for name in outputs:
        all_of_it = everything(plan)
        curves["natural"][name]["overall"] = _bucket(all_of_it, counted(all_of_it, name), draws)
    return {
        "curves": curves,
        "references": {
            curve: [kept.references(group, draws) for group in found]
            for curve, found in groups.items()
        },
        "effects": {curve: effect(both) for curve, both in ends.items()},
        "anchors": {
            curve: {f"{both[0].low}-{both[0].high}": effect(both) for both in found}
            for curve, found in starts.items()
        },
    }


def overall(plan: Plan, outputs: Mapping[str, Outputs], number: int = 1_000) -> dict[str, Any]:
    """Scores of each model over all sentences of a plan, as ``overall`` in `length_report`.

    Args:
        number: of resamples.
    """
    group, marker, draws = everything(plan), Marker(None), Draws(number, plan.seed)
    return {
        name: _bucket(group, Counts.of(group, out, marker), draws) for name, out in outputs.items()
    }


_SCORES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], int]] = {
    "bleu": ("bleu", scores.bleu, 2),
    "chrf": ("chrf", scores.chrf, 2),
    "loss": ("loss", scores.ratio, 4),
    "found": ("found", scores.ratio, 4),
    "repeated": ("repeated", scores.ratio, 4),
}


def _bucket(group: Group, counts: Counts, draws: Draws) -> dict[str, Any]:
    n = len(group.texts)
    made: dict[str, Any] = {"low": group.low, "high": group.high, "n": n, "thin": n < THIN}
    if group.key.startswith("same-content"):
        made["parts"] = group.parts
    language = group.languages.source
    lengths = [words_in(source, language) for text in group.texts for source, _ in text]
    made["words"] = round(float(np.mean(lengths)), 1) if lengths else None
    if lengths:
        middle = np.percentile(lengths, [5, 95])
        made["words_low"], made["words_high"] = (round(float(edge)) for edge in middle)
    for name, (source, score, digits) in _SCORES.items():
        rows: np.ndarray = getattr(counts, source)
        value = float(score(rows.sum(axis=0))) if n else np.nan
        made[name] = rounded(value, digits)
        found = scores.interval(scores.resampled(score, rows, draws(group))) if n else None
        low, high = found or (np.nan, np.nan)
        made[f"{name}_low"], made[f"{name}_high"] = rounded(low, digits), rounded(high, digits)
    total = counts.bleu.sum(axis=0)
    made["brevity_penalty"] = rounded(float(scores.brevity_penalty(total)), 4) if n else None
    made["length_ratio"] = rounded(float(scores.length_ratio(total)), 4) if n else None
    made["limit"] = rounded(float(scores.ratio(counts.limit.sum(axis=0))), 4)
    return made


def _effects(
    counts: Mapping[str, tuple[Counts, Counts]],
    groups: tuple[Group, Group],
    draws: Draws,
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
                    "chrf": np.append(
                        scores.chrf(rows.chrf.sum(axis=0))[None],
                        scores.resampled(scores.chrf, rows.chrf, chosen),
                    ),
                }
            )
    for name, (short, long) in sums.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            both = {
                "loss_change": long["loss"] - short["loss"],
                "bleu_ratio": long["bleu"] / short["bleu"],
                "chrf_ratio": long["chrf"] / short["chrf"],
                "bleu_drop": short["bleu"] - long["bleu"],
            }
        empty = not all(group.texts for group in groups)
        values[name] = {m: float("nan") if empty else float(both[m][0]) for m in MEASURES}
        spread[name] = {m: both[m][1:] for m in MEASURES}

    def entry(value: float, resampled: np.ndarray) -> dict[str, float | None]:
        low, high = scores.interval(resampled) or (np.nan, np.nan)
        return {"value": rounded(value, 4), "low": rounded(low, 4), "high": rounded(high, 4)}

    return {
        "short": {"low": groups[0].low, "high": groups[0].high, "n": len(groups[0].texts)},
        "long": {"low": groups[1].low, "high": groups[1].high, "n": len(groups[1].texts)},
        "models": {
            name: {
                **{m: entry(values[name][m], spread[name][m]) for m in MEASURES},
                **{
                    m: [rounded(float(side[m][0]), 2 if m != "loss" else 4) for side in sums[name]]
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


def _verdicts(prediction: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """What came out of every hypothesis of the prediction.

    A hypothesis with ``from``, such as "11-20", is of that anchor; any other is of the effects.
    """
    found = []
    for hypothesis in prediction["hypotheses"]:
        first, second = hypothesis["first"], hypothesis["second"]
        entry = None
        effect = measured["effects"].get(hypothesis["curve"], {})
        if start := hypothesis.get("from"):
            effect = measured["anchors"].get(hypothesis["curve"], {}).get(start, {})
        for pair in effect.get("pairs", ()):
            difference = pair[hypothesis["measure"]]
            if (pair["first"], pair["second"]) == (first, second):
                entry = difference
            elif (pair["second"], pair["first"]) == (first, second):
                low, high = difference["low"], difference["high"]
                entry = {
                    "value": _negative(difference["value"]),
                    "low": _negative(high),
                    "high": _negative(low),
                }
        verdict = "undecided"
        low, high = (entry["low"], entry["high"]) if entry else (None, None)
        if low is not None and high is not None and (low > 0 or high < 0):
            as_expected = (low > 0) == (hypothesis["expected"] == "above")
            verdict = "holds" if as_expected else "contradicted"
        found.append({**hypothesis, **(entry or {}), "verdict": verdict})
    digest = {"sha256": prediction["sha256"]} if "sha256" in prediction else {}
    return {"written": prediction.get("written"), "hypotheses": found, **digest}


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
