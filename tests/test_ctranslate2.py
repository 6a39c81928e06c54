"""The shipped Transformer is an ordinary Marian folder: another engine reads it and agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

import seqviz
from seqviz import handwritten
from seqviz.translating.inputs import output_limit

ctranslate2 = pytest.importorskip("ctranslate2", reason="pip install -r tests/requirements.txt")
SENTENCES = 200


def _sentences() -> list[str]:
    """200 different texts written for this project: sentences, and beginnings of the longer ones."""
    passages = handwritten.texts("passages")
    whole = [stage["english"] for passage in passages for stage in passage["stages"]]
    for kind in ("examples", "development", "aligned"):
        whole += [text["english"] for text in handwritten.texts(kind)]
    beginnings = [" ".join(text.split()[:9]) for text in whole if len(text.split()) > 9]
    found = list(dict.fromkeys(whole + beginnings))[:SENTENCES]
    assert len(found) == SENTENCES
    return found


def test_ctranslate2_gives_the_same_greedy_output(models_folder: Path, tmp_path: Path) -> None:
    translator = seqviz.load(models_folder / "transformer")
    converter = ctranslate2.converters.TransformersConverter(str(models_folder / "transformer"))
    converter.convert(str(tmp_path / "converted"))
    other = ctranslate2.Translator(
        str(tmp_path / "converted"), device="cpu", compute_type="float32"
    )
    sentences = _sentences()
    ours = translator.translate(sentences)
    pieces = [
        translator.tokenizer.convert_ids_to_tokens(translator.tokenizer(s).input_ids)
        for s in sentences
    ]
    different = []
    for sentence, found, source in zip(sentences, ours, pieces, strict=True):
        theirs = other.translate_batch(
            [source],
            beam_size=1,
            max_decoding_length=output_limit(len(source) - 1),
            suppress_sequences=[["<unk>"]],
        )[0].hypotheses[0]
        expected = [token for token in found.target_tokens if token != "</s>"]
        if theirs[: len(expected)] != expected:
            different.append((sentence, expected, theirs))
    assert not different, f"{len(different)} of {len(sentences)} differ, first {different[0]}"
