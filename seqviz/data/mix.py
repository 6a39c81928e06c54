"""Which corpora a model is trained on, how often each, and how their pairs are rewritten."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.data.encoded import encode_corpus
from seqviz.data.epochs import WeightedCorpus
from seqviz.data.noise import Noise
from seqviz.data.pairs import CorpusError


@dataclass(frozen=True)
class Part:
    """One file of a mix.

    Attributes:
        path: corpus file.
        repeat: passes of an epoch; 0.25 reads a quarter, another one in each epoch.
        longest: source words of the longest pairs that are taken; None for all.
    """

    path: Path
    repeat: float = 1
    longest: int | None = None


def parse(text: str) -> Part:
    """A part written as FILE, FILE:REPEAT or FILE:REPEAT:WORDS.

    Raises:
        CorpusError: a repeat that is not above 0, or a number of words that is not from 1 to 100.
    """
    path, *numbers = text.rsplit(":", 2)
    if len(numbers) == 2 and not _is_number(numbers[0]):  # a colon in the file's name
        path, numbers = f"{path}:{numbers[0]}", numbers[1:]
    if not numbers or not _is_number(numbers[-1]):
        return Part(Path(text))
    repeat, longest = float(numbers[0]), numbers[1] if len(numbers) == 2 else None
    if not 0 < repeat < 1000:
        raise CorpusError(
            f"expected FILE:REPEAT with a repeat above 0, got {text!r}; 0.25 reads a quarter of the file "
            "in each epoch"
        )
    if longest is not None and not (longest.isdigit() and 1 <= int(longest) <= MAX_SOURCE_WORDS):
        raise CorpusError(
            f"expected FILE:REPEAT:WORDS with 1 to {MAX_SOURCE_WORDS} words, got {text!r}"
        )
    return Part(Path(path), repeat, None if longest is None else int(longest))


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def sources(
    parts: Sequence[Part],
    tokenizer: Any,
    cache_folder: str | os.PathLike[str],
    *,
    held_out: frozenset[bytes] = frozenset(),
    noise: Noise | None = None,
    seed: int = 1,
    source_language: str = "en",
) -> list[WeightedCorpus]:
    """Encode the parts of a mix, each pass of an epoch rewritten in its own way.

    Args:
        tokenizer, cache_folder, held_out, source_language: see `seqviz.data.encoded.encode_corpus`.
        noise: how pairs are rewritten; None leaves them as they are.
        seed: of the rewriting.
    """
    made = []
    for index, part in enumerate(parts):
        passes = [
            encode_corpus(
                part.path,
                tokenizer,
                cache_folder,
                held_out=held_out,
                longest=part.longest,
                noise=noise,
                variant=(seed, index, number),
                source_language=source_language,
            )
            for number in range(math.ceil(part.repeat) if noise else 1)
        ]
        made.append(WeightedCorpus(passes[0], part.repeat, tuple(passes[1:])))
    return made
