"""How far two training runs of one model lie apart that differ in nothing but their seed.

Intervals over test sentences say nothing of it. A difference between models that is smaller than one between
two seeds of a model is no finding.

The report's results: ``seeds[model][seed]``, of each run ``bleu, chrf, loss`` over all sentences and
``effects[curve]`` with the measures of `MEASURES`, each ``value, low, high``; ``spread[curve][measure]``, the
largest difference between the seeds of one model; see `length` for curves and measures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from seqviz.measuring.bits import BudgetError, check_alike
from seqviz.measuring.counts import rounded
from seqviz.report import Report

MEASURES = ("bleu_ratio", "chrf_ratio", "loss_change", "bleu_drop")


def by_seed(folders: Mapping[str, Path]) -> dict[str, tuple[str, int]]:
    """Model and seed of each folder.

    Raises:
        BudgetError: a model of one seed alone, two runs of one seed, or runs that differ in more than the seed.
    """
    found: dict[str, tuple[str, int]] = {}
    recipes: dict[str, dict[str, Any]] = {}
    for name, folder in folders.items():
        training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        recipe = dict(training["recipe"])
        run = (training["model"], recipe.pop("seed"))
        if run in found.values():
            raise BudgetError(
                f"expected runs of different seeds, got {run[0]} of seed {run[1]} twice"
            )
        found[name] = run
        if recipes.setdefault(run[0], recipe) != recipe:
            raise BudgetError(
                f"expected runs of {run[0]} that differ in nothing but the seed, got another recipe in {folder}"
            )
    for model in recipes:
        seeds = [seed for other, seed in found.values() if other == model]
        if len(seeds) < 2:
            raise BudgetError(
                f"expected two seeds of {model} or more, got {seeds[0]} alone; train another with "
                "'seqviz train --seed'"
            )
    check_alike(folders)
    return found


def seeds_report(
    length: Report, runs: Mapping[str, tuple[str, int]], *, command: str = "seqviz seeds"
) -> Report:
    """What the seeds of each model differ by.

    Args:
        length: quality by length of all runs, see `length.length_report`.
        runs: model and seed, by the name of the run in `length`.
        command: that measures it.
    """
    found = length.results
    seeds: dict[str, dict[str, Any]] = {}
    for name, (model, seed) in sorted(runs.items(), key=lambda run: run[1]):
        overall = found["curves"]["natural"][name]["overall"]
        seeds.setdefault(model, {})[str(seed)] = {
            **{measure: overall[measure] for measure in ("bleu", "chrf", "loss")},
            "effects": {
                curve: {measure: effect["models"][name][measure] for measure in MEASURES}
                for curve, effect in found["effects"].items()
            },
        }
    spread = {
        curve: {measure: _spread(seeds, curve, measure) for measure in MEASURES}
        for curve in found["effects"]
    }
    tokens = min(one["target_tokens"] for one in length.models.values())
    results = {"target_tokens": tokens, "seeds": seeds, "spread": spread}
    return Report.now(command, length.data, results)


def _spread(seeds: Mapping[str, Mapping[str, Any]], curve: str, measure: str) -> float | None:
    """The largest difference between two seeds of one model; None where a value is missing."""
    values = [
        [run["effects"][curve][measure]["value"] for run in runs.values()]
        for runs in seeds.values()
    ]
    if any(value is None for of_model in values for value in of_model):
        return None
    pairs = (pair for of_model in values for pair in combinations(of_model, 2))
    return rounded(max(abs(first - second) for first, second in pairs), 4)


def apart(report: Report | None, curve: str, measure: str) -> float | None:
    """By how much two seeds differ in this; None where nobody has measured it."""
    return report.results["spread"].get(curve, {}).get(measure) if report else None


def block(report: Report) -> str:
    """Markdown: the effect of length in each run, and what two seeds differ by."""
    found, data = report.results, report.data
    rows = [
        "What a seed does: the same model trained again with another seed, all else equal.",
        "",
        "| model | seed | BLEU | BLEU kept, same content | BLEU kept, natural | loss added, same content |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for model, runs in found["seeds"].items():
        for seed, run in runs.items():
            same, natural = (run["effects"][curve] for curve in ("same-content", "natural"))
            rows.append(
                f"| `{model}` | {seed} | {run['bleu']:.1f} | {_said(same['bleu_ratio'])} | "
                f"{_said(natural['bleu_ratio'])} | {_said(same['loss_change'], 3)} |"
            )
    most = [found["spread"][c]["bleu_ratio"] for c in ("same-content", "natural")]
    loss = found["spread"]["same-content"]["loss_change"]
    cells = ["none" if value is None else f"{value:.2f}" for value in most]
    cells.append("none" if loss is None else f"{loss:.3f}")
    rows += [
        f"| largest difference of two seeds | | | {' | '.join(cells)} |",
        "",
        f"Measured by `{report.command}` (SHA-256 `{data['sha256'][:12]}…`): {data['pairs']:,} sentences and "
        f"{data['runs']:,} runs of sentences of a development set, after {found['target_tokens']:,} target tokens "
        f"each; {report.hardware}. A difference between models that is smaller than this is no finding.",
    ]
    return "\n".join(rows)


def _said(entry: Mapping[str, float | None], digits: int = 2) -> str:
    value = entry["value"]
    return "none" if value is None else f"{value:.{digits}f}"
