"""The Transformer (Vaswani et al. 2017): the library's Marian classes, unchanged, and its layers step by step.

Sinusoidal positions, layer norm after each sub-layer, ReLU, as in the paper. Two conventions make
its folder readable by Marian's own tools: the embedding row of the padding token, which also starts
decoding, is zero, and that token is never predicted.

`TransformerStepper` writes the paper's layers out as they work on one target token y at position t, over the
keys and values of the tokens before it:

    x = E y √D + p_t                                  embedding and position, sections 3.4 and 3.5
    x = norm(x + attend(x W_q, keys, values) W_o)     the target so far, this token included, section 3.2.3
    x = norm(x + attend(x W_q, keys, values) W_o)     the source's memory
    x = norm(x + relu(x W_1 + b_1) W_2 + b_2)         feed-forward, section 3.3
    logits = x Eᵀ + b                                 E is the one embedding table

    attend(Q, K, V) = softmax(Q Kᵀ / √d) V            in each head, of width d, section 3.2.1

The encoder's layers are the first and the third of the sub-layers, over the whole source at once.

Shapes: `N` rows (sentences times beams), `S` source length, `T` steps so far, `D` width, `H` heads, `K` width
of a head, `L` layers, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MarianConfig, MarianMTModel

from seqviz.architectures.recurrent_hub import PAD_LOGIT
from seqviz.architectures.steps import Affine, affine, inputs_first, source_bias


def transformer_config(vocab_size: int, **overrides: Any) -> MarianConfig:
    """A small `MarianConfig` with the project's token ids; `overrides` replace any setting."""
    pad = vocab_size - 1
    settings: dict[str, Any] = {
        "vocab_size": vocab_size,
        "d_model": 256,
        "encoder_layers": 3,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 1024,
        "decoder_ffn_dim": 1024,
        "max_position_embeddings": 512,
        "activation_function": "relu",
        "dropout": 0.0,
        "scale_embedding": True,
        "pad_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "bos_token_id": None,
        "decoder_start_token_id": pad,
    }
    return MarianConfig(**{**settings, **overrides})


def build_transformer(config: MarianConfig) -> MarianMTModel:
    """A `MarianMTModel` with fresh weights, padding row zero and padding logit masked."""
    model = MarianMTModel(config)
    with torch.no_grad():
        model.model.shared.weight[config.pad_token_id] = 0
        model.final_logits_bias[0, config.pad_token_id] = PAD_LOGIT
    return model


# ---------------------------------------------------------------------------------------------
# The paper's equations. Only these three write into tensors that they were given: `add_and_norm`,
# `feed_forward` and `remember`.


class Norm(NamedTuple):
    """A layer norm as its tensors."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def attend(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d) V, (N, H, T, K); the softmax never leaves the fused kernel."""
    return functional.scaled_dot_product_attention(query, keys, values, bias)


def attention_weights(query: Tensor, keys: Tensor, bias: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d), (N, H, T, S), where the weights themselves are wanted."""
    scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
    return (scores if bias is None else scores + bias).softmax(dim=-1)


def add_and_norm(x: Tensor, change: Tensor, norm: Norm) -> Tensor:
    """norm(x + change), where `change` is what a sub-layer made of `x`; it is overwritten."""
    return norm(change.add_(x))


def feed_forward(x: Tensor, layer: EncoderLayer) -> Tensor:
    """relu(x W_1 + b_1) W_2 + b_2, the ReLU in place."""
    return layer.shrink(layer.activation(layer.expand(x)))


def remember(cache: Tensor, new: Tensor, step: int) -> tuple[Tensor, ...]:
    """Write keys and values of a step, (N, 2, H, 1, K), behind those before it; return all so far.

    Args:
        cache: (2, N, H, max_steps, K), filled up to `step`.
    Returns:
        keys and values, each (N, H, T, K).
    """
    cache.narrow(3, step, 1).copy_(new.transpose(0, 1))
    return cache.narrow(3, 0, step + 1).unbind()


class EncoderLayer:
    """Weights of one encoder layer, the three projections of self-attention as one map."""

    def __init__(self, layer: Any) -> None:
        attention = layer.self_attn
        self.query_keys_values = affine(attention.q_proj, attention.k_proj, attention.v_proj)
        self.self_out = affine(attention.out_proj)
        self.self_norm = _norm(layer.self_attn_layer_norm)
        relu = isinstance(layer.activation_fn, nn.ReLU)
        self.activation = torch.relu_ if relu else layer.activation_fn
        self.expand = affine(layer.fc1)
        self.shrink = affine(layer.fc2)
        self.final_norm = _norm(layer.final_layer_norm)


class DecoderLayer(EncoderLayer):
    """Weights of one decoder layer: an encoder layer's, and those of attention to the source."""

    def __init__(self, layer: Any) -> None:
        super().__init__(layer)
        attention = layer.encoder_attn
        self.cross_query = affine(attention.q_proj)
        self.cross_keys_values = affine(attention.k_proj, attention.v_proj)
        self.cross_out = affine(attention.out_proj)
        self.cross_norm = _norm(layer.encoder_attn_layer_norm)


def _norm(module: nn.LayerNorm) -> Norm:
    return Norm(module.weight.detach(), module.bias.detach(), module.eps)


# ---------------------------------------------------------------------------------------------
# A step


@dataclass
class TransformerState:
    """Keys and values of a search, allocated once, and what its steps looked with if that is recorded.

    Attributes:
        own: of self-attention, for each layer (2, N, H, max_steps, K), filled up to `length`.
        source: of attention to the source, for each layer (2, N, H, S, K).
        source_bias: -inf at padding, (N, 1, 1, S), or None without any.
        length: steps taken so far.
        queries: of each step and layer, to the target and to the source, each (N, H, 1, K).
        encoder: the encoder's weights, (L, N, H, S, S).
    """

    own: list[Tensor]
    source: list[Tensor]
    source_bias: Tensor | None
    length: int = 0
    queries: list[tuple[Tensor, Tensor]] | None = None
    encoder: Tensor | None = None


class TransformerStepper:
    """Steps of a `MarianMTModel`; see the equations above."""

    attention_kinds = ("cross", "encoder", "decoder")
    has_one_vector = False

    def __init__(self, model: MarianMTModel) -> None:
        encoder, decoder = model.model.encoder, model.model.decoder
        self.embed_scale = float(decoder.embed_scale)
        self.num_heads: int = model.config.decoder_attention_heads
        self.table = decoder.embed_tokens.weight.detach()
        self.positions = decoder.embed_positions.weight.detach()
        self.output = Affine(inputs_first(model.lm_head.weight), model.final_logits_bias)
        self.encoder_layers = [EncoderLayer(layer) for layer in encoder.layers]
        self.layers = [DecoderLayer(layer) for layer in decoder.layers]

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> TransformerState:
        """See `ModelStepper.start`."""
        bias = source_bias(attention_mask.bool(), self.table.dtype)
        if bias is not None:
            bias = bias[:, None, None]  # (N, 1, 1, S)
        memory, weights = self.encode(input_ids, bias, record)
        rows, length = input_ids.shape
        size = (2, rows, self.num_heads, max_steps, memory.shape[-1] // self.num_heads)
        source = [layer.cross_keys_values(memory) for layer in self.layers]
        return TransformerState(
            own=[memory.new_empty(size) for _ in self.layers],
            source=[self._heads(pair, 2, rows, length).contiguous() for pair in source],
            source_bias=bias,
            queries=[] if record else None,
            encoder=torch.stack(weights) if record else None,
        )

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """E y √D + p, (..., D)."""
        return functional.embedding(ids, self.table) * self.embed_scale + positions

    def encode(
        self, input_ids: Tensor, bias: Tensor | None, record: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Memory (N S, D) and, if they are recorded, each layer's weights, (N, H, S, S)."""
        rows, length = input_ids.shape
        x = self.embed(input_ids, self.positions[:length]).view(rows * length, -1)
        recorded = []
        for layer in self.encoder_layers:
            query, keys, values = self._heads(layer.query_keys_values(x), 3, rows, length)
            if record:
                weights = attention_weights(query, keys, bias)
                recorded.append(weights)
                attended = weights @ values
            else:
                attended = attend(query, keys, values, bias)
            attended = attended.transpose(1, 2).reshape(rows * length, -1)
            x = add_and_norm(x, layer.self_out(attended), layer.self_norm)

            x = add_and_norm(x, feed_forward(x, layer), layer.final_norm)
        return x, recorded

    def _heads(self, projected: Tensor, parts: int, rows: int, length: int) -> Tensor:
        """(N S, parts D) → (parts, N, H, S, K)."""
        return projected.view(rows, length, parts, self.num_heads, -1).permute(2, 0, 3, 1, 4)

    def step(self, tokens: Tensor, state: TransformerState) -> Tensor:
        """See `Stepper.step`."""
        rows, now = len(tokens), state.length
        x = self.embed(tokens, self.positions[now])  # (N, D)
        of_heads = (self.num_heads, 1, x.shape[-1] // self.num_heads)  # (H, 1, K)
        for layer, own, source in zip(self.layers, state.own, state.source, strict=True):
            projected = layer.query_keys_values(x).view(rows, 3, *of_heads)
            query = projected.select(1, 0)  # (N, H, 1, K)
            keys, values = remember(own, projected.narrow(1, 1, 2), now)  # (N, H, T, K)
            attended = attend(query, keys, values)
            x = add_and_norm(x, layer.self_out(attended.view(rows, -1)), layer.self_norm)

            cross_query = layer.cross_query(x).view(rows, *of_heads)
            keys, values = source.unbind()  # (N, H, S, K)
            attended = attend(cross_query, keys, values, state.source_bias)
            x = add_and_norm(x, layer.cross_out(attended.view(rows, -1)), layer.cross_norm)

            x = add_and_norm(x, feed_forward(x, layer), layer.final_norm)
            if state.queries is not None:
                state.queries.append((query, cross_query))
        state.length = now + 1
        return self.output(x)

    def attention(self, state: TransformerState) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        assert state.queries is not None and state.encoder is not None
        steps, layers, heads = state.length, len(self.layers), self.num_heads
        to_own, to_source = (
            torch.stack(queries).view(steps, layers, heads, -1).permute(1, 2, 0, 3)  # (L, H, T, K)
            for queries in zip(*state.queries, strict=True)
        )
        own_keys = torch.stack([own[0, 0, :, :steps] for own in state.own])  # (L, H, T, K)
        source_keys = torch.stack([source[0, 0] for source in state.source])  # (L, H, S, K)
        later = to_own.new_full((steps, steps), float("-inf")).triu(1)
        return {
            "cross": attention_weights(to_source, source_keys),
            "encoder": state.encoder[:, 0],
            "decoder": attention_weights(to_own, own_keys, later),
        }

    def select(self, state: TransformerState, rows: Tensor, *, same_sources: bool = False) -> None:
        """See `Stepper.select`."""
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
