"""What training takes by formula: examples with the lengths of a corpus, and the operations of a step on them.

Shapes: `S` source length and `T` target length of a sentence in pieces with the end token, `D` embedding
width, `W` recurrent width, `A` attention width, `F` feed-forward width, `L` layers, `V` vocabulary; `E`
examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers import MarianConfig, PreTrainedConfig

from seqviz.architectures.recurrent_config import RecurrentConfig
from seqviz.constants import MAX_SOURCE_PIECES, MAX_TARGET_PIECES

BACKWARD = 2
"""Operations of a backward pass, in forward passes: a gradient for each factor of every product."""


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
    if config.model_type not in _FORWARD:
        raise ValueError(
            f"expected the config of a {' or '.join(_FORWARD)} model, got {config.model_type!r}"
        )
    return _FORWARD[config.model_type](config, s, t)


def _recurrent(config: Any, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    d, w, v, half = config.d_model, config.width, config.vector_size, config.width // 2
    a = config.attention_size
    gates = {"rnn": 1, "lstm": 4}[config.cell]
    inputs = [d] + [w] * (config.num_layers - 1)
    encoder = sum(2 * 2 * gates * half * (size + half) for size in inputs)  # both directions
    decoder = sum(2 * gates * w * (size + w) for size in inputs)
    once = 2 * w * v + 2 * v * config.num_layers * w + 2 * v * d  # from and to the one vector
    # Its width, and what choosing takes: keys, queries, energies, sums.
    context, choosing = {
        "fixed": (v, 0),
        "attention": (w, 2 * s * w * a + 2 * t * w * a + 2 * t * s * a + 2 * t * s * w),
        "mean": (w, 0),
        "nothing": (0, 0),
    }[config.context]
    output = 2 * (w + context) * d + 2 * d * config.vocab_size
    return s * encoder + t * (decoder + output) + once + choosing


def _transformer(config: Any, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    d = config.d_model
    encoder = 8 * s * d**2 + 4 * s**2 * d + 4 * s * d * config.encoder_ffn_dim
    decoder = (
        8 * t * d**2 + 4 * t**2 * d  # attention to itself
        + 4 * t * d**2 + 4 * s * d**2 + 4 * t * s * d  # to the memory
        + 4 * t * d * config.decoder_ffn_dim
    )  # fmt: skip
    layers = config.encoder_layers * encoder + config.decoder_layers * decoder
    return layers + 2 * t * d * config.vocab_size


_FORWARD = {RecurrentConfig.model_type: _recurrent, MarianConfig.model_type: _transformer}
"""Formulas of `forward_operations` by architecture."""


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
