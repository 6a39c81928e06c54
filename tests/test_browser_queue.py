"""What a visitor sees in a browser when many others are there."""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import pytest
from browsing import WAIT, Visit, serve
from gradio_client import Client

from seqviz.language import Language

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("server")) as found:
        yield found


def crowd(
    address: str, count: int, first: int, sentences: int = 8
) -> tuple[list, ThreadPoolExecutor]:
    """So many others ask for texts of so many sentences with a wide search."""
    pool = ThreadPoolExecutor(count)
    clients = list(pool.map(lambda _: Client(address, verbose=False), range(count)))
    texts = [
        f"Number {first + number} of the old sailors has forgotten the letters from home. "
        * sentences
        for number in range(count)
    ]
    jobs = [
        client.submit(text, 4, api_name="/translate")
        for client, text in zip(clients, texts, strict=True)
    ]
    return jobs, pool


def refused(jobs: list) -> bool:
    """Whether one of them found the queue full; it stays so until a text is done."""
    answers = [job.future for job in jobs]
    done, _ = wait(answers, timeout=WAIT / 1000, return_when=FIRST_EXCEPTION)
    return any(answer.exception() for answer in done)


def leave(jobs: list, pool: ThreadPoolExecutor) -> None:
    for job in jobs:
        job.cancel()
    pool.shutdown()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_place_in_the_queue(browser, address, language):
    visit = Visit(browser, address, f"?lang={language}")
    visit.cards()
    others = crowd(address, 7, 0 if language == "en" else 100)
    visit.page.locator("#source textarea").fill(f"The boat is green, {language}.")
    visit.page.locator("#translate").click()
    bar = visit.page.locator(".queue")
    bar.wait_for(timeout=WAIT)
    said = [Language.of(language).say("queue.place", place=place) for place in range(1, 9)]
    assert bar.inner_text() in said
    assert bar.get_attribute("role") == "status"
    assert visit.page.locator("#cards").evaluate("e => getComputedStyle(e).opacity") == "0.4"
    visit.picture(f"queue-{language}")
    leave(*others)
    bar.wait_for(state="detached", timeout=WAIT)
    visit.page.get_by_text(f"green, {language}").first.wait_for(timeout=WAIT)
    visit.page.wait_for_function(
        "document.querySelector('#found').innerText.includes('boat')", timeout=WAIT
    )
    assert not visit.page.evaluate("document.body.classList.contains('in-queue')")
    assert not visit.faults
    visit.context.close()


def test_a_full_queue_says_so(browser, address):
    language = "zh"  # Gradio's own message is English
    visit = Visit(browser, address, f"?lang={language}")
    visit.cards()
    visit.page.locator("#source textarea").fill("The boat is green.")
    others = crowd(address, 40, 200, sentences=40)
    assert refused(others[0])
    visit.page.locator("#translate").click()
    toast = visit.page.get_by_test_id("toast-body")
    toast.wait_for(timeout=WAIT)
    assert Language.of(language).say("queue.full") in toast.inner_text()
    assert Language.of(language).say("queue.full_title") in toast.inner_text()
    visit.picture(f"queue-full-{language}")
    leave(*others)
    visit.page.locator("#translate").click()
    visit.page.wait_for_function(
        "document.querySelector('#found').innerText.includes('boat')", timeout=WAIT
    )
    visit.context.close()
