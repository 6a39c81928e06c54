"""Attention maps as HTML: a picture of one pixel a cell, words that the browser draws, exact numbers.

`render` and its companions return an element for a page that carries `HEAD` once; `standalone` returns a
whole page that opens offline. What the pointer, a tap and the arrow keys do stands in ``heatmap.js``.
Every string from a person or a model is escaped here. Elements are well-formed XML as well.

Shapes: `T` rows (target words), `S` columns (source words).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from seqviz.drawing.names import Matrices, ending, name_of, which
from seqviz.drawing.pixels import levels, pictures
from seqviz.drawing.styles import (
    LIGHT_PAPER,
    MODEL_STYLES,
    diverging_ramp,
    escape,
    label_width,
    ramp,
    style_of,
    visible,
)
from seqviz.language import Language
from seqviz.pieces import Pieces
from seqviz.text_languages import DEFAULT_LANGUAGES, TextLanguage

_HERE = Path(__file__).parent
# Both readings, as HTML and as XML, must leave the script and the style alone.
HEAD = (
    f"<style>/*<![CDATA[*/\n{(_HERE / 'heatmap.css').read_text(encoding='utf-8')}/*]]>*/</style>\n"
    f"<script>//<![CDATA[\n{(_HERE / 'heatmap.js').read_text(encoding='utf-8')}//]]></script>\n"
)
"""Style and behaviour of all maps, for the head of a page."""

TEXT, TEXT_OF_FEW, FEW = 13, 15, 16
"""Size of a label, pixels; a map of few words has larger ones."""
LONGEST_LABEL = 9.5
"""Longer labels end in an ellipsis, em; the line above the map shows them whole."""

_SIDES = {"cross": (1, 0), "encoder": (0, 0), "decoder": (1, 1), "saliency": (1, 0)}
"""Whose words the rows and the columns of a kind are: 0 for the source, 1 for the target."""
# A browser that translates pages must not translate the words of a picture.
_KEEP = ' translate="no"'


def render(
    map: Matrices,
    layer: int | None = None,
    head: int | None = None,
    *,
    language: str = "en",
    color_max: float = 1.0,
    about: str = "",
) -> str:
    """One attention matrix: target words down, source words across.

    Args:
        map: of pieces or words, at least one on each side.
        layer, head: counted from 0 (the page counts from 1); None for the mean.
        language: "en" or "zh".
        color_max: weight of the darkest colour.
        about: lines below the map.
    Raises:
        IndexError: no such layer or head.
        ValueError: a side without words.
    """
    weights = np.ascontiguousarray(map.head(layer, head), dtype="<f4")  # (T, S)
    rows, columns = weights.shape
    if not rows or not columns:
        raise ValueError(
            f"expected a map with tokens on both sides, got {rows} target and {columns} source tokens"
        )
    source, target = (
        [visible(token) for token in tokens]
        for tokens in (map.source_pieces.tokens, map.target_pieces.tokens)
    )
    kind = map.kind if map.kind in _SIDES else "cross"
    # Positions go from left to right whatever the script; each label finds its own direction.
    down, across = (f' lang="{map.languages[side]}"{_KEEP}' for side in _SIDES[kind])
    texts = Language.of(language).within("attention")

    def say(key: str, **values: object) -> str:
        return escape(texts.say(key, **values))

    def template(key: str) -> str:
        return escape(texts.template(key))

    most = [
        f"<li>{say('most', target=target[row], source=source[best], weight=f'{weights[row, best]:.2f}')}</li>"
        for row, best in enumerate(weights.argmax(axis=1))
    ]
    hidden = float(map.hidden(layer, head).mean())
    shares = kind == "saliency"
    hidden_key = "hidden_saliency" if shares else "hidden"
    hidden_line = say(hidden_key, percent=f"{100 * hidden:.0f}") if hidden >= 0.005 else ""
    more = "".join(
        f'<div class="sv-about">{escape(line)}</div>' for line in about.split("\n") if line
    )
    darkest = f"{color_max:g}" if color_max == 1 else f"≥ {color_max:g}"
    unit = "pieces" if len(set(map.target_pieces.word_of_piece)) < rows else "words"
    return (
        f'<figure class="sv-map" style="{_map_style(map.model, source, target)}" '
        f'data-source="{zlib.crc32(repr(source).encode())}" '
        f'data-kind="{kind}" data-unit="{unit}" data-model="{escape(visible(map.model))}" '
        f'data-say-nothing="{say("point")}" data-say-cell="{template(f"cell_{kind}")}" '
        f'data-say-row="{template(f"row_{kind}")}" data-say-column="{template(f"column_{kind}")}">'
        f'<figcaption class="sv-title">{escape(name_of(map.model, language))}'
        f"<span>{escape(which(map, layer, head, language))}</span></figcaption>"
        f'<div class="sv-body"><div class="sv-top"><div class="sv-readout" role="status">{say("point")}</div>'
        f'<div class="sv-zoom"><button type="button" data-sv-zoom="0.8" aria-label="{say("smaller")}">−</button>'
        f'<button type="button" data-sv-zoom="1.25" aria-label="{say("larger")}">+</button></div></div>'
        f'<div class="sv-scroll" tabindex="0" role="application" '
        f'aria-label="{say(f"label_{kind}{ending(map.languages)}", rows=rows, columns=columns)}">'
        f'<div class="sv-grid"><div class="sv-corner"></div>'
        f'<div class="sv-across"{across}>{_across(source, map.source_pieces)}</div>'
        f'<div class="sv-down"{down}>{_down(target, map.target_pieces)}</div>'
        f'<div class="sv-cells" data-rows="{rows}" data-columns="{columns}" '
        f'data-numbers="{base64.b64encode(weights.tobytes()).decode()}">'
        f"{pictures(levels(weights, color_max), _model_ramp(map.model))}"
        '<i class="sv-lines"></i><i class="sv-row"></i><i class="sv-column"></i><i class="sv-cell"></i>'
        "</div></div></div>"
        f'<div class="sv-foot"><span>{hidden_line}</span>'
        f'<span class="sv-scale">0<i></i>{darkest} {say("share" if shares else "weight")}</span>'
        f"</div></div>{more}"
        f'<ul class="sv-unseen">{"".join(most)}</ul></figure>'
    )


def render_pair(figures: Sequence[str]) -> str:
    """Maps beside each other, where there is room; a source word lights up in all of them."""
    return f'<div class="sv-pair">{"".join(figures)}</div>'


def render_heads(
    map: Matrices,
    layer: int | None = None,
    head: int | None = None,
    *,
    language: str = "en",
    color_max: float = 1.0,
    best: tuple[int, int] | None = None,
    about: Callable[[int, int], str] | None = None,
) -> str:
    """All heads as small pictures, a line for each layer; the chosen one is marked.

    Each is a button with ``data-layer`` and ``data-head``; so is the mean, where both are empty, and the
    one closest to alignments, where both say "best".

    Args:
        best: layer and head closest to alignments by hand, if that was measured.
        about: what is said of a layer and head when one points at its picture.
    """
    say = Language.of(language).say
    heads = []
    for row in range(map.num_layers):
        for column in range(map.num_heads):
            weights = map.head(row, column)
            name = say("attention.head_name", layer=row + 1, head=column + 1)
            if about:
                name = say("attention.head_about", head=name, about=about(row, column))
            star = " ★" if best == (row, column) else ""
            heads.append(
                f'<button type="button" data-layer="{row}" data-head="{column}" '
                f'aria-pressed="{_true((layer, head) == (row, column))}" '
                f'title="{escape(name)}" aria-label="{escape(name)}">'
                f"{pictures(levels(weights, color_max), _model_ramp(map.model))}"
                f"<span>{row + 1} · {column + 1}{star}</span></button>"
            )
    whole = [("", layer is None and head is None, "attention.mean_of_all")]
    if best is not None:
        whole.insert(0, ("best", (layer, head) == best, "attention.best_head"))
    buttons = "".join(
        f'<button type="button" data-layer="{value}" data-head="{value}" aria-pressed="{_true(pressed)}">'
        f"{escape(say(key))}</button>"
        for value, pressed, key in whole
    )
    style = {"--sv-model": _model_color(map.model), "--heads": map.num_heads}
    return (
        f'<div class="sv-heads" style="{_style(style)}"><div class="sv-whole">{buttons}</div>'
        f"{''.join(heads)}</div>"
    )


def render_stage(heads: str, figures: Sequence[str]) -> str:
    """The small pictures of all heads beside the map, above it where there is no room.

    Args:
        heads: from `render_heads`; empty where there is one head.
        figures: one map or two, side by side.
    """
    maps = render_pair(figures) if len(figures) > 1 else "".join(figures)
    return f'<div class="sv-stage">{heads}<div class="sv-shown">{maps}</div></div>'


def render_vector(
    vector: np.ndarray,
    source: Sequence[str],
    target: Sequence[str],
    *,
    model: str,
    language: str = "en",
    languages: tuple[str, str] = DEFAULT_LANGUAGES,
) -> str:
    """The one vector of a model without attention: the source words flow into it, the output out of it.

    Args:
        vector: its numbers, each from -1 to 1, (D,).
        source, target: words on both sides.
        model: name of the model.
        language: "en" or "zh".
        languages: codes of the languages of source and target.
    Raises:
        ValueError: not one row of numbers.
    """
    vector = np.ascontiguousarray(vector, dtype="<f4")
    if vector.ndim != 1 or not vector.size:
        raise ValueError(f"expected one vector (numbers), got shape {vector.shape}")
    size = vector.size
    style = {"--sv-model": _model_color(model), "--sv-rows": 1, "--sv-columns": size}
    numbers = np.round(np.clip((vector[None] + 1) / 2, 0, 1) * 255).astype(np.uint8)
    drawn = pictures(numbers, (diverging_ramp(), diverging_ramp(True)))

    texts = Language.of(language).within("attention")

    def say(key: str, **values: object) -> str:
        return escape(texts.say(key, **values))

    before, after = (TextLanguage.of(code).tag + _KEEP for code in languages)

    def flow(tokens: Sequence[str]) -> str:
        return "".join(f"<bdi>{escape(visible(token))}</bdi> " for token in tokens)

    return (
        f'<figure class="sv-vector" style="{_style(style)}" '
        f'data-say-nothing="{say("point_number", size=size)}" data-say-number="{say("number", size=size)}">'
        f'<figcaption class="sv-title">{escape(name_of(model, language))}'
        f"<span>{say('no_attention')}</span></figcaption>"
        f'<div class="sv-words"{before}>{flow(source)}</div>'
        '<div class="sv-flow"></div>'
        f'<div class="sv-strip" tabindex="0" role="application" aria-label="{say("label_vector", size=size)}" '
        f'data-rows="1" data-columns="{size}" '
        f'data-numbers="{base64.b64encode(vector.tobytes()).decode()}">{drawn}'
        '<i class="sv-column"></i></div>'
        f'<div class="sv-all">{say("all_it_knows")}</div>'
        f'<div class="sv-readout" role="status">{say("point_number", size=size)}</div>'
        '<div class="sv-flow"></div>'
        f'<div class="sv-words"{after}>{flow(target)}</div></figure>'
    )


def standalone(
    map: Matrices,
    layer: int | None = None,
    head: int | None = None,
    *,
    language: str = "en",
    color_max: float = 1.0,
    title: str = "",
) -> str:
    """The map as one HTML file that needs nothing else and opens offline.

    Args:
        title: in the head and above the map, such as the sentence; none if empty.
    """
    figure = render(map, layer, head, language=language, color_max=color_max)
    return page(figure, language=language, title=title)


def notebook(figure: str) -> str:
    """What a notebook shows as rich output: a figure with all that it needs, and paper of its own.

    The notebook may be dark without our knowing; so no colour is taken from it.
    """
    return f'{HEAD}<div class="sv-paper">{figure}</div>'


def page(figures: str, *, language: str = "en", title: str = "", caution: str = "") -> str:
    """A whole page around what the functions above return.

    Args:
        title: in the head and above the figures.
        caution: the line below them; empty for what attention is not.
    """
    name = escape(visible(title)) if title else ""
    heading = f"<h1>{name}</h1>" if name else ""
    say = Language.of(language).say
    caution = escape(caution or say("attention.caution"))
    return (
        f'<!DOCTYPE html>\n<html lang="{say("language.tag")}">\n<head>\n'
        '<meta charset="utf-8"/>\n<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{name or 'seqviz'}</title>\n"
        "<script>if (matchMedia('(prefers-color-scheme: dark)').matches) "
        "document.documentElement.classList.add('dark');</script>\n"
        f"{HEAD}<style>html {{ background: {LIGHT_PAPER}; color: #1d1f22; }} "
        "html.dark { background: #15171a; color: #ebe9e4; color-scheme: dark; } "
        "body { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'PingFang SC', 'Microsoft YaHei', "
        "sans-serif; max-width: 1180px; margin: 1.5rem auto; padding: 0 1rem; } "
        "h1 { font-size: 1.1rem; font-weight: 600; line-height: 1.5; overflow-wrap: anywhere; } "
        ".note { font-size: 0.85rem; line-height: 1.5; opacity: 0.75; max-width: 50em; }</style>\n"
        f'</head>\n<body>\n{heading}\n{figures}\n<p class="note">{caution}</p>\n</body>\n</html>\n'
    )


# ---------------------------------------------------------------------------------------------
# Pieces of markup


def _style(values: dict[str, object]) -> str:
    return escape(";".join(f"{name}:{value}" for name, value in values.items()))


def _map_style(model: str, source: Sequence[str], target: Sequence[str]) -> str:
    """Colours of a map, and room for its labels."""
    text = TEXT_OF_FEW if max(len(source), len(target)) <= FEW else TEXT
    slant, left = (
        text * min(LONGEST_LABEL, 1.12 * max(_widths(tokens)) + 0.4) for tokens in (source, target)
    )
    return _style(
        {
            "--sv-model": _model_color(model),
            "--sv-rows": len(target),
            "--sv-columns": len(source),
            "--sv-font": f"{text}px",
            "--sv-slant": f"{slant:.0f}px",
            "--sv-head": f"{slant * 0.71 + text + 6:.0f}px",
            "--sv-over": f"{slant * 0.71 + 6:.0f}px",
            "--sv-left": f"{left + 14:.0f}px",
            "--sv-ramp": _gradient(model, False),
            "--sv-ramp-dark": _gradient(model, True),
        }
    )


def _across(labels: Sequence[str], pieces: Pieces) -> str:
    return "".join(
        f'<span style="--i:{i}"{_special(word)}><bdi>{escape(label)}</bdi></span>'
        for i, (label, word) in enumerate(zip(labels, pieces.word_of_piece, strict=True))
    )


def _down(labels: Sequence[str], pieces: Pieces) -> str:
    return "".join(
        f"<span{_special(word)}><bdi>{escape(label)}</bdi></span>"
        for label, word in zip(labels, pieces.word_of_piece, strict=True)
    )


def _true(value: bool) -> str:
    return "true" if value else "false"


def _special(word: int) -> str:
    return ' class="sv-special"' if word < 0 else ""


def _widths(tokens: Sequence[str]) -> list[float]:
    # A very long word is cut anyway: no need to measure all of it.
    return [label_width(token[:40]) for token in tokens]


def _model_color(model: str) -> str:
    color = style_of(model).color
    return f"var(--{model}, {color})" if model in MODEL_STYLES else color


def _model_ramp(model: str) -> tuple[np.ndarray, np.ndarray]:
    color = style_of(model).color
    return ramp(color), ramp(color, True)


@lru_cache(maxsize=32)
def _gradient(model: str, dark: bool) -> str:
    stops = _model_ramp(model)[dark][:: 255 // 15]
    return f"linear-gradient(to right,{','.join('#{:02x}{:02x}{:02x}'.format(*stop) for stop in stops)})"
