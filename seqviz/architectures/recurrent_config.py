"""Settings of a recurrent model, as ``config.json`` keeps them."""

# No postponed annotations in this file: `strict` checks types that are types, not strings.

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from seqviz.architectures.context import CONTEXTS

CELLS = ("lstm", "rnn")


@strict
class RecurrentConfig(PreTrainedConfig):
    """Settings of a recurrent model.

    Args:
        vocab_size: pieces, the last of which is padding.
        d_model: embedding width.
        width: recurrent width of the decoder; the encoder has half of it in each direction.
        num_layers: of the encoder and of the decoder.
        cell: one of `CELLS`.
        context: one of `CONTEXTS`.
        vector_size: width of the fixed vector v.
        attention_size: width of additive attention.
        forget_bias: of the LSTM's forget gates at the start.
    Raises:
        ValueError: a switch with an unknown value, a width that cannot be halved, or no layer.
    """

    model_type = "seqviz-recurrent"
    keys_to_ignore_at_inference = ["cache"]
    attribute_map = {"hidden_size": "width", "num_hidden_layers": "num_layers"}

    vocab_size: int = 8000
    d_model: int = 256
    width: int = 448
    num_layers: int = 2
    cell: str = "lstm"
    context: str = "attention"
    vector_size: int = 448
    attention_size: int = 128
    forget_bias: float | int = 1.0
    init_std: float = 0.02
    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 7999
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 0
    decoder_start_token_id: int | None = 7999

    def __post_init__(self, **kwargs: Any) -> None:
        if self.cell not in CELLS:
            raise ValueError(f"expected cell to be one of {', '.join(CELLS)}, got {self.cell!r}")
        if self.context not in CONTEXTS:
            raise ValueError(
                f"expected context to be one of {', '.join(CONTEXTS)}, got {self.context!r}"
            )
        if self.width % 2:
            raise ValueError(
                f"expected an even width (half for each direction), got {self.width}; "
                f"try {self.width + 1}"
            )
        if self.num_layers < 1:
            raise ValueError(f"expected num_layers of 1 or more, got {self.num_layers}")
        super().__post_init__(**kwargs)
