"""One decoder step at a time: the recurrent models, tanh RNN or LSTM, with any context.

Shapes: `N` rows (sentences times beams), `S` source length, `D` embedding width, `I` input width of a layer,
`W` recurrent width, `A` attention width, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqviz.architectures.context import Attention, Context
from seqviz.architectures.recurrent_hub import RecurrentForConditionalGeneration
from seqviz.architectures.steps import Affine, source_bias


class _Layer:
    """Weights of one layer of cells; like all here they are the model's own, as they are now.

    The two biases, which no computation tells apart, are added once for a search.
    """

    def __init__(self, recurrence: nn.RNNBase, layer: int) -> None:
        of_input, of_state, bias, other_bias = (
            getattr(recurrence, f"{kind}_l{layer}")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        self.of_input = Affine(of_input, bias + other_bias)
        self.of_state = Affine(of_state)


class _Cells:
    """One layer's cells during a search, with the tensors that a step writes into.

    `hidden` is (N, W), and so is `cell`, which is None for a tanh RNN.
    """

    def __init__(self, hidden: Tensor, cell: Tensor | None) -> None:
        rows, width = hidden.shape
        self.hidden = hidden.clone()
        self.cell = cell
        self.gates = hidden.new_empty(rows, width if cell is None else 4 * width)
        if cell is not None:
            # In the order of PyTorch's weights.
            self.write, self.forget, self.candidate, self.read = self.gates.chunk(4, dim=1)
            self.write_and_forget = self.gates[:, : 2 * width]

    def step(self, x: Tensor, layer: _Layer) -> Tensor:
        """Advance by one step from the input `x`, (N, I); return `hidden`."""
        self.gates.copy_(layer.of_state(self.hidden, added=layer.of_input(x)))
        if self.cell is None:
            return torch.tanh(self.gates, out=self.hidden)
        self.write_and_forget.sigmoid_()
        self.candidate.tanh_()
        self.read.sigmoid_()
        self.cell.mul_(self.forget).addcmul_(self.write, self.candidate)
        return torch.tanh(self.cell, out=self.hidden).mul_(self.read)

    def select(self, rows: Tensor) -> _Cells:
        if len(rows) != len(self.hidden):
            hidden = self.hidden.index_select(0, rows)
            return _Cells(hidden, None if self.cell is None else self.cell.index_select(0, rows))
        for kept in (self.hidden, self.cell):
            if kept is not None:
                kept.copy_(kept.index_select(0, rows))
        return self


@dataclass
class RecurrentState:
    """What a search carries from step to step.

    Attributes:
        cells: of every layer.
        shift: V v, what the source adds to every input, (N, D).
        added: what a context that stays the same adds to every output, (N, D); None where it is chosen anew.
        keys: of attention, (N, S, A), or None.
        memory: (N, S, W), or None.
        source_bias: -inf at padding, (N, S), or None without any.
        seen: weights of each step, (N, S), if they are recorded.
    """

    cells: list[_Cells]
    shift: Tensor
    added: Tensor | None = None
    keys: Tensor | None = None
    memory: Tensor | None = None
    source_bias: Tensor | None = None
    seen: list[Tensor] | None = None


_FROM_SOURCE = ("shift", "added", "keys", "memory", "source_bias")


class _Attention:
    """Σ_j α_ij h_j for one step of every row, the sums of a state and the keys in place."""

    def __init__(self, context: Context) -> None:
        assert isinstance(context, Attention)  # the one that looks back
        self.query = Affine(context.query_projection.weight)
        self.energy = context.energy.weight

    def __call__(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor]:
        """Context (N, W) and weights (N, S) of the decoder states `x`, (N, W)."""
        assert state.keys is not None and state.memory is not None
        summed = self.query(x).unsqueeze(1) + state.keys  # (N, S, A)
        scores = functional.linear(summed.tanh_(), self.energy).squeeze(-1)  # (N, S)
        if state.source_bias is not None:
            scores = scores + state.source_bias
        weights = scores.softmax(dim=-1)
        return torch.bmm(weights.unsqueeze(1), state.memory).squeeze(1), weights


class RecurrentStepper:
    """Steps of a recurrent model, one layer of cells after the other, in place.

    The fused layers that training uses arrange their weights anew at every call, which for a single step
    takes longer than the step. What depends on the source alone is computed once: what the vector adds to
    each input, and what a context that never changes adds to each output.
    """

    def __init__(self, model: RecurrentForConditionalGeneration) -> None:
        self.model = model
        decoder, width = model.model.decoder, model.config.width
        self.embed_scale = decoder.embed_scale
        self.table = decoder.embed_tokens.weight
        self.layers = [_Layer(decoder.recurrence, n) for n in range(decoder.recurrence.num_layers)]
        combine = decoder.combine.weight  # of [state; context], (D, W + C)
        self.combine_state = Affine(combine[:, :width])
        self.combine_context = Affine(combine[:, width:])
        self.attend = _Attention(decoder.attention) if model.looks_back else None
        self.output = Affine(model.lm_head.weight, model.final_logits_bias)

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> RecurrentState:
        """See `ModelStepper.start`."""
        decoder, mask = self.model.model.decoder, attention_mask.bool()
        encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        hidden, cell = decoder.start(encoded.vector)
        prepared = decoder.context.prepare(encoded, mask)
        cells = [None] * len(self.layers) if cell is None else cell.clone().unbind(1)
        state = RecurrentState(
            cells=[_Cells(*each) for each in zip(hidden.unbind(1), cells, strict=True)],
            shift=decoder.vector_to_input(encoded.vector),
            seen=[] if record else None,
        )
        if self.attend is None:
            context, _ = decoder.context(hidden[:, -1:], prepared)  # (N, 1, C)
            state.added = self.combine_context(context[:, 0])
        else:
            state.keys, state.memory, _ = prepared
            state.source_bias = source_bias(mask, state.memory.dtype)
        return state

    def step(self, tokens: Tensor, state: RecurrentState) -> Tensor:
        """See `Stepper.step`."""
        embedded = functional.embedding(tokens, self.table)
        x = torch.add(state.shift, embedded, alpha=self.embed_scale)  # E y + V v, (N, D)
        for cells, layer in zip(state.cells, self.layers, strict=True):
            x = cells.step(x, layer)  # s_i, (N, W)
        if self.attend is None:
            added = state.added
            assert added is not None
        else:
            context, chosen = self.attend(x, state)
            added = self.combine_context(context)
            if state.seen is not None:
                state.seen.append(chosen)
        return self.output(self.combine_state(x, added).tanh_())

    def attention(self, state: RecurrentState) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        return {"cross": torch.cat(state.seen)[None, None]} if state.seen else {}

    def select(self, state: RecurrentState, rows: Tensor, *, same_sources: bool = False) -> None:
        """See `Stepper.select`."""
        state.cells = [cells.select(rows) for cells in state.cells]
        if same_sources:
            return
        for name in _FROM_SOURCE:
            value = getattr(state, name)
            if value is not None:
                setattr(state, name, value.index_select(0, rows))
