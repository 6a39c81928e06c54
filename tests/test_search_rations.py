"""A token that each sentence may hold only so often: against exhaustive search, alone and in batches."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_search import EOS, PAD, SETTINGS, UNK, TableStepper, _sources

from seqviz.translating import search

RATIONED = {
    "start_token_id": PAD,
    "eos_token_id": EOS,
    "forbidden_token_ids": (PAD,),
    "rationed_token_id": UNK,
}


def _fond_of_unknowns(seed: int) -> TableStepper:
    """Logits by chance, those of the unknown piece raised: without a ration it would be everywhere."""
    stepper = TableStepper(seed)
    plain = stepper.logits

    def logits(source: int, prefix: tuple[int, ...]) -> torch.Tensor:
        raised = plain(source, prefix).clone()
        raised[UNK] += 2.0
        return raised

    stepper.logits = logits  # type: ignore[method-assign]
    return stepper


def _exhaustive(
    stepper: TableStepper, source: int, limit: int, ration: int, prefix: tuple[int, ...] = ()
) -> tuple[int, ...]:
    outputs = (
        (*prefix, *body, EOS)
        for length in range(limit - len(prefix))
        for body in itertools.product((UNK, 2, 3, 4), repeat=length)
    )
    allowed = [ids for ids in outputs if ids.count(UNK) <= ration]
    return max(allowed, key=lambda ids: stepper.score(source, ids))


@given(seed=st.integers(0, 10_000), rations=st.tuples(*[st.integers(0, 3)] * 3))
@settings(max_examples=15)
def test_a_beam_wide_enough_finds_the_best_output_within_the_ration(
    seed: int, rations: tuple[int, ...]
) -> None:
    stepper = _fond_of_unknowns(seed)
    limits = [4, 2, 3]
    found = search.beam_search(
        stepper, *_sources(3), limits, num_beams=256, rations=rations, **RATIONED
    )
    for source, (hypothesis, limit, ration) in enumerate(zip(found, limits, rations, strict=True)):
        assert hypothesis.ids == _exhaustive(stepper, source, limit, ration)
        assert hypothesis.score() == pytest.approx(stepper.score(source, hypothesis.ids), abs=1e-5)


@given(seed=st.integers(0, 10_000), prefix=st.sampled_from([[UNK], [2, UNK], [UNK, 3]]))
@settings(max_examples=10)
def test_a_beginning_uses_up_the_ration(seed: int, prefix: list[int]) -> None:
    stepper = _fond_of_unknowns(seed)
    for ration in (1, 2):
        arguments = (stepper, *_sources(1), [5])
        ask = {"prefix": prefix, "rations": [ration], **RATIONED}
        wide = search.beam_search(*arguments, num_beams=512, **ask)[0]
        assert wide.ids == _exhaustive(stepper, 0, 5, ration, tuple(prefix))
        assert search.greedy(*arguments, **ask)[0].ids.count(UNK) <= ration


def _greedy(stepper: TableStepper, source: int, limit: int, ration: int) -> tuple[int, ...]:
    """Greedy search written out for one sentence."""
    ids: list[int] = []
    while len(ids) < limit and EOS not in ids:
        closed = {PAD} | ({UNK} if ids.count(UNK) >= ration else set())
        logits = stepper.logits(source, tuple(ids)).tolist()
        ids.append(max(set(range(6)) - closed, key=lambda token: logits[token]))
    return tuple(ids)


@given(seed=st.integers(0, 10_000), rations=st.tuples(*[st.integers(0, 3)] * 4))
@settings(max_examples=30)
def test_greedy_and_one_beam_keep_the_ration(seed: int, rations: tuple[int, ...]) -> None:
    stepper = _fond_of_unknowns(seed)
    limits = [9, 3, 6, 1]
    arguments = (stepper, *_sources(4), limits)
    greedy = search.greedy(*arguments, rations=rations, **RATIONED)
    beam = search.beam_search(*arguments, num_beams=1, rations=rations, **RATIONED)
    for source, (a, b) in enumerate(zip(greedy, beam, strict=True)):
        assert a.ids == b.ids == _greedy(stepper, source, limits[source], rations[source])


@given(
    seed=st.integers(0, 10_000),
    beams=st.integers(1, 5),
    rations=st.tuples(*[st.integers(0, 3)] * 4),
)
@settings(max_examples=20)
def test_a_sentence_has_its_own_ration_in_any_batch(
    seed: int, beams: int, rations: tuple[int, ...]
) -> None:
    stepper = _fond_of_unknowns(seed)
    limits = [8, 2, 5, 7]
    ids, mask = _sources(4)
    together = search.beam_search(
        stepper, ids, mask, limits, num_beams=beams, rations=rations, **RATIONED
    )
    for source, (limit, ration) in enumerate(zip(limits, rations, strict=True)):
        row = slice(source, source + 1)
        alone = search.beam_search(
            stepper, ids[row], mask[row], [limit], num_beams=beams, rations=[ration], **RATIONED
        )
        assert alone[0].ids == together[source].ids
        assert alone[0].log_probs == pytest.approx(together[source].log_probs, abs=1e-4)


@given(seed=st.integers(0, 10_000), beams=st.integers(1, 4))
@settings(max_examples=15)
def test_no_ration_is_forbidden(seed: int, beams: int) -> None:
    stepper = _fond_of_unknowns(seed)
    arguments = (stepper, *_sources(3), [7, 4, 5])
    nothing = {"rations": [0, 0, 0], **RATIONED}
    assert search.greedy(*arguments, **nothing) == search.greedy(*arguments, **SETTINGS)
    assert search.beam_search(*arguments, num_beams=beams, **nothing) == search.beam_search(
        *arguments, num_beams=beams, **SETTINGS
    )
