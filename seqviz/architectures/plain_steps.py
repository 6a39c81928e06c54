"""Steps through a model's own modules, for a model that does not compute what it was built to compute.

Shapes: `N` rows (sentences times beams), `T` steps so far, `S` source length, `H` heads, `L` layers, `V`
vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as torch_modules
from transformers import PreTrainedModel
from transformers.models.marian import modeling_marian as marian
from transformers.utils import output_capturing

from seqviz.architectures import context, recurrent, recurrent_hub, transformer

_FORWARDS: dict[type[nn.Module], Any] = {
    kind: kind.forward
    for kind in (
        marian.MarianMTModel,
        transformer.MarianMTModel,
        transformer.Positions,
        marian.MarianModel,
        marian.MarianEncoder,
        marian.MarianDecoder,
        marian.MarianEncoderLayer,
        marian.MarianDecoderLayer,
        marian.MarianAttention,
        marian.MarianSinusoidalPositionalEmbedding,
        recurrent_hub.RecurrentForConditionalGeneration,
        recurrent_hub.RecurrentModel,
        recurrent.RecurrentEncoder,
        recurrent.RecurrentDecoder,
        *context.CONTEXTS.values(),
        nn.ModuleList,
        nn.Embedding,
        nn.LayerNorm,
        nn.Linear,
        nn.LSTM,
        nn.RNN,
        nn.ReLU,
        nn.SiLU,
        nn.GELU,
    )
}
"""What the modules of the models do, as it was when this file was read."""

_WITHOUT_BIAS = frozenset(
    ("lm_head", "combine", "vector_to_input", "query_projection", "key_projection", "energy")
)
_HOOKS = ("_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{kind}" for kind in ("_forward_hooks", *_HOOKS))


def is_as_built(model: PreTrainedModel) -> bool:
    """Whether a model computes what its class says, in 32 bits or more; see `stepper_for`."""
    if any(getattr(torch_modules, kind) for kind in _GLOBAL_HOOKS):
        return False
    if model.dtype not in (torch.float32, torch.float64):
        return False
    if torch.is_autocast_enabled(model.device.type):
        return False
    waiting: list[tuple[str, nn.Module]] = [("", model)]
    while waiting:
        name, module = waiting.pop()
        if not _is_as_built(name, module):
            return False
        waiting += module._modules.items()  # type: ignore[arg-type]  # none of ours is None
    return True


def _is_as_built(name: str, module: nn.Module) -> bool:
    kind, own = type(module), module.__dict__
    if _FORWARDS.get(kind) is not kind.forward or "forward" in own:
        return False
    if own["_forward_hooks"] and not all(map(_is_of_library, own["_forward_hooks"].values())):
        return False
    if any(own[hooks] for hooks in _HOOKS):
        return False
    if kind is nn.Linear:
        weight = own["_parameters"].get("weight")
        without_bias = own["_parameters"].get("bias") is None
        # Quantised weights are tensors of other classes.
        return type(weight) is nn.Parameter and without_bias == (name in _WITHOUT_BIAS)
    if kind is nn.Embedding:
        return own["max_norm"] is None
    if kind is nn.RNN:
        return own["mode"] == "RNN_TANH" and _is_usual(module)
    return kind is not nn.LSTM or _is_usual(module)


def _is_usual(layer: Any) -> bool:
    return layer.bias and layer.batch_first and not (layer.bidirectional or layer.proj_size)


def _is_of_library(hook: Any) -> bool:
    """Transformers' own hooks, which stay on a model that was asked for attention, change nothing."""
    return getattr(hook, "__module__", None) == output_capturing.__name__


@dataclass
class PlainState:
    """What a search over a model's own `forward` carries.

    Attributes:
        encoded: what the encoder returned.
        mask: 1 where a source token is real, (N, S).
        cache: the model's own, after the steps so far.
        seen: outputs of the steps, if their attention is recorded.
    """

    encoded: Any
    mask: Tensor
    cache: Any = None
    seen: list[Any] | None = None


class PlainStepper:
    """Steps as Transformers' ``generate`` takes them: the model itself is called, with its hooks."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model: Any = model

    @torch.no_grad()
    def start(
        self, input_ids: Tensor, attention_mask: Tensor, max_steps: int, *, record: bool = False
    ) -> PlainState:
        """See `ModelStepper.start`."""
        encoded = self.model.get_encoder()(
            input_ids=input_ids, attention_mask=attention_mask, output_attentions=record
        )
        return PlainState(encoded, attention_mask, seen=[] if record else None)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: PlainState) -> Tensor:
        """See `Stepper.step`."""
        output = self.model(
            attention_mask=state.mask,
            decoder_input_ids=tokens[:, None],
            encoder_outputs=state.encoded,
            cache=state.cache,
            use_cache=True,
            output_attentions=state.seen is not None,
        )
        state.cache = output.cache
        if state.seen is not None:
            state.seen.append(output)
        return output.logits[:, -1]

    def attention(self, state: PlainState) -> dict[str, Tensor]:
        """See `ModelStepper.attention`."""
        assert state.seen is not None
        steps = len(state.seen)
        found = {"encoder": state.encoded.attentions}
        for kind in ("cross", "decoder"):
            # Of each step and layer (1, H, 1, S), or as many as there were targets so far.
            each = [getattr(output, f"{kind}_attentions", None) or () for output in state.seen]
            found[kind] = [
                torch.cat([functional.pad(w, (0, _missing(kind, w, steps))) for w in layer], dim=2)
                for layer in zip(*each, strict=True)
            ]
        return {kind: torch.cat(list(layers)) for kind, layers in found.items() if layers}

    def select(self, state: PlainState, rows: Tensor, *, same_sources: bool = False) -> None:
        """See `Stepper.select`."""
        if state.cache is not None:
            state.cache.reorder_cache(rows)
        if same_sources:
            return
        state.mask = state.mask.index_select(0, rows)
        kept = {
            name: value.index_select(0, rows)
            for name, value in state.encoded.items()
            if isinstance(value, Tensor)
        }
        state.encoded = type(state.encoded)(**kept)


def _missing(kind: str, weights: Tensor, steps: int) -> int:
    return steps - weights.shape[-1] if kind == "decoder" else 0
