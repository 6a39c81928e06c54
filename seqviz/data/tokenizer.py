"""The shared tokenizer: one BPE vocabulary for both languages and all models.

Trained by SentencePiece, kept as an ordinary fast tokenizer of Transformers. The ids follow Marian:
end of sentence 0, unknown 1, padding last. The normaliser is part of ``tokenizer.json``, so every
program that reads the folder cleans text in the same way. `segment` says which pieces
make up which word.
"""

from __future__ import annotations

import io
import os
import shutil
import string
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers
from transformers import PreTrainedTokenizerFast

from seqviz.constants import MAX_SOURCE_PIECES
from seqviz.pieces import WORD_START, Pieces
from seqviz.text_languages import TextLanguage

EOS_TOKEN, UNK_TOKEN, PAD_TOKEN = "</s>", "<unk>", "<pad>"
EOS_TOKEN_ID, UNK_TOKEN_ID = 0, 1
_REQUIRED_CHARACTERS = (
    string.ascii_letters + string.digits + string.punctuation.replace("`", "") + "€"
)
"""Never unknown, however rare in the training text."""


def normalizer() -> normalizers.Normalizer:
    """Clean text before it is cut into pieces: NFC, plain quotes, dashes and spaces.

    Invisible characters go, French spaces before ``? ! ; : %`` go, runs of spaces become one.
    """
    replace = normalizers.Replace
    return normalizers.Sequence(
        [
            # Soft hyphen, zero-width characters, direction marks, word joiners, byte-order mark. They
            # go before NFC: one of them may stand between a letter and its accent.
            replace(
                Regex(
                    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe0e\ufe0f\ufeff]"
                ),
                "",
            ),
            normalizers.NFC(),
            replace(Regex(r"[\p{Cc}\p{Z}]"), " "),
            replace(Regex("[\u2018\u2019\u201a\u201b\u02bc\u2032\u2039\u203a`\u00b4]"), "'"),
            replace(Regex("\u00ab *"), '"'),
            replace(Regex(" *\u00bb"), '"'),
            replace(Regex("[\u201c\u201d\u201e\u201f\u2033]"), '"'),
            replace(Regex("[\u2010-\u2013\u2212]"), "-"),
            replace(Regex("[\u2014\u2015]"), " - "),
            replace("\u2026", "..."),
            # A literal word mark in the text would be read as a space.
            replace(WORD_START, "_"),
            replace(Regex(" +(?=[?!;:%])"), ""),
            replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )


_NORMALIZER = normalizer()


def normalize(text: str) -> str:
    """`text` as the tokenizer sees it. Lone surrogates (half an emoji) become U+FFFD first."""
    return _NORMALIZER.normalize_str(replace_surrogates(text))


def replace_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD: nothing later can encode them."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def train(
    sentences: Iterable[str],
    folder: str | os.PathLike[str],
    *,
    vocabulary_size: int = 8000,
    num_threads: int = 2,
) -> PreTrainedTokenizerFast:
    """Train the shared tokenizer and save it.

    Args:
        sentences: raw text of both languages, in a fixed order.
        folder: where the tokenizer files go (made if needed; written aside first).
        vocabulary_size: pieces with the three special ones.
        num_threads: of SentencePiece; does not change the result.
    Raises:
        ValueError: too little text for the vocabulary, or none.
    """
    import sentencepiece

    model = io.BytesIO()

    def cleaned() -> Iterator[str]:
        for sentence in sentences:
            text = normalize(sentence)
            if text:
                yield text

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=cleaned(),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary_size,
            normalization_rule_name="identity",
            character_coverage=0.9999,
            required_chars=_REQUIRED_CHARACTERS,
            split_digits=True,
            eos_id=EOS_TOKEN_ID,
            unk_id=UNK_TOKEN_ID,
            bos_id=-1,
            pad_id=vocabulary_size - 1,
            unk_surface=UNK_TOKEN,
            max_sentence_length=20_000,
            num_threads=num_threads,
            minloglevel=1,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(
            f"expected enough text for {vocabulary_size} pieces, SentencePiece said: {error}; "
            "give more text or a smaller vocabulary"
        ) from error
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".tokenizer-"))
    try:
        (aside / "tokenizer.model").write_bytes(model.getvalue())
        tokenizer = PreTrainedTokenizerFast.from_pretrained(
            aside,
            eos_token=EOS_TOKEN,
            unk_token=UNK_TOKEN,
            pad_token=PAD_TOKEN,
            add_eos_token=True,
            add_bos_token=False,
            model_max_length=MAX_SOURCE_PIECES + 1,
            split_special_tokens=True,
            model_input_names=["input_ids", "attention_mask"],
        )
        tokenizer.backend_tokenizer.normalizer = normalizer()  # type: ignore[assignment]
        tokenizer.save_pretrained(aside)
        folder.mkdir(exist_ok=True)
        for file in aside.iterdir():
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return load(folder)


def load(folder: str | os.PathLike[str]) -> PreTrainedTokenizerFast:
    """Load the tokenizer of a tokenizer or model folder.

    Raises:
        FileNotFoundError: no ``tokenizer.json`` there.
        ValueError: a tokenizer whose special ids are not the project's.
    """
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise FileNotFoundError(
            f"expected a tokenizer in {folder} (tokenizer.json), found none; "
            "train one with 'seqviz tokenizer'"
        )
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    got = (tokenizer.eos_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id)
    expected = (EOS_TOKEN_ID, UNK_TOKEN_ID, len(tokenizer) - 1)
    if got != expected:
        raise ValueError(
            f"expected ids (eos, unk, pad) {expected} in {folder}, got {got}; "
            "use a tokenizer trained by 'seqviz tokenizer'"
        )
    return tokenizer


# ---------------------------------------------------------------------------------------------
# Pieces and words


@dataclass(frozen=True)
class Segmentation:
    """A text cut into pieces.

    Joined by spaces, where the language has some, the words are the normalised text; joined without, the pieces are the same text with
    `WORD_START` in front of every word.

    Attributes:
        ids: of the pieces, without an end token.
        pieces: as shown: an unknown piece is its characters in the text.
        unknown: distinct characters of the text that have no piece, in order of appearance.
    """

    ids: tuple[int, ...]
    pieces: Pieces
    unknown: tuple[str, ...]


def segment(tokenizer: Any, text: str, language: TextLanguage | None = None) -> Segmentation:
    """Cut any text into pieces and words; empty where nothing visible is left of it.

    Args:
        language: of the text; None for one whose words stand between spaces.
    """
    plain = normalize(text)
    # Positions refer to what the tokenizer is given, so it is given the normalised text.
    encoding = tokenizer(
        plain, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    tokens = tokenizer.convert_ids_to_tokens(encoding.input_ids)
    unknown: dict[str, None] = {}
    for position, id_ in enumerate(encoding.input_ids):
        if id_ == tokenizer.unk_token_id:
            start, end = encoding.offset_mapping[position]
            tokens[position] = plain[start:end]
            unknown.update(dict.fromkeys(plain[start:end]))
    pieces = in_words(Pieces.of(tokens), language)
    return Segmentation(tuple(encoding.input_ids), pieces, tuple(unknown))


def in_words(pieces: Pieces, language: TextLanguage | None) -> Pieces:
    """Pieces whose words stand between spaces, with the words of their language."""
    return pieces if language is None or language.is_spaced else pieces.split(language.words)
