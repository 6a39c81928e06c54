"""The picture of the Attention tab in a browser: the switch, one word's lines, keys, phones, motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from browsing import WAIT, only_english

from seqviz.language import Language
from seqviz.translating.loading import load
from seqviz.translating.translator import Translator
from seqviz.ui import lines

pytestmark = pytest.mark.browser

SENTENCE = "Nobody painted the old bridge yesterday."


@pytest.fixture(scope="module")
def address(shipped_page: str) -> str:
    return shipped_page


@pytest.fixture(scope="module")
def translators() -> dict[str, Translator]:
    return {name: load(name) for name in ("lstm", "lstm-attention")}


@pytest.fixture(scope="module")
def weights(translators) -> np.ndarray:
    """Of `SENTENCE`, (T, S)."""
    translation = translators["lstm-attention"].translate(SENTENCE)
    return translation.attention("cross").words().head()


def opened(visit: Any, language: str = "en", more: str = "", **options: Any) -> Any:
    one = visit(f"?tab=attention&lang={language}&text={SENTENCE}{more}", **options)
    one.drawn("attention")
    one.page.locator("#attention-lines .ln[data-on]").wait_for(timeout=WAIT)
    one.quiet()
    return one


def turn(one: Any) -> None:
    """Press the switch, and wait until nothing moves any more."""
    on = one.page.locator("#attention-look input").is_checked()
    one.page.locator("#attention-look input").click()
    one.page.locator(f".ln[data-on={str(not on).lower()}]:not([data-moving])").wait_for(
        timeout=WAIT
    )
    one.quiet()


def row(one: Any, side: str) -> list[str]:
    """Words of a row that are seen."""
    return one.page.locator(f".ln-{side} .ln-word:visible bdi").all_inner_texts()


def paths(one: Any, kind: str) -> list[dict[str, float]]:
    """Lines of a kind that are seen, with how they look."""
    return one.page.eval_on_selector_all(
        f".ln-lines .{kind}",
        """found => found.filter(e => e.style.display != 'none' && getComputedStyle(e).opacity > 0.5).map(e => ({
          source: Number(e.dataset.source ?? -1), target: Number(e.dataset.target ?? -1),
          width: Number(e.style.strokeWidth), opacity: Number(e.style.strokeOpacity) }))""",
    )


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_switch_opens_the_strip(visit, translators, weights, language: str, width: int):
    one = opened(visit, language, width=width)
    say = Language.of(language).within("attention.lines").say
    assert one.page.get_by_label(say("look")).is_checked() is False
    fixed, looking = (translators[name].translate(SENTENCE) for name in translators)
    size = translators["lstm"].vector(fixed).size
    told = one.page.locator(".ln-tell:visible").inner_text()
    assert told == say("tell_fixed", model="LSTM", size=size)
    assert row(one, "source") == SENTENCE.split()
    assert row(one, "target") == list(fixed.target_words)
    assert len(paths(one, "ln-in")) == len(fixed.source_words)
    assert len(paths(one, "ln-out")) == len(fixed.target_words)
    assert paths(one, "ln-pair") == [] and one.page.locator(".ln-strip img:visible").count() == 1
    turn(one)
    assert row(one, "target") == list(looking.target_words)
    name = Language.of(language).say("model.lstm-attention")
    assert one.page.locator(".ln-tell:visible").inner_text() == say("tell_looking", model=name)
    assert paths(one, "ln-in") == paths(one, "ln-out") == []
    drawn = {(path["target"], path["source"]): path for path in paths(one, "ln-pair")}
    wanted = [tuple(place) for place in np.argwhere(weights >= lines.LEAST).tolist()]
    assert sorted(drawn) == sorted(wanted)
    order = sorted(drawn, key=lambda place: weights[place])
    for look in ("width", "opacity"):
        values = [drawn[place][look] for place in order]
        assert values == sorted(values) and values[-1] > 3 * values[0] > 0
    one.picture(f"lines-{language}-{width}")
    # Back again, and the page is never wider than the window.
    turn(one)
    assert row(one, "target") == list(fixed.target_words) and paths(one, "ln-pair") == []
    assert one.sideways() <= 0
    if language == "zh":
        seen = one.page.locator("body").inner_text()
        assert [text for text in only_english() if text in seen] == []


def test_lines_end_at_their_words(visit):
    for width in (390, 1280):
        one = opened(visit, more="&model=lstm-attention", width=width)
        apart = one.page.evaluate(
            """() => {
              const point = (path, at) => {
                const p = path.getPointAtLength(at * path.getTotalLength());
                return new DOMPoint(p.x, p.y).matrixTransform(path.getScreenCTM());
              };
              const away = (p, box) => Math.hypot(
                Math.max(box.left - p.x, 0, p.x - box.right), Math.max(box.top - p.y, 0, p.y - box.bottom));
              const words = (side) => [...document.querySelectorAll(side)].map(e => e.getBoundingClientRect());
              const [source, target] = [words('.ln-source .ln-word'), words('.ln-target.ln-on .ln-word')];
              return [...document.querySelectorAll('.ln-pair')].flatMap(path => [
                away(point(path, 0), source[path.dataset.source]), away(point(path, 1), target[path.dataset.target])]);
            }"""
        )
        assert len(apart) > 10 and max(apart) < 2


def test_between_the_strip_and_the_lines_there_is_a_way(visit):
    one = opened(visit)
    one.page.clock.install()
    one.page.clock.pause_at(one.page.evaluate("Date.now()") + 1000)
    one.page.locator("#attention-look input").click()
    seen = []
    for _ in range(12):
        one.page.clock.run_for(120)
        path = one.page.locator(".ln-pair").first
        seen.append((path.get_attribute("d"), len(paths(one, "ln-in"))))
    shapes = list(dict.fromkeys(shape for shape, _ in seen if shape))
    assert len(shapes) > 2
    assert seen[0][1] > 0 and seen[-1][1] == 0
    one.page.clock.resume()


def test_nothing_moves_where_that_is_asked_for(visit):
    one = opened(visit, reduced_motion="reduce")
    one.page.evaluate(
        """() => {
          window.moves = 0;
          new MutationObserver(() => window.moves++).observe(
            document.querySelector('.ln'), { attributes: true, attributeFilter: ['data-moving'] });
        }"""
    )
    one.page.locator("#attention-look input").click()
    one.page.locator(".ln[data-on=true]").wait_for(timeout=WAIT)
    one.quiet()
    assert one.page.evaluate("window.moves") == 0
    assert paths(one, "ln-pair") and not paths(one, "ln-in")
    gliding = one.page.evaluate(
        "[...document.querySelectorAll('.ln *')].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0).length"
    )
    assert gliding == 0


def test_a_word_shows_its_lines_alone_and_the_two_strongest_in_words(visit, weights, translators):
    one = opened(visit, more="&model=lstm-attention")
    target = translators["lstm-attention"].translate(SENTENCE).target_words
    source = SENTENCE.split()
    readout = one.page.locator(".ln-readout")
    everything = len(paths(one, "ln-pair"))

    def told(key: str, word: str, words: Any, row: np.ndarray) -> str:
        best, second = (f"{words[i].rstrip('.')} {row[i]:.2f}" for i in lines.strongest(row))
        say = Language.of("en").within("attention.lines")
        return say.say(key, word=word.rstrip("."), most=f"{best}{say.say('and')}{second}")

    one.page.locator(".ln-target.ln-on .ln-word").nth(1).hover()
    assert readout.inner_text() == told("target", target[1], source, weights[1])
    one.still()
    assert {path["target"] for path in paths(one, "ln-pair")} == {1}
    one.page.locator(".ln-source .ln-word").nth(4).hover()
    assert readout.inner_text() == told("source", source[4], target, weights[:, 4])
    one.still()
    assert {path["source"] for path in paths(one, "ln-pair")} == {4}
    one.page.mouse.move(5, 5)
    one.still()
    assert len(paths(one, "ln-pair")) == everything
    assert readout.inner_text() == Language.of("en").say("attention.lines.point")
    # A tap holds it, a second one lets it go.
    word = one.page.locator(".ln-source .ln-word").nth(1)
    word.click()
    one.page.mouse.move(5, 5)
    assert readout.inner_text() == told("source", source[1], target, weights[:, 1])
    word.click()
    one.page.mouse.move(5, 5)
    assert readout.inner_text() == Language.of("en").say("attention.lines.point")


def test_arrow_keys_walk_through_the_words(visit, weights):
    one = opened(visit, more="&model=lstm-attention")
    one.page.locator("#attention-look input").focus()
    one.page.keyboard.press("Tab")

    def focused() -> tuple[str, int]:
        return tuple(
            one.page.evaluate(
                "[document.activeElement.dataset.side, Number(document.activeElement.dataset.place)]"
            )
        )

    assert focused() == ("source", 0)
    for key, expected in [
        ("ArrowRight", ("source", 1)),
        ("End", ("source", 5)),
        ("ArrowRight", ("source", 5)),
        ("Home", ("source", 0)),
        ("ArrowRight", ("source", 1)),
        ("ArrowDown", ("target", int(weights[:, 1].argmax()))),
    ]:
        one.page.keyboard.press(key)
        assert focused() == expected
        assert one.page.locator(".ln-chosen").count() == 1
    one.page.keyboard.press("ArrowUp")
    assert focused() == ("source", int(weights[weights[:, 1].argmax()].argmax()))
    one.page.keyboard.press("Escape")
    assert one.page.locator(".ln-chosen").count() == 0
    # The switch by its key: the words of the other row are reached.
    one.page.locator("#attention-look input").focus()
    one.page.keyboard.press(" ")
    one.page.locator(".ln[data-on=false]:not([data-moving])").wait_for(timeout=WAIT)
    one.quiet()
    assert one.page.evaluate("document.activeElement.closest('#attention-look') !== null")
    one.page.keyboard.press("Tab")
    one.page.keyboard.press("ArrowDown")
    assert focused()[0] == "target" and one.page.locator(".ln-off .ln-chosen").count() == 1
    size = one.page.locator(".ln-size b").inner_text().split()[0]
    assert size in one.page.locator(".ln-readout").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(visit, scheme: str, width: int):
    one = opened(visit, width=width, color_scheme=scheme)
    assert one.hindrances("#attention-lines", minor=True) == []
    assert one.hindrances("#attention-look", minor=True) == []
    turn(one)
    one.page.locator(".ln-target.ln-on .ln-word").nth(1).focus()
    one.still()
    assert one.hindrances("#attention-lines", minor=True) == []
    one.page.locator("#attention-more > button").click()
    one.page.locator("#attention-map .sv-map").wait_for(timeout=WAIT)
    one.quiet()
    assert one.hindrances() == []
    assert one.sideways() <= 0
    for word in one.page.locator(".ln-word:visible").all():
        box = word.bounding_box()
        assert box and box["height"] >= 24 and box["width"] >= 24
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    one.picture(f"attention-{scheme}-{width}")
