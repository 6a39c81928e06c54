"""What a pair of a public corpus must be to come into a corpus file.

Which pairs of a corpus file are then trained on, `seqviz.data.kept` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from seqviz.data.pairs import CorpusError, Pair, pair_digest
from seqviz.data.tokenizer import normalize

MAX_RATIO = 2.5
"""Characters of one side over those of the other; what exceeds it is seldom a translation."""

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


@dataclass
class Cleaner:
    """What a pair must be to be kept; `clean` returns the pair, or the reason for which it is dropped.

    Attributes:
        languages: of source and target.
        identify: names the language of a text, or None for no check.
    """

    languages: tuple[str, str]
    identify: Callable[[str], str] | None = None
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def clean(self, pair: Pair) -> Pair | str:
        sides = [self._plain(text, self.languages[i]) for i, text in enumerate(pair[1:])]
        source, target = sides
        if not source or not target:
            return "empty"
        if max(len(source), len(target)) > MAX_RATIO * min(len(source), len(target)):
            return "lengths differ"
        if self.identify and self._foreign(source, target):
            return "other language"
        digest = pair_digest(source, target)
        if digest in self._seen:
            return "duplicate"
        self._seen.add(digest)
        return Pair(pair.document, source, target)

    @staticmethod
    def _plain(text: str, language: str) -> str:
        plain = normalize(text)
        return restore_ligatures(plain) if language == "fr" else plain

    def _foreign(self, source: str, target: str) -> bool:
        """A side in the other's language, or one of ten words or more in any other than its own.

        Short texts are often misjudged, seldom as the very language of the other side.
        """
        assert self.identify is not None
        for text, own, other in (
            (source, *self.languages),
            (target, *reversed(self.languages)),
        ):
            found = self.identify(text)
            if found != own and (len(text.split()) >= 10 or found == other):
                return True
        return False
