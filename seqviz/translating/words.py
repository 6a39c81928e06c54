"""Words that an output has to hold, or must not: an output is followed character by character.

A word stands in a text where no letter, digit or accent touches it on either side (in Chinese and Japanese
every character is a word), as it is written or with a capital first letter, whatever pieces spell it. Other
forms of it are other words: *votes* is not *vote*, *l'eau* holds *eau*. A phrase is a word with spaces in it.

Shapes: `V` vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from seqviz.pieces import WORD_START

NEVER = 1_000_000
"""Pieces that are needed where no number of them is enough."""

_UNKNOWN = "\0"
"""Stands for what an unknown piece will be replaced by; no normalised text holds it."""

_EACH_A_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class Vocabulary(NamedTuple):
    """What each piece adds to a text; a space before it where it starts a word.

    `texts` has one entry for each id, (V,). The end token ends the text.
    """

    texts: tuple[str, ...]
    eos_token_id: int

    @classmethod
    def of(cls, tokenizer: Any) -> Vocabulary:
        tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        texts = [
            " " + token.removeprefix(WORD_START) if token.startswith(WORD_START) else token
            for token in tokens
        ]
        texts[tokenizer.unk_token_id] = _UNKNOWN
        texts[tokenizer.eos_token_id] = texts[tokenizer.pad_token_id] = ""
        return cls(tuple(texts), tokenizer.eos_token_id)


class _State(NamedTuple):
    """How far an output has come.

    Attributes:
        done: numbers of the words that it holds.
        met: forms that its end begins with, each with the number of its characters that are there.
        last: what its last character is; a text begins as after a space.
        over: the end token was written.
    """

    done: frozenset[int] = frozenset()
    met: frozenset[tuple[int, int]] = frozenset()
    last: Literal["space", "sign", "letter"] = "space"
    over: bool = False


class Watch:
    """Says of an output which of some words it holds, and of every next piece what it changes.

    A state of an output is a number, that of the empty one `START`. What follows a state is computed when it
    is first asked for.

    Args:
        words: each as the forms of which one is enough, normalised.
        vocabulary: of the outputs.
        unknown_joins: whether a word ends at an unknown piece (False) or goes on (True).
    """

    START = 0

    def __init__(
        self,
        words: Sequence[Iterable[str]],
        vocabulary: Vocabulary,
        *,
        unknown_joins: bool = False,
    ) -> None:
        forms = [
            (form, word)
            for word, those in enumerate(words)
            for form in dict.fromkeys(f for w in those for f in (w, w[:1].upper() + w[1:]))
        ]
        self.forms = [form for form, _ in forms]
        self.word_of = [word for _, word in forms]
        self.vocabulary = vocabulary
        self.num_words = len(words)
        self.unknown_joins = unknown_joins
        # From each place of a form with a space before it to its end, in pieces.
        self.fewest = [_fewest(f" {form}", frozenset(vocabulary.texts)) for form in self.forms]
        self.fresh = [
            min(
                (few[0] for few, of in zip(self.fewest, self.word_of, strict=True) if of == word),
                default=NEVER,
            )
            for word in range(self.num_words)
        ]
        self.states = [_State()]
        self._numbers = {self.states[0]: self.START}
        self._by_character: dict[tuple[int, str], int] = {}
        self._by_piece: dict[int, Tensor] = {}

    def after(self, state: int) -> Tensor:
        """The states that the pieces of the vocabulary lead to, (V,)."""
        if state not in self._by_piece:
            found = [self.read(state, text) for text in self.vocabulary.texts]
            found[self.vocabulary.eos_token_id] = self._ended(state)
            self._by_piece[state] = torch.tensor(found)
        return self._by_piece[state]

    def read(self, state: int, text: str) -> int:
        """The state after a text that is added."""
        for character in text:
            key = (state, character)
            if key not in self._by_character:
                self._by_character[key] = self._number(self._step(self.states[state], character))
            state = self._by_character[key]
        return state

    def holds_one(self, text: str) -> bool:
        """A whole text holds one of the words."""
        return bool(self.states[self._ended(self.read(self.START, text))].done)

    def is_held(self) -> Tensor:
        """For each state known so far: one of the words is in it, bool."""
        return torch.tensor([bool(state.done) for state in self.states])

    def would_be_held(self) -> Tensor:
        """For each state known so far: one of the words is in it if the text ends here, bool."""
        return torch.tensor([bool(state.done or self._closing(state)) for state in self.states])

    def needs(self) -> Tensor:
        """For each state known so far: fewest pieces to an ended text that holds all words.

        Words that overlap are counted as if each stood alone. 0 where it has ended with all of them, `NEVER`
        where it has ended without.
        """
        return torch.tensor([self._need(state) for state in self.states])

    def _number(self, state: _State) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self.states)
            self.states.append(state)
        return self._numbers[state]

    def _ended(self, state: int) -> int:
        now = self.states[state]
        return self._number(now._replace(done=now.done | self._closing(now), over=True))

    def _closing(self, state: _State) -> frozenset[int]:
        """Words of which a form is complete, if nothing that joins it follows."""
        return frozenset(
            self.word_of[form] for form, met in state.met if met == len(self.forms[form])
        )

    def _step(self, state: _State, character: str) -> _State:
        if character == " " and state.last == "space":  # runs of spaces become one
            return state
        joins = self.unknown_joins if character == _UNKNOWN else _joins(character)
        edge = state.last != "letter" or not joins
        done = state.done | self._closing(state) if edge else state.done
        met = {
            (form, place + 1)
            for form, place in state.met
            if self.forms[form][place : place + 1] == character
        }
        if edge:
            met |= {(form, 1) for form, text in enumerate(self.forms) if text[0] == character}
        left = frozenset(each for each in met if self.word_of[each[0]] not in done)
        return _State(done, left, "letter" if joins else "space" if character == " " else "sign")

    def _need(self, state: _State) -> int:
        left = [word for word in range(self.num_words) if word not in state.done]
        if state.over:
            return NEVER if left else 0
        begun = list(state.met)
        begun += [
            (form, 0)
            for form, text in enumerate(self.forms)
            if self.word_of[form] in left and (state.last != "letter" or not _joins(text[0]))
        ]
        spared = [
            self.fresh[self.word_of[form]] - self.fewest[form][place + 1] for form, place in begun
        ]
        return min(NEVER, 1 + sum(self.fresh[word] for word in left) - max(0, *spared, 0))


def _joins(character: str) -> bool:
    """Letters, digits and accents are of one word with their like, but for characters that are words."""
    if _EACH_A_WORD.match(character):
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _fewest(text: str, pieces: frozenset[str]) -> list[int]:
    """From each place of `text` to its end: fewest pieces that spell it, or `NEVER`."""
    longest = max(map(len, pieces), default=0)
    fewest = [NEVER] * len(text) + [0]
    for start in reversed(range(len(text))):
        ends = range(start + 1, min(len(text), start + longest) + 1)
        found = [fewest[end] for end in ends if text[start:end] in pieces]
        fewest[start] = min(NEVER, 1 + min(found, default=NEVER))
    return fewest
