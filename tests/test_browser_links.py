"""Links in a browser: an address restores a view, and the button copies one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from browsing import WAIT

from seqviz.language import Language
from seqviz.ui.service import Service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(shipped_page: str) -> str:
    return shipped_page


def opened(one) -> str:
    """The tab that is open, once it is the one that the link names."""
    return one.page.locator("#tabs [role=tab][aria-selected=true]").inner_text()


def until(one, script: str, **options) -> None:
    one.page.wait_for_function(script, timeout=WAIT, **options)


def copied(one) -> str:
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.locator("#copy-link").click()
    one.page.locator(".tip").wait_for(timeout=WAIT)
    return one.page.evaluate("navigator.clipboard.readText()")


def test_a_stage_of_a_passage(visit):
    passage = Service().passages()[3]
    link = urlencode({"lang": "zh", "tab": "length", "passage": passage["id"], "stage": 6})
    one = visit(f"?{link}")
    text = passage["stages"][5]["english"]
    until(one, "() => document.querySelector('#length-slider input[type=range]')?.value == 6")
    until(
        one,
        "text => [...document.querySelectorAll('#stage-cards .english')].some(english => "
        "english.checkVisibility({ visibilityProperty: true }) && "
        "english.innerText.replace(/\\s+/g, ' ').trim() == text)",
        arg=text,
    )
    assert opened(one) == Language.of("zh").template("tab.length")
    until(one, "() => !document.querySelector('#stage-cards [aria-busy]')")
    query = parse_qs(urlsplit(copied(one)).query)
    assert query == {"lang": ["zh"], "tab": ["length"], "passage": [passage["id"]], "stage": ["6"]}


def test_an_everyday_text_on_the_first_tab(visit):
    text = Service().everyday()[4]
    one = visit(f"?{urlencode({'passage': text['id']})}", reduced_motion="reduce")
    last = Service().growth(text["id"]).stages[-1].english
    until(
        one,
        "text => [...document.querySelectorAll('#story .english')].some(english => "
        "english.checkVisibility({ visibilityProperty: true }) && "
        "english.innerText.replace(/\\s+/g, ' ').trim() == text)",
        arg=last,
    )


def test_a_tab_is_drawn_when_it_is_opened_the_linked_one_first(visit):
    one = visit("?tab=attention")
    one.drawn("attention")
    assert one.page.locator("html").get_attribute("data-drawn") == "attention"
    one.quiet()
    one.asked.clear()
    one.tab(1)
    one.drawn("length")
    one.quiet()
    one.asked.clear()
    one.tab(2)
    one.tab(1)
    one.quiet()
    assert one.asked == []  # both show what they should
    one.page.locator("#length-slider input[type=range]").press("Home")
    one.page.locator("html:not([data-drawn~=attention])").wait_for(timeout=WAIT, state="attached")
    one.tab(2)
    one.drawn("attention")
    first = Service().growth(
        one.page.evaluate("new URLSearchParams(location.search).get('passage')")
    )
    words = one.page.locator("#attention-lines .ln-source bdi").all_inner_texts()
    assert words == first.stages[0].english.split()


def test_an_own_text_that_grows(visit):
    text = "The boat is green. It has two sails. We like it."
    one = visit(f"?{urlencode({'tab': 'length', 'passage': 'own', 'text': text, 'stage': 2})}")
    until(one, "() => document.querySelector('#length-slider input[type=range]')?.value == 2")
    until(one, "() => document.querySelectorAll('#stage-cards .english').length == 12")
    assert one.page.locator("#source textarea").input_value() == text


def test_a_map_of_a_sentence(visit):
    text = "We painted the old bridge & <b>two</b> boats."
    one = visit(f"?{urlencode({'tab': 'attention', 'text': text, 'model': 'transformer'})}")
    until(
        one,
        "() => document.querySelector('#attention-lines .ln-source')?.innerText.includes('painted')",
    )
    assert one.page.locator("#source textarea").input_value() == text
    assert one.page.locator("#attention-look input").is_checked()
    one.page.locator("#attention-more > button").click()
    assert (
        one.page.locator("#attention-model input:checked").get_attribute("value") == "transformer"
    )
    assert opened(one) == Language.of("en").template("tab.attention")
    one.page.locator("#copy-link").wait_for()
    query = parse_qs(urlsplit(copied(one)).query)
    assert query["text"] == [text] and query["model"] == ["transformer"]
    assert query["tab"] == ["attention"] and query["lang"] == ["en"]


def test_the_switch_and_a_head_stand_in_the_address(visit):
    def asked() -> dict[str, list[str]]:
        return parse_qs(urlsplit(one.page.url).query)

    one = visit("?tab=attention")
    one.drawn("attention")
    one.page.locator("#attention-look input").click()
    until(one, "() => new URLSearchParams(location.search).get('model') == 'lstm-attention'")
    assert asked()["stage"] == ["3"]  # as the page opens, though the slider is on no page yet
    until(one, "() => document.querySelector('.ln[data-on=true]')")
    one.quiet()
    view = {"model": "transformer", "layer": 2, "head": 3, "reading": "reading"}
    one = visit(f"?{urlencode({'tab': 'attention', 'text': 'The boat is green.', **view})}")
    until(
        one,
        "said => document.querySelector('.ln-small.ln-on')?.textContent.includes(said)",
        arg="layer 2 of 3 · head 3 of 4",
    )
    one.page.locator("#attention-more > button").click()
    one.page.locator("#attention-map .sv-map").wait_for()
    for name, value in (("layer", "1"), ("head", "2"), ("reading", "reading")):
        chosen = one.page.locator(f"#attention-{name} input:checked")
        assert chosen.get_attribute("value") == value
    one.page.locator("#attention-map .sv-heads button[data-layer='0'][data-head='1']").click()
    until(one, "() => new URLSearchParams(location.search).get('layer') == '1'")
    until(one, "() => new URLSearchParams(location.search).get('head') == '2'")
    one.quiet()
    assert {key: asked()[key] for key in view} == {
        "model": ["transformer"],
        "layer": ["1"],
        "head": ["2"],
        "reading": ["reading"],
    }


def test_the_lab_with_a_sentence(visit):
    text = "Nobody painted the bridge."
    one = visit(f"?{urlencode({'tab': 'lab', 'text': text, 'card': 'gradient'})}")
    until(one, "() => document.querySelector('#lab-game .passed')?.innerText.includes('Nobody')")
    assert one.page.locator("#lab-experiments .experiment").count() == 6
    assert one.page.locator("#lab-game").is_visible()
    query = parse_qs(urlsplit(copied(one)).query)
    assert query["card"] == ["gradient"] and query["tab"] == ["lab"]
    assert opened(one) == Language.of("en").template("tab.lab")


def test_what_is_unknown_in_an_address_is_ignored(visit):
    link = {"tab": "../..", "model": "gpt", "passage": "<script>", "stage": "1e9", "text": " "}
    one = visit(f"?{urlencode(link)}")
    one.lanes()
    assert opened(one) == Language.of("en").template("tab.translate")
    assert one.page.locator("#source textarea").input_value() == ""
    one.page.locator("#source textarea").fill("word " * 500)
    link = copied(one)
    assert "text" not in parse_qs(urlsplit(link).query)
    assert one.page.locator(".tip").inner_text() == Language.of("en").template("link.long")


def test_one_story_each_tab_leads_to_the_next(visit):
    """A visitor's own sentence goes along from Translate to Length, to Attention, to the Lab."""
    text = "Nobody painted the bridge. We like it."
    one = visit()
    one.lanes()
    one.translate(text)
    one.page.locator("#longer").click()
    until(one, "() => document.querySelectorAll('#stage-cards .english').length == 8")
    until(one, "() => !document.querySelector('#stage-cards [aria-busy]')")
    one.page.locator("#length-onward").click()
    until(
        one,
        "() => document.querySelector('#attention-lines .ln-source')?.innerText.includes('painted')",
    )
    assert opened(one) == Language.of("en").template("tab.attention")
    one.page.locator("#attention-onward").click()
    one.drawn("lab")
    one.page.locator("[data-opens=gradient]").click()
    game = one.page.locator("#lab-game .passed").first
    assert game.inner_text().split() == text.split()
    assert opened(one) == Language.of("en").template("tab.lab")
    # What is looked into goes as far as the slider.
    one.tab(1)
    one.page.locator("#length-slider input[type=range]").press("Home")
    one.tab(3)
    until(
        one,
        "() => document.querySelector('#lab-game .passed')?.innerText == 'Nobody painted the bridge.'",
    )


def test_back_and_forward_walk_through_what_was_looked_at(visit):
    one = visit(reduced_motion="reduce")
    one.lanes()
    one.quiet()

    def asked() -> dict[str, list[str]]:
        return parse_qs(urlsplit(one.page.url).query)

    one.translate("The boat is green.")
    until(one, "() => new URLSearchParams(location.search).get('text') == 'The boat is green.'")
    one.tab(3)
    until(one, "() => new URLSearchParams(location.search).get('tab') == 'lab'")
    assert opened(one) == Language.of("en").template("tab.lab")
    one.quiet()
    one.page.go_back()
    name = Language.of("en").template("tab.translate")
    until(
        one,
        "name => document.querySelector('#tabs [role=tab][aria-selected=true]')?.innerText == name",
        arg=name,
    )
    until(one, "() => document.querySelector('#source textarea')?.value == 'The boat is green.'")
    assert asked()["text"] == ["The boat is green."]
    one.quiet()
    one.page.go_back()  # to the opening
    until(one, "() => document.querySelector('#source textarea')?.value == ''")
    one.page.locator("#story").wait_for(timeout=WAIT)
    one.quiet()
    one.page.go_forward()
    until(one, "() => document.querySelector('#source textarea')?.value == 'The boat is green.'")
    until(one, "() => !document.querySelector('#story') && document.querySelector('#cards .lane')")
    one.quiet()
    one.page.reload()
    until(one, "() => document.querySelector('#source textarea')?.value == 'The boat is green.'")
    # A page that is left tells of streams that end with it.
    left = ("AbortError", "Connection errored out")
    one.faults = [fault for fault in one.faults if not any(sign in fault for sign in left)]


def test_a_picture_to_send_on(visit):
    one = visit("?lang=zh")
    one.lanes()
    with one.page.expect_download(timeout=WAIT) as download:
        one.page.locator("#send").click()
    assert download.value.suggested_filename == "seqviz.png"
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
