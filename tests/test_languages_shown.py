"""Maps and figures of models of other languages: attributes, words about them, fonts, directions."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from seqviz import plotting
from seqviz.drawing import heatmap
from seqviz.drawing.figures import base
from seqviz.maps import AttentionMap
from seqviz.pieces import Pieces

SOURCE, TARGET = ("we", "saw", "them"), ("رأينا", "هم")


def a_map(kind: str = "cross", languages: tuple[str, str] | None = ("en", "ar")) -> AttentionMap:
    sides = {"cross": (TARGET, SOURCE), "encoder": (SOURCE, SOURCE), "decoder": (TARGET, TARGET)}
    rows, columns = sides.get(kind, sides["cross"])
    weights = np.full((1, 1, len(rows), len(columns)), 1 / len(columns))
    return AttentionMap(
        kind=kind,
        model="mine",
        weights=weights,
        source_pieces=Pieces.of_words(columns),
        target_pieces=Pieces.of_words(rows),
        hidden_mass=np.zeros(weights.shape[:3]),
        **({} if languages is None else {"languages": languages}),
    )


@pytest.mark.parametrize(
    ("kind", "down", "across"),
    [
        ("cross", "ar", "en"),
        ("encoder", "en", "en"),
        ("decoder", "ar", "ar"),
        ("saliency", "ar", "en"),
    ],
)
def test_a_map_names_the_languages_of_its_sides(kind: str, down: str, across: str) -> None:
    html = heatmap.render(a_map(kind))
    assert f'<div class="sv-down" lang="{down}" translate="no">' in html
    assert f'<div class="sv-across" lang="{across}" translate="no">' in html
    assert "<bdi>رأينا</bdi>" in html or kind == "encoder"
    assert "French" not in html and "English" not in html
    html = heatmap.render(a_map(kind, None), language="zh")
    assert ('lang="ar"' not in html and "法语" in html) or kind == "encoder"


def test_positions_never_run_from_right_to_left() -> None:
    """A direction on the sides of a map would put labels beside other words' cells."""
    assert 'dir="' not in heatmap.render(a_map())


def test_the_words_around_one_vector_run_in_their_direction() -> None:
    vector = np.linspace(-1, 1, 8)
    html = heatmap.render_vector(vector, SOURCE, TARGET, model="mine", languages=("en", "ar"))
    assert '<div class="sv-words" lang="en" translate="no">' in html
    assert '<div class="sv-words" lang="ar" dir="rtl" translate="no">' in html
    plain = heatmap.render_vector(vector, SOURCE, TARGET, model="mine")
    assert '<div class="sv-words" lang="fr" translate="no">' in plain and "dir=" not in plain


@pytest.mark.parametrize(
    ("kind", "language", "across", "down"),
    [
        ("cross", "en", "source, read", "target, written"),
        ("cross", "zh", "原文", "译文"),
        ("encoder", "en", "source word looked at", "source word that looks"),
        ("decoder", "zh", "被看的译文词", "在看的译文词"),
        ("saliency", "en", "source, depended on", "target, written"),
    ],
)
def test_a_figure_names_no_language_that_it_has_not(
    kind: str, language: str, across: str, down: str
) -> None:
    said = [text.get_text() for text in plotting.attention(a_map(kind), language=language).texts]
    assert across in said and down in said
    assert not re.search("French|English|法语|英语", " ".join(said))


def test_a_figure_of_english_and_french_says_what_it_said() -> None:
    said = [text.get_text() for text in plotting.attention(a_map(languages=None)).texts]
    assert "English, read" in said and "French, written" in said
    assert any("French looks at English" in text for text in said)


def test_fonts_of_the_language_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Japanese draws some characters otherwise than Chinese, which the same fonts all have."""
    names = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR")
    monkeypatch.setattr(base, "_fonts", lambda: tuple((name, name) for name in names))
    letters = frozenset(map(ord, "abc"))
    monkeypatch.setattr(
        base, "_characters", lambda file: letters if file == "DejaVu Sans" else letters | {0x76F4}
    )
    assert base.families("直 a")[1] == base.families("直 a", ("en", "zh"))[1] == "Noto Sans CJK SC"
    assert base.families("直 a", ("en", "ja"))[:2] == ["DejaVu Sans", "Noto Sans CJK JP"]
    assert base.families("直", ("ko", "en"))[1] == "Noto Sans CJK KR"
    assert base.families("abc", ("en", "ja")) == ["DejaVu Sans", "sans-serif"]


def test_a_picture_draws_arabic_from_right_to_left() -> None:
    """Of an alef, which is tall, and a seen, which is flat, the alef comes first: at the right."""
    figure = Figure(figsize=(2, 2))
    figure.text(0.1, 0.3, "اس", fontsize=60, fontfamily=base.families("اس"))
    buffer = io.BytesIO()
    assert plotting.save(figure, buffer, "png", dpi=100) is None
    ink = imread(io.BytesIO(buffer.getvalue()), format="png")[..., 0] < 0.5
    columns = ink.sum(axis=0)[ink.any(axis=0)]
    third = len(columns) // 3
    assert columns[-third:].max() > 1.5 * columns[:third].max()
