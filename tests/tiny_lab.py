"""Small settings of every experiment of the lab, and model folders for its reading of training runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqviz.lab import settings
from seqviz.training import Recipe

TEXT = "The old sailor is waiting for those 12 letters in the morning, before work."

GRADIENT = settings.Gradient(
    width=8, length=12, num_seeds=3, num_heads=2, models=("rnn", "transformer"), min_words=74
)
RECALL = settings.Recall(
    distances=(1, 3), search_distances=(2,), num_seeds=2, steps=16, batch_size=8, width=8,
    num_heads=2, num_symbols=4, rates=(0.003, 0.01), num_validation=16, num_test=32,
)  # fmt: skip
CAPACITY = settings.Capacity(
    widths=(4, 6), max_length=4, num_seeds=2, steps=12, batch_size=4, num_symbols=5,
    rates=(0.003, 0.01), num_validation=8, num_test=16,
)  # fmt: skip
EXTRAPOLATION = settings.Extrapolation(
    trained_length=3, lengths=(1, 3, 6), num_seeds=2, steps=10, batch_size=4, width=8, num_heads=2,
    rates=(0.003, 0.01), num_validation=8, num_test=32,
)  # fmt: skip
COST = settings.Cost(
    widths=(8, 16), lengths=(8, 16, 64), tokens=64, num_heads=2, positions=(3, 40), repeats=1,
    round_seconds=1e-6, matmul_size=32,
)  # fmt: skip

CURVES = {
    "rnn": [[10, 6.0], [20, 5.0], [40, 4.0]],
    "lstm-attention": [[10, 5.0], [20, 3.0], [40, 2.0]],
    "transformer": [[10, 3.5], [20, 2.5], [40, 1.0]],
}
"""Development loss by target tokens of the models of `write_models`."""

RATES = {"rnn": 4.0, "lstm-attention": 1.0, "transformer": 2.0}
"""Their target tokens a second."""


def training_of(name: str, dev: list[list[float]], parameters: int = 1000) -> dict[str, Any]:
    """A ``training.json`` with made-up numbers: 3 examples of 4 words, 1 of 10."""
    return {
        "model": name,
        "num_parameters": parameters,
        "target_tokens": 44,  # 40 pieces and 4 end tokens for 22 words
        "steps": 4,
        "seconds": 5.0,
        "hardware": "CPU of a test, 1 threads",
        "recipe": asdict(Recipe(batch_tokens=11)),
        "data": [
            {"source_pieces": 300, "target_pieces": 400, "repeat": 1},
            {"source_pieces": 300, "target_pieces": 400, "repeat": 3},
        ],
        "losses": {"train": [[10, 9.0], [20, 8.0]], "dev": dev},
        "length_histogram": [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1],
        "weights_sha256": f"digest of {name}",
    }


def write_models(folder: Path, tiny_model: Callable[..., Any]) -> Path:
    """Folders of three tiny models, without weights, and ``rates.json``."""
    for name, dev in CURVES.items():
        (folder / name).mkdir()
        tiny_model(name).config.save_pretrained(folder / name)
        content = json.dumps(training_of(name, dev))
        (folder / name / "training.json").write_text(content, encoding="utf-8")
    measured = {
        "command": "python benchmarks/training.py",
        "num_threads": 1,
        "results": {
            name: {"num_parameters": 1000, "target_tokens_per_second": rate}
            for name, rate in RATES.items()
        },
    }
    (folder / "rates.json").write_text(json.dumps(measured), encoding="utf-8")
    return folder


def training_cost(folder: Path) -> settings.TrainingCost:
    """Settings that read what `write_models` wrote."""
    return settings.TrainingCost(
        models=tuple(CURVES),
        num_examples=50,
        folder=str(folder),
        benchmark=str(folder / "rates.json"),
    )


def frobenius(full: torch.Tensor) -> np.ndarray:
    """Norms by position of a Jacobian (W, S, D)."""
    return full.square().sum(dim=(0, 2)).sqrt().numpy()
