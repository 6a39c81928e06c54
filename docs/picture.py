"""Make the README's moving pictures: a text grows under the slider, and four models keep up or do not.

    python docs/picture.py

Drives the page of the shipped weights in Chromium and writes ``docs/slider.webp`` and ``docs/slider.zh.webp``, which
hold the digests of the weights that they show. Needs tests/requirements.txt. To be run again when the weights or the
page change.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browsing import Visit, serve  # noqa: E402

from seqviz.language import LANGUAGES  # noqa: E402
from seqviz.report import read_training, weights_of  # noqa: E402

# All that is known of the page.
PAGE, TAB = "?lang={language}", 1
SLIDER = "#length-slider input[type=range]"
TOP, BOTTOM = "#walk", "#stage-cards .lane"
"""The picture reaches from the top of the first to the foot of the last of the second."""
LEFT_OUT = "#stage-cards .legend"
READY = """() => {
  const lanes = [...document.querySelectorAll('#stage-cards .lane')];
  return lanes.length && lanes.every(lane => lane.ariaBusy === null);
}"""

WORDS = 52
"""The text grows until here; below a longer one the picture would be too tall for a phone."""
WIDTH, SCALE, MARGIN = 500, 1.5, 12
HOLD, LAST = 1800, 4000
"""Milliseconds that a frame stays, and the last one."""
PATIENCE = 600_000
"""Longest wait for the page, milliseconds: the machine may be busy."""
DESCRIPTION = 0x010E
"""EXIF's ImageDescription."""


def frames(page: Page) -> list[Image.Image]:
    """The page at every stop of the slider, all of one size."""
    page.add_style_tag(
        content=f"{LEFT_OUT} {{ display: none !important }} {SLIDER} {{ outline: none !important }}"
    )
    slider = page.locator(SLIDER)
    slider.focus()
    stops = [
        int(count) for count in page.locator("#stops .stops").get_attribute("data-counts").split()
    ]
    shots = []
    for number in range(sum(count <= WORDS for count in stops)):
        page.keyboard.press("ArrowRight" if number else "Home")
        page.wait_for_timeout(800)  # bars glide
        top, last = page.locator(TOP).bounding_box(), page.locator(BOTTOM).last.bounding_box()
        assert top and last
        edges = (0, top["y"] - MARGIN, WIDTH, last["y"] + last["height"] + MARGIN)
        shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        shots.append(shot.crop(tuple(int(edge * SCALE) for edge in edges)))
    size = shots[0].width, max(shot.height for shot in shots)
    found = []
    for shot in shots:  # the page's own colour below a shorter one
        frame = Image.new("RGB", size, shot.getpixel((0, shot.height - 1)))
        frame.paste(shot)
        found.append(frame)
    return found


def save(pictures: list[Image.Image], file: Path, shown: dict[str, Any]) -> None:
    """Put frames together, with what they show."""
    exif = Image.Exif()
    exif[DESCRIPTION] = json.dumps(shown)
    durations = [HOLD] * (len(pictures) - 1) + [LAST]
    pictures[0].save(
        file,
        save_all=True,
        append_images=pictures[1:],
        duration=durations,
        loop=0,
        lossless=True,
        method=6,
        exif=exif,
    )


def main() -> None:
    chromium = os.environ.get("SEQVIZ_CHROMIUM") or shutil.which("chromium")
    shown = {
        "command": "python docs/picture.py",
        "models": weights_of(read_training(ROOT / "models")),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for language in LANGUAGES:
            path = PAGE.format(language=language)
            visit = Visit(browser, address, path, width=WIDTH, device_scale_factor=SCALE)
            visit.page.set_default_timeout(PATIENCE)
            visit.tab(TAB)
            visit.page.wait_for_function(READY)
            ending = "" if language == "en" else f".{language}"
            file = ROOT / "docs" / f"slider{ending}.webp"
            save(frames(visit.page), file, shown)
            print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.2f} MB", file=sys.stderr)
            visit.context.close()
        browser.close()


if __name__ == "__main__":
    main()
