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
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MarianConfig
from transformers import MarianMTModel as LibraryMarian
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from seqviz.architectures.manners import Manners, refuse_padding_before, source_mask
from seqviz.architectures.recurrent_hub import PAD_LOGIT
from seqviz.architectures.steps import Affine, affine, source_bias


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


class Positions(MarianSinusoidalPositionalEmbedding):
    """The library's table, which says where it ends."""

    def forward(
        self, input_ids_shape: Any, cache_length: int = 0, position_ids: Tensor | None = None
    ) -> Tensor:
        end = cache_length + input_ids_shape[1]
        if position_ids is not None:
            end = int(position_ids.max()) + 1
        refuse_beyond(end, self.num_embeddings)
        return super().forward(input_ids_shape, cache_length, position_ids)


def refuse_beyond(length: int, positions: int) -> None:
    """Raise for a text of more pieces than the model has positions."""
    if length > positions:
        raise ValueError(
            f"expected at most {positions} pieces (max_position_embeddings), got {length}; "
            "cut the text into sentences"
        )


class MarianMTModel(Manners, LibraryMarian):
    """The library's model, the same class to its tools; what it would get wrong in silence it does right or refuses."""

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        for part in (self.model.encoder, self.model.decoder):
            part.embed_positions.__class__ = Positions

    @wraps(LibraryMarian.forward)
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **kwargs: Any,
    ) -> Any:
        if input_ids is not None:
            attention_mask = source_mask(input_ids, attention_mask, self.config.pad_token_id)
        if kwargs.get("decoder_attention_mask") is not None:
            refuse_padding_before(kwargs["decoder_attention_mask"], "target")
        given = [kwargs.get(name) for name in ("decoder_input_ids", "decoder_inputs_embeds")]
        if labels is not None and not args and all(ids is None for ids in given):
            kwargs["decoder_input_ids"] = self.prepare_decoder_input_ids_from_labels(labels)
        if (embedded := kwargs.get("decoder_inputs_embeds")) is not None:
            # Scaled, as everywhere; the library's decoder, unlike its encoder, scales them once more.
            kwargs["decoder_inputs_embeds"] = embedded / self.model.decoder.embed_scale
        forward: Any = super().forward  # whose annotations ask for long tensors
        output = forward(input_ids, attention_mask, *args, labels=labels, **kwargs)
        if num_items_in_batch is not None and labels is not None:
            # The library's loss is the mean over this part.
            share = (labels != -100).sum() / num_items_in_batch
            if isinstance(output, tuple):
                return (output[0] * share, *output[1:])
            output.loss = share * output.loss
        return output


def build_transformer(config: MarianConfig) -> MarianMTModel:
    """A `MarianMTModel` with fresh weights, padding row zero and padding logit masked."""
    model = MarianMTModel(config)
    with torch.no_grad():
        model.get_parameter("model.shared.weight")[config.pad_token_id] = 0
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


def remember(cache: Tensor, x: Tensor, attention: Attention, step: int) -> tuple[Tensor, ...]:
    """Write keys and values of a step behind those before it; return all so far.

    Args:
        cache: (2, N, H, max_steps, K), filled up to `step`.
        x: input of the step, (N, D).
    Returns:
        keys and values, each (N, H, T, K).
    """
    keys, values = cache.select(3, step).flatten(2).unbind()  # (N, D)
    attention.keys.into(keys, x)
    attention.values.into(values, x)
    return cache.narrow(3, 0, step + 1).unbind()


class Attention:
    """Weights of an attention: four projections, and the heads that share them."""

    def __init__(self, module: Any) -> None:
        self.query = affine(module.q_proj)
        self.keys = affine(module.k_proj)
        self.values = affine(module.v_proj)
        self.out = affine(module.out_proj)
        self.num_heads: int = module.num_heads

    def heads(self, projected: Tensor, rows: int) -> Tensor:
        """(N T, D) → (N, H, T, K)."""
        return projected.view(
            rows, -1, self.num_heads, projected.shape[-1] // self.num_heads
        ).transpose(1, 2)


class EncoderLayer:
    """Weights of one encoder layer; like all here they are the model's own, as they are now."""

    def __init__(self, layer: Any) -> None:
        self.own = Attention(layer.self_attn)
        self.own_norm = _norm(layer.self_attn_layer_norm)
        relu = isinstance(layer.activation_fn, nn.ReLU)
        self.activation = torch.relu_ if relu else layer.activation_fn
        self.expand = affine(layer.fc1)
        self.shrink = affine(layer.fc2)
        self.final_norm = _norm(layer.final_layer_norm)


class DecoderLayer(EncoderLayer):
    """Weights of one decoder layer: an encoder layer's, and those of attention to the source."""

    def __init__(self, layer: Any) -> None:
        super().__init__(layer)
        self.cross = Attention(layer.encoder_attn)
        self.cross_norm = _norm(layer.encoder_attn_layer_norm)


def _norm(module: nn.LayerNorm) -> Norm:
    return Norm(module.weight, module.bias, module.eps)


# ---------------------------------------------------------------------------------------------
# A step


@dataclass
class TransformerState:
    """Keys and values of a search, allocated once, and what its steps looked with if that is recorded.

    Attributes:
        own: of self-attention, for each layer (2, N, H, max_steps, K), filled up to `length`.
        source: of attention to the source, for each layer two of (N, H, S, K).
        source_bias: -inf at padding, (N, 1, 1, S), or None without any.
        length: steps taken so far.
        queries: of each step and layer, to the target and to the source, each (N, H, 1, K).
        encoder: the encoder's weights, (L, N, H, S, S).
    """

    own: list[Tensor]
    source: list[list[Tensor]]
    source_bias: Tensor | None
    length: int = 0
    queries: list[tuple[Tensor, Tensor]] | None = None
    encoder: Tensor | None = None


class TransformerStepper:
    """Steps of a `MarianMTModel`; see the equations above."""

    def __init__(self, model: MarianMTModel) -> None:
        self.encoder, decoder = model.model.encoder, model.model.decoder
        self.embed_scale = float(decoder.embed_scale)
        self.table = decoder.embed_tokens.weight
        self.positions = decoder.embed_positions.weight
        self.output = Affine(model.lm_head.weight, model.final_logits_bias)
        self.layers = [DecoderLayer(layer) for layer in decoder.layers]

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> TransformerState:
        """See `ModelStepper.start`."""
        refuse_beyond(max(input_ids.shape[1], max_steps), len(self.positions))
        bias = source_bias(attention_mask.bool(), self.table.dtype)
        if bias is not None:
            bias = bias[:, None, None]  # (N, 1, 1, S)
        memory, weights = self.encode(input_ids, bias, record)
        rows = len(input_ids)
        own, source = [], []
        for layer in self.layers:
            heads = layer.own.num_heads
            # A step's keys, of all heads, lie side by side.
            cache = memory.new_empty(2, rows, max_steps, heads, memory.shape[-1] // heads)
            own.append(cache.transpose(2, 3))
            projected = (layer.cross.keys(memory), layer.cross.values(memory))
            source.append([layer.cross.heads(each, rows) for each in projected])
        return TransformerState(
            own=own,
            source=source,
            source_bias=bias,
            queries=[] if record else None,
            encoder=torch.stack(weights) if record else None,
        )

    def encode(
        self, input_ids: Tensor, bias: Tensor | None, record: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Memory (N S, D) and, if they are recorded, each layer's weights, (N, H, S, S)."""
        rows, length = input_ids.shape
        embedded = functional.embedding(input_ids, self.encoder.embed_tokens.weight)
        positions = self.encoder.embed_positions.weight[:length]
        x = (embedded * float(self.encoder.embed_scale) + positions).view(rows * length, -1)
        recorded = []
        for layer in map(EncoderLayer, self.encoder.layers):
            own = layer.own
            query, keys, values = (
                own.heads(project(x), rows) for project in (own.query, own.keys, own.values)
            )
            if record:
                weights = attention_weights(query, keys, bias)
                recorded.append(weights)
                attended = weights @ values
            else:
                attended = attend(query, keys, values, bias)
            attended = attended.transpose(1, 2).reshape(rows * length, -1)
            x = add_and_norm(x, own.out(attended), layer.own_norm)

            x = add_and_norm(x, feed_forward(x, layer), layer.final_norm)
        return x, recorded

    def step(self, tokens: Tensor, state: TransformerState) -> Tensor:
        """See `Stepper.step`."""
        rows, now = len(tokens), state.length
        embedded = functional.embedding(tokens, self.table)
        x = torch.add(self.positions[now], embedded, alpha=self.embed_scale)  # (N, D)
        for layer, cache, source in zip(self.layers, state.own, state.source, strict=True):
            query = layer.own.query(x).view(rows, layer.own.num_heads, 1, -1)  # (N, H, 1, K)
            keys, values = remember(cache, x, layer.own, now)  # (N, H, T, K)
            attended = attend(query, keys, values)
            x = add_and_norm(x, layer.own.out(attended.reshape(rows, -1)), layer.own_norm)

            cross_query = layer.cross.query(x).view(rows, layer.cross.num_heads, 1, -1)
            keys, values = source  # (N, H, S, K)
            attended = attend(cross_query, keys, values, state.source_bias)
            x = add_and_norm(x, layer.cross.out(attended.reshape(rows, -1)), layer.cross_norm)

            x = add_and_norm(x, feed_forward(x, layer), layer.final_norm)
            if state.queries is not None:
                state.queries.append((query, cross_query))
        state.length = now + 1
        return self.output(x)

    def attention(self, state: TransformerState) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        assert state.queries is not None and state.encoder is not None
        steps, layers = state.length, len(self.layers)
        heads = self.layers[0].own.num_heads
        to_own, to_source = (
            torch.stack(queries).view(steps, layers, heads, -1).permute(1, 2, 0, 3)  # (L, H, T, K)
            for queries in zip(*state.queries, strict=True)
        )
        own_keys = torch.stack([own[0, 0, :, :steps] for own in state.own])  # (L, H, T, K)
        source_keys = torch.stack([keys[0] for keys, _ in state.source])  # (L, H, S, K)
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
                _, _, heads, steps, width = own.shape
                own = own.new_empty(2, len(rows), steps, heads, width).transpose(2, 3)
                state.own[layer] = own
            own.narrow(3, 0, used).copy_(kept)
        if same_sources:
            return
        state.source = [[each.index_select(0, rows) for each in layer] for layer in state.source]
        if state.source_bias is not None:
            state.source_bias = state.source_bias.index_select(0, rows)
