"""A report: what was run, on what, on which weights, and what came out; one JSON file each.

    report = Report.now("seqviz lab recall", data, results)
    report.write(folder / "recall.json")
    found = Report.read(models / "report" / "recall.json")  # None where there is none
    why = found.stale(read_training(models))                 # None where it is of these weights

The header (versions, hardware, time) is filled in here and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from seqviz.constants import ABLATION_NAMES, MODEL_NAMES
from seqviz.files import write_json
from seqviz.version import hardware, versions

HEADER = ("schema", "command", "data", "versions", "hardware", "created", "models")
"""Keys of every report, in their order; what a report does not need is left out of its file."""

_ORDER = MODEL_NAMES + ABLATION_NAMES

Trainings = Mapping[str, Mapping[str, Any]]
"""``training.json`` of models, by the name of the model."""


@dataclass(frozen=True)
class Report:
    """A measurement with everything that decides its numbers.

    Attributes:
        command: gives the same numbers again.
        data: what was measured on: names and digests of files, or lists of them; None where the results say it.
        results: the measurement's own keys.
        models: of each model ``weights_sha256`` and what else is told of it; empty where it is of no weights.
        versions, hardware, created: of the run; hardware and created may be empty where they decide nothing.
        schema: of the results.
    """

    command: str
    data: Any
    results: Mapping[str, Any]
    models: Trainings = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    created: str = ""
    schema: int = 1

    @classmethod
    def now(
        cls,
        command: str,
        data: Any,
        results: Mapping[str, Any],
        models: Trainings | None = None,
        *,
        device: object = "cpu",
        schema: int = 1,
        dated: bool = True,
    ) -> Self:
        """A report of what has just been measured in this process.

        Args:
            command, data, results, models, schema: see the class.
            device: what was measured on.
            dated: False leaves out hardware and time, so that the same numbers give the same file.
        """
        return cls(
            command=command,
            data=data,
            results=results,
            models=models or {},
            versions=versions(),
            hardware=hardware(device) if dated else "",
            created=datetime.now(UTC).isoformat(timespec="seconds") if dated else "",
            schema=schema,
        )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """The report that `content` says, as it stands in a file; what it lacks stays empty."""
        empty = {"schema": None, "command": "", "data": None, "hardware": "", "created": ""}
        header = {key: content.get(key, empty.get(key, {})) for key in HEADER}
        return cls(results={k: v for k, v in content.items() if k not in HEADER}, **header)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Self | None:
        """A report from its file; None where there is no file.

        Raises:
            ValueError: the file is damaged.
        """
        file = Path(file)
        if not file.is_file():
            return None
        try:
            return cls.of(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, AttributeError) as error:
            raise ValueError(
                f"{file}: expected JSON, it is damaged ({error}); measure it anew"
            ) from error

    def content(self) -> dict[str, Any]:
        """The report as it stands in a file: the header, then the results."""
        header = {key: getattr(self, key) for key in HEADER}
        return {k: v for k, v in header.items() if v not in (None, "", {})} | dict(self.results)

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write the report, whole or not at all."""
        write_json(file, self.content())

    def is_of(self, name: str, training: Mapping[str, Any]) -> bool:
        """Whether it was measured on the weights that `training` (``training.json``) speaks of."""
        measured = self.models.get(name, {}).get("weights_sha256")
        return measured is not None and measured == training.get("weights_sha256")

    def stale(self, trainings: Trainings, data: Mapping[str, Any] | None = None) -> str | None:
        """Why the report does not speak of the weights and data at hand, in words; None if it does.

        Args:
            trainings: ``training.json`` of the weights.
            data: keys of the report's ``data`` that must have these values, such as a digest.
        """
        other = [name for name, training in trainings.items() if not self.is_of(name, training)]
        if other:
            return f"it was measured on other weights of {', '.join(other)}"
        changed = [key for key, value in (data or {}).items() if self.data.get(key) != value]
        return f"it was measured on other data ({', '.join(changed)})" if changed else None


def weights_of(trainings: Trainings) -> dict[str, dict[str, Any]]:
    """A report's ``models``: of each model the digest of its weights."""
    return {name: {"weights_sha256": t.get("weights_sha256")} for name, t in trainings.items()}


def read_training(models: Path) -> dict[str, dict[str, Any]]:
    """``training.json`` of every model folder that has weights, in historical order."""
    found = {
        file.parent.name: json.loads(file.read_text(encoding="utf-8"))
        for file in models.glob("*/training.json")
        if (file.parent / "model.safetensors").is_file()
    }
    order = [*_ORDER, *(name for name in found if name not in _ORDER)]
    return {name: found[name] for name in order if name in found}
