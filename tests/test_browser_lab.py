"""The Lab's cards in a browser: claims turn, experiments open, by hand and by keys."""

from __future__ import annotations

import pytest
from browsing import WAIT, only_english

from seqviz.lab import EXPERIMENTS, claims
from seqviz.language import Language

pytestmark = pytest.mark.browser

PHONE = 844
"""Height of a phone's window."""


@pytest.fixture(scope="module")
def address(shipped_page: str) -> str:
    return shipped_page


def opened(visit, query: str = "", **options):
    one = visit(f"?tab=lab{query}", **options)
    one.drawn("lab")
    one.quiet()
    return one


def expanded(one, selector: str) -> list[bool]:
    return one.page.eval_on_selector_all(
        selector, "all => all.map(one => one.getAttribute('aria-expanded') === 'true')"
    )


def seen(one, selector: str) -> list[bool]:
    return one.page.eval_on_selector_all(
        selector, "all => all.map(one => one.checkVisibility({ visibilityProperty: true }))"
    )


def turning(one) -> list[str]:
    """Names of the movements of claims."""
    return one.page.evaluate(
        "document.getAnimations().filter(one => one.effect.target.closest('.claim')).map(one => one.animationName)"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_phone_shows_the_closed_lab_in_three_screens(visit, language):
    one = opened(visit, f"&lang={language}", width=390, height=PHONE)
    assert len(seen(one, ".claim")) == len(claims.CLAIMS)
    assert seen(one, ".experiment") == [True] * len(EXPERIMENTS)
    assert seen(one, ".bars") == [True] * len(EXPERIMENTS)
    height = one.page.evaluate(
        "document.querySelector('#lab-table').getBoundingClientRect().bottom"
        " - document.querySelector('#lab-claims').closest('[role=tabpanel]').getBoundingClientRect().top"
    )
    assert 0 < height <= 3 * PHONE
    assert one.sideways() <= 0
    one.picture(f"lab-closed-{language}-390")


@pytest.mark.parametrize("language, width, scheme", [("en", 390, "dark"), ("zh", 1280, "light")])
def test_a_claim_turns_and_leads_to_its_experiment(visit, language, width, scheme):
    one = opened(visit, f"&lang={language}", width=width, height=PHONE, color_scheme=scheme)
    backs = [False] * len(claims.CLAIMS)
    assert seen(one, ".back") == backs and expanded(one, ".turns") == backs
    turns = one.page.locator(".turns")
    recall = one.page.locator(".claim", has=one.page.locator("[data-leads=recall]")).first
    assert turning(one) == []
    # Asked in the same task: a busy machine may have ended it before the next.
    assert recall.locator(".turns").evaluate(
        "one => (one.click(), one.closest('.claim').getAnimations().map(one => one.animationName))"
    ) == ["turn"]
    one.still()
    assert seen(one, ".back").count(True) == 1 and recall.locator(".back").is_visible()
    assert not recall.locator(".ask").is_visible()
    shown = one.page.locator("body").inner_text()
    if language == "zh":
        assert [text for text in only_english() if text in shown] == []
    assert one.hindrances("[role=tabpanel]:has(#lab-claims)", minor=True) == []
    recall.locator("a").click()
    one.page.locator("#lab-body-recall .plot svg").wait_for(timeout=WAIT)
    one.still()
    assert expanded(one, "[data-opens=recall]") == [True]
    assert one.page.evaluate("document.activeElement.dataset.opens") == "recall"
    assert "card=recall" in one.page.url
    assert one.sideways() <= 0
    assert one.hindrances("[role=tabpanel]:has(#lab-claims)", minor=True) == []
    one.picture(f"lab-open-{language}-{width}")
    recall.locator(".turns").click()
    assert seen(one, ".back") == backs
    # The other language keeps what is turned and open.
    turns.first.click()
    other = "en" if language == "zh" else "zh"
    one.page.get_by_label(Language.of(other).say("language.name")).check()
    one.page.locator(".opens", has_text=Language.of(other).say("lab.open_gradient")).wait_for(
        timeout=WAIT
    )
    one.drawn("lab")
    one.quiet()
    assert seen(one, ".back") == [True, *backs[1:]]
    about = one.page.locator(
        "#lab-body-recall", has_text=Language.of(other).say("lab.recall_about")
    )
    about.wait_for(timeout=WAIT)


@pytest.mark.parametrize("language, width", [("en", 1280), ("zh", 390)])
def test_keys_turn_and_open(visit, language, width):
    one = opened(visit, f"&lang={language}", width=width, height=PHONE, reduced_motion="reduce")
    first, second = one.page.locator(".turns").nth(0), one.page.locator(".turns").nth(1)
    first.focus()
    one.page.keyboard.press("Tab")
    assert second.evaluate("one => one === document.activeElement")  # no link of a hidden side
    one.page.keyboard.press("Space")
    assert expanded(one, ".turns")[:3] == [False, True, False]
    assert turning(one) == []
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.tagName") == "A"
    second.focus()
    one.page.keyboard.press("Enter")
    assert not any(expanded(one, ".turns"))
    # One experiment is open at a time; its figure is sent then.
    assert one.page.locator("#lab-experiments .plot svg").count() == 0
    for name in ("capacity", "extrapolation"):
        one.page.locator(f"[data-opens={name}]").focus()
        one.page.keyboard.press("Enter")
        one.page.locator(f"#lab-body-{name} .plot svg").wait_for(timeout=WAIT)
        assert expanded(one, "[data-opens]").count(True) == 1
        assert seen(one, ".lab-body").count(True) == 1
    one.page.keyboard.press("Space")
    assert not any(expanded(one, "[data-opens]")) and not any(seen(one, ".lab-body"))
    assert "card=" not in one.page.url


def test_a_link_opens_a_card_and_paper_shows_both_sides(visit):
    one = opened(visit, "&card=cost")
    one.page.locator("#lab-body-cost .plot svg").wait_for(timeout=WAIT)
    assert one.page.locator("#live-run").is_visible()
    one.page.emulate_media(media="print")
    assert all(seen(one, ".back")) and all(seen(one, ".turns"))
    other = opened(visit, "&card=nothing%22%5D")
    assert not any(expanded(other, "[data-opens]"))
