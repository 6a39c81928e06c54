"""Texts written by hand for this project, which ``texts.json`` holds: read here and nowhere else.

    for passage in texts("passages"):
        print(passage["title"]["en"], passage["stages"][-1]["english"])

"passages" grow by ``stages``; "examples" open the page; "development" was looked at while the project was
made; "aligned" has links between words. Every text has ``id``, ``english`` and ``french``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("texts.json")
NAME = "seqviz/texts.json"
"""What reports call it."""


def texts(use: str) -> list[dict[str, Any]]:
    """The texts of one use, in the order of the file. Read once a process: not to be changed.

    Raises:
        KeyError: no such use.
    """
    content = _content()
    if use not in content:
        known = ", ".join(name for name, value in content.items() if isinstance(value, list))
        raise KeyError(f"expected hand-written texts, one of {known}; got {use!r}")
    return content[use]


@cache
def _content() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))
