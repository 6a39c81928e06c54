"""Whether what is trained on was read in the language that the model will say it reads."""

from __future__ import annotations

from collections.abc import Sequence

from seqviz.data.encoded import EncodedCorpus
from seqviz.data.epochs import WeightedCorpus
from seqviz.text_languages import LanguagePair
from seqviz.training.errors import TrainingError


def check_languages(
    languages: LanguagePair, sources: Sequence[WeightedCorpus], dev: EncodedCorpus | None
) -> None:
    """What finds the words of both is there, and the words of the corpora are those of the source language.

    Raises:
        LanguageError, TrainingError: they are not.
    """
    languages.check()
    expected = None if languages.source.is_spaced else languages.source.code
    for corpus in (*(source.corpus for source in sources), *([] if dev is None else [dev])):
        got = corpus.information.get("source_language")
        if got != expected:
            raise TrainingError(
                f"expected the words of {corpus.information['name']} counted for {languages.source.code}, got "
                f"{got or 'words between spaces'}; give encode_corpus the same source_language as train"
            )
