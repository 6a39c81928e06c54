"""A run folder belongs to one process at a time; whoever comes second is told who has it."""

from __future__ import annotations

import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

from accelerate import Accelerator
from filelock import FileLock, Timeout

from seqviz.files import write_json
from seqviz.training.errors import TrainingError
from seqviz.training.processes import of_main
from seqviz.training.writing import writing


class RunLock:
    """The operating system's lock on a run folder: it ends with the process, however that ends.

    Of processes that share a run the main one holds it. Beside the lock lies who holds it, for the message
    to others; after a ``kill -9`` that file stays and means nothing.

    Raises:
        TrainingError: in every process, if another run holds the folder. Nothing in it was changed.
        SaveError: the lock cannot be written.
    """

    def __init__(self, folder: Path, accelerator: Accelerator) -> None:
        self._lock = FileLock(folder / "lock")
        self._holder = folder / "lock.json"
        refusal = self._take(folder) if accelerator.is_main_process else None
        refusal = of_main(refusal, accelerator)
        if refusal:
            raise TrainingError(refusal)

    def _take(self, folder: Path) -> str | None:
        """Take the lock; gives why that was impossible, None if it was not."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        with writing("the lock of the run", folder, 1_000):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                # Half a second, in which a process that has just begun writes who it is.
                self._lock.acquire(timeout=0.5)
            except Timeout:
                return (
                    f"expected a run folder in which no other process works, got {folder}, which has been "
                    f"held by {self._said_holder()}; wait for it, stop it (it saves first), or use another "
                    "run folder"
                )
            except NotImplementedError:  # some disks of clusters
                print(
                    f"note: the disk of {folder} knows no locks; see to it that no second process trains there",
                    file=sys.stderr,
                )
            write_json(
                self._holder, {"pid": os.getpid(), "host": socket.gethostname(), "since": now}
            )
        return None

    def _said_holder(self) -> str:
        try:
            holder = json.loads(self._holder.read_text(encoding="utf-8"))
            return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "a process that did not say who it is"

    def release(self) -> None:
        if self._lock.is_locked:
            self._holder.unlink(missing_ok=True)
            self._lock.release()
