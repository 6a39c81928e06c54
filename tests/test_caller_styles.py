"""Figures are the same whatever style the caller has set, and leave it as it was."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
import pytest
from matplotlib.figure import Figure

from seqviz.drawing import figures
from seqviz.maps import AttentionMap
from seqviz.pieces import Pieces

ROOT = Path(__file__).resolve().parents[1]

SPOILING: dict[str, Any] = {
    "text.usetex": True,
    "image.origin": "lower",
    "image.interpolation": "bilinear",
    "image.cmap": "jet",
    "axes.grid": True,
    "axes.grid.which": "both",
    "axes.spines.left": False,
    "axes.facecolor": "black",
    "axes.unicode_minus": False,
    "axes.xmargin": 0.3,
    "axes.ymargin": 0.3,
    "axes.formatter.use_mathtext": True,
    "font.family": "serif",
    "font.size": 20,
    "font.weight": "bold",
    "text.color": "red",
    "xtick.top": True,
    "xtick.direction": "in",
    "xtick.minor.visible": True,
    "xtick.labelbottom": False,
    "ytick.right": True,
    "ytick.minor.visible": True,
    "ytick.labelsize": 3,
    "figure.autolayout": True,
    "figure.facecolor": "black",
    "grid.linestyle": ":",
    "hatch.color": "red",
    "legend.shadow": True,
    "legend.title_fontsize": 30,
    "lines.markeredgewidth": 4,
    "lines.solid_capstyle": "butt",
    "lines.dash_capstyle": "round",
    "lines.scale_dashes": False,
    "lines.antialiased": False,
    "patch.linewidth": 5,
    "patch.force_edgecolor": True,
    "path.sketch": (1, 100, 2),
    "path.snap": False,
    "savefig.bbox": "tight",
    "savefig.dpi": 20,
    "savefig.facecolor": "black",
    "savefig.transparent": True,
    "svg.fonttype": "path",
    "text.hinting": "none",
    "text.antialiased": False,
}
"""What a caller may have set: what `science`, seaborn and slides set, and more."""

STYLES: dict[str, Any] = {
    "spoiling": SPOILING,
    "usetex": {"text.usetex": True},
    "ggplot": "ggplot",
    "dark": "dark_background",
    "seaborn": "seaborn-v0_8-darkgrid",
    "grid": {"axes.grid": True},
    "origin": {"image.origin": "lower"},
    "layout": {"figure.constrained_layout.use": True},
}


def some_map() -> AttentionMap:
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 2, 4))
    return AttentionMap(
        kind="cross",
        model="transformer",
        weights=weights * 7 / 8,
        source_pieces=Pieces.of_words(("The", "$x_1$", "&", "boat_1", "100%")),
        target_pieces=Pieces.of_words(("Le", "bateau", "#", "−1")),
        hidden_mass=np.full(weights.shape[:3], 1 / 8),
    )


def report(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "models" / "report" / f"{name}.json").read_text(encoding="utf-8"))


def chains_report() -> dict[str, Any]:
    point = {"bleu_low": 18, "bleu_high": 22, "forgotten_low": 0.1, "forgotten_high": 0.3}
    points = [
        {"words": 8 * n, "sentences": n, "trained": n < 4, "bleu": 20, "forgotten": 0.2, **point}
        for n in (1, 2, 4)
    ]
    return {"sets": {"all": {"models": {"lstm": points}}}}


def bits_report() -> dict[str, Any]:
    point = {"n": 90, "thin": False}
    points = [
        {"words": words, **point}
        | {
            f"{name}{end}": float(words)
            for name in ("bits", "bits_a_word")
            for end in ("", "_low", "_high")
        }
        for words in (5, 15, 25)
    ]
    return {"curves": {"natural": {"lstm": points}}}


def kept_report() -> dict[str, Any]:
    points = [
        {"words": words, "n": 90, "thin": False}
        | {
            f"{name}{end}": 5 / words
            for name in ("bleu_kept", "repeated")
            for end in ("", "_low", "_high")
        }
        for words in (5, 15, 25)
    ]
    curve = {"lstm": {"buckets": points}}
    references = [{"words": words, "n": 90, "repeated": 0.01} for words in (5, 15, 25)]
    return {
        "curves": {"natural": curve, "same-content": curve},
        "references": {"natural": references, "same-content": references},
    }


def positions_report() -> dict[str, Any]:
    point = {"n": 100, "loss_low": 2.0, "loss_high": 3.0, "found_low": 0.2, "found_high": 0.5}
    bins = [
        {"low": 1 + at, "high": at + 10, "loss": 2.5, "found": 0.3, **point} for at in (0, 10, 20)
    ]
    return {
        "positions": {name: {"natural": {"lstm": bins, "rnn": bins}} for name in ("loss", "found")}
    }


def trainings() -> dict[str, Any]:
    return {
        name: {"losses": {"train": [[1e6, 5.0], [2e6, 4.5]], "dev": [[1e6, 4.9], [2e6, 4.4]]}}
        for name in ("rnn", "lstm")
    }


FIGURES: dict[str, Callable[[], Figure]] = {
    "attention": lambda: figures.attention(some_map(), title="50 % of_it"),
    "attention_side_by_side": lambda: figures.attention_side_by_side(
        [(some_map(), 0, 0), (some_map(), None, None)]
    ),
    "bits": lambda: figures.bits(bits_report()),
    "chains": lambda: figures.chains(chains_report()),
    "circles": lambda: figures.circles(kept_report()),
    "kept": lambda: figures.kept(kept_report()),
    "length_curve": lambda: figures.length_curve(report("length")),
    "length_curves": lambda: figures.length_curves(report("length")),
    "loss_curves": lambda: figures.loss_curves(trainings()),
    "share_card": lambda: figures.share_card(
        "The boat is_green & 100 % $new$.", {"rnn": (1, 3), "lstm": None}, "https://host/a_b"
    ),
    "vector": lambda: figures.vector(np.linspace(-1, 1, 40), model="lstm"),
    "where_it_breaks": lambda: figures.where_it_breaks(positions_report()),
    **{
        f"lab.{name}": lambda name=name, draw=draw: draw(report(name))
        for name, draw in figures.lab.FIGURES.items()
    },
}


def files_of(figure: Figure) -> dict[str, bytes]:
    found = {}
    for ending in ("svg", "png"):
        figures.save(figure, buffer := io.BytesIO(), ending, dpi=60)
        found[ending] = buffer.getvalue()
    return found


def settings() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(matplotlib.rcParams)


@pytest.fixture(scope="module")
def plain() -> Callable[[str], dict[str, bytes]]:
    """The files of a figure under the settings that matplotlib comes with."""
    drawn: dict[str, dict[str, bytes]] = {}

    def files(name: str) -> dict[str, bytes]:
        if name not in drawn:
            with matplotlib.rc_context():
                matplotlib.rcdefaults()
                drawn[name] = files_of(FIGURES[name]())
        return drawn[name]

    return files


def check(name: str, style: str, plain: Callable[[str], dict[str, bytes]]) -> None:
    expected = plain(name)
    with matplotlib.style.context(STYLES[style]):
        before = settings()
        found = files_of(FIGURES[name]())
        assert settings() == before
    assert found["svg"] == expected["svg"]
    assert found["png"] == expected["png"]


@pytest.mark.parametrize("style", STYLES)
def test_a_map_is_the_same_in_every_style(style: str, plain):
    check("attention", style, plain)


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "attention"])
def test_every_figure_is_the_same_whatever_is_set(name: str, plain):
    check(name, "spoiling", plain)


def test_every_public_figure_is_looked_at():
    drawing = set(figures.__all__) - {"save", "inline_svg", "lab"}
    assert drawing | {f"lab.{name}" for name in figures.lab.FIGURES} == set(FIGURES)


def test_a_figure_made_elsewhere_is_saved_in_its_own_style():
    with matplotlib.style.context("dark_background"):
        figure = Figure()
        figure.text(0.5, 0.5, "mine")
        figures.save(figure, buffer := io.BytesIO(), "svg")
    # White letters; the paper is black, which an SVG does not write out.
    assert buffer.getvalue().decode().count("fill: #ffffff") == 1


def test_own_calls_of_savefig_keep_paper_and_ink():
    """A notebook or a caller saves the figure itself: its style reaches only what a file holds."""
    figure = figures.attention(some_map())
    expected, found = io.BytesIO(), io.BytesIO()
    figure.savefig(expected, format="png", dpi=60)
    with matplotlib.style.context([SPOILING, {"savefig.bbox": None}]):
        figure.savefig(found, format="png", dpi=60)
        figure.savefig(text := io.BytesIO(), format="svg")
    assert found.getvalue() == expected.getvalue()
    assert "<text" not in text.getvalue().decode()  # svg.fonttype "path" is theirs


def test_a_figure_begun_in_one_style_is_finished_in_another(plain):
    """What matplotlib makes only when it draws, such as new ticks, follows no caller either."""
    figure = FIGURES["length_curve"]()
    with matplotlib.style.context(SPOILING):
        assert files_of(figure)["svg"] == plain("length_curve")["svg"]
    with matplotlib.style.context(SPOILING):
        figure = FIGURES["loss_curves"]()
    assert files_of(figure)["svg"] == plain("loss_curves")["svg"]
