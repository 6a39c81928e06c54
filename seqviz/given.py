"""Texts as people give them: in lists, tuples, NumPy arrays, Series of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

_MISSING = ("NoneType", "NAType", "NaTType")


def listed(given: Any) -> list[str]:
    """Several texts as a list.

    Args:
        given: a list or another sequence of texts; an array or a Series, known by how it makes a list of itself.
    Raises:
        TypeError: something else, or something in it that is not text; the message says where it stands.
    """
    texts: Any = None
    if not isinstance(given, str | bytes):
        array = getattr(given, "tolist", None) or getattr(given, "to_list", None)
        texts = array() if array else list(given) if isinstance(given, Sequence) else None
    if not isinstance(texts, list):
        raise TypeError(f"expected text or a list of texts, got {type(given).__name__}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            missing = type(text).__name__ in _MISSING or (isinstance(text, Real) and text != text)
            what = "a missing value; leave it out" if missing else f"{text!r:.40}"
            raise TypeError(
                f"expected text, got {type(text).__name__} at position {place}, counted from 0: {what}"
            )
    return texts
