"""Figures: everything labelled, nothing interpreted, nothing shared."""

from __future__ import annotations

import io
import itertools
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from seqviz import plotting
from seqviz.drawing import styles
from seqviz.drawing.figures import base, quality
from seqviz.maps import AttentionMap
from seqviz.pieces import Pieces

ODD_WORDS = (
    "$x_$",
    "$",
    "<b>",
    "&amp;",
    "${7*7}",
    "我们",
    "שלום",
    "🙂",
    "a\x00\x1bb",
    "\ud800",
    "",
    "the",
    "the",
)


def map_of(
    source: tuple[str, ...], target: tuple[str, ...], *, model="transformer", layers=2, heads=2
) -> AttentionMap:
    """Random weights over whole words, an eighth of each row hidden."""
    weights = np.random.default_rng(0).dirichlet(np.ones(len(source)), (layers, heads, len(target)))
    return AttentionMap(
        kind="cross",
        model=model,
        weights=weights * 7 / 8,
        source_pieces=Pieces.of_words(source),
        target_pieces=Pieces.of_words(target),
        hidden_mass=np.full(weights.shape[:3], 1 / 8),
    )


def svg_of(figure) -> str:
    buffer = io.BytesIO()
    plotting.save(figure, buffer, "svg")
    return buffer.getvalue().decode()


def texts_of(svg: str) -> list[str]:
    """Texts of an SVG, by a strict parser."""
    return [
        e.text or "" for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def bucket(low: int, high: int, n: int = 200, bleu: float = 20.0) -> dict[str, Any]:
    return {
        "low": low,
        "high": high,
        "n": n,
        "bleu": bleu,
        "bleu_low": bleu - 1,
        "bleu_high": bleu + 1,
        "chrf": 40.0,
        "brevity_penalty": 0.97,
        "length_ratio": 1.01,
    }


REPORT = {
    "curves": {
        "natural": {
            "lstm": {
                "buckets": [bucket(1, 10), bucket(31, 40, bleu=12.5), bucket(51, 60, 12, 3.0)]
            },
            "transformer": {"buckets": [bucket(1, 10), bucket(31, 40), bucket(51, 60, 12)]},
        }
    },
    "length_histogram": [0, 5, 9, 3, 1],
}


# ---------------------------------------------------------------------------------------------
# Attention


def test_attention_shows_the_matrix_the_right_way_round():
    map_ = map_of(("s0", "s1", "s2"), ("t0", "t1"))
    figure = plotting.attention(map_, 1, 0)
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), map_.weights[1, 0])
    assert [t.get_text() for t in axes.get_xticklabels()] == ["s0", "s1", "s2"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["t0", "t1"]
    top, bottom = axes.get_ylim()[::-1]
    assert top < bottom  # the first target word is the first row from above
    assert axes.images[0].get_clim() == (0, 1)


def test_attention_scale_can_be_shared():
    figures = [plotting.attention(map_of(("a", "b"), ("c",)), h, color_max=0.5) for h in (0, 1)]
    assert {f.axes[0].images[0].get_clim() for f in figures} == {(0, 0.5)}


def test_attention_says_what_is_hidden():
    assert "12.5 % of the weight lies on special tokens, not shown" in texts_of(
        svg_of(plotting.attention(map_of(("a",), ("b",))))
    )


def test_attention_names_model_layer_and_head():
    map_ = map_of(("a",), ("b",))
    said = [
        texts_of(svg_of(plotting.attention(map_, *which)))
        for which in ((1, 0), (None, None), (0, None))
    ]
    assert "Transformer · French looks at English · layer 2 of 2 · head 1 of 2" in said[0]
    assert "Transformer · French looks at English · mean of 2 layers × 2 heads" in said[1]
    assert "Transformer · French looks at English · layer 1 of 2 · mean of 2 heads" in said[2]
    assert "$5 & co" in texts_of(svg_of(plotting.attention(map_, title="$5 & co")))


def test_odd_words_are_drawn_as_they_are():
    figure = plotting.attention(map_of(ODD_WORDS, ODD_WORDS[::-1]))
    texts = texts_of(svg_of(figure))
    for word in ODD_WORDS:
        assert texts.count(styles.visible(word)) >= 2
    assert texts.count("the") == 4


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4), st.text(max_size=8))
@settings(max_examples=15)
def test_any_words_give_a_well_formed_svg(source: list[str], target: str):
    texts = texts_of(svg_of(plotting.attention(map_of(tuple(source), (target,)), title=target)))
    # An XML parser reads a line end or tab in a text as it stands, so texts compare whole.
    for word in (*source, target):
        assert styles.visible(word) in texts


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (60, 60), (3, 40), (40, 3), (1, 1)])
def test_labels_never_overlap_and_are_legible(rows: int, columns: int):
    words = [f"parliament{i}"[i % 7 :] for i in range(60)]
    figure = plotting.attention(map_of(tuple(words[:columns]), tuple(words[:rows])))
    axes = figure.axes[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    size = axes.get_yticklabels()[0].get_fontsize()
    assert size >= 7.5
    step = axes.get_window_extent(renderer).width / columns
    line = size * figure.dpi / 72 * 1.15
    assert step / np.sqrt(2) >= line  # distance between two slanted lines of text
    boxes = [t.get_window_extent(renderer) for t in axes.get_yticklabels()]
    assert all(below.y1 <= above.y0 + 0.5 for above, below in itertools.pairwise(boxes))
    # Everything lies on the paper.
    paper = figure.bbox
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_visible() and text.get_text():
            box = text.get_window_extent(renderer)
            assert box.x0 >= -1 and box.y0 >= -1, text
            assert box.x1 <= paper.x1 + 1 and box.y1 <= paper.y1 + 1, text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"color_max": 0}, ValueError, "expected color_max above 0 and at most 1, got 0"),
        ({"language": "fr"}, ValueError, "expected language to be one of en, zh, got 'fr'"),
        ({"layer": 7}, IndexError, "expected layer 0 to 1 .* got 7"),
    ],
)
def test_attention_refuses(arguments: dict, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        plotting.attention(map_of(("a",), ("b",)), **arguments)


def test_attention_refuses_an_empty_map():
    map_ = map_of(("a",), ("b",))
    with pytest.raises(ValueError, match="got 0 target and 1 source tokens"):
        plotting.attention(map_._keep([0], []))


# ---------------------------------------------------------------------------------------------
# Curves


def test_length_curve_shows_buckets_and_their_numbers():
    texts = texts_of(svg_of(plotting.length_curve(REPORT)))
    assert {"LSTM", "Transformer", "BLEU", "English words in the sentence"} <= set(texts)
    assert {"1–10", "31–40", "51–60", "200", "12"} <= set(texts)
    assert "grey: fewer than 50 sentences" in texts and "length of training sentences" in texts
    assert not any("longer than" in text for text in texts)


def test_length_curve_draws_thin_buckets_in_grey():
    axes = plotting.length_curve(REPORT).axes[0]
    colors = {style.color for style in styles.MODEL_STYLES.values()}
    drawn = [line for line in axes.lines if line.get_color() in colors]
    assert len(drawn) == 2
    for line in drawn:
        assert np.isfinite(line.get_ydata()).tolist() == [True, True, False]
    grey = [
        line
        for line in axes.lines
        if line.get_color() == styles.FAINT and line.get_marker() != "None"
    ]
    assert sorted(float(line.get_ydata()[0]) for line in grey) == [3.0, 20.0]


def test_length_curve_marks_extrapolation():
    report = {"curves": {"natural": {"rnn": {"buckets": [bucket(1, 10), bucket(101, 120)]}}}}
    texts = texts_of(svg_of(plotting.length_curve(report)))
    assert "training sentence" in texts or any("longer than any" in t for t in texts)


@pytest.mark.parametrize("metric", quality.METRICS)
def test_length_curve_draws_every_metric(metric: str):
    figure = plotting.length_curve(REPORT, metric=metric, language="zh")
    assert "句子的英语词数" in texts_of(svg_of(figure))


def test_length_curve_skips_empty_buckets():
    report = {
        "curves": {
            "natural": {
                "rnn": {"buckets": [bucket(1, 10), bucket(11, 20) | {"n": 0, "bleu": None}]}
            }
        }
    }
    texts = texts_of(svg_of(plotting.length_curve(report)))
    assert "1–10" in texts and "11–20" not in texts


@pytest.mark.parametrize(
    ("report", "arguments", "message"),
    [
        (REPORT, {"metric": "ter"}, "expected metric to be one of bleu, chrf"),
        (REPORT, {"curve": "same"}, "expected curve to be one of natural, got 'same'"),
        ({}, {}, "expected the content of a length report .*, got dict without curves"),
        ("length.json", {}, "got str without curves"),
        ({"curves": {"natural": {"rnn": {"buckets": []}}}}, {}, "expected a bucket with bleu"),
    ],
)
def test_length_curve_refuses(report: dict, arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        plotting.length_curve(report, **arguments)


BOTH = {
    **REPORT,
    "curves": {
        **REPORT["curves"],
        "same-content": {
            name: {
                "buckets": [
                    {**bucket(13, 18, bleu=30.0), "words": 15.5},
                    {**bucket(26, 35), "words": 31.0},
                    {**bucket(51, 70, bleu=8.0), "words": 62.0},
                ]
            }
            for name in ("lstm", "transformer")
        },
    },
}


def test_both_curves_stand_on_one_scale():
    figure = plotting.length_curves(BOTH)
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    drawn = [line.get_xdata().tolist() for line in right.lines]
    assert [15.5, 31.0, 62.0] in drawn
    texts = texts_of(svg_of(figure))
    assert "Same text, in larger and larger parts" in texts
    assert "English words held at once (mean of a run)" in texts
    assert "length of training sentences" in texts
    # A heading lies over its own panel.
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    for text in figure.texts:
        assert text.get_window_extent(renderer).x1 <= figure.bbox.x1


def test_both_curves_need_both():
    with pytest.raises(ValueError, match="expected curve to be one of natural, got 'same-content'"):
        plotting.length_curves(REPORT)
    with pytest.raises(ValueError, match="expected metric"):
        plotting.length_curves(BOTH, metric="ter")


def positions(name: str, values: list[float]) -> list[dict[str, Any]]:
    return [
        {
            "low": 10 * i + 1,
            "high": 10 * i + 10,
            "n": 100,
            name: value,
            f"{name}_low": value * 0.9,
            f"{name}_high": value * 1.1,
        }
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_it_breaks(language: str):
    report = {
        "positions": {
            "loss": {"natural": {"lstm": positions("loss", [2.0, 3.0])}},
            "found": {
                "natural": {
                    "reference": positions("found", [0.9, 0.9]),
                    "lstm": positions("found", [0.5, 0.2]),
                }
            },
        }
    }
    figure = plotting.where_it_breaks(report, language=language)
    loss, found = figure.axes
    assert loss.lines[0].get_xdata().tolist() == [5.5, 15.5]
    assert loss.lines[0].get_ydata().tolist() == [2.0, 3.0]
    drawn = [line.get_ydata().tolist() for line in found.lines]
    assert [0.5, 0.2] in drawn and [0.9, 0.9] in drawn
    assert found.get_ylim()[0] == loss.get_ylim()[0] == 0
    named = {"en": "human translation", "zh": "人工译文"}[language]
    assert named in texts_of(svg_of(figure))


def test_where_it_breaks_draws_thin_bins_in_grey():
    bins = positions("loss", [2.0, 3.0, 4.0])
    bins[2].update(thin=True)
    figure = plotting.where_it_breaks({"positions": {"loss": {"natural": {"lstm": bins}}}})
    grey, line = figure.axes[0].lines
    assert grey.get_color() == styles.FAINT
    assert np.isnan(line.get_ydata()[2]) and line.get_ydata()[1] == 3.0
    assert any("fewer than 50" in text for text in texts_of(svg_of(figure)))


def test_where_it_breaks_needs_positions():
    with pytest.raises(ValueError, match="expected losses or found words by position"):
        plotting.where_it_breaks({"positions": {"loss": {}, "found": {}}})


def test_loss_curves():
    trainings = {
        "rnn": {"losses": {"train": [[1e6, 5.0], [2e6, 4.5]], "dev": [[2e6, 4.4]]}},
        "my <model>": {"losses": {"train": [[1e6, 5.0]], "dev": []}},
        "lstm": {},
    }
    figure = plotting.loss_curves(trainings)
    axes = figure.axes[0]
    dev = next(
        line for line in axes.lines if line.get_marker() == styles.MODEL_STYLES["rnn"].marker
    )
    assert dev.get_xydata().tolist() == [[2.0, 4.4]]
    assert {"RNN", "my <model>"} <= set(texts_of(svg_of(figure)))
    with pytest.raises(ValueError, match="expected losses of rnn, found none"):
        plotting.loss_curves({"rnn": {"losses": {"train": [], "dev": []}}})


# ---------------------------------------------------------------------------------------------
# Files


def test_save_knows_formats(tmp_path: Path):
    figure = plotting.attention(map_of(("a",), ("b",)))
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert plotting.save(figure, tmp_path / f"map.{ending}") is None
        assert (tmp_path / f"map.{ending}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match="expected format to be one of png, svg, pdf; got 'bmp'"):
        plotting.save(figure, tmp_path / "map.bmp")
    with pytest.raises(ValueError, match="for a file object, got None"):
        plotting.save(figure, io.BytesIO())


def test_svg_is_the_same_every_time():
    assert svg_of(plotting.length_curve(REPORT)) == svg_of(plotting.length_curve(REPORT))


def test_without_a_chinese_font_a_png_is_in_english_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(base, "_fonts", lambda: plotting_fonts[:1])
    figure = plotting.attention(map_of(("我们",), ("nous",)), language="zh")
    said = plotting.save(figure, buffer := io.BytesIO(), "png")
    assert said == (
        "no installed font has the labels' characters: labels are in English; "
        "no installed font has 们 我: drawn as boxes; an SVG shows them"
    )
    assert buffer.getvalue()
    assert plotting.save(figure, io.BytesIO(), "png", language="zh") == (
        "没有安装支持中文的字体，标签改用英语；安装的字体里都没有 们 我，画成了方框；SVG 格式能显示"
    )
    # The figure itself and an SVG stay Chinese.
    assert "法语译文" in texts_of(svg_of(figure)) and "我们" in texts_of(svg_of(figure))


plotting_fonts = base._fonts()


def test_base_font_is_there():
    assert plotting_fonts[0][0] == base.BASE_FONT


def test_a_chinese_font_is_used_where_there_is_one():
    families, missing = base._choose_fonts("注意力 attention")
    if missing:
        pytest.skip("no Chinese font installed")
    assert families[0] == base.BASE_FONT and len(families) == 2
    assert plotting.save(plotting.length_curve(REPORT, language="zh"), io.BytesIO(), "png") is None


def test_inline_svg_follows_the_page():
    figure = plotting.length_curve(REPORT)
    svg = plotting.inline_svg(figure, label='BLEU "by" <length>')
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == 'BLEU "by" <length>' and root.get("role") == "img"
    assert root.get("width") is None and root.get("viewBox")
    assert styles.INK not in svg and "currentColor" in svg
    assert figure.get_facecolor() == (1, 1, 1, 1)


def test_global_settings_stay_as_they_are():
    before = dict(matplotlib.rcParams)
    plotting.inline_svg(plotting.attention(map_of(ODD_WORDS, ("a",)), language="zh"))
    assert dict(matplotlib.rcParams) == before


def test_many_threads_draw_at_once():
    """Each figure keeps its own labels (pyplot's shared state mixes them up)."""
    results: dict[int, list[str]] = {}

    def draw(number: int) -> None:
        figure = plotting.attention(
            map_of((f"s{number}",), (f"t{number}",)), title=f"title {number}"
        )
        results[number] = texts_of(svg_of(figure))

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(12):
        assert {f"s{number}", f"t{number}", f"title {number}"} <= set(results[number])


# ---------------------------------------------------------------------------------------------
# Colours and labels


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("model", styles.MODEL_STYLES)
def test_ramps_are_even(model: str, dark: bool):
    ramp = styles.ramp(styles.MODEL_STYLES[model].color, dark)
    lightness = np.array([styles._to_oklab("#{:02x}{:02x}{:02x}".format(*rgb))[0] for rgb in ramp])
    steps = np.diff(lightness[::8]) * (1 if dark else -1)
    assert (steps > 0).all() and steps.max() < 1.6 * steps.min()
    assert not ramp.flags.writeable


def test_models_differ_without_colour():
    looks = [(style.dash, style.marker) for style in styles.MODEL_STYLES.values()]
    assert len(set(looks)) == len(looks)


def test_labels():
    assert styles.visible("a\x00b\ud83d\u2028") == "a\ufffdb\ufffd\ufffd"
    assert styles.visible("") == "␣"
    long = styles.shorten("Donaudampfschifffahrtsgesellschaft", 12)
    assert len(long) == 12 and long == "Donauda…haft"
    assert styles.shorten("short") == "short"
    assert styles.label_width("注意") == 2 and styles.label_width("e\u0301") < 0.6
    with pytest.raises(ValueError, match="expected a colour as #rrggbb, got 'red'"):
        styles.ramp("red")
