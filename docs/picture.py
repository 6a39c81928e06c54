"""Make the README's picture: the Translate tab on the shipped weights, with a sentence of its own.

    python docs/picture.py

Needs Chromium and tests/requirements.txt. To be run again when the weights or the page change.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browsing import Visit, serve  # noqa: E402

WIDTH = 1200
SENTENCE = "We cannot accept this proposal, because it would weaken our common agricultural policy."


def main() -> None:
    chromium = os.environ.get("SEQVIZ_CHROMIUM") or shutil.which("chromium")
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        visit = Visit(browser, address, "?lang=en", width=WIDTH)
        visit.cards()
        visit.translate(SENTENCE)
        page = visit.page
        page.wait_for_timeout(500)
        top = page.locator("#found").bounding_box()
        bottom = page.locator("#cards").bounding_box()
        assert top and bottom
        page.screenshot(
            path=ROOT / "docs" / "page.png",
            full_page=True,
            clip={
                "x": 0,
                "y": top["y"] - 16,
                "width": WIDTH,
                "height": bottom["y"] + bottom["height"] - top["y"] + 32,
            },
        )
        browser.close()


if __name__ == "__main__":
    main()
