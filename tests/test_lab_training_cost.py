"""What training cost: operations as PyTorch counts them, curves by hand, the benchmark's loop against the real one."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_lab
import torch
from tiny_lab import CURVES, RATES, training_of
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig

from seqviz import plotting
from seqviz.architectures import MODEL_NAMES
from seqviz.corpus import make_batch
from seqviz.lab import operations
from seqviz.lab import training_cost as lab
from seqviz.report import Report, read_training
from seqviz.training import Recipe, optimizers, summed_loss

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any) -> Path:
    return tiny_lab.write_models(tmp_path_factory.mktemp("models"), tiny_model)


@pytest.fixture(scope="module")
def settings(folder: Path) -> lab.Settings:
    return tiny_lab.training_cost(folder)


@pytest.fixture(scope="module")
def results(settings: lab.Settings) -> dict[str, Any]:
    return lab.EXPERIMENT.report(settings).content()


# ---------------------------------------------------------------------------------------------
# Operations


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("name", [*MODEL_NAMES, "lstm-mean"])
@pytest.mark.parametrize("lengths", [(6, 9), (11, 4)])
def test_operations_of_a_step_are_those_that_pytorch_counts(
    name: str, lengths: tuple[int, int], tiny_model: Any
) -> None:
    more = {"attn_implementation": "eager"} if name == "transformer" else {"num_layers": 3}
    model = tiny_model(name, **more).train()
    source, target = lengths
    pairs = [(np.arange(source - 1), np.arange(target - 1))] * 5
    batch = make_batch(pairs, pad_token_id=model.config.pad_token_id, eos_token_id=0)
    every = [np.full(5, length) for length in lengths]
    forward = operations.forward_operations(model.config, *every)
    counter = FlopCounterMode(display=False)
    with counter, torch.backends.mkldnn.flags(enabled=False), torch.no_grad():
        summed_loss(model, batch, torch.device("cpu"))
    means = 2 * 5 * source * model.config.width if name == "lstm-mean" else 0
    assert 0 <= counter.get_total_flops() - forward.sum() <= means
    with counter, torch.backends.mkldnn.flags(enabled=False):
        summed_loss(model, batch, torch.device("cpu")).backward()
    saved = 0
    if name != "transformer":
        # No gradient goes on to the encoder's states of zeros before the first step.
        half, gates = model.config.width // 2, 1 if name == "rnn" else 4
        saved = 5 * 3 * 2 * 2 * gates * half**2
    expected = operations.training_operations(model.config, *every).sum() - saved
    assert abs(counter.get_total_flops() - expected) <= 3 * means


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_operations_of_the_optimizer_are_those_that_pytorch_counts(
    name: str, tiny_model: Any
) -> None:
    model = tiny_model(name)
    counter = FlopCounterMode(display=False)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    with counter:
        for optimizer in optimizers(model, Recipe()):
            optimizer.step()
    found = operations.optimizer_operations(model, asdict(Recipe()))
    assert found == counter.get_total_flops() > 0
    assert (
        operations.optimizer_operations(model, {**asdict(Recipe()), "matrix_learning_rate": 0.0})
        == 0
    )


def test_operations_are_summed_over_real_lengths(results: dict[str, Any], folder: Path) -> None:
    for name, model in results["models"].items():
        training = json.loads((folder / name / "training.json").read_text(encoding="utf-8"))
        lengths = operations.draw_lengths(training, 50, 1)
        config = lab.AutoConfig.from_pretrained(folder / name)
        forward = sum(
            int(operations.forward_operations(config, np.array([s]), np.array([t]))[0])
            for s, t in zip(lengths.source, lengths.target)
        ) / int(lengths.target.sum())
        found = model["operations_per_target_token"]
        assert found["forward"] == pytest.approx(forward)
        assert model["tokens_per_step"] == 11
        share = model["optimizer_operations_per_step"] / 11
        assert found["training"] == pytest.approx(3 * forward + share)


# ---------------------------------------------------------------------------------------------
# Lengths


def test_drawn_lengths_are_those_of_training() -> None:
    training = training_of("rnn", [])
    found = operations.draw_lengths(training, 100_000, 3)
    assert set(found.words) == {4, 10} and (found.words == 4).mean() == pytest.approx(
        0.75, abs=0.01
    )
    # 40 target pieces for 22 words; three source pieces for four target pieces; one end token each.
    for side, rate in ((found.target, 40 / 22), (found.source, 30 / 22)):
        assert (side - 1).sum() / found.words.sum() == pytest.approx(rate, rel=0.005)
        assert (side - 1 >= found.words).all() and side.std() > 0
    again, other = (
        operations.draw_lengths(training, 100_000, 3),
        operations.draw_lengths(training, 100_000, 4),
    )
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(found, other)


def test_as_many_are_drawn_as_an_epoch_has() -> None:
    # 1,600 target pieces, repeats counted, with 10 an example.
    assert len(operations.draw_lengths(training_of("rnn", []), None, 1).words) == 160


def test_drawn_lengths_keep_to_the_caps_and_may_be_shorter_than_words() -> None:
    long = training_of("rnn", []) | {"target_tokens": 4 + 2200}
    assert operations.draw_lengths(long, 500, 1).target.max() == 201
    short = training_of("rnn", []) | {"target_tokens": 4 + 11}
    found = operations.draw_lengths(short, 50_000, 1)
    assert found.target.min() == 2 and found.target.mean() < found.words.mean()


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_drawn_lengths_of_a_shipped_model_have_its_target_tokens(
    name: str, models_folder: Path
) -> None:
    training = read_training(models_folder)[name]
    found = operations.draw_lengths(training, 50_000, 1)
    mean = training["target_tokens"] / sum(training["length_histogram"])
    assert found.target.mean() == pytest.approx(mean, rel=0.02)


# ---------------------------------------------------------------------------------------------
# Curves


def test_the_development_curve_is_taken_before_the_smoothed_training_curve() -> None:
    assert lab.loss_curve(training_of("rnn", CURVES["rnn"]))[0] == "dev"
    training = training_of("rnn", [[40, 1.0]])
    training["losses"]["train"] = [[n, float(n)] for n in range(1, 9)]
    kind, points = lab.loss_curve(training)
    assert kind == "train"
    # The mean of a point and up to four before it.
    assert points[:, 1].tolist() == [1, 1.5, 2, 2.5, 3, 4, 5, 6]


def test_tokens_at_a_loss_and_loss_at_tokens() -> None:
    points = np.array([[10, 6.0], [20, 5.0], [30, 5.5], [40, 4.0]])
    assert lab.tokens_at_loss(points, 5.25) == 17.5  # the first time, not the second
    assert lab.tokens_at_loss(points, 5.0) == 20 and lab.tokens_at_loss(points, 4.0) == 40
    assert lab.tokens_at_loss(points, 3.99) is None
    assert lab.tokens_at_loss(points, 7.0) == 10
    assert lab.loss_at_tokens(points, 15) == 5.5 and lab.loss_at_tokens(points, 99) == 4.0
    assert lab.loss_at_tokens(points, 9) is None


def test_cost_to_equal_loss_by_hand(results: dict[str, Any]) -> None:
    levels = results["cost_to_equal_loss"]
    assert [(level["final_loss_of"], level["loss"]) for level in levels] == [
        ("rnn", 4.0), ("lstm-attention", 2.0), ("transformer", 1.0),
    ]  # fmt: skip
    first, second, third = (level["models"] for level in levels)
    assert first["rnn"]["tokens"] == 40 and first["rnn"]["seconds"] == 10
    # Half way between 5 at 10 tokens and 3 at 20; 1 token a second.
    assert first["lstm-attention"]["tokens"] == first["lstm-attention"]["seconds"] == 15
    assert first["lstm-attention"]["times"]["tokens"] == 15 / 40
    assert first["lstm-attention"]["times"]["seconds"] == 1.5
    # The transformer's first point is below 4 already.
    assert first["transformer"]["at_most"] and not first["lstm-attention"]["at_most"]
    assert first["transformer"]["tokens"] == 10 and first["transformer"]["seconds"] == 5
    assert second["rnn"] is None and third["lstm-attention"] is None
    assert second["transformer"]["tokens"] == pytest.approx(20 + 20 / 3)
    for name, found in first.items():
        each = results["models"][name]["operations_per_target_token"]["training"]
        assert found["operations"] == pytest.approx(each * found["tokens"])
    assert first["rnn"]["times"] == {"tokens": 1, "operations": 1, "seconds": 1}


def test_losses_at_equal_cost_by_hand(results: dict[str, Any]) -> None:
    equal = results["at_equal"]
    assert equal["tokens"] == {
        "amount": 40,
        "loss": {"rnn": 4.0, "lstm-attention": 2.0, "transformer": 1.0},
        "lowest": "transformer",
    }
    # The rnn is done after 40 ÷ 4 s; by then the others have seen 10 and 20 tokens.
    assert equal["seconds"] == {
        "amount": 10.0,
        "loss": {"rnn": 4.0, "lstm-attention": 5.0, "transformer": 2.5},
        "lowest": "transformer",
    }
    totals = [m["points"]["operations"][-1] for m in results["models"].values()]
    assert equal["operations"]["amount"] == pytest.approx(min(totals))


def test_rates_of_another_model_are_no_rates(settings: lab.Settings, folder: Path) -> None:
    measured = json.loads((folder / "rates.json").read_text(encoding="utf-8"))
    training = training_of("rnn", CURVES["rnn"])
    assert lab.rate_of(measured, training) == 4.0
    assert lab.rate_of(measured, {**training, "num_parameters": 999}) is None
    assert lab.rate_of(measured, {**training, "model": "lstm"}) is None
    assert lab.rate_of(None, training) is None


def test_without_rates_there_are_tokens_and_operations(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(lab, "default_benchmark", lambda: folder / "benchmarks" / "none.json")
    settings = lab.Settings(models=tuple(CURVES), num_examples=50, folder=str(folder))
    found = lab.EXPERIMENT.measure(settings)
    assert found["at_equal"]["seconds"] is None
    assert found["rates"]["why_none"].startswith("there is no benchmarks/none.json")
    for level in found["cost_to_equal_loss"]:
        for paid in filter(None, level["models"].values()):
            assert paid["seconds"] is None and paid["times"]["seconds"] is None
            assert paid["operations"] > paid["tokens"] > 0
    assert "Seconds are not known: there is no benchmarks/none.json" in found["says"]["en"]
    assert "时间未知" in found["says"]["zh"] and "minutes" not in found["says"]["en"]
    assert len(plotting.lab.training_cost(found).axes) == 2
    (folder / "some.json").write_text(json.dumps({"results": {}}), encoding="utf-8")
    some = lab.Settings(
        models=("rnn",), num_examples=50, folder=str(folder), benchmark=str(folder / "some.json")
    )
    unknown = lab.EXPERIMENT.measure(some)
    assert unknown["rates"]["why_none"] == "no rate of these models there: rnn"
    assert "some.json has no rate of rnn." in unknown["says"]["en"]
    for results, file in ((found, "benchmarks/none.json"), (unknown, "some.json")):
        _, _, chinese = results["says"]["zh"].partition("时间未知")
        chinese = chinese.replace("python benchmarks/training.py", "")
        assert file in chinese and not re.search("[a-z]{2,} [a-z]{2,}", chinese), chinese


def test_a_report_of_other_weights_is_stale(results: dict[str, Any]) -> None:
    trainings = {name: training_of(name, dev) for name, dev in CURVES.items()}
    assert Report.of(results).stale(trainings) is None
    trainings["rnn"]["weights_sha256"] = "new"
    stale = Report.of(results).stale(trainings)
    assert stale == "it was measured on other weights of rnn"


def test_wrong_use_says_what_to_do(folder: Path, tiny_model: Any) -> None:
    with pytest.raises(ValueError, match="a length_histogram in training.json, got none"):
        operations.draw_lengths({**training_of("rnn", []), "length_histogram": []}, 10, 1)
    with pytest.raises(ValueError, match="losses in training.json, at least two points"):
        lab.loss_curve({"losses": {"train": [[1, 2.0]], "dev": []}})
    with pytest.raises(ValueError, match="a JSON file in .*lstm.*training.json, got FileNotFound"):
        lab.EXPERIMENT.measure(lab.Settings(models=("lstm",), folder=str(folder)))
    with pytest.raises(ValueError, match="a JSON file in .*nothing.json"):
        lab.EXPERIMENT.measure(
            lab.Settings(folder=str(folder), benchmark=str(folder / "nothing.json"))
        )
    config = PreTrainedConfig()
    with pytest.raises(ValueError, match="config of a seqviz-recurrent or marian model"):
        operations.forward_operations(config, np.array([1]), np.array([1]))


# ---------------------------------------------------------------------------------------------
# In words, figure, command


def test_the_sentence_is_made_of_the_numbers(results: dict[str, Any]) -> None:
    found = json.loads(json.dumps(results))
    found["at_equal"]["tokens"]["amount"] = 7_654_321
    found["at_equal"]["operations"] |= {"amount": 1.234e14}
    found["at_equal"]["seconds"] = {
        "amount": 660.0, "loss": {"rnn": 4.321, "transformer": None}, "lowest": "rnn",
    }  # fmt: skip
    found["cost_to_equal_loss"][0]["models"]["transformer"]["times"] = {
        "tokens": 0.123, "operations": 1.5, "seconds": 0.5,
    }  # fmt: skip
    said = lab.sentence(found, "en")
    for part in (
        "After 7.7 million target tokens each, the loss is 4.00 (rnn), 2.00 (lstm-attention), 1.00",
        "(1.2e14)",
        "After 11 minutes on an idle machine, it is 4.32 (rnn), not known yet (transformer).",
        "final loss of rnn, 4.00",
        "transformer 12 % / 150 % / 50 %",
        "One run a model",
    ):
        assert part in said, part
    chinese = lab.sentence(found, "zh")
    assert "transformer 12% / 150% / 50%" in chinese and "各训练 11 分钟" in chinese


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_draws_the_curves(
    results: dict[str, Any], tmp_path: Path, language: str
) -> None:
    figure = plotting.lab.training_cost(results, language=language)
    plotting.save(figure, tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    expected = {
        "en": ["million target tokens", "minutes on an idle machine", "loss, nats a token"],
        "zh": ["目标词元（百万）", "在空闲机器上的分钟数", "损失（nat / 词元）"],
    }[language]
    for text in [*expected, "RNN", "LSTM + attention", "Transformer"]:
        assert text in drawn
    curves = [line for line in figure.axes[2].lines if len(line.get_xdata()) == 3]
    for line, (name, dev) in zip(curves, CURVES.items(), strict=True):
        assert list(line.get_ydata()) == [loss for _, loss in dev]
        assert list(line.get_xdata()) == pytest.approx([t / RATES[name] / 60 for t, _ in dev])


# ---------------------------------------------------------------------------------------------
# The benchmark


@pytest.fixture(scope="module")
def benchmark() -> Any:
    path = REPOSITORY / "benchmarks" / "training.py"
    spec = importlib.util.spec_from_file_location("training_benchmark", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_the_plain_loop_takes_the_same_steps(
    benchmark: Any, name: str, tiny_tokenizer: Any, tiny_model: Any
) -> None:
    config = tiny_model(name).config.to_dict()
    keys = ("d_model", "width", "vector_size", "attention_size") if name != "transformer" else (
        "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim",
        "encoder_attention_heads", "decoder_attention_heads",
    )  # fmt: skip
    given = {key: config[key] for key in keys}
    # Clipped to where AdamW's epsilon counts: else it would forgive any scale of a gradient. No warm-up,
    # so that a step is large enough to show.
    recipe = asdict(Recipe(batch_tokens=60, clip_norm=1e-7, warmup_tokens=0, learning_rate=0.01))
    training = training_of(name, []) | {"recipe": recipe}
    found = benchmark.measure(
        name, training, tiny_tokenizer, steps=3, rounds=2, examples=40, config=given
    )
    # Both sides: the same weights, batches, rates, clipping.
    assert found["largest_loss_difference"] < 1e-5
    assert 100 < found["target_tokens"] <= 180
    assert found["target_tokens_per_second"] > 0
    ratio = found["target_tokens_per_second"] / found["plain_target_tokens_per_second"]
    assert found["times_as_fast_as_the_plain_loop"] == pytest.approx(ratio, rel=0.01)
    each = found["flops_per_second"] / found["target_tokens_per_second"]
    assert found["operations_per_target_token"] == pytest.approx(each, rel=1e-3)
    assert 0 <= found["target_padding"] < 0.3 and 0 < found["source_padding"] < 0.3
    json.dumps(found)


def test_the_random_corpus_has_the_drawn_lengths(benchmark: Any) -> None:
    lengths = operations.draw_lengths(training_of("rnn", []), 30, 1)
    made = benchmark.random_corpus(lengths, 300, 1)
    assert len(made) == 30
    for at in range(30):
        source, target = made.ids(at)
        assert len(source) == lengths.source[at] - 1 and len(target) == lengths.target[at] - 1
    ids = np.concatenate([made.source, made.target])
    assert ids.min() >= 2 and ids.max() < 299  # neither end, unknown nor padding


def test_padding_by_hand(benchmark: Any) -> None:
    plan = [np.array([0, 1]), np.array([3])]
    # 2 × 4 and 1 × 5 places, 3 + 4 + 5 of them taken; the third example is in no batch.
    assert benchmark._padding(np.array([3, 4, 99, 5]), plan) == round(1 / 13, 4)


def test_threads_are_those_of_training(benchmark: Any) -> None:
    assert benchmark.threads_of({"hardware": "CPU Some 9 Processor, 3 threads"}) == 3
    assert benchmark.threads_of({"hardware": "NVIDIA V100"}) == torch.get_num_threads()


# ---------------------------------------------------------------------------------------------
# What is committed


def test_the_committed_benchmark_is_of_the_shipped_models(models_folder: Path) -> None:
    file = REPOSITORY / "benchmarks" / "training.json"
    measured = json.loads(file.read_text(encoding="utf-8"))
    for training in read_training(models_folder).values():
        if training["model"] in MODEL_NAMES:
            assert lab.rate_of(measured, training)


def test_the_committed_report_can_be_had_again(models_folder: Path) -> None:
    committed = Report.read(models_folder / "report" / "training_cost.json")
    assert committed is not None
    again = json.loads(json.dumps(lab.EXPERIMENT.measure()))
    for key in ("cost_to_equal_loss", "at_equal", "says"):
        assert again[key] == committed.results[key]
