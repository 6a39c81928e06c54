"""Whole test sets, greedy and with a beam."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from test_cli import run_here

from seqviz.corpus import Pair
from seqviz.measuring import markdown
from seqviz.measuring import plan as plans
from seqviz.measuring.outputs import Output, Outputs
from seqviz.measuring.plan import Plan
from seqviz.measuring.quality import quality_report
from seqviz.training import save_model

SOURCES = [f"sentence number {i} of the test" for i in range(30)]
REFERENCES = [f"la phrase {i} du test est bien ici" for i in range(30)]


def made(every: int) -> Outputs:
    """Outputs of which every `every`-th is the reference."""
    texts = [r if i % every == 0 else "la phrase du test" for i, r in enumerate(REFERENCES)]
    pairs = list(zip(SOURCES, REFERENCES, strict=True))
    return Outputs(
        {s: Output(t) for s, t in zip(SOURCES, texts, strict=True)},
        {pair: np.full(4, 2.0) for pair in pairs},
        {"weights_sha256": f"{every}"},
    )


@pytest.fixture
def plan() -> Plan:
    pairs = tuple(Pair("d", s, r) for s, r in zip(SOURCES, REFERENCES, strict=True))
    return Plan(pairs, (), {"empty side": 1}, {"name": "t.tsv", "sha256": "ab", "lines": 31})


def test_scores_are_sacrebleus(plan: Plan):
    searches = {1: {"lstm": made(3)}, 4: {"lstm": made(2)}}
    report = quality_report({"News": (plan, searches)}, number=50).content()
    for beams, every in (("1", 3), ("4", 2)):
        found = report["test_sets"]["News"]["searches"][beams]["lstm"]
        texts = [made(every).translations[s].text for s in SOURCES]
        assert found["bleu"] == pytest.approx(
            sacrebleu.corpus_bleu(texts, [REFERENCES]).score, abs=0.01
        )
        assert found["chrf"] == pytest.approx(
            sacrebleu.corpus_chrf(texts, [REFERENCES]).score, abs=0.01
        )
        assert found["bleu_low"] <= found["bleu"] <= found["bleu_high"]
        assert found["loss"] == pytest.approx(2.0)
        assert found["n"] == 30
    assert report["test_sets"]["News"]["data"]["skipped"] == {"empty side": 1}
    assert report["models"] == {"lstm": {"weights_sha256": "2"}}


def test_no_test_set():
    with pytest.raises(ValueError, match="at least one test set"):
        quality_report({})


def test_table(plan: Plan):
    content = quality_report({"News": (plan, {1: {"lstm": made(3)}, 4: {"lstm": made(2)}})})
    found = content.results["test_sets"]["News"]["searches"]
    text = markdown.quality(content, ["lstm"])
    assert f"{found['1']['lstm']['bleu']:.1f} (" in text
    assert f"{found['4']['lstm']['chrf']:.1f} (" in text
    assert "30 of 31 pairs" in text


def test_a_thinned_plan_is_spread_over_the_file(plan: Plan):
    thin = plans.thinned(plan, 4)
    assert [p.source for p in thin.pairs] == [SOURCES[i] for i in (0, 10, 19, 29)]
    assert thin.sample == 4
    assert plans.thinned(plan, 500) is plan
    with pytest.raises(ValueError, match="at least 1 sentence"):
        plans.thinned(plan, 0)


def test_hand_written_pairs_are_a_plan():
    plan = plans.written("development")
    assert len(plan.pairs) == 30
    assert all(pair.source and pair.target for pair in plan.pairs)


def test_from_the_command_line(
    tmp_path: Path, tiny_model, tiny_tokenizer, sentence_pairs, monkeypatch, capsys
):
    save_model(
        tiny_model("lstm"), tiny_tokenizer, tmp_path / "lstm", {"model": "lstm", "dev_loss": 2.0}
    )
    file = tmp_path / "test.tsv"
    file.write_text("".join(f"d\t{e}\t{f}\n" for e, f in sentence_pairs[:12]), encoding="utf-8")
    out = tmp_path / "quality.json"
    arguments = ["quality", "--data", f"Made={file}", "--model", str(tmp_path / "lstm")]
    arguments += ["--out", str(out), "--work", str(tmp_path / "work"), "--workers", "1"]
    arguments += ["--sample", "5", "--resamples", "10", "--beams", "2"]
    status, _, _ = run_here(arguments, monkeypatch, capsys)
    assert not status
    report = json.loads(out.read_text(encoding="utf-8"))
    assert list(report["test_sets"]) == ["Made", "hand-written"]
    assert report["test_sets"]["Made"]["searches"]["2"]["lstm"]["n"] == 5
    assert str(tmp_path) not in out.read_text(encoding="utf-8").replace(str(file), "")

    for wrong, message in (("test.tsv", "NAME=FILE"), ("=x", "NAME=FILE")):
        status, _, error = run_here(
            ["quality", "--data", wrong, "--out", str(out)], monkeypatch, capsys
        )
        assert status == 2
        assert message in error
