"""What can be watched of a run while it goes on: a tracker's curves, and a picture of the losses."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils.imports import is_tensorboard_available

from seqviz.files import write_bytes
from seqviz.training.errors import TrainingError
from seqviz.training.log import curve
from seqviz.training.writing import writing

TRACKERS = ("tensorboard",)
_TRACKED = ("loss", "dev_loss", "rate_factor", "gradient_norm", "tokens_per_second")


def check_tracker(tracker: str | None) -> None:
    """Raises a `TrainingError` for one that is unknown or not installed."""
    if tracker is None:
        return
    if tracker not in TRACKERS:
        raise TrainingError(f"expected a tracker of {', '.join(TRACKERS)}, got {tracker!r}")
    if not is_tensorboard_available():
        raise TrainingError(
            "expected the package tensorboard for the tracker of that name, found none; "
            "pip install 'seqviz[tracking]', or leave the tracker out"
        )


class Tracker:
    """Hands rows of the log to Accelerate's trackers, over target tokens; does nothing without one.

    Args:
        tokens: where the run stands; what was tracked beyond that is taken back.
    """

    def __init__(self, accelerator: Accelerator, tokens: int) -> None:
        self.accelerator = accelerator
        if accelerator.log_with:
            accelerator.init_trackers(
                "tensorboard", init_kwargs={"tensorboard": {"purge_step": tokens + 1}}
            )

    def __call__(self, row: dict[str, Any]) -> None:
        values = {key: row[key] for key in _TRACKED if key in row}
        self.accelerator.log(values, step=row["tokens"])

    def close(self) -> None:
        for (
            tracker
        ) in self.accelerator.trackers:  # `end_training` would end the processes' group too
            tracker.finish()


def draw_losses(run_folder: Path, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Draw the losses of a run so far as ``losses.svg`` in its folder."""
    from seqviz.drawing import figures  # matplotlib, which a run without validation does not need

    picture = io.BytesIO()
    figures.save(figures.loss_curves({name: {"losses": curve(rows)}}), picture, "svg")
    with writing("the picture of the losses", run_folder, len(picture.getvalue())):
        write_bytes(run_folder / "losses.svg", picture.getvalue())
