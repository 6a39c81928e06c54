"""What a visitor sees in a browser when many others are there."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_EXCEPTION, wait

import pytest
from browsing import WAIT, Visit, serve
from gradio_client import Client
from gradio_client.utils import Status

from seqviz.language import Language

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(shipped_page: str) -> str:
    return shipped_page


def crowd(address: str, count: int, first: int, sentences: int = 8) -> list:
    """So many others have asked for texts of so many sentences with a wide search."""
    others = Client(
        address, verbose=False, max_workers=count, httpx_kwargs={"timeout": WAIT / 1000}
    )
    texts = [
        f"Number {first + number} of the old sailors has forgotten the letters from home. "
        * sentences
        for number in range(count)
    ]
    jobs = [others.submit(text, 4, api_name="/translate") for text in texts]
    on_the_way = (Status.STARTING, Status.JOINING_QUEUE)
    while any(job.status().code in on_the_way and not job.done() for job in jobs):
        time.sleep(0.05)
    return jobs


def refused(jobs: list) -> bool:
    """Whether one of them found the queue full; it stays so until a text is done."""
    answers = [job.future for job in jobs]
    done, _ = wait(answers, timeout=WAIT / 1000, return_when=FIRST_EXCEPTION)
    return any(answer.exception() for answer in done)


def leave(jobs: list) -> None:
    for job in jobs:
        job.cancel()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_place_in_the_queue(browser, address, language):
    visit = Visit(browser, address, f"?lang={language}")
    visit.lanes()
    visit.page.locator("#source textarea").fill(f"The boat is green, {language}.")
    others = crowd(address, 5, 0 if language == "en" else 100, sentences=40)
    visit.page.locator("#translate").click()
    bar = visit.page.locator(".queue")
    bar.wait_for(timeout=WAIT)
    said = [Language.of(language).say("queue.place", place=place) for place in range(1, 9)]
    assert bar.inner_text() in said
    assert bar.get_attribute("role") == "status"
    assert visit.page.locator("#cards").evaluate("e => getComputedStyle(e).opacity") == "0.4"
    visit.picture(f"queue-{language}")
    leave(others)
    bar.wait_for(state="detached", timeout=WAIT)
    visit.page.get_by_text(f"green, {language}").first.wait_for(timeout=WAIT)
    visit.page.wait_for_function(
        "document.querySelector('#cards').innerText.includes('boat')", timeout=WAIT
    )
    assert not visit.page.evaluate("document.body.classList.contains('in-queue')")
    assert not visit.faults
    visit.context.close()


SHORT = """
import time
from pathlib import Path
ui.QUEUE = 1
plain = ui.Service.translator
def translator(service, name):
    while Path("held").exists():
        time.sleep(0.05)
    return plain(service, name)
ui.Service.translator = translator
"""
"""A queue of one, and models that answer nobody while there is a file `held` in the server's folder."""


def test_a_full_queue_says_so(browser, tmp_path):
    language = "zh"  # Gradio's own message is English
    held = tmp_path / "held"
    with serve(tmp_path, before=SHORT) as address:
        visit = Visit(browser, address, f"?lang={language}")
        visit.lanes()
        visit.quiet()
        visit.page.locator("#source textarea").fill("The boat is green.")
        held.touch()
        others = crowd(address, 4, 200)
        assert refused(others)
        visit.page.locator("#translate").click()
        toast = visit.page.get_by_test_id("toast-body")
        toast.wait_for(timeout=WAIT)
        assert Language.of(language).say("queue.full") in toast.inner_text()
        assert Language.of(language).say("queue.full_title") in toast.inner_text()
        visit.picture(f"queue-full-{language}")
        leave(others)
        held.unlink()
        end = time.monotonic() + WAIT / 1000
        while "boat" not in visit.page.locator("#cards").inner_text():
            assert time.monotonic() < end
            visit.page.locator("#translate").click()  # as the message says, until there is room
            visit.page.wait_for_timeout(2000)
        visit.context.close()
