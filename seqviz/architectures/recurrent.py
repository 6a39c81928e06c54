"""Recurrent sequence-to-sequence models: tanh RNN or LSTM, one fixed vector or attention.

One encoder and one decoder with two switches. ``cell`` says how a state is updated, ``context`` what the
output layer reads beside the state: see `context`. All else is the same.

    memory h, v  = encode(source)          v = tanh(W [last forward state; first backward state])
    s_0          = projection of v         for every decoder layer
    s_i          = recur(s_{i-1}, E y_{i-1} + V v)
    logits_i     = E tanh(W_o [s_i; c_i])  E is the one embedding table of source, target and output

Sources: Sutskever et al. 2014 and Cho et al. 2014 (fixed vector), Bahdanau et al. 2015 (attention),
Luong et al. 2015, equation 5 (output layer). What Transformers asks of a model stands in `recurrent_hub`.

Shapes: `B` batch, `S` source length, `T` target length, `D` embedding width, `W` recurrent width,
`L` layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import initialization as init

from seqviz.architectures.context import CONTEXTS, Context, Encoded, Prepared
from seqviz.architectures.manners import source_mask
from seqviz.architectures.recurrent_config import RecurrentConfig


class State(NamedTuple):
    """A decoder's state between two steps, batch first.

    Its size does not grow with the target: that is the bargain a recurrent model offers.

    Attributes:
        hidden: of every layer, (B, L, W).
        cell: LSTM cell of every layer, (B, L, W), or None for a tanh RNN.
    """

    hidden: Tensor
    cell: Tensor | None


class Decoded(NamedTuple):
    """What the decoder made of target tokens.

    Attributes:
        output: what the output layer reads, (B, T, D).
        states: s_1 … s_T of the top layer, (B, T, W).
        state: behind the last token.
        weights: of the context, (B, T, S), or None.
    """

    output: Tensor
    states: Tensor
    state: State
    weights: Tensor | None


def recurrence(cell: str, input_size: int, width: int, num_layers: int = 1) -> nn.RNNBase:
    """A fused recurrent layer.

    "rnn": h_t = tanh(W_h h_{t-1} + W_x x_t + b). "lstm": Hochreiter & Schmidhuber 1997 with forget
    gates (Gers et al. 2000), without peepholes.
    """
    kind = {"lstm": nn.LSTM, "rnn": nn.RNN}[cell]
    return kind(input_size, width, num_layers=num_layers, batch_first=True)


def initialize_recurrence(layer: nn.RNNBase, forget_bias: float) -> None:
    """Input weights Glorot, recurrent weights orthogonal, gate by gate; biases 0, forget gate apart."""
    gates = 4 if isinstance(layer, nn.LSTM) else 1
    for name, parameter in layer.named_parameters():
        if name.startswith("weight"):
            blocks = []
            for _ in range(gates):
                block = torch.empty(layer.hidden_size, parameter.shape[1])
                fill = nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_
                blocks.append(fill(block))
            init.copy_(parameter, torch.cat(blocks))
        else:
            bias = torch.zeros(gates, layer.hidden_size)
            if gates == 4 and "bias_ih" in name:
                bias[1] = forget_bias  # PyTorch's order of gates: input, forget, cell, output
            init.copy_(parameter, bias.flatten())


def reversal(lengths: Tensor, size: int) -> Tensor:
    """Positions that reverse each row within its own length and leave its padding in place.

    Args:
        lengths: real tokens of each row, (B,).
        size: padded length S.
    Returns:
        index (B, S); applying it twice gives the row back.
    """
    position = torch.arange(size, device=lengths.device).unsqueeze(0)  # (1, S)
    mirrored = lengths.unsqueeze(1) - 1 - position  # (B, S)
    return torch.where(mirrored >= 0, mirrored, position)


def _gather(states: Tensor, index: Tensor) -> Tensor:
    return states.gather(1, index.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


def run(part: nn.Module, step: Callable[..., Any], *inputs: Any) -> Any:
    """`step` of `inputs`; with gradient checkpointing nothing in between is kept, but made again on the way back.

    Always without re-entering the backward pass, which would miss states inside tuples.
    """
    if part.gradient_checkpointing and part.training:
        return checkpoint(step, *inputs, use_reentrant=False)
    return step(*inputs)


def embedding(config: RecurrentConfig) -> nn.Embedding:
    """The table E, its row of the padding token zero."""
    return nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)


class RecurrentEncoder(nn.Module):
    """Bidirectional recurrent encoder.

    Each direction of a layer is one call; the backward one reads every sentence reversed within its
    own length. Padding stays at the end in both, so it never touches a real state.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = embedding(config)
        self.embed_scale = math.sqrt(config.d_model)
        self.is_heard = CONTEXTS[config.context].hears_source
        sizes = [config.d_model] + [config.width] * (config.num_layers - 1)
        if not self.is_heard:
            sizes = []  # what nobody listens to is not there
        half = config.width // 2
        self.forward_layers = nn.ModuleList(recurrence(config.cell, size, half) for size in sizes)
        self.backward_layers = nn.ModuleList(recurrence(config.cell, size, half) for size in sizes)
        if self.is_heard:
            self.to_vector = nn.Linear(config.width, config.vector_size)
        self.gradient_checkpointing = False

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool = False,
        **kwargs: Any,
    ) -> Encoded:
        """Read the source.

        Args:
            input_ids: (B, S), padding at the end.
            attention_mask: 1 where a source token is real, (B, S); None: see `source_mask`.
            inputs_embeds: scaled embeddings in place of `input_ids`, (B, S, D).
            output_hidden_states: return the states of every layer.
        Raises:
            ValueError: neither ids nor embeddings, a row with no real token, or padding before a real token.
        """
        source = input_ids if inputs_embeds is None else inputs_embeds
        mask = source_mask(source, attention_mask, self.config.pad_token_id)
        lengths = mask.sum(dim=1)  # (B,)
        states = (
            self.embed_tokens(input_ids) * self.embed_scale
            if inputs_embeds is None
            else inputs_embeds
        )  # (B, S, D)
        all_states = [states]
        if not self.is_heard:
            return Encoded(
                last_hidden_state=states.new_zeros(*mask.shape, self.config.width),
                vector=states.new_zeros(len(mask), self.config.vector_size),
                hidden_states=tuple(all_states) if output_hidden_states else None,
            )
        mirror = reversal(lengths, states.shape[1])  # (B, S)
        for forward_layer, backward_layer in zip(
            self.forward_layers, self.backward_layers, strict=True
        ):
            ahead, _ = run(self, forward_layer, states)  # (B, S, W/2)
            behind, _ = run(self, backward_layer, _gather(states, mirror))
            behind = _gather(behind, mirror)
            states = torch.cat([ahead, behind], dim=-1)  # (B, S, W)
            all_states.append(states)
        last = _gather(ahead, (lengths - 1).unsqueeze(1)).squeeze(1)  # (B, W/2)
        first = behind[:, 0]  # (B, W/2)
        vector = torch.tanh(self.to_vector(torch.cat([last, first], dim=-1)))  # (B, vector_size)
        return Encoded(
            last_hidden_state=states,
            vector=vector,
            hidden_states=tuple(all_states) if output_hidden_states else None,
        )


class RecurrentDecoder(nn.Module):
    """Recurrent decoder. One method serves a whole target (teacher forcing) and a single step."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = embedding(config)
        self.embed_scale = math.sqrt(config.d_model)
        self.vector_to_state = nn.Linear(config.vector_size, config.num_layers * config.width)
        self.vector_to_input = nn.Linear(config.vector_size, config.d_model, bias=False)
        self.recurrence = recurrence(config.cell, config.d_model, config.width, config.num_layers)
        kind = CONTEXTS[config.context]
        # Called `attention` in the names of weights, whatever it is.
        self.attention = kind(config.width, config.vector_size, config.attention_size)
        self.combine = nn.Linear(config.width + self.context.size, config.d_model, bias=False)
        self.gradient_checkpointing = False

    @property
    def context(self) -> Context:
        """THE switch: what the output layer reads beside the state."""
        return self.attention

    def start(self, vector: Tensor) -> State:
        """s_0, of which everything comes from the one vector v.

        An LSTM's cell is the projection of v, its state the tanh of it; a tanh RNN has the latter only.
        """
        projected = self.vector_to_state(vector)
        cell = projected.view(-1, self.config.num_layers, self.config.width)  # (B, L, W)
        return State(torch.tanh(cell), cell if self.config.cell == "lstm" else None)

    def forward(
        self,
        input_ids: Tensor | None,
        vector: Tensor,
        state: State,
        prepared: Prepared,
        inputs_embeds: Tensor | None = None,
    ) -> Decoded:
        """Run target tokens through the decoder.

        Args:
            input_ids: previous target tokens, (B, T).
            vector: v, (B, vector_size).
            state: after the tokens before `input_ids`; `start` at the start.
            prepared: what the context made of the source.
            inputs_embeds: scaled embeddings in place of `input_ids`, (B, T, D).
        """
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids) * self.embed_scale  # (B, T, D)
        embedded = inputs_embeds + self.vector_to_input(vector).unsqueeze(1)  # E y + V v
        states, state = run(self, self.recur, embedded, state)  # s_i = recur(s_{i-1}, ·), (B, T, W)
        # c_i: v | Σ α_ij h_j | mean h | nothing
        context, weights = run(self, self.context, states, prepared)
        output = torch.tanh(self.combine(torch.cat([states, context], dim=-1)))  # (B, T, D)
        return Decoded(output, states, state, weights)

    def recur(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps at once. The fused layers want layers first; everywhere else the batch comes first."""
        hidden = state.hidden.transpose(0, 1).contiguous()
        if state.cell is None:
            states, hidden = self.recurrence(embedded, hidden)  # (B, T, W), (L, B, W)
            return states, State(hidden.transpose(0, 1), None)
        cell = state.cell.transpose(0, 1).contiguous()
        states, (hidden, cell) = self.recurrence(embedded, (hidden, cell))
        return states, State(hidden.transpose(0, 1), cell.transpose(0, 1))
