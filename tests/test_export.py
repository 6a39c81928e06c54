"""Pictures and numbers as files: every format, one panel or two, from Python and from the shell."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_cli import run_here

from seqviz import plotting
from seqviz.drawing import export as exports
from seqviz.drawing.export import FORMATS, Panel, export
from seqviz.drawing.names import which
from seqviz.training import save_model
from seqviz.translating.translator import Translator

SENTENCE = "The teacher painted the green boat and the teacher."


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    names = ("lstm", "lstm-attention", "transformer")
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in names}


@pytest.fixture
def map_panel(translators) -> Panel:
    found = translators["lstm-attention"].translate(SENTENCE)
    return Panel(found, found.attention().words())


@pytest.fixture
def vector_panel(translators) -> Panel:
    found = translators["lstm"].translate(SENTENCE)
    return Panel(found, vector=translators["lstm"].vector(found))


@pytest.fixture
def head_panel(translators) -> Panel:
    found = translators["transformer"].translate(SENTENCE)
    return Panel(found, found.attention("encoder").words(), 0, 1)


def test_numbers_are_those_of_the_map(map_panel: Panel):
    assert map_panel.map is not None
    found = json.loads(export([map_panel], "json")[0])
    assert found["sentence"] == SENTENCE
    np.testing.assert_allclose(found["weights"], map_panel.map.head(), atol=1e-7)
    assert found["source"] == list(map_panel.map.source_tokens)
    rows = list(csv.reader(io.StringIO(export([map_panel], "csv")[0].decode("utf-8-sig"))))
    np.testing.assert_allclose(
        [[float(x) for x in row[1:-1]] for row in rows[1:]], map_panel.map.head(), atol=1e-6
    )


def test_numbers_of_two_panels(map_panel: Panel, vector_panel: Panel, head_panel: Panel):
    found = json.loads(export([map_panel, vector_panel, head_panel], "json")[0])["panels"]
    assert [panel["model"] for panel in found] == ["lstm-attention", "lstm", "transformer"]
    assert len(found[1]["vector"]) == vector_panel.vector.size
    assert (found[2]["layer"], found[2]["head"], found[2]["kind"]) == (0, 1, "encoder")
    text = export([map_panel, vector_panel], "csv")[0].decode("utf-8-sig")
    assert "attention-lstm-attention-cross\n" in text
    assert "vector-lstm\n" in text


def test_every_format_of_one_and_of_two(map_panel: Panel, vector_panel: Panel, head_panel: Panel):
    for panels in ([map_panel], [vector_panel], [map_panel, head_panel]):
        for format in FORMATS:
            data, note = export(panels, format, language="zh")
            assert data
            assert "first of the two" not in note
    assert export([map_panel], "png")[0].startswith(b"\x89PNG")
    svg = ElementTree.fromstring(export([map_panel, head_panel], "svg")[0])
    said = "".join(svg.itertext())
    assert "LSTM + attention" in said
    assert "Transformer" in said
    one = ElementTree.fromstring(export([map_panel], "svg")[0])
    assert float(svg.get("width", "").removesuffix("pt")) > float(
        one.get("width", "").removesuffix("pt")
    )
    page = export([map_panel, head_panel], "html")[0].decode()
    assert page.count('<figure class="sv-map"') == 2


def test_a_map_beside_a_vector_says_what_a_picture_lacks(map_panel: Panel, vector_panel: Panel):
    for format in ("png", "svg"):
        data, note = export([map_panel, vector_panel], format)
        assert data
        assert "holds the first of the two pictures" in note
    assert export([map_panel, vector_panel], "html")[1] == ""


def test_names_tell_files_apart(map_panel: Panel, vector_panel: Panel, head_panel: Panel):
    assert [panel.name for panel in (map_panel, vector_panel, head_panel)] == [
        "attention-lstm-attention-cross",
        "vector-lstm",
        "attention-transformer-encoder-layer-1-head-2",
    ]


def test_refusals(map_panel: Panel, vector_panel: Panel):
    with pytest.raises(ValueError, match="at least one picture"):
        export([], "png")
    with pytest.raises(ValueError, match="expected a format of png, svg, csv, json, html"):
        export([map_panel], "pdf")
    with pytest.raises(ValueError, match="either a map or a vector"):
        Panel(map_panel.translation)


def test_what_a_picture_does_not_say(map_panel: Panel, vector_panel: Panel):
    said = {exports.caution([panel]) for panel in (map_panel, vector_panel)}
    assert len(said) == 2
    assert exports.caution([]) == exports.caution([map_panel])


def test_rich_display_in_notebooks(map_panel: Panel):
    assert map_panel.map is not None
    shown = map_panel.map._repr_html_()
    ElementTree.fromstring(f"<div>{shown}</div>")
    assert "sv-map" in shown
    both = map_panel.translation._repr_html_()
    ElementTree.fromstring(f"<div>{both}</div>")
    assert SENTENCE in both
    assert "sv-map" in both


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder", "saliency"])
def test_page_and_file_call_a_kind_of_attention_alike(kind: str, language: str, map_panel: Panel):
    assert map_panel.map is not None
    map = dataclasses.replace(map_panel.map, kind=kind)
    shown = which(map, None, None, language)
    headings = [text.get_text() for text in plotting.attention(map, language=language).texts]
    assert any(heading.endswith(f" · {shown}") for heading in headings), headings


# ---------------------------------------------------------------------------------------------
# seqviz attend


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny_model, tiny_tokenizer) -> dict[str, str]:
    place = tmp_path_factory.mktemp("attend")
    for name in ("lstm", "lstm-attention", "transformer"):
        save_model(tiny_model(name), tiny_tokenizer, place / name, {"model": name, "dev_loss": 2.0})
    return {name: str(place / name) for name in ("lstm", "lstm-attention", "transformer")}


@pytest.fixture
def attend(monkeypatch, capsys) -> Any:
    def call(*arguments: str) -> tuple[object, str, str]:
        return run_here(["attend", *arguments], monkeypatch, capsys)

    return call


def test_attend_prints_numbers(attend, folders):
    status, out, _ = attend(SENTENCE, "--model", folders["lstm-attention"])
    assert not status
    found = json.loads(out)
    assert found["kind"] == "cross"
    assert found["source"] == SENTENCE.split()


@pytest.mark.parametrize("format", FORMATS)
def test_attend_writes_every_format(attend, folders, tmp_path: Path, format: str):
    file = tmp_path / "new" / f"map.{format}"
    models = ("--model", folders["lstm"], "--model", folders["transformer"])
    status, out, _ = attend(SENTENCE, *models, "--kind", "saliency", "--out", str(file))
    assert not status
    assert not out
    assert file.read_bytes()
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_attend_shows_the_kind_that_was_asked_for(attend, folders):
    transformer = ("--model", folders["transformer"])
    _, out, _ = attend(SENTENCE, *transformer, "--kind", "decoder", "--layer", "0", "--head", "1")
    found = json.loads(out)
    assert (found["kind"], found["layer"], found["head"]) == ("decoder", 0, 1)
    _, out, _ = attend(SENTENCE, *transformer, "--pieces", "--specials")
    assert json.loads(out)["source"][-1] == "</s>"
    _, out, _ = attend(SENTENCE, "--model", folders["lstm"], "--kind", "vector")
    assert all(-1 <= number <= 1 for number in json.loads(out)["vector"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "map.pdf"], "png, svg, csv, json, html"),
        (["--kind", "sideways"], "cross, encoder, decoder, saliency, vector"),
        (["--language", "fr"], "en or zh"),
        (["--darkest", "0"], "above 0 and at most 1"),
        (["--best", "--layer", "0"], "got both"),
        (["--layer", "7"], "expected layer 0"),
    ],
)
def test_attend_refuses(attend, folders, arguments: list[str], message: str):
    status, _, error = attend(SENTENCE, "--model", folders["lstm-attention"], *arguments)
    assert status == 2
    assert message in error


def test_attend_shows_a_vector_beside_a_map(attend, folders):
    status, out, _ = attend(SENTENCE, "--model", folders["lstm"], "--model", folders["transformer"])
    assert not status
    first, second = json.loads(out)["panels"]
    assert "vector" in first
    assert second["kind"] == "cross"


def test_attend_of_what_a_model_has_not(attend, folders):
    status, _, error = attend(SENTENCE, "--model", folders["lstm"])
    assert status == 1
    assert "no attention" in error
    status, _, error = attend(SENTENCE, "--model", folders["transformer"], "--kind", "vector")
    assert status == 1
    assert "one fixed vector" in error
    status, _, error = attend("  ", "--model", folders["transformer"])
    assert status == 2
    assert "a text with words" in error
    status, _, error = attend(" ".join([SENTENCE] * 30), "--model", folders["transformer"])
    assert status == 2
    assert "give one sentence" in error
