"""The Lab tab: the article's claims as cards that turn, and a card for each experiment.

A card's figure is read when it is opened, and the telephone game is played then: a visitor who never opens
it pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.lab import EXPERIMENTS
from seqviz.language import Language
from seqviz.ui import cards, deck, experiments, live, telephone
from seqviz.ui.growth import paragraphs
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import MODEL_EVENT, QUICK_EVENT, Spoken, Tab, endpoint
from seqviz.ui.text import Text, chinese_hint, part
from seqviz.ui.translate import checked_text, too_long

ENDS = ("forward", "backward")
"""End states that the endpoint tells of."""


def tab(service: Service, language: gr.Radio, text: Text) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    spoken.make(gr.HTML, {"value": _lead})
    claims = gr.HTML(elem_id="lab-claims")
    spoken.make(gr.HTML, {"value": _title})
    with gr.Column(elem_id="lab-experiments"):
        fronts = [_card(service, name, language, text, spoken) for name in EXPERIMENTS]
    folded = gr.HTML(elem_id="lab-table")

    def read(chosen: str) -> list[str]:
        cards = [experiments.front(service, name, chosen) for name in EXPERIMENTS]
        return [deck.deck(service, chosen), *cards, deck.table(service, chosen)]

    shown: dict[str, Any] = {
        "fn": read,
        "inputs": language,
        "outputs": [claims, *fronts, folded],
        **QUICK_EVENT,
    }
    _endpoints(service)
    return Tab(spoken, [shown])


def _card(service: Service, name: str, language: gr.Radio, text: Text, spoken: Spoken) -> gr.HTML:
    """An experiment's card: its front, and what is read when lab.js opens it.

    Returns:
        the front.
    """
    with gr.Column(elem_id=f"lab-{name}", elem_classes="lab-card"):
        front = gr.HTML()
        with gr.Column(elem_id=f"lab-body-{name}", elem_classes="lab-body"):
            game = None
            if name == "gradient":
                spoken.make(gr.HTML, {"value": _game_title})
                game = gr.HTML(elem_id="lab-game")
            inside = gr.HTML()
            if name == "cost":
                live.block(language, spoken)
        # The script presses it.
        opened = gr.Button("", visible="hidden", elem_id=f"lab-open-{name}").click(
            partial(experiments.body, service, name), language, inside, **QUICK_EVENT
        )
    if game is not None:

        def play(box: str, passage: str, stage: float, chosen: str) -> Iterator[str]:
            yield from draw_game(service, part(service, box, passage, stage), chosen)

        opened.then(
            play,
            [*text.inputs, language],
            game,
            show_progress="hidden",
            trigger_mode="always_last",
            api_visibility="private",
            **MODEL_EVENT,
        )
    return front


def _endpoints(service: Service) -> None:
    """What a program can ask."""

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


def draw_game(service: Service, source: str | None, language: str) -> Iterator[str]:
    """The pictures of the telephone game, or what is wrong with the text."""
    say = Language.of(language).say
    source = source or ""
    text = " ".join(paragraphs(source))
    if problem := too_long(source, language):
        yield cards.problem(problem)
        return
    if hint := chinese_hint(service, text):
        yield hint
        return
    if not text:
        yield f'<p class="hint">{escape(say("lab.game_empty"))}</p>'
        return
    if not all(service.loaded(name) for name in MODELS):
        yield _game(telephone.waiting(language))
    try:
        yield _game(telephone.game(service, text, language))
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
        f'<h2 class="lab-title">{escape(say("lab.claims_title"))}</h2>'
    )


def _title(language: str) -> str:
    said = Language.of(language).say("lab.experiments_title")
    return f'<h2 class="lab-title">{escape(said)}</h2>'


def _game_title(language: str) -> str:
    say = Language.of(language).say
    return (
        f'<h4 class="lab-title">{escape(say("lab.game_title"))}</h4>'
        f'<p class="small">{escape(say("lab.game_about"))}</p>'
    )
