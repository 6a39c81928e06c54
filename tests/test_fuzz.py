"""Any text goes all the way: tokenizer, translation, maps, files, page. Never an exception, never a control
token out of typed text, always well-formed output.

200 texts in the usual run, 10,000 with ``pytest -m slow tests/test_fuzz.py`` (a quarter of an hour on one core).
"""

from __future__ import annotations

import csv
import io
import json
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seqviz
from seqviz import tokenizer
from seqviz.drawing.export import FORMATS, Panel, export
from seqviz.looking.saliency import saliency
from seqviz.translating.inputs import output_limit
from seqviz.translating.translator import Translator
from seqviz.ui import translate
from seqviz.ui.service import MODELS, Service

USUAL, SLOW = 200, 10_000

ODD = [
    *("</s>", "<pad>", "<unk>", "<s>", "<0x0A>", "\u2581", "<script>alert(1)</script>", "a<b&c>d", "&amp;", "&#0;"),
    *("${7*7}", "{{7*7}}", "{0.__class__}", "%s%n", "../../x", "]]>", "<!--", "-->", "'", '"', "\\", "`", "$x$"),
    *("\ud83d", "\ude00", "\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\ufffe"),
    *("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u202c", "\u2066", "\u00a0", "\u202f", "\u3000"),
    *("\t", "\n", "\r\n", "\n\n", "  ", "e\u0301", "\u0301", "\u1100\u1161", "\uff21", "\U0001d49c", "\u00bd"),
    *("漢字", "Ελλάδα", "العربية", "עברית", "हिन्दी", "👩‍👩‍👧", "🇫🇷", "1️⃣", "œuvre", "Œ", "«", "…", "—", "-", "?", "!"),
    *("x" * 300, "ab " * 120, "1" * 50, "?!" * 40, "NaN", "Infinity", "None", "=1+1", "@SUM(A1)"),
]  # fmt: skip
WORDS = "The old sailor has forgotten those 12 letters , because it was late . Nobody painted Europe".split()
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.just(" "),
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=()), max_size=6),
)
TEXTS = st.lists(PIECES, max_size=24).map("".join)
CONTROL = ("</s>", "<pad>", "<unk>", "<s>")


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}


def check_tokens(text: str, shared) -> None:
    """Control tokens only where we put them; every visible character in some word."""
    plain = tokenizer.replace_surrogates(text)
    ids = shared(plain).input_ids
    assert ids[-1] == shared.eos_token_id
    assert shared.eos_token_id not in ids[:-1] and shared.pad_token_id not in ids
    found = tokenizer.segment(shared, plain)
    assert len(found.pieces) == len(found.pieces.word_of_piece) == len(found.ids)
    assert " ".join(found.pieces.words) == " ".join(tokenizer.normalize(plain).split())


def check_translation(text: str, translation: seqviz.Translation) -> None:
    said = json.dumps(translation.to_dict(), ensure_ascii=False, allow_nan=False)
    said.encode("utf-8")
    assert translation.source == tokenizer.replace_surrogates(text) or "surrogate" in {
        note.kind for note in translation.notes
    }
    assert not any(control in translation.text for control in CONTROL)
    assert translation.text == translation.text.strip() and "\n" not in translation.text
    for part in translation.parts or (translation,):
        assert len(part.target_tokens) == len(part.token_log_probs) == len(part.target_word_index)
        assert len(part.target_tokens) <= output_limit(len(part.source_tokens))
        assert all(p <= 1e-6 and math.isfinite(p) for p in part.token_log_probs)
        if "copied" in {note.kind for note in part.notes}:  # not decoded: words without tokens
            assert not part.target_tokens and part.text == " ".join(part.source_words)
            continue
        assert max(part.target_word_index, default=-1) == len(part.target_words) - 1
        assert "</s>" not in part.target_tokens[:-1]


def panels_of(translator: Translator, translation: seqviz.Translation) -> list[Panel]:
    """Every picture there is of the first part that has something to show."""
    parts = [p for p in translation.parts or (translation,) if p.source_words and p.target_tokens]
    if not parts:
        return []
    part = parts[0]
    maps = [part.attention(kind).words() for kind in part.attentions]
    maps.append(saliency(translator, part).shares())
    found = [Panel(part, map=map_) for map_ in maps if map_.weights.size]
    if not part.attentions:
        found.append(Panel(part, vector=np.linspace(-1, 1, 8)))
    return found


def check_map(panel: Panel) -> None:
    if panel.map is None:
        return
    weights = panel.map.weights
    assert np.isfinite(weights).all() and (weights >= 0).all()
    total = weights.sum(-1) + panel.map.hidden_mass
    # A row whose gradient is zero everywhere depends on nothing and stays zero.
    assert np.allclose(total[total > 0], 1.0, atol=1e-4)


def check_file(panels: list[Panel], format: str) -> None:
    data, _ = export(panels, format)
    if format == "json":
        content = json.loads(data)
        for shown in content.get("panels", [content]):
            assert "vector" in shown or len(shown["weights"]) == len(shown["target"])
    elif format == "csv":
        assert list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    elif format == "png":
        assert data.startswith(b"\x89PNG\r\n")
    else:
        text = data.decode("utf-8")
        assert "alert(1)</script>" not in text
        ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))


def check_page(text: str, service: Service, language: str) -> None:
    for drawn in translate.draw_lanes(service, text, 1, language):
        for markup in drawn:
            markup.encode("utf-8")
            ElementTree.fromstring(f"<div>{markup.replace('<br>', '<br/>')}</div>")
            assert "<script" not in markup


def check(text: str, draw, translators: dict[str, Translator], shared, service: Service) -> None:
    check_tokens(text, shared)
    name = draw(st.sampled_from(MODELS))
    translation = translators[name].translate(text, draw(st.sampled_from([1, 3])), attention=True)
    check_translation(text, translation)
    panels = panels_of(translators[name], translation)
    for panel in panels:
        check_map(panel)
        ElementTree.fromstring(panel.figure("zh"))
    if panels:
        # Pictures by matplotlib take most of the time, so they are drawn now and then.
        quick = [format for format in FORMATS if format not in ("png", "svg")]
        rare = draw(st.integers(0, 9)) == 0
        check_file(panels[:2], draw(st.sampled_from(["png", "svg"] if rare else quick)))
    check_page(text, service, draw(st.sampled_from(["en", "zh"])))


@pytest.fixture(scope="module")
def service(translators) -> Service:
    return Service(translators=translators)


def fuzz(examples: int):
    @given(text=TEXTS, data=st.data())
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    def run(text, data, translators, tiny_tokenizer, service) -> None:
        check(text, data.draw, translators, tiny_tokenizer, service)

    return run


test_any_text_all_the_way = fuzz(USUAL)
test_ten_thousand_texts = pytest.mark.slow(fuzz(SLOW))


def test_the_shipped_tokenizer_too(models_folder):
    """A vocabulary of 8,000 has other pieces to trip over."""
    shared = tokenizer.load(models_folder / "tokenizer")

    @given(TEXTS)
    @settings(max_examples=USUAL, deadline=None)
    def run(text: str) -> None:
        check_tokens(text, shared)

    run()
