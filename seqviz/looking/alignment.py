"""Which words attention links, and how well its heads agree with people's alignments.

Shapes: `L` layers, `H` heads, `T` target length, `S` source length, `N` pairs of sentences,
`V` vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seqviz.constants import MAX_SOURCE_PIECES, MAX_TARGET_PIECES
from seqviz.data import tokenizer as tokenizers
from seqviz.maps import AttentionMap
from seqviz.pieces import SPECIAL, Pieces
from seqviz.translating import forced, notes
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator

# ---------------------------------------------------------------------------------------------
# Statistics of heads


@dataclass(frozen=True)
class HeadStatistics:
    """What each head does on average, for one translation.

    Attributes:
        entropy: mean over the rows, (L, H), bits: 0 where each row looks at one token only, log₂ S where
            it looks at all alike.
        end_mass: mean weight, 0–1, on the source's end token, (L, H); of decoder attention, on the start
            token, which is the special one among its keys.
    """

    entropy: np.ndarray
    end_mass: np.ndarray


def head_statistics(map: AttentionMap) -> HeadStatistics:
    """Entropy and end-token mass of every head.

    Args:
        map: of pieces, special tokens included: what ``translation.attention(kind)`` returns. All rows
            count, also that of the end token.
    Raises:
        ValueError: a map without rows, or one with hidden columns.
    """
    if not map.target_tokens:
        raise ValueError("expected a map with at least one row, got none; translate a text")
    if map.hidden_mass.any():
        raise ValueError(
            "expected a map with its special tokens, got one with hidden columns; "
            "use translation.attention(kind) as it is"
        )
    weights = map.weights.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    special = [i for i, word in enumerate(map.source_pieces.word_of_piece) if word == SPECIAL]
    return HeadStatistics(
        entropy=np.maximum(0.0, -(weights * logarithms).sum(axis=-1)).mean(axis=-1),
        end_mass=weights[..., special].sum(axis=-1).mean(axis=-1),
    )


# ---------------------------------------------------------------------------------------------
# Links between words, and how well they agree with people's


def links(
    map: AttentionMap, layer: int | None = None, head: int | None = None
) -> frozenset[tuple[int, int]]:
    """Link each target word to the source word of the largest weight in its row.

    A target word has no link where a special token holds more than any word, or where its row is zero.
    Of equal weights the first counts.

    Args:
        map: with its special tokens; pieces are merged to words.
        layer, head: as in `AttentionMap.head`: None for the mean.
    Returns:
        (source word, target word) pairs, both counted from 0.
    Raises:
        IndexError: no such layer or head.
        ValueError: a map with hidden columns: the end token could not win.
    """
    if map.hidden_mass.any():
        raise ValueError(
            "expected a map with its special tokens, got one with hidden columns; "
            "use it with specials=True"
        )
    words = map.words(specials=True)
    numbers = words.source_pieces.word_of_piece
    found = set()
    for target, row in zip(words.target_pieces.word_of_piece, words.head(layer, head), strict=True):
        if target != SPECIAL and row.size and row.max() > 0:
            source = numbers[int(row.argmax())]
            if source != SPECIAL:
                found.add((source, target))
    return frozenset(found)


def diagonal_links(source_words: int, target_words: int) -> frozenset[tuple[int, int]]:
    """Link each target word to the source word at the same share of the sentence: no model at all."""
    if not source_words:
        return frozenset()
    return frozenset((int((t + 0.5) * source_words / target_words), t) for t in range(target_words))


def alignment_counts(
    found: frozenset[tuple[int, int]], pair: Mapping[str, Any]
) -> tuple[int, int, int, int]:
    """What the alignment error rate of a pair is made of: |A∩S|, |A∩P|, |A|, |S|.

    Args:
        found: A, links (source word, target word).
        pair: ``sure`` (S) and ``possible`` links in the same order; P is both together.
    """
    sure = {(i, j) for i, j in pair["sure"]}
    possible = sure | {(i, j) for i, j in pair["possible"]}
    return len(found & sure), len(found & possible), len(found), len(sure)


def alignment_error_rate(counts: np.ndarray) -> np.ndarray:
    """1 − (|A∩S| + |A∩P|) / (|A| + |S|), 0–1, lower is better.

    Args:
        counts: sums of `alignment_counts`, (…, 4).
    Returns:
        (…); NaN where there are neither links nor sure links.
    Source: Och & Ney 2003, section 5.
    """
    counts = np.asarray(counts, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - (counts[..., 0] + counts[..., 1]) / (counts[..., 2] + counts[..., 3])


@torch.inference_mode()
def teacher_forced(translator: Translator, source: str, target: str) -> Translation:
    """A given target as if the model had written it: for its attention and saliency.

    Args:
        source: English text that is read at once.
        target: French text, such as a reference; the end token follows.
    Returns:
        a translation with the model's own log-probabilities and attention of that target; its
        ``target_words`` are those of `target`. Other than in a search, unknown pieces are allowed.
    Raises:
        ValueError: a side that is empty or too long.
    """
    started = time.perf_counter()
    languages = (translator.languages.source, translator.languages.target)
    sides = [
        tokenizers.segment(translator.tokenizer, text, language)
        for text, language in zip((source, target), languages, strict=True)
    ]
    for name, side, limit in zip(
        ("source", "target"), sides, (MAX_SOURCE_PIECES, MAX_TARGET_PIECES), strict=True
    ):
        if not 0 < len(side.ids) <= limit:
            raise ValueError(
                f"expected a {name} of 1 to {limit} pieces, got {len(side.ids)}; give one sentence"
            )
    english, french = sides
    end = translator.tokenizer.eos_token
    target_ids = (*french.ids, translator.tokenizer.eos_token_id)
    targets = torch.tensor([target_ids], device=translator.device)
    (scores,) = forced.logits(translator.model, translator.tokenizer, [english.ids], targets)
    wanted = targets[0].unsqueeze(1)
    log_probs = tuple(scores.float().log_softmax(dim=-1).gather(1, wanted)[:, 0].tolist())
    given = len(target_ids)
    return translator.made(
        source=source,
        text=" ".join(Pieces.of(french.pieces.tokens).words),
        source_pieces=english.pieces.with_end(end),
        target_pieces=french.pieces.with_end(end),
        target_ids=target_ids,
        token_log_probs=log_probs,
        score=sum(log_probs) / given,
        seconds=time.perf_counter() - started,
        notes=(notes.forced(given),),
        attentions=translator.attend(english.ids, target_ids),
    )


def forced_pair(translator: Translator, pair: Mapping[str, Any]) -> Translation:
    """`teacher_forced` of an aligned pair, whose link numbers must mean the same words."""
    translation = teacher_forced(translator, pair["english"], pair["french"])
    for side, words in (
        ("english", translation.source_words),
        ("french", translation.target_words),
    ):
        expected = pair[side].split()
        if len(words) != len(expected):
            raise ValueError(
                f"expected the {len(expected)} whitespace words of {pair[side]!r}, the tokenizer sees "
                f"{len(words)}; write the text without doubled or invisible characters"
            )
    for i, j in (*pair["sure"], *pair["possible"]):
        if not (0 <= i < len(translation.source_words) and 0 <= j < len(translation.target_words)):
            raise ValueError(
                f"expected links [English word, French word] within {len(translation.source_words)} and "
                f"{len(translation.target_words)} words, got [{i}, {j}] for {pair['english']!r}; "
                "count words from 0"
            )
    return translation


def cross_attention(translation: Translation) -> AttentionMap:
    """The map of a translation's cross-attention.

    Raises:
        ValueError: a model without one.
    """
    if "cross" not in translation.attentions:
        raise ValueError(
            f"expected a model with cross-attention, got {translation.model}, which has none; "
            "use saliency"
        )
    return translation.attention("cross")


def error_rates(
    maps: Sequence[AttentionMap], pairs: Sequence[Mapping[str, Any]], reading: str = "predicting"
) -> np.ndarray:
    """Alignment error rate of every head over all pairs, (L, H); one map for each pair."""
    words = [map_.at(reading).words(specials=True) for map_ in maps]
    counts = np.array(
        [
            [
                [
                    alignment_counts(links(map_, layer, head), pair)
                    for map_, pair in zip(words, pairs, strict=True)
                ]
                for head in range(words[0].num_heads)
            ]
            for layer in range(words[0].num_layers)
        ]
    )  # (L, H, N, 4)
    return alignment_error_rate(counts.sum(axis=2))


def head_error_rates(
    translator: Translator, pairs: Sequence[Mapping[str, Any]], reading: str = "predicting"
) -> np.ndarray:
    """Alignment error rate of every head of the cross-attention, given the human translation.

    Args:
        pairs: ``english``, ``french``, and ``sure`` and ``possible`` links [English word, French word]
            between whitespace words, counted from 0, as in the project's own aligned texts.
        reading: see `AttentionMap.at`.
    Returns:
        (L, H), 0–1.
    Raises:
        ValueError: no pairs, no sure link in any, a model without cross-attention, a text that is empty
            or too long, links outside the texts.
    """
    if not any(pair["sure"] for pair in pairs):
        raise ValueError(
            f"expected pairs with sure links, got {len(pairs)} pairs without any; align some words"
        )
    maps = [cross_attention(forced_pair(translator, pair)) for pair in pairs]
    return error_rates(maps, pairs, reading)


def choose_head(translator: Translator, pairs: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The head of the cross-attention that agrees best with alignments made by hand.

    Args:
        pairs: as in `head_error_rates`. Score the choice on other pairs: the best of many heads looks
            better on its own pairs than it is.
    Returns:
        layer and head, both counted from 0; of equal ones the first.
    Raises:
        ValueError: see `head_error_rates`.
    """
    return best_head(head_error_rates(translator, pairs))


def best_head(rates: np.ndarray) -> tuple[int, int]:
    """Layer and head of the lowest rate of (L, H); of equal ones the first."""
    layer, head = np.unravel_index(int(rates.argmin()), rates.shape)
    return int(layer), int(head)
