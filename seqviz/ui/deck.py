"""The article's claims as cards that turn: what is said, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqviz.drawing.styles import escape
from seqviz.lab import SCHEMA, claims
from seqviz.language import Language
from seqviz.ui.experiments import is_older
from seqviz.ui.measured import DAMAGED
from seqviz.ui.service import Service

ORDER = "efcighbda"
"""Of the claims: those whose answer is measured and easily told come first."""
LEADS_TO = {
    "a": "cost",
    "b": "training_cost",
    "c": "recall",
    "d": "recall",
    "e": "length",
    "f": "length",
    "g": "cost",
    "h": "training_cost",
    "i": "gradient",
}
"""The experiment whose card tells more of a claim; "length" is the tab."""


def deck(service: Service, language: str) -> str:
    """The claims as cards; lab.js turns them."""
    reports = _reports(service)
    by_id = {claim.id: claim for claim in claims.CLAIMS}
    cards = "".join(_card(by_id[id_], reports, language) for id_ in ORDER)
    return f'<div class="deck">{cards}</div>'


def _card(claim: claims.Claim, reports: Mapping[str, Any], language: str) -> str:
    """A button with the claim, and behind it the verdict."""
    say = Language.of(language).say
    found = _judge(claim, reports)
    goal = LEADS_TO[claim.id]
    if goal == "length":
        link, address = say("lab.to_length"), "?tab=length"
    else:
        link, address = f"{say(f'lab.{goal}_question')} →", f"?tab=lab&card={goal}"
    return (
        f'<article class="claim"><button type="button" class="turns" aria-expanded="false" '
        f'aria-controls="claim-{claim.id}"><span class="said">{escape(claim.front[language])}</span> '
        f'<span class="ask">{escape(say("lab.ask"))}</span></button>'
        f'<div class="back" id="claim-{claim.id}">{_verdict(found.verdict, language)}'
        f'<p class="why">{escape(found.why[language])}</p>'
        f'<p class="to"><a href="{escape(address)}&amp;lang={language}" data-leads="{goal}">'
        f"{escape(link)}</a></p></div></article>"
    )


def _verdict(verdict: str, language: str) -> str:
    said = escape(Language.of(language).say(f"lab.verdict_{verdict}"))
    return f'<b class="verdict" data-verdict="{verdict}">{said}</b>'


def table(service: Service, language: str) -> str:
    """The article's claims beside the literature and what was measured here, folded."""
    say = Language.of(language).say
    reports = _reports(service)
    rows = "".join(_row(claim, reports, language) for claim in claims.CLAIMS)
    heads = "".join(
        f'<th scope="col">{escape(say(f"lab.claims_{key}"))}</th>'
        for key in ("article", "literature", "measured", "verdict")
    )
    return (
        f'<details class="claims"><summary>{escape(say("lab.claims_all"))}</summary>'
        f'<p class="small">{escape(say("lab.claims_about"))}</p>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _reports(service: Service) -> dict[str, Any]:
    """The sound reports by name."""
    found = {name: _report(service, name) for name in claims.REPORTS}
    return {name: report for name, report in found.items() if report is not None}


def _report(service: Service, name: str) -> dict[str, Any] | None:
    """A report that speaks of the weights shown; a claim counts anything else as not measured."""
    try:
        report = service.report(name)
        if report is None or report["schema"] != SCHEMA or is_older(service, report):
            return None
    except (OSError, *DAMAGED):
        return None
    return report


def _judge(claim: claims.Claim, reports: Mapping[str, Any]) -> claims.Judged:
    try:
        return claim.judge(reports)
    except (OSError, *DAMAGED):
        return claim.judge({})


def _row(claim: claims.Claim, reports: Mapping[str, Any], language: str) -> str:
    say = Language.of(language).say
    found = _judge(claim, reports)
    command = "".join(
        f'<code class="command">{escape(command)}</code>' for command in found.commands
    )
    cells = (
        ("article", escape(claim.article[language])),
        ("literature", escape(claim.literature[language])),
        ("measured", f"{escape(found.says[language])}{command}"),
        ("verdict", _verdict(found.verdict, language)),
    )
    return (
        "<tr>"
        + "".join(
            f'<td data-label="{escape(say(f"lab.claims_{key}"))}">{cell}</td>'
            for key, cell in cells
        )
        + "</tr>"
    )
