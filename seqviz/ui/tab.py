"""What a tab hands to the page, and how events that run a model share the queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

from gradio.events import api

from seqviz.language import Language

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

SHARE_JS = "(file) => window.seqviz.share(file)"
"""The same, through the share sheet of a phone where there is one."""


def endpoint(function: Callable[..., Any], **event: Any) -> None:
    """Make a function a documented endpoint, ``/name`` of its own name.

    Gradio reads the type of what comes back from the annotation, but not where that is a string, as it is
    under ``from __future__ import annotations``; and of the docstring it shows the first paragraph only.
    """
    function.__annotations__ = get_type_hints(function)
    lines = (inspect.getdoc(function) or "").splitlines()
    description = " ".join(line.strip() for line in lines if line.strip())
    api(function, api_name=function.__name__, api_description=description, **event)


Made = TypeVar("Made")
Says = Mapping[str, str | Callable[[str], Any]]
"""By argument of a component: the key of a text, or a function from the language to the argument."""


class Spoken:
    """Components whose texts follow the language, each made together with what it says."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, Says]] = []

    def make(self, kind: type[Made], says: Says, **others: Any) -> Made:
        """A component, in English for a start.

        Args:
            kind: such as ``gr.Button``.
            says: its arguments that follow the language.
            others: its arguments that do not.
        """
        component = kind(**_said(says, "en"), **others)
        self._made.append((component, says))
        return component

    @property
    def components(self) -> list[Any]:
        return [component for component, _ in self._made]

    def texts(self, language: str) -> list[Any]:
        """Updates of `components`, in the same order. Quick, and without a model."""
        return [type(component)(**_said(says, language)) for component, says in self._made]


def _said(says: Says, language: str) -> dict[str, Any]:
    say = Language.of(language).say
    return {name: say(one) if isinstance(one, str) else one(language) for name, one in says.items()}


@dataclass(frozen=True)
class Tab:
    """A tab as the page needs it; the protocol stands in `seqviz.ui`.

    Attributes:
        spoken: components whose texts follow the language.
        show: keyword arguments of the events that draw the results, run one after the other.
        parts: what the page or another tab connects to, by name.
    """

    spoken: Spoken
    show: list[dict[str, Any]]
    parts: dict[str, Any] = field(default_factory=dict)


def beam_choices(language: str) -> list[tuple[str, int]]:
    """Greedy search and a beam, in words."""
    return [(Language.of(language).say(f"translate.beams_{number}"), number) for number in (1, 4)]
