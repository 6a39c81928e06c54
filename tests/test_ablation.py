"""A part is taken away: what is left computes what a hand would, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_live_weights import TEXTS, check_against_the_model, outputs

import seqviz
from seqviz import MODEL_NAMES, Translator, architectures
from seqviz.architectures import is_as_built

each_model = pytest.mark.parametrize("name", MODEL_NAMES)
KINDS = ("cross", "encoder", "decoder")


@pytest.fixture
def translator_of(tiny_model: Any, tiny_tokenizer: Any) -> Callable[..., Translator]:
    def make(name: str, **overrides: Any) -> Translator:
        return Translator(tiny_model(name, **overrides), tiny_tokenizer, name=name)

    return make


def attentions(model: Any, kind: str) -> list[Any]:
    layers = model.model.encoder.layers if kind == "encoder" else model.model.decoder.layers
    return [layer.encoder_attn if kind == "cross" else layer.self_attn for layer in layers]


def zero_head(module: Any, head: int, heads: int) -> None:
    """By a hook of one's own: what a head hands to the output projection is zero."""

    def before(projection: Any, args: Any) -> Any:
        x = args[0].clone()
        width = x.shape[-1] // heads
        x[..., head * width : (head + 1) * width] = 0
        return (x,)

    module.out_proj.register_forward_pre_hook(before)


# ---------------------------------------------------------------------------------------------
# Heads


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_of_an_attention_is_the_sum_over_the_other_heads(
    kind: str, translator_of: Any
) -> None:
    """By hand: b + Σ_h softmax(q_h k_hᵀ / √K) v_h W_h over all heads h but the one."""
    translator = translator_of("transformer")
    module = attentions(translator.without((1, 0), kind).model, kind)[1]
    untouched = attentions(translator.model, kind)[1]
    x, memory = torch.randn(1, 3, 32), torch.randn(1, 5, 32)
    with torch.no_grad():
        q, k, v = (
            projection(given)[0].view(-1, 2, 16).transpose(0, 1)  # (H, length, K)
            for projection, given in (
                (untouched.q_proj, x),
                (untouched.k_proj, memory),
                (untouched.v_proj, memory),
            )
        )
        of_output = untouched.out_proj.weight.T.view(2, 16, 32)
        each = [(q[h] @ k[h].T / 4).softmax(-1) @ v[h] @ of_output[h] for h in (0, 1)]
        for attention, heads in ((module, (1,)), (untouched, (0, 1))):
            found, _ = attention(x, memory)
            by_hand = untouched.out_proj.bias + sum(each[h] for h in heads)
            torch.testing.assert_close(found[0], by_hand, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_head(kind: str, translator_of: Any) -> None:
    """To the bit what a hook gives that zeroes the head; tokens are those of `generate`."""
    translator = translator_of("transformer")
    before = outputs(translator)
    ablated = translator.without(head=(1, 0), kind=kind)
    assert outputs(ablated) != before
    check_against_the_model(ablated)

    hooked = translator_of("transformer")
    zero_head(attentions(hooked.model, kind)[1], 0, 2)
    assert outputs(ablated) == outputs(hooked)
    for one, other in zip(ablated.losses([TEXTS[:2]]), hooked.losses([TEXTS[:2]])):
        assert one.tolist() == other.tolist()
    assert outputs(translator) == before and is_as_built(translator.model)


def test_without_several_heads_at_once_and_one_after_another(translator_of: Any) -> None:
    translator = translator_of("transformer")
    at_once = translator.without([(0, 1), (1, 0), (0, 1)])
    in_turn = translator.without((1, 0)).without((0, 1))
    assert outputs(at_once) == outputs(in_turn) != outputs(translator.without((1, 0)))
    assert at_once.name == "transformer without cross heads (0, 1), (1, 0)"
    same_layer = translator.without((1, 0)).without((1, 1))
    assert outputs(same_layer) == outputs(translator.without([(1, 0), (1, 1)]))
    assert outputs(translator.without((1, 0))) != outputs(same_layer)
    numbers = np.array([1, 0])
    assert outputs(translator.without(numbers)) == outputs(translator.without((1, 0)))


def test_heads_are_counted_as_in_the_maps(translator_of: Any) -> None:
    """A head whose values are zero finds nothing: without it nothing changes, without another much."""
    translator = translator_of("transformer", encoder_attention_heads=4)
    module = attentions(translator.model, "encoder")[0]
    with torch.no_grad():
        for projection in (module.v_proj.weight, module.v_proj.bias):
            projection[2 * 8 : 3 * 8] = 0
    translation = translator.translate(TEXTS[0])
    map_ = translation.attention("encoder")
    assert (map_.num_layers, map_.num_heads) == (2, 4)
    for head in range(4):
        found = translator.without((0, head), "encoder").translate(TEXTS[0])
        same = found.token_log_probs == pytest.approx(translation.token_log_probs, abs=1e-5)
        assert same == (head == 2)


def test_maps_still_show_where_a_silent_head_looks(translator_of: Any) -> None:
    translator = translator_of("transformer")
    ablated = translator.without((1, 1))
    translation = ablated.translate(TEXTS[0])
    whole = translator.attend(_ids(translator, TEXTS[0]), translation.target_ids)
    found = translation.attentions["cross"]
    assert found.sum(-1) == pytest.approx(1, abs=1e-5)
    # The first layer knows nothing of it, nor does the second before its own output.
    assert abs(found - whole["cross"]).max() < 1e-4


def _ids(translator: Translator, text: str) -> list[int]:
    return translator.tokenizer(text, add_special_tokens=False).input_ids


def test_the_one_head_of_the_lstm(translator_of: Any) -> None:
    translator = translator_of("lstm-attention")
    ablated = translator.without(head=(0, 0))
    assert outputs(ablated) == outputs(translator.with_context("nothing")) != outputs(translator)
    assert ablated.attention_kinds == ()


# ---------------------------------------------------------------------------------------------
# Contexts


@each_model
def test_nothing_of_the_source_at_the_output(name: str, translator_of: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    ablated = translator.with_context("nothing")
    check_against_the_model(ablated)
    assert outputs(ablated) != before == outputs(translator)

    zeroed = translator_of(name)
    if name == "transformer":
        for module in attentions(zeroed.model, "cross"):
            for head in (0, 1):
                zero_head(module, head, 2)
    else:
        zeroed.model.model.decoder.context.register_forward_hook(
            lambda module, args, output: (torch.zeros_like(output[0]), output[1])
        )
        assert is_as_built(ablated.model)  # the fast step
        assert ablated.has_one_vector and ablated.attention_kinds == ()
    for one, other in zip(outputs(ablated), outputs(zeroed)):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=1e-4)


def test_the_mean_of_the_states_is_the_model_of_that_name(
    translator_of: Any, tiny_model: Any, tiny_tokenizer: Any
) -> None:
    translator = translator_of("lstm-attention")
    ablated = translator.with_context("mean")
    assert is_as_built(ablated.model)
    check_against_the_model(ablated)
    built = tiny_model("lstm-mean")
    state = translator.model.state_dict()
    built.load_state_dict({key: state[key] for key in built.state_dict()})
    assert outputs(ablated) == outputs(Translator(built, tiny_tokenizer)) != outputs(translator)
    assert outputs(ablated.with_context("mean")) == outputs(ablated)
    nothing = translator.with_context("nothing")
    assert outputs(ablated.with_context("nothing")) == outputs(nothing)


def test_the_mean_of_the_states_in_every_head(translator_of: Any) -> None:
    """By hand: without scores the values of all real tokens count the same, whatever the query."""
    translator = translator_of("transformer")
    ablated = translator.with_context("mean")
    check_against_the_model(ablated)
    found = ablated.translate(TEXTS[0]).attention("cross").weights
    assert found == pytest.approx(1 / found.shape[-1], abs=1e-6)

    module, whole = (attentions(t.model, "cross")[0] for t in (ablated, translator))
    memory = torch.randn(1, 5, 32)
    with torch.no_grad():
        given, _ = module(torch.randn(1, 3, 32), memory)
        by_hand = whole.out_proj(whole.v_proj(memory).mean(1))
    torch.testing.assert_close(given, by_hand.expand(1, 3, 32), atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------------------------------------
# Two translators


ABLATIONS: dict[str, Callable[[Translator], Translator]] = {
    "rnn": lambda t: t.with_context("nothing"),
    "lstm": lambda t: t.with_context("nothing"),
    "lstm-attention": lambda t: t.with_context("mean"),
    "transformer": lambda t: t.with_context("mean").without((0, 1), "decoder"),
}


@each_model
def test_no_weight_is_copied_and_nothing_else_is_shared(name: str, translator_of: Any) -> None:
    translator = translator_of(name)
    before = outputs(translator)
    ablated = ABLATIONS[name](translator)
    after = outputs(ablated)
    storages = [
        {parameter.untyped_storage().data_ptr() for parameter in t.model.parameters()}
        for t in (ablated, translator)
    ]
    assert storages[0] <= storages[1]
    assert not {id(m) for m in ablated.model.modules()} & {
        id(m) for m in translator.model.modules()
    }

    ids = torch.randint(2, 200, (2, 6))
    ablated.model(input_ids=ids, labels=ids).loss.backward()
    assert all(parameter.grad is None for parameter in translator.model.parameters())
    for module in ablated.model.modules():
        module.register_forward_hook(lambda *_: None)
    assert is_as_built(translator.model)
    ablated.model.config.use_cache = False
    ablated.tokenizer.padding_side = "left"
    ablated.model.half()
    assert outputs(translator) == before
    assert translator.model.dtype == torch.float32 and translator.name == name
    translator.model.double()
    assert outputs(ABLATIONS[name](translator_of(name))) == after  # from equal weights, equal again


@each_model
def test_the_whole_one_may_go_on_learning(name: str, translator_of: Any) -> None:
    """What is changed in place is changed for both."""
    translator = translator_of(name)
    ablated = ABLATIONS[name](translator)
    with torch.no_grad():
        for parameter in translator.model.parameters():
            if parameter.requires_grad:
                parameter.mul_(0.9)
    assert outputs(ablated) == outputs(ABLATIONS[name](translator))
    check_against_the_model(ablated)


def test_hooks_stay_on_and_a_trained_one_stays_silent(translator_of: Any) -> None:
    translator = translator_of("transformer")
    calls: list[int] = []
    translator.model.lm_head.register_forward_hook(lambda *_: calls.append(1))
    ablated = translator.without((0, 0))
    ablated.translate(TEXTS[0])
    assert calls
    optimiser = torch.optim.SGD(ablated.model.parameters(), lr=0.1)
    ids = torch.randint(2, 200, (2, 6))
    ablated.model(input_ids=ids, labels=ids).loss.backward()
    optimiser.step()
    assert outputs(ablated) == outputs(ablated.without((0, 0)))


@each_model
def test_saved_and_loaded(name: str, translator_of: Any, tmp_path: Any) -> None:
    """The folder holds what is left, for every tool."""
    translator = translator_of(name)
    translator.training = {"model": name, "dev_loss": 3.0, "weights_sha256": "of the whole"}
    ablated = ABLATIONS[name](translator)
    assert "weights_sha256" not in ablated.training
    assert translator.training["weights_sha256"] == "of the whole"
    ablated.save_pretrained(tmp_path)
    again = seqviz.load(tmp_path)
    assert again.name == ablated.name != name
    assert is_as_built(again.model)
    for one, other in zip(outputs(again), outputs(ablated)):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=1e-4)


def test_the_name_and_a_note_say_it(translator_of: Any) -> None:
    ablated = translator_of("transformer").without((1, 0), "encoder")
    assert ablated.name == "transformer without encoder head (1, 0)"
    assert ablated.notes == ("not as it was trained: without encoder head (1, 0)",)
    assert ablated.translate(TEXTS[0]).model == ablated.name
    assert translator_of("lstm").with_context("nothing").name == "lstm with the context 'nothing'"


# ---------------------------------------------------------------------------------------------
# The change of loss


@each_model
def test_loss_is_the_mean_over_pieces(name: str, translator_of: Any) -> None:
    translator = translator_of(name)
    pairs = [(TEXTS[0], "Le vieux marin a peint le pont."), (TEXTS[1], "Personne !")]
    ids = [(_ids(translator, source), _ids(translator, target)) for source, target in pairs]
    nats = []
    for source, target in ids:
        with torch.no_grad():
            logits = translator.model(
                input_ids=torch.tensor([[*source, translator.tokenizer.eos_token_id]]),
                labels=torch.tensor([target]),
            ).logits[0]
        nats += [-float(row.log_softmax(-1)[id_]) for row, id_ in zip(logits, target)]
    assert translator.loss(pairs) == pytest.approx(sum(nats) / len(nats), abs=1e-4)
    assert ABLATIONS[name](translator).loss(pairs) != pytest.approx(
        translator.loss(pairs), abs=1e-3
    )
    with pytest.raises(ValueError, match="expected pairs of texts within the caps, got none; give"):
        translator.loss([])


def test_what_looks_back_matters_most(models_folder: Any) -> None:
    """On the shipped weights: nothing of the source costs more than its mean, the mean more than nothing taken."""
    pairs = [("The cat sleeps under the table.", "Le chat dort sous la table.")]
    for name in ("lstm-attention", "transformer"):
        translator = seqviz.load(models_folder / name)
        mean, nothing = (translator.with_context(kind).loss(pairs) for kind in ("mean", "nothing"))
        assert translator.loss(pairs) < min(mean, nothing)


# ---------------------------------------------------------------------------------------------
# Errors


@pytest.mark.parametrize(
    ("name", "head", "kind", "error", "says"),
    [
        (
            "lstm",
            (0, 0),
            "cross",
            ValueError,
            "a model with attention, got 'cross' of lstm; its dec",
        ),
        (
            "lstm-attention",
            (0, 0),
            "encoder",
            ValueError,
            "one of cross, got 'encoder' of lstm-att",
        ),
        ("transformer", (0, 0), "self", ValueError, "one of cross, encoder, decoder, got 'self'"),
        ("transformer", (2, 0), "cross", IndexError, "expected layer 0 to 1, got 2"),
        ("transformer", (0, -1), "cross", IndexError, "expected head 0 to 1, got -1"),
        ("lstm-attention", (0, 1), "cross", IndexError, "expected head 0, the only one, got 1"),
        ("transformer", 3, "cross", ValueError, r"\(layer, head\), counted from 0, or .*, got 3"),
        ("transformer", [], "cross", ValueError, r"got \[\]"),
        ("transformer", (0, 1, 1), "cross", ValueError, r"got \(0, 1, 1\)"),
        ("transformer", (0, 0.5), "cross", ValueError, r"got \(0, 0.5\)"),
        ("transformer", "01", "cross", ValueError, "got '01'"),
    ],
)
def test_heads_that_there_are_not(
    name: str, head: Any, kind: str, error: Any, says: str, translator_of: Any
) -> None:
    with pytest.raises(error, match=says):
        translator_of(name).without(head, kind)


def test_contexts_that_there_are_not(translator_of: Any) -> None:
    with pytest.raises(ValueError, match="context to be one of mean, nothing, got 'fixed'"):
        translator_of("lstm").with_context("fixed")
    with pytest.raises(ValueError, match=r"got rnn, which reads one vector; use .*nothing"):
        translator_of("rnn").with_context("mean")


def test_layers_that_are_no_longer_their_own(translator_of: Any) -> None:
    translator = translator_of("transformer")
    projection = attentions(translator.model, "cross")[0].out_proj
    projection.forward = lambda x: x  # type: ignore[method-assign]
    with pytest.raises(TypeError, match="out_proj to be an ordinary linear layer, got Linear with"):
        translator.without((0, 0))
    translator.without((1, 0))
    assert architectures.attention_kinds(translator.model) == KINDS
