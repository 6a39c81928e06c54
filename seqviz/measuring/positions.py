"""Where it breaks along a long text: loss by target position, found words by source position.

Shapes: `N` texts of a group, `R` resamples, `T` pieces or words of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from seqviz import scores
from seqviz.measuring.counts import THIN, Draws, Marker, natural, rounded, same_content
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import LONG, PARTS, Plan

POSITIONS = tuple((low, low + 9) for low in range(1, 100, 10))
"""Bins of positions in a text, in words of the source or pieces of the target, from 1."""


def positions(
    plan: Plan, outputs: Mapping[str, Outputs], draws: Draws, marker: Marker
) -> dict[str, Any]:
    """Loss by position in the target and found words by position in the source, in long texts."""
    groups = {"natural": natural(plan, LONG)}
    groups |= {str(parts): same_content(plan, parts) for parts in PARTS if plan.runs}
    made: dict[str, Any] = {"loss": {}, "found": {}}
    for cut, group in groups.items():
        if not group.texts:
            continue
        chosen = draws(group)
        made["loss"][cut] = {
            name: _by_position(
                [
                    np.concatenate([out.losses.get(part, np.zeros(0)) for part in text])
                    for text in group.texts
                ],
                None,
                chosen,
                "loss",
            )
            for name, out in outputs.items()
        }
        if marker.lexicon is None:
            continue
        answers: dict[str, Callable[[str, str], str]] = {"reference": lambda _, target: target}
        for name, out in outputs.items():
            answers[name] = lambda source, _, out=out: out.translations[source].text
        made["found"][cut] = {}
        for name, answer in answers.items():
            rows = [[marker(s, answer(s, t)) for s, t in text] for text in group.texts]
            made["found"][cut][name] = _by_position(
                [np.concatenate([hits for hits, _ in row]) for row in rows],
                [np.concatenate([judged for _, judged in row]) for row in rows],
                chosen,
                "found",
            )
    return made


def _by_position(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray] | None,
    draws: np.ndarray,
    name: str,
) -> list[dict[str, Any]]:
    """Means of values over bins of positions, with intervals over texts.

    Args:
        values: of each text, (T,).
        weights: of each value, such as 1 for a word that was judged; None for 1 everywhere.
        draws: resamples of the texts.
        name: of the value in the result.
    """
    longest = POSITIONS[-1][1]
    table = np.zeros((len(values), longest, 2))
    for number, row in enumerate(values):
        size = min(len(row), longest)
        weight = np.ones(len(row)) if weights is None else weights[number]
        table[number, :size, 0] = (row * weight)[:size]
        table[number, :size, 1] = weight[:size]
    made = []
    for low, high in POSITIONS:
        counts = table[:, low - 1 : high].sum(axis=1)
        n = int(counts[:, 1].sum())
        if not n:
            continue
        bounds = scores.interval(scores.resampled(scores.ratio, counts, draws))
        texts = int((counts[:, 1] > 0).sum())
        made.append(
            {
                "low": low,
                "high": high,
                "n": n,
                "texts": texts,
                "thin": texts < THIN,
                name: rounded(float(scores.ratio(counts.sum(axis=0))), 4),
                f"{name}_low": rounded(bounds[0], 4) if bounds else None,
                f"{name}_high": rounded(bounds[1], 4) if bounds else None,
            }
        )
    return made
