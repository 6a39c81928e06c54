"""The page without a browser: its texts, its handlers, its endpoints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import gradio as gr
import pytest
import sacrebleu.metrics
from fastapi import FastAPI
from fastapi.testclient import TestClient

import seqviz
from seqviz import ui
from seqviz.coverage import Remembered, Word
from seqviz.language import LANGUAGES, Language
from seqviz.translating import notes
from seqviz.translating.notes import Kind, Note
from seqviz.translating.translator import Translator
from seqviz.ui import cards, growth, lanes, theme, translate
from seqviz.ui import service as services
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import MODELS, Service
from seqviz.ui.text import is_chinese

# ---------------------------------------------------------------------------------------------
# Words


def test_every_note_of_the_translator_has_words():
    for language in LANGUAGES:
        for kind in set(get_args(Kind)) - {"language"}:  # said once, beside the text
            note = Note(kind, "ENGLISH", ("one", "two"))
            assert notes.said(note, language) != "ENGLISH", kind
    assert notes.said(Note("new kind", "said plainly"), "zh") == "said plainly"


# ---------------------------------------------------------------------------------------------
# Service


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer):
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}


def made_service(folder: Path, translators: dict[str, Translator]) -> Service:
    training = {
        "target_tokens": 2_000_000,
        "num_parameters": 7_500_000,
        "created": "2026-11-30T20:20:59+00:00",
        "dev_bleu": {"score": 12.34, "signature": "nrefs:1|tok:13a", "sentences": 500},
    }
    for name in MODELS:
        (folder / name).mkdir()
        (folder / name / "training.json").write_text(json.dumps(training), encoding="utf-8")
    return Service(folder, translators=translators)


@pytest.fixture
def service(translators, tmp_path):
    """Tiny models with random weights, nothing in the caches."""
    return made_service(tmp_path, translators)


@pytest.fixture(scope="module")
def page_service(translators, tmp_path_factory):
    """What `client` talks to."""
    return made_service(tmp_path_factory.mktemp("page"), translators)


def test_settings_are_those_of_sacrebleu():
    metrics = sacrebleu.metrics
    for metric, settings in (
        (metrics.BLEU(effective_order=True), services.BLEU_SETTINGS),
        (metrics.CHRF(), services.CHRF_SETTINGS),
    ):
        metric.sentence_score("the cat", ["the cat sat"])
        assert str(metric.get_signature()).rsplit("|version", 1)[0] == settings


def test_importing_and_building_the_page_needs_no_pytorch():
    code = "import sys, seqviz.ui as u; u.build(); sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    root = Path(seqviz.__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_missing_weights_are_said(tmp_path):
    service = Service(tmp_path)
    assert not service.ready
    assert service.wait(timeout=300) and service.ready
    assert set(service.errors) == set(MODELS)
    with pytest.raises(RuntimeError, match="model folder"):
        service.translator("rnn")
    with pytest.raises(KeyError, match="expected one of rnn"):
        service.translator("gru")
    shown = list(translate.draw_lanes(service, "The boat.", 1, "en"))[-1][-1]
    assert shown.count('role="alert"') == 4
    assert shown.count("model folder") == 4
    notice, say = list(ui._notice(service, "zh"))[-1], Language.of("zh").say
    for name in MODELS:
        broken = say("page.broken", model=say(f"model.{name}"), error="expected")
        assert notice.count(broken) == 1  # and what was expected


def test_translations_are_kept(service):
    first = service.translate("lstm", "The boat.")
    assert service.translate("lstm", "The boat.") is first
    assert not first.attentions
    attentive = service.translate("lstm-attention", "The boat.", attention=True)
    assert attentive.attention("cross").weights.shape[0] == 1
    # What has attention serves those who need none.
    assert service.translate("lstm-attention", "The boat.") is attentive


def test_cache_is_bounded():
    cache = services._Cache(3)
    for number in range(5):
        cache.put(number, -number)
        cache.get(2)
    assert [cache.get(number) for number in range(5)] == [None, None, -2, -3, -4]


def test_many_threads_get_their_own_answers(service, translators):
    texts = [f"The teacher painted the bridge {number}." for number in range(12)]
    alone = {
        (name, text): translators[name].translate(text).text
        for name in ("rnn", "transformer")
        for text in texts
    }
    with ThreadPoolExecutor(8) as pool:
        found = dict(
            zip(
                alone,
                pool.map(lambda key: service.translate(key[0], key[1]).text, alone),
                strict=True,
            )
        )
    assert found == alone


# ---------------------------------------------------------------------------------------------
# Translate tab


def last(
    service: Service, text: str | None, beams: int = 1, language: str = "en"
) -> tuple[str, ...]:
    return list(translate.draw_lanes(service, text, beams, language))[-1]


def test_lanes_fill_one_by_one(service):
    steps = [shown for _, shown in translate.draw_lanes(service, "The boat.", 1, "en")]
    assert [shown.count("tokens/s") for shown in steps] == [0, 1, 2, 3, 4]
    assert [shown.count('aria-busy="true"') for shown in steps] == [4, 3, 2, 1, 0]
    order = re.findall(r'data-model="([^"]+)"', steps[-1])
    assert tuple(order) == MODELS
    assert "trained on 2.0 M tokens" in steps[-1] and "BLEU 12.3 on dev sentences" in steps[-1]
    assert "not measured" not in steps[-1]


def test_words_are_marked_in_each_lane_as_the_models_finish(service, monkeypatch):
    """The RNN's output for the whole text lacks the <boat> that its output for the sentence has."""
    table = SimpleNamespace(meanings=lambda french: ())
    monkeypatch.setattr(service, "lexicon", lambda: table)
    text = "The <boat>!\nIt sinks."
    whole = service.translate_paragraphs("rnn", growth.paragraphs(text))[0].text

    def marks(source: str, output: str) -> tuple[Word, ...]:
        lost = source == "The <boat>! It sinks." and output == whole
        found = {"<boat>!": not lost, "sinks.": True}
        return tuple(Word(one, one in found, found.get(one)) for one in source.split())

    monkeypatch.setattr(service, "marks", marks)
    steps = [shown for _, shown in translate.draw_lanes(service, text, 1, "en")]
    counts = [re.findall(r"(\d+ / \d+) words came through", step) for step in steps]
    assert [len(found) for found in counts] == [0, 1, 2, 3, 4]
    assert counts[-1] == ["1 / 2", "2 / 2", "2 / 2", "2 / 2"]
    assert "&lt;boat&gt;!" in steps[-1] and "<boat>" not in steps[-1]
    assert steps[-1].count('<s class="lost"') == 1
    assert f'title="{Language.of("en").say("lanes.lost_title")}">&lt;boat&gt;!</s>' in steps[-1]


def test_without_a_word_table_nothing_is_marked(service):
    assert service.lexicon() is None
    shown = last(service, "The boat.")[-1]
    assert "came through" not in shown and Language.of("en").say("lanes.unmarked") in shown


def test_unmeasured_is_said(service):
    for name in MODELS:
        (service.folder / name / "training.json").write_text("{}", encoding="utf-8")
    shown = last(service, "The boat.")[-1]
    assert (
        shown.count("BLEU not measured") == 4 and shown.count("training budget not recorded") == 4
    )
    assert ui._weights("en", service) == ""


@pytest.mark.parametrize("text", ["", "   \n\t ", None])
def test_no_text_shows_the_opening(service, text):
    message, shown = last(service, text, language="zh")
    assert message == "" and 'data-walk="story"' in shown


def test_text_over_the_limit(service):
    message, shown = last(service, "a" * 5001)
    assert "5,001 characters" in message and "5,000" in message
    assert "tokens/s" not in shown
    assert "tokens/s" in last(service, "The boat. " * 20)[-1]
    assert translate.too_long("a" * 5000, "en") is None


def test_chinese_gets_a_hint_in_chinese(service):
    for language in LANGUAGES:
        message, shown = last(service, "我弟弟不想出门，因为外面太冷了。", language=language)
        assert Language.of("zh").say("translate.chinese") in message
        assert message.count("data-example=") == 3
        assert service.examples()[0]["chinese"] in message
        assert shown == ""  # nothing that no model can read
    message = last(service, "le chat et le chien ne sont pas dans la maison")[0]
    assert Language.of("en").say("translate.language") in message
    assert is_chinese("用 LSTM 翻译这句话") and not is_chinese("The word 猫 means cat.")


def test_the_meaning_of_examples_on_the_chinese_page(service):
    example = service.examples()[1]
    assert example["chinese"] in last(service, example["english"] + "\n", language="zh")[0]
    assert last(service, example["english"])[0] == ""
    assert last(service, "The boat.", language="zh")[0] == ""


def test_paragraphs_are_kept_and_wrapped_lines_joined(service):
    text = "The boat\r\nis green.\n\n \n\n\tThe bridge\nis   old.\n"
    assert growth.paragraphs(text) == ["The boat is green.", "The bridge is   old."]
    found = service.translate_paragraphs("lstm", growth.paragraphs(text))
    assert [item.source for item in found] == growth.paragraphs(text)
    shown = last(service, text)[-1]
    (french,) = re.findall(
        r'data-model="lstm".*?<div class="target"[^>]*>(.*?)</div>', shown, flags=re.DOTALL
    )
    assert french.count("<p>") == len([item for item in found if item.text])


def test_silence_is_said(service):
    text = growth.own("One.")
    outputs = {name: [Output("" if name == "rnn" else "un")] for name in MODELS}
    shown = lanes.lanes(Shown(service, text, "en", outputs))
    assert shown.count(Language.of("en").say("card.silent")) == 1


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a<b && c>d", "${7*7}", "{{value}} &amp;"]
)
def test_markup_is_text(service, text):
    for parts in translate.draw_lanes(service, text, 1, "en"):
        for part in parts:
            assert "<script" not in part and "<b &" not in part
    said = Note("unknown", text, (text,))
    markup = cards.target(text, "en") + cards.notes([said], "en") + cards.problem(text)
    markup += lanes.meaning(text, "en") + lanes.meaning(text, "zh")
    plain = re.sub(r"</?(div|p|span|ul|li|i)\b[^<>]*>", "", markup)
    assert "<" not in plain and ">" not in plain
    assert "49" not in plain


def test_half_an_emoji(service):
    _, shown = last(service, "The boat \ud83d is green.")
    shown.encode("utf-8")
    assert shown.count(Language.of("en").say("note.surrogate")) == 1  # of all four


def test_numbers_that_differ_are_marked_on_both_sides(service):
    text = growth.whole("We sold 25 boats in 1984.")
    note = notes.numbers(("25",), ("3 500",))
    output = Output("Nous avons vendu 3 500 bateaux en 1984.", notes=(note,))
    shown = Shown(service, text, "en", {name: [output] for name in MODELS})
    drawn = lanes.lane(shown, "lstm")
    assert re.findall('<b class="wrong">([^<]*)</b>', drawn) == ["3", "500"]
    assert "check the numbers" in drawn.lower()
    marked = lanes._word(Remembered("25", None), "en", ("25",))
    assert marked == '<b class="wrong">25</b>'
    for word in ("1984.", "125", "255"):
        assert "wrong" not in lanes._word(Remembered(word, None), "en", ("25",))


def test_repetition_is_underlined():
    assert cards.target("je suis très très très content", "en") == (
        'je suis <span class="again">très très très</span> content'
    )


# ---------------------------------------------------------------------------------------------
# The page


def request(query: str = "", languages: str = "") -> SimpleNamespace:
    return SimpleNamespace(
        query_params={"lang": query} if query else {}, headers={"accept-language": languages}
    )


@pytest.mark.parametrize(
    "query, languages, chosen",
    [
        ("zh", "en-US", "zh"),
        ("zh-CN", "en-US", "zh"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "fr-FR,fr;q=0.9,zh;q=0.8,en;q=0.7", "zh"),
        ("", "en-GB,zh;q=0.5", "en"),
        ("xx", "zh", "zh"),
        ("", "", "en"),
    ],
)
def test_first_language(query, languages, chosen):
    assert ui.first_language(request(query, languages)) == chosen


def test_theme_and_style_ask_no_other_host():
    colours = theme.gradio_theme()
    assert not colours._stylesheets and not re.findall("https?://", "".join(colours._font_css))
    outside = re.findall(r"(?:url\(|src=|href=|@import)[^;)]*//", theme.CSS + theme.HEAD)
    assert not outside


@pytest.fixture(scope="module")
def client(page_service):
    app = gr.mount_gradio_app(FastAPI(), ui.build(service=page_service), path="/")
    with TestClient(app) as client:
        yield client


def call(client: TestClient, name: str, data: str | list) -> tuple[str, object]:
    """("complete" or "error", its data)."""
    body = data if isinstance(data, str) else json.dumps({"data": data})
    answer = client.post(
        f"/gradio_api/call/{name}", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    stream = client.get(f"/gradio_api/call/{name}/{answer.json()['event_id']}").text
    event, payload = re.findall(r"event: (complete|error)\ndata: (.*)", stream)[-1]
    return event, json.loads(payload)


def test_only_named_endpoints_are_listed(client):
    info = client.get("/gradio_api/info").json()
    assert {"/translate", "/length"} <= set(info["named_endpoints"])
    assert all(re.fullmatch("/[a-z_]+", name) for name in info["named_endpoints"])
    assert not info["unnamed_endpoints"]
    names = [item["parameter_name"] for item in info["named_endpoints"]["/translate"]["parameters"]]
    assert names == ["text", "beams"]


def test_translate_endpoint(client, page_service):
    event, (answer,) = call(client, "translate", ["The boat is green.\n\nThe bridge.", 2])
    assert event == "complete" and tuple(answer) == MODELS
    for name, found in answer.items():
        assert set(found) == {"text", "seconds", "notes"}
        parts = page_service.translate_paragraphs(name, ["The boat is green.", "The bridge."], 2)
        assert found["text"] == "\n\n".join(part.text for part in parts)
        assert found["seconds"] > 0
    event, (answer,) = call(client, "translate", ["", 1])
    assert event == "complete" and answer["rnn"]["text"] == ""
    assert answer["rnn"]["notes"] == ["nothing to translate: the text is empty"]
    event, (answer,) = call(client, "translate", r'{"data": ["half \ud83d emoji", 1]}')
    assert event == "complete"
    assert "broken characters were replaced by \ufffd" in answer["transformer"]["notes"]


@pytest.mark.parametrize(
    "data, said",
    [
        ([5, 1], "expected text, got int"),
        ([["a"], 1], "expected text, got list"),
        ([None, 1], "expected text, got NoneType"),
        (["a" * 5001, 1], "5,001 characters"),
        (["a" * 3_000_000, 1], "3,000,000 characters"),
        (["The boat.", 0], "whole number from 1 to 8, got 0"),
        (["The boat.", 99], "whole number from 1 to 8, got 99"),
        (["The boat.", 1.5], "whole number from 1 to 8, got 1.5"),
        (["The boat.", True], "whole number from 1 to 8, got True"),
        (["The boat.", "../../etc/passwd"], "whole number from 1 to 8, got '../../etc"),
    ],
)
def test_translate_endpoint_refuses(client, data, said):
    event, answer = call(client, "translate", data)
    assert event == "error" and said in answer["error"]


def test_visitors_are_not_mixed_up(client, page_service):
    texts = [f"The old sailor has forgotten those {number} letters." for number in range(6)]
    answers: dict[str, dict] = {}

    def visit(text: str) -> None:
        event, (answer,) = call(client, "translate", [text, 1])
        assert event == "complete"
        answers[text] = answer

    threads = [threading.Thread(target=visit, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for text in texts:
        for name in MODELS:
            assert answers[text][name]["text"] == page_service.translate(name, text).text


def test_a_class_of_visitors_may_wait(page_service):
    assert ui.build(service=page_service)._queue.max_size >= 128
