"""Two seeds of a model: what differs, what must not, and what becomes of a smaller difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_bits import change, write
from test_cli import run_here

from seqviz.measuring import markdown, seeds
from seqviz.measuring.bits import BudgetError
from seqviz.report import Report
from seqviz.training import save_model

RECIPE = {"learning_rate": 0.01, "seed": 1}


@pytest.fixture
def folders(tmp_path: Path, tiny_model: Any, tiny_tokenizer: Any) -> dict[str, Path]:
    """Two tiny models, each with two seeds on record."""
    found = {}
    for name in ("lstm", "lstm-attention"):
        for seed in (1, 2):
            folder = found[f"{name}-{seed}"] = tmp_path / f"{name}-{seed}"
            data = [{"name": "t", "sha256": "a", "repeat": 1}]
            record = {"model": name, "dev_loss": 2.0, "target_tokens": 1000, "data": data}
            record["recipe"] = {**RECIPE, "seed": seed}
            save_model(tiny_model(name), tiny_tokenizer, folder, record)
    return found


def test_the_command(folders: dict[str, Path], tmp_path: Path, monkeypatch, capsys) -> None:
    out = tmp_path / "seeds.json"
    data = write(tmp_path / "t.tsv")
    arguments = ["seeds", "--data", str(data), "--out", str(out), "--work", str(tmp_path / "work")]
    arguments += [part for folder in folders.values() for part in ("--model", str(folder))]
    code, _, said = run_here([*arguments, "--resamples", "10"], monkeypatch, capsys)
    assert code == 0, said
    report = Report.read(out)
    assert report is not None
    assert report.command.startswith("seqviz seeds --data t.tsv --model lstm-1=lstm-1")
    found = report.results
    assert {model: list(runs) for model, runs in found["seeds"].items()} == {
        "lstm": ["1", "2"],
        "lstm-attention": ["1", "2"],
    }
    # Both seeds are the same weights here.
    assert found["spread"]["same-content"]["bleu_drop"] == 0
    assert "| `lstm` | 2 |" in seeds.block(report)


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("lstm-2", {"recipe": RECIPE}, "different seeds, got lstm of seed 1 twice"),
        ("lstm-2", {"recipe": {"learning_rate": 0.1, "seed": 2}}, "nothing but the seed, got"),
        ("lstm-2", {"target_tokens": 2000}, "models of one budget, got .*lstm-2 2,000"),
        ("lstm-2", {"data": []}, "same training corpora, got others of lstm-2 than"),
    ],
)
def test_runs_that_differ_in_more_than_the_seed_are_refused(
    folders: dict[str, Path], name: str, changed: dict[str, Any], said: str
) -> None:
    seeds.by_seed(folders)
    change(folders[name], **changed)
    with pytest.raises(BudgetError, match=said):
        seeds.by_seed(folders)


def test_one_seed_alone_is_refused(folders: dict[str, Path]) -> None:
    shutil.rmtree(folders.pop("lstm-2"))
    with pytest.raises(BudgetError, match="two seeds of lstm or more, got 1 alone"):
        seeds.by_seed(folders)


def length_of(kept: dict[str, float]) -> Report:
    """Quality by length of runs that keep these shares of BLEU, and add half of that in loss."""

    def effect(share: float) -> dict[str, Any]:
        entry = {"low": None, "high": None}
        values = {"bleu_ratio": share, "chrf_ratio": share, "loss_change": share / 2}
        return {m: {"value": values.get(m, 0.0), **entry} for m in seeds.MEASURES}

    effects = {"models": {name: effect(share) for name, share in kept.items()}}
    overall = {"bleu": 10.0, "chrf": 20.0, "loss": 2.0}
    natural = {name: {"overall": overall} for name in kept}
    data = {"sha256": "0" * 64, "pairs": 10, "runs": 5}
    results = {
        "curves": {"natural": natural},
        "effects": {"natural": effects, "same-content": effects},
    }
    return Report("", data, results, {name: {"target_tokens": 1000} for name in kept})


def test_the_spread_is_the_largest_difference_within_one_model() -> None:
    runs = {"a": ("lstm", 1), "b": ("lstm", 2), "c": ("transformer", 1), "d": ("transformer", 2)}
    report = seeds.seeds_report(length_of({"a": 0.6, "b": 0.68, "c": 0.9, "d": 0.95}), runs)
    assert seeds.apart(report, "same-content", "bleu_ratio") == 0.08
    assert seeds.apart(report, "natural", "loss_change") == 0.04
    assert seeds.apart(None, "natural", "loss_change") is None
    said = seeds.block(report)
    assert "| `lstm` | 1 | 10.0 | 0.60 | 0.60 | 0.300 |" in said
    assert "| largest difference of two seeds | | | 0.08 | 0.08 | 0.040 |" in said


@pytest.mark.parametrize(
    ("value", "verdict", "said"),
    [
        (0.07, "holds", "no finding: two seeds differ by 0.080"),
        (-0.09, "holds", "holds; two seeds differ by 0.080"),
        (0.01, "undecided", "undecided"),
    ],
)
def test_a_smaller_difference_is_no_finding(
    models_folder: Path, value: float, verdict: str, said: str
) -> None:
    runs = {"a": ("lstm", 1), "b": ("lstm", 2)}
    report = seeds.seeds_report(length_of({"a": 0.6, "b": 0.68}), runs)
    length = json.loads((models_folder / "report" / "length.json").read_text(encoding="utf-8"))
    first = length["prediction"]["hypotheses"][1]
    assert (first["curve"], first["measure"]) == ("same-content", "bleu_ratio")
    first |= {"value": value, "verdict": verdict}
    assert f"| {said} |" in markdown.length(Report.of(length), report)
    assert f"| {verdict} |" in markdown.length(Report.of(length))
