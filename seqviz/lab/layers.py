"""One recurrent layer and one of self-attention: what they cost by formula, and the layers themselves.

Shapes: `B` sentences, `N` length in tokens, `D` width, `H` heads, `P` longest position.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqviz.lab.settings import Cost as Settings

RECURRENT_LAYERS = ("rnn", "lstm")
ATTENTION_LAYERS = ("attention-naive", "attention-fused")
LAYERS = RECURRENT_LAYERS + ATTENTION_LAYERS
"""A tanh RNN, an LSTM, attention that writes its N × N scores to memory, attention in one fused kernel."""

MODES = ("forward", "forward_backward")
"""Reading alone, without gradients; and a training step's forward and backward pass."""

BYTES = 4
"""Of one number in single precision."""


# ---------------------------------------------------------------------------------------------
# By formula


def operations(layer: str, width: int, length: int) -> int:
    """Operations a token, forward: 2 for each multiplication with its addition, in matrix products.

    Biases, nonlinearities and the softmax are left out. A backward pass takes twice as many.

    Args:
        layer: one of `LAYERS`.
        width: D, of input and state.
        length: N.
    Raises:
        ValueError: an unknown layer.
    """
    if _known(layer) in ATTENTION_LAYERS:
        return 8 * width**2 + 4 * length * width
    return (16 if layer == "lstm" else 4) * width**2


def score_bytes(layer: str, tokens: int, length: int, num_heads: int) -> int:
    """Memory of the attention scores of `tokens` tokens in sentences of `length`: B H N² numbers.

    Fused attention never holds more than a part of them, a recurrence has none: 0.
    """
    return BYTES * num_heads * tokens * length if _known(layer) == "attention-naive" else 0


def state_bytes(layer: str, width: int, position: int) -> int:
    """What generation has to keep of `position` tokens: a state, or a key and a value for each token."""
    if _known(layer) in ATTENTION_LAYERS:
        return BYTES * 2 * width * position
    return BYTES * width * (2 if layer == "lstm" else 1)


def path_length(layer: str, distance: int) -> int:
    """Steps that a word's information takes to another one `distance` words away, within one layer.

    A recurrence passes it on from state to state; with attention any word reads any other at once.

    Raises:
        ValueError: an unknown layer, or a distance below 0.
    """
    if distance < 0:
        raise ValueError(f"expected a distance of 0 or more, got {distance}")
    return min(distance, 1) if _known(layer) in ATTENTION_LAYERS else distance


def _known(layer: str) -> str:
    if layer not in LAYERS:
        raise ValueError(f"expected layer to be one of {', '.join(LAYERS)}, got {layer!r}")
    return layer


# ---------------------------------------------------------------------------------------------
# The layers


class SelfAttention(nn.Module):
    """softmax(Q Kᵀ / √(D/H)) V with its four projections (Vaswani et al. 2017), without a mask.

    Args:
        width: D.
        num_heads: H.
        fused: one kernel that holds only a part of the scores at a time, in place of three products
            with the whole score matrix between them.
        device: of the weights.
    """

    def __init__(self, width: int, num_heads: int, fused: bool, device: str = "cpu") -> None:
        super().__init__()
        self.num_heads, self.fused = num_heads, fused
        self.projection = nn.Linear(width, 3 * width, device=device)
        self.output = nn.Linear(width, width, device=device)

    def forward(self, states: Tensor) -> Tensor:
        """(B, N, D) → (B, N, D)."""
        return self.output(self._merge(self._attend(*self._project(states))))

    def step(self, state: Tensor, keys: Tensor, values: Tensor, position: int) -> Tensor:
        """One step of generation behind `position` tokens.

        Args:
            state: (B, 1, D).
            keys, values: cache with room for more, (B, H, P, D/H); the step writes its own into it.
        Returns:
            (B, 1, D).
        """
        query, key, value = self._project(state)  # (B, H, 1, D/H)
        keys[:, :, position : position + 1] = key
        values[:, :, position : position + 1] = value
        seen = slice(0, position + 1)
        return self.output(self._merge(self._attend(query, keys[:, :, seen], values[:, :, seen])))

    def _project(self, states: Tensor) -> list[Tensor]:
        """Query, key and value, each (B, H, N, D/H)."""
        split = self.projection(states).unflatten(-1, (3, self.num_heads, -1))
        return [part.transpose(1, 2) for part in split.unbind(dim=2)]

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.fused:
            return functional.scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, N, N)
        return scores.softmax(dim=-1) @ value

    def _merge(self, heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).flatten(-2)


def make_layer(layer: str, settings: Settings, width: int) -> nn.Module:
    """A layer with weights of `settings.seed`, uniform within ±1/√D. The global random state stays.

    Raises:
        ValueError: an unknown layer.
    """
    if _known(layer) in ATTENTION_LAYERS:
        made: nn.Module = SelfAttention(
            width, settings.num_heads, layer == "attention-fused", device="meta"
        )
    else:
        kind = nn.LSTM if layer == "lstm" else nn.RNN
        made = kind(width, width, batch_first=True, device="meta")
    return fill(made, settings, width)


def fill(made: nn.Module, settings: Settings, width: int) -> nn.Module:
    """Weights of `settings.seed` for a layer that has none."""
    made = made.to_empty(device=settings.device)
    draw = torch.Generator().manual_seed(settings.seed)
    with torch.no_grad():
        for parameter in made.parameters():
            numbers = torch.empty(parameter.shape).uniform_(-1, 1, generator=draw)
            parameter.copy_(numbers / math.sqrt(width))
    return made


def inputs_of(settings: Settings, *shape: int) -> Tensor:
    """Random numbers of `settings.seed`."""
    draw = torch.Generator().manual_seed(settings.seed)
    return torch.randn(shape, generator=draw).to(settings.device)


def run(layer: nn.Module, states: Tensor) -> Tensor:
    """(B, N, D) → (B, N, D)."""
    found = layer(states)
    return found if isinstance(found, Tensor) else found[0]


def step_call(layer: nn.Module, states: Tensor, mode: str) -> Callable[[], None]:
    """What is timed and weighed: one call of a layer in one of `MODES`.

    Args:
        states: (B, N, D). A backward pass goes on to them, as to the layer below, and to the weights.
    Raises:
        ValueError: an unknown mode.
    """
    if mode not in MODES:
        raise ValueError(f"expected mode to be one of {', '.join(MODES)}, got {mode!r}")
    if mode == "forward":

        def forward() -> None:
            with torch.no_grad():
                run(layer, states)

        return forward
    inputs = states.detach().clone().requires_grad_()
    upstream = torch.ones_like(inputs)

    def forward_backward() -> None:
        inputs.grad = None
        for parameter in layer.parameters():
            parameter.grad = None
        run(layer, inputs).backward(upstream)

    return forward_backward
