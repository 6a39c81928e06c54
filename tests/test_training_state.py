"""A saved run and its encoded corpora go on with later code: `state_before_rooms` was written when `training` was one file.

It holds what six steps of `test_training.run` left, the corpora they read, and the weights that the whole run came to.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_training import BUDGET, Trace, folder, no_cuda, run, sources  # noqa: F401

BEFORE = Path(__file__).resolve().parent / "state_before_rooms"


@pytest.fixture
def one_thread():
    """As the older code had: with more, sums round in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_a_run_saved_by_older_code_goes_on(run, sources, tmp_path, one_thread):  # noqa: F811
    shutil.copytree(BEFORE / "run", tmp_path / "run")
    trace = Trace()
    result = run(trace, tokens=BUDGET)
    assert result.finished and trace.steps[0][0] == 7
    found = load_file(tmp_path / "models/lstm-attention/model.safetensors")
    before = load_file(BEFORE / "model.safetensors")
    assert set(found) == set(before)
    for name, value in before.items():
        torch.testing.assert_close(found[name].float(), value.float(), rtol=0, atol=2e-3)


def test_corpora_encoded_by_older_code_are_found(folder, sources):  # noqa: F811
    """The same folders, which hold the same bytes."""
    for old in (BEFORE / "encoded").iterdir():
        new = folder / "encoded" / old.name
        if not new.is_dir():
            continue  # of the development corpus, which the fixtures here do not encode
        assert json.loads((new / "information.json").read_text()) == json.loads(
            (old / "information.json").read_text()
        )
        for file in old.glob("*.npy"):
            assert (new / file.name).read_bytes() == file.read_bytes()
    assert (
        sum((folder / "encoded" / old.name).is_dir() for old in (BEFORE / "encoded").iterdir()) == 2
    )
