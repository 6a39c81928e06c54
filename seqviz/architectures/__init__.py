"""What a model is. `build` makes one of the project's models with fresh weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    MarianConfig,
    PreTrainedModel,
)
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from seqviz.architectures.plain_steps import PlainStepper, is_as_built
from seqviz.architectures.recurrent_config import RecurrentConfig
from seqviz.architectures.recurrent_hub import RecurrentForConditionalGeneration
from seqviz.architectures.recurrent_steps import RecurrentStepper
from seqviz.architectures.steps import ModelStepper
from seqviz.architectures.transformer import (
    MarianMTModel,
    TransformerStepper,
    build_transformer,
    transformer_config,
)
from seqviz.constants import (
    ABLATION_NAMES,
    ABLATIONS,
    MAX_TARGET_PIECES,
    MODEL_NAMES,
    MODELS,
    Kind,
)

_WIDTHS = {"rnn": 848, "lstm": 432}
_STEPPERS: dict[str, Any] = {
    RecurrentConfig.model_type: RecurrentStepper,
    MarianConfig.model_type: TransformerStepper,
}
CLASSES: dict[str, type[PreTrainedModel]] = {
    RecurrentConfig.model_type: RecurrentForConditionalGeneration,
    MarianConfig.model_type: MarianMTModel,
}
"""Of models, by the type that ``config.json`` names."""

AutoConfig.register(RecurrentConfig.model_type, RecurrentConfig, exist_ok=True)
AutoModelForSeq2SeqLM.register(RecurrentConfig, RecurrentForConditionalGeneration, exist_ok=True)


def build(
    name: str, vocab_size: int = 8000, *, seed: int | None = None, **overrides: Any
) -> PreTrainedModel:
    """Make a model with fresh weights, in training mode.

    Args:
        name: one of `MODEL_NAMES` or `ABLATION_NAMES`.
        vocab_size: pieces; the last one is padding, 0 ends a sentence, 1 is unknown.
        seed: of the weights; None leaves the global random state as it is.
        overrides: settings of the model's config, such as ``d_model=32``.
    Raises:
        ValueError: an unknown name.
    """
    if seed is not None:
        torch.manual_seed(seed)
    kind = _kind_of(name)
    if kind.is_recurrent:
        model: PreTrainedModel = RecurrentForConditionalGeneration(
            _recurrent_config(kind, vocab_size, **overrides)
        )
    else:
        model = build_transformer(transformer_config(vocab_size, **overrides))
    model.generation_config = GenerationConfig(
        max_length=MAX_TARGET_PIECES + 1,
        num_beams=1,
        pad_token_id=vocab_size - 1,
        eos_token_id=0,
        bos_token_id=None,
        decoder_start_token_id=vocab_size - 1,
    )
    return model.train()


def _kind_of(name: str) -> Kind:
    kind = (MODELS | ABLATIONS).get(name)
    if kind is None:
        known = ", ".join(MODEL_NAMES + ABLATION_NAMES)
        raise ValueError(f"expected a model name, one of {known}; got {name!r}")
    return kind


def _recurrent_config(kind: Kind, vocab_size: int, **overrides: Any) -> RecurrentConfig:
    pad = vocab_size - 1
    settings = {
        "vocab_size": vocab_size,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "cell": kind.cell,
        "context": kind.context,
        "width": _WIDTHS[kind.cell],
        "vector_size": 432,
    }
    return RecurrentConfig(**{**settings, **overrides})


_SETTINGS = {
    True: ("d_model", "width", "num_layers", "vector_size", "attention_size"),
    False: (
        *("d_model", "encoder_layers", "decoder_layers"),
        *("encoder_attention_heads", "decoder_attention_heads"),
        *("encoder_ffn_dim", "decoder_ffn_dim", "dropout"),
    ),
}
"""Widths, layers and heads of models, by whether they are recurrent."""


def settings_of(name: str) -> dict[str, int | float]:
    """Widths, layers and heads of a model as `build` makes it; `build` takes others by these names.

    Raises:
        ValueError: an unknown name.
    """
    kind = _kind_of(name)
    if kind.is_recurrent:
        config: Any = _recurrent_config(kind, 8000)
    else:
        config = transformer_config(8000)
    return {key: getattr(config, key) for key in _SETTINGS[kind.is_recurrent]}


def stepper_for(model: PreTrainedModel) -> ModelStepper:
    """The stepper for one search, over a model in evaluation mode as it is now.

    **The rule.** Nothing of a model is kept from one search to the next. A model that computes what it was built
    to compute gets the fast step, which reads the storage of the parameters themselves: any change of their
    numbers or device counts. All others get the plain step, which calls the model's own ``forward`` as
    ``generate`` does: one with a hook on any module (forward or backward; those that Transformers leaves behind
    do not count), a module of another class or with a ``forward`` of its own (a replaced or wrapped layer, a
    parametrization, pruning before ``prune.remove``), a bias more or less, quantised weights, and every model
    of 16 bits or under ``torch.autocast``, where another order of sums would give other tokens. `is_as_built`
    looks at each module at the start of each search.

    Raises:
        TypeError: a model that is none of the project's.
    """
    kind = model.config.model_type
    if kind not in _STEPPERS:
        known = ", ".join(_STEPPERS)
        raise TypeError(
            f"expected a model of type {known}, got {kind!r}; build one with "
            "seqviz.architectures.build or load a folder of one"
        )
    return _STEPPERS[kind](model) if is_as_built(model) else PlainStepper(model)


def attention_kinds(model: PreTrainedModel) -> tuple[str, ...]:
    """Kinds of attention that a model has.

    "cross" (target looks at source), "encoder" (source at source), "decoder" (target at the target before it).
    """
    if model.config.model_type == MarianConfig.model_type:
        return ("cross", "encoder", "decoder")
    return ("cross",) if model.looks_back else ()


def has_one_vector(model: PreTrainedModel) -> bool:
    """The decoder sees the source through one fixed vector and nothing else."""
    return getattr(model, "has_one_vector", False)


def num_parameters(model: PreTrainedModel) -> int:
    """Trainable parameters, tied ones once.

    The Transformer's sinusoidal positions are not: they are fixed, although a model loaded with
    ``from_pretrained`` marks them as trainable.
    """
    fixed = {
        id(module.weight)
        for module in model.modules()
        if isinstance(module, MarianSinusoidalPositionalEmbedding)
    }
    return sum(p.numel() for p in model.parameters() if p.requires_grad and id(p) not in fixed)
