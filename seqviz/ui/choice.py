"""What a visitor of the Attention tab has chosen, and what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from seqviz.constants import MODELS
from seqviz.language import Language
from seqviz.maps import KINDS, READINGS
from seqviz.ui import stepping

FIRST = "lstm-attention"
"""Whoever names no model means this one: one layer, one head, nothing to explain first."""
OPENS_WITH = "lstm"
"""The model that the page opens with: the one that must not look back yet."""
COUNTERPARTS = {
    "rnn": "lstm-attention",
    "lstm": "lstm-attention",
    "lstm-attention": "lstm",
    "transformer": "lstm",
}
"""On the other side of the switch, unless another model was chosen there."""
SCALES = (1.0, 0.5, 0.25)
"""Weights that the darkest colour may stand for."""


def looks_back(model: str) -> bool:
    """Whether its decoder sees all the states of the encoder, and not one vector."""
    return not MODELS[model].has_one_vector


@dataclass(frozen=True)
class Choice:
    """What a visitor has chosen. Layers and heads are counted from 0, None is the mean.

    Attributes:
        text: English.
        model: what is looked into.
        other: on the other side of the switch; see `pair`.
        second: beside the model's matrix.
        view: "attention", which for a model that cannot look back is its vector, or "saliency".
        kind: one of `KINDS`.
        best: take the layer and head closest to alignments by hand, where that is known.
        layer, head: where `best` does not say.
        reading: one of `READINGS`.
        unit: "words" or "pieces", in the matrix.
        specials: show special tokens in the matrix.
        num_beams: 1 for greedy search.
        color_max: weight of the darkest colour.
        part: of a text that is read in parts.
        prefix: ids that the model's output of this part must begin with.
    """

    text: str
    model: str = FIRST
    other: str | None = None
    second: str | None = None
    view: str = "attention"
    kind: str = "cross"
    best: bool = False
    layer: int | None = None
    head: int | None = None
    reading: str = READINGS[0]
    unit: str = "words"
    specials: bool = False
    num_beams: int = 1
    color_max: float = 1.0
    part: int = 0
    prefix: tuple[int, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Choice:
        """What components say, by name; whatever is not among their choices becomes the first one."""
        text, layer, head, part = (values.get(name) for name in ("text", "layer", "head", "part"))
        choice = cls(
            text=text if isinstance(text, str) else "",
            model=_model(values.get("model")) or FIRST,
            other=_model(values.get("other")),
            second=_model(values.get("second")),
            view=_one_of(("attention", "saliency"), values.get("view")),
            kind=_one_of(KINDS, values.get("kind")),
            best=layer == "best",
            layer=layer if _is_whole(layer) else None,
            head=head if _is_whole(head) else None,
            reading=_one_of(READINGS, values.get("reading")),
            unit=_one_of(("words", "pieces"), values.get("unit")),
            specials=values.get("specials") is True,
            num_beams=_one_of((1, 4), values.get("beams")),
            color_max=_one_of(SCALES, values.get("scale")),
            part=part if isinstance(part, int) and _is_whole(part) else 0,
        )
        return replace(choice, prefix=stepping.start_ids(values.get("start"), choice.key))

    @property
    def key(self) -> str:
        """A chosen start belongs to this; anything else has the model's own."""
        return stepping.key_of(self.text, self.model, self.num_beams, self.part)

    @property
    def pair(self) -> tuple[str, str]:
        """The model with one vector and the one that looks back: the chosen one and its counterpart."""
        fits = self.other and looks_back(self.other) != looks_back(self.model)
        other = self.other if self.other and fits else COUNTERPARTS[self.model]
        return (other, self.model) if looks_back(self.model) else (self.model, other)

    @property
    def counterpart(self) -> str:
        """The model of the pair that was not chosen."""
        return self.pair[not looks_back(self.model)]

    @property
    def models(self) -> list[str]:
        """Those with a matrix: one or two."""
        return list(dict.fromkeys(filter(None, (self.model, self.second))))


def _model(value: Any) -> str | None:
    return value if isinstance(value, str) and value in MODELS else None


def _one_of(known: tuple[Any, ...], value: Any) -> Any:
    # The radios say nothing that is not among their choices; a bool equals a number.
    return value if value in known and not isinstance(value, bool) else known[0]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def clicked_head(event: gr.EventData) -> tuple[Any, Any]:
    """Layer and head of the small picture that was clicked, as values of the two choices."""
    layer, head = (str(getattr(event, name, "")) for name in ("layer", "head"))
    return (
        int(layer) if layer.isdecimal() else "best" if layer == "best" else "",
        int(head) if head.isdecimal() else "",
    )


# ---------------------------------------------------------------------------------------------
# What there is to choose from: labels and values


def models(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"model.{name}"), name) for name in MODELS]


def views(model: str, language: str) -> list[tuple[str, str]]:
    say = Language.of(language).say
    first = "attention" if looks_back(model) else "vector"
    return [
        (say(f"attention.view_{first}"), "attention"),
        (say("attention.view_saliency"), "saliency"),
    ]


def seconds(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say("attention.second_none"), ""), *models(language)]


def kinds(language: str, some: tuple[str, ...] = KINDS) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"attention.kind_{kind}"), kind) for kind in some]


def numbers(count: int, language: str) -> list[tuple[str, Any]]:
    """A gr.Radio has no value None among its choices, so the mean is ""."""
    mean = (Language.of(language).say("attention.mean"), "")
    return [mean, *((str(i + 1), i) for i in range(count))]


def layers(count: int, language: str, best: bool) -> list[tuple[str, Any]]:
    first = [(Language.of(language).say("attention.best_head"), "best")] if best else []
    return [*first, *numbers(count, language)]


def or_mean(number: int | None) -> int | str:
    """A layer or head as a value of its radio."""
    return "" if number is None else number


def readings(language: str) -> list[tuple[str, str]]:
    return [(Language.of(language).say(f"attention.reading_{name}"), name) for name in READINGS]


def units(language: str) -> list[tuple[str, str]]:
    say = Language.of(language).say
    return [(say(f"attention.unit_{unit}"), unit) for unit in ("words", "pieces")]


def specials(language: str) -> list[tuple[str, bool]]:
    say = Language.of(language).say
    return [(say("attention.specials_hidden"), False), (say("attention.specials_shown"), True)]


def scales(language: str) -> list[tuple[str, float]]:
    say = Language.of(language).say
    return [(say("attention.scale_at", weight=f"{scale:g}"), scale) for scale in SCALES]
