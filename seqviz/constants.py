"""What the whole project agrees on: which models there are, and how much they read and write.

Imports nothing, so that the page and the command line know it at once.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What a model is, known without its weights.

    Attributes:
        label: name to print.
        year: of the first paper with this architecture.
        cell: what reads and writes: "rnn" or "lstm", word after word, or "self-attention", all at once.
        context: what the decoder sees of the source at each step: "fixed", the one vector; "attention", what
            it chooses anew; "mean", of all states; "none", nothing at all.
    """

    label: str
    year: int
    cell: str
    context: str

    @property
    def is_recurrent(self) -> bool:
        """The sentence is handed on from word to word."""
        return self.cell != "self-attention"

    @property
    def looks_back(self) -> bool:
        """The decoder has attention over the source."""
        return self.context == "attention"

    @property
    def has_one_vector(self) -> bool:
        """The decoder sees the source through one fixed vector and nothing else."""
        return self.context == "fixed"


MODELS = {
    "rnn": Kind("RNN", 2014, "rnn", "fixed"),
    "lstm": Kind("LSTM", 2014, "lstm", "fixed"),
    "lstm-attention": Kind("LSTM + attention", 2015, "lstm", "attention"),
    "transformer": Kind("Transformer", 2017, "self-attention", "attention"),
}
"""The four generations, in historical order."""

ABLATIONS = {
    "lstm-mean": Kind("LSTM + mean", 2014, "lstm", "mean"),
    "lstm-blind": Kind("LSTM, no source", 2014, "lstm", "none"),
}
"""Trained only to explain the four: a context that is the plain mean of the memory, and a decoder that is told
nothing of the source."""

MODEL_NAMES = tuple(MODELS)
ABLATION_NAMES = tuple(ABLATIONS)

MAX_SOURCE_WORDS = 100
MAX_SOURCE_PIECES = 160
MAX_TARGET_PIECES = 200
"""Caps of a sentence, in training and translating, the end token not counted."""

MAX_JOINED = 8
"""Sentences of the longest examples that training joins."""
