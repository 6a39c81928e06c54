"""Texts that are scored together, and the counts that every score of them is made of.

Shapes: `N` texts of a group, `R` resamples.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from seqviz import coverage, scores
from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.measuring.outputs import Output, Outputs
from seqviz.measuring.plan import DEFAULT, LONG, Plan, words_in
from seqviz.text_languages import LanguagePair

THIN = 50
"""A bucket of fewer sentences is marked as thin: its score says little."""


@dataclass(frozen=True)
class Group:
    """Texts that are scored together; each is one or more parts translated on their own."""

    key: str
    low: int
    high: int
    parts: int
    texts: tuple[tuple[tuple[str, str], ...], ...]  # text → parts → (source, target)
    languages: LanguagePair = DEFAULT


def everything(plan: Plan) -> Group:
    """All sentences."""
    return natural(plan, (1, MAX_SOURCE_WORDS))


def natural(plan: Plan, bucket: tuple[int, int]) -> Group:
    """Sentences of so many words."""
    low, high = bucket
    source = plan.languages.source
    texts = tuple(
        ((p.source, p.target),) for p in plan.pairs if low <= words_in(p.source, source) <= high
    )
    return Group(f"natural-{low}-{high}", low, high, 1, texts, plan.languages)


def same_content(plan: Plan, parts: int) -> Group:
    """Runs of sentences, each cut into so many parts."""
    low, high = (int(edge / parts + 0.5) for edge in LONG)
    texts = tuple(run.cuts[parts] for run in plan.runs)
    return Group(f"same-content-{parts}", low, high, parts, texts, plan.languages)


class Marker:
    """Found words of a text, each text looked at once."""

    def __init__(self, lexicon: coverage.Lexicon | None) -> None:
        self.lexicon = lexicon
        self._known: dict[tuple[str, str], list[coverage.Word]] = {}

    def marks(self, source: str, output: str) -> list[coverage.Word]:
        """`coverage.mark` of the source in the output."""
        key = (source, output)
        if key not in self._known:
            self._known[key] = coverage.mark(source, output, self.lexicon)
        return self._known[key]

    def __call__(self, source: str, output: str) -> tuple[np.ndarray, np.ndarray]:
        """For each word of the source: 1 if it is found, 1 if it was judged."""
        marks = self.marks(source, output)
        return (
            np.array([mark.found is True for mark in marks], float),
            np.array([mark.found is not None for mark in marks], float),
        )


@dataclass(frozen=True)
class Counts:
    """Counts of each text of a group: what every score of any resample is made of."""

    bleu: np.ndarray  # (N, BLEU_COUNTS)
    chrf: np.ndarray  # (N, CHRF_COUNTS)
    loss: np.ndarray  # (N, 2): loss, tokens
    found: np.ndarray  # (N, 2): found, judged
    repeated: np.ndarray  # (N, 2): parts that repeat themselves, parts
    limit: np.ndarray  # (N, 2): parts cut at the output limit, parts

    @classmethod
    def of(cls, group: Group, outputs: Outputs, marker: Marker) -> Counts:
        hypotheses, references = [], []
        loss = np.zeros((len(group.texts), 2))
        found = np.zeros((len(group.texts), 2))
        repeated = np.zeros((len(group.texts), 2))
        limit = np.zeros((len(group.texts), 2))
        for number, text in enumerate(group.texts):
            made: list[Output] = []
            for source, target in text:
                if source not in outputs.translations:
                    raise ValueError(f"expected a translation of {source[:60]!r}, found none")
                made.append(outputs.translations[source])
                nats = outputs.losses.get((source, target))
                if nats is not None:
                    loss[number] += nats.sum(), len(nats)
                if marker.lexicon is not None:
                    hits, judged = marker(source, made[-1].text)
                    found[number] += hits.sum(), judged.sum()
            repeated[number] = sum(output.repeated for output in made), len(made)
            limit[number] = sum(output.limit for output in made), len(made)
            language = group.languages.target
            hypotheses.append(language.join(output.text for output in made if output.text))
            references.append(language.join(target for _, target in text))
        bleu, chrf = scores.sentence_counts(hypotheses, references, group.languages.target)
        return cls(
            bleu=bleu,
            chrf=chrf,
            loss=loss,
            found=found,
            repeated=repeated,
            limit=limit,
        )


class Draws:
    """Resamples by size of the group: the same for every model, and in both groups of an effect."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed = number, seed
        self._last: tuple[str, np.ndarray] | None = None

    def __call__(self, group: Group) -> np.ndarray:
        # Cuts of the same runs share their draws: they are the same texts.
        key = "same-content" if group.key.startswith("same-content") else group.key
        if self._last is None or self._last[0] != key:
            seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
            draws = scores.resamples(len(group.texts), self.number, (self.seed, seed))
            self._last = (key, draws)
        return self._last[1]


def rounded(value: float, digits: int = 3) -> float | None:
    """A number that JSON can hold, None where there is none."""
    return round(float(value), digits) if np.isfinite(value) else None
