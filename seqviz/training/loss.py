"""The training loss: cross-entropy of the output layer, without ever holding all logits.

Shapes: `N` target tokens, `D` embedding width, `V` vocabulary, `B` batch, `S` source length, `T` target
length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

from seqviz.architectures.manners import shift_right
from seqviz.data.batches import Batch, make_batch
from seqviz.data.encoded import EncodedCorpus

_CHUNK = 512
"""Target tokens whose logits exist at once: 16 MB for 8,000 pieces, which memory can give again and again."""


class _LinearCrossEntropy(torch.autograd.Function):
    """Σ_i −log softmax(h_i Eᵀ + b)[y_i], with its gradient taken in the same pass.

    ∂loss/∂logits = softmax − one-hot is known as soon as the logits are, so both products with it follow at
    once and the logits of a chunk can go. Products run in the precision of `hidden`, sums in float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        table: Tensor,
        bias: Tensor,
        labels: Tensor,
        with_gradient: bool,
    ) -> Tensor:
        product_table, product_bias = table.to(hidden.dtype), bias.to(hidden.dtype)
        grad_hidden = torch.empty_like(hidden) if with_gradient else None
        grad_table = torch.zeros_like(table, dtype=torch.float32) if with_gradient else None
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), _CHUNK):
            states = hidden[start : start + _CHUNK]
            right = labels[start : start + _CHUNK, None]
            logits = torch.addmm(product_bias, states, product_table.t())  # (chunk, V)
            log_probs = torch.log_softmax(logits.float(), dim=-1)
            loss -= log_probs.gather(1, right).sum()
            if grad_hidden is not None and grad_table is not None:
                grad_logits = log_probs.exp_()
                grad_logits.scatter_add_(1, right, grad_logits.new_full(right.shape, -1.0))
                grad_logits = grad_logits.to(hidden.dtype)
                torch.mm(grad_logits, product_table, out=grad_hidden[start : start + _CHUNK])
                grad_table += grad_logits.t() @ states
        ctx.save_for_backward(grad_hidden, grad_table)
        ctx.table_dtype = table.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_table = ctx.saved_tensors
        return (
            (grad_hidden * grad_loss).to(grad_hidden.dtype),
            (grad_table * grad_loss).to(ctx.table_dtype),
            *[None] * 3,
        )


def linear_cross_entropy(hidden: Tensor, table: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of a tied output layer, summed over the target tokens that count, in nats.

    Equal to ``cross_entropy(hidden @ table.T + bias, labels, reduction="sum")``, in less memory.

    Args:
        hidden: what the output layer reads, (..., D).
        table: embedding table, (V, D).
        bias: added to the logits, V values; not trained.
        labels: target tokens, (...), -100 where nothing counts.
    """
    hidden, labels = hidden.flatten(0, -2), labels.flatten()
    real = (labels != -100).nonzero().squeeze(1)
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden = hidden.to(torch.get_autocast_dtype(kind))
    with torch.autocast(kind, enabled=False):
        # Inside a Function gradients are always off, so it is told here.
        return _LinearCrossEntropy.apply(
            hidden[real], table, bias.flatten(), labels[real], torch.is_grad_enabled()
        )


class SequenceLoss(nn.Module):
    """A model with its training loss, so that both run in one `forward`.

    Wrappers for several processes and for mixed precision act on `forward`. Its state is the model's, under
    the model's own names; it is loaded into the model itself.

    Args:
        model: any of the project's models: its ``model`` gives the states that its ``lm_head`` reads.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.register_state_dict_post_hook(_leave_out_name)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """Teacher forcing: read the source, predict each target token from those before it.

        Args:
            input_ids: source, (B, S), padding at the end.
            attention_mask: 1 where a source token is real, (B, S).
            labels: target tokens, (B, T), -100 at padding.
        Returns:
            cross-entropy summed over the real target tokens, in nats.
        """
        config = self.model.config
        states = self.model.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=shift_right(
                labels,
                start_token_id=config.decoder_start_token_id,
                pad_token_id=config.pad_token_id,
            ),
            use_cache=False,
        ).last_hidden_state  # (B, T, D)
        return linear_cross_entropy(
            states, self.model.lm_head.weight, self.model.final_logits_bias, labels
        )


def _leave_out_name(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """The model's own names, as if nothing were around it."""
    for name in [name for name in state if name.startswith(f"{prefix}model.")]:
        state[prefix + name.removeprefix(f"{prefix}model.")] = state.pop(name)


def summed_loss(model: nn.Module, batch: Batch, device: torch.device) -> Tensor:
    """Cross-entropy of a batch summed over its real target tokens, in nats; teacher forcing.

    Args:
        model: one of the project's models, or a `SequenceLoss` of it, wrapped or not.
    """
    if isinstance(model, PreTrainedModel):
        model = SequenceLoss(model)
    return model(
        input_ids=torch.from_numpy(batch.input_ids).to(device),
        attention_mask=torch.from_numpy(batch.attention_mask).to(device),
        labels=torch.from_numpy(batch.labels).to(device),
    )


@torch.no_grad()
def mean_loss(
    model: PreTrainedModel,
    data: EncodedCorpus,
    device: torch.device,
    *,
    sample: int,
    batch_tokens: int = 4_000,
) -> float:
    """Teacher-forced loss on single sentences, nats a target token.

    Args:
        sample: pairs taken at even distances over the corpus; all if it has no more.
    """
    was_training = model.training
    model.eval()
    config = model.config
    chosen = np.unique(np.linspace(0, len(data) - 1, min(sample, len(data))).astype(int))
    pairs = sorted(
        (data.ids(int(i)) for i in chosen), key=lambda pair: (len(pair[1]), len(pair[0]))
    )
    total, tokens = 0.0, 0
    while pairs:
        rows = max(1, batch_tokens // (len(pairs[-1][1]) + 1))
        part, pairs = pairs[-rows:], pairs[:-rows]
        batch = make_batch(part, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id)
        total += summed_loss(model, batch, device).item()
        tokens += batch.num_target_tokens
    model.train(was_training)
    return total / tokens
