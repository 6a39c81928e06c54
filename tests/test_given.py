"""Texts in arrays and Series, and missing ones among them."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest

from seqviz import given, scores
from seqviz.translating.translator import Translator

TEXTS = ["The boat is green.", "", "The bridge."]


class Foreign:
    """A Series of a library that is not installed here, known by what it can do alone."""

    def tolist(self) -> list[str]:
        return list(TEXTS)


def several() -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    return {
        "list": TEXTS,
        "tuple": tuple(TEXTS),
        "array": np.array(TEXTS),
        "objects": np.array(TEXTS, dtype=object),
        "every_second": np.array([text for one in TEXTS for text in (one, "x")])[::2],
        "Series": pandas.Series(TEXTS, index=[7, 7, 3]),
        "string": pandas.Series(TEXTS, dtype="string"),
        "Index": pandas.Index(TEXTS),
        "foreign": Foreign(),
    }


MISSING = {
    "None": (lambda pandas: [*TEXTS, None], "NoneType", 3),
    "nan": (lambda pandas: ["a", float("nan")], "float", 1),
    "objects": (lambda pandas: np.array(["a", "b", np.nan, "c"], dtype=object), "float", 2),
    "numpy": (lambda pandas: [np.float32("nan"), "a"], "float32", 0),
    "Series": (lambda pandas: pandas.Series(["a", None, "b"], index=[5, 6, 7]), None, 1),
    "string": (lambda pandas: pandas.Series(["a", pandas.NA], dtype="string"), None, 1),
    "time": (lambda pandas: ["a", pandas.NaT], "NaTType", 1),
}


@pytest.fixture(scope="module")
def translator(tiny_model, tiny_tokenizer) -> Translator:
    return Translator(tiny_model("lstm"), tiny_tokenizer, name="lstm")


@pytest.mark.parametrize("kind", several())
def test_several_texts_of_any_kind(kind: str, translator: Translator):
    texts = several()[kind]
    assert given.listed(texts) == TEXTS
    assert all(isinstance(text, str) for text in given.listed(texts))
    found = translator.translate(texts)
    assert [one.source for one in found] == TEXTS
    assert [one.text for one in found] == [one.text for one in translator.translate(TEXTS)]
    assert scores.corpus_bleu(texts, texts)["sentences"] == 3
    counted = zip(scores.sentence_counts(texts, texts), scores.sentence_counts(TEXTS, TEXTS))
    assert all(np.array_equal(one, other) for one, other in counted)


def test_pairs_and_words_of_arrays(translator: Translator):
    pairs = [("The boat.", "Le bateau."), ("The bridge.", "Le pont.")]
    for one, other in zip(translator.losses(np.array(pairs)), translator.losses(pairs)):  # type: ignore[arg-type]
        assert np.array_equal(one, other) and len(one)
    listed = translator.translate("The boat.", bad_words=["le"])
    assert translator.translate("The boat.", bad_words=np.array(["le"])).text == listed.text
    with pytest.raises(TypeError, match="at position 1, counted from 0: a missing value"):
        translator.losses([pairs[0], ("a", None)])  # type: ignore[list-item]


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_text_is_refused_where_it_stands(kind: str, translator: Translator):
    make, type_name, place = MISSING[kind]
    texts = make(pytest.importorskip("pandas"))
    said = f"expected text, got {type_name or r'[A-Za-z]+'} at position {place}, counted from 0: a missing"
    for refuse in (translator.translate, lambda texts: scores.corpus_bleu(texts, texts)):
        with pytest.raises(TypeError, match=said):
            refuse(texts)


@pytest.mark.parametrize(
    "texts, said",
    [
        (np.array("a"), "a list of texts, got ndarray"),
        (np.array([["a", "b"]]), "got list at position 0"),
        (np.array(["a", "b"], dtype="S"), "got bytes at position 0"),
        (["a", 5], "got int at position 1, counted from 0: 5"),
        (np.array([1.5]), "got float at position 0, counted from 0: 1.5"),
        (b"a", "a list of texts, got bytes"),
        ({"a": "b"}, "a list of texts, got dict"),
        (iter(["a"]), "a list of texts, got list_iterator"),
        (None, "a list of texts, got NoneType"),
    ],
)
def test_what_is_no_text(texts: Any, said: str, translator: Translator):
    with pytest.raises(TypeError, match=said):
        translator.translate(texts)


def test_one_text_is_no_list_of_scores():
    """Its letters would be counted as sentences."""
    with pytest.raises(TypeError, match="a list of texts, got str"):
        scores.corpus_bleu("abc", "abd")


def test_pandas_is_not_imported(monkeypatch, translator: Translator):
    monkeypatch.setitem(sys.modules, "pandas", None)
    asked, plain = [], builtins.__import__

    def watched(name: str, *rest: Any) -> Any:
        asked.append(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", watched)
    assert len(translator.translate(np.array(TEXTS))) == 3
    assert "pandas" not in asked
