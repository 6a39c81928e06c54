"""What training cost: the loss of the shipped models against tokens, operations and seconds.

    results = EXPERIMENT.measure(Settings())  # numbers of the report

Tokens and losses stand in ``training.json`` of each model. Operations are those of the matrix products of
the forward and backward pass and of Muon's orthogonalisation, by formula. Seconds are tokens divided by
the rate that ``benchmarks/training.json`` measured while the machine did nothing else: the clock of
a run itself also counts what other work took from it.

One run a model, so no interval. Where a model reaches a loss before its cool-down, another run whose
cool-down ended there would have reached it sooner: the comparison at equal loss is hardest on the model
that is ahead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from seqviz.lab.experiment import Experiment, Say
from seqviz.lab.operations import (
    BACKWARD,
    draw_lengths,
    forward_operations,
    optimizer_operations,
)
from seqviz.lab.settings import TrainingCost as Settings
from seqviz.language import Language
from seqviz.shipped import models_folder

UNITS = ("tokens", "operations", "seconds")
"""What a loss is paid with."""

SMOOTHED = 5
"""Points of a training curve that are averaged, where there is no development curve."""


# ---------------------------------------------------------------------------------------------
# Curves


def loss_curve(training: Mapping[str, Any]) -> tuple[str, np.ndarray]:
    """The development curve of a run; its smoothed training curve where there is none.

    Returns:
        "dev" or "train"; and points of target tokens and loss, (points, 2).
    Raises:
        ValueError: neither curve has two points.
    """
    losses = training.get("losses") or {}
    dev = np.array(losses.get("dev") or [], dtype=float)
    if len(dev) >= 2:
        return "dev", dev
    train = np.array(losses.get("train") or [], dtype=float)
    if len(train) < 2:
        raise ValueError(
            "expected losses in training.json, at least two points, got fewer; train longer"
        )
    smoothed = train.copy()
    for number in range(len(train)):  # each point with those before it, so that none looks ahead
        smoothed[number, 1] = train[max(0, number - SMOOTHED + 1) : number + 1, 1].mean()
    return "train", smoothed


def tokens_at_loss(points: np.ndarray, loss: float) -> float | None:
    """Target tokens after which a curve first reaches a loss; None if it never does.

    Args:
        points: of tokens and loss, (points, 2), with straight lines between.
        loss: to reach. One that the first point has already is given that point's tokens.
    """
    reached = np.flatnonzero(points[:, 1] <= loss)
    if not len(reached):
        return None
    after = reached[0]
    if after == 0:
        return float(points[0, 0])
    (low, above), (high, below) = points[after - 1], points[after]
    return float(low + (high - low) * (above - loss) / (above - below))


def loss_at_tokens(points: np.ndarray, tokens: float) -> float | None:
    """The loss after so many target tokens; None before the first point. Behind the last, its loss."""
    if tokens < points[0, 0]:
        return None
    return float(np.interp(tokens, points[:, 0], points[:, 1]))


# ---------------------------------------------------------------------------------------------
# The report

LEGEND = {
    "models": "curve: dev for the loss on development sentences, train for the smoothed training loss; points: "
    "target tokens seen, operations and seconds until then, loss in nats a target token",
    "operations": "of matrix products, a multiplication with its addition as 2: forward pass, a backward pass "
    "of twice as many, and Muon's orthogonalisation once a step; without padding",
    "per_target_token": "forward: one forward pass; training: forward and backward pass, and the optimiser's "
    "step shared out over the tokens of a step",
    "seconds": "target tokens divided by tokens_per_second, the rate that the file of rates measured with "
    "nothing else running; not the clock of the run, which shared its machine. null without such a rate",
    "run_seconds": "the clock of the run, which other work on the machine slowed: not used",
    "cost_to_equal_loss": "for the final loss of each model, what every model had paid when its curve first "
    "came down to it (straight lines between points), null where it never did; at_most: its first point was "
    "already below; times: divided by what the model whose final loss it is had paid",
    "at_equal": "loss of every model when the cheapest run had been paid for; null before its first point; "
    "lowest: the model with the lowest loss",
    "one run": "each model was trained once, so there are no intervals; a loss on the way lacks the cool-down "
    "that a final loss has had, so a model that is ahead is shown too dear rather than too cheap",
}


def training_cost(settings: Settings, say: Say) -> dict[str, Any]:
    """Make the report's numbers from what training and its benchmark left.

    Returns:
        ``legend``, ``models``, ``rates``, ``cost_to_equal_loss``, ``at_equal``.
    Raises:
        ValueError: a model without ``training.json`` or ``config.json``, a damaged file.
    """
    folder = Path(settings.folder) if settings.folder else models_folder()
    benchmark = Path(settings.benchmark) if settings.benchmark else default_benchmark()
    measured = _read(benchmark) if settings.benchmark or benchmark.is_file() else None
    rates = _rates(measured, f"{benchmark.parent.name}/{benchmark.name}")
    models = {}
    for name in settings.models:
        say(f"{name}: curve and operations")
        models[name] = _model(folder / name, settings, measured)
    unknown = [name for name, found in models.items() if found["tokens_per_second"] is None]
    if rates["why_none"] is None and unknown:
        rates["why_none"] = f"no rate of these models there: {', '.join(unknown)}"
    return {
        "legend": LEGEND,
        "models": models,
        "rates": rates,
        "cost_to_equal_loss": equal_loss(models),
        "at_equal": {unit: at_equal(models, unit) for unit in UNITS},
    }


def default_benchmark() -> Path:
    """``benchmarks/training.json`` beside the shipped models, whether it is there or not."""
    return models_folder().parent / "benchmarks" / "training.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected a JSON file in {file}, got {type(error).__name__}: {str(error)[:200]}; 'seqviz train' "
            "and 'python benchmarks/training.py' write them"
        ) from error


def _rates(measured: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Where the rates come from, and why there are none."""
    keys = ("command", "hardware", "created", "num_threads", "load_average", "matmul")
    found: dict[str, Any] = {"file": name, "file_there": measured is not None, "why_none": None}
    if measured is None:
        found["why_none"] = f"there is no {name}; run: python benchmarks/training.py"
    return {**found, **{key: (measured or {}).get(key) for key in keys}}


def _model(folder: Path, settings: Settings, measured: Mapping[str, Any] | None) -> dict[str, Any]:
    """All that is known of one run."""
    training = _read(folder / "training.json")
    _read(folder / "config.json")
    config = AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForSeq2SeqLM.from_config(config)
    lengths = draw_lengths(training, settings.num_examples, settings.seed)
    per_token = forward_operations(config, lengths.source, lengths.target).sum()
    forward = float(per_token / lengths.target.sum())
    step = optimizer_operations(model, training["recipe"])
    per_step = training["target_tokens"] / training["steps"]
    total = (1 + BACKWARD) * forward + step / per_step
    rate = rate_of(measured, training)
    kind, points = loss_curve(training)
    return {
        "weights_sha256": training.get("weights_sha256"),
        "num_parameters": training["num_parameters"],
        "target_tokens": training["target_tokens"],
        "tokens_per_step": per_step,
        "run_seconds": training["seconds"],
        "run_hardware": training["hardware"],
        "operations_per_target_token": {
            "forward": forward,
            "training": total,
            "optimizer": step / per_step,
        },
        "optimizer_operations_per_step": step,
        "tokens_per_second": rate,
        "curve": kind,
        "points": {
            "tokens": points[:, 0].tolist(),
            "operations": (points[:, 0] * total).tolist(),
            "seconds": None if rate is None else (points[:, 0] / rate).tolist(),
            "loss": points[:, 1].tolist(),
        },
        "final_loss": float(points[-1, 1]),
    }


def rate_of(measured: Mapping[str, Any] | None, training: Mapping[str, Any]) -> float | None:
    """Target tokens a second of a model, if the benchmark measured one of its name and size."""
    found = ((measured or {}).get("results") or {}).get(training["model"])
    if not found or found["num_parameters"] != training["num_parameters"]:
        return None
    return found["target_tokens_per_second"]


def _per_token(model: Mapping[str, Any], unit: str) -> float | None:
    """What one target token costs a model."""
    if unit == "seconds":
        rate = model["tokens_per_second"]
        return None if rate is None else 1 / rate
    return model["operations_per_target_token"]["training"] if unit == "operations" else 1.0


def _points(model: Mapping[str, Any]) -> np.ndarray:
    return np.column_stack([model["points"]["tokens"], model["points"]["loss"]])


def equal_loss(models: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What every model paid for the final loss of each, from the highest loss to the lowest."""
    levels = []
    for name in sorted(models, key=lambda one: -models[one]["final_loss"]):
        loss = models[name]["final_loss"]
        paid: dict[str, Any] = {}
        for other, model in models.items():
            points = _points(model)
            tokens = tokens_at_loss(points, loss)
            if tokens is None:
                paid[other] = None
                continue
            costs = {unit: _per_token(model, unit) for unit in UNITS}
            paid[other] = {u: None if c is None else c * tokens for u, c in costs.items()}
            paid[other]["at_most"] = bool(points[0, 1] <= loss)
        own = paid[name]
        for found in filter(None, paid.values()):
            found["times"] = {
                unit: None if None in (found[unit], own[unit]) else found[unit] / own[unit]
                for unit in UNITS
            }
        levels.append({"loss": loss, "final_loss_of": name, "models": paid})
    return levels


def at_equal(models: Mapping[str, Any], unit: str) -> dict[str, Any] | None:
    """The losses when every model has paid what the cheapest run paid in all; None without rates."""
    costs = {name: _per_token(model, unit) for name, model in models.items()}
    if None in costs.values():
        return None
    known = {name: cost for name, cost in costs.items() if cost is not None}
    totals = {name: known[name] * models[name]["points"]["tokens"][-1] for name in models}
    amount = min(totals.values())
    losses = {
        # Of the cheapest run exactly its last point, whatever division makes of it.
        name: models[name]["final_loss"]
        if totals[name] == amount
        else loss_at_tokens(_points(models[name]), amount / known[name])
        for name in models
    }
    reached = {name: loss for name, loss in losses.items() if loss is not None}
    return {"amount": amount, "loss": losses, "lowest": min(reached, key=lambda one: reached[one])}


# ---------------------------------------------------------------------------------------------
# In words


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `training_cost`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.training_cost")
    said = []

    def percent(share: float) -> str:
        return Language.of(language).say("language.percent", number=f"{100 * share:.0f}")

    for unit, scale, form in (
        ("tokens", 1e-6, "{:.1f}"),
        ("operations", 1, "{:.1e}"),
        ("seconds", 1 / 60, "{:.0f}"),
    ):
        if equal := results["at_equal"][unit]:
            losses = [
                words.say("not_yet" if loss is None else "loss", name=name, loss=f"{loss or 0:.2f}")
                for name, loss in equal["loss"].items()
            ]
            amount = form.format(scale * equal["amount"]).replace("e+", "e")
            listed = words.join(losses, "list")
            said.append(words.say(f"equal_{unit}", amount=amount, list=listed))
    timed = results["at_equal"]["seconds"] is not None
    units = UNITS if timed else UNITS[:2]
    for level in results["cost_to_equal_loss"]:
        paid = []
        for name, found in level["models"].items():
            if found is not None and name != level["final_loss_of"]:
                times = [percent(found["times"][unit]) for unit in units]
                paid.append(words.say("paid", name=name, values=" / ".join(times)))
        if paid:
            said.append(
                words.say(
                    "level" if timed else "level_untimed",
                    owner=level["final_loss_of"],
                    loss=f"{level['loss']:.2f}",
                    values=words.join(paid, "list"),
                )
            )
    if not timed:
        said.append(_no_rates(results, words))
    said.append(words.say("one_run"))
    return words.join(said)


def _no_rates(results: Mapping[str, Any], words: Language) -> str:
    rates = results["rates"]
    if not rates["file_there"]:
        return words.say("no_file_of_rates", file=rates["file"])
    models = results["models"].items()
    unknown = [name for name, found in models if found["tokens_per_second"] is None]
    return words.say("no_rates_of", file=rates["file"], names=words.join(unknown, "names"))


EXPERIMENT = Experiment(
    "training_cost",
    Settings,
    training_cost,
    sentence,
    lambda settings, results: {
        "weights_sha256": {
            name: found["weights_sha256"] for name, found in results["models"].items()
        }
    },
)
