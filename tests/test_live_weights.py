"""`translate` reads the model as it is now: whatever was done to it, the answer is that of `generate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune

from seqviz import MODEL_NAMES, Translator
from seqviz.architectures import is_as_built
from seqviz.translating.inputs import output_limit

TEXTS = [
    "The old sailor painted the bridge.",
    "Nobody!",
    "Our president wants to buy an apple today.",
]


def linears(model: Any) -> dict[str, nn.Linear]:
    """Linear layers of the decoder by name."""
    found = model.model.decoder.named_modules()
    return {name: module for name, module in found if isinstance(module, nn.Linear)}


def one_linear(model: Any) -> nn.Linear:
    decoder = model.model.decoder
    return decoder.layers[1].fc1 if hasattr(decoder, "layers") else decoder.combine


def replace_linear(model: Any, name: str, new: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.model.decoder.get_submodule(parent), last, new)


def trainable(model: Any) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def noise(parameter: torch.Tensor) -> torch.Tensor:
    return 0.3 * parameter.std() * torch.randn_like(parameter)


# ---------------------------------------------------------------------------------------------
# Changes of numbers: the fast step goes on, with the new ones


def zeroed(model: Any) -> None:
    for parameter in one_linear(model).parameters():
        parameter.data.mul_(0)


def given_new_data(model: Any) -> None:
    for linear in linears(model).values():
        linear.weight.data = linear.weight.data + noise(linear.weight.data)


def given_new_parameters(model: Any) -> None:
    for linear in linears(model).values():
        linear.weight = nn.Parameter(linear.weight.detach() + noise(linear.weight.detach()))


def noisy(model: Any) -> None:
    for parameter in trainable(model):
        parameter.data.add_(noise(parameter.data))


def tuned(model: Any) -> None:
    optimiser = torch.optim.AdamW(trainable(model), lr=0.05)
    ids = torch.randint(2, 200, (2, 6))
    model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss.backward()
    optimiser.step()


def of_another_state_dict(model: Any) -> None:
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for name, value in state.items():
        if name.endswith("weight") and "embed_positions" not in name:
            value += noise(value)
    for name in ("lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"):
        state[f"{name}.weight"] = state["model.shared.weight"]
    model.load_state_dict(state)


def pruned_for_good(model: Any) -> None:
    for linear in linears(model).values():
        prune.l1_unstructured(linear, "weight", amount=0.6)
        prune.remove(linear, "weight")


def of_fewer_layers(model: Any) -> None:
    decoder = model.model.decoder
    if hasattr(decoder, "layers"):
        decoder.layers = decoder.layers[:1]
    else:
        decoder.recurrence.weight_hh_l0.data.mul_(-1)


CHANGES = [
    zeroed,
    given_new_data,
    given_new_parameters,
    noisy,
    tuned,
    of_another_state_dict,
    pruned_for_good,
    of_fewer_layers,
]


# ---------------------------------------------------------------------------------------------
# Changes of what is computed: the plain path through the modules


def pruned(model: Any) -> None:
    for linear in linears(model).values():
        prune.l1_unstructured(linear, "weight", amount=0.6)


def hooked(model: Any) -> None:
    """What the decoder reads of the source is zero."""

    def zero(module: nn.Module, args: Any, output: Any) -> Any:
        return (torch.zeros_like(output[0]), *output[1:])

    decoder = model.model.decoder
    for layer in getattr(decoder, "layers", ()):
        layer.encoder_attn.register_forward_hook(zero)
    if not hasattr(decoder, "layers"):
        decoder.context.register_forward_hook(zero)


def hooked_before(model: Any) -> None:
    one_linear(model).register_forward_pre_hook(lambda module, args: (-args[0],))


def adapted(model: Any) -> None:
    class Adapted(nn.Module):
        """A linear layer with a change of low rank beside it, as in LoRA."""

        def __init__(self, base: nn.Linear) -> None:
            super().__init__()
            self.base = base
            self.down = nn.Linear(base.in_features, 2, bias=False)
            self.up = nn.Linear(2, base.out_features, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + 2 * self.up(self.down(x))

    for name, linear in linears(model).items():
        replace_linear(model, name, Adapted(linear))


def subclassed(model: Any) -> None:
    class Doubled(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    one_linear(model).__class__ = Doubled


def with_another_bias(model: Any) -> None:
    old = one_linear(model)
    new = nn.Linear(old.in_features, old.out_features, bias=old.bias is None)
    new.weight = old.weight
    if new.bias is not None:
        nn.init.normal_(new.bias, std=2)
    name = next(name for name, linear in linears(model).items() if linear is old)
    replace_linear(model, name, new)


def parametrized(model: Any) -> None:
    class Negated(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return -weight

    parametrize.register_parametrization(one_linear(model), "weight", Negated())


def patched(model: Any) -> None:
    layer = one_linear(model)
    plain = layer.forward
    layer.forward = lambda x: -plain(x)  # type: ignore[method-assign]


def hooked_at_the_end(model: Any) -> None:
    model.lm_head.register_forward_hook(lambda module, args, output: output.roll(1, dims=-1))


REPLACEMENTS = [
    pruned,
    hooked,
    hooked_before,
    adapted,
    subclassed,
    with_another_bias,
    parametrized,
    patched,
    hooked_at_the_end,
]


# ---------------------------------------------------------------------------------------------
# What must hold


def generated(translator: Translator, text: str) -> list[int]:
    """What `generate` of the same model writes, with the end token if it came."""
    model, tokenizer = translator.model, translator.tokenizer
    ids = tokenizer(text, add_special_tokens=False).input_ids
    source = torch.tensor([[*ids, tokenizer.eos_token_id]])
    model.generation_config.max_length = None  # else it warns of two limits
    with torch.inference_mode():
        (found,) = model.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            max_new_tokens=output_limit(len(ids)),
            do_sample=False,
            num_beams=1,
            suppress_tokens=[tokenizer.unk_token_id, tokenizer.pad_token_id],
        ).tolist()
    return found[1:]


def check_against_the_model(translator: Translator, tolerance: float = 1e-4) -> None:
    """Tokens, scores and attention are those of the model as it is."""
    for text in TEXTS:
        found = translator.translate(text)
        assert list(found.target_ids) == generated(translator, text), text
        ids = translator.tokenizer(text, add_special_tokens=False).input_ids
        again = translator.attend(ids, found.target_ids)
        for kind in translator.attention_kinds:
            shown = found.attentions[kind]
            assert shown.shape == again[kind].shape
            assert abs(shown - again[kind]).max() < 10 * tolerance, kind
        steps = translator.candidates(found, len(translator.tokenizer))
        chosen = zip(steps, found.target_ids, found.token_log_probs, strict=True)
        for step, id_, value in chosen:
            of_model = {candidate.token_id: candidate.log_prob for candidate in step}
            assert value == pytest.approx(of_model[id_], abs=tolerance)
    # Beams and batches follow the model too.
    for one, many in zip(
        (translator.translate(text, 3) for text in TEXTS),
        translator.translate(TEXTS, 3),
        strict=True,
    ):
        assert one.target_ids == many.target_ids
        assert many.score == pytest.approx(one.score, abs=10 * tolerance)


@pytest.fixture
def translator_of(tiny_model: Any, tiny_tokenizer: Any) -> Callable[[str], Translator]:
    def make(name: str) -> Translator:
        return Translator(tiny_model(name), tiny_tokenizer, name=name)

    return make


def outputs(translator: Translator) -> list[tuple[Any, ...]]:
    return [(found.target_ids, found.token_log_probs) for found in translator.translate(TEXTS)]


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_numbers_are_read(name: str, change: Any, translator_of: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    change(translator.model)
    assert outputs(translator) != before
    assert is_as_built(translator.model)
    check_against_the_model(translator)


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("change", REPLACEMENTS)
def test_changed_modules_are_called(name: str, change: Any, translator_of: Any) -> None:
    translator = translator_of(name)
    assert is_as_built(translator.model)
    before = outputs(translator)
    change(translator.model)
    assert not is_as_built(translator.model)
    assert outputs(translator) != before
    check_against_the_model(translator)


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_number_format(name: str, dtype: torch.dtype, translator_of: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    translator.model.to(dtype)
    after = [
        (found.target_ids, found.token_log_probs)
        for found in (translator.translate(text) for text in TEXTS)
    ]
    assert after != before
    for text, (ids, _) in zip(TEXTS, after, strict=True):
        assert list(ids) == generated(translator, text)
    if dtype == torch.float64:
        check_against_the_model(translator, 1e-6)
        translator.model.float()
        assert outputs(translator) == before


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_backward_hook_takes_the_plain_path(name: str, translator_of: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    one_linear(translator.model).register_full_backward_hook(lambda *_: None)
    assert not is_as_built(translator.model)
    after = outputs(translator)
    assert [ids for ids, _ in after] == [ids for ids, _ in before]


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_hooks_of_the_library_do_not_count_and_own_ones_can_be_removed(
    name: str, translator_of: Any
) -> None:
    """Transformers hooks a Transformer's layers the first time that attention is asked for."""
    translator = translator_of(name)
    translator.translate(TEXTS[0], 2, attention=True)
    assert is_as_built(translator.model)
    calls: list[int] = []
    handle = one_linear(translator.model).register_forward_hook(lambda *_: calls.append(1))
    found = translator.translate(TEXTS[0])
    assert len(calls) >= len(found.target_ids)
    handle.remove()
    assert is_as_built(translator.model)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_another_model_takes_its_place(name: str, translator_of: Any, tiny_model: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    translator.model = tiny_model(name, seed=3)
    translator.model.set_attn_implementation("eager")
    assert outputs(translator) != before
    check_against_the_model(translator)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_plain_path_is_the_fast_one_in_full(name: str, translator_of: Any) -> None:
    """All kinds of search over both."""
    translator = translator_of(name)
    fast = [translator.translate(TEXTS, beams, attention=True) for beams in (1, 4)]
    one = translator.translate(TEXTS[0])
    translator.model.register_forward_hook(lambda *_: None)
    plain = [translator.translate(TEXTS, beams, attention=True) for beams in (1, 4)]
    pairs = [(a, b) for x, y in zip(fast, plain, strict=True) for a, b in zip(x, y, strict=True)]
    for a, b in [*pairs, (one, translator.translate(TEXTS[0]))]:
        assert a.target_ids == b.target_ids
        assert a.token_log_probs == pytest.approx(b.token_log_probs, abs=1e-4)
        for kind in translator.attention_kinds:
            assert abs(a.attentions[kind] - b.attentions[kind]).max() < 1e-4


def test_unequal_numbers_of_heads(tiny_model: Any, tiny_tokenizer: Any) -> None:
    model = tiny_model("transformer", encoder_attention_heads=4, decoder_attention_heads=2)
    check_against_the_model(Translator(model, tiny_tokenizer, name="transformer"))
