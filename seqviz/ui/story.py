"""The opening: an everyday text that grows by itself, once, in four lanes.

Its outputs were written down (``everyday.json``), so it plays before any model is loaded and however full
the queue is. Where they are of other weights, the models write it anew. ``story.js`` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import lanes
from seqviz.ui.growth import Growth
from seqviz.ui.lanes import Shown
from seqviz.ui.service import MODELS, Service

TOLD = ("lstm", "lstm-attention")
"""The pair that differs in one thing."""
WAYS = {"own": "story.own", "attention": "story.attention", "length": "story.length"}
"""Where one can go on from the end, and what the button says."""


def text_of(service: Service, passage: str = "") -> Growth:
    """A text written by hand; where there is none of this id, the one that opens the page."""
    with suppress(KeyError):
        return service.growth(passage)
    found = service.opening()
    return service.growth(found["first"] if found else service.everyday()[0]["id"])


def opening(service: Service, language: str, passage: str = "") -> str:
    """The text with what is known of it; asks no model."""
    text = text_of(service, passage)
    known = {name: service.known(name, text) for name in MODELS}
    return _markup(Shown(service, text, language, known))


def draw(service: Service, language: str, passage: str = "") -> Iterator[str]:
    """A text written by hand, as the models write what is not known of it."""
    text = text_of(service, passage)
    shown = Shown(
        service, text, language, {name: list(service.known(name, text)) for name in MODELS}
    )
    yield _markup(shown)
    for name in shown.missing:
        try:
            service.outputs(name, text)
        except (RuntimeError, ValueError) as error:  # shown in the lane as what it says
            shown.failed[name] = str(error)
        shown.outputs = {one: list(service.known(one, text)) for one in MODELS}
        yield _markup(shown)


def _markup(shown: Shown) -> str:
    count = len(shown.text.stages)
    words = "".join(
        f'<span data-stage="{stage}">{shown.say("length.words", number=number)}</span>'
        for stage, number in enumerate(shown.text.counts, start=1)
    )
    meanings = ""
    if shown.language == "zh":
        meanings = "".join(
            f'<div class="gloss" data-stage="{stage}"><p>{escape(one.chinese or "")}</p></div>'
            for stage, one in enumerate(shown.text.stages, start=1)
        )
    return (
        f'<div id="story" data-walk="story" data-stages="{count}">'
        f'<div class="story-bar"><button type="button" data-story="play">{shown.say("story.play")}</button>'
        f'<button type="button" data-story="pause">{shown.say("story.pause")}</button>{words}</div>'
        f"{meanings}{lanes.lanes(shown)}{_told(shown)}</div>"
    )


def _told(shown: Shown) -> str:
    """At the last stage one sentence that says what happened, and three ways on; how the text was chosen."""
    last = len(shown.text.stages) - 1
    counts = [shown.came(name, last) for name in TOLD]
    ways = "".join(
        f'<button type="button" data-go="{where}">{shown.say(key)}</button>'
        for where, key in WAYS.items()
    )
    ends = f'<p class="ending">{_sentence(shown)}</p>' if all(one.judged for one in counts) else ""
    rule = ""
    found = shown.service.opening()
    if found and found["first"] == shown.text.id:
        first = found["found"][shown.text.id]
        mean = Language.of(shown.language).percent(found["mean"])
        said = shown.say(
            "story.rule",
            texts=len(found["found"]),
            found=first["found"],
            judged=first["judged"],
            mean=mean,
        )
        rule = f"<details><summary>{shown.say('story.why')}</summary><p>{said}</p></details>"
    return f'<div data-stage="{last + 1}" class="story-end">{ends}<p class="ways">{ways}</p></div>{rule}'


def _sentence(shown: Shown) -> str:
    last = len(shown.text.stages) - 1
    fixed, attention = (shown.came(name, last) for name in TOLD)
    found = shown.service.opening()
    key = "story.told" if found is None or found["reads"] else "story.told_never"
    return shown.say(
        key,
        forgotten=fixed.forgotten,
        known=fixed.known,
        judged=fixed.judged,
        attention_forgotten=attention.forgotten,
        attention_known=attention.known,
    )
