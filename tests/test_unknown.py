"""Characters without a piece: the models may write them, and they come back as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seqviz import MODEL_NAMES
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator
from seqviz.translating.unknown import nothing_known, places
from seqviz.ui import cards, growth, lanes
from seqviz.ui.outcomes import Output
from seqviz.ui.service import Service

UNK = 1
FOND = 8.0
"""Added to the logit of the unknown piece: it is written as soon as it may be."""


@pytest.fixture
def fond(tiny_model: Any, tiny_tokenizer: Any) -> Any:
    """Makes translators whose models write the unknown piece whenever they may."""
    made: list[Any] = []

    def make(name: str) -> Translator:
        model = tiny_model(name)
        bias = model.final_logits_bias
        made.append((bias, bias.clone()))
        bias[0, UNK] += FOND
        return Translator(model, tiny_tokenizer, name=name)

    yield make
    for bias, before in made:
        bias.copy_(before)


def kinds(found: Translation) -> set[str]:
    return {note.kind for note in found.notes}


# ---------------------------------------------------------------------------------------------
# Which character stands where


def test_without_attention_the_next_in_order() -> None:
    assert places([5, UNK, 6, UNK, UNK], [UNK, 7, UNK], UNK) == {0: 1, 2: 3}
    assert places([5, 6], [7, 8], UNK) == {}


def test_with_attention_the_unknown_of_largest_weight_in_the_last_layer() -> None:
    weights = np.zeros((2, 2, 3, 4))
    weights[0, :, :, 0] = 1.0  # the first layer looks elsewhere
    weights[1, 0, 0] = [0.1, 0.5, 0.1, 0.3]
    weights[1, 1, 0] = [0.2, 0.0, 0.1, 0.7]  # mean 0.15, 0.25, 0.1, 0.5
    weights[1, :, 2] = [0.0, 0.1, 0.0, 0.9]  # the last one again, which is taken
    source = [UNK, UNK, 5, UNK]
    assert places(source, [UNK, 7, UNK], UNK, weights) == {0: 3, 2: 1}
    # A known piece of larger weight is not looked at.
    weights[1, :, 0] = [0.1, 0.2, 0.7, 0.0]
    assert places(source, [UNK], UNK, weights) == {0: 1}


def test_nothing_is_known_where_only_signs_are() -> None:
    assert nothing_known(["\u2581", "你好"], [9, UNK], UNK)
    assert nothing_known(["\u2581", "你好", "!"], [9, UNK, 8], UNK)
    assert not nothing_known(["\u2581", "你好", "a"], [9, UNK, 8], UNK)
    assert not nothing_known(["\u2581", "²", "\u25812"], [9, UNK, 8], UNK)
    assert not nothing_known(["\u2581-"], [9], UNK)


# ---------------------------------------------------------------------------------------------
# Translations


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_written_unknown_is_its_character_and_each_at_most_once(
    name: str, beams: int, fond: Any
) -> None:
    translator = fond(name)
    for text, characters in (
        ("The bridge 桥 is green.", ["桥"]),
        ("The 桥 and the 😀 and the ☃ are green.", ["桥", "😀", "☃"]),
        ("Nobody painted the boat.", []),
    ):
        found = translator.translate(text, beams)
        assert found.target_ids.count(UNK) == len(characters)
        written = [
            t for t, id_ in zip(found.target_tokens, found.target_ids, strict=True) if id_ == UNK
        ]
        assert sorted(written) == sorted(characters)
        assert all(found.text.count(character) == 1 for character in characters)
        assert "<unk>" not in found.text and not {"unknown", "copied"} & kinds(found)
        assert "".join(found.target_words) == found.text.replace(" ", "")


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_models_without_attention_keep_the_order(name: str, fond: Any) -> None:
    found = fond(name).translate("The 桥 and the 😀 and the ☃ are green.")
    assert "".join(c for c in found.text if c in "桥😀☃") == "桥😀☃"


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_models_with_attention_take_what_they_look_at(name: str, fond: Any) -> None:
    translator = fond(name)
    text = "The 桥 and the 😀 and the ☃ are green."
    found = translator.translate(text, attention=True)
    ids = tuple(translator.tokenizer.convert_tokens_to_ids(list(found.source_tokens)))
    expected = places(ids, found.target_ids, UNK, found.attentions["cross"])
    assert len(expected) == 3
    for step, place in expected.items():
        assert found.target_tokens[step] == found.source_tokens[place]
    # So it is in a batch that keeps no attention, too.
    batched = translator.translate([text, "The boat.", "☃ 😀 are green."])
    assert batched[0].text == found.text and batched[0].target_tokens == found.target_tokens
    assert not batched[0].attentions
    assert batched[2].text == translator.translate("☃ 😀 are green.").text


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_only_what_was_not_written_is_said(name: str, tiny_model: Any, tiny_tokenizer: Any) -> None:
    model = tiny_model(name)
    translator = Translator(model, tiny_tokenizer, name=name)
    text = "The 桥 is not the 😀."
    prefix = (40, UNK, tiny_tokenizer.eos_token_id)
    found = translator.translate_from(text, prefix)
    (note,) = (note for note in found.notes if note.kind == "unknown")
    (missing,) = note.values
    assert (missing in found.text, {"桥": "😀", "😀": "桥"}[missing] in found.text) == (False, True)
    with pytest.raises(ValueError, match="prefix_ids that the models write, got 1"):
        translator.translate_from(text, (UNK, 40, UNK, UNK))


def test_a_beginning_of_the_own_output_gives_that_output(fond: Any) -> None:
    translator = fond("transformer")
    text = "The 桥 is not the 😀."
    whole = translator.translate(text)
    for cut in range(1, len(whole.target_ids) + 1):
        again = translator.translate_from(text, whole.target_ids[:cut])
        assert again.target_ids == whole.target_ids and again.text == whole.text


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_candidates_hold_the_unknown_piece_while_there_is_one_left(name: str, fond: Any) -> None:
    translator = fond(name)
    found = translator.translate("The 桥 is green.")
    written = found.target_ids.index(UNK)
    steps = translator.candidates(found, 300)
    for place, step in enumerate(steps):
        ids = [candidate.token_id for candidate in step]
        assert (UNK in ids) == (place <= written)
        assert found.target_ids[place] == ids[0]
    assert steps[written][0].token == "桥"


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_ids_are_those_of_generate_where_nothing_is_unknown(
    name: str, fond: Any, tiny_tokenizer: Any
) -> None:
    translator = fond(name)
    model = translator.model
    for text in ("The old sailor painted the bridge.", "Nobody!"):
        found = translator.translate(text)
        generated = model.generate(
            **tiny_tokenizer(text, return_tensors="pt"),
            max_new_tokens=len(found.target_ids),
            num_beams=1,
            suppress_tokens=[UNK, model.config.pad_token_id],
        )
        assert generated[0, 1 : 1 + len(found.target_ids)].tolist() == list(found.target_ids)


# ---------------------------------------------------------------------------------------------
# Nothing to translate


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("text", ["你好世界", "桥 😀!", "☃"])
def test_a_text_without_a_known_piece_comes_back(
    name: str, text: str, tiny_model: Any, tiny_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator(tiny_model(name), tiny_tokenizer, name=name)
    # Nothing may be decoded.
    monkeypatch.setattr("seqviz.translating.translator.stepper_for", None)
    for found in (translator.translate(text), translator.translate([text], 3)[0]):
        assert (found.text, found.source) == (text, text)
        assert (found.target_ids, found.target_tokens, found.source_tokens) == ((), (), ())
        assert "copied" in kinds(found) and "unknown" not in kinds(found)
        assert translator.candidates(found) == ()
        assert found.to_dict()["text"] == text
        found._repr_html_()
        with pytest.raises(ValueError):
            found.attention()
        for language in ("en", "zh"):
            output = Output(found.text, notes=found.notes)
            outputs = {model: [output] for model in MODEL_NAMES}
            shown = lanes.Shown(Service(), growth.whole(text), language, outputs)
            assert text in lanes.french(output, shown)
            assert cards.notes(found.notes, language)


def test_such_a_line_stands_among_others(tiny_model: Any, tiny_tokenizer: Any) -> None:
    translator = Translator(tiny_model("lstm-attention"), tiny_tokenizer, name="lstm-attention")
    texts = ["The boat.", "你好世界", "Nobody painted the bridge.", "☃"]
    found = translator.translate(texts)
    assert [item.text for item in found] == [translator.translate(text).text for text in texts]
    assert found[1].text == "你好世界" and found[3].text == "☃"
    long = " ".join(["The committee has forgotten those 12 letters."] * 14 + ["桥桥桥."])
    whole = translator.translate(long)
    assert whole.parts[-1].text == "桥桥桥." and whole.text.endswith("桥桥桥.")
    assert {"split", "copied"} <= kinds(whole)


def test_unknown_characters_of_all_parts_are_said(tiny_model: Any, tiny_tokenizer: Any) -> None:
    translator = Translator(tiny_model("lstm"), tiny_tokenizer, name="lstm")
    text = " ".join(
        ["The 桥 has forgotten 12 letters."] * 12 + ["The ☃ has forgotten 12 letters."] * 3
    )
    found = translator.translate(text)
    (note,) = (note for note in found.notes if note.kind == "unknown")
    written = {c for part in found.parts for c in part.text}
    assert set(note.values) == {"桥", "☃"} - written
