"""What was typed, as what a model reads: normalised, cut into sentences within the caps, and into pieces."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seqviz import given
from seqviz.constants import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.data import tokenizer as tokenizers
from seqviz.pieces import Pieces
from seqviz.text_languages import TextLanguage
from seqviz.translating import capitals, notes
from seqviz.translating.notes import Note

ENGLISH = TextLanguage.of("en")


@dataclass(frozen=True)
class Unit:
    """A sentence within the caps.

    Attributes:
        text: normalised.
        ids: of its pieces, without the end token.
        pieces: an unknown one is its characters in the text.
        notes: what happened when it was cut.
    """

    text: str
    ids: tuple[int, ...]
    pieces: Pieces
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A text and the sentences it is translated as."""

    text: str
    units: tuple[Unit, ...]
    notes: tuple[Note, ...]


def plan(tokenizer: Any, text: str, language: TextLanguage, lowers_capitals: bool = False) -> Plan:
    """Normalise a text, say what is odd about it, and cut it into sentences if it is too long.

    Args:
        language: that the model reads; a text in another one gets a hint.
        lowers_capitals: a text in capitals is read in small letters.
    """
    said: list[Note] = []
    whole = tokenizers.replace_surrogates(text)
    if whole != text:
        text = whole
        said.append(notes.SURROGATE)
    plain = tokenizers.normalize(text)
    if not plain:
        return Plan(text, (), (*said, notes.EMPTY))
    small = capitals.lowered(plain) if lowers_capitals else None
    if small is not None:
        plain = small
        said.append(notes.CAPITALS)
    if not (looks_english(plain) if language.code == "en" else language.may_be(plain)):
        said.append(notes.other_language(language))
    unit = _unit(tokenizer, plain, language)
    if _fits(unit):
        return Plan(text, (unit,), tuple(said))
    units: list[Unit] = []
    for sentence in split_sentences(plain, language):
        unit = _unit(tokenizer, sentence, language)
        units += [unit] if _fits(unit) else _cut(unit, language)
    if len(units) > 1:
        said.append(notes.split(len(units), MAX_SOURCE_WORDS, MAX_SOURCE_PIECES))
    return Plan(text, tuple(units), tuple(said))


def output_limit(source_pieces: int) -> int:
    """Most target tokens, end token included, for a source of so many pieces.

    A short source cannot set off a long ramble; translations into French seldom reach half of it.
    """
    return min(MAX_TARGET_PIECES + 1, 2 * source_pieces + 12)


def texts_of(texts: Any) -> list[str]:
    """A text, or several, as a list.

    Raises:
        TypeError: something else, see `seqviz.given.listed`.
    """
    return [texts] if isinstance(texts, str) else given.listed(texts)


def check_one_part(plan: Plan, when: str = "") -> None:
    """Raise for a text that is translated in parts; `when` says what for it has to be read at once."""
    if len(plan.units) > 1:
        raise ValueError(
            f"expected a text that is read at once{when and ' '}{when}, got one of {len(plan.units)} "
            "parts; give one part, such as translate(text).parts[0].source"
        )


def check_source_tokens(tokens: Sequence[str], units: Sequence[Unit], end: str) -> None:
    """Raise where the tokens of a translation are not those that its source has now."""
    if len(units) != 1 or (*units[0].pieces.tokens, end) != tokens:
        raise ValueError(
            "expected a translation whose source_tokens are those of its source, got "
            f"{len(tokens)} tokens and a text of {sum(len(unit.ids) + 1 for unit in units)}; "
            "use what translate returned, unchanged"
        )


def ids_of_pairs(
    tokenizer: Any, pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[int], list[int]]]:
    """Both sides of pairs of texts as ids, without the end token."""
    if not len(pairs):
        return []  # of which the tokenizer makes an error
    sides = [
        tokenizer(
            [tokenizers.normalize(text) for text in given.listed([pair[side] for pair in pairs])],
            add_special_tokens=False,
            verbose=False,
        ).input_ids
        for side in (0, 1)
    ]
    return list(zip(*sides, strict=True))


def whole_numbers(name: str, values: Iterable[Any]) -> tuple[int, ...]:
    """Numbers of any whole type as Python's own.

    Raises:
        TypeError: others; the message calls them `name`.
    """
    try:
        return tuple(map(operator.index, values))
    except TypeError as error:
        raise TypeError(f"expected {name} as whole numbers: {error}") from None


def check_prefix(tokenizer: Any, prefix: tuple[int, ...], limit: int, ration: int) -> None:
    """An output can begin with these ids.

    Args:
        limit: most tokens of the output.
        ration: most unknown pieces in it.
    Raises:
        ValueError: it cannot; the message says which id is wrong, and where.
    """
    size, end = len(tokenizer), tokenizer.eos_token_id
    unk = tokenizer.unk_token_id
    forbidden = {tokenizer.pad_token_id: tokenizer.pad_token}
    if prefix.count(unk) > ration:
        forbidden[unk] = tokenizer.unk_token
    for place, id_ in enumerate(prefix):
        if not 0 <= id_ < size:
            raise ValueError(
                f"expected prefix_ids from 0 to {size - 1}, got {id_} at place {place}; take them "
                "from target_ids or candidates"
            )
        if id_ in forbidden:
            raise ValueError(
                f"expected prefix_ids that the models write, got {id_} ({forbidden[id_]}) at place "
                f"{place}; leave it out"
            )
        if id_ == end and place < len(prefix) - 1:
            raise ValueError(
                f"expected the end token {end} only as the last of prefix_ids, got it at place "
                f"{place} of {len(prefix)}; cut what comes after it"
            )
    if len(prefix) > limit:
        raise ValueError(
            f"expected at most {limit} prefix_ids for this source, the limit of its output, got "
            f"{len(prefix)}; give fewer"
        )


# ---------------------------------------------------------------------------------------------
# Cutting


_STOPS, _STOPS_ALONE = ".!?؟۔։।॥።፧", "。！？｡။།។៕"
"""Full stops of the world: those that need a space after them, those that need none."""
_SENTENCE_END = re.compile(
    rf"""(?<=[{_STOPS}])["')\]]* (?=["'(\[]*(\S))|[{_STOPS_ALONE}]++["'”’」』）)]*+ ?(?=.)"""
)
"""Group 1 is the first character after a stop that needs a space."""
_GREEK_END = re.compile(r"""(?<=[.!?;])["')\]]* (?=["'(\[]*(\S))""")
"""A Greek question ends with a semicolon."""


_ABBREVIATION = re.compile(
    r"""(?:^|[\s("'[])(?:[Mm]r|[Mm]rs|[Mm]s|Messrs|[Dd]r|[Pp]rof|St|Rev|Gen|Col|Capt|Lt|Sgt|Hon|e\.g|i\.e|cf|vs"""
    r"""|(?:[A-Z]\.)*[A-HJ-Z])\.["')\]]*$"""
)
"""A full stop that seldom ends a sentence: after a title, an initial or a short form."""

_NUMBERED = re.compile(r"(?:^|\W)(?:No|Nos|Art|Fig|Vol|pp?)\.$", re.IGNORECASE)
_BEFORE_SMALL = re.compile(r"(?:^|\W)(?:\w|etc|approx|ca|al|incl|ed|eds|dept|est|max|min)\.$")
"""Ends no sentence where the next word begins in lower case."""
_ORDINAL = re.compile(r"(?:^|[^\w,.])[0-9]{1,2}\.$")
"""A day or a number in a row, in languages that write so: "am 3. Oktober". A year ends a sentence."""
_LETTER = re.compile(r"[^\W_]")
_LONGEST_ABBREVIATION = 40


def split_sentences(text: str, language: TextLanguage = ENGLISH) -> list[str]:
    """Cut normalised text after ``. ! ?`` and their like, and after ``。！？`` also without a space.

    There is no cut before a word in lower case, but where the sentence itself has begun with one: then its
    writer uses no capitals. Joined again, the sentences are the text but for spaces.
    """
    sentences, start = [], 0
    for match in (_GREEK_END if language.code == "el" else _SENTENCE_END).finditer(text):
        end, after = match.end(), match[1]
        if after is not None:
            first = _LETTER.search(text, start, end)
            # What decides stands right before the stop: a long text is not read again and again.
            shown = text[max(start, end - _LONGEST_ABBREVIATION) : end].rstrip()
            if not _ends(shown, after, small=first is not None and first[0].islower()):
                continue
            if language.has_ordinal_point and _ORDINAL.search(shown):
                continue
        sentences.append(text[start:end].strip())
        start = end
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends(before: str, after: str, small: bool) -> bool:
    """A stop ends a sentence: what stands before it, the next character, and the sentence begins small."""
    if _ABBREVIATION.search(before) or (after.isdigit() and _NUMBERED.search(before)):
        return False
    return not after.islower() or (small and not _BEFORE_SMALL.search(before))


def _unit(tokenizer: Any, text: str, language: TextLanguage) -> Unit:
    cut = tokenizers.segment(tokenizer, text, language)
    return Unit(text, cut.ids, cut.pieces)


def _fits(unit: Unit) -> bool:
    return len(unit.pieces.words) <= MAX_SOURCE_WORDS and len(unit.ids) <= MAX_SOURCE_PIECES


def _cut(unit: Unit, language: TextLanguage) -> list[Unit]:
    """Cut an over-long sentence between words; a single word over the cap loses its tail."""
    found: list[Unit] = []
    start = 0
    total, word_of = len(unit.ids), unit.pieces.word_of_piece
    while start < total:
        first_word = word_of[start]
        end = start
        while (
            end < total
            and end - start < MAX_SOURCE_PIECES
            and word_of[end] - first_word < MAX_SOURCE_WORDS
        ):
            end += 1
        said: tuple[Note, ...] = ()
        resume = end
        if end < total and word_of[end] == word_of[end - 1]:
            if word_of[end] > first_word:  # back to the beginning of the cut word
                while word_of[end - 1] == word_of[resume]:
                    end -= 1
                resume = end
            else:
                while resume < total and word_of[resume] == first_word:
                    resume += 1
                said = (notes.truncated(resume - start, end - start),)
        words = unit.pieces.words[first_word : word_of[end - 1] + 1]
        numbers = tuple(word - first_word for word in word_of[start:end])
        pieces = Pieces(unit.pieces.tokens[start:end], words, numbers)
        text = " ".join(words if language.is_spaced else Pieces.of(pieces.tokens).words)
        found.append(Unit(text, unit.ids[start:end], pieces, said))
        start = resume
    return found


# ---------------------------------------------------------------------------------------------
# Is it English?


_ENGLISH = frozenset(
    "the a an of to in is it you i that he she was for on are with as they be at this have from or had by "
    "but not what all were we when your can said there do will my me our has would who how if about his her "
    "him its their them more no so up out where why please did does been am us".split()
)
_OTHERS = frozenset(
    "le la les un une des du de et est je tu il elle nous vous que qui ne pas dans pour sur avec au aux ce "
    "der die das und ist nicht ein eine ich sie wir zu den mit auf el los las una y es no que en por con "
    "para il gli di che non sono per".split()
)


def looks_english(text: str) -> bool:
    """A guess, made to be wrong seldom about English: used for a hint, never to refuse.

    False where most letters are not Latin, or where function words of other languages clearly outweigh
    English ones.
    """
    letters = [c for c in text if c.isalpha()]
    if letters and sum(c < "\u0250" for c in letters) < 0.6 * len(letters):
        return False
    words = [re.sub(r"\W", "", w) for w in text.lower().split()]
    english = sum(w in _ENGLISH for w in words)
    others = sum(w in _OTHERS and w not in _ENGLISH for w in words)
    return not (others >= 2 and others > 2 * english)
