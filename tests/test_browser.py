"""The page in a browser, with the shipped weights, started as a person starts it.

Set ``SEQVIZ_SCREENSHOTS`` to keep pictures of every tab in ``screenshots/`` (not in git).
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqviz.ui.service import MODELS, Service
from seqviz.ui.words import WORDS

pytestmark = pytest.mark.browser

REPOSITORY = Path(__file__).resolve().parents[1]
WAIT = 60_000
"""Longest wait for one thing to appear, milliseconds: the machine may be busy."""


@pytest.fixture(scope="module")
def page_models(models_folder: Path) -> Path:
    """The shipped weights, or other ones that `SEQVIZ_TEST_MODELS` names."""
    folder = Path(os.environ.get("SEQVIZ_TEST_MODELS") or models_folder)
    missing = [name for name in MODELS if not (folder / name / "model.safetensors").is_file()]
    if missing:
        pytest.skip(f"no weights of {', '.join(missing)} in {folder}")
    return folder


@pytest.fixture(scope="module")
def address(page_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page, served by ``python app.py`` from another folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(REPOSITORY / "app.py")]
    if page_models != REPOSITORY / "models":
        start = f"from seqviz.ui import launch; launch(models_folder={str(page_models)!r})"
        command = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); {start}",
        ]
    folder = tmp_path_factory.mktemp("elsewhere")
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "GRADIO_SERVER_PORT": str(port)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        found = f"http://127.0.0.1:{port}/"
        for _ in range(600):
            try:
                urllib.request.urlopen(found, timeout=5).read()
                break
            except OSError:
                assert server.poll() is None, log.read_text(encoding="utf-8")
                time.sleep(0.1)
        else:
            pytest.fail(f"no answer within a minute: {log.read_text(encoding='utf-8')}")
        yield found
    finally:
        server.terminate()
        server.wait(10)


class Visit:
    """A page that remembers what went wrong on it."""

    def __init__(self, browser, address: str, path: str = "", width: int = 1280, **options) -> None:
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            locale=options.pop("locale", "en-US"),
            **options,
        )
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        self.page.on("request", self._asked)
        self.page.goto(address + path)

    def _heard(self, message) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _asked(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"request to another host: {request.url}")

    def cards(self, count: int = 4) -> None:
        """Wait until so many cards of the Translate tab are filled."""
        self.page.wait_for_function(
            "count => document.querySelectorAll('#cards .card > footer').length == count",
            arg=count,
            timeout=WAIT,
        )

    def translate(self, text: str) -> None:
        self.page.locator("#source textarea").fill(text)
        self.page.evaluate("document.querySelector('#cards .cards').classList.add('old')")
        self.page.locator("#translate").click()
        self.page.wait_for_function("!document.querySelector('#cards .cards.old')", timeout=WAIT)
        self.cards()

    def tab(self, number: int) -> None:
        self.page.get_by_role("tab").nth(number).click()

    def sideways(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def picture(self, name: str) -> None:
        if os.environ.get("SEQVIZ_SCREENSHOTS"):
            folder = REPOSITORY / "screenshots"
            folder.mkdir(exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png", full_page=True)


@pytest.fixture
def visit(browser, address) -> Iterator:
    """Factory of visits; at the end of the test nothing may have gone wrong on any."""
    visits: list[Visit] = []

    def make(path: str = "", **options) -> Visit:
        visits.append(Visit(browser, address, path, **options))
        return visits[-1]

    yield make
    faults = [fault for one in visits for fault in one.faults]
    for one in visits:
        one.context.close()
    assert not faults


def test_the_first_view_shows_results_without_a_click(visit):
    one = visit()
    assert one.page.locator("#cards .card").count() == 4 or one.page.wait_for_selector(
        "#cards .card"
    )
    one.cards()
    assert one.page.locator("#cards .card .drawing").count() == 4
    order = one.page.eval_on_selector_all(
        "#cards .card", "cards => cards.map(card => card.dataset.model)"
    )
    assert tuple(order) == MODELS
    assert one.page.locator("#source textarea").input_value() == Service().examples()[0]["english"]
    assert one.page.locator(".problem").count() == 0


def test_translates_what_is_typed(visit):
    one = visit()
    one.cards()
    before = one.page.locator("#cards").inner_text()
    one.translate("The president of the committee has read the report.")
    assert one.page.locator("#cards").inner_text() != before
    answers = one.page.eval_on_selector_all(
        "#cards .target", "found => found.map(one => one.innerText)"
    )
    assert len(answers) == 4 and any(answers)
    assert one.page.locator("#cards footer").first.inner_text().count("\n") == 2

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
    one.cards()
    one.translate("我弟弟不想出门，因为外面太冷了。")
    hint = one.page.locator("#message .hint")
    assert WORDS["zh"]["translate_chinese"] in hint.inner_text()
    hint.locator("button").nth(1).click()
    example = Service().examples()[1]["english"]
    one.page.wait_for_function(
        "text => document.querySelector('#source textarea').value == text",
        arg=example,
        timeout=WAIT,
    )
    hint.wait_for(state="detached", timeout=WAIT)
    one.cards()


def test_the_slider(visit):
    one = visit()
    one.cards()
    one.page.locator("#longer").click()
    one.page.wait_for_function(
        "document.querySelectorAll('#stage-cards .bar').length == 4", timeout=WAIT
    )
    one.page.wait_for_function(
        "document.querySelectorAll('#plot polyline').length == 4 "
        "&& [...document.querySelectorAll('#plot polyline')].every(line => line.points.length == 9)",
        timeout=WAIT,
    )
    stages = Service().passages()[0]["stages"]
    slider = one.page.locator("#length-slider input[type=range]")
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    one.page.mouse.move(box["x"] + 2, middle)
    one.page.mouse.down()
    for step in range(41):
        one.page.mouse.move(box["x"] + 2 + (box["width"] - 4) * step / 40, middle)
    one.page.mouse.up()

    def wait_for(stage: int, timeout: int = WAIT) -> None:
        last = stages[stage]["english"]
        one.page.wait_for_function(
            "words => document.querySelector('#stops .here').innerText == words",
            arg=str(len(last.split())),
            timeout=timeout,
        )
        assert one.page.locator("#sentence [lang=en]").inner_text() == last

    wait_for(8)
    at = one.page.evaluate(
        "getComputedStyle(document.querySelector('#plot')).getPropertyValue('--at')"
    )
    one.page.wait_for_timeout(1500)  # nothing older may come after
    wait_for(8, timeout=100)
    assert at == one.page.evaluate(
        "getComputedStyle(document.querySelector('#plot')).getPropertyValue('--at')"
    )
    slider.press("ArrowLeft")
    wait_for(7)
    slider.press("Home")
    wait_for(0)
    assert slider.get_attribute("aria-valuetext") == "6 words"
    shown = one.page.eval_on_selector_all(
        "#stage-cards .card", "all => all.map(card => card.dataset.model)"
    )
    assert tuple(shown) == MODELS

    # Grow walks from the first stop to the last and then rests.
    one.page.clock.install()
    one.page.locator("#grow").click()
    for _ in range(9):
        one.page.clock.run_for(1100)
    one.page.wait_for_function(
        "document.querySelector('#length-slider input[type=range]').value == 9", timeout=WAIT
    )
    one.page.wait_for_function(
        "document.querySelector('#stops .here').innerText == '66'", timeout=WAIT
    )
    one.page.clock.run_for(1100)
    assert one.page.locator("#grow.running").count() == 0


def test_the_language_switches_everything(visit):
    one = visit()
    one.cards()
    one.page.get_by_label("中文").check()
    one.page.wait_for_function("document.documentElement.lang == 'zh-CN'", timeout=WAIT)
    one.page.get_by_role("tab", name=WORDS["zh"]["tab_length"]).wait_for(timeout=WAIT)
    one.page.wait_for_function(
        "text => document.querySelector('#cards .how')?.innerText == text",
        arg=WORDS["zh"]["how_rnn"],
        timeout=WAIT,
    )
    one.cards()
    assert "lang=zh" in one.page.url
    assert one.page.title() == WORDS["zh"]["page_title"]
    assert Service().examples()[0]["chinese"] in one.page.locator("#gloss").inner_text()
    # No interface text of the English page is left in sight.
    seen = one.page.locator("body").inner_text()
    texts = [text for text in WORDS["en"].values() if len(text) > 12 and "{" not in text]
    assert [text for text in texts if text in seen] == []
    one.page.get_by_label("English").check()
    one.page.get_by_role("tab", name=WORDS["en"]["tab_length"]).wait_for(timeout=WAIT)
    one.page.wait_for_function("document.documentElement.lang == 'en'", timeout=WAIT)


def test_first_language_comes_from_the_address_or_the_browser(visit):
    for path, locale, name in (
        ("", "zh-CN", "zh"),
        ("?lang=en", "zh-CN", "en"),
        ("?lang=zh", "en-US", "zh"),
    ):
        one = visit(path, locale=locale)
        one.page.get_by_role("tab", name=WORDS[name]["tab_length"]).wait_for(timeout=WAIT)
        one.page.wait_for_function(
            "text => document.querySelector('#cards .how')?.innerText == text",
            arg=WORDS[name]["how_rnn"],
            timeout=WAIT,
        )


@pytest.mark.parametrize("language, scheme", [("en", "light"), ("zh", "dark")])
def test_every_tab_fits_and_is_accessible(visit, language, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    one = visit(f"?lang={language}", color_scheme=scheme)
    one.cards()
    assert one.page.evaluate("document.body.classList.contains('dark')") == (scheme == "dark")
    for number, name in enumerate(("translate", "length", "attention")):
        one.tab(number)
        if name == "length":
            one.page.wait_for_function(
                "document.querySelectorAll('#stage-cards .bar').length == 4", timeout=WAIT
            )
        seen = one.page.locator("body").inner_text()
        assert not re.search(r"\{\w+\}|\b(page|card|note|translate|length|attention)_\w+", seen)
        for width in (390, 1280):
            one.page.set_viewport_size({"width": width, "height": 900})
            one.page.wait_for_timeout(300)
            assert one.sideways() <= 0, (name, width)
            one.picture(f"{name}-{language}-{scheme}-{width}")
        faults = axe.Axe().run(one.page).response["violations"]
        serious = [
            (fault["id"], fault["nodes"][0]["html"][:200])
            for fault in faults
            if fault["impact"] in ("serious", "critical")
        ]
        assert not serious, name
