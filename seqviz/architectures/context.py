"""What a recurrent decoder sees of the source at each step: the one switch between the models.

    Fixed       c_i = v                 the one vector that the encoder made
    Attention   c_i = Σ_j α_ij h_j      the memory, weighed anew at every step
    Mean        c_i = (1/S) Σ_j h_j     all of the memory, nothing chosen
    Nothing     c_i = ()                no more than the decoder's own state, which began as v
    NoSource    c_i = (), v = 0         nothing of the source at all: a language model of the target

Whatever stays the same over the steps of a source is made once, by `prepare`.

Shapes: `B` batch, `S` source length, `T` target length, `W` width of decoder state and memory,
`A` attention width, `C` width of the context.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.utils.generic import ModelOutput

Prepared = tuple[Tensor, ...]
"""What `prepare` makes of a source, batch first."""


@dataclass
class Encoded(ModelOutput):
    """What the encoder tells the decoder.

    Attributes:
        last_hidden_state: memory h, top encoder states, (B, S, W).
        vector: the one fixed vector v, (B, vector_size).
        hidden_states: embeddings and the states of every layer, each (B, S, D or W), if asked for.
        attentions: always None; the field is expected by generation code.
    """

    last_hidden_state: Tensor | None = None
    vector: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class Context(nn.Module):
    """One answer to the question what the decoder sees.

    Args:
        width: of decoder states and memory.
        vector_size: of v.
        attention_size: width in which a state and the memory are compared.

    Attributes:
        size: width C of the context.
        looks_back: the decoder chooses among the source's states, so that there are weights to look at.
        has_one_vector: the decoder sees the source through v and nothing else.
        hears_source: something of the source reaches the decoder.
    """

    size: int
    looks_back = False
    has_one_vector = False
    hears_source = True

    def prepare(self, encoded: Encoded, mask: Tensor) -> Prepared:
        """Make what all steps of a source share.

        Args:
            mask: true where a source token is real, (B, S), at least one a row.
        """
        raise NotImplementedError

    def forward(self, states: Tensor, prepared: Prepared) -> tuple[Tensor, Tensor | None]:
        """Give each decoder state its context.

        Args:
            states: (B, T, W).
        Returns:
            context (B, T, C), and weights (B, T, S) where something is chosen.
        """
        raise NotImplementedError


class Fixed(Context):
    """c_i = v (Sutskever et al. 2014, Cho et al. 2014)."""

    has_one_vector = True

    def __init__(self, width: int, vector_size: int, attention_size: int) -> None:
        super().__init__()
        self.size = vector_size

    def prepare(self, encoded: Encoded, mask: Tensor) -> Prepared:
        assert encoded.vector is not None
        return (encoded.vector,)

    def forward(self, states: Tensor, prepared: Prepared) -> tuple[Tensor, None]:
        (vector,) = prepared
        return vector.unsqueeze(1).expand(-1, states.shape[1], -1), None


class Attention(Context):
    """Weigh source positions for each decoder state.

    e_ij = uᵀ tanh(W_a s_i + U_a h_j), α_ij = softmax_j(e_ij), c_i = Σ_j α_ij h_j.

    Source: Bahdanau et al. 2015, appendix A.1.2. Here s_i is the state *after* step i, so that the
    whole target runs through one recurrent call (as in Luong et al. 2015).
    """

    looks_back = True

    def __init__(self, width: int, vector_size: int, attention_size: int) -> None:
        super().__init__()
        self.size = width
        self.query_projection = nn.Linear(width, attention_size, bias=False)
        self.key_projection = nn.Linear(width, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def prepare(self, encoded: Encoded, mask: Tensor) -> Prepared:
        """Keys (B, S, A), memory (B, S, W) and mask (B, S)."""
        memory = encoded.last_hidden_state
        assert memory is not None
        return self.key_projection(memory), memory, mask

    def forward(self, states: Tensor, prepared: Prepared) -> tuple[Tensor, Tensor]:
        """Each row of the weights sums to 1; padding gets exactly 0."""
        keys, memory, mask = prepared
        summed = self.query_projection(states).unsqueeze(2) + keys.unsqueeze(1)  # (B, T, S, A)
        scores = self.energy(torch.tanh(summed)).squeeze(-1)  # (B, T, S)
        weights = scores.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=-1)
        return weights @ memory, weights


class Mean(Context):
    """c_i = (1/S) Σ_j h_j over real positions: all of the information, no choosing."""

    def __init__(self, width: int, vector_size: int, attention_size: int) -> None:
        super().__init__()
        self.size = width

    def prepare(self, encoded: Encoded, mask: Tensor) -> Prepared:
        memory = encoded.last_hidden_state
        assert memory is not None
        real = mask.unsqueeze(-1).to(memory.dtype)  # (B, S, 1)
        return ((memory * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True),)

    def forward(self, states: Tensor, prepared: Prepared) -> tuple[Tensor, None]:
        (mean,) = prepared  # (B, 1, W)
        return mean.expand(-1, states.shape[1], -1), None


class Nothing(Context):
    """c_i = (): the output layer reads the state alone."""

    has_one_vector = True

    def __init__(self, width: int, vector_size: int, attention_size: int) -> None:
        super().__init__()
        self.size = 0

    def prepare(self, encoded: Encoded, mask: Tensor) -> Prepared:
        return ()

    def forward(self, states: Tensor, prepared: Prepared) -> tuple[Tensor, None]:
        return states[..., :0], None


class NoSource(Nothing):
    """c_i = () and v = 0: what a decoder can guess without any source."""

    has_one_vector = False
    hears_source = False


CONTEXTS: dict[str, type[Context]] = {
    "fixed": Fixed,
    "attention": Attention,
    "mean": Mean,
    "nothing": Nothing,
    "none": NoSource,
}
"""By the name that a config gives them."""
