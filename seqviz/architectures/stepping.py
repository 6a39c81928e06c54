"""One decoder step at a time, over caches: what greedy and beam search drive.

`stepper_for` gives the fast path for a model. It computes what the model's own ``forward`` computes,
without the bookkeeping that ``forward`` does for training and for the general case; a test holds the
two equal.

Shapes: `N` rows (sentences times beams), `S` source length, `T` steps so far, `D` width, `H` heads,
`K` width of a head, `L` layers, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MarianMTModel, PreTrainedModel

from seqviz.architectures.cache import RecurrentCache
from seqviz.architectures.recurrent import (
    RecurrentEncoderOutput,
    RecurrentForConditionalGeneration,
)


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


def stepper_for(model: PreTrainedModel) -> Stepper:
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


@dataclass
class _RecurrentState:
    encoder_outputs: RecurrentEncoderOutput
    source_mask: Tensor
    cache: RecurrentCache


class RecurrentStepper:
    """Steps of a recurrent model: its own decoder, called with one token."""

    def __init__(self, model: RecurrentForConditionalGeneration) -> None:
        self.model = model

    def start(self, input_ids: Tensor, attention_mask: Tensor, max_steps: int) -> _RecurrentState:
        encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        return _RecurrentState(
            encoded, attention_mask.bool(), self.model.model.decoder.start(encoded)
        )

    def step(self, tokens: Tensor, state: _RecurrentState) -> Tensor:
        output, state.cache, _, _ = self.model.model.decoder(
            tokens.unsqueeze(1), state.encoder_outputs, state.source_mask, state.cache
        )
        return self.model.lm_head(output[:, 0]) + self.model.final_logits_bias

    def select(self, state: _RecurrentState, rows: Tensor, *, same_sources: bool = False) -> None:
        keys = state.cache.keys
        state.cache.keys = None if same_sources else keys
        state.cache.reorder_cache(rows)
        if same_sources:
            state.cache.keys = keys
            return
        encoded = state.encoder_outputs
        assert encoded.last_hidden_state is not None and encoded.vector is not None
        state.encoder_outputs = RecurrentEncoderOutput(
            last_hidden_state=encoded.last_hidden_state.index_select(0, rows),
            vector=encoded.vector.index_select(0, rows),
        )
        state.source_mask = state.source_mask.index_select(0, rows)


@dataclass
class _TransformerState:
    """`keys`, `values` of self-attention (L, N, H, max_steps, K), filled up to `length`; `source_*` of
    cross-attention (L, N, H, S, K); `source_bias` (N, 1, 1, S) is -inf at padding, None without any."""

    keys: Tensor
    values: Tensor
    source_keys: Tensor
    source_values: Tensor
    source_bias: Tensor | None
    length: int = 0


@dataclass(frozen=True)
class _Layer:
    """Weights of one decoder layer, the three self-attention projections as one matrix (3D, D)."""

    qkv_weight: Tensor
    qkv_bias: Tensor
    self_out: nn.Linear
    self_norm: nn.LayerNorm
    cross_query: nn.Linear
    cross_out: nn.Linear
    cross_norm: nn.LayerNorm
    expand: nn.Linear
    shrink: nn.Linear
    final_norm: nn.LayerNorm


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
        self.layers = []
        for layer in decoder.layers:
            attention: Any = layer.self_attn
            cross: Any = layer.encoder_attn
            scale: float = attention.scaling
            self.layers.append(
                _Layer(
                    qkv_weight=torch.cat(
                        [
                            attention.q_proj.weight * scale,
                            attention.k_proj.weight,
                            attention.v_proj.weight,
                        ]
                    ).detach(),
                    qkv_bias=torch.cat(
                        [
                            attention.q_proj.bias * scale,
                            attention.k_proj.bias,
                            attention.v_proj.bias,
                        ]
                    ).detach(),
                    self_out=attention.out_proj,
                    self_norm=layer.self_attn_layer_norm,
                    cross_query=cross.q_proj,
                    cross_out=cross.out_proj,
                    cross_norm=layer.encoder_attn_layer_norm,
                    expand=layer.fc1,
                    shrink=layer.fc2,
                    final_norm=layer.final_layer_norm,
                )
            )
        self.cross_scale: float = decoder.layers[0].encoder_attn.scaling

    def start(self, input_ids: Tensor, attention_mask: Tensor, max_steps: int) -> _TransformerState:
        decoder = self.model.model.decoder
        memory = self.model.model.encoder(
            input_ids=input_ids, attention_mask=attention_mask
        ).last_hidden_state  # (N, S, D)
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
        empty = memory.new_empty(len(cross), rows, heads, max_steps, width // heads)
        return _TransformerState(
            keys=empty,
            values=torch.empty_like(empty),
            source_keys=torch.stack([split(c.k_proj(memory)) for c in cross]),
            source_values=torch.stack([split(c.v_proj(memory)) for c in cross]),
            source_bias=bias,
        )

    def step(self, tokens: Tensor, state: _TransformerState) -> Tensor:
        decoder = self.model.model.decoder
        rows, heads, now = tokens.shape[0], self.num_heads, state.length
        x = functional.embedding(tokens, decoder.embed_tokens.weight) * self.embed_scale
        x = x + decoder.embed_positions.weight[now]  # (N, D)
        head_size = x.shape[-1] // heads
        for index, layer in enumerate(self.layers):
            qkv = functional.linear(x, layer.qkv_weight, layer.qkv_bias)
            query, key, value = qkv.view(rows, 3, heads, 1, head_size).unbind(1)  # (N, H, 1, K)
            state.keys[index, :, :, now] = key[:, :, 0]
            state.values[index, :, :, now] = value[:, :, 0]
            keys = state.keys[index, :, :, : now + 1]  # (N, H, T + 1, K)
            weights = (query @ keys.transpose(-1, -2)).softmax(dim=-1)  # (N, H, 1, T + 1)
            attended = weights @ state.values[index, :, :, : now + 1]
            x = layer.self_norm(x + layer.self_out(attended.reshape(rows, -1)))

            query = layer.cross_query(x).view(rows, heads, 1, head_size) * self.cross_scale
            scores = query @ state.source_keys[index].transpose(-1, -2)  # (N, H, 1, S)
            if state.source_bias is not None:
                scores = scores + state.source_bias
            attended = scores.softmax(dim=-1) @ state.source_values[index]
            x = layer.cross_norm(x + layer.cross_out(attended.reshape(rows, -1)))

            x = layer.final_norm(x + layer.shrink(self.activation(layer.expand(x))))
        state.length = now + 1
        return self.model.lm_head(x) + self.model.final_logits_bias

    def select(self, state: _TransformerState, rows: Tensor, *, same_sources: bool = False) -> None:
        used = state.length
        same_size = len(rows) == state.keys.shape[1]
        for name in ("keys", "values"):
            old = getattr(state, name)
            kept = old[:, :, :, :used].index_select(1, rows)
            if not same_size:
                old = old.new_empty(old.shape[0], len(rows), *old.shape[2:])
                setattr(state, name, old)
            old[:, :, :, :used] = kept
        if same_sources:
            return
        state.source_keys = state.source_keys.index_select(1, rows)
        state.source_values = state.source_values.index_select(1, rows)
        if state.source_bias is not None:
            state.source_bias = state.source_bias.index_select(0, rows)
