"""A translator as a folder that `seqviz.load` and Transformers read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seqviz.files import file_digest, write_json
from seqviz.text_languages import LanguagePair


def save(
    model: Any,
    tokenizer: Any,
    training: dict[str, Any],
    languages: LanguagePair,
    folder: str | os.PathLike[str],
) -> None:
    """Save model, tokenizer and record; see `Translator.save_pretrained`."""
    folder = Path(folder)
    if not languages.is_default:
        model.config.languages = list(languages.codes)
        training = training and {**training, "languages": list(languages.codes)}
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if training:
        record = {**training, "weights_sha256": file_digest(folder / "model.safetensors")}
        write_json(folder / "training.json", record)
