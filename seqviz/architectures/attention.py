"""How a recurrent decoder gets its context: three answers, one interface.

Shapes: `B` batch, `S` source length, `T` target length, `W` width of decoder state and memory,
`A` attention width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Weigh source positions for each decoder state.

    e_ij = vᵀ tanh(W_a s_i + U_a h_j), α_ij = softmax_j(e_ij), c_i = Σ_j α_ij h_j.

    Source: Bahdanau et al. 2015, appendix A.1.2. Here s_i is the state *after* step i, so that the
    whole target runs through one recurrent call (as in Luong et al. 2015).

    Args:
        query_size: width of a decoder state.
        memory_size: width of an encoder state.
        attention_size: width in which the two are compared.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """Project the memory once for all steps: (B, S, W) → (B, S, A)."""
        return self.key_projection(memory)

    def forward(
        self, query: Tensor, keys: Tensor, memory: Tensor, source_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            query: decoder states, (B, T, W).
            keys: projected memory, (B, S, A).
            memory: encoder output, (B, S, W).
            source_mask: true where a source token is real, (B, S), at least one a row.
        Returns:
            context (B, T, W) and weights (B, T, S); each row sums to 1, padding gets exactly 0.
        """
        summed = self.query_projection(query).unsqueeze(2) + keys.unsqueeze(1)  # (B, T, S, A)
        scores = self.energy(torch.tanh(summed)).squeeze(-1)  # (B, T, S)
        scores = scores.masked_fill(~source_mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)
        return weights @ memory, weights


def mean_context(memory: Tensor, source_mask: Tensor) -> Tensor:
    """Average the memory over real positions: all of the information, no choosing.

    Args:
        memory: (B, S, W).
        source_mask: true where a source token is real, (B, S).
    Returns:
        (B, 1, W), the same for every decoder step.
    """
    real = source_mask.unsqueeze(-1).to(memory.dtype)  # (B, S, 1)
    return (memory * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
