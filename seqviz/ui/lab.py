"""The Lab tab: the telephone game on a visitor's sentence, the experiments, the article's claims.

The figures are read when the tab is opened: a visitor who never comes here pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import cards, experiments, live, telephone
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
    game = gr.HTML(elem_id="lab-game")
    column = gr.HTML(elem_id="lab-experiments")
    live.block(language, spoken)
    claims = gr.HTML(elem_id="lab-claims")

    def read(chosen: str) -> tuple[str, str]:
        return experiments.column(service, chosen), experiments.table(service, chosen)

    def play(box: str, passage: str, stage: float, chosen: str) -> Iterator[str]:
        yield from draw_game(service, part(service, box, passage, stage), chosen)

    figures: dict[str, Any] = {
        "fn": read,
        "inputs": language,
        "outputs": [column, claims],
        **QUICK_EVENT,
    }
    event: dict[str, Any] = {
        "fn": play,
        "inputs": [*text.inputs, language],
        "outputs": game,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }

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

    return Tab(spoken, [figures, event])


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
        f'<h2 class="lab-title">{escape(say("lab.game_title"))}</h2>'
        f'<p class="small">{escape(say("lab.game_about"))}</p>'
    )
