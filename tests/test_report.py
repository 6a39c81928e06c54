"""Atomic writing, cards, and a README whose numbers are those of the weights beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqviz import MODEL_NAMES, corpus, report

REPOSITORY = Path(__file__).resolve().parents[1]


def test_write_json_is_whole_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "report.json"
    report.write_json(file, {"a": "é"})
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    with pytest.raises(TypeError):
        report.write_json(file, {"a": object()})
    with pytest.raises(UnicodeEncodeError):
        report.write_text(file, "half an emoji \ud83d")
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    assert [p.name for p in file.parent.iterdir()] == ["report.json"]


def test_fill_readme() -> None:
    text = "a\n<!-- results:begin -->\nold\n<!-- results:end -->\nb\n"
    filled = report.fill_readme(text, "new")
    assert filled == "a\n<!-- results:begin -->\nnew\n<!-- results:end -->\nb\n"
    assert report.fill_readme(filled, "new") == filled
    for broken in ("", "<!-- results:end --><!-- results:begin -->", text + text):
        with pytest.raises(ValueError, match="expected one <!-- results:begin -->"):
            report.fill_readme(broken, "new")


@pytest.fixture(scope="module")
def trainings(models_folder: Path) -> dict[str, dict[str, Any]]:
    return report.read_training(models_folder)


def test_the_four_models_are_shipped_at_one_equal_budget(trainings: dict[str, Any]) -> None:
    assert tuple(trainings) == MODEL_NAMES
    budgets = {t["target_tokens"] for t in trainings.values()}
    assert len(budgets) == 1
    assert budgets.pop() >= 2_000_000
    for key in ("recipe", "data", "dev_data", "length_histogram"):
        assert len({json.dumps(t[key], sort_keys=True) for t in trainings.values()}) == 1, key


def test_readme_and_cards_hold_the_numbers_of_the_weights(
    trainings: dict[str, Any], models_folder: Path
) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert report.fill_readme(text, report.results(trainings)) == text, "run 'seqviz report'"
    about = (models_folder / "DATA.md").read_text(encoding="utf-8")
    for name, training in trainings.items():
        folder = models_folder / name
        assert training["weights_sha256"] == corpus.file_digest(folder / "model.safetensors")
        assert (folder / "README.md").read_text(encoding="utf-8") == report.card(training, about)
