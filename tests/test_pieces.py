"""Tokens and the words they belong to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqviz.pieces import WORD_START, Pieces

KNOWN = Pieces(("▁the", "▁Eur", "ope", "</s>", "▁the"), ("the", "Europe", "the"), (0, 1, 1, -1, 2))
PIECE = st.text(st.sampled_from(["a", "b", WORD_START]), min_size=1, max_size=3)
SIDE = st.lists(PIECE, max_size=8).map(Pieces.of)


@pytest.mark.parametrize(
    ("words", "numbers", "message"),
    [
        (("a",), (0,), "expected a word number for each of 2 tokens, got 1"),
        (("a",), (0, 1), "expected a text for every word, up to number 1, got 1 texts"),
    ],
)
def test_sizes_that_do_not_fit(
    words: tuple[str, ...], numbers: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Pieces(("▁a", "▁b"), words, numbers)


def test_merged_by_hand() -> None:
    assert KNOWN.groups == [[0], [1, 2], [3], [4]]
    assert KNOWN.in_words == [0, 1, 2, 4]
    merged = KNOWN.merged()
    assert merged.tokens == ("the", "Europe", "</s>", "the")
    assert merged.word_of_piece == (0, 1, -1, 2)
    assert merged.merged() == merged
    assert merged.take(merged.in_words) == Pieces.of_words(("the", "Europe", "the"))


def test_special_tokens_stay_apart() -> None:
    pieces = Pieces((), ("a",), ()).with_end("<x>").with_end("<y>")
    assert pieces.groups == [[0], [1]]
    assert pieces.merged().tokens == ("<x>", "<y>")


def test_what_the_decoder_reads() -> None:
    read = KNOWN.take((0, 1, 2, 4)).with_end("</s>").moved_right("<start>")
    assert read.tokens == ("<start>", "▁the", "▁Eur", "ope", "▁the")
    assert read.word_of_piece == (-1, 0, 1, 1, 2)
    assert read.words == KNOWN.words


@given(st.lists(SIDE, max_size=4))
def test_joined_texts_keep_their_words(parts: list[Pieces]) -> None:
    whole = Pieces.joined(part.with_end("</s>") for part in parts)
    assert len(whole) == sum(len(part) + 1 for part in parts)
    assert whole.words == tuple(word for part in parts for word in part.words)
    said = iter(zip(whole.tokens, whole.word_of_piece, strict=True))
    for part in parts:
        for token, number in zip(part.tokens, part.word_of_piece, strict=True):
            there = next(said)
            assert there[0] == token and whole.words[there[1]] == part.words[number]
        assert next(said) == ("</s>", -1)


@given(SIDE)
def test_merging_leaves_one_token_a_word(side: Pieces) -> None:
    merged = side.with_end("</s>").merged()
    assert merged.tokens == (*side.words, "</s>")
    assert merged.word_of_piece == (*range(len(side.words)), -1)


def test_a_word_of_many_pieces_is_joined_once() -> None:
    """Not character by character: that would copy the word again for each of its pieces."""
    added: list[int] = []

    class Counting(str):
        def __add__(self, other: str) -> str:
            added.append(len(self) + len(other))
            return str.__add__(self, other)

        def __radd__(self, other: str) -> str:
            added.append(len(self) + len(other))
            return other + str(self)

        def removeprefix(self, prefix: str, /) -> Counting:
            return Counting(str.removeprefix(self, prefix))

    for size in (1_000, 2_000):
        pieces = Pieces.of([Counting(WORD_START + "a"), *[Counting("bc")] * size])
        assert pieces.words == ("a" + "bc" * size,) and len(pieces) == size + 1
    assert sum(added) == 0
