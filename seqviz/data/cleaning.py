"""What a pair of a public corpus must be to come into a corpus file.

Which pairs of a corpus file are then trained on, `seqviz.data.kept` says.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from seqviz.data.pairs import CorpusError, Pair, pair_digest
from seqviz.data.tokenizer import normalize
from seqviz.text_languages import TextLanguage

MAX_RATIO = 2.5
"""Characters of one side over those of the other, in a corpus whose sides are usually as long as each other;
what exceeds it is seldom a translation."""
LIKE_ONE = 1.5
"""A typical ratio of characters up to this, either way, counts as 1: that of languages with one kind of script."""
SLACK = 3
"""Characters by which short texts may differ more where the typical ratio is another: one Chinese character
stands for several letters, so lengths go in steps."""
ENOUGH_WORDS, ENOUGH_CHARACTERS = 10, 15
"""A text so long, without spaces between its words in characters, is seldom taken for another language."""

_OE = re.compile(
    r"\b(?:oeuvr\w*|oeil\w*|oeufs?|oecum\w*|oesoph\w*|oestrog\w*|oenolog\w*|oed[eè]m\w*|boeufs?|choeurs?"
    r"|coeurs?|écoeur\w*|rancoeurs?|manoeuvr\w*|désoeuvr\w*|moeurs|noeuds?|soeurs?|voeux?|foetus|foetal\w*)\b",
    re.IGNORECASE,
)


def restore_ligatures(text: str) -> str:
    """French words that lost their œ get it back: "soeur" → "sœur", but "coexister", "moelle" stay."""

    def restored(match: re.Match[str]) -> str:
        word = match[0]
        return word.replace("oe", "œ").replace("OE", "Œ").replace("Oe", "Œ")

    return _OE.sub(restored, text) if "oe" in text.lower() else text


def language_check() -> Callable[[str], str]:
    """A function that names the language of a text.

    Raises:
        CorpusError: the package that knows languages is not installed.
    """
    try:
        from py3langid.langid import (  # type: ignore[import-not-found]
            MODEL_FILE,
            LanguageIdentifier,
        )
    except ModuleNotFoundError as error:
        if error.name != "py3langid":
            raise
        raise CorpusError(
            "the check of languages needs the package py3langid; pip install 'seqviz[corpora]', or "
            "go without by --no-language-check"
        ) from error
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    return lambda text: identifier.classify(text)[0]


class TypicalRatio:
    """How many characters the target of a corpus usually has for one of the source.

    The middle one of all pairs, each counting by its length: short texts say little.
    """

    def __init__(self) -> None:
        self._weights: Counter[int] = Counter()  # by hundredths of the logarithm

    def add(self, pair: Pair) -> None:
        source, target = len(pair.source), len(pair.target)
        if source and target:
            self._weights[round(100 * math.log(target / source))] += source + target

    @property
    def value(self) -> float:
        """1 without pairs, and where it is near enough to 1, see `LIKE_ONE`."""
        half, passed = sum(self._weights.values()) / 2, 0
        for hundredths in sorted(self._weights):
            passed += self._weights[hundredths]
            if passed >= half:
                ratio = math.exp(hundredths / 100)
                return 1.0 if 1 / LIKE_ONE <= ratio <= LIKE_ONE else round(ratio, 2)
        return 1.0


@dataclass
class Cleaner:
    """What a pair must be to be kept; `clean` returns the pair, or the reason for which it is dropped.

    Attributes:
        languages: codes of source and target.
        identify: names the language of a text, or None for no check.
        typical_ratio: of the corpus, see `TypicalRatio`; a pair is dropped that is too far from it.
    """

    languages: tuple[str, str]
    identify: Callable[[str], str] | None = None
    typical_ratio: float = 1.0
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def clean(self, pair: Pair) -> Pair | str:
        return self.judge(self.plain(pair))

    def plain(self, pair: Pair) -> Pair:
        """The pair as the tokenizer sees it."""
        source, target = (self._plain(text, self.languages[i]) for i, text in enumerate(pair[1:]))
        return Pair(pair.document, source, target)

    def judge(self, plain: Pair) -> Pair | str:
        """As `clean`, of what `plain` returned."""
        source, target = plain.source, plain.target
        if not source or not target:
            return "empty"
        if self._lengths_differ(len(source), len(target)):
            return "lengths differ"
        if self.identify and self._foreign(source, target):
            return "other language"
        digest = pair_digest(source, target)
        if digest in self._seen:
            return "duplicate"
        self._seen.add(digest)
        return plain

    def _lengths_differ(self, source: float, target: float) -> bool:
        """Lengths in characters; the side that usually has more is scaled down to the other's."""
        slack = 0 if self.typical_ratio == 1 else SLACK
        if self.typical_ratio < 1:
            source *= self.typical_ratio
        else:
            target /= self.typical_ratio
        return max(source, target) > MAX_RATIO * min(source, target) + slack

    @staticmethod
    def _plain(text: str, language: str) -> str:
        plain = normalize(text)
        return restore_ligatures(plain) if language == "fr" else plain

    def _foreign(self, source: str, target: str) -> bool:
        """A side in the other's language, or one that is long enough in any other than its own.

        Short texts are often misjudged, seldom as the very language of the other side.
        """
        assert self.identify is not None
        for text, own, other in (
            (source, *self.languages),
            (target, *reversed(self.languages)),
        ):
            found = self.identify(text)
            if found != own and (found == other or self._is_long(text, own)):
                return True
        return False

    @staticmethod
    def _is_long(text: str, language: str) -> bool:
        if TextLanguage.of(language).is_spaced:
            return len(text.split()) >= ENOUGH_WORDS
        return len(text) >= ENOUGH_CHARACTERS
