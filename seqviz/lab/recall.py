"""Name a symbol that was shown once, after a stretch of noise: what is learned over which distance.

    results = EXPERIMENT.measure(Settings())    # numbers of the report

    input   k  n n n … n  ?         k one of 16 symbols, n one of 16 others, "distance" times, ? a query
    answer                k         read at the last position alone

Nothing but k at the first position helps: the noise is drawn from other symbols. Every model gets the same
batches, about the same number of parameters and the same number of steps, and is trained in two ways:

* "mixed": one model on all distances, each batch at one of them, so that near ones can teach far ones;
* "alone": a model a distance, which sees no other. Then the gradient has to cross the whole distance
  before anything is learned, the case of Bengio et al. 1994 and Hochreiter & Schmidhuber 1997.

What a state can hold is the same in both; they differ in how far a gradient has to reach before there is
anything to learn from. Neither is a limit: Pascanu et al. 2013 solve lags of 50 to 200 with a tanh RNN.

Shapes: `B` batch, `S` sequence length: the symbol, the noise, the query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from seqviz.lab.experiment import (
    Experiment,
    Say,
    budget,
    learned,
    plain,
)
from seqviz.lab.readers import (
    TEST,
    TRAIN,
    VALIDATION,
    AttentionReader,
    Batch,
    RecurrentReader,
    accuracy,
    build_reader,
    generator,
    num_parameters,
    one_thread,
    state_width,
    train,
)
from seqviz.lab.settings import Recall as Settings
from seqviz.language import Language

TRAININGS = ("mixed", "alone")
SEARCH_SEEDS = (1001, 1002)
"""Of the search for a learning rate, more than one because runs differ much; the measured seeds are 1, 2, …"""


def draw(settings: Settings, size: int, distance: int, random: torch.Generator) -> Batch:
    """Sequences of one distance.

    Symbols 0 … K-1 are remembered, K … 2K-1 are noise, 2K is the query.

    Returns:
        inputs (B, distance + 2) and the first symbol of each as the one target, (B, 1).
    """
    count = settings.num_symbols
    remembered = torch.randint(count, (size, 1), generator=random)
    noise = torch.randint(count, 2 * count, (size, distance), generator=random)
    query = torch.full((size, 1), 2 * count)
    return Batch((torch.cat([remembered, noise, query], dim=1),), remembered)


def build(settings: Settings, kind: str, seed: int) -> RecurrentReader | AttentionReader:
    """A fresh model with one layer, read at the last position."""
    return build_reader(
        kind,
        num_symbols=2 * settings.num_symbols + 1,
        num_answers=settings.num_symbols,
        width=settings.width,
        num_heads=settings.num_heads,
        num_layers=1,
        read="last",
        seed=seed,
    )


def held_out(
    settings: Settings, model: torch.nn.Module, distance: int, seed: int, stream: int = TEST
) -> float:
    """Accuracy on sequences that this seed's training never drew, 0–1."""
    size = settings.num_test if stream == TEST else settings.num_validation
    return accuracy(model, draw(settings, size, distance, generator(seed, stream, distance)))


def run(
    settings: Settings, kind: str, distances: Sequence[int], rate: float, seed: int
) -> tuple[RecurrentReader | AttentionReader, dict[str, Any]]:
    """Train one model on some distances.

    Args:
        distances: each batch is of one of them, drawn at random.
        rate: learning rate.
        seed: of weights and batches; every kind of model gets the same batches.
    Returns:
        the model, and its accuracy on validation data on the way: ``steps``, and ``accuracy``, a list by
        step of lists by distance.
    """
    model = build(settings, kind, seed)
    random = generator(seed, TRAIN, *distances)
    on_the_way: dict[str, Any] = {"steps": [], "accuracy": []}

    def next_batch() -> Batch:
        number = int(torch.randint(len(distances), (1,), generator=random))
        return draw(settings, settings.batch_size, distances[number], random)

    def watch(step: int) -> None:
        on_the_way["steps"].append(step)
        found = [held_out(settings, model, d, seed, VALIDATION) for d in distances]
        on_the_way["accuracy"].append(plain(found))

    train(model, next_batch, settings.steps, rate, watch, max(1, settings.steps // 8))
    return model, on_the_way


def half_way(distances: Sequence[int], accuracies: Sequence[float], chance: float) -> float | None:
    """The distance at which accuracy first falls to half way between 1 and chance.

    Between two measured distances it is interpolated on the logarithm of the distance.

    Returns:
        None if accuracy stays above at all of them, or never is above (see `accuracies[0]`).
    """
    level = (1 + chance) / 2
    if accuracies[0] < level:
        return None
    for number in range(1, len(distances)):
        before, after = accuracies[number - 1], accuracies[number]
        if after < level:
            share = (before - level) / (before - after)
            near, far = math.log(distances[number - 1]), math.log(distances[number])
            return float(f"{math.exp(near + share * (far - near)):.6g}")
    return None


LEGEND = {
    "mixed": "one model trained on all distances, each batch at one of them",
    "alone": "a model a distance, trained and tested at that one only",
    "accuracy": "share of right answers on fresh test sequences, by distance: mean over seeds; low and high: "
    "its 95 % interval over seeds (Student's t, cut to 0-1), which covers weights and training batches, not "
    "the choice of task, size or budget; seeds: one list a seed",
    "half_way": "distance at which accuracy first falls to half way between 1 and chance, interpolated on "
    "the logarithm of the distance: of the mean, and of each seed; null: not within the distances, or never "
    "above it",
    "learning": "accuracy on validation data on the way: steps done, then by step a list by distance, mean "
    "over seeds",
    "search": "mean accuracy on validation data for each learning rate, on two seeds of its own; of equally good "
    "ones the smallest is chosen; mixed: over all distances, alone: over search_distances",
    "parameters": "numbers trained, and width of the state (of the LSTM also that of its cell; attention: "
    "width of the layer). The tanh RNN has the wider state for the same number of parameters",
    "attention": "one self-attention block with sinusoidal positions; only the last position is read, so only "
    "its query is computed",
    "rnn, lstm": "one layer, orthogonal recurrent weights; forget bias 1, or 3 for lstm-forget-3",
}


def recall(settings: Settings, say: Say) -> dict[str, Any]:
    """Run the experiment.

    Same settings, versions and kind of processor give the same numbers: all is drawn from seeds, on one thread.

    Returns:
        ``legend``, ``chance``, ``distances``, ``parameters``, ``search``, ``mixed`` and ``alone`` by kind of
        model, ``budget``.
    """
    with one_thread():
        results: dict[str, Any] = {
            "legend": LEGEND,
            "chance": settings.chance,
            "distances": list(settings.distances),
            "parameters": {kind: _size(settings, kind) for kind in settings.kinds},
            "search": {},
        }
        for training in TRAININGS:
            found = {kind: _measure(settings, training, kind, say) for kind in settings.kinds}
            results["search"][training] = {k: one.pop("search") for k, one in found.items()}
            results[training] = found
    return {**results, "budget": budget(settings)}


def _size(settings: Settings, kind: str) -> dict[str, int]:
    cell = "rnn" if kind == "rnn" else "lstm"
    return {
        "parameters": num_parameters(build(settings, kind, 1)),
        "state_width": state_width(cell, settings.width, 1),
    }


def _groups(distances: Sequence[int], training: str) -> list[tuple[int, ...]]:
    """What one model is trained on: all distances, or one each."""
    return [tuple(distances)] if training == "mixed" else [(distance,) for distance in distances]


def _measure(settings: Settings, training: str, kind: str, say: Say) -> dict[str, Any]:
    ways: list[torch.Tensor] = []
    steps: list[int] = []

    def answers(rate: float, seed: int, stream: int) -> list[float]:
        searching = stream == VALIDATION and training == "alone"
        row: list[float] = []
        columns = []
        for group in _groups(
            settings.search_distances if searching else settings.distances, training
        ):
            model, on_the_way = run(settings, kind, group, rate, seed)
            row += [held_out(settings, model, distance, seed, stream) for distance in group]
            columns.append(torch.tensor(on_the_way["accuracy"], dtype=torch.float64))
        if stream == TEST:
            steps[:] = on_the_way["steps"]
            ways.append(torch.cat(columns, dim=1))  # (steps, distances)
        return row

    found, _ = learned(settings, f"{training}, {kind}", answers, say, SEARCH_SEEDS)
    means, rows = found["accuracy"]["mean"], found["accuracy"]["seeds"]
    return {
        **found,
        "half_way": {
            "mean": half_way(settings.distances, means, settings.chance),
            "seeds": [half_way(settings.distances, row, settings.chance) for row in rows],
        },
        "learning": {
            "steps": steps,
            "accuracy": [plain(row) for row in torch.stack(ways).mean(dim=0)],
        },
    }


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `recall`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.recall")
    distances, chance = results["distances"], results["chance"]
    ends = {"first": distances[0], "last": distances[-1]}
    said = []
    for training in reversed(TRAININGS):
        parts, keys = [], set()
        for kind, found in results[training].items():
            means = found["accuracy"]["mean"]
            distance = half_way(distances, means, chance)
            key = "after" if distance else "within" if means[0] >= (1 + chance) / 2 else "never"
            parts.append(words.say(key, name=words.say(f"kind_{kind}"), distance=distance, **ends))
            keys.add(key)
        if keys == {"within"}:
            parts = [words.say("none", **ends)]
        said.append(words.say(training, list=words.join(parts, "list")))
    shares = [
        words.say(
            "share",
            name=words.say(f"kind_{kind}"),
            **{t: words.percent(results[t][kind]["accuracy"]["mean"][-1]) for t in TRAININGS},
        )
        for kind in results["mixed"]
    ]
    said.append(words.say("far", list=words.join(shares, "list"), **ends))
    said.append(words.say("budget", **results["budget"]))
    # A name in Latin letters has a space behind it, one in Chinese has none.
    return re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", words.join(said))


EXPERIMENT = Experiment(
    "recall",
    Settings,
    recall,
    sentence,
    lambda settings, results: {
        "name": "drawn at random",
        "test_sequences_a_distance": settings.num_test,
    },
    given={"first_seed": 1, "search_seeds": SEARCH_SEEDS},
)
