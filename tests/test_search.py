"""Greedy and beam search against exhaustive search, against Transformers, and against themselves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqviz import MODEL_NAMES
from seqviz.architectures import stepper_for
from seqviz.architectures import steps as steps_of_models
from seqviz.architectures.steps import Affine, Recorder
from seqviz.translating import search

EOS, UNK, PAD = 0, 1, 5
SETTINGS = {"start_token_id": PAD, "eos_token_id": EOS, "forbidden_token_ids": (UNK, PAD)}


@dataclass
class _TableState:
    sources: list[int]
    prefixes: list[tuple[int, ...]]


@dataclass
class TableStepper:
    """A language model given by a table: logits depend on the source and on all tokens so far."""

    seed: int
    temperature: float = 2.0
    table: dict[Any, torch.Tensor] = field(default_factory=dict)

    def logits(self, source: int, prefix: tuple[int, ...]) -> torch.Tensor:
        key = (source, prefix)
        if key not in self.table:
            draw = torch.Generator().manual_seed(hash((self.seed, source, *prefix)) % 2**31)
            self.table[key] = self.temperature * torch.randn(6, generator=draw)
        return self.table[key]

    def start(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, max_steps: int
    ) -> _TableState:
        return _TableState(input_ids[:, 0].tolist(), [()] * len(input_ids))

    def step(self, tokens: torch.Tensor, state: _TableState) -> torch.Tensor:
        state.prefixes = [
            (*prefix, token) for prefix, token in zip(state.prefixes, tokens.tolist(), strict=True)
        ]
        return torch.stack(
            [self.logits(s, p[1:]) for s, p in zip(state.sources, state.prefixes, strict=True)]
        )

    def select(self, state: _TableState, rows: torch.Tensor, *, same_sources: bool = False) -> None:
        state.sources = [state.sources[r] for r in rows.tolist()]
        state.prefixes = [state.prefixes[r] for r in rows.tolist()]

    def score(self, source: int, ids: tuple[int, ...]) -> float:
        total = 0.0
        for i, token in enumerate(ids):
            total += float(self.logits(source, ids[:i]).log_softmax(-1)[token])
        return total / len(ids)


def _sources(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.arange(number).unsqueeze(1)
    return ids, torch.ones_like(ids)


def _exhaustive(
    stepper: TableStepper, source: int, limit: int, prefix: tuple[int, ...] = ()
) -> tuple[int, ...]:
    words = (2, 3, 4)
    ended = [
        (*prefix, *body, EOS)
        for length in range(limit - len(prefix))
        for body in itertools.product(words, repeat=length)
    ]
    return max(ended, key=lambda ids: stepper.score(source, ids))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_a_beam_wide_enough_finds_what_exhaustive_search_finds(seed: int) -> None:
    stepper = TableStepper(seed)
    limits = [4, 2, 3]
    found = search.beam_search(stepper, *_sources(3), limits, num_beams=108, **SETTINGS)
    for source, (hypothesis, limit) in enumerate(zip(found, limits, strict=True)):
        assert hypothesis.finished
        assert hypothesis.ids == _exhaustive(stepper, source, limit)
        assert hypothesis.score() == pytest.approx(stepper.score(source, hypothesis.ids), abs=1e-5)


@given(seed=st.integers(0, 10_000), prefix=st.lists(st.sampled_from([2, 3, 4]), max_size=2))
@settings(max_examples=15)
def test_a_wide_beam_finds_the_best_end_of_a_beginning(seed: int, prefix: list[int]) -> None:
    stepper = TableStepper(seed)
    limits = [4, 3]
    found = search.beam_search(
        stepper, *_sources(2), limits, num_beams=108, prefix=prefix, **SETTINGS
    )
    for source, (hypothesis, limit) in enumerate(zip(found, limits, strict=True)):
        assert hypothesis.ids == _exhaustive(stepper, source, limit, tuple(prefix))
        assert hypothesis.score() == pytest.approx(stepper.score(source, hypothesis.ids), abs=1e-5)
    for num_beams in (1, 3):
        ended = search.beam_search(
            stepper, *_sources(1), [3], num_beams=num_beams, prefix=[*prefix, EOS], **SETTINGS
        )
        assert ended[0].ids == (*prefix, EOS) and ended[0].finished
        stopped = search.beam_search(
            stepper, *_sources(1), [2], num_beams=num_beams, prefix=[2, 3], **SETTINGS
        )
        assert stopped[0].ids == (2, 3) and not stopped[0].finished


@given(seed=st.integers(0, 10_000), prefix=st.lists(st.sampled_from([2, 3, 4]), max_size=3))
@settings(max_examples=20)
def test_one_beam_is_greedy_from_a_beginning(seed: int, prefix: list[int]) -> None:
    stepper = TableStepper(seed, temperature=1.0)
    arguments = (stepper, *_sources(3), [9, 3, 6])
    greedy = search.greedy(*arguments, prefix=prefix, **SETTINGS)
    beam = search.beam_search(*arguments, num_beams=1, prefix=prefix, **SETTINGS)
    for source, (a, b) in enumerate(zip(greedy, beam, strict=True)):
        assert a.ids == b.ids and a.ids[: len(prefix)] == tuple(prefix)
        assert a.score() == pytest.approx(stepper.score(source, a.ids), abs=1e-4)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_one_beam_is_greedy(seed: int) -> None:
    stepper = TableStepper(seed, temperature=1.0)
    limits = [9, 3, 6, 1]
    greedy = search.greedy(stepper, *_sources(4), limits, **SETTINGS)
    beam = search.beam_search(stepper, *_sources(4), limits, num_beams=1, **SETTINGS)
    for a, b in zip(greedy, beam, strict=True):
        assert a.ids == b.ids
        assert a.finished == b.finished
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-4)


def test_greedy_follows_the_largest_logit_and_stops_at_the_end_token_or_the_limit() -> None:
    stepper = TableStepper(3)
    for source, prefix, best in [
        (0, (), 2),
        (0, (2,), EOS),
        (1, (), 3),
        (1, (3,), 3),
        (1, (3, 3), 4),
    ]:
        logits = torch.zeros(6)
        logits[best] = 5.0
        logits[UNK] = logits[PAD] = 9.0  # forbidden, however probable
        stepper.table[source, prefix] = logits
    first, second = search.greedy(stepper, *_sources(2), [5, 3], **SETTINGS)
    assert (first.ids, first.finished) == ((2, EOS), True)
    assert (second.ids, second.finished) == ((3, 3, 4), False)
    expected = 5.0 - torch.tensor([0.0, 0, 0, 5, 9, 9]).logsumexp(0).item()
    assert first.log_probs[0] == pytest.approx(expected, abs=1e-5)


@given(seed=st.integers(0, 10_000), beams=st.integers(2, 5))
@settings(max_examples=15)
def test_a_sentence_does_not_depend_on_its_batch(seed: int, beams: int) -> None:
    stepper = TableStepper(seed, temperature=1.0)
    limits = [8, 2, 5, 7]
    ids, mask = _sources(4)
    together = search.beam_search(stepper, ids, mask, limits, num_beams=beams, **SETTINGS)
    for source, limit in enumerate(limits):
        row = slice(source, source + 1)
        alone = search.beam_search(
            stepper, ids[row], mask[row], [limit], num_beams=beams, **SETTINGS
        )
        assert alone[0].ids == together[source].ids
        assert alone[0].log_probs == pytest.approx(together[source].log_probs, abs=1e-4)


def test_more_beams_than_candidates_is_no_error() -> None:
    stepper = TableStepper(1)
    found = search.beam_search(stepper, *_sources(1), [1], num_beams=32, **SETTINGS)
    assert found[0].ids == (EOS,)


# ---------------------------------------------------------------------------------------------
# With models


def _batch(tokenizer: Any, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    return batch.input_ids, batch.attention_mask


TEXTS = [
    "The old sailor painted the bridge.",
    "Nobody!",
    "Our president wants to buy an apple today.",
]


@pytest.fixture(params=[0, 2048], ids=["rows", "columns"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products as on Intel's processors and as on others, whichever this one is."""
    monkeypatch.setattr(steps_of_models, "MOST_IN_COLUMNS", request.param)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize(("outputs", "inputs"), [(6, 300), (7, 4), (2, 1), (8, 2048)])
def test_a_product_is_that_of_the_layer_as_it_is_now(rows: int, outputs: int, inputs: int) -> None:
    layer = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
    x = torch.randn(inputs, rows, dtype=torch.float64).t()  # of which no row lies in one piece
    added = torch.randn(outputs, rows, dtype=torch.float64).t()
    with torch.no_grad():
        product, without_bias = Affine(layer.weight, layer.bias), Affine(layer.weight)
        for parameter in layer.parameters():
            parameter.data.mul_(-3)
        place = torch.zeros(rows, 2, outputs, dtype=torch.float64)[:, 1]
        product.into(place, x)
        for found in (product(x), place):
            torch.testing.assert_close(found, layer(x))
        assert product(x).is_contiguous()
        torch.testing.assert_close(product(x, added), layer(x) - layer.bias + added)
        torch.testing.assert_close(without_bias(x), layer(x) - layer.bias)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", (*MODEL_NAMES, "lstm-mean"))
def test_stepper_equals_forward(name: str, tiny_model: Any, tiny_tokenizer: Any) -> None:
    model = tiny_model(name)
    ids, mask = _batch(tiny_tokenizer, TEXTS)
    start = model.config.decoder_start_token_id
    targets = torch.randint(2, len(tiny_tokenizer) - 1, (3, 7))
    decoder_ids = torch.cat([torch.full((3, 1), start), targets], dim=1)
    with torch.inference_mode():
        expected = model(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).logits
        stepper = stepper_for(model)
        state = stepper.start(ids, mask, 8)
        steps = [stepper.step(decoder_ids[:, t], state) for t in range(8)]
    torch.testing.assert_close(torch.stack(steps, dim=1), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("same_sources", [False, True])
def test_stepper_select_reorders_everything(
    name: str, same_sources: bool, tiny_model: Any, tiny_tokenizer: Any
) -> None:
    """Rows are swapped (and doubled) after two steps: the third step must follow them."""
    model = tiny_model(name)
    ids, mask = _batch(tiny_tokenizer, TEXTS)
    if same_sources:
        ids, mask = ids[:1].expand(3, -1), mask[:1].expand(3, -1)
        rows = torch.tensor([2, 0, 0])
    else:
        rows = torch.tensor([2, 0, 0, 1])
    stepper = stepper_for(model)
    tokens = torch.tensor([[7, 30, 41], [50, 16, 90]])
    last = torch.tensor([11, 12, 13, 14])[: len(rows)]
    start = model.config.decoder_start_token_id
    with torch.inference_mode():
        state = stepper.start(ids, mask, 6)
        stepper.step(torch.full((3,), start), state)
        stepper.step(tokens[0], state)
        stepper.select(state, rows, same_sources=same_sources)
        stepper.step(tokens[1][rows], state)
        found = stepper.step(last, state)
        decoder_ids = torch.stack([torch.full((3,), start), tokens[0], tokens[1]], dim=1)[rows]
        decoder_ids = torch.cat([decoder_ids, last.unsqueeze(1)], dim=1)
        expected = model(
            input_ids=ids[rows], attention_mask=mask[rows], decoder_input_ids=decoder_ids
        ).logits[:, -1]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_steps_write_where_they_wrote_before(
    name: str, tiny_model: Any, tiny_tokenizer: Any
) -> None:
    """States, gates and caches are allocated once; a search that keeps all its rows needs no others."""
    stepper = stepper_for(tiny_model(name))
    ids, mask = _batch(tiny_tokenizer, TEXTS)
    tokens = torch.tensor([7, 30, 41])

    def places(state: Any) -> list[int]:
        if name == "transformer":
            return [own.data_ptr() for own in state.own]
        kept = [t for c in state.cells for t in (c.hidden, c.gates, c.cell) if t is not None]
        return [tensor.data_ptr() for tensor in kept]

    with torch.inference_mode():
        state = stepper.start(ids, mask, 6)
        before = places(state)
        for _ in range(2):
            stepper.step(tokens, state)
            stepper.select(state, torch.tensor([2, 0, 0]), same_sources=True)
        assert places(state) == before and len(before) >= 2


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("beams", [1, 4])
def test_search_agrees_with_generate(
    name: str, beams: int, tiny_model: Any, tiny_tokenizer: Any
) -> None:
    """Transformers' own search finds the same, or nothing better."""
    model = tiny_model(name)
    ids, mask = _batch(tiny_tokenizer, TEXTS)
    config = model.config
    settings_ = {
        "start_token_id": config.decoder_start_token_id,
        "eos_token_id": 0,
        "forbidden_token_ids": (1, config.pad_token_id),
    }
    limits = [24] * 3
    generated = model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_length=25,
        num_beams=beams,
        suppress_tokens=[1, config.pad_token_id],
        length_penalty=1.0,
    )
    if beams == 1:
        found = search.greedy(stepper_for(model), ids, mask, limits, **settings_)
        for hypothesis, row in zip(found, generated.tolist(), strict=True):
            assert list(hypothesis.ids) == row[1 : 1 + len(hypothesis.ids)]
        return
    found = search.beam_search(stepper_for(model), ids, mask, limits, num_beams=beams, **settings_)
    for index, (hypothesis, row) in enumerate(zip(found, generated.tolist(), strict=True)):
        theirs = row[1:]
        if 0 in theirs:
            theirs = theirs[: theirs.index(0) + 1]
        source = ids[index : index + 1], mask[index : index + 1]
        scores = _log_probs(model, *source, hypothesis.ids)
        assert hypothesis.log_probs == pytest.approx(scores, abs=1e-4)
        if list(hypothesis.ids) != theirs:
            # Ours prefers an ended hypothesis to one that ran into the limit; else it must be better.
            ours_alone_ended = hypothesis.finished and theirs[-1] != 0
            other = _log_probs(model, *source, tuple(theirs))
            assert ours_alone_ended or hypothesis.score() >= sum(other) / len(other) - 1e-4


def _log_probs(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, target: tuple[int, ...]
) -> list[float]:
    """Teacher-forced log-probabilities of a target."""
    decoder_ids = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).logits
    return logits[0].log_softmax(-1).gather(-1, torch.tensor(target).unsqueeze(1))[:, 0].tolist()


def test_a_recorder_takes_one_sentence_and_no_beams(tiny_model):
    recorder = Recorder(stepper_for(tiny_model("lstm-attention")))
    ids = torch.tensor([[5, 6, 0], [7, 8, 0]])
    with pytest.raises(ValueError, match="expected one sentence to record, got 2"):
        recorder.start(ids, torch.ones_like(ids), 4)
    state = recorder.start(ids[:1], torch.ones_like(ids[:1]), 4)
    with pytest.raises(RuntimeError, match="expected a search of one sentence"):
        recorder.select(state, torch.tensor([0, 0]))
