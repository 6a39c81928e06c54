"""Pairs of public corpora as a person has downloaded them; nothing is unpacked to disk."""

from __future__ import annotations

import lzma
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from seqviz.data.pairs import CorpusError, Pair

MAX_LINE = 1_000_000
"""Longer lines, in bytes, are no sentence: they are dropped without being read whole."""
BLOCK = 200
"""Lines that count as one document where the source names none."""

Counts = Counter[str]
"""What was seen, kept and dropped, by reason."""


def lines(stream: IO[bytes], counts: Counts, where: str) -> Iterator[str | None]:
    """Yield the lines of a stream; None for one that cannot be used, so that parallel files stay in step.

    Only ``\\n`` ends a line: U+2028, U+0085 and the form feed do not. A byte-order mark and carriage returns
    go. A line over `MAX_LINE` bytes or not in UTF-8 is counted as "line too long" or "not UTF-8".

    Raises:
        CorpusError: the stream is damaged or cut short.
    """
    number = 0
    try:
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
                while rest := stream.readline(MAX_LINE):
                    if rest.endswith(b"\n"):
                        break
                counts["line too long"] += 1
                yield None
                continue
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                counts["not UTF-8"] += 1
                yield None
    except (
        EOFError,
        lzma.LZMAError,
        zlib.error,
        tarfile.TarError,
        zipfile.BadZipFile,
        OSError,
    ) as error:
        raise CorpusError(
            f"{where}: cannot be read past line {number:,} ({error}); the file is damaged or cut "
            "short, download it again"
        ) from error


def parallel(
    source: IO[bytes], target: IO[bytes], counts: Counts, where: str, block: int = BLOCK
) -> Iterator[Pair]:
    """Pairs of two files whose lines belong together.

    The files name no documents: every `block` lines count as one, which keeps neighbours together.

    Raises:
        CorpusError: one file has more lines than the other.
    """
    left, right = lines(source, counts, where), lines(target, counts, where)
    number = 0
    for number, a in enumerate(left, start=1):
        try:
            b = next(right)
        except StopIteration:
            more = sum(1 for _ in left)
            raise CorpusError(
                f"{where}: expected as many lines on both sides, got {number + more:,} and "
                f"{number - 1:,}; take both files from the same download"
            ) from None
        if a is not None and b is not None:
            yield Pair(f"block-{(number - 1) // block:06d}", a, b)
    more = sum(1 for _ in right)
    if more:
        raise CorpusError(
            f"{where}: expected as many lines on both sides, got {number:,} and {number + more:,}; "
            "take both files from the same download"
        )


def read_europarl(paths: list[Path], languages: tuple[str, str], counts: Counts) -> Iterator[Pair]:
    """Pairs of Europarl, release v7 or one of the same make.

    Args:
        paths: the parallel archive of a pair (``fr-en.tgz``), the two files out of it (source first), or the
            folder ``txt`` of the unpacked source release, which has a folder for each language.
        languages: of source and target, as the files name them ("en", "fr").
        counts: filled in.
    Raises:
        CorpusError: none of these, or damaged.
    Source: Koehn 2005 describes the corpus. The parallel archive names no sessions, the source release does.
    """
    for path in paths:
        if not path.exists():
            raise CorpusError(f"expected a file or folder at {path}, found none; check the path")
    if len(paths) == 2:
        with paths[0].open("rb") as source, paths[1].open("rb") as target:
            yield from parallel(source, target, counts, f"{paths[0].name} and {paths[1].name}")
    elif len(paths) != 1:
        raise CorpusError(f"expected one archive, one folder or two files, got {len(paths)} paths")
    elif paths[0].is_dir():
        yield from _sessions(paths[0], languages, counts)
    else:
        yield from _archive(paths[0], languages, counts)


def _archive(path: Path, languages: tuple[str, str], counts: Counts) -> Iterator[Pair]:
    with ExitStack() as stack:
        streams = []
        try:
            for language in languages:
                # Two handles, since the two files are read side by side.
                archive = stack.enter_context(tarfile.open(path))
                pattern = re.compile(rf"europarl-v\d+\.({'|'.join(_pairs(languages))})\.{language}")
                names = []
                for member in archive:
                    names.append(member.name)
                    if member.isfile() and pattern.fullmatch(Path(member.name).name):
                        streams.append(archive.extractfile(member))
                        break
                else:
                    raise CorpusError(
                        f"{path}: expected a file such as europarl-v7.{languages[1]}-{languages[0]}."
                        f"{language}, got {', '.join(names[:6]) or 'an empty archive'}; "
                        "check --languages"
                    )
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise CorpusError(
                f"{path}: expected a .tgz archive of Europarl, got something that cannot be read as one "
                f"({type(error).__name__}); download it again"
            ) from error
        yield from parallel(streams[0], streams[1], counts, path.name)


def _pairs(languages: tuple[str, str]) -> tuple[str, str]:
    return "-".join(languages), "-".join(reversed(languages))


_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-ZÀ-ÖØ-Þ])")


def _sessions(folder: Path, languages: tuple[str, str], counts: Counts) -> Iterator[Pair]:
    """Pairs of the source release, with session names; see `pair_paragraphs`."""
    folders = [folder / language for language in languages]
    for language, found in zip(languages, folders, strict=True):
        if not found.is_dir():
            raise CorpusError(
                f"{folder}: expected a folder {language} with the sessions in that language, found "
                "none; give the folder txt of the unpacked source release"
            )
    shared = sorted(
        {path.name for path in folders[0].glob("*.txt")}
        & {path.name for path in folders[1].glob("*.txt")}
    )
    if not shared:
        raise CorpusError(f"{folder}: expected sessions that both languages have, found none")
    for name in shared:
        speeches = []
        for found in folders:
            with (found / name).open("rb") as stream:
                speeches.append(_speeches(lines(stream, counts, f"{found.name}/{name}")))
        for key, paragraphs in speeches[0].items():
            for source, target in pair_paragraphs(paragraphs, speeches[1].get(key, []), counts):
                yield Pair(name.removesuffix(".txt"), source, target)


def _speeches(text: Iterable[str | None]) -> dict[tuple[str, str, int], list[str]]:
    """Paragraphs by chapter, speaker and how often this speaker has had the floor."""
    found: dict[tuple[str, str, int], list[str]] = {}
    chapter = speaker = ""
    times: Counter[tuple[str, str]] = Counter()
    opened = True
    for line in text:
        line = (line or "").strip()
        tag = re.match(r"<(CHAPTER|SPEAKER|P)\b(?:[^>]*?\bID=\"?([^\s\">]+))?", line, re.I)
        if tag:
            kind = tag[1].upper()
            if kind == "CHAPTER":
                chapter, speaker = tag[2] or "", ""
            elif kind == "SPEAKER":
                speaker = tag[2] or ""
            if kind != "P":
                times[chapter, speaker] += 1
            opened = True
        elif line:
            paragraphs = found.setdefault((chapter, speaker, times[chapter, speaker]), [])
            if opened or not paragraphs:
                paragraphs.append(line)
            else:
                paragraphs[-1] += f" {line}"
            opened = False
    return found


def pair_paragraphs(
    source: list[str], target: list[str], counts: Counts
) -> Iterator[tuple[str, str]]:
    """Pair the paragraphs of one speech where both languages have as many, else drop them.

    Sentences are paired where a paragraph has as many in both languages; otherwise it stays whole.
    """
    if len(source) != len(target):
        counts["paragraphs that do not match"] += max(len(source), len(target))
        return
    for a, b in zip(source, target, strict=True):
        left, right = _END.split(a), _END.split(b)
        yield from zip(left, right, strict=True) if len(left) == len(right) else [(a, b)]


def read_tatoeba(path: Path, languages: tuple[str, str], counts: Counts) -> Iterator[Pair]:
    """Pairs of everyday sentences, which have no order.

    Args:
        path: a file of manythings.org/anki (``fra-eng.zip``, or the text file in it: English, other language,
            attribution) or Tatoeba's own export of sentence pairs (id, text, id, text; source first).
        languages: of source and target; where the source is not English, the sides of the first kind of file
            change places.
        counts: filled in.
    Raises:
        CorpusError: no such file, another format, or damaged.
    """
    if not path.is_file():
        raise CorpusError(f"expected a file at {path}, found none; check the path")
    try:
        stream = _unzipped(path) if zipfile.is_zipfile(path) else path.open("rb")
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error}); download it again") from error
    seen = 0
    with stream:
        for line in lines(stream, counts, path.name):
            columns = (line or "").split("\t")
            if len(columns) == 4 and columns[0].strip().isdigit() and columns[2].strip().isdigit():
                pair = (columns[1], columns[3])
            elif 2 <= len(columns) <= 3:
                pair = (columns[0], columns[1])
                if languages[0] != "en":
                    pair = pair[::-1]
            else:
                counts["not a pair"] += bool(line)
                continue
            seen += 1
            yield Pair("", *pair)
    if not seen:
        raise CorpusError(
            f"{path}: expected lines of two texts (and an attribution) or of id, text, id, text, "
            "separated by tabs, got none; give the file as it was downloaded"
        )


def _unzipped(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    names = [name for name in archive.namelist() if name.endswith((".txt", ".tsv"))]
    names = [name for name in names if not Path(name).name.startswith("_")] or names
    if not names:
        raise CorpusError(
            f"{path}: expected a text file in the archive, got {', '.join(archive.namelist()[:6])}"
        )
    return archive.open(max(names, key=lambda name: archive.getinfo(name).file_size))


def read_dataset(
    name: str, languages: tuple[str, str], counts: Counts, *, subset: str | None, split: str
) -> Iterator[Pair]:
    """Pairs of a dataset with a column ``translation``, from a folder or from the Hub.

    Args:
        name: a folder that `datasets` saved, or a name on the Hub.
        languages: keys of the column.
        counts: filled in.
        subset: of a name on the Hub, such as "en-fr".
        split: where there are several.
    Raises:
        CorpusError: no such dataset, split, column or language.
    """
    try:
        import datasets
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise CorpusError(
            "reading a dataset needs the package datasets; pip install datasets"
        ) from error
    try:
        if Path(name).is_dir():
            found = datasets.load_from_disk(name)
            if isinstance(found, datasets.DatasetDict):
                found = found[split]
        else:
            found = datasets.load_dataset(name, subset, split=split)
    except (OSError, ValueError, KeyError) as error:
        raise CorpusError(f"{name}: no such dataset or split {split!r} ({error})") from error
    for number, row in enumerate(found):
        assert isinstance(row, dict)  # not the list of a dataset's own format
        translation = row.get("translation")
        if not isinstance(translation, dict) or not set(languages) <= set(translation):
            got = list(translation) if isinstance(translation, dict) else list(row)
            raise CorpusError(
                f"{name}: expected a column translation with {languages[0]} and {languages[1]}, got "
                f"{', '.join(map(str, got))}; check --languages"
            )
        sides = [translation[language] for language in languages]
        if all(isinstance(side, str) for side in sides):
            yield Pair(str(row.get("document", f"block-{number // BLOCK:06d}")), *sides)
        else:
            counts["not a pair"] += 1
