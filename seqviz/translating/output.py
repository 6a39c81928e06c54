"""What a model wrote, as text: ids → pieces → words, and what is odd about it.

Shapes: `L` layers, `H` heads, `T` target length, `S` source length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqviz.pieces import Pieces
from seqviz.text_languages import LanguagePair
from seqviz.translating import notes, numbers, unknown
from seqviz.translating.notes import Note


def read(
    tokenizer: Any,
    source_ids: Sequence[int],
    source: Pieces,
    target_ids: Sequence[int],
    cross_attention: np.ndarray | None,
) -> tuple[Pieces, tuple[str, ...]]:
    """The pieces of an output, unknown ones as the characters that they stand for.

    Args:
        source_ids, target_ids: without the end token.
        source: pieces of `source_ids`.
        cross_attention: (L, H, T, S); without it unknown pieces are taken in their order.
    Returns:
        the pieces, and the unknown characters of the source that the output lacks.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(target_ids))
    unk = tokenizer.unk_token_id
    found = unknown.places(source_ids, target_ids, unk, cross_attention)
    for step, place in found.items():
        tokens[step] = source.tokens[place]
    written = set(found.values())
    missing = dict.fromkeys(
        character
        for place, id_ in enumerate(source_ids)
        if id_ == unk and place not in written
        for character in source.tokens[place]
    )
    return Pieces.of(tokens), tuple(missing)


def oddities(
    source: str,
    text: str,
    words: Sequence[str],
    languages: LanguagePair,
    stopped_after: int | None,
) -> tuple[Note, ...]:
    """Notes on an output: it has no end, repeats itself, or its numbers are not those of the source.

    Args:
        text, words: of the output.
        languages: of source and output.
        stopped_after: pieces of an output that ran into the limit; None for one that came to an end.
    """
    said: list[Note] = []
    if stopped_after is not None:
        said.append(notes.limit(stopped_after))
    repeated = repeated_spans(words)
    if repeated:
        between, (start, end) = languages.target.between_words, repeated[0]
        said.append(notes.repetition(between.join(words[start:end][:8])))
    differ = numbers.differences(source, text, *languages.codes)
    if any(differ):
        said.append(notes.numbers(*differ))
    return tuple(said)


_REPEATED_LETTERS = re.compile(r"([^\W\d_])\1{3,}|([^\W\d_]{2,10}?)\2{2,}")


def repeated_spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where a text repeats itself, as word ranges [start, end).

    Counted are a sequence of 1 to 8 words said three times or more in a row (two words or more: also
    twice, if it has four words), any sequence of four words that occurs three times, and a word in which
    letters repeat: one four times in a row, two or more three times.
    """
    plain = [re.sub(r"\W", "", word.lower()) or word for word in words]
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(plain):
        found = None
        for size in range(1, 9):
            block = plain[start : start + size]
            end = start + size
            while plain[end : end + size] == block and len(block) == size:
                end += size
            times = (end - start) // size
            if times >= 3 or (times == 2 and size >= 4):
                found = end
                break
        if found is None and _REPEATED_LETTERS.search(plain[start]):
            found = start + 1
        if found:
            spans.append((start, found))
            start = found
        else:
            start += 1
    if not spans:
        fours = [tuple(plain[i : i + 4]) for i in range(len(plain) - 3)]
        often = {four for four, count in Counter(fours).items() if count >= 3}
        spans = [(i, i + 4) for i, four in enumerate(fours) if four in often]
    return spans


def french_for_display(text: str) -> str:
    """French typography for reading: a no-break space before ``? ! ; : %``. Never for scores."""
    return re.sub(r"(?<=[^\s?!;:%])([?!;%]+|:(?=\s|$))", "\u202f\\1", text)
