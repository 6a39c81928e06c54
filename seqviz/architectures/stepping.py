"""One decoder step at a time, over caches: what greedy and beam search drive.

`stepper_for` gives the fast path for a model. It computes what the model's own ``forward`` computes,
without the bookkeeping that ``forward`` does for training and for the general case; a test holds the
two equal.

Shapes: `N` rows (sentences times beams), `S` source length, `T` steps so far, `D` embedding width, `W`
recurrent width, `A` attention width, `H` heads, `K` width of a head, `L` layers, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MarianMTModel, PreTrainedModel

from seqviz.architectures.attention import mean_context
from seqviz.architectures.recurrent import RecurrentForConditionalGeneration


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


class Recorder:
    """A stepper that also remembers where its steps looked: greedy search of one sentence, no `select`.

    Costs next to nothing, where a second pass over the finished output costs a fifth of the search.
    """

    def __init__(self, stepper: RecurrentStepper | TransformerStepper) -> None:
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
        """Weights of the steps taken, by kind, each (L, H, T, S); row t is that of step t."""
        return self.stepper.attention(self.state)


def stepper_for(model: PreTrainedModel) -> RecurrentStepper | TransformerStepper:
    """The stepper of a model in evaluation mode.

    Raises:
        TypeError: a class that is none of the project's.
    """
    if isinstance(model, RecurrentForConditionalGeneration):
        return RecurrentStepper(model)
    if isinstance(model, MarianMTModel):
        return TransformerStepper(model)
    raise TypeError(
        f"expected a recurrent model of seqviz or a MarianMTModel, got {type(model).__name__}"
    )


class _Affine(NamedTuple):
    """A linear map as its two tensors: calling a module costs as much as multiplying a small matrix.

    The weight lies in memory with its inputs first, (inputs, outputs): for a few rows at a time that product is
    up to twice as fast.
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class _Norm(NamedTuple):
    """A layer norm as its tensors."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def _inputs_first(weight: Tensor) -> Tensor:
    return weight.detach().T.contiguous()


def _affine(module: nn.Linear) -> _Affine:
    return _Affine(_inputs_first(module.weight), module.bias.detach()[None])


def _joined(*modules: nn.Linear) -> _Affine:
    """Several maps of the same input as one, their outputs side by side."""
    weight = torch.cat([module.weight for module in modules])
    return _Affine(_inputs_first(weight), torch.cat([m.bias for m in modules]).detach()[None])


def _norm(module: nn.LayerNorm) -> _Norm:
    return _Norm(module.weight.detach(), module.bias.detach(), module.eps)


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

    def step(self, weights: _Affine) -> Tensor:
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
            weight = _inputs_first(torch.cat([of_input, of_state], dim=1))
            self.weights.append(_Affine(weight, (bias + other_bias)[None]))
        width = model.config.width
        combine = decoder.combine.weight  # [state; context]
        self.combine_state = _inputs_first(combine[:, :width])
        self.combine_context = _inputs_first(combine[:, width:])
        attention = decoder.attention
        self.query = None if attention is None else _inputs_first(attention.query_projection.weight)
        self.energy = None if attention is None else attention.energy.weight.detach()
        self.output = _Affine(_inputs_first(model.lm_head.weight), model.final_logits_bias)

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
            if not bool(mask.all()):
                bias = torch.zeros(mask.shape, dtype=memory.dtype, device=memory.device)
                state.source_bias = bias.masked_fill(~mask, float("-inf"))
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
        """See `Recorder.attention`."""
        return {"cross": torch.cat(state.seen)[None, None]} if state.seen else {}

    def select(self, state: _RecurrentState, rows: Tensor, *, same_sources: bool = False) -> None:
        state.cells = [cells.select(rows) for cells in state.cells]
        if same_sources:
            return
        for name in _FROM_SOURCE:
            value = getattr(state, name)
            if value is not None:
                setattr(state, name, value.index_select(0, rows))


@dataclass
class _TransformerState:
    """Keys and values: `own` of self-attention, for each layer (2, N, H, max_steps, K), filled up to `length`;
    `source` of cross-attention, for each layer (2, N, H, S, K). `source_bias` (N, 1, 1, S) is -inf at padding, None without any. If they
    are recorded, `queries` holds those of each step and layer, self and cross, each (N, H, 1, K), and
    `encoder` the encoder's weights, (L, N, H, S, S)."""

    own: list[Tensor]
    source: list[Tensor]
    source_bias: Tensor | None
    length: int = 0
    queries: list[tuple[Tensor, Tensor]] | None = None
    encoder: Tensor | None = None


class _EncoderLayer:
    """Weights of one encoder layer, the three projections of self-attention as one map."""

    def __init__(self, layer: Any) -> None:
        attention = layer.self_attn
        self.qkv = _joined(attention.q_proj, attention.k_proj, attention.v_proj)
        self.self_out = _affine(attention.out_proj)
        self.self_norm = _norm(layer.self_attn_layer_norm)
        self.expand = _affine(layer.fc1)
        self.shrink = _affine(layer.fc2)
        self.final_norm = _norm(layer.final_layer_norm)


class _DecoderLayer(_EncoderLayer):
    """Weights of one decoder layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__(layer)
        attention = layer.encoder_attn
        self.cross_query = _affine(attention.q_proj)
        self.cross_keys_values = _joined(attention.k_proj, attention.v_proj)
        self.cross_out = _affine(attention.out_proj)
        self.cross_norm = _norm(layer.encoder_attn_layer_norm)


class TransformerStepper:
    """Steps of a Marian Transformer with its caches allocated once.

    Source: Vaswani et al. 2017, section 3; layer norm after each residual sum.
    """

    def __init__(self, model: MarianMTModel) -> None:
        self.model = model
        encoder, decoder = model.model.encoder, model.model.decoder
        self.embed_scale = float(decoder.embed_scale)
        activation = decoder.layers[0].activation_fn
        self.activation = torch.relu_ if isinstance(activation, nn.ReLU) else activation
        self.num_heads: int = model.config.decoder_attention_heads
        self.table = decoder.embed_tokens.weight.detach()
        self.positions = decoder.embed_positions.weight.detach()
        self.output = _Affine(_inputs_first(model.lm_head.weight), model.final_logits_bias)
        self.encoder_layers = [_EncoderLayer(layer) for layer in encoder.layers]
        self.layers = [_DecoderLayer(layer) for layer in decoder.layers]

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> _TransformerState:
        mask = attention_mask.bool()
        bias = None
        if not bool(mask.all()):
            bias = torch.zeros(mask.shape, dtype=self.table.dtype, device=mask.device)
            bias = bias.masked_fill(~mask, float("-inf"))[:, None, None]  # (N, 1, 1, S)
        memory, weights = self._encode(input_ids, bias, record)
        rows, length = input_ids.shape
        size = (2, rows, self.num_heads, max_steps, memory.shape[-1] // self.num_heads)
        source = [layer.cross_keys_values(memory) for layer in self.layers]
        return _TransformerState(
            own=[memory.new_empty(size) for _ in self.layers],
            source=[self._heads(pair, 2, rows, length).contiguous() for pair in source],
            source_bias=bias,
            queries=[] if record else None,
            encoder=torch.stack(weights) if record else None,
        )

    def _heads(self, projected: Tensor, parts: int, rows: int, length: int) -> Tensor:
        """(N S, parts D) → (parts, N, H, S, K)."""
        return projected.view(rows, length, parts, self.num_heads, -1).permute(2, 0, 3, 1, 4)

    def _encode(
        self, input_ids: Tensor, bias: Tensor | None, record: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Memory (N S, D) and, if they are recorded, each layer's weights, (N, H, S, S)."""
        rows, length = input_ids.shape
        x = functional.embedding(input_ids, self.table) * self.embed_scale + self.positions[:length]
        x = x.view(rows * length, -1)
        recorded = []
        for layer in self.encoder_layers:
            query, keys, values = self._heads(layer.qkv(x), 3, rows, length)
            if record:
                scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
                weights = (scores if bias is None else scores + bias).softmax(dim=-1)
                recorded.append(weights)
                attended = weights @ values
            else:
                attended = functional.scaled_dot_product_attention(query, keys, values, bias)
            attended = attended.transpose(1, 2).reshape(rows * length, -1)
            x = layer.self_norm(layer.self_out(attended).add_(x))
            x = layer.final_norm(layer.shrink(self.activation(layer.expand(x))).add_(x))
        return x, recorded

    def step(self, tokens: Tensor, state: _TransformerState) -> Tensor:
        rows, heads, now = tokens.shape[0], self.num_heads, state.length
        x = functional.embedding(tokens, self.table) * self.embed_scale + self.positions[now]
        head_size = x.shape[-1] // heads  # x: (N, D)
        for layer, own, source in zip(self.layers, state.own, state.source, strict=True):
            qkv = layer.qkv(x).view(rows, 3, heads, 1, head_size)
            query = qkv.select(1, 0)  # (N, H, 1, K)
            own.narrow(3, now, 1).copy_(qkv.narrow(1, 1, 2).transpose(0, 1))
            keys, values = own.narrow(3, 0, now + 1).unbind()
            attended = functional.scaled_dot_product_attention(query, keys, values)
            x = layer.self_norm(layer.self_out(attended.view(rows, -1)).add_(x))

            cross_query = layer.cross_query(x).view(rows, heads, 1, head_size)
            if state.queries is not None:
                state.queries.append((query, cross_query))
            attended = functional.scaled_dot_product_attention(
                cross_query, *source.unbind(), state.source_bias
            )
            x = layer.cross_norm(layer.cross_out(attended.view(rows, -1)).add_(x))

            x = layer.final_norm(layer.shrink(self.activation(layer.expand(x))).add_(x))
        state.length = now + 1
        return self.output(x)

    def attention(self, state: _TransformerState) -> dict[str, Tensor]:
        """See `Recorder.attention`."""
        assert state.queries is not None and state.encoder is not None
        steps, layers, heads = state.length, len(self.layers), self.num_heads

        def stacked(which: int) -> Tensor:  # (L, H, T, K)
            queries = torch.stack([pair[which] for pair in state.queries or ()])
            return queries.view(steps, layers, heads, -1).permute(1, 2, 0, 3)

        scale = stacked(0).shape[-1] ** -0.5
        own_keys = torch.stack([own[0, 0, :, :steps] for own in state.own])  # (L, H, T, K)
        source_keys = torch.stack([source[0, 0] for source in state.source])  # (L, H, S, K)
        own = stacked(0) @ own_keys.transpose(-1, -2) * scale  # (L, H, T, T)
        later = torch.ones(steps, steps, dtype=torch.bool, device=own.device).triu(1)
        cross = stacked(1) @ source_keys.transpose(-1, -2) * scale  # (L, H, T, S)
        return {
            "cross": cross.softmax(dim=-1),
            "encoder": state.encoder[:, 0],
            "decoder": own.masked_fill(later, float("-inf")).softmax(dim=-1),
        }

    def select(self, state: _TransformerState, rows: Tensor, *, same_sources: bool = False) -> None:
        used = state.length
        for layer, own in enumerate(state.own):
            kept = own.narrow(3, 0, used).index_select(1, rows)
            if len(rows) != own.shape[1]:
                own = own.new_empty(2, len(rows), *own.shape[2:])
                state.own[layer] = own
            own.narrow(3, 0, used).copy_(kept)
        if same_sources:
            return
        state.source = [source.index_select(1, rows) for source in state.source]
        if state.source_bias is not None:
            state.source_bias = state.source_bias.index_select(0, rows)
