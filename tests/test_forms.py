"""Accents composed (NFC) or apart (NFD) are the same text, wherever a text enters."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqviz import scores
from seqviz.coverage import Lexicon, mark, remembered
from seqviz.coverage.stems import english_words, french_words
from seqviz.data.pairs import pair_digest
from seqviz.data.tokenizer import normalize
from seqviz.translating.decoding import Decoding
from seqviz.translating.inputs import split_sentences
from seqviz.translating.translator import Translator

WORDS = st.one_of(
    st.sampled_from(
        "été École l'élève naïve René garçon Ça où À œuvre Dr. ñ Ångström ế ệ が 한국 M. 5 fin. ! ? …".split()
    ),
    st.text("aeioucnyAEC'-éèêëàâîïôûùçñÉÇÅșțőžŁ", min_size=1, max_size=6),
)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


def forms(text: str) -> list[str]:
    """Composed, apart, and both by turns."""
    composed, apart = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    mixed = " ".join(
        (one, other)[place % 2]
        for place, (one, other) in enumerate(
            zip(composed.split(" "), apart.split(" "), strict=True)
        )
    )
    return [composed, apart, mixed]


@pytest.fixture(scope="module")
def translator(tiny_model, tiny_tokenizer) -> Translator:
    return Translator(tiny_model("rnn"), tiny_tokenizer, name="rnn")


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_what_is_read_and_cut(text: str):
    composed, *others = forms(text)
    for other in others:
        assert normalize(other) == normalize(composed)
        assert english_words(other) == english_words(composed)
        assert french_words(other) == french_words(composed)
        assert pair_digest(other, other) == pair_digest(composed, composed)
        # Cut before or after the accents are composed, the sentences are the same.
        cut = [unicodedata.normalize("NFC", sentence) for sentence in split_sentences(other)]
        assert cut == split_sentences(composed)


@given(TEXTS, TEXTS)
@settings(max_examples=40, deadline=None)
def test_scores_and_words_found(source: str, output: str):
    sources, outputs = forms(source), forms(output)
    counted = scores.sentence_counts(outputs, [outputs[0]] * 3)
    for rows in counted:
        assert np.array_equal(rows[0], rows[1]) and np.array_equal(rows[0], rows[2])
    for one in outputs[1:]:
        assert scores.sentence_scores(one, sources[0]) == scores.sentence_scores(
            outputs[0], sources[-1]
        )
    lexicon = Lexicon.load()
    marks = [
        [word.found for word in mark(one, other, lexicon)] for one in sources for other in outputs
    ]
    assert all(found == marks[0] for found in marks)
    kept = [
        [word.state for word in remembered([one], [other], other, lexicon)[0]]
        for one, other in zip(sources, outputs, strict=True)
    ]
    assert all(found == kept[0] for found in kept)


@given(st.sampled_from("été école élève déjà français présidente même où".split()))
@settings(max_examples=10, deadline=None)
def test_the_lexicon_is_asked(word: str):
    lexicon = Lexicon.load()
    assert {lexicon.meanings(form) for form in forms(word)} == {lexicon.meanings(word)}
    assert {lexicon.translations(form) for form in forms("café")} == {lexicon.translations("café")}


@given(TEXTS)
@settings(max_examples=15, deadline=None)
def test_translations_losses_and_words_to_force(translator: Translator, text: str):
    asked = forms(text)
    found = translator.translate(asked)
    assert len({(one.target_ids, one.source_tokens, one.text) for one in found}) == 1
    losses = translator.losses([(one, one) for one in asked])
    for other in losses[1:]:
        np.testing.assert_allclose(other, losses[0], atol=1e-5)
    words = [Decoding(force_words=[one], bad_words=["x" + one]) for one in asked]
    assert len({(one.force_words, one.bad_words) for one in words}) == 1
