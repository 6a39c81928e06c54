"""Inseq, captum and BertViz on all four models, as docs/interpretability.md shows it, word for word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY

import seqviz
from seqviz import MODEL_NAMES

PAGE = (REPOSITORY / "docs" / "interpretability.md").read_text(encoding="utf-8")
TEXT = "The report was adopted yesterday."
NEIGHBOURS = ("captum", "inseq", "bertviz")


def run(neighbour: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the example of a package; return its names."""
    pytest.importorskip(neighbour, reason="pip install -r tests/requirements.txt")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (block,) = [b for b in blocks if re.search(rf"^(import|from) {neighbour}\b", b, re.MULTILINE)]
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(block, neighbour, "exec"), names)
    return names


@pytest.fixture(scope="module")
def saliencies(models_folder: Path) -> dict[str, Any]:
    """Of each model the translation of `TEXT` and its saliency."""
    if any(not (models_folder / name / "model.safetensors").is_file() for name in MODEL_NAMES):
        pytest.skip("no shipped weights")
    found = {}
    for name in MODEL_NAMES:
        translator = seqviz.load(name)
        translation = translator.translate(TEXT)
        found[name] = translation, seqviz.saliency(translator, translation).values
    return found


def test_captum(tmp_path: Path, monkeypatch: Any, capsys: Any, saliencies: Any) -> None:
    """Its gradient × input is ours; its integrated gradients add up to the change of log-probability."""
    names = run("captum", tmp_path, monkeypatch)
    printed = [line.split(" ") for line in capsys.readouterr().out.splitlines()]
    for name in MODEL_NAMES:
        translation, values = saliencies[name]
        rows = [row for row in printed if row[0] == name]
        assert [row[2] for row in rows] == list(translation.source_tokens)
        assert [float(row[3]) for row in rows] == pytest.approx(values[1], abs=1e-4)
        assert abs(values[1]).max() > 0.002
    log_probability, source = names["log_probability"], names["source"]
    change = log_probability(source, 1) - log_probability(names["padding"], 1)
    change = change.detach()
    assert float(names["whole"].detach().sum()) == pytest.approx(float(change), abs=0.15)


def test_inseq(tmp_path: Path, monkeypatch: Any, capsys: Any, saliencies: Any) -> None:
    """It forces our output, and its gradient × input of a probability p is p times ours of log p."""
    inseq = pytest.importorskip("inseq", reason="pip install -r tests/requirements.txt")
    seen: list[np.ndarray] = []
    attribute = inseq.models.HuggingfaceEncoderDecoderModel.attribute

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = attribute(self, *args, **kwargs)
        seen.append(out[0].source_attributions.sum(-1).numpy().T)
        return out

    monkeypatch.setattr(inseq.models.HuggingfaceEncoderDecoderModel, "attribute", watched)
    run("inseq", tmp_path, monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    for name, found in zip(MODEL_NAMES, seen, strict=True):
        translation, values = saliencies[name]
        (line,) = [line for line in lines if line.startswith(f"{name} torch")]
        for token in translation.target_tokens:
            assert repr(token) in line
        assert found.shape == values.shape
        probabilities = np.exp(translation.token_log_probs)[:, None]
        assert found == pytest.approx(values * probabilities, abs=1e-4)


def test_bertviz(tmp_path: Path, monkeypatch: Any, saliencies: Any) -> None:
    """What it was given stands in its page: tokens, and weights of every layer and head."""
    run("bertviz", tmp_path, monkeypatch)
    for name in MODEL_NAMES:
        translation, values = saliencies[name]
        text = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        (parameters,) = re.findall(r"const params = (\{.*?\});? ?(?://.*)?$", text, re.MULTILINE)
        (shown,) = json.loads(parameters)["attention"]
        weights = translation.attentions.get("cross")
        if weights is None:
            shares = abs(values) / abs(values).sum(axis=1, keepdims=True)
            weights = shares[None, None]
        assert np.array(shown["attn"]) == pytest.approx(weights, abs=1e-5)
        written = [token.replace("▁", " ").strip() for token in translation.target_tokens]
        assert [token.replace("▁", " ").strip() for token in shown["left_text"]] == written


def test_each_has_one_example() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1 + len(NEIGHBOURS)  # the first one needs seqviz alone
