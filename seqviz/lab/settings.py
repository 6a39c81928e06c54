"""What can be set in an experiment: each field with its range, and the option that sets it.

    @dataclass(frozen=True)
    class Settings:
        steps: Annotated[int, Whole(1, 1_000_000), Option("steps", "Batches of a run.")] = 800

        def __post_init__(self) -> None:
            check(self)

`check` holds a field to its range, and `seqviz.lab.commands` makes the option from it. Nothing here needs
PyTorch, so that the command line starts at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from seqviz.constants import MODEL_NAMES

KINDS = ("rnn", "lstm", "lstm-forget-3", "attention")
"""Small models of `seqviz.lab.readers`; the third is an LSTM whose forget gates start with a bias of 3."""

NUM_KEYS = 128
"""Of the task "lookup". No key comes twice in a sequence, so this is also its longest."""

MAX_SEEDS = 20
"""As many as the table of Student's t goes."""


@dataclass(frozen=True)
class Whole:
    """A whole number, or None where the default is None."""

    low: int
    high: int

    def check(self, name: str, value: Any) -> None:
        if not _is_whole(value) or not self.low <= value <= self.high:
            raise ValueError(
                f"expected {name} to be a whole number from {self.low} to {self.high}, got {value!r}"
            )


@dataclass(frozen=True)
class Rising:
    """A tuple of rising whole numbers."""

    low: int
    high: int

    def check(self, name: str, value: Any) -> None:
        rising = bool(value) and all(map(_is_whole, value)) and list(value) == sorted(set(value))
        if not rising or value[0] < self.low or value[-1] > self.high:
            raise ValueError(
                f"expected {name} to be rising whole numbers from {self.low} to {self.high}, got "
                f"{value!r}; try {self.low}, {self.low + 1}"
            )


@dataclass(frozen=True)
class LearningRates:
    """A tuple of different learning rates."""

    def check(self, name: str, value: Any) -> None:
        if not value or not all(math.isfinite(rate) and 0 < rate < 1 for rate in value):
            raise ValueError(
                f"expected learning rates above 0 and below 1, got {value!r}; try 0.001, 0.003"
            )
        if len(set(value)) < len(value):
            raise ValueError(f"expected every learning rate once, got {value!r}")


@dataclass(frozen=True)
class Option:
    """How the command line calls a field, and says what it is.

    Args:
        name: without the dashes in front.
        help: a sentence.
        file: whether it is a path.
    """

    name: str
    help: str
    file: bool = False


class Field(NamedTuple):
    """A field of some settings.

    Attributes:
        name: in the settings.
        type: of its values; of one of them where `several`.
        several: whether it is a tuple.
        ranges: what its value is checked by.
        option: None where the command line has none.
    """

    name: str
    type: Any
    several: bool
    ranges: tuple[Whole | Rising | LearningRates, ...]
    option: Option | None


def fields_of(settings: type) -> Iterator[Field]:
    """The fields of a class of settings, in their order."""
    hints = get_type_hints(settings, include_extras=True)
    for one in fields(settings):
        hint = hints[one.name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else [hint]
        several = get_origin(kind) is tuple
        inner = [part for part in get_args(kind) if part not in (type(None), Ellipsis)]
        ranges = tuple(n for n in notes if not isinstance(n, Option))
        option = next((n for n in notes if isinstance(n, Option)), None)
        yield Field(one.name, inner[0] if inner else kind, several, ranges, option)


def check(settings: Any) -> None:
    """Hold every field to its range; a number that may be None is not asked when it is.

    Raises:
        ValueError: what was expected, what came.
    """
    defaults = {one.name: one.default for one in fields(settings)}
    for field in fields_of(type(settings)):
        value = getattr(settings, field.name)
        if value is None and defaults[field.name] is None:
            continue
        for range_ in field.ranges:
            range_.check(field.name, value)


def check_heads(settings: Any) -> None:
    """Raise a ValueError if ``width`` is odd, which sinusoids cannot be, or not divisible by ``num_heads``."""
    width, num_heads = settings.width, settings.num_heads
    if width % 2 or width % num_heads:
        step = math.lcm(2, num_heads)
        raise ValueError(
            f"expected an even width divisible by num_heads, got {width} and {num_heads}; try "
            f"{max(step, width // step * step)}"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# ---------------------------------------------------------------------------------------------
# Fields that several experiments have

Seeds = Annotated[
    int, Whole(1, MAX_SEEDS), Option("seeds", "Runs of each model, each from its seed.")
]
Steps = Annotated[int, Whole(1, 1_000_000), Option("steps", "Batches of a run; fewer learn less.")]
BatchSize = Annotated[int, Whole(1, 4096)]
Width = Annotated[int, Whole(2, 1024), Option("width", "Of embeddings and states.")]
Heads = Annotated[int, Whole(1, 64)]
Symbols = Annotated[int, Whole(2, 1000)]
Rates = Annotated[
    tuple[float, ...],
    LearningRates(),
    Option("rate", "Learning rate to choose from; several times."),
]
Sequences = Annotated[int, Whole(1, 100_000)]


# ---------------------------------------------------------------------------------------------
# The experiments; the defaults are those of the committed reports


@dataclass(frozen=True)
class Gradient:
    """Of `seqviz.lab.gradient`.

    Args:
        num_seeds: seeds 1, 2, …; each draws inputs and weights.
        length: T of the random sequences.
        width: of inputs and states before training.
        models: measured after training; names or folders.
        forget_biases: of the LSTM's forget gates.
        num_heads: of self-attention.
        input_std: of the random inputs. 1 is about what the shipped models read: the scaled embeddings
            of their texts have a standard deviation of 0.8 to 1.2.
        min_words: a passage counts after training if its longest stage has so many words.
    Raises:
        ValueError: a number out of its range, or no model name that can be loaded.
    """

    num_seeds: Annotated[int, Whole(1, 1000), Option("seeds", "Random draws before training.")] = 20
    length: Annotated[int, Whole(2, 512), Option("length", "Length of the random sequences.")] = 100
    width: Annotated[int, Whole(2, 512), Option("width", "Of inputs and states.")] = 64
    models: Annotated[
        tuple[str, ...],
        Option("model", "Trained model, by name or folder; several times; all four if left out."),
    ] = MODEL_NAMES
    forget_biases: tuple[float, ...] = (0.0, 1.0, 3.0)
    num_heads: Heads = 4
    input_std: float = 1.0
    min_words: Annotated[int, Whole(1, 100)] = 50

    def __post_init__(self) -> None:
        check(self)
        check_heads(self)
        if not self.forget_biases or not all(math.isfinite(b) for b in self.forget_biases):
            raise ValueError(
                f"expected at least one finite forget bias, got {self.forget_biases!r}; try 0, 1, 3"
            )
        if not (math.isfinite(self.input_std) and self.input_std > 0):
            raise ValueError(f"expected input_std above 0, got {self.input_std!r}; try 1")


@dataclass(frozen=True)
class Recall:
    """Of `seqviz.lab.recall`.

    Args:
        distances: noise tokens between the symbol and the query.
        search_distances: of the search for "alone"; where nothing is learned, rates cannot be told apart.
        num_seeds: seeds 1, 2, …; each draws weights and training batches.
        steps: batches a run.
        batch_size: sequences a batch.
        width: of embeddings, of the LSTM's state and of attention; the tanh RNN's state is as much wider
            as makes it equally large.
        rates: learning rates to choose from.
        num_heads: of self-attention.
        num_symbols: to be remembered; there are as many noise symbols.
        num_validation, num_test: sequences a distance.
        kinds: of model, out of `seqviz.lab.readers.KINDS`.
    Raises:
        ValueError: a number out of its range, or an unknown kind.
    """

    distances: Annotated[
        tuple[int, ...],
        Rising(1, 2000),
        Option("distance", "Noise tokens between symbol and query; several times, rising."),
    ] = (5, 10, 20, 40, 80, 160, 320)
    search_distances: Annotated[
        tuple[int, ...],
        Rising(1, 2000),
        Option(
            "search-distance",
            "Distance at which learning rates are compared; several times, rising.",
        ),
    ] = (20, 40, 80)
    num_seeds: Seeds = 5
    steps: Steps = 800
    batch_size: BatchSize = 32
    width: Width = 64
    rates: Rates = (0.0001, 0.0003, 0.001, 0.003, 0.01)
    num_heads: Heads = 4
    num_symbols: Symbols = 16
    num_validation: Sequences = 256
    num_test: Sequences = 512
    kinds: tuple[str, ...] = KINDS

    def __post_init__(self) -> None:
        check(self)
        check_heads(self)
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(
                f"expected kinds to be some of {', '.join(KINDS)}, each once, got {self.kinds!r}"
            )

    @property
    def chance(self) -> float:
        return 1 / self.num_symbols


@dataclass(frozen=True)
class Capacity:
    """Of `seqviz.lab.capacity`.

    Args:
        widths: h, of the states of encoder and decoder. An LSTM hands on 2h numbers: state and cell.
        max_length: trained and tested are all lengths from 1 to this one.
        num_seeds: seeds 1, 2, …; each draws weights and training batches.
        steps: batches a run.
        rates: learning rates to choose from, for each width and context.
        batch_size: sequences a batch.
        num_symbols: of the alphabet.
        num_validation, num_test: sequences a length.
    Raises:
        ValueError: a number out of its range.
    """

    widths: Annotated[
        tuple[int, ...], Rising(1, 1024), Option("width", "Of a state; several times, rising.")
    ] = (16, 32, 64, 128)
    max_length: Annotated[
        int, Whole(2, 200), Option("max-length", "Longest sequence trained and tested.")
    ] = 32
    num_seeds: Seeds = 3
    steps: Steps = 4000
    rates: Rates = (0.003, 0.01, 0.03, 0.1)
    batch_size: BatchSize = 32
    num_symbols: Symbols = 16
    num_validation: Sequences = 64
    num_test: Sequences = 256

    def __post_init__(self) -> None:
        check(self)

    @property
    def lengths(self) -> range:
        return range(1, self.max_length + 1)


@dataclass(frozen=True)
class Extrapolation:
    """Of `seqviz.lab.extrapolation`.

    Args:
        lengths: tested. Length counts what is read before the answer: bits, symbols or pairs.
        trained_length: each training batch is of one length from 1 to this one.
        num_seeds: seeds 1, 2, …; each draws weights and training batches.
        steps: batches a run.
        width: of embeddings, of the LSTM's states and of attention; the tanh RNN's states are as much wider
            as makes it equally large.
        rates: learning rates to choose from, for each task and model.
        batch_size: sequences a batch.
        num_heads: of self-attention.
        num_validation, num_test: sequences a length.
    Raises:
        ValueError: a number out of its range, or no tested length that was trained.
    """

    lengths: Annotated[
        tuple[int, ...],
        Rising(1, NUM_KEYS),
        Option("length", "Length tested; several times, rising."),
    ] = (1, 2, 5, 10, 15, 20, 25, 30, 40, 60, 80, 100)
    trained_length: Annotated[
        int, Whole(1, NUM_KEYS), Option("trained-length", "Longest length in training.")
    ] = 20
    num_seeds: Seeds = 5
    steps: Steps = 2000
    width: Width = 64
    rates: Rates = (0.0005, 0.001, 0.003)
    batch_size: BatchSize = 32
    num_heads: Heads = 4
    num_validation: Sequences = 128
    num_test: Sequences = 512

    def __post_init__(self) -> None:
        check(self)
        if self.trained_length not in self.lengths:
            raise ValueError(
                f"expected trained_length to be one of the tested lengths, got {self.trained_length} "
                f"and {self.lengths!r}; add it to lengths"
            )
        check_heads(self)


@dataclass(frozen=True)
class Cost:
    """Of `seqviz.lab.cost`.

    Args:
        widths: of inputs and states.
        lengths: N, tokens a sentence, rising.
        positions: at which one step of generation is timed, rising.
        tokens: B × N, the same for every length.
        repeats: timings of each kind, in turn with all others; the best one counts.
        num_threads: of PyTorch; None for what it has.
        device: "cpu" or "cuda".
        num_heads: of self-attention.
        round_seconds: a timing lasts at least so long; quick calls are repeated within it.
        matmul_size: rows and columns of the square product that the machine's rate is measured by.
        seed: of weights and inputs. It changes no time to speak of.
    Raises:
        ValueError: a number out of its range, lengths that do not divide `tokens`, an unknown device.
    """

    widths: Annotated[
        tuple[int, ...],
        Rising(2, 4096),
        Option("width", "Of inputs and states; several times, rising."),
    ] = (64, 128, 256, 512)
    lengths: Annotated[
        tuple[int, ...],
        Rising(2, 1 << 16),
        Option("length", "Tokens a sentence; several times, rising."),
    ] = (32, 64, 128, 256, 512, 1024, 2048)
    positions: Annotated[
        tuple[int, ...],
        Rising(1, 1 << 20),
        Option("position", "Tokens before a step of generation; several times, rising."),
    ] = (32, 128, 512, 2048, 8192)
    tokens: Annotated[int, Whole(1, 1 << 20), Option("tokens", "At once, for every length.")] = 4096
    repeats: Annotated[int, Whole(1, 1000), Option("repeats", "Timings; the best counts.")] = 5
    num_threads: Annotated[
        int | None, Whole(1, 1024), Option("threads", "Default: what PyTorch has.")
    ] = None
    device: Annotated[str, Option("device", "cpu or cuda.")] = "cpu"
    num_heads: Heads = 4
    round_seconds: float = 0.02
    matmul_size: Annotated[int, Whole(16, 1 << 14)] = 1024
    seed: Annotated[int, Whole(0, 1 << 31)] = 1

    def __post_init__(self) -> None:
        check(self)
        for width in self.widths:
            if width % self.num_heads:
                raise ValueError(
                    f"expected widths divisible by num_heads, got {width} and {self.num_heads}; try "
                    f"{max(self.num_heads, width // self.num_heads * self.num_heads)}"
                )
        for length in self.lengths:
            if self.tokens % length:
                raise ValueError(
                    f"expected lengths that divide tokens, got {length} and {self.tokens}; try tokens "
                    f"{math.lcm(*self.lengths)} or a multiple of it"
                )
        if not 0 < self.round_seconds <= 10:
            raise ValueError(
                f"expected round_seconds above 0 and at most 10, got {self.round_seconds!r}; try 0.02"
            )
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"expected device to be one of cpu, cuda, got {self.device!r}")
        if self.device == "cuda":
            import torch

            if not torch.cuda.is_available():
                raise ValueError("expected a CUDA device, PyTorch finds none; try device cpu")


@dataclass(frozen=True)
class TrainingCost:
    """Of `seqviz.lab.training_cost`.

    Args:
        models: names of folders.
        folder: holds the models; None for the shipped ones.
        benchmark: file that ``benchmarks/training.py`` wrote; None for ``benchmarks/training.json`` beside
            the models.
        num_examples: drawn from each model's own distribution of lengths, for operations a target token.
        seed: of the draw.
    Raises:
        ValueError: a number out of its range, or no model.
    """

    models: Annotated[
        tuple[str, ...],
        Option("model", "Name of a model folder; several times; all four if left out."),
    ] = MODEL_NAMES
    folder: Annotated[
        str | None,
        Option("models", "Folder that holds the models; default: the shipped ones.", file=True),
    ] = None
    benchmark: Annotated[
        str | None,
        Option(
            "benchmark",
            "File that benchmarks/training.py wrote; default: benchmarks/training.json, if there.",
            file=True,
        ),
    ] = None
    num_examples: Annotated[int, Whole(1, 10_000_000)] = 20_000
    seed: Annotated[int, Whole(0, 1 << 31)] = 1

    def __post_init__(self) -> None:
        check(self)
        if not self.models or len(set(self.models)) < len(self.models):
            raise ValueError(
                f"expected at least one model, each named once, got {self.models!r}; try rnn, transformer"
            )
