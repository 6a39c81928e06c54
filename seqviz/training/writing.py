"""Writing that can fail: one clear line, and how much space there is."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError

from seqviz.training.errors import SaveError


@contextlib.contextmanager
def writing(what: str, folder: Path, num_bytes: int) -> Iterator[None]:
    """Turn whatever a writer raises, which for a full disk is often cryptic, into one clear line.

    Args:
        what: what is written, for the message.
        folder: where.
        num_bytes: space that it needs.
    Raises:
        SaveError: writing failed.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        raise SaveError(
            f"expected to write {what} in {folder}, about {num_bytes / 1e6:,.1f} MB, got "
            f"{type(error).__name__}: {' '.join(str(error).split())[:200]}; {free / 1e6:,.1f} MB are "
            "free there. What was saved before is whole: make room (or check rights and quota) and "
            "give the same command again"
        ) from error
