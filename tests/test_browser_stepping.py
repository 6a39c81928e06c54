"""Stepping through decoding in a browser, on a page of its own, with tiny models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import pytest
from browsing import Visit, free_port

from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import stepping, theme
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import MODEL_EVENT

pytestmark = pytest.mark.browser

SENTENCE = "Our president wants to buy a large map of Europe today, because it was late!"
ODD = "<img src=x onerror='window.harm=1'> ${7*7} & 🙂 </section> the the"


@pytest.fixture(scope="module")
def service(tiny_model: Any, tiny_tokenizer: Any, tmp_path_factory: Any) -> Service:
    made = {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}
    return Service(tmp_path_factory.mktemp("models"), translators=made)


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:
    """A page with a text, a model, a language, and the panel."""
    with gr.Blocks() as page:
        text = gr.Textbox(SENTENCE, label="text", elem_id="text")
        model = gr.Radio(MODELS, value="lstm-attention", label="model", elem_id="model")
        language = gr.Radio(["en", "zh"], value="en", label="language", elem_id="language")
        steps = stepping.make("steps")

        def draw(text: str, model: str, language: str, start: Any) -> str:
            key = stepping.key_of(text, model)
            ids = stepping.start_ids(start, key)
            found = service.translate_from(model, text, ids, attention=True)
            rows = found.attention("cross").head() if found.attentions else None
            candidates = service.candidates(model, found)
            return stepping.render(
                found, candidates, rows, language, given=len(ids), key=key, about="all heads"
            )

        event: dict[str, Any] = {
            "fn": draw,
            "inputs": [text, model, language, steps.start],
            "outputs": steps.panel,
            "show_progress": "hidden",
            **MODEL_EVENT,
        }
        gr.on([page.load, text.submit, model.input, language.input], **event)
        steps.chosen.then(**event)
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


def opened(one: Visit) -> Visit:
    one.page.wait_for_selector(".st")
    one.page.evaluate(
        """() => {
          window.seen = [];
          document.addEventListener('seqviz:step', event => window.seen.push(event.detail));
        }"""
    )
    return one


def data(one: Visit, name: str) -> Any:
    return json.loads(one.page.locator(".st").get_attribute(f"data-{name}") or "null")


def place(one: Visit) -> int:
    """The step that is shown, from 0; everything that says it must agree."""
    total = len(data(one, "ids"))
    now = int(one.page.locator(".st-now").get_attribute("data-place") or -1)
    assert one.page.locator(".st-later").count() == total - 1 - now
    assert one.page.locator("#steps input[type=range]").input_value() == str(now)
    step = data(one, "steps")[now]
    tags = one.page.locator(".st-candidate[aria-disabled=true]").all()
    assert [int(tag.get_attribute("data-token") or -1) for tag in tags] == [data(one, "ids")[now]]
    shown = one.page.locator(".st-next li:not(.st-empty) b").all_inner_texts()
    assert shown == [row["percent"] for row in step["rows"]]
    texts = one.page.locator(".st-next li:not(.st-empty) bdi").all_inner_texts()
    assert texts == [row["text"] for row in step["rows"]]
    return now


def seen(one: Visit) -> list[int]:
    return one.page.evaluate("window.seen.map(detail => detail.piece)")


def until(one: Visit, holds: Callable[[], bool]) -> None:
    """Let time pass on the page, by less than a step at once, until this holds."""
    for _ in range(1000):
        if holds():
            return
        one.pass_time(50)
    raise AssertionError("50 seconds were not enough")


def test_stepping_asks_nobody(visit, service):
    one = opened(visit())
    translation = service.translate("lstm-attention", SENTENCE, attention=True)
    total = len(translation.target_ids)
    one.quiet()
    one.asked.clear()
    assert place(one) == 0 and seen(one) == []
    panel = one.page.locator(".st")
    panel.focus()
    for key, expected in [
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", total - 1),
        ("ArrowRight", total - 1),
        ("Home", 0),
        ("ArrowLeft", 0),
    ]:
        one.page.keyboard.press(key)
        assert place(one) == expected
    assert one.page.locator(".st-count").inner_text() == Language.of("en").say(
        "stepping.count", number=1, total=total
    )
    for name, expected in [("next", 1), ("last", total - 1), ("previous", total - 2), ("first", 0)]:
        one.page.locator(f"[data-st={name}]").click()
        assert place(one) == expected
    one.page.locator(".st-piece").nth(3).click()
    assert place(one) == 3
    one.page.locator("#steps input[type=range]").focus()
    one.page.keyboard.press("ArrowRight")
    assert place(one) == 4
    one.page.locator("#steps input[type=range]").fill("2")
    assert place(one) == 2
    # The weights are those of the step, and the page is told the row of it.
    weights = translation.attention("cross").words(specials=True)
    chips = one.page.locator(".st-chips li").all()
    titles = [chip.get_attribute("title") for chip in chips]
    assert len(titles) == len(translation.source_words)
    words_ = [e for e in translation.source_word_index if e >= 0]
    row = translation.attention("cross").head()[2]
    expected = [
        sum(w for w, e in zip(row, translation.source_word_index) if e == i)
        for i in range(len(translation.source_words))
    ]
    assert words_ and titles == [
        f"{word}: {weight:.4f}" for word, weight in zip(translation.source_words, expected)
    ]
    last = one.page.evaluate("window.seen.at(-1)")
    assert last == {
        "row": translation.target_word_index[2],
        "piece": 2,
        "model": "lstm-attention",
    }
    assert weights.target_tokens[last["row"]] == translation.target_words[last["row"]]
    one.quiet()
    assert one.asked == []


def test_play_and_pause(visit):
    one = opened(visit())
    total = len(data(one, "ids"))
    one.pass_time(0)
    play = one.page.locator("[data-st=play]")
    assert play.get_attribute("aria-label") == Language.of("en").say("stepping.play")
    play.click()
    until(one, lambda: len(seen(one)) >= 4)
    assert play.get_attribute("aria-label") == Language.of("en").say("stepping.pause")
    play.click()
    stopped = place(one)
    one.pass_time(2000)
    assert place(one) == stopped == 3
    assert seen(one)[:4] == [0, 1, 2, 3]
    # The space bar plays on from there; a hand on an arrow key ends it.
    one.page.locator(".st").focus()
    one.page.keyboard.press(" ")
    until(one, lambda: seen(one)[-1] > stopped)
    one.page.keyboard.press("ArrowLeft")
    stopped = place(one)
    one.pass_time(2000)
    assert place(one) == stopped
    # It stops at the end; then it begins anew.
    one.page.locator(".st-piece").nth(total - 2).click()
    one.page.keyboard.press(" ")
    until(one, lambda: not one.page.locator(".st-playing").count())
    assert place(one) == total - 1
    one.page.keyboard.press(" ")
    assert place(one) == 0


def test_another_piece_is_gone_on_from(visit, service):
    one = opened(visit())
    own = data(one, "ids")
    one.page.locator(".st-piece").nth(2).click()
    other = one.page.locator(".st-candidate[aria-disabled=false]").nth(1)
    token = int(other.get_attribute("data-token") or -1)
    assert token not in own[2:3]
    other.click()
    one.page.wait_for_selector(".st-own")
    forced = service.translate_from("lstm-attention", SENTENCE, [*own[:2], token], attention=True)
    assert data(one, "ids") == list(forced.target_ids)
    assert data(one, "given") == 3 and one.page.locator(".st-given").count() == 3
    # It grows from the chosen piece by itself.
    one.page.wait_for_function("window.seen.at(-1)?.piece >= 3")
    one.page.locator("[data-st=play]").click()
    one.page.locator(".st-piece").nth(2).click()
    assert place(one) == 2
    chosen = one.page.locator(".st-candidate[aria-disabled=true]")
    assert Language.of("en").say("stepping.chosen") in chosen.inner_text()
    # Chosen again further on: the start so far is kept.
    one.page.locator("[data-st=next]").click()
    token = int(
        one.page.locator(".st-candidate[aria-disabled=false]").first.get_attribute("data-token")
        or -1
    )
    one.page.locator(".st-candidate[aria-disabled=false]").first.focus()
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".st[data-given='4']")
    assert data(one, "ids")[:4] == [*forced.target_ids[:3], token]
    one.page.locator("[data-st=own]").click()
    one.page.wait_for_selector(".st-own", state="detached")
    assert data(one, "ids") == own and place(one) == 0


def test_another_text_or_model_has_its_own_start(visit, service):
    one = opened(visit())
    one.page.locator(".st-candidate[aria-disabled=false]").first.click()
    one.page.wait_for_selector(".st-own")
    one.page.get_by_label("rnn", exact=True).check()
    one.page.wait_for_selector(".st[data-model=rnn]")
    assert one.page.locator(".st-own").count() == 0
    assert data(one, "ids") == list(service.translate("rnn", SENTENCE).target_ids)
    assert one.page.locator(".st-chips").count() == 0
    assert Language.of("en").say("stepping.vector") in one.page.locator(".st-look").inner_text()
    place(one)


def test_the_step_stays_when_only_the_words_change(visit):
    one = opened(visit())
    one.page.locator("[data-st=next]").click()
    one.page.locator("[data-st=next]").click()
    one.page.get_by_label("zh", exact=True).check()
    one.page.get_by_text(Language.of("zh").say("stepping.title")).wait_for()
    assert place(one) == 2
    count = Language.of("zh").say("stepping.count", number=3, total=len(data(one, "ids")))
    assert one.page.locator(".st-count").inner_text() == count
    seen_text = one.page.locator(".st").inner_text()
    assert Language.of("en").say("stepping.take") not in seen_text and "stepping_" not in seen_text


def test_markup_is_text_and_reduced_motion_grows_nothing(visit):
    one = opened(visit(reduced_motion="reduce"))
    one.page.locator("#text textarea").fill(ODD)
    one.page.locator("#text textarea").press("Enter")
    one.page.wait_for_function(
        "text => [...document.querySelectorAll('.st-chips bdi')].map(e => e.textContent).join(' ') == text",
        arg=ODD,
    )
    for _ in range(min(12, len(data(one, "ids")))):
        place(one)
        one.page.locator("[data-st=next]").click()
    assert one.page.evaluate("window.harm") is None
    assert one.page.locator("#steps img, #steps script").count() == 0
    one.page.locator("[data-st=first]").click()
    one.page.locator(".st-candidate[aria-disabled=false]").first.click()
    one.page.wait_for_selector(".st-own")
    one.pass_time(2000)
    assert place(one) == 0 and one.page.locator(".st-playing").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone_and_is_accessible(visit, scheme: str):
    one = opened(visit(width=390, color_scheme=scheme))
    one.page.locator(".st-candidate[aria-disabled=false]").first.click()
    one.page.wait_for_selector(".st-own")
    one.page.wait_for_function("window.seen.length >= 3")
    one.page.locator("[data-st=play]").click()
    assert one.sideways() <= 0
    boxes = one.page.locator("#steps button:visible, #steps input").all()
    assert len(boxes) >= 10
    for box in boxes:
        size = box.bounding_box()
        assert size and size["height"] >= 40 and size["width"] >= 40, box.inner_html()
    for width in (390, 1280):
        one.page.set_viewport_size({"width": width, "height": 900})
        assert one.hindrances("#steps", minor=True) == []
        one.picture(f"stepping-{scheme}-{width}")
