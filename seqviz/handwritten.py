"""Texts written by hand for this project, which ``texts.json`` holds: read here and nowhere else.

    for passage in texts("passages"):
        print(passage["title"]["en"], passage["stages"][-1]["english"])

"everyday" texts grow by ``sentences``, "passages" by ``stages``; "examples" open the page; "development" was looked at while the project was
made; "aligned" has links between words. Every text, stage and sentence has ``english`` and ``french``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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


def stages_of(text: Mapping[str, Any], key: str = "english") -> list[str]:
    """The text at each stage: its first sentence, its first two, …

    Args:
        key: "english", "french" or "chinese", which has no spaces between sentences.
    """
    between = "" if key == "chinese" else " "
    sentences = [sentence[key] for sentence in text["sentences"]]
    return [between.join(sentences[:end]) for end in range(1, len(sentences) + 1)]


def everyday_digest() -> dict[str, str]:
    """What outputs of the everyday texts depend on besides the weights."""
    english = (stages_of(text)[-1] for text in texts("everyday"))
    return {"texts_sha256": hashlib.sha256("\n".join(english).encode("utf-8")).hexdigest()}


@cache
def _content() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))
