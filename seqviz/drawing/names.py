"""What models and matrices are called, in the languages of the page."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from seqviz.drawing.styles import MODEL_STYLES, visible
from seqviz.language import Language
from seqviz.pieces import Pieces
from seqviz.text_languages import DEFAULT_LANGUAGES


class Matrices(Protocol):
    """What is read of an `AttentionMap`. It draws itself with `heatmap`, which so cannot import it."""

    @property
    def kind(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def source_pieces(self) -> Pieces: ...
    @property
    def target_pieces(self) -> Pieces: ...
    @property
    def languages(self) -> tuple[str, str]: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    def head(self, layer: int | None = None, head: int | None = None) -> np.ndarray: ...
    def hidden(self, layer: int | None = None, head: int | None = None) -> np.ndarray: ...


def name_of(model: str, language: str | Language) -> str:
    """What a model is called; one of the user's own by its own name."""
    if model in MODEL_STYLES:
        return Language.of(language).say(f"model.{model}")
    return visible(model)


def ending(languages: tuple[str, str]) -> str:
    """Of the keys of texts that name the sides: nothing for English and French, which have their own."""
    return "" if languages == DEFAULT_LANGUAGES else "_any"


def which(map: Matrices, layer: int | None, head: int | None, language: str | Language) -> str:
    """Kind, layer and head of a matrix, in words."""
    say = Language.of(language).say
    said = [say(f"attention.kind_{map.kind}{ending(map.languages)}")]
    counts = {"layers": map.num_layers, "heads": map.num_heads}
    if map.num_layers * map.num_heads > 1:
        if layer is None and head is None:
            said.append(say("attention.mean_all", **counts))
        else:
            said.append(
                say("attention.mean_layers", **counts)
                if layer is None
                else say("attention.layer_of", layer=layer + 1, **counts)
            )
            said.append(
                say("attention.mean_heads", **counts)
                if head is None
                else say("attention.head_of", head=head + 1, **counts)
            )
    return " · ".join(said)
