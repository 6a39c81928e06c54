"""Which source words an output word depends on, and which head looks where people would align.

    translation = translator.translate("The cat saw the dog.")
    saliency(translator, translation).shares()  # a map, for models with and without attention

Saliency is gradient × input: to first order, what the log-probability of an output token would lose if
the embedding of a source token were scaled away. It says what this model's number depends on here, not
why, and not what people would align.

Shapes: `B` copies of the source in a batch, `L` layers, `H` heads, `T` target length, `S` source length,
`D` width, `V` vocabulary.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from seqviz import report, scores
from seqviz import tokenizer as tokenizers
from seqviz.architectures.recurrent import RecurrentForConditionalGeneration
from seqviz.attention_map import AttentionMap
from seqviz.corpus import MAX_SOURCE_PIECES, MAX_TARGET_PIECES
from seqviz.shipped import models_folder
from seqviz.translation import Note, Translation, Translator

UNITS = ("words", "pieces")

MAX_COPIES = 32
"""Output tokens whose gradients are taken at once; more of them saves nothing more."""

MAX_BATCH_TOKENS = 5_000
"""Source and target tokens, all copies together, that a backward pass keeps in memory."""


# ---------------------------------------------------------------------------------------------
# Saliency


@dataclass(frozen=True)
class Saliency:
    """What the log-probability of each output token depends on, for one translation.

    Attributes:
        model: name of the model.
        values: signed, (T, S), nats: the derivative of the log-probability of target token t by a factor
            on the embedding of source token s, at 1. Above 0 where more of the source token makes the
            target token more probable.
        source_tokens, target_tokens: labels of columns and rows; pieces, or words after `words`.
        source_words, target_words: number of the word each token lies in; -1 for special tokens.
        source_labels, target_labels: text of those words.
    """

    model: str
    values: np.ndarray = field(repr=False)
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    source_words: tuple[int, ...] = field(repr=False)
    target_words: tuple[int, ...] = field(repr=False)
    source_labels: tuple[str, ...] = field(repr=False)
    target_labels: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        expected = (len(self.target_tokens), len(self.source_tokens))
        if self.values.shape != expected:
            raise ValueError(
                f"expected values {expected} for {expected[0]} target and {expected[1]} source tokens, "
                f"got {self.values.shape}"
            )
        self._map(self.values)  # checks words and labels

    def words(self) -> Saliency:
        """Values summed over the pieces of each word on both sides; special tokens stay as they are.

        The log-probability of a word is the sum over its pieces, and scaling a word scales all of its
        pieces, so the sums are again derivatives, of words by words.
        """
        merged = self._map(self.values).words(specials=True)
        by_source = np.add.reduceat(self.values, _starts(self.source_words), axis=1)
        return replace(
            self,
            values=np.add.reduceat(by_source, _starts(self.target_words), axis=0),
            source_tokens=merged.source_tokens,
            target_tokens=merged.target_tokens,
            source_words=merged.source_words,
            target_words=merged.target_words,
        )

    def shares(self, unit: str = "words", specials: bool = False) -> AttentionMap:
        """How the dependence of each row is shared out: a map of the kind "saliency".

        Signed values are first summed over the pieces of words, then the sign is dropped, then each row
        is divided by its sum over *all* columns. A row of zeros (a token that depends on no source token)
        stays zeros.

        Args:
            unit: one of `UNITS`.
            specials: keep special tokens; otherwise they are hidden and `hidden_mass` says what they held.
        Returns:
            one layer and head, (1, 1, T, S); shown and hidden weights of a row sum to 1.
        Raises:
            ValueError: an unknown unit.
        """
        if unit not in UNITS:
            raise ValueError(f"expected unit to be one of {', '.join(UNITS)}; got {unit!r}")
        merged = self.words() if unit == "words" else self
        sizes = np.abs(merged.values)
        largest = sizes.max(axis=1, keepdims=True, initial=0.0)
        sizes = sizes / np.where(largest > 0, largest, 1.0)  # tiny rows would lose their digits
        totals = sizes.sum(axis=1, keepdims=True)
        shared = merged._map(sizes / np.where(totals > 0, totals, 1.0))
        return shared if specials else shared.without_specials()

    def _map(self, values: np.ndarray) -> AttentionMap:
        return AttentionMap(
            kind="saliency",
            model=self.model,
            weights=values[np.newaxis, np.newaxis],
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
            source_words=self.source_words,
            target_words=self.target_words,
            source_labels=self.source_labels,
            target_labels=self.target_labels,
            hidden_mass=np.zeros((1, 1, len(self.target_tokens))),
        )


def _starts(words: Sequence[int]) -> list[int]:
    """Where a new word or a special token begins."""
    return [i for i, word in enumerate(words) if word < 0 or i == 0 or words[i - 1] != word]


def saliency(translator: Translator, translation: Translation) -> Saliency:
    """Gradient × input of each token of a translation, with respect to the source.

    Args:
        translator: any of the models; it may be another one than made the translation.
        translation: of a text in one part.
    Raises:
        TypeError: something that is no translation.
        ValueError: an empty translation, or one in several parts (take one of ``.parts``).
    Source: see `saliency_values`.
    """
    if not isinstance(translation, Translation):
        raise TypeError(
            f"expected a translation, got {type(translation).__name__}; use translator.translate(text)"
        )
    if translation.parts:
        raise ValueError(
            f"the text was translated in {len(translation.parts)} parts; use "
            "saliency(translator, translation.parts[i])"
        )
    if not translation.source_tokens or not translation.target_ids:
        raise ValueError(
            "expected a translation with source and target tokens, got an empty one; "
            "translate a text that is not empty"
        )
    source_ids = translator.tokenizer.convert_tokens_to_ids(list(translation.source_tokens[:-1]))
    return Saliency(
        model=translator.name,
        values=saliency_values(translator, source_ids, translation.target_ids),
        source_tokens=translation.source_tokens,
        target_tokens=translation.target_tokens,
        source_words=translation.source_word_index,
        target_words=translation.target_word_index,
        source_labels=translation.source_words,
        target_labels=translation.target_words,
    )


def saliency_values(
    translator: Translator,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    batch_size: int | None = None,
) -> np.ndarray:
    """Gradient × input of any target given any source, teacher-forced.

    values[t, s] = Σ_d x_sd ∂ log p(y_t | y_<t, x) / ∂ x_sd, where x_s is the embedding of source token s
    as the encoder reads it, before positions are added. The one table also serves the decoder; that use
    is no part of it.

    The source is copied B times and the target read B tokens at a time; copy i gives the gradient of
    the i-th of them. All backward passes share one encoder pass and run no decoder step after theirs.

    Args:
        source_ids: without the end token.
        target_ids: with the end token if it was reached.
        batch_size: B; None takes `MAX_COPIES`, fewer for long texts. Changes time and memory only.
    Returns:
        signed, in nats, (T, S) with the source's end token last, float64.
    Raises:
        TypeError: ids that are not whole numbers.
        ValueError: no target, ids outside the vocabulary, a batch size below 1.
    Source: gradients as saliency: Simonyan et al. 2014; times the input: Shrikumar et al. 2016.
    """
    size = len(translator.tokenizer)
    source = [*_checked("source_ids", source_ids, size), translator.tokenizer.eos_token_id]
    target = _checked("target_ids", target_ids, size)
    if not target:
        raise ValueError(
            "expected at least one target token, got none; give the end token where the output is empty"
        )
    if batch_size is None:
        batch_size = max(1, min(MAX_COPIES, MAX_BATCH_TOKENS // (len(source) + len(target))))
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"expected batch_size to be a whole number from 1, got {batch_size!r}")
    passes = -(-len(target) // batch_size)
    copies = -(-len(target) // passes)

    model, device = translator.model, translator.device
    core = model.model
    # Callers may sit in inference mode, whose tensors know no gradients.
    with torch.inference_mode(False), torch.enable_grad(), _backward_in_eval_mode(device):
        scaled = core.encoder.embed_tokens(torch.tensor([source], device=device))
        scaled = scaled.detach() * core.encoder.embed_scale  # (1, S, D)
        embedded = scaled.expand(copies, -1, -1).clone().requires_grad_()  # (B, S, D)
        mask = torch.ones(embedded.shape[:2], dtype=torch.long, device=device)
        encoded = core.encoder(inputs_embeds=embedded, attention_mask=mask)
        start = model.config.decoder_start_token_id
        inputs = torch.tensor([start, *target[:-1]], device=device)
        wanted = torch.tensor(target, device=device)
        cache = None
        rows = []
        for begin in range(0, len(target), copies):
            labels = wanted[begin : begin + copies]
            each = torch.arange(len(labels), device=device)
            output, cache = _decode(
                model, inputs[begin : begin + copies].expand(copies, -1), encoded, mask, cache
            )  # (B, ≤ B, D)
            logits = model.lm_head(output[each, each]) + model.final_logits_bias  # (≤ B, V)
            log_probs = logits.float() if logits.element_size() < 4 else logits
            log_probs = log_probs.log_softmax(dim=-1)[each, labels]
            (gradient,) = torch.autograd.grad(
                log_probs.sum(), embedded, retain_graph=begin + copies < len(target)
            )
            rows.append((gradient.double() * embedded.detach()).sum(dim=-1)[: len(labels)])
        return torch.cat(rows).cpu().numpy()


def _checked(name: str, ids: Sequence[int], size: int) -> list[int]:
    try:
        found = list(map(operator.index, ids))
    except TypeError as error:
        raise TypeError(f"expected {name} as whole numbers: {error}") from None
    for place, id_ in enumerate(found):
        if not 0 <= id_ < size:
            raise ValueError(
                f"expected {name} from 0 to {size - 1}, got {id_} at place {place}; use ids of the "
                "model's own tokenizer"
            )
    return found


def _decode(
    model: PreTrainedModel, input_ids: Tensor, encoded: Any, source_mask: Tensor, cache: Any
) -> tuple[Tensor, Any]:
    """Decoder states (B, T, D) for the next target tokens (B, T), and the cache behind them."""
    decoder = model.model.decoder
    if isinstance(model, RecurrentForConditionalGeneration):
        output, cache, _, _ = decoder(input_ids, encoded, source_mask.bool(), cache)
        return output, cache
    if cache is None:
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    output = decoder(
        input_ids=input_ids,
        encoder_hidden_states=encoded.last_hidden_state,
        encoder_attention_mask=source_mask,
        cache=cache,
        use_cache=True,
    ).last_hidden_state
    return output, cache


_cudnn = threading.Lock()


@contextlib.contextmanager
def _backward_in_eval_mode(device: torch.device) -> Iterator[None]:
    """Let recurrent layers run backward in evaluation mode: on CUDA, cuDNN's own kernels refuse.

    The switch is one for the whole process, so two threads must not interleave its setting.
    """
    if device.type != "cuda":
        yield
        return
    with _cudnn, torch.backends.cudnn.flags(enabled=False):
        yield


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
    special = [i for i, word in enumerate(map.source_words) if word < 0]
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
    found = set()
    for target, row in zip(words.target_words, words.head(layer, head), strict=True):
        if target >= 0 and row.size and row.max() > 0:
            source = words.source_words[int(row.argmax())]
            if source >= 0:
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
    sides = [tokenizers.segment(translator.tokenizer, text) for text in (source, target)]
    for name, side, limit in zip(
        ("source", "target"), sides, (MAX_SOURCE_PIECES, MAX_TARGET_PIECES), strict=True
    ):
        if not 0 < len(side.ids) <= limit:
            raise ValueError(
                f"expected a {name} of 1 to {limit} pieces, got {len(side.ids)}; give one sentence"
            )
    english, french = sides
    eos, end = translator.tokenizer.eos_token_id, translator.tokenizer.eos_token
    target_ids = (*french.ids, eos)
    start = translator.model.config.decoder_start_token_id
    device = translator.device
    source_ids = torch.tensor([[*english.ids, eos]], device=device)
    logits = translator.model(
        input_ids=source_ids,
        attention_mask=torch.ones_like(source_ids),
        decoder_input_ids=torch.tensor([[start, *french.ids]], device=device),
        use_cache=False,
    ).logits[0]  # (T, V)
    wanted = torch.tensor(target_ids, device=device).unsqueeze(1)
    log_probs = tuple(logits.float().log_softmax(dim=-1).gather(1, wanted)[:, 0].tolist())
    given = len(target_ids)
    return Translation(
        model=translator.name,
        source=source,
        text=" ".join(french.words),
        source_tokens=(*english.pieces, end),
        target_tokens=(*french.pieces, end),
        source_words=english.words,
        target_words=french.words,
        source_word_index=(*english.word_of_piece, -1),
        target_word_index=(*french.word_of_piece, -1),
        target_ids=target_ids,
        token_log_probs=log_probs,
        score=sum(log_probs) / given,
        seconds=time.perf_counter() - started,
        notes=(Note("forced", f"the first {given} pieces were given", (given,)),),
        attentions=translator.attend(english.ids, target_ids),
    )


def _forced(translator: Translator, pair: Mapping[str, Any]) -> Translation:
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


def _cross(translation: Translation) -> AttentionMap:
    if "cross" not in translation.attentions:
        raise ValueError(
            f"expected a model with cross-attention, got {translation.model}, which has none; "
            "use saliency"
        )
    return translation.attention("cross")


def _head_counts(maps: Sequence[AttentionMap], pairs: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """`alignment_counts` of every head and pair, (L, H, N, 4)."""
    words = [map_.words(specials=True) for map_ in maps]
    return np.array(
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
    )


def head_error_rates(translator: Translator, pairs: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Alignment error rate of every head of the cross-attention, given the human translation.

    Args:
        pairs: ``english``, ``french``, and ``sure`` and ``possible`` links [English word, French word]
            between whitespace words, counted from 0, as in the project's ``texts.json``.
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
    maps = [_cross(_forced(translator, pair)) for pair in pairs]
    return alignment_error_rate(_head_counts(maps, pairs).sum(axis=2))


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
    return _best(head_error_rates(translator, pairs))


def _best(rates: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(rates.argmin()), rates.shape)
    return int(layer), int(head)


# ---------------------------------------------------------------------------------------------
# The report


RESAMPLES = 1_000

NOTE = (
    "AER on so few pairs is a small sample: read a difference only where the intervals are far apart. They "
    "cover the choice of sentence pairs, not that of the head, of the annotator or of a training seed. The "
    "human translation was forced on the models, so this is not about their own output. A head that agrees "
    "with alignments is not thereby a reason for what the model writes. Layers and heads are counted from 0."
)


def aligned_pairs() -> list[dict[str, Any]]:
    """The project's hand-aligned pairs: those at even places to choose on, the others to report."""
    file = Path(__file__).parent / "texts.json"
    return json.loads(file.read_text(encoding="utf-8"))["aligned"]


def pairs_digest(pairs: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of texts and links, so that a report can tell that they have changed."""
    keys = ("english", "french", "sure", "possible")
    content = json.dumps([[pair[key] for key in keys] for pair in pairs], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def alignment_report(
    translators: Mapping[str, Translator],
    pairs: Sequence[Mapping[str, Any]],
    *,
    number: int = RESAMPLES,
) -> dict[str, Any]:
    """Choose a head on every second pair, and score it on the others beside all else that links words.

    Args:
        translators: by name.
        pairs: as in `head_error_rates`; those at even places are chosen on.
        number: resamples of sentence pairs for the intervals.
    Returns:
        ``choice`` by model with several heads; ``heads`` by model with cross-attention: each head's ``aer``
        on the pairs chosen on, ``entropy`` in bits and ``end_mass`` 0–1 (means over these pairs), (L, H);
        ``results`` on the other pairs: ``links``, ``precision``, ``recall``, ``aer`` with its 95 %
        interval, and what was scored in ``says``. A model's name stands for its attention (of several heads
        the chosen one), ``<name>:mean`` for the mean of all heads, ``<name>:saliency``, ``diagonal``.
    """
    chosen_on, reported = pairs[0::2], pairs[1::2]
    choice: dict[str, dict[str, int]] = {}
    heads: dict[str, Any] = {}
    scored: dict[str, tuple[str, np.ndarray]] = {}

    def score(key: str, says: str, found: Sequence[frozenset[tuple[int, int]]]) -> None:
        counts = [alignment_counts(a, pair) for a, pair in zip(found, reported, strict=True)]
        scored[key] = (says, np.array(counts))

    for name, translator in translators.items():
        forced = [_forced(translator, pair) for pair in reported]
        if "cross" in forced[0].attentions:
            choosing = [_cross(_forced(translator, pair)) for pair in chosen_on]
            rates = alignment_error_rate(_head_counts(choosing, chosen_on).sum(axis=2))
            statistics = [head_statistics(map_) for map_ in choosing]
            heads[name] = {
                "aer": rates.round(4).tolist(),
                "entropy": np.mean([s.entropy for s in statistics], axis=0).round(4).tolist(),
                "end_mass": np.mean([s.end_mass for s in statistics], axis=0).round(4).tolist(),
            }
            layer, head = _best(rates)
            maps = [translation.attention("cross") for translation in forced]
            says = "attention"
            if rates.size > 1:
                choice[name] = {"layer": layer, "head": head}
                says = f"attention of layer {layer}, head {head}, the best on the other pairs"
                score(f"{name}:mean", "mean over all layers and heads", [links(m) for m in maps])
            score(name, says, [links(m, layer, head) for m in maps])
        score(
            f"{name}:saliency",
            "gradient × input",
            [links(saliency(translator, t).shares(specials=True)) for t in forced],
        )
    lengths = [(len(p["english"].split()), len(p["french"].split())) for p in reported]
    score("diagonal", "words at the same place, no model", [diagonal_links(*n) for n in lengths])

    draws = scores.resamples(len(reported), number, (1,))
    return {
        "schema": 1,
        "note": NOTE,
        "choice": choice,
        "heads": heads,
        "resamples": number,
        "results": {key: _scored(says, counts, draws) for key, (says, counts) in scored.items()},
    }


def _scored(says: str, counts: np.ndarray, draws: np.ndarray) -> dict[str, Any]:
    agree_sure, agree, number, sure = (int(n) for n in counts.sum(axis=0))
    low, high = (
        scores.interval(scores.resampled(alignment_error_rate, counts, draws)) or (None,) * 2
    )
    return {
        "says": says,
        "links": number,
        "precision": round(agree / number, 4) if number else None,
        "recall": round(agree_sure / sure, 4),
        "aer": {
            "value": round(float(alignment_error_rate(counts.sum(axis=0))), 4),
            "low": None if low is None else round(low, 4),
            "high": None if high is None else round(high, 4),
        },
    }


def aligned_head(model: str | Translator) -> tuple[int, int] | None:
    """The head of a shipped model's cross-attention that is closest to alignments made by hand.

    Args:
        model: name of a shipped model, or a loaded one.
    Returns:
        layer and head, counted from 0, as ``models/report/attention.json`` has them; None where that was
        not measured on these very weights, or the model has no heads to choose from.
    """
    models = models_folder()
    if isinstance(model, Translator):
        name, training = model.name, model.training
    else:
        name, training = model, report.read_training(models).get(model, {})
    content = report.read_report(models, "attention") or {}
    chosen = content.get("choice", {}).get(name)
    measured = content.get("models", {}).get(name, {}).get("weights_sha256")
    if chosen is None or measured is None or measured != training.get("weights_sha256"):
        return None
    return chosen["layer"], chosen["head"]
