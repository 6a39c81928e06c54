"""How a run begins: the settings that it must be found with again, and weights that it may start from."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from safetensors import SafetensorError
from torch import nn

from seqviz.data.epochs import WeightedCorpus
from seqviz.files import write_json
from seqviz.text_languages import LanguagePair
from seqviz.training.errors import TrainingError
from seqviz.training.recipe import Recipe
from seqviz.training.state import Position, load_weights
from seqviz.training.writing import writing


def _differences(before: Any, now: Any) -> str:
    """What has changed, item by item where there are any."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return f"{before} → {now}"
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return ", ".join(f"{key} {before.get(key)} → {now.get(key)}" for key in changed)


def claim(
    run_folder: Path,
    name: str,
    recipe: Recipe,
    sources: Sequence[WeightedCorpus],
    tokenizer: Any,
    config: dict[str, Any] | None,
    accelerator: Accelerator,
    languages: LanguagePair,
) -> None:
    """Write the settings of a new run, or check that they are those of the run found."""
    settings = {
        "model": name,
        "recipe": asdict(recipe),
        "config": config or {},
        "data": [_identity(source) for source in sources],
        "tokenizer": hashlib.sha256(
            json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()
        ).hexdigest(),
        "precision": accelerator.mixed_precision,
        "languages": list(languages.codes),
    }
    path = run_folder / "settings.json"
    if path.is_file():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise TrainingError(
                f"expected the settings of the run in {path}, which is damaged ({error}); delete the file "
                "if the command is the one that began the run"
            ) from None
        for key, value in settings.items():
            # Runs begun before tokenizer, precision and languages were recorded go on.
            if found.get(key, value) != value:
                raise TrainingError(
                    f"expected the {key} of the run in {run_folder}, got another: "
                    f"{_differences(found.get(key), value)}; use the same settings or another run folder"
                )
    elif accelerator.is_main_process:
        with writing("the settings of the run", run_folder, 10_000):
            write_json(path, settings)
    accelerator.wait_for_everyone()
    for _ in range(60):
        if path.is_file():
            return
        time.sleep(1)  # what another machine writes may take a while to show
    raise TrainingError(
        f"expected a run folder that all machines share, got {run_folder}, in which the settings that "
        "the main process wrote are not to be seen; give --runs on a shared disk"
    )


def _identity(source: WeightedCorpus) -> list[Any]:
    """What a run must find again of a corpus when it goes on."""
    information = source.corpus.information
    also = ("longest", "noise", "source_language")
    settings = {key: information[key] for key in also if key in information}
    return [
        information["sha256"],
        len(source.corpus),
        source.repeat,
        *([settings] if settings else []),
    ]


def start_position(model: nn.Module, folder: Path) -> Position:
    """Load weights into a fresh model; the position follows what they have seen.

    Raises:
        TrainingError: no such folder, a damaged file, or weights of another architecture.
    """
    try:
        training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        position = Position(
            step=training["steps"],
            tokens=training["target_tokens"],
            epoch=training["next"]["epoch"],
            batch=training["next"]["batch"],
            seconds=training["seconds"],
            warmup_from=training["target_tokens"],
            length_histogram=training["length_histogram"],
            started_from={
                "target_tokens": training["target_tokens"],
                "dev_loss": training["dev_loss"],
            },
        )
        load_weights(model, folder / "model.safetensors")
    except (OSError, ValueError, KeyError, SafetensorError, RuntimeError) as error:
        raise TrainingError(
            f"expected a model folder of the same architecture in {folder}, with training.json and "
            f"model.safetensors, got {type(error).__name__}: {str(error)[:300]}; check the folder"
        ) from error
    return position
