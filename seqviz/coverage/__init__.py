"""Found or not found: does a French output hold a likely translation of each English content word?

    marks = coverage.mark("The cat sleeps.", "Le chien dort.")
    [word.text for word in marks if word.found is False]    # ["cat"]

For readers who know no French, and for models without attention. The answer comes from a lexical table
that IBM Model 1 (Brown et al. 1993) gives in both directions; "not found" is a sign that the word may
be missing, no proof: a free translation is not found either.

Words are lower-cased and stemmed (Snowball), accents are dropped. A source word that occurs more than
once needs as many matches, so that a dropped repeat shows; different source words may share a match
(*United States*, *États-Unis*).
"""

from seqviz.coverage.lexicon import SCHEMA, Lexicon, LexiconError, save
from seqviz.coverage.marks import Word, counts, evaluate, mark
from seqviz.coverage.memory import Remembered, forgetting, remembered, states
from seqviz.coverage.model1 import Alignments, align
from seqviz.coverage.stems import FUNCTION_WORDS
from seqviz.coverage.trainer import (
    MAX_MEANINGS,
    MAX_TRANSLATIONS,
    MAX_WORDS,
    estimate,
    meanings_of_forms,
)

__all__ = [
    "FUNCTION_WORDS",
    "MAX_MEANINGS",
    "MAX_TRANSLATIONS",
    "MAX_WORDS",
    "SCHEMA",
    "Alignments",
    "Lexicon",
    "LexiconError",
    "Remembered",
    "Word",
    "align",
    "counts",
    "estimate",
    "evaluate",
    "forgetting",
    "mark",
    "meanings_of_forms",
    "remembered",
    "save",
    "states",
]
