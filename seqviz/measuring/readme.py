"""What the README says in numbers, in each of its languages.

A passer-by reads it, so there is one table, and its weak points stand right below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqviz.language import Language
from seqviz.report import Report, Trainings

POOR = 0.4
"""Below this share of the best BLEU on the shortest sentences a model cannot translate."""


def blocks(reports: Mapping[str, Report], trainings: Trainings, code: str) -> dict[str, str]:
    """The README's blocks in one language, as far as they were measured."""
    spoken = Language.of(code).within("readme")
    found = {}
    if trainings:
        found["alike"] = _alike(trainings, spoken)
    if length := reports.get("length"):
        said = [_table(length, spoken), _weak(length, reports.get("mechanism"), spoken)]
        if length.stale(trainings):
            said.append(spoken.say("older"))
        found["results"] = "\n\n".join(said)
    return found


def _alike(trainings: Trainings, spoken: Language) -> str:
    """What the models have in common."""
    sizes = [one["num_parameters"] for one in trainings.values()]
    tokens = min(one["target_tokens"] for one in trainings.values())
    low, high = (spoken.number(edge(sizes)) for edge in (min, max))
    return spoken.say("alike", tokens=spoken.number(tokens), low=low, high=high)


def _kept(effect: Mapping[str, Any], spoken: Language) -> str:
    ratio = effect["bleu_ratio"]
    kept = {key: ratio[key] and f"{100 * ratio[key]:.0f}" for key in ("value", "low", "high")}
    if None in kept.values():
        return spoken.say("none")
    return spoken.say("kept", **kept)


def _table(report: Report, spoken: Language) -> str:
    """BLEU of one and the same text, by how many words a model had to hold at once."""
    curves = report.results["curves"]["same-content"]
    same = report.results["effects"]["same-content"]
    points = next(iter(curves.values()))["buckets"]
    held = [f"{point['words']:.0f}" for point in points]
    header = [
        spoken.say("model"),
        *(spoken.say("held", words=words) for words in held),
        spoken.say("share", short=held[-2], long=held[-1]),
    ]
    rows = [f"| {' | '.join(header)} |", "| --- |" + " --- |" * (len(header) - 1)]
    for name, effect in same["models"].items():
        scores = [f"{point['bleu']:.1f}" for point in curves[name]["buckets"]]
        rows.append(f"| `{name}` | {' | '.join(scores)} | {_kept(effect, spoken)} |")
    long = same["long"]
    runs = f"{long['n']:,}"
    return "\n".join(
        [*rows, "", spoken.say("measured", runs=runs, low=long["low"], high=long["high"])]
    )


def _weak(report: Report, seeds: Report | None, spoken: Language) -> str:
    """What the table does not show, or what speaks against it."""
    curves, effects = report.results["curves"]["natural"], report.results["effects"]["natural"]
    first = {name: found["buckets"][0] for name, found in curves.items()}
    scores = {name: point["bleu"] for name, point in first.items()}
    poor = [name for name in scores if scores[name] < POOR * max(scores.values())]

    def listed(values: Mapping[str, str]) -> str:
        each = (spoken.say("score", model=name, value=value) for name, value in values.items())
        return spoken.join(each, "names")

    shown = {name: f"{score:.1f}" for name, score in scores.items()}
    short = next(iter(first.values()))
    said = [
        spoken.say(
            "poor" if poor else "short",
            low=short["low"],
            high=short["high"],
            poor=listed({name: shown[name] for name in poor}),
            others=listed({name: shown[name] for name in shown if name not in poor}),
        ),
        spoken.say(
            "natural",
            shares=listed({name: _kept(e, spoken) for name, e in effects["models"].items()}),
        ),
    ]
    if seeds:
        said.append(spoken.say("seeds", difference=f"{_between_seeds(seeds):.2f}"))
    return spoken.join(said)


def _between_seeds(report: Report) -> float:
    """By how much the losses of two seeds of one model differ at most, nats a token."""
    losses = [
        [t["dev_loss"] for t in found.values()] for found in report.results["trials"].values()
    ]
    return max(max(found) - min(found) for found in losses)
