"""Numbers, and addresses of pages and mail, that a translation lost, changed or invented.

A digit that changes is the worst lie a translator tells, so it is said. Formats may differ (1,234.56 is
1 234,56, 6 p.m. is 18 h, 03/04/2025 is the 3rd of April), and so may figures and words (3, trois).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seqviz import digits
from seqviz.digits import Number
from seqviz.translating import number_words

_GROUPS = re.compile(r"(?<![0-9])[0-9]++(?:[ .-][0-9]++)+")
_GROUPED = re.compile(r"[0-9]++(?:[ .-][0-9]++)*")
_LONGEST_SAID = 15
"""Digits of the longest number that may be said with a word for a scale."""
_SCALE_WORD = re.compile(r"thousand|illion|mille|milli|[0-9] ?(?:k|m|bn)\b", re.IGNORECASE)


class Differences(NamedTuple):
    """Numbers as they are written: of the source that the target lacks, and the other way round."""

    missing: tuple[str, ...]
    invented: tuple[str, ...]


_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]*[\w/]|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w+",
    re.IGNORECASE,
)
"""A name before "@" is looked for where it begins alone: a long word is not read again from each letter."""


def _without_addresses(text: str) -> tuple[str, list[str]]:
    """`text` with spaces in the place of addresses, and these."""
    return _ADDRESS.sub(lambda found: " " * len(found[0]), text), _ADDRESS.findall(text)


def differences(
    source: str, target: str, source_language: str = "en", target_language: str = "fr"
) -> Differences:
    """Which numbers in digits one side has and the other has not, neither in digits nor in words.

    Addresses are compared as they stand, but for capitals, and count as numbers.

    Where the number words of a language are not known, a number that only one side has may be a word
    on the other: then there is a difference only where both sides have one.
    """
    source, lost = _without_addresses(source)
    target, new = _without_addresses(target)
    for address in list(lost):
        same = next((other for other in new if other.lower() == address.lower()), None)
        if same is not None:
            lost.remove(address)
            new.remove(same)
    of_numbers = _differences(source, target, source_language, target_language)
    return Differences((*lost, *of_numbers.missing), (*new, *of_numbers.invented))


def _differences(
    source: str, target: str, source_language: str, target_language: str
) -> Differences:
    missing = digits.numbers(source, source_language)
    invented = digits.numbers(target, target_language)
    for one, other in digits.matched(missing, invented):
        if _same_scale(one, source, other, target):
            missing.remove(one)
            invented.remove(other)
    if not missing and not invented:
        return Differences((), ())
    left = _Side(missing, number_words.read(source, source_language))
    right = _Side(invented, number_words.read(target, target_language))
    for one, other in ((left, right), (right, left)):
        for number in list(one.numbers):
            if number in one.numbers and other.holds(number):
                one.numbers.remove(number)
    for one, one_text, other, other_text in (
        (left, source, right, target),
        (right, target, left, source),
    ):
        _take_grouped(one, one_text, other, other_text)
    known = number_words.LANGUAGES.issuperset((source_language, target_language))
    if not known and not (left.numbers and right.numbers):
        return Differences((), ())
    return Differences(
        tuple(source[n.start : n.end] for n in left.numbers),
        tuple(target[n.start : n.end] for n in right.numbers),
    )


def _take_grouped(one: _Side, one_text: str, other: _Side, other_text: str) -> None:
    """Take away long numbers whose groups of digits the two sides set apart otherwise: 06 12 34 56 78."""
    for group in _GROUPS.finditer(one_text):
        digits_only = re.sub("[^0-9]", "", group[0])
        for number in list(other.numbers):
            if len(digits_only) < 7 or number.kind != "number":
                continue
            grouped = _GROUPED.match(other_text, number.start)
            if grouped and re.sub("[^0-9]", "", grouped[0]) == digits_only:
                one.drop(group.start(), group.end())
                other.drop(number.start, grouped.end())


def _same_scale(one: Number, one_text: str, other: Number, other_text: str) -> bool:
    """Not 2.5 million here and 2.5 billion there, nor 15 here and 15 million there.

    One of them may be without where its text names a scale elsewhere: 2 to 3 million.
    """
    if one.kind != "number" or other.kind != "number":
        return True
    scaled = [{v for v in number.values[1:] if ":" not in v} for number in (one, other)]
    if not any(scaled):
        return True
    worth = [found or {number.value} for found, number in zip(scaled, (one, other), strict=True)]
    if all(scaled) or worth[0] & worth[1]:
        return bool(worth[0] & worth[1])
    return _SCALE_WORD.search(other_text if scaled[0] else one_text) is not None


class _Side:
    """What one side has that is not paired yet: numbers in digits, and number words."""

    def __init__(self, numbers: list[Number], words: number_words.Words) -> None:
        self.numbers = numbers
        self.words = list(words.numbers)
        self.months = words.months
        self.before = words.before

    def drop(self, start: int, end: int) -> None:
        """Nothing between these places of the text counts any more."""
        self.numbers[:] = [n for n in self.numbers if n.end <= start or n.start >= end]

    def holds(self, number: Number) -> bool:
        """This side says `number` in another way; what says it is used up."""
        return any(self._take(parts) for parts in _ways(number, self.months, self.before))

    def _take(self, parts: Sequence[str]) -> bool:
        """Each part is a number or word of this side: take them all, or none."""
        numbers, words = list(self.numbers), list(self.words)
        for part in parts:
            # Whole numbers in digits are paired already, but for dates in another order.
            of_digits = (n for n in numbers if n.kind == "date" or len(parts) > 1)
            found = next((n for n in of_digits if part in n.values), None)
            word = next((w for w in words if part in w), None)
            if found is not None:
                numbers.remove(found)
            elif word is not None:
                words.remove(word)
            else:
                return False
        self.numbers[:], self.words[:] = numbers, words
        return True


def _ways(number: Number, months: frozenset[str], before: bool) -> list[tuple[str, ...]]:
    """How else a number may be said, each way as the values of its parts."""
    if number.kind == "date":
        return _ways_of_date(number, months)
    ways: list[tuple[str, ...]] = [(value,) for value in number.values]
    for value in number.values:
        hour, colon, minute = value.partition(":")
        if colon:
            minute = str(int(minute))
            hours = [hour] if int(hour) < 13 else [hour, str(int(hour) - 12)]
            ways += [(h, minute) if minute != "0" else (h,) for h in hours]
            if before and int(minute) >= 30:
                # The clock may go up to 12 or to 24.
                nexts = {str((int(hour) + 1) % top or top) for top in (12, 24)}
                ways += [(after, str(60 - int(minute))) for after in sorted(nexts)]
        whole, point, fraction = value.partition(".")
        if point and fraction in ("5", "25", "75"):
            ways.append((whole, f"0.{fraction}"))
        for scale in (10**3, 10**6, 10**9):  # un million et demi
            if value.isdigit() and len(value) <= _LONGEST_SAID and int(value) % scale == scale // 2:
                ways.append((str(int(value) - scale // 2), "0.5"))
    return ways


def _ways_of_date(number: Number, months: frozenset[str]) -> list[tuple[str, ...]]:
    """A date with its month as a word, or with day and month in the other order."""
    first, second, year = number.value.split("/")
    ways: list[tuple[str, ...]] = [(f"{second}/{first}/{year}",)]
    if len(year) <= 2:
        ways += [(f"{a}/{b}/20{year:0>2}",) for a, b in ((first, second), (second, first))]
    for day, month in ((first, second), (second, first)):
        if month in months:
            ways += [(day, year), (day, f"20{year:0>2}")]
    return ways
