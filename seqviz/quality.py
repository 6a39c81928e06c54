"""How good the models are on whole test sets, greedy and with a beam, with intervals.

Quality by length is `seqviz.length_report`; this is the one number that other papers print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seqviz import scores
from seqviz.evaluation import Outputs, Plan
from seqviz.length_report import LEGEND, overall
from seqviz.version import versions

SCHEMA = 1


def quality_report(
    measured: Mapping[str, tuple[Plan, Mapping[int, Mapping[str, Outputs]]]],
    *,
    number: int = 1_000,
) -> dict[str, Any]:
    """Everything that was measured, ready to be written as JSON.

    ``test_sets[name]`` holds ``data`` and ``searches[beams][model]`` with ``n, bleu, chrf, loss`` (with
    ``…_low, …_high``), ``brevity_penalty, length_ratio``, ``repeated, limit``.

    Args:
        measured: of each test set the plan, and by number of beams (1 is greedy) the outputs of each model.
        number: of resamples.
    Raises:
        ValueError: no test set, or an output is missing.
    """
    if not measured:
        raise ValueError("expected at least one test set, got none")
    models: dict[str, Any] = {}
    test_sets: dict[str, Any] = {}
    for name, (plan, searches) in measured.items():
        found: dict[str, Any] = {}
        for beams, outputs in searches.items():
            found[str(beams)] = overall(plan, outputs, number)
            models.update({model: out.information for model, out in outputs.items()})
        test_sets[name] = {
            "data": {
                **plan.data,
                "pairs": len(plan.pairs),
                "skipped": dict(plan.skipped),
                "sample": plan.sample,
            },
            "searches": found,
        }
    return {
        "schema": SCHEMA,
        "legend": {
            **{key: LEGEND[key] for key in ("…_low, …_high", "bleu, chrf", "loss")},
            "searches": "by number of beams; 1 is greedy",
        },
        "versions": versions(),
        "resamples": number,
        "signatures": scores.signatures(),
        "models": models,
        "test_sets": test_sets,
    }


def markdown(report: Mapping[str, Any], names: Sequence[str]) -> str:
    """A table of the models by test set and search, and what it was measured by."""

    def cell(entry: Mapping[str, Any], key: str) -> str:
        return f"{entry[key]:.1f} ({entry[f'{key}_low']:.1f} to {entry[f'{key}_high']:.1f})"

    rows = [
        "| model | test set | BLEU, greedy | BLEU, beam | chrF, greedy | chrF, beam |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    widths: set[str] = set()
    for name in names:
        for test_set, content in report["test_sets"].items():
            greedy, *wider = (
                (beams, found[name])
                for beams, found in sorted(content["searches"].items(), key=lambda i: int(i[0]))
            )
            widths.update(beams for beams, _ in wider)
            cells = [
                cell(entry, metric) if entry else "not measured"
                for metric in ("bleu", "chrf")
                for entry in (greedy[1], wider[-1][1] if wider else None)
            ]
            rows.append(f"| `{name}` | {test_set} | {' | '.join(cells)} |")
    sets = "; ".join(
        f"{name}: {content['data']['pairs']:,} of {content['data']['lines']:,} pairs of "
        f"`{content['data']['name']}`, SHA-256 `{content['data']['sha256'][:12]}…`"
        for name, content in report["test_sets"].items()
    )
    beams = f", beam of {' and '.join(sorted(widths))}" if widths else ""
    rows += [
        "",
        f"Measured by `{report['command']}` ({sets}){beams}; {report['resamples']:,} paired bootstrap "
        f"resamples, 95 % intervals; `{report['signatures']['bleu']}`, `{report['signatures']['chrf']}`; "
        f"{report['hardware']}. All numbers: `models/report/quality.json`.",
    ]
    return "\n".join(rows)
