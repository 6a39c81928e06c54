"""The one text of the page, which every tab shows in its own way.

It is what stands in the box at the top. Where the box is empty it is one of the texts written by hand, the
one that opens the page or another that was picked. The slider's stage says how much of it is looked into.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import growth, story
from seqviz.ui.growth import OWN, Growth, GrowthError, paragraphs
from seqviz.ui.service import Service
from seqviz.ui.tab import QUICK_EVENT, Spoken

if TYPE_CHECKING:
    from seqviz.translating.notes import Note

FIRST_STAGE = 3
"""Of a text written by hand: long enough to look into, short enough to see whole."""


REDRAW: dict[str, Any] = {"fn": None, "js": "() => window.seqviz.redraw()", **QUICK_EVENT}
"""Event that draws what is on the screen anew; see ``tabs.js``."""


@dataclass(frozen=True)
class Text:
    """What a visitor chose the text with.

    Attributes:
        box: what they typed.
        button: that shows it.
        passage: the text written by hand that stands there while the box is empty; `OWN` while it is not.
        slider: the stage, from 1.
        typed: the typed text that `passage` and `slider` know of, and whoever picked another comes back to.
    """

    box: gr.Textbox
    button: gr.Button
    passage: gr.Dropdown
    slider: gr.Slider
    typed: gr.State

    @property
    def inputs(self) -> list[Any]:
        """For `growing`, without the last for `part`."""
        return [self.box, self.passage, self.slider]


def make(service: Service, spoken: Spoken) -> Text:
    """The box and its button here; the Length tab says where the list and the slider stand."""
    first = story.text_of(service)
    with gr.Row(elem_classes="ask"):
        box = spoken.make(
            gr.Textbox,
            {"label": "translate.box", "placeholder": "translate.placeholder"},
            value="",
            lines=1,
            max_lines=8,
            show_label=False,
            scale=1,
            min_width=160,
            elem_id="source",
            autofocus=False,
        )
        button = spoken.make(
            gr.Button,
            {"value": "translate.button"},
            variant="primary",
            scale=0,
            min_width=100,
            elem_id="translate",
        )
    passage = spoken.make(
        gr.Dropdown,
        {"label": "length.passage", "choices": partial(_choices, service, first.id)},
        value=first.id,
        filterable=False,
        min_width=220,
        elem_id="passage",
        render=False,
    )
    slider = spoken.make(
        gr.Slider,
        {"label": "length.slider"},
        minimum=1,
        maximum=len(first.stages),
        value=FIRST_STAGE,
        step=1,
        buttons=[],
        elem_id="length-slider",
        render=False,
    )
    return Text(box, button, passage, slider, gr.State(""))


def connect(service: Service, text: Text) -> None:
    """Let a typed text and a picked one take each other's place."""
    first = story.text_of(service).id
    picks = gr.Number(0, visible="hidden")  # how often a person has picked a text

    def take(box: str, passage: str, before: str) -> tuple[Any, ...]:
        if _plain(box):
            if (passage, box) == (OWN, before):
                return (gr.skip(),) * 3
            passage = OWN
        elif passage == OWN:
            passage = first
        return passage, fitted(service, box, passage), box or before

    def pick(box: str, passage: str, stage: float, before: str) -> tuple[Any, ...]:
        box, before = (before, before) if passage == OWN else ("", box or before)
        return box, fitted(service, box, passage, stage), before

    chosen: dict[str, Any] = {"trigger_mode": "always_last", **QUICK_EVENT}
    taken: dict[str, Any] = {
        "fn": take,
        "inputs": [text.box, text.passage, text.typed],
        "outputs": [text.passage, text.slider, text.typed],
        **chosen,
    }
    gr.on([text.button.click, text.box.submit], **taken).then(**REDRAW)
    text.box.blur(**taken)
    # A dropdown tells of one pick twice, and again each time it is left: the script counts the picks.
    text.passage.input(
        None,
        text.passage,
        picks,
        js=f"passage => window.seqviz.pick(passage, {json.dumps(first)})",
        **QUICK_EVENT,
    )
    text.passage.change(
        None, text.passage, js="passage => window.seqviz.forgetPick(passage)", **QUICK_EVENT
    )
    picks.change(
        pick, [*text.inputs, text.typed], [text.box, text.slider, text.typed], **chosen
    ).then(**REDRAW)


def fill(service: Service, text: Text, button: gr.Button, english: str) -> None:
    """Let a button put a text into the box."""

    def give() -> tuple[Any, ...]:
        return english, OWN, fitted(service, english, OWN), english

    outputs = [text.box, text.passage, text.slider, text.typed]
    button.click(give, outputs=outputs, **QUICK_EVENT).then(**REDRAW)


def growing(service: Service, box: Any, passage: Any) -> Growth:
    """The page's text at all its lengths.

    Raises:
        GrowthError: no such passage, or a typed text that cannot grow.
    """
    if passage == OWN or _plain(box):
        return growth.own(box)
    try:
        return service.growth(passage)
    except KeyError:
        known = ", ".join(text["id"] for text in (*service.everyday(), *service.passages()))
        raise GrowthError("length.unknown", known=known, got=f"{passage!r:.40}") from None


def part(service: Service, box: Any, passage: Any, stage: Any) -> str:
    """The page's text as far as the slider says; a typed one that the slider has not met is whole."""
    typed = box if isinstance(box, str) else ""
    if typed.strip() and passage != OWN:
        return typed
    try:
        text = growing(service, typed, passage)
    except GrowthError:
        return typed
    last = text.clamp(stage)
    return typed if text.id == OWN and last == len(text.stages) - 1 else text.stages[last].english


def fitted(service: Service, box: Any, passage: Any, stage: Any = None) -> Any:
    """The slider with as many stops as the text has stages.

    Args:
        stage: where it shall stand, or as near as can be; None takes all of a typed text and
            `FIRST_STAGE` of another.
    """
    try:
        text = growing(service, box, passage)
    except GrowthError:  # whoever draws it says why
        return gr.skip()
    count = len(text.stages)
    if stage is None:
        stage = count if text.id == OWN else FIRST_STAGE
    # A slider needs two ends; the script shows a single stage at both.
    return gr.Slider(maximum=max(2, count), value=text.clamp(stage) + 1, interactive=count > 1)


def is_chinese(text: str) -> bool:
    """A third or more of the letters are Chinese characters."""
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and 3 * sum("\u4e00" <= c <= "\u9fff" for c in letters) >= len(letters)


def chinese_hint(service: Service, text: Any) -> str:
    """What every tab says to a Chinese text, in Chinese whatever the page speaks: some that the models read."""
    if not isinstance(text, str) or not is_chinese(text):
        return ""
    buttons = "".join(
        f'<button type="button" data-example="{escape(example["english"])}">'
        f'<span lang="en">{escape(example["english"])}</span>'
        f'<span lang="zh-CN">{escape(example["chinese"])}</span></button>'
        for example in service.examples()[:3]
    )
    said = escape(Language.of("zh").say("translate.chinese"))
    return f'<div class="hint"><p lang="zh-CN">{said}</p>{buttons}</div>'


def language_hint(notes: Iterable[Note], language: str) -> str:
    """What to say of a text that is not English."""
    if not any(note.kind == "language" for note in notes):
        return ""
    return f'<p class="hint">{escape(Language.of(language).say("translate.language"))}</p>'


def _plain(box: Any) -> str:
    return " ".join(paragraphs(box)) if isinstance(box, str) else ""


def _choices(service: Service, first: str, language: str) -> list[tuple[str, str]]:
    """The text that opens the page, the other everyday texts, the passages, one's own."""
    texts = sorted(service.everyday(), key=lambda text: text["id"] != first)
    choices = [(text["title"][language], text["id"]) for text in (*texts, *service.passages())]
    return [*choices, (Language.of(language).say("length.own"), OWN)]
