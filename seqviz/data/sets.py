"""Build corpus files out of public ones that a person has downloaded: clean, hold out, write.

    seqviz corpus europarl fr-en.tgz --languages en-fr --out europarl/

What comes out is ``train.tsv.xz``, ``dev.tsv.xz`` and ``test.tsv.xz`` (`seqviz.data.pairs.read_pairs` reads
them) and ``corpus.json``, which says what was read, kept and dropped, and why.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import lzma
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from seqviz.data.cleaning import MAX_RATIO, Cleaner, TypicalRatio
from seqviz.data.pairs import CorpusError, Pair, read_pairs
from seqviz.data.public import BLOCK, MAX_LINE, Counts
from seqviz.files import file_digest, write_json
from seqviz.version import versions

SETS = ("train", "dev", "test")

MANY = 1 / 3
"""A corpus of which such a share is dropped for one reason is seldom what it is taken for."""


@dataclass(frozen=True)
class HeldOut:
    """Which documents go into the development and the test set.

    Attributes:
        dev, test: patterns of document names, such as "ep-00-1[12]-*"; None to choose by `share`.
        share: of the documents in each set; where there are no documents, of the source sentences. They are
            chosen by digest of the name (or sentence), so that another download holds out the same ones.
    """

    dev: str | None = None
    test: str | None = None
    share: float = 0.01

    def set_of(self, pair: Pair) -> str:
        for name, pattern in (("test", self.test), ("dev", self.dev)):
            if pattern is not None and fnmatch.fnmatchcase(pair.document, pattern):
                return name
        if self.dev is not None or self.test is not None:
            return "train"
        unit = pair.document or " ".join(pair.source.lower().split())
        digest = hashlib.blake2b(unit.encode("utf-8", "replace"), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        return "test" if place < self.share else "dev" if place < 2 * self.share else "train"


def build(
    pairs: Iterable[Pair],
    out: str | os.PathLike[str],
    cleaner: Cleaner,
    held_out: HeldOut,
    counts: Counts,
    about: dict[str, Any],
    apart: Iterable[str | os.PathLike[str]] = (),
    *,
    accept_dropped: bool = False,
) -> dict[str, Any]:
    """Clean pairs, hold some out and write the corpus files.

    Training holds no pair a side of which, but for case and spacing, stands in the other two sets or in what is
    kept apart.

    Args:
        pairs: in document order.
        out: folder; files of the same names in it are replaced, and only when all are written.
        cleaner: what is kept.
        held_out: what is not for training.
        counts: what reading has counted; goes on here.
        about: command, files and digests, for the report.
        apart: corpus files, such as other test sets, none of whose sides may stand in training.
        accept_dropped: write also what is left of a corpus of which a third or more is dropped for one reason.
    Returns:
        the report, as ``corpus.json`` holds it.
    Raises:
        CorpusError: nothing is left to train on, or too much is dropped for one reason; nothing is written.
    """
    out, apart = Path(out), list(apart)
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=out))
    try:
        documents = _divide(pairs, work, cleaner, held_out, counts, apart)
        if not counts["train"]:
            dropped = ", ".join(
                f"{name} {n:,}" for name, n in counts.most_common() if name != "read"
            )
            raise CorpusError(
                f"expected pairs to train on, got none of {counts['read']:,} ({dropped or 'none read'}); "
                "check the files, --languages and what is held out"
            )
        if not accept_dropped:
            _check_dropped(counts, cleaner)
        report = {
            "schema": 1,
            **about,
            "languages": list(cleaner.languages),
            "held_out": {
                "dev": held_out.dev,
                "test": held_out.test,
                "share": held_out.share,
                "documents": {name: sorted(names) for name, names in documents.items()},
                "apart": [{"name": Path(p).name, "sha256": file_digest(p)} for p in apart],
            },
            "language_check": cleaner.identify is not None,
            "settings": _settings(cleaner),
            **_counted(counts),
            "files": {f"{name}.tsv.xz": file_digest(work / f"{name}.tsv.xz") for name in SETS},
            "versions": versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        for name in SETS:
            os.replace(work / f"{name}.tsv.xz", out / f"{name}.tsv.xz")
        write_json(out / "corpus.json", report)
        return report
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _settings(cleaner: Cleaner) -> dict[str, Any]:
    settings = {"max_ratio": MAX_RATIO, "max_line_bytes": MAX_LINE, "block_lines": BLOCK}
    typical = cleaner.typical_ratio
    return settings if typical == 1 else {**settings, "typical_ratio": typical}


def _check_dropped(counts: Counts, cleaner: Cleaner) -> None:
    """Raises where `MANY` of a corpus are dropped for one reason; what is held out, somebody asked for."""
    found = _counted(counts)
    dropped = {reason: n for reason, n in found["dropped"].items() if reason != "held out"}
    # What reading dropped was never a pair.
    total = max(
        found["read"], sum((*dropped.values(), *found["pairs"].values(), counts["held out"]))
    )
    reason = max(dropped, key=lambda name: dropped[name], default="")
    if not reason or dropped[reason] < MANY * total:
        return
    source, target = cleaner.languages
    raise CorpusError(
        f"{dropped[reason]:,} of {total:,} ({dropped[reason] / total:.0%}) are dropped for one reason, {reason}; "
        f"nothing is written. Check that the files are whole, belong together and are in {source} and {target}, in "
        "this order; or give --accept-dropped to go on with the rest"
    )


def _divide(
    pairs: Iterable[Pair],
    work: Path,
    cleaner: Cleaner,
    held_out: HeldOut,
    counts: Counts,
    apart: Iterable[str | os.PathLike[str]],
) -> dict[str, set[str]]:
    """Write the three sets into `work`; returns the documents of the two that are held out."""
    sides = _Sides()
    for path in apart:
        for pair in read_pairs(path):
            sides.add(pair)
    documents: dict[str, set[str]] = {"dev": set(), "test": set()}
    with ExitStack() as stack:
        files = {name: stack.enter_context(_writer(work / f"{name}.tsv.xz")) for name in SETS[1:]}
        # The usual lengths and what is held out are known at the end alone: till then, pairs wait in files.
        whole = stack.enter_context(_waiting(work / "whole.tsv"))
        rest = stack.enter_context(_waiting(work / "rest.tsv"))
        ratio = TypicalRatio()
        for pair in pairs:
            counts["read"] += 1
            plain = cleaner.plain(pair)
            ratio.add(plain)
            whole.write("\t".join(plain) + "\n")
        cleaner.typical_ratio = ratio.value
        whole.seek(0)
        for line in whole:
            found = cleaner.judge(Pair(*line.removesuffix("\n").rsplit("\t", 2)))
            if isinstance(found, str):
                counts[found] += 1
                continue
            name = held_out.set_of(found)
            line = "\t".join((found.document or "sentences", *found[1:])) + "\n"
            if name == "train":
                rest.write(line)
                continue
            files[name].write(line)
            counts[name] += 1
            sides.add(found)
            if found.document:
                documents[name].add(found.document)
        rest.seek(0)
        with _writer(work / "train.tsv.xz") as train:
            for line in rest:
                if Pair(*line.rstrip("\n").split("\t")) in sides:
                    counts["held out"] += 1
                else:
                    train.write(line)
                    counts["train"] += 1
    return documents


class _Sides:
    """Digests of both sides of pairs that training must not hold."""

    def __init__(self) -> None:
        self._sources: set[bytes] = set()
        self._targets: set[bytes] = set()

    def add(self, pair: Pair) -> None:
        self._sources.add(_digest(pair.source))
        self._targets.add(_digest(pair.target))

    def __contains__(self, pair: Pair) -> bool:
        """True where either side is held out."""
        return _digest(pair.source) in self._sources or _digest(pair.target) in self._targets


def _counted(counts: Counts) -> dict[str, Any]:
    sets = {name: counts[name] for name in SETS}
    reasons = sorted(name for name in counts if name not in (*SETS, "read"))
    dropped = {name: counts[name] for name in reasons if counts[name]}
    return {"pairs": sets, "read": counts["read"], "dropped": dropped}


def _digest(text: str) -> bytes:
    plain = " ".join(text.lower().split())
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).digest()


def _waiting(path: Path) -> IO[str]:
    return path.open("w+", encoding="utf-8", newline="\n")


def _writer(path: Path) -> IO[str]:
    return io.TextIOWrapper(lzma.open(path, "wb", preset=1), encoding="utf-8", newline="\n")  # type: ignore[arg-type]
