"""Early stopping: the state of the lowest validation loss, and how many validations ago that was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from seqviz.training.errors import TrainingError
from seqviz.training.processes import of_main
from seqviz.training.state import (
    Position,
    checkpoints,
    load_checkpoint,
    read_position,
    save_checkpoint,
)


class Best:
    """Kept in folders ``best`` beside the states that a run goes on from; without patience nothing is kept.

    A cool-down has its own, as it has its own states. What is counted follows from what lies on the disk, so that
    a run that was stopped ends where it would have ended.

    Args:
        patience: validations in a row without a lower loss that end a run; 0: none do.
        places: folders of states, each with the most target tokens that a state in it may have seen.
        rows: of the log, cut back to where the run stands.
    Attributes:
        since: validations since the lowest loss.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        patience: int,
        places: Sequence[tuple[Path, float]],
        rows: Sequence[dict[str, Any]],
        say: Callable[[str], None],
    ) -> None:
        self.accelerator, self.patience, self.say = accelerator, patience, say
        self._loss, self._tokens, self._folder = math.inf, 0, None
        self.since = 0
        if not patience:
            return
        for folder, most_tokens in places:
            newest = checkpoints(folder / "best")[:1]
            at = read_position(newest[0]) if newest else None
            if at and at.dev_loss is not None and at.dev_loss < self._loss:
                if at.tokens > most_tokens:
                    continue
                self._loss, self._tokens, self._folder = at.dev_loss, at.tokens, folder / "best"
        if self._folder:
            validated = {row["tokens"] for row in rows if "dev_loss" in row}
            self.since = sum(tokens > self._tokens for tokens in validated)
        found = of_main((self._loss, self._tokens, self._folder, self.since), accelerator)
        self._loss, self._tokens, self._folder, self.since = found

    @property
    def is_long_ago(self) -> bool:
        return bool(self.patience) and self.since >= self.patience

    def note(self, at: Position, folder: Path) -> None:
        """Count a validation; keep the state in `folder` if no loss was lower than `at.dev_loss`."""
        if not self.patience or at.dev_loss is None:
            return
        if at.dev_loss < self._loss:
            self._loss, self._tokens, self._folder = at.dev_loss, at.tokens, folder / "best"
            self.since = 0
            save_checkpoint(self.accelerator, self._folder, at, keep=1)
        elif at.tokens > self._tokens:
            self.since += 1

    def take(self, last_loss: float | None) -> Position | None:
        """Load the best state where it is better than the last one; None where the last one is.

        Raises:
            TrainingError: the best state is damaged.
        """
        if self._folder is None or last_loss is None or last_loss <= self._loss:
            return None
        found = load_checkpoint(self.accelerator, self._folder, self.say)
        if found is None:
            raise TrainingError(
                f"expected a whole state in {self._folder}, got a damaged one; delete that folder, and the same "
                "command writes the last state"
            )
        return found
