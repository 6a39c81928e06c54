"""Trained on short sequences, tested on longer ones: recurrence against attention, on three tasks.

    results = EXPERIMENT.measure(Settings())    # numbers of the report

Neither side picks the tasks:

* "parity": is the number of ones so far odd? One bit of state is enough: recurrence is at home.
* "last-write": which of 8 symbols was written last? Noise lies between the writes (the flip-flop of Liu et
  al. 2023, with more symbols). One symbol of state is enough: recurrence is at home here, too.
* "lookup": pairs of a key and a value, then one of the keys again: which value stood beside it? What must
  be kept grows with the sequence: attention is at home (associative recall).

Attention has sinusoidal positions (Vaswani et al. 2017); beyond the trained lengths it meets positions it has
never seen. That Transformers fail there in translation is known (Neishi & Yoshinaga 2019; Variš & Bojar
2021). Other encodings of positions can do better; they are not measured here.

Shapes: `B` batch, `S` sequence length, `N` pairs of a key and a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from seqviz.lab.experiment import Experiment, Say, budget, learned
from seqviz.lab.readers import (
    IGNORED,
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
from seqviz.lab.settings import NUM_KEYS
from seqviz.lab.settings import Extrapolation as Settings
from seqviz.language import Language

TASKS = ("parity", "last-write", "lookup")
MODELS = ("rnn", "lstm", "attention")
NUM_LAYERS = 2
NUM_VALUES = 8
"""Symbols that can be written, or stand beside a key."""
WRITES = 0.2
"""Share of positions at which "last-write" writes; at the first it always does."""

# ---------------------------------------------------------------------------------------------
# Tasks


def draw(task: str, size: int, length: int, random: torch.Generator) -> Batch:
    """Sequences of one length, and their right answers.

    Returns:
        "parity": bits (B, S) and the parity of those read, at every position. "last-write": symbols 0 … 7
        written, 8 … 15 noise, (B, S), and the symbol last written, at every position. "lookup": pairs
        of key and value and then a key with the query symbol, (B, N + 1, 2), and its value, (B, 1).
    Raises:
        ValueError: an unknown task, or more pairs than keys.
    """
    if task == "parity":
        bits = torch.randint(2, (size, length), generator=random)
        return Batch((bits,), bits.cumsum(dim=1) % 2)
    if task == "last-write":
        written = torch.rand(size, length, generator=random) < WRITES
        written[:, 0] = True
        values = torch.randint(NUM_VALUES, (size, length), generator=random)
        noise = torch.randint(NUM_VALUES, 2 * NUM_VALUES, (size, length), generator=random)
        position = torch.where(written, torch.arange(length), 0)
        last = position.cummax(dim=1).values  # of the last write, (B, S)
        return Batch((torch.where(written, values, noise),), values.gather(1, last))
    if task == "lookup":
        if length > NUM_KEYS:
            raise ValueError(f"expected at most {NUM_KEYS} pairs, one a key, got {length}")
        keys = torch.rand(size, NUM_KEYS, generator=random).argsort(dim=1)[:, :length]  # (B, N)
        values = torch.randint(NUM_VALUES, (size, length), generator=random)
        asked = torch.randint(length, (size, 1), generator=random)
        query = torch.full((size, 1), NUM_KEYS + NUM_VALUES)
        first = torch.cat([keys, keys.gather(1, asked)], dim=1)
        second = torch.cat([NUM_KEYS + values, query], dim=1)
        return Batch((torch.stack([first, second], dim=2),), values.gather(1, asked))
    raise ValueError(f"expected task to be one of {', '.join(TASKS)}, got {task!r}")


def chance(task: str) -> float:
    """Accuracy of an answer that knows nothing of the sequence."""
    return 1 / 2 if task == "parity" else 1 / NUM_VALUES


_SIZES = {  # symbols, answers, positions read
    "parity": (2, 2, "all"),
    "last-write": (2 * NUM_VALUES, NUM_VALUES, "all"),
    "lookup": (NUM_KEYS + NUM_VALUES + 1, NUM_VALUES, "last"),
}


def build(settings: Settings, task: str, kind: str, seed: int) -> RecurrentReader | AttentionReader:
    """A fresh model with `NUM_LAYERS` layers; no position sees a later one."""
    num_symbols, num_answers, read = _SIZES[task]
    return build_reader(
        kind,
        num_symbols=num_symbols,
        num_answers=num_answers,
        width=settings.width,
        num_heads=settings.num_heads,
        num_layers=NUM_LAYERS,
        read=read,
        seed=seed,
    )


def held_out(
    settings: Settings,
    task: str,
    model: torch.nn.Module,
    length: int,
    seed: int,
    stream: int = TEST,
) -> float:
    """Accuracy of the answer behind the last symbol, on fresh sequences of one length, 0–1.

    Of very short sequences there are few, which training has drawn as well.
    """
    size = settings.num_test if stream == TEST else settings.num_validation
    batch = draw(task, size, length, generator(seed, stream, length))
    targets = torch.full_like(batch.targets, IGNORED)
    targets[:, -1] = batch.targets[:, -1]
    return accuracy(model, Batch(batch.inputs, targets))


def run(
    settings: Settings, task: str, kind: str, rate: float, seed: int
) -> RecurrentReader | AttentionReader:
    """Train one model on lengths up to `trained_length`; every kind gets the same batches."""
    model = build(settings, task, kind, seed)
    random = generator(seed, TRAIN)

    def next_batch() -> Batch:
        length = int(torch.randint(1, settings.trained_length + 1, (1,), generator=random))
        return draw(task, settings.batch_size, length, random)

    train(model, next_batch, settings.steps, rate)
    return model


# ---------------------------------------------------------------------------------------------
# The experiment

LEGEND = {
    "parity": "is the number of ones so far odd? Trained to answer at every position",
    "last-write": "which symbol was written last? Noise symbols lie between the writes. Trained to answer at "
    "every position",
    "lookup": "pairs of key and value, then a key: which value stood beside it? No key comes twice; the answer "
    "is read at the end alone",
    "accuracy": "share of right answers behind the last symbol of fresh sequences, by tested length: mean over "
    "seeds; low and high: its 95 % interval over seeds (Student's t, cut to 0-1), which covers weights and "
    "training batches, not the choice of task, size or budget; seeds: one list a seed",
    "search": "mean accuracy on validation data of the tested lengths that were trained, for each learning "
    "rate, on a seed of its own; of equally good ones the smallest is chosen. Longer ones play no part in "
    "the choice",
    "attention": "two causal self-attention blocks with sinusoidal positions; other encodings of positions are "
    "not measured",
    "rnn, lstm": "two layers, orthogonal recurrent weights, forget bias 1; the tanh RNN has the wider states "
    "for the same number of parameters",
}


def extrapolation(settings: Settings, say: Say) -> dict[str, Any]:
    """Run the experiment.

    Same settings, versions and kind of processor give the same numbers: all is drawn from seeds, on one thread.

    Returns:
        ``legend``, ``trained_length``, ``lengths``, ``budget``, ``tasks`` by task (``chance``, ``models`` by
        kind).
    """
    results: dict[str, Any] = {
        "legend": LEGEND,
        "trained_length": settings.trained_length,
        "lengths": list(settings.lengths),
        "budget": budget(settings),
        "tasks": {},
    }
    with one_thread():
        for task in TASKS:
            models = {kind: _measure(settings, task, kind, say) for kind in MODELS}
            results["tasks"][task] = {"chance": chance(task), "models": models}
    return results


def _measure(settings: Settings, task: str, kind: str, say: Say) -> dict[str, Any]:
    known = [length for length in settings.lengths if length <= settings.trained_length]

    def answers(rate: float, seed: int, stream: int) -> list[float]:
        model = run(settings, task, kind, rate, seed)
        lengths = known if stream == VALIDATION else settings.lengths
        return [held_out(settings, task, model, length, seed, stream) for length in lengths]

    found, _ = learned(settings, f"{task}, {kind}", answers, say)
    return {
        "parameters": num_parameters(build(settings, task, kind, 1)),
        "state_width": state_width("rnn" if kind == "rnn" else "lstm", settings.width, NUM_LAYERS),
        **found,
    }


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `extrapolation`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.extrapolation")
    lengths, trained = results["lengths"], results["trained_length"]
    said = [words.say("begin", trained=trained, longest=lengths[-1])]
    for task, found in results["tasks"].items():
        parts = []
        for kind, measured in found["models"].items():
            means = measured["accuracy"]["mean"]
            known, beyond = (words.percent(means[at]) for at in (lengths.index(trained), -1))
            parts.append(words.say("one", name=words.say(kind), known=known, beyond=beyond))
        chance = words.percent(found["chance"])
        listed = words.join(parts, "list")
        said.append(words.say("task", task=words.say(task), chance=chance, list=listed))
    said.append(words.say("budget", **results["budget"]))
    return words.join(said)


EXPERIMENT = Experiment(
    "extrapolation",
    Settings,
    extrapolation,
    sentence,
    lambda settings, results: {
        "name": "drawn at random",
        "test_sequences_a_length": settings.num_test,
    },
    given={"first_seed": 1, "search_seed": 0},
)
