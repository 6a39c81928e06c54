"""How good the models are on whole test sets, greedy and with a beam, with intervals.

Quality by length is `seqviz.measuring.length`; this is the one number that other papers print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqviz import scores
from seqviz.measuring.length import LEGEND, overall, said
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import Plan
from seqviz.report import Report

SCHEMA = 1


def quality_report(
    measured: Mapping[str, tuple[Plan, Mapping[int, Mapping[str, Outputs]]]],
    *,
    number: int = 1_000,
    command: str = "seqviz quality",
    device: str | None = None,
) -> Report:
    """Everything that was measured.

    ``test_sets[name]`` holds ``data`` and ``searches[beams][model]`` with ``n, bleu, chrf, loss`` (with
    ``…_low, …_high``), ``brevity_penalty, length_ratio``, ``repeated, limit``.

    Args:
        measured: of each test set the plan, and by number of beams (1 is greedy) the outputs of each model.
        number: of resamples.
        command: that measures it.
        device: on which it was translated.
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
    languages = next(iter(measured.values()))[0].languages
    results = {
        **said(languages),
        "legend": {
            **{key: LEGEND[key] for key in ("…_low, …_high", "bleu, chrf", "loss")},
            "searches": "by number of beams; 1 is greedy",
        },
        "resamples": number,
        "signatures": scores.signatures(languages.target),
        "test_sets": test_sets,
    }
    return Report.now(command, None, results, models, device=device or "cpu", schema=SCHEMA)
