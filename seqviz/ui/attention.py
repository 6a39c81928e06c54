"""The Attention tab: where a model looks while it writes, or the one vector where it cannot look."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz import heatmap
from seqviz.attention_map import KINDS, AttentionMap
from seqviz.ui import cards
from seqviz.ui.service import MAX_BEAMS, MODELS, Service
from seqviz.ui.tab import MODEL_EVENT, Tab
from seqviz.ui.translate import is_chinese, too_long
from seqviz.words import words

if TYPE_CHECKING:
    import numpy as np

    from seqviz.translation import Translation

FIXED = ("rnn", "lstm")
"""Models without attention."""
FIRST = "lstm-attention"
"""Shown when the page opens: one layer, one head, nothing to explain first."""
SCALES = (1.0, 0.5, 0.25)
"""Weights that the darkest colour may stand for."""

_FORMATS = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
}

# The small pictures are markup: what was clicked is told to the server as a click on their component.
_HEADS_JS = """
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-layer]');
  if (button) trigger('click', { layer: button.dataset.layer, head: button.dataset.head });
});
"""
_DOWNLOAD_JS = """(file) => {
  if (!file || !file.data) return;
  const bytes = Uint8Array.from(atob(file.data), (c) => c.charCodeAt(0));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: file.type }));
  link.download = file.name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}"""


@dataclass(frozen=True)
class Choice:
    """What a visitor has chosen. Layers and heads are counted from 0, None is the mean."""

    text: str
    model: str = FIRST
    second: str | None = None
    kind: str = "cross"
    layer: int | None = None
    head: int | None = None
    unit: str = "words"
    specials: bool = False
    num_beams: int = 1
    color_max: float = 1.0
    part: int = 0


def tab(service: Service, language: gr.Radio) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    lead = gr.HTML(_lead("en"))
    text = gr.Textbox(
        service.examples()[0]["english"],
        label=words("attention_box", "en"),
        placeholder=words("translate_placeholder", "en"),
        lines=2,
        max_lines=8,
        elem_id="attention-source",
    )
    with gr.Row(elem_classes="actions"):
        button = gr.Button(
            words("attention_button", "en"),
            variant="primary",
            min_width=140,
            elem_id="attention-show",
        )
        model = gr.Radio(
            _model_choices("en"),
            value=FIRST,
            label=words("attention_model", "en"),
            elem_id="attention-model",
            container=False,
        )
    part = gr.Radio([], label=words("attention_part", "en"), visible=False, container=False)
    message = gr.HTML(elem_id="attention-message")
    # Gradio's own style of buttons and images would spoil the maps.
    picture = gr.HTML(
        _waiting(service, FIRST, "en"), elem_id="attention-map", apply_default_css=False
    )
    caution = gr.HTML(_caution("en"))
    with (
        gr.Accordion(words("attention_more", "en"), open=False, elem_id="attention-more") as more,
        gr.Row(),
    ):
        with gr.Column(min_width=280):
            kind = gr.Radio(
                _kind_choices("en"),
                value="cross",
                label=words("attention_kind", "en"),
                elem_id="attention-kind",
            )
            layer = gr.Radio(
                _number_choices(1, "en"),
                value="",
                label=words("attention_layer", "en"),
                elem_id="attention-layer",
            )
            head = gr.Radio(
                _number_choices(1, "en"),
                value="",
                label=words("attention_head", "en"),
                elem_id="attention-head",
            )
            heads = gr.HTML(
                elem_id="attention-heads", js_on_load=_HEADS_JS, apply_default_css=False
            )
        with gr.Column(min_width=280):
            second = gr.Radio(
                _second_choices("en"),
                value="",
                label=words("attention_second", "en"),
                elem_id="attention-second",
            )
            unit = gr.Radio(
                _unit_choices("en"),
                value="words",
                label=words("attention_unit", "en"),
                elem_id="attention-unit",
            )
            specials = gr.Radio(
                _special_choices("en"),
                value=False,
                label=words("attention_specials", "en"),
                elem_id="attention-specials",
            )
            scale = gr.Radio(
                _scale_choices("en"),
                value=1.0,
                label=words("attention_scale", "en"),
                elem_id="attention-scale",
            )
            beams = gr.Radio(
                _beam_choices("en"),
                value=1,
                label=words("attention_beams", "en"),
                elem_id="attention-beams",
            )
    with gr.Accordion(
        words("attention_download", "en"), open=False, elem_id="attention-download"
    ) as download:
        about = gr.HTML(_about_download("en"))
        with gr.Row(elem_classes="actions"):
            buttons = {
                name: gr.Button(name.upper(), size="sm", min_width=64, elem_id=f"attention-{name}")
                for name in _FORMATS
            }
    file = gr.JSON(visible=False)

    # A gr.Radio has no value None among its choices, so the mean is "".
    inputs = [text, model, second, kind, layer, head, unit, specials, beams, scale, part, language]
    outputs = [message, picture, caution, heads, kind, layer, head, part]

    def draw(*values: Any) -> Iterator[list[Any]]:
        yield from _draw(service, _choice(*values[:-1]), values[-1])

    event: dict[str, Any] = {
        "fn": draw,
        "inputs": inputs,
        "outputs": outputs,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    options = (model, second, kind, layer, head, unit, specials, beams, scale, part)
    gr.on([button.click, text.submit, *(option.input for option in options)], **event)
    quick: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    heads.click(_clicked_head, outputs=[layer, head], **quick).then(**event)
    for name, file_button in buttons.items():
        file_button.click(
            _file_maker(service, name),
            inputs=inputs,
            outputs=file,
            show_progress="hidden",
            api_visibility="private",
            **MODEL_EVENT,
        ).then(None, inputs=file, js=_DOWNLOAD_JS, **quick)

    def attention(
        text: str,
        model: str = FIRST,
        kind: str = "cross",
        layer: int | None = None,
        head: int | None = None,
        beams: int = 1,
    ) -> dict[str, Any]:
        """Attention weights, word by word, of the translation of an English text.

        Args:
            text: English, up to 5,000 characters; over 100 words it is read in parts.
            model: "lstm-attention" or "transformer"; the others have no attention.
            kind: "cross" (French looks at English), "encoder" (English at English) or "decoder"
                (French at the French before it); the last two of the Transformer only.
            layer: from 0; none for the mean of all.
            head: from 0; none for the mean of all.
            beams: 1 for greedy search, up to 8.
        Returns:
            `model`, `kind`, `layer`, `head`, `translation`, `notes`, and `parts`, one for each part of
            the text that was read at once: `source` and `target` words, `weights` (a row for each
            target word) and `hidden` (what each row holds on special tokens, which are left out).
        """
        return _attention_for_api(service, text, model, kind, layer, head, beams)

    gr.api(attention, api_name="attention", **MODEL_EVENT)

    def texts(chosen: str) -> list[Any]:
        return [
            _lead(chosen),
            gr.Textbox(
                label=words("attention_box", chosen),
                placeholder=words("translate_placeholder", chosen),
            ),
            gr.Button(words("attention_button", chosen)),
            gr.Radio(_model_choices(chosen), label=words("attention_model", chosen)),
            gr.Radio(label=words("attention_part", chosen)),
            gr.Accordion(label=words("attention_more", chosen)),
            gr.Radio(label=words("attention_kind", chosen)),
            gr.Radio(label=words("attention_layer", chosen)),
            gr.Radio(label=words("attention_head", chosen)),
            gr.Radio(_second_choices(chosen), label=words("attention_second", chosen)),
            gr.Radio(_unit_choices(chosen), label=words("attention_unit", chosen)),
            gr.Radio(_special_choices(chosen), label=words("attention_specials", chosen)),
            gr.Radio(_scale_choices(chosen), label=words("attention_scale", chosen)),
            gr.Radio(_beam_choices(chosen), label=words("attention_beams", chosen)),
            gr.Accordion(label=words("attention_download", chosen)),
            _about_download(chosen),
        ]

    components = [lead, text, button, model, part, more, kind, layer, head]
    components += [second, unit, specials, scale, beams, download, about]
    return Tab(components=components, texts=texts, show=[event])


# ---------------------------------------------------------------------------------------------
# What goes in


def _choice(
    text: Any,
    model: Any,
    second: Any,
    kind: Any,
    layer: Any,
    head: Any,
    unit: Any,
    specials: Any,
    num_beams: Any,
    color_max: Any,
    part: Any,
) -> Choice:
    """What the components say; whatever is not among their choices becomes the first one."""
    return Choice(
        text=text if isinstance(text, str) else "",
        model=model if model in MODELS else FIRST,
        second=second if second in MODELS else None,
        kind=kind if kind in KINDS else "cross",
        layer=layer if isinstance(layer, int) else None,
        head=head if isinstance(head, int) else None,
        unit="pieces" if unit == "pieces" else "words",
        specials=specials is True,
        num_beams=num_beams if num_beams in (1, 4) else 1,
        color_max=color_max if color_max in SCALES else 1.0,
        part=part if isinstance(part, int) and part >= 0 else 0,
    )


def _clicked_head(event: gr.EventData) -> tuple[Any, Any]:
    """Layer and head of the small picture that was clicked."""
    numbers = (str(getattr(event, name, "")) for name in ("layer", "head"))
    layer, head = (int(number) if number.isdecimal() else "" for number in numbers)
    return layer, head


# ---------------------------------------------------------------------------------------------
# What comes out


def _draw(service: Service, choice: Choice, language: str) -> Iterator[list[Any]]:
    """Message, picture, what to beware of, small pictures, and the choices that fit the model."""
    leave = [gr.skip()] * 6
    if problem := too_long(choice.text, language):
        yield [cards.problem(problem), "", *leave]
        return
    if not choice.text.strip():
        yield [_hint(words("attention_empty", language)), "", *leave]
        return
    for name in (choice.model, choice.second):
        if name and not service.loaded(name):
            yield ["", _waiting(service, name, language), *leave]
    said: list[str] = []
    figures: list[str] = []
    shown: AttentionMap | None = None
    parts = 1
    for name in dict.fromkeys(filter(None, (choice.model, choice.second))):
        try:
            translation = service.translate(name, choice.text, choice.num_beams, attention=True)
        except RuntimeError as error:
            reason = {"model": words(f"model_{name}", language), "reason": str(error)}
            said.append(cards.problem(words("attention_failed", language, **reason)))
            continue
        if any(note.kind == "language" for note in translation.notes):
            chosen = "zh" if is_chinese(choice.text) else language
            said.append(_hint(words("translate_language", chosen)))
        said.append(cards.notes([translation], language))
        if name == choice.model:
            parts = max(1, len(translation.parts))
        translation = _part(translation, choice.part)
        if not translation.source_tokens:
            said.append(_hint(words("attention_empty", language)))
        elif name in FIXED:
            figures.append(_vector_figure(service, name, translation, language))
        else:
            map_, layer, head = _map(translation, choice)
            if map_.kind != choice.kind:
                kind = words(f"attention_kind_{map_.kind}", language)
                model = words(f"model_{name}", language)
                said.append(_hint(words("attention_no_kind", language, model=model, kind=kind)))
            if not map_.target_tokens or not map_.source_tokens:
                said.append(_hint(words("attention_no_words", language)))
                continue
            figures.append(
                heatmap.render(map_, layer, head, language=language, color_max=choice.color_max)
            )
            if name == choice.model:
                shown = map_
                choice = replace(choice, kind=map_.kind, layer=layer, head=head)
    body = heatmap.render_pair(figures) if len(figures) > 1 else "".join(figures)
    # The same note of two models is said once.
    caution = _caution(language, vector=choice.model in FIXED)
    yield ["".join(dict.fromkeys(said)), body, caution, *_options(choice, shown, parts, language)]


def _options(choice: Choice, shown: AttentionMap | None, parts: int, language: str) -> list[Any]:
    """Updates of the small pictures, kind, layer, head and part."""
    several = shown is not None and shown.num_layers * shown.num_heads > 1
    layers, heads = (shown.num_layers, shown.num_heads) if shown is not None else (1, 1)
    small = ""
    if shown is not None and several:
        title = escape(words("attention_heads", language))
        small = f'<div class="small">{title}</div>' + heatmap.render_heads(
            shown, choice.layer, choice.head, language=language, color_max=choice.color_max
        )
    elif shown is not None:
        small = f'<div class="small">{escape(words("attention_heads_none", language))}</div>'
    part_choices = [
        (words("attention_part_number", language, number=i + 1, total=parts), i)
        for i in range(parts)
    ]
    return [
        small,
        gr.Radio(
            _kind_choices(language, KINDS if several else KINDS[:1]),
            value=choice.kind,
            visible=shown is not None,
        ),
        gr.Radio(_number_choices(layers, language), value=_or_mean(choice.layer), visible=several),
        gr.Radio(_number_choices(heads, language), value=_or_mean(choice.head), visible=several),
        gr.Radio(part_choices, value=min(choice.part, parts - 1), visible=parts > 1),
    ]


def _part(translation: Translation, number: int) -> Translation:
    """The part to show of a text that was translated in several; the last one if there are fewer."""
    parts = translation.parts
    return parts[min(number, len(parts) - 1)] if parts else translation


def _map(translation: Translation, choice: Choice) -> tuple[AttentionMap, int | None, int | None]:
    """The map that was asked for, or the nearest that the model has, with its layer and head."""
    kind = choice.kind if choice.kind in translation.attentions else "cross"
    map_ = translation.attention(kind)
    if choice.unit == "words":
        map_ = map_.words(specials=choice.specials)
    elif not choice.specials:
        map_ = map_.without_specials()
    layer = choice.layer if choice.layer is not None and choice.layer < map_.num_layers else None
    head = choice.head if choice.head is not None and choice.head < map_.num_heads else None
    return map_, layer, head


def _vector(service: Service, name: str, translation: Translation) -> np.ndarray:
    """The one vector that a model without attention made of the source, (D,)."""
    import torch

    translator = service.translator(name)
    ids = translator.tokenizer.convert_tokens_to_ids(list(translation.source_tokens))
    input_ids = torch.tensor([ids], device=translator.device)
    with torch.inference_mode():
        encoded = translator.model.model.encoder(
            input_ids=input_ids, attention_mask=torch.ones_like(input_ids)
        )
    return encoded.vector[0].float().cpu().numpy()


def _vector_figure(service: Service, name: str, translation: Translation, language: str) -> str:
    return heatmap.render_vector(
        _vector(service, name, translation),
        translation.source_words,
        translation.target_words,
        model=name,
        language=language,
    )


# ---------------------------------------------------------------------------------------------
# Files


def _file_maker(service: Service, format: str) -> Any:
    def make_file(*values: Any) -> dict[str, str] | None:
        return _file(service, _choice(*values[:-1]), values[-1], format)

    return make_file


def _file(service: Service, choice: Choice, language: str, format: str) -> dict[str, str] | None:
    """What is shown as a file: `name`, `type`, and `data` in base 64. None where nothing is shown."""
    if too_long(choice.text, language) or not choice.text.strip():
        gr.Warning(words("attention_empty", language))
        return None
    try:
        whole = service.translate(choice.model, choice.text, choice.num_beams, attention=True)
    except RuntimeError as error:
        raise gr.Error(str(error)) from error
    translation = _part(whole, choice.part)
    name = f"{'vector' if choice.model in FIXED else 'attention'}-{choice.model}"
    if choice.model in FIXED:
        if not translation.source_tokens:
            gr.Warning(words("attention_empty", language))
            return None
        data = _vector_file(service, choice, translation, language, format)
    else:
        map_, layer, head = _map(translation, choice)
        if not map_.target_tokens or not map_.source_tokens:
            gr.Warning(words("attention_no_words", language))
            return None
        name += f"-{map_.kind}"
        name += "" if layer is None else f"-layer-{layer + 1}"
        name += "" if head is None else f"-head-{head + 1}"
        data = _map_file(service, choice, translation, (map_, layer, head), language, format)
    return {
        "name": f"{name}.{format}",
        "type": _FORMATS[format],
        "data": base64.b64encode(data).decode(),
    }


def _map_file(
    service: Service,
    choice: Choice,
    translation: Translation,
    shown: tuple[AttentionMap, int | None, int | None],
    language: str,
    format: str,
) -> bytes:
    map_, layer, head = shown
    if format == "csv":
        return map_.to_csv(layer, head).encode("utf-8-sig")  # the mark tells Excel that it is UTF-8
    if format == "json":
        about = {"sentence": translation.source, "translation": translation.text}
        return _json(about | map_.to_dict(layer, head))
    if format == "html":
        figures = [heatmap.render(map_, layer, head, language=language, color_max=choice.color_max)]
        figures += _second_figure(service, choice, language)
        body = heatmap.render_pair(figures) if len(figures) > 1 else figures[0]
        return heatmap.page(body, language=language, title=translation.source).encode()
    from seqviz import plotting

    figure = plotting.attention(map_, layer, head, language=language, color_max=choice.color_max)
    return _picture(figure, language, format)


def _second_figure(service: Service, choice: Choice, language: str) -> list[str]:
    if choice.second is None or choice.second == choice.model:
        return []
    translation = service.translate(choice.second, choice.text, choice.num_beams, attention=True)
    translation = _part(translation, choice.part)
    if choice.second in FIXED:
        return [_vector_figure(service, choice.second, translation, language)]
    map_, layer, head = _map(translation, choice)
    if not map_.target_tokens:
        return []
    return [heatmap.render(map_, layer, head, language=language, color_max=choice.color_max)]


def _vector_file(
    service: Service, choice: Choice, translation: Translation, language: str, format: str
) -> bytes:
    vector = _vector(service, choice.model, translation)
    if format == "csv":
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["number", "value"])
        table.writerows([i, f"{value:.7f}"] for i, value in enumerate(vector.tolist(), 1))
        return out.getvalue().encode("utf-8-sig")
    if format == "json":
        about = {
            "sentence": translation.source,
            "translation": translation.text,
            "model": choice.model,
        }
        return _json(about | {"vector": vector.tolist()})
    if format == "html":
        figure = _vector_figure(service, choice.model, translation, language)
        caution = words("attention_caution_vector", language)
        page = heatmap.page(figure, language=language, title=translation.source, caution=caution)
        return page.encode()
    from seqviz import plotting

    return _picture(
        plotting.vector(vector, model=choice.model, language=language), language, format
    )


def _picture(figure: Any, language: str, format: str) -> bytes:
    from seqviz import plotting

    buffer = io.BytesIO()
    note = plotting.save(figure, buffer, format)
    if note:
        gr.Info(escape(words("attention_no_font", language, note=note)))
    return buffer.getvalue()


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=1).encode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------
# The documented endpoint


def _attention_for_api(
    service: Service, text: Any, model: Any, kind: Any, layer: Any, head: Any, beams: Any
) -> dict[str, Any]:
    if not isinstance(text, str):
        raise gr.Error(f"expected text, got {type(text).__name__}")
    if problem := too_long(text, "en"):
        raise gr.Error(problem)
    if model not in MODELS:
        raise gr.Error(f"expected model to be one of {', '.join(MODELS)}; got {model!r:.40}")
    if isinstance(beams, bool) or not isinstance(beams, int) or not 1 <= beams <= MAX_BEAMS:
        raise gr.Error(
            f"expected beams to be a whole number from 1 to {MAX_BEAMS}, got {beams!r:.40}"
        )
    for name, number in (("layer", layer), ("head", head)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise gr.Error(f"expected {name} to be a whole number or none, got {number!r:.40}")
    parts = []
    try:
        translation = service.translate(model, text, beams, attention=True)
        for part in translation.parts or ((translation,) if translation.source_tokens else ()):
            said = part.attention(kind).words().to_dict(layer, head)
            parts.append({key: said[key] for key in ("source", "target", "weights", "hidden")})
    except (ValueError, IndexError, RuntimeError) as error:
        raise gr.Error(str(error)) from error
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
    return f'<p class="lead">{escape(words("attention_lead", language))}</p>'


def _caution(language: str, vector: bool = False) -> str:
    said = words("attention_caution_vector" if vector else "attention_caution", language)
    return f'<p class="small">{escape(said)}</p>'


def _about_download(language: str) -> str:
    return f'<p class="small">{escape(words("attention_download_about", language))}</p>'


def _hint(text: str) -> str:
    return f'<p class="hint">{escape(text)}</p>'


def _waiting(service: Service, model: str, language: str) -> str:
    said = words("card_working" if service.loaded(model) else "card_loading", language)
    return f'<p class="waiting">{escape(said)}<span class="dots" aria-hidden="true"></span></p>'


def _model_choices(language: str) -> list[tuple[str, str]]:
    return [(words(f"model_{name}", language), name) for name in MODELS]


def _second_choices(language: str) -> list[tuple[str, str]]:
    return [(words("attention_second_none", language), ""), *_model_choices(language)]


def _kind_choices(language: str, kinds: tuple[str, ...] = KINDS) -> list[tuple[str, str]]:
    return [(words(f"attention_kind_{kind}", language), kind) for kind in kinds]


def _number_choices(count: int, language: str) -> list[tuple[str, Any]]:
    return [(words("attention_mean", language), ""), *((str(i + 1), i) for i in range(count))]


def _or_mean(number: int | None) -> int | str:
    return "" if number is None else number


def _unit_choices(language: str) -> list[tuple[str, str]]:
    return [(words(f"attention_unit_{unit}", language), unit) for unit in ("words", "pieces")]


def _special_choices(language: str) -> list[tuple[str, bool]]:
    return [
        (words("attention_specials_hidden", language), False),
        (words("attention_specials_shown", language), True),
    ]


def _scale_choices(language: str) -> list[tuple[str, float]]:
    return [(words("attention_scale_at", language, weight=f"{scale:g}"), scale) for scale in SCALES]


def _beam_choices(language: str) -> list[tuple[str, int]]:
    return [(words(f"translate_beams_{number}", language), number) for number in (1, 4)]
