"""What training cost: the loss of the shipped models against tokens, operations and seconds.

    results = training_cost(Settings())  # numbers of the report

Tokens and losses stand in ``training.json`` of each model. Operations are those of the matrix products of
the forward and backward pass and of Muon's orthogonalisation, by formula. Seconds are tokens divided by
the rate that ``benchmarks/training.json`` measured while the machine did nothing else: the clock of
a run itself also counts what other work took from it.

One run a model, so no interval. Where a model reaches a loss before its cool-down, another run whose
cool-down ended there would have reached it sooner: the comparison at equal loss is hardest on the model
that is ahead.

Shapes: `S` source length and `T` target length of a sentence in pieces with the end token, `D` embedding
width, `W` recurrent width, `A` attention width, `F` feed-forward width, `L` layers, `V` vocabulary; `E`
examples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MarianConfig, PreTrainedConfig

from seqviz.architectures import MODEL_NAMES
from seqviz.architectures.recurrent import RecurrentConfig
from seqviz.corpus import MAX_SOURCE_PIECES, MAX_TARGET_PIECES
from seqviz.lab.checks import check_language, check_whole
from seqviz.shipped import models_folder

BACKWARD = 2
"""Operations of a backward pass, in forward passes: a gradient for each factor of every product."""

UNITS = ("tokens", "operations", "seconds")
"""What a loss is paid with."""

SMOOTHED = 5
"""Points of a training curve that are averaged, where there is no development curve."""


@dataclass(frozen=True)
class Settings:
    """Of the report; the defaults are those of the committed one.

    Args:
        models: names of folders.
        num_examples: drawn from each model's own distribution of lengths, for operations a target token.
        seed: of the draw.
        folder: holds the models; None for the shipped ones.
        benchmark: file that ``benchmarks/training.py`` wrote; None for ``benchmarks/training.json`` beside
            the models.
    Raises:
        ValueError: a number out of its range, or no model.
    """

    models: tuple[str, ...] = MODEL_NAMES
    num_examples: int = 20_000
    seed: int = 1
    folder: str | None = None
    benchmark: str | None = None

    def __post_init__(self) -> None:
        check_whole(self, num_examples=(1, 10_000_000), seed=(0, 1 << 31))
        if not self.models or len(set(self.models)) < len(self.models):
            raise ValueError(
                f"expected at least one model, each named once, got {self.models!r}; try rnn, transformer"
            )


# ---------------------------------------------------------------------------------------------
# Lengths like those of training


class Lengths(NamedTuple):
    """Lengths of drawn examples, each (E,).

    Attributes:
        words: English words.
        source, target: pieces with the end token.
    """

    words: np.ndarray
    source: np.ndarray
    target: np.ndarray


def draw_lengths(training: Mapping[str, Any], number: int | None, seed: int) -> Lengths:
    """Examples with the lengths that a model was trained on, without its corpus.

    Words come from its ``length_histogram``. Pieces a word have the mean of its training: each word is one
    piece and a Poisson number of further ones, source and target apart. Real lengths scatter more, so a
    real batch has a little more padding than one of these.

    Args:
        training: content of ``training.json``.
        number: of examples; None for as many as one pass over the training data had.
        seed: of the draw.
    Raises:
        ValueError: no histogram of lengths in it.
    """
    histogram = np.array(training.get("length_histogram") or [0], dtype=float)
    if not histogram.sum():
        raise ValueError(
            "expected a length_histogram in training.json, got none; it is written by 'seqviz train'"
        )
    examples = histogram.sum()
    words_seen = (histogram * np.arange(len(histogram))).sum()
    target_pieces = training["target_tokens"] - examples  # without end tokens
    pieces = {
        side: sum(part[f"{side}_pieces"] * part.get("repeat", 1) for part in training["data"])
        for side in ("source", "target")
    }
    if number is None:
        number = round(pieces["target"] / (target_pieces / examples))
    draw = np.random.default_rng(seed)
    words = draw.choice(len(histogram), size=number, p=histogram / examples)
    target_rate = target_pieces / words_seen
    source_rate = target_rate * pieces["source"] / pieces["target"]
    source = _pieces(draw, words, source_rate, MAX_SOURCE_PIECES)
    target = _pieces(draw, words, target_rate, MAX_TARGET_PIECES)
    return Lengths(words, source + 1, target + 1)


def _pieces(draw: np.random.Generator, words: np.ndarray, rate: float, most: int) -> np.ndarray:
    """Pieces of so many words, `rate` a word in the mean, at least 1 and at most `most`."""
    base = words if rate >= 1 else np.zeros_like(words)
    return np.clip(base + draw.poisson(words * rate - base), 1, most)


# ---------------------------------------------------------------------------------------------
# Operations


def forward_operations(
    config: PreTrainedConfig, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Operations of one forward pass with teacher forcing, for each sentence pair.

    Counted are matrix products, a multiplication with its addition as 2; not counted are biases,
    nonlinearities, softmax and norms, nor the tanh of additive attention's T × S × A sums.

    Args:
        config: of one of the project's architectures.
        source, target: lengths, (E,). Padded lengths give what a padded batch takes.
    Returns:
        (E,).
    Raises:
        ValueError: a config of another architecture.
    """
    s, t = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if isinstance(config, MarianConfig):
        d = config.d_model
        encoder = 8 * s * d**2 + 4 * s**2 * d + 4 * s * d * config.encoder_ffn_dim
        decoder = (
            8 * t * d**2 + 4 * t**2 * d  # attention to itself
            + 4 * t * d**2 + 4 * s * d**2 + 4 * t * s * d  # to the memory
            + 4 * t * d * config.decoder_ffn_dim
        )  # fmt: skip
        layers = config.encoder_layers * encoder + config.decoder_layers * decoder
        return layers + 2 * t * d * config.vocab_size
    if not isinstance(config, RecurrentConfig):
        raise ValueError(
            f"expected the config of a seqviz-recurrent or marian model, got {config.model_type!r}"
        )
    d, w, v, half = config.d_model, config.width, config.vector_size, config.width // 2
    gates = 4 if config.cell == "lstm" else 1
    inputs = [d] + [w] * (config.num_layers - 1)
    encoder = sum(2 * 2 * gates * half * (size + half) for size in inputs)  # both directions
    decoder = sum(2 * gates * w * (size + w) for size in inputs)
    once = 2 * w * v + 2 * v * config.num_layers * w + 2 * v * d  # from and to the one vector
    context = v if config.context == "fixed" else w
    output = 2 * (w + context) * d + 2 * d * config.vocab_size
    found = s * encoder + t * (decoder + output) + once
    if config.context == "attention":
        a = config.attention_size
        found = found + 2 * s * w * a + 2 * t * w * a + 2 * t * s * a + 2 * t * s * w
    return found


def training_operations(
    config: PreTrainedConfig, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Operations of a forward and a backward pass for each sentence pair, (E,)."""
    return (1 + BACKWARD) * forward_operations(config, source, target)


def optimizer_operations(model: nn.Module, recipe: Mapping[str, Any]) -> int:
    """Operations of one step of Muon: Newton–Schulz iterations on every matrix it has.

    For X of m × n, m ≤ n, each of the iterations forms A = X Xᵀ, A² and (b A + c A²) X. AdamW, which has
    the rest, multiplies no matrices: 0.

    Args:
        model: with the weights' shapes.
        recipe: of ``training.json``.
    """
    from seqviz.training import Recipe, optimizers

    total = 0
    for optimizer in optimizers(model, Recipe(**recipe)):
        if isinstance(optimizer, torch.optim.Muon):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    m, n = sorted(parameter.shape)
                    total += group["ns_steps"] * (4 * m * m * n + 2 * m**3)
    return total


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


def training_cost(
    settings: Settings | None = None, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Make the report's numbers from what training and its benchmark left.

    Args:
        settings: None for those of the committed report.
        say: takes a line whenever a part begins.
    Returns:
        ``legend``, ``models``, ``rates``, ``cost_to_equal_loss``, ``at_equal``, ``says`` (by language).
    Raises:
        ValueError: a model without ``training.json`` or ``config.json``, a damaged file.
    """
    settings = settings or Settings()
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
    results: dict[str, Any] = {
        "legend": LEGEND,
        "models": models,
        "rates": rates,
        "cost_to_equal_loss": equal_loss(models),
        "at_equal": {unit: at_equal(models, unit) for unit in UNITS},
    }
    results["says"] = {language: sentence(results, language) for language in _SENTENCES}
    return results


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
    found: dict[str, Any] = {"file": name, "why_none": None}
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


def report(
    settings: Settings, say: Callable[[str], None], command: str = "seqviz lab training-cost"
) -> dict[str, Any]:
    """`training_cost` as the content of a report file."""
    from seqviz.lab import document

    results = training_cost(settings, say)
    data = {name: found["weights_sha256"] for name, found in results["models"].items()}
    return document(command, {"weights_sha256": data}, asdict(settings), results)


# ---------------------------------------------------------------------------------------------
# In words

_SENTENCES: dict[str, dict[str, str]] = {
    "en": {
        "equal_tokens": "After {amount} million target tokens each, the loss is {list}.",
        "equal_operations": "After as many operations as the cheapest run took ({amount}), it is {list}.",
        "equal_seconds": "After {amount} minutes on an idle machine, it is {list}.",
        "loss": "{loss} ({name})",
        "not_yet": "not known yet ({name})",
        "level": "Down to the final loss of {owner}, {loss}, others needed this part of its tokens / "
        "operations / seconds: {values}.",
        "level_untimed": "Down to the final loss of {owner}, {loss}, others needed this part of its tokens / "
        "operations: {values}.",
        "paid": "{name} {values}",
        "joint": ", ",
        "slash": " / ",
        "no_rates": "Seconds are not known: {why}.",
        "one_run": "One run a model, so without intervals.",
    },
    "zh": {
        "equal_tokens": "各看过 {amount} 百万个目标词元之后，损失为：{list}。",
        "equal_operations": "运算量与最省的一次训练（{amount}）相同时：{list}。",
        "equal_seconds": "在空闲机器上各训练 {amount} 分钟时：{list}。",
        "loss": "{name} {loss}",
        "not_yet": "{name} 尚不可知",
        "level": "要达到 {owner} 的最终损失 {loss}，其他模型所需的词元 / 运算 / 时间是它的：{values}。",
        "level_untimed": "要达到 {owner} 的最终损失 {loss}，其他模型所需的词元 / 运算是它的：{values}。",
        "paid": "{name} {values}",
        "joint": "，",
        "slash": " / ",
        "no_rates": "时间未知：没有可用的训练速度测量。",
        "one_run": "每个模型只训练了一次，没有置信区间。",
    },
}


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `training_cost`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    check_language(language, _SENTENCES)
    words = _SENTENCES[language]
    said = []
    for unit, scale, form in (
        ("tokens", 1e-6, "{:.1f}"),
        ("operations", 1, "{:.1e}"),
        ("seconds", 1 / 60, "{:.0f}"),
    ):
        equal = results["at_equal"][unit]
        if equal:
            losses = [
                words["not_yet" if loss is None else "loss"].format(
                    name=name, loss=loss and f"{loss:.2f}"
                )
                for name, loss in equal["loss"].items()
            ]
            said.append(
                words[f"equal_{unit}"].format(
                    amount=form.format(scale * equal["amount"]).replace("e+", "e"),
                    list=words["joint"].join(losses),
                )
            )
    timed = results["at_equal"]["seconds"] is not None
    for level in results["cost_to_equal_loss"]:
        paid = []
        for name, found in level["models"].items():
            if found is None or name == level["final_loss_of"]:
                continue
            times = [found["times"][unit] for unit in (UNITS if timed else UNITS[:2])]
            values = words["slash"].join(f"{100 * each:.0f} %" for each in times)
            paid.append(words["paid"].format(name=name, values=values))
        if paid:
            said.append(
                words["level" if timed else "level_untimed"].format(
                    owner=level["final_loss_of"],
                    loss=f"{level['loss']:.2f}",
                    values=words["joint"].join(paid),
                )
            )
    if not timed:
        said.append(words["no_rates"].format(why=results["rates"]["why_none"]))
    said.append(words["one_run"])
    if language == "en":
        return " ".join(said)
    return "".join(said).replace(" %", "%")
