"""Scores of translations against references, on plain text, by sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from seqviz.translation import Translator


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Corpus BLEU with its signature.

    Returns:
        ``score`` 0–100, ``signature``, ``sentences``, ``brevity_penalty``, ``length_ratio``.
    Raises:
        ValueError: nothing to score, or counts that differ.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many hypotheses as references, got {len(hypotheses)} and {len(references)}"
        )
    if not references:
        raise ValueError("expected at least one sentence to score, got none")
    metric = BLEU()
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return {
        "score": round(result.score, 2),
        "signature": str(metric.get_signature()),
        "sentences": len(references),
        "brevity_penalty": round(result.bp, 4),
        "length_ratio": round(result.ratio, 4),
    }


def sentence_scores(hypothesis: str, reference: str) -> dict[str, float]:
    """Sentence BLEU (smoothed, effective order) and sentence chrF of one translation, 0–100."""
    bleu = BLEU(effective_order=True).sentence_score(hypothesis, [reference])
    chrf = CHRF().sentence_score(hypothesis, [reference])
    return {"bleu": bleu.score, "chrf": chrf.score}


def score_pairs(
    translator: Translator, sources: Sequence[str], references: Sequence[str], num_beams: int = 1
) -> dict[str, Any]:
    """Translate sources in batches and score them, see `corpus_bleu`."""
    translations = translator.translate(list(sources), num_beams=num_beams)
    return corpus_bleu([t.text for t in translations], references)
