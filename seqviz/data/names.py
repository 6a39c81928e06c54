"""Other persons' names in both sides of an English–French pair.

A name is what follows a title (Mr, Mrs, Ms, Miss, Dr; M., Mme, Mlle, Dr, Monsieur, …) or begins with
a given name of the list, and stands on both sides in the same spelling. A word that the corpus also
writes with a small letter, a place, an institution or a language is none. Where in doubt, the pair
stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Literal

Gender = Literal["women", "men"]

_WORD = r"(?:(?:O'|D'|d')?[A-ZÀ-ÖØ-ÞŁŠŽŚŻČĆĐŐŰİŞĞ][a-zß-öø-ÿĀ-ž]+(?:[A-Z][a-z]+)?(?:-[A-ZÀ-Þ]?[a-zß-öø-ÿĀ-ž]+)*)"
_PARTICLE = r"(?:(?:van|von|der|den|de|del|della|da|di|dos|du|la|le|ten|ter|zu|bin|al|el|Van|Von|De|Del|Della|Da|Di|Dos|Du|La|Le|El|Ben|Mac) )"
_NAME = rf"{_PARTICLE}{{0,2}}{_WORD}(?![\w’])"
_NAMES = re.compile(rf"{_NAME}(?: {_NAME})*")
_SINGLE = re.compile(rf"(?<![\w'’-])({_WORD})(?![\w-])")
_TITLED = {
    "en": re.compile(rf"(?<![\w-])(Mr|Mrs|Ms|Miss|Dr)\.? ({_NAME}(?: {_NAME})*)"),
    "fr": re.compile(
        r"(?<![\w-])(M\.|MM\.|Mr|Mme|Mmes|Mlle|Mlles|Dr|Docteur|docteur|[Mm]onsieur|[Mm]adame"
        rf"|[Mm]ademoiselle)\.? ({_NAME}(?: {_NAME})*)"
    ),
}
_GENDER: dict[str, Gender] = {
    **dict.fromkeys(("Mr", "M.", "MM.", "Monsieur", "monsieur"), "men"),
    **dict.fromkeys(("Mrs", "Ms", "Miss", "Mme", "Mmes", "Mlle", "Mlles"), "women"),
    **dict.fromkeys(("Madame", "madame", "Mademoiselle", "mademoiselle"), "women"),
}
_TITLE_BEFORE = re.compile(
    r"(?<!\w)(?:Mr|Mrs|Ms|Miss|Dr|M|MM|Mme|Mmes|Mlle|Docteur|[Mm]onsieur|[Mm]adame|Sir|Lord)\.? $"
)
_PLACE_BEFORE = frozenset(
    "St St. Saint Sainte San Santa Sankt Sant Sao Mount Mt Mt. Lake Port Fort Cape King Queen Pope Prince Princess "
    "Emperor Virgin Mother Father Brother Sister Saints Roi Reine Pape Lac Mont Cap Camp Hurricane Cyclone Storm".split()
)
"""A given name behind one of these is a place, a saint, a ruler, somebody of a church or a storm."""
_THING_AFTER = re.compile(
    r"^(?:'s)? (?:Street|Road|Avenue|Square|Place|Island|Islands|University|Airport|Hotel|Park|Award|Prize|Programme|Program|"
    r"Foundation|Institute|Centre|Center|Agreement|Treaty|Act|Fund|Plan|Project|Report|Commission|Initiative|Day|Church|"
    r"Cathedral|Bridge|Tower|Hospital|School|College|Convention|Library|Museum|River|Bay|Bank|Company|Group|II|III|IV|VI|XVI|XXIII|I)\b"
)
_FRENCH_ELIDED = re.compile(
    r"(?<!\w)(?:[dlmnstcj]|qu|jusqu|lorsqu|puisqu|quoiqu|presqu)'$", re.IGNORECASE
)
_FRENCH_WHOLE = re.compile(
    r"(?<!\w)(?:de|que|le|ne|se|je|me|te|la|jusque|lorsque|puisque|quoique) $", re.IGNORECASE
)
_ENGLISH_AN, _ENGLISH_A = (
    re.compile(r"(?<!\w)an $", re.IGNORECASE),
    re.compile(r"(?<!\w)a $", re.IGNORECASE),
)
_TRIES = 40


class NameListError(ValueError):
    """A list of names cannot be used; the message says what was expected, what came, what to do."""


@dataclass(frozen=True)
class NameList:
    """What persons may be called.

    Attributes:
        women, men: given names.
        family: family names.
        never: words that are no name of a person: places, institutions, languages, days.
    """

    women: tuple[str, ...]
    men: tuple[str, ...]
    family: tuple[str, ...]
    never: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("women", "men", "family"):
            if not getattr(self, name):
                raise NameListError(f"expected at least one name in {name!r}, got none; add some")

    @classmethod
    def shipped(cls) -> NameList:
        """The hand-made list of this project."""
        return cls.read(Path(__file__).with_name("names.json"))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> NameList:
        """A list from a JSON file with the attributes as keys, each a list of words.

        Raises:
            NameListError: no such file, no such JSON, an empty list.
        """
        try:
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NameListError(
                f"{path}: expected a JSON file of names, it cannot be read ({error}); restore it"
            ) from None
        expected = [field.name for field in fields(cls)]
        if not isinstance(stored, dict) or sorted(stored) != sorted(expected):
            got = ", ".join(stored) if isinstance(stored, dict) else type(stored).__name__
            raise NameListError(
                f"{path}: expected the keys {', '.join(expected)}, got {got}; restore it"
            )
        for key, words in stored.items():
            if not isinstance(words, list) or not all(
                isinstance(w, str) and w.strip() for w in words
            ):
                raise NameListError(f"{path}: expected a list of words in {key!r}; restore it")
        try:
            given = (tuple(stored["women"]), tuple(stored["men"]))
            return cls(*given, tuple(stored["family"]), frozenset(stored["never"]))
        except NameListError as error:
            raise NameListError(f"{path}: {error}") from None

    @cached_property
    def gender(self) -> dict[str, Gender]:
        """Whose name a given name is; names of both are left out."""
        women, men = set(self.women), set(self.men)
        return {**dict.fromkeys(women - men, "women"), **dict.fromkeys(men - women, "men")}  # type: ignore[dict-item]


@dataclass(frozen=True)
class _Person:
    """A name that stands on both sides: ``given family``, or one of them with the other empty."""

    given: str
    family: str
    gender: Gender | None

    @property
    def full(self) -> str:
        return f"{self.given} {self.family}".strip()


def swapped(
    source: str,
    target: str,
    random: Random,
    names: NameList,
    seen_lower: frozenset[str],
    *,
    unknown: str | None = None,
) -> tuple[str, str]:
    """The pair with other names for the persons whom both sides name; the pair itself if none is.

    Args:
        source, target: an English sentence and its French translation.
        seen_lower: words of the corpus seen with a small letter.
        unknown: put in place of the first swapped name.
    """
    new: dict[str, str] = {}
    for person in _persons(source, target, names, seen_lower):
        if person.full in new or person.family in new:
            continue
        if unknown:
            words = [word for word in (person.full, person.family, person.given) if word]
            new.update(dict.fromkeys(words, unknown))
            unknown = None
            continue
        new.update(_other_name(person, source, target, names, set(new.values()), random))
    if not new:
        return source, target
    old = re.compile("|".join(_bounded(name) for name in sorted(new, key=len, reverse=True)))
    return tuple(old.sub(lambda m: new[m[0]], text) for text in (source, target))  # type: ignore[return-value]


def _persons(
    source: str, target: str, names: NameList, seen_lower: frozenset[str]
) -> Iterator[_Person]:
    """Persons with a title first, then those with a given name of the list."""
    titled: set[str] = set()
    for text, other, language in ((source, target, "en"), (target, source, "fr")):
        for match in _TITLED[language].finditer(text):
            words = _name_words(match[2], names, seen_lower)
            found = _on_both_sides(words, other)
            if found and not _ends_in_apostrophe(found, source):
                given, family = (
                    (found[0], " ".join(found[1:])) if len(found) > 1 else ("", found[0])
                )
                gender = _GENDER.get(match[1]) or names.gender.get(given)
                titled.update(part for word in found for part in word.split())
                yield _Person(given, family, gender)
    for match in _SINGLE.finditer(source):
        given = match[1]
        gender = names.gender.get(given) or names.gender.get(given.partition("-")[0])
        if (
            not gender
            or given.count("-") > 1
            or given in titled
            or not _may_be_name(given, names, seen_lower)
        ):
            continue
        before, after = source[: match.start()], source[match.end() :]
        if _TITLE_BEFORE.search(before) or _belongs_to_more(before, after, names, seen_lower):
            continue
        rest = _NAMES.match(after[1:]) if after.startswith(" ") else None
        words = [given, *(_name_words(rest[0], names, seen_lower) if rest else [])]
        if rest and len(words) == 1 and _bounded_count(f"{given} {rest[0].split()[0]}", target):
            continue  # both sides name something longer
        found = next(
            (
                run
                for n in range(len(words), 0, -1)
                if _bounded_count(" ".join(run := words[:n]), target)
            ),
            None,
        )
        if (
            found
            and _bounded_count(given, source) == _bounded_count(given, target)
            and not _goes_on(found, target)
            and not _THING_AFTER.search(source.partition(" ".join(found))[2])
            and not _ends_in_apostrophe(found, source)
        ):
            yield _Person(given, " ".join(found[1:]), gender)


def _name_words(text: str, names: NameList, seen_lower: frozenset[str]) -> list[str]:
    """The words at the beginning of `text` that may be names, particles with the word they belong to."""
    words = []
    for match in re.finditer(_NAME, text):
        word = match[0]
        if not _may_be_name(word.split()[-1], names, seen_lower):
            break
        words.append(word)
    return words


def _may_be_name(word: str, names: NameList, seen_lower: frozenset[str]) -> bool:
    parts = [part for part in re.split("[-']", word) if part]
    return not any(
        part in names.never or part.lower() in seen_lower
        for part in [word, *(part for part in parts if len(part) > 1)]
    )


def _on_both_sides(words: Sequence[str], other: str) -> Sequence[str]:
    """The longest run of `words` that the other side holds too, with the first or the last word."""
    runs = [words[:n] for n in range(len(words), 0, -1)] + [words[n:] for n in range(1, len(words))]
    return next((run for run in runs if _bounded_count(" ".join(run), other)), ())


def _belongs_to_more(before: str, after: str, names: NameList, seen_lower: frozenset[str]) -> bool:
    """Whether a given name is part of a place, an institution or a longer name."""
    if _THING_AFTER.search(after) or re.match(r" [A-Z]\. [A-Z]", after):
        return True
    word = re.search(r"([^\s'’]+) $", before)
    if not word:
        return False
    if word[1] in _PLACE_BEFORE or word[1] in names.gender or re.fullmatch(r"[A-Z]\.", word[1]):
        return True
    if re.fullmatch(_PARTICLE, word[0]) and word[1].istitle():
        return True
    return bool(re.fullmatch(_WORD, word[1])) and word[1].lower() not in seen_lower


def _goes_on(found: Sequence[str], target: str) -> bool:
    """Whether the other side's name is longer: Politkovskaya, but Politkovskaïa."""
    return bool(re.search(rf"{_bounded(' '.join(found))} (?:[ae]l-)?{_NAME}", target))


def _ends_in_apostrophe(found: Sequence[str], source: str) -> bool:
    """Evans' report, Mr Figel': another name would be written without the mark."""
    return bool(re.search(rf"{_bounded(found[-1])}'(?!\w)", source))


def _bounded(name: str) -> str:
    return rf"(?<![\w-]){re.escape(name)}(?![\w-])"


def _bounded_count(name: str, text: str) -> int:
    return len(re.findall(_bounded(name), text)) if name in text else 0


def _other_name(
    person: _Person, source: str, target: str, names: NameList, taken: set[str], random: Random
) -> dict[str, str]:
    """What each way to write the person's name becomes; empty where no name fits."""

    def draw(old: str, candidates: Sequence[str]) -> str | None:
        needed = _sounds_needed(old, source, target)
        for _ in range(_TRIES):
            name = random.choice(candidates)
            if needed <= {_sound(name)} and not any(
                name in text for text in (source, target, *taken)
            ):
                return name
        return None

    family = draw(person.family, names.family) if person.family else None
    if not person.given:
        return {person.family: family} if family else {}
    if person.gender is None:
        return {person.full: family, person.family: family} if family else {}
    given = draw(person.given, getattr(names, person.gender))
    if given is None or (person.family and family is None):
        return {}
    if person.family and family:
        new = {person.full: f"{given} {family}", person.family: family}
        return {**new, person.given: given} if person.given in names.gender else new
    drawn = random.random()  # at times a whole name, either part first
    if drawn < 0.8 or not (more := draw("", names.family)):
        return {person.given: given}
    if drawn < 0.95 or _sounds_needed(person.given, source, target):
        return {person.given: f"{given} {more}"}
    return {person.given: f"{more} {given}"}


def _sound(name: str) -> str:
    """Whether articles and de are cut short before a name: vowel, consonant, or unclear (h, y)."""
    first = unicodedata.normalize("NFD", name[0])[0].lower()
    return "vowel" if first in "aeiouœ" else "unclear" if first in "hy" else "consonant"


def _sounds_needed(old: str, source: str, target: str) -> set[str]:
    """What sound the words before a name ask for, on both sides."""
    needed = set()
    for text, vowel, consonant in (
        (source, _ENGLISH_AN, _ENGLISH_A),
        (target, _FRENCH_ELIDED, _FRENCH_WHOLE),
    ):
        for match in re.finditer(_bounded(old), text) if old else ():
            before = text[max(0, match.start() - 12) : match.start()]
            needed |= {"vowel"} if vowel.search(before) else set()
            needed |= {"consonant"} if consonant.search(before) else set()
    return needed
