"""A translator of which something is taken away, beside the one that it was made of.

    translator.without(head=(2, 1)).loss(pairs) - translator.loss(pairs)

The new model is made of new modules over the same numbers: no weight is copied, so what is changed in place, such as
by an optimiser, is changed for both. All else (modules, hooks, number format, device, config) is its own.

Shapes: `B` batch, `S` source length, `T` target length, `D` width, `H` heads, `K` width of a head, `W` recurrent
width, `C` width of the context.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn import functional

from seqviz.architectures import attention_kinds
from seqviz.architectures.context import CONTEXTS
from seqviz.architectures.recurrent_config import RecurrentConfig

Heads = tuple[int, int] | Sequence[tuple[int, int]]
"""Layer and head, counted from 0, or several such pairs."""

NEW_CONTEXTS = ("mean", "nothing")

Translator = TypeVar("Translator", bound=Any)


class Masked(nn.Linear):
    """A linear layer that leaves out some of its inputs and outputs.

    Its ``state_dict`` holds the weights of an ordinary layer that computes the same.

    Attributes:
        inputs, outputs: 1 where a number is used, 0 where it is left out, (D,).
    """

    inputs: Tensor
    outputs: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x * self.inputs, self.weight, self.bias) * self.outputs

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.weight.detach() * self.inputs * self.outputs[:, None]
        if self.bias is not None:
            destination[f"{prefix}bias"] = self.bias.detach() * self.outputs


# ---------------------------------------------------------------------------------------------
# Translators


def without(translator: Translator, head: Heads, kind: str) -> Translator:
    """See `Translator.without`."""
    kinds = attention_kinds(translator.model)
    if kind not in kinds:
        has = f"one of {', '.join(kinds)}" if kinds else "a model with attention"
        advice = "choose one" if kinds else "its decoder cannot look back, see with_context"
        raise ValueError(f"expected {has}, got {kind!r} of {translator.name}; {advice}")
    heads = _pairs(head)
    said = f"without {kind} head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"
    model = shared(translator.model)
    if _is_recurrent(model):
        _check_place(heads, [1])
        _set_context(model, "nothing")
    else:
        attentions = _attentions(model, kind)
        _check_place(heads, [attention.num_heads for attention in attentions])
        for layer, number in heads:
            _silence(attentions[layer], number)
    return _named(translator, model, said)


def with_context(translator: Translator, context: str) -> Translator:
    """See `Translator.with_context`."""
    if context not in NEW_CONTEXTS:
        raise ValueError(
            f"expected context to be one of {', '.join(NEW_CONTEXTS)}, got {context!r}"
        )
    model = shared(translator.model)
    if _is_recurrent(model):
        if context == "mean" and model.has_one_vector:
            raise ValueError(
                f"expected a model that reads the source's states for the context 'mean', got "
                f"{translator.name}, which reads one vector; use with_context('nothing')"
            )
        _set_context(model, context)
    else:
        for attention in _attentions(model, "cross"):
            if context == "mean":
                _masked(attention, "q_proj").outputs.zero_()  # equal scores, equal weights
            else:
                _masked(attention, "out_proj").inputs.zero_()
    return _named(translator, model, f"with the context {context!r}")


def _named(translator: Translator, model: Any, said: str) -> Translator:
    """A translator like this one, with another model and a name that says what was done."""
    changed = copy.copy(translator)
    changed.model = model.eval()
    changed.tokenizer = copy.deepcopy(translator.tokenizer)
    changed.name = f"{translator.name} {said}"
    changed.notes = (*translator.notes, f"not as it was trained: {said}")
    changed.training = copy.deepcopy(translator.training)
    if changed.training:
        changed.training["model"] = changed.name
        changed.training.pop("weights_sha256", None)  # no weights on any disk
    return changed


# ---------------------------------------------------------------------------------------------
# Models


def shared(model: Any) -> Any:
    """A model of new modules over the same numbers.

    Parameters are new, too, so that neither gradients nor a change of device or number format touch the other's.
    """
    same: dict[int, Any] = {}
    for module in model.modules():
        for tensor in (
            *module._parameters.values(),
            *module._buffers.values(),
            *vars(module).values(),
        ):
            if isinstance(tensor, Tensor):
                same.setdefault(id(tensor), _again(tensor))
    return copy.deepcopy(model, same)


def _again(tensor: Tensor) -> Tensor:
    if type(tensor) is not nn.Parameter:
        return tensor
    return nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


def _is_recurrent(model: Any) -> bool:
    return model.config.model_type == RecurrentConfig.model_type


def _set_context(model: Any, context: str) -> None:
    """Give a recurrent model another context, as if its config had said so."""
    decoder, config = model.model.decoder, model.config
    new = CONTEXTS[context](config.width, config.vector_size, config.attention_size)
    if new.size < decoder.context.size:  # what is left reads the same weights, those of the state
        combine, used = _ordinary(decoder, "combine"), config.width + new.size
        left = combine.weight.detach()[:, :used]
        combine.weight = nn.Parameter(left, requires_grad=combine.weight.requires_grad)
        combine.in_features = used
    decoder.attention = new.eval()
    config.context = context


def _attentions(model: Any, kind: str) -> list[Any]:
    """The Transformer's attentions of a kind, layer by layer."""
    if kind == "encoder":
        return [layer.self_attn for layer in model.model.encoder.layers]
    name = {"cross": "encoder_attn", "decoder": "self_attn"}[kind]
    return [getattr(layer, name) for layer in model.model.decoder.layers]


def _silence(attention: Any, head: int) -> None:
    """Zero what a head hands to the output projection."""
    kept = _masked(attention, "out_proj").inputs  # (D,)
    kept.view(attention.num_heads, -1)[head] = 0


def _masked(parent: nn.Module, name: str) -> Masked:
    """A linear layer as a `Masked` one, over the same weights; one that is masked already stays so."""
    linear = _ordinary(parent, name)
    if not isinstance(linear, Masked):
        linear.__class__ = Masked
        for mask, size in (("inputs", linear.in_features), ("outputs", linear.out_features)):
            linear.register_buffer(mask, linear.weight.new_ones(size), persistent=False)
    else:  # `shared` gave it the masks of the model that it was made of
        for mask in ("inputs", "outputs"):
            setattr(linear, mask, getattr(linear, mask).clone())
    assert isinstance(linear, Masked)
    return linear


def _ordinary(parent: nn.Module, name: str) -> nn.Linear:
    """A linear layer whose weights are numbers of its own and nothing else.

    Raises:
        TypeError: a wrapped, quantised, pruned or patched one.
    """
    linear = getattr(parent, name)
    known = type(linear) in (nn.Linear, Masked) and "forward" not in vars(linear)
    if not known or type(linear._parameters.get("weight")) is not nn.Parameter:
        raise TypeError(
            f"expected {name} to be an ordinary linear layer, got {type(linear).__name__} with changes; "
            "merge adapters, or remove prunings and patches, before something is taken away"
        )
    return linear


def _pairs(head: Heads) -> list[tuple[int, int]]:
    """Pairs of layer and head in order, each once."""
    try:
        given: list[Any] = list(head)
        pairs = [given] if given and not isinstance(given[0], Sequence) else given
        whole = {(operator.index(layer), operator.index(number)) for layer, number in pairs}
    except (TypeError, ValueError):
        whole = set()
    if not whole:
        raise ValueError(
            f"expected head as (layer, head), counted from 0, or a list of such pairs, got {head!r}"
        )
    return sorted(whole)


def _check_place(heads: list[tuple[int, int]], counts: list[int]) -> None:
    """Raise for a layer or head that there is not; `counts` are the numbers of heads by layer."""
    for layer, head in heads:
        for name, number, count in (
            ("layer", layer, len(counts)),
            ("head", head, counts[min(max(layer, 0), len(counts) - 1)]),
        ):
            if not 0 <= number < count:
                has = f"0 to {count - 1}" if count > 1 else "0, the only one"
                raise IndexError(f"expected {name} {has}, got {number}")
