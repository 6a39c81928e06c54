"""The picture of the Attention tab: two rows of words, and between them lines or one strip of numbers.

Two models write the same English in French. One must do with a fixed vector: all lines run into a narrow
strip, which is that vector, and out of it. The other looks back: a line's width and opacity are the weight
with which a French word looks at an English one. The markup holds both; which one is seen, the switch above
it says, and ``lines.js`` lets one become the other.

Shapes: `T` French words, `S` English words, `D` numbers of the vector.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqviz.drawing.names import name_of, which
from seqviz.drawing.pixels import pictures
from seqviz.drawing.styles import MODEL_STYLES, diverging_ramp, escape, style_of, visible
from seqviz.language import Language
from seqviz.maps import AttentionMap
from seqviz.text_languages import DEFAULT_LANGUAGES, TextLanguage

_HERE = Path(__file__).parent
HEAD = (
    f"<style>\n{(_HERE / 'lines.css').read_text(encoding='utf-8')}</style>\n"
    f"<script>\n{(_HERE / 'lines.js').read_text(encoding='utf-8')}</script>\n"
)
"""Style and behaviour, for the head of the page."""

REFRESH_JS = """
const refresh = () => window.seqvizLines?.refresh(element);
watch('value', refresh);
refresh();
"""
"""For the component whose value `render` makes."""
TURN_JS = "(on) => window.seqvizLines?.turn(on)"
"""Says to the picture how the switch stands."""

LEAST = 0.03
"""Smaller weights have no line."""


@dataclass(frozen=True)
class Fixed:
    """What the model with one vector wrote.

    Attributes:
        model: its name.
        target: words, (T,).
        vector: numbers from -1 to 1, (D,).
    """

    model: str
    target: Sequence[str]
    vector: np.ndarray


@dataclass(frozen=True)
class Looking:
    """What the model that looks back wrote.

    Attributes:
        map: of words, without special tokens.
        layer, head: counted from 0; None for the mean.
    """

    map: AttentionMap
    layer: int | None = None
    head: int | None = None

    @property
    def weights(self) -> np.ndarray:
        """(T, S) in single precision, as the browser gets them."""
        return np.ascontiguousarray(self.map.head(self.layer, self.head), dtype="<f4")


def strongest(weights: np.ndarray, count: int = 2) -> list[int]:
    """Places of the largest weights, the first of equals first."""
    return np.argsort(-np.asarray(weights), kind="stable")[:count].tolist()


def render(
    source: Sequence[str], fixed: Fixed, looking: Looking, language: str = "en", about: str = ""
) -> str:
    """The picture of one text; well-formed XML as well.

    Args:
        source: English words, (S,), at least one.
        language: "en" or "zh".
        about: a line below the picture that looks back.
    Raises:
        ValueError: no source word, or a map of other ones.
    """
    if not source or tuple(source) != tuple(looking.map.source_tokens):
        raise ValueError(f"expected a map of the words {source!r}, got {looking.map.source_tokens}")
    spoken = Language.of(language)
    texts = spoken.within("attention.lines")

    def say(key: str, **values: object) -> str:
        return escape(texts.say(key, **values))

    size = fixed.vector.size
    names = [name_of(model, language) for model in (fixed.model, looking.map.model)]
    weights = looking.weights
    read, wrote = looking.map.languages
    identity = zlib.crc32(
        repr((list(source), list(fixed.target), looking.map.target_tokens)).encode(
            "utf-8", "replace"
        )
    )
    attributes = {
        "data-id": f"{identity:08x}",
        "data-numbers": base64.b64encode(weights.tobytes()).decode(),
        "data-least": f"{LEAST:g}",
        "data-fixed": fixed.model,
        "data-looking": looking.map.model,
        "data-say-fixed": texts.say("point"),
        "data-say-looking": texts.say("point"),
        "data-say-fixed-source": texts.say("fixed_source", source="{word}", size=size),
        "data-say-fixed-target": texts.say("fixed_target", target="{word}", size=size),
        **{f"data-say-{name}": texts.template(name) for name in ("source", "target", "and")},
        "style": f"--ln-fixed:{_color(fixed.model)};--ln-looking:{_color(looking.map.model)}",
    }
    said = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    rows = "".join(
        f'<p class="ln-side ln-target ln-{state}"{_of(wrote)} role="group" '
        f'aria-label="{say("writes", model=name)}">{_words(target, "target", language, wrote)}</p>'
        for state, name, target in (
            ("off", names[0], fixed.target),
            ("on", names[1], looking.map.target_tokens),
        )
    )
    captions = "".join(
        f'<span class="ln-{state}">{say("writes", model=name)}</span>'
        for state, name in zip(("off", "on"), names, strict=True)
    )
    below = [say("thin", least=f"{LEAST:g}"), _hidden(looking, language), say("caution")]
    return (
        f'<figure class="ln"{said}>'
        f'<p class="ln-tell ln-off">{say("tell_fixed", model=names[0], size=size)}</p>'
        f'<p class="ln-tell ln-on">{say("tell_looking", model=names[1])}</p>'
        f'<p class="ln-readout" role="status">{say("point")}</p>'
        '<div class="ln-stage"><svg class="ln-lines" aria-hidden="true"></svg>'
        f'<p class="ln-name ln-name-source">{say("english")}</p>'
        f'<p class="ln-side ln-source"{_of(read)} role="group" aria-label="{say("english")}">'
        f"{_words(source, 'source', language)}</p>"
        f'<div class="ln-middle"><p class="ln-size ln-off"><b>{say("size", size=size)}</b> <span>{say("all")}</span></p>'
        f'<div class="ln-strip">{_strip(fixed.vector)}</div></div>'
        f'<div class="ln-targets">{rows}</div>'
        f'<p class="ln-name ln-name-target">{captions}</p></div>'
        f'<p class="ln-small ln-on">{escape(_which(looking, language))} {spoken.join(filter(None, below))} {escape(about)}</p>'
        f'<p class="ln-small ln-off">{say("caution_fixed")}</p>'
        f"{_table(looking, weights, names[1], language)}</figure>"
    )


# ---------------------------------------------------------------------------------------------
# Pieces of markup


def _words(words: Sequence[str], side: str, language: str, of: str = DEFAULT_LANGUAGES[0]) -> str:
    """Words as buttons, one of which the tab key reaches; under French ones what they mean."""
    if not words:
        nothing = Language.of(language).say("attention.lines.nothing")
        return f'<span lang="{Language.of(language).say("language.tag")}">{escape(nothing)}</span>'
    return " ".join(
        f'<button type="button" class="ln-word" data-side="{side}" data-place="{place}" '
        f'tabindex="{-1 if place else 0}"><bdi>{escape(visible(word))}</bdi>{_meaning(word, language, of)}</button>'
        for place, word in enumerate(words)
    )


def _meaning(word: str, language: str, of: str) -> str:
    """What a French word means, from the table; a word that the table lacks says nothing."""
    from seqviz.meaning import gloss

    if of != "fr":
        return ""
    known = [meaning for _, meaning in gloss(word, language) if meaning]
    if not known:
        return ""
    tag = Language.of(language).say("language.tag")
    return f'<small lang="{tag}">{escape(" ".join(known))}</small>'


def _of(language: str) -> str:
    """A browser that translates pages must not translate these words."""
    return f'{TextLanguage.of(language).tag} translate="no"'


def _color(model: str) -> str:
    color = style_of(model).color
    return f"var(--{model}, {color})" if model in MODEL_STYLES else color


def _strip(vector: np.ndarray) -> str:
    """The vector's numbers as colours, lying and standing; the page shows one of them."""
    levels = np.round(np.clip((np.asarray(vector) + 1) / 2, 0, 1) * 255).astype(np.uint8)
    ramps = (diverging_ramp(), diverging_ramp(True))
    return "".join(
        f'<span class="ln-numbers ln-{name}">{pictures(numbers, ramps)}</span>'
        for name, numbers in (("lying", levels[None]), ("standing", levels[:, None]))
    )


def _which(looking: Looking, language: str) -> str:
    """The layer and head, where there are several."""
    if looking.map.num_layers * looking.map.num_heads == 1:
        return ""
    stop = Language.of(language).say("attention.lines.stop")
    return f"{which(looking.map, looking.layer, looking.head, language)}{stop}"


def _hidden(looking: Looking, language: str) -> str:
    hidden = looking.map.hidden(looking.layer, looking.head)  # (T,)
    if not hidden.size or hidden.mean() < 0.005:
        return ""
    return escape(
        Language.of(language).say("attention.lines.hidden", percent=f"{100 * hidden.mean():.0f}")
    )


def _table(looking: Looking, weights: np.ndarray, model: str, language: str) -> str:
    """The same as the lines, for whoever does not see them: each French word with its two strongest."""
    texts = Language.of(language).within("attention.lines")
    source = looking.map.source_tokens
    rows = []
    for word, row in zip(looking.map.target_tokens, weights, strict=True):
        cells = "".join(
            f"<td>{escape(visible(source[place]))} {row[place]:.2f}</td>"
            for place in strongest(row)
        )
        rows.append(f'<tr><th scope="row">{escape(visible(word))}</th>{cells}</tr>')
    caption = escape(texts.say("table", model=model))
    return f'<table class="ln-unseen ln-on"><caption>{caption}</caption><tbody>{"".join(rows)}</tbody></table>'
