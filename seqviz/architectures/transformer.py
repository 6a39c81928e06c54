"""The Transformer (Vaswani et al. 2017): the library's Marian classes, unchanged.

Sinusoidal positions, layer norm after each sub-layer, ReLU, as in the paper. Two conventions make
its folder readable by Marian's own tools: the embedding row of the padding token, which also starts
decoding, is zero, and that token is never predicted.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from seqviz.architectures.recurrent import PAD_LOGIT


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
