"""Numbers written in digits, read after each language's format: English 1,234.56 is French 1 234,56.

`numbers` finds them with their places, `values` says what they are worth, `matched` pairs those of a
source with those of its translation. Numbers written as words are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["number", "ordinal", "decade", "date", "time", "code"]

_DECIMAL_COMMA = frozenset(
    "bg ca cs da de el es fi fr hr hu it nb nl no pl pt ro ru sk sv tr uk".split()
)
"""Languages that write 3,5 and group thousands by spaces or points. All others: 3.5 and 1,234."""

_ORDINAL = {
    "en": "(?:st|nd|rd|th)",
    "fr": "(?:ers?|ères?|res?|es?|èmes?|ièmes?|nde?s?|è)",
}
_SCALE = {
    "en": {"thousand": 3, "million": 6, "billion": 9, "bn": 9, "trillion": 12},
    "fr": {
        "mille": 3,
        "million": 6,
        "millions": 6,
        "milliard": 9,
        "milliards": 9,
        "billion": 12,
        "billions": 12,
    },
}
_HOUR, _MINUTE = "(?:[01]?[0-9]|2[0-4])", "[0-5][0-9]"
_TIME = {
    "en": (
        rf"(?P<hour>{_HOUR}):(?P<minute>{_MINUTE})(?![0-9])(?: ?(?P<half>[ap])\.?m\b)?"
        rf"|(?P<hour_2>{_HOUR})\.(?P<minute_2>{_MINUTE}) ?(?P<half_2>[ap])\.?m\b"
        rf"|(?P<hour_3>{_HOUR}) ?(?:(?P<half_3>[ap])\.?m\b|o'clock)"
    ),
    "fr": (
        rf"(?P<hour>{_HOUR})(?::| ?[hH] ?| heures? )(?P<minute>{_MINUTE})(?![0-9,.]*[0-9])"
        rf"|(?P<hour_2>{_HOUR}) ?(?:[hH]|heures?)\b"
    ),
}
_ROMAN_ORDINAL = (  # each with its own marks: "Inde" and "Vers" are none
    r"I(?=(?:ers?|ères?|res?)(?!\w))|II(?=nde?s?(?!\w))|[IVX]+(?=(?:es?|èmes?|ièmes?|è)(?!\w))"
)
_ROMAN = {"I": 1, "V": 5, "X": 10}


@dataclass(frozen=True)
class Number:
    """One number of a text.

    Attributes:
        start, end: ``text[start:end]`` goes from its first digit to its last one (of a date or time: of
            all its parts), without sign, unit or the letters of an ordinal.
        kind: "ordinal" (1st, 2e, XXIe), "decade" (1990s), "date" (03/04/2025), "time" (2:30, 14 h 30,
            6 p.m.), "code" (behind a letter, or with several points: A4, CO2, 3.11.2), else "number".
        digits: as written, without marks of thousands and with a decimal point: "1234.50"; a date is
            day/month/year in the order of the text, a time hour:minute or the hour alone.
        values: what it may be worth, likeliest first, without needless zeros: "1234.5"; "2:30" may be
            14:30 too, 1.5 million 1500000.
    """

    start: int
    end: int
    kind: Kind
    digits: str
    values: tuple[str, ...]

    @property
    def value(self) -> str:
        return self.values[0]


def numbers(text: str, language: str) -> list[Number]:
    """All numbers of `text` that are written in digits (and French Roman ordinals), in their order."""
    return [_read(match, language) for match in _pattern(language).finditer(text)]


def values(text: str, language: str) -> list[str]:
    """The likeliest value of each number of `text`. To compare two texts see `unmatched`."""
    return [number.value for number in numbers(text, language)]


def matched(source: Sequence[Number], target: Sequence[Number]) -> list[tuple[Number, Number]]:
    """Pairs of numbers that are worth the same, each number in one pair at most, in the source's order.

    The likeliest values are paired first, then the others.
    """
    pairs: list[tuple[Number, Number]] = []
    left, right = list(source), list(target)
    for same in (
        lambda a, b: a.value == b.value,
        lambda a, b: not set(a.values).isdisjoint(b.values),
    ):
        for number in list(left):
            partner = next((other for other in right if same(number, other)), None)
            if partner is not None:
                pairs.append((number, partner))
                left.remove(number)
                right.remove(partner)
    return sorted(pairs, key=lambda pair: pair[0].start)


def unmatched(
    source: str, target: str, source_language: str = "en", target_language: str = "fr"
) -> tuple[list[Number], list[Number]]:
    """The numbers of each side that the other side lacks."""
    left, right = numbers(source, source_language), numbers(target, target_language)
    pairs = matched(left, right)
    lost, added = set(left) - {a for a, _ in pairs}, set(right) - {b for _, b in pairs}
    return [n for n in left if n in lost], [n for n in right if n in added]


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """What a number looks like in a language; the first alternative that fits is taken."""
    spaced = r"[0-9]{1,3}(?:[ \u00a0\u202f'][0-9]{3})+(?![0-9])"
    if language in _DECIMAL_COMMA:
        pointed = r"[0-9]{1,3}(?:\.[0-9]{3})+(?!\.?[0-9])"
        comma = r"(?:,[0-9]+(?![0-9]|,[0-9]))?"  # 3,4,5 is a list
        number = rf"(?P<number>(?:{spaced}|{pointed}){comma}|[0-9]+\.[0-9]+|[0-9]+(?:(?<!,[0-9]){comma})?)"
        dotted = rf"(?!{pointed})[0-9]+(?:\.[0-9]+){{2,}}"
    else:
        whole = rf"(?:{spaced}|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])|[0-9]+)"
        number = rf"(?P<number>{whole}(?:\.[0-9]+)?)"
        dotted = r"[0-9]+(?:\.[0-9]+){2,}"
    marks = _ORDINAL.get(language)
    ordinal = rf"|(?P<ordinal>[0-9]+)(?={marks}(?!\w))" if marks else ""
    roman_ordinal = rf"|(?<!\w)(?P<roman>{_ROMAN_ORDINAL})" if language == "fr" else ""
    scale = "|".join(sorted(_SCALE.get(language, ()), key=len, reverse=True))
    after = rf"(?:(?=[ \u00a0-](?P<scale>{scale})(?!\w)))?" if scale else ""
    return re.compile(
        r"(?<![0-9])(?:"
        r"(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])"
        r"|(?P<date>[0-9]{1,2}(?P<mark>[/.-])[0-9]{1,2}(?P=mark)[0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2})(?![0-9])"
        rf"|(?P<dotted>{dotted})"
        rf"|(?P<time>{_TIME.get(language, _TIME['en'])})"
        rf"{ordinal}{roman_ordinal}"
        r"|(?P<decade>[0-9]{2,4})(?='?s(?!\w))"
        rf"|{number}{after})"
    )


def _read(match: re.Match[str], language: str) -> Number:
    start = match.start()
    found = match.groupdict()
    if found["iso"] or found["date"]:
        return _date(match)
    if found["time"]:
        return _time(match, language)
    if found["dotted"]:
        return Number(start, match.end(), "code", found["dotted"], (found["dotted"],))
    if found.get("roman"):
        worth = str(roman(found["roman"]))
        return Number(start, match.end(), "ordinal", worth, (worth,))
    if found.get("ordinal"):
        return Number(start, match.end(), "ordinal", found["ordinal"], (_plain(found["ordinal"]),))
    if found["decade"]:
        digits = found["decade"]
        others = [digits[2:]] if len(digits) == 4 else []
        return Number(start, match.end(), "decade", digits, _distinct([_plain(digits), *others]))
    digits = re.sub(r"[^0-9.,]", "", found["number"])
    if language in _DECIMAL_COMMA:
        if "," in digits or re.fullmatch(r"[0-9]{1,3}(\.[0-9]{3})+", digits):
            digits = digits.replace(".", "")
        digits = digits.replace(",", ".")
    else:
        digits = digits.replace(",", "")
    kind: Kind = "code" if start and match.string[start - 1].isalpha() else "number"
    possible = [_plain(digits)]
    if found.get("scale"):
        possible.append(_shifted(digits, _SCALE[language][found["scale"]]))
    clock = re.fullmatch(rf"({_HOUR})\.({_MINUTE})", digits)
    if clock and language == "en":  # 9.30 may be half past nine
        possible += _clock(int(clock[1]), clock[2], 24)
    return Number(start, match.end(), kind, digits, _distinct(possible))


def _date(match: re.Match[str]) -> Number:
    text = match["iso"] or match["date"]
    parts = re.split(r"[/.-]", text)
    worth = "/".join(_plain(part) for part in (reversed(parts) if match["iso"] else parts))
    return Number(match.start(), match.end(), "date", "/".join(parts), (worth,))


def _time(match: re.Match[str], language: str) -> Number:
    found = {name: text for name, text in match.groupdict().items() if text is not None}
    hour, minute, half = (
        next((found[key] for key in (name, f"{name}_2", f"{name}_3") if key in found), None)
        for name in ("hour", "minute", "half")
    )
    assert hour is not None
    last = max(
        match.end(name)
        for name in ("hour", "minute", "hour_2", "minute_2", "hour_3")
        if name in found
    )
    # In the morning the hour is as written; without "a.m." it may be one of the afternoon.
    possible = _clock(int(hour), minute, 12 if half != "a" else 0)
    if half == "a" and int(hour) == 12:
        possible = _clock(0, minute, 0)
    return Number(
        match.start(),
        last,
        "time",
        hour if minute is None else f"{hour}:{minute}",
        _distinct(possible),
    )


def _clock(hour: int, minute: str | None, last: int) -> list[str]:
    """Ways to write a time; hours before `last` may be meant for the afternoon."""
    hours = [hour, hour + 12] if hour < min(last, 12) else [hour]
    if minute is not None:
        return [f"{h}:{minute}" for h in hours]
    return [str(h) for h in hours] + [f"{h}:00" for h in hours]


def _plain(digits: str) -> str:
    """`digits` without needless zeros."""
    whole, point, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _shifted(digits: str, places: int) -> str:
    whole, _, fraction = digits.partition(".")
    fraction = fraction.ljust(places, "0")
    return _plain(f"{whole}{fraction[:places]}.{fraction[places:]}")


def roman(text: str) -> int:
    """What a Roman number of I, V and X is worth."""
    worth = [_ROMAN[letter] for letter in text]
    return sum(-one if one < max(worth[place:]) else one for place, one in enumerate(worth))


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
