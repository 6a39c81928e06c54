"""Examples padded to the length of the longest: what a model is given.

Shapes: `B` batch, `S` source length, `T` target length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Padded ids, int64. `labels` has -100 where the target is padding."""

    input_ids: np.ndarray
    attention_mask: np.ndarray
    labels: np.ndarray

    @property
    def num_target_tokens(self) -> int:
        return int((self.labels != -100).sum())


def make_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], *, pad_token_id: int, eos_token_id: int
) -> Batch:
    """Pad pairs of (source ids, target ids) and end each with the end token.

    Returns:
        ids and mask (B, S), labels (B, T); padding stands at the end.
    """
    rows = len(pairs)
    source_length = max(len(s) for s, _ in pairs) + 1
    target_length = max(len(t) for _, t in pairs) + 1
    input_ids = np.full((rows, source_length), pad_token_id, np.int64)
    attention_mask = np.zeros((rows, source_length), np.int64)
    labels = np.full((rows, target_length), -100, np.int64)
    for row, (source, target) in enumerate(pairs):
        input_ids[row, : len(source)] = source
        input_ids[row, len(source)] = eos_token_id
        attention_mask[row, : len(source) + 1] = 1
        labels[row, : len(target)] = target
        labels[row, len(target)] = eos_token_id
    return Batch(input_ids, attention_mask, labels)
