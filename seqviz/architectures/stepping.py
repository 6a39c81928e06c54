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
    """A linear map as its two tensors: calling a module costs as much as multiplying a small matrix."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class _Norm(NamedTuple):
    """A layer norm as its tensors."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def _affine(module: nn.Linear) -> _Affine:
    return _Affine(module.weight.detach(), None if module.bias is None else module.bias.detach())


def _norm(module: nn.LayerNorm) -> _Norm:
    return _Norm(module.weight.detach(), module.bias.detach(), module.eps)


@dataclass
class _RecurrentState:
    """`hidden` and `cell` of every layer, each (N, W); the latter is empty for a tanh RNN. What a source adds to
    every input, `shift` (N, D), and to every output, `constant` (N, D), or `memory` (N, S, W), `keys` (N, S, A)
    and `source_bias` (N, S), -inf at padding, where the context is chosen anew at every step. `seen` holds the
    weights of each step, (N, S), if they are recorded."""

    hidden: list[Tensor]
    cell: list[Tensor]
    shift: Tensor
    constant: Tensor | None = None
    memory: Tensor | None = None
    keys: Tensor | None = None
    source_bias: Tensor | None = None
    seen: list[Tensor] | None = None


_FROM_SOURCE = ("shift", "constant", "memory", "keys", "source_bias")


class RecurrentStepper:
    """Steps of a recurrent model, one cell after the other.

    The fused layers that training uses arrange their weights anew at every call, which for a single step
    takes longer than the step. What depends on the source alone is computed once: what the vector adds to
    each input, and what a context that never changes adds to each output.
    """

    def __init__(self, model: RecurrentForConditionalGeneration) -> None:
        self.model = model
        decoder = model.model.decoder
        self.embed_scale = decoder.embed_scale
        self.table = decoder.embed_tokens.weight.detach()
        self.is_lstm = model.config.cell == "lstm"
        self.weights = [
            tuple(
                getattr(decoder.recurrence, f"{kind}_l{layer}").detach()
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            for layer in range(model.config.num_layers)
        ]
        width = model.config.width
        combine = decoder.combine.weight.detach()  # [state; context]
        self.combine_state = combine[:, :width].contiguous()
        self.combine_context = combine[:, width:].contiguous()
        self.query = decoder.attention and _affine(decoder.attention.query_projection)
        self.energy = decoder.attention and decoder.attention.energy.weight.detach()
        self.output = _Affine(model.lm_head.weight.detach(), model.final_logits_bias[0])

    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> _RecurrentState:
        decoder = self.model.model.decoder
        encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        cache = decoder.start(encoded)
        memory, mask = encoded.last_hidden_state, attention_mask.bool()
        state = _RecurrentState(
            hidden=list(cache.hidden.unbind(1)),
            cell=[] if cache.cell is None else list(cache.cell.unbind(1)),
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
            state.constant = functional.linear(context, self.combine_context)
        return state

    def step(self, tokens: Tensor, state: _RecurrentState) -> Tensor:
        x = functional.embedding(tokens, self.table) * self.embed_scale + state.shift  # (N, D)
        for layer, weights in enumerate(self.weights):
            if self.is_lstm:
                x, cell = torch.lstm_cell(x, (state.hidden[layer], state.cell[layer]), *weights)
                state.cell[layer] = cell
            else:
                x = torch.rnn_tanh_cell(x, state.hidden[layer], *weights)
            state.hidden[layer] = x  # (N, W)
        added = state.constant
        if added is None:
            assert (
                self.query
                and self.energy is not None
                and state.memory is not None
                and state.keys is not None
            )
            summed = self.query(x).unsqueeze(1) + state.keys  # (N, S, A)
            scores = functional.linear(summed.tanh_(), self.energy).squeeze(-1)  # (N, S)
            if state.source_bias is not None:
                scores = scores + state.source_bias
            weights = scores.softmax(dim=-1)
            if state.seen is not None:
                state.seen.append(weights)
            context = torch.bmm(weights.unsqueeze(1), state.memory).squeeze(1)
            added = functional.linear(context, self.combine_context)
        return self.output(torch.tanh(functional.linear(x, self.combine_state) + added))

    def attention(self, state: _RecurrentState) -> dict[str, Tensor]:
        """See `Recorder.attention`."""
        return {"cross": torch.cat(state.seen)[None, None]} if state.seen else {}

    def select(self, state: _RecurrentState, rows: Tensor, *, same_sources: bool = False) -> None:
        state.hidden = [hidden.index_select(0, rows) for hidden in state.hidden]
        state.cell = [cell.index_select(0, rows) for cell in state.cell]
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


@dataclass(frozen=True)
class _Layer:
    """Weights of one decoder layer, the three self-attention projections as one matrix (3D, D)."""

    qkv: _Affine
    self_out: _Affine
    self_norm: _Norm
    cross_query: _Affine
    cross_out: _Affine
    cross_norm: _Norm
    expand: _Affine
    shrink: _Affine
    final_norm: _Norm


class TransformerStepper:
    """Steps of a Marian Transformer with its caches allocated once.

    Source: Vaswani et al. 2017, section 3; layer norm after each residual sum.
    """

    def __init__(self, model: MarianMTModel) -> None:
        self.model = model
        decoder = model.model.decoder
        self.embed_scale = float(decoder.embed_scale)
        self.activation = decoder.layers[0].activation_fn
        self.num_heads: int = model.config.decoder_attention_heads
        self.table = decoder.embed_tokens.weight.detach()
        self.positions = decoder.embed_positions.weight.detach()
        self.output = _Affine(model.lm_head.weight.detach(), model.final_logits_bias[0])
        self.layers = []
        for layer in decoder.layers:
            attention: Any = layer.self_attn
            projections = (attention.q_proj, attention.k_proj, attention.v_proj)
            self.layers.append(
                _Layer(
                    qkv=_Affine(
                        torch.cat([p.weight for p in projections]).detach(),
                        torch.cat([p.bias for p in projections]).detach(),
                    ),
                    self_out=_affine(attention.out_proj),
                    self_norm=_norm(layer.self_attn_layer_norm),
                    cross_query=_affine(layer.encoder_attn.q_proj),
                    cross_out=_affine(layer.encoder_attn.out_proj),
                    cross_norm=_norm(layer.encoder_attn_layer_norm),
                    expand=_affine(layer.fc1),
                    shrink=_affine(layer.fc2),
                    final_norm=_norm(layer.final_layer_norm),
                )
            )

    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> _TransformerState:
        decoder = self.model.model.decoder
        encoded = self.model.model.encoder(
            input_ids=input_ids, attention_mask=attention_mask, output_attentions=record
        )
        memory = encoded.last_hidden_state  # (N, S, D)
        rows, source_length, width = memory.shape
        heads = self.num_heads

        def split(projected: Tensor) -> Tensor:
            return projected.view(rows, source_length, heads, width // heads).transpose(1, 2)

        cross = [layer.encoder_attn for layer in decoder.layers]
        mask = attention_mask.bool()
        bias = None
        if not bool(mask.all()):
            bias = torch.zeros(mask.shape, dtype=memory.dtype, device=memory.device)
            bias = bias.masked_fill(~mask, float("-inf"))[:, None, None]  # (N, 1, 1, S)
        size = (2, rows, heads, max_steps, width // heads)
        return _TransformerState(
            own=[memory.new_empty(size) for _ in cross],
            source=[torch.stack([split(c.k_proj(memory)), split(c.v_proj(memory))]) for c in cross],
            source_bias=bias,
            queries=[] if record else None,
            encoder=torch.stack(list(encoded.attentions)) if record else None,
        )

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
            x = layer.self_norm(x + layer.self_out(attended.view(rows, -1)))

            cross_query = layer.cross_query(x).view(rows, heads, 1, head_size)
            if state.queries is not None:
                state.queries.append((query, cross_query))
            attended = functional.scaled_dot_product_attention(
                cross_query, *source.unbind(), state.source_bias
            )
            x = layer.cross_norm(x + layer.cross_out(attended.view(rows, -1)))

            x = layer.final_norm(x + layer.shrink(self.activation(layer.expand(x))))
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
