"""Small models and the one loop that teaches them: for the experiments on made-up tasks.

`seqviz.lab.recall`, `seqviz.lab.capacity` and `seqviz.lab.extrapolation` draw every batch afresh from a
generator, so nothing is learned by heart and test sequences are new ones. All runs of an experiment have
the same number of steps and batches of the same size.

Shapes: `B` batch, `S` sequence length, `R` positions read, `D` width, `H` width of a recurrent state,
`C` symbols at one position, `V` answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqviz.architectures.recurrent import initialize_recurrence, recurrence
from seqviz.lab.settings import KINDS

EMBEDDING_STD = 0.32
"""Standard deviation of the embeddings at the start: 0.02 √256, that of this project's translators."""

CLIP = 1.0
"""Largest norm of a gradient; a longer one is shortened to it."""

WARM_UP = 0.05
"""Share of the steps in which the learning rate rises; behind them it falls in a straight line to 0."""

IGNORED = -100
"""Target at a position whose answer is not asked for."""

TRAIN, TEST, VALIDATION = range(3)
"""Streams of random numbers, so that no test sequence depends on what was trained on."""


# ---------------------------------------------------------------------------------------------
# Models


class Embedding(nn.Module):
    """Symbols as vectors; where one position holds several symbols, the sum of theirs."""

    def __init__(self, num_symbols: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_symbols, width) * EMBEDDING_STD)

    def forward(self, symbols: Tensor) -> Tensor:
        """(B, S) or (B, S, C) → (B, S, D)."""
        vectors = functional.embedding(symbols, self.weight)
        return vectors.sum(dim=2) if symbols.dim() == 3 else vectors


class RecurrentReader(nn.Module):
    """Read symbols one after the other, and answer from the state: logits = W h_t + b.

    Args:
        cell: "rnn" (tanh) or "lstm".
        num_symbols, num_answers: sizes of the two vocabularies.
        width: of the embeddings.
        state_width: of the recurrent state.
        num_layers: of the recurrence.
        forget_bias: of an LSTM's forget gates at the start.
        read: "last" answers at the last position alone, "all" at every one.
    """

    def __init__(
        self,
        cell: str,
        num_symbols: int,
        num_answers: int,
        width: int,
        state_width: int,
        num_layers: int,
        forget_bias: float,
        read: str,
    ) -> None:
        super().__init__()
        self.read = read
        self.embed = Embedding(num_symbols, width)
        # Layers of their own: `initialize_recurrence` knows one.
        self.layers = nn.ModuleList(
            recurrence(cell, state_width if number else width, state_width)
            for number in range(num_layers)
        )
        with torch.no_grad():
            for layer in self.layers:
                _initialize(layer, forget_bias)
        self.answer = nn.Linear(state_width, num_answers)

    def forward(self, symbols: Tensor) -> Tensor:
        """(B, S) or (B, S, C) → logits (B, R, V)."""
        states = self.embed(symbols)  # (B, S, D)
        for layer in self.layers:
            states, _ = layer(states)  # (B, S, H)
        return self.answer(states[:, -1:] if self.read == "last" else states)


def _initialize(layer: nn.Module, forget_bias: float) -> None:
    assert isinstance(layer, nn.RNNBase)
    initialize_recurrence(layer, forget_bias)


class AttentionBlock(nn.Module):
    """y = LN(x + attend(x)); LN(y + W₂ relu(W₁ y)): one encoder layer of Vaswani et al. 2017."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, num_heads, batch_first=True)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.first_norm = nn.LayerNorm(width)
        self.second_norm = nn.LayerNorm(width)

    def forward(self, queries: Tensor, memory: Tensor, hidden: Tensor | None) -> Tensor:
        """Let the queries look at the memory.

        Args:
            queries: (B, R, D), the last R positions of the memory.
            memory: (B, S, D).
            hidden: true where a query must not look, (R, S); None: everywhere it may.
        """
        attended, _ = self.attention(queries, memory, memory, attn_mask=hidden, need_weights=False)
        states = self.first_norm(queries + attended)
        return self.second_norm(states + self.narrow(self.widen(states).relu()))


class AttentionReader(nn.Module):
    """Self-attention over symbols with sinusoidal positions; the answer is read at the same place as a state's.

    No position looks at a later one, as a state has not read later symbols. Where only the last position
    is read, the last layer computes that query alone: the others' outputs would go nowhere.

    Args: as of `RecurrentReader`.
    """

    def __init__(
        self,
        num_symbols: int,
        num_answers: int,
        width: int,
        num_heads: int,
        num_layers: int,
        read: str,
    ) -> None:
        super().__init__()
        self.read = read
        self.embed = Embedding(num_symbols, width)
        self.layers = nn.ModuleList(AttentionBlock(width, num_heads) for _ in range(num_layers))
        self.answer = nn.Linear(width, num_answers)

    def forward(self, symbols: Tensor) -> Tensor:
        """(B, S) or (B, S, C) → logits (B, R, V)."""
        embedded = self.embed(symbols)  # (B, S, D)
        length, width = embedded.shape[1:]
        # Embeddings and positions start with the same mean square.
        states = embedded / EMBEDDING_STD * math.sqrt(0.5) + sinusoids(length, width)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        for number, layer in enumerate(self.layers, start=1):
            if number == len(self.layers) and self.read == "last":
                states = layer(states[:, -1:], states, None)  # (B, 1, D)
            else:
                states = layer(states, states, hidden)
        return self.answer(states)


def sinusoids(length: int, width: int) -> Tensor:
    """Positions of Vaswani et al. 2017: sines in the even numbers, cosines in the odd ones, (S, D)."""
    position = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    wavelength = 10_000 ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    angle = position / wavelength
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


def state_width(cell: str, width: int, num_layers: int) -> int:
    """The width of a state that makes all kinds of model about equally large.

    An LSTM has four gates and a tanh RNN one: at the same width it would have a quarter of the numbers. So
    its state gets as many as bring the recurrent layers nearest to the LSTM's in size.
    """
    if cell == "lstm":
        return width

    def size(state: int, gates: int) -> int:
        first = gates * state * (width + state + 2)
        return first + (num_layers - 1) * gates * state * (2 * state + 2)

    aim = size(width, 4)
    return min(range(width, 4 * width), key=lambda state: abs(size(state, 1) - aim))


def num_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def build_reader(
    kind: str,
    *,
    num_symbols: int,
    num_answers: int,
    width: int,
    num_heads: int,
    num_layers: int,
    read: str,
    seed: int,
) -> RecurrentReader | AttentionReader:
    """A fresh model of one of the `KINDS`, its weights drawn from `seed`.

    Raises:
        ValueError: an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"expected kind to be one of {', '.join(KINDS)}, got {kind!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "attention":
            return AttentionReader(num_symbols, num_answers, width, num_heads, num_layers, read)
        cell = "rnn" if kind == "rnn" else "lstm"
        return RecurrentReader(
            cell,
            num_symbols,
            num_answers,
            width,
            state_width(cell, width, num_layers),
            num_layers,
            3.0 if kind == "lstm-forget-3" else 1.0,
            read,
        )


# ---------------------------------------------------------------------------------------------
# Training


@dataclass(frozen=True)
class Batch:
    """Sequences of one length, so that nothing is padded.

    Attributes:
        inputs: what a model's ``forward`` takes.
        targets: right answers at the positions read, (B, R); `IGNORED` where none is asked for.
    """

    inputs: tuple[Tensor, ...]
    targets: Tensor


def generator(*key: int) -> torch.Generator:
    """Random numbers that belong to `key`; other keys have others."""
    state = np.random.SeedSequence(key).generate_state(2)
    return torch.Generator().manual_seed(int(state[0]) << 31 | int(state[1]) >> 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, and numbers below the smallest normal one are 0.

    The order of sums, and with it every result, would depend on the number of threads. A gradient that
    fades runs into numbers so small that the processor takes ten times as long for each.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def train(
    model: nn.Module,
    draw: Callable[[], Batch],
    steps: int,
    rate: float,
    watch: Callable[[int], None] = lambda step: None,
    watch_every: int | None = None,
) -> None:
    """Train a model in place with Adam, clipped gradients and the schedule of `WARM_UP`.

    Args:
        model: gives logits (B, R, V) for a batch's inputs.
        draw: the next batch.
        steps: batches seen.
        rate: the largest learning rate.
        watch: called with the number of steps done, after each `watch_every` of them.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rising = max(1, round(steps * WARM_UP))
    model.train()
    for step in range(steps):
        share = (step + 1) / rising if step < rising else (steps - step) / max(1, steps - rising)
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        batch = draw()
        logits = model(*batch.inputs)  # (B, R, V)
        loss = functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        if watch_every and (step + 1) % watch_every == 0:
            watch(step + 1)
            model.train()


@torch.no_grad()
def accuracy(model: nn.Module, batch: Batch) -> float:
    """Share of right answers among those asked for."""
    model.eval()
    found = model(*batch.inputs).argmax(dim=-1)  # (B, R)
    asked = batch.targets != IGNORED
    return float((found == batch.targets)[asked].double().mean())
