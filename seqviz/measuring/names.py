"""The names that others build on, each with its first sentence: the list in ``docs/api.md``.

The same modules are the API reference that ``docs/reference.py`` builds.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

PUBLIC = (
    "seqviz",
    "seqviz.plotting",
    "seqviz.coverage",
    "seqviz.scores",
    "seqviz.lab.gradient",
    "seqviz.training",
    "seqviz.architectures",
    "seqviz.report",
    "seqviz.shipped",
)
"""Modules that people import."""


def index() -> str:
    """Markdown: a list for each module, and below each class of `seqviz` itself what it can do."""
    rows: list[str] = []
    for name in PUBLIC:
        module = importlib.import_module(name)
        rows += ["", f"**`{name}`**: {_sentence(module)}", ""]
        for key, value in public(module):
            rows.append(f"- `{key}`: {_sentence(value)}")
            if inspect.isclass(value) and name == "seqviz":
                rows += [f"  - `.{part}`: {_sentence(what)}" for part, what in _members(value)]
    return "\n".join(rows[1:])


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes that a module offers, by name."""
    offered = getattr(module, "__all__", None)
    for key in offered or vars(module):
        value = getattr(module, key)
        own = offered is not None or getattr(value, "__module__", None) == module.__name__
        if (
            own
            and not key.startswith("_")
            and (inspect.isclass(value) or inspect.isfunction(value))
        ):
            yield key, value


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that a class documents."""
    for key, value in vars(kind).items():
        documented = isinstance(value, property) or inspect.isfunction(value)
        if not key.startswith("_") and documented and inspect.getdoc(value):
            yield key, value


def _sentence(documented: Any) -> str:
    """The first sentence of a docstring, without its full stop.

    Raises:
        ValueError: there is none.
    """
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"expected a docstring of {documented!r}, got none; write one")
    first = " ".join(text.split("\n\n")[0].split()).replace("``", "`")
    return first.split(". ")[0].rstrip(".:")
