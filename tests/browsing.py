"""What browser tests share: a server of the page, and a visit that remembers what went wrong."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqviz.language import Language

REPOSITORY = Path(__file__).resolve().parents[1]
WAIT = 300_000
"""Longest wait for one thing to appear, milliseconds. Only a fault takes so long, however busy the machine is."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serve(folder: Path, models: Path | None = None, before: str = "") -> Iterator[str]:
    """The page's address, served from an empty folder: by ``python app.py``, or otherwise than it does.

    Args:
        models: the folder of other models.
        before: what is run before the page is served, with `ui` at hand.
    """
    port = free_port()
    command = [sys.executable, str(REPOSITORY / "app.py")]
    if models is not None or before:
        lines = [
            f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})",
            "from seqviz import ui",
            before,
            f"ui.launch(models_folder={(models and str(models))!r})",
        ]
        command = [sys.executable, "-c", "\n".join(lines)]
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "GRADIO_SERVER_PORT": str(port), "OMP_NUM_THREADS": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        found = f"http://127.0.0.1:{port}/"
        wait_for_answer(found, server, lambda: log.read_text(encoding="utf-8"))
        yield found
    finally:
        server.terminate()
        server.wait()


def wait_for_answer(address: str, server: subprocess.Popen, said: Callable[[], str]) -> None:
    """Until the server answers; it fails when it ends, or takes longer than any machine does."""
    end = time.monotonic() + WAIT / 1000
    while True:
        try:
            urllib.request.urlopen(address, timeout=WAIT / 1000).read()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < end, f"no answer: {said()}"
        time.sleep(0.1)


class Visit:
    """A page that remembers what went wrong on it."""

    def __init__(self, browser, address: str, path: str = "", width: int = 1280, **options) -> None:
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": options.pop("height", 900)},
            locale=options.pop("locale", "en-US"),
            **options,
        )
        self.context.set_default_timeout(WAIT)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        self.asked: list[str] = []  # all requests but heartbeats, which go on for ever
        self._open = 0
        self._clock = False
        self.page.on("request", self._asked)
        self.page.on("requestfinished", self._answered)
        self.page.on("requestfailed", self._answered)
        self.page.goto(address + path)

    def _heard(self, message) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _asked(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"request to another host: {request.url}")
        if "heartbeat" not in request.url:
            self.asked.append(request.url)
            self._open += 1

    def _answered(self, request) -> None:
        self._open -= "heartbeat" not in request.url

    def still(self) -> None:
        """Wait until the page has been drawn, and nothing on it glides any more."""
        self.page.evaluate(
            """async () => {
              for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
              const glides = document.getAnimations().filter(a => a.effect.getComputedTiming().endTime < Infinity);
              await Promise.allSettled(glides.map(a => a.finished));
            }"""
        )

    def quiet(self) -> None:
        """Wait until everything that was asked for has been answered, and drawn."""
        self.still()
        while self._open:
            self.page.wait_for_timeout(20)  # lets events in
            self.still()

    def pass_time(self, milliseconds: int) -> None:
        """From the first call on time stands still on the page, but for what passes here."""
        if not self._clock:
            self.page.clock.install()
            self.page.clock.pause_at(self.page.evaluate("Date.now()") + 1000)
            self._clock = True
        self.page.clock.run_for(milliseconds)

    def lanes(self) -> None:
        """Wait until the four lanes of the Translate tab are filled."""
        self.page.wait_for_function(
            """() => {
              const lanes = [...document.querySelectorAll('#cards .lane')];
              return lanes.length == 4 && lanes.every(lane => lane.ariaBusy === null)
                && document.documentElement.matches('[data-drawn~=translate]');
            }""",
            timeout=WAIT,
        )

    def translate(self, text: str) -> None:
        self.page.locator("#source textarea").fill(text)
        self.page.evaluate("document.querySelector('#cards .lanes').classList.add('old')")
        self.page.locator("#translate").click()
        self.page.wait_for_function(
            "document.querySelector('#cards .lanes') && !document.querySelector('#cards .lanes.old')",
            timeout=WAIT,
        )
        self.lanes()

    def tab(self, number: int) -> None:
        self.page.get_by_role("tab").nth(number).click()

    def drawn(self, name: str) -> None:
        """Wait until a tab shows the page's text."""
        self.page.locator(f"html[data-drawn~={name}]").wait_for(timeout=WAIT, state="attached")

    def seen(self) -> str:
        """What a person sees, and what went wrong, for the report of a failed test."""
        try:
            text = self.page.evaluate(
                """() => [...document.querySelectorAll('input:not([type=radio])')]
                  .filter(e => e.checkVisibility()).map(e => `[${e.value}]`).join(' ')
                  + '\\n' + document.body.innerText"""
            )
        except Exception as error:
            text = f"nothing: {error}"
        return "\n".join([*self.faults, text])

    def sideways(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def hindrances(self, part: str | None = None, minor: bool = False) -> list[tuple[str, str]]:
        """What keeps some people from using the page, or a part of it, by axe's rules."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        return [
            (fault["id"], fault["nodes"][0]["html"][:200])
            for fault in axe.Axe().run(self.page, part).response["violations"]
            if minor or fault["impact"] in ("serious", "critical")
        ]

    def picture(self, name: str) -> None:
        if os.environ.get("SEQVIZ_SCREENSHOTS"):
            folder = REPOSITORY / "screenshots"
            folder.mkdir(exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png", full_page=True)


def only_english() -> list[str]:
    """Longer texts that no Chinese page may show."""
    english, chinese = (Language.of(code).texts for code in ("en", "zh"))
    return [
        text
        for key, text in english.items()
        if len(text) > 12 and "{" not in text and text != chinese[key]
    ]
