"""What a step of decoding is: the protocol that greedy and beam search drive.

Each model has its stepper beside it (`recurrent_steps`, `transformer`). It computes what the model's own
``forward`` computes, one target token at a time and over caches, without the bookkeeping that ``forward``
does for training and for the general case; a test holds the two equal. Where a model does not compute what
it was built to compute, `plain_steps` calls its modules instead; `stepper_for` states the rule.

Shapes: `N` rows (sentences times beams), `T` steps so far, `S` source length, `H` heads, `L` layers, `V`
vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn


class Stepper(Protocol):
    """Decodes step by step. A state is opaque to its user and belongs to one search."""

    def start(self, input_ids: Tensor, attention_mask: Tensor, max_steps: int) -> Any:
        """Encode sources (N, S) and return the state before the first step."""
        ...

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Feed the last token of every row, (N,); return logits (N, V) and advance the state."""
        ...

    def select(self, state: Any, rows: Tensor, *, same_sources: bool = False) -> None:
        """Keep the rows `rows` of the state, in that order; a row may be repeated.

        With `same_sources` every row stands for the same source as before: what depends on the
        source alone stays where it is.
        """
        ...


class ModelStepper(Stepper, Protocol):
    """The stepper of a model, which can remember where its steps looked. It is made for one search."""

    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> Any:
        """As `Stepper.start`; with `record` the state remembers the attention of its steps."""
        ...

    def attention(self, state: Any) -> dict[str, Tensor]:
        """Weights of the steps taken, by kind, each (L, H, T, S); row t is that of step t."""
        ...


class Recorder:
    """A stepper that also remembers where its steps looked: greedy search of one sentence, no `select`.

    Costs next to nothing, where a second pass over the finished output costs a fifth of the search.
    """

    def __init__(self, stepper: ModelStepper) -> None:
        self.stepper = stepper
        self.state: Any = None

    def start(self, input_ids: Tensor, attention_mask: Tensor, max_steps: int) -> Any:
        if len(input_ids) != 1:
            raise ValueError(f"expected one sentence to record, got {len(input_ids)}")
        self.state = self.stepper.start(input_ids, attention_mask, max_steps, record=True)
        return self.state

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        return self.stepper.step(tokens, state)

    def select(self, state: Any, rows: Tensor, *, same_sources: bool = False) -> None:
        raise RuntimeError("expected a search of one sentence, got one that drops or repeats rows")

    def attention(self) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        return self.stepper.attention(self.state)


class Affine(NamedTuple):
    """A linear map over the tensors of its layer: calling a module costs as much as multiplying a small matrix.

    Attributes:
        weight: (inputs, outputs).
        bias: (outputs,).
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)

    def into(self, place: Tensor, x: Tensor) -> None:
        """Write the result to `place`, (N, outputs)."""
        torch.addmm(self.bias, x, self.weight, out=place)


def affine(module: nn.Linear) -> Affine:
    """A linear layer, its own numbers and no copy of them."""
    return Affine(module.weight.t(), module.bias)


def source_bias(mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """What is added to the scores of a source: 0 at real tokens, -inf at padding, (N, S); None without padding."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(~mask, float("-inf"))
