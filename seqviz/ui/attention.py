"""The Attention tab: where a model looks while it writes, or the one vector where it cannot look."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz.constants import MODELS
from seqviz.drawing import heatmap
from seqviz.drawing.export import FORMATS, Panel, caution, export
from seqviz.drawing.names import which
from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.maps import KINDS, AttentionMap
from seqviz.ui import cards, stepping
from seqviz.ui.growth import paragraphs
from seqviz.ui.service import Service
from seqviz.ui.tab import DOWNLOAD_JS, MODEL_EVENT, QUICK_EVENT, Spoken, Tab, beam_choices, endpoint
from seqviz.ui.text import Text, chinese_hint, language_hint
from seqviz.ui.text import part as part_of
from seqviz.ui.translate import check_beams, checked_text, too_long

if TYPE_CHECKING:
    import numpy as np

    from seqviz.looking.alignment import HeadStatistics
    from seqviz.translating.result import Translation

FIRST = "lstm-attention"
"""Shown when the page opens: one layer, one head, nothing to explain first."""
SCALES = (1.0, 0.5, 0.25)
"""Weights that the darkest colour may stand for."""

# The small pictures are markup: what was clicked is told to the server as a click on their component.
_HEADS_JS = """
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-layer]');
  if (button) trigger('click', { layer: button.dataset.layer, head: button.dataset.head });
});
"""


@dataclass(frozen=True)
class Choice:
    """What a visitor has chosen. Layers and heads are counted from 0, None is the mean.

    `best` stands for the layer and head closest to alignments by hand, where that is known. `prefix` holds
    the ids that the first model's output of this part must begin with.
    """

    text: str
    model: str = FIRST
    second: str | None = None
    view: str = "attention"
    kind: str = "cross"
    best: bool = False
    layer: int | None = None
    head: int | None = None
    unit: str = "words"
    specials: bool = False
    num_beams: int = 1
    color_max: float = 1.0
    part: int = 0
    prefix: tuple[int, ...] = ()


def tab(service: Service, language: gr.Radio, text: Text) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    spoken = Spoken()
    spoken.make(gr.HTML, {"value": _lead})
    with gr.Row(elem_classes="actions"):
        model = spoken.make(
            gr.Radio,
            {"label": "attention.model", "choices": _model_choices},
            value=FIRST,
            elem_id="attention-model",
            container=False,
        )
    view = spoken.make(
        gr.Radio,
        {"label": "attention.view", "choices": partial(_view_choices, FIRST)},
        value="attention",
        elem_id="attention-view",
        container=False,
    )
    part = spoken.make(
        gr.Radio, {"label": "attention.part"}, choices=[], visible=False, container=False
    )
    message = gr.HTML(elem_id="attention-message")
    # Gradio's own style of buttons and images would spoil the maps.
    picture = gr.HTML(
        elem_id="attention-map",
        js_on_load=_HEADS_JS,
        apply_default_css=False,
    )
    beware = gr.HTML()
    steps = stepping.make("attention-steps")
    with (
        spoken.make(
            gr.Accordion, {"label": "attention.more"}, open=False, elem_id="attention-more"
        ),
        gr.Row(),
    ):
        with gr.Column(min_width=280):
            kind = spoken.make(
                gr.Radio,
                {"label": "attention.kind"},
                choices=_kind_choices("en"),
                value="cross",
                elem_id="attention-kind",
            )
            layer = spoken.make(
                gr.Radio,
                {"label": "attention.layer"},
                choices=_layer_choices(1, "en", best=True),
                value="best",
                elem_id="attention-layer",
            )
            head = spoken.make(
                gr.Radio,
                {"label": "attention.head"},
                choices=_number_choices(1, "en"),
                value="",
                elem_id="attention-head",
            )
        with gr.Column(min_width=280):
            second = spoken.make(
                gr.Radio,
                {"label": "attention.second", "choices": _second_choices},
                value="",
                elem_id="attention-second",
            )
            unit = spoken.make(
                gr.Radio,
                {"label": "attention.unit", "choices": _unit_choices},
                value="words",
                elem_id="attention-unit",
            )
            specials = spoken.make(
                gr.Radio,
                {"label": "attention.specials", "choices": _special_choices},
                value=False,
                elem_id="attention-specials",
            )
            scale = spoken.make(
                gr.Radio,
                {"label": "attention.scale", "choices": _scale_choices},
                value=1.0,
                elem_id="attention-scale",
            )
            beams = spoken.make(
                gr.Radio,
                {"label": "translate.beams", "choices": beam_choices},
                value=1,
                elem_id="attention-beams",
            )
    with spoken.make(
        gr.Accordion, {"label": "attention.download"}, open=False, elem_id="attention-download"
    ):
        spoken.make(gr.HTML, {"value": _about_download})
        with gr.Row(elem_classes="actions"):
            buttons = {
                name: gr.Button(name.upper(), size="sm", min_width=64, elem_id=f"attention-{name}")
                for name in FORMATS
            }
    with gr.Row(elem_classes="actions"):
        onward = spoken.make(
            gr.Button, {"value": "attention.onward"}, min_width=180, elem_id="attention-onward"
        )
    file = gr.JSON(visible=False)
    shown = gr.State("")  # the text on the screen, whatever has been typed since

    # A gr.Radio has no value None among its choices, so the mean is "".
    inputs = [
        *text.inputs,
        model,
        second,
        view,
        kind,
        layer,
        head,
        unit,
        specials,
        beams,
        scale,
        part,
    ]
    inputs += [steps.start, language]
    outputs = [message, picture, beware, view, kind, layer, head, part, steps.panel, shown]
    of_shown = [shown, *inputs[3:]]

    def draw_of(source: str, *values: Any) -> Iterator[list[Any]]:
        for state in _draw(service, _choice(source, *values[:-1]), values[-1]):
            yield [*state, source]

    def draw(box: str, passage: str, stage: float, *values: Any) -> Iterator[list[Any]]:
        yield from draw_of(part_of(service, box, passage, stage), *values)

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": inputs,
        "outputs": outputs,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    options = (model, second, view, kind, layer, head, unit, specials, beams, scale, part)
    gr.on([option.input for option in options], **event)
    picture.click(_clicked_head, outputs=[layer, head], **QUICK_EVENT).then(**event)
    steps.chosen.then(**event | {"fn": draw_of, "inputs": of_shown})
    for name, file_button in buttons.items():
        file_button.click(
            _file_maker(service, name),
            inputs=of_shown,
            outputs=file,
            show_progress="hidden",
            api_visibility="private",
            **MODEL_EVENT,
        ).then(None, inputs=file, js=DOWNLOAD_JS, **QUICK_EVENT)

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
        return _attention_for_api(service, text, model, kind, layer, head, beams)

    endpoint(attention, **MODEL_EVENT)

    return Tab(spoken, [event], {"model": model, "onward": onward})


# ---------------------------------------------------------------------------------------------
# What goes in


def _choice(
    text: Any,
    model: Any,
    second: Any,
    view: Any,
    kind: Any,
    layer: Any,
    head: Any,
    unit: Any,
    specials: Any,
    num_beams: Any,
    color_max: Any,
    part: Any,
    start: Any = None,
) -> Choice:
    """What the components say; whatever is not among their choices becomes the first one."""
    choice = Choice(
        text=text if isinstance(text, str) else "",
        model=model if model in MODELS else FIRST,
        second=second if second in MODELS else None,
        view="saliency" if view == "saliency" else "attention",
        kind=kind if kind in KINDS else "cross",
        best=layer == "best",
        layer=layer if isinstance(layer, int) else None,
        head=head if isinstance(head, int) else None,
        unit="pieces" if unit == "pieces" else "words",
        specials=specials is True,
        num_beams=num_beams if num_beams in (1, 4) else 1,
        color_max=color_max if color_max in SCALES else 1.0,
        part=part if isinstance(part, int) and part >= 0 else 0,
    )
    return replace(choice, prefix=stepping.start_ids(start, _key(choice)))


def _key(choice: Choice) -> str:
    """A chosen start belongs to this; anything else has the model's own."""
    return stepping.key_of(choice.text, choice.model, choice.num_beams, choice.part)


def _clicked_head(event: gr.EventData) -> tuple[Any, Any]:
    """Layer and head of the small picture that was clicked, as values of the two choices."""
    layer, head = (str(getattr(event, name, "")) for name in ("layer", "head"))
    return (
        int(layer) if layer.isdecimal() else "best" if layer == "best" else "",
        int(head) if head.isdecimal() else "",
    )


# ---------------------------------------------------------------------------------------------
# What comes out


def _draw(service: Service, choice: Choice, language: str) -> Iterator[list[Any]]:
    """Message, picture, what to beware of, the choices that fit the model, and the steps."""
    leave = [gr.skip()] * 6
    if problem := too_long(choice.text, language):
        yield [cards.problem(problem), "", *leave, ""]
        return
    if hint := chinese_hint(service, choice.text):
        yield [hint, "", *leave, ""]
        return
    if not choice.text.strip():
        yield [_hint(Language.of(language).say("attention.empty")), "", *leave, ""]
        return
    for name in _models(choice):
        if not service.loaded(name):
            yield ["", _waiting(service, name, language), *leave, ""]
    said: list[str] = []
    panels: list[Panel] = []
    parts = 1
    for name in _models(choice):
        try:
            units = _units(service, name, choice)
        except RuntimeError as error:
            reason = {"model": Language.of(language).say(f"model.{name}"), "reason": str(error)}
            said.append(cards.problem(Language.of(language).say("attention.failed", **reason)))
            continue
        said.append(language_hint((note for unit in units for note in unit.notes), language))
        said.append(cards.notes((n for unit in units for n in unit.notes), language))
        if name == choice.model:
            parts = len(units)
        panel, why = _panel(service, name, choice, units, language)
        if why:
            said.append(_hint(why))
        if panel:
            panels.append(panel)
    if parts > 1:
        said.insert(0, _hint(Language.of(language).say("attention.parts", total=parts)))
    if choice.second == choice.model:
        said.append(_hint(Language.of(language).say("attention.same")))
    # The same note of two models is said once.
    shown = [
        "".join(dict.fromkeys(said)),
        _stage(service, choice, panels, language),
        _caution(panels, language),
        *_options(service, choice, panels, parts, language),
    ]
    # The map does not wait for the steps, which need one more pass of the model.
    # The second time all is there again: a skipped part could take back what the browser has not drawn yet.
    yield [*shown, gr.skip()]
    yield [*shown, _steps(service, choice, panels, language)]


def _models(choice: Choice) -> list[str]:
    """The one or two models shown."""
    return list(dict.fromkeys(filter(None, (choice.model, choice.second))))


def _units(service: Service, name: str, choice: Choice) -> list[Translation]:
    """What the model read at once: paragraphs, and in them the sentences of those over its cap."""
    blocks = paragraphs(choice.text)
    if len(blocks) == 1:
        found = [service.translate(name, blocks[0], choice.num_beams, attention=True)]
    else:
        found = service.translate_paragraphs(name, blocks, choice.num_beams)
    units = [unit for whole in found for unit in (whole.parts or (whole,))]
    if choice.prefix and name == choice.model:
        place = min(choice.part, len(units) - 1)
        try:
            units[place] = service.translate_from(
                name, units[place].source, choice.prefix, choice.num_beams, attention=True
            )
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error
    return units


def _panel(
    service: Service, name: str, choice: Choice, units: Sequence[Translation], language: str
) -> tuple[Panel | None, str]:
    """The picture of one model, and what a visitor should know of it."""
    say = Language.of(language).say
    translation = units[min(choice.part, len(units) - 1)]
    if not translation.source_tokens:
        copied = bool(translation.text)  # a note says so
        return None, "" if copied else say("attention.empty")
    if choice.view == "attention" and MODELS[name].has_one_vector:
        vector = service.translator(name).vector(translation)
        return Panel(translation, vector=vector), ""
    if choice.view == "saliency":
        saliency = service.saliency(name, translation)
        map_ = saliency.shares(unit=choice.unit, specials=choice.specials)
        layer = head = None
        why, about = "", _alignment(service, name, language, saliency=True)
    else:
        if not translation.attentions:
            translation = service.translate(
                name, translation.source, choice.num_beams, attention=True
            )
        map_, layer, head, why = _attention(service, translation, choice, language)
        entropy = _of_heads(_statistics(translation.attention(map_.kind)).entropy, layer, head)
        lines = [say("attention.entropy", entropy=f"{entropy:.1f}")]
        is_best = (layer, head) == service.best_head(name)
        if map_.kind == "cross" and (is_best or map_.num_layers * map_.num_heads == 1):
            lines.append(say("attention.best_said") if is_best else "")
            lines.append(_alignment(service, name, language))
        about = "\n".join(lines)
    if choice.prefix and name == choice.model:
        given = say("attention.given", count=len(choice.prefix))
        about = f"{given}\n{about}"
    if not map_.target_tokens or not map_.source_tokens:
        return None, say("attention.no_words")
    return Panel(translation, map_, layer, head, about=about), why


def _attention(
    service: Service, translation: Translation, choice: Choice, language: str
) -> tuple[AttentionMap, int | None, int | None, str]:
    """The map that was asked for, or the nearest that the model has, with its layer and head."""
    say = Language.of(language).say
    kind = choice.kind if choice.kind in translation.attentions else "cross"
    map_ = translation.attention(kind)
    why = ""
    if kind != choice.kind:
        model = say(f"model.{translation.model}")
        shown = say(f"attention.kind_{kind}")
        why = say("attention.no_kind", model=model, kind=shown)
    if choice.unit == "words":
        map_ = map_.words(specials=choice.specials)
    elif not choice.specials:
        map_ = map_.without_specials()
    layer, head = choice.layer, choice.head
    if choice.best:
        layer, head = (service.best_head(translation.model) if kind == "cross" else None) or (
            None,
            None,
        )
    layer = layer if layer is not None and layer < map_.num_layers else None
    head = head if head is not None and head < map_.num_heads else None
    return map_, layer, head, why


def _alignment(service: Service, name: str, language: str, saliency: bool = False) -> str:
    """How far the picture agrees with alignments by hand, if that was measured on these weights."""
    rates = service.alignment_error_rates(name, saliency=saliency)
    if rates is None:
        return ""
    own, diagonal = (f"{rate:.2f}" for rate in rates)
    return Language.of(language).say("attention.aer", aer=own, diagonal=diagonal)


def _statistics(map: AttentionMap) -> HeadStatistics:
    """Entropy and mass on the special token of every head, of a map of pieces."""
    from seqviz.looking.alignment import head_statistics

    return head_statistics(map)


def _of_heads(values: np.ndarray, layer: int | None, head: int | None) -> float:
    """One of the values (L, H), or the mean over the layers and heads that are None."""
    layers, heads = (slice(None) if n is None else slice(n, n + 1) for n in (layer, head))
    return float(values[layers, heads].mean())


def _stage(service: Service, choice: Choice, panels: Sequence[Panel], language: str) -> str:
    """The pictures, with those of all heads beside them where there are several."""
    if not panels:
        return ""
    figures = [panel.figure(language, choice.color_max) for panel in panels]
    first = panels[0]
    if not _has_heads(first):
        return heatmap.render_stage("", figures)
    assert first.map is not None
    found = _statistics(first.translation.attention(first.map.kind))
    is_decoder = first.map.kind == "decoder"
    key = "attention.statistics_decoder" if is_decoder else "attention.statistics"

    def about(layer: int, head: int) -> str:
        entropy, end = found.entropy[layer, head], found.end_mass[layer, head]
        return Language.of(language).say(key, entropy=f"{entropy:.1f}", end=f"{100 * end:.0f}")

    heads = heatmap.render_heads(
        first.map,
        first.layer,
        first.head,
        language=language,
        color_max=choice.color_max,
        best=service.best_head(first.model) if first.map.kind == "cross" else None,
        about=about,
    )
    return heatmap.render_stage(heads, figures)


def _steps(service: Service, choice: Choice, panels: Sequence[Panel], language: str) -> str:
    """The first model's output step by step, with the weights that are on the screen."""
    if not panels or panels[0].model != choice.model:
        return ""
    translation = panels[0].translation
    rows, about = None, ""
    if choice.view == "saliency":
        saliency = service.saliency(choice.model, translation)
        rows = saliency.shares(unit="pieces", specials=True).head()
        about = Language.of(language).say("attention.kind_saliency")
    elif translation.attentions:
        map_, shown = translation.attention("cross"), panels[0].map
        same = shown is not None and shown.kind == "cross"
        layer, head = (panels[0].layer, panels[0].head) if same else (None, None)
        rows = map_.head(layer, head)
        about = which(map_, layer, head, language)
    return stepping.render(
        translation,
        service.candidates(choice.model, translation),
        rows,
        language,
        given=len(choice.prefix),
        key=_key(choice),
        about=about,
        saliency=choice.view == "saliency",
    )


def _has_heads(panel: Panel | None) -> bool:
    return (
        panel is not None
        and panel.map is not None
        and panel.map.num_layers * panel.map.num_heads > 1
    )


def _options(
    service: Service, choice: Choice, panels: Sequence[Panel], parts: int, language: str
) -> list[Any]:
    """Updates of view, kind, layer, head and part, so that they offer what the first model has."""
    first = panels[0] if panels and panels[0].model == choice.model else None
    several = _has_heads(first)
    kind, layers, heads, layer = "cross", 1, 1, None
    if first is not None and first.map is not None:
        layers, heads, layer = first.map.num_layers, first.map.num_heads, first.layer
        kind = first.map.kind if first.map.kind in KINDS else choice.kind
    # Where there is one head there is nothing to choose, and the choice waits for the next model.
    best = not several or service.best_head(choice.model) is not None
    keep_best = choice.best and best
    part_choices = [
        (Language.of(language).say("attention.part_number", number=i + 1, total=parts), i)
        for i in range(parts)
    ]

    def radio(choices: list, before: Any, value: Any, visible: bool = True) -> Any:
        # A value that stays is left out, so that what a person clicks meanwhile stays too.
        return gr.Radio(choices, visible=visible, **({} if value == before else {"value": value}))

    return [
        radio(_view_choices(choice.model, language), choice.view, choice.view),
        radio(_kind_choices(language, KINDS if several else KINDS[:1]), choice.kind, kind, several),
        radio(
            _layer_choices(layers, language, best),
            "best" if choice.best else _or_mean(choice.layer),
            "best" if keep_best else _or_mean(layer),
            several,
        ),
        radio(
            _number_choices(heads, language),
            _or_mean(choice.head),
            "" if first is None or keep_best else _or_mean(first.head),
            several and not keep_best,
        ),
        gr.Radio(part_choices, value=min(choice.part, parts - 1), visible=parts > 1),
    ]


# ---------------------------------------------------------------------------------------------
# Files


def _file_maker(service: Service, format: str) -> Any:
    def make_file(*values: Any) -> dict[str, str] | None:
        return _file(service, _choice(*values[:-1]), values[-1], format)

    return make_file


def _file(service: Service, choice: Choice, language: str, format: str) -> dict[str, str] | None:
    """What is shown as a file: `name`, `type`, and `data` in base 64. None where nothing is shown."""
    if too_long(choice.text, language) or not choice.text.strip():
        gr.Warning(Language.of(language).say("attention.empty"))
        return None
    panels = []
    try:
        for name in _models(choice):
            panel, why = _panel(service, name, choice, _units(service, name, choice), language)
            if panel:
                panels.append(panel)
            elif name == choice.model:
                gr.Warning(why)
                return None
    except RuntimeError as error:
        raise gr.Error(str(error), print_exception=False) from error
    data, note = export(panels, format, language=language, color_max=choice.color_max)
    if note:
        gr.Info(escape(note))
    return {
        "name": f"{'-and-'.join(panel.name for panel in panels)}.{format}",
        "type": FORMATS[format],
        "data": base64.b64encode(data).decode(),
    }


# ---------------------------------------------------------------------------------------------
# The documented endpoint


def _attention_for_api(
    service: Service, text: Any, model: Any, kind: Any, layer: Any, head: Any, beams: Any
) -> dict[str, Any]:
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


# ---------------------------------------------------------------------------------------------
# Fixed texts and choices


def _lead(language: str) -> str:
    return f'<p class="lead">{escape(Language.of(language).say("attention.lead"))}</p>'


def _caution(panels: Sequence[Panel], language: str) -> str:
    return f'<p class="small">{escape(caution(panels, language))}</p>'


def _about_download(language: str) -> str:
    return f'<p class="small">{escape(Language.of(language).say("attention.download_about"))}</p>'


def _hint(text: str) -> str:
    return f'<p class="hint">{escape(text)}</p>'


def _waiting(service: Service, model: str, language: str) -> str:
    said = Language.of(language).say("card.working" if service.loaded(model) else "card.loading")
    return f'<p class="waiting">{escape(said)}<span class="dots" aria-hidden="true"></span></p>'


def _model_choices(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"model.{name}"), name) for name in MODELS]


def _view_choices(model: str, language: str) -> list[tuple[str, str]]:
    say = Language.of(language).say
    first = "vector" if MODELS[model].has_one_vector else "attention"
    return [
        (say(f"attention.view_{first}"), "attention"),
        (say("attention.view_saliency"), "saliency"),
    ]


def _second_choices(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say("attention.second_none"), ""), *_model_choices(language)]


def _kind_choices(language: str, kinds: tuple[str, ...] = KINDS) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"attention.kind_{kind}"), kind) for kind in kinds]


def _number_choices(count: int, language: str) -> list[tuple[str, Any]]:
    return [
        (Language.of(language).say("attention.mean"), ""),
        *((str(i + 1), i) for i in range(count)),
    ]


def _layer_choices(count: int, language: str, best: bool) -> list[tuple[str, Any]]:
    first = [(Language.of(language).say("attention.best_head"), "best")] if best else []
    return [*first, *_number_choices(count, language)]


def _or_mean(number: int | None) -> int | str:
    return "" if number is None else number


def _unit_choices(language: str) -> list[tuple[str, str]]:
    return [
        (Language.of(language).say(f"attention.unit_{unit}"), unit) for unit in ("words", "pieces")
    ]


def _special_choices(language: str) -> list[tuple[str, bool]]:
    say = Language.of(language).say
    return [
        (say("attention.specials_hidden"), False),
        (say("attention.specials_shown"), True),
    ]


def _scale_choices(language: str) -> list[tuple[str, float]]:
    return [
        (Language.of(language).say("attention.scale_at", weight=f"{scale:g}"), scale)
        for scale in SCALES
    ]
