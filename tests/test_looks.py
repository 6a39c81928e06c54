"""Looks at a test set: none is lost when weights are measured anew, and each is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import run_here

from seqviz.files import file_digest
from seqviz.measuring import looks
from seqviz.measuring.artefacts import ARTEFACTS, Site
from seqviz.report import Report

HYPOTHESES = [{"id": "H1", "says": "Longer costs more.", "first": "a", "second": "b"}]


def length(created: str, tokens: int, value: float | None = 0.1, sha: str = "p") -> Report:
    """A length report that answers one prediction."""
    bounds = {"low": value - 0.05, "high": value + 0.05} if value is not None else {}
    hypotheses = [{**HYPOTHESES[0], "value": value, **bounds, "verdict": "holds"}]
    models = {"a": {"weights_sha256": created, "target_tokens": tokens}}
    results = {"prediction": {"sha256": sha, "hypotheses": hypotheses}}
    return Report("", {"sha256": "t"}, results, models, created=created)


def test_looks_are_kept_in_their_order_and_once() -> None:
    first = looks.looks_report([length("2026-01-02", 2000)])
    again = looks.looks_report([length("2026-01-01", 1000), length("2026-01-02", 2000)], first)
    found = again.results["looks"]
    assert [(one["created"], one["target_tokens"]) for one in found] == [
        ("2026-01-01", 1000),
        ("2026-01-02", 2000),
    ]
    with pytest.raises(ValueError, match="expected a length report that answers a prediction"):
        looks.looks_report([Report("", {"sha256": "t"}, {}, created="2026-01-03")])


def test_every_look_is_said_the_last_one_once() -> None:
    known = looks.looks_report([length("2026-01-01", 1000), length("2026-01-02", 2000, None)])
    said = looks.block(known, length("2026-01-03", 3000, sha="q"))
    assert "so far: 3," in said
    assert "| 1,000 tokens, 2026-01-01 | 2,000 tokens, 2026-01-02 |" in said
    assert "| H1 | Longer costs more. | 0.100 (0.050 to 0.150): holds | none: holds |" in said
    assert "| 3,000 tokens, 2026-01-03 |" in said  # another prediction, a table of its own
    assert "so far: 2," in looks.block(known, length("2026-01-02", 2000))


def test_the_look_of_earlier_weights_is_kept_before_they_are_measured_anew(tmp_path: Path) -> None:
    artefact = next(one for one in ARTEFACTS if one.name == "looks")
    names = [one.name for one in ARTEFACTS]
    assert names.index("looks") < names.index("length")
    (tmp_path / "report").mkdir()
    length("2026-01-01", 1000).write(tmp_path / "report" / "length.json")

    def current(digest: str) -> Report | None:
        site = Site(tmp_path, {"a": {"weights_sha256": digest}}, print, tmp_path)
        return artefact.current(site)

    assert current("2026-01-01") is None  # of these weights
    found = current("others")
    assert found is not None and len(found.results["looks"]) == 1
    length("2026-02-01", 2000).write(tmp_path / "report" / "length.json")
    found = current("2026-02-01")
    assert found is not None and len(found.results["looks"]) == 1
    found = current("yet others")
    assert found is not None and len(found.results["looks"]) == 2


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    old, out = tmp_path / "old.json", tmp_path / "looks.json"
    code, _, said = run_here(["looks", str(old), "--out", str(out)], monkeypatch, capsys)
    assert code == 2 and "expected a length report at" in said
    for created in ("2026-01-01", "2026-01-02"):
        length(created, 1000).write(old)
        code, _, said = run_here(["looks", str(old), "--out", str(out)], monkeypatch, capsys)
        assert code == 0, said
    assert len(json.loads(out.read_text(encoding="utf-8"))["looks"]) == 2


def test_the_shipped_looks_are_of_the_committed_prediction(models_folder: Path) -> None:
    folder = models_folder / "report"
    found: Any = Report.read(folder / "looks.json")
    shown = Report.read(folder / "length.json")
    assert shown is not None and found is not None
    last = looks.look(shown)
    assert last is not None
    for one in found.results["looks"]:
        assert one["created"] < last["created"]
        assert one["test_sha256"] == last["test_sha256"]
    digest = file_digest(folder / "prediction.json")
    assert last["prediction_sha256"] == digest
