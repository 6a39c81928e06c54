"""Load a trained model from its folder.

    translator = seqviz.load("lstm-attention")

Every file is checked; what is wrong is said with what to do about it.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from seqviz.architectures import CLASSES
from seqviz.constants import MODEL_NAMES
from seqviz.data import tokenizer as tokenizers
from seqviz.shipped import ModelError, models_folder
from seqviz.translating.translator import Translator

_NEEDED = {
    "config.json": "train the model with 'seqviz train' or restore the folder",
    "model.safetensors": "train the model with 'seqviz train' or restore the folder",
    "tokenizer.json": "save the tokenizer beside the model (tokenizer.save_pretrained, or the Trainer's "
    "processing_class), or restore the folder",
}


def load(
    name_or_folder: str | os.PathLike[str],
    device: str | torch.device | None = None,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
) -> Translator:
    """Load a shipped model by name, or a folder that `seqviz train`, `save_pretrained` or a Trainer wrote.

    A folder without ``training.json`` is loaded, and the translator's `notes` say so. One whose record says that
    the model never learned is refused.

    Args:
        name_or_folder: "rnn", "lstm", "lstm-attention", "transformer", or a path.
        device: "cpu", "cuda", …; None takes the CPU, which is fast enough for one sentence.
        source_language, target_language: codes of ISO 639-1, for a folder that does not say; see `Translator`.
    Raises:
        ModelError: no such model, damaged or missing files, another architecture, untrained weights.
        LanguageError: no such language, or the package that finds its words is missing.
    """
    folder = Path(name_or_folder)
    if str(name_or_folder) in MODEL_NAMES:
        folder = models_folder() / str(name_or_folder)
    elif not folder.is_dir():
        raise ModelError(
            f"expected one of {', '.join(MODEL_NAMES)} or a model folder, got {str(name_or_folder)!r}"
        )
    for file, remedy in _NEEDED.items():
        if not (folder / file).is_file():
            raise ModelError(f"expected {file} in {folder}, found none; {remedy}")
    record = folder / "training.json"
    has_record = record.is_file()
    try:
        training = json.loads(record.read_text(encoding="utf-8")) if has_record else {}
        tokenizer = tokenizers.load(folder)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        model = _load_weights(folder, config)
    except ModelError:
        raise
    except Exception as error:  # damaged files raise whatever their reader raises
        raise ModelError(
            f"{folder}: cannot be loaded ({type(error).__name__}: {error}); a file is damaged, restore it"
        ) from error
    loss, limit = training.get("dev_loss"), math.log(len(tokenizer))
    if has_record and (not isinstance(loss, int | float) or not loss < limit):
        raise ModelError(
            f"expected a validation loss below {limit:.2f} in {folder / 'training.json'}, got {loss}; "
            "the weights are untrained or diverged, train them with a --dev file"
        )
    return Translator(
        model.to(device or "cpu"),  # pyright: ignore[reportArgumentType]  # its wrapper hides a method
        tokenizer,
        name=training.get("model", folder.name),
        training=training,
        source_language=source_language,
        target_language=target_language,
        notes=()
        if has_record
        else (f"no training.json in {folder}: nothing is known of how the model was trained",),
    )


def _load_weights(folder: Path, config: Any) -> PreTrainedModel:
    """fp16 weights as an fp32 model; every weight must be there and none left over."""
    bars = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        kind: Any = CLASSES.get(config.model_type, AutoModelForSeq2SeqLM)
        model, info = kind.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, in our words
        )
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
    wrong = {
        kind: sorted(map(str, info[kind]))
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
        if info[kind]
    }
    if wrong:
        raise ModelError(
            f"{folder}: the weights are not those of its config.json ({wrong}); restore both"
        )
    for name, parameter in model.named_parameters():
        if "embed_positions" in name:  # sinusoids, computed and not stored; loading unfreezes them
            parameter.requires_grad_(False)
    return model.eval()
