"""The shared tokenizer under its short name: it stands in `seqviz.data.tokenizer`."""

from seqviz.data.tokenizer import (
    EOS_TOKEN,
    EOS_TOKEN_ID,
    PAD_TOKEN,
    UNK_TOKEN,
    UNK_TOKEN_ID,
    Segmentation,
    load,
    normalize,
    normalizer,
    replace_surrogates,
    segment,
    train,
)

__all__ = [
    "EOS_TOKEN",
    "EOS_TOKEN_ID",
    "PAD_TOKEN",
    "UNK_TOKEN",
    "UNK_TOKEN_ID",
    "Segmentation",
    "load",
    "normalize",
    "normalizer",
    "replace_surrogates",
    "segment",
    "train",
]
