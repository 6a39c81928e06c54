"""Pairs of a corpus file, line by line.

A corpus is a file of lines ``document<TAB>source<TAB>target`` in document order, plain or compressed
(``.gz``, ``.xz``). Consecutive lines of one document are consecutive sentences. The source language
is English wherever this project ships something; nothing here depends on it.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple


class CorpusError(ValueError):
    """A corpus file cannot be used; the message names file, line, what was expected, what came."""


class Pair(NamedTuple):
    """One aligned sentence pair and the document it stands in."""

    document: str
    source: str
    target: str


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return lzma.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


class UnusableLine(ValueError):
    """A line that holds no pair. `reason` is a few words, the message says what came."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse_line(number: int, raw: bytes) -> Pair | None:
    """The pair of a line, None if it is empty. Only the first one may begin with a byte-order mark.

    Raises:
        UnusableLine: not UTF-8, not three columns, or a NUL.
    """
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UnusableLine(
            "not UTF-8",
            f"expected UTF-8, got byte 0x{error.object[error.start]:02x} at position {error.start}; "
            "convert the file to UTF-8",
        ) from None
    if not line:
        return None  # often the last one
    columns = line.split("\t")
    if len(columns) != 3:
        advice = (
            "add the missing column"
            if len(columns) < 3
            else "replace tabs inside sentences by spaces"
        )
        raise UnusableLine(
            "not 3 columns",
            "expected 3 tab-separated columns (document, source, target), got "
            f"{len(columns)}; {advice}",
        )
    if "\0" in line:
        raise UnusableLine(
            "NUL character", "expected text, got a NUL character; the line is damaged"
        )
    return Pair(*columns)


def read_pairs(
    path: str | os.PathLike[str],
    *,
    unusable: Callable[[int, UnusableLine], object] | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of a corpus file.

    Only ``\\n`` (or ``\\r\\n``) ends a line, quotes are text, a byte-order mark and empty lines are dropped. Sides are
    returned as they stand: cleaning is `encode_corpus`'s job.

    Args:
        unusable: called with the number of a line that holds no pair and why, and the line is passed
            over. Without it the first such line is an error.
    Raises:
        CorpusError: no such file, an empty or damaged file, a line that holds no pair.
    """
    for number, raw in numbered_lines(Path(path)):
        try:
            pair = parse_line(number, raw)
        except UnusableLine as error:
            if unusable is None:
                raise CorpusError(f"{path}, line {number}: {error}") from None
            unusable(number, error)
            continue
        if pair:
            yield pair


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1.

    Raises:
        CorpusError: no such file, an empty or damaged file.
    """
    if not path.is_file():
        raise CorpusError(f"expected a corpus file at {path}, found none; check the path")
    number = 0
    try:
        with _open(path) as stream:
            for number, raw in enumerate(stream, start=1):
                yield number, raw
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        raise CorpusError(
            f"{path}: cannot be read past line {number} ({error}); the file is damaged or cut short, "
            "copy it anew"
        ) from error
    if number == 0:
        raise CorpusError(f"{path}: expected at least one line, the file is empty")


_INSIDE_A_LINE = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What other readers take for the end of a line."""


def oddities(number: int, raw: bytes, pair: Pair) -> Iterator[str]:
    """What is unusual in a line, but harmless here."""
    if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
        yield "byte-order mark"
    if raw.endswith(b"\r\n"):
        yield "line end with carriage return"
    if any(_INSIDE_A_LINE.search(side) for side in pair):
        yield "line separator inside a line"
    if any(side.count('"') % 2 for side in pair):
        yield "quotation mark without its partner"


def pair_digest(source: str, target: str) -> bytes:
    """A short digest of a pair's text, whatever its case, spacing and way to write accents.

    What is held out is compared by it.
    """
    sides = (unicodedata.normalize("NFC", side.lower()) for side in (source, target))
    plain = "\t".join(" ".join(side.split()) for side in sides)
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).digest()


def held_out_digests(paths: Iterable[str | os.PathLike[str]]) -> frozenset[bytes]:
    """Digests of all pairs of test and development files, for `encode_corpus`."""
    return frozenset(pair_digest(pair.source, pair.target) for p in paths for pair in read_pairs(p))
