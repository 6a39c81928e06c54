"""The Length tab: a text that keeps growing, and how each model keeps up.

All stages of a text go to the browser, where the slider alone decides which of them is seen
(``length.js``): a drag asks the server nothing, so no step can queue up or come late.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import cards, lanes, measured, stages
from seqviz.ui.growth import OWN, Growth, GrowthError, Stage
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import BLEU_SETTINGS, CHRF_SETTINGS, MODELS, Service, counted
from seqviz.ui.stages import METRICS
from seqviz.ui.tab import MODEL_EVENT, QUICK_EVENT, Spoken, Tab, endpoint
from seqviz.ui.text import Text, chinese_hint, growing

_STOPS_JS = """
const follow = () => window.seqviz.followSlider();
watch('value', follow);
for (const wait of [0, 100, 500, 1500]) setTimeout(follow, wait);
"""  # a tab that is opened gets its slider first and the slider's value a little later


def tab(service: Service, language: gr.Radio, text: Text) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    spoken.make(gr.HTML, {"value": _lead})
    with gr.Row(elem_classes="actions low"):
        text.passage.render()
        # One of the two is shown; which one, the script says.
        grow = spoken.make(gr.Button, {"value": "length.grow"}, min_width=120, elem_id="grow")
        pause = spoken.make(gr.Button, {"value": "length.pause"}, min_width=120, elem_id="pause")
    message = gr.HTML(elem_id="length-message")
    with gr.Column(elem_id="walk"):
        text.slider.render()
        stops = gr.HTML(elem_id="stops", js_on_load=_STOPS_JS)
    with gr.Row(elem_classes="split"):
        with gr.Column(scale=6, min_width=320):
            answers = gr.HTML(elem_id="stage-cards")
            reference = gr.HTML(elem_id="reference")
        with gr.Column(scale=5, min_width=320):
            _measured(service, spoken)
            path = gr.HTML(elem_id="path")
    details = {"value": partial(measured.details, service)}
    spoken.make(gr.HTML, details, elem_id="measured-details")
    spoken.make(gr.HTML, {"value": _how})
    with gr.Row(elem_classes="actions"):
        onward = spoken.make(
            gr.Button, {"value": "length.onward"}, min_width=180, elem_id="length-onward"
        )
    # These ask the server nothing.
    show_stage = "value => window.seqviz.showStage(value)"
    text.slider.change(None, text.slider, js=show_stage, **QUICK_EVENT)
    grow.click(None, js="() => window.seqviz.grow()", **QUICK_EVENT)
    pause.click(None, js="() => window.seqviz.pause()", **QUICK_EVENT)

    def draw(box: str, passage: str, chosen: str, request: gr.Request) -> Iterator[list[Any]]:
        yield from draw_stages(service, passage, box, chosen, request.session_hash)

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": [text.box, text.passage, language],
        "outputs": [message, stops, answers, reference, path],
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    _endpoint(service)
    return Tab(spoken, [event], {"onward": onward})


def _measured(service: Service, spoken: Spoken) -> None:
    """One measured curve at a time, and the switches that say which."""
    with gr.Row(elem_classes="switches"):
        curve = spoken.make(
            gr.Radio,
            {"label": "length.curve", "choices": _curve_choices},
            value=measured.CURVES[0],
            container=False,
            elem_id="curve",
        )
        metric = spoken.make(
            gr.Radio,
            {"label": "length.metric", "choices": _metric_choices},
            value="bleu",
            container=False,
            elem_id="metric",
        )
    curve.change(None, curve, js="curve => window.seqviz.look({ curve })", **QUICK_EVENT)
    metric.change(None, metric, js="metric => window.seqviz.look({ metric })", **QUICK_EVENT)
    spoken.make(gr.HTML, {"value": partial(measured.panel, service)}, elem_id="measured")


def _endpoint(service: Service) -> None:
    def length(
        passage: str = "", stage: int = 1, text: str = "", language: str = "en"
    ) -> dict[str, Any]:
        """Translate one stage of a growing text with all four models and measure it.

        Args:
            passage: id of a hand-written passage, such as "lost-keys"; empty or "own" for `text`.
            stage: from 1, the shortest.
            text: an own English text of up to 100 words; each stage has one more of its sentences.
            language: of error messages and notes, "en" or "zh".
        Returns:
            `passage`, `stage`, `stages` (their number), `words`, `english`, `reference` (none for an
            own text), `notes`, and `models`: for each model `text`, `words_found` (`found` of
            `judged` content words; none where there is no word table), and for a passage
            `sentence_bleu`, `sentence_chrf`, for an own text `agreement` with its sentences
            translated one by one (sentence chrF). Scores go from 0 to 100.
        """
        return answer(service, passage, stage, text, language)

    endpoint(length, **MODEL_EVENT)


# ---------------------------------------------------------------------------------------------
# Drawing


def draw_stages(
    service: Service, passage_id: Any, own_text: Any, language: str, session: str | None = None
) -> Iterator[list[Any]]:
    """Message, stops, lanes, reference and path, as they become known.

    First what is known, then model by model. A model does all stages in one batch, which takes hardly
    longer than the longest of them. Leaves the page as it is as soon as the same visitor has begun
    something newer.

    Args:
        session: tells visitors apart.
    """
    token = service.begin(session)
    if hint := chinese_hint(service, own_text):
        yield [hint, "", "", "", ""]
        return
    try:
        text = growing(service, own_text, passage_id)
    except GrowthError as error:
        # An empty box is no mistake, only a beginning.
        said = error.say(language)
        empty = isinstance(own_text, str) and not own_text.strip()
        yield [_hint(said) if empty else cards.problem(said), "", "", "", ""]
        return
    shown = Shown(service, text, language, {name: service.known(name, text) for name in MODELS})
    above = [_message(text, language), stages.stops(text, language)]

    def picture() -> list[Any]:
        # Each step has all of it: a skipped part could take back what the browser has not drawn yet.
        return [*above, lanes.lanes(shown), stages.reference(shown), stages.path(shown)]

    yield picture()
    for name in shown.missing:
        try:
            service.outputs(name, text)
        except (RuntimeError, ValueError) as error:  # shown in the lane as what it says
            shown.failed[name] = str(error)
        if not service.is_latest(session, token):
            yield [gr.skip()] * 5
            return
        shown.outputs = {one: service.known(one, text) for one in MODELS}
        yield picture()


def _message(text: Growth, language: str) -> str:
    """What to know about an own text: how it was cut, and what is measured of it."""
    if text.id != OWN:
        return ""
    say = Language.of(language).say
    hints = [say(key, **values) for key, values in text.notes]
    return "".join(map(_hint, hints))


# ---------------------------------------------------------------------------------------------
# The endpoint


def answer(
    service: Service, passage_id: Any, stage: Any, own_text: Any = "", language: Any = "en"
) -> dict[str, Any]:
    language = language if language in LANGUAGES else "en"
    is_own = passage_id in ("", OWN) or (own_text is not None and own_text != "")
    try:
        text = growing(service, own_text, OWN if is_own else passage_id)
        count = len(text.stages)
        if isinstance(stage, bool) or not isinstance(stage, int) or not 1 <= stage <= count:
            raise GrowthError("length.stage", count=count, got=f"{stage!r:.40}")
    except GrowthError as error:
        raise gr.Error(error.say(language), print_exception=False) from error
    shown = text.stages[stage - 1]
    answers: dict[str, dict[str, Any]] = {}
    for name in MODELS:
        try:
            output = service.output(name, shown)
        except RuntimeError as error:
            raise gr.Error(str(error), print_exception=False) from error
        found = counted(output.marks)
        answers[name] = {
            "text": output.text,
            "words_found": dict(zip(("found", "judged"), found, strict=True)) if found else None,
            **_scores(output, shown),
        }
    return {
        "passage": text.id,
        "stage": stage,
        "stages": count,
        "words": len(shown.english.split()),
        "english": shown.english,
        "reference": shown.french,
        "notes": [Language.of(language).say(key, **values) for key, values in text.notes],
        "models": answers,
    }


def _scores(output: Output, stage: Stage) -> dict[str, float]:
    """Against the reference or, of an own text, against its sentences translated one by one."""
    from seqviz.scores import sentence_scores

    if stage.french is not None:
        scores = sentence_scores(output.text, stage.french)
        return {f"sentence_{metric}": round(scores[metric], 2) for metric in METRICS}
    if output.apart is None:
        return {}
    alike = output.text == output.apart
    agreement = 100.0 if alike else sentence_scores(output.text, output.apart)["chrf"]
    return {"agreement": round(agreement, 2)}


# ---------------------------------------------------------------------------------------------
# Texts of the page


def _how(language: str) -> str:
    say = Language.of(language).say
    text = say(
        "length.how_text",
        bleu=BLEU_SETTINGS,
        chrf=CHRF_SETTINGS,
        version=version("sacrebleu"),
    )
    about = say("length.bars_about")
    return (
        f"<details><summary>{escape(say('length.how'))}</summary>"
        f"<p>{escape(text)}</p><p>{escape(about)}</p></details>"
    )


def _lead(language: str) -> str:
    return f'<p class="lead">{escape(Language.of(language).say("length.lead"))}</p>'


def _hint(said: str) -> str:
    return f'<p class="hint">{escape(said)}</p>'


def _curve_choices(language: str) -> list[tuple[str, str]]:
    say = Language.of(language).within("length").say
    return [(say(curve), curve) for curve in measured.CURVES]


def _metric_choices(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"length.corpus_{metric}"), metric) for metric in METRICS]
