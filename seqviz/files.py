"""Files that are there whole or not at all, and what tells one from another."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Write JSON aside and rename it: a reader sees the old file or the new one, never half."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write a text file aside and rename it."""
    write_bytes(path, content.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file aside and rename it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def put_in_place(aside: Path, folder: Path) -> None:
    """Rename the folder `aside` to `folder`. What stood there goes last, or comes back where that fails."""
    for file in aside.iterdir():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())  # a rename must never outrun the content
    if folder.exists():
        shutil.rmtree(_old(folder), ignore_errors=True)
        os.replace(folder, _old(folder))
    try:
        os.replace(aside, folder)
    finally:
        recover(folder)


def recover(folder: Path) -> None:
    """End what `put_in_place` began, perhaps before a kill: the old folder goes, or comes back."""
    if _old(folder).exists():
        if folder.exists():
            shutil.rmtree(_old(folder), ignore_errors=True)
        else:
            os.replace(_old(folder), folder)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}-old")


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
