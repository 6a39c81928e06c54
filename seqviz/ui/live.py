"""The cost of one layer, measured on the machine that serves the page while the visitor waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import cards
from seqviz.ui.tab import MODEL_EVENT, Spoken, endpoint

SECONDS = 8.0
"""After which no new part of the measurement begins."""


def block(language: gr.Radio, spoken: Spoken) -> None:
    """A button and what it measures."""
    with gr.Column(elem_classes="live", elem_id="live"):
        spoken.make(gr.HTML, {"value": _about})
        button = spoken.make(
            gr.Button, {"value": "lab.live_button"}, elem_id="live-run", min_width=200
        )
        result = gr.HTML(elem_id="live-result")

    button.click(
        run,
        language,
        result,
        show_progress="hidden",
        trigger_mode="once",
        api_visibility="private",
        **MODEL_EVENT,
    )

    def cost() -> dict[str, Any]:
        """Time and memory of one recurrent and one attention layer by length, on the serving machine.

        Takes about ten seconds.

        Returns:
            as `seqviz lab cost` reports it, at small sizes; `legend` says what is what.
        """
        return measure()

    endpoint(cost, **MODEL_EVENT)


def measure() -> dict[str, Any]:
    from seqviz.lab import cost

    return cost.live(SECONDS)


def run(language: str) -> Iterator[str]:
    """That it is being measured, then what came out."""
    said = Language.of(language).say("lab.live_waiting")
    yield f'<p class="waiting" role="status">{escape(said)}<span class="dots"></span></p>'
    try:
        yield markup(measure(), language)
    except (RuntimeError, ValueError) as error:  # no memory, no device
        yield cards.problem(str(error))


def markup(results: dict[str, Any], language: str) -> str:
    """What was measured, in words and as the figure of the report."""
    from seqviz.drawing import figures

    says = str(results["says"][language])
    told = Language.of(language).say(
        "lab.live_told",
        hardware=str(results["hardware"]),
        load=f"{results['load_average']['before']:.1f}",
    )
    picture = figures.inline_svg(figures.lab.cost(results, language=language), says)
    return (
        f'<p class="answer">{escape(says)}</p><figure class="plot">{picture}</figure>'
        f'<p class="small">{escape(told)}</p>'
    )


def _about(language: str) -> str:
    say = Language.of(language).say
    return (
        f"<h2>{escape(say('lab.live_title'))}</h2>"
        f'<p class="small">{escape(say("lab.live_about"))}</p>'
    )
