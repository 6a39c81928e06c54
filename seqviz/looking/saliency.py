"""Which source words an output word depends on, for models with and without attention.

    translation = translator.translate("The cat saw the dog.")
    saliency(translator, translation).shares()

Saliency is gradient × input: to first order, what the log-probability of an output token would lose if
the embedding of a source token were scaled away. It says what this model's number depends on here, not
why, and not what people would align.

Shapes: `B` copies of the source in a batch, `T` target length, `S` source length, `D` width,
`V` vocabulary.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from seqviz.maps import AttentionMap, ByValue
from seqviz.pieces import OfTwoTexts, Pieces
from seqviz.text_languages import DEFAULT_LANGUAGES
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator

UNITS = ("words", "pieces")

MAX_COPIES = 32
"""Output tokens whose gradients are taken at once; more of them saves nothing more."""

MAX_BATCH_TOKENS = 5_000
"""Source and target tokens, all copies together, that a backward pass keeps in memory."""


@dataclass(frozen=True, eq=False)
class Saliency(ByValue, OfTwoTexts):
    """What the log-probability of each output token depends on, for one translation.

    Attributes:
        model: name of the model.
        values: signed, (T, S), nats: the derivative of the log-probability of target token t by a factor
            on the embedding of source token s, at 1. Above 0 where more of the source token makes the
            target token more probable.
        source_pieces, target_pieces: what columns and rows stand for: pieces, or words after `words`.
        languages: codes of the languages of source and target.
    """

    model: str
    values: np.ndarray = field(repr=False)
    source_pieces: Pieces
    target_pieces: Pieces
    languages: tuple[str, str] = field(default=DEFAULT_LANGUAGES, repr=False)

    def __post_init__(self) -> None:
        expected = (len(self.target_pieces), len(self.source_pieces))
        if self.values.shape != expected:
            raise ValueError(
                f"expected values {expected} for {expected[0]} target and {expected[1]} source tokens, "
                f"got {self.values.shape}"
            )

    def words(self) -> Saliency:
        """Values summed over the pieces of each word on both sides; special tokens stay as they are.

        The log-probability of a word is the sum over its pieces, and scaling a word scales all of its
        pieces, so the sums are again derivatives, of words by words.
        """
        columns, rows = (
            [group[0] for group in pieces.groups]
            for pieces in (self.source_pieces, self.target_pieces)
        )
        by_source = np.add.reduceat(self.values, columns, axis=1)
        return replace(
            self,
            values=np.add.reduceat(by_source, rows, axis=0),
            source_pieces=self.source_pieces.merged(),
            target_pieces=self.target_pieces.merged(),
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
            source_pieces=self.source_pieces,
            target_pieces=self.target_pieces,
            hidden_mass=np.zeros((1, 1, len(self.target_tokens))),
            languages=self.languages,
        )


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
        source_pieces=translation.source_pieces,
        target_pieces=translation.target_pieces,
        languages=translation.languages,
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
            decoded = core(
                encoder_outputs=encoded,
                attention_mask=mask,
                decoder_input_ids=inputs[begin : begin + copies].expand(copies, -1),
                cache=cache,
                use_cache=True,
            )
            cache = decoded.cache
            states = decoded.last_hidden_state[each, each]  # (≤ B, D)
            logits = model.lm_head(states) + model.final_logits_bias  # (≤ B, V)
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
