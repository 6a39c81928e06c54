"""Corpora under one name: the parts stand in `seqviz.data`, one file a question."""

from seqviz.constants import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.data.batches import Batch, make_batch
from seqviz.data.encoded import ENCODING_VERSION, EncodedCorpus, encode_corpus, findings
from seqviz.data.epochs import BLOCK, Epoch, WeightedCorpus, plan_batches, plan_epoch
from seqviz.data.kept import MAX_LENGTH_RATIO, MAX_LINE_CHARACTERS
from seqviz.data.pairs import (
    CorpusError,
    Pair,
    UnusableLine,
    held_out_digests,
    pair_digest,
    read_pairs,
)
from seqviz.files import file_digest

Source = WeightedCorpus
"""Its older name."""

__all__ = [
    "BLOCK",
    "ENCODING_VERSION",
    "MAX_LENGTH_RATIO",
    "MAX_LINE_CHARACTERS",
    "MAX_SOURCE_PIECES",
    "MAX_SOURCE_WORDS",
    "MAX_TARGET_PIECES",
    "Batch",
    "CorpusError",
    "EncodedCorpus",
    "Epoch",
    "Pair",
    "Source",
    "UnusableLine",
    "WeightedCorpus",
    "encode_corpus",
    "file_digest",
    "findings",
    "held_out_digests",
    "make_batch",
    "pair_digest",
    "plan_batches",
    "plan_epoch",
    "read_pairs",
]
