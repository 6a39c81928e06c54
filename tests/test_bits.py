"""Bits that get through: arithmetic by hand, equal budgets, the command on tiny models."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import run_here

from seqviz.drawing import figures
from seqviz.measuring import bits
from seqviz.measuring import plan as plans
from seqviz.measuring.outputs import Outputs
from seqviz.training import save_model


def write(path: Path) -> Path:
    """60 sentences of 5 words, 60 of 15, and runs of four sentences of 15 words."""
    rows = [(f"s{i}", 5) for i in range(60)] + [(f"m{i}", 15) for i in range(60)]
    rows += [(f"run{i // 4}", 15) for i in range(8)]
    path.write_text(
        "".join(
            f"{document}\t{' '.join(f'w{n}.{j}' for j in range(words))}\t"
            f"{' '.join(f'm{n}.{j}' for j in range(words))}\n"
            for n, (document, words) in enumerate(rows)
        ),
        encoding="utf-8",
    )
    return path


def losing(plan: plans.Plan, nats: float, holds: int = 1_000) -> Outputs:
    """A reader that knows the first `holds` pieces for nothing, and guesses the others at `nats`."""
    return Outputs(
        {},
        {
            text: np.array([0.0 if i < holds else nats for i in range(len(text[1].split()))])
            for text in plan.texts()
        },
        {"weights_sha256": "0", "target_tokens": 15_000_000},
    )


def test_a_vector_of_ten_words_saturates_and_a_reader_that_looks_back_does_not(
    tmp_path: Path,
) -> None:
    plan = plans.plan(write(tmp_path / "t.tsv"))
    blind = losing(plan, 2 * math.log(2), holds=0)  # two bits a piece to guess
    readers = {"lstm": losing(plan, 2 * math.log(2), holds=10), "transformer": losing(plan, 0.0)}
    report = bits.bits_report(plan, ("lstm-blind", blind), readers, number=20)
    curve = report.results["curves"]["natural"]
    shown = {name: [b["bits"] for b in buckets if b["n"]] for name, buckets in curve.items()}
    assert shown == {"lstm": [10.0, 20.0], "transformer": [10.0, 30.0]}
    same = report.results["curves"]["same-content"]
    assert [(b["parts"], b["words"]) for b in same["lstm"]] == [(4, 15.0), (2, 30.0), (1, 60.0)]
    assert [b["bits"] for b in same["lstm"]] == [80.0, 40.0, 20.0]
    assert [b["bits"] for b in same["transformer"]] == [120.0] * 3
    assert [b["bits_a_word"] for b in same["transformer"]] == [2.0] * 3
    first = curve["lstm"][0]
    assert (first["n"], first["thin"], first["bits_low"], first["bits_high"]) == (60, False, 10, 10)
    assert same["lstm"][0]["thin"]
    assert report.results["without"]["loss"] == pytest.approx(2 * math.log(2), abs=1e-4)
    said = bits.block(report)
    assert "| `lstm` | 0.36 | 10 (10 to 10) | 20 (20 to 20) |" in said
    assert "| `transformer` | *120 (120 to 120)* |" in said and "15,000,000 target tokens" in said
    for language, expected in (("en", "bits of a sentence"), ("zh", "比特")):
        figure = figures.bits(report.content(), language=language)
        assert any(expected in text.get_text() for text in figure.texts)
        lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
        assert lines["LSTM"].get_ydata().tolist() == [10.0, 20.0]
    with pytest.raises(ValueError, match="expected a report of 'seqviz bits', found no curves"):
        figures.bits({})


@pytest.fixture
def folders(tmp_path: Path, tiny_model: Any, tiny_tokenizer: Any) -> dict[str, Path]:
    """Tiny models of one budget, and how to change what they had."""
    found = {}
    for name in ("lstm-blind", "lstm", "lstm-attention"):
        found[name] = tmp_path / name
        data = [{"name": "t", "sha256": "a", "repeat": 1}]
        record = {"model": name, "dev_loss": 2.0, "target_tokens": 1000, "data": data}
        save_model(tiny_model(name), tiny_tokenizer, found[name], record)
    return found


def change(folder: Path, **changed: Any) -> None:
    file = folder / "training.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **changed}), "utf-8")


def test_the_command(folders: dict[str, Path], tmp_path: Path, monkeypatch, capsys) -> None:
    out = tmp_path / "bits.json"
    arguments = ["bits", "--data", str(write(tmp_path / "t.tsv")), "--out", str(out)]
    arguments += ["--without", str(folders["lstm-blind"]), "--work", str(tmp_path / "work")]
    arguments += ["--model", f"one={folders['lstm']}", "--model", str(folders["lstm-attention"])]
    arguments += ["--resamples", "10", "--workers", "1"]
    change(folders["lstm"], target_tokens=1009)  # the rest of a step
    code, _, said = run_here(arguments, monkeypatch, capsys)
    assert code == 0, said
    report = json.loads(out.read_text("utf-8"))
    assert report["command"] == (
        "seqviz bits --data t.tsv --without lstm-blind --model one=lstm "
        "--model lstm-attention=lstm-attention --resamples 10"
    )
    assert set(report["curves"]["natural"]) == set(report["readers"]) == {"one", "lstm-attention"}
    assert report["without"]["name"] == "lstm-blind"
    assert not list((tmp_path / "work").glob("translations-*.jsonl"))


@pytest.mark.parametrize(
    ("which", "changed", "said"),
    [
        (
            "lstm",
            {"target_tokens": 2000},
            "models of one budget, got without a source 1,000, lstm 2",
        ),
        (
            "lstm",
            {"data": []},
            "same training corpora, got others of lstm than of without a source",
        ),
    ],
)
def test_models_that_were_not_trained_alike_are_refused(
    folders, tmp_path: Path, which: str, changed: dict[str, Any], said: str
) -> None:
    change(folders[which], **changed)
    with pytest.raises(bits.BudgetError, match=said):
        bits.check_alike({"without a source": folders["lstm-blind"], which: folders[which]})


def test_a_model_that_is_told_something_is_no_blind_one(folders: dict[str, Path]) -> None:
    bits.check_without(folders["lstm-blind"])
    with pytest.raises(bits.BudgetError, match="got one of the context 'fixed' in .*lstm; train"):
        bits.check_without(folders["lstm"])
