"""The notebook runs from top to bottom on the shipped weights, and shows what its text promises."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from seqviz import MODEL_NAMES

REPOSITORY = Path(__file__).resolve().parents[1]
TOUR = REPOSITORY / "docs" / "tour.ipynb"


def test_the_tour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models_folder: Path):
    if any(not (models_folder / name / "model.safetensors").is_file() for name in MODEL_NAMES):
        pytest.skip("no shipped weights")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(TOUR, as_version=4)
    nbformat.validate(book)
    stored = [cell.outputs for cell in book.cells if cell.cell_type == "code"]
    assert not any(stored), "outputs grow old: clear them before committing"
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        output.get("text", "") for cell in book.cells for output in cell.get("outputs", ())
    )
    for name in MODEL_NAMES:
        assert len(re.findall(rf"^{name} ", printed, re.M)) >= 3  # output, not found, BLEU kept
    changes = [
        re.findall(r"[+-]\d\.\d{3}", line)
        for line in printed.splitlines()
        if " nats a piece" in line
    ]
    assert [len(row) for row in changes] == [4, 4, 4]
    assert len({change for row in changes for change in row}) > 6
    for name in ("lstm-attention", "transformer"):
        for context in ("mean", "nothing"):
            assert re.search(rf"^{name} with the context '{context}': \+\d", printed, re.M)
    kinds = [
        kind
        for cell in book.cells
        for output in cell.get("outputs", ())
        for kind in output.get("data", ())
    ]
    assert kinds.count("text/html") == 1 and kinds.count("image/png") == 3
