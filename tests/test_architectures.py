"""What the models are: golden values by hand, parity with PyTorch, saving, decoding, learning.

Shapes: `B` batch, `S` source length, `T` target length, `W` recurrent width, `V` vocabulary.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from huggingface_hub.errors import StrictDataclassFieldValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
)

from seqviz import corpus, training
from seqviz.architectures import (
    ABLATION_NAMES,
    MODEL_NAMES,
    attention_kinds,
    build,
    has_one_vector,
    num_parameters,
    stepper_for,
)
from seqviz.architectures.context import CONTEXTS, Attention, Encoded, Fixed, Mean, Nothing
from seqviz.architectures.manners import shift_right
from seqviz.architectures.recurrent import State, reversal
from seqviz.architectures.recurrent_config import RecurrentConfig
from seqviz.architectures.recurrent_hub import PAD_LOGIT, RecurrentCache

RECURRENT_NAMES = ("rnn", "lstm", "lstm-attention", "lstm-mean")
ALL_NAMES = MODEL_NAMES + ABLATION_NAMES
V = 300  # pieces of the tiny tokenizer
PAD = V - 1

each_model = pytest.mark.parametrize("name", MODEL_NAMES)
each_recurrent = pytest.mark.parametrize("name", RECURRENT_NAMES)
property_of_models = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def a_batch(lengths, target_lengths=None, seed=0):
    """Random sources of given lengths, ended and padded, and decoder input of given lengths."""
    random = np.random.default_rng(seed)
    target_lengths = target_lengths or [7] * len(lengths)
    pairs = [
        (random.integers(2, PAD, n - 1), random.integers(2, PAD, t - 1))
        for n, t in zip(lengths, target_lengths, strict=True)
    ]
    batch = corpus.make_batch(pairs, pad_token_id=PAD, eos_token_id=0)
    return {
        "input_ids": torch.from_numpy(batch.input_ids),
        "attention_mask": torch.from_numpy(batch.attention_mask),
        "labels": torch.from_numpy(batch.labels),
    }


def without_labels(batch):
    return {key: value for key, value in batch.items() if key != "labels"}


def decoder_input(labels):
    return shift_right(labels, start_token_id=PAD, pad_token_id=PAD)


# ---------------------------------------------------------------------------------------------
# Sizes


@pytest.fixture(scope="module")
def full_size():
    return {name: build(name, seed=1) for name in MODEL_NAMES}


def test_parameter_counts(full_size):
    counts = {name: num_parameters(model) for name, model in full_size.items()}
    assert counts == {
        "rnn": 7_623_888,
        "lstm": 7_571_984,
        "lstm-attention": 7_682_704,
        "transformer": 7_577_600,
    }
    for first in counts.values():
        for second in counts.values():
            assert abs(first - second) / second < 0.03


def test_lstm_and_its_attention_are_a_minimal_pair(full_size):
    plain = {name: p.shape for name, p in full_size["lstm"].named_parameters()}
    attending = {name: p.shape for name, p in full_size["lstm-attention"].named_parameters()}
    added = set(attending) - set(plain)
    assert set(plain) - set(attending) == set()
    assert all(plain[name] == attending[name] for name in plain)
    assert added == {
        "model.decoder.attention.query_projection.weight",
        "model.decoder.attention.key_projection.weight",
        "model.decoder.attention.energy.weight",
    }


@each_model
def test_ids_and_generation_settings(full_size, name):
    model = full_size[name]
    for settings_ in (model.config, model.generation_config):
        assert settings_.eos_token_id == 0
        assert settings_.pad_token_id == settings_.decoder_start_token_id == 7_999
        assert settings_.bos_token_id is None
    assert model.generation_config.max_length == 201
    assert model.generation_config.num_beams == 1
    assert model.generation_config.forced_eos_token_id is None


@each_model
def test_fresh_weights_know_nothing(full_size, name):
    """The first loss is about ln V: no token is preferred before training."""
    random = np.random.default_rng(0)
    pairs = [(random.integers(2, 7_999, 12), random.integers(2, 7_999, 15)) for _ in range(4)]
    batch = corpus.make_batch(pairs, pad_token_id=7_999, eos_token_id=0)
    with torch.no_grad():
        loss = training.summed_loss(full_size[name], batch, torch.device("cpu")).item()
    assert loss / batch.num_target_tokens == pytest.approx(math.log(8_000), abs=0.15)


def test_no_dropout_by_default(full_size):
    config = full_size["transformer"].config
    assert config.dropout == config.attention_dropout == config.activation_dropout == 0.0
    assert not any(
        isinstance(m, nn.Dropout) for n in RECURRENT_NAMES[:3] for m in full_size[n].modules()
    )


def test_build_depends_on_its_seed_alone():
    first, other, again = (build("lstm", V, seed=s, width=16, d_model=8) for s in (5, 6, 5))
    weights = [m.model.decoder.combine.weight for m in (first, other, again)]
    assert torch.equal(weights[0], weights[2]) and not torch.equal(weights[0], weights[1])
    assert first.training


def test_unknown_name():
    with pytest.raises(ValueError, match="expected a model name, one of rnn, lstm, .*; got 'gru'"):
        build("gru")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"cell": "gru"}, "expected cell to be one of lstm, rnn, got 'gru'"),
        (
            {"context": "null"},
            "expected context to be one of fixed, attention, mean, nothing, none, got 'null'",
        ),
        ({"width": 47}, "expected an even width .*, got 47; try 48"),
        ({"num_layers": 0}, "expected num_layers of 1 or more, got 0"),
    ],
)
def test_bad_settings(bad, message):
    with pytest.raises(ValueError, match=message):
        RecurrentConfig(**bad)


@pytest.mark.parametrize("field", ["width", "num_layers", "vocab_size", "forget_bias"])
def test_settings_of_a_wrong_type(field):
    with pytest.raises(
        StrictDataclassFieldValidationError, match=f"Validation error for field '{field}'"
    ):
        RecurrentConfig(**{field: "48"})


# ---------------------------------------------------------------------------------------------
# Initialisation


@pytest.mark.parametrize("bias", [1.0, 2.5])
def test_forget_gates_start_open(bias):
    """PyTorch keeps the gates in the order input, forget, cell, output."""
    model = build("lstm", V, seed=1, width=16, d_model=8, vector_size=8, forget_bias=bias)
    layers = [m for m in model.modules() if isinstance(m, nn.LSTM)]
    assert len(layers) == 5  # 2 forward, 2 backward, and the decoder
    for layer in layers:
        width = layer.hidden_size
        for number in range(layer.num_layers):
            total = getattr(layer, f"bias_ih_l{number}") + getattr(layer, f"bias_hh_l{number}")
            assert total.tolist() == [0.0] * width + [bias] * width + [0.0] * 2 * width


def test_rnn_biases_start_at_zero():
    model = build("rnn", V, seed=1, width=16, d_model=8, vector_size=8)
    layers = [m for m in model.modules() if isinstance(m, nn.RNN)]
    assert len(layers) == 5
    assert all(not p.any() for m in layers for n, p in m.named_parameters() if "bias" in n)


@pytest.mark.parametrize("name", ["lstm", "rnn"])
def test_recurrent_weights_start_orthogonal(name):
    model = build(name, V, seed=1, width=16, d_model=8, vector_size=8)
    blocks = model.model.decoder.recurrence.weight_hh_l1.split(16)
    assert len(blocks) == (4 if name == "lstm" else 1)
    for block in blocks:
        torch.testing.assert_close(block @ block.T, torch.eye(16))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_padding_starts_zero_and_masked(name):
    model = build(name, V, seed=1, d_model=16)
    assert not model.get_input_embeddings().weight[PAD].any()
    assert model.get_input_embeddings().weight[:PAD].abs().sum(1).min() > 0
    bias = model.final_logits_bias
    assert bias[0, PAD] == PAD_LOGIT and not bias[0, :PAD].any()


# ---------------------------------------------------------------------------------------------
# Golden values by hand


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, w_ih, w_hh, b_ih, b_hh):
    """Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000; all of one token."""
    i, f, g, o = np.split(w_ih @ x + b_ih + w_hh @ h + b_hh, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def rnn_step(x, h, c, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(w_ih @ x + b_ih + w_hh @ h + b_hh), c


class ByHand:
    """A recurrent model, one token and one sentence at a time, in double precision.

    Written from the equations at the top of ``recurrent.py``, not from its code.
    """

    def __init__(self, model):
        self.w = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
        self.bias = model.final_logits_bias.double().numpy()[0]
        self.config = model.config
        self.step = {"lstm": lstm_step, "rnn": rnn_step}[model.config.cell]

    def cell(self, prefix, number, x, h, c):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return self.step(x, h, c, *(self.w[f"{prefix}.{name}_l{number}"] for name in names))

    def embed(self, token):
        return self.w["model.shared.weight"][token] * math.sqrt(self.config.d_model)

    def run(self, prefix, inputs):
        h = c = np.zeros(self.config.width // 2)
        states = []
        for x in inputs:
            h, c = self.cell(prefix, 0, x, h, c)
            states.append(h)
        return states

    def encode(self, source):
        states = [self.embed(token) for token in source]
        for layer in range(self.config.num_layers):
            ahead = self.run(f"model.encoder.forward_layers.{layer}", states)
            behind = self.run(f"model.encoder.backward_layers.{layer}", states[::-1])[::-1]
            states = [np.concatenate(pair) for pair in zip(ahead, behind, strict=True)]
        weight, bias = (self.w[f"model.encoder.to_vector.{n}"] for n in ("weight", "bias"))
        vector = np.tanh(weight @ np.concatenate([ahead[-1], behind[0]]) + bias)
        return np.array(states), vector

    def logits(self, source, target_input):
        """(T, V) and attention weights (T, S)."""
        memory, v = self.encode(source)
        layers, width = self.config.num_layers, self.config.width
        weight, bias = (self.w[f"model.decoder.vector_to_state.{n}"] for n in ("weight", "bias"))
        c = (weight @ v + bias).reshape(layers, width)
        h = np.tanh(c)
        rows, all_weights = [], []
        for token in target_input:
            x = self.embed(token) + self.w["model.decoder.vector_to_input.weight"] @ v
            for layer in range(layers):
                new = self.cell("model.decoder.recurrence", layer, x, h[layer], c[layer])
                h[layer], c[layer] = new
                x = h[layer]
            context, weights = self.context(x, memory, v)
            combined = np.tanh(
                self.w["model.decoder.combine.weight"] @ np.concatenate([x, context])
            )
            rows.append(self.w["model.shared.weight"] @ combined + self.bias)
            all_weights.append(weights)
        return np.array(rows), np.array(all_weights)

    def context(self, state, memory, v):
        if self.config.context == "fixed":
            return v, np.zeros(len(memory))
        if self.config.context == "mean":
            return memory.mean(0), np.zeros(len(memory))
        query, key, energy = (
            self.w[f"model.decoder.attention.{n}.weight"]
            for n in ("query_projection", "key_projection", "energy")
        )
        scores = [(energy @ np.tanh(query @ state + key @ h)).item() for h in memory]
        weights = np.exp(scores) / np.exp(scores).sum()
        return sum(a * h for a, h in zip(weights, memory, strict=True)), weights


@each_recurrent
@pytest.mark.parametrize("num_layers", [1, 3])
def test_recurrent_model_by_hand(tiny_model, name, num_layers):
    """The whole model, S ≠ T, against a slow calculation of one sentence at a time."""
    model = tiny_model(name, num_layers=num_layers).double()
    batch = a_batch([9, 4, 1], [5, 7, 3])
    target_input = decoder_input(batch["labels"])
    with torch.no_grad():
        out = model(**without_labels(batch), decoder_input_ids=target_input, output_attentions=True)
    hand = ByHand(model)
    for row, (length, target_length) in enumerate(zip([9, 4, 1], [5, 7, 3], strict=True)):
        source = batch["input_ids"][row, :length].tolist()
        logits, weights = hand.logits(source, target_input[row, :target_length].tolist())
        np.testing.assert_allclose(out.logits[row, :target_length].numpy(), logits, atol=1e-9)
        if name == "lstm-attention":
            got = out.cross_attentions[0][row, 0, :target_length, :length].numpy()
            np.testing.assert_allclose(got, weights, atol=1e-9)
    if name != "lstm-attention":
        assert out.cross_attentions is None


def test_additive_attention_by_hand():
    """Two queries, three keys, the last one padding; numbers small enough to follow."""
    attention = Attention(2, 1, 2)
    with torch.no_grad():
        attention.query_projection.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        attention.key_projection.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        attention.energy.weight.copy_(torch.tensor([[3.0, 1.0]]))
    query = torch.tensor([[[0.5, 0.1], [-0.2, 0.3]]])  # (1, T = 2, 2)
    memory = torch.tensor([[[1.0, 0.0], [-0.5, 0.0], [7.0, 0.0]]])  # (1, S = 3, 2)
    mask = torch.tensor([[True, True, False]])
    prepared = attention.prepare(Encoded(last_hidden_state=memory), mask)
    context, weights = attention(query, prepared)
    for t, (a, b) in enumerate([(0.5, 0.1), (-0.2, 0.3)]):
        e = [3 * math.tanh(a + h) + math.tanh(2 * b - h) for h in (1.0, -0.5)]
        z = math.exp(e[0]) + math.exp(e[1])
        alpha = [math.exp(e[0]) / z, math.exp(e[1]) / z]
        assert weights[0, t, :2].tolist() == pytest.approx(alpha, abs=1e-6)
        assert weights[0, t, 2] == 0.0
        chosen = [alpha[0] * 1.0 - alpha[1] * 0.5, 0.0]
        assert context[0, t].tolist() == pytest.approx(chosen, abs=1e-6)


@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**31))
@settings(max_examples=40)
def test_attention_rows_sum_to_one_and_padding_gets_nothing(b, s, t, seed):
    draw = torch.Generator().manual_seed(seed)
    attention = Attention(6, 4, 5)
    query = 20 * torch.randn(b, t, 6, generator=draw)
    memory = torch.randn(b, s, 6, generator=draw)
    lengths = torch.randint(1, s + 1, (b,), generator=draw)
    mask = torch.arange(s) < lengths[:, None]
    with torch.no_grad():
        prepared = attention.prepare(Encoded(last_hidden_state=memory), mask)
        context, weights = attention(query, prepared)
    assert context.shape == (b, t, 6) and weights.shape == (b, t, s)
    torch.testing.assert_close(weights.sum(-1), torch.ones(b, t))
    assert not weights.masked_select(~mask[:, None]).any()


def test_additive_attention_gradient():
    draw = torch.Generator().manual_seed(0)
    attention = Attention(4, 2, 5).double()
    query = torch.randn(2, 3, 4, generator=draw, dtype=torch.double, requires_grad=True)
    memory = torch.randn(2, 4, 4, generator=draw, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    weights = tuple(attention.parameters())

    def attend(query, memory, *parameters):
        named = dict(zip(dict(attention.named_parameters()), parameters, strict=True))
        keys = memory @ named["key_projection.weight"].T
        return torch.func.functional_call(attention, named, (query, (keys, memory, mask)))

    assert torch.autograd.gradcheck(attend, (query, memory, *weights))


def test_mean_context_by_hand():
    memory = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]])
    mask = torch.tensor([[True, True, False]])
    mean, states = Mean(2, 3, 4), torch.zeros(1, 2, 2)
    context, weights = mean(states, mean.prepare(Encoded(last_hidden_state=memory), mask))
    assert context.tolist() == [[[2.0, 4.0]] * 2] and weights is None
    assert mean.size == 2 and not mean.looks_back and not mean.has_one_vector


@pytest.mark.parametrize(("kind", "expected"), [(Fixed, [5.0, 6.0, 7.0]), (Nothing, [])])
def test_contexts_of_one_vector_by_hand(kind, expected):
    """The vector at every step, or nothing; neither reads the memory."""
    context = kind(2, 3, 4)
    encoded = Encoded(vector=torch.tensor([[5.0, 6.0, 7.0]]))
    found, weights = context(
        torch.ones(1, 2, 2), context.prepare(encoded, torch.tensor([[True, False]]))
    )
    assert found.tolist() == [[expected] * 2] and weights is None
    assert context.size == len(expected) and context.has_one_vector and not context.looks_back


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_model_says_what_its_decoder_sees(tiny_model, tmp_path, context):
    """Whatever its name; steps, saved weights and the output layer follow the switch as well."""
    model = tiny_model("lstm", context=context)
    assert model.looks_back == (context == "attention")
    assert model.has_one_vector == (context in ("fixed", "nothing"))
    widths = {"fixed": model.config.vector_size, "nothing": 0, "none": 0}
    of_context = widths.get(context, model.config.width)
    assert model.model.decoder.combine.in_features == model.config.width + of_context
    model.save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    batch = without_labels(a_batch([6, 3, 8]))
    tokens = torch.tensor([[PAD, 5, 9], [PAD, 30, 7], [PAD, 12, 5]])
    stepper = stepper_for(again)
    with torch.no_grad():
        expected = model(**batch, decoder_input_ids=tokens, output_attentions=True)
        state = stepper.start(batch["input_ids"], batch["attention_mask"], 3)
        steps = torch.stack([stepper.step(tokens[:, t], state) for t in range(3)], dim=1)
    torch.testing.assert_close(steps, expected.logits, atol=1e-4, rtol=1e-4)
    assert (expected.cross_attentions is not None) == model.looks_back
    assert has_one_vector(model) == (context in ("fixed", "nothing"))
    assert attention_kinds(model) == (("cross",) if model.looks_back else ())


def test_without_a_source_every_source_gives_the_same(tiny_model):
    """ "nothing" still begins with the vector; "none" is a language model, also once it is trained."""
    target = torch.tensor([[PAD, 5, 9, 7]])
    sources = [torch.tensor([[4, 8, 15, 0]]), torch.tensor([[16, 23, 4, 0]])]
    for context, same in (("nothing", False), ("none", True)):
        model = tiny_model("lstm", context=context).train()
        learn = training.optimizers(model, training.Recipe(learning_rate=0.01))
        model(**a_batch([9, 4, 1], [5, 8, 2])).loss.backward()
        for optimizer in learn:
            optimizer.step()
        model.eval()
        with torch.no_grad():
            one, other = (model(input_ids=ids, decoder_input_ids=target).logits for ids in sources)
        assert torch.equal(one, other) == same
    heard, unheard = (num_parameters(tiny_model(name)) for name in ("lstm", "lstm-blind"))
    encoder = tiny_model("lstm").model.encoder
    of_encoder = sum(p.numel() for p in encoder.parameters()) - encoder.embed_tokens.weight.numel()
    of_context = model.config.vector_size * model.config.d_model  # that the output layer reads
    assert heard - unheard == of_encoder + of_context


def test_no_stepper_for_a_model_of_another_kind():
    sizes = dict.fromkeys(
        ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
        1,
    )
    other = BartConfig(vocab_size=9, d_model=8, **sizes)
    with pytest.raises(TypeError, match="expected a model of type .*, got 'bart'"):
        stepper_for(BartForConditionalGeneration(other))


def test_reversal():
    index = reversal(torch.tensor([3, 1, 4]), 4)
    assert index.tolist() == [[2, 1, 0, 3], [0, 1, 2, 3], [3, 2, 1, 0]]


def test_shift_right():
    labels = torch.tensor([[5, 6, 0], [7, 0, -100]])
    assert shift_right(labels, start_token_id=9, pad_token_id=8).tolist() == [[9, 5, 6], [9, 7, 0]]
    longer = torch.tensor([[7, 0, -100, -100]])
    assert shift_right(longer, start_token_id=9, pad_token_id=8).tolist() == [[9, 7, 0, 8]]


@pytest.mark.parametrize("name", ["lstm", "rnn"])
def test_encoder_is_pytorchs_bidirectional_one(tiny_model, name):
    """Against the packed bidirectional layer of PyTorch with the same weights."""
    encoder = tiny_model(name, num_layers=3).model.encoder
    kind = nn.LSTM if name == "lstm" else nn.RNN
    width = encoder.config.width
    peer = kind(encoder.config.d_model, width // 2, 3, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for suffix, layers in (("", encoder.forward_layers), ("_reverse", encoder.backward_layers)):
            for number, layer in enumerate(layers):
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    own = getattr(layer, f"{part}_l0")
                    getattr(peer, f"{part}_l{number}{suffix}").copy_(own)
        batch = a_batch([6, 11, 1, 8])
        lengths = batch["attention_mask"].sum(1)
        embedded = encoder.embed_tokens(batch["input_ids"]) * math.sqrt(encoder.config.d_model)
        packed = nn.utils.rnn.pack_padded_sequence(
            embedded, lengths, batch_first=True, enforce_sorted=False
        )
        states, last = peer(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        last = last[0] if name == "lstm" else last
        out = encoder(**without_labels(batch), output_hidden_states=True)
        vector = torch.tanh(encoder.to_vector(torch.cat([last[-2], last[-1]], dim=-1)))
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(out.last_hidden_state[real], states[real])
    torch.testing.assert_close(out.vector, vector)
    assert [h.shape[-1] for h in out.hidden_states] == [encoder.config.d_model, *[width] * 3]


# ---------------------------------------------------------------------------------------------
# Padding, caches, loss


@each_model
@given(data=st.data())
@property_of_models
def test_padding_changes_nothing(tiny_model, name, data):
    model = tiny_model(name).double()  # so that any leak shows, however small
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=2, max_size=4))
    extra = data.draw(st.integers(0, 5))
    batch = a_batch(lengths, seed=data.draw(st.integers(0, 1000)))
    rows = len(lengths)
    ids = torch.cat([batch["input_ids"], torch.full((rows, extra), PAD)], dim=1)
    mask = torch.cat([batch["attention_mask"], torch.zeros(rows, extra, dtype=torch.long)], dim=1)
    target_input = decoder_input(batch["labels"])
    with torch.no_grad():
        together = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target_input).logits
        for row, length in enumerate(lengths):
            alone = model(
                input_ids=ids[row : row + 1, :length],
                attention_mask=mask[row : row + 1, :length],
                decoder_input_ids=target_input[row : row + 1],
            ).logits[0]
            torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_teacher_forced_is_step_by_step(tiny_model, name):
    model = tiny_model(name).double()
    batch = without_labels(a_batch([9, 4, 1]))
    target_input = decoder_input(a_batch([1, 1, 1], [12, 12, 12], seed=1)["labels"])
    with torch.no_grad():
        whole = model(**batch, decoder_input_ids=target_input, output_attentions=True)
        encoded = model.get_encoder()(**batch)
        cache = None
        for t in range(12):
            step = model(
                attention_mask=batch["attention_mask"],
                encoder_outputs=encoded,
                decoder_input_ids=target_input[:, t : t + 1],
                cache=cache,
                use_cache=True,
                output_attentions=True,
            )
            cache = step.cache
            assert cache.get_seq_length() == t + 1
            torch.testing.assert_close(step.logits[:, 0], whole.logits[:, t], rtol=0, atol=1e-9)
            for mine, all_steps in zip(
                step.cross_attentions or (), whole.cross_attentions or (), strict=True
            ):
                torch.testing.assert_close(mine[:, :, 0], all_steps[:, :, t], rtol=0, atol=1e-9)


@each_recurrent
def test_a_step_leaves_the_cache_given_to_it_alone(tiny_model, name):
    """Two continuations of one state do not meet."""
    model = tiny_model(name)
    batch = without_labels(a_batch([5, 3]))
    start = torch.full((2, 1), PAD)
    with torch.no_grad():
        cache = model(**batch, decoder_input_ids=start, use_cache=True).cache
        one = model(**batch, decoder_input_ids=start + 0 * 5, cache=cache, use_cache=True)
        again = model(**batch, decoder_input_ids=start, cache=cache, use_cache=True)
    assert cache.length == 1 and one.cache.length == again.cache.length == 2
    assert torch.equal(one.logits, again.logits)


@each_model
def test_loss_is_the_mean_over_real_tokens(tiny_model, name):
    model = tiny_model(name)
    batch = a_batch([9, 4, 6], [5, 8, 2])
    with torch.no_grad():
        out = model(**batch)
        logits = model(
            **without_labels(batch), decoder_input_ids=decoder_input(batch["labels"])
        ).logits
    torch.testing.assert_close(out.logits, logits)
    scores = logits.double().numpy()
    log_probs = scores - np.log(
        np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True)
    )
    log_probs -= scores.max(-1, keepdims=True)
    real = [(b, t) for b, n in enumerate([5, 8, 2]) for t in range(n)]
    losses = [-log_probs[b, t, batch["labels"][b, t].item()] for b, t in real]
    assert len(losses) == int((batch["labels"] != -100).sum())
    assert out.loss.item() == pytest.approx(np.mean(losses), abs=1e-5)
    summed = training.summed_loss(
        model, corpus.Batch(*(batch[k].numpy() for k in batch)), torch.device("cpu")
    )
    assert summed.item() == pytest.approx(np.sum(losses), rel=1e-5)


@each_recurrent
def test_bad_masks(tiny_model, name):
    model = tiny_model(name)
    ids, start = torch.tensor([[5, 6, 0]]), torch.tensor([[PAD]])
    with pytest.raises(ValueError, match="expected input_ids, inputs_embeds or encoder_outputs"):
        model(decoder_input_ids=start)
    with pytest.raises(
        ValueError, match="expected padding at the end of the source, .*; pad right"
    ):
        mask = torch.tensor([[0, 1, 1]])
        model(input_ids=ids, attention_mask=mask, decoder_input_ids=start)
    with pytest.raises(ValueError, match="expected at least one real token in every source"):
        model(input_ids=ids, attention_mask=torch.zeros(1, 3), decoder_input_ids=start)
    mask = torch.ones(1, 3)
    with pytest.raises(ValueError, match="expected decoder_input_ids or labels, got neither"):
        model(input_ids=ids, attention_mask=mask)
    with pytest.raises(
        ValueError, match="expected attention_mask beside encoder_outputs, got none"
    ):
        encoded = model.get_encoder()(ids, mask)
        model(encoder_outputs=encoded, decoder_input_ids=start)


@each_recurrent
def test_embeddings_in_place_of_ids(tiny_model, name):
    model = tiny_model(name)
    batch = without_labels(a_batch([6, 3]))
    start = torch.full((2, 3), PAD)
    embedded = model.get_input_embeddings()(batch["input_ids"]) * math.sqrt(model.config.d_model)
    with torch.no_grad():
        expected = model(**batch, decoder_input_ids=start).logits
        got = model(
            inputs_embeds=embedded, attention_mask=batch["attention_mask"], decoder_input_ids=start
        )
    torch.testing.assert_close(got.logits, expected)


# ---------------------------------------------------------------------------------------------
# The library's generate


def talkative(model):
    """The model in double precision, and with sentences of some length: most end after few tokens."""
    model.final_logits_bias[0, 0] = -1.0
    return model.double()


@each_model
def test_bare_generate_is_greedy(tiny_model, tiny_tokenizer, name):
    """`generate(**inputs)` alone takes the best token at every step up to the end token."""
    model = talkative(tiny_model(name))
    texts = ["The bridge.", "My neighbour painted it today.", "?"]
    inputs = tiny_tokenizer(texts, return_tensors="pt", padding=True)
    got = model.generate(**inputs)
    with torch.no_grad():
        best = model(**inputs, decoder_input_ids=got[:, :-1]).logits.argmax(-1)
    lengths = []
    for row, chosen in zip(got.tolist(), best.tolist(), strict=True):
        assert row[0] == PAD
        length = row.index(0) if 0 in row else len(row) - 1
        assert row[1 : length + 1] == chosen[:length]
        assert set(row[length + 1 :]) <= {PAD}
        lengths.append(length)
    assert max(lengths) == got.shape[1] - 1 <= 200
    assert max(lengths) > 3


@each_model
def test_length_limit_of_bare_generate(tiny_model, name):
    """An output that never ends stops after 200 pieces, not after the library's 20."""
    model = tiny_model(name)
    model.final_logits_bias[0, 0] = -1e4
    out = model.generate(**without_labels(a_batch([4])))
    assert out.shape == (1, 201)


@each_model
def test_beams_with_and_without_cache(tiny_model, name):
    """A cache that is reordered wrongly gives other beams than none."""
    model = talkative(tiny_model(name))
    inputs = without_labels(a_batch([9, 4, 1, 6]))
    found = [
        model.generate(
            **inputs,
            num_beams=4,
            num_return_sequences=4,
            max_length=20,
            use_cache=use_cache,
            return_dict_in_generate=True,
            output_scores=True,
        )
        for use_cache in (True, False)
    ]
    assert torch.equal(found[0].sequences, found[1].sequences)
    torch.testing.assert_close(
        found[0].sequences_scores, found[1].sequences_scores, rtol=0, atol=1e-5
    )
    # Hypotheses did move from beam to beam, else this would not show anything.
    assert any(len(set(row.tolist()) - {-1}) > 1 for row in found[0].beam_indices[::4])


@each_model
def test_beam_score_is_that_of_the_sequence(tiny_model, name):
    model = talkative(tiny_model(name))
    inputs = without_labels(a_batch([9, 4]))
    out = model.generate(
        **inputs,
        num_beams=4,
        max_length=20,
        length_penalty=0.0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    labels = out.sequences[:, 1:]
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=out.sequences[:, :-1]).logits
    log_probs = logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    expected = log_probs.masked_fill(labels == PAD, 0.0).sum(1)
    torch.testing.assert_close(out.sequences_scores, expected.float(), rtol=0, atol=1e-5)


@each_model
@pytest.mark.parametrize("num_beams", [1, 4])
def test_generate_with_attentions(tiny_model, name, num_beams):
    """Weights gathered through the beams' own indices are those of the finished sequence."""
    model = talkative(tiny_model(name))
    if name == "transformer":
        model.set_attn_implementation("eager")
    inputs = without_labels(a_batch([9, 4]))
    out = model.generate(
        **inputs,
        num_beams=num_beams,
        max_length=15,
        output_attentions=True,
        output_scores=True,
        return_dict_in_generate=True,
    )
    if name in ("rnn", "lstm"):
        assert all(step is None for step in out.cross_attentions or ())
        return
    with torch.no_grad():
        whole = model(
            **inputs, decoder_input_ids=out.sequences[:, :-1], output_attentions=True
        ).cross_attentions
    for row in range(2):
        steps = (out.sequences[row, 1:] != PAD).sum()
        for t in range(steps):
            beam = out.beam_indices[row, t] if num_beams > 1 else row
            for layer, weights in enumerate(out.cross_attentions[t]):
                torch.testing.assert_close(
                    weights[beam, :, 0], whole[layer][row, :, t], rtol=1e-4, atol=1e-5
                )


def test_reorder_cache_by_hand():
    state = torch.arange(12.0).view(3, 2, 2)
    keys = torch.arange(3.0).view(3, 1, 1)
    cache = RecurrentCache(State(state, -state), (keys, -keys), length=4)
    cache.reorder_cache(torch.tensor([2, 0, 0]))
    hidden, cell = cache.state
    assert hidden[:, 0, 0].tolist() == [8.0, 0.0, 0.0]
    assert cell is not None and cell[:, 0, 1].tolist() == [-9.0, -1.0, -1.0]
    assert [part.flatten().tolist() for part in cache.prepared] == [[2, 0, 0], [-2, 0, 0]]
    assert cache.get_seq_length() == 4
    plain = RecurrentCache(State(state, None), ())
    plain.reorder_cache(torch.tensor([1]))
    assert plain.state.hidden.shape == (1, 2, 2) and plain.state.cell is None
    assert plain.prepared == ()


# ---------------------------------------------------------------------------------------------
# Saving


def embedding_tables(model):
    return [
        model.get_input_embeddings().weight,
        model.get_encoder().embed_tokens.weight,
        model.get_decoder().embed_tokens.weight,
        model.lm_head.weight,
    ]


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_saved_and_reloaded_bit_for_bit(tiny_model, tmp_path, name, dtype):
    model = tiny_model(name).to(dtype)
    model.save_pretrained(tmp_path)
    reloaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert isinstance(model, type(reloaded)) and not reloaded.training
    saved, loaded = model.state_dict(), reloaded.state_dict()
    assert set(saved) == set(loaded)
    for key, value in saved.items():
        assert loaded[key].dtype == dtype
        assert torch.equal(loaded[key], value), key
    assert reloaded.final_logits_bias[0, PAD] == PAD_LOGIT
    assert reloaded.final_logits_bias[0, 0] == 2.0  # as the fixture set it
    assert len({table.data_ptr() for table in embedding_tables(reloaded)}) == 1
    assert num_parameters(reloaded) == num_parameters(model)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"config.json", "generation_config.json", "model.safetensors"}
    stored = GenerationConfig.from_pretrained(tmp_path)
    assert (stored.max_length, stored.eos_token_id, stored.decoder_start_token_id) == (201, 0, PAD)


@each_model
def test_half_precision_folder_loaded_in_fp32(tiny_model, tmp_path, name):
    """Weights are those rounded to fp16; the Transformer's fixed positions are exact."""
    model = tiny_model(name)
    positions = (
        tiny_model(name).model.encoder.get_submodule("embed_positions").weight
        if name == "transformer"
        else None
    )
    model.half().save_pretrained(tmp_path)
    reloaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert {p.dtype for p in reloaded.parameters()} == {torch.float32}
    for key, value in model.state_dict().items():
        if "embed_positions" in key:
            assert torch.equal(reloaded.state_dict()[key], positions)
        else:
            assert torch.equal(reloaded.state_dict()[key], value.float()), key


@each_recurrent
def test_config_round_trip(tiny_model, tmp_path, name):
    config = tiny_model(name).config
    config.save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert stored["model_type"] == "seqviz-recurrent"
    assert (stored["cell"], stored["context"]) == (config.cell, config.context)
    assert RecurrentConfig.from_pretrained(tmp_path).to_dict() == config.to_dict()


def test_weights_of_another_architecture(tiny_model, tmp_path):
    """A config that claims another context than the weights have is refused, not filled up."""
    model = tiny_model("lstm-attention")
    model.save_pretrained(tmp_path)
    _, info = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "context": "fixed", "vector_size": 48}), encoding="utf-8")
    with pytest.raises(RuntimeError, match="(?s)size mismatch|mismatch"):
        AutoModelForSeq2SeqLM.from_pretrained(tmp_path)


# ---------------------------------------------------------------------------------------------
# Padding is never predicted, whatever is learnt


@pytest.mark.parametrize("name", ALL_NAMES)
def test_padding_is_never_predicted(tiny_model, name):
    model = tiny_model(name)
    batch = a_batch([9, 4, 1], [30, 30, 30])
    with torch.no_grad():
        logits = model(**batch).logits
    assert not (logits.argmax(-1) == PAD).any()
    assert not logits.softmax(-1)[..., PAD].any()
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("matrix_learning_rate", [0.02, 0.0])
def test_padding_row_stays_zero_in_training(tiny_model, name, matrix_learning_rate):
    model = tiny_model(name).train()
    recipe = training.Recipe(learning_rate=0.01, matrix_learning_rate=matrix_learning_rate)
    optimizers = training.optimizers(model, recipe)
    kinds = [type(optimizer).__name__ for optimizer in optimizers]
    assert kinds == (["AdamW", "Muon"] if matrix_learning_rate else ["AdamW"])
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    held = sum(p.numel() for o in optimizers for group in o.param_groups for p in group["params"])
    assert held == trainable
    table = model.get_input_embeddings().weight
    before, bias = table.detach().clone(), model.final_logits_bias.clone()
    for step in range(3):
        model(**a_batch([9, 4, 1], [5, 8, 2], seed=step)).loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert not torch.equal(table, before)
    assert not table[PAD].any()
    assert torch.equal(model.final_logits_bias, bias)
    assert len({t.data_ptr() for t in embedding_tables(model)}) == 1


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_muon_gets_the_matrices_between_hidden_states(tiny_model, name):
    model = tiny_model(name)
    names = {id(p): n for n, p in model.named_parameters()}
    adam, muon = (
        {names[id(p)] for p in o.param_groups[0]["params"]}
        for o in training.optimizers(model, training.Recipe())
    )
    assert "model.shared.weight" in adam
    assert all(not n.endswith("bias") and "norm" not in n and "embed" not in n for n in muon)
    if name == "lstm-attention":
        assert "model.decoder.attention.energy.weight" in adam  # a vector in all but name
        assert "model.decoder.attention.key_projection.weight" in muon
        assert "model.decoder.recurrence.weight_hh_l1" in muon
    else:
        assert "model.decoder.layers.1.encoder_attn.k_proj.weight" in muon
        assert "model.encoder.layers.0.fc1.weight" in muon


# ---------------------------------------------------------------------------------------------
# Learning


@each_model
def test_overfits_one_batch(name):
    sizes = (
        {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64,
         "decoder_ffn_dim": 64, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
        if name == "transformer"
        else {"d_model": 32, "width": 48, "vector_size": 32, "attention_size": 16, "num_layers": 1}
    )  # fmt: skip
    model = build(name, V, seed=1, **sizes)
    batch = a_batch([6, 3, 8], [5, 7, 4])
    recipe = training.Recipe(learning_rate=1e-2, matrix_learning_rate=0.05)
    optimizers = training.optimizers(model, recipe)
    for _ in range(300):
        loss = model(**batch).loss
        if loss.item() < 0.03:
            break
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert loss.item() < 0.1
    # And it says what it has learnt.
    out = model.eval().generate(**without_labels(batch), max_length=12)
    for row, labels in zip(out.tolist(), batch["labels"].tolist(), strict=True):
        expected = [PAD] + [token for token in labels if token != -100]
        assert row == expected + [PAD] * (len(row) - len(expected))
