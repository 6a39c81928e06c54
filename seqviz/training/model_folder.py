"""A finished model as an ordinary Transformers folder, with a record of its training."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from seqviz.architectures import num_parameters
from seqviz.files import file_digest, put_in_place, recover
from seqviz.training.log import curve
from seqviz.training.processes import PRECISIONS
from seqviz.training.run import Run
from seqviz.version import hardware, versions


def training_record(run: Run, dev_loss: float | None) -> dict[str, Any]:
    """What ``training.json`` says of a finished run; `save_model` adds the digest of the weights."""
    at, dev = run.position, run.dev
    return {
        "schema": 1,
        "model": run.name,
        "num_parameters": num_parameters(run.weights),
        "target_tokens": at.tokens,
        "budget": at.budget,
        "steps": at.step,
        **({} if run.rate_at_end is None else {"rate_at_end": round(run.rate_at_end, 4)}),
        "seconds": round(at.seconds, 1),
        "next": {"epoch": at.epoch, "batch": at.batch},
        "started_from": at.started_from,
        "hardware": hardware(run.device),
        "processes": run.accelerator.num_processes,
        "precision": PRECISIONS[run.accelerator.mixed_precision],
        "recipe": asdict(run.recipe),
        "data": [{**s.corpus.information, "repeat": s.repeat} for s in run.sources],
        "dev_data": dev and {key: dev.information[key] for key in ("name", "sha256", "pairs")},
        "dev_loss": None if dev_loss is None else round(dev_loss, 4),
        "losses": curve(run.log.rows()),
        "length_histogram": at.length_histogram,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "languages": list(run.languages.codes),
    }


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Transformers shows a bar even for writing one small file."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def save_model(
    model: PreTrainedModel, tokenizer: Any, folder: str | os.PathLike[str], report: dict[str, Any]
) -> None:
    """Save a finished model as an ordinary Transformers folder, weights in fp16.

    `report` becomes ``training.json``; the digest of the weights is added to it.
    Written beside `folder` and renamed, so that it holds the old model or the new one, never half.
    """
    folder = Path(folder)
    recover(folder)
    aside = folder.with_name(f".{folder.name}-new")
    shutil.rmtree(aside, ignore_errors=True)  # of a call that was killed
    try:
        aside.mkdir(parents=True)
        aside.chmod(0o755)
        with _no_progress_bar():
            copy.deepcopy(model).cpu().half().eval().save_pretrained(aside)
        # Stored in half precision, to be computed with in single precision, by whoever loads it.
        config = json.loads((aside / "config.json").read_text(encoding="utf-8"))
        config["dtype"] = "float32"
        (aside / "config.json").write_text(
            json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        tokenizer.save_pretrained(aside)
        report["weights_sha256"] = file_digest(aside / "model.safetensors")
        (aside / "training.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        for file in aside.iterdir():
            file.chmod(0o644)
        put_in_place(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
