"""Copy a random sequence through a state of h numbers: how long may it be, and how much does attention help?

    results = EXPERIMENT.measure(Settings())    # numbers of the report

    "lstm":           m, s = encode(x)                  m encoder states, s the end state, all that is handed on
                      y_i  = W tanh(W_o [s_i; m_S])     the same vector at every step
    "lstm-attention": y_i  = W tanh(W_o [s_i; c_i])     c_i = Σ_j α_ij m_j, additive attention over m

That is the only difference; both decoders start from the encoder's end state. Copying is the task on which
a fixed state provably cannot keep up (Jelassi et al. 2024). Shown here is less: what was *learned* within a
budget, far below what the numbers of a state could hold.

Shapes: `B` batch, `S` source length, which is the target's as well, `H` width of a state, `D` width of the
embeddings, `V` symbols.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqviz.architectures.context import Attention, Encoded, Fixed
from seqviz.architectures.recurrent import initialize_recurrence, recurrence
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
    Batch,
    Embedding,
    generator,
    num_parameters,
    one_thread,
    train,
)
from seqviz.lab.settings import Capacity as Settings
from seqviz.language import Language

CONTEXTS = {"lstm": Fixed, "lstm-attention": Attention}
GOOD = 0.9
"""A length counts as copied if so large a share of its symbols is right."""

EMBEDDING_WIDTH = 32
"""Of embeddings, output layer and attention, whatever the state's width, so that only the state varies."""


class Copier(nn.Module):
    """LSTM encoder and LSTM decoder; see the equations above.

    Args:
        context: one of `CONTEXTS`.
        num_symbols: of the alphabet; one more stands before the first symbol of a target.
        state_width: h.
    Raises:
        ValueError: an unknown context.
    """

    def __init__(self, context: str, num_symbols: int, state_width: int) -> None:
        if context not in CONTEXTS:
            raise ValueError(
                f"expected context to be one of {', '.join(CONTEXTS)}, got {context!r}"
            )
        super().__init__()
        self.start_symbol = num_symbols
        self.embed = Embedding(num_symbols + 1, EMBEDDING_WIDTH)
        self.encoder = recurrence("lstm", EMBEDDING_WIDTH, state_width)
        self.decoder = recurrence("lstm", EMBEDDING_WIDTH, state_width)
        with torch.no_grad():
            for layer in (self.encoder, self.decoder):
                initialize_recurrence(layer, forget_bias=1.0)
        self.combine = nn.Linear(2 * state_width, EMBEDDING_WIDTH, bias=False)
        self.answer = nn.Linear(EMBEDDING_WIDTH, num_symbols)
        # Last, so that both contexts draw the same weights for all else.
        self.attention = CONTEXTS[context](state_width, state_width, EMBEDDING_WIDTH)

    def encode(self, source: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(B, S) → memory (B, S, H), and state and cell at the end, each (1, B, H)."""
        memory, state = self.encoder(self.embed(source))
        return memory, state

    def decode(
        self, previous: Tensor, memory: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """A whole target, or one step of it.

        Args:
            previous: target symbols, each one step late, (B, T).
            memory: (B, S, H).
            state: of the decoder before these symbols.
        Returns:
            logits (B, T, V) and the state behind them.
        """
        states, state = self.decoder(self.embed(previous), state)  # (B, T, H)
        encoded = Encoded(last_hidden_state=memory, vector=memory[:, -1])
        real = torch.ones(memory.shape[:2], dtype=torch.bool)
        context, _ = self.attention(states, self.attention.prepare(encoded, real))
        return self.answer(torch.tanh(self.combine(torch.cat([states, context], dim=-1)))), state

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Logits of a target whose symbols so far are given (teacher forcing), (B, T, V)."""
        return self.decode(previous, *self.encode(source))[0]

    @torch.no_grad()
    def copy(self, source: Tensor) -> Tensor:
        """Write a target of the source's length, each step reading what was written before: (B, S)."""
        memory, state = self.encode(source)
        previous = torch.full((len(source), 1), self.start_symbol)
        written = []
        for _ in range(source.shape[1]):
            logits, state = self.decode(previous, memory, state)
            previous = logits.argmax(dim=-1)  # (B, 1)
            written.append(previous)
        return torch.cat(written, dim=1)


def build(settings: Settings, context: str, width: int, seed: int) -> Copier:
    """A fresh model, its weights drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Copier(context, settings.num_symbols, width)


def draw(settings: Settings, size: int, length: int, random: torch.Generator) -> Batch:
    """Random sequences of one length: source, the same one step late behind the start symbol, and target."""
    source = torch.randint(settings.num_symbols, (size, length), generator=random)
    start = torch.full((size, 1), settings.num_symbols)
    return Batch((source, torch.cat([start, source[:, :-1]], dim=1)), source)


def copied(
    settings: Settings, model: Copier, length: int, seed: int, stream: int = TEST
) -> np.ndarray:
    """Share of right symbols by position when the model writes freely, (S,).

    Sequences are fresh; of very short ones there are few, which training has drawn as well.
    """
    size = settings.num_test if stream == TEST else settings.num_validation
    source = draw(settings, size, length, generator(seed, stream, length)).targets
    model.eval()
    return (model.copy(source) == source).double().mean(dim=0).numpy()


def run(settings: Settings, context: str, width: int, rate: float, seed: int) -> Copier:
    """Train one model; every batch is of one length, drawn at random. Both contexts get the same batches."""
    model = build(settings, context, width, seed)
    random = generator(seed, TRAIN)

    def next_batch() -> Batch:
        length = int(torch.randint(1, settings.max_length + 1, (1,), generator=random))
        return draw(settings, settings.batch_size, length, random)

    train(model, next_batch, settings.steps, rate)
    return model


def longest(accuracies: Sequence[float], good: float = GOOD) -> int:
    """The largest length L such that all lengths from 1 to L are copied with `good` accuracy; 0: none."""
    below = first_below(accuracies, good)
    return len(accuracies) if below is None else below - 1


def first_below(accuracies: Sequence[float], good: float = GOOD) -> int | None:
    """The first length, counted from 1, whose accuracy is below `good`; None if none is."""
    return next((n for n, value in enumerate(accuracies, start=1) if value < good), None)


LEGEND = {
    "lstm, lstm-attention": "LSTM encoder and decoder with one fixed vector, and the same with additive "
    "attention over the encoder's states; keys below are the width h of a state",
    "accuracy": "share of right symbols when the model writes freely, by length 1, 2, …: mean over seeds; low "
    "and high: its 95 % interval over seeds (Student's t, cut to 0-1; with few seeds rough), which covers "
    "weights and training batches; seeds: one list a seed",
    "longest": "largest length up to which every length has at least the share good of its symbols right: by "
    "seed, and the median; cannot exceed max_length",
    "bits": "information in a sequence of the median longest length, length × log2 of the alphabet; the state "
    "handed on has 2h numbers (state and cell)",
    "fails": "the first length at which the mean accuracy is below good, and there the accuracy by position, "
    "mean over seeds; null: none is",
    "by_position": "accuracy by position, mean over seeds, for every length from 1",
    "search": "mean accuracy over all lengths on validation data for each learning rate, on a seed of its own; "
    "of equally good ones the smallest is chosen",
    "budget": "this is what was learned with so many batches, not what a state can hold",
}


def capacity(settings: Settings, say: Say) -> dict[str, Any]:
    """Run the experiment.

    Same settings, versions and kind of processor give the same numbers: all is drawn from seeds, on one thread.

    Returns:
        ``legend``, ``good``, ``chance``, ``max_length``, ``budget``, ``lstm`` and ``lstm-attention`` by width.
    """
    results: dict[str, Any] = {
        "legend": LEGEND,
        "good": GOOD,
        "chance": 1 / settings.num_symbols,
        "max_length": settings.max_length,
        "budget": budget(settings),
    }
    with one_thread():
        for context in CONTEXTS:
            results[context] = {
                str(width): _measure(settings, context, width, say) for width in settings.widths
            }
    return results


def _measure(settings: Settings, context: str, width: int, say: Say) -> dict[str, Any]:
    def answers(rate: float, seed: int, stream: int) -> list[np.ndarray]:
        model = run(settings, context, width, rate, seed)
        return [copied(settings, model, length, seed, stream) for length in settings.lengths]

    here = f"{context}, width {width}"
    found, by_seed = learned(
        settings, here, answers, say, tell=lambda row: f"copies up to {longest(row)}"
    )
    positions = [np.mean(rows, axis=0) for rows in zip(*by_seed, strict=True)]
    reached = [longest(row) for row in found["accuracy"]["seeds"]]
    fails = first_below(found["accuracy"]["mean"])
    return {
        "parameters": num_parameters(build(settings, context, width, 1)),
        **found,
        "longest": {"seeds": reached, "median": median(reached)},
        "bits": float(f"{median(reached) * math.log2(settings.num_symbols):.6g}"),
        "fails": fails and {"length": fails, "by_position": plain(positions[fails - 1])},
        "by_position": [plain(one) for one in positions],
    }


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `capacity`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.capacity")
    fixed, attention = (results[context] for context in CONTEXTS)

    def reached(context: Mapping[str, Any], width: str) -> str:
        number = context[width]["longest"]["median"]
        return words.say("all" if number == results["max_length"] else "some", number=number)

    parts = [
        words.say("one", width=w, fixed=reached(fixed, w), attention=reached(attention, w))
        for w in fixed
    ]
    good = words.percent(results["good"])
    said = [words.say("longest", good=good, list=words.join(parts, "clauses"))]
    widest = list(fixed)[-1]
    fails = fixed[widest]["fails"]
    if fails and fails["length"] >= 3:
        positions = fails["by_position"]
        third = len(positions) // 3
        first, last = (float(np.mean(part)) for part in (positions[:third], positions[-third:]))
        shares = {"first": words.percent(first), "last": words.percent(last)}
        said.append(words.say("fails", length=fails["length"], width=widest, **shares))
    said.append(
        words.say(
            "budget",
            **results["budget"],
            max_length=results["max_length"],
            width=widest,
            bits=fixed[widest]["bits"],
        )
    )
    return words.join(said)


EXPERIMENT = Experiment(
    "capacity",
    Settings,
    capacity,
    sentence,
    lambda settings, results: {
        "name": "drawn at random",
        "test_sequences_a_length": settings.num_test,
    },
    given={"first_seed": 1, "search_seed": 0},
)
