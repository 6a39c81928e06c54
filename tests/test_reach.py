"""What reaches an end state: hand-written reverse mode against autograd, by piece and by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny_lab import TEXT, frobenius
from torch.autograd.functional import jacobian

from seqviz.architectures import MODEL_NAMES
from seqviz.architectures.recurrent import recurrence
from seqviz.lab.gradient import reach as taught
from seqviz.looking import reach
from seqviz.tokenizer import segment
from seqviz.translating.translator import Translator


@pytest.fixture
def translator(tiny_model, tiny_tokenizer):
    """Factory of tiny translators in float64."""

    def make(name: str) -> Translator:
        return Translator(tiny_model(name).double(), tiny_tokenizer, name=name)

    return make


def test_its_old_path_is_the_same_function() -> None:
    assert taught is reach.reach


# ---------------------------------------------------------------------------------------------
# Reverse mode


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_pulling_back_is_the_jacobian_of_the_layer(cell: str) -> None:
    layer = recurrence(cell, 3, 4).double().requires_grad_(False)
    inputs = torch.randn(6, 3, dtype=torch.float64)
    full = jacobian(lambda x: layer(x[None])[0][0], inputs)  # (S, H, S, I)
    cotangents = torch.randn(6, 5, 4, dtype=torch.float64)
    cotangents[:, 2] = 0
    found = reach.pull_back(layer, reach.run_layer(layer, inputs), cotangents)
    expected = torch.einsum("snh,shti->tni", cotangents, full)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_norms_of_a_trained_encoder_are_those_of_its_jacobian(name: str, translator) -> None:
    tiny = translator(name)
    ids = [5, 17, 60, 9, 33, 120, 8]
    found = reach.end_norms(tiny, ids)
    encoder, config = tiny.model.model.encoder, tiny.model.config
    embedded = encoder.embed_tokens(torch.tensor([*ids, 0])).detach() * encoder.embed_scale
    mask = torch.ones(1, 8, dtype=torch.long)

    def encoded(x: torch.Tensor) -> Any:
        return encoder(inputs_embeds=x[None], attention_mask=mask)

    if name == "transformer":
        ends = {
            "forward": lambda x: encoded(x).last_hidden_state[0, -1],
            "backward": lambda x: encoded(x).last_hidden_state[0, 0],
        }
    else:
        half = config.width // 2
        ends = {
            "forward": lambda x: encoded(x).last_hidden_state[0, -1, :half],
            "backward": lambda x: encoded(x).last_hidden_state[0, 0, half:],
            "vector": lambda x: encoded(x).vector[0],
        }
    assert list(found) == list(ends)
    for end, state in ends.items():
        expected = frobenius(jacobian(state, embedded))
        np.testing.assert_allclose(found[end], expected, rtol=1e-9, err_msg=end)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_callers_in_inference_mode_get_the_same(name: str, translator) -> None:
    tiny = translator(name)
    expected = reach.end_norms(tiny, [5, 17, 60], 4)
    with torch.inference_mode():
        found = reach.end_norms(tiny, [5, 17, 60], 4)
    for end in expected:
        np.testing.assert_array_equal(found[end], expected[end])


def test_projections_are_orthogonal_and_keep_the_norm_on_average() -> None:
    matrix = torch.randn(12, 40, dtype=torch.float64)
    rows = reach.projections(12, 5)
    torch.testing.assert_close(rows @ rows.T, torch.eye(5, dtype=torch.float64) * 12 / 5)
    squares = [
        (reach.projections(12, 5, seed) @ matrix).square().sum().item() for seed in range(400)
    ]
    assert np.mean(squares) == pytest.approx(matrix.square().sum().item(), rel=0.02)
    torch.testing.assert_close(reach.projections(12, 99), torch.eye(12, dtype=torch.float64))


# ---------------------------------------------------------------------------------------------
# A visitor's sentence


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_reach_merges_pieces_to_words(name: str, translator) -> None:
    tiny = translator(name)
    found = reach.reach(tiny, TEXT, None)
    assert found.words == tuple(TEXT.split())
    cut = segment(tiny.tokenizer, TEXT)
    assert len(cut.ids) > len(cut.pieces.words)
    norms = reach.end_norms(tiny, cut.ids)
    for number, end in enumerate(norms):
        expected = np.zeros(len(found.words))
        for word, value in zip(cut.pieces.word_of_piece, norms[end][:-1], strict=True):
            expected[word] += value**2
        np.testing.assert_allclose(getattr(found, end), np.sqrt(expected), rtol=1e-12)
        assert found.end_token[number] == norms[end][-1]
        assert found.shares(end).max() == 1
    assert (found.vector is None) == (name == "transformer")


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_reach_with_enough_projections_is_exact(name: str, translator) -> None:
    tiny = translator(name)
    exact, projected = reach.reach(tiny, TEXT, None), reach.reach(tiny, TEXT, 1000)
    for end in reach.ENDS:
        if getattr(exact, end) is not None:
            np.testing.assert_allclose(getattr(projected, end), getattr(exact, end), rtol=1e-9)


def test_reach_refuses_what_is_not_read_at_once(translator) -> None:
    tiny = translator("transformer")
    with pytest.raises(ValueError, match="at least one word, got an empty one; type a sentence"):
        reach.reach(tiny, " \u200b ")
    with pytest.raises(ValueError, match="expected at most .* words .* got 500 .*; shorten"):
        reach.reach(tiny, "a " * 500)
    with pytest.raises(TypeError, match="expected text, got int"):
        reach.reach(tiny, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_projections to be a whole number from 1.*got 0"):
        reach.reach(tiny, TEXT, 0)
    with pytest.raises(ValueError, match="one of forward, backward, got 'vector'"):
        reach.reach(tiny, TEXT, 4).shares("vector")
