"""What people who know Transformers expect of every model here, recurrent or not.

A mask may be left out. Padding comes at the end, or is refused: nowhere does it change a number in silence. The
table of pieces can grow and shrink. A loss over a part of a batch is that part's share, so that a Trainer with
gradient accumulation takes the gradient of the whole.

Shapes: `B` batch, `S` source length, `T` target length, `D` width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def source_mask(source: Tensor | None, mask: Tensor | None, pad_token_id: int | None) -> Tensor:
    """1 where a source token is real, (B, S).

    Args:
        source: ids (B, S), or embeddings (B, S, D).
        mask: as the tokenizer gave it. Without one every id but padding is real, and every embedding.
    Raises:
        ValueError: no source, a row with no real token, or padding before a real token.
    """
    if source is None:
        raise ValueError("expected input_ids, inputs_embeds or encoder_outputs, got none")
    if mask is None:
        mask = torch.ones(source.shape[:2], dtype=torch.long, device=source.device)
        if source.dim() == 2 and pad_token_id is not None:
            mask = source.ne(pad_token_id)
    real = mask.bool()
    if not bool(real.any(dim=1).all()):
        raise ValueError("expected at least one real token in every source, got a row of padding")
    refuse_padding_before(real, "source")
    return mask.long()


def refuse_padding_before(real: Tensor, side: str) -> None:
    """Raise where a real token stands behind padding; `real` is (B, length)."""
    real = real.bool()
    if bool((real[:, 1:] & ~real[:, :-1]).any()):
        raise ValueError(
            f"expected padding at the end of the {side}, got a real token after padding; pad right "
            "(tokenizer.padding_side = 'right')"
        )


def shift_right(labels: Tensor, *, start_token_id: int, pad_token_id: int) -> Tensor:
    """Labels moved one step right behind the start token, -100 replaced by padding, (B, T)."""
    shifted = labels.new_full(labels.shape, start_token_id)
    shifted[:, 1:] = labels[:, :-1]
    return shifted.masked_fill(shifted == -100, pad_token_id)


class Manners:
    """Stands before the library's classes in a model of translation."""

    config: Any
    final_logits_bias: Tensor
    accepts_loss_kwargs = True

    def generate(
        self,
        inputs: Tensor | None = None,
        *args: Any,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """As Transformers' own; a mask that is left out is made from the ids (see `source_mask`)."""
        sources = [inputs, kwargs.get("input_ids"), kwargs.get("inputs_embeds")]
        source = next((given for given in sources if given is not None), None)
        if source is not None:
            attention_mask = source_mask(source, attention_mask, self.config.pad_token_id)
        return super().generate(inputs, *args, attention_mask=attention_mask, **kwargs)  # pyright: ignore

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Decoder input for teacher forcing: labels moved right behind the start token, (B, T)."""
        refuse_padding_before(labels != -100, "labels")
        return shift_right(
            labels,
            start_token_id=self.config.decoder_start_token_id,
            pad_token_id=self.config.pad_token_id,
        )

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Embedding:
        """Give the model more pieces or fewer; ids that stay mean what they meant.

        Raises:
            ValueError: padding would have no row.
        """
        size = new_num_tokens or self.config.vocab_size
        if pad_to_multiple_of:
            size = -(-size // pad_to_multiple_of) * pad_to_multiple_of
        if size <= self.config.pad_token_id:
            raise ValueError(
                f"expected at least {self.config.pad_token_id + 1} pieces, of which id "
                f"{self.config.pad_token_id} is padding, got {size}; drop none that is in use"
            )
        bias = self.final_logits_bias
        table = super().resize_token_embeddings(size, None, mean_resizing)  # pyright: ignore
        self.final_logits_bias = functional.pad(bias, (0, size - bias.shape[1]))
        return table

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Source and target have one table, also where ``tie_word_embeddings=False`` gives the output its own."""
        if all_submodels or self.config.tie_word_embeddings:
            return super().get_expanded_tied_weights_keys(all_submodels)  # pyright: ignore
        tied: dict[str, str] = getattr(self, "_tied_weights_keys", None) or {}
        return {name: source for name, source in tied.items() if name != "lm_head.weight"}
