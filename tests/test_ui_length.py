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
from length_reports import digest, everyday_report, length_report

from seqviz import coverage, ui
from seqviz.coverage import Word
from seqviz.language import Language
from seqviz.translating.notes import Note
from seqviz.translating.translator import Translator
from seqviz.ui import (
    curves,
    growth,
    lanes,
    length,
    measured,
    outcomes,
    stages,
    story,
    text,
    translate,
)
from seqviz.ui.growth import MAX_STAGES, OWN, GrowthError
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import MODELS, Service, counted

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
    names = ("message", "stops", "lanes", "reference", "path")
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


@pytest.mark.parametrize("text", ["word", "no end here", "One sentence only.", "3.14"])
def test_a_sentence_of_a_few_words_has_one_stage_and_says_so(text):
    grown = growth.own(text)
    assert len(grown.stages) == 1 and [key for key, _ in grown.notes] == ["length.own_single"]


def test_a_single_sentence_grows_by_clauses():
    grown = growth.own(
        "My aunt, who lives in Rome, sold the car because it was old, but she was sad!"
    )
    assert [stage.english for stage in grown.stages] == [
        "My aunt, who lives in Rome!",
        "My aunt, who lives in Rome, sold the car!",
        "My aunt, who lives in Rome, sold the car because it was old!",
        "My aunt, who lives in Rome, sold the car because it was old, but she was sad!",
    ]
    assert grown.notes == (("length.own_clauses", {}),)
    assert not any(stage.sentences for stage in grown.stages)


def test_a_single_sentence_without_clauses_grows_by_words():
    grown = growth.own("The old dog of my neighbour sleeps.")
    assert grown.counts == [3, 4, 5, 6, 7] and grown.notes == (("length.own_words", {}),)
    assert grown.stages[0].english == "The old dog."
    long = growth.own("word " * 100)
    assert len(long.stages) == MAX_STAGES and long.counts[-1] == 100
    assert long.counts == sorted(set(long.counts))
    clauses = growth.own("one two three, " * 33)
    assert len(clauses.stages) == MAX_STAGES and clauses.counts[-1] == 99


@pytest.mark.parametrize("mark", "。！？")
def test_chinese_marks_end_a_sentence(mark):
    assert growth.own(f"I see it{mark}You see it too{mark}").counts == [3, 7]


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


def test_a_word_is_followed_through_a_growing_sentence():
    places = growth.places_before("The train was late.", "The old train was late, again.")
    assert places == [0, None, 1, 2, 3, None]
    assert growth.places_before("a a b", "a a b") == [0, 1, 2]


def test_an_everyday_text_grows_by_a_sentence(service):
    entry = service.everyday()[0]
    text = service.growth(entry["id"])
    assert len(text.stages) == 8
    assert text.stages[1].sentences == tuple(s["english"] for s in entry["sentences"][:2])
    assert text.stages[1].english == " ".join(text.stages[1].sentences)
    assert text.stages[1].chinese == "".join(s["chinese"] for s in entry["sentences"][:2])
    assert text.stages[-1].french.endswith(entry["sentences"][-1]["french"])


def test_a_whole_text_has_its_sentences_unless_it_is_long():
    text = growth.whole(" The boat\nis green.\n\nIt rains. ")
    (stage,) = text.stages
    assert stage.english == "The boat is green. It rains."
    assert stage.sentences == ("The boat is green.", "It rains.") and stage.french is None
    assert growth.whole("It rains. " * 60).stages[0].sentences == ()


# ---------------------------------------------------------------------------------------------
# Translations and scores of stages


def test_the_outputs_of_a_growing_text(service):
    text = service.growth("lost-keys")
    assert service.known("lstm", text) == [None] * 9
    single = service.output("lstm", text.stages[2])
    every = service.outputs("lstm", text)
    assert service.known("lstm", text) == every and every[2] is single
    assert every[3].text == service.translate("lstm", text.stages[3].english).text
    assert every[3].apart is None and every[3].marks == ()
    with pytest.raises(KeyError, match=r"lost-keys, .*got 'nope'"):
        service.growth("nope")


def test_sentences_are_translated_alone_too(marked):
    text = growth.own(THREE)
    for name in MODELS:
        path = marked.outputs(name, text)
        alone = [marked.translate(name, sentence).text for sentence in text.stages[2].sentences]
        assert path[2].apart == " ".join(filter(None, alone))
        assert [word.text for word in path[2].alone] == THREE.split()
        assert path[0].apart is None  # a single sentence stands alone anyway


def test_own_texts_do_not_fill_the_memory(service, monkeypatch):
    """Every text is another one; what is kept of them is bounded."""
    monkeypatch.setattr(service._made, "_size", 5)
    monkeypatch.setattr(service._cache, "_size", 4)
    text = growth.own(THREE)
    assert service.outputs("rnn", text) == service.outputs("rnn", text)
    service.outputs("rnn", service.growth("lost-keys"))
    assert len(service._made._values) == 5 and len(service._cache._values) == 4


def test_found_counts_only_what_was_judged():
    marks = (Word("The", False, None), Word("boat", True, True), Word("x", True, False))
    assert counted(marks) == (1, 2)
    assert counted(marks[:1]) is None and counted(()) is None


def test_a_word_is_forgotten_only_if_the_model_knew_it():
    """Of a text made of sentences: known is what is found in its sentence alone."""
    said = {"a": True, "b": True, "c": False, "d": False}
    here = {"a": True, "b": False, "c": False, "d": True}
    text = growth.own("a b the. c d.")

    def judged(states: dict[str, bool]) -> tuple[Word, ...]:
        words = "a b the. c d.".split()
        return tuple(Word(w, w.strip(".") in states, states.get(w.strip("."))) for w in words)

    outputs = [None, Output("x", judged(here), judged(said))]
    words = outcomes.words_at(text, outputs, 1)
    assert [word.state for word in words] == ["kept", "forgotten", None, "never knew", "never knew"]
    assert outcomes.came(words) == (1, 1, 2) and outcomes.came(words).known == 2
    assert outcomes.words_at(text, outputs, 0) == []


def test_a_growing_sentence_forgets_what_it_said_at_an_earlier_stage():
    """Known is what was found at any stage so far; a stage without an output tells nothing."""
    stages = ("Old dogs sleep.", "Old dogs sleep well.", "Old dogs never sleep well.")
    found = ({"dogs"}, {"sleep", "well"}, {"well"})
    text = growth.Growth("x", tuple(growth.Stage(english) for english in stages))

    def output(stage: int) -> Output:
        words = stages[stage].split()
        return Output(
            "x", tuple(Word(w, True, w.strip(".").lower() in found[stage]) for w in words)
        )

    every = [output(0), output(1), output(2)]
    states = [word.state for word in outcomes.words_at(text, every, 2)]
    assert states == ["never knew", "forgotten", "never knew", "forgotten", "kept"]
    gap = [every[0], None, every[2]]
    states = [word.state for word in outcomes.words_at(text, gap, 2)]
    assert states == ["never knew", "forgotten", "never knew", "never knew", "kept"]


def test_without_a_lexicon_no_word_is_marked_and_the_page_says_so(service):
    assert service.lexicon() is None and service.meanings("clés") == ()
    shown = last(service, "lost-keys")
    assert 'class="lost"' not in shown["lanes"] and 'class="never"' not in shown["lanes"]
    assert "lexicon.json" in shown["lanes"] and "came through" not in shown["lanes"]
    assert service.passage("lost-keys")["stages"][0]["english"] in shown["lanes"]


def test_a_damaged_lexicon_is_none(service):
    (service.folder / "lexicon.json").write_text("{", encoding="utf-8")
    assert service.lexicon() is None
    assert "lexicon.json" in last(service, "lost-keys")["lanes"]


# ---------------------------------------------------------------------------------------------
# The opening


@pytest.fixture
def opened(service, models_folder) -> Service:
    """A service with a table of words and stored outputs of the everyday texts."""
    (service.folder / "lexicon.json").write_bytes((models_folder / "lexicon.json").read_bytes())
    write(service, "everyday", everyday_report())
    return service


def test_the_opening_asks_no_model(opened, monkeypatch):
    monkeypatch.setattr(opened, "translator", lambda name: pytest.fail("asked"))
    text = story.text_of(opened)
    assert text.id == "snow"
    shown = parsed(story.opening(opened, "en"))
    for name in MODELS:
        lane = shown.find(f".//section[@data-model='{name}']")
        assert lane.get("aria-busy") is None
        assert len(lane.findall("div/div[@data-stage]")) == 8
    assert list(story.draw(opened, "zh")) == [story.opening(opened, "zh")]
    assert len(frames(opened, "snow")) == 1  # on the Length tab, too


def test_forgotten_words_are_struck_out_and_unknown_ones_pale(opened):
    """The made-up LSTM says two sentences and stops, the RNN says nothing; the others say all."""
    shown = parsed(story.opening(opened, "en"))

    def at(name: str, stage: int) -> ElementTree.Element:
        return shown.find(f".//section[@data-model='{name}']/div/div[@data-stage='{stage}']/p")

    assert at("lstm", 2).find("s") is None
    struck = {text_of(one) for one in at("lstm", 8).findall("s")}
    assert {"bread", "cheese.", "children", "window."} <= struck
    assert not struck & {"snowing", "night."}
    assert at("rnn", 8).find("s") is None
    assert {"bread", "night."} <= {text_of(one) for one in at("rnn", 8).findall("span")}
    assert at("transformer", 8).find("s") is None
    counts = {
        name: text_of(
            shown.find(f".//section[@data-model='{name}']/header/span[@class='counts'][8]")
        )
        for name in MODELS
    }
    assert "forgotten" in counts["lstm"] and "forgotten" not in counts["transformer"]
    ending = text_of(shown.find(".//p[@class='ending']"))
    forgotten = len(struck)
    assert f"forgotten {forgotten} of the" in ending and "forgotten 0 of" in ending


def test_a_reader_that_never_read_is_not_said_to_forget(opened):
    write(opened, "everyday", {**everyday_report(), "reads": False})
    assert "never learned to read" in story.opening(opened, "en")
    assert "从没学会" in story.opening(opened, "zh")


def test_the_french_is_said_in_the_reader_s_language(opened):
    english = parsed(story.opening(opened, "en"))
    chinese = parsed(story.opening(opened, "zh"))
    path = ".//section[@data-model='transformer']/div/div[@data-stage='3']/div[@class='means']"
    assert "bread" in text_of(english.find(path)) and english.find(path).get("lang") == "en"
    assert "面包" in text_of(chinese.find(path)) and chinese.find(path).get("lang") == "zh-CN"
    assert "面包和奶酪" in text_of(chinese)  # the meaning of the English


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": 0}',
        {**everyday_report(), "first": "nope"},
        {**everyday_report(), "found": {}},
        {**everyday_report(), "outputs": {}},
        {**everyday_report(), "mean": None},
        {**everyday_report(), "models": {}},
        {**everyday_report(), "data": {"texts_sha256": "0"}},
    ],
)
def test_stored_outputs_that_are_damaged_or_of_other_weights_are_not_shown(service, content):
    write(service, "everyday", content)
    assert service.opening() is None
    text = story.text_of(service)
    assert text.id == service.everyday()[0]["id"]
    assert story.opening(service, "en").count("aria-busy") == 4
    drawn = list(story.draw(service, "en"))
    assert [one.count("aria-busy") for one in drawn] == [4, 3, 2, 1, 0]
    # The loop over the models ends with what they write now.
    assert (
        service.outputs("lstm", text)[0].text
        == service.translate("lstm", text.stages[0].english).text
    )


def test_lanes_are_filled_model_by_model(opened):
    (empty,) = [list(translate.draw_lanes(opened, "", 1, "en"))[-1][1]]
    assert empty == story.opening(opened, "en")


# ---------------------------------------------------------------------------------------------
# What is drawn


def test_the_stages_fill_model_by_model(marked):
    found = frames(marked, "lost-keys")
    assert [frame["lanes"].count("aria-busy") for frame in found] == [4, 3, 2, 1, 0]
    assert [
        frame["lanes"].count('class="waiting"') >= 9 * n for n, frame in zip((4, 3, 2, 1), found)
    ]
    assert ["Being translated" in frame["path"] for frame in found] == [True] * 4 + [False]
    # Gradio sends only what differs from the step before, and a browser that gets two steps at once
    # loses what the second one leaves out.
    for part in ("message", "stops", "reference"):
        assert not skipped(found[0][part]) and all(step[part] == found[0][part] for step in found)
    # The second time all is there at once.
    again = frames(marked, "lost-keys", language="zh")
    assert len(again) == 1 and "父母" in again[0]["reference"]
    assert "父母" not in found[-1]["reference"] and "Ma sœur" in found[-1]["reference"]


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


def test_scores_are_named_for_what_they_are(marked):
    shown = last(marked, "lost-keys")
    for metric in ("bleu", "chrf"):
        assert f'<figure data-metric="{metric}">' in shown["path"]
    alt = re.search('aria-label="([^"]*)"', shown["path"]).group(1)
    assert "sentence BLEU" in alt and "at 6 words" in alt and "at 66 words" in alt
    text = marked.growth("lost-keys")
    drawn = Shown(marked, text, "en", {name: marked.known(name, text) for name in MODELS})
    output, reference = marked.outputs("lstm", text)[3].text, text.stages[3].french
    assert (
        stages._value(drawn, "lstm", 3, "chrf")
        == sacrebleu.sentence_chrf(output, [reference]).score
    )
    assert (
        stages._value(drawn, "lstm", 3, "bleu")
        == sacrebleu.sentence_bleu(output, [reference]).score
    )


def test_own_text_shows_what_came_through_and_no_score_without_a_reference(marked):
    shown = last(marked, OWN, THREE)
    everything = shown["lanes"] + shown["path"] + shown["reference"]
    assert "BLEU" not in everything and "chrF" not in everything and "reference" not in everything
    assert (
        Language.of("en").say("length.kept") in shown["path"] and "came through" in shown["lanes"]
    )
    assert Language.of("zh").say("length.own_single").split("：")[0] in last(
        marked, OWN, "One sentence.", language="zh"
    )["message"].replace("&quot;", '"')


def test_loops_wear_a_sign(service):
    text = growth.own("One.")
    looped = Output("le le le le", notes=(Note("repetition", "x", ("le le",)),))
    outputs = {name: [Output("le chat")] for name in MODELS} | {"rnn": [looped]}
    shown = parsed(lanes.lanes(Shown(service, text, "en", outputs)))
    signs = {
        lane.get("data-model"): lane.find(".//b[@class='circles']") is not None
        for lane in shown.iter("section")
    }
    assert signs == {"rnn": True, "lstm": False, "lstm-attention": False, "transformer": False}
    assert shown.find(".//span[@class='again']") is not None
    assert shown.find(".//ul[@class='notes']") is None  # not said twice


def test_own_text_that_cannot_grow_is_answered(service):
    (empty,) = frames(service, OWN, "", language="zh")
    assert 'class="hint"' in empty["message"] and "100 词" in empty["message"]
    assert empty["lanes"] == empty["path"] == empty["stops"] == ""
    (long,) = frames(service, OWN, "word " * 150)
    assert 'role="alert"' in long["message"] and "150 words" in long["message"]
    (unknown,) = frames(service, "nope")
    assert "lost-keys" in unknown["message"]
    chinese = last(service, OWN, "我弟弟不想出门。外面太冷了。")
    assert Language.of("zh").say("translate.chinese") in chinese["message"]
    assert chinese["message"].count("data-example=") == 3 and chinese["lanes"] == ""


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
    found = parsed(shown["lanes"]).findall(".//p[@class='english']")
    stage = growth.own(whole).stages[-1]
    assert text_of(found[-1]) == stage.english
    # Of the lexicon, too.
    french = translate.cards.target("un mot", "en", lambda word: ("<i>", "&"))
    assert "<i>" not in french and "English: &lt;i&gt;, &amp;" in french


def test_models_that_cannot_be_used_say_so(tmp_path):
    shown = last(Service(tmp_path), "lost-keys")
    assert shown["lanes"].count('role="alert"') == 36
    assert "aria-busy" not in shown["lanes"] and shown["path"].count("not computed yet") == 8


def test_the_slider_has_as_many_stops_as_the_text(service):
    for typed, stage, fitted in (
        (THREE, None, (3, 3, True)),
        (THREE, 9, (3, 3, True)),
        (THREE, 2, (3, 2, True)),
        ("One.", 4, (2, 1, False)),
    ):
        slider = text.fitted(service, typed, OWN, stage)
        assert (slider.maximum, slider.value, slider.interactive) == fitted
    slider = text.fitted(service, "", "late-train")
    assert (slider.maximum, slider.value) == (9, text.FIRST_STAGE)
    assert skipped(text.fitted(service, "", OWN))


def test_one_text_for_every_tab(service):
    """What is typed goes before a text written by hand; of both the slider says how much is looked into."""
    train = [stage.english for stage in service.growth("late-train").stages]
    assert text.growing(service, "", "late-train").id == "late-train"
    assert text.growing(service, THREE, "late-train").id == OWN
    assert text.part(service, "", "late-train", 2) == train[1]
    assert text.part(service, " ", "late-train", 99) == train[-1]
    first = text.growing(service, THREE, OWN).stages[0].english
    assert text.part(service, THREE, OWN, 1) == first != THREE
    # The slider has not met it yet, or stands at its end: as it was typed, with its paragraphs.
    typed = THREE.replace(". ", ".\n\n", 1)
    assert text.part(service, typed, "late-train", 1) == typed == text.part(service, typed, OWN, 3)
    too_long = "word " * 101
    assert text.part(service, too_long, OWN, 1) == too_long
    assert text.part(service, None, OWN, 1) == ""
    with pytest.raises(GrowthError):
        text.growing(service, "", "<b>")


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
    report = length_report()
    report["models"] = copy.deepcopy(report["models"])
    report["models"]["transformer"]["weights_sha256"] = "0" * 64
    write(service, "length", report)
    shown = measured.panel(service, "en")
    assert "older weights" in shown and shown.count("<figure") == 4


def test_the_length_tab_opens_with_the_text_of_the_opening(opened):
    page = ui.build(service=opened)
    dropdown, slider = (
        next(b for b in page.blocks.values() if getattr(b, "elem_id", "") == name)
        for name in ("passage", "length-slider")
    )
    assert dropdown.value == "snow" == dropdown.choices[0][1] and dropdown.choices[-1][1] == OWN
    assert len(dropdown.choices) == 12 + len(opened.passages()) + 1
    assert slider.maximum == 8


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
    output = page_service.translate("rnn", stage.english).text
    assert answer["models"]["rnn"] == {
        "text": output,
        "words_found": None,
        "sentence_bleu": round(sacrebleu.sentence_bleu(output, [stage.french]).score, 2),
        "sentence_chrf": round(sacrebleu.sentence_chrf(output, [stage.french]).score, 2),
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
    whole = page_service.translate("lstm", stage.english).text
    alone = [page_service.translate("lstm", sentence).text for sentence in stage.sentences]
    joined = " ".join(filter(None, alone))
    alike = 100.0 if whole == joined else sacrebleu.sentence_chrf(whole, [joined]).score
    marks = fake_mark(stage.english, whole, FakeLexicon())
    assert answer["models"]["lstm"] == {
        "text": whole,
        "words_found": dict(zip(("found", "judged"), counted(marks))),
        "agreement": round(alike, 2),
    }
    event, (answer,) = call(client, ["own", 1, "Only one sentence", "zh"])
    assert event == "complete" and answer["notes"] == [Language.of("zh").say("length.own_single")]


@pytest.mark.parametrize(
    "data, said",
    [
        (["nope", 1, "", "en"], "one of old-dog, "),
        (["../../etc/passwd", 1, "", "en"], "one of old-dog, "),
        ([["lost-keys"], 1, "", "en"], "one of old-dog, "),
        ([None, 1, "", "zh"], "可选 old-dog, "),
        (["lost-keys", 0, "", "en"], "whole number from 1 to 9, got 0"),
        (["lost-keys", 10, "", "en"], "whole number from 1 to 9, got 10"),
        (["lost-keys", 2.5, "", "en"], "whole number from 1 to 9, got 2.5"),
        (["lost-keys", True, "", "en"], "whole number from 1 to 9, got True"),
        (["lost-keys", "3", "", "zh"], "1 到 9 的整数，收到的却是 '3'"),
        (["lost-keys", None, "", "xx"], "whole number from 1 to 9, got None"),
        (["", 1, "", "en"], "Type an English text"),
        (["own", 1, " \n", "zh"], "请输入最多 100 词的英语"),
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
