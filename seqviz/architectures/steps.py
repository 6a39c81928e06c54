"""What a step of decoding is: the protocol that greedy and beam search drive.

Each model has its stepper beside it (`recurrent_steps`, `transformer`). It computes what the model's own
``forward`` computes, one target token at a time and over caches, without the bookkeeping that ``forward``
does for training and for the general case; a test holds the two equal. Where a model does not compute what
it was built to compute, `plain_steps` calls its modules instead; `stepper_for` states the rule.

Shapes: `N` rows (sentences times beams), `T` steps so far, `S` source length, `H` heads, `L` layers, `V`
vocabulary.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from seqviz.version import processor


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


def _multiplies_columns() -> bool:
    """Whether a product with few rows is best computed as W xᵀ, in two halves of the outputs.

    MKL's fast product of a matrix and a vector is for Intel's processors alone. On AMD's it takes two to four times
    as long as a batch of the two halves, if each row of `x` lies in one piece; on Intel's the halves take
    twice as long as the product.
    """
    return torch.backends.mkl.is_available() and "Intel" not in processor()


MOST_IN_COLUMNS = 2048 if _multiplies_columns() else 0
"""Numbers in `x` up to which that way is taken."""


class Affine:
    """A linear map x W + b over the tensors of its layer, not copies of them.

    Calling a module costs as much as multiplying a small matrix.

    Args:
        weight: (outputs, inputs), as a linear layer holds it.
        bias: (outputs,), or None for zeros.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        outputs, inputs = weight.shape
        self.weight = weight.t()
        self.bias = weight.new_zeros(outputs) if bias is None else bias.view(outputs)
        self.most_columns = 0
        if weight.is_cpu and inputs and outputs % 2 == 0:  # a context of nothing has no inputs
            self.most_columns = MOST_IN_COLUMNS // inputs
            self.halves = weight.unflatten(0, (2, -1))  # (2, outputs / 2, inputs)
            self.bias_halves = self.bias.view(2, -1, 1)

    def __call__(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        """x W + b, (N, outputs), of `x` (N, inputs); with `added`, (N, outputs), that stands in the place of b."""
        rows, inputs = x.shape
        if rows > self.most_columns:
            return torch.addmm(self.bias if added is None else added, x, self.weight)
        bias = self.bias_halves if added is None else added.t().unflatten(0, (2, -1))
        columns = x.contiguous().as_strided((2, inputs, rows), (0, 1, inputs))
        found = torch.baddbmm(bias, self.halves, columns)  # (2, outputs / 2, N)
        return found.view(1, -1) if rows == 1 else found.view(-1, rows).t().contiguous()

    def into(self, place: Tensor, x: Tensor) -> None:
        """Write the result to `place`, (N, outputs)."""
        if len(x) > self.most_columns:
            torch.addmm(self.bias, x, self.weight, out=place)
        else:
            place.copy_(self(x))


def affine(module: nn.Linear) -> Affine:
    """A linear layer, its own numbers and no copy of them."""
    return Affine(module.weight, module.bias)


def source_bias(mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """What is added to the scores of a source: 0 at real tokens, -inf at padding, (N, S); None without padding."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(~mask, float("-inf"))
