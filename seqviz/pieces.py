"""The tokens of one text and the words they belong to: one value for texts, maps and saliency.

Positions are integers and tokens are labels: a token that occurs twice keeps both of its places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

WORD_START = "\u2581"
"""SentencePiece's mark for a space before a piece."""

SPECIAL = -1
"""Word number of a token that lies in no word, such as the end token."""


class OfTwoTexts:
    """What has rows and columns for the tokens of a target and a source."""

    source_pieces: Pieces
    target_pieces: Pieces

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """Labels of the columns."""
        return self.source_pieces.tokens

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """Labels of the rows."""
        return self.target_pieces.tokens


@dataclass(frozen=True)
class Pieces:
    """Tokens, words, and which token lies in which word.

    Attributes:
        tokens: pieces with their `WORD_START`, and special tokens; or whole words, after `merged`.
        words: texts of the words.
        word_of_piece: number of the word each token lies in; `SPECIAL` for special tokens.
    """

    tokens: tuple[str, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)
    word_of_piece: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if len(self.word_of_piece) != len(self.tokens):
            raise ValueError(
                f"expected a word number for each of {len(self.tokens)} tokens, got "
                f"{len(self.word_of_piece)}"
            )
        if max(self.word_of_piece, default=SPECIAL) >= len(self.words):
            raise ValueError(
                f"expected a text for every word, up to number {max(self.word_of_piece)}, "
                f"got {len(self.words)} texts"
            )

    @classmethod
    def of(cls, tokens: Sequence[str]) -> Pieces:
        """Group pieces into words, also those of a model's output, which need not be well-formed.

        A piece with `WORD_START` starts a word, and so does the first piece. A lone `WORD_START` lies in
        the word that it begins; at the end, where it begins none, in the last word. Joined by spaces, the
        words are the text of the pieces without doubled spaces.
        """
        words: list[list[str]] = []  # a word may have a million pieces: they are joined once
        numbers: list[int] = []
        starts = True
        for token in tokens:
            text = token.removeprefix(WORD_START)
            starts = starts or text != token
            if starts and text:
                words.append([])
                starts = False
            # While no text has come since the last start, the piece waits for the word after it.
            numbers.append(len(words) if starts else len(words) - 1)
            if text:
                words[-1].append(text)
        if tokens and not words:
            words.append([])
        texts = tuple("".join(word) for word in words)
        return cls(tuple(tokens), texts, tuple(min(n, len(words) - 1) for n in numbers))

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Pieces:
        """Every word is one token."""
        return cls(tuple(words), tuple(words), tuple(range(len(words))))

    @classmethod
    def joined(cls, parts: Iterable[Pieces]) -> Pieces:
        """The tokens and words of several texts, one after the other."""
        tokens: list[str] = []
        words: list[str] = []
        numbers: list[int] = []
        for part in parts:
            numbers += [n if n == SPECIAL else n + len(words) for n in part.word_of_piece]
            tokens += part.tokens
            words += part.words
        return cls(tuple(tokens), tuple(words), tuple(numbers))

    def split(self, words_of: Callable[[str], Iterable[str]]) -> Pieces:
        """With words cut further: after each token at whose end `words_of` ends a word, too.

        For languages without spaces between words. A token that holds several words stays one.
        """
        words: list[str] = []
        numbers: list[int] = []
        for group in self.groups:
            number = self.word_of_piece[group[0]]
            if number == SPECIAL:
                numbers.append(SPECIAL)
                continue
            text = self.words[number]
            ends = set(accumulate(len(word) for word in words_of(text)))
            start = at = 0
            for place in group:
                at += len(self.tokens[place].removeprefix(WORD_START))
                if start and start == len(text):  # a mark alone after the last word
                    numbers.append(len(words) - 1)
                    continue
                numbers.append(len(words))
                if at > start and (at in ends or at == len(text)):
                    words.append(text[start:at])
                    start = at
            if not text:
                words.append(text)
        return Pieces(self.tokens, tuple(words), tuple(numbers))

    def __len__(self) -> int:
        return len(self.tokens)

    def with_end(self, token: str) -> Pieces:
        """With a special token after them."""
        return Pieces((*self.tokens, token), self.words, (*self.word_of_piece, SPECIAL))

    def moved_right(self, start: str) -> Pieces:
        """A special token, then all tokens but the last: what a decoder reads to write these tokens."""
        return Pieces((start, *self.tokens[:-1]), self.words, (SPECIAL, *self.word_of_piece[:-1]))

    def take(self, places: Sequence[int]) -> Pieces:
        """The tokens at these places, with all words."""
        return Pieces(
            tuple(self.tokens[i] for i in places),
            self.words,
            tuple(self.word_of_piece[i] for i in places),
        )

    @property
    def in_words(self) -> list[int]:
        """Places of the tokens that are not special."""
        return [i for i, word in enumerate(self.word_of_piece) if word != SPECIAL]

    @property
    def groups(self) -> list[list[int]]:
        """Places of the tokens of every word in order; each special token is a group of its own."""
        groups: list[list[int]] = []
        before = SPECIAL
        for place, word in enumerate(self.word_of_piece):
            if word != SPECIAL and word == before:
                groups[-1].append(place)
            else:
                groups.append([place])
            before = word
        return groups

    def merged(self) -> Pieces:
        """One token for each of `groups`: whole words, and special tokens as they are."""
        first = self.take([group[0] for group in self.groups])
        return Pieces(
            tuple(
                token if word == SPECIAL else self.words[word]
                for token, word in zip(first.tokens, first.word_of_piece, strict=True)
            ),
            self.words,
            first.word_of_piece,
        )
