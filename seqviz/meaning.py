"""What a French output says, word by word, for readers who know no French: a gloss, no translation.

    gloss("L'école est fermée.", "zh")
    # [Word("L'", "这"), Word("école", "学校"), Word("est", "是"), Word("fermée", "关闭")]
    line("L'école est fermée.", "en")
    # "the school is closed."

The tables stand in ``models/``, one line for each French form: the form, a tab, what it means; sorted.
The Chinese table is written by hand. So is the English one for the commonest forms; ``seqviz meanings``
makes the rest from training corpora. Numbers, names and words that no table has stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from seqviz.coverage.stems import PLAIN
from seqviz.handwritten import texts
from seqviz.shipped import models_folder

FILES = {
    "en": ("meanings.fr-en.made.tsv", "meanings.fr-en.tsv"),
    "zh": ("meanings.fr-zh.tsv",),
}
"""Tables in `models_folder` by language; a later one overrules an earlier one."""

_SOFT_HYPHEN = "\u00ad"
_ELIDED = r"(?:l|d|j|m|t|s|n|c|qu|jusqu|lorsqu|puisqu|quoiqu|presqu)'"
_ELISION = re.compile(_ELIDED)
_WORD = re.compile(rf"\b{_ELIDED}(?![^\W_])|[^\W_]+(?:['-][^\W_]+)*", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<!-t)-")
"""Between the parts of a compound; the t of *a-t-il* stays with the pronoun."""
_SENTENCE_END = re.compile(r"[.!?…][\s\"»”')]*\Z")
_SPACE_BEFORE = re.compile(r"\s+(?=[?!;:])")
_CHINESE_MARK = re.compile(r"(?<![0-9])[,.;:?!]\s*|[,.;:?!](?![0-9])\s*")
_CHINESE_MARKS = str.maketrans(",;:?!.", "，；：？！。")


class MeaningError(ValueError):
    """A table of meanings cannot be used; the message says what was expected, what came, what to do."""


class Word(NamedTuple):
    """A word of a French text, or a part that stands for a word of its own: *l'*, the *moi* of *dis-moi*.

    Attributes:
        french: as it stands in the text, accents composed.
        meaning: None for what stays French: numbers, names, words without an entry.
    """

    french: str
    meaning: str | None


class _Part(NamedTuple):
    start: int
    end: int
    meaning: str | None


def gloss(french: str, language: str) -> list[Word]:
    """Say what each word means; punctuation is left out.

    Args:
        french: any text.
        language: one of `FILES`.
    Raises:
        MeaningError: no tables for this language, or a damaged one.
    """
    text = _composed(french)
    return [Word(text[p.start : p.end], p.meaning) for p in _parts(text, table(language))]


def line(french: str, language: str) -> str:
    """The text with each word's meaning in its place, and the punctuation of the language."""
    text, result, last = _composed(french), [], 0
    for part in _parts(text, table(language)):
        between = text[last : part.start]
        result.append(" " if last and between in ("", "-") else between)
        result.append(part.meaning or text[part.start : part.end])
        last = part.end
    joined = _SPACE_BEFORE.sub("", "".join([*result, text[last:]]))
    return _chinese_marks(joined) if language == "zh" else joined


def lacking(french: str, language: str) -> list[str]:
    """The words that stay French though they should not: no numbers, and no names.

    A word with a capital that does not open a sentence counts as a name.
    """
    text = _composed(french)
    result = []
    for part in _parts(text, table(language)):
        word = text[part.start : part.end]
        if part.meaning is None and not any(c.isdigit() for c in word):
            opens = not (before := text[: part.start].rstrip()) or _SENTENCE_END.search(before)
            if opens or not word[0].isupper():
                result.append(word)
    return result


class Coverage(NamedTuple):
    """How much of some texts has a meaning.

    Attributes:
        words: running words, without numbers.
        known: how many of them the tables have.
        lacking: the words that should be there and are not, with how often; see `lacking`.
    """

    words: int
    known: int
    lacking: Counter[str]


def coverage(french: Iterable[str], language: str) -> Coverage:
    """Count the words of French texts that have a meaning, and those that lack one."""
    words = known = 0
    without: Counter[str] = Counter()
    for text in french:
        for word in gloss(text, language):
            if not any(c.isdigit() for c in word.french):
                words += 1
                known += word.meaning is not None
        without.update(key(word) for word in lacking(text, language))
    return Coverage(words, known, without)


def shown_texts() -> list[str]:
    """All French that is shown: outputs in the reports of `models_folder`, texts written by hand."""
    folder = models_folder() / "report"
    reports = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.json"))]
    by_hand = [texts("passages"), texts("examples")]
    return [*_strings(reports, "outputs"), *_strings(by_hand, "french")]


def _strings(value: Any, wanted: str, found: bool = False) -> Iterator[str]:
    """Every text somewhere below the key that is wanted."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _strings(one, wanted, found or name == wanted)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one, wanted, found)
    elif isinstance(value, str) and found:
        yield value


@cache
def table(language: str) -> Mapping[str, str]:
    """Meanings by French form, lower-cased and with plain apostrophes. Read once a process.

    Raises:
        MeaningError: no tables for this language, or a damaged one.
    """
    if language not in FILES:
        raise MeaningError(f"expected a language of {', '.join(FILES)}, got {language!r}")
    rows: dict[str, str] = {}
    for name in FILES[language]:
        rows |= read(models_folder() / name)
    return rows


def read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read one table.

    Raises:
        MeaningError: no such file, or a line that is no form, tab, meaning, or is out of order.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise MeaningError(
            f"{path}: expected a table of meanings, it cannot be read ({error}); restore the file"
        ) from error
    rows: dict[str, str] = {}
    last = ""
    for number, row in enumerate(lines, 1):
        form, tab, meaning = row.partition("\t")
        if not (tab and meaning.strip() == meaning != "" and form > last and form == key(form)):
            raise MeaningError(
                f"{path}, line {number}: expected a French form in lower case, a tab and its meaning, "
                f"sorted and each form once; got {row!r}; correct the line"
            )
        rows[form] = meaning
        last = form
    return rows


def save(rows: Mapping[str, str], path: str | os.PathLike[str]) -> None:
    """Write a table that `read` reads, aside and then renamed."""
    from seqviz.files import write_text

    write_text(path, "".join(f"{form}\t{rows[form]}\n" for form in sorted(rows)))


def key(word: str) -> str:
    """How a table spells a word: composed, lower-cased, with plain apostrophes and hyphens."""
    return _composed(word).lower().translate(PLAIN)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace(_SOFT_HYPHEN, "")


def _parts(text: str, rows: Mapping[str, str]) -> Iterator[_Part]:
    """Where each word stands in a composed text, and its meaning."""
    for found in _WORD.finditer(text.translate(PLAIN)):
        yield from _split(found.start(), text[found.start() : found.end()], rows)


def _split(start: int, word: str, rows: Mapping[str, str]) -> Iterator[_Part]:
    """A word as a whole if the table has it; else without its elisions; else the parts of a compound."""
    form = key(word)
    end = start + len(word)
    compound = _compound(form)
    if form in rows or len(form) != len(word):
        yield _Part(start, end, rows.get(form))
    elif (elided := _ELISION.match(form)) and elided.end() < len(form):
        at = elided.end()
        yield _Part(start, start + at, rows.get(form[:at]))
        yield from _split(start + at, word[at:], rows)
    elif any(form[a:b] in rows for a, b in compound):
        for a, b in compound:
            yield _Part(start + a, start + b, rows.get(form[a:b]))
    else:  # a compound of unknown parts is a name and stays whole
        yield _Part(start, end, None)


def _compound(form: str) -> list[tuple[int, int]]:
    """Where the parts of a word with hyphens begin and end."""
    hyphens = [m.start() for m in _HYPHEN.finditer(form)]
    return list(zip([0, *(h + 1 for h in hyphens)], [*hyphens, len(form)], strict=True))


def _chinese_marks(text: str) -> str:
    """Chinese punctuation, but not within numbers."""
    text = re.sub(r"\.{3}\s*", "……", text)
    return _CHINESE_MARK.sub(lambda m: m[0].strip().translate(_CHINESE_MARKS), text)
