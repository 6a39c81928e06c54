"""Short training runs: every model gets the same candidates, and what is finished is kept."""

from __future__ import annotations

import json
import math
import os
import signal
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from seqviz import cli, corpus, trials
from seqviz.architectures import MODEL_NAMES
from seqviz.training import DivergedError, Recipe
from seqviz.translating.loading import load

SMALL = {"d_model": 16, "width": 24, "vector_size": 24, "attention_size": 8, "num_layers": 1}
RECIPE = Recipe(batch_tokens=60, warmup_tokens=60)


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def material(tmp_path: Path, sentence_pairs, tiny_tokenizer) -> dict[str, Any]:
    files = {}
    for name, pairs in (("train", sentence_pairs[:60]), ("dev", sentence_pairs[100:])):
        files[name] = tmp_path / f"{name}.tsv"
        lines = [f"d\t{english}\t{french}\n" for english, french in pairs]
        files[name].write_text("".join(lines), encoding="utf-8")
    encoded = {
        name: corpus.encode_corpus(path, tiny_tokenizer, tmp_path / "encoded")
        for name, path in files.items()
    }
    return {
        "sources": [corpus.Source(encoded["train"])],
        "tokenizer": tiny_tokenizer,
        "dev": encoded["dev"],
        "pairs": trials.dev_pairs(files["dev"], 20),
        "folder": tmp_path / "trials",
        "tokens": 400,
        "config": SMALL,
    }


def test_every_model_gets_the_same_candidates():
    planned = trials.recipe_trials(RECIPE)
    by_model = {
        model: [(t.name, asdict(t.recipe)) for t in planned if t.model == model]
        for model in MODEL_NAMES
    }
    assert len({json.dumps(found) for found in by_model.values()}) == 1
    assert len(planned) == len(MODEL_NAMES) * len(trials.RATES)
    assert len({trial.folder for trial in planned}) == len(planned)


def test_steps_differ_in_their_size_alone():
    planned = trials.step_trials(RECIPE)
    assert Counter(t.recipe.batch_tokens for t in planned) == {1500: 2, 3000: 2}
    assert len({json.dumps({**asdict(t.recipe), "batch_tokens": 0}) for t in planned}) == 1
    assert len({trial.folder for trial in planned}) == 4


@pytest.mark.parametrize("best", [0.006, 0.024, 0.048, 0.096, 0.384])
def test_rates_are_searched_until_the_best_lies_inside(best: float):
    tried: list[float] = []

    def run_one(trial: trials.Trial) -> dict[str, Any]:
        rate = trial.recipe.matrix_learning_rate
        tried.append(rate)
        return {"dev_loss": abs(math.log(rate / best)), "matrix_learning_rate": rate}

    planned = trials.recipe_trials(RECIPE, ["lstm"])
    found = trials.search(planned, run_one, trials.next_matrix_trial)
    assert tried[:3] == list(trials.RATES) and len(found["lstm"]) == len(set(tried))
    at = sorted(tried).index(best)
    assert 0 < at < len(tried) - 1


@pytest.mark.parametrize("best", [0.0003, 0.001, 0.003, 0.01, 0.1])
def test_rates_of_adamw_go_by_half_decades_at_the_models_own_rate_of_muon(best: float):
    tried: list[float] = []

    def run_one(trial: trials.Trial) -> dict[str, Any]:
        rate = trial.recipe.learning_rate
        assert trial.recipe.matrix_learning_rate == 0.024
        assert trial.name == f"AdamW {rate:g}, Muon 0.024"
        tried.append(rate)
        return {"dev_loss": abs(math.log(rate / best)), "learning_rate": rate}

    planned = trials.adam_trials(RECIPE, {"lstm": 0.024}, ["lstm"])
    trials.search(planned, run_one, trials.next_adam_trial)
    assert tried[:2] == list(trials.ADAM_RATES)
    assert 0 < sorted(tried).index(best) < len(tried) - 1
    assert {f"{rate:g}"[-1] for rate in tried if rate < 1} <= {"1", "3"}


def test_what_diverged_is_an_edge():
    def run_one(trial: trials.Trial) -> dict[str, Any]:
        rate = trial.recipe.matrix_learning_rate
        result = {"diverged": "nan"} if rate > 0.05 else {"dev_loss": 1 / rate}
        return {**result, "matrix_learning_rate": rate}

    planned = trials.recipe_trials(RECIPE, ["rnn"])
    found = trials.search(planned, run_one, trials.next_matrix_trial)
    assert trials.choice(found) == {"rnn": "Muon 0.048, 60 tokens a step"}


def test_a_search_that_is_stopped_has_no_results():
    assert trials.search(trials.recipe_trials(RECIPE), lambda trial: None) is None


def test_each_context_gets_the_same_seeds():
    planned = trials.mechanism_trials(RECIPE)
    assert Counter(t.model for t in planned) == {"lstm": 2, "lstm-mean": 2, "lstm-attention": 2}
    assert {t.recipe.seed for t in planned} == {1, 2}
    same = {json.dumps({**asdict(t.recipe), "seed": 0}) for t in planned}
    assert len(same) == 1


def test_a_trial_is_measured_and_kept(material, monkeypatch):
    trial = trials.Trial("lstm", "Muon 0.012", RECIPE)
    found = trials.run(trial, **material)
    assert found is not None
    assert found["target_tokens"] >= 400
    assert found["dev_loss"] < math.log(len(material["tokenizer"])) + 0.5
    assert sum(bucket["n"] for bucket in found["by_length"]) == 20
    # The loss is that of the model that was saved.
    translator = load(material["folder"] / trial.folder / "model")
    losses = translator.losses([(p.source, p.target) for p in material["pairs"]])
    total = sum(x.sum() for x in losses) / sum(len(x) for x in losses)
    assert found["dev_loss"] == pytest.approx(total, abs=1e-3)

    def never(*args: Any, **arguments: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(trials.training, "train", never)
    assert trials.run(trial, **material) == found


def test_a_stopped_trial_has_no_result_and_goes_on(material, monkeypatch):
    trial = trials.Trial("lstm", "seed 1", RECIPE)
    train = trials.training.train
    steps: list[int] = []

    def stopping(*args: Any, **arguments: Any) -> Any:
        def on_step(position: Any, loss: float) -> None:
            steps.append(position.step)
            if position.step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

        return train(*args, on_step=on_step, **arguments)

    monkeypatch.setattr(trials.training, "train", stopping)
    assert trials.run(trial, **material) is None
    assert not list(material["folder"].rglob("result.json"))
    found = trials.run(trial, **material)
    assert found is not None
    assert steps == list(range(1, max(steps) + 1))  # no step twice


def test_a_trial_that_diverges_is_a_result_and_is_not_chosen(material, monkeypatch):
    def diverge(*args: Any, **arguments: Any) -> None:
        raise DivergedError("expected a finite loss, got nan")

    monkeypatch.setattr(trials.training, "train", diverge)
    found = trials.run(trials.Trial("lstm", "AdamW 9", RECIPE), **material)
    rates = {"learning_rate": 0.001, "matrix_learning_rate": 0.012}
    assert found == {"diverged": "expected a finite loss, got nan", **rates}
    results = {"lstm": {"AdamW 9": found, "b": {"dev_loss": 5.0}, "a": {"dev_loss": 4.0}}}
    assert trials.choice(results) == {"lstm": "a"}


def test_report(material):
    results = {"lstm": {"a": {"dev_loss": 4.0}, "b": {"dev_loss": 3.0}}}
    arguments = (results, 400, material["sources"], [material["dev"]], 20)
    found = trials.report("recipe", *arguments)
    assert "until the best lies inside" in trials.recipe_table(found, {})
    assert "rule" not in trials.report("step", *arguments)
    assert found["lowest"] == {"lstm": "b"}
    assert found["dev_data"]["pairs"] == 20
    assert found["data"][0]["sha256"]
    assert "lowest" not in trials.report("mechanism", *arguments)


def test_the_command(tmp_path, sentence_pairs, tiny_tokenizer, monkeypatch, capsys):
    """Rates are searched until the best lies inside; of two development files each has half of the pairs."""
    lines = [f"d\t{english}\t{french}\n" for english, french in sentence_pairs]
    for name, part in (("train", lines[:60]), ("one", lines[60:90]), ("two", lines[90:])):
        (tmp_path / f"{name}.tsv").write_text("".join(part), encoding="utf-8")
    tiny_tokenizer.save_pretrained(tmp_path / "tokenizer")
    monkeypatch.setattr(trials, "DEV_PAIRS", 20)
    asked: list[tuple[str, float, int]] = []

    def run(trial: trials.Trial, *arguments: Any) -> dict[str, Any]:
        rate, pairs = trial.recipe.matrix_learning_rate, arguments[3]
        asked.append((trial.model, rate, len(pairs)))
        assert {pair.source for pair in pairs[:10]} <= {
            english for english, _ in sentence_pairs[60:90]
        }
        # The lowest rate is the best, down to what is tried.
        return {"dev_loss": rate, "matrix_learning_rate": rate}

    def next_rate(losses: dict[float, float], neighbour: Any) -> float | None:
        return min(losses) / 2 if len(losses) == 3 else None

    monkeypatch.setattr(trials, "run", run)
    monkeypatch.setattr(trials, "next_rate", next_rate)
    out = tmp_path / "recipe.json"
    command = [
        "seqviz", "trials", "recipe", "--data", tmp_path / "train.tsv", "--dev", tmp_path / "one.tsv",
        "--dev", tmp_path / "two.tsv", "--out", out, "--work", tmp_path / "work",
        "--tokenizer", tmp_path / "tokenizer",
    ]  # fmt: skip
    for more in (["--model", "lstm"], []):
        monkeypatch.setattr("sys.argv", [str(part) for part in [*command, *more]])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0, capsys.readouterr().err
        if more:  # one of several processes: another one writes
            assert not out.exists() and [rate for _, rate, _ in asked] == [*trials.RATES, 0.006]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert set(found["trials"]) == set(MODEL_NAMES) and {pairs for *_, pairs in asked} == {20}
    assert found["lowest"]["rnn"] == "Muon 0.006, 3000 tokens a step"
    assert [one["name"] for one in found["dev_data"]["files"]] == ["one.tsv", "two.tsv"]


def test_rates_of_adamw_are_searched_after_muons(tmp_path, monkeypatch, capsys):
    for more in (
        [],
        ["--after", str(tmp_path / "none.json")],
        ["--after", str(tmp_path / "empty.json")],
    ):
        (tmp_path / "empty.json").write_text("{}", encoding="utf-8")
        command = [
            "seqviz",
            "trials",
            "adam",
            "--data",
            "a.tsv",
            "--dev",
            "b.tsv",
            "--out",
            "c.json",
        ]
        monkeypatch.setattr("sys.argv", [*command, *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = " ".join(capsys.readouterr().err.split())
        assert ended.value.code == 2 and "trials recipe" in said


def test_tables(material):
    arguments = (400, material["sources"], [material["dev"]], 20)
    results = {"lstm": {"a": {"dev_loss": 4.0}, "b": {"dev_loss": 3.0}, "c": {"diverged": "nan"}}}
    found = trials.report("recipe", results, *arguments)
    shipped = {"lstm": {"recipe": {"learning_rate": 0.001, "matrix_learning_rate": 0.012}}}
    table = trials.recipe_table(found, shipped)
    assert "| `lstm` | 4.000 | **3.000** | diverged |" in table
    assert "AdamW 0.001, Muon 0.012 for `lstm`." in table
    by_length = [{"low": 1, "high": 10, "n": 5, "loss": 2.5}]
    results = {"lstm": {"seed 2": {"dev_loss": 3.0, "seed": 2, "by_length": by_length}}}
    table = trials.mechanism_table(trials.report("mechanism", results, *arguments))
    assert "| model | seed | all | 1–10 |" in table
    assert "| `lstm` | 2 | 3.000 | 2.500 |" in table
