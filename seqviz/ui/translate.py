"""The Translate tab: one sentence, four models, side by side."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz import meaning
from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import cards, curves, growth, lanes, story
from seqviz.ui.growth import MAX_CHARACTERS, paragraphs
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import MAX_BEAMS, MODELS, Service, counted
from seqviz.ui.tab import MODEL_EVENT, QUICK_EVENT, SHARE_JS, Spoken, Tab, beam_choices, endpoint
from seqviz.ui.text import Text, chinese_hint, language_hint

if TYPE_CHECKING:
    from seqviz.translating.result import Translation


def tab(service: Service, language: gr.Radio, text: Text) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    message = gr.HTML(elem_id="message")
    answers = gr.HTML(story.opening(service, "en"), elem_id="cards")
    examples = _examples(service, spoken)
    with gr.Row(elem_classes="actions"):
        beams = spoken.make(
            gr.Radio,
            {"label": "translate.beams", "choices": beam_choices},
            value=1,
            container=False,
            min_width=200,
            elem_id="beams",
        )
        send = spoken.make(
            gr.Button, {"value": "card.send"}, size="sm", min_width=160, elem_id="send"
        )
        longer = spoken.make(
            gr.Button, {"value": "translate.longer"}, min_width=180, elem_id="longer"
        )
    spoken.make(gr.HTML, {"value": partial(_legend, service)})
    file = gr.JSON(visible=False)

    def draw(box: str, passage: str, num_beams: int, chosen: str) -> Iterator[tuple[str, str]]:
        yield from draw_lanes(service, box, num_beams, chosen, passage)

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": [text.box, text.passage, beams, language],
        "outputs": [message, answers],
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    beams.input(**event)

    def make_card(
        box: str, passage: str, num_beams: int, chosen: str, request: gr.Request
    ) -> dict[str, str]:
        link = str(request.headers.get("referer", "")).partition("?")[0]
        english = (
            box if paragraphs(box or "") else story.text_of(service, passage).stages[-1].english
        )
        return share_card(service, english, num_beams, chosen, link)

    send.click(
        make_card,
        [text.box, text.passage, beams, language],
        file,
        show_progress="hidden",
        api_visibility="private",
        **MODEL_EVENT,
    ).then(None, inputs=file, js=SHARE_JS, **QUICK_EVENT)
    _endpoints(service)
    return Tab(spoken, [event], {"answers": answers, "examples": examples, "longer": longer})


def _examples(service: Service, spoken: Spoken) -> dict[str, gr.Button]:
    """A row of buttons, by the text that each of them puts into the box."""
    with gr.Row(elem_classes="examples"):
        return {
            example["english"]: spoken.make(
                gr.Button,
                {"value": partial(_example_label, example)},
                size="sm",
                elem_id=f"example-{example['id']}",
            )
            for example in service.examples()
        }


def _endpoints(service: Service) -> None:
    def card(text: str, beams: int = 1, language: str = "en") -> dict[str, str]:
        """A picture to send on: the text, and how many of its words each model's output has.

        Args:
            text: English, up to 5,000 characters.
            beams: 1 for greedy search, up to 8.
            language: of the card, "en" or "zh".
        Returns:
            `name` of the file, its `type`, and `data`, a PNG in base64.
        """
        if not paragraphs(checked_text(text)):
            raise gr.Error("expected a text with at least one word", print_exception=False)
        check_beams(beams)
        return share_card(service, text, beams, language if language in LANGUAGES else "en")

    def translate(text: str, beams: int = 1) -> dict[str, dict[str, Any]]:
        """Translate an English text into French with all four models.

        Args:
            text: English, up to 5,000 characters; paragraphs are kept.
            beams: 1 for greedy search, up to 8.
        Returns:
            for each model: `text`, `seconds`, `notes` (a list of English sentences).
        """
        return answer(service, text, beams)

    endpoint(card, **MODEL_EVENT)
    endpoint(translate, **MODEL_EVENT)


# ---------------------------------------------------------------------------------------------
# What goes in


def checked_text(text: Any) -> str:
    """What an endpoint takes as text.

    Raises:
        gr.Error: no text, or one over the limit of the page.
    """
    if not isinstance(text, str):
        raise gr.Error(f"expected text, got {type(text).__name__}", print_exception=False)
    if problem := too_long(text, "en"):
        raise gr.Error(problem, print_exception=False)
    return text


def check_beams(beams: Any) -> None:
    """Raise a gr.Error if an endpoint was given no number of beams."""
    if isinstance(beams, bool) or not isinstance(beams, int) or not 1 <= beams <= MAX_BEAMS:
        raise gr.Error(
            f"expected beams to be a whole number from 1 to {MAX_BEAMS}, got {beams!r:.40}",
            print_exception=False,
        )


def too_long(text: str, language: str) -> str | None:
    """What to say to a text over the limit of the page."""
    if len(text) <= MAX_CHARACTERS:
        return None
    return Language.of(language).say(
        "translate.too_long", number=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}"
    )


# ---------------------------------------------------------------------------------------------
# What comes out


def draw_lanes(
    service: Service, source: str | None, num_beams: int, language: str, passage: str = ""
) -> Iterator[tuple[str, str]]:
    """Message and lanes, which fill as the models finish; a text written by hand for no text."""
    source = source or ""
    if problem := too_long(source, language):
        yield cards.problem(problem), ""
        return
    if hint := chinese_hint(service, source):
        yield hint, ""
        return
    texts = paragraphs(source)
    if not texts:
        for drawn in story.draw(service, language, passage):
            yield "", drawn
        return
    text = growth.whole(source)
    outputs: dict[str, list[Output | None]] = {name: [None] for name in MODELS}
    shown = Shown(service, text, language, outputs)
    spent: dict[str, list[Translation]] = {}
    message = _meaning(service, source, language)

    def picture() -> tuple[str, str]:
        more = _more(service, spent, language)
        return message, f'<div aria-live="polite" data-walk="none">{lanes.lanes(shown)}</div>{more}'

    yield picture()
    for name in MODELS:
        try:
            translations = service.translate_paragraphs(name, texts, num_beams)
            outputs[name] = [service.judged(name, text.stages[0], translations, num_beams)]
        except (RuntimeError, ValueError) as error:  # shown in the lane as what it says
            shown.failed[name] = str(error)
        else:
            spent[name] = translations
            told = [note for item in translations for note in item.notes]
            message = _meaning(service, source, language) + language_hint(told, language)
        yield picture()


def share_card(
    service: Service, source: str | None, num_beams: int, language: str, link: str = ""
) -> dict[str, str]:
    """The card of a text as a file for `DOWNLOAD_JS`; empty where there is nothing to show.

    Models that could not be loaded are left out.
    """
    texts = paragraphs(source or "")
    if not texts or too_long(source or "", language):
        return {}
    from seqviz.drawing import figures

    plain = " ".join(" ".join(texts).split())
    found: dict[str, tuple[int, int] | None] = {}
    outputs: dict[str, tuple[str, str]] = {}
    for name in MODELS:
        try:
            translations = service.translate_paragraphs(name, texts, num_beams)
        except RuntimeError:
            continue
        written = " ".join(item.text for item in translations)
        found[name] = counted(service.marks(plain, written))
        outputs[name] = (written, f"≈ {meaning.line(written, language)}")
    if not found:
        return {}
    picture = io.BytesIO()
    figure = figures.share_card(plain, found, link, outputs=outputs, language=language)
    figures.save(figure, picture, "png", dpi=100)
    data = base64.b64encode(picture.getvalue()).decode()
    return {"name": "seqviz.png", "type": "image/png", "data": data}


def answer(service: Service, text: Any, beams: Any) -> dict[str, dict[str, Any]]:
    texts = paragraphs(checked_text(text))
    check_beams(beams)
    answers: dict[str, dict[str, Any]] = {}
    for name in MODELS:
        try:
            translations = service.translate_paragraphs(name, texts or [""], beams)
        except RuntimeError as error:
            raise gr.Error(str(error), print_exception=False) from error
        notes = [note.message for item in translations for note in item.notes]
        answers[name] = {
            "text": "\n\n".join(item.text for item in translations),
            "seconds": round(sum(item.seconds for item in translations), 4),
            "notes": list(dict.fromkeys(notes)),
        }
    return answers


def _more(service: Service, spent: Mapping[str, list[Translation]], language: str) -> str:
    """Time, training and score of each model, folded."""
    rows = [
        f"<li>{curves.key(name)}<b>{escape(Language.of(language).say(f'model.{name}'))}</b> "
        f"{cards.speed(translations, language)} · {cards.budget(service.training(name), language)}</li>"
        for name, translations in spent.items()
    ]
    if not rows:
        return ""
    said = escape(Language.of(language).say("translate.more"))
    return f'<details><summary>{said}</summary><ul class="spent">{"".join(rows)}</ul></details>'


def _meaning(service: Service, source: str, language: str) -> str:
    """The Chinese meaning of an example, on the Chinese page."""
    if language != "zh":
        return ""
    plain = " ".join(source.split())
    known = {item["english"]: item["chinese"] for item in service.examples()}
    for passage in service.passages():
        known.update({stage["english"]: stage["chinese"] for stage in passage["stages"]})
    if plain not in known:
        return ""
    return f'<p class="gloss">{escape(Language.of(language).say("translate.gloss", text=known[plain]))}</p>'


def _legend(service: Service, language: str) -> str:
    say = Language.of(language).say
    found = [service.training(name).get("dev_bleu") or {} for name in MODELS]
    scores = [score for score in found if score.get("signature")]
    if scores:
        bleu = say(
            "translate.numbers_bleu",
            sentences=f"{scores[0].get('sentences', 0):,}",
            signature=scores[0]["signature"],
        )
    else:
        bleu = say("translate.numbers_bleu_unknown")
    return (
        f"<details><summary>{escape(say('translate.numbers'))}</summary>"
        f"<p>{escape(say('translate.numbers_text', bleu=bleu))}</p></details>"
    )


def _example_label(example: dict[str, Any], language: str) -> str:
    """The Chinese meaning, or the first words of the English."""
    if language == "zh":
        return example["chinese"]
    return " ".join(example["english"].split()[:5]).rstrip(",") + " …"
