"""What a model says of an output that is given to it: one pass over all of it, nothing is searched.

The numbers with which a token was chosen depend only on the source and the tokens before it, so they are
those of the output, whichever search found it.

Shapes: `B` sentences, `S` source length, `T` target length, `V` vocabulary, `L` layers, `H` heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from seqviz.constants import MAX_SOURCE_PIECES, MAX_TARGET_PIECES
from seqviz.translating.result import Candidate, Translation

MAX_BATCH_PIECES = 6_000
"""Source pieces, padding and beams included, that are computed at once."""


Method = TypeVar("Method", bound=Callable[..., Any])


def inference(method: Method) -> Method:
    """Without gradients, and in the model's own numbers also where the caller computes in mixed precision."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.inference_mode(), torch.autocast(self.device.type, enabled=False):
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def padded(
    rows: Sequence[Sequence[int]], padding: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Rows of ids as one tensor, padding at the end, and its mask, both (B, longest)."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), padding)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        mask[index, : len(row)] = 1
    return ids.to(device), mask.to(device)


def as_sources(
    model: PreTrainedModel, tokenizer: Any, ids: Sequence[Sequence[int]]
) -> tuple[Tensor, Tensor]:
    """Sources, given without the end token, as a model reads them: ids and mask, (B, S)."""
    rows = [(*row, tokenizer.eos_token_id) for row in ids]
    return padded(rows, tokenizer.pad_token_id, model.device)


def as_decoder_inputs(model: PreTrainedModel, targets: Tensor) -> Tensor:
    """Targets (B, T) moved right, the start token before them: what the decoder reads to write them."""
    return functional.pad(targets, (1, -1), value=model.config.decoder_start_token_id)


def arrays(weights: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {kind: values.float().cpu().numpy() for kind, values in weights.items()}


def logits(
    model: PreTrainedModel, tokenizer: Any, sources: Sequence[Sequence[int]], targets: Tensor
) -> Tensor:
    """What the output layer says at each place of the targets, (B, T, V).

    Args:
        sources: without the end token.
        targets: (B, T).
    """
    input_ids, mask = as_sources(model, tokenizer, sources)
    return model(
        input_ids=input_ids,
        attention_mask=mask,
        decoder_input_ids=as_decoder_inputs(model, targets),
        use_cache=False,
    ).logits


def attention(
    model: PreTrainedModel, tokenizer: Any, source_ids: Sequence[int], target_ids: Sequence[int]
) -> dict[str, Tensor]:
    """Attention weights of a model that has some, (L, H, T, S) by kind; see `Translator.attend`."""
    input_ids, mask = as_sources(model, tokenizer, [source_ids])
    targets = torch.tensor([target_ids], device=model.device)
    decoder_input_ids = as_decoder_inputs(model, targets)
    # The models without their output layers, of which nothing is needed here.
    output = model.model(
        input_ids=input_ids,
        attention_mask=mask,
        decoder_input_ids=decoder_input_ids,
        use_cache=False,
        output_attentions=True,
    )
    found = {
        "cross": output.cross_attentions,
        "encoder": output.encoder_attentions,
        "decoder": output.decoder_attentions,
    }
    return {kind: torch.cat(list(layers)) for kind, layers in found.items() if layers}


def vector(model: PreTrainedModel, tokenizer: Any, translation: Translation) -> np.ndarray:
    """The one vector of a model that has one, (D,); see `Translator.vector`."""
    if not translation.source_tokens:
        raise ValueError(
            "expected a translation of a text in one part, got one without source tokens; "
            "use one of .parts, or a text that is not empty"
        )
    ids = tokenizer.convert_tokens_to_ids(list(translation.source_tokens[:-1]))
    input_ids, mask = as_sources(model, tokenizer, [ids])
    encoded = model.model.encoder(input_ids=input_ids, attention_mask=mask)
    return encoded.vector[0].float().cpu().numpy()


def candidates(
    model: PreTrainedModel,
    tokenizer: Any,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    target_tokens: Sequence[str],
    count: int,
) -> tuple[tuple[Candidate, ...], ...]:
    """The most probable tokens at each place of a target; see `Translator.candidates`."""
    targets = torch.tensor([target_ids], device=model.device)
    log_probs = logits(model, tokenizer, [source_ids], targets)[0].float().log_softmax(dim=-1)
    log_probs[:, tokenizer.pad_token_id] = float("-inf")
    unk = tokenizer.unk_token_id
    ration = source_ids.count(unk)
    for place in range(len(log_probs)):
        if target_ids[:place].count(unk) >= ration:
            log_probs[place, unk] = float("-inf")
    best, ids = log_probs.topk(min(count, log_probs.shape[1] - 1), dim=-1)
    steps = []
    for place, (row, values) in enumerate(zip(ids.tolist(), best.tolist(), strict=True)):
        tokens = tokenizer.convert_ids_to_tokens(row)
        taken = target_ids[place]
        steps.append(
            tuple(
                Candidate(
                    id_,
                    target_tokens[place] if id_ == taken == unk else token,
                    math.exp(value),
                    value,
                )
                for id_, token, value in zip(row, tokens, values, strict=True)
                if value > float("-inf")
            )
        )
    return tuple(steps)


def losses(
    model: PreTrainedModel, tokenizer: Any, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[np.ndarray]:
    """Minus the log-probability of each piece of the targets, nats; see `Translator.losses`.

    Args:
        pairs: ids of source and target, without the end token.
    """
    found: list[np.ndarray] = [np.zeros(0) for _ in pairs]
    order = [
        i
        for i, (source, target) in enumerate(pairs)
        if 0 < len(source) <= MAX_SOURCE_PIECES and 0 < len(target) <= MAX_TARGET_PIECES
    ]
    order.sort(key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    while order:
        size = max(1, MAX_BATCH_PIECES // (2 * len(pairs[order[-1]][1]) + 2))
        order, group = order[:-size], order[-size:]
        targets, _ = padded([pairs[i][1] for i in group], tokenizer.pad_token_id, model.device)
        scores = logits(model, tokenizer, [pairs[i][0] for i in group], targets)  # (B, T, V)
        nats = functional.cross_entropy(
            scores.flatten(0, 1).float(), targets.flatten(), reduction="none"
        ).reshape(targets.shape)
        for row, i in zip(nats.cpu().numpy(), group, strict=True):
            found[i] = row[: len(pairs[i][1])]
    return found
