"""Where the shipped models are. Light: nothing here imports PyTorch."""

from __future__ import annotations

from pathlib import Path


class ModelError(ValueError):
    """A model folder cannot be used; the message says what was expected, what came, what to do."""


def models_folder() -> Path:
    """Where the shipped models are: inside the package, or beside it in a checkout.

    Raises:
        ModelError: neither is there.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "models", here.parent / "models"):
        if (folder / "tokenizer" / "tokenizer.json").is_file():
            return folder
    raise ModelError(f"expected the shipped models in {here / 'models'} or beside it, found none")
