"""Stepping through decoding: the output piece by piece, the best next pieces, and where the model looks.

`render` makes the panel; everything in it but choosing another piece happens in the browser
(``stepping.js``), which tells the page the step as the event ``seqviz:step``. `make` is the component with
its one event to the server; what a visitor has chosen is a `Start`, which belongs to one sentence and is
not used for another (`start_ids`).

Shapes: `T` target tokens, `S` source tokens, `W` source words.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

from seqviz.drawing.styles import MODEL_STYLES, escape, style_of, visible
from seqviz.language import Language
from seqviz.pieces import WORD_START
from seqviz.ui.tab import QUICK_EVENT

if TYPE_CHECKING:
    from seqviz.translating.result import Candidate, Translation

_HERE = Path(__file__).parent
HEAD = (
    f"<style>\n{(_HERE / 'stepping.css').read_text(encoding='utf-8')}</style>\n"
    f"<script>\n{(_HERE / 'stepping.js').read_text(encoding='utf-8')}</script>\n"
)
"""Style and behaviour, for the head of the page."""

_JS = """
const refresh = () => window.seqvizSteps?.refresh(element);
element.addEventListener('seqviz:choose', event => trigger('click', event.detail));
watch('value', refresh);
refresh();
"""


@dataclass(frozen=True)
class Stepping:
    """The panel on the page.

    Attributes:
        panel: the component whose value `render` makes.
        start: a ``gr.State`` with what was chosen, for `start_ids`.
        chosen: the event after which `start` has changed; go on with ``chosen.then(…)``.
    """

    panel: gr.HTML
    start: gr.State
    chosen: Any


def make(elem_id: str) -> Stepping:
    """Make the components here, inside the current block."""
    panel = gr.HTML(elem_id=elem_id, js_on_load=_JS, apply_default_css=False)
    start = gr.State(None)
    chosen = panel.click(_chosen, outputs=start, **QUICK_EVENT)
    return Stepping(panel, start, chosen)


def key_of(*values: Any) -> str:
    """A name for all that a chosen start depends on: text, model, beams, part."""
    return f"{zlib.crc32(repr(values).encode('utf-8', 'replace')):08x}"


def start_ids(start: Any, key: str) -> tuple[int, ...]:
    """The ids of a start that was chosen for `key`; empty for anything else."""
    if not isinstance(start, dict) or start.get("key") != key:
        return ()
    return tuple(start.get("ids", ()))


def _chosen(event: gr.EventData) -> dict[str, Any] | None:
    """What the browser says was chosen. Nothing, or nonsense, is the model's own output."""
    ids, key = getattr(event, "ids", None), getattr(event, "key", None)
    if not isinstance(ids, list) or not isinstance(key, str) or not ids or len(ids) > 1000:
        return None
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        return None
    return {"key": key[:40], "ids": ids}


# ---------------------------------------------------------------------------------------------
# Markup


def render(
    translation: Translation,
    candidates: Sequence[Sequence[Candidate]],
    rows: np.ndarray | None = None,
    language: str = "en",
    *,
    given: int = 0,
    key: str = "",
    about: str = "",
    saliency: bool = False,
) -> str:
    """The panel of a translation that was made at once; well-formed XML as well.

    Args:
        translation: not of several parts; without a target token there is nothing to show.
        candidates: from `Translator.candidates`, for each target token.
        rows: what each target token is drawn from, (T, S), each row with sum 1; None for a model that
            cannot look back.
        language: "en" or "zh".
        given: so many target tokens were chosen; the panel opens at the last of them.
        key: what the start was or will be chosen for, from `key_of`.
        about: which weights `rows` are, such as the layer and head.
        saliency: `rows` say what a piece depends on, not where the model looks.
    Raises:
        ValueError: a translation of several parts, candidates or rows of another size.
    """
    total = len(translation.target_tokens)
    if translation.parts:
        raise ValueError(f"expected one part, got a text of {len(translation.parts)} parts")
    if len(candidates) != total:
        raise ValueError(f"expected candidates for {total} steps, got {len(candidates)}")
    if not total:
        return ""

    spoken = Language.of(language)
    texts = spoken.within("stepping")

    def say(name: str, **values: object) -> str:
        return escape(texts.say(name, **values))

    steps = [
        _step(translation, place, found, place < given, language)
        for place, found in enumerate(candidates)
    ]
    now = min(max(0, given - 1), total - 1)
    weights, hidden = _by_words(translation, rows)
    for step, share in zip(steps, hidden, strict=True):
        step["hidden"] = f"{100 * share:.0f}" if share >= 0.005 else ""
    model = translation.model
    color = style_of(model).color
    color = f"var(--{model}, {color})" if model in MODEL_STYLES else color
    name = spoken.say(f"model.{model}") if model in MODEL_STYLES else visible(model)
    identity = zlib.crc32(repr((model, translation.source, translation.target_ids, given)).encode())
    attributes = {
        "data-id": f"{identity:08x}",
        "data-key": key,
        "data-model": model,
        "data-start": now,
        "data-given": given,
        "data-ids": json.dumps(list(translation.target_ids)),
        "data-steps": json.dumps(steps, ensure_ascii=False, separators=(",", ":")),
        "data-weights": "" if weights is None else base64.b64encode(weights.tobytes()).decode(),
        **_patterns(saliency, language),
        "aria-label": texts.say("label", model=name),
        "style": f"--st-model:{color}",
    }
    said = "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())
    look = _look(translation, weights, now, about, language)
    return (
        f'<section class="st" tabindex="0" role="group"{said}>'
        f'<div class="st-head"><b>{say("title")}</b><span>{escape(name)}</span>'
        f'<span class="st-count" role="status">{say("count", number=now + 1, total=total)}</span></div>'
        f"{_own(given, language)}"
        f'<p class="st-output" lang="fr" translate="no" aria-label="{say("output")}">'
        f"{_output(translation, now, given, language)}</p>"
        f"{_controls(now, total, language)}"
        f'<div class="st-columns">{_next(translation, steps, now, language)}'
        f'<div class="st-look"><h3>{say("depends" if saliency else "looks")}</h3>{look}'
        f'<p class="st-hidden">{_hidden(steps[now]["hidden"], saliency, language)}</p></div></div></section>'
    )


def _patterns(saliency: bool, language: str) -> dict[str, str]:
    """What the browser says by itself."""
    spoken = Language.of(language)
    return {
        "data-say-count": spoken.template("stepping.count"),
        "data-say-play": spoken.say("stepping.play"),
        "data-say-pause": spoken.say("stepping.pause"),
        "data-say-hidden": spoken.template(_HIDDEN[saliency]),
    }


def _next(
    translation: Translation, steps: Sequence[dict[str, Any]], now: int, language: str
) -> str:
    """The best next pieces, with as many rows as any step needs."""
    spoken = Language.of(language)
    told = ["choose", "joiner", *(["beam"] if translation.num_beams > 1 else [])]
    told_line = spoken.join(escape(spoken.say(f"stepping.{key}")) for key in told)
    most_rows = max(len(step["rows"]) for step in steps)
    return (
        f'<div class="st-next"><h3>{escape(spoken.say("stepping.best"))}</h3><p>{told_line}</p>'
        f'<ol lang="fr" translate="no">{_rows(steps[now]["rows"], most_rows, language)}</ol></div>'
    )


def _step(
    translation: Translation, place: int, found: Sequence[Candidate], given: bool, language: str
) -> dict[str, Any]:
    """One step as the browser needs it, all texts ready to be shown."""
    taken = translation.target_ids[place]
    rows = [_row(c.token_id, c.token, c.log_prob, language) for c in found]
    if all(candidate.token_id != taken for candidate in found):
        token = translation.target_tokens[place]
        rows.append(_row(taken, token, translation.token_log_probs[place], language))
    for row in rows:
        if row["id"] == taken:
            row["tag"] = Language.of(language).say(
                "stepping.chosen" if given else "stepping.written"
            )
    word = translation.target_word_index[place]
    return {"rows": rows, "word": word if word >= 0 else len(translation.target_words)}


def _row(token_id: int, token: str, log_prob: float, language: str) -> dict[str, Any]:
    say = Language.of(language).say
    text, joined = _piece(token, token_id, language)
    percent = 100 * float(np.exp(log_prob))
    if percent >= 0.1:
        shown = f"{percent:.1f}"
    elif percent >= 0.0001:
        shown = f"{percent:.4f}"
    else:
        shown = "< 0.0001"
    return {
        "id": token_id,
        "text": text,
        "joined": joined,
        "percent": say("stepping.percent", number=shown),
        "width": f"{percent:.2f}%",
        "title": say("stepping.log_prob", number=f"{log_prob:.3f}".replace("-", "−")),
        "tag": "",
    }


def _piece(token: str, token_id: int, language: str) -> tuple[str, bool]:
    """A piece as people read it, and whether it is joined to the one before."""
    say = Language.of(language).say
    if token_id == 0:  # `seqviz.data.tokenizer.EOS_TOKEN_ID`
        return say("stepping.end"), False
    plain = token.removeprefix(WORD_START)
    if not plain:
        return say("stepping.space"), False
    return visible(plain), plain == token


def _output(translation: Translation, now: int, given: int, language: str) -> str:
    pieces = []
    for place, token in enumerate(translation.target_tokens):
        text, joined = _piece(token, translation.target_ids[place], language)
        if translation.target_word_index[place] < 0:
            text = "⏎"
        elif token == WORD_START:
            text = "␣"
        classes = ["st-piece"]
        classes += ["st-now"] if place == now else ["st-later"] if place > now else []
        classes += ["st-given"] if place < given else []
        hidden = ' aria-hidden="true"' if place > now else ""
        space = "" if joined or place == 0 else " "
        pieces.append(
            f'{space}<span class="{" ".join(classes)}" data-place="{place}"{hidden}>{escape(text)}</span>'
        )
    return "".join(pieces)


_ICONS = {
    "first": "M5 4h2.5v16H5zM20 4v16L8.5 12z",
    "previous": "M18 4v16L6 12z",
    "play": "M6 4v16l13-8z",
    "pause": "M6 4h4v16H6zM14 4h4v16h-4z",
    "next": "M4 5v14l9-7zM13 5v14l9-7z",
    "last": "M16.5 4H19v16h-2.5zM4 4v16l11.5-8z",
}


def _controls(now: int, total: int, language: str) -> str:
    say = Language.of(language).say

    def icon(name: str) -> str:
        return (
            f'<svg class="st-{name}" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">'
            f'<path fill="currentColor" d="{_ICONS[name]}"/></svg>'
        )

    buttons = []
    for name in ("first", "previous", "play", "next", "last"):
        label = escape(say(f"stepping.{name}"))
        off = now == 0 if name in ("first", "previous") else now == total - 1
        disabled = f' aria-disabled="{"true" if off else "false"}"' if name != "play" else ""
        drawn = icon(name) + (icon("pause") if name == "play" else "")
        buttons.append(
            f'<button type="button" data-st="{name}" aria-label="{label}" title="{label}"{disabled}>'
            f"{drawn}</button>"
        )
    label = escape(say("stepping.range"))
    return (
        f'<div class="st-controls"><div class="st-buttons">{"".join(buttons)}</div>'
        f'<input type="range" min="0" max="{total - 1}" step="1" value="{now}" aria-label="{label}" '
        f'aria-valuetext="{escape(say("stepping.count", number=now + 1, total=total))}"/></div>'
    )


def _own(given: int, language: str) -> str:
    say = Language.of(language).say
    if not given:
        return ""
    return (
        f'<p class="st-own"><span>{escape(say("stepping.forced"))}</span> '
        f'<button type="button" data-st="own">{escape(say("stepping.own"))}</button></p>'
    )


def _rows(rows: Sequence[dict[str, Any]], most: int, language: str) -> str:
    """The rows of one step, and as many empty ones as another step needs."""
    say = Language.of(language).say
    made = []
    joined = escape(say("stepping.joined"))
    take = escape(say("stepping.take"))
    interface = f'lang="{say("language.tag")}"'
    for place in range(most):
        empty = place >= len(rows)
        row = rows[0] if empty else rows[place]
        taken = bool(row["tag"]) and not empty
        empty_class = ' class="st-empty"' if empty else ""
        not_joined = "" if row["joined"] else ' hidden="hidden"'
        made.append(
            f'<li{empty_class}><button type="button" class="st-candidate" '
            f'data-token="{row["id"]}" aria-disabled="{"true" if taken else "false"}" '
            f'title="{escape(row["title"])}"><span class="st-token">'
            f'<i{not_joined}><span aria-hidden="true">·</span>'
            f'<span class="st-unseen" {interface}>{joined}</span></i>'
            f"<bdi>{escape(row['text'])}</bdi></span>"
            f'<span class="st-bar"><i style="width:{row["width"]}"></i></span>'
            f"<b {interface}>{escape(row['percent'])}</b>"
            f'<span class="st-tag" {interface}>{escape(row["tag"])}</span>'
            f'<span class="st-take" {interface}><span aria-hidden="true">↳</span><span> {take}</span></span>'
            "</button></li>"
        )
    return "".join(made)


def _look(
    translation: Translation, weights: np.ndarray | None, now: int, about: str, language: str
) -> str:
    if weights is None:
        return f"<p>{escape(Language.of(language).say('stepping.vector'))}</p>"
    chips = "".join(
        f'<li style="--w:{weight:.4f}" title="{escape(visible(word))}: {weight:.4f}">'
        f'<bdi lang="en">{escape(visible(word))}</bdi><small>{weight:.2f}</small></li>'
        for word, weight in zip(translation.source_words, weights[now].tolist(), strict=True)
    )
    return f'<p>{escape(about)}</p><ul class="st-chips" translate="no">{chips}</ul>'


_HIDDEN = {False: "attention.hidden", True: "attention.hidden_saliency"}
"""What is said of hidden weight, by whether it is saliency."""


def _hidden(percent: str, saliency: bool, language: str) -> str:
    if not percent:
        return ""
    return escape(Language.of(language).say(_HIDDEN[saliency], percent=percent))


def _by_words(
    translation: Translation, rows: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray]:
    """Weights of the source words, (T, W), and the share of special tokens, (T,)."""
    shape = (len(translation.target_tokens), len(translation.source_tokens))
    if rows is None:
        return None, np.zeros(shape[0])
    rows = np.asarray(rows)
    if rows.shape != shape:
        raise ValueError(
            f"expected rows {shape} for the target and source tokens, got {rows.shape}"
        )
    weights = np.zeros((shape[0], len(translation.source_words)))
    hidden = np.zeros(shape[0])
    for place, word in enumerate(translation.source_word_index):
        if word >= 0:
            weights[:, word] += rows[:, place]
        else:
            hidden += rows[:, place]
    return np.ascontiguousarray(weights, dtype="<f4"), hidden
