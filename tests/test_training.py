"""The training loop: schedule, exact resume, saved states, what a finished model holds."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from seqviz import corpus, training
from seqviz.architectures import build, num_parameters
from seqviz.training import (
    Recipe,
    SaveError,
    TrainingError,
    lock,
    loop,
    processes,
    rate_factor,
    signals,
)
from seqviz.training import loss as losses
from seqviz.training import run as runs
from seqviz.training.batches import batches
from seqviz.training.beginning import start_position
from seqviz.training.log import Log, curve
from seqviz.training.signals import StopRequest
from seqviz.training.state import save_checkpoint

CONFIG = {"d_model": 16, "width": 16, "vector_size": 8, "attention_size": 8, "num_layers": 1}
TRANSFORMER = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
RECIPE = Recipe(batch_tokens=250, warmup_tokens=1_000)
BUDGET = 4_300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("training")


@pytest.fixture(scope="module")
def sources(folder, sentence_pairs, tiny_tokenizer):
    """Two small corpora, the second one gone through twice an epoch."""
    encoded = []
    for name, pairs in (("one", sentence_pairs[:50]), ("two", sentence_pairs[50:60])):
        path = folder / f"{name}.tsv"
        lines = [f"{name}{i // 20}\t{en}\t{fr}\n" for i, (en, fr) in enumerate(pairs)]
        path.write_text("".join(lines), encoding="utf-8")
        encoded.append(corpus.encode_corpus(path, tiny_tokenizer, folder / "encoded"))
    return [corpus.Source(encoded[0]), corpus.Source(encoded[1], 2)]


@pytest.fixture(scope="module")
def dev(folder, sentence_pairs, tiny_tokenizer):
    path = folder / "dev.tsv"
    path.write_text(
        "".join(f"d\t{en}\t{fr}\n" for en, fr in sentence_pairs[100:]), encoding="utf-8"
    )
    return corpus.encode_corpus(path, tiny_tokenizer, folder / "encoded")


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch):
    """The same numbers on every machine: these tests are about the loop, not about bf16."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(processes, "bf16_pays", lambda device: False)


class Trace:
    """What happened at every step of all calls: tokens, losses, batches, rates."""

    def __init__(self):
        self.steps: list[tuple[int, int, float]] = []
        self.batches: list[tuple[bytes, bytes]] = []
        self.examples = 0
        self.factors: list[float] = []


@pytest.fixture()
def run(sources, tiny_tokenizer, tmp_path, monkeypatch):
    """``run(trace, …)`` calls `train` with small settings, in ``tmp_path / "run"``, and traces it."""
    real_loss, real_factor = loop.summed_loss, runs.rate_factor

    def call(trace, *, stop_at=None, on_step=None, name="lstm-attention", data=None, **arguments):
        counting = True

        def loss(model, batch, device):
            if model.training and counting:
                trace.batches.append((batch.input_ids.tobytes(), batch.labels.tobytes()))
                trace.examples += int((batch.labels != -100).any(1).sum())
            return real_loss(model, batch, device)

        def factor(*args):
            trace.factors.append(real_factor(*args))
            return trace.factors[-1]

        def step(position, value):
            trace.steps.append((position.step, position.tokens, value))
            if position.step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            if on_step:
                on_step(position, value)

        defaults = {
            "recipe": RECIPE,
            "config": TRANSFORMER if name == "transformer" else CONFIG,
            "run_folder": tmp_path / "run",
            "out": tmp_path / "models" / name,
        }
        with monkeypatch.context() as patch:
            patch.setattr(loop, "summed_loss", loss)
            patch.setattr(runs, "rate_factor", factor)
            return training.train(
                name, data or sources, tiny_tokenizer, **{**defaults, **arguments}, on_step=step
            )

    return call


def newest(folder: Path) -> Path:
    return sorted(folder.glob("checkpoint-*"))[-1]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Weights in the newest saved state."""
    return load_file(newest(folder) / "model.safetensors")


def assert_equal_weights(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert set(one) == set(two)
    for key, value in one.items():
        assert torch.equal(value, two[key]), key


@pytest.fixture(scope="module")
def uninterrupted(sources, tiny_tokenizer, folder):
    """A whole run to BUDGET without a stop: (trace of losses, final weights)."""
    steps = []
    training.train(
        "lstm-attention",
        sources,
        tiny_tokenizer,
        folder / "whole",
        folder / "whole-model",
        recipe=RECIPE,
        config=CONFIG,
        tokens=BUDGET,
        mixed_precision="no",
        on_step=lambda position, loss: steps.append((position.step, position.tokens, loss)),
    )
    return steps, weights(folder / "whole" / f"cooldown-{BUDGET}")


def steps_of_an_epoch(sources, number=0):
    epoch = corpus.plan_epoch(sources, seed=RECIPE.seed, epoch=number)
    return len(
        corpus.plan_batches(
            epoch, batch_tokens=RECIPE.batch_tokens, seed=RECIPE.seed, number=number
        )
    )


# ---------------------------------------------------------------------------------------------
# Schedule


def test_rate_factor_by_hand():
    recipe = Recipe(batch_tokens=100, warmup_tokens=1_000, cooldown=0.2)
    expected = {
        0: 0.1,
        100: 0.2,
        450: 0.55,
        900: 1.0,
        5_000: 1.0,
        8_000: 1.0,
        8_500: 0.75,
        9_900: 0.05,
    }
    for tokens, factor in expected.items():
        assert rate_factor(tokens, recipe, 10_000) == pytest.approx(factor)
    assert rate_factor(10_000, recipe, 10_000) == rate_factor(11_000, recipe, 10_000) == 1e-3


def test_rate_factor_without_end_or_warmup():
    recipe = Recipe(batch_tokens=100, warmup_tokens=0)
    assert {rate_factor(tokens, recipe, 0) for tokens in (0, 100, 10**9)} == {1.0}


def test_rate_factor_warms_up_anew_from_weights():
    recipe = Recipe(batch_tokens=100, warmup_tokens=1_000)
    assert rate_factor(5_000, recipe, 0, warmup_from=5_000) == pytest.approx(0.1)
    assert rate_factor(6_000, recipe, 0, warmup_from=5_000) == 1.0


# ---------------------------------------------------------------------------------------------
# A finished model


@pytest.fixture(scope="module")
def finished(sources, dev, tiny_tokenizer, folder):
    """A Transformer trained to the end with a dev corpus: (result, model folder, run folder)."""
    result = training.train(
        "transformer",
        sources,
        tiny_tokenizer,
        folder / "finished-run",
        folder / "finished" / "transformer",
        recipe=RECIPE,
        config=TRANSFORMER,
        tokens=BUDGET,
        dev=dev,
        dev_sample=20,
        dev_every_tokens=1_000,
    )
    return result, folder / "finished" / "transformer", folder / "finished-run"


def test_folder_of_a_finished_model(finished, tiny_tokenizer):
    result, model_folder, run_folder = finished
    assert result.finished
    names = {path.name for path in model_folder.iterdir()}
    assert names == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training.json",
    }
    # Nothing is left beside it, and all of it can be read by everybody.
    assert [path.name for path in model_folder.parent.iterdir()] == ["transformer"]
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in model_folder.iterdir())
    assert model_folder.stat().st_mode & 0o777 == 0o755

    model = AutoModelForSeq2SeqLM.from_pretrained(model_folder, dtype=torch.float32)
    stored = load_file(model_folder / "model.safetensors")
    assert all(tensor.dtype == torch.float16 for tensor in stored.values())
    trained = weights(run_folder / f"cooldown-{BUDGET}")
    for key, value in stored.items():
        assert torch.equal(value, trained[key].half()), key
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    inputs = tokenizer(
        ["The bridge.", "Nobody painted the green boat."], return_tensors="pt", padding=True
    )
    assert (
        inputs.input_ids[1].tolist() == tiny_tokenizer("Nobody painted the green boat.").input_ids
    )
    assert model.generate(**inputs, max_length=10).shape[0] == 2
    assert model.generation_config.max_length == 201


def test_training_json(finished, sources, dev):
    result, model_folder, _ = finished
    text = (model_folder / "training.json").read_text(encoding="utf-8")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    report = json.loads(text, parse_constant=refuse)
    assert report == result.report
    assert report["model"] == "transformer"
    assert report["target_tokens"] == result.position.tokens >= report["budget"] == BUDGET
    assert report["target_tokens"] < BUDGET + 2 * RECIPE.batch_tokens
    assert report["steps"] == result.position.step
    assert report["seconds"] > 0
    assert report["hardware"].startswith("CPU ")
    assert report["started_from"] is None
    assert report["recipe"]["batch_tokens"] == 250
    assert report["num_parameters"] == num_parameters(build("transformer", 300, **TRANSFORMER))
    assert [(d["name"], d["repeat"], d["sha256"]) for d in report["data"]] == [
        (s.corpus.information["name"], s.repeat, s.corpus.information["sha256"]) for s in sources
    ]
    assert [d["pairs"] for d in report["data"]] == [50, 10]
    assert report["dev_data"]["sha256"] == dev.information["sha256"]
    assert {"python", "torch", "transformers", "tokenizers", "seqviz"} <= set(report["versions"])
    tokens = [point[0] for point in report["losses"]["dev"]]
    assert (
        len(tokens) == 5 and tokens == sorted(set(tokens)) and tokens[-1] == report["target_tokens"]
    )
    assert report["losses"]["dev"][-1][1] == report["dev_loss"] < report["losses"]["dev"][0][1]
    assert report["dev_loss"] < math.log(300)
    assert len(report["losses"]["train"]) == report["steps"] // 20


def test_dev_loss_is_the_mean_over_tokens(finished, dev):
    """By hand, one sentence at a time, on the sentences at even distances."""
    _, model_folder, _ = finished
    model = AutoModelForSeq2SeqLM.from_pretrained(model_folder, dtype=torch.float32)
    chosen = sorted({int(x) for x in np.linspace(0, 49, 7)})
    total = tokens = 0
    for index in chosen:
        source, target = (side.astype(int).tolist() for side in dev.ids(index))
        labels = torch.tensor([[*target, 0]])
        ids = torch.tensor([[*source, 0]])
        with torch.no_grad():
            loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        total += loss.item() * labels.numel()
        tokens += labels.numel()
    model.train()
    got = training.mean_loss(model, dev, torch.device("cpu"), sample=7, batch_tokens=40)
    assert got == pytest.approx(total / tokens, rel=1e-5)
    assert model.training  # as it was found


def test_no_dev_corpus(run, tmp_path):
    """Without one there is no dev loss anywhere, and no NaN in a JSON file."""
    result = run(Trace(), tokens=1_000)
    report = json.loads((tmp_path / "models/lstm-attention/training.json").read_text())
    assert report == result.report
    assert report["dev_loss"] is None and report["dev_data"] is None
    assert report["losses"]["dev"] == []
    assert "NaN" not in (tmp_path / "models/lstm-attention/training.json").read_text()


def test_histogram_counts_the_examples_seen(run):
    trace = Trace()
    result = run(trace, tokens=3_000)
    histogram = result.report["length_histogram"]
    assert len(histogram) == 101
    assert sum(histogram) == trace.examples > 60  # into the second epoch
    assert sum(words * count for words, count in enumerate(histogram)) > 0


def test_failed_saving_keeps_the_model_before(finished, tmp_path, tiny_tokenizer):
    _, model_folder, _ = finished
    out = tmp_path / "models" / "transformer"
    shutil.copytree(model_folder, out)
    (out / "old").touch()
    model = build("transformer", 300, **TRANSFORMER)

    class Full:
        def save_pretrained(self, folder):
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        training.save_model(model, Full(), out, {})
    assert (out / "old").exists() and [p.name for p in out.parent.iterdir()] == ["transformer"]
    training.save_model(model, tiny_tokenizer, out, {"new": True})
    assert json.loads((out / "training.json").read_text())["new"] is True
    assert not (out / "old").exists() and [p.name for p in out.parent.iterdir()] == ["transformer"]


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_other_models_train(run, tmp_path, name):
    trace = Trace()
    assert run(trace, name=name, tokens=2_000).finished
    assert trace.steps[-1][2] < trace.steps[0][2]
    AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "models" / name)


# ---------------------------------------------------------------------------------------------
# Stopping and going on


@pytest.mark.parametrize("stops", [[4], [11], [2, 3, 12, 18]])
def test_resumed_is_uninterrupted(run, tmp_path, uninterrupted, sources, stops):
    """Stopped by SIGTERM within the first epoch, the second, and in the cool-down."""
    steps, final = uninterrupted
    first = steps_of_an_epoch(sources)
    assert 4 < first < 11 < first + steps_of_an_epoch(sources, 1)  # where the stops fall
    assert steps[17][1] > 0.8 * BUDGET
    trace = Trace()
    for stop in stops:
        result = run(trace, tokens=BUDGET, stop_at=stop)
        assert not result.finished and result.position.step == stop
        assert not (tmp_path / "models").exists()
    assert run(trace, tokens=BUDGET).finished
    assert trace.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_resumed_has_the_same_examples_and_random_numbers(run, tmp_path):
    """With dropout, the state of the random generator counts as well."""
    arguments = {"name": "transformer", "config": {**TRANSFORMER, "dropout": 0.3}, "tokens": 3_000}
    whole, parts = Trace(), Trace()
    run(whole, run_folder=tmp_path / "whole", **arguments)
    for stop in (4, 10):
        run(parts, stop_at=stop, **arguments)
    run(parts, **arguments)
    assert parts.batches == whole.batches
    assert parts.steps == whole.steps
    assert parts.factors == whole.factors
    assert_equal_weights(
        weights(tmp_path / "run/cooldown-3000"), weights(tmp_path / "whole/cooldown-3000")
    )


class Clock:
    """Time that passes only where the test says so."""

    def __init__(self, monkeypatch, seconds_a_step):
        self.now, self.seconds_a_step = 100.0, seconds_a_step
        for module in (runs, signals):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def step(self, position, loss):
        self.now += self.seconds_a_step


def test_minutes_end_a_call_and_the_next_goes_on(run, tmp_path, uninterrupted, monkeypatch):
    steps, final = uninterrupted
    clock = Clock(monkeypatch, 60.0)
    trace = Trace()
    ends = []
    for _ in range(10):
        result = run(trace, tokens=BUDGET, minutes=4.5, save_minutes=1e9, on_step=clock.step)
        ends.append(result.position.step)
        if result.finished:
            break
    assert ends[:3] == [5, 10, 15]  # the first step after 4.5 minutes
    assert result.position.seconds == pytest.approx(60.0 * len(steps))
    assert trace.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_minutes_alone_finish_a_model(run, tmp_path, monkeypatch):
    """After four fifths of the time, what the rest allows becomes the budget; the rate falls to 0."""
    clock = Clock(monkeypatch, 3.0)
    trace = Trace()
    result = run(trace, minutes=1.0, on_step=clock.step)
    assert result.finished and result.report["budget"] == result.position.budget > 0
    before = int(newest(tmp_path / "run").name.removeprefix("checkpoint-"))
    assert 16 <= before <= 18
    assert trace.factors[4 : before + 1] == pytest.approx([1.0] * (before - 3))
    cooling = trace.factors[before + 1 :]
    assert 2 <= len(cooling) <= 5 and cooling == sorted(cooling, reverse=True)
    assert cooling[0] < 1.0 and cooling[-1] < 0.5
    assert clock.now - 100 == pytest.approx(60, abs=6)
    assert result.report["seconds"] == pytest.approx(clock.now - 100)
    AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "models/lstm-attention")

    # The state before the cool-down is what a later call goes on from.
    later = Trace()
    run(later, minutes=1.0, on_step=clock.step)
    assert later.steps[0][:2] == trace.steps[before][:2]
    assert later.factors[0] == 1.0


@pytest.mark.parametrize("first_budget", [1_500, 3_500])
def test_larger_budget_goes_on_from_before_the_cooldown(run, tmp_path, uninterrupted, first_budget):
    steps, final = uninterrupted
    trace = Trace()
    assert run(trace, tokens=first_budget).finished
    before = max(step for step, tokens, _ in trace.steps if tokens <= 0.8 * first_budget)
    more = Trace()
    assert run(more, tokens=BUDGET).finished
    assert more.steps[0][0] == before + 1
    assert trace.steps[:before] + more.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_finished_run_is_not_trained_on(run, tmp_path):
    trace = Trace()
    first = run(trace, tokens=2_000)
    again = run(trace, tokens=2_000)
    assert again.finished and len(trace.steps) == first.position.step
    assert first.report["losses"] == again.report["losses"]
    assert first.report["target_tokens"] == again.report["target_tokens"]


def test_budget_that_the_run_is_past(run):
    run(Trace(), tokens=3_000)
    with pytest.raises(
        TrainingError, match=r"expected a budget over the 2,\d+ .*, got 2,000; .*larger"
    ):
        run(Trace(), tokens=2_000)


def test_no_budget(run, tmp_path):
    with pytest.raises(
        TrainingError, match="expected a budget, got none; give --tokens or --minutes"
    ):
        run(Trace())
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------------------------------
# Damage


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(bytes(content))


STATE_FILES = (
    "model.safetensors",
    "optimizer.bin",
    "optimizer_1.bin",
    "random_states_0.pkl",
    "position.json",
    "digests.json",
)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink, flip_a_bit])
def test_damaged_state(run, tmp_path, capfd, uninterrupted, damage):
    """The newest state is damaged: the one before serves, it is said, the result is the same."""
    steps, final = uninterrupted
    trace = Trace()
    run(trace, tokens=BUDGET, stop_at=4)
    run(trace, tokens=BUDGET, stop_at=7)
    whole = tmp_path / "whole"
    shutil.copytree(tmp_path / "run", whole)
    assert {path.name for path in newest(whole).iterdir()} == set(STATE_FILES)
    for file in STATE_FILES:
        if file == "digests.json" and damage is Path.unlink:
            continue  # without it a state counts as one saved before there were any
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(whole, tmp_path / "run")
        damage(tmp_path / "run" / "checkpoint-00000007" / file)
        capfd.readouterr()
        again = Trace()
        run(again, tokens=BUDGET, stop_at=6)
        said = capfd.readouterr().err
        assert "checkpoint-00000007 cannot be read" in said, file
        assert "going back to the one before" in said
        assert again.steps == steps[4:6]
        # The damaged state does not stay in the way of the good ones.
        names = sorted(path.name for path in (tmp_path / "run").glob("checkpoint-*"))
        assert names == ["checkpoint-00000004", "checkpoint-00000006"]
    assert run(again, tokens=BUDGET).finished
    assert "cannot be read" not in capfd.readouterr().err
    assert trace.steps[:4] + again.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
def test_damaged_state_of_an_older_version(run, tmp_path, capfd, damage):
    """States saved before there were digests: read, and their damage found, all the same."""
    run(Trace(), tokens=BUDGET, stop_at=4)
    run(Trace(), tokens=BUDGET, stop_at=7)
    for path in (tmp_path / "run").glob("checkpoint-*/digests.json"):
        path.unlink()
    whole = tmp_path / "whole"
    shutil.copytree(tmp_path / "run", whole)
    assert run(Trace(), tokens=BUDGET, stop_at=8).position.step == 8
    for file in STATE_FILES[:-1]:
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(whole, tmp_path / "run")
        damage(tmp_path / "run" / "checkpoint-00000007" / file)
        trace = Trace()
        run(trace, tokens=BUDGET, stop_at=5)
        assert trace.steps[0][0] == 5, file
        assert "checkpoint-00000007 cannot be read" in capfd.readouterr().err


def test_all_states_damaged(run, tmp_path):
    """Not begun anew behind one's back, least of all from half a damaged state."""
    run(Trace(), tokens=BUDGET, stop_at=4)
    truncate(newest(tmp_path / "run") / "optimizer.bin")
    for start_from in (None, tmp_path / "nowhere"):
        with pytest.raises(
            TrainingError, match="expected a whole saved state in .*run.*none of those"
        ):
            run(Trace(), tokens=BUDGET, start_from=start_from)
    assert newest(tmp_path / "run").name == "checkpoint-00000004"


def test_damaged_cooldown_goes_back_before_it(run, tmp_path, uninterrupted):
    steps, final = uninterrupted
    trace = Trace()
    run(trace, tokens=BUDGET, stop_at=len(steps) - 1)
    truncate(newest(tmp_path / "run" / f"cooldown-{BUDGET}") / "model.safetensors")
    again = Trace()
    assert run(again, tokens=BUDGET).finished
    assert again.steps == steps[-len(again.steps) :] and len(again.steps) > 2
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


class Killed(BaseException):
    """Ends a call as a kill does: nothing catches it, nothing is cleaned up."""


def failing(monkeypatch, where, error, at=1):
    """The `at`-th call of ``training``'s `where` fails, and all later ones."""
    owner, name = {
        "save_state": (Accelerator, "save_state"),
        "flush": (os, "fsync"),
        "rename": (os, "replace"),
    }[where]
    real, calls = getattr(owner, name), []

    def call(*args):
        calls.append(args)
        if len(calls) >= at:
            raise error
        return real(*args)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("where", ["save_state", "flush", "rename"])
def test_killed_while_saving(run, tmp_path, uninterrupted, monkeypatch, where):
    """The states before stay, and the remains go with the next one."""
    steps, final = uninterrupted
    trace = Trace()
    run(trace, tokens=BUDGET, stop_at=4)
    with monkeypatch.context() as patch:
        patch.setattr(Log, "rewind", lambda *_: None)  # renames too
        patch.setattr(lock, "write_json", lambda *_: None)
        failing(patch, where, Killed())
        with pytest.raises(Killed):
            run(Trace(), tokens=BUDGET, stop_at=8)
    assert list((tmp_path / "run").glob(".partial-*"))
    assert run(trace, tokens=BUDGET).finished
    assert trace.steps == steps
    assert not list((tmp_path / "run").glob("**/.*"))
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


@pytest.mark.parametrize("where", ["save_state", "flush", "rename"])
def test_full_disk_while_saving(run, tmp_path, uninterrupted, monkeypatch, where):
    """Nothing half-written stays to keep the disk full; the message says what to do."""
    steps, final = uninterrupted
    trace = Trace()
    run(trace, tokens=BUDGET, stop_at=4)
    with monkeypatch.context() as patch:
        patch.setattr(Log, "rewind", lambda *_: None)
        patch.setattr(lock, "write_json", lambda *_: None)
        failing(patch, where, OSError(28, "No space left on device"))
        with pytest.raises(
            SaveError,
            match=r"expected to write a saved state in .*run, about 0\.\d MB, got OSError.*No space left"
            r".* MB are free there.*saved before is whole: make room.*same command again",
        ):
            run(Trace(), tokens=BUDGET, stop_at=8)
    assert [path.name for path in (tmp_path / "run").iterdir() if path.is_dir()] == [
        "checkpoint-00000004"
    ]
    assert run(trace, tokens=BUDGET).finished
    assert trace.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


@pytest.mark.parametrize("second_rename", [False, True])
def test_killed_while_a_state_takes_the_place_of_another(
    run, tmp_path, uninterrupted, monkeypatch, second_rename
):
    """The same step saved twice: between the two renames neither has its name."""
    steps, final = uninterrupted
    run(Trace(), tokens=BUDGET, stop_at=4)
    accelerator = Accelerator()
    state = tmp_path / "run" / "checkpoint-00000004"
    position = training.Position(**json.loads((state / "position.json").read_text()))
    with monkeypatch.context() as patch:
        failing(patch, "rename", Killed(), at=2 if second_rename else 1)
        with pytest.raises(Killed):
            save_checkpoint(accelerator, tmp_path / "run", position)
    assert state.exists() != second_rename
    trace = Trace()
    assert run(trace, tokens=BUDGET).finished
    assert trace.steps == steps[4:]
    assert not list((tmp_path / "run").glob("**/.*"))
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


@pytest.mark.parametrize("at", [1, 2])
def test_killed_while_a_model_takes_the_place_of_another(
    finished, tmp_path, tiny_tokenizer, monkeypatch, at
):
    """Before the second rename the old model is aside: the next call brings it back first."""
    _, model_folder, _ = finished
    out = tmp_path / "models" / "transformer"
    shutil.copytree(model_folder, out)
    (out / "old").touch()
    model = build("transformer", 300, **TRANSFORMER)
    with monkeypatch.context() as patch:
        failing(patch, "rename", Killed(), at=at)
        with pytest.raises(Killed):
            training.save_model(model, tiny_tokenizer, out, {})
    assert out.exists() == (at == 1)

    class Full:
        def save_pretrained(self, folder):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):  # the next save fails otherwise
        training.save_model(model, Full(), out, {})
    assert (out / "old").exists() and [p.name for p in out.parent.iterdir()] == ["transformer"]


def test_a_rename_that_fails_brings_the_model_back(finished, tmp_path, tiny_tokenizer, monkeypatch):
    _, model_folder, _ = finished
    out = tmp_path / "models" / "transformer"
    shutil.copytree(model_folder, out)
    (out / "old").touch()
    real = os.replace

    def replace(source, target):
        if Path(source).name.endswith("-new"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        training.save_model(build("transformer", 300, **TRANSFORMER), tiny_tokenizer, out, {})
    assert (out / "old").exists() and [p.name for p in out.parent.iterdir()] == ["transformer"]


def test_training_brings_a_model_back(run, finished, tmp_path):
    """A run into a folder whose model a kill has left aside: it is back before the first step."""
    _, model_folder, _ = finished
    out = tmp_path / "models" / "lstm-attention"
    shutil.copytree(model_folder, out.with_name(".lstm-attention-old"))
    run(Trace(), tokens=BUDGET, stop_at=2)
    assert (out / "training.json").exists() and [p.name for p in out.parent.iterdir()] == [out.name]


def test_no_room_for_the_finished_model(run, tmp_path, uninterrupted, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_model", full)
        with pytest.raises(SaveError, match="expected to write the finished model in .*make room"):
            run(Trace(), tokens=BUDGET)
    trace = Trace()
    assert run(trace, tokens=BUDGET).finished and trace.steps == []
    out = tmp_path / "models" / "lstm-attention"
    for key, value in load_file(out / "model.safetensors").items():
        assert torch.equal(value, uninterrupted[1][key].half())


def test_only_the_last_states_are_kept(run, tmp_path):
    run(Trace(), tokens=BUDGET, stop_at=6, save_minutes=0.0)
    names = sorted(path.name for path in (tmp_path / "run").glob("checkpoint-*"))
    assert names == ["checkpoint-00000005", "checkpoint-00000006"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "lstm"},
        {"recipe": Recipe(batch_tokens=251, warmup_tokens=1_000)},
        {"config": {**CONFIG, "width": 18}},
        {"data": "first only"},
    ],
)
def test_other_settings_in_the_same_run_folder(run, sources, tmp_path, arguments):
    run(Trace(), tokens=BUDGET, stop_at=2)
    key = {"name": "model"}.get(next(iter(arguments)), next(iter(arguments)))
    if key == "data":
        arguments = {"data": sources[:1]}
    with pytest.raises(
        TrainingError, match=f"expected the {key} of the run in .*use the same settings"
    ) as refused:
        run(Trace(), tokens=BUDGET, **arguments)
    if key == "recipe":  # what differs, and nothing else
        assert "another: batch_tokens 250 → 251; use" in str(refused.value)
    assert newest(tmp_path / "run").name == "checkpoint-00000002"


def test_damaged_settings(run, tmp_path):
    run(Trace(), tokens=BUDGET, stop_at=2)
    path = tmp_path / "run" / "settings.json"
    truncate(path)
    with pytest.raises(
        TrainingError, match="expected the settings .* is damaged .*; delete the file"
    ):
        run(Trace(), tokens=BUDGET)
    path.unlink()
    assert run(Trace(), tokens=BUDGET, stop_at=3).position.step == 3


def test_other_tokenizer_in_the_same_run_folder(run, sources, tmp_path, tiny_tokenizer_folder):
    run(Trace(), tokens=BUDGET, stop_at=2)
    other = AutoTokenizer.from_pretrained(tiny_tokenizer_folder)
    vocabulary = dict(other.get_vocab())
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    other.get_vocab = lambda: vocabulary
    with pytest.raises(TrainingError, match="expected the tokenizer of the run in"):
        training.train(
            "lstm-attention", sources, other, tmp_path / "run", tmp_path / "out",
            recipe=RECIPE, config=CONFIG, tokens=BUDGET,
        )  # fmt: skip


def test_run_begun_before_the_tokenizer_was_recorded(run, tmp_path):
    run(Trace(), tokens=BUDGET, stop_at=2)
    path = tmp_path / "run" / "settings.json"
    found = json.loads(path.read_text())
    del found["tokenizer"]
    path.write_text(json.dumps(found))
    assert run(Trace(), tokens=BUDGET, stop_at=3).position.step == 3


def test_loss_that_is_not_finite(run, tmp_path, uninterrupted, monkeypatch):
    """Said at once; the state before stays, and the run goes on from it."""
    steps, final = uninterrupted
    real = losses.linear_cross_entropy
    calls = []

    def diverging(*args, **kwargs):
        calls.append(1)
        return real(*args, **kwargs) * (math.nan if len(calls) == 6 else 1.0)

    trace = Trace()
    with monkeypatch.context() as patch:
        patch.setattr(losses, "linear_cross_entropy", diverging)
        with pytest.raises(
            TrainingError, match="expected a finite loss, got nan .* at step 5; .*lower"
        ):
            run(trace, tokens=BUDGET, save_minutes=0.0)
    assert newest(tmp_path / "run").name == "checkpoint-00000005"
    assert run(trace, tokens=BUDGET).finished
    assert trace.steps == steps
    assert_equal_weights(weights(tmp_path / "run" / f"cooldown-{BUDGET}"), final)


def test_a_rate_far_too_high(run):
    recipe = Recipe(batch_tokens=250, warmup_tokens=0, learning_rate=1e38, matrix_learning_rate=0.0)
    with pytest.raises(TrainingError, match="expected a finite loss"):
        run(Trace(), tokens=BUDGET, recipe=recipe)


# ---------------------------------------------------------------------------------------------
# Accumulation and processes


def test_accumulation_changes_nothing(run, tmp_path):
    """Chunks of unlike numbers of tokens weigh by their tokens: same losses, same weights."""
    recipe = Recipe(batch_tokens=250, warmup_tokens=1_000, matrix_learning_rate=0.0)
    traces = {}
    for accumulate in (1, 3, 12):  # 12: more chunks than some batches have sentences
        traces[accumulate] = Trace()
        run(
            traces[accumulate],
            tokens=1_200,
            recipe=recipe,
            accumulate=accumulate,
            run_folder=tmp_path / f"run-{accumulate}",
        )
    one = weights(tmp_path / "run-1" / "cooldown-1200")
    for accumulate in (3, 12):
        for mine, other in zip(traces[1].steps, traces[accumulate].steps, strict=True):
            assert mine[:2] == other[:2] and mine[2] == pytest.approx(other[2], abs=1e-5)
        for key, value in weights(tmp_path / f"run-{accumulate}" / "cooldown-1200").items():
            torch.testing.assert_close(value, one[key], rtol=0, atol=1e-5)


def test_every_epoch_has_all_text_and_other_joins(sources):
    """The loop plans each epoch anew: the same text, joined and batched differently."""
    accelerator = SimpleNamespace(process_index=0, num_processes=1)
    position = training.Position()
    made = batches(sources, RECIPE, position, accelerator, 1, 299, 0)
    epochs: list[list[list[int]]] = []
    for number in range(3):
        rows = []
        for _ in range(steps_of_an_epoch(sources, number)):
            (chunk,) = next(made).chunks
            rows += [row[row != -100].tolist() for row in chunk.labels]
        assert position.epoch == number
        epochs.append(rows)
    texts = [sorted(token for row in rows for token in row if token) for rows in epochs]
    assert texts[0] == texts[1] == texts[2]
    assert len({str(sorted(rows)) for rows in epochs}) == 3


@pytest.mark.parametrize("processes", [2, 3, 7])
def test_processes_share_a_batch(sources, processes):
    """Together they see every example once; all take the same steps of the same size."""

    def steps(process, of, accumulate=2):
        accelerator = SimpleNamespace(process_index=process, num_processes=of)
        made = batches(sources, RECIPE, training.Position(), accelerator, accumulate, 299, 0)
        return [next(made) for _ in range(25)]

    def sentences(chunks):
        return sorted(
            tuple(row[row != -100].tolist())
            for chunk in chunks
            for row in chunk.labels
            if (row != -100).any()
        )

    whole = steps(0, 1, accumulate=1)
    shared = [steps(process, processes) for process in range(processes)]
    for number, step in enumerate(whole):
        mine = [of_process[number] for of_process in shared]
        assert {part.num_target_tokens for part in mine} == {step.num_target_tokens}
        assert step.num_target_tokens == step.chunks[0].num_target_tokens
        assert all(len(part.chunks) == 2 for part in mine)
        assert sentences(c for part in mine for c in part.chunks) == sentences(step.chunks)


def test_gradient_of_a_batch_is_that_of_its_mean_loss(sources):
    """Whatever the chunks, the gradient is that of all tokens' mean, as one plain call gives it."""
    model = build("lstm-attention", 300, seed=1, **CONFIG)
    accelerator = SimpleNamespace(process_index=0, num_processes=1)
    for accumulate in (1, 3):
        made = batches(sources, RECIPE, training.Position(), accelerator, accumulate, 299, 0)
        step = next(made)
        model.zero_grad()
        for chunk in step.chunks:
            loss = training.summed_loss(model, chunk, torch.device("cpu"))
            (loss / step.num_target_tokens).backward()
        got = {name: p.grad.clone() for name, p in model.named_parameters()}
        if accumulate == 1:
            (chunk,) = step.chunks
            model.zero_grad()
            model(
                input_ids=torch.from_numpy(chunk.input_ids),
                attention_mask=torch.from_numpy(chunk.attention_mask),
                labels=torch.from_numpy(chunk.labels),
            ).loss.backward()
            expected = {name: p.grad.clone() for name, p in model.named_parameters()}
        for name, gradient in got.items():
            torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Going on from weights alone


def test_start_from_weights(run, finished, tmp_path):
    before, model_folder, _ = finished
    trace = Trace()
    result = run(
        trace,
        name="transformer",
        tokens=BUDGET + 3_000,
        start_from=model_folder,
        stop_at=before.position.step + 2,
    )
    # The next call finds a state of its own and goes on from it.
    result = run(trace, name="transformer", tokens=BUDGET + 3_000, start_from=model_folder)
    assert result.finished
    assert trace.steps[0][0] == before.position.step + 1
    # A new warm-up, over 1,000 target tokens.
    seen = trace.steps[0][1] - before.position.tokens
    assert trace.factors[:2] == pytest.approx([250 / 1_000, (seen + 250) / 1_000])
    assert max(trace.factors) == 1.0
    assert trace.steps[0][2] < math.log(300) - 0.1  # not from nothing
    report = result.report
    assert report["started_from"] == {
        "target_tokens": before.position.tokens,
        "dev_loss": before.report["dev_loss"],
    }
    assert report["target_tokens"] > BUDGET + 3_000 - 1
    assert (
        sum(report["length_histogram"]) == sum(before.report["length_histogram"]) + trace.examples
    )


def test_start_from_has_the_weights(finished, tmp_path):
    _, model_folder, _ = finished
    model = build("transformer", 300, seed=9, **TRANSFORMER)
    start_position(model, model_folder)
    stored = load_file(model_folder / "model.safetensors")
    state = model.state_dict()
    assert all(torch.equal(state[key], value.float()) for key, value in stored.items())
    assert model.lm_head.weight.data_ptr() == model.model.shared.weight.data_ptr()


@pytest.mark.parametrize(
    ("name", "config", "damage"),
    [
        ("lstm", CONFIG, None),
        ("transformer", {**TRANSFORMER, "encoder_ffn_dim": 8}, None),
        ("transformer", {**TRANSFORMER, "encoder_layers": 2}, None),
        ("transformer", TRANSFORMER, lambda folder: truncate(folder / "model.safetensors")),
        ("transformer", TRANSFORMER, lambda folder: (folder / "training.json").unlink()),
        ("transformer", TRANSFORMER, lambda folder: (folder / "training.json").write_text("{}")),
        ("transformer", TRANSFORMER, shutil.rmtree),
    ],
)
def test_start_from_what_does_not_fit(run, finished, tmp_path, name, config, damage):
    _, model_folder, _ = finished
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    if damage:
        damage(copy)
    with pytest.raises(
        TrainingError, match="expected (a model folder|weights) of the same architecture"
    ):
        run(Trace(), name=name, config=config, tokens=2 * BUDGET, start_from=copy)


# ---------------------------------------------------------------------------------------------
# The log


def log_rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_log_has_nothing_beyond_the_state(run, tmp_path, dev):
    arguments = {"tokens": BUDGET, "dev": dev, "dev_sample": 5, "dev_every_tokens": 500}
    whole = Trace()
    run(whole, run_folder=tmp_path / "whole", **arguments)
    parts = Trace()
    run(parts, stop_at=4, **arguments)
    state = run(parts, stop_at=11, **arguments).position
    shutil.rmtree(newest(tmp_path / "run"))  # the log is now ahead of the state, step 4
    with (tmp_path / "run/log.jsonl").open("a") as stream:
        stream.write('{"step": 12, "tok')  # cut by a crash
    assert log_rows_end(tmp_path / "run") > 4

    seen = []
    run(
        Trace(),
        on_step=lambda position, _: seen or seen.append(log_rows(tmp_path / "run")),
        **arguments,
    )
    first = whole.steps[3][1]
    assert max(row["tokens"] for row in seen[0]) <= first < state.tokens
    dev_rows = [
        [(row["tokens"], row["dev_loss"]) for row in log_rows(tmp_path / name) if "dev_loss" in row]
        for name in ("whole", "run")
    ]
    assert dev_rows[0] == dev_rows[1] and len(dev_rows[0]) > 6
    rows = [row for row in log_rows(tmp_path / "run") if "loss" in row]
    assert [row["step"] for row in rows] == [20]
    assert set(rows[0]) >= {
        "tokens",
        "rate_factor",
        "gradient_norm",
        "seconds",
        "tokens_per_second",
    }


def log_rows_end(folder: Path) -> int:
    return Log(folder / "log.jsonl", True).rows()[-1]["step"]


def test_curve_is_thinned_and_keeps_the_last_point():
    rows = [{"tokens": n, "loss": 5 - n / 1000} for n in range(1, 1001)]
    rows += [{"tokens": 900, "dev_loss": 3.0}, {"tokens": 900, "dev_loss": 3.0}]
    curves = curve(rows, points=100)
    assert len(curves["train"]) == 100 and curves["train"][-1] == [1000, 4.0]
    assert curves["dev"] == [[900, 3.0]]


# ---------------------------------------------------------------------------------------------
# Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_handlers_come_back(run, tmp_path, number):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    def interrupt(position, loss):
        if position.step == 3:
            os.kill(os.getpid(), number)

    result = run(Trace(), tokens=BUDGET, on_step=interrupt)
    assert not result.finished
    assert newest(tmp_path / "run").name == "checkpoint-00000003"
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_signal_interrupts(run):
    def twice(position, loss):
        if position.step == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(
        KeyboardInterrupt, match="stopped at once by a second signal; the same comm"
    ):
        run(Trace(), tokens=BUDGET, on_step=twice)


def test_signals_in_close_succession_are_one_under_a_launcher(monkeypatch):
    """A terminal signals the processes and their launcher, which passes it on."""
    clock = Clock(monkeypatch, 2.0)
    stop = StopRequest(grace=5.0)
    for _ in range(3):
        stop._handle(signal.SIGTERM, None)
        clock.step(None, None)
    assert stop.asked
    with pytest.raises(KeyboardInterrupt):
        stop._handle(signal.SIGTERM, None)


def test_precision(run, tmp_path, monkeypatch):
    """bf16 is recorded, and other than none; a typing error is said."""
    losses = {}
    monkeypatch.setattr(processes, "bf16_pays", lambda device: True)
    for precision in ("auto", "no", "bf16"):
        trace = Trace()
        result = run(
            trace, name="transformer", tokens=600, mixed_precision=precision,
            run_folder=tmp_path / precision,
        )  # fmt: skip
        losses[precision] = [loss for _, _, loss in trace.steps]
        assert result.report["precision"] == ("fp32" if precision == "no" else "bf16")
        Accelerator().state._reset_state(reset_partial_state=True)
    assert losses["auto"] == losses["bf16"] != losses["no"]
    assert losses["bf16"] == pytest.approx(losses["no"], abs=0.05)
    with pytest.raises(TrainingError, match="mixed precision of bf16, no or auto, got 'fp8'; give"):
        run(Trace(), tokens=600, mixed_precision="fp8")


def test_a_run_keeps_its_precision(run, tmp_path, monkeypatch):
    """Whatever "auto" would say now; asking for another one is refused."""
    run(Trace(), tokens=BUDGET, stop_at=2, mixed_precision="bf16")
    assert not run(Trace(), tokens=BUDGET, stop_at=4).finished
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["precision"] == "bf16"
    with pytest.raises(TrainingError, match="expected bf16, the precision of the run in .*'no'"):
        run(Trace(), tokens=BUDGET, mixed_precision="no")
