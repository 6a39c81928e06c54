"""Stepping through decoding: the next pieces a model would write, and going on from a given beginning."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqviz import MODEL_NAMES, tokenizer
from seqviz.language import Language
from seqviz.maps import AttentionMap
from seqviz.pieces import Pieces
from seqviz.translating.inputs import output_limit
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator
from seqviz.ui import stepping
from seqviz.ui.service import Service

SENTENCE = "The teacher painted the green boat and the teacher."
ODD = ["<b>bold</b> & ${7*7} 🙂", "a", "</s> <unk> <pad>", "我们 שלום e\u0301\u0301"]
LONG = " ".join(["The committee has forgotten those 12 letters."] * 20)


@pytest.fixture(scope="module")
def translators(tiny_model: Any, tiny_tokenizer: Any) -> dict[str, Translator]:
    made = {name: tiny_model(name) for name in MODEL_NAMES}
    return {name: Translator(model, tiny_tokenizer, name=name) for name, model in made.items()}


def same(one: Translation, other: Translation) -> None:
    """Equal in all but the time it took and the note about what was given."""
    for name in ("text", "target_ids", "target_tokens", "target_word_index", "source_tokens"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
    plain = [[note for note in t.notes if note.kind != "forced"] for t in (one, other)]
    assert plain[0] == plain[1]
    assert one.attentions.keys() == other.attentions.keys()
    for kind in one.attentions:
        np.testing.assert_allclose(one.attentions[kind], other.attentions[kind], atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Candidates


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("text", [SENTENCE, *ODD])
def test_candidates_are_what_search_chose_from(
    name: str, beams: int, text: str, translators: dict[str, Translator]
) -> None:
    translator = translators[name]
    translation = translator.translate(text, beams)
    steps = translator.candidates(translation, 300)
    assert len(steps) == len(translation.target_ids)
    unknown, padding = translator.tokenizer.unk_token_id, translator.tokenizer.pad_token_id
    ids = translator.tokenizer(text, add_special_tokens=False).input_ids
    for place, (step, taken) in enumerate(zip(steps, translation.target_ids)):
        rest = ids.count(unknown) - translation.target_ids[:place].count(unknown)
        forbidden = {padding} | ({unknown} if rest <= 0 else set())
        found = {candidate.token_id: candidate for candidate in step}
        assert found.keys() == set(range(len(translator.tokenizer))) - forbidden
        assert found[taken].log_prob == pytest.approx(translation.token_log_probs[place], abs=1e-4)
        assert found[taken].token == translation.target_tokens[place]
        values = [candidate.log_prob for candidate in step]
        assert values == sorted(values, reverse=True)
        np.testing.assert_allclose([c.probability for c in step], np.exp(values))
        # The whole vocabulary shares the probability, also what is left out.
        assert 0 < sum(candidate.probability for candidate in step) <= 1 + 1e-5
        if beams == 1:
            assert step[0].log_prob == pytest.approx(found[taken].log_prob, abs=1e-5)
    assert translator.candidates(translation) == tuple(step[:5] for step in steps)


def test_candidates_of_several_parts_and_of_nothing(translators: dict[str, Translator]) -> None:
    translator = translators["lstm-attention"]
    translation = translator.translate(LONG)
    steps = translator.candidates(translation, 1)
    assert len(translation.parts) > 1
    assert [step[0].token_id for step in steps] == list(translation.target_ids)
    assert translator.candidates(translator.translate(" \u200b")) == ()


def test_candidates_stop_where_the_output_stopped(
    translators: dict[str, Translator], tiny_tokenizer: Any
) -> None:
    translator = translators["transformer"]
    limit = output_limit(len(tiny_tokenizer(SENTENCE, add_special_tokens=False).input_ids))
    (piece,) = tiny_tokenizer.convert_tokens_to_ids(["\u2581le"])
    stopped = translator.translate_from(SENTENCE, [piece] * limit)
    assert "limit" in {note.kind for note in stopped.notes}
    assert len(translator.candidates(stopped)) == limit == len(stopped.target_tokens)


def test_candidates_refuse_what_is_no_translation(translators: dict[str, Translator]) -> None:
    translator = translators["rnn"]
    translation = translator.translate(SENTENCE)
    for count in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="expected count to be a whole number from 1"):
            translator.candidates(translation, count)  # type: ignore[arg-type]
    other = Translation(
        "rnn", "Another text.", "", Pieces.of(("x",)), Pieces.of(("y",)), target_ids=(7,)
    )
    with pytest.raises(ValueError, match=r"source_tokens are those of its source.*use what"):
        translator.candidates(other)


# ---------------------------------------------------------------------------------------------
# A given beginning


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("text", [SENTENCE, *ODD])
def test_greedy_from_a_beginning_of_its_own_is_its_own(
    name: str, text: str, translators: dict[str, Translator]
) -> None:
    translator = translators[name]
    translation = translator.translate(text)
    for k in range(len(translation.target_ids) + 1):
        again = translator.translate_from(translation, translation.target_ids[:k])
        same(again, translation)
        said = [note for note in again.notes if note.kind == "forced"]
        assert [note.values for note in said] == ([(k,)] if k else [])


@given(data=st.data(), name=st.sampled_from(MODEL_NAMES), beams=st.sampled_from([1, 3]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_beginning_is_kept_and_scored_as_the_model_scores_it(
    data: st.DataObject, name: str, beams: int, translators: dict[str, Translator]
) -> None:
    translator = translators[name]
    text = data.draw(st.sampled_from([SENTENCE, *ODD]))
    size = len(translator.tokenizer)
    ids = st.integers(0, size - 1).filter(lambda i: i not in (0, 1, size - 1))
    prefix = data.draw(st.lists(ids, max_size=8))
    if data.draw(st.booleans()):
        prefix.append(0)
    found = translator.translate_from(text, prefix, beams)
    assert found.target_ids[: len(prefix)] == tuple(prefix)
    assert found.num_beams == beams
    steps = translator.candidates(found, size)
    for step, taken, value in zip(steps, found.target_ids, found.token_log_probs, strict=True):
        own = {candidate.token_id: candidate.log_prob for candidate in step}
        assert own[taken] == pytest.approx(value, abs=1e-4)
    ended = found.target_ids[-1] == 0
    assert ended or "limit" in {note.kind for note in found.notes}
    if prefix[-1:] == [0]:
        assert found.target_ids == tuple(prefix)
    source = translator.tokenizer.convert_tokens_to_ids(list(found.source_tokens[:-1]))
    for kind, weights in translator.attend(source, found.target_ids).items():
        np.testing.assert_allclose(found.attentions[kind], weights, atol=1e-5)
    if beams == 1:  # each step after the given ones takes the best
        for step, taken in list(zip(steps, found.target_ids))[len(prefix) :]:
            own = {candidate.token_id: candidate.log_prob for candidate in step}
            assert own[taken] == pytest.approx(step[0].log_prob, abs=1e-5)


def test_attention_is_kept_unless_it_is_not_wanted(translators: dict[str, Translator]) -> None:
    translator = translators["transformer"]
    first = translator.translate(SENTENCE).target_ids[:1]
    assert set(translator.translate_from(SENTENCE, first).attentions) == {
        "cross",
        "encoder",
        "decoder",
    }
    assert translator.translate_from(SENTENCE, first, attention=False).attentions == {}


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ([300], r"expected prefix_ids from 0 to 299, got 300 at place 0; take them"),
        ([7, -1], r"expected prefix_ids from 0 to 299, got -1 at place 1; take them"),
        ([7, 1], r"that the models write, got 1 \(<unk>\) at place 1; leave it out"),
        ([299], r"that the models write, got 299 \(<pad>\) at place 0; leave it out"),
        ([7, 0, 7], r"end token 0 only as the last of prefix_ids, got it at place 1 of 3; cut"),
        ([7] * 1000, r"expected at most \d+ prefix_ids for this source.* got 1000; give fewer"),
    ],
)
def test_a_beginning_that_no_output_has(
    prefix: list[int], message: str, translators: dict[str, Translator]
) -> None:
    for beams in (1, 2):
        with pytest.raises(ValueError, match=message):
            translators["lstm"].translate_from(SENTENCE, prefix, beams)


def test_what_cannot_be_gone_on_from(translators: dict[str, Translator]) -> None:
    translator = translators["lstm"]
    with pytest.raises(ValueError, match=r"read at once, got one of \d+ parts; give one part"):
        translator.translate_from(LONG, [7])
    whole = translator.translate(LONG)
    with pytest.raises(ValueError, match="read at once"):
        translator.translate_from(whole, [])
    same(
        translator.translate_from(whole.parts[1], whole.parts[1].target_ids[:2], attention=False),
        whole.parts[1],
    )
    with pytest.raises(ValueError, match="expected a text to translate, got an empty one"):
        translator.translate_from("  ", [7])
    assert translator.translate_from("  ", []).text == ""
    with pytest.raises(ValueError, match="num_beams from 1 to 32"):
        translator.translate_from(SENTENCE, [7], 0)
    with pytest.raises(TypeError, match="expected prefix_ids as whole numbers"):
        translator.translate_from(SENTENCE, ["le"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected text or a translation, got list"):
        translator.translate_from([SENTENCE], [7])  # type: ignore[arg-type]
    ids = torch.tensor(translator.translate(SENTENCE).target_ids[:2])
    same(translator.translate_from(SENTENCE, ids), translator.translate(SENTENCE))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 3, "length_penalty": 2.0},
        {"do_sample": True, "seed": 3, "temperature": 2.0},
        {"max_new_tokens": 5},
        {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 6},
        {"do_sample": True, "num_return_sequences": 3},
        {"bad_words": ["le"]},
        {"force_words": ["le"], "num_beams": 2},
    ],
)
def test_going_on_takes_what_translate_takes(
    name: str, options: dict[str, Any], translators: dict[str, Translator]
) -> None:
    """Any beginning is kept under every option; without one it is `translate`."""
    translator = translators[name]
    plain = translator.translate(SENTENCE, **options)
    again = translator.translate_from(SENTENCE, [], **options)
    (piece,) = translator.tokenizer.convert_tokens_to_ids(["\u2581la"])
    found = translator.translate_from(SENTENCE, [piece, piece], **options)
    if "num_return_sequences" not in options:
        plain, again, found = [plain], [again], [found]
    assert [one.target_ids for one in again] == [one.target_ids for one in plain]
    assert 1 <= len(found) <= options.get("num_return_sequences", 1)
    for one in found:
        assert one.target_ids[:2] == (piece, piece)
        assert len(one.target_ids) <= options.get("max_new_tokens", 100)
        assert "forced" in {note.kind for note in one.notes}
        if {"force_words", "bad_words"} & options.keys():
            held = re.search(r"(?<![^\W_])[lL]e(?![^\W_])", one.text) is not None
            assert held == ("force_words" in options)
        total = sum(one.token_log_probs)
        size = len(one.target_ids) ** options.get("length_penalty", 1.0)
        assert one.score == pytest.approx(total / size)
        steps = translator.candidates(one, 300)
        own = [{c.token_id: c.log_prob for c in step}[t] for step, t in zip(steps, one.target_ids)]
        assert one.token_log_probs == pytest.approx(own, abs=1e-4)
        assert bool(one.attentions) == bool(translator.attention_kinds)


def test_what_going_on_refuses_as_translate_does(translators: dict[str, Translator]) -> None:
    translator = translators["lstm"]
    la, le = translator.tokenizer.convert_tokens_to_ids(["\u2581la", "\u2581le"])
    for options, message in [
        ({"temperature": 2.0}, "expected do_sample with temperature"),
        ({"do_sample": True, "num_beams": 2}, "expected num_beams 1 with do_sample"),
        ({"num_return_sequences": 2}, "num_return_sequences up to num_beams"),
        ({"bad_words": "le"}, "expected bad_words as a list"),
        ({"max_new_tokens": 1}, "expected at most 1 prefix_ids .* got 2; give fewer"),
        ({"bad_words": ["la"]}, "that hold none of bad_words, got one up to place 1; give fewer"),
        ({"bad_words": ["le"], "max_new_tokens": 2}, "none of bad_words, got one up to place 1"),
        ({"force_words": ["la"], "bad_words": ["la"]}, "not both in force_words and bad_words"),
        ({"force_words": ["boat"], "max_new_tokens": 3}, "force_words"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            translator.translate_from(SENTENCE, [la, le], **options)
    with pytest.raises(ValueError, match="all force_words and no bad_words, found none"):
        translator.translate_from(SENTENCE, [la, le, 0], force_words=["boat"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'beams'"):
        translator.translate_from(SENTENCE, [la], beams=3)  # type: ignore[call-overload]
    # A word that goes on in the beginning is not held yet.
    found = translator.translate_from(SENTENCE, [la, le], bad_words=["le"], attention=False)
    assert found.target_ids[:2] == (la, le)
    assert found.attentions == {}


# ---------------------------------------------------------------------------------------------
# The page's service


def test_service_keeps_what_it_has_made(translators: dict[str, Translator], tmp_path: Any) -> None:
    service = Service(tmp_path, translators=translators)
    own = service.translate("transformer", SENTENCE, attention=True)
    second = service.candidates("transformer", own)[1][1].token_id
    prefix = (own.target_ids[0], second)
    forced = service.translate_from("transformer", SENTENCE, prefix, attention=True)
    assert forced.target_ids[:2] == prefix and forced.attentions
    again = service.translate_from("transformer", SENTENCE, list(prefix), attention=True)
    assert again is forced
    assert service.translate_from("transformer", SENTENCE, prefix) is forced
    assert service.translate("transformer", SENTENCE, attention=True) is own
    assert service.translate_from("transformer", SENTENCE, (), attention=True) is own
    assert service.candidates("transformer", forced) is service.candidates("transformer", forced)
    assert service.candidates("transformer", own) != service.candidates("transformer", forced)
    with pytest.raises(ValueError, match="leave it out"):
        service.translate_from("transformer", SENTENCE, [1])


# ---------------------------------------------------------------------------------------------
# The panel


def panel(
    translator: Translator, translation: Translation, language: str = "en", **options: Any
) -> ElementTree.Element:
    rows = translation.attention("cross").head() if translation.attentions else None
    markup = stepping.render(
        translation, translator.candidates(translation), rows, language, **options
    )
    assert not [c for c in markup if ord(c) < 32]
    return ElementTree.fromstring(markup)


def by_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [e for e in root.iter() if name in e.get("class", "").split()]


def text_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def test_the_end_is_said_in_words() -> None:
    assert stepping._piece("x", tokenizer.EOS_TOKEN_ID, "en")[0] == Language.of("en").say(
        "stepping.end"
    )


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("text", [SENTENCE, *ODD, "a\x00b \ud83d <script>alert(1)</script>"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_panel_holds_every_token_and_is_well_formed(
    name: str, text: str, language: str, translators: dict[str, Translator]
) -> None:
    translator = translators[name]
    translation = translator.translate(text, 3)
    root = panel(translator, translation, language)
    assert not list(root.iter("script"))
    total = len(translation.target_tokens)
    pieces = by_class(root, "st-piece")
    assert [e.get("data-place") for e in pieces] == [str(i) for i in range(total)]
    written = text_of(by_class(root, "st-output")[0]).replace("⏎", "").replace("␣", " ")
    assert written.split() == translation.text.split()
    steps = json.loads(root.get("data-steps", ""))
    assert len(steps) == total
    for step, taken, index in zip(steps, translation.target_ids, translation.target_word_index):
        assert [row["id"] for row in step["rows"] if row["tag"]] == [taken]
        assert len(step["rows"]) in (5, 6)
        assert step["word"] == (index if index >= 0 else len(translation.target_words))
    assert json.loads(root.get("data-ids", "")) == list(translation.target_ids)
    chips = by_class(root, "st-chips")
    assert bool(chips) == (name in ("lstm-attention", "transformer"))
    if chips:
        assert [e[0].text for e in chips[0]] == list(translation.source_words)
        numbers = np.frombuffer(base64.b64decode(root.get("data-weights", "")), "<f4")
        map_: AttentionMap = translation.attention("cross")
        expected = map_.head()[:, [w >= 0 for w in translation.source_word_index]].sum(axis=1)
        np.testing.assert_allclose(numbers.reshape(total, -1).sum(axis=1), expected, atol=1e-5)
        # Of the rows of one piece, the words' weights are those of the map of words.
        single = [
            place
            for place, word in enumerate(translation.target_word_index)
            if translation.target_word_index.count(word) == 1 and word >= 0
        ]
        merged = map_.words().head()
        for place in single:
            np.testing.assert_allclose(
                numbers.reshape(total, -1)[place],
                merged[translation.target_word_index[place]],
                atol=1e-5,
            )
    else:
        assert Language.of(language).say("stepping.vector") in text_of(root)
        assert root.get("data-weights") == ""


def test_panel_opens_at_the_chosen_piece(translators: dict[str, Translator]) -> None:
    translator = translators["lstm-attention"]
    own = translator.translate(SENTENCE)
    assert by_class(panel(translator, own), "st-own") == []
    choice = translator.candidates(own)[2][3]
    forced = translator.translate_from(own, (*own.target_ids[:2], choice.token_id))
    root = panel(translator, forced, given=3, key="a<b>")
    assert root.get("data-start") == "2" and root.get("data-key") == "a<b>"
    now = by_class(root, "st-now")
    assert [e.get("data-place") for e in now] == ["2"]
    assert [e.get("data-place") for e in by_class(root, "st-given")] == ["0", "1", "2"]
    assert Language.of("en").say("stepping.forced") in text_of(by_class(root, "st-own")[0])
    taken = [e for e in by_class(root, "st-candidate") if e.get("aria-disabled") == "true"]
    assert [e.get("data-token") for e in taken] == [str(choice.token_id)]
    assert Language.of("en").say("stepping.chosen") in text_of(taken[0])
    assert f"{100 * choice.probability:.1f} %" in text_of(taken[0])


def test_small_shares_and_the_pieces_of_a_word_are_told_apart() -> None:
    rows = [
        stepping._row(9, "\u2581le", np.log(0.5), "en"),
        stepping._row(8, "tion", np.log(0.00012), "zh"),
        stepping._row(7, "\u2581", -40.0, "en"),
        stepping._row(0, "</s>", -0.0001, "zh"),
    ]
    assert [row["percent"] for row in rows] == ["50.0 %", "0.0120%", "< 0.0001 %", "100.0%"]
    assert [row["text"] for row in rows] == ["le", "tion", "␣ space alone", "⏎ 句子结束"]
    assert [row["joined"] for row in rows] == [False, True, False, False]


def test_panel_refuses_what_does_not_belong_together(translators: dict[str, Translator]) -> None:
    translator = translators["transformer"]
    found = translator.translate(SENTENCE)
    candidates = translator.candidates(found)
    with pytest.raises(ValueError, match=r"expected candidates for \d+ steps, got 1"):
        stepping.render(found, candidates[:1])
    with pytest.raises(ValueError, match=r"expected rows \(\d+, \d+\).* got \(2, 2\)"):
        stepping.render(found, candidates, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"expected one part, got a text of \d+ parts"):
        stepping.render(translator.translate(LONG), candidates)
    assert stepping.render(translator.translate(""), ()) == ""


def test_a_start_belongs_to_one_sentence() -> None:
    key = stepping.key_of("rnn", "A sentence \ud83d.", 1)
    assert key != stepping.key_of("rnn", "A sentence \ud83d.", 4)
    said = stepping._chosen(gr.EventData(None, {"ids": [5, 6], "key": key}))
    assert stepping.start_ids(said, key) == (5, 6)
    assert stepping.start_ids(said, "another") == ()
    assert stepping.start_ids(None, key) == ()
    for nonsense in (
        {},
        {"ids": [], "key": key},
        {"ids": "12", "key": key},
        {"ids": [1, "2"], "key": key},
        {"ids": [True], "key": key},
        {"ids": [5] * 1001, "key": key},
        {"ids": [5], "key": 3},
    ):
        assert stepping._chosen(gr.EventData(None, nonsense)) is None
