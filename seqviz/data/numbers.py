"""Other digits in both sides of an English–French pair, each in its language's own format.

A number is swapped where both sides hold it equally often, so that a model learns to copy digits and
not to guess them: 1,234.56 and 1 234,56 become 7,301.48 and 7 301,48. The numbers 0 and 1, ordinals,
decades, digits behind a letter and numbers in words stay, and so does what only one side holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from random import Random

from seqviz.digits import Number, matched, numbers

_MONTHS: Mapping[str, Sequence[str]] = {
    "en": "January February March April May June July August September October November December".split(),
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
}
_EN_MONTH, _FR_MONTH = "|".join(_MONTHS["en"]), "|".join(_MONTHS["fr"])
_EN_DATE = re.compile(
    rf"(?<![0-9])(?:(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_EN_MONTH}),?"
    rf"|(?P<month_2>{_EN_MONTH}) (?P<day_2>[0-9]{{1,2}})(?:st|nd|rd|th)?,?) (?P<year>[0-9]{{4}})(?![0-9])"
)
_FR_DATE = re.compile(
    rf"(?<![0-9])(?P<day>[0-9]{{1,2}}) (?P<month>{_FR_MONTH}) (?P<year>[0-9]{{4}})(?![0-9])"
)
_NEXT_TO_MONTH = re.compile(
    rf"^(?:st|nd|rd|th)?(?: of)? (?:{_EN_MONTH}|{_FR_MONTH})\b", re.IGNORECASE
)
_AFTER_MONTH = re.compile(rf"(?:{_EN_MONTH}) (?:the )?$")
_PERCENT = re.compile(r"^ ?(?:%|per ?cents?\b|pour ?cents?\b)")
_SCALE = re.compile(
    r"^[ -](?:thousand|[mb]illion|bn|trillion|mille|millions|milliard|billions)", re.IGNORECASE
)
_CURRENCY = "euros?|EUR|dollars?|USD|US|pounds?|ECU|ecus?|écus?|livres|[€$£]"
_PRICE_AFTER = re.compile(rf"^ ?(?:{_CURRENCY})(?!\w)")
_PRICE_BEFORE = re.compile(r"(?:[€$£]|\b(?:EUR|ECU|USD) )$")
_ARTICLE = re.compile(r"(?:^|[\s(\"'])(an?)[ -]$", re.IGNORECASE)
_ELISION = re.compile(r"\b[A-Za-z]{1,2}'$")
_PART_OF_MORE = re.compile(r"[\w/()\[\]-]$")

_NUMERIC_DATES = 0.6
"""Share of dates in words that both sides hold, 8 March 2000 and 8 mars 2000, written as 08/03/2000."""
_EURO_SIGNS = 0.5
"""Share of amounts in EUR whose sign is written as €."""
_TRIES = 30

_COUNTS = {"9": 1, "99": 1, "999": 1}
_MILLIONS = {"9": 5, "99": 5, "999": 5, "9.9": 5}
_PERCENTAGES = {"9": 2, "99": 5, "9.9": 2, "99.9": 3, "99.99": 2}
_PRICES = {
    "99": 2, "999": 2, "9999": 2, "99999": 2, "999999": 1, "9999999": 1,
    "9.99": 2, "99.99": 2, "999.99": 2, "9999.99": 3,
}  # fmt: skip
"""What new numbers look like, and the weight of each shape."""


def mended(source: str, target: str) -> tuple[str, str]:
    """The pair without needless spaces inside numbers, where the other side shows what is meant.

    Europarl writes "0, 7%" for 0.7 % in French and "5, 000" for 5 000 in English.
    """
    for number in numbers(source, "en"):
        whole, point, fraction = number.digits.partition(".")
        if point and number.kind == "number":
            target = re.sub(
                rf"(?<![0-9,.]){whole}, {fraction}(?![0-9])", f"{whole},{fraction}", target
            )
    if re.search("[0-9], [0-9]{3}", source):
        known = {number.value for number in numbers(target, "fr")}
        source = re.sub(
            r"(?<![0-9,.])([0-9]{1,3}), ([0-9]{3})(?![0-9]|, [0-9]{3})",
            lambda m: f"{m[1]},{m[2]}" if m[1] + m[2] in known else m[0],
            source,
        )
    return source, target


def swapped(
    source: str, target: str, random: Random, *, unknown: str | None = None
) -> tuple[str, str]:
    """The pair with other digits for every number that both sides hold; the pair itself if none is.

    Args:
        source, target: an English sentence and its French translation.
        unknown: put in place of the first swapped amount instead of digits.
    """
    source, target = _dates_in_digits(source, target, random)
    left, right = numbers(source, "en"), numbers(target, "fr")
    taken = {number.digits for number in left + right}
    edits: tuple[dict[Number, str], dict[Number, str]] = ({}, {})
    for places, others in _equal(left, right):
        new = _other_digits(source, target, places, others, taken, random)
        if new is None:
            continue
        taken.add(new)
        if unknown and all(n.kind == "number" for n in places + others):
            new, unknown = unknown, None
        for text, language, found, edit in (
            (source, "en", places, edits[0]),
            (target, "fr", others, edits[1]),
        ):
            edit.update({n: _written(new, text[n.start : n.end], n, language) for n in found})
    for a, b in _equal_times(left, right, edits[0]):
        hour, minute = _other_time(a, b, random)
        for text, number, edit, offset in (
            (source, a, edits[0], 0),
            (target, b, edits[1], _offset(a, b)),
        ):
            edit[number] = _time_written(text[number.start : number.end], hour + offset, minute)
    if not edits[0]:
        return source, target
    source, target = _edited(source, edits[0]), _edited(target, edits[1])
    return _euro_signs(source, target, random)


def _equal(left: list[Number], right: list[Number]) -> list[tuple[list[Number], list[Number]]]:
    """Numbers and dates by their digits, where both sides hold the digits equally often."""
    sides: dict[str, tuple[list[Number], list[Number]]] = defaultdict(lambda: ([], []))
    for side, found in enumerate((left, right)):
        for number in found:
            if number.kind in ("number", "date") or (
                number.kind == "time" and ":" not in number.digits
            ):
                sides[number.digits][side].append(number)
    return [
        (places, others)
        for places, others in sides.values()
        if len(places) == len(others) and places[0].value not in ("0", "1")
    ]


def _equal_times(
    left: list[Number], right: list[Number], done: dict[Number, str]
) -> list[tuple[Number, Number]]:
    """Times of both sides that are equal, but for the twelve hours of an afternoon."""
    pairs = matched(
        [n for n in left if n.kind == "time" and n not in done],
        [n for n in right if n.kind == "time"],
    )
    return [
        (a, b)
        for a, b in pairs
        if (":" in a.digits) == (":" in b.digits)
        and _offset(a, b) in (0, 12)
        and a.digits.split(":")[1:] == b.digits.split(":")[1:]
        and 2 <= int(a.digits.split(":")[0]) <= 23
    ]


def _offset(a: Number, b: Number) -> int:
    return int(b.digits.split(":")[0]) - int(a.digits.split(":")[0])


def _other_time(a: Number, b: Number, random: Random) -> tuple[int, str | None]:
    hour, *minute = a.digits.split(":")
    early = int(hour) <= 11
    new = random.choice([h for h in (range(2, 12) if early else range(12, 24)) if h != int(hour)])
    if not minute or minute[0] == "00":
        return new, minute[0] if minute else None
    return new, f"{random.randint(2, 59):02}"


def _time_written(old: str, hour: int, minute: str | None) -> str:
    parts = re.split("([0-9]+)", old)  # "", hour, between, minute, ""
    parts[1] = f"{hour:02}" if parts[1].startswith("0") else str(hour)
    if minute is not None:
        parts[3] = minute
    return "".join(parts)


def _other_digits(
    source: str,
    target: str,
    places: list[Number],
    others: list[Number],
    taken: set[str],
    random: Random,
) -> str | None:
    """Digits for one number, as different as its surroundings allow; None where it must stay."""
    befores = [source[: n.start] for n in places] + [target[: n.start] for n in others]
    afters = [source[n.end :] for n in places] + [target[n.end :] for n in others]
    if any(_ELISION.search(before[-4:]) for before in befores):
        return None
    spans = [source[n.start : n.end] for n in places] + [target[n.start : n.end] for n in others]
    draw = _drawer(places[0].digits, spans, befores, afters, places + others)
    vowels = {
        (match[1].lower() == "an")
        for before in befores[: len(places)]
        if (match := _ARTICLE.search(before[-5:]))
    }
    for _ in range(_TRIES):
        new = draw(random)
        if new not in taken and vowels <= {_begins_with_vowel(new)}:
            return new
    return None


def _drawer(
    digits: str, spans: list[str], befores: list[str], afters: list[str], found: list[Number]
) -> Callable[[Random], str]:
    """How to draw another number of the same sort: a date, a day, an hour, a year, a price, …"""
    near = [after[:12] for after in afters]
    if found[0].kind == "date":
        return lambda random: _other_date(digits, random)
    if any(n.kind == "time" for n in found):
        last = 11 if int(digits) <= 12 else 24
        return lambda random: str(random.randint(2, last))
    by_a_month = any(_NEXT_TO_MONTH.search(after[:20]) for after in afters) or any(
        _AFTER_MONTH.search(before[-15:]) for before in befores
    )
    if by_a_month and len(digits) <= 2:
        return lambda random: str(random.randint(2, 28))
    if "." in digits:
        return lambda random: _other_decimal(digits, random, "," in spans[-1])
    priced = all(
        _PRICE_AFTER.search(after) or _PRICE_BEFORE.search(before[-5:])
        for before, after in zip(befores, near, strict=True)
    )
    if not priced and all(re.fullmatch("1[1-9][0-9]{2}|20[0-9]{2}", span) for span in spans):
        return lambda random: str(
            random.randint(1900, 2049) if random.random() < 0.8 else random.randint(1200, 1899)
        )
    if digits.startswith("0") or any(_PART_OF_MORE.search(before[-1:]) for before in befores):
        return lambda random: _same_length(digits, random)
    if all(_SCALE.search(after) for after in near):
        return lambda random: _drawn(random, _MILLIONS)
    if all(_PERCENT.search(after) for after in near) and len(digits) <= 2:
        return lambda random: _drawn(random, _PERCENTAGES)
    if priced:
        return lambda random: _drawn(random, _PRICES)
    if len(digits) <= 3:
        return lambda random: (
            _same_length(digits, random) if random.random() < 0.8 else _drawn(random, _COUNTS)
        )
    return lambda random: _same_length(digits, random)


def _same_length(digits: str, random: Random) -> str:
    zeros = len(digits) - len(digits.lstrip("0"))
    length = len(digits) - zeros
    return "0" * zeros + str(
        random.randint(2 if length == 1 else 10 ** (length - 1), 10**length - 1)
    )


def _drawn(random: Random, shapes: dict[str, int]) -> str:
    shape = random.choices(list(shapes), list(shapes.values()))[0]
    whole, point, decimals = shape.partition(".")
    return _same_length(whole, random) + point + _fraction(len(decimals), random)


def _fraction(decimals: int, random: Random) -> str:
    """Digits behind the point, of which the last is not 0."""
    if decimals == 0:
        return ""
    first = "".join(str(random.randint(0, 9)) for _ in range(decimals - 1))
    return first + str(random.randint(1, 9))


def _other_decimal(digits: str, random: Random, amount: bool) -> str:
    """Below 2 the whole part stays: French has 1,9 million, but 2 millions."""
    whole, _, fraction = digits.partition(".")
    decimals = len(fraction)
    if amount and decimals <= 2 and random.random() < 0.3:
        decimals = 3 - decimals
    if int(whole) >= 2:
        whole = _same_length(whole, random)
    return f"{whole}.{_fraction(decimals, random)}"


def _other_date(digits: str, random: Random) -> str:
    parts = digits.split("/")
    year_first = len(parts[0]) == 4
    year, month, day = parts if year_first else reversed(parts)
    new_year = f"{random.randint(1950, 2049)}"[-len(year) :]
    month = str(random.randint(2, 12)).rjust(len(month), "0")
    day = str(random.randint(2, 28)).rjust(len(day), "0")
    if not year_first and int(parts[1]) > 12:  # month first
        day, month = month, day
    return "/".join((new_year, month, day) if year_first else (day, month, new_year))


def _begins_with_vowel(digits: str) -> bool:
    """Whether English says an before it: 8, 11, 18 and what begins with them."""
    whole = digits.partition(".")[0]
    return whole.startswith("8") or (len(whole) % 3 == 2 and whole.startswith(("11", "18")))


def _written(new: str, old: str, number: Number, language: str) -> str:
    """New digits in the format of the old text, or of the language where the old text shows none."""
    if number.kind == "date":
        mark = re.sub("[0-9]", "", old)[0]
        return new.replace("/", mark)
    whole, point, fraction = new.partition(".")
    if not whole.isdigit():
        return new  # an unknown character
    grouping = (
        re.match(r"[0-9]{1,3}([^0-9])[0-9]{3}(?![0-9])", old)
        if len(number.digits.partition(".")[0]) > 3
        else None
    )
    shows_none = len(old) >= 4 and old.isdigit()
    if len(whole) >= 4 and not (shows_none and len(whole) == len(old)):
        mark = grouping[1] if grouping else ("," if language == "en" else " ")
        whole = f"{int(whole):,}".replace(",", mark)
    if not point:
        return whole
    mark = (
        "." if language == "en" or ("." in old and "." in number.digits and "," not in old) else ","
    )
    return whole + mark + fraction


def _edited(text: str, edits: dict[Number, str]) -> str:
    for number in sorted(edits, key=lambda n: n.start, reverse=True):
        text = text[: number.start] + edits[number] + text[number.end :]
    return text


def _dates_in_digits(source: str, target: str, random: Random) -> tuple[str, str]:
    """Some dates in words, the same on both sides, as day/month/year."""
    left, right = list(_EN_DATE.finditer(source)), list(_FR_DATE.finditer(target))
    if len(left) != 1 or len(right) != 1 or random.random() >= _NUMERIC_DATES:
        return source, target
    a, b = left[0], right[0]
    day, month = a["day"] or a["day_2"], a["month"] or a["month_2"]
    same = (int(day), month, a["year"]) == (
        int(b["day"]),
        _MONTHS["en"][_MONTHS["fr"].index(b["month"])],
        b["year"],
    )
    if not same or int(day) == 1:
        return source, target
    number = _MONTHS["en"].index(month) + 1
    padded = random.random() < 0.8
    date = (
        f"{int(day):02}/{number:02}/{a['year']}" if padded else f"{int(day)}/{number}/{a['year']}"
    )
    return tuple(
        text[: m.start()] + date + text[m.end() :] for text, m in ((source, a), (target, b))
    )  # type: ignore[return-value]


def _euro_signs(source: str, target: str, random: Random) -> tuple[str, str]:
    """Some amounts of EUR 500 and 500 euros as €500 and 500 €."""
    amount = r"[0-9][0-9 ,.]*[0-9](?![0-9])"
    left = re.findall(rf"\bEUR {amount}(?! ?(?:thousand|[mb]illion|bn))", source)
    right = re.findall(rf"{amount} (?:euros|EUR)(?!\w)", target)
    if not left or len(left) != len(right) or random.random() >= _EURO_SIGNS:
        return source, target
    source = re.sub(rf"\bEUR (?={amount}(?! ?(?:thousand|[mb]illion|bn)))", "€", source)
    if random.random() < 0.7:
        target = re.sub(rf"({amount}) (?:euros|EUR)(?!\w)", r"\1 €", target)
    return source, target
