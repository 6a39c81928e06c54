"""Scores of translations against references, on plain text, and intervals around them.

BLEU (Papineni et al. 2002) and chrF (Popović 2015) as sacreBLEU computes them. A score of many
sentences is computed from sums of counts, so the counts of each sentence are taken once; then the
score of any selection of sentences, and of thousands of resamples, is arithmetic on arrays.

Intervals are percentiles of the paired bootstrap (Koehn 2004): sentences are drawn with replacement,
the same ones for every model.

Shapes: `N` sentences, `R` resamples, `K` counts of a sentence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqviz import given
from seqviz.text_languages import LanguageError, TextLanguage

BLEU_COUNTS = 10
"""Counts of a sentence for BLEU: output length, reference length, matching and all 1- to 4-grams."""
CHRF_COUNTS = 18
"""Counts of a sentence for chrF: 1- to 6-grams of output, of reference, matching; by order."""


def _check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many hypotheses as references, got {len(hypotheses)} and {len(references)}"
        )


def _composed(texts: Sequence[str]) -> list[str]:
    """Letters and their accents as one character (NFC): the models write them so."""
    return [unicodedata.normalize("NFC", text) for text in given.listed(texts)]


def bleu_metric(target_language: str | TextLanguage = "fr", **settings: Any) -> BLEU:
    """sacreBLEU's BLEU with the tokenizer of a language.

    Args:
        target_language: code of ISO 639-1.
        settings: further ones of sacreBLEU.
    Raises:
        LanguageError: no such language, or its tokenizer is not installed.
    """
    language = TextLanguage.of(target_language)
    try:
        return BLEU(tokenize=language.bleu_tokenizer, **settings)
    except RuntimeError as error:
        raise LanguageError(
            f"BLEU of {language.name} needs the tokenizer {language.bleu_tokenizer} of sacreBLEU; "
            "pip install 'seqviz[languages]'"
        ) from error


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], target_language: str = "fr"
) -> dict[str, Any]:
    """Corpus BLEU with its signature, which names the tokenizer.

    Args:
        target_language: of both, a code of ISO 639-1.
    Returns:
        ``score`` 0–100, ``signature``, ``sentences``, ``brevity_penalty``, ``length_ratio``.
    Raises:
        TypeError: something that is not text; the message says where it stands.
        ValueError: nothing to score, or counts that differ.
        LanguageError: see `bleu_metric`.
    """
    hypotheses, references = _composed(hypotheses), _composed(references)
    _check_counts(hypotheses, references)
    if not references:
        raise ValueError("expected at least one sentence to score, got none")
    metric = bleu_metric(target_language)
    result = metric.corpus_score(hypotheses, [references])
    return {
        "score": round(result.score, 2),
        "signature": str(metric.get_signature()),
        "sentences": len(references),
        "brevity_penalty": round(result.bp, 4),
        "length_ratio": round(result.ratio, 4),
    }


def sentence_scores(
    hypothesis: str, reference: str, target_language: str = "fr"
) -> dict[str, float]:
    """Sentence BLEU (smoothed, effective order) and sentence chrF of one translation, 0–100."""
    hypothesis, reference = _composed([hypothesis, reference])
    metric = bleu_metric(target_language, effective_order=True)
    bleu = metric.sentence_score(hypothesis, [reference])
    chrf = CHRF().sentence_score(hypothesis, [reference])
    return {"bleu": bleu.score, "chrf": chrf.score}


def signatures(target_language: str | TextLanguage = "fr") -> dict[str, str]:
    """sacreBLEU's signatures of the corpus scores below, by name."""
    made = {}
    for name, metric in (("bleu", bleu_metric(target_language)), ("chrf", CHRF())):
        metric.corpus_score(["a"], [["a"]])  # a signature counts references, so it needs some
        made[name] = str(metric.get_signature())
    return made


def sentence_counts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str | TextLanguage = "fr",
) -> tuple[np.ndarray, np.ndarray]:
    """The counts that scores are made of, sentence by sentence.

    Args:
        target_language: whose words BLEU counts, a code of ISO 639-1.
    Returns:
        for BLEU (N, `BLEU_COUNTS`) and for chrF (N, `CHRF_COUNTS`), float64.
    Raises:
        ValueError: numbers of sentences that differ.
    """
    hypotheses, references = _composed(hypotheses), _composed(references)
    _check_counts(hypotheses, references)
    found = []
    for metric, width in ((bleu_metric(target_language), BLEU_COUNTS), (CHRF(), CHRF_COUNTS)):
        # sacreBLEU's own bootstrap starts from these; a test holds our scores to its scores.
        rows = metric._extract_corpus_statistics(hypotheses, [references]) if references else []
        found.append(np.array(rows, np.float64).reshape(len(references), width))
    return found[0], found[1]


def bleu(counts: np.ndarray) -> np.ndarray:
    """Corpus BLEU, 0–100, of summed counts.

    Args:
        counts: (…, `BLEU_COUNTS`).
    Returns:
        (…); smoothed as sacreBLEU's default: an order without a match counts half a match, the next
        such order a quarter, and so on.
    """
    correct, total = counts[..., 2:6], counts[..., 6:10]
    halvings = np.cumsum(correct == 0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(correct > 0, correct, 0.5**halvings) / total
        logarithm = np.log(precision).sum(axis=-1) / 4
    # Where nothing matches, or no output has four tokens in a row, the score is 0.
    possible = (correct.sum(axis=-1) > 0) & (total[..., 3] > 0)
    return 100 * brevity_penalty(counts) * np.exp(np.where(possible, logarithm, -np.inf))


def brevity_penalty(counts: np.ndarray) -> np.ndarray:
    """Factor 0–1 with which BLEU punishes output shorter than the reference, of summed counts (…, K)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        penalty = np.exp(np.minimum(0.0, 1.0 - counts[..., 1] / counts[..., 0]))
    return np.where(counts[..., 0] > 0, penalty, np.where(counts[..., 1] > 0, 0.0, 1.0))


def length_ratio(counts: np.ndarray) -> np.ndarray:
    """Output length over reference length in BLEU's tokens, of summed counts (…, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return counts[..., 0] / counts[..., 1]


def chrf(counts: np.ndarray) -> np.ndarray:
    """Corpus chrF (β = 2), 0–100, of summed counts (…, `CHRF_COUNTS`)."""
    hypothesis, reference, match = counts[..., 0::3], counts[..., 1::3], counts[..., 2::3]
    used = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(1, used.sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(used, match / hypothesis, 0.0).sum(axis=-1) / orders
        recall = np.where(used, match / reference, 0.0).sum(axis=-1) / orders
        score = 5 * precision * recall / (4 * precision + recall)
    return 100 * np.where(precision + recall > 0, score, 0.0)


def ratio(counts: np.ndarray) -> np.ndarray:
    """First count over the second, such as loss over tokens, of summed counts (…, 2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return counts[..., 0] / counts[..., 1]


def resamples(size: int, number: int, seed: Sequence[int]) -> np.ndarray:
    """How often each of `size` sentences is drawn in each of `number` resamples: (R, N).

    NaN for one sentence: it says nothing about others, and an interval of width 0 would say that it does.
    """
    if size == 1:
        return np.full((number, 1), np.nan)
    random = np.random.default_rng(list(seed))
    draws = np.empty((number, size))
    for row in draws:
        row[:] = np.bincount(random.integers(0, size, size), minlength=size)
    return draws


def resampled(
    score: Callable[[np.ndarray], np.ndarray], counts: np.ndarray, draws: np.ndarray
) -> np.ndarray:
    """A score of every resample.

    Args:
        score: of summed counts, such as `bleu`.
        counts: (N, K).
        draws: from `resamples`, (R, N); the same for every model that is compared.
    Returns:
        (R,); NaN where `draws` are.
    """
    if len(counts) != 1:
        return score(draws @ counts)
    return np.where(np.isnan(draws[:, 0]), np.nan, score(np.nan_to_num(draws) @ counts))


def interval(values: np.ndarray) -> tuple[float, float] | None:
    """Middle 95 % of resampled values; None where some of them do not exist."""
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
