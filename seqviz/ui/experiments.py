"""The lab's experiments as cards, read from ``models/report/``.

A report that is missing, damaged or of another schema is said to be so; no number is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from seqviz.drawing.inline import as_element
from seqviz.drawing.styles import escape
from seqviz.lab import SCHEMA
from seqviz.language import LANGUAGES, Language
from seqviz.ui import findings, measured
from seqviz.ui.measured import DAMAGED
from seqviz.ui.service import MODELS, Service

OPENS = {"gradient": "lab.open_gradient", "cost": "lab.open_cost"}
"""What the button of a card says, where there is more than figures and method."""


def front(service: Service, name: str, language: str) -> str:
    """What an experiment's card shows before it is opened: question, a sentence, bars, and the button that opens it."""
    say = Language.of(language).say
    report = read(service, name)
    try:
        if isinstance(report, str):
            raise LookupError(report)
        found = findings.markup(findings.finding(name, report, language))
        if is_older(service, report):
            found += f'<p class="hint">{escape(say("lab.older"))}</p>'
    except DAMAGED:
        key = report if isinstance(report, str) else "lab.damaged"
        found = f'<p class="hint">{escape(say(key, command=_command(name)))}</p>'
    return (
        f'<article class="experiment" data-experiment="{name}"><h3>'
        f"{escape(say(f'lab.{name}_question'))}</h3>{found}"
        f'<button type="button" class="opens" data-opens="{name}" aria-expanded="false" '
        f'aria-controls="lab-body-{name}">{escape(say(OPENS.get(name, "lab.open")))}'
        f'<span class="unseen">: {escape(say(f"lab.{name}_question"))}</span></button></article>'
    )


def body(service: Service, name: str, language: str) -> str:
    """What a card holds when it is open: how it was measured, the figure, everything that the numbers say."""
    say = Language.of(language).say
    about = f'<p class="small">{escape(say(f"lab.{name}_about"))}</p>'
    report = read(service, name)
    if isinstance(report, str):
        return f'{about}<p class="hint">{escape(say(report, command=_command(name)))}</p>'
    says = str(report["says"][language])
    told = say(
        "lab.measured",
        command=str(report["command"]),
        hardware=str(report["hardware"]),
        date=str(report["created"])[:10],
    )
    picture = figure(service.folder / "report", name, language, say(f"lab.{name}_question"))
    return f'{about}{picture}<p class="says">{escape(says)}</p><p class="small">{escape(told)}</p>'


def card(service: Service, name: str, language: str) -> str:
    """A whole card, front and body, for a page without a server."""
    return (
        f'<div class="lab-card" id="lab-{name}">{front(service, name, language)}'
        f'<div class="lab-body" id="lab-body-{name}">{body(service, name, language)}</div></div>'
    )


def read(service: Service, name: str) -> dict[str, Any] | str:
    """A report of the lab, or the key of the words that say why there is none."""
    try:
        report = service.report(name)
        if report is None:
            return "lab.none"
        said = [report["says"][language] for language in LANGUAGES]
        told = [report[key] for key in ("command", "hardware", "created")]
        if report["schema"] != SCHEMA or not all(
            isinstance(one, str) and one for one in said + told
        ):
            return "lab.damaged"
    except (OSError, *DAMAGED):
        return "lab.damaged"
    return report


def content(service: Service, name: Any) -> dict[str, Any]:
    """A whole report.

    Raises:
        gr.Error: no such report; the message lists them.
    """
    known = sorted(file.stem for file in (service.folder / "report").glob("*.json"))
    if not isinstance(name, str) or name not in known:
        raise gr.Error(
            f"expected one of {', '.join(known) or 'no reports'}, got {name!r:.40}",
            print_exception=False,
        )
    try:
        return service.report(name) or {}
    except (OSError, ValueError) as error:
        raise gr.Error(f"{name}.json is damaged: {error}", print_exception=False) from error


def is_older(service: Service, report: Mapping[str, Any]) -> bool:
    """The report speaks of shipped models, and of other weights than those that are shown."""
    spoken_of = report.get("models") or {}
    return measured.is_older(service, report, [name for name in MODELS if name in spoken_of])


def figure(folder: Path, name: str, language: str, label: str) -> str:
    """The figure beside a report, its text in the page's colour; empty where there is none."""
    file = folder / f"{name}{'.zh' if language == 'zh' else ''}.svg"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return ""
    return f'<figure class="plot">{as_element(text, label)}</figure>'


def _command(name: str) -> str:
    return f"seqviz lab {name.replace('_', '-')}"
