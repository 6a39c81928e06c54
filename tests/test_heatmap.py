"""Attention maps as HTML: escaped, well-formed, exact, fast; and in a browser, alive."""

from __future__ import annotations

import base64
import io
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seqviz.drawing import heatmap, styles
from seqviz.maps import AttentionMap
from seqviz.pieces import Pieces
from seqviz.translating.result import Translation

ODD_WORDS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    '"quoted"',
    "'",
    "$x_$",
    "${7*7}",
    "{{7*7}}",
    "{target}",
    "我们",
    "שלום",
    "🙂",
    "a\x00\x1b\ud800b",
    "",
    "the",
    "the",
)


def map_of(
    source: tuple[str, ...],
    target: tuple[str, ...],
    *,
    kind="cross",
    model="transformer",
    layers=2,
    heads=2,
    hidden=1 / 8,
) -> AttentionMap:
    weights = np.random.default_rng(0).dirichlet(np.ones(len(source)), (layers, heads, len(target)))
    return AttentionMap(
        kind=kind,
        model=model,
        weights=weights * (1 - hidden),
        source_pieces=Pieces.of_words(source),
        target_pieces=Pieces.of_words(target),
        hidden_mass=np.full(weights.shape[:3], hidden),
    )


def classed(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [e for e in root.iter() if name in (e.get("class") or "").split()]


def said(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def labels(root: ElementTree.Element, side: str) -> list[str]:
    return [said(label) for label in classed(root, side)[0]]


def numbers(root: ElementTree.Element) -> np.ndarray:
    cells = classed(root, "sv-cells")[0]
    values = np.frombuffer(base64.b64decode(cells.get("data-numbers") or ""), dtype="<f4")
    return values.reshape(int(cells.get("data-rows") or 0), int(cells.get("data-columns") or 0))


def pixels(root: ElementTree.Element, name: str = "sv-light") -> np.ndarray:
    address = classed(root, name)[0].get("src") or ""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


# ---------------------------------------------------------------------------------------------
# Markup


def test_one_pixel_a_cell_and_exact_numbers():
    map_ = map_of(("s0", "s1", "s2"), ("t0", "t1"))
    root = ElementTree.fromstring(heatmap.render(map_, 1, 0))
    assert labels(root, "sv-across") == ["s0", "s1", "s2"]
    assert labels(root, "sv-down") == ["t0", "t1"]
    np.testing.assert_array_equal(numbers(root), map_.weights[1, 0].astype("<f4"))
    levels = np.round(map_.weights[1, 0] * 255).astype(int)
    color = styles.MODEL_STYLES["transformer"].color
    np.testing.assert_array_equal(pixels(root), styles.ramp(color)[levels])
    np.testing.assert_array_equal(pixels(root, "sv-dark"), styles.ramp(color, True)[levels])


def test_scale_is_the_same_whatever_the_weights():
    map_ = map_of(("a", "b"), ("c",), hidden=0.9)
    half = ElementTree.fromstring(heatmap.render(map_, color_max=0.5))
    levels = np.round(map_.head() / 0.5 * 255).astype(int)
    color = styles.MODEL_STYLES["transformer"].color
    np.testing.assert_array_equal(pixels(half), styles.ramp(color)[levels])
    assert said(classed(half, "sv-scale")[0]) == "0≥ 0.5 weight"


def test_odd_words_are_text_and_nothing_else():
    markup = heatmap.render(map_of(ODD_WORDS, ODD_WORDS[::-1]))
    root = ElementTree.fromstring(markup)
    assert labels(root, "sv-across") == [styles.visible(word) for word in ODD_WORDS]
    assert labels(root, "sv-down") == [styles.visible(word) for word in ODD_WORDS[::-1]]
    assert not list(root.iter("script")) and len(list(root.iter("img"))) == 2
    for text in (markup, heatmap.standalone(map_of(ODD_WORDS, ODD_WORDS), title=ODD_WORDS[0])):
        assert "alert(1)</script>" not in text


@given(
    st.lists(st.text(max_size=8), min_size=1, max_size=5), st.text(max_size=8), st.text(max_size=8)
)
@settings(max_examples=40)
def test_any_words_give_well_formed_markup(source: list[str], target: str, title: str):
    map_ = map_of(tuple(source), (target,))
    for text in (
        heatmap.render(map_),
        heatmap.standalone(map_, title=title).removeprefix("<!DOCTYPE html>"),
        heatmap.render_vector(np.zeros(3), source, [target], model="lstm"),
    ):
        root = ElementTree.fromstring(text)
        if classed(root, "sv-across"):
            # XML reads a carriage return as a line feed; neither is left in a label.
            assert labels(root, "sv-across") == [styles.visible(word) for word in source]


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_kind_speaks_both_languages(kind: str, language: str):
    root = ElementTree.fromstring(
        heatmap.render(map_of(("a",), ("b",), kind=kind), language=language)
    )
    for key in ("data-say-nothing", "data-say-cell", "data-say-row", "data-say-column"):
        assert root.get(key)
    for key in ("{target}", "{source}", "{weight}"):
        assert key in (root.get("data-say-cell") or "")
    assert ("权重" in said(root)) == (language == "zh")


def test_what_a_screen_reader_hears():
    map_ = map_of(("one", "two"), ("un", "deux"))
    root = ElementTree.fromstring(heatmap.render(map_, 0, 0))
    box = classed(root, "sv-scroll")[0]
    assert box.get("tabindex") == "0"
    assert box.get("aria-label") == (
        "Attention map, 2 French words down, 2 English words across. Arrow keys move."
    )
    best = int(map_.head(0, 0)[0].argmax())
    first = said(classed(root, "sv-unseen")[0][0])
    assert first == f"un: most weight on {('one', 'two')[best]}, {map_.head(0, 0)[0].max():.2f}"
    assert all(image.get("alt") == "" for image in root.iter("img"))


def test_hidden_mass_and_specials_are_marked():
    map_ = map_of(("a", "</s>"), ("b",))
    map_ = replace(map_, source_pieces=Pieces.of_words(("a",)).with_end("</s>"))
    root = ElementTree.fromstring(heatmap.render(map_))
    assert [said(label) for label in classed(root, "sv-special")] == ["</s>"]
    assert "12 % of the weight lies on special tokens, not shown." in said(root)
    assert "special" not in said(
        ElementTree.fromstring(heatmap.render(map_of(("a",), ("b",), hidden=0)))
    )


def test_all_heads_lead_to_each():
    root = ElementTree.fromstring(
        heatmap.render_heads(map_of(("a", "b"), ("c",), layers=3, heads=4), 1, 2)
    )
    buttons = list(root.iter("button"))
    found = [(b.get("data-layer"), b.get("data-head")) for b in buttons]
    assert found == [
        ("", ""),
        *((str(layer), str(head)) for layer in range(3) for head in range(4)),
    ]
    pressed = [b.get("aria-label") for b in buttons if b.get("aria-pressed") == "true"]
    assert pressed == ["Layer 2, head 3"]


def test_a_vector_is_a_bar_of_its_numbers():
    vector = np.array([-1.0, 0.0, 1.0, 0.25])
    markup = heatmap.render_vector(vector, ["the", "<b>"], ["le"], model="lstm", language="zh")
    root = ElementTree.fromstring(markup)
    strip = classed(root, "sv-strip")[0]
    values = np.frombuffer(base64.b64decode(strip.get("data-numbers") or ""), dtype="<f4")
    np.testing.assert_array_equal(values, vector)
    assert pixels(root).shape == (1, 4, 3)
    assert "解码器所能知道的，全在这里。" in said(root) and "<b>" in said(root)
    with pytest.raises(ValueError, match=r"expected one vector \(numbers\), got shape \(1, 2\)"):
        heatmap.render_vector(np.zeros((1, 2)), [], [], model="lstm")


def test_refusals():
    with pytest.raises(ValueError, match="got 0 target and 1 source tokens"):
        heatmap.render(map_of(("a",), ("b",))._keep([0], []))
    with pytest.raises(IndexError, match="expected head 0 to 1"):
        heatmap.render(map_of(("a",), ("b",)), 0, 2)
    with pytest.raises(ValueError, match="expected color_max above 0"):
        heatmap.render(map_of(("a",), ("b",)), color_max=0)


def test_sixty_words_are_fast_and_small():
    words = tuple(f"word{i}" for i in range(60))
    map_ = map_of(words, words, layers=3, heads=4)
    heatmap.render(map_)
    started = time.process_time()
    for _ in range(5):
        markup = heatmap.render(map_)
    assert (time.process_time() - started) / 5 < 0.05
    assert len(markup) < 100_000


# ---------------------------------------------------------------------------------------------
# In a browser


SENTENCE = tuple("the cat saw the dog and the bird".split())
LONG = tuple(f"parliament{i}" for i in range(60))


def open_page(browser: Any, folder: Path, markup: str, **options: Any) -> Any:
    file = folder / "map.html"
    file.write_text(markup, encoding="utf-8")
    page = browser.new_context(**options).new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: (page.problems.append("dialog"), dialog.dismiss()))
    page.on("request", lambda r: page.problems.append(r.url) if r.url.startswith("http") else None)
    page.goto(file.as_uri())
    return page


def point(page: Any, row: int, column: int, rows: int, columns: int, click: bool = False) -> None:
    box = page.locator(".sv-cells").first.bounding_box()
    x = box["x"] + (column + 0.5) * box["width"] / columns
    y = box["y"] + (row + 0.5) * box["height"] / rows
    (page.mouse.click if click else page.mouse.move)(x, y)


def readout(page: Any) -> str:
    return page.locator(".sv-readout").first.inner_text()


def lit(page: Any) -> list[str]:
    return page.locator(".sv-map").first.locator(".sv-on:not(.sv-readout)").all_inner_texts()


@pytest.mark.browser
def test_pointer_lights_row_column_and_words(browser, tmp_path: Path):
    map_ = map_of(SENTENCE, ("le", "chat", "le"))
    page = open_page(browser, tmp_path, heatmap.standalone(map_, 1, 1))
    weights = map_.weights[1, 1]
    point(page, 2, 3, 3, 8)
    assert readout(page) == f"Writing le, it looks at the with weight {weights[2, 3]:.4f}"
    assert lit(page) == ["the", "le"]
    # It is this "le" and this "the", not another.
    assert (
        page.locator(".sv-down .sv-on").evaluate("e => [...e.parentElement.children].indexOf(e)")
        == 2
    )
    assert (
        page.locator(".sv-across .sv-on").evaluate("e => [...e.parentElement.children].indexOf(e)")
        == 3
    )
    cell, cells = (page.locator(name).bounding_box() for name in (".sv-cell", ".sv-cells"))
    assert cell["x"] - cells["x"] == pytest.approx(3 * cells["width"] / 8, abs=1)
    assert cell["y"] - cells["y"] == pytest.approx(2 * cells["height"] / 3, abs=1)
    page.mouse.move(2, 2)
    assert lit(page) == [] and readout(page).startswith("Point at a cell")
    page.locator(".sv-down span").nth(1).hover()
    best = weights[1].argmax()
    assert readout(page).startswith(
        f"Writing chat, it looks most at {SENTENCE[best]} {weights[1, best]:.4f}"
    )
    assert page.problems == []


@pytest.mark.browser
def test_click_locks_and_keys_move(browser, tmp_path: Path):
    map_ = map_of(SENTENCE, ("le", "chat", "vole"))
    page = open_page(browser, tmp_path, heatmap.standalone(map_))
    point(page, 1, 1, 3, 8, click=True)
    point(page, 2, 6, 3, 8)
    assert lit(page) == ["cat", "chat"]
    point(page, 1, 1, 3, 8, click=True)  # a second click frees
    point(page, 2, 6, 3, 8)
    assert lit(page) == ["the", "vole"]
    page.keyboard.press("Escape")
    page.mouse.move(2, 2)
    page.locator(".sv-scroll").focus()
    page.keyboard.press("ArrowDown")  # the first key goes to the first cell
    assert lit(page) == ["the", "le"]
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert lit(page) == ["saw", "chat"]
    assert readout(page) == f"Writing chat, it looks at saw with weight {map_.head()[1, 2]:.4f}"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # stays inside
    assert lit(page) == ["bird", "chat"]
    page.keyboard.press("Escape")
    assert lit(page) == []
    assert page.problems == []


@pytest.mark.browser
def test_keys_keep_the_cell_in_view(browser, tmp_path: Path):
    page = open_page(
        browser,
        tmp_path,
        heatmap.standalone(map_of(LONG, LONG)),
        viewport={"width": 390, "height": 700},
    )
    page.locator(".sv-scroll").focus()
    page.keyboard.press("End")
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    cell, box = (page.locator(name).bounding_box() for name in (".sv-cell", ".sv-scroll"))
    assert box["x"] < cell["x"] and cell["x"] + cell["width"] <= box["x"] + box["width"]
    assert box["y"] < cell["y"] and cell["y"] + cell["height"] <= box["y"] + box["height"]
    for _ in range(70):
        page.keyboard.press("ArrowUp")
    assert page.locator(".sv-scroll").evaluate("e => e.scrollTop") == 0


@pytest.mark.browser
def test_tap_shows_and_locks(browser, tmp_path: Path):
    page = open_page(
        browser,
        tmp_path,
        heatmap.standalone(map_of(SENTENCE, ("le", "chat"))),
        viewport={"width": 390, "height": 800},
        has_touch=True,
    )
    page.locator(".sv-down span").nth(1).tap()
    assert readout(page).startswith("Writing chat, it looks most at")
    page.locator(".sv-across span").nth(1).tap()
    assert readout(page).startswith("cat is looked at most when writing")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_sixty_by_sixty_is_legible(browser, tmp_path: Path, width: int):
    """Labels of 11 px or more that do not overlap; the page itself does not scroll sideways."""
    page = open_page(
        browser,
        tmp_path,
        heatmap.standalone(map_of(LONG, LONG)),
        viewport={"width": width, "height": 900},
    )
    size, pitch = page.locator(".sv-down span").first.evaluate(
        "e => [parseFloat(getComputedStyle(e).fontSize), e.getBoundingClientRect().height]"
    )
    assert size >= 11 and pitch >= size * 1.41  # 45°: lines of text are pitch / 1.41 apart
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator(".sv-scroll")
    box.evaluate("e => e.scrollTo(400, 500)")
    # The labels stay where they are while the cells move.
    across, view = (page.locator(name).bounding_box() for name in (".sv-corner", ".sv-scroll"))
    assert across["x"] == pytest.approx(view["x"], abs=2) and across["y"] == pytest.approx(
        view["y"], abs=2
    )
    shown = page.locator(".sv-down span").nth(40).bounding_box()
    assert shown["x"] >= view["x"]


@pytest.mark.browser
def test_zoom(browser, tmp_path: Path):
    page = open_page(browser, tmp_path, heatmap.standalone(map_of(LONG, LONG)))
    width = page.locator(".sv-cells").bounding_box()["width"]
    page.get_by_label("Larger").click()
    assert page.locator(".sv-cells").bounding_box()["width"] == pytest.approx(
        width * 1.25, rel=0.01
    )
    for _ in range(3):
        page.get_by_label("Smaller").click()
    assert page.locator(".sv-cells").bounding_box()["width"] < width * 0.7


@pytest.mark.browser
def test_odd_words_do_nothing(browser, tmp_path: Path):
    map_ = map_of(ODD_WORDS, ODD_WORDS)
    page = open_page(
        browser,
        tmp_path,
        heatmap.standalone(map_, title="<script>alert(1)</script>"),
        viewport={"width": 1280, "height": 1300},
    )
    count = len(ODD_WORDS)
    for i, word in enumerate(ODD_WORDS):
        point(page, i, i, count, count)
        shown = re.escape(styles.visible(word))
        assert re.search(f"Writing {shown}, it looks at {shown} with weight 0", readout(page))
        page.locator(".sv-across span").nth(i).hover(force=True)
    assert page.problems == []


@pytest.mark.browser
def test_the_same_source_word_lights_up_beside(browser, tmp_path: Path):
    figures = [
        heatmap.render(map_of(SENTENCE, ("un", "deux"), model=m))
        for m in ("lstm-attention", "transformer")
    ]
    page = open_page(browser, tmp_path, heatmap.page(heatmap.render_pair(figures)))
    point(page, 0, 4, 2, 8)
    other = page.locator(".sv-map").nth(1)
    assert other.locator(".sv-across .sv-on").all_inner_texts() == ["dog"]
    assert other.locator(".sv-down .sv-on").count() == 0


@pytest.mark.browser
def test_vector_numbers_can_be_read(browser, tmp_path: Path):
    vector = np.linspace(-1, 1, 9)
    page = open_page(
        browser, tmp_path, heatmap.page(heatmap.render_vector(vector, ["a"], ["b"], model="rnn"))
    )
    page.locator(".sv-strip").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert readout(page) == "Number 2 of 9: −0.7500"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, tmp_path: Path, scheme: str):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    figures = heatmap.render_pair([heatmap.render(map_of(SENTENCE, ("un", "deux")))])
    figures += heatmap.render_heads(map_of(SENTENCE, ("un", "deux")), 0, 1)
    figures += heatmap.render_vector(np.zeros(9), SENTENCE, ("un",), model="rnn")
    page = open_page(
        browser, tmp_path, f"{heatmap.page(figures, title='Attention')}", color_scheme=scheme
    )
    found = axe.run(
        page,
        options={"rules": {"landmark-one-main": {"enabled": False}, "region": {"enabled": False}}},
    )
    assert found.violations_count == 0, found.generate_report()


# ---------------------------------------------------------------------------------------------
# In a notebook


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Of two colours (red, green, blue from 0 to 255), by WCAG 2.2."""

    def luminance(color: tuple[float, ...]) -> float:
        parts = [c / 255 for c in color[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_colours():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def displays() -> dict[str, str]:
    """All that a notebook shows of a translation and of a map."""
    map = map_of((*SENTENCE, "</s>"), ("un", "deux"))
    plain = Translation("lstm", "The boat.", "Le bateau.", map.source_pieces, map.target_pieces)
    whole = replace(plain, attentions={"cross": map.weights}, model="transformer")
    return {"map": map._repr_html_(), "text": plain._repr_html_(), "both": whole._repr_html_()}


HOSTS = {
    "light": "<style>body { background: white; color: black; }</style><body>",
    "dark": "<style>body { background: #111; color: rgba(255, 255, 255, 0.87); }</style><body>",
    "jupyter": "<style>body { background: #111; --ink: #eee; --sheet: #111; --soft: #333; }"
    ".jp-RenderedHTMLCommon { color: #eee; }</style>"
    '<body data-jp-theme-light="false"><div class="jp-RenderedHTMLCommon">',
    "marimo": '<style>body { background: #111; color: #eee; }</style><body class="dark">',
}

COLOURS_OF_TEXTS = """() => {
  const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("style, script, .sv-unseen")) continue;
    const style = getComputedStyle(element);
    let paper = [0, 0, 0, 0], opacity = 1;
    for (let up = element; up; up = up.parentElement) {
      const color = numbers(getComputedStyle(up).backgroundColor);
      opacity *= getComputedStyle(up).opacity;
      if ((color[3] ?? 1) === 1) { paper = color; break; }
    }
    found.push([texts.currentNode.data, numbers(style.color), paper, opacity]);
  }
  return found;
}"""


@pytest.mark.browser
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("shown", ["map", "text", "both"])
def test_notebooks_of_any_colour_are_readable(browser, tmp_path: Path, host: str, shown: str):
    page = open_page(browser, tmp_path, f"<!DOCTYPE html><html>{HOSTS[host]}{displays()[shown]}")
    if shown != "text":
        point(page, 0, 1, 2, len(SENTENCE))
    found = page.evaluate(COLOURS_OF_TEXTS)
    said = {text for text, *_ in found}
    assert {"map": "Transformer", "text": "lstm", "both": "transformer"}[shown] in said
    for text, ink, paper, opacity in found:
        assert (ink[3:] or [1]) == [1] and opacity == 1, text
        assert len(paper) == 3 and contrast(ink, paper) >= 4.5, (text, ink, paper)


def test_paper_of_a_notebook_and_what_stands_on_it():
    """Without a browser: every display lies on the paper, whose colours are far from those on it."""
    for name, markup in displays().items():
        after = markup.removeprefix(heatmap.HEAD)
        root = ElementTree.fromstring(f"<div>{after}</div>")
        assert [child.get("class") for child in root] == ["sv-paper"], name
    blocks = re.findall(r"\.sv-paper \{([^}]*--sv-ink:[^}]*)\}", heatmap.HEAD)
    assert len(blocks) == 2  # light and dark
    for block in blocks:
        colours = {
            name: tuple(bytes.fromhex(value))
            for name, value in re.findall(r"--sv-(\w+): var\(--\w+, #(\w{6})\)", block)
        }
        for ink in ("ink", "soft"):
            for paper in ("sheet", "wash"):
                assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
