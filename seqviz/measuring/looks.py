"""Every look at a test set: what came out of a prediction each time that weights were measured on it.

A test set that was looked at before is no longer quite unseen, and a verdict that changes from look to look says
more than the last one alone. So the looks of earlier weights are kept when they are measured anew.

The report's results: ``looks``, oldest first, each with ``created, target_tokens, test_sha256,
prediction_sha256`` and ``hypotheses`` as the length report had them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from seqviz.report import Report

COMMAND = "seqviz looks"


def look(length: Report) -> dict[str, Any] | None:
    """What a length report says of its prediction; None where it answers none."""
    prediction = length.results.get("prediction")
    if not prediction:
        return None
    return {
        "created": length.created,
        "target_tokens": min(one["target_tokens"] for one in length.models.values()),
        "test_sha256": length.data["sha256"],
        "prediction_sha256": prediction.get("sha256"),
        "hypotheses": prediction["hypotheses"],
    }


def looks_report(lengths: Iterable[Report], known: Report | None = None) -> Report:
    """The looks that are known, and those of more length reports.

    Raises:
        ValueError: a report that answers no prediction.
    """
    found = {one["created"]: one for one in (known.results["looks"] if known else ())}
    for length in lengths:
        if (one := look(length)) is None:
            raise ValueError(
                f"expected a length report that answers a prediction, got one of {length.created or 'no date'} "
                "without; give one made by 'seqviz evaluate --prediction'"
            )
        found[one["created"]] = one
    looks = [found[created] for created in sorted(found)]
    data = {"test_sha256": sorted({one["test_sha256"] for one in looks})}
    return Report.now(COMMAND, data, {"looks": looks}, dated=False)


def block(report: Report, length: Report | None) -> str:
    """Markdown: each prediction with what came out at every look, the last one included."""
    found = {one["created"]: one for one in report.results["looks"]}
    if length and (last := look(length)):
        found.setdefault(last["created"], last)
    looks = list(found.values())
    rows = [
        f"Looks at this test set so far: {len(looks)}, each with all four models at one budget. None is left out:",
    ]
    for sha in dict.fromkeys(one["prediction_sha256"] for one in looks):
        of_one = [one for one in looks if one["prediction_sha256"] == sha]
        heads = [f"{one['target_tokens']:,} tokens, {one['created'][:10]}" for one in of_one]
        rows += [
            "",
            f"| | prediction | {' | '.join(heads)} |",
            f"| --- | --- |{' --- |' * len(heads)}",
        ]
        for hypothesis in of_one[0]["hypotheses"]:
            cells = [_said(one["hypotheses"], hypothesis["id"]) for one in of_one]
            rows.append(f"| {hypothesis['id']} | {hypothesis['says']} | {' | '.join(cells)} |")
    rows += [
        "",
        "Differences between two models, with 95 % intervals over test sentences. Recipes were chosen on development "
        "sets, never on this one.",
    ]
    return "\n".join(rows)


def _said(hypotheses: Iterable[Mapping[str, Any]], name: str) -> str:
    for one in hypotheses:
        if one["id"] == name:
            value, low, high = (one.get(key) for key in ("value", "low", "high"))
            known = value is not None and low is not None and high is not None
            shown = f"{value:.3f} ({low:.3f} to {high:.3f})" if known else "none"
            return f"{shown}: {one['verdict']}"
    return "not asked"
