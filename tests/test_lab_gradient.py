"""Fading gradient: hand-written reverse mode against autograd, and a report that can be had again."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from seqviz import cli, plotting
from seqviz import report as reports
from seqviz.architectures import MODEL_NAMES
from seqviz.architectures.recurrent import initialize_recurrence, recurrence
from seqviz.lab import gradient
from seqviz.translation import Translator

SMALL = gradient.Settings(
    width=8, length=12, num_seeds=3, num_heads=2, models=("rnn", "transformer"), min_words=74
)
TEXT = "The old sailor is waiting for those 12 letters in the morning, before work."


@pytest.fixture
def translator(tiny_model, tiny_tokenizer):
    """Factory of tiny translators in float64."""

    def make(name: str) -> Translator:
        return Translator(tiny_model(name).double(), tiny_tokenizer, name=name)

    return make


@pytest.fixture
def small(monkeypatch, translator) -> None:
    monkeypatch.setattr(gradient, "load", translator)
    # The tiny tokenizer cuts the long passages into more pieces than are read at once.
    texts = [{"id": str(n), "english": f"{TEXT} {TEXT[:n]}"} for n in (20, 40)]
    monkeypatch.setattr(gradient, "measured_texts", lambda min_words: texts)


def frobenius(full: torch.Tensor) -> np.ndarray:
    """Norms by position of a Jacobian (W, S, D)."""
    return full.square().sum(dim=(0, 2)).sqrt().numpy()


# ---------------------------------------------------------------------------------------------
# Reverse mode


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_pulling_back_is_the_jacobian_of_the_layer(cell: str) -> None:
    layer = recurrence(cell, 3, 4).double().requires_grad_(False)
    inputs = torch.randn(6, 3, dtype=torch.float64)
    full = jacobian(lambda x: layer(x[None])[0][0], inputs)  # (S, H, S, I)
    cotangents = torch.randn(6, 5, 4, dtype=torch.float64)
    cotangents[:, 2] = 0
    found = gradient.pull_back(layer, gradient.run_layer(layer, inputs), cotangents)
    expected = torch.einsum("snh,shti->tni", cotangents, full)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


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
        run = gradient.run_layer(layer, inputs)
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


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_norms_of_a_trained_encoder_are_those_of_its_jacobian(name: str, translator) -> None:
    tiny = translator(name)
    ids = [5, 17, 60, 9, 33, 120, 8]
    found = gradient.end_norms(tiny, ids)
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
    expected = gradient.end_norms(tiny, [5, 17, 60], 4)
    with torch.inference_mode():
        found = gradient.end_norms(tiny, [5, 17, 60], 4)
    for end in expected:
        np.testing.assert_array_equal(found[end], expected[end])


def test_projections_are_orthogonal_and_keep_the_norm_on_average() -> None:
    matrix = torch.randn(12, 40, dtype=torch.float64)
    rows = gradient.projections(12, 5)
    torch.testing.assert_close(rows @ rows.T, torch.eye(5, dtype=torch.float64) * 12 / 5)
    squares = [
        (gradient.projections(12, 5, seed) @ matrix).square().sum().item() for seed in range(400)
    ]
    assert np.mean(squares) == pytest.approx(matrix.square().sum().item(), rel=0.02)
    torch.testing.assert_close(gradient.projections(12, 99), torch.eye(12, dtype=torch.float64))


# ---------------------------------------------------------------------------------------------
# A visitor's sentence


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_reach_merges_pieces_to_words(name: str, translator) -> None:
    tiny = translator(name)
    found = gradient.reach(tiny, TEXT, None)
    assert found.words == tuple(TEXT.split())
    cut = gradient.segment(tiny.tokenizer, TEXT)
    assert len(cut.ids) > len(cut.words)
    norms = gradient.end_norms(tiny, cut.ids)
    for number, end in enumerate(norms):
        expected = np.zeros(len(found.words))
        for word, value in zip(cut.word_of_piece, norms[end][:-1], strict=True):
            expected[word] += value**2
        np.testing.assert_allclose(getattr(found, end), np.sqrt(expected), rtol=1e-12)
        assert found.end_token[number] == norms[end][-1]
        assert found.shares(end).max() == 1
    assert (found.vector is None) == (name == "transformer")


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_reach_with_enough_projections_is_exact(name: str, translator) -> None:
    tiny = translator(name)
    exact, projected = gradient.reach(tiny, TEXT, None), gradient.reach(tiny, TEXT, 1000)
    for end in gradient.ENDS:
        if getattr(exact, end) is not None:
            np.testing.assert_allclose(getattr(projected, end), getattr(exact, end), rtol=1e-9)


def test_reach_refuses_what_is_not_read_at_once(translator) -> None:
    tiny = translator("transformer")
    with pytest.raises(ValueError, match="at least one word, got an empty one; type a sentence"):
        gradient.reach(tiny, " \u200b ")
    with pytest.raises(ValueError, match="expected at most .* words .* got 500 .*; shorten"):
        gradient.reach(tiny, "a " * 500)
    with pytest.raises(TypeError, match="expected text, got int"):
        gradient.reach(tiny, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_projections to be a whole number from 1.*got 0"):
        gradient.reach(tiny, TEXT, 0)
    with pytest.raises(ValueError, match="one of forward, backward, got 'vector'"):
        gradient.reach(tiny, TEXT, 4).shares("vector")


# ---------------------------------------------------------------------------------------------
# The experiment


def test_a_larger_forget_bias_fades_slower() -> None:
    settings = gradient.Settings(width=16, length=30, num_heads=2)
    share = {}
    for bias in settings.forget_biases:
        found = [gradient.fresh_norms(settings, "lstm", s, bias)[0] for s in range(1, 21)]
        share[bias] = np.mean([norms[-1] / norms[0] for norms in found])
    assert share[0.0] < share[1.0] < share[3.0]


def test_the_same_settings_give_the_same_numbers(small) -> None:
    state = torch.random.get_rng_state()
    first, second = gradient.gradient(SMALL), gradient.gradient(SMALL)
    assert json.dumps(first) == json.dumps(second)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert set(first["at_start"]) == {"project", "small_inputs", "pytorch"}
    for found in first["at_start"]["project"].values():
        assert found["median"][0] == 1 and len(found["median"]) == 12
        assert all(low <= high for low, high in zip(found["low"], found["high"]))
    forward = first["trained"]["rnn"]["forward"]
    assert max(forward["high"]) <= 1 and forward["n"] == 2
    assert "vector" not in first["trained"]["transformer"]


def test_distance_counts_from_the_end_that_a_direction_runs_to() -> None:
    norms = np.array([1.0, 2.0, 3.0, 4.0])
    assert gradient._by_distance(norms, "forward").tolist() == [4, 3, 2, 1]
    assert gradient._by_distance(norms, "backward").tolist() == [1, 2, 3, 4]
    both = gradient._by_distance(norms, "vector")
    assert both == pytest.approx(np.sqrt([(1 + 16) / 2, (4 + 9) / 2]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"width": 6, "num_heads": 4}, "got 6 and 4; try 4"),
        ({"width": 9, "num_heads": 3}, "even width divisible by num_heads, got 9 and 3; try 6"),
        ({"length": 1}, "length to be a whole number from 2 to 512, got 1"),
        ({"num_seeds": True}, "num_seeds to be a whole number from 1 to 1000, got True"),
        ({"forget_biases": ()}, "at least one finite forget bias, got (); try 0, 1, 3"),
        ({"input_std": 0.0}, "input_std above 0, got 0.0; try 1"),
    ],
)
def test_bad_settings_say_what_to_do(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        gradient.Settings(**changed)
    assert message in str(caught.value)


def test_other_wrong_use_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="min_words of at most 75, the longest passage, got 90"):
        gradient.measured_texts(90)
    with pytest.raises(ValueError, match="initialization to be one of project, pytorch, got 'x'"):
        gradient.fresh_norms(SMALL, "rnn", 1, initialization="x")


def test_the_sentence_is_made_of_the_numbers(small) -> None:
    results = gradient.gradient(SMALL)
    curves = results["at_start"]["project"]
    curves["rnn"]["median"] = [1.0, 0.5, 0.009, 0.5]
    curves["lstm-forget-0"]["median"] = [1.0, 0.5, 0.4, 0.01]
    curves["self-attention"]["median"] = [1.0, 0.8765, 1.25, 0.9]
    said = gradient.sentence(results, "en")
    assert "after 2 steps in the tanh RNN" in said
    assert "not within 3 steps in the LSTM with forget bias 0" in said
    assert "between 88 % and 125 %" in said
    assert "tanh RNN 在 2 步之后" in gradient.sentence(results, "zh")
    with pytest.raises(ValueError, match="language to be one of en, zh, got 'fr'"):
        gradient.sentence(results, "fr")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.01, "1.0 %"), (0.5, "50 %"), (1.25, "125 %"), (0.000123, "0.012 %"), (0.0, "0 %")],
)
def test_percentages(share: float, said: str) -> None:
    assert gradient._percent(share) == said


# ---------------------------------------------------------------------------------------------
# Command and figure


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["seqviz", "lab", "gradient", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


def test_the_command_writes_report_and_figures(small, monkeypatch, tmp_path, capsys) -> None:
    out = tmp_path / "new" / "gradient.json"
    options = ["--seeds", "2", "--length", "6", "--width", "8", "--model", "lstm"]
    assert run(monkeypatch, *options, "--out", str(out)) == 0
    said = capsys.readouterr()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert said.out.strip() == found["says"]["en"]
    assert "after training: lstm" in said.err
    assert found["command"] == "seqviz lab gradient --seeds 2 --length 6 --width 8 --model lstm"
    for key in ("schema", "data", "versions", "hardware", "created", "settings", "models"):
        assert found[key]
    assert sorted(p.name for p in out.parent.iterdir()) == [
        "gradient.json", "gradient.svg", "gradient.zh.svg",
    ]  # fmt: skip
    assert run(monkeypatch, *options) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["at_start"] == found["at_start"] and again["trained"] == found["trained"]


def test_a_failing_command_leaves_the_old_report(small, monkeypatch, tmp_path, capsys) -> None:
    out = tmp_path / "gradient.json"
    out.write_text("old", encoding="utf-8")
    assert run(monkeypatch, "--width", "7", "--out", str(out)) == 1
    assert "expected an even width divisible by num_heads" in capsys.readouterr().err
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [
        ("gradient.json", "old")
    ]
    assert run(monkeypatch, "--out", str(tmp_path)) == 2
    assert "expected a file for --out that ends in .json" in capsys.readouterr().err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_labels_every_curve(small, tmp_path: Path, language: str) -> None:
    results = gradient.gradient(SMALL)
    figure = plotting.lab.gradient(results, language=language)
    plotting.save(figure, tmp_path / "gradient.svg")
    drawn = (tmp_path / "gradient.svg").read_text(encoding="utf-8")
    expected = {
        "en": ["tanh RNN", "LSTM, forget bias 0", "self-attention", "distance (steps)", "1 %"],
        "zh": ["tanh RNN", "LSTM，遗忘偏置 3", "自注意力", "距离（步）", "1%"],
    }[language]
    for text in expected:
        assert text in drawn


def test_the_figure_refuses_what_is_no_report() -> None:
    with pytest.raises(ValueError, match="content of a gradient report"):
        plotting.lab.gradient({"at_start": {}})


# ---------------------------------------------------------------------------------------------
# The committed report


@pytest.fixture(scope="module")
def committed(models_folder: Path) -> dict[str, Any]:
    found = reports.read_report(models_folder, "gradient")
    assert found is not None
    return found


def test_the_report_is_of_the_default_settings_and_the_shipped_weights(
    committed: dict[str, Any], models_folder: Path
) -> None:
    defaults = json.loads(json.dumps(asdict(gradient.Settings())))
    assert committed["settings"] == {**defaults, "first_seed": 1}
    assert committed["command"] == "seqviz lab gradient"
    assert reports.stale(committed, reports.read_training(models_folder)) is None


def test_the_report_says_what_its_numbers_say(committed: dict[str, Any]) -> None:
    for language in ("en", "zh"):
        assert committed["says"][language] == gradient.sentence(committed, language)
    for kind, curves in committed["at_start"].items():
        for key, found in curves.items():
            faded = gradient.faded_at(found["median"], committed["share"])
            assert committed["faded_at"][kind][key] == faded


@pytest.mark.parametrize(("key", "cell", "bias"), [("rnn", "rnn", 0), ("lstm-forget-1", "lstm", 1)])
def test_the_report_can_be_had_again(
    committed: dict[str, Any], key: str, cell: str, bias: float
) -> None:
    settings = gradient.Settings()
    seeds = range(1, settings.num_seeds + 1)
    norms = [gradient.fresh_norms(settings, cell, seed, bias)[0] for seed in seeds]
    again = gradient.curve(np.stack(norms), (10, 90))
    found = committed["at_start"]["project"][key]
    for name in ("median", "low", "high", "absolute"):
        np.testing.assert_allclose(again[name], found[name], rtol=1e-9)


@pytest.mark.slow
def test_the_whole_report_can_be_had_again(committed: dict[str, Any]) -> None:
    again = gradient.gradient()
    for part in ("at_start", "trained"):
        _assert_close(again[part], committed[part])


def _assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            _assert_close(found[key], expected[key])
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
