"""A map of about 60 × 60 words, against the translation that it shows: on the server and in a browser.

python benchmarks/attention_map.py --out benchmarks/attention_map.json
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import seqviz
from seqviz import handwritten
from seqviz.drawing import heatmap
from seqviz.files import write_json
from seqviz.version import hardware, versions

ROUNDS = 7
MODELS = ("lstm-attention", "transformer")


def sentence() -> str:
    """The hand-written stage nearest to 60 words."""
    passages = handwritten.texts("passages")
    stages = [stage["english"] for passage in passages for stage in passage["stages"]]
    return min(stages, key=lambda text: abs(len(text.split()) - 60))


def seconds(call: Callable[[], Any]) -> float:
    """Median of a few calls, after one to warm up."""
    call()
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def in_browser(pages: dict[str, str]) -> dict[str, float]:
    """Seconds from putting a map into a page until it is laid out and painted; empty without Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    if path is None:
        return {}
    script = """async (markup) => {
      const box = document.body;
      box.replaceChildren();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const started = performance.now();
      box.innerHTML = markup;
      await Promise.all([...box.querySelectorAll("img")].map((image) => image.decode()));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return (performance.now() - started) / 1000;
    }"""
    found = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path)
        page = browser.new_page()
        empty = Path(folder, "page.html")
        empty.write_text(heatmap.page(""), encoding="utf-8")
        page.goto(empty.as_uri())
        for name, markup in pages.items():
            taken = [page.evaluate(script, markup) for _ in range(ROUNDS + 1)]
            found[name] = statistics.median(taken[1:])
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = sentence()
    results: dict[str, dict[str, Any]] = {}
    pages = {}
    for name in MODELS:
        translator = seqviz.load(name)
        whole = translator.translate(text, attention=True)

        def draw(whole: Any = whole) -> str:
            map_ = whole.attention("cross").words()
            return heatmap.render_stage(heatmap.render_heads(map_), [heatmap.render(map_)])

        translating = seconds(lambda t=translator: t.translate(text, attention=False))
        with_weights = seconds(lambda t=translator: t.translate(text, attention=True))
        drawing = seconds(draw)
        pages[name] = draw()
        map_ = whole.attention("cross").words()
        results[name] = {
            "target_words": len(map_.target_tokens),
            "source_words": len(map_.source_tokens),
            "translation_seconds": round(translating, 4),
            "weights_seconds": round(max(0.0, with_weights - translating), 4),
            "markup_seconds": round(drawing, 4),
        }
    for name, taken in in_browser(pages).items():
        results[name]["browser_seconds"] = round(taken, 4)
    for name, found in results.items():
        after = found["weights_seconds"] + found["markup_seconds"] + found.get("browser_seconds", 0)
        found["after_translation_seconds"] = round(after, 4)
        found["share_of_translation"] = round(after / found["translation_seconds"], 3)
        print(
            f"{name}: {found['target_words']} × {found['source_words']} words, translation "
            f"{found['translation_seconds']:.2f} s, then {after:.3f} s until the map is painted "
            f"({found['share_of_translation']:.2f} of the translation)"
        )
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/attention_map.py",
                "data": {"source_words": len(text.split()), "rounds": ROUNDS},
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
