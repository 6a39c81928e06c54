"""The matrices of the Attention tab, its steps, and what it hands out as files."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr

from seqviz.drawing import heatmap
from seqviz.drawing.export import FORMATS, Panel, export
from seqviz.drawing.names import ending, which
from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.maps import KINDS, READINGS, AttentionMap
from seqviz.ui import choice as choices
from seqviz.ui import stepping
from seqviz.ui.choice import Choice, looks_back, or_mean
from seqviz.ui.growth import paragraphs
from seqviz.ui.service import Service
from seqviz.ui.translate import too_long

if TYPE_CHECKING:
    import numpy as np

    from seqviz.looking.alignment import HeadStatistics
    from seqviz.translating.result import Translation


def units(service: Service, name: str, choice: Choice) -> list[Translation]:
    """What the model read at once: paragraphs, and in them the sentences of those over its cap.

    Raises:
        RuntimeError: the model could not be loaded.
    """
    blocks = paragraphs(choice.text)
    if len(blocks) == 1:
        found = [service.translate(name, blocks[0], choice.num_beams, attention=True)]
    else:
        found = service.translate_paragraphs(name, blocks, choice.num_beams)
    made = [unit for whole in found for unit in (whole.parts or (whole,))]
    if choice.prefix and name == choice.model:
        place = min(choice.part, len(made) - 1)
        try:
            made[place] = service.translate_from(
                name, made[place].source, choice.prefix, choice.num_beams, attention=True
            )
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error
    return made


def with_attention(service: Service, translation: Translation) -> Translation:
    """The same translation with its weights, where it was made without."""
    if translation.attentions:
        return translation
    return service.translate(
        translation.model, translation.source, translation.num_beams, attention=True
    )


def panel(
    service: Service, name: str, choice: Choice, made: Sequence[Translation], language: str
) -> tuple[Panel | None, str]:
    """The picture of one model, and what a visitor should know of it.

    Args:
        made: from `units`.
    """
    say = Language.of(language).say
    translation = made[min(choice.part, len(made) - 1)]
    if not translation.source_tokens:
        copied = bool(translation.text)  # a note says so
        return None, "" if copied else say("attention.empty")
    if choice.view == "attention" and not looks_back(name):
        vector = service.translator(name).vector(translation)
        return Panel(translation, vector=vector), ""
    if choice.view == "saliency":
        saliency = service.saliency(name, translation)
        map_ = saliency.shares(unit=choice.unit, specials=choice.specials)
        layer = head = None
        why, about = "", _alignment(service, name, language, "saliency")
    else:
        translation = with_attention(service, translation)
        map_, layer, head, why = attention(service, translation, choice, language)
        about = _about(service, translation, map_, layer, head, language)
    if choice.prefix and name == choice.model:
        given = say("attention.given", count=len(choice.prefix))
        about = f"{given}\n{about}"
    if not map_.target_tokens or not map_.source_tokens:
        return None, say("attention.no_words")
    return Panel(translation, map_, layer, head, about=about), why


def attention(
    service: Service, translation: Translation, choice: Choice, language: str
) -> tuple[AttentionMap, int | None, int | None, str]:
    """The map that was asked for, or the nearest that the model has, with its layer and head, and why."""
    say = Language.of(language).say
    kind = choice.kind if choice.kind in translation.attentions else "cross"
    map_ = translation.attention(kind)
    why = ""
    if kind != choice.kind:
        model = say(f"model.{translation.model}")
        shown = say(f"attention.kind_{kind}")
        why = say("attention.no_kind", model=model, kind=shown)
    if kind == "cross":
        map_ = map_.at(choice.reading)
    if choice.unit == "words":
        map_ = map_.words(specials=choice.specials)
    elif not choice.specials:
        map_ = map_.without_specials()
    layer, head = choice.layer, choice.head
    if choice.best:
        best = service.best_head(translation.model, choice.reading) if kind == "cross" else None
        layer, head = best or (None, None)
    layer = layer if layer is not None and layer < map_.num_layers else None
    head = head if head is not None and head < map_.num_heads else None
    return map_, layer, head, why


def _about(
    service: Service,
    translation: Translation,
    map_: AttentionMap,
    layer: int | None,
    head: int | None,
    language: str,
) -> str:
    """Lines below a map: at which step it is read, its entropy, how far it agrees with alignments by hand."""
    say = Language.of(language).say
    name = translation.model
    entropy = _of_heads(statistics(translation.attention(map_.kind)).entropy, layer, head)
    lines = []
    if map_.read != READINGS[0]:
        lines.append(say(f"attention.read_later{ending(map_.languages)}"))
    lines.append(say("attention.entropy", entropy=f"{entropy:.1f}"))
    is_best = (layer, head) == service.best_head(name, map_.read)
    if map_.kind == "cross" and (is_best or map_.num_layers * map_.num_heads == 1):
        lines.append(say("attention.best_said") if is_best else "")
        lines.append(_alignment(service, name, language, map_.read))
    return "\n".join(lines)


def _alignment(service: Service, name: str, language: str, of: str) -> str:
    """How far the picture agrees with alignments by hand, if that was measured on these weights.

    Args:
        of: "saliency", or one of `READINGS`.
    """
    rates = service.alignment_error_rates(name, of)
    if rates is None:
        return ""
    own, diagonal = (f"{rate:.2f}" for rate in rates)
    return Language.of(language).say("attention.aer", aer=own, diagonal=diagonal)


def statistics(map: AttentionMap) -> HeadStatistics:
    """Entropy and mass on the special token of every head, of a map of pieces."""
    from seqviz.looking.alignment import head_statistics

    return head_statistics(map)


def _of_heads(values: np.ndarray, layer: int | None, head: int | None) -> float:
    """One of the values (L, H), or the mean over the layers and heads that are None."""
    picked, one = (slice(None) if n is None else slice(n, n + 1) for n in (layer, head))
    return float(values[picked, one].mean())


def stage(service: Service, choice: Choice, panels: Sequence[Panel], language: str) -> str:
    """The pictures, with those of all heads beside them where there are several."""
    if not panels:
        return ""
    figures = [one.figure(language, choice.color_max) for one in panels]
    first = panels[0]
    if not _has_heads(first):
        return heatmap.render_stage("", figures)
    assert first.map is not None
    found = statistics(first.translation.attention(first.map.kind))
    is_decoder = first.map.kind == "decoder"
    key = "attention.statistics_decoder" if is_decoder else "attention.statistics"

    def about(layer: int, head: int) -> str:
        entropy, end = found.entropy[layer, head], found.end_mass[layer, head]
        return Language.of(language).say(key, entropy=f"{entropy:.1f}", end=f"{100 * end:.0f}")

    is_cross = first.map.kind == "cross"
    heads = heatmap.render_heads(
        first.map,
        first.layer,
        first.head,
        language=language,
        color_max=choice.color_max,
        best=service.best_head(first.model, first.map.read) if is_cross else None,
        about=about,
    )
    return heatmap.render_stage(heads, figures)


def steps(service: Service, choice: Choice, panels: Sequence[Panel], language: str) -> str:
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
        key=choice.key,
        about=about,
        saliency=choice.view == "saliency",
    )


def _has_heads(one: Panel | None) -> bool:
    return one is not None and one.map is not None and one.map.num_layers * one.map.num_heads > 1


def options(
    service: Service, choice: Choice, panels: Sequence[Panel], parts: int, language: str
) -> dict[str, Any]:
    """Updates of view, kind, layer, head, reading and part, so that they offer what the first model has."""
    first = panels[0] if panels and panels[0].model == choice.model else None
    several = _has_heads(first)
    kind, layers, heads, layer = "cross", 1, 1, None
    if first is not None and first.map is not None:
        layers, heads, layer = first.map.num_layers, first.map.num_heads, first.layer
        kind = first.map.kind if first.map.kind in KINDS else choice.kind
    # Where there is one head there is nothing to choose, and the choice waits for the next model.
    best = not several or service.best_head(choice.model, choice.reading) is not None
    keep_best = choice.best and best
    part_choices = [
        (Language.of(language).say("attention.part_number", number=i + 1, total=parts), i)
        for i in range(parts)
    ]

    def radio(known: list, before: Any, value: Any, visible: bool = True) -> Any:
        # A value that stays is left out, so that what a person clicks meanwhile stays too.
        return gr.Radio(known, visible=visible, **({} if value == before else {"value": value}))

    looks = choice.view == "attention" and looks_back(choice.model)
    return {
        "view": radio(choices.views(choice.model, language), choice.view, choice.view),
        "kind": radio(
            choices.kinds(language, KINDS if several else KINDS[:1]), choice.kind, kind, several
        ),
        "layer": radio(
            choices.layers(layers, language, best),
            "best" if choice.best else or_mean(choice.layer),
            "best" if keep_best else or_mean(layer),
            several,
        ),
        "head": radio(
            choices.numbers(heads, language),
            or_mean(choice.head),
            "" if first is None or keep_best else or_mean(first.head),
            several and not keep_best,
        ),
        "reading": gr.Radio(visible=looks and kind == "cross"),
        "part": gr.Radio(part_choices, value=min(choice.part, parts - 1), visible=parts > 1),
    }


def file(service: Service, choice: Choice, language: str, format: str) -> dict[str, str] | None:
    """What is shown as a file: `name`, `type`, and `data` in base 64. None where nothing is shown.

    Args:
        format: one of `FORMATS`.
    """
    if too_long(choice.text, language) or not choice.text.strip():
        gr.Warning(Language.of(language).say("attention.empty"))
        return None
    panels = []
    try:
        for name in choice.models:
            one, why = panel(service, name, choice, units(service, name, choice), language)
            if one:
                panels.append(one)
            elif name == choice.model:
                gr.Warning(why)
                return None
    except RuntimeError as error:
        raise gr.Error(str(error), print_exception=False) from error
    data, note = export(panels, format, language=language, color_max=choice.color_max)
    if note:
        gr.Info(escape(note))
    return {
        "name": f"{'-and-'.join(one.name for one in panels)}.{format}",
        "type": FORMATS[format],
        "data": base64.b64encode(data).decode(),
    }
