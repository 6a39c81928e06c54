"""What a tab hands to the page, and how events that run a model share the queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import gradio as gr

MODEL_EVENT: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 2}
"""For every event that runs a model: two at a time on the whole page, others wait in the queue."""

QUICK_EVENT: dict[str, Any] = {
    "queue": False,
    "show_progress": "hidden",
    "api_visibility": "private",
}
"""For handlers that take a few milliseconds and run no model."""

DOWNLOAD_JS = "(file) => window.seqviz.download(file)"
"""Hands a file to the browser: a dictionary of ``name``, ``type`` and ``data`` in base64."""


def endpoint(function: Callable[..., Any], **event: Any) -> None:
    """Make a function a documented endpoint, ``/name`` of its own name.

    Gradio reads the type of what comes back from the annotation, but not where that is a string, as it is
    under ``from __future__ import annotations``; and of the docstring it shows the first paragraph only.
    """
    function.__annotations__ = get_type_hints(function)
    lines = (inspect.getdoc(function) or "").splitlines()
    description = " ".join(line.strip() for line in lines if line.strip())
    gr.api(function, api_name=function.__name__, api_description=description, **event)


@dataclass(frozen=True)
class Tab:
    """A tab as the page needs it; the protocol stands in `seqviz.ui`.

    Attributes:
        components: components whose text follows the language.
        texts: language → their updates, in the same order.
        show: keyword arguments of the events that draw the results, run one after the other.
        parts: what another tab may connect to, by name.
    """

    components: list[Any] = field(default_factory=list)
    texts: Callable[[str], list[Any]] = lambda language: []
    show: list[dict[str, Any]] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
