"""The Length tab in a browser: shipped weights and table of words, made-up reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import WAIT, Visit, only_english, serve
from length_reports import everyday_report, length_report

from seqviz.language import Language
from seqviz.ui.service import MODELS, Service

pytestmark = pytest.mark.browser

FIRST, OTHER = "snow", "food-directive"
STAGES = [stage.english for stage in Service().growth(FIRST).stages]
THREE = "The train was late again. We drank a coffee at the station. Then she found the keys."
SLIDER = "#length-slider input[type=range]"
_FILLED = """() => {
  const cards = [...document.querySelectorAll('#stage-cards .lane')];
  return cards.length && cards.every(card => card.ariaBusy === null);
}"""


@pytest.fixture(scope="module")
def address(models_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("models")
    reports = {"length": length_report(), "everyday": everyday_report()}
    for name in MODELS:
        if not (models_folder / name / "model.safetensors").is_file():
            pytest.skip(f"no weights of {name} in {models_folder}")
        (folder / name).symlink_to(models_folder / name)
        training = json.loads((folder / name / "training.json").read_text(encoding="utf-8"))
        for report in reports.values():
            report["models"][name]["weights_sha256"] = training.get("weights_sha256")
    (folder / "report").mkdir()
    for name, report in reports.items():
        (folder / "report" / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
    (folder / "lexicon.json").symlink_to(models_folder / "lexicon.json")
    with serve(tmp_path_factory.mktemp("elsewhere"), folder) as found:
        yield found


def opened(one: Visit) -> Visit:
    """On the Length tab, all stages translated."""
    one.lanes()
    one.tab(1)
    one.drawn("length")
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    return one


def wait_for(one: Visit, text: str) -> None:
    """Until this English, and the marker at its number of words, is what one sees."""
    one.page.wait_for_function(
        """text => [...document.querySelectorAll('#stage-cards .lane:first-child .english')]
             .filter(p => p.checkVisibility({ visibilityProperty: true }))
             .map(p => p.innerText).join('|') === text""",
        arg=text,
        timeout=WAIT,
    )
    shows(one, text)


def shows(one: Visit, text: str) -> None:
    """This English, and the marker at its number of words, is what one sees now."""
    assert (
        one.page.evaluate(
            """() => [...document.querySelectorAll('#stage-cards .lane:first-child .english')]
             .filter(p => p.checkVisibility({ visibilityProperty: true }))
             .map(p => p.innerText).join('|')"""
        )
        == text
    )
    count = len(text.split())
    assert one.page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--words').trim()"
    ) == str(count)
    bold = one.page.eval_on_selector_all(
        "#stops span",
        "all => all.filter(e => getComputedStyle(e).fontWeight === '700').map(e => e.innerText)",
    )
    assert bold == [str(count)]


def choose(one: Visit, name: str) -> None:
    one.page.locator("#passage input").click()
    one.page.get_by_role("option", name=name, exact=True).click()


def marker(one: Visit) -> float:
    """Where the marker of the measured curve stands, in words by the ticks of its axis."""
    one.still()
    return one.page.evaluate(
        """() => {
          const figure = [...document.querySelectorAll('#measured figure')].find(f => f.checkVisibility());
          const centre = element => { const b = element.getBoundingClientRect(); return b.x + b.width / 2; };
          const tick = text => centre([...figure.querySelectorAll('text')].filter(t => t.textContent === text
            && t.getAttribute('text-anchor') === 'middle')[0]);
          const at = centre(figure.querySelector('.marker'));
          return 100 * (at - tick('0')) / (tick('100') - tick('0'));
        }"""
    )


def test_the_first_stage_seen_is_the_slider_s(visit):
    one = opened(visit())
    value = int(one.page.locator(SLIDER).input_value())
    assert value > 1
    wait_for(one, STAGES[value - 1])
    one.quiet()
    shows(one, STAGES[value - 1])


def test_a_drag_shows_the_last_position_and_asks_nothing(visit):
    one = opened(visit())
    slider = one.page.locator(SLIDER)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    one.quiet()
    one.asked.clear()
    for left, right, last in ((0, 1, STAGES[-1]), (1, 0, STAGES[0])):
        ends = [box["x"] + 3 + (box["width"] - 6) * end for end in (left, right)]
        one.page.mouse.move(ends[0], middle)
        one.page.mouse.down()
        for step in range(41):
            one.page.mouse.move(ends[0] + (ends[1] - ends[0]) * step / 40, middle)
        one.page.mouse.up()
        wait_for(one, last)
        assert marker(one) == pytest.approx(len(last.split()), abs=0.7)
        one.quiet()  # nothing older may come after
        shows(one, last)
        shown = one.page.locator("#stage-cards .lane")
        assert shown.evaluate_all("lanes => lanes.map(lane => lane.dataset.model)") == list(MODELS)
    assert one.asked == []


def test_a_step_is_there_in_the_next_picture_and_asks_nothing(visit):
    one = opened(visit())
    one.quiet()
    one.asked.clear()
    shown = one.page.evaluate(
        """async selector => {
          const slider = document.querySelector(selector);
          const seen = [];
          for (const value of [8, 1, 7, 2, 6, 3]) {
            slider.value = value;
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
            const shown = [...document.querySelectorAll('#stage-cards .lane:first-child .held > [data-stage]')]
              .filter(e => e.checkVisibility({ visibilityProperty: true }));
            seen.push(shown.map(e => e.dataset.stage).join());
          }
          return seen;
        }""",
        SLIDER,
    )
    assert shown == ["8", "1", "7", "2", "6", "3"]
    one.quiet()
    assert one.asked == []


def test_the_keyboard_moves_the_slider(visit):
    one = opened(visit())
    slider = one.page.locator(SLIDER)
    for key, stage in (("End", 7), ("ArrowLeft", 6), ("Home", 0), ("ArrowRight", 1)):
        slider.press(key)
        wait_for(one, STAGES[stage])
    assert slider.get_attribute("aria-valuetext") == f"{len(STAGES[1].split())} words"


def test_each_lane_says_what_it_forgot(visit):
    one = opened(visit())
    one.page.locator(SLIDER).press("End")
    wait_for(one, STAGES[-1])
    for model in MODELS:
        lane = one.page.locator(f"#stage-cards .lane[data-model={model}]")
        kept, judged = map(int, re.search(r"(\d+) / (\d+)", lane.inner_text()).groups())
        struck, pale = (
            lane.locator(f".english {kind}:visible").count() for kind in ("s", ".never")
        )
        assert kept + struck + pale == judged
        assert (struck > 0) == (model == "lstm") and (pale > kept) == (model == "rnn")
        told = re.search(r"(\d+) forgotten", lane.inner_text())
        assert (int(told.group(1)) if told else 0) == struck
    assert "Struck out" in one.page.locator("#stage-cards .legend").inner_text()


def test_grow_walks_and_pauses(visit):
    one = opened(visit())
    grow, pause = one.page.locator("#grow"), one.page.locator("#pause")
    assert grow.is_visible() and not pause.is_visible()
    one.pass_time(0)
    grow.click()
    wait_for(one, STAGES[0])
    assert pause.is_visible() and not grow.is_visible() and "❚❚" in pause.inner_text()
    assert one.page.evaluate("document.activeElement.id") == "pause"
    one.pass_time(2 * 1430)  # ten seconds for seven steps
    wait_for(one, STAGES[2])
    pause.click()
    assert grow.is_visible() and not pause.is_visible()
    one.pass_time(5000)
    wait_for(one, STAGES[2])
    grow.click()  # goes on
    one.pass_time(7500)
    wait_for(one, STAGES[7])
    assert grow.is_visible()
    grow.click()  # from the beginning
    one.pass_time(1430)
    wait_for(one, STAGES[1])
    one.page.locator(SLIDER).press("ArrowRight")  # a hand on the slider stops it
    assert grow.is_visible()
    one.pass_time(5000)
    wait_for(one, STAGES[2])


def test_switches_and_another_passage(visit):
    one = opened(visit())
    shown = one.page.locator("#measured figure:visible")
    assert shown.count() == 1 and "BLEU of the same text" in shown.inner_text()
    one.page.get_by_label(Language.of("en").template("length.natural")).check()
    assert shown.count() == 1 and "own length" in shown.inner_text()
    one.page.get_by_label(Language.of("en").template("length.same-content")).check()
    one.page.get_by_label("chrF", exact=True).check()
    assert shown.count() == 1 and "chrF of the same text" in shown.inner_text()
    told = one.page.locator("#measured .told:visible")
    assert told.count() == 2 and "412 runs" in told.first.inner_text()
    assert "chrF" in told.last.inner_text()
    assert "sentence chrF" in one.page.locator("#path figure:visible").inner_text()

    choose(one, Service().passage(OTHER)["title"]["en"])
    other = Service().passage(OTHER)["stages"]
    wait_for(one, other[2]["english"])
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    # What was chosen stays when the language changes.
    one.page.get_by_label("中文").check()
    one.page.wait_for_function(
        "text => document.querySelector('#passage input').value === text",
        arg=Service().passage(OTHER)["title"]["zh"],
        timeout=WAIT,
    )
    wait_for(one, other[2]["english"])
    assert "同样的文字" in shown.inner_text() and "chrF" in shown.inner_text()


def test_own_text(visit):
    one = opened(visit())
    box, show = one.page.locator("#source textarea"), one.page.locator("#translate")
    message = one.page.locator("#length-message")
    slider = one.page.locator(SLIDER)
    choose(one, Language.of("en").template("length.own"))
    message.locator(".hint").wait_for(timeout=WAIT)
    assert "100 words" in message.inner_text()

    box.fill(THREE)
    show.click()
    one.page.wait_for_function(
        "document.querySelector('#stops .stops')?.dataset.counts === '5 12 17'", timeout=WAIT
    )
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    assert slider.get_attribute("max") == "3"
    wait_for(one, THREE)
    lane = one.page.locator("#stage-cards .lane").first.inner_text()
    assert "BLEU" not in lane and "chrF" not in lane

    # Markup is text.
    harm = "<img src=x onerror='window.harm=1'><script>window.harm=1</script> ${7*7} &amp; x"
    box.fill(f"{harm} a<b. The train was late.")
    show.click()
    one.page.wait_for_function(
        "document.querySelector('#stage-cards')?.innerText.includes('${7*7} &amp; x a<b.')",
        timeout=WAIT,
    )
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    assert one.page.evaluate("window.harm") is None
    assert one.page.locator("#stage-cards img, #stage-cards script").count() == 0

    for text, said in (("word", "too short"), ("no end here " * 7, "by words")):
        box.fill(text)
        show.click()
        wait_for(one, text.strip())
        one.page.wait_for_function(_FILLED, timeout=WAIT)
        assert said in message.inner_text() and slider.is_disabled() == (said == "too short")
    slider.press("Home")
    wait_for(one, "no end here")
    box.fill("word " * 101)
    show.click()
    message.locator(".problem").wait_for(timeout=WAIT)
    assert "101 words" in message.inner_text()
    assert one.page.locator("#stage-cards .lane").count() == 0

    # Another text takes its place; the typed one comes back when it is asked for.
    box.fill(THREE)
    show.click()
    one.page.wait_for_function(
        "document.querySelector('#stops .stops')?.dataset.counts === '5 12 17'", timeout=WAIT
    )
    choose(one, Service().passage("noisy-dog")["title"]["en"])
    one.page.wait_for_function(
        "document.querySelector('#stops .stops')?.dataset.counts.split(' ').length === 9",
        timeout=WAIT,
    )
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    assert slider.get_attribute("max") == "9" and slider.is_enabled()
    assert box.input_value() == ""
    choose(one, Language.of("en").template("length.own"))
    wait_for(one, THREE)
    assert box.input_value() == THREE
    # An empty box stands for the text that opens the page.
    box.fill("")
    show.click()
    wait_for(one, STAGES[2])


def test_a_pick_asks_once(visit):
    one = opened(visit())
    one.quiet()  # the other tabs draw, too, when the page opens
    one.asked.clear()

    def asks(total: int) -> None:
        """Until so many questions in all were asked and answered; one more would show here or later."""
        while sum("queue/join" in url for url in one.asked) < total:
            one.page.wait_for_timeout(20)  # lets events in
        one.quiet()
        one.page.wait_for_function(_FILLED, timeout=WAIT)
        assert sum("queue/join" in url for url in one.asked) == total

    choose(one, Service().passage("noisy-dog")["title"]["en"])
    asks(1)
    one.page.locator("#passage input").focus()
    one.page.keyboard.press("Tab")
    asks(1)  # passed by, nothing picked
    choose(one, Service().passage("noisy-dog")["title"]["en"])
    asks(1)
    one.page.locator("#passage input").focus()
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Enter")
    asks(2)
    other = one.page.locator("#passage input").input_value()
    choose(one, Service().passage("noisy-dog")["title"]["en"])
    asks(3)
    choose(one, other)
    asks(4)


def test_a_text_that_was_typed_and_not_sent_is_the_text_of_a_tab_that_is_opened(visit):
    one = visit()
    one.lanes()
    one.page.locator("#source textarea").fill(THREE)
    one.page.locator("#longer").click()
    one.page.wait_for_function(
        "document.querySelector('#stops .stops')?.dataset.counts === '5 12 17'", timeout=WAIT
    )
    one.page.wait_for_function(_FILLED, timeout=WAIT)
    wait_for(one, THREE)
    assert one.page.locator("#passage input").input_value() == Language.of("en").template(
        "length.own"
    )


@pytest.mark.parametrize("language, scheme", [("en", "dark"), ("zh", "light")])
def test_on_a_phone(visit, language, scheme):
    one = visit(f"?lang={language}", width=390, color_scheme=scheme, has_touch=True)
    opened(one)
    one.page.locator(SLIDER).press("End")
    wait_for(one, STAGES[-1])
    assert one.sideways() <= 0
    # The slider stays in view while one reads on.
    one.page.evaluate("window.scrollBy(0, 500)")
    one.still()
    box = one.page.locator("#walk").bounding_box()
    assert -1 <= box["y"] <= 1 and box["height"] < 160 and box["width"] <= 390
    order = [one.page.locator(part).bounding_box()["y"] for part in ("#stage-cards", "#measured")]
    assert order == sorted(order)
    # A lane shows the newest words of the French; a tap shows all.
    lane = one.page.locator("#stage-cards .lane").nth(3)
    lane.scroll_into_view_if_needed()
    before = lane.bounding_box()["height"]
    lane.locator("h2").tap()
    assert lane.bounding_box()["height"] > before
    small = one.page.evaluate(
        """() => [...document.querySelectorAll('button, input[type=range], a, summary, fieldset label')]
          .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 39.5)
          .map(e => e.outerHTML.slice(0, 120))"""
    )
    assert small == []
    word = one.page.locator("#stage-cards .lane.open .target:visible [title]").last
    word.scroll_into_view_if_needed()
    one.page.evaluate("window.scrollBy(0, -300)")
    word.tap()
    assert word.get_attribute("title") in one.page.locator(".tip").inner_text()
    for key in ("Home", "End"):
        one.page.locator(SLIDER).press(key)
    assert one.page.locator(".tip").count() == 0  # it spoke of another stage
    one.picture(f"length-marked-{language}-{scheme}-390")


@pytest.mark.parametrize("language, scheme", [("en", "light"), ("zh", "dark")])
def test_marks_and_reports_fit_and_are_accessible(visit, language, scheme):
    one = opened(visit(f"?lang={language}", color_scheme=scheme))
    one.page.locator(SLIDER).press("End")
    one.still()
    seen = one.page.locator("body").inner_text()
    assert not re.search(r"\{\w+\}|\b(page|card|note|length)[._]\w+", seen)
    if language == "zh":
        assert [text for text in only_english() if text in seen] == []
    for width in (390, 1200):
        one.page.set_viewport_size({"width": width, "height": 900})
        one.still()
        assert one.sideways() <= 0
        one.picture(f"length-marked-{language}-{scheme}-{width}")
        assert one.hindrances() == []
