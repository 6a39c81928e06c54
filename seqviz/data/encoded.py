"""A corpus cleaned and cut into token ids, once: what training reads, memory-mapped.

Shapes: `N` pairs of a corpus. Lengths are in pieces unless a name ends in ``_words``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from seqviz.data.kept import Numbered, Tally, kept_pairs, unfit_pieces
from seqviz.data.noise import NOISE_VERSION, Noise, noised, words_seen_in_lower_case
from seqviz.data.pairs import CorpusError, Pair, read_pairs
from seqviz.files import file_digest
from seqviz.text_languages import TextLanguage

ENCODING_VERSION = 2
"""Raise it when cleaning or the stored format changes: old encoded corpora are then made anew."""


@dataclass(frozen=True)
class EncodedCorpus:
    """Token ids of a cleaned corpus, memory-mapped, without end tokens.

    Attributes:
        source, target: ids of all sentences in a row, uint16.
        source_offsets, target_offsets: where each sentence starts, int64, (N + 1,).
        source_words: words of each source sentence, uint16, (N,).
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


ARRAYS = ("source", "target", "source_offsets", "target_offsets", "source_words", "document")


def encode_corpus(
    path: str | os.PathLike[str],
    tokenizer: Any,
    cache_folder: str | os.PathLike[str],
    *,
    held_out: frozenset[bytes] = frozenset(),
    longest: int | None = None,
    noise: Noise | None = None,
    variant: Sequence[int] = (),
    source_language: str = "en",
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
        source_language: whose words are counted, a code of ISO 639-1.
        chunk_size: pairs given to the batch encoder at once.
    Raises:
        CorpusError: no such file, an empty or damaged one, more than a tenth of its lines without a
            pair, no pair left after cleaning, or damaged arrays of an earlier call.
        LanguageError: no such language, or what finds its words is not installed.
    """
    language = TextLanguage.of(source_language)
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
    key = _key(digest, backend, held_out, longest, noise, variant, language)
    folder = Path(cache_folder) / f"encoded-{key}"
    if not (folder / "information.json").is_file():
        tally = Tally()
        chunks = _chunks(kept_pairs(path, tally, held_out, longest, language), chunk_size)
        if noise is not None:
            chunks = _rewritten(chunks, path, noise, variant)
        arrays, documents = _encoded(chunks, backend, tally, language)
        if not len(arrays["source_words"]):
            reasons = ", ".join(f"{count} {why}" for why, count in tally.dropped.items())
            raise CorpusError(f"{path}: no pair is left after cleaning ({reasons})")
        about = {"name": path.name, "sha256": digest, "lines": tally.lines}
        asked: dict[str, Any] = {} if longest is None else {"longest": longest}
        if noise is not None:
            asked["noise"] = asdict(noise)
        if not language.is_spaced:
            asked["source_language"] = language.code
        _write(folder, arrays, {**about, **_sizes(arrays, documents), **tally.found(), **asked})
    try:
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
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


def _key(
    digest: str,
    backend: Tokenizer,
    held_out: frozenset[bytes],
    longest: int | None,
    noise: Noise | None,
    variant: Sequence[int],
    language: TextLanguage,
) -> str:
    """Names what an encoded corpus is made of: another input goes into another folder."""
    parts = [
        str(ENCODING_VERSION),
        digest,
        backend.to_str(),
        hashlib.sha256(b"".join(sorted(held_out))).hexdigest(),
        *([] if longest is None else [f"longest {longest}"]),
        *([] if noise is None else [f"{noise} {NOISE_VERSION} {tuple(variant)}"]),
        *([] if language.is_spaced else [f"words of {language.code}"]),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def _chunks(pairs: Iterable[Numbered], size: int) -> Iterator[list[Numbered]]:
    chunk: list[Numbered] = []
    for pair in pairs:
        chunk.append(pair)
        if len(chunk) == size:
            yield chunk
            chunk = []
    yield chunk  # also an empty one: a corpus has at least one chunk


def _rewritten(
    chunks: Iterable[list[Numbered]], path: Path, noise: Noise, variant: Sequence[int]
) -> Iterator[list[Numbered]]:
    """Chunks with their pairs rewritten, see `seqviz.data.noise`."""
    readable = read_pairs(path, unusable=lambda *_: None)
    seen_lower = words_seen_in_lower_case((pair.source, pair.target) for pair in readable)
    first = 0
    for chunk in chunks:
        old = ((pair.source, pair.target) for _, pair in chunk)
        new = noised(old, noise, seen_lower, variant, first=first)
        first += len(chunk)
        yield [
            (number, Pair(pair.document, *sides))
            for (number, pair), sides in zip(chunk, new, strict=True)
        ]


def _encoded(
    chunks: Iterable[list[Numbered]], backend: Tokenizer, tally: Tally, language: TextLanguage
) -> tuple[dict[str, np.ndarray], int]:
    """Arrays of the pairs that are short enough, and the number of their documents."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ARRAYS}
    documents: dict[str, int] = {}
    for chunk in chunks:
        sources = backend.encode_batch_fast([p.source for _, p in chunk], add_special_tokens=False)
        targets = backend.encode_batch_fast([p.target for _, p in chunk], add_special_tokens=False)
        kept: list[tuple[list[int], list[int], int, int]] = []
        for (number, pair), source, target in zip(chunk, sources, targets, strict=True):
            words, s, t = language.length(pair.source), source.ids, target.ids
            why = unfit_pieces(words, s, t)
            if why is None:
                kept.append((s, t, words, documents.setdefault(pair.document, len(documents))))
            else:
                tally.drop(why, number)
        for name, ids in (
            ("source", [row[0] for row in kept]),
            ("target", [row[1] for row in kept]),
        ):
            parts[name].append(np.fromiter((i for row in ids for i in row), np.uint16))
            parts[f"{name}_offsets"].append(np.fromiter(map(len, ids), np.int64, len(ids)))
        parts["source_words"].append(np.array([row[2] for row in kept], np.uint16))
        parts["document"].append(np.array([row[3] for row in kept], np.int32))
    arrays = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    for name in ("source_offsets", "target_offsets"):
        arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])])
    return arrays, len(documents)


def _sizes(arrays: dict[str, np.ndarray], documents: int) -> dict[str, int]:
    return {
        "pairs": len(arrays["source_words"]),
        "documents": documents,
        "source_pieces": len(arrays["source"]),
        "target_pieces": len(arrays["target"]),
    }


def _write(folder: Path, arrays: dict[str, np.ndarray], information: dict[str, Any]) -> None:
    """Write aside and rename, so that a folder is whole or not there."""
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
