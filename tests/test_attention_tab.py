"""The Attention tab without a browser: what it draws, what it hands out, its endpoint."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import numpy as np
import pytest
from browsing import free_port
from fastapi import FastAPI
from fastapi.testclient import TestClient

from seqviz import ui
from seqviz.drawing.export import FORMATS
from seqviz.drawing.styles import visible
from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import attention, choice, lines, matrices, text, theme
from seqviz.ui.choice import Choice
from seqviz.ui.growth import MAX_CHARACTERS
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import Spoken

SENTENCE = "The teacher painted the green boat and the teacher."
ODD = "<script>alert(1)</script> ${7*7} $x_$ 我们 שלום 🙂 the the"


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    made = {name: tiny_model(name) for name in MODELS}
    made["transformer"].set_attn_implementation("eager")
    return {name: Translator(model, tiny_tokenizer, name=name) for name, model in made.items()}


@pytest.fixture
def service(translators, tmp_path) -> Service:
    return Service(tmp_path, translators=translators)


def draw(service: Service, language: str = "en", **chosen: Any) -> dict[str, Any]:
    """The last state that the tab comes to."""
    chosen = {"text": SENTENCE, **chosen}
    shown: dict[str, Any] = {}
    for state in attention.draw(service, Choice(**chosen), language):
        assert set(state) <= set(attention.DRAWN)
        shown |= state
    return shown


def labels(picture: str, side: str = "sv-across", number: int = 0) -> list[str]:
    root = ElementTree.fromstring(f"<div>{picture}</div>")
    found = [e for e in root.iter() if e.get("class") == side][number]
    return ["".join(label.itertext()) for label in found]


def choices(update: Any) -> list[Any]:
    return [value for _, value in update.choices]


def stays(update: Any) -> bool:
    """Whether a choice keeps its value, and with it what a person clicks meanwhile."""
    return "value" not in update.constructor_args


# ---------------------------------------------------------------------------------------------
# Drawing


@pytest.mark.parametrize("model", ["lstm-attention", "transformer"])
def test_map_of_a_translation(service, model: str):
    shown = draw(service, model=model)
    translation = service.translate(model, SENTENCE, attention=True)
    assert labels(shown["picture"]) == list(translation.source_words)
    assert labels(shown["picture"], "sv-down") == list(translation.target_words)
    assert Language.of("en").say("attention.caution") in shown["caution"]
    several = model == "transformer"
    assert shown["layer"].visible is several and shown["head"].visible is several
    assert choices(shown["kind"]) == (["cross", "encoder", "decoder"] if several else ["cross"])
    assert choices(shown["layer"]) == (["", 0, 1] if several else ["best", "", 0])
    assert shown["part"].visible is False


@pytest.mark.parametrize("model", ["rnn", "lstm"])
def test_fixed_vector_is_drawn_as_what_it_is(service, model: str, translators):
    shown = draw(service, model=model, language="zh")
    assert "解码器所能知道的，全在这里。" in shown["picture"]
    assert Language.of("zh").say("attention.caution_vector") in shown["caution"]
    assert shown["kind"].visible is False and "sv-heads" not in shown["picture"]
    assert choices(shown["view"]) == ["attention", "saliency"]
    translation = service.translate(model, SENTENCE, attention=True)
    vector = translators[model].vector(translation)
    # The same numbers as from the tokenizer's own call of the model's encoder.
    translator = translators[model]
    encoded = translator.tokenizer(SENTENCE, return_tensors="pt")
    expected = translator.model.model.encoder(**encoded).vector[0]
    np.testing.assert_allclose(vector, expected.detach().numpy(), atol=1e-6)
    text = base64.b64encode(vector.astype("<f4").tobytes()).decode()
    assert text in shown["picture"]


def test_pieces_and_specials(service):
    translation = service.translate("transformer", SENTENCE, attention=True)
    pieces = draw(service, model="transformer", unit="pieces")["picture"]
    assert labels(pieces) == list(translation.source_tokens[:-1])
    everything = draw(service, model="transformer", unit="pieces", specials=True)["picture"]
    assert labels(everything) == list(translation.source_tokens)
    ended = draw(service, model="transformer", specials=True)["picture"]
    assert labels(ended) == [*translation.source_words, "</s>"]


def test_kind_layer_and_head(service):
    shown = draw(service, model="transformer", kind="encoder", layer=1, head=0)
    translation = service.translate("transformer", SENTENCE, attention=True)
    assert labels(shown["picture"], "sv-down") == list(translation.source_words)
    assert "layer 2 of 2 · head 1 of 2" in shown["picture"]
    assert stays(shown["layer"]) and stays(shown["head"])
    assert 'data-layer="1" data-head="0" aria-pressed="true"' in shown["picture"]


def test_what_a_model_lacks_falls_back_and_is_said(service):
    shown = draw(service, model="lstm-attention", kind="encoder", layer=2, head=3)
    assert (
        "LSTM + attention has no such attention; shown is: French looks at English."
        in shown["message"]
    )
    assert shown["kind"].value == "cross"
    assert shown["layer"].value == "" and shown["head"].value == ""


def test_two_models_on_one_scale(service):
    shown = draw(service, model="lstm-attention", second="transformer", color_max=0.5)["picture"]
    (pair,) = [e for e in ElementTree.fromstring(shown).iter() if e.get("class") == "sv-pair"]
    assert len(pair) == 2
    assert shown.count("</i>≥ 0.5 weight") == 2
    same = draw(service, model="transformer", second="transformer")["picture"]
    assert "sv-pair" not in same
    mixed = draw(service, model="rnn", second="transformer")["picture"]
    assert "sv-vector" in mixed and "sv-map" in mixed


@pytest.mark.parametrize("model", MODELS)
def test_a_chosen_start_is_kept_in_all_that_is_shown(service, model: str):
    own = service.translate(model, SENTENCE, attention=True)
    token = service.candidates(model, own)[0][2].token_id
    forced = service.translate_from(model, SENTENCE, [token], attention=True)
    assert forced.target_ids[0] == token != own.target_ids[0]
    key = Choice(SENTENCE, model).key
    said = {"text": SENTENCE, "model": model, "start": {"key": key, "ids": [token]}}
    assert Choice.of(said).prefix == (token,)
    shown = draw(service, model=model, prefix=(token,))
    assert Language.of("en").say("note.forced", number=1) in shown["message"]
    steps = ElementTree.fromstring(shown["steps"])
    assert json.loads(steps.get("data-ids", "")) == list(forced.target_ids)
    assert steps.get("data-key") == key and steps.get("data-given") == "1"
    assert Language.of("en").say("stepping.own") in shown["steps"]
    if model not in ("rnn", "lstm"):
        assert labels(shown["picture"], "sv-down") == list(forced.target_words)
    # It belongs to this sentence, model and search.
    assert Choice.of(said | {"beams": 4}).prefix == ()
    own_steps = ElementTree.fromstring(draw(service, model=model)["steps"])
    assert json.loads(own_steps.get("data-ids", "")) == list(own.target_ids)


def test_steps_show_the_head_that_is_on_the_screen(service):
    shown = draw(service, model="transformer", layer=1, head=0, best=False)
    steps = ElementTree.fromstring(shown["steps"])
    numbers = np.frombuffer(base64.b64decode(steps.get("data-weights", "")), "<f4")
    translation = service.translate("transformer", SENTENCE, attention=True)
    expected = translation.attention().head(1, 0)[0]
    count = len(translation.source_words)
    assert numbers[:count].sum() == pytest.approx(float(expected[:-1].sum()), abs=1e-5)
    assert "layer 2 of 2 · head 1 of 2" in shown["steps"]


@pytest.mark.parametrize("model", MODELS)
def test_saliency_of_every_model(service, model: str):
    shown = draw(service, model=model, view="saliency")
    translation = service.translate(model, SENTENCE, attention=True)
    assert labels(shown["picture"]) == list(translation.source_words)
    assert labels(shown["picture"], "sv-down") == list(translation.target_words)
    assert "Gradient × input: " in shown["caution"]
    assert shown["kind"].visible is False
    name, data = file(service, "json", model=model, view="saliency")
    found = json.loads(data)
    assert name == f"saliency-{model}.json"
    total = np.array(found["weights"]).sum(axis=1) + np.array(found["hidden"])
    np.testing.assert_allclose(total, 1, atol=1e-6)


def test_paragraphs_are_parts(service):
    text = f"{SENTENCE}\n\nThe farmer sold the old\nhouse."
    first, second = draw(service, text=text), draw(service, text=text, part=1)
    assert choices(first["part"]) == [0, 1]
    assert labels(first["picture"]) == SENTENCE.split()
    assert labels(second["picture"]) == "The farmer sold the old house.".split()
    assert "Read in 2 parts" in first["message"]


def test_the_same_model_twice_is_said(service):
    shown = draw(service, model="transformer", second="transformer")
    assert Language.of("en").say("attention.same") in shown["message"]


def test_a_chosen_start_is_said_and_kept_in_files(service):
    own = service.translate("lstm-attention", SENTENCE, attention=True)
    prefix = (own.target_ids[0], own.target_ids[0])
    shown = draw(service, prefix=prefix)
    assert Language.of("en").say("attention.given", count=2) in shown["picture"]
    found = json.loads(file(service, "json", prefix=prefix)[1])
    assert found["given_pieces"] == 2
    assert "given_pieces" not in json.loads(file(service, "json")[1])
    assert (
        Language.of("en").say("attention.given", count=2)
        in file(service, "html", prefix=prefix)[1].decode()
    )


def with_measured_head(service: Service, folder: Path, weights: str) -> None:
    """A report that names layer 2, head 1 of the Transformer, measured on `weights`."""
    (folder / "transformer").mkdir()
    (folder / "transformer" / "training.json").write_text('{"weights_sha256": "abc"}')
    report = {
        "models": {"transformer": {"weights_sha256": weights}},
        "choice": {"transformer": {"layer": 0, "head": 1, "reading": "reading"}},
        "heads": {
            "transformer": {
                "aer": [[0.5, 0.5], [0.3, 0.5]],
                "best": {
                    "predicting": {"layer": 1, "head": 0, "reading": "predicting"},
                    "reading": {"layer": 0, "head": 1, "reading": "reading"},
                },
            }
        },
        "results": {
            "transformer": {"aer": {"value": 0.1111}},
            "transformer:predicting": {"aer": {"value": 0.3333}},
            "transformer:reading": {"aer": {"value": 0.2222}},
            "transformer:saliency": {"aer": {"value": 0.4444}},
            "diagonal": {"aer": {"value": 0.5555}},
        },
    }
    (folder / "report").mkdir()
    (folder / "report" / "attention.json").write_text(json.dumps(report))


def test_the_head_closest_to_alignments(service, tmp_path: Path):
    with_measured_head(service, tmp_path, "abc")
    shown = draw(service, model="transformer", best=True)
    assert "layer 2 of 2 · head 1 of 2" in shown["picture"]
    assert "made by hand: error rate 0.33; a plain diagonal 0.56." in shown["picture"]
    saliency = draw(service, model="transformer", view="saliency", best=True)
    assert "made by hand: error rate 0.44; a plain diagonal 0.56." in saliency["picture"]
    assert "2 · 1 ★" in shown["picture"]
    assert stays(shown["layer"])
    assert choices(shown["layer"]) == ["best", "", 0, 1]
    other = draw(service, model="transformer", layer=0, head=0)
    assert "made by hand" not in other["picture"]
    # It was chosen for cross-attention; of the other kinds the mean is shown.
    encoder = draw(service, model="transformer", best=True, kind="encoder")
    assert "mean of 2 layers × 2 heads" in encoder["picture"]
    assert "mean entropy" in encoder["picture"]
    assert stays(encoder["layer"])  # it is there again with the next cross-attention
    assert shown["head"].visible is False and other["head"].visible is True
    decoder = draw(service, model="transformer", best=True, kind="decoder")
    assert "% on the start" in decoder["picture"]
    assert "% on the end" not in decoder["picture"]


def test_a_word_is_shown_at_the_step_that_reads_it(service, tmp_path: Path):
    with_measured_head(service, tmp_path, "abc")
    shown = draw(service, model="transformer", best=True, reading="reading")
    assert "layer 1 of 2 · head 2 of 2" in shown["picture"] and "1 · 2 ★" in shown["picture"]
    assert Language.of("en").say("attention.read_later") in shown["picture"]
    assert "made by hand: error rate 0.22; a plain diagonal 0.56." in shown["picture"]
    assert shown["reading"].visible is True
    translation = service.translate("transformer", SENTENCE, attention=True)
    expected = translation.attention().at("reading").words()
    said = json.loads(file(service, "json", model="transformer", best=True, reading="reading")[1])
    assert said["reading"] == "reading"
    np.testing.assert_allclose(said["weights"], expected.head(0, 1))
    assert drawn_weights(shown["lines"]) == pytest.approx(expected.head(0, 1), abs=1e-6)
    # Where nothing is read at a step, there is no choice.
    for other in ({"kind": "encoder"}, {"view": "saliency"}):
        assert draw(service, model="transformer", **other)["reading"].visible is False
    assert draw(service, model="lstm")["reading"].visible is False


def test_a_head_chosen_on_other_weights_is_not_offered(service, tmp_path: Path):
    with_measured_head(service, tmp_path, "of yesterday")
    shown = draw(service, model="transformer", best=True)
    assert "mean of 2 layers × 2 heads" in shown["picture"]
    assert choices(shown["layer"]) == ["", 0, 1]
    assert shown["layer"].value == ""


@pytest.mark.parametrize("text", ["", "  \n ", "\u200b"])
def test_empty_text(service, text: str):
    shown = draw(service, text=text)
    assert Language.of("en").say("attention.empty") in shown["message"] and shown["picture"] == ""


def test_text_that_is_not_english_is_said(service):
    shown = draw(service, text="我们把分数公布出来", second="transformer")
    # Said once, in the language of the writer, with texts that the models read.
    assert shown["message"].count(Language.of("zh").say("translate.chinese")) == 1
    assert shown["message"].count("data-example=") == 3 and not shown["picture"]
    german = draw(
        service, text="Wir haben die Ergebnisse nicht veröffentlicht", second="transformer"
    )
    assert german["message"].count(Language.of("en").say("translate.language")) == 1


def test_too_long_a_text_is_not_read(service):
    shown = draw(service, text="a" * (MAX_CHARACTERS + 1))
    assert "5,001" in shown["message"] and shown["picture"] == ""


def test_text_in_parts(service):
    text = " ".join([SENTENCE] * 20)
    first, last = draw(service, text=text), draw(service, text=text, part=99)
    translation = service.translate("lstm-attention", text, attention=True)
    count = len(translation.parts)
    assert count > 1 and choices(first["part"]) == list(range(count)) and first["part"].visible
    assert labels(first["picture"]) == list(translation.parts[0].source_words)
    assert labels(last["picture"]) == list(translation.parts[-1].source_words)
    assert last["part"].value == count - 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [ODD, "a", "...", "a\x00b \ud83d", "word " * 100])
def test_any_text_gives_a_well_formed_picture(service, model: str, text: str):
    shown = draw(service, text=text, model=model)
    root = ElementTree.fromstring(
        f"<div>{shown['message']}{shown['lines']}{shown['picture']}{shown['steps']}</div>"
    )
    assert not list(root.iter("script"))


def test_a_broken_model_is_said(tmp_path):
    shown = draw(Service(tmp_path), model="transformer")
    assert "Transformer could not be loaded: " in shown["message"]
    assert shown["picture"] == ""


def test_values_that_no_component_offers_become_the_first_choice():
    odd = {"text": None, "model": "bert", "second": 3, "view": "x", "kind": "self", "layer": "1"}
    odd |= {"head": 2.5, "reading": 1, "unit": "letters", "specials": "yes", "beams": True}
    odd |= {"scale": 0.1, "part": -1, "other": ["lstm"], "start": "x"}
    assert Choice.of(odd) == Choice.of({}) == Choice("")


# ---------------------------------------------------------------------------------------------
# The picture with the switch


def drawn_weights(picture: str) -> np.ndarray:
    """Numbers of the picture's lines, (T, S)."""
    figure = ElementTree.fromstring(picture)
    numbers = np.frombuffer(base64.b64decode(figure.get("data-numbers", "")), "<f4")
    return numbers.reshape(-1, len(words(picture, "ln-source")))


def words(picture: str, *row: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    (found,) = [e for e in root.iter("p") if set(row) <= set((e.get("class") or "").split())]
    return [e.text or "" for e in found.iter("bdi")]


@pytest.mark.parametrize("model", MODELS)
def test_the_lines_are_the_weights_of_the_model_that_looks_back(service, model: str, translators):
    shown = draw(service, model=model)["lines"]
    fixed, looking = Choice(SENTENCE, model).pair
    assert model in (fixed, looking)
    found = {n: service.translate(n, SENTENCE, attention=True) for n in (fixed, looking)}
    map_ = found[looking].attention("cross").words()
    np.testing.assert_array_equal(drawn_weights(shown), map_.head().astype("<f4"))
    assert words(shown, "ln-source") == list(map_.source_tokens) == SENTENCE.split()
    rows = {"ln-off": fixed, "ln-on": looking}
    for state, name in rows.items():
        assert words(shown, "ln-target", state) == [visible(w) for w in found[name].target_words]
    # Whoever sees no lines is told the two strongest of each French word.
    table = list(ElementTree.fromstring(shown).iter("tr"))
    assert len(table) == len(map_.target_tokens)
    for row, weights in zip(table, map_.head(), strict=True):
        best, second = np.argsort(-weights, kind="stable")[:2]
        said = [cell.text for cell in row.iter("td")]
        assert said == [f"{map_.source_tokens[i]} {weights[i]:.2f}" for i in (best, second)]
    size = translators[fixed].vector(found[fixed]).size
    assert size == 24 and f"{size} numbers" in shown


def test_the_picture_is_the_same_on_both_sides_of_the_switch(service):
    """Else it would be drawn anew while its lines move."""
    off, on = draw(service, model="lstm"), draw(service, model="lstm-attention")
    assert off["lines"] == on["lines"]
    assert (off["look"], off["other"]) == (False, "lstm-attention")
    assert (on["look"], on["other"]) == (True, "lstm")
    assert "look" not in next(attention.draw(service, Choice(SENTENCE, "lstm"), "en", False))


def test_turning_the_switch_comes_back_to_the_model_that_was_chosen():
    assert attention.turned(True, "lstm", "") == ("lstm-attention", "lstm")
    assert attention.turned(False, "transformer", "lstm") == ("lstm", "transformer")
    assert attention.turned(True, "lstm", "transformer") == ("transformer", "lstm")
    assert attention.turned(False, "transformer", "rnn") == ("rnn", "transformer")
    assert attention.turned(True, "rnn", "lstm") == ("lstm-attention", "rnn")
    assert attention.turned(False, "lstm", "transformer") == (gr.skip(), gr.skip())


def test_lines_follow_head_start_part_and_language(service):
    def weights(**chosen: Any) -> np.ndarray:
        return drawn_weights(draw(service, model="transformer", **chosen)["lines"])

    translation = service.translate("transformer", SENTENCE, attention=True)
    map_ = translation.attention("cross").words()
    np.testing.assert_allclose(weights(layer=1, head=0), map_.head(1, 0), atol=1e-6)
    # Whatever the matrix shows, lines go from English to French words.
    for matrix in ({"kind": "encoder"}, {"unit": "pieces"}, {"specials": True}):
        np.testing.assert_allclose(weights(**matrix), map_.head(), atol=1e-6)
    shown = draw(service, model="transformer", layer=1, head=0, language="zh")["lines"]
    assert (
        "第 2 层（共 2 层）" in shown and Language.of("zh").say("attention.lines.english") in shown
    )
    token = service.candidates("transformer", translation)[0][2].token_id
    forced = service.translate_from("transformer", SENTENCE, [token], attention=True)
    shown = draw(service, model="transformer", prefix=(token,))["lines"]
    assert words(shown, "ln-target", "ln-on") == [visible(word) for word in forced.target_words]
    text = f"{SENTENCE}\n\nThe farmer sold the old\nhouse."
    shown = draw(service, text=text, part=1)["lines"]
    assert words(shown, "ln-source") == "The farmer sold the old house.".split()


def test_lines_want_a_map_of_their_words(service):
    translation = service.translate("lstm-attention", SENTENCE, attention=True)
    fixed = lines.Fixed("lstm", ["mot"], np.zeros(3))
    looking = lines.Looking(translation.attention("cross").words())
    with pytest.raises(ValueError, match="expected a map of the words"):
        lines.render(["other"], fixed, looking)
    with pytest.raises(ValueError, match="expected a map of the words"):
        lines.render([], fixed, looking)
    assert lines.strongest(np.array([0.2, 0.5, 0.1, 0.5])) == [1, 3]
    assert lines.strongest(np.array([0.2])) == [0]


# ---------------------------------------------------------------------------------------------
# Files


def file(service: Service, format: str, language: str = "en", **chosen: Any) -> tuple[str, bytes]:
    made = matrices.file(service, Choice(**{"text": SENTENCE, **chosen}), language, format)
    assert made is not None
    return made["name"], base64.b64decode(made["data"])


def test_files_hold_what_is_shown(service):
    choice = {"model": "transformer", "layer": 1, "head": 0}
    shown = service.translate("transformer", SENTENCE, attention=True).attention().words()
    name, data = file(service, "json", **choice)
    said = json.loads(data)
    assert name == "attention-transformer-cross-layer-2-head-1.json"
    assert said["sentence"] == SENTENCE and said["source"] == list(shown.source_tokens)
    assert (said["layer"], said["head"]) == (1, 0)
    np.testing.assert_allclose(said["weights"], shown.head(1, 0))
    _, data = file(service, "csv", **choice)
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    np.testing.assert_allclose([float(x) for x in rows[1][1:-1]], shown.head(1, 0)[0], atol=1e-7)
    _, data = file(service, "svg", **choice)
    root = ElementTree.fromstring(data)
    texts = {e.text for e in root.iter("{http://www.w3.org/2000/svg}text")}
    assert set(shown.source_tokens) <= texts
    assert file(service, "png", **choice)[1].startswith(b"\x89PNG")
    name, data = file(service, "html", second="lstm-attention", **choice)
    assert name.endswith(".html") and data.count(b"<figure") == 2


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_a_vector(service, format: str):
    name, data = file(service, format, "zh", model="lstm")
    assert name == f"vector-lstm.{format}" and data
    if format == "json":
        assert len(json.loads(data)["vector"]) == 24
    if format == "csv":
        assert len(data.decode().splitlines()) == 25


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_odd_text(service, format: str):
    assert file(service, format, text=ODD + " \ud83d", model="transformer", specials=True)[1]


def test_no_file_of_nothing(service):
    assert matrices.file(service, Choice(" "), "en", "png") is None


def test_names_of_all_heads_lead_to_the_choice():
    event = gr.EventData(None, {"layer": "2", "head": "0"})
    assert choice.clicked_head(event) == (2, 0)
    assert choice.clicked_head(gr.EventData(None, {"layer": "", "head": ""})) == ("", "")
    both = {"layer": "best", "head": "best"}
    assert choice.clicked_head(gr.EventData(None, both)) == ("best", "")
    assert choice.clicked_head(gr.EventData(None, {"layer": "<b>"})) == ("", "")


# ---------------------------------------------------------------------------------------------
# The endpoint


def ask(service: Service, text: Any = SENTENCE, model="transformer", kind="cross", *rest: Any):
    layer, head, beams = (*rest, None, None, 1)[:3] if len(rest) < 3 else rest
    return attention.attention_for_api(service, text, model, kind, layer, head, beams)


def test_endpoint_gives_words_and_weights(service):
    answer = json.loads(json.dumps(ask(service, SENTENCE, "transformer", "cross", 0, 1, 2)))
    translation = service.translate("transformer", SENTENCE, 2, attention=True)
    map_ = translation.attention().words()
    assert answer["translation"] == translation.text
    (part,) = answer["parts"]
    assert part["source"] == list(map_.source_tokens) and part["target"] == list(map_.target_tokens)
    np.testing.assert_allclose(part["weights"], map_.head(0, 1))
    np.testing.assert_allclose(np.sum(part["weights"], axis=1) + part["hidden"], 1, atol=1e-5)
    assert len(ask(service, " ".join([SENTENCE] * 20), "lstm-attention")["parts"]) > 1
    assert ask(service, "")["parts"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "expected text, got NoneType"),
        (("a" * 5001,), "5,001"),
        ((SENTENCE, "bert"), "expected model to be one of rnn, lstm"),
        ((SENTENCE, "rnn"), "rnn has no attention"),
        ((SENTENCE, "lstm-attention", "encoder"), "lstm-attention has cross attention, no encoder"),
        ((SENTENCE, "transformer", "self"), "expected kind to be one of cross"),
        ((SENTENCE, "transformer", "cross", 9, None, 1), "expected layer 0 to 1"),
        ((SENTENCE, "transformer", "cross", "1", None, 1), "expected layer to be a whole number"),
        ((SENTENCE, "transformer", "cross", None, None, 99), "expected beams to be a whole number"),
    ],
)
def test_endpoint_refuses(service, arguments: tuple, message: str):
    with pytest.raises(gr.Error, match=message):
        ask(service, *arguments)


def test_endpoint_over_http(service):
    app = gr.mount_gradio_app(FastAPI(), ui.build(service=service), path="/")

    def call(client: TestClient, *data: Any) -> tuple[str, Any]:
        asked = client.post("/gradio_api/call/attention", json={"data": data}).json()
        stream = client.get(f"/gradio_api/call/attention/{asked['event_id']}").text
        event, payload = re.findall(r"event: (complete|error)\ndata: (.*)", stream)[-1]
        return event, json.loads(payload)

    with TestClient(app) as client:
        event, (answer,) = call(client, SENTENCE, "lstm-attention", "cross", None, None, 1)
        assert event == "complete" and answer["layer"] is None
        assert answer["parts"] == ask(service, SENTENCE, "lstm-attention")["parts"]
        event, answer = call(client, SENTENCE, "lstm", "cross", None, None, 1)
        assert event == "error" and "no attention" in json.dumps(answer)
        parameters = client.get("/gradio_api/info").json()["named_endpoints"]["/attention"]
        names = [parameter["parameter_name"] for parameter in parameters["parameters"]]
        assert names == ["text", "model", "kind", "layer", "head", "beams"]


# ---------------------------------------------------------------------------------------------
# In a browser, on the page


@pytest.fixture(scope="module")
def address(translators, tmp_path_factory) -> Iterator[str]:
    service = Service(tmp_path_factory.mktemp("page"), translators=translators)
    page = ui.build(service=service)
    _, found, _ = page.queue().launch(
        server_name="127.0.0.1",
        server_port=free_port(),
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        theme=theme.gradio_theme(),
        css=theme.CSS,
        head=theme.HEAD,
    )
    yield found
    page.close()


@pytest.mark.browser
def test_the_tab_in_a_browser(visit, tmp_path):
    one = visit()
    page = one.page
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.on("dialog", lambda dialog: (one.faults.append("dialog"), dialog.dismiss()))
    page.get_by_role("tab").nth(2).click()
    # The example's picture is there without a click, its matrix after one.
    page.wait_for_selector("#attention-lines .ln-source .ln-word")
    assert page.locator("#attention-map").count() == 0
    page.locator("#attention-more > button").click()
    page.wait_for_selector("#attention-map .sv-vector")
    # A new text: its map answers the pointer too, and asks nobody.
    page.locator("#source textarea").fill(ODD)
    page.locator("#attention-model label").nth(3).click()
    page.locator("#attention-specials label").nth(1).click()
    page.wait_for_function(
        "[...document.querySelectorAll('#attention-map .sv-across span')].some(e => e.textContent == '${7*7}')"
    )
    page.wait_for_selector("#attention-map .sv-down .sv-special")
    page.wait_for_selector("#attention-steps [data-model='transformer']")
    one.quiet()
    one.asked.clear()
    labels = page.locator("#attention-map .sv-across span")
    assert labels.all_inner_texts() == [*ODD.split(), "</s>"]
    labels.nth(1).hover()
    assert page.locator("#attention-map .sv-readout").inner_text().startswith("${7*7} is looked at")
    one.quiet()
    assert one.asked == []
    # A small picture leads to its head.
    page.locator("#attention-map .sv-heads button[data-layer='1'][data-head='0']").click()
    page.wait_for_function(
        "document.querySelector('#attention-map .sv-title').textContent.includes('layer 2 of 2 · head 1 of 2')"
    )
    # What is taken away is what is shown.
    with page.expect_download() as download:
        page.locator("#attention-json").click()
    download.value.save_as(tmp_path / "map.json")
    said = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    assert (said["layer"], said["head"], said["kind"]) == (1, 0, "cross")
    assert said["source"] == [*ODD.split(), "</s>"]


@pytest.mark.browser
def test_steps_light_the_map_and_lead_elsewhere(visit, translators, tmp_path):
    one = visit()
    page = one.page
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.get_by_role("tab").nth(2).click()
    one.drawn("attention")
    page.locator("#attention-look input").click()
    page.locator("#attention-more > button").click()
    steps = page.locator("#attention-steps .st[data-model=lstm-attention]")
    own = json.loads(steps.get_attribute("data-ids"))
    assert len(own) > 3
    one.quiet()
    one.asked.clear()
    # A step of decoding lights its row.
    page.locator("#attention-steps [data-st=next]").click()
    word = json.loads(steps.get_attribute("data-steps"))[1]["word"]
    rows = page.locator("#attention-map .sv-down span").all_inner_texts()
    assert page.locator("#attention-map .sv-down .sv-on").all_inner_texts() == [rows[word]]
    assert page.locator(".ln-on .ln-chosen bdi").all_inner_texts() == [rows[word]]
    one.quiet()
    assert one.asked == []
    # Another piece than the model's own: map and steps are those of the output that goes on from it.
    # A text that was typed since and not asked for changes neither this nor a file.
    text = " ".join(page.locator("#attention-map .sv-across span").all_inner_texts())
    page.locator("#source textarea").fill("Something else.")
    page.locator("#attention-steps .st-candidate[aria-disabled=false]").first.click()
    page.wait_for_selector("#attention-steps .st[data-given='2']")
    with page.expect_download() as download:
        page.locator("#attention-json").click()
    download.value.save_as(tmp_path / "map.json")
    said = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    assert (said["sentence"], said["given_pieces"]) == (text, 2)
    ids = json.loads(steps.get_attribute("data-ids"))
    assert ids[0] == own[0] and ids[1] != own[1]
    expected = translators["lstm-attention"].translate_from(text, ids[:2])
    assert ids == list(expected.target_ids)
    rows = page.locator("#attention-map .sv-down span").all_inner_texts()
    assert rows == [visible(word) for word in expected.target_words]


def test_nothing_is_said_in_one_language_before_the_models_are_there(service):
    """What the tab first shows is empty or follows the language without a model."""
    with gr.Blocks():
        language = gr.Radio(["en", "zh"], value="en")
        made = attention.tab(service, language, text.make(service, Spoken()))
    event = made.show[0]
    for component in event["outputs"]:
        if isinstance(component, gr.HTML):
            assert not component.value
    updates = [update for update in made.spoken.texts("zh") if isinstance(update, gr.Radio)]
    labels = [label for update in updates for label, _ in update.choices]
    assert Language.of("zh").say("attention.view_saliency") in labels
    assert Language.of("en").say("attention.view_saliency") not in labels
