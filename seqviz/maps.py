"""Attention weights with the tokens they belong to, and how they are merged to words.

Shapes: `L` layers, `H` heads, `T` queries (target tokens of a cross-attention map), `S` keys (source
tokens).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from seqviz.drawing import heatmap
from seqviz.pieces import OfTwoTexts, Pieces
from seqviz.text_languages import DEFAULT_LANGUAGES

KINDS = ("cross", "encoder", "decoder")

READINGS = ("predicting", "reading")
"""Which step's attention a target token is given: the one that chose it, or the next, whose input it is."""


class ByValue:
    """A dataclass of this kind equals another where all their parts are equal, arrays number by number."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(map(_equal, _parts(self), _parts(other)))

    def __hash__(self) -> int:
        return hash(
            tuple(part.shape if isinstance(part, np.ndarray) else part for part in _parts(self))
        )


def _parts(one: Any) -> list[Any]:
    return [getattr(one, each.name) for each in fields(one)]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return type(one) is type(other) and bool(one == other)


@dataclass(frozen=True, eq=False)
class AttentionMap(ByValue, OfTwoTexts):
    """Weights of one kind of attention for one translation.

    Attributes:
        kind: "cross", "encoder" (self-attention of the source) or "decoder" (of the target); "saliency"
            where the weights are shares of dependence, see `seqviz.saliency`.
        model: name of the model.
        weights: (L, H, T, S). Row t holds the weights with which target token t was chosen; of pieces
            each row sums to 1.
        source_pieces, target_pieces: what columns and rows stand for: pieces, or words after `words`.
        hidden_mass: weight of every row on hidden columns, (L, H, T); 0 where nothing is hidden.
        read: one of `READINGS`, see `at`.
        languages: codes of the languages of the model's source and target.
    """

    kind: str
    model: str
    weights: np.ndarray = field(repr=False)
    source_pieces: Pieces
    target_pieces: Pieces
    hidden_mass: np.ndarray = field(repr=False)
    read: str = "predicting"
    languages: tuple[str, str] = field(default=DEFAULT_LANGUAGES, repr=False)

    def __post_init__(self) -> None:
        expected = (len(self.target_pieces), len(self.source_pieces))
        if self.weights.ndim != 4 or self.weights.shape[2:] != expected:
            raise ValueError(
                f"expected weights (layers, heads, {expected[0]}, {expected[1]}) for "
                f"{expected[0]} target and {expected[1]} source tokens, got {self.weights.shape}"
            )
        if self.hidden_mass.shape != self.weights.shape[:3]:
            raise ValueError(
                f"expected hidden_mass of shape {self.weights.shape[:3]}, one number for each row, "
                f"got {self.hidden_mass.shape}"
            )

    @property
    def num_layers(self) -> int:
        return self.weights.shape[0]

    @property
    def num_heads(self) -> int:
        return self.weights.shape[1]

    def head(self, layer: int | None = None, head: int | None = None) -> np.ndarray:
        """One matrix (T, S): of a layer and head, or the mean over those that are None.

        Raises:
            IndexError: no such layer or head; the message says how many there are.
        """
        return self._pick(self.weights, layer, head)

    def at(self, reading: str) -> AttentionMap:
        """The map read at another step.

        "predicting" gives each target token the weights with which it was chosen; "reading" those of the
        next step, whose input it is; the last token has no next step, so its row is 0. Take the map with
        its special tokens: the last word is read at the end token's step.

        Args:
            reading: one of `READINGS`.
        Raises:
                ValueError: an unknown reading, or a map that was read later already.
        Source: Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation".
        """
        if reading not in READINGS:
            raise ValueError(f"expected one of {', '.join(READINGS)}, got {reading!r}")
        if reading == self.read:
            return self
        if self.read != "predicting":
            raise ValueError(
                f"expected a map as the model gave it, got one read at {self.read!r}; "
                "use translation.attention(kind).at(reading)"
            )
        weights, hidden = np.zeros_like(self.weights), np.zeros_like(self.hidden_mass)
        weights[:, :, :-1] = self.weights[:, :, 1:]
        hidden[:, :, :-1] = self.hidden_mass[:, :, 1:]
        return replace(self, weights=weights, hidden_mass=hidden, read=reading)

    def hidden(self, layer: int | None = None, head: int | None = None) -> np.ndarray:
        """Weight of each row of `head` that lies on hidden columns, (T,).

        Raises:
            IndexError: no such layer or head.
        """
        return self._pick(self.hidden_mass, layer, head)

    def _pick(self, values: np.ndarray, layer: int | None, head: int | None) -> np.ndarray:
        """`values` (L, H, …) of a layer and head, or their mean."""
        for name, number, count in (
            ("layer", layer, self.num_layers),
            ("head", head, self.num_heads),
        ):
            if number is not None and not 0 <= number < count:
                has = f"{name} 0 to {count - 1}" if count > 1 else f"{name} 0, the only one,"
                raise IndexError(f"expected {has} or None for the mean, got {number}")
        picked = values if layer is None else values[layer : layer + 1]
        picked = picked if head is None else picked[:, head : head + 1]
        return picked.mean(axis=(0, 1))

    def to_dict(self, layer: int | None = None, head: int | None = None) -> dict[str, Any]:
        """The numbers of one matrix in plain types, with all that is needed to read them.

        Layer and head are counted from 0, None for the mean; `weights` is a list of rows.
        """
        return {
            "model": self.model,
            "kind": self.kind,
            "layer": layer,
            "head": head,
            "reading": self.read,
            "numbering": "layers and heads from 0; null is the mean over all",
            "source": list(self.source_tokens),
            "target": list(self.target_tokens),
            "weights": self.head(layer, head).tolist(),
            "hidden": self.hidden(layer, head).tolist(),
        }

    def to_csv(self, layer: int | None = None, head: int | None = None) -> str:
        """One matrix as a table: source tokens across, target tokens down, last the hidden weight.

        The number before a token is its position, from 1: a token may occur more than once.
        """
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        sources = [f"{i} {token}" for i, token in enumerate(self.source_tokens, 1)]
        table.writerow(["target \\ source", *sources, "hidden"])
        for i, (token, row, hidden) in enumerate(
            zip(self.target_tokens, self.head(layer, head), self.hidden(layer, head), strict=True),
            1,
        ):
            table.writerow([f"{i} {token}", *map(_plain, row), _plain(hidden)])
        return out.getvalue()

    def without_specials(self) -> AttentionMap:
        """The map without rows and columns of special tokens.

        Nothing is rescaled: `hidden_mass` says how much weight each shown row had on hidden columns.
        """
        return self._keep(self.source_pieces.in_words, self.target_pieces.in_words)

    def words(self, specials: bool = False) -> AttentionMap:
        """The map merged to words: weights summed over the pieces of a source word, averaged over
        those of a target word.

        Args:
            specials: keep special tokens as tokens of their own; otherwise they are hidden and
                `hidden_mass` says what they held.
        """
        summed = self.weights @ _indicator(self.source_pieces).T
        averaging = _indicator(self.target_pieces)
        averaging = averaging / np.maximum(averaging.sum(axis=1, keepdims=True), 1.0)
        merged = replace(
            self,
            weights=averaging @ summed,
            source_pieces=self.source_pieces.merged(),
            target_pieces=self.target_pieces.merged(),
            hidden_mass=self.hidden_mass @ averaging.T,
        )
        return merged if specials else merged.without_specials()

    def _repr_html_(self) -> str:
        """What a notebook shows: the map that answers the pointer, mean over layers and heads."""
        if not self.source_tokens or not self.target_tokens:
            return ""
        return heatmap.notebook(heatmap.render(self))

    def _keep(self, columns: list[int], rows: list[int]) -> AttentionMap:
        hidden = sorted(set(range(len(self.source_tokens))) - set(columns))
        mass = self.hidden_mass + self.weights[..., hidden].sum(axis=-1)
        return replace(
            self,
            weights=self.weights[:, :, rows][..., columns],
            source_pieces=self.source_pieces.take(columns),
            target_pieces=self.target_pieces.take(rows),
            hidden_mass=mass[..., rows],
        )


def _plain(number: float) -> str:
    """Enough digits for a weight, without an exponent that a spreadsheet could misread."""
    return f"{float(number):.7f}"


def _indicator(pieces: Pieces) -> np.ndarray:
    """1 where a token lies in a word, (words and special tokens, tokens)."""
    groups = pieces.groups
    matrix = np.zeros((len(groups), len(pieces)))
    for row, group in enumerate(groups):
        matrix[row, group] = 1.0
    return matrix
