"""One decoder step at a time: the recurrent models, tanh RNN or LSTM, with any context.

Shapes: `N` rows (sentences times beams), `S` source length, `D` embedding width, `I` input width of a layer,
`W` recurrent width, `A` attention width, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from seqviz.architectures.attention import mean_context
from seqviz.architectures.recurrent import RecurrentForConditionalGeneration
from seqviz.architectures.steps import Affine, inputs_first, source_bias


class _Cells:
    """One layer's cells during a search, with the tensors that a step writes into.

    `input` (N, I) and `hidden` (N, W) lie side by side, so that one product makes all gates; `cell` (N, W) is
    None for a tanh RNN.
    """

    def __init__(self, input_size: int, hidden: Tensor, cell: Tensor | None) -> None:
        rows, width = hidden.shape
        self.joined = hidden.new_empty(rows, input_size + width)
        self.input, self.hidden = self.joined.split([input_size, width], dim=1)
        self.hidden.copy_(hidden)
        self.cell = cell
        self.gates = hidden.new_empty(rows, width if cell is None else 4 * width)
        if cell is not None:
            # In the order of PyTorch's weights.
            self.write, self.forget, self.candidate, self.read = self.gates.chunk(4, dim=1)
            self.write_and_forget = self.gates[:, : 2 * width]

    def step(self, weights: Affine) -> Tensor:
        """Advance by one step from `input`; return `hidden`."""
        torch.addmm(weights.bias, self.joined, weights.weight, out=self.gates)
        if self.cell is None:
            return torch.tanh(self.gates, out=self.hidden)
        self.write_and_forget.sigmoid_()
        self.candidate.tanh_()
        self.read.sigmoid_()
        self.cell.mul_(self.forget).addcmul_(self.write, self.candidate)
        return torch.tanh(self.cell, out=self.hidden).mul_(self.read)

    def select(self, rows: Tensor) -> _Cells:
        if len(rows) != len(self.joined):
            hidden = self.hidden.index_select(0, rows)
            cell = None if self.cell is None else self.cell.index_select(0, rows)
            return _Cells(self.input.shape[1], hidden, cell)
        for kept in (self.hidden, self.cell):
            if kept is not None:
                kept.copy_(kept.index_select(0, rows))
        return self


@dataclass
class _RecurrentState:
    """The cells of every layer. What a source adds to every input, `shift` (N, D), and to every output,
    `constant` (N, D), or `memory` (N, S, W), `keys` (N, S, A) and `source_bias` (N, S), -inf at padding, where
    the context is chosen anew at every step. `seen` holds the weights of each step, (N, S), if they are recorded."""

    cells: list[_Cells]
    shift: Tensor
    constant: Tensor | None = None
    memory: Tensor | None = None
    keys: Tensor | None = None
    source_bias: Tensor | None = None
    seen: list[Tensor] | None = None


_FROM_SOURCE = ("shift", "constant", "memory", "keys", "source_bias")


class RecurrentStepper:
    """Steps of a recurrent model, one layer of cells after the other, in place.

    The fused layers that training uses arrange their weights anew at every call, which for a single step
    takes longer than the step. What depends on the source alone is computed once: what the vector adds to
    each input, and what a context that never changes adds to each output.
    """

    def __init__(self, model: RecurrentForConditionalGeneration) -> None:
        self.model = model
        decoder = model.model.decoder
        self.embed_scale = decoder.embed_scale
        self.table = decoder.embed_tokens.weight.detach()
        self.weights = []
        for layer in range(model.config.num_layers):
            of_input, of_state, bias, other_bias = (
                getattr(decoder.recurrence, f"{kind}_l{layer}").detach()
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            weight = inputs_first(torch.cat([of_input, of_state], dim=1))
            self.weights.append(Affine(weight, (bias + other_bias)[None]))
        width = model.config.width
        combine = decoder.combine.weight  # [state; context]
        self.combine_state = inputs_first(combine[:, :width])
        self.combine_context = inputs_first(combine[:, width:])
        attention = decoder.attention
        self.query = None if attention is None else inputs_first(attention.query_projection.weight)
        self.energy = None if attention is None else attention.energy.weight.detach()
        self.output = Affine(inputs_first(model.lm_head.weight), model.final_logits_bias)

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> _RecurrentState:
        decoder = self.model.model.decoder
        encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        cache = decoder.start(encoded)
        memory, mask = encoded.last_hidden_state, attention_mask.bool()
        layers = len(self.weights)
        hidden = cache.hidden.unbind(1)
        cell = [None] * layers if cache.cell is None else cache.cell.clone().unbind(1)
        sizes = [self.table.shape[1], *[self.model.config.width] * (layers - 1)]
        state = _RecurrentState(
            cells=[_Cells(*of_layer) for of_layer in zip(sizes, hidden, cell, strict=True)],
            shift=decoder.vector_to_input(encoded.vector),
            seen=[] if record else None,
        )
        if self.query is not None:
            state.memory, state.keys = memory, cache.keys
            state.source_bias = source_bias(mask, memory.dtype)
        else:
            fixed = self.model.config.context == "fixed"
            context = encoded.vector if fixed else mean_context(memory, mask)[:, 0]
            state.constant = context @ self.combine_context
        return state

    def step(self, tokens: Tensor, state: _RecurrentState) -> Tensor:
        embedded = functional.embedding(tokens, self.table)
        x = torch.add(state.shift, embedded, alpha=self.embed_scale)  # (N, D)
        for cells, weights in zip(state.cells, self.weights, strict=True):
            cells.input.copy_(x)
            x = cells.step(weights)  # (N, W)
        added = state.constant
        if added is None:
            assert (
                self.query is not None
                and self.energy is not None
                and state.memory is not None
                and state.keys is not None
            )
            summed = torch.mm(x, self.query).unsqueeze(1) + state.keys  # (N, S, A)
            scores = functional.linear(summed.tanh_(), self.energy).squeeze(-1)  # (N, S)
            if state.source_bias is not None:
                scores = scores + state.source_bias
            weights = scores.softmax(dim=-1)
            if state.seen is not None:
                state.seen.append(weights)
            context = torch.bmm(weights.unsqueeze(1), state.memory).squeeze(1)
            added = torch.mm(context, self.combine_context)
        return self.output(torch.addmm(added, x, self.combine_state).tanh_())

    def attention(self, state: _RecurrentState) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        return {"cross": torch.cat(state.seen)[None, None]} if state.seen else {}

    def select(self, state: _RecurrentState, rows: Tensor, *, same_sources: bool = False) -> None:
        state.cells = [cells.select(rows) for cells in state.cells]
        if same_sources:
            return
        for name in _FROM_SOURCE:
            value = getattr(state, name)
            if value is not None:
                setattr(state, name, value.index_select(0, rows))
