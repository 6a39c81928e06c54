"""The Length tab without a browser: growing texts, what is drawn of them, reports, the endpoint."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import pytest
import sacrebleu
from fastapi import FastAPI
from fastapi.testclient import TestClient
from length_reports import digest, length_report, passages_report

from seqviz import coverage, ui
from seqviz.coverage import Word
from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import curves, growth, length, measured, stages, translate
from seqviz.ui.growth import MAX_STAGES, OWN, GrowthError
from seqviz.ui.service import MODELS, Scored, Service

THREE = "The boat is green. My neighbour painted it today. Nobody likes the bridge!"


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}


def made_service(folder: Path, translators: dict[str, Translator]) -> Service:
    for name in MODELS:
        (folder / name).mkdir()
        content = json.dumps({"weights_sha256": digest(name)})
        (folder / name / "training.json").write_text(content, encoding="utf-8")
    (folder / "report").mkdir()
    return Service(folder, translators=translators)


@pytest.fixture
def service(translators, tmp_path) -> Service:
    """Tiny models with random weights, nothing in the caches, no report, no lexicon."""
    return made_service(tmp_path, translators)


class FakeLexicon:
    """Knows the meaning of every word of four letters or more."""

    def meanings(self, french_word: str) -> tuple[str, ...]:
        return ("a<b", "meaning") if len(french_word) > 3 else ()


def fake_mark(source: str, output: str, lexicon: Any) -> list[Word]:
    """Words of five letters or more count; found are those of an even number of letters."""
    assert isinstance(lexicon, FakeLexicon)
    judged = [word if len(word.strip(".,!?")) > 4 else None for word in source.split()]
    return [
        Word(word, one is not None, None if one is None else len(word.strip(".,!?")) % 2 == 0)
        for word, one in zip(source.split(), judged, strict=True)
    ]


@pytest.fixture
def marked(service, monkeypatch) -> Service:
    """A service that says which words were found."""
    monkeypatch.setattr(service, "lexicon", FakeLexicon)
    monkeypatch.setattr(coverage, "mark", fake_mark)
    return service


def write(service: Service, name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (service.folder / "report" / f"{name}.json").write_text(text, encoding="utf-8")


def frames(
    service: Service, passage: Any, own: Any = "", language: str = "en"
) -> list[dict[str, Any]]:
    names = ("message", "opposite", "stops", "strip", "sentence", "answers", "path")
    steps = length.draw_stages(service, passage, own, language)
    return [dict(zip(names, step, strict=True)) for step in steps]


def last(*given: Any, **more: Any) -> dict[str, Any]:
    """What stands on the page in the end: a part that a step skips stays as it was."""
    page: dict[str, Any] = {}
    for frame in frames(*given, **more):
        page.update({k: v for k, v in frame.items() if not skipped(v)})
    return page


def skipped(value: Any) -> bool:
    return isinstance(value, dict) and value.get("__type__") == "update" and len(value) == 1


def parsed(markup: str) -> ElementTree.Element:
    """Markup that holds no stray tag; entities that XML lacks are not used."""
    return ElementTree.fromstring(f"<div>{markup}</div>")


def text_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


# ---------------------------------------------------------------------------------------------
# Growing texts


def test_own_text_grows_by_a_sentence():
    text = growth.own(" The boat\nis green.  My neighbour painted it today.\n\nno end here\n\nBye")
    assert [stage.english for stage in text.stages] == [
        "The boat is green.",
        "The boat is green. My neighbour painted it today.",
        "The boat is green. My neighbour painted it today. no end here",
        "The boat is green. My neighbour painted it today. no end here Bye",
    ]
    assert text.stages[1].sentences == ("The boat is green.", "My neighbour painted it today.")
    assert text.counts == [4, 9, 12, 13] and text.notes == () and text.id == OWN
    assert all(stage.french is None for stage in text.stages)


@pytest.mark.parametrize("text", ["word", "no end of a sentence", "One sentence only.", "3.14"])
def test_a_single_sentence_has_one_stage_and_says_so(text):
    grown = growth.own(text)
    assert len(grown.stages) == 1 and [key for key, _ in grown.notes] == ["length.own_single"]


@pytest.mark.parametrize(
    "text, key",
    [
        ("", "length.own_empty"),
        (" \n\t\u200b\u00ad ", "length.own_empty"),
        (None, "length.own_type"),
        (["a"], "length.own_type"),
        ("word " * 101 + ".", "length.own_cap"),
        ("w" * 5001, "translate.too_long"),
    ],
)
def test_what_cannot_grow_says_why_in_both_languages(text, key):
    with pytest.raises(GrowthError) as caught:
        growth.own(text)
    error = caught.value
    assert str(error) == error.say("en") and error._key == key
    assert re.search("[\u4e00-\u9fff]", error.say("zh"))


def test_own_text_over_the_cap_is_cut_between_sentences():
    text = growth.own("One two three four five. " * 25)
    assert text.counts[-1] == 100
    assert text.notes[0] == ("length.own_cut", {"number": 20, "total": 25, "limit": 100})
    assert len(text.stages) == MAX_STAGES and text.notes[1][0] == "length.own_grouped"
    assert text.counts == sorted(set(text.counts)) and text.counts[0] == 5


@pytest.mark.parametrize("number", [1, 2, 11, 12, 13, 50, 100])
def test_steps_rise_from_the_first_to_the_last(number):
    ends = growth.steps(number, MAX_STAGES)
    assert ends == sorted(set(ends)) and (ends[0], ends[-1]) == (1, number)
    assert len(ends) == min(number, MAX_STAGES)


@pytest.mark.parametrize(
    "given, index",
    [(1, 0), (9, 8), (0, 0), (-5, 0), (99, 8), (2.7, 1), (None, 0), ("3", 0), (float("nan"), 0)],
)
def test_a_stage_out_of_range_is_the_nearest(service, given, index):
    assert service.growth("lost-keys").clamp(given) == index


def test_new_words():
    grown = growth.new_words("The train was late.", "The old train was late, again.")
    assert [word for word, new in grown if new] == ["old", "again."]
    assert not any(new for _, new in growth.new_words("a a b", "a a b"))


# ---------------------------------------------------------------------------------------------
# Translations and scores of stages


def test_a_path_has_the_scores_of_its_stages(service):
    text = service.growth("lost-keys")
    assert service.known("lstm", text) == [None] * 9
    single = service.scored("lstm", text.stages[2])
    path = service.score_all("lstm", text)
    assert service.known("lstm", text) == path and path[2] is single
    stage = text.stages[3]
    output = path[3].translation.text
    assert output == service.translate("lstm", stage.english).text
    assert path[3].chrf == sacrebleu.sentence_chrf(output, [stage.french]).score
    assert path[3].bleu == sacrebleu.sentence_bleu(output, [stage.french]).score
    assert path[3].agreement is None and path[3].found is None
    with pytest.raises(KeyError, match=r"lost-keys, .*got 'nope'"):
        service.growth("nope")


def test_agreement_is_with_the_sentences_one_by_one(service):
    text = growth.own(THREE)
    for name in MODELS:
        path = service.score_all(name, text)
        alone = [service.translate(name, sentence).text for sentence in text.stages[2].sentences]
        joined = " ".join(filter(None, alone))
        whole = path[2].translation.text
        expected = 100.0 if whole == joined else sacrebleu.sentence_chrf(whole, [joined]).score
        assert path[2].agreement == expected
        assert path[0].agreement is None  # a single sentence has nothing to agree with
        assert path[2].bleu is None and path[2].chrf is None


def test_own_texts_do_not_fill_the_memory(service, monkeypatch):
    """Every text is another one; what is kept of them is bounded."""
    monkeypatch.setattr(service._scored, "_size", 5)
    monkeypatch.setattr(service._cache, "_size", 4)
    text = growth.own(THREE)
    assert [s.agreement for s in service.score_all("rnn", text)] == [
        s.agreement for s in service.score_all("rnn", text)
    ]
    service.score_all("rnn", service.growth("lost-keys"))
    assert len(service._scored._values) == 5 and len(service._cache._values) == 4


def test_found_counts_only_what_was_judged(service):
    translation = service.translate("rnn", "The boat.")
    marks = (Word("The", False, None), Word("boat", True, True), Word("x", True, False))
    assert Scored(translation, None, None, None, marks).found == (1, 2)
    assert Scored(translation, None, None, None, marks[:1]).found is None
    assert Scored(translation, None, None, None, ()).found is None


def test_without_a_lexicon_there_are_no_marks_and_the_page_says_so(service):
    assert service.lexicon() is None and service.meanings("clés") == ()
    shown = last(service, "lost-keys")
    assert 'class="w' not in shown["sentence"] and "title=" not in shown["sentence"]
    assert "lexicon.json" in shown["sentence"] and "words found" not in shown["strip"]


def test_a_damaged_lexicon_is_none(service):
    (service.folder / "lexicon.json").write_text("{", encoding="utf-8")
    assert service.lexicon() is None
    assert "lexicon.json" in last(service, "lost-keys")["sentence"]


# ---------------------------------------------------------------------------------------------
# What is drawn


def test_the_stages_fill_model_by_model(marked):
    found = frames(marked, "lost-keys")
    filled = [frame["answers"].count("sentence chrF <b>") for frame in found]
    assert filled == [0, 9, 18, 27, 36]
    assert [frame["answers"].count("aria-busy") for frame in found] == [36, 27, 18, 9, 0]
    assert ["Being translated" in frame["path"] for frame in found] == [True] * 4 + [False]
    # Gradio sends only what differs from the step before, and a browser that gets two steps at once
    # loses what the second one leaves out.
    for part in ("message", "opposite", "stops"):
        assert not skipped(found[0][part]) and all(step[part] == found[0][part] for step in found)
    # The second time all is there at once.
    again = frames(marked, "lost-keys", language="zh")
    assert len(again) == 1 and "父母" in again[0]["sentence"]
    assert "父母" not in found[-1]["sentence"]


def test_nothing_older_comes_after(service):
    """A visitor's second text ends the drawing of the first; another visitor's does not."""
    first = length.draw_stages(service, "lost-keys", "", "en", "visitor")
    other = length.draw_stages(service, "late-train", "", "en", "somebody else")
    next(first), next(other)
    second = list(length.draw_stages(service, "noisy-dog", "", "en", "visitor"))
    rest = list(first)
    assert len(rest) == 1 and all(skipped(value) for value in rest[0])
    assert not all(skipped(value) for value in second[-1])
    assert len(list(other)) == 4


def test_stops_know_their_words():
    text = growth.own(THREE)
    shown = stages.stops(text, "zh")
    assert 'data-counts="4 9 13"' in shown and 'data-said="4 词|9 词|13 词"' in shown
    assert [text_of(e) for e in parsed(shown)[0]] == ["4", "9", "13"]


def test_new_words_are_shaded(service):
    shown = last(service, "lost-keys")["sentence"]
    assert "<mark>to the house our parents left us.</mark>" in shown
    stage = parsed(shown).find(".//div[@data-stage='1']")
    assert stage.find(".//mark") is None and "English, 6 words" in text_of(stage)


def test_words_not_found_are_marked_model_by_model(service, monkeypatch):
    outputs = {name: service.translate(name, "The boat.").text for name in MODELS}
    text = service.growth("lost-keys")

    def mark(source: str, output: str, lexicon: Any) -> list[Word]:
        # "sister" is in the output of all models, "called" of none, "me" is no content word;
        # "morning" is in that of a model with an even name.
        model = next(name for name in MODELS if now[0] == name)
        said = {"sister": True, "called": False, "morning.": len(model) % 2 == 0}
        return [Word(w, w in said, said.get(w)) for w in source.split()]

    now: list[str] = []
    monkeypatch.setattr(service, "lexicon", FakeLexicon)
    monkeypatch.setattr(coverage, "mark", mark)
    for name in MODELS:
        now[:] = [name]
        service.scored(name, text.stages[0])
    shown = stages.Shown.of(service, text, "en")
    stage = parsed(stages.sentence(shown)).find(".//div[@data-stage='1']")
    found = {text_of(e): (e.get("class"), e.get("title")) for e in stage.iter("span")}
    assert found == {
        "sister": ("w f1 f2 f3 f4", "found by all"),
        "called": ("w n1 n2 n3 n4", "not found: RNN, LSTM, LSTM + attention, Transformer"),
        "morning.": ("w n1 f2 f3 n4", "not found: RNN, Transformer"),
    }
    unseen = text_of(stage.find("p[@class='unseen']"))
    assert "RNN, not found: called, morning" in unseen
    assert "LSTM + attention, not found: called;" in unseen + ";"
    assert outputs
    bars = parsed(stages.strip(shown))
    cell = bars.find(".//div[@data-model='lstm']")
    assert text_of(cell.find(".//p[@class='measure found']/b[@data-stage='1']")) == "2 / 3"
    assert "--s1:67" in ElementTree.tostring(cell, "unicode")
    # Nothing is called lost.
    everything = "".join(v for v in last(service, "lost-keys").values() if isinstance(v, str))
    assert not re.search(r"\blost\b", re.sub(r"lost-keys|The lost keys", "", everything))


def test_scores_are_named_for_what_they_are(marked):
    shown = last(marked, "lost-keys")
    card = parsed(shown["answers"]).find(".//div[@data-stage='4']/section[@data-model='lstm']")
    assert re.match(
        r"LSTMwords found \d+ / \d+ · sentence chrF \d+ · sentence BLEU \d+", text_of(card)
    )
    for metric in ("bleu", "chrf"):
        assert f'data-metric="{metric}"' in shown["strip"]
        assert f'<figure data-metric="{metric}">' in shown["path"]
    alt = re.search('aria-label="([^"]*)"', shown["path"]).group(1)
    assert "sentence BLEU" in alt and "at 6 words" in alt and "at 66 words" in alt


def test_own_text_shows_agreement_and_no_score_without_a_reference(marked):
    shown = last(marked, OWN, THREE)
    assert "agreement" in shown["strip"] and "agreement" in shown["path"]
    everything = shown["strip"] + shown["answers"] + shown["path"]
    assert "BLEU" not in everything and "chrF" not in everything
    assert "reference" not in shown["answers"]
    assert Language.of("en").say("length.own_agreement") in shown["message"]
    assert Language.of("zh").say("length.own_single").split("：")[0] in last(
        marked, OWN, "One sentence.", language="zh"
    )["message"].replace("&quot;", '"')


def test_own_text_that_cannot_grow_is_answered(service):
    (empty,) = frames(service, OWN, "", language="zh")
    assert 'class="hint"' in empty["message"] and "100 词" in empty["message"]
    assert empty["sentence"] == empty["answers"] == empty["stops"] == ""
    (long,) = frames(service, OWN, "word " * 150)
    assert 'role="alert"' in long["message"] and "150 words" in long["message"]
    (unknown,) = frames(service, "nope")
    assert "lost-keys" in unknown["message"]
    assert (
        Language.of("zh").say("translate.language")
        in last(service, OWN, "我弟弟不想出门。外面太冷了。", language="zh")["message"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> again.",
        "a<b && c>d",
        "${7*7}",
        "{{value}} &amp;",
        "\"quoted\" 'x'",
    ],
)
def test_markup_is_text(marked, text):
    whole = f"{text} Another sentence here. {text}"
    shown = last(marked, OWN, whole)
    for name, part in shown.items():
        if isinstance(part, str):
            assert "<script" not in part and "<b &" not in part, name
            parsed(part)
    found = parsed(shown["sentence"]).findall(".//p[@class='english']")
    stage = growth.own(whole).stages[-1]
    assert text_of(found[-1]) == stage.english
    # Of the lexicon, too.
    translation = marked.translate("transformer", THREE)
    french = translate.cards.target([translation], "en", lambda word: ("<i>", "&"))
    assert "<i>" not in french and "English: &lt;i&gt;, &amp;" in french


def test_models_that_cannot_be_used_say_so(tmp_path):
    shown = last(Service(tmp_path), "lost-keys")
    assert shown["answers"].count('role="alert"') == 36
    assert "aria-busy" not in shown["answers"] and shown["path"].count("not computed yet") == 8


def test_the_slider_has_as_many_stops_as_the_text(service):
    for text, stage, fitted in (
        (THREE, 9, (3, 1, True)),
        (THREE, 2, (3, 1, True)),
        ("One.", 4, (2, 1, False)),
    ):
        slider = length._fit(service, OWN, text, stage)
        assert (slider.maximum, slider.value, slider.interactive) == fitted
    assert length._fit(service, "late-train", "", 4).maximum == 9
    assert skipped(length._fit(service, OWN, "", 4))


def test_the_button_on_the_translate_tab_carries_a_text_that_can_grow():
    assert translate._longer_label(THREE, "en").value == "Make it longer →"
    example = Service().examples()[0]["english"]
    for nothing in (example, "", "  "):
        assert translate._longer_label(nothing, "zh").value == Language.of("zh").say(
            "translate.longer"
        )
    assert translate._longer_label("One sentence.", "zh").value == Language.of("zh").say(
        "translate.longer_own"
    )
    tabs, passage, own = translate._to_length(THREE, "lost-keys", "")
    assert (tabs.selected, passage, own) == ("length", OWN, THREE)
    for text in ("", example, None, "One. Two. " * 1000):
        assert translate._to_length(text, "lost-keys", "old")[1:] == ("lost-keys", "old")


# ---------------------------------------------------------------------------------------------
# Reports


def test_measured_curves(service):
    assert Language.of("en").say("length.measured_none") in measured.panel(service, "en")
    write(service, "length", length_report())
    for language in ("en", "zh"):
        shown = measured.panel(service, language)
        figures = parsed(shown).findall(".//figure")
        assert [(f.get("data-curve"), f.get("data-metric")) for f in figures] == [
            ("same-content", "bleu"),
            ("same-content", "chrf"),
            ("natural", "bleu"),
            ("natural", "chrf"),
        ]
        assert shown.count('class="marker"') == 4 and shown.count('class="histogram"') == 4
        assert Language.of(language).say("length.measured_older") not in shown
        told = {
            (p.get("data-curve"), p.get("data-metric")): text_of(p)
            for p in parsed(shown).findall(".//p[@class='told']")
        }
        assert len(told) == 6
        natural = told["natural", None]
        assert all(number in natural for number in ("12,807", "31", "4,210", "1,000"))
        assert "412" in told["same-content", None]
        effect = {
            "en": "LSTM goes from 11.0 to 5.7 BLEU and keeps 52 % of it (46 to 58), LSTM + attention from "
            "21.0 to 18.6, 89 % (83 to 95)",
            "zh": "LSTM 的 BLEU 从 11.0 变为 5.7，保住 52%（46 到 58）；LSTM + 注意力 从 21.0 变为 18.6，保住 89%（83 到 95）",
        }
        for curve in ("natural", "same-content"):
            assert effect[language] in told[curve, "bleu"]
            assert Language.of(language).say("length.told_low") not in told[curve, "bleu"]
            assert "35.0" in told[curve, "chrf"] and "BLEU" not in told[curve, "chrf"]
    natural = parsed(measured.panel(service, "en")).find(".//figure[@data-curve='natural']")
    # The last bucket is thin: grey, hollow, and without a band.
    markup = ElementTree.tostring(natural, "unicode")
    assert markup.count('stroke="var(--faint)"') == 8
    bands = [p for p in natural.iter("polygon") if p.get("fill-opacity")]
    assert len(bands) == 4
    assert all(len(band.get("points").split()) == 14 for band in bands)


def broken(change: Callable[[dict[str, Any]], Any]) -> str:
    report = length_report()
    change(report)
    return json.dumps(report)


@pytest.mark.parametrize(
    "content, key",
    [
        ("", "damaged"),
        ('{"schema": 1', "damaged"),
        ("[]", "damaged"),
        ("null", "none"),
        ('{"models": []}', "damaged"),
        ('{"schema": 0}', "format"),
        ('{"schema": 1}', "damaged"),
        ('{"schema": 1, "curves": []}', "damaged"),
        (broken(lambda r: r["curves"]["natural"]["lstm"]["buckets"][0].pop("words")), "damaged"),
        (broken(lambda r: r["curves"]["natural"]["lstm"]["buckets"].append(3)), "damaged"),
        (broken(lambda r: r["curves"]["natural"].update(rnn=None)), "damaged"),
        (broken(lambda r: r.update(curves=None)), "damaged"),
        (broken(lambda r: r.pop("effects")), "damaged"),
        (broken(lambda r: r["models"].pop("rnn")), "damaged"),
        (broken(lambda r: r["length_histogram"].append("x")), "damaged"),
        (
            broken(lambda r: r["curves"]["natural"]["rnn"]["buckets"][1].update(bleu=float("nan"))),
            "damaged",
        ),
        (
            broken(lambda r: r["curves"]["natural"]["rnn"]["buckets"][1].update(bleu="<b>")),
            "damaged",
        ),
    ],
)
def test_a_report_that_cannot_be_shown_is_said_to_be_so(service, content, key):
    write(service, "length", content)
    for language in ("en", "zh"):
        shown = measured.panel(service, language)
        assert Language.of(language).say(f"length.measured_{key}") in shown and "<svg" not in shown
        assert measured.details(service, language) == "" or key == "damaged"


def test_a_report_with_gaps_is_shown_as_far_as_it_goes(service):
    report = length_report()
    del report["curves"]["same-content"], report["effects"]["same-content"]
    report["length_histogram"] = None
    for name in MODELS:
        first = report["curves"]["natural"][name]["buckets"][0]
        first.update(n=0, words=None, bleu=None, bleu_low=None, bleu_high=None)
        report["curves"]["natural"][name]["buckets"][1].update(bleu_low=None, bleu_high=None)
    report["effects"]["natural"]["models"]["lstm"]["bleu_ratio"]["low"] = None
    report["data"]["name"] = "<script>.tsv"
    write(service, "length", report)
    shown = measured.panel(service, "en")
    assert (
        Language.of("en").say("length.measured_no_curve") in shown
        and shown.count('<svg class="curves"') == 2
    )
    assert "keeps" not in shown and "<script" not in shown and "&lt;script&gt;" in shown
    parsed(shown)


def test_a_share_of_almost_nothing_is_said_to_say_little(service):
    report = length_report()
    report["effects"]["natural"]["models"]["lstm"]["bleu"] = [3.1, 2.9]
    write(service, "length", report)
    shown = measured.panel(service, "en")
    assert shown.count(Language.of("en").say("length.told_low")) == 1
    del report["effects"]["natural"]["models"]["lstm"]["bleu_ratio"]
    write(service, "length", report)
    assert Language.of("en").say("length.measured_damaged") in measured.panel(service, "en")


def test_details_hold_the_effect_the_prediction_and_where_it_breaks(service):
    assert measured.details(service, "en") == ""
    write(service, "length", length_report())
    for language in ("en", "zh"):
        shown = parsed(measured.details(service, language))
        rows = [[text_of(cell) for cell in row] for row in shown.findall(".//tbody/tr")]
        assert [row[0] for row in rows] == [
            Language.of(language).say(f"model.{name}") for name in MODELS
        ]
        assert rows[1][1:] == ["52 (46 … 58)", "52 (46 … 58)", "0.220 (0.160 … 0.280)"]
        items = [text_of(item) for item in shown.findall(".//li") if item.find("svg") is None]
        assert [item.split()[-1] for item in items] == [
            Language.of(language).say(f"length.verdict_{verdict}")
            for verdict in ("holds", "contradicted", "undecided")
        ]
        assert "1.0 (\u22124.0 … 6.0)" in items[2] and "0.200 (0.150 … 0.250)" in items[0]
        loss, found = shown.findall(".//figure")
        assert len(loss.findall(".//polyline")) == len(found.findall(".//polyline")) == 4
        assert "90" in text_of(found.find("figcaption"))
    assert "LSTM keeps a smaller share of BLEU than LSTM + attention" in measured.details(
        service, "en"
    )


def test_details_leave_out_what_the_report_lacks(service):
    report = length_report()
    del report["effects"]["same-content"]
    report.update(prediction=None, positions={})
    write(service, "length", report)
    shown = measured.details(service, "en")
    assert "<table" not in shown and "<li" not in shown and "<svg" not in shown
    report = length_report()
    report["prediction"]["hypotheses"][0]["verdict"] = "<b>"
    write(service, "length", report)
    assert measured.details(service, "en") == ""


def test_older_weights_are_said(service):
    report, passages = length_report(), passages_report()
    for one in (report, passages):
        one["models"] = copy.deepcopy(one["models"])
        one["models"]["transformer"]["weights_sha256"] = "0" * 64
    write(service, "length", report)
    write(service, "passages", passages)
    shown = measured.panel(service, "en")
    assert "older weights" in shown and shown.count("<figure") == 4
    assert (
        Language.of("zh").say("length.older")
        in last(service, "late-train", language="zh")["message"]
    )


def test_the_passage_with_the_median_effect_is_shown_first(service):
    page = ui.build(service=service)
    dropdown = next(b for b in page.blocks.values() if getattr(b, "elem_id", "") == "passage")
    assert dropdown.value == service.passages()[0]["id"]
    shown = last(service, dropdown.value)
    assert shown["message"] == "" and shown["opposite"].visible is False

    write(service, "passages", passages_report())
    page = ui.build(service=service)
    dropdown = next(b for b in page.blocks.values() if getattr(b, "elem_id", "") == "passage")
    assert dropdown.value == "late-train" and dropdown.choices[0][1] == "late-train"
    assert dropdown.choices[-1][1] == OWN
    shown = last(service, "late-train")
    assert Language.of("en").say("length.first", number=10) in shown["message"]
    assert shown["opposite"].visible and "food" in shown["opposite"].value
    assert length._other(service, "late-train") == "food-directive"
    shown = last(service, "food-directive", language="zh")
    assert Language.of("zh").say("length.opposite_said") in shown["message"]
    assert "晚点的火车" in shown["opposite"].value
    assert length._other(service, "food-directive") == "late-train"
    assert last(service, "noisy-dog")["message"] == ""


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": 0}',
        {**passages_report(), "first": "nope"},
        {**passages_report(), "first": ["late-train"]},
        {**passages_report(), "models": {}},
    ],
)
def test_a_damaged_choice_of_passages_claims_nothing(service, content):
    write(service, "passages", content)
    assert measured.chosen_passages(service) is None
    assert last(service, "late-train")["message"] == ""
    ui.build(service=service)


@pytest.mark.parametrize("opposite", [None, "nope", "late-train", 5, ["x"]])
def test_there_need_not_be_an_opposite(service, opposite):
    write(service, "passages", {**passages_report(), "opposite": opposite})
    assert measured.chosen_passages(service) == ("late-train", None, False)
    assert last(service, "late-train")["opposite"].visible is False


# ---------------------------------------------------------------------------------------------
# Plots


def test_curves_are_where_the_scores_are():
    picture = curves.curves(
        {"lstm": [(6, 0.0), (66, 40.0)]}, ticks=[6, 66], axis="<words>", alt='"&'
    )
    assert "&lt;words&gt;" in picture and 'aria-label="&quot;&amp;"' in picture
    (low_x, low_y), (high_x, high_y) = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    assert float(low_x) == pytest.approx(curves.x_of(6, 6, 66), abs=0.1)
    assert float(high_x) == pytest.approx(curves.x_of(66, 6, 66), abs=0.1)
    assert (float(low_y), float(high_y)) == (curves.HEIGHT - curves.BOTTOM, curves.TOP)
    assert "<svg" in curves.curves({name: [] for name in MODELS}, ticks=[5], axis="", alt="")


def test_the_marker_stands_at_its_number_of_words():
    picture = curves.curves({}, ticks=[0, 100], axis="", alt="", marker=True)
    origin, unit = map(float, re.search(r"--origin:([\d.]+)px;--unit:([\d.]+)px", picture).groups())
    for count in (0, 7, 70, 100):
        assert origin + unit * count == pytest.approx(curves.x_of(count, 0, 100), abs=0.1)


def test_lines_between_thin_points_are_grey():
    points = [(5.0, 10.0), (15.0, 9.0), (25.0, 8.0), (35.0, 7.0)]
    picture = curves.curves({"lstm": points}, ticks=[0, 40], axis="", alt="", thin={35.0})
    solid, grey = re.findall(r'<polyline points="([^"]*)" [^>]*stroke="var\(--(\w+)\)"', picture)
    assert (len(solid[0].split()), solid[1]) == (3, "lstm")
    assert (len(grey[0].split()), grey[1]) == (2, "faint")


# ---------------------------------------------------------------------------------------------
# The endpoint


@pytest.fixture(scope="module")
def page_service(translators, tmp_path_factory) -> Service:
    return made_service(tmp_path_factory.mktemp("page"), translators)


@pytest.fixture(scope="module")
def client(page_service):
    app = gr.mount_gradio_app(FastAPI(), ui.build(service=page_service), path="/")
    with TestClient(app) as client:
        yield client


def call(client: TestClient, data: list[Any] | dict[str, Any]) -> tuple[str, Any]:
    """("complete" or "error", its data); values in order, or by name with the others left out."""
    by_name = isinstance(data, dict)
    path = "/gradio_api/call/v2/length" if by_name else "/gradio_api/call/length"
    answer = client.post(path, json=data if by_name else {"data": data})
    assert answer.status_code == 200, answer.text
    stream = client.get(f"/gradio_api/call/length/{answer.json()['event_id']}").text
    event, payload = re.findall(r"event: (complete|error)\ndata: (.*)", stream)[-1]
    return event, json.loads(payload)


def test_endpoint_with_a_passage(client, page_service):
    event, (answer,) = call(client, {"passage": "late-train", "stage": 2})
    stage = page_service.growth("late-train").stages[1]
    assert event == "complete" and tuple(answer["models"]) == MODELS
    assert answer["english"] == stage.english and answer["reference"] == stage.french
    assert (answer["passage"], answer["stage"], answer["stages"], answer["words"]) == (
        "late-train",
        2,
        9,
        15,
    )
    scored = page_service.scored("rnn", stage)
    assert answer["models"]["rnn"] == {
        "text": scored.translation.text,
        "words_found": None,
        "sentence_bleu": round(scored.bleu, 2),
        "sentence_chrf": round(scored.chrf, 2),
    }
    assert call(client, ["late-train", 2, "", "zh"])[1][0] == answer


def test_endpoint_with_an_own_text(client, page_service, monkeypatch):
    monkeypatch.setattr(page_service, "lexicon", FakeLexicon)
    monkeypatch.setattr(coverage, "mark", fake_mark)
    text = "The <b>boat</b> is green. Nobody painted the bridge."
    event, (answer,) = call(client, {"text": text, "stage": 2})
    assert event == "complete"
    assert (answer["passage"], answer["stage"], answer["stages"], answer["words"]) == (OWN, 2, 2, 8)
    assert answer["reference"] is None and answer["notes"] == []
    stage = growth.own(text).stages[1]
    scored = page_service.scored("lstm", stage)
    assert answer["models"]["lstm"] == {
        "text": scored.translation.text,
        "words_found": dict(zip(("found", "judged"), scored.found)),
        "agreement": round(scored.agreement, 2),
    }
    event, (answer,) = call(client, ["own", 1, "Only one sentence", "zh"])
    assert event == "complete" and answer["notes"] == [Language.of("zh").say("length.own_single")]


@pytest.mark.parametrize(
    "data, said",
    [
        (["nope", 1, "", "en"], "one of lost-keys, "),
        (["../../etc/passwd", 1, "", "en"], "one of lost-keys, "),
        ([["lost-keys"], 1, "", "en"], "one of lost-keys, "),
        ([None, 1, "", "zh"], "可选 lost-keys, "),
        (["lost-keys", 0, "", "en"], "whole number from 1 to 9, got 0"),
        (["lost-keys", 10, "", "en"], "whole number from 1 to 9, got 10"),
        (["lost-keys", 2.5, "", "en"], "whole number from 1 to 9, got 2.5"),
        (["lost-keys", True, "", "en"], "whole number from 1 to 9, got True"),
        (["lost-keys", "3", "", "zh"], "1 到 9 的整数，收到的却是 '3'"),
        (["lost-keys", None, "", "xx"], "whole number from 1 to 9, got None"),
        (["", 1, "", "en"], "two or more English sentences"),
        (["own", 1, " \n", "zh"], "请输入两句以上的英语"),
        (["", 3, "One. Two.", "en"], "whole number from 1 to 2, got 3"),
        (["", 1, "word " * 101, "en"], "101 words"),
        (["", 1, 5, "en"], "a string, got int"),
        (["", 1, ["a"], "zh"], "list"),
        (["", 1, "a" * 5001, "en"], "5,001 characters"),
    ],
)
def test_endpoint_refuses(client, data, said):
    event, answer = call(client, data)
    assert event == "error" and said in answer["error"]
