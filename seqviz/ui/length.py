"""The Length tab: a text that keeps growing, and how each model keeps up.

All stages of a text go to the browser, where the slider alone decides which of them is seen
(``length.js``): a drag asks the server nothing, so no step can queue up or come late.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from typing import Any

import gradio as gr

from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import cards, growth, lanes, measured, stages, story
from seqviz.ui.growth import MAX_WORDS, OWN, Growth, GrowthError, Stage
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import BLEU_SETTINGS, CHRF_SETTINGS, MODELS, Service, counted
from seqviz.ui.stages import METRICS
from seqviz.ui.tab import MODEL_EVENT, QUICK_EVENT, Spoken, Tab, endpoint
from seqviz.ui.translate import is_chinese

FIRST_STAGE = 4

_STOPS_JS = """
const follow = () => window.seqviz.followSlider();
watch('value', follow);
for (const wait of [0, 100, 500, 1500]) setTimeout(follow, wait);
"""  # a tab that is opened gets its slider first and the slider's value a little later


def tab(service: Service, language: gr.Radio) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    first = story.text_of(service)
    spoken = Spoken()
    spoken.make(gr.HTML, {"value": _lead})
    with gr.Row(elem_classes="actions low"):
        passage = spoken.make(
            gr.Dropdown,
            {"label": "length.passage", "choices": partial(_passage_choices, service, first.id)},
            value=first.id,
            filterable=False,
            min_width=220,
            elem_id="passage",
        )
        # One of the two is shown; which one, the script says.
        grow = spoken.make(gr.Button, {"value": "length.grow"}, min_width=120, elem_id="grow")
        pause = spoken.make(gr.Button, {"value": "length.pause"}, min_width=120, elem_id="pause")
    with gr.Row(elem_classes="actions low", visible=False, elem_id="own-row") as own_row:
        own = spoken.make(
            gr.Textbox,
            {"label": "length.own_box", "placeholder": _own_placeholder},
            value="",
            lines=2,
            max_lines=8,
            elem_id="own",
        )
        own_button = spoken.make(
            gr.Button,
            {"value": "length.own_button"},
            variant="primary",
            min_width=100,
            elem_id="own-show",
        )
    picks = gr.Number(0, visible="hidden")  # how often a person has picked a text
    message = gr.HTML(elem_id="length-message")
    with gr.Column(elem_id="walk"):
        slider = spoken.make(
            gr.Slider,
            {"label": "length.slider"},
            minimum=1,
            maximum=len(first.stages),
            value=FIRST_STAGE,
            step=1,
            buttons=[],
            elem_id="length-slider",
        )
        stops = gr.HTML(elem_id="stops", js_on_load=_STOPS_JS)
    with gr.Row(elem_classes="split"):
        with gr.Column(scale=6, min_width=320):
            answers = gr.HTML(elem_id="stage-cards")
            reference = gr.HTML(elem_id="reference")
        with gr.Column(scale=5, min_width=320):
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
            spoken.make(gr.HTML, {"value": partial(measured.panel, service)}, elem_id="measured")
            path = gr.HTML(elem_id="path")
    details = {"value": partial(measured.details, service)}
    spoken.make(gr.HTML, details, elem_id="measured-details")
    spoken.make(gr.HTML, {"value": _how})
    with gr.Row(elem_classes="actions"):
        onward = spoken.make(
            gr.Button, {"value": "length.onward"}, min_width=180, elem_id="length-onward"
        )

    def draw(
        passage_id: str, own_text: str, chosen: str, request: gr.Request
    ) -> Iterator[list[Any]]:
        yield from draw_stages(service, passage_id, own_text, chosen, request.session_hash)

    def fit(passage_id: str, own_text: str, stage: float) -> tuple[Any, Any]:
        return _fit(service, passage_id, own_text, stage), gr.Row(visible=passage_id == OWN)

    inputs = [passage, own, language]
    outputs = [message, stops, answers, reference, path]
    show_event: dict[str, Any] = {
        "fn": draw,
        "inputs": inputs,
        "outputs": outputs,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    fit_event: dict[str, Any] = {
        "fn": fit,
        "inputs": [passage, own, slider],
        "outputs": [slider, own_row],
        "trigger_mode": "always_last",
        **QUICK_EVENT,
    }

    # A dropdown tells of one pick twice, and again each time it is left: the script counts the picks.
    passage.input(
        None,
        passage,
        picks,
        js=f"passage => window.seqviz.pick(passage, {json.dumps(first.id)})",
        **QUICK_EVENT,
    )
    passage.change(None, passage, js="passage => window.seqviz.forgetPick(passage)", **QUICK_EVENT)
    chosen_text = gr.on([picks.change, own_button.click, own.submit], **fit_event)
    chosen_text.then(**show_event)
    # These ask the server nothing.
    slider.change(None, slider, js="value => window.seqviz.showStage(value)", **QUICK_EVENT)
    curve.change(None, curve, js="curve => window.seqviz.look({ curve })", **QUICK_EVENT)
    metric.change(None, metric, js="metric => window.seqviz.look({ metric })", **QUICK_EVENT)
    grow.click(None, js="() => window.seqviz.grow()", **QUICK_EVENT)
    pause.click(None, js="() => window.seqviz.pause()", **QUICK_EVENT)

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

    return Tab(
        spoken=spoken,
        show=[show_event],
        parts={
            "passage": passage,
            "own": own,
            "own_row": own_row,
            "slider": slider,
            "onward": onward,
            "fit": fit_event,
            "show": show_event,
        },
    )


def connect(service: Service, length_tab: Tab, attention_tab: Tab, tabs: gr.Tabs) -> None:
    """Let the last button lead to the Attention tab, with the text of the stage that is seen."""

    def go(passage_id: str, own_text: str, stage: float) -> tuple[Any, Any]:
        try:
            text = _text(service, passage_id, own_text)
        except GrowthError:
            return gr.Tabs(selected="attention"), gr.skip()
        return gr.Tabs(selected="attention"), text.stages[text.clamp(stage)].english

    source, target = length_tab.parts, attention_tab.parts
    source["onward"].click(
        go,
        [source["passage"], source["own"], source["slider"]],
        [tabs, target["text"]],
        **QUICK_EVENT,
    ).then(**target["draw"])


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
    try:
        text = _text(service, passage_id, own_text)
    except GrowthError as error:
        # An empty box is no mistake, only a beginning.
        said = error.say(language)
        empty = isinstance(own_text, str) and not own_text.strip()
        yield [_hint(said) if empty else cards.problem(said), "", "", "", ""]
        return
    shown = Shown(service, text, language, {name: service.known(name, text) for name in MODELS})
    above = [_message(text, own_text, language), stages.stops(text, language)]

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


def _text(service: Service, passage_id: Any, own_text: Any) -> Growth:
    """The growing text that a visitor chose.

    Raises:
        GrowthError: no such passage, or an own text that cannot grow.
    """
    if passage_id == OWN:
        return growth.own(own_text)
    try:
        return service.growth(passage_id)
    except KeyError:
        known = ", ".join(text["id"] for text in (*service.everyday(), *service.passages()))
        raise GrowthError("length.unknown", known=known, got=f"{passage_id!r:.40}") from None


def restore(
    service: Service, passage_id: str | None, own_text: str | None, stage: int | None
) -> list[Any]:
    """Updates of passage, own text, its row and slider for a link that names them."""
    if passage_id is None:
        return [gr.skip()] * 4
    own_text = own_text if passage_id == OWN and own_text else ""
    try:
        text = _text(service, passage_id, own_text)
    except GrowthError:  # an own text that cannot grow: the tab says why
        slider = gr.skip()
    else:
        count = len(text.stages)
        value = text.clamp(stage or FIRST_STAGE) + 1
        slider = gr.Slider(maximum=max(2, count), value=value, interactive=count > 1)
    return [passage_id, own_text, gr.Row(visible=passage_id == OWN), slider]


def _fit(service: Service, passage_id: Any, own_text: Any, stage: Any) -> Any:
    """The slider with as many stops as the text has stages, and as near as can be to where it was."""
    try:
        text = _text(service, passage_id, own_text)
    except GrowthError:
        return gr.skip()
    count = len(text.stages)
    # A slider needs two ends; the script shows a single stage at both. An own text is walked from its
    # first sentence on.
    value = 1 if text.id == OWN else text.clamp(stage) + 1
    return gr.Slider(maximum=max(2, count), value=value, interactive=count > 1)


def _message(text: Growth, own_text: Any, language: str) -> str:
    """What to know about an own text: how it was cut, and what is measured of it."""
    if text.id != OWN:
        return ""
    say = Language.of(language).say
    hints = [say(key, **values) for key, values in text.notes]
    if is_chinese(own_text):
        hints.insert(0, say("translate.language"))
    return "".join(map(_hint, hints))


# ---------------------------------------------------------------------------------------------
# The endpoint


def answer(
    service: Service, passage_id: Any, stage: Any, own_text: Any = "", language: Any = "en"
) -> dict[str, Any]:
    language = language if language in LANGUAGES else "en"
    is_own = passage_id in ("", OWN) or (own_text is not None and own_text != "")
    try:
        text = _text(service, OWN if is_own else passage_id, own_text)
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


def _own_placeholder(language: str) -> str:
    return Language.of(language).say("length.own_placeholder", limit=MAX_WORDS)


def _lead(language: str) -> str:
    return f'<p class="lead">{escape(Language.of(language).say("length.lead"))}</p>'


def _hint(said: str) -> str:
    return f'<p class="hint">{escape(said)}</p>'


def _passage_choices(service: Service, first: str, language: str) -> list[tuple[str, str]]:
    """The text that opens the page, the other everyday texts, the passages, one's own."""
    texts = sorted(service.everyday(), key=lambda text: text["id"] != first)
    choices = [(text["title"][language], text["id"]) for text in (*texts, *service.passages())]
    return [*choices, (Language.of(language).say("length.own"), OWN)]


def _curve_choices(language: str) -> list[tuple[str, str]]:
    say = Language.of(language).within("length").say
    return [(say(curve), curve) for curve in measured.CURVES]


def _metric_choices(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"length.corpus_{metric}"), metric) for metric in METRICS]
