"""Attention maps, saliency and fixed vectors as files: what the page and `seqviz attend` hand out.

    panel = Panel(translation, translation.attention("cross").words())
    data, note = export([panel], "svg")

Shapes: `T` rows (target), `S` columns (source), `D` numbers of a vector.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seqviz.drawing import heatmap
from seqviz.language import Language
from seqviz.maps import AttentionMap

if TYPE_CHECKING:
    import numpy as np

    from seqviz.translating.result import Translation

FORMATS = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
}
"""File formats by name ending, with their media types."""


@dataclass(frozen=True)
class Panel:
    """One picture of one model: a map, or the one vector of a model without attention.

    Attributes:
        translation: what the picture belongs to.
        map: attention or saliency, of words or pieces; None where `vector` is shown.
        layer, head: counted from 0; None for the mean.
        vector: numbers from -1 to 1, (D,).
        about: a line said below the map.
    """

    translation: Translation
    map: AttentionMap | None = None
    layer: int | None = None
    head: int | None = None
    vector: np.ndarray | None = field(default=None, repr=False)
    about: str = ""

    def __post_init__(self) -> None:
        if (self.map is None) == (self.vector is None):
            raise ValueError("expected either a map or a vector")

    @property
    def model(self) -> str:
        return self.translation.model

    @property
    def name(self) -> str:
        """What a file of it is called, without ending; layers and heads counted from 1."""
        if self.map is None:
            return f"vector-{self.model}"
        if self.map.kind == "saliency":
            return f"saliency-{self.model}"
        layer = "" if self.layer is None else f"-layer-{self.layer + 1}"
        head = "" if self.head is None else f"-head-{self.head + 1}"
        return f"attention-{self.model}-{self.map.kind}{layer}{head}"

    def figure(self, language: str = "en", color_max: float = 1.0) -> str:
        """As HTML, for a page that carries `heatmap.HEAD`."""
        if self.map is None:
            assert self.vector is not None
            return heatmap.render_vector(
                self.vector,
                self.translation.source_words,
                self.translation.target_words,
                model=self.model,
                language=language,
                languages=self.translation.languages,
            )
        return heatmap.render(
            self.map,
            self.layer,
            self.head,
            language=language,
            color_max=color_max,
            about=self.about,
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers shown, in plain types; layer and head counted from 0, None for the mean."""
        translation = self.translation
        about: dict[str, Any] = {
            "sentence": translation.source,
            "translation": translation.text,
            "num_beams": translation.num_beams,
        }
        given = [note.values[0] for note in translation.notes if note.kind == "forced"]
        if given:
            about["given_pieces"] = given[0]
        if self.map is None:
            assert self.vector is not None
            return about | {"model": self.model, "vector": self.vector.tolist()}
        return about | self.map.to_dict(self.layer, self.head)

    def to_csv(self) -> str:
        """The numbers shown as a table."""
        if self.map is not None:
            return self.map.to_csv(self.layer, self.head)
        assert self.vector is not None
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["number", "value"])
        table.writerows([i, f"{value:.7f}"] for i, value in enumerate(self.vector.tolist(), 1))
        return out.getvalue()


def caution(panels: Sequence[Panel], language: str = "en") -> str:
    """What the first of the pictures does not say."""
    say = Language.of(language).say
    first = panels[0].map if panels else None
    if first is None and panels:
        return say("attention.caution_vector")
    kind = "_saliency" if first is not None and first.kind == "saliency" else ""
    return say(f"attention.caution{kind}")


def export(
    panels: Sequence[Panel], format: str, *, language: str = "en", color_max: float = 1.0
) -> tuple[bytes, str]:
    """One picture, or several side by side on one scale, as a file.

    JSON and CSV hold the numbers shown, HTML is one page that answers the pointer and needs nothing else.

    Args:
        panels: at least one.
        format: one of `FORMATS`.
        language: "en" or "zh".
        color_max: weight of the darkest colour.
    Returns:
        the bytes, and what a person should know of them; mostly "".
    Raises:
        ValueError: no panel, or an unknown format.
    """
    if not panels:
        raise ValueError("expected at least one picture, got none")
    if format not in FORMATS:
        raise ValueError(f"expected a format of {', '.join(FORMATS)}; got {format!r}")
    if format == "csv":
        tables = [panel.to_csv() for panel in panels]
        if len(tables) > 1:
            tables = [f"{panel.name}\n{table}" for panel, table in zip(panels, tables, strict=True)]
        return "\n".join(tables).encode("utf-8-sig"), ""  # the mark tells Excel that it is UTF-8
    if format == "json":
        found = [panel.to_dict() for panel in panels]
        content = found[0] if len(found) == 1 else {"panels": found}
        return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace"), ""
    if format == "html":
        figures = [panel.figure(language, color_max) for panel in panels]
        body = heatmap.render_pair(figures) if len(figures) > 1 else figures[0]
        page = heatmap.page(
            body,
            language=language,
            title=panels[0].translation.source,
            caution=caution(panels, language),
        )
        return page.encode(), ""
    return _picture(panels, format, language, color_max)


def _picture(
    panels: Sequence[Panel], format: str, language: str, color_max: float
) -> tuple[bytes, str]:
    from seqviz.drawing import figures

    spoken = Language.of(language)
    maps = [(p.map, p.layer, p.head) for p in panels if p.map is not None]
    first, said = panels[0], []
    if first.vector is not None:
        figure = figures.vector(first.vector, model=first.model, language=language)
    else:
        figure = figures.attention_side_by_side(maps, language=language, color_max=color_max)
    if len(panels) > 1 and len(maps) < len(panels):
        said.append(spoken.say("attention.one_kind", format=format.upper()))
    buffer = io.BytesIO()
    if note := figures.save(figure, buffer, format, language=spoken):
        said.append(spoken.say("attention.no_font", note=note))
    return buffer.getvalue(), spoken.join(said)
