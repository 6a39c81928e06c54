"""Parallel corpora: read, clean, encode once, join, batch.

A corpus is a file of lines ``document<TAB>source<TAB>target`` in document order, plain or compressed
(``.gz``, ``.xz``). Consecutive lines of one document are consecutive sentences. The source language
is English wherever this project ships something; nothing here depends on it.

Shapes: `N` pairs of a corpus, `E` examples of an epoch, `B` batch, `S` source length, `T` target
length. Lengths are in pieces unless a name ends in ``_words``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import math
import os
import re
import shutil
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from seqviz.constants import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.data.noise import NOISE_VERSION, Noise, noised, words_seen_in_lower_case
from seqviz.files import file_digest

MAX_LENGTH_RATIO = 4.0
"""Longest side over shortest, in pieces plus `_RATIO_SLACK`."""
_RATIO_SLACK = 6
MAX_LINE_CHARACTERS = 20_000
_MAX_UNUSABLE = 0.1
"""Share of lines that are not UTF-8 or have not three columns, beyond which a file is refused."""

ENCODING_VERSION = 2
"""Raise it when cleaning or the stored format changes: old encoded corpora are then made anew."""


class CorpusError(ValueError):
    """A corpus file cannot be used; the message names file, line, what was expected, what came."""


class Pair(NamedTuple):
    """One aligned sentence pair and the document it stands in."""

    document: str
    source: str
    target: str


# ---------------------------------------------------------------------------------------------
# Reading


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


def _pair(number: int, raw: bytes) -> Pair | None:
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
    for number, raw in _lines(Path(path)):
        try:
            pair = _pair(number, raw)
        except UnusableLine as error:
            if unusable is None:
                raise CorpusError(f"{path}, line {number}: {error}") from None
            unusable(number, error)
            continue
        if pair:
            yield pair


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
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


def _oddities(number: int, raw: bytes, pair: Pair) -> Iterator[str]:
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
    """A short digest of a pair's text without case and spacing: what is held out is compared by it."""
    plain = " ".join(source.lower().split()) + "\t" + " ".join(target.lower().split())
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).digest()


def held_out_digests(paths: Iterable[str | os.PathLike[str]]) -> frozenset[bytes]:
    """Digests of all pairs of test and development files, for `encode_corpus`."""
    return frozenset(pair_digest(pair.source, pair.target) for p in paths for pair in read_pairs(p))


# ---------------------------------------------------------------------------------------------
# Encoding, once


@dataclass(frozen=True)
class EncodedCorpus:
    """Token ids of a cleaned corpus, memory-mapped, without end tokens.

    Attributes:
        source, target: ids of all sentences in a row, uint16.
        source_offsets, target_offsets: where each sentence starts, int64, (N + 1,).
        source_words: whitespace words of each source sentence, uint16, (N,).
        document: number of the document each pair stands in, int32, (N,).
        information: file, digest, counts of what was kept and dropped and why.
    """

    source: np.ndarray
    target: np.ndarray
    source_offsets: np.ndarray
    target_offsets: np.ndarray
    source_words: np.ndarray
    document: np.ndarray
    information: dict[str, Any] = field(hash=False)

    def __len__(self) -> int:
        return len(self.source_words)

    def ids(self, first: int, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Source and target ids of `count` consecutive pairs joined by spaces.

        Pieces never cross a space, so the ids of a join are the ids of its parts in a row (but for
        the rare part that begins with a mark such as ``?``, before which a space is dropped).
        """
        s, t = self.source_offsets, self.target_offsets
        end = first + count
        return self.source[s[first] : s[end]], self.target[t[first] : t[end]]


_ARRAYS = ("source", "target", "source_offsets", "target_offsets", "source_words", "document")


def encode_corpus(
    path: str | os.PathLike[str],
    tokenizer: Any,
    cache_folder: str | os.PathLike[str],
    *,
    held_out: frozenset[bytes] = frozenset(),
    longest: int | None = None,
    noise: Noise | None = None,
    variant: Sequence[int] = (),
    chunk_size: int = 20_000,
) -> EncodedCorpus:
    """Clean and encode a corpus file, or open what an earlier call with the same input left.

    Dropped, each with its count in ``information["dropped"]``: lines without a pair (not UTF-8, not
    three columns, a NUL), pairs with an empty side, over-long lines, held-out pairs, exact repeats of
    the line before, sides beyond the caps, and pairs whose lengths differ more than
    `MAX_LENGTH_RATIO`. Kept, but counted in ``information["odd"]``: lone quotation marks, separators
    inside a line, carriage returns, a byte-order mark. ``information["first_lines"]`` names the first
    line of each. `findings` says all this in words.

    Args:
        path: corpus file, see `read_pairs`.
        tokenizer: the shared tokenizer.
        cache_folder: where the arrays go; they are written aside and renamed when whole.
        held_out: digests of pairs that must not be trained on, see `held_out_digests`.
        longest: source words of the longest pairs that are kept, if not `MAX_SOURCE_WORDS`.
        noise: how pairs are rewritten before they are encoded, see `seqviz.data.noise`.
        variant: numbers that tell this rewriting from others of the same corpus.
        chunk_size: pairs given to the batch encoder at once.
    Raises:
        CorpusError: no such file, an empty or damaged one, more than a tenth of its lines without a
            pair, no pair left after cleaning, or damaged arrays of an earlier call.
    """
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"expected a corpus file at {path}, found none; check the path")
    if len(tokenizer) > 1 << 16:
        raise CorpusError(
            f"expected at most {1 << 16} pieces, got a tokenizer with {len(tokenizer)}; "
            "ids are stored in two bytes, use a smaller vocabulary"
        )
    backend = _whole_text(tokenizer)
    digest = file_digest(path)
    key = hashlib.sha256(
        "\n".join(
            [
                str(ENCODING_VERSION),
                digest,
                backend.to_str(),
                hashlib.sha256(b"".join(sorted(held_out))).hexdigest(),
                *([] if longest is None else [f"longest {longest}"]),
                *([] if noise is None else [f"{noise} {NOISE_VERSION} {tuple(variant)}"]),
            ]
        ).encode()
    ).hexdigest()[:20]
    folder = Path(cache_folder) / f"encoded-{key}"
    if not (folder / "information.json").is_file():
        _encode_into(folder, path, digest, backend, held_out, longest, noise, variant, chunk_size)
    try:
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
        information = json.loads((folder / "information.json").read_text(encoding="utf-8"))
    except (OSError, EOFError, ValueError) as error:
        raise CorpusError(
            f"{folder}: expected the arrays of an encoded corpus, they cannot be read ({error}); "
            "delete the folder, it is then made anew"
        ) from error
    return EncodedCorpus(**arrays, information=information)


def _whole_text(tokenizer: Any) -> Tokenizer:
    """A copy of the fast tokenizer that neither cuts nor pads, whatever was asked of it before."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    # Typed control tokens are text; this setting is not part of the tokenizer's JSON.
    backend.encode_special_tokens = True
    return backend


def _encode_into(
    folder: Path,
    path: Path,
    digest: str,
    backend: Tokenizer,
    held_out: frozenset[bytes],
    longest: int | None,
    noise: Noise | None,
    variant: Sequence[int],
    chunk_size: int,
) -> None:
    dropped: Counter[str] = Counter()
    odd: Counter[str] = Counter()
    first_lines: dict[str, int] = {}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in _ARRAYS}
    documents: dict[str, int] = {}

    def count(found: Counter[str], what: str, number: int) -> None:
        found[what] += 1
        first_lines[what] = min(number, first_lines.get(what, number))

    def rewritten(chunk: list[tuple[int, Pair]], first: int) -> list[tuple[int, Pair]]:
        if noise is None:
            return chunk
        sides = noised(
            ((pair.source, pair.target) for _, pair in chunk),
            noise,
            seen_lower,
            variant,
            first=first,
        )
        return [
            (number, Pair(pair.document, *new))
            for (number, pair), new in zip(chunk, sides, strict=True)
        ]

    def flush(chunk: list[tuple[int, Pair]], first: int) -> None:
        chunk = rewritten(chunk, first)
        sources = backend.encode_batch_fast([p.source for _, p in chunk], add_special_tokens=False)
        targets = backend.encode_batch_fast([p.target for _, p in chunk], add_special_tokens=False)
        kept: list[tuple[list[int], list[int], int, int]] = []
        for (number, pair), source, target in zip(chunk, sources, targets, strict=True):
            words = len(pair.source.split())
            s, t = source.ids, target.ids
            longest, shortest = max(len(s), len(t)), min(len(s), len(t))
            if not s or not t:
                count(dropped, "empty side", number)
            elif words > MAX_SOURCE_WORDS:
                count(dropped, f"over {MAX_SOURCE_WORDS} source words", number)
            elif len(s) > MAX_SOURCE_PIECES:
                count(dropped, f"over {MAX_SOURCE_PIECES} source pieces", number)
            elif len(t) > MAX_TARGET_PIECES:
                count(dropped, f"over {MAX_TARGET_PIECES} target pieces", number)
            elif longest + _RATIO_SLACK > MAX_LENGTH_RATIO * (shortest + _RATIO_SLACK):
                count(dropped, f"length ratio over {MAX_LENGTH_RATIO:g}", number)
            else:
                kept.append((s, t, words, documents.setdefault(pair.document, len(documents))))
        for name, ids in (
            ("source", [row[0] for row in kept]),
            ("target", [row[1] for row in kept]),
        ):
            parts[name].append(np.fromiter((i for row in ids for i in row), np.uint16))
            parts[f"{name}_offsets"].append(np.fromiter(map(len, ids), np.int64, len(ids)))
        parts["source_words"].append(np.array([row[2] for row in kept], np.uint16))
        parts["document"].append(np.array([row[3] for row in kept], np.int32))

    seen_lower: frozenset[str] = frozenset()
    if noise is not None:
        readable = read_pairs(path, unusable=lambda *_: None)
        seen_lower = words_seen_in_lower_case((pair.source, pair.target) for pair in readable)
    chunk: list[tuple[int, Pair]] = []
    before: Pair | None = None
    lines = unusable = flushed = 0
    example = ""
    for number, raw in _lines(path):
        try:
            pair = _pair(number, raw)
        except UnusableLine as error:
            count(dropped, error.reason, number)
            example = example or f"line {number}: {error}"
            lines, unusable = lines + 1, unusable + 1
            continue
        if pair is None:
            continue
        lines += 1
        for what in _oddities(number, raw, pair):
            count(odd, what, number)
        if len(pair.source) + len(pair.target) > MAX_LINE_CHARACTERS:
            count(dropped, f"line over {MAX_LINE_CHARACTERS} characters", number)
        elif not pair.source.strip() or not pair.target.strip():
            count(dropped, "empty side", number)
        elif pair == before:
            count(dropped, "repeats the line before", number)
        elif held_out and pair_digest(pair.source, pair.target) in held_out:
            count(dropped, "held out for testing", number)
        elif longest is not None and len(pair.source.split()) > longest:
            count(dropped, f"over the {longest} source words asked for", number)
        else:
            chunk.append((number, pair))
        before = pair
        if len(chunk) == chunk_size:
            flush(chunk, flushed)
            flushed += len(chunk)
            chunk = []
    if unusable > _MAX_UNUSABLE * lines:
        raise CorpusError(
            f"{path}: expected a pair in nearly every line, got {unusable:,} of {lines:,} lines without "
            f"one; the first, {example}"
        )
    flush(chunk, flushed)

    arrays = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    if len(arrays["source_words"]) == 0:
        reasons = ", ".join(f"{count} {why}" for why, count in dropped.items())
        raise CorpusError(f"{path}: no pair is left after cleaning ({reasons})")
    for name in ("source_offsets", "target_offsets"):
        arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])])
    information = {
        "name": path.name,
        "sha256": digest,
        "lines": lines,
        "pairs": len(arrays["source_words"]),
        "documents": len(documents),
        "source_pieces": len(arrays["source"]),
        "target_pieces": len(arrays["target"]),
        "dropped": dict(sorted(dropped.items())),
        "odd": dict(sorted(odd.items())),
        "first_lines": dict(sorted(first_lines.items())),
    }
    if longest is not None:
        information["longest"] = longest
    if noise is not None:
        information["noise"] = asdict(noise)
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(".encoding-*"):  # of a call that was killed
        if time.time() - left_over.stat().st_mtime > 24 * 3600:  # not of one at work
            shutil.rmtree(left_over, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".encoding-"))
    try:
        for name, array in arrays.items():
            np.save(aside / f"{name}.npy", array)
        (aside / "information.json").write_text(json.dumps(information), encoding="utf-8")
        os.replace(aside, folder)
    except OSError:
        # Another process was first with the same content, or the disk is full.
        if not (folder / "information.json").is_file():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def findings(information: dict[str, Any]) -> str:
    """One line on what `encode_corpus` kept, dropped and found odd, with the first line of each."""
    first_lines = information.get("first_lines", {})  # not in what older versions left

    def listed(found: dict[str, int]) -> str:
        return ", ".join(
            f"{count:,} {what}"
            + (f" (first: line {first_lines[what]})" if what in first_lines else "")
            for what, count in found.items()
        )

    said = f"{information['name']}: {information['pairs']:,} of {information['lines']:,} lines kept"
    if information["dropped"]:
        said += f"; dropped: {listed(information['dropped'])}"
    if information.get("odd"):
        said += f"; odd but harmless: {listed(information['odd'])}"
    return said


# ---------------------------------------------------------------------------------------------
# Examples of an epoch


@dataclass(frozen=True)
class Source:
    """A corpus and how often an epoch goes through it.

    Attributes:
        corpus: encoded.
        repeat: passes of an epoch. The fraction of a pass takes blocks of consecutive pairs, other ones
            in each epoch until all have had their turn.
        variants: the same corpus rewritten in other ways: further passes of an epoch read these in turn.
    """

    corpus: EncodedCorpus
    repeat: float = 1
    variants: tuple[EncodedCorpus, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.repeat) and self.repeat >= 0):
            raise CorpusError(
                f"expected a repeat of 0 or more, got {self.repeat} for {self.corpus.information['name']}; "
                "0.25 reads a quarter in each epoch"
            )

    @property
    def passes(self) -> list[EncodedCorpus]:
        """What each pass of an epoch reads; the last one may be a part of a pass."""
        read = (self.corpus, *self.variants)
        return [read[number % len(read)] for number in range(math.ceil(self.repeat))]


@dataclass(frozen=True)
class Epoch:
    """The examples of one pass over the data, each one or more consecutive pairs.

    Attributes, all (E,): `corpus` index into the list of sources, `read` the pass, `first` pair, `count`
    of pairs, `source_length` and `target_length` in pieces with the end token, `source_words`.
    """

    corpus: np.ndarray
    read: np.ndarray
    first: np.ndarray
    count: np.ndarray
    source_length: np.ndarray
    target_length: np.ndarray
    source_words: np.ndarray

    def __len__(self) -> int:
        return len(self.corpus)

    def length_histogram(self) -> list[int]:
        """Examples by source words: entry `n` counts those of `n` words, 0 … 100."""
        return np.bincount(self.source_words, minlength=MAX_SOURCE_WORDS + 1).tolist()


def plan_epoch(
    sources: Sequence[Source], *, seed: int, epoch: int, join_probability: float = 0.15
) -> Epoch:
    """Decide which examples an epoch has. Every pair occurs exactly once in every whole pass.

    With `join_probability` an example is 2 to 8 (uniform) consecutive pairs of one document, fewer
    where the document or a length cap ends the join. The result depends on the arguments alone.

    Raises:
        CorpusError: no corpus, or none that is repeated at least once.
    """
    columns: list[np.ndarray] = []
    for index, source in enumerate(sources):
        for number, corpus in enumerate(source.passes):
            random = np.random.default_rng([seed, epoch, index, number])
            share = min(1.0, source.repeat - number)
            block = np.zeros(len(corpus), np.int64)
            if share < 1:
                block = np.arange(len(corpus)) // BLOCK
            first = _join(corpus, random, join_probability, block)
            count = np.diff(np.append(first, len(corpus)))
            if share < 1:
                mine = _blocks(int(block[-1]) + 1, share, [seed, index], epoch)[block[first]]
                first, count = first[mine], count[mine]
            words = np.concatenate([[0], np.cumsum(corpus.source_words, dtype=np.int64)])
            end = first + count
            columns.append(
                np.stack(
                    [
                        np.full(len(first), index),
                        np.full(len(first), number),
                        first,
                        count,
                        corpus.source_offsets[end] - corpus.source_offsets[first] + 1,
                        corpus.target_offsets[end] - corpus.target_offsets[first] + 1,
                        words[end] - words[first],
                    ]
                )
            )
    if not columns:
        raise CorpusError(
            "expected at least one corpus that an epoch goes through, got none; give a corpus with a "
            "repeat of 1 or more"
        )
    return Epoch(*np.concatenate(columns, axis=1))


BLOCK = 64
"""Consecutive pairs that the fraction of a pass takes together, so that they can still be joined."""


def _blocks(total: int, share: float, seed: Sequence[int], epoch: int) -> np.ndarray:
    """Which blocks an epoch reads, true or false for each: the next `share` of a fixed random order."""
    order = np.random.default_rng([*seed, 2]).permutation(total)
    begin, end = round(epoch * share * total), round((epoch + 1) * share * total)
    chosen = np.zeros(total, bool)
    chosen[order[np.arange(begin, max(end, begin + 1)) % total]] = True
    return chosen


def _join(
    corpus: EncodedCorpus, random: np.random.Generator, probability: float, block: np.ndarray
) -> np.ndarray:
    """First pair of every example of one pass over a corpus; no example crosses a document or block."""
    total = len(corpus)
    starts_join = (random.random(total) < probability).tolist()
    sizes = random.integers(2, 9, total).tolist()
    words = corpus.source_words.tolist()
    source_lengths = np.diff(corpus.source_offsets).tolist()
    target_lengths = np.diff(corpus.target_offsets).tolist()
    document = list(zip(corpus.document.tolist(), block.tolist(), strict=True))
    firsts: list[int] = []
    at = 0
    while at < total:
        firsts.append(at)
        end = at + 1
        if starts_join[at]:
            w, s, t = words[at], source_lengths[at], target_lengths[at]
            while end < total and end - at < sizes[at] and document[end] == document[at]:
                w += words[end]
                s += source_lengths[end]
                t += target_lengths[end]
                if w > MAX_SOURCE_WORDS or s > MAX_SOURCE_PIECES or t > MAX_TARGET_PIECES:
                    break
                end += 1
        at = end
    return np.array(firsts, np.int64)


def plan_batches(epoch: Epoch, *, batch_tokens: int, seed: int, number: int) -> list[np.ndarray]:
    """Cut an epoch into batches of at most `batch_tokens` target tokens, in random order.

    Examples of like length stand together (ties in random order), so that little is padded; then
    the batches are shuffled. An example longer than `batch_tokens` makes a batch of its own.

    Returns:
        Arrays of example numbers; together they hold every example once.
    """
    random = np.random.default_rng([seed, number, 1])
    order = random.permutation(len(epoch))
    order = order[np.lexsort((epoch.source_length[order], epoch.target_length[order]))]
    lengths = epoch.target_length[order]
    cuts, filled = [], 0
    for position, length in enumerate(lengths.tolist()):
        if filled and filled + length > batch_tokens:
            cuts.append(position)
            filled = 0
        filled += length
    batches = np.split(order, cuts)
    return [batches[i] for i in random.permutation(len(batches))]


@dataclass(frozen=True)
class Batch:
    """Padded ids, int64. `labels` has -100 where the target is padding."""

    input_ids: np.ndarray
    attention_mask: np.ndarray
    labels: np.ndarray

    @property
    def num_target_tokens(self) -> int:
        return int((self.labels != -100).sum())


def make_batch(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], *, pad_token_id: int, eos_token_id: int
) -> Batch:
    """Pad pairs of (source ids, target ids) and end each with the end token.

    Returns:
        ids and mask (B, S), labels (B, T); padding stands at the end.
    """
    rows = len(pairs)
    source_length = max(len(s) for s, _ in pairs) + 1
    target_length = max(len(t) for _, t in pairs) + 1
    input_ids = np.full((rows, source_length), pad_token_id, np.int64)
    attention_mask = np.zeros((rows, source_length), np.int64)
    labels = np.full((rows, target_length), -100, np.int64)
    for row, (source, target) in enumerate(pairs):
        input_ids[row, : len(source)] = source
        input_ids[row, len(source)] = eos_token_id
        attention_mask[row, : len(source) + 1] = 1
        labels[row, : len(target)] = target
        labels[row, len(target)] = eos_token_id
    return Batch(input_ids, attention_mask, labels)
