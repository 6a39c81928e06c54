"""The lab's experiments and the article's claims, as read from ``models/report/``.

A report that is missing, damaged or of another schema is said to be so; no number is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from seqviz.drawing.inline import as_element
from seqviz.drawing.styles import escape
from seqviz.lab import EXPERIMENTS, SCHEMA, claims
from seqviz.language import LANGUAGES, Language
from seqviz.ui import measured
from seqviz.ui.measured import DAMAGED
from seqviz.ui.service import MODELS, Service

_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])|(?<=。)(?=.)")
"""Between two sentences."""


_SHORT = 80
"""A first sentence of fewer bytes only says what the next one is about."""


def column(service: Service, language: str) -> str:
    """Every experiment: its question, the answer in a sentence, its figure, the rest, how it was measured."""
    found = "".join(_experiment(service, name, language) for name in EXPERIMENTS)
    return f'<div class="experiments">{found}</div>'


def _experiment(service: Service, name: str, language: str) -> str:
    say = Language.of(language).say
    title = escape(say(f"lab.{name}_question"))
    about = escape(say(f"lab.{name}_about"))
    report = read(service, name)
    if isinstance(report, str):
        body = f'<p class="hint">{escape(say(report, command=_command(name)))}</p>'
    else:
        body = _measured(service, name, report, language)
    return (
        f'<section class="experiment" id="lab-{name}"><h2>{title}</h2>'
        f'<p class="small">{about}</p>{body}</section>'
    )


def _measured(service: Service, name: str, report: Mapping[str, Any], language: str) -> str:
    say = Language.of(language).say
    says = str(report["says"][language])
    older = ""
    if is_older(service, report):
        older = f'<p class="hint">{escape(say("lab.older"))}</p>'
    told = say(
        "lab.measured",
        command=str(report["command"]),
        hardware=str(report["hardware"]),
        date=str(report["created"])[:10],
    )
    label = f"{say(f'lab.{name}_question')} {says}"
    answer, more = _answer(says)
    return (
        f'{older}<p class="answer">{escape(answer)}</p>'
        f"{figure(service.folder / 'report', name, language, label)}"
        + "".join(f'<p class="small">{escape(text)}</p>' for text in (more, told) if text)
    )


def _answer(says: str) -> tuple[str, str]:
    """What stands above the figure, a sentence, and what stands below it."""
    first = _SENTENCE.search(says)
    while first and len(says[: first.start()].encode()) < _SHORT:
        first = _SENTENCE.search(says, first.end() + 1)
    return (says[: first.start()], says[first.end() :]) if first else (says, "")


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


# ---------------------------------------------------------------------------------------------
# Claims


def table(service: Service, language: str) -> str:
    """The article's claims beside the literature and what was measured here."""
    say = Language.of(language).say
    reports = {}
    for name in claims.REPORTS:
        report = _report(service, name)
        if report is not None:
            reports[name] = report
    rows = "".join(_claim(claim, reports, language) for claim in claims.CLAIMS)
    heads = "".join(
        f'<th scope="col">{escape(say(f"lab.claims_{key}"))}</th>'
        for key in ("article", "literature", "measured", "verdict")
    )
    return (
        f'<section class="experiment claims"><h2>'
        f"{escape(say('lab.claims_title'))}</h2>"
        f'<p class="small">{escape(say("lab.claims_about"))}</p>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _report(service: Service, name: str) -> dict[str, Any] | None:
    """A report that speaks of the weights shown; a claim counts anything else as not measured."""
    try:
        report = service.report(name)
        if report is None or report["schema"] != SCHEMA or is_older(service, report):
            return None
    except (OSError, *DAMAGED):
        return None
    return report


def _claim(claim: claims.Claim, reports: Mapping[str, Any], language: str) -> str:
    say = Language.of(language).say
    try:
        found = claim.judge(reports)
    except (OSError, *DAMAGED):
        found = claim.judge({})
    command = "".join(
        f'<code class="command">{escape(command)}</code>' for command in found.commands
    )
    verdict = escape(say(f"lab.verdict_{found.verdict}"))
    cells = (
        ("article", escape(claim.article[language])),
        ("literature", escape(claim.literature[language])),
        ("measured", f"{escape(found.says[language])}{command}"),
        ("verdict", f'<b data-verdict="{found.verdict}">{verdict}</b>'),
    )
    return (
        "<tr>"
        + "".join(
            f'<td data-label="{escape(say(f"lab.claims_{key}"))}">{cell}</td>'
            for key, cell in cells
        )
        + "</tr>"
    )
