"""The page in a browser, with the shipped weights, started as a person starts it.

Set ``SEQVIZ_SCREENSHOTS`` to keep pictures of every tab in ``screenshots/`` (not in git).
"""

from __future__ import annotations

import re

import pytest
from browsing import WAIT, only_english

from seqviz.language import Language
from seqviz.ui import story
from seqviz.ui.service import MODELS, Service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(shipped_page: str) -> str:
    return shipped_page


def test_the_first_view_shows_results_without_a_click(visit):
    one = visit()
    one.page.wait_for_selector("#cards .lane")
    order = one.page.eval_on_selector_all(
        "#cards .lane", "lanes => lanes.map(lane => lane.dataset.model)"
    )
    assert tuple(order) == MODELS
    assert one.page.locator("#story").count() == 1
    assert one.page.locator("#source textarea").input_value() == ""
    one.lanes()
    assert one.page.locator(".problem").count() == 0


def seen_of(one) -> str:
    """The English of the first lane that one sees."""
    return one.page.evaluate(
        """() => [...document.querySelectorAll('#story .lane:first-child .english')]
             .filter(p => p.checkVisibility({ visibilityProperty: true })).map(p => p.innerText).join('|')"""
    )


def until_seen(one, text: str) -> None:
    one.page.wait_for_function(
        """text => [...document.querySelectorAll('#story .lane:first-child .english')]
             .filter(p => p.checkVisibility({ visibilityProperty: true })).map(p => p.innerText).join('|') === text""",
        arg=text,
        timeout=WAIT,
    )


def test_the_text_grows_by_itself_once_and_says_what_happened(visit):
    one = visit()
    stages = [stage.english for stage in story.text_of(Service()).stages]
    ending = one.page.locator("#story .ending")
    until_seen(one, stages[-1])
    assert ending.is_visible() and one.page.locator("[data-story=play]").is_visible()
    one.lanes()
    one.quiet()
    one.pass_time(0)
    assert seen_of(one) == stages[-1]
    one.page.locator("[data-story=play]").click()
    until_seen(one, stages[0])
    assert not ending.is_visible() and one.page.locator("[data-story=pause]").is_visible()
    one.pass_time(2000)
    until_seen(one, stages[1])
    one.pass_time(1400)
    until_seen(one, stages[2])
    one.page.locator("[data-story=pause]").click()
    one.pass_time(5000)
    assert seen_of(one) == stages[2]
    # A hand in the box ends it.
    one.page.locator("[data-story=play]").click()
    one.page.locator("#source textarea").fill("M")
    until_seen(one, stages[-1])
    one.pass_time(5000)
    assert seen_of(one) == stages[-1]


def test_nothing_moves_where_motion_is_not_welcome(visit):
    one = visit(reduced_motion="reduce")
    until_seen(one, story.text_of(Service()).stages[-1].english)
    assert one.page.locator("[data-story=play]").is_visible()


@pytest.mark.parametrize("width, height", [(390, 844), (1280, 800)])
def test_all_four_lanes_are_in_view_while_the_text_grows(visit, width, height):
    one = visit(width=width, height=height, reduced_motion="reduce")
    one.lanes()
    one.still()
    last = one.page.locator("#story .lane").nth(3).bounding_box()
    assert last["y"] + last["height"] <= height


def test_the_opening_leads_on(visit):
    one = visit(reduced_motion="reduce")
    one.lanes()
    one.page.locator("[data-go=own]").click()
    assert one.page.evaluate("document.activeElement.closest('#source') !== null")
    one.page.locator("[data-go=length]").click()
    one.page.locator("#stage-cards .lane").nth(3).wait_for(timeout=WAIT)
    one.tab(0)
    one.page.locator("[data-go=attention]").click()
    third = story.text_of(Service()).stages[2].english
    one.page.wait_for_function(
        "text => [...document.querySelectorAll('#attention-lines .ln-source bdi')].map(word => word.textContent)"
        ".join(' ') == text",
        arg=third,
        timeout=WAIT,
    )
    assert one.page.locator("#tabs [role=tab][aria-selected=true]").inner_text() == "Attention"


def test_translates_what_is_typed(visit):
    one = visit()
    one.lanes()
    before = one.page.locator("#cards").inner_text()
    one.translate("The president of the committee has read the report.")
    assert one.page.locator("#cards").inner_text() != before
    answers = one.page.eval_on_selector_all(
        "#cards .target", "found => found.map(one => one.innerText)"
    )
    assert len(answers) == 4 and any(answers)
    one.page.locator("#cards details summary").click()
    assert one.page.locator("#cards .spent li:visible").count() == 4

    # Markup is text.
    one.translate(
        "<script>window.harm = 1</script> <img src=x onerror='window.harm = 1'> ${7*7} costs 5."
    )
    assert one.page.evaluate("window.harm") is None
    assert one.page.locator("#cards script, #cards img").count() == 0

    one.page.locator("#source textarea").fill("word " * 1001)
    one.page.locator("#translate").click()
    one.page.wait_for_selector("#message .problem", timeout=WAIT)
    assert "5,005" in one.page.locator("#message").inner_text()


def test_chinese_is_answered_in_chinese(visit):
    one = visit()
    one.lanes()
    one.page.locator("#source textarea").fill("我弟弟不想出门，因为外面太冷了。")
    one.page.locator("#translate").click()
    hint = one.page.locator("#message .hint")
    hint.wait_for(timeout=WAIT)
    assert one.page.locator("#cards .lane").count() == 0
    assert Language.of("zh").template("translate.chinese") in hint.inner_text()
    hint.locator("button").nth(1).click()
    example = Service().examples()[1]["english"]
    one.page.wait_for_function(
        "text => document.querySelector('#source textarea').value == text",
        arg=example,
        timeout=WAIT,
    )
    hint.wait_for(state="detached", timeout=WAIT)
    one.lanes()


def test_the_language_switches_everything(visit):
    one = visit()
    one.lanes()
    one.page.get_by_label("中文").check()
    one.page.wait_for_function("document.documentElement.lang == 'zh-CN'", timeout=WAIT)
    one.page.get_by_role("tab", name=Language.of("zh").template("tab.length")).wait_for(
        timeout=WAIT
    )
    one.page.wait_for_function(
        "text => document.querySelector('#cards .how')?.innerText == text",
        arg=Language.of("zh").template("how.rnn"),
        timeout=WAIT,
    )
    one.lanes()
    assert "lang=zh" in one.page.url
    assert one.page.title() == Language.of("zh").template("page.title")
    assert story.text_of(Service()).stages[0].chinese in one.page.locator("#story").inner_text()
    # No interface text of the English page is left in sight.
    seen = one.page.locator("body").inner_text()
    assert [text for text in only_english() if text in seen] == []
    one.page.get_by_label("English").check()
    one.page.get_by_role("tab", name=Language.of("en").template("tab.length")).wait_for(
        timeout=WAIT
    )
    one.page.wait_for_function("document.documentElement.lang == 'en'", timeout=WAIT)


def test_first_language_comes_from_the_address_or_the_browser(visit):
    for path, locale, name in (
        ("", "zh-CN", "zh"),
        ("?lang=en", "zh-CN", "en"),
        ("?lang=zh", "en-US", "zh"),
    ):
        one = visit(path, locale=locale)
        one.page.get_by_role("tab", name=Language.of(name).template("tab.length")).wait_for(
            timeout=WAIT
        )
        one.page.wait_for_function(
            "text => document.querySelector('#cards .how')?.innerText == text",
            arg=Language.of(name).template("how.rnn"),
            timeout=WAIT,
        )


@pytest.mark.parametrize("language, scheme", [("en", "light"), ("zh", "dark")])
def test_every_tab_fits_and_is_accessible(visit, language, scheme):
    one = visit(f"?lang={language}", color_scheme=scheme)
    one.lanes()
    assert one.page.evaluate("document.body.classList.contains('dark')") == (scheme == "dark")
    for number, name in enumerate(("translate", "length", "attention", "lab")):
        one.tab(number)
        if name == "length":
            one.page.wait_for_function(
                "!document.querySelector('#stage-cards [aria-busy]') && document.querySelector('#stage-cards .card')",
                timeout=WAIT,
            )
        if name == "lab":
            one.drawn("lab")
            one.page.locator(".turns").nth(1).click()
            one.page.locator("[data-opens=gradient]").click()
            one.page.locator("#lab-game .passed").nth(3).wait_for(timeout=WAIT)
            one.page.locator("#lab-body-gradient .plot svg").wait_for(timeout=WAIT)
        seen = one.page.locator("body").inner_text()
        keys = "page|card|note|translate|length|attention|lab|link"
        assert not re.search(rf"\{{\w+\}}|\b({keys})_\w+", seen)
        for width in (390, 1280):
            one.page.set_viewport_size({"width": width, "height": 900})
            one.still()
            assert one.sideways() <= 0, (name, width)
            one.picture(f"{name}-{language}-{scheme}-{width}")
        assert one.hindrances() == [], name


def test_the_lab_passes_a_sentence_on_and_measures_this_machine(visit):
    one = visit("?lang=zh")
    one.lanes()
    one.tab(3)
    one.drawn("lab")
    one.page.locator("[data-opens=gradient]").click()
    one.page.locator("#lab-game .passed").nth(3).wait_for(timeout=WAIT)
    one.page.locator("#source textarea").fill("Nobody <b>painted</b> it.")
    one.page.locator("#translate").click()
    one.page.wait_for_function(
        "document.querySelector('#lab-game .passed')?.innerText == 'Nobody <b>painted</b> it.'",
        timeout=WAIT,
    )
    one.page.locator("[data-opens=cost]").click()
    one.page.locator("#live-run").click()
    one.page.locator("#live-result .plot svg").wait_for(timeout=WAIT)
    assert "LSTM" in one.page.locator("#live-result .answer").inner_text()
    assert one.sideways() <= 0
