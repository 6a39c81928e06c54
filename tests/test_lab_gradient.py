"""Fading gradient: fresh layers against autograd, curves by distance, a report that can be had again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_lab
import torch
from tiny_lab import TEXT, frobenius
from torch.autograd.functional import jacobian

from seqviz.architectures.recurrent import initialize_recurrence, recurrence
from seqviz.lab import gradient
from seqviz.looking.reach import run_layer
from seqviz.report import Report
from seqviz.translating.translator import Translator

SMALL = tiny_lab.GRADIENT


@pytest.fixture
def small(monkeypatch, tiny_model, tiny_tokenizer) -> None:
    def load(name: str) -> Translator:
        return Translator(tiny_model(name).double(), tiny_tokenizer, name=name)

    monkeypatch.setattr(gradient, "load", load)
    # The tiny tokenizer cuts the long passages into more pieces than are read at once.
    texts = [{"id": str(n), "english": f"{TEXT} {TEXT[:n]}"} for n in (20, 40)]
    monkeypatch.setattr(gradient, "measured_texts", lambda min_words: texts)


# ---------------------------------------------------------------------------------------------
# Before training


@pytest.mark.parametrize("initialization", gradient.INITIALIZATIONS)
@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_norms_of_a_fresh_layer_are_those_of_its_jacobian(cell: str, initialization: str) -> None:
    norms, gates = gradient.fresh_norms(SMALL, cell, 3, 1.5, initialization)
    with gradient._fresh(3):
        layer = recurrence(cell, 8, 8)
        if initialization == "project":
            with torch.no_grad():
                initialize_recurrence(layer, 1.5)
        elif cell == "lstm":
            with torch.no_grad():
                layer.bias_ih_l0[8:16] += 1.5
    inputs = gradient._inputs(SMALL, 3)
    full = jacobian(lambda x: layer(x[None])[0][0, -1], inputs)
    np.testing.assert_allclose(norms, frobenius(full)[::-1], rtol=1e-10)
    assert (gates is None) == (cell == "rnn")


def test_the_path_through_the_cell_is_the_product_of_the_forget_gates() -> None:
    """Without recurrent weights it is the only path: ∂c_T/∂c_t, and the norms follow it exactly."""
    with gradient._fresh(1):
        layer = recurrence("lstm", 8, 8)
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        inputs = gradient._inputs(SMALL, 1)
        run = run_layer(layer, inputs)
        _, (_, cell) = layer(inputs[None])
        _, (_, started) = layer(
            inputs[None], (torch.zeros(1, 1, 8).double(), torch.ones(1, 1, 8).double())
        )
    assert run.keeps is not None
    torch.testing.assert_close((started - cell)[0, 0], run.keeps.prod(dim=0))


def test_norms_of_fresh_attention_are_those_of_its_jacobian() -> None:
    attended, whole = gradient.fresh_attention_norms(SMALL, 2)
    with gradient._fresh(2):
        config = gradient.transformer_config(
            8, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        )  # fmt: skip
        encoder = gradient.build_transformer(config).eval().model.encoder
    positions = encoder.embed_positions(torch.Size((1, 12)))
    layer, inputs = encoder.layers[0], gradient._inputs(SMALL, 2)
    for norms, end in (
        (attended, lambda x: layer.self_attn(x[None] + positions)[0][0, -1]),
        (whole, lambda x: layer(x[None] + positions, None)[0, -1]),
    ):
        np.testing.assert_allclose(norms, frobenius(jacobian(end, inputs))[::-1], rtol=1e-9)


# ---------------------------------------------------------------------------------------------
# The experiment


def test_a_larger_forget_bias_fades_slower() -> None:
    settings = gradient.Settings(width=16, length=30, num_heads=2)
    share = {}
    for bias in settings.forget_biases:
        found = [gradient.fresh_norms(settings, "lstm", s, bias)[0] for s in range(1, 21)]
        share[bias] = np.mean([norms[-1] / norms[0] for norms in found])
    assert share[0.0] < share[1.0] < share[3.0]


def test_the_curves_are_by_distance_and_relative(small) -> None:
    found = gradient.EXPERIMENT.measure(SMALL)
    assert set(found["at_start"]) == {"project", "small_inputs", "pytorch"}
    for curve in found["at_start"]["project"].values():
        assert curve["median"][0] == 1 and len(curve["median"]) == 12
        assert all(low <= high for low, high in zip(curve["low"], curve["high"]))
    forward = found["trained"]["rnn"]["forward"]
    assert max(forward["high"]) <= 1 and forward["n"] == 2
    assert "vector" not in found["trained"]["transformer"]


def test_distance_counts_from_the_end_that_a_direction_runs_to() -> None:
    norms = np.array([1.0, 2.0, 3.0, 4.0])
    assert gradient._by_distance(norms, "forward").tolist() == [4, 3, 2, 1]
    assert gradient._by_distance(norms, "backward").tolist() == [1, 2, 3, 4]
    both = gradient._by_distance(norms, "vector")
    assert both == pytest.approx(np.sqrt([(1 + 16) / 2, (4 + 9) / 2]))


def test_other_wrong_use_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="min_words of at most 75, the longest passage, got 90"):
        gradient.measured_texts(90)
    with pytest.raises(ValueError, match="initialization to be one of project, pytorch, got 'x'"):
        gradient.fresh_norms(SMALL, "rnn", 1, initialization="x")


def test_the_sentence_is_made_of_the_numbers(small) -> None:
    results = gradient.EXPERIMENT.measure(SMALL)
    curves = results["at_start"]["project"]
    curves["rnn"]["median"] = [1.0, 0.5, 0.009, 0.5]
    curves["lstm-forget-0"]["median"] = [1.0, 0.5, 0.4, 0.01]
    curves["self-attention"]["median"] = [1.0, 0.8765, 1.25, 0.9]
    said = gradient.sentence(results, "en")
    assert "after 2 steps in the tanh RNN" in said
    assert "not within 3 steps in the LSTM with forget bias 0" in said
    assert "between 88 % and 125 %" in said
    assert "tanh RNN 在 2 步之后" in gradient.sentence(results, "zh")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.01, "1.0 %"), (0.5, "50 %"), (1.25, "125 %"), (0.000123, "0.012 %"), (0.0, "0 %")],
)
def test_percentages(share: float, said: str) -> None:
    assert gradient._percent(share, "en") == said
    assert gradient._percent(share, "zh") == said.replace(" ", "")


# ---------------------------------------------------------------------------------------------
# The committed report


@pytest.fixture(scope="module")
def committed(models_folder: Path) -> Any:
    found = Report.read(models_folder / "report" / "gradient.json")
    assert found is not None
    return found.results


def test_the_report_says_where_its_curves_fade(committed: Any) -> None:
    for kind, curves in committed["at_start"].items():
        for key, found in curves.items():
            faded = gradient.faded_at(found["median"], committed["share"])
            assert committed["faded_at"][kind][key] == faded


@pytest.mark.parametrize(("key", "cell", "bias"), [("rnn", "rnn", 0), ("lstm-forget-1", "lstm", 1)])
def test_the_report_can_be_had_again(committed: Any, key: str, cell: str, bias: float) -> None:
    settings = gradient.Settings()
    seeds = range(1, settings.num_seeds + 1)
    norms = [gradient.fresh_norms(settings, cell, seed, bias)[0] for seed in seeds]
    again = gradient.curve(np.stack(norms), (10, 90))
    found = committed["at_start"]["project"][key]
    for name in ("median", "low", "high", "absolute"):
        np.testing.assert_allclose(again[name], found[name], rtol=1e-9)


@pytest.mark.slow
def test_the_whole_report_can_be_had_again(committed: Any) -> None:
    again = gradient.EXPERIMENT.measure()
    for part in ("at_start", "trained"):
        _assert_close(again[part], committed[part])


def _assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            _assert_close(found[key], expected[key])
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
