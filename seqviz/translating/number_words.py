"""Numbers written as words, English and French: what each may be worth.

Only good enough to say that a figure of one side is a word on the other: 3 and "trois", 21st and
"vingt et unième". Words that may be something else ("second", "un") are read as numbers, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seqviz import digits

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "fr": "vingt trente quarante cinquante soixante septante huitante nonante",
}
_SCALES = {
    "en": {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "bn": 9, "trillion": 12},
    "fr": {"cent": 2, "mille": 3, "million": 6, "milliard": 9, "billion": 12},
}
_OTHERS = {
    "en": {
        "0": "no none",
        "1": "a an single once",
        "2": "twice both couple pair double",
        "3": "triple",
        "10": "decade",
        "12": "dozen dozens noon midday",
        "15": "fortnight",
    },
    "fr": {
        "0": "aucun aucune",
        "1": "seul seule",
        "2": "double",
        "3": "triple",
        "10": "dizaine décennie",
        "12": "douzaine midi",
        "15": "quinzaine",
        "20": "vingtaine",
        "30": "trentaine",
        "40": "quarantaine",
        "50": "cinquantaine",
        "60": "soixantaine",
        "100": "centaine centaines",
        "1000": "millier milliers",
    },
}
_MANY = {
    "half": ("30", "0.5", "1/2"),
    "halves": ("1/2",),
    "quarter": ("15", "0.25", "1/4"),
    "quarters": ("45", "0.75", "3/4"),
    "third": ("3", "1/3"),
    "thirds": ("2/3",),
    "midnight": ("0", "12", "24"),
    "demi": ("30", "0.5", "1/2"),
    "demie": ("30", "0.5", "1/2"),
    "moitié": ("50", "0.5", "1/2"),
    "quart": ("15", "0.25", "1/4"),
    "quarts": ("45", "0.75", "3/4"),
    "tiers": ("1/3", "2/3"),
    "minuit": ("0", "12", "24"),
}
_ORDINALS = {
    "en": {
        "first": "one",
        "second": "two",
        "third": "three",
        "fifth": "five",
        "eighth": "eight",
        "ninth": "nine",
        "twelfth": "twelve",
    },
    "fr": {
        "premier": "un",
        "première": "un",
        "unième": "un",
        "second": "deux",
        "seconde": "deux",
        "quatrième": "quatre",
        "cinquième": "cinq",
        "neuvième": "neuf",
    },
}
_AFTER_ET = (["un"], ["une"], ["onze"])
_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}

LANGUAGES = frozenset(_UNITS)
"""Those whose number words are known here."""


@dataclass(frozen=True)
class Words:
    """What the words of a text say.

    Attributes:
        numbers: for each number word or run of them all that it may be worth, as in `Number.values`.
        months: numbers of the months that are named.
        before: a time may be counted down to: "quarter to three", "trois heures moins le quart".
    """

    numbers: tuple[tuple[str, ...], ...]
    months: frozenset[str]
    before: bool


def read(text: str, language: str) -> Words:
    """All number words of `text`, in their order; nothing of a language that is not known here."""
    if language not in LANGUAGES:
        return Words((), frozenset(), False)
    tokens = re.findall(r"[^\W\d_]+|[^\w\s'-]", text.lower())
    tokens = [_cardinal(token, language) for token in tokens]
    others = {word: worth for worth, all_ in _OTHERS[language].items() for word in all_.split()}
    months = {name: str(i) for i, name in enumerate(_MONTHS[language].split(), start=1)}
    numbers: list[tuple[str, ...]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        worth, end = _run(tokens, place, language)
        if end > place:
            numbers.append((str(worth),))
        elif token in _MANY:
            numbers.append(_MANY[token])
        elif token in others:
            numbers.append((others[token],))
        place = max(end, place + 1)
    # Schengen II may be Schengen 2; a lone letter may be anything.
    numbers += [(str(digits.roman(word)),) for word in re.findall(r"\b[IVX]{2,}\b", text)]
    return Words(
        tuple(numbers),
        frozenset(months[token] for token in tokens if token in months),
        not {"to", "before", "moins"}.isdisjoint(tokens),
    )


def _cardinal(token: str, language: str) -> str:
    """An ordinal as its cardinal, and a plural as its singular; other words as they are."""
    token = _ORDINALS[language].get(token, token)
    known = {*_UNITS[language].split(), *_TENS[language].split(), *_SCALES[language]}
    for ending, instead in (
        ("s", ""),
        ("ième", ""),
        ("ième", "e"),
        ("ieth", "y"),
        ("ies", "y"),
        ("th", ""),
    ):
        if token.endswith(ending) and (stem := token.removesuffix(ending) + instead) in known:
            return stem
    return token


def _run(tokens: list[str], start: int, language: str) -> tuple[int, int]:
    """The number that begins at a token, and where it ends; `start` where none begins."""
    worth_of = {word: i for i, word in enumerate(_UNITS[language].split())}
    worth_of["une"] = 1
    worth_of |= {word: 10 * i for i, word in enumerate(_TENS[language].split(), start=2)}
    scales = _SCALES[language]
    total = current = 0
    end = place = start
    if tokens[start] == "a" and not scales.keys().isdisjoint(tokens[start + 1 : start + 2]):
        place += 1  # "a hundred"; "a" alone is read by the caller
    while place < len(tokens):
        token = tokens[place]
        joins = current % 100 == 0 if language == "en" else tokens[place + 1 :][:1] in _AFTER_ET
        if token in ("and", "et") and place > start and joins:
            place += 1
            continue
        if token in worth_of:
            more = _joined(current, worth_of[token], language)
            if more is None:
                break
            current = more
        elif token in scales and scales[token] == 2:
            current = max(1, current) * 100
        elif token in scales:
            total, current = total + max(1, current) * 10 ** scales[token], 0
        else:
            break
        place += 1
        end = place
    return total + current, end


def _joined(current: int, worth: int, language: str) -> int | None:
    """The number `current` with a word more, worth less than a hundred; None where it is another number."""
    rest = current % 100
    if rest == 0 and (current >= 100 or not current):
        return current + worth
    if rest >= 20 and rest % 10 == 0 and 0 < worth < 10:
        return current + worth
    if language == "en":  # nineteen ninety
        return 100 * current + worth if 10 <= current < 100 and worth >= 10 else None
    if rest == 4 and worth == 20:  # quatre-vingt
        return current + 76
    teens = rest in (60, 80) and 10 <= worth <= 16  # soixante et onze
    after_ten = rest in (10, 70, 90) and 7 <= worth <= 9  # dix-sept
    return current + worth if teens or after_ten else None
