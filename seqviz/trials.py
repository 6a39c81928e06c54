"""Short training runs at one small equal budget: which recipe, and how much a seed changes.

A trial trains a model from scratch and measures its loss on development corpora, by length of the English
side. `step` are two step sizes. `recipe` are learning rates of Muon and `adam` those of AdamW, searched by one
rule for every model: the same first candidates, then one more at the edge until the best lies inside.
`mechanism` are further seeds and the ablation of the context.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from seqviz import training
from seqviz.architectures import MODEL_NAMES
from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.data.encoded import EncodedCorpus
from seqviz.data.epochs import WeightedCorpus
from seqviz.data.pairs import Pair, read_pairs
from seqviz.files import write_json
from seqviz.version import hardware, versions

RATES = (0.012, 0.024, 0.048)
"""Muon's first candidates for every model, while AdamW keeps its rate; the next ones are half and double."""

ADAM_RATES = (0.003, 0.01)
"""AdamW's first candidates for every model, while Muon keeps its rate; the next ones are 0.001, 0.03, …"""

SEARCH = (
    "the same first candidates for every model, and one more at the edge until the best lies inside"
)
"""How `search` goes on, for the report."""

STEPS = (1_500, 3_000)
"""Candidates for the target tokens of a step, which all models share."""

MECHANISM = (
    ("lstm", 1),
    ("lstm", 2),
    ("lstm-mean", 1),
    ("lstm-mean", 2),
    ("lstm-attention", 1),
    ("lstm-attention", 2),
)
"""The context of one and the same LSTM (a fixed vector, the plain mean, attention), by two seeds."""

DEV_PAIRS = 3_000
BUCKETS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, 100))


@dataclass(frozen=True)
class Trial:
    """One short run: a model, what the trial is called beside others of it, and the recipe."""

    model: str
    name: str
    recipe: training.Recipe

    @property
    def folder(self) -> str:
        return f"{self.model}-{self.name}".replace(" ", "-").replace(".", "_")


def matrix_trial(model: str, recipe: training.Recipe, rate: float) -> Trial:
    """A model with this rate of Muon and the rest of the recipe."""
    name = f"Muon {rate:g}, {recipe.batch_tokens} tokens a step"
    return Trial(model, name, replace(recipe, matrix_learning_rate=rate))


def adam_trial(model: str, recipe: training.Recipe, rate: float) -> Trial:
    """A model with this rate of AdamW and the rest of the recipe."""
    name = f"AdamW {rate:g}, Muon {recipe.matrix_learning_rate:g}"
    return Trial(model, name, replace(recipe, learning_rate=rate))


def step_trials(
    recipe: training.Recipe, models: Sequence[str] = ("lstm", "transformer")
) -> list[Trial]:
    """Both step sizes for an LSTM and the Transformer, at the middle one of the first rates."""
    return [
        matrix_trial(model, replace(recipe, batch_tokens=size), RATES[1])
        for model in models
        for size in STEPS
    ]


def recipe_trials(recipe: training.Recipe, models: Sequence[str] = MODEL_NAMES) -> list[Trial]:
    """The first candidates for every model; `next_matrix_trial` names the others."""
    return [matrix_trial(model, recipe, rate) for model in models for rate in RATES]


def adam_trials(
    recipe: training.Recipe, matrix_rates: Mapping[str, float], models: Sequence[str] = MODEL_NAMES
) -> list[Trial]:
    """The first candidates for every model at its own rate of Muon; `next_adam_trial` names the others."""
    return [
        adam_trial(model, replace(recipe, matrix_learning_rate=matrix_rates[model]), rate)
        for model in models
        for rate in ADAM_RATES
    ]


def next_rate(
    losses: Mapping[float, float], neighbour: Callable[[float, int], float]
) -> float | None:
    """The rate to try next: the neighbour of the best one where that is the edge of those tried.

    Args:
        losses: development loss of each rate tried; infinite where training diverged.
        neighbour: the rate one place below (-1) or above (1) another.
    Returns:
        None once the best rate lies inside.
    """
    best = min(losses, key=lambda rate: losses[rate])
    if best == min(losses):
        return neighbour(best, -1)
    return neighbour(best, 1) if best == max(losses) else None


def doubled(rate: float, places: int) -> float:
    """Half, double, …"""
    return rate * 2.0**places


def half_decade(rate: float, places: int) -> float:
    """The rates 0.001, 0.003, 0.01, 0.03, …"""
    place = round(2 * math.log10(rate)) + places
    return round((3 if place % 2 else 1) * 10.0 ** (place // 2), 9)


Next = Callable[[Trial, Mapping[str, Mapping[str, Any]]], Trial | None]
"""The trial that comes after the last one of a model; None where its search is over."""


def next_matrix_trial(last: Trial, results: Mapping[str, Mapping[str, Any]]) -> Trial | None:
    """The next candidate of Muon's rate, see `next_rate`."""
    rate = next_rate(_losses(results, "matrix_learning_rate"), doubled)
    return None if rate is None else matrix_trial(last.model, last.recipe, rate)


def next_adam_trial(last: Trial, results: Mapping[str, Mapping[str, Any]]) -> Trial | None:
    """The next candidate of AdamW's rate, see `next_rate`."""
    rate = next_rate(_losses(results, "learning_rate"), half_decade)
    return None if rate is None else adam_trial(last.model, last.recipe, rate)


def _losses(results: Mapping[str, Mapping[str, Any]], rate: str) -> dict[float, float]:
    return {found[rate]: found.get("dev_loss", math.inf) for found in results.values()}


def mechanism_trials(
    recipe: training.Recipe, models: Sequence[str] = ("lstm", "lstm-mean", "lstm-attention")
) -> list[Trial]:
    """Seeds of the LSTM with each context."""
    return [
        Trial(model, f"seed {seed}", replace(recipe, seed=seed))
        for model, seed in MECHANISM
        if model in models
    ]


def dev_pairs(path: str | os.PathLike[str], count: int = DEV_PAIRS) -> list[Pair]:
    """`count` pairs of a development corpus, at even distances, of 1 to 100 English words."""
    pairs = [p for p in read_pairs(path) if 0 < len(p.source.split()) <= MAX_SOURCE_WORDS]
    chosen = np.unique(np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int))
    return [pairs[int(i)] for i in chosen]


def run(
    trial: Trial,
    sources: Sequence[WeightedCorpus],
    tokenizer: Any,
    dev: EncodedCorpus,
    pairs: Sequence[Pair],
    folder: Path,
    tokens: int,
    config: dict[str, Any] | None = None,
    mixed_precision: str = "auto",
) -> dict[str, Any] | None:
    """Train one trial, or go on with it, and measure it; what is finished is read back.

    Args:
        pairs: development pairs on which the loss is measured.
        folder: of all trials; each has a folder of its own in it.
        tokens: budget of target tokens.
        config: settings of the architecture that differ from those of the shipped models.
        mixed_precision: as `training.train` takes it.
    Returns:
        what the report says of the trial, or None if a signal stopped it (its state is saved).
    """
    mine = folder / trial.folder
    done = mine / "result.json"
    settings = {"tokens": tokens, "recipe": asdict(trial.recipe), "pairs": len(pairs)}
    if done.is_file():
        found = json.loads(done.read_text(encoding="utf-8"))
        if found["settings"] == settings:
            return found["result"]
    rates = {
        "learning_rate": trial.recipe.learning_rate,
        "matrix_learning_rate": trial.recipe.matrix_learning_rate,
    }
    try:
        result = training.train(
            trial.model,
            sources,
            tokenizer,
            mine / "run",
            mine / "model",
            recipe=trial.recipe,
            tokens=tokens,
            dev=dev,
            dev_every_tokens=max(1, tokens // 4),
            config=config,
            mixed_precision=mixed_precision,
        )
    except training.DivergedError as error:
        return _keep(done, settings, {"diverged": str(error), **rates})
    if result.report is None:
        return None
    measured = {
        "target_tokens": result.report["target_tokens"],
        "seconds": result.report["seconds"],
        **rates,
        "seed": trial.recipe.seed,
        "num_parameters": result.report["num_parameters"],
        "precision": result.report["precision"],
        **losses_by_length(mine / "model", pairs),
        "train_curve": result.report["losses"]["train"],
    }
    return _keep(done, settings, measured)


def search(
    trials: Sequence[Trial],
    run_one: Callable[[Trial], dict[str, Any] | None],
    next_trial: Next | None = None,
) -> dict[str, dict[str, Any]] | None:
    """Run trials, and those that `next_trial` calls for.

    Args:
        trials: the first ones of each model.
        run_one: gives the result of a trial, None if a signal stopped it.
        next_trial: goes on with a search once the first trials of a model are done.
    Returns:
        results by model and name of the trial; None if a signal stopped them.
    """
    results: dict[str, dict[str, Any]] = {}
    waiting = list(trials)
    while waiting:
        trial = waiting.pop(0)
        result = run_one(trial)
        if result is None:
            return None
        results.setdefault(trial.model, {})[trial.name] = result
        if next_trial and not any(other.model == trial.model for other in waiting):
            more = next_trial(trial, results[trial.model])
            if more is not None:
                waiting.insert(0, more)
    return results


def _keep(path: Path, settings: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    write_json(path, {"settings": settings, "result": result})
    return result


def losses_by_length(folder: Path, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Teacher-forced loss of a trained model, nats a target token, overall and by English words.

    Returns:
        ``dev_loss`` and ``by_length``, a list of ``{low, high, n, loss}``.
    """
    from seqviz.translating.loading import load

    losses = load(folder).losses([(p.source, p.target) for p in pairs])
    sums, counts = np.array([x.sum() for x in losses]), np.array([len(x) for x in losses])
    words = np.array([len(p.source.split()) for p in pairs])
    by_length = []
    for low, high in BUCKETS:
        inside = (words >= low) & (words <= high)
        if inside.any():
            by_length.append(
                {
                    "low": low,
                    "high": high,
                    "n": int(inside.sum()),
                    "loss": round(float(sums[inside].sum() / counts[inside].sum()), 4),
                }
            )
    return {"dev_loss": round(float(sums.sum() / counts.sum()), 4), "by_length": by_length}


def choice(results: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The candidate of lowest development loss, for each model."""
    return {
        model: min(trials, key=lambda name: trials[name].get("dev_loss", math.inf))
        for model, trials in results.items()
    }


def report(
    what: str,
    results: dict[str, dict[str, Any]],
    tokens: int,
    sources: Sequence[WeightedCorpus],
    dev: Sequence[EncodedCorpus],
    pairs: int,
) -> dict[str, Any]:
    """The report of all trials of `what`: "step", "recipe", "adam" or "mechanism"."""
    found: dict[str, Any] = {
        "schema": 1,
        "command": f"seqviz trials {what} --tokens {tokens}",
        "data": [{**s.corpus.information, "repeat": s.repeat} for s in sources],
        "dev_data": {
            "files": [{key: one.information[key] for key in ("name", "sha256")} for one in dev],
            "pairs": pairs,
        },
        "versions": versions(),
        "hardware": hardware(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "tokens": tokens,
        "trials": results,
    }
    if what in ("recipe", "adam"):
        found["rule"] = SEARCH
    if what != "mechanism":
        found["lowest"] = choice(results)
    return found


# ---------------------------------------------------------------------------------------------
# In words


def _measured_by(report: dict[str, Any]) -> str:
    dev = report["dev_data"]
    files = ", ".join(
        f"`{one['name']}` (SHA-256 `{one['sha256'][:12]}…`)" for one in dev.get("files", [dev])
    )
    return f"Measured by `{report['command']}` on {dev['pairs']:,} pairs of {files}; {report['hardware']}."


def recipe_table(report: dict[str, Any], trainings: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown of the candidates' development losses, the lowest of each model in bold.

    Args:
        trainings: ``training.json`` of the shipped models, whose learning rates are named, too.
    """
    candidates = list(dict.fromkeys(name for found in report["trials"].values() for name in found))
    rows = [
        f"Which recipe: development loss (nats a token) after {report['tokens']:,} target tokens from "
        f"scratch, {report.get('rule', 'the same candidates for every model')}; one seed each, so small "
        "differences say nothing.",
        "",
        f"| model | {' | '.join(candidates)} |",
        f"| --- |{' --- |' * len(candidates)}",
    ]
    for model, found in report["trials"].items():
        cells = []
        for name in candidates:
            loss = found.get(name, {}).get("dev_loss")
            cell = f"{loss:.3f}" if loss else "diverged" if name in found else "not tried"
            cells.append(f"**{cell}**" if name == report["lowest"][model] else cell)
        rows.append(f"| `{model}` | {' | '.join(cells)} |")
    used: dict[str, list[str]] = {}
    for model, shipped_one in trainings.items():
        recipe = shipped_one["recipe"]
        rates = f"AdamW {recipe['learning_rate']:g}, Muon {recipe['matrix_learning_rate']:g}"
        used.setdefault(rates, []).append(f"`{model}`")
    shipped = "; ".join(f"{rates} for {', '.join(models)}" for rates, models in used.items())
    return "\n".join(
        [*rows, "", f"The shipped weights were trained with {shipped}. {_measured_by(report)}"]
    )


def mechanism_table(report: dict[str, Any]) -> str:
    """Markdown of the losses of each context and seed, by length."""
    first = next(iter(next(iter(report["trials"].values())).values()))
    buckets = [f"{b['low']}–{b['high']}" for b in first["by_length"]]
    rows = [
        "What the context alone does, and what a seed does: the same LSTM with one fixed vector, the plain "
        f"mean of all source states, or attention; development loss (nats a token) after "
        f"{report['tokens']:,} target tokens, overall and by English words.",
        "",
        f"| model | seed | all | {' | '.join(buckets)} |",
        f"| --- | --- | --- |{' --- |' * len(buckets)}",
    ]
    for model, found in report["trials"].items():
        for trial in found.values():
            losses = [trial["dev_loss"], *(b["loss"] for b in trial["by_length"])]
            cells = " | ".join(f"{loss:.3f}" for loss in losses)
            rows.append(f"| `{model}` | {trial['seed']} | {cells} |")
    return "\n".join([*rows, "", _measured_by(report)])
