"""The log of a run, and its loss curves."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seqviz.files import write_text
from seqviz.training.writing import writing


class Log:
    """A JSONL file of what happened, cut back to the state a run goes on from."""

    def __init__(
        self,
        path: Path,
        enabled: bool,
        track: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.path, self.enabled, self._track = path, enabled, track

    def rewind(self, tokens: int) -> None:
        """Forget what was logged after `tokens`."""
        if self.enabled and self.path.is_file():
            kept = [json.dumps(row) for row in self.rows() if row["tokens"] <= tokens]
            text = "".join(line + "\n" for line in kept)
            with writing("the log", self.path.parent, len(text)):
                write_text(self.path, text)

    def add(self, **row: Any) -> None:
        if self.enabled:
            line = json.dumps(row) + "\n"
            with (
                writing("the log", self.path.parent, len(line)),
                self.path.open("a", encoding="utf-8") as stream,
            ):
                stream.write(line)
            if self._track:
                self._track(row)

    def rows(self) -> list[dict[str, Any]]:
        """All whole rows; a last line cut by a crash is passed over."""
        if not self.path.is_file():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8").split("\n"):
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found


def curve(rows: Sequence[dict[str, Any]], points: int = 200) -> dict[str, list[list[float]]]:
    """Loss curves for `training.json`: ``train`` and ``dev`` as [tokens, loss], thinned."""
    curves = {}
    for name in ("loss", "dev_loss"):
        # A model saved twice at the same tokens has one point there.
        all_points = list(
            {
                row["tokens"]: [row["tokens"], round(row[name], 4)] for row in rows if name in row
            }.values()
        )
        step = max(1, math.ceil(len(all_points) / points))
        curves["train" if name == "loss" else "dev"] = all_points[::-1][::step][::-1]
    return curves
