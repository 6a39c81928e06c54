"""Links: what an address restores, the button that copies one, and Back and Forward.

What a visitor looks at stands in the address: tab, text, passage, stage, language, and of the Attention tab
model, layer, head and reading. A new tab, text, passage or model is a step of the browser's history; a new
stage, layer, head or reading changes the step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from seqviz.language import LANGUAGES, Language
from seqviz.maps import READINGS
from seqviz.ui import choice, story, text
from seqviz.ui.growth import MAX_CHARACTERS, OWN
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import QUICK_EVENT, Spoken

TABS = ("translate", "length", "attention", "lab")
ON_ATTENTION = ("model", "layer", "head", "reading")
"""What of that tab stands in the address."""
MAX_TEXT = 2_000
"""Longest text in a link, in characters: some servers refuse longer addresses."""


@dataclass(frozen=True)
class Link:
    """What an address asks for; None where it asks for nothing that there is.

    Attributes:
        tab: one of `TABS`.
        text: that was typed.
        passage: id of a text written by hand, or `OWN`.
        stage: of the growing text, from 1.
        model: on the Attention tab.
        layer, head: there, from 0; "" for the mean.
        reading: there, one of `READINGS`.
    """

    tab: str | None = None
    text: str | None = None
    passage: str | None = None
    stage: int | None = None
    model: str | None = None
    layer: int | str | None = None
    head: int | str | None = None
    reading: str | None = None


def read(query: Mapping[str, str], service: Service) -> Link:
    """The link in an address; whatever is unknown or out of range is left out."""
    tab, typed, model, reading = (query.get(key) for key in ("tab", "text", "model", "reading"))
    passage, stage = query.get("passage"), str(query.get("stage", ""))
    known = {OWN, *(found["id"] for found in (*service.everyday(), *service.passages()))}
    return Link(
        tab=tab if tab in TABS else None,
        text=typed if typed and typed.strip() and len(typed) <= MAX_CHARACTERS else None,
        passage=passage if passage in known else None,
        stage=int(stage) if re.fullmatch("[1-9][0-9]?", stage) else None,
        model=model if model in MODELS else None,
        layer=_number(query.get("layer", "")),
        head=_number(query.get("head", "")),
        reading=reading if reading in READINGS else None,
    )


def _number(said: str) -> int | str | None:
    """A layer or head, in an address from 1."""
    if said == "mean":
        return ""
    return int(said) - 1 if re.fullmatch("[1-9][0-9]?", said) else None


def restored(service: Service, link: Link, language: str) -> dict[str, Any]:
    """What a link puts into the page, by name; what it does not ask for is left out."""
    found: dict[str, Any] = {
        "tabs": link.tab and gr.Tabs(selected=link.tab),
        "model": link.model,
        "reading": link.reading,
    }
    # A radio takes no value that is not among its choices; which ones there are the model says later.
    if link.layer is not None:
        known = choice.layers(link.layer + 1 if isinstance(link.layer, int) else 0, language, True)
        found["layer"] = gr.Radio(known, value=link.layer)
    if link.head is not None:
        known = choice.numbers(link.head + 1 if isinstance(link.head, int) else 0, language)
        found["head"] = gr.Radio(known, value=link.head)
    passage = OWN if link.text else link.passage
    if passage:
        found |= {"text": link.text, "typed": link.text, "passage": passage}
        found["slider"] = text.fitted(service, link.text, passage, link.stage)
    if not link.text:  # stands there whatever the queue is like
        found["answers"] = story.opening(service, language, passage or "")
    return {name: value for name, value in found.items() if value is not None}


def copy_button(
    language: gr.Radio,
    spoken: Spoken,
    values: Mapping[str, Any],
    tabs: gr.Tabs,
    slider: gr.Slider,
) -> None:
    """A button that copies a link to what is on the screen; the address follows what is on the screen.

    Args:
        spoken: gets the button.
        values: components by what they stand for: ``text``, ``passage``, `ON_ATTENTION`.
        slider: the stage is where it stands.
    """
    button = spoken.make(
        gr.Button, {"value": "link.copy"}, size="sm", min_width=100, elem_id="copy-link"
    )
    said = {
        chosen: {
            key: Language.of(chosen).within("link").say(key) for key in ("copied", "failed", "long")
        }
        for chosen in LANGUAGES
    }
    values = {**values, "stage": slider}
    page = {"names": list(values), "limit": MAX_TEXT, "said": said}
    button.click(
        None,
        [language, *values.values()],
        js=f"(...values) => window.seqviz.copyLink({json.dumps(page)}, ...values)",
        **QUICK_EVENT,
    )
    gr.on(
        [
            tabs.change,
            values["text"].blur,
            values["text"].submit,
            values["passage"].change,
            *(values[name].change for name in ON_ATTENTION),
            slider.release,
        ],
        None,
        [language, *values.values()],
        js=f"(...values) => window.seqviz.step({json.dumps(page)}, ...values)",
        **QUICK_EVENT,
    )
