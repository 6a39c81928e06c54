"""The languages that a model reads and writes, and what follows from them.

    pair = LanguagePair.of("en", "zh")
    pair.target.words("我们昨天在北京开会。")    # ["我们", "昨天", "在", "北京", "开会。"]
    pair.target.bleu_tokenizer                   # "zh"

Kept with a model by its two codes (ISO 639-1); whatever depends on a language asks here. The language of
the page and the figures is another matter: `seqviz.language`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_NAMES_FILE = Path(__file__).resolve().parent / "iso_639_1.json"

SEGMENTED = frozenset({"zh", "ja", "th", "lo", "km", "my"})
"""Written without spaces between words; ICU, which browsers use as well, knows their words."""
UNSEGMENTED = frozenset({"bo", "dz"})
"""Written without spaces between words, which nothing here can find: their length is in characters."""

_BLEU = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
"""Names of sacreBLEU's tokenizers; where there are no words in sight "char", else "13a"."""

_RIGHT_TO_LEFT = frozenset({"ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})

_NO_SPACE_BETWEEN_SENTENCES = frozenset({"zh", "ja"})

_CJK = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_CJK_SPACE = re.compile(f"(?<={_CJK}) (?={_CJK})")

_ORDINAL_POINT = frozenset("de da no nb nn fi et lv cs sk sl hr bs sr hu is fo lb pl".split())
"""Write "3." for third, so a full stop after digits ends no sentence before a month or a noun."""

_SCRIPTS = {
    **dict.fromkeys("ar fa ur ps sd ug ks".split(), "ARABIC"),
    **dict.fromkeys("ru uk be bg mk kk ky mn tg tt ba cv ce ab av os kv cu".split(), "CYRILLIC"),
    **dict.fromkeys("hi mr ne sa".split(), "DEVANAGARI"),
    **dict.fromkeys("bn as".split(), "BENGALI"),
    **dict.fromkeys("he yi".split(), "HEBREW"),
    **dict.fromkeys("bo dz".split(), "TIBETAN"),
    **dict.fromkeys("am ti".split(), "ETHIOPIC"),
    "zh": "CJK",
    "ja": "CJK|HIRAGANA|KATAKANA",
    "ko": "HANGUL|CJK",
    "th": "THAI",
    "lo": "LAO",
    "km": "KHMER",
    "my": "MYANMAR",
    "el": "GREEK",
    "hy": "ARMENIAN",
    "ka": "GEORGIAN",
    "ta": "TAMIL",
    "te": "TELUGU",
    "kn": "KANNADA",
    "ml": "MALAYALAM",
    "gu": "GUJARATI",
    "pa": "GURMUKHI",
    "or": "ORIYA",
    "si": "SINHALA",
    "dv": "THAANA",
    "ii": "YI",
    **dict.fromkeys("az bs sr uz tk ku cr iu pi oj".split(), ""),  # written in several
}
"""How Unicode's names of a language's letters begin; where nothing stands here, "LATIN"."""

DEFAULT_LANGUAGES = ("en", "fr")
"""Of a model that says nothing else."""


class LanguageError(ValueError):
    """A language cannot be used; the message says what was expected, what came, what to do next."""


@dataclass(frozen=True)
class TextLanguage:
    """A language in which texts are written.

    Attributes:
        code: ISO 639-1, such as "en".
        name: in English.
    """

    code: str
    name: str

    @staticmethod
    def of(code: str | TextLanguage) -> TextLanguage:
        """The language with this code.

        Raises:
            LanguageError: no such code.
        """
        if isinstance(code, TextLanguage):
            return code
        name = _names().get(code)
        if name is None:
            raise LanguageError(
                f"expected a language as a code of ISO 639-1, two small letters such as en, de or zh, got {code!r}"
            )
        return TextLanguage(code, name)

    # -----------------------------------------------------------------------------------------
    # Words and sentences

    @property
    def is_spaced(self) -> bool:
        """Words stand between spaces."""
        return self.code not in SEGMENTED and self.code not in UNSEGMENTED

    @property
    def unit(self) -> str:
        """What the length of a text is counted in: "words" or "characters"."""
        return "characters" if self.code in UNSEGMENTED else "words"

    def words(self, text: str) -> list[str]:
        """The words of a text, punctuation with the word that it follows (or opens).

        Between spaces; in languages of `SEGMENTED` as ICU finds them, in those of `UNSEGMENTED` characters.

        Raises:
            LanguageError: the package that finds the words is not installed.
        """
        if self.is_spaced:
            return text.split()
        segments = list if self.code in UNSEGMENTED else self._segmenter()
        return [word for part in text.split() for word in _with_punctuation(segments(part))]

    def length(self, text: str) -> int:
        """How many words a text has, or characters: see `unit`."""
        return len(self.words(text))

    def check(self) -> None:
        """Whatever `words` needs is there.

        Raises:
            LanguageError: it is not; the message says what to install.
        """
        if self.code in SEGMENTED:
            self._segmenter()

    def _segmenter(self) -> Callable[[str], Iterable[str]]:
        try:
            from icu4py.breakers import WordBreaker
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "icu4py":
                raise
            raise LanguageError(
                f"the words of {self.name} need the package icu4py; pip install 'seqviz[languages]'"
            ) from None
        return lambda text: WordBreaker(text, self.code)

    @property
    def between_words(self) -> str:
        """A space, or nothing."""
        return " " if self.is_spaced else ""

    def join(self, sentences: Iterable[str]) -> str:
        """Sentences as one text."""
        return ("" if self.code in _NO_SPACE_BETWEEN_SENTENCES else " ").join(sentences)

    def tidy(self, text: str) -> str:
        """A model's text without the spaces that this language has not: those between joined sentences."""
        return _CJK_SPACE.sub("", text) if self.code in _NO_SPACE_BETWEEN_SENTENCES else text

    @property
    def has_ordinal_point(self) -> bool:
        """ "3." is how this language writes "third"."""
        return self.code in _ORDINAL_POINT

    # -----------------------------------------------------------------------------------------
    # Scores, looks

    @property
    def bleu_tokenizer(self) -> str:
        """sacreBLEU's name of the tokenizer that its BLEU is counted with."""
        return _BLEU.get(self.code, "13a" if self.is_spaced else "char")

    @property
    def direction(self) -> str:
        """ "ltr" or "rtl", as in HTML."""
        return "rtl" if self.code in _RIGHT_TO_LEFT else "ltr"

    @property
    def tag(self) -> str:
        """Attributes of an HTML element that holds a text in this language, with a space before them."""
        return f' lang="{self.code}"' + (' dir="rtl"' if self.direction == "rtl" else "")

    def may_be(self, text: str) -> bool:
        """False where most letters are of a script in which this language is not written."""
        scripts = _SCRIPTS.get(self.code, "LATIN")
        letters = [c for c in text if c.isalpha()]
        if not scripts or not letters:
            return True
        wanted = tuple(scripts.split("|"))
        return sum(_script(c).startswith(wanted) for c in letters) >= 0.6 * len(letters)


@dataclass(frozen=True)
class LanguagePair:
    """The languages that a model reads and writes."""

    source: TextLanguage
    target: TextLanguage

    @staticmethod
    def of(source: str | TextLanguage, target: str | TextLanguage) -> LanguagePair:
        """
        Raises:
            LanguageError: no such language, or one twice.
        """
        pair = LanguagePair(TextLanguage.of(source), TextLanguage.of(target))
        if pair.source == pair.target:
            raise LanguageError(f"expected two different languages, got {pair.source.code} twice")
        return pair

    @staticmethod
    def recorded(*records: Mapping[str, Any]) -> LanguagePair:
        """As the first record says that says something under ``languages``; else `DEFAULT_LANGUAGES`.

        Args:
            records: contents of ``training.json``, ``config.json`` and their like.
        Raises:
            LanguageError: something else than two codes.
        """
        said = (record["languages"] for record in records if record.get("languages"))
        codes = next(said, DEFAULT_LANGUAGES)
        if not isinstance(codes, list | tuple) or len(codes) != 2:
            raise LanguageError(
                f"expected languages as two codes, source and target, got {codes!r}"
            )
        return LanguagePair.of(*codes)

    @staticmethod
    def of_model(folder: str | os.PathLike[str]) -> LanguagePair:
        """As the files of a model folder say: ``training.json``, else ``config.json``.

        Raises:
            LanguageError: they say something else than two codes.
        """
        records = []
        for name in ("training.json", "config.json"):
            try:
                records.append(dict(json.loads((Path(folder) / name).read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError):  # whoever loads the model says what is wrong
                continue
        return LanguagePair.recorded(*records)

    def changed(self, source: str | None, target: str | None) -> LanguagePair:
        """With other languages where they are given, and whatever the words of both need is there.

        Raises:
            LanguageError: no such language, one twice, or what finds its words is not installed.
        """
        pair = LanguagePair.of(source or self.source, target or self.target)
        pair.check()
        return pair

    @property
    def codes(self) -> tuple[str, str]:
        return self.source.code, self.target.code

    @property
    def is_default(self) -> bool:
        """The pair of the shipped models."""
        return self.codes == DEFAULT_LANGUAGES

    def check(self) -> None:
        """Whatever the words of both need is there; see `TextLanguage.check`."""
        self.source.check()
        self.target.check()

    def __str__(self) -> str:
        return "-".join(self.codes)


@cache
def _names() -> dict[str, str]:
    return json.loads(_NAMES_FILE.read_text(encoding="utf-8"))


@cache
def _script(character: str) -> str:
    """The beginning of a letter's name in Unicode: "LATIN SMALL LETTER A"."""
    return unicodedata.name(character, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")


_WORDLIKE = re.compile(r"\w")


def _with_punctuation(segments: Iterable[str]) -> list[str]:
    """Words out of segments: what has no letter or digit belongs to the word before, an opening mark to the next."""
    words: list[str] = []
    opening = ""
    for segment in segments:
        if _WORDLIKE.search(segment):
            words.append(opening + segment)
            opening = ""
        elif opening or not words or unicodedata.category(segment[0]) in ("Ps", "Pi"):
            opening += segment
        else:
            words[-1] += segment
    if opening:
        words[-1:] = [(words[-1] if words else "") + opening]
    return words
