"""What a curve by length says beside its scores: the share of the first point that is left, circles, chance.

- ``bleu_kept, chrf_kept``: score divided by the score of the curve's first point.
- ``found_chance``: found words in the output for another text of like length; ``found_reference``: in the human
  translation; ``found_above``: (found − chance) / (human − chance). It can pass 1: models write the commonest
  word for a meaning, and the table of words knows the commonest best.
- ``references``: share of human translations that count as repeating themselves.

All with ``…_low, …_high``, 95 % intervals of the paired bootstrap over texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqviz import scores
from seqviz.measuring.counts import Counts, Draws, Group, Marker, rounded
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import words_in
from seqviz.translating.output import repeated_spans

LEGEND = {
    "bleu_kept, chrf_kept": "score divided by the score of the curve's first point",
    "found_chance": "found words in the output for another text of like length",
    "found_reference": "found words in the human translation",
    "found_above": "(found minus chance) divided by (human minus chance); above 1 where a model writes the "
    "commonest word and a person another",
    "references": "share of human translations that count as repeating themselves",
}


def shares(
    groups: Sequence[Group], counts: Sequence[Counts], draws: Draws
) -> list[dict[str, float | None]]:
    """What is left of the first point that holds a text, for each group."""
    made: list[dict[str, float | None]] = [{} for _ in groups]
    for name, score in (("bleu", scores.bleu), ("chrf", scores.chrf)):
        first: np.ndarray | None = None
        for number, (group, counted) in enumerate(zip(groups, counts, strict=True)):
            found = np.array([np.nan])
            if group.texts:
                rows = getattr(counted, name)
                whole = score(rows.sum(axis=0))[None]
                every = np.append(whole, scores.resampled(score, rows, draws(group)))
                first = every if first is None else first
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = every / first
            made[number] |= _with_interval(f"{name}_kept", found)
    return made


def above_chance(
    group: Group, outputs: Outputs, marker: Marker, draws: Draws
) -> dict[str, float | None]:
    """Found words beyond what chance gives, and beside what people write."""
    names = ("found_chance", "found_reference", "found_above")
    if marker.lexicon is None or len(group.texts) < 2:
        return {key: None for name in names for key in (name, f"{name}_low", f"{name}_high")}
    texts = [(n, *part) for n, text in enumerate(group.texts) for part in text]
    other = neighbours(
        [words_in(source, group.languages.source) for _, source, _ in texts],
        [n for n, _, _ in texts],
    )
    rows = np.zeros((len(group.texts), 6))  # own, chance, human; found and judged of each
    for place, (n, source, target) in enumerate(texts):
        said = [
            outputs.translations[source].text,
            outputs.translations[texts[other[place]][1]].text,
            target,
        ]
        for column, output in enumerate(said):
            hits, judged = marker(source, output)
            rows[n, 2 * column : 2 * column + 2] += hits.sum(), judged.sum()
    chosen = np.concatenate([np.ones((1, len(rows))), draws(group)])
    own, chance, human = (
        scores.resampled(scores.ratio, rows[:, at : at + 2], chosen) for at in (0, 2, 4)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (own - chance) / (human - chance)
    made: dict[str, float | None] = {}
    for name, values in zip(names, (chance, human, above), strict=True):
        made |= _with_interval(name, values)
    return made


def neighbours(lengths: Sequence[int], owners: Sequence[int]) -> list[int]:
    """For each part the number of one of like length that belongs to another text.

    Args:
        lengths: of the parts.
        owners: number of the text that each part belongs to; at least two texts.
    """
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    found = [0] * len(order)
    for place, i in enumerate(order):
        for step in range(1, len(order)):
            near = [p for p in (place - step, place + step) if 0 <= p < len(order)]
            near = [order[p] for p in near if owners[order[p]] != owners[i]]
            if near:
                found[i] = near[0]
                break
    return found


def references(group: Group, draws: Draws) -> dict[str, Any]:
    """How often people count as repeating themselves, in the texts of a group."""
    made: dict[str, Any] = {"low": group.low, "high": group.high, "n": len(group.texts)}
    counts = np.array(
        [
            (sum(bool(repeated_spans(target.split())) for _, target in text), len(text))
            for text in group.texts
        ],
        float,
    ).reshape(-1, 2)
    lengths = [words_in(s, group.languages.source) for text in group.texts for s, _ in text]
    made["words"] = round(float(np.mean(lengths)), 1) if lengths else None
    values = np.array([np.nan])
    if len(counts):
        chosen = draws(group)
        whole = scores.ratio(counts.sum(axis=0))[None]
        values = np.append(whole, scores.resampled(scores.ratio, counts, chosen))
    return made | _with_interval("repeated", values)


def _with_interval(name: str, values: np.ndarray) -> dict[str, float | None]:
    """A value, the first, with the interval of the others."""
    low, high = scores.interval(values[1:]) or (np.nan, np.nan)
    return {
        name: rounded(float(values[0]), 4),
        f"{name}_low": rounded(low, 4),
        f"{name}_high": rounded(high, 4),
    }
