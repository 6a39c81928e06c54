"""What was measured over the whole test set: curves by length, and how they came about.

Reads ``models/report/length.json`` and does not trust it: a report that is missing,
damaged, of another schema, or made with other weights is said to be so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.report import Report
from seqviz.ui import curves
from seqviz.ui.service import MODELS, Service

CURVES = ("same-content", "natural")
METRICS = ("bleu", "chrf")
TICKS = (0, 20, 40, 60, 80, 100)
"""Of every plot on the tab, so that one marker means the same in all of them; no text of the page
and no training sentence is longer."""
_WITHOUT, _WITH = "lstm", "lstm-attention"
"""The pair that differs in attention alone."""

DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a report that was tampered with can end in."""


def panel(service: Service, language: str) -> str:
    """The curves of the report, one figure for each curve and metric; a script shows one of them."""
    say = Language.of(language).say
    try:
        report = service.report("length")
    except (OSError, ValueError):
        return _only(say("length.measured_damaged"))
    if report is None:
        return _only(say("length.measured_none"))
    try:
        if report["schema"] != 1:
            return _only(say("length.measured_format"))
        figures = [
            _figure(report, curve, metric, language) for curve in CURVES for metric in METRICS
        ]
        told = [_told(report, curve, language) for curve in CURVES]
        older = is_older(service, report)
    except DAMAGED:
        return _only(say("length.measured_damaged"))
    note = ""
    if older:
        note = f'<p class="hint">{escape(say("length.measured_older"))}</p>'
    return f'<section class="measured">{note}{"".join(figures)}{"".join(told)}</section>'


def details(service: Service, language: str) -> str:
    """The effect of length, what had been predicted, and where in a sentence it breaks; empty
    without a sound report."""
    try:
        report = service.report("length")
        if report is None or report["schema"] != 1:
            return ""
        parts = [_effects(report, language), _answers(report, language)]
        figures = [_positions(report, kind, language) for kind in ("loss", "found")]
        parts.append(f'<div class="pair">{"".join(figures)}</div>')
    except (OSError, *DAMAGED):
        return ""
    summary = escape(Language.of(language).say("length.details"))
    return f'<details class="measured"><summary>{summary}</summary>{"".join(parts)}</details>'


def _interval(entry: Mapping[str, Any], scale: float, digits: int) -> str:
    """A value and its interval; a dash where there is none."""
    if None in (entry["value"], entry["low"], entry["high"]):
        return "–"
    value, low, high = (f"{scale * number(entry[k]):.{digits}f}" for k in ("value", "low", "high"))
    shown = f'<b>{value}</b> <span class="range">({low} … {high})</span>'
    return shown.replace("-", "\u2212")


def _difference(found: Mapping[str, Any]) -> str:
    """A difference of losses in nats, or of shares in points of a hundred."""
    return _interval(found, 100, 1) if found["measure"] == "bleu_ratio" else _interval(found, 1, 3)


def _effects(report: Mapping[str, Any], language: str) -> str:
    """A table: what 60 words at once cost each model against 30."""
    say = Language.of(language).say
    same, natural = report["effects"].get("same-content"), report["effects"]["natural"]
    if not same:
        return ""
    heads = "".join(
        f'<th scope="col">{escape(say(f"length.effect_{key}"))}</th>'
        for key in ("model", "kept_same", "kept_natural", "loss")
    )
    rows = "".join(
        f'<tr><th scope="row">{curves.key(name)}{escape(say(f"model.{name}"))}</th>'
        f"<td>{_interval(same['models'][name]['bleu_ratio'], 100, 0)}</td>"
        f"<td>{_interval(natural['models'][name]['bleu_ratio'], 100, 0)}</td>"
        f"<td>{_interval(same['models'][name]['loss_change'], 1, 3)}</td></tr>"
        for name in MODELS
        if name in same["models"]
    )
    caption = escape(say("length.effect_caption"))
    return (
        f'<div class="wide"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _answers(report: Mapping[str, Any], language: str) -> str:
    """The hypotheses written down before the measurement, and what came of each."""
    say = Language.of(language).say
    prediction = report.get("prediction")
    if not prediction:
        return ""
    rows = []
    for found in prediction["hypotheses"]:
        said = say(
            f"length.prediction_{found['measure']}_{found['expected']}",
            first=say(f"model.{found['first']}"),
            second=say(f"model.{found['second']}"),
            curve=Language.of(language).within("length").say(found["curve"]),
        )
        verdict = say(f"length.verdict_{found['verdict']}")
        rows.append(
            f'<li>{escape(said)} {_difference(found)} <b class="verdict">{escape(verdict)}</b></li>'
        )
    said = say("length.prediction", date=str(prediction["written"]))
    return f"<p>{escape(said)}</p><ol>{''.join(rows)}</ol>"


def _positions(report: Mapping[str, Any], kind: str, language: str) -> str:
    """Loss or found words along long sentences, a curve for each model."""
    spoken = Language.of(language)
    say = spoken.say
    found = report["positions"].get(kind, {}).get("natural")
    if not found:
        return ""
    scale = 100 if kind == "found" else 1
    points, bands = {}, {}
    for name in (name for name in MODELS if name in found):
        row = [(b, (number(b["low"]) + number(b["high"])) / 2) for b in found[name]]
        points[name] = [(at, scale * number(b[kind])) for b, at in row]
        bands[name] = [
            (at, scale * number(b[f"{kind}_low"]), scale * number(b[f"{kind}_high"]))
            for b, at in row
            if None not in (b[f"{kind}_low"], b[f"{kind}_high"])
        ]
    caption = say(f"length.positions_{kind}")
    if human := found.get("reference"):
        shares = [scale * number(b[kind]) for b in human]
        low, high = (f"{share:.0f}" for share in (min(shares), max(shares)))
        human = say("length.positions_human", low=low, high=high)
        caption = spoken.join([caption, human])
    ends = [
        say(
            "length.plot_alt_model",
            model=say(f"model.{name}"),
            values=f"{row[0][1]:.1f} → {row[-1][1]:.1f}",
        )
        for name, row in points.items()
        if row
    ]
    picture = curves.curves(
        points,
        ticks=TICKS,
        axis=say(f"length.positions_{kind}_axis"),
        alt=spoken.join([caption, spoken.join(ends, "clauses")]),
        bands=bands,
        step=1 if kind == "loss" else None,
    )
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}{legend(language)}</figure>"


def is_older(service: Service, report: Mapping[str, Any], names: Iterable[str] = MODELS) -> bool:
    """The report was made with other weights of these models than those that are shown.

    Raises:
        KeyError: the report says nothing of one of them: it is damaged.
    """
    trainings = {name: service.training(name) for name in names}
    known = {n: training for n, training in trainings.items() if training.get("weights_sha256")}
    if missing := known.keys() - report.get("models", {}).keys():
        raise KeyError(*missing)
    return Report.of(report).stale(known) is not None


def _only(said: str) -> str:
    return f'<section class="measured"><p>{escape(said)}</p></section>'


def _buckets(report: Mapping[str, Any], curve: str) -> dict[str, list[dict[str, Any]]]:
    """Buckets with anything in them, by model, in order of length."""
    found = report["curves"].get(curve) or {}
    return {
        name: sorted(
            (b for b in found[name]["buckets"] if b["n"]), key=lambda b: number(b["words"])
        )
        for name in MODELS
        if name in found
    }


def _figure(report: Mapping[str, Any], curve: str, metric: str, language: str) -> str:
    spoken = Language.of(language)
    say = spoken.say
    buckets = _buckets(report, curve)
    label = say(f"length.corpus_{metric}")
    if not any(buckets.values()):
        said = f"<p>{escape(say('length.measured_no_curve'))}</p>"
        return f'<div data-curve="{curve}" data-metric="{metric}">{said}</div>'
    points, bands, thin, told = {}, {}, set(), []
    for name, row in buckets.items():
        points[name] = [
            (number(b["words"]), number(b[metric])) for b in row if b[metric] is not None
        ]
        bands[name] = [
            (number(b["words"]), number(b[f"{metric}_low"]), number(b[f"{metric}_high"]))
            for b in row
            if not b["thin"] and None not in (b[f"{metric}_low"], b[f"{metric}_high"])
        ]
        thin.update(number(b["words"]) for b in row if b["thin"])
        if ends := points[name][:1] + points[name][-1:]:
            values = [
                say("length.plot_alt_value", score=f"{s:.0f}", words=f"{at:.0f}") for at, s in ends
            ]
            model = say(f"model.{name}")
            told.append(
                say("length.plot_alt_model", model=model, values=spoken.join(values, "list"))
            )
    histogram = [number(count) for count in report.get("length_histogram") or ()]
    picture = curves.curves(
        points,
        ticks=TICKS,
        axis=say("length.axis"),
        alt=say("length.plot_alt", metric=label, models=spoken.join(told, "clauses")),
        bands=bands,
        thin=thin,
        histogram=histogram,
        marker=True,
    )
    caption = say(f"length.caption_{curve}", metric=label)
    return (
        f'<figure data-curve="{curve}" data-metric="{metric}">'
        f"<figcaption>{escape(caption)}</figcaption>{picture}"
        f"{legend(language, training=bool(histogram))}</figure>"
    )


def _told(report: Mapping[str, Any], curve: str, language: str) -> str:
    """How a curve was measured, in three sentences."""
    say = Language.of(language).say
    buckets = _buckets(report, curve)
    row = next((found for found in buckets.values() if found), None)
    if row is None:
        return ""
    sizes = [int(b["n"]) for b in row]
    said = [
        say(
            f"length.told_{curve}",
            name=str(report["data"]["name"]),
            total=f"{sum(sizes):,}",
            fewest=f"{min(sizes):,}",
            most=f"{max(sizes):,}",
        ),
        say("length.told_interval", resamples=f"{int(report['resamples']):,}"),
    ]
    told = f'<p class="told" data-curve="{curve}">{escape(Language.of(language).join(said))}</p>'
    effect = report["effects"].get(curve)
    for metric in METRICS if effect else ():
        if compared := _compared(effect, metric, language):
            told += f'<p class="told" data-curve="{curve}" data-metric="{metric}">{escape(compared)}</p>'
    return told


def _compared(effect: Mapping[str, Any], metric: str, language: str) -> str:
    """What becomes of the score of the two models that differ in attention alone; empty if unknown."""
    say = Language.of(language).say
    values: dict[str, str] = {}
    low = False
    for side, name in zip("ab", (_WITHOUT, _WITH), strict=True):
        model = effect["models"][name]
        short, long = model[metric]
        ratio = [model["bleu_ratio"][key] for key in ("value", "low", "high")]
        if None in (short, long) or (metric == "bleu" and None in ratio):
            return ""
        low = low or number(short) < 10
        values[side] = say(f"model.{name}")
        values[f"{side}_short"], values[f"{side}_long"] = f"{short:.1f}", f"{number(long):.1f}"
        if metric == "bleu":
            shares = (f"{100 * number(value):.0f}" for value in ratio)
            values |= zip((f"{side}_value", f"{side}_low", f"{side}_high"), shares, strict=True)
    said = say(f"length.told_{metric}", **values)
    if metric == "bleu" and low:
        said = Language.of(language).join([said, say("length.told_low")])
    return said


def legend(language: str, training: bool = False) -> str:
    say = Language.of(language).say
    items = [f"<li>{curves.key(name)}{escape(say(f'model.{name}'))}</li>" for name in MODELS]
    if training:
        said = escape(say("length.training"))
        items.append(f'<li><i class="swatch" aria-hidden="true"></i>{said}</li>')
    return f'<ul class="legend-models">{"".join(items)}</ul>'


def number(value: Any) -> float:
    """A finite number of a report.

    Raises:
        TypeError, ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r:.40}")
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value}")
    return float(value)
