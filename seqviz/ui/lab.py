"""The Lab tab: the telephone game on a visitor's sentence, the experiments, the article's claims.

The figures are read when the tab is opened: a visitor who never comes here pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import cards, experiments, live, story, telephone
from seqviz.ui.growth import paragraphs
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import MODEL_EVENT, QUICK_EVENT, Spoken, Tab, endpoint
from seqviz.ui.translate import checked_text, is_chinese, is_own, too_long

ENDS = ("forward", "backward")
"""End states that the endpoint tells of."""

FIRST_WORDS = 40
"""The text shown first is the stage nearest to so many words of the passage that Length shows first."""


def tab(service: Service, language: gr.Radio, this: gr.Tab) -> Tab:
    """Make the tab inside `this`."""
    spoken = Spoken()
    spoken.make(gr.HTML, {"value": _lead})
    text = spoken.make(
        gr.Textbox,
        {"label": "lab.box", "placeholder": "translate.placeholder"},
        value=first_text(service),
        lines=3,
        max_lines=8,
        elem_id="lab-source",
    )
    with gr.Row(elem_classes="actions"):
        button = spoken.make(
            gr.Button, {"value": "lab.button"}, variant="primary", min_width=140, elem_id="lab-show"
        )
    game = gr.HTML(elem_id="lab-game")
    column = gr.HTML(elem_id="lab-experiments")
    live.block(language, spoken)
    claims = gr.HTML(elem_id="lab-claims")
    shown = gr.State("")  # the language of the figures and claims on the screen
    carried = gr.State("")

    def draw(source: str, chosen: str) -> Iterator[str]:
        yield from draw_game(service, source, chosen)

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": [text, language],
        "outputs": game,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    gr.on([button.click, text.submit], **event)

    def read(chosen: str, before: str) -> tuple[Any, ...]:
        if chosen == before:
            return gr.skip(), gr.skip(), gr.skip()
        return chosen, experiments.column(service, chosen), experiments.table(service, chosen)

    def follow(source: str, chosen: str, before: str) -> Iterator[tuple[Any, ...]]:
        if before:  # else the tab was never opened
            yield gr.skip(), *read(chosen, before)
            for picture in draw_game(service, source, chosen):
                yield picture, gr.skip(), gr.skip(), gr.skip()
        else:
            yield (gr.skip(),) * 4

    this.select(read, [language, shown], [shown, column, claims], **QUICK_EVENT)
    changed = {
        "fn": follow,
        "inputs": [*event["inputs"], shown],
        "outputs": [game, shown, column, claims],
    }
    language.change(**event | changed)

    def reach(text: str) -> dict[str, dict[str, Any]]:
        """Which words of an English text still reach the end states of each model's encoder.

        Args:
            text: English, up to 100 words.
        Returns:
            for each model: `words`, and by word `forward` and `backward`: the size of the gradient at the
            end state of that direction, divided by that of the strongest word.
        """
        return answer(service, text)

    endpoint(reach, **MODEL_EVENT)

    def report(name: str) -> dict[str, Any]:
        """A report of what was measured, with its command, versions and hardware.

        Args:
            name: such as "gradient", "recall", "capacity", "cost", "training_cost", "extrapolation",
                "length", "attention", "quality".
        """
        return experiments.content(service, name)

    endpoint(report, queue=False)

    return Tab(
        spoken=spoken,
        parts={"tab": this, "text": text, "carried": carried, "draw": event},
    )


def connect(translate_tab: Tab, lab_tab: Tab) -> None:
    """Play the game when the tab is opened; a visitor's own sentence comes along from Translate, once."""
    source, target = translate_tab.parts["text"], lab_tab.parts

    def carry(typed: str, before: str) -> tuple[Any, str]:
        plain = " ".join(paragraphs(typed or ""))
        if plain == before or not is_own(plain) or is_chinese(plain):
            return gr.skip(), before
        return plain, plain

    target["tab"].select(
        carry, [source, target["carried"]], [target["text"], target["carried"]], **QUICK_EVENT
    ).then(**target["draw"])


def first_text(service: Service) -> str:
    """What the tab opens with; see `FIRST_WORDS`."""
    stages = [stage.english for stage in story.text_of(service).stages]
    return min(stages, key=lambda stage: abs(len(stage.split()) - FIRST_WORDS))


def draw_game(service: Service, source: str | None, language: str) -> Iterator[str]:
    """The pictures of the telephone game, or what is wrong with the text."""
    say = Language.of(language).say
    source = source or ""
    text = " ".join(paragraphs(source))
    if problem := too_long(source, language):
        yield cards.problem(problem)
        return
    if not text:
        yield f'<p class="hint">{escape(say("lab.game_empty"))}</p>'
        return
    if not all(service.loaded(name) for name in MODELS):
        yield _game(telephone.waiting(language))
    hint = ""
    if is_chinese(text):
        hint = f'<p class="hint">{escape(say("translate.language"))}</p>'
    try:
        yield hint + _game(telephone.game(service, text, language))
    except ValueError:
        yield f'<p class="hint">{escape(say("lab.game_long"))}</p>'


def answer(service: Service, text: Any) -> dict[str, dict[str, Any]]:
    """What the endpoint says.

    Raises:
        gr.Error: no text, or one that is not read at once.
    """
    plain = " ".join(paragraphs(checked_text(text)))
    answers = {}
    for name in MODELS:
        try:
            found = service.reach(name, plain)
        except (RuntimeError, ValueError) as error:
            raise gr.Error(str(error), print_exception=False) from error
        answers[name] = {
            "words": list(found.words),
            **{end: found.shares(end).round(4).tolist() for end in ENDS},
        }
    return answers


def _game(pictures: list[str]) -> str:
    return f'<div class="telephones">{"".join(pictures)}</div>'


def _lead(language: str) -> str:
    say = Language.of(language).say
    return (
        f'<p class="lead">{escape(say("lab.lead"))}</p>'
        f'<h2 class="lab-title">{escape(say("lab.game_title"))}</h2>'
        f'<p class="small">{escape(say("lab.game_about"))}</p>'
    )
