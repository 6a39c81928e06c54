"""Build corpus files out of public ones that a person has downloaded: read, clean, hold out, write.

    seqviz corpus europarl fr-en.tgz --languages en-fr --out europarl/

What comes out is ``train.tsv.xz``, ``dev.tsv.xz`` and ``test.tsv.xz`` (`seqviz.corpus.read_pairs` reads them)
and ``corpus.json``, which says what was read, kept and dropped, and why. Nothing is unpacked to disk.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from seqviz.corpus import CorpusError, Pair, pair_digest, read_pairs
from seqviz.files import file_digest, write_json
from seqviz.tokenizer import normalize
from seqviz.version import versions

MAX_LINE = 1_000_000
"""Longer lines, in bytes, are no sentence: they are dropped without being read whole."""
BLOCK = 200
"""Lines that count as one document where the source names none."""
MAX_RATIO = 2.5
"""Characters of one side over those of the other; what exceeds it is seldom a translation."""
SETS = ("train", "dev", "test")

Counts = Counter[str]
"""What was seen, kept and dropped, by reason."""


# ---------------------------------------------------------------------------------------------
# Reading


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


# ---------------------------------------------------------------------------------------------
# Cleaning

_OE = re.compile(
    r"\b(?:oeuvr\w*|oeil\w*|oeufs?|oecum\w*|oesoph\w*|oestrog\w*|oenolog\w*|oed[eè]m\w*|boeufs?|choeurs?"
    r"|coeurs?|écoeur\w*|rancoeurs?|manoeuvr\w*|désoeuvr\w*|moeurs|noeuds?|soeurs?|voeux?|foetus|foetal\w*)\b",
    re.IGNORECASE,
)


def restore_ligatures(text: str) -> str:
    """French words that lost their œ get it back: "soeur" → "sœur", but "coexister", "moelle" stay."""

    def restored(match: re.Match[str]) -> str:
        word = match[0]
        return word.replace("oe", "œ").replace("OE", "Œ").replace("Oe", "Œ")

    return _OE.sub(restored, text) if "oe" in text.lower() else text


def language_check() -> Callable[[str], str]:
    """A function that names the language of a text.

    Raises:
        CorpusError: the package that knows languages is not installed.
    """
    try:
        from py3langid.langid import (  # type: ignore[import-not-found]
            MODEL_FILE,
            LanguageIdentifier,
        )
    except ModuleNotFoundError as error:
        if error.name != "py3langid":
            raise
        raise CorpusError(
            "the check of languages needs the package py3langid; pip install 'seqviz[corpora]', or "
            "go without by --no-language-check"
        ) from error
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    return lambda text: identifier.classify(text)[0]


@dataclass
class Cleaner:
    """What a pair must be to be kept; `clean` returns the pair, or the reason for which it is dropped.

    Attributes:
        languages: of source and target.
        identify: names the language of a text, or None for no check.
    """

    languages: tuple[str, str]
    identify: Callable[[str], str] | None = None
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def clean(self, pair: Pair) -> Pair | str:
        sides = [self._plain(text, self.languages[i]) for i, text in enumerate(pair[1:])]
        source, target = sides
        if not source or not target:
            return "empty"
        if max(len(source), len(target)) > MAX_RATIO * min(len(source), len(target)):
            return "lengths differ"
        if self.identify and self._foreign(source, target):
            return "other language"
        digest = pair_digest(source, target)
        if digest in self._seen:
            return "duplicate"
        self._seen.add(digest)
        return Pair(pair.document, source, target)

    @staticmethod
    def _plain(text: str, language: str) -> str:
        plain = normalize(text)
        return restore_ligatures(plain) if language == "fr" else plain

    def _foreign(self, source: str, target: str) -> bool:
        """A side in the other's language, or one of ten words or more in any other than its own.

        Short texts are often misjudged, seldom as the very language of the other side.
        """
        assert self.identify is not None
        for text, own, other in (
            (source, *self.languages),
            (target, *reversed(self.languages)),
        ):
            found = self.identify(text)
            if found != own and (len(text.split()) >= 10 or found == other):
                return True
        return False


# ---------------------------------------------------------------------------------------------
# Holding out and writing


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
    Returns:
        the report, as ``corpus.json`` holds it.
    Raises:
        CorpusError: nothing is left to train on.
    """
    out, apart = Path(out), list(apart)
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=out))
    try:
        others = [pair for path in apart for pair in read_pairs(path)]
        sources = {_digest(pair.source) for pair in others}
        targets = {_digest(pair.target) for pair in others}
        documents: dict[str, set[str]] = {"dev": set(), "test": set()}
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(_writer(work / f"{name}.tsv.xz")) for name in SETS[1:]
            }
            rest = stack.enter_context(
                (work / "rest.tsv").open("w+", encoding="utf-8", newline="\n")
            )
            for pair in pairs:
                counts["read"] += 1
                found = cleaner.clean(pair)
                if isinstance(found, str):
                    counts[found] += 1
                    continue
                where = held_out.set_of(found)
                line = "\t".join((found.document or "sentences", *found[1:])) + "\n"
                if where == "train":
                    rest.write(line)
                    continue
                files[where].write(line)
                counts[where] += 1
                sources.add(_digest(found.source))
                targets.add(_digest(found.target))
                if found.document:
                    documents[where].add(found.document)
            rest.seek(0)
            with _writer(work / "train.tsv.xz") as train:
                for line in rest:
                    _, source, target = line.rstrip("\n").split("\t")
                    if _digest(source) in sources or _digest(target) in targets:
                        counts["held out"] += 1
                    else:
                        train.write(line)
                        counts["train"] += 1
        if not counts["train"]:
            dropped = ", ".join(
                f"{name} {n:,}" for name, n in counts.most_common() if name != "read"
            )
            raise CorpusError(
                f"expected pairs to train on, got none of {counts['read']:,} ({dropped or 'none read'}); "
                "check the files, --languages and what is held out"
            )
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
            "settings": {"max_ratio": MAX_RATIO, "max_line_bytes": MAX_LINE, "block_lines": BLOCK},
            "pairs": {name: counts[name] for name in SETS},
            "read": counts["read"],
            "dropped": {
                name: number
                for name, number in sorted(counts.items())
                if name not in (*SETS, "read") and number
            },
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


def _digest(text: str) -> bytes:
    plain = " ".join(text.lower().split())
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).digest()


def _writer(path: Path) -> IO[str]:
    return io.TextIOWrapper(lzma.open(path, "wb", preset=1), encoding="utf-8", newline="\n")  # type: ignore[arg-type]
