"""The card to send on: its words, its bars, and how a long sentence is cut."""

from __future__ import annotations

import base64
import io

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import Rectangle
from PIL import Image

from seqviz import plotting
from seqviz.drawing.figures.card import LINE_WIDTH, LINES, wrapped
from seqviz.drawing.styles import label_width
from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import translate
from seqviz.ui.service import MODELS, Service

FOUND = {"rnn": (2, 10), "lstm": None, "lstm-attention": (0, 0), "transformer": (9, 10)}


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_card_says(language: str):
    figure = plotting.share_card("The $x$ <boat>.", FOUND, "http://host/page", language=language)
    said = texts(figure)
    assert "“The $x$ <boat>.”" in said and "seqviz · http://host/page" in said
    assert [Language.of(language).say(f"model.{name}") in said for name in FOUND] == [True] * 4
    words = Language.of(language).within("card.figure")
    counted = [words.say("found", found=n, judged=10) for n in (2, 9)]
    assert all(one in said for one in counted)
    assert said.count(words.say("unknown")) == 2
    drawn = [a.get_width() for a in figure.get_children() if isinstance(a, Rectangle)][1:]
    marks = drawn[::3]
    assert len(set(marks)) == 1 and len(marks) == 4
    bars = [width for number, width in enumerate(drawn) if number % 3]
    full = bars[0]
    assert [width / full for width in bars] == pytest.approx([1, 0.2, 1, 0, 1, 0, 1, 0.9])
    picture = io.BytesIO()
    plotting.save(figure, picture, "png", dpi=100)
    assert Image.open(picture).size == (1200, 630)


def test_what_the_models_wrote_stands_on_one_line_each():
    long = "Le bateau est vert et " * 20
    outputs = {"rnn": ("Le bateau.", "≈ the boat."), "transformer": (long, long)}
    figure = plotting.share_card("The boat.", FOUND, outputs=outputs)
    said = texts(figure)
    assert "Le bateau." in said and "≈ the boat." in said
    cut = [one for one in said if one.startswith("Le bateau est vert")]
    assert len(cut) == 2 and all(one.endswith("…") and one[:-2] in long for one in cut)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    ends = [text.get_window_extent(renderer).x1 for text in figure.texts]
    assert max(ends) <= figure.bbox.width


def test_no_card_of_impossible_counts():
    with pytest.raises(ValueError, match="at least one model, got none"):
        plotting.share_card("The boat.", {})
    with pytest.raises(ValueError, match="expected words found from 0 to 3 of rnn, got 4"):
        plotting.share_card("The boat.", {"rnn": (4, 3)})


@given(st.text(alphabet="abc mW,我🙂", max_size=400))
def test_lines_fit_and_keep_every_letter(text: str):
    plain = " ".join(text.split())
    lines = wrapped(plain, LINE_WIDTH, 1000)
    assert all(label_width(line) <= LINE_WIDTH for line in lines)
    assert "".join(lines).replace(" ", "") == plain.replace(" ", "")
    cut = wrapped(plain, LINE_WIDTH, LINES)
    assert len(cut) == min(LINES, len(lines))
    assert cut == lines or (cut[-1].endswith("…”") and cut[:-1] == lines[: LINES - 1])


@pytest.fixture
def service(tiny_model, tiny_tokenizer, tmp_path) -> Service:
    made = {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}
    return Service(tmp_path, translators=made)


def test_a_file_for_the_browser(service):
    made = translate.share_card(service, "The boat\n\nis green.", 1, "en", "http://host/")
    assert made["name"] == "seqviz.png" and made["type"] == "image/png"
    assert Image.open(io.BytesIO(base64.b64decode(made["data"]))).size == (1200, 630)
    assert translate.share_card(service, " ", 1, "en") == {}
    assert translate.share_card(service, None, 1, "zh") == {}
    assert translate.share_card(service, "a" * 5001, 1, "zh") == {}


def test_without_models_there_is_no_card(tmp_path):
    assert translate.share_card(Service(tmp_path), "The boat.", 1, "en") == {}


def test_the_endpoint_refuses(service):
    for text, beams, said in (
        (5, 1, "got int"),
        ("a", 99, "from 1 to 8"),
        ("a" * 5001, 1, "5,001"),
    ):
        with pytest.raises(gr.Error, match=said):
            translate.answer(service, text, beams)
