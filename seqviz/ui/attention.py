"""The Attention tab: where a model looks while it writes, or the one vector where it cannot look.

At the top stands one picture with one switch (`seqviz.ui.lines`). Everything else is folded: matrices,
steps and files (`seqviz.ui.matrices`), and what there is to choose (`seqviz.ui.choice`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz.constants import MODELS
from seqviz.drawing.export import FORMATS, Panel, caution
from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.maps import READINGS
from seqviz.ui import cards, choice, lines, matrices, stepping
from seqviz.ui.choice import FIRST, OPENS_WITH, Choice, looks_back
from seqviz.ui.service import Service
from seqviz.ui.tab import DOWNLOAD_JS, MODEL_EVENT, QUICK_EVENT, Spoken, Tab, beam_choices, endpoint
from seqviz.ui.text import Text, chinese_hint, language_hint
from seqviz.ui.text import part as part_of
from seqviz.ui.translate import check_beams, checked_text, too_long

if TYPE_CHECKING:
    from seqviz.translating.result import Translation

# The small pictures are markup: what was clicked is told to the server as a click on their component.
_HEADS_JS = """
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-layer]');
  if (button) trigger('click', { layer: button.dataset.layer, head: button.dataset.head });
});
"""

Values = Mapping[str, Any]
"""What components say, or shall say, by name."""


def tab(service: Service, language: gr.Radio, text: Text) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    made = _picture(spoken)
    with spoken.make(
        gr.Accordion, {"label": "attention.more"}, open=False, elem_id="attention-more"
    ):
        made |= _matrix(spoken)
        steps = stepping.make("attention-steps")
        with gr.Row(elem_classes="choices"):
            made |= _of_matrix(spoken)
            made |= _of_drawing(spoken)
        buttons = _downloads(spoken)
    with gr.Row(elem_classes="actions"):
        onward = spoken.make(
            gr.Button, {"value": "attention.onward"}, min_width=180, elem_id="attention-onward"
        )
    made |= {"steps": steps.panel, "start": steps.start, "language": language}
    made["other"] = gr.State("")  # the model on the other side of the switch
    made["shown"] = gr.State("")  # the text on the screen, whatever has been typed since
    event, again = _drawing(service, text, made)
    _react(made, event, steps.chosen, again)
    _hand_out(service, made, buttons)
    _offer(service)
    return Tab(spoken, [event], {"onward": onward, **made})


# ---------------------------------------------------------------------------------------------
# Components, by name


def _picture(spoken: Spoken) -> dict[str, Any]:
    look = spoken.make(
        gr.Checkbox,
        {"label": "attention.lines.look"},
        value=looks_back(OPENS_WITH),
        elem_id="attention-look",
        container=False,
    )
    part = spoken.make(
        gr.Radio, {"label": "attention.part"}, choices=[], visible=False, container=False
    )
    message = gr.HTML(elem_id="attention-message")
    # Gradio's own style of buttons and images would spoil the pictures.
    picture = gr.HTML(
        elem_id="attention-lines", js_on_load=lines.REFRESH_JS, apply_default_css=False
    )
    return {"look": look, "part": part, "message": message, "lines": picture}


def _matrix(spoken: Spoken) -> dict[str, Any]:
    with gr.Row(elem_classes="actions"):
        model = spoken.make(
            gr.Radio,
            {"label": "attention.model", "choices": choice.models},
            value=OPENS_WITH,
            elem_id="attention-model",
            container=False,
        )
    view = spoken.make(
        gr.Radio,
        {"label": "attention.view", "choices": partial(choice.views, OPENS_WITH)},
        value="attention",
        elem_id="attention-view",
        container=False,
    )
    picture = gr.HTML(elem_id="attention-map", js_on_load=_HEADS_JS, apply_default_css=False)
    return {"model": model, "view": view, "picture": picture, "caution": gr.HTML()}


def _radios(spoken: Spoken, **rows: tuple[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """A column of radios.

    Args:
        rows: by name the value, what a radio says, and its other arguments.
    """
    with gr.Column(min_width=280):
        return {
            name: spoken.make(gr.Radio, says, value=value, elem_id=f"attention-{name}", **others)
            for name, (value, says, others) in rows.items()
        }


def _of_matrix(spoken: Spoken) -> dict[str, Any]:
    # How many layers and heads there are the model says; a new language must not take them back.
    layers, heads = choice.layers(1, "en", best=True), choice.numbers(1, "en")
    return _radios(
        spoken,
        kind=("cross", {"label": "attention.kind", "choices": choice.kinds}, {}),
        layer=("best", {"label": "attention.layer"}, {"choices": layers}),
        head=("", {"label": "attention.head"}, {"choices": heads}),
        reading=(READINGS[0], {"label": "attention.reading", "choices": choice.readings}, {}),
    )


def _of_drawing(spoken: Spoken) -> dict[str, Any]:
    return _radios(
        spoken,
        second=("", {"label": "attention.second", "choices": choice.seconds}, {}),
        unit=("words", {"label": "attention.unit", "choices": choice.units}, {}),
        specials=(False, {"label": "attention.specials", "choices": choice.specials}, {}),
        scale=(1.0, {"label": "attention.scale", "choices": choice.scales}, {}),
        beams=(1, {"label": "translate.beams", "choices": beam_choices}, {}),
    )


def _downloads(spoken: Spoken) -> dict[str, gr.Button]:
    spoken.make(gr.HTML, {"value": _about_download})
    with gr.Row(elem_classes="actions", elem_id="attention-download"):
        return {
            name: gr.Button(name.upper(), size="sm", min_width=64, elem_id=f"attention-{name}")
            for name in FORMATS
        }


def _about_download(language: str) -> str:
    say = Language.of(language).say
    said = f"<b>{escape(say('attention.download'))}</b> {escape(say('attention.download_about'))}"
    return f'<p class="small">{said}</p>'


# ---------------------------------------------------------------------------------------------
# Events

OPTIONS = ("model", "second", "view", "kind", "layer", "head", "reading")
OPTIONS += ("unit", "specials", "beams", "scale", "part")
"""Names of the components that say how to draw."""
DRAWN = ("message", "lines", "picture", "caution", "steps", "look", "other", "shown")
DRAWN += ("view", "kind", "layer", "head", "reading", "part")
"""Names of the components that a drawing changes."""


def _drawing(
    service: Service, text: Text, made: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events that draw: the page's text, and once more the text that is on the screen."""
    known = {name: made[name] for name in (*OPTIONS, "look", "other", "start", "language")}

    def drawn(values: Values) -> Iterator[dict[Any, Any]]:
        chosen = Choice.of(values)
        for state in draw(service, chosen, values["language"], values["look"]):
            yield {made[name]: value for name, value in state.items()} | {
                made["shown"]: chosen.text
            }

    def draw_text(said: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
        whole = part_of(service, *(said[one] for one in text.inputs))
        yield from drawn({name: said[one] for name, one in known.items()} | {"text": whole})

    def draw_shown(said: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
        same = said[made["shown"]]
        yield from drawn({name: said[one] for name, one in known.items()} | {"text": same})

    event: dict[str, Any] = {
        "fn": draw_text,
        "inputs": {*text.inputs, *known.values()},
        "outputs": [made[name] for name in DRAWN],
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    return event, event | {"fn": draw_shown, "inputs": {made["shown"], *known.values()}}


def _react(made: dict[str, Any], event: dict[str, Any], chosen: Any, again: dict[str, Any]) -> None:
    """Draw when something is chosen.

    Args:
        event, again: from `_drawing`.
        chosen: the event after which another piece was chosen.
    """
    gr.on([made[name].input for name in OPTIONS], **event)
    made["picture"].click(
        choice.clicked_head, outputs=[made["layer"], made["head"]], **QUICK_EVENT
    ).then(**event)
    chosen.then(**again)
    look = made["look"]
    look.change(None, look, js=lines.TURN_JS, **QUICK_EVENT)
    sides = [made["model"], made["other"]]
    look.input(turned, [look, *sides], sides, trigger_mode="always_last", **QUICK_EVENT).then(
        **event
    )


def turned(look: Any, model: Any, other: Any) -> tuple[Any, Any]:
    """Model and other model after the switch was turned to `look`."""
    chosen = Choice.of({"model": model, "other": other})
    if looks_back(chosen.model) == bool(look):
        return gr.skip(), gr.skip()
    return chosen.counterpart, chosen.model


def _hand_out(service: Service, made: dict[str, Any], buttons: dict[str, gr.Button]) -> None:
    """Files of what is on the screen."""
    file = gr.JSON(visible=False)
    known = {name: made[name] for name in (*OPTIONS, "start", "language")} | {"text": made["shown"]}

    def make_file(format: str, said: dict[Any, Any]) -> dict[str, str] | None:
        values = {name: said[one] for name, one in known.items()}
        return matrices.file(service, Choice.of(values), values["language"], format)

    for name, button in buttons.items():
        button.click(
            partial(make_file, name),
            inputs=set(known.values()),
            outputs=file,
            show_progress="hidden",
            api_visibility="private",
            **MODEL_EVENT,
        ).then(None, inputs=file, js=DOWNLOAD_JS, **QUICK_EVENT)


# ---------------------------------------------------------------------------------------------
# What comes out


def draw(
    service: Service, chosen: Choice, language: str, look: Any = None
) -> Iterator[dict[str, Any]]:
    """States of the components in `DRAWN`, by name, one after the other; what a state lacks stays.

    Args:
        look: how the switch stands.
    """
    nothing = {"message": "", "lines": "", "picture": "", "steps": ""}
    if said := _refused(service, chosen, language):
        yield nothing | {"message": said}
        return
    names = dict.fromkeys((*chosen.models, *chosen.pair))
    for name in names:
        if not service.loaded(name):
            yield nothing | {"lines": _waiting(service, name, language)}
    said, made = [], {}
    for name in names:
        try:
            made[name] = matrices.units(service, name, chosen)
        except RuntimeError as error:
            reason = {"model": Language.of(language).say(f"model.{name}"), "reason": str(error)}
            said.append(cards.problem(Language.of(language).say("attention.failed", **reason)))
    panels: list[Panel] = []
    for name in filter(made.__contains__, chosen.models):
        said.append(language_hint((note for unit in made[name] for note in unit.notes), language))
        said.append(cards.notes((n for unit in made[name] for n in unit.notes), language))
        panel, why = matrices.panel(service, name, chosen, made[name], language)
        said.append(_hint(why) if why else "")
        if panel:
            panels.append(panel)
    parts = len(made.get(chosen.model, ())) or 1
    if parts > 1:
        said.insert(0, _hint(Language.of(language).say("attention.parts", total=parts)))
    if chosen.second == chosen.model:
        said.append(_hint(Language.of(language).say("attention.same")))
    state = {
        # The same note of two models is said once.
        "message": "".join(dict.fromkeys(said)),
        "lines": _lines(service, chosen, made, language),
        "picture": matrices.stage(service, chosen, panels, language),
        "caution": f'<p class="small">{escape(caution(panels, language))}</p>',
        "other": chosen.counterpart,
        **matrices.options(service, chosen, panels, parts, language),
    }
    if look != looks_back(chosen.model):
        state["look"] = looks_back(chosen.model)
    # The pictures do not wait for the steps, which need one more pass of the model.
    # The second time all is there again: a skipped part could take back what the browser has not drawn yet.
    yield state
    yield state | {"steps": matrices.steps(service, chosen, panels, language)}


def _refused(service: Service, chosen: Choice, language: str) -> str:
    """Why nothing is drawn of this text; empty where something is."""
    if problem := too_long(chosen.text, language):
        return cards.problem(problem)
    if hint := chinese_hint(service, chosen.text):
        return hint
    return "" if chosen.text.strip() else _hint(Language.of(language).say("attention.empty"))


def _lines(
    service: Service,
    chosen: Choice,
    made: Mapping[str, Sequence[Translation]],
    language: str,
) -> str:
    """The picture of the two sides of the switch; nothing where one of them has nothing to show."""
    if not all(name in made for name in chosen.pair):
        return ""
    fixed, looking = (made[name][min(chosen.part, len(made[name]) - 1)] for name in chosen.pair)
    if not fixed.source_words or not looking.source_words:
        return ""
    looking = matrices.with_attention(service, looking)
    simple = Choice(
        chosen.text,
        best=chosen.best,
        layer=chosen.layer,
        head=chosen.head,
        reading=chosen.reading,
    )
    map_, layer, head, _ = matrices.attention(service, looking, simple, language)
    return lines.render(
        fixed.source_words,
        lines.Fixed(fixed.model, fixed.target_words, service.translator(fixed.model).vector(fixed)),
        lines.Looking(map_, layer, head),
        language,
    )


def _hint(text: str) -> str:
    return f'<p class="hint">{escape(text)}</p>'


def _waiting(service: Service, model: str, language: str) -> str:
    said = Language.of(language).say("card.working" if service.loaded(model) else "card.loading")
    return f'<p class="waiting">{escape(said)}<span class="dots" aria-hidden="true"></span></p>'


# ---------------------------------------------------------------------------------------------
# The documented endpoint


def _offer(service: Service) -> None:
    def attention(
        text: str,
        model: str = FIRST,
        kind: str = "cross",
        layer: int | None = None,
        head: int | None = None,
        beams: int = 1,
    ) -> dict[str, Any]:
        """Attention weights or saliency, word by word, of the translation of an English text.

        Args:
            text: English, up to 5,000 characters; over 100 words it is read in parts.
            model: "lstm-attention" or "transformer"; the others have no attention, but saliency.
            kind: "cross" (French looks at English), "encoder" (English at English) or "decoder"
                (French at the French before it), the last two of the Transformer only; or "saliency"
                (gradient × input: the share of each English word in what a French word depends on).
            layer: from 0; none for the mean of all.
            head: from 0; none for the mean of all.
            beams: 1 for greedy search, up to 8.
        Returns:
            `model`, `kind`, `layer`, `head`, `translation`, `notes`, and `parts`, one for each part of
            the text that was read at once: `source` and `target` words, `weights` (a row for each
            target word) and `hidden` (what each row holds on special tokens, which are left out).
        """
        return attention_for_api(service, text, model, kind, layer, head, beams)

    endpoint(attention, **MODEL_EVENT)


def attention_for_api(
    service: Service, text: Any, model: Any, kind: Any, layer: Any, head: Any, beams: Any
) -> dict[str, Any]:
    """The endpoint's answer.

    Raises:
        gr.Error: a wrong argument; the message says what was expected.
    """
    checked_text(text)
    if model not in MODELS:
        raise gr.Error(
            f"expected model to be one of {', '.join(MODELS)}; got {model!r:.40}",
            print_exception=False,
        )
    check_beams(beams)
    for name, number in (("layer", layer), ("head", head)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise gr.Error(
                f"expected {name} to be a whole number or none, got {number!r:.40}",
                print_exception=False,
            )
    parts = []
    try:
        translation = service.translate(model, text, beams, attention=True)
        for part in translation.parts or ((translation,) if translation.source_tokens else ()):
            if kind == "saliency":
                map_ = service.saliency(model, part).shares()
            else:
                map_ = part.attention(kind).words()
            said = map_.to_dict(layer, head)
            parts.append({key: said[key] for key in ("source", "target", "weights", "hidden")})
    except (ValueError, IndexError, RuntimeError) as error:
        raise gr.Error(str(error), print_exception=False) from error
    return {
        "model": model,
        "kind": kind,
        "layer": layer,
        "head": head,
        "translation": translation.text,
        "notes": [note.message for note in translation.notes],
        "parts": parts,
    }
