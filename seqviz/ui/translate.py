"""The Translate tab: one sentence, four models, side by side."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz import handwritten
from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import cards, curves, growth, lanes, story
from seqviz.ui.growth import MAX_CHARACTERS, paragraphs
from seqviz.ui.lanes import Shown
from seqviz.ui.outcomes import Output
from seqviz.ui.service import MAX_BEAMS, MODELS, Service, counted
from seqviz.ui.tab import DOWNLOAD_JS, MODEL_EVENT, QUICK_EVENT, Spoken, Tab, beam_choices, endpoint

if TYPE_CHECKING:
    from seqviz.translating.result import Translation

_EXAMPLE_JS = """
element.addEventListener('click', event => {
  const button = event.target.closest('[data-example]');
  if (button) document.getElementById('example-' + button.dataset.example)?.click();
});
"""


def tab(service: Service, language: gr.Radio) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    examples = service.examples()
    with gr.Row(elem_classes="ask"):
        text = spoken.make(
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
    message = gr.HTML(elem_id="message", js_on_load=_EXAMPLE_JS)
    answers = gr.HTML(partial(story.opening, service)("en"), elem_id="cards")
    with gr.Row(elem_classes="examples"):
        example_buttons = [
            spoken.make(
                gr.Button,
                {"value": partial(_example_label, example)},
                size="sm",
                elem_id=f"example-{example['id']}",
            )
            for example in examples
        ]
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
        longer = gr.Button(
            Language.of("en").say("translate.longer"), min_width=180, elem_id="longer"
        )
    spoken.make(gr.HTML, {"value": partial(_legend, service)})
    # The opening's "Why?" presses it; see story.js.
    onward = gr.Button("", visible="hidden", elem_id="to-attention")
    file = gr.JSON(visible=False)

    def draw(source: str, num_beams: int, chosen: str) -> Iterator[tuple[str, str]]:
        yield from draw_lanes(service, source, num_beams, chosen)

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": [text, beams, language],
        "outputs": [message, answers],
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    gr.on([button.click, text.submit, beams.input], **event)
    for example, example_button in zip(examples, example_buttons, strict=True):
        example_button.click(_constant(example["english"]), outputs=text, **QUICK_EVENT).then(
            **event
        )
    gr.on(
        [text.change, language.change],
        _longer_label,
        inputs=[text, language],
        outputs=longer,
        trigger_mode="always_last",
        **QUICK_EVENT,
    )

    def make_card(source: str, num_beams: int, chosen: str, request: gr.Request) -> dict[str, str]:
        link = str(request.headers.get("referer", "")).partition("?")[0]
        typed = paragraphs(source or "")
        text = source if typed else story.text_of(service).stages[-1].english
        return share_card(service, text, num_beams, chosen, link)

    send.click(
        make_card,
        [text, beams, language],
        file,
        show_progress="hidden",
        api_visibility="private",
        **MODEL_EVENT,
    ).then(None, inputs=file, js=DOWNLOAD_JS, **QUICK_EVENT)

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

    endpoint(card, **MODEL_EVENT)

    def translate(text: str, beams: int = 1) -> dict[str, dict[str, Any]]:
        """Translate an English text into French with all four models.

        Args:
            text: English, up to 5,000 characters; paragraphs are kept.
            beams: 1 for greedy search, up to 8.
        Returns:
            for each model: `text`, `seconds`, `notes` (a list of English sentences).
        """
        return answer(service, text, beams)

    endpoint(translate, **MODEL_EVENT)

    parts = {"text": text, "longer": longer, "onward": onward}
    return Tab(spoken=spoken, show=[event], parts=parts)


def connect(
    service: Service, translate_tab: Tab, length_tab: Tab, attention_tab: Tab, tabs: gr.Tabs
) -> None:
    """Let buttons lead on with the text: to the Length tab, if it can grow, and to Attention."""
    source, target = translate_tab.parts, length_tab.parts
    source["longer"].click(
        _to_length,
        inputs=[source["text"], target["passage"], target["own"]],
        outputs=[tabs, target["passage"], target["own"]],
        **QUICK_EVENT,
    ).then(**target["fit"]).then(**target["show"])

    def to_attention(typed: str) -> tuple[Any, str]:
        own = " ".join(paragraphs(typed or ""))
        return gr.Tabs(selected="attention"), own or story.part(service)

    source["onward"].click(
        to_attention, source["text"], [tabs, attention_tab.parts["text"]], **QUICK_EVENT
    ).then(**attention_tab.parts["draw"])


# ---------------------------------------------------------------------------------------------
# What goes in


def is_chinese(text: str) -> bool:
    """A third or more of the letters are Chinese characters."""
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and 3 * sum("\u4e00" <= c <= "\u9fff" for c in letters) >= len(letters)


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
    service: Service, source: str | None, num_beams: int, language: str
) -> Iterator[tuple[str, str]]:
    """Message and lanes, which fill as the models finish; the text that opens the page for no text."""
    source = source or ""
    if problem := too_long(source, language):
        yield cards.problem(problem), ""
        return
    texts = paragraphs(source)
    if not texts:
        for drawn in story.draw(service, language):
            yield "", drawn
        return
    text = growth.whole(source)
    outputs: dict[str, list[Output | None]] = {name: [None] for name in MODELS}
    shown = Shown(service, text, language, outputs)
    spent: dict[str, list[Translation]] = {}
    message = _meaning(service, source, language)

    def picture() -> tuple[str, str]:
        more = _more(service, spent, language)
        return message, f'<div aria-live="polite">{lanes.lanes(shown)}</div>{more}'

    yield picture()
    for name in MODELS:
        try:
            translations = service.translate_paragraphs(name, texts, num_beams)
            outputs[name] = [service.judged(name, text.stages[0], translations, num_beams)]
        except (RuntimeError, ValueError) as error:  # shown in the lane as what it says
            shown.failed[name] = str(error)
        else:
            spent[name] = translations
            if any(note.kind == "language" for item in translations for note in item.notes):
                message = _hint(service, source, language)
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
    for name in MODELS:
        try:
            translations = service.translate_paragraphs(name, texts, num_beams)
        except RuntimeError:
            continue
        marks = service.marks(plain, " ".join(item.text for item in translations))
        found[name] = counted(marks)
    if not found:
        return {}
    picture = io.BytesIO()
    figure = figures.share_card(plain, found, link, language=language)
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


def _hint(service: Service, source: str, language: str) -> str:
    """What to say to a text that is not English; in Chinese to Chinese, whatever the page speaks."""
    if not is_chinese(source):
        return f'<p class="hint">{escape(Language.of(language).say("translate.language"))}</p>'
    buttons = "".join(
        f'<button type="button" data-example="{escape(example["id"])}">'
        f'<span lang="en">{escape(example["english"])}</span>'
        f'<span lang="zh-CN">{escape(example["chinese"])}</span></button>'
        for example in service.examples()[:3]
    )
    said = f'<p lang="zh-CN">{escape(Language.of("zh").say("translate.chinese"))}</p>'
    return f'<div class="hint">{said}{buttons}</div>'


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


def _constant(text: str) -> Any:
    def give() -> str:
        return text

    return give


def is_own(text: Any) -> bool:
    """A visitor's own text, within the limit of the page: not empty, and not one of the examples."""
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        return False
    plain = " ".join(text.split())
    return bool(plain) and plain not in _example_texts()


def _can_grow(text: Any) -> bool:
    """A text that the Length tab can take over."""
    return is_own(text) and bool(growth.sentences(text))


@cache
def _example_texts() -> frozenset[str]:
    return frozenset(example["english"] for example in handwritten.texts("examples"))


def _longer_label(text: str, language: str) -> Any:
    key = "translate.longer_own" if _can_grow(text) else "translate.longer"
    return gr.Button(Language.of(language).say(key))


def _to_length(text: str, passage: str, own: str) -> tuple[Any, str, str]:
    if _can_grow(text):
        return gr.Tabs(selected="length"), growth.OWN, text
    return gr.Tabs(selected="length"), passage, own
