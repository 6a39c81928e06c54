"""Bits that get through: what the source tells a model of its translation, by length.

    bits of a text = (loss without any source − loss with it) · tokens / ln 2

The loss without a source is that of ``lstm-blind``, the LSTM's own decoder alone: what can be guessed of the
French. One vector can only hold so much, so its curve must flatten; that of a model that looks back need not.
All models of a report have had the same number of target tokens of the same data.

The report's results, for each curve of `length` and each model:

- ``curves[curve][name]``: buckets of ``low, high, n, thin, words`` (mean words held at once), ``parts``,
  ``bits`` (mean of a text) and ``bits_a_word`` (of the source), each with ``…_low, …_high``.
- ``without``: name, digest, target tokens and loss of the model without a source; ``readers``: of the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqviz import scores
from seqviz.files import file_digest
from seqviz.measuring.counts import THIN, Draws, Group, natural, rounded, same_content
from seqviz.measuring.outputs import Outputs
from seqviz.measuring.plan import BUCKETS, PARTS, Plan, words_in
from seqviz.report import Report

SCHEMA = 1

SAME_BUDGET = 0.01
"""By so much, of the larger one, may budgets differ: runs end with a whole step."""

LEGEND = {
    "bits": "mean bits of a text that the source tells the model: (loss without a source minus loss with it) "
    "times tokens / ln 2",
    "bits_a_word": "bits of all texts of a bucket divided by their English words",
    "…_low, …_high": "95 % interval, percentiles of the paired bootstrap over texts",
    "words": "mean English words held at once",
    "parts": "into how many parts a run of whole sentences was cut; bits are then those of the whole run",
    "n": "texts of a bucket",
    "thin": f"fewer than {THIN} texts",
}
"""What the names in the report mean, part of every report."""


class BudgetError(ValueError):
    """Models that must not be compared."""


@dataclass(frozen=True)
class LossesOf:
    """The texts of a plan, whose losses are measured and nothing is translated."""

    plan: Plan

    def sources(self) -> list[str]:
        """None."""
        return []

    def texts(self) -> list[tuple[str, str]]:
        """Every (source, target), see `Plan.texts`."""
        return self.plan.texts()


def check_alike(folders: Mapping[str, Path]) -> None:
    """Refuse models of different budgets, training data or tokenizers.

    Args:
        folders: of models, by name.
    Raises:
        BudgetError: what differs, in one line.
    """
    trainings = {
        name: json.loads((folder / "training.json").read_text(encoding="utf-8"))
        for name, folder in folders.items()
    }
    budgets = {name: int(t.get("target_tokens") or 0) for name, t in trainings.items()}
    if min(budgets.values()) < (1 - SAME_BUDGET) * max(budgets.values()):
        said = ", ".join(f"{name} {tokens:,}" for name, tokens in budgets.items())
        raise BudgetError(
            f"expected models of one budget, got {said} target tokens; train the others to the same number "
            "(seqviz train --tokens)"
        )
    data = {
        name: json.dumps([[d["sha256"], d.get("repeat")] for d in t.get("data", [])])
        for name, t in trainings.items()
    }
    tokenizers = {name: file_digest(folder / "tokenizer.json") for name, folder in folders.items()}
    for what, found in (("training corpora", data), ("tokenizer", tokenizers)):
        first = next(iter(found))
        others = [name for name in found if found[name] != found[first]]
        if others:
            raise BudgetError(
                f"expected models of the same {what}, got others of {', '.join(others)} than of {first}"
            )


def check_without(folder: Path) -> None:
    """Refuse a model to which something of the source is told.

    Raises:
        BudgetError: it is another model than ``lstm-blind``.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    context = config.get("context", "attention")
    if context != "none":
        raise BudgetError(
            f"expected a model without any source, got one of the context {context!r} in {folder}; train one "
            "with 'seqviz train lstm-blind'"
        )


def bits_report(
    plan: Plan,
    without: tuple[str, Outputs],
    outputs: Mapping[str, Outputs],
    *,
    number: int = 1_000,
    command: str = "seqviz bits",
    device: str | None = None,
) -> Report:
    """Everything that was measured; what it holds stands above.

    Args:
        plan: whose losses were measured.
        without: name and losses of the model without a source.
        outputs: losses of each other model.
        number: of resamples.
        command: that measures it.
        device: on which it was measured.
    """
    blind_name, blind = without
    draws = Draws(number, plan.seed)
    groups = {"natural": [natural(plan, bucket) for bucket in BUCKETS]}
    if plan.runs:
        groups["same-content"] = [same_content(plan, parts) for parts in PARTS]
    results = {
        "legend": LEGEND,
        "resamples": number,
        "without": {"name": blind_name, **blind.information, "loss": _loss(groups, blind)},
        "readers": {
            name: {**out.information, "loss": _loss(groups, out)} for name, out in outputs.items()
        },
        "curves": {
            curve: {
                name: [_bucket(group, blind, out, draws) for group in found]
                for name, out in outputs.items()
            }
            for curve, found in groups.items()
        },
    }
    data = {
        **plan.data,
        "pairs": len(plan.pairs),
        "runs": len(plan.runs),
        "sample": plan.sample,
        "seed": plan.seed,
    }
    return Report.now(command, data, results, device=device or "cpu", schema=SCHEMA)


def _loss(groups: Mapping[str, list[Group]], outputs: Outputs) -> float | None:
    """Mean loss of single sentences, nats a token."""
    texts = [text for group in groups["natural"] for (text,) in group.texts]
    nats = np.concatenate([outputs.losses[text] for text in texts])
    return rounded(float(nats.mean()), 4)


def _bucket(group: Group, blind: Outputs, outputs: Outputs, draws: Draws) -> dict[str, Any]:
    """Bits of the texts of a group, with intervals."""
    n, language = len(group.texts), group.languages.source
    made: dict[str, Any] = {"low": group.low, "high": group.high, "n": n, "thin": n < THIN}
    if group.key.startswith("same-content"):
        made["parts"] = group.parts
    lengths = [words_in(source, language) for text in group.texts for source, _ in text]
    made["words"] = round(float(np.mean(lengths)), 1) if lengths else None
    rows = np.zeros((n, 3))  # bits, one, words
    for row, text in zip(rows, group.texts, strict=True):
        nats = sum(float(blind.losses[part].sum() - outputs.losses[part].sum()) for part in text)
        row[:] = nats / math.log(2), 1, sum(words_in(source, language) for source, _ in text)
    for name, of in (("bits", 1), ("bits_a_word", 2)):
        counts = rows[:, [0, of]]
        found = scores.interval(scores.resampled(scores.ratio, counts, draws(group))) if n else None
        low, high = found or (np.nan, np.nan)
        made[name] = rounded(float(scores.ratio(counts.sum(axis=0))), 3)
        made[f"{name}_low"], made[f"{name}_high"] = rounded(low, 3), rounded(high, 3)
    return made


# ---------------------------------------------------------------------------------------------
# In words


def block(report: Report) -> str:
    """Markdown of the bits that get through, by length."""
    found, data = report.results, report.data
    curves = found["curves"]["natural"]
    points = [b for b in next(iter(curves.values())) if b["n"]]
    heads = [f"{b['low']}–{b['high']} words" for b in points]
    blind = found["without"]
    rows = [
        "![Bits that get through, by sentence length](models/report/bits.svg)",
        "",
        f"How much does the English tell a model? `{blind['name']}` is the LSTM's decoder without any English: "
        f"its loss is {blind['loss']:.2f} nats a token. A model that reads the English guesses better. The "
        "difference, summed over a sentence, is the number of bits that got through. One vector can hold only "
        "so many, so its line must flatten; a model that looks back need not.",
        "",
        f"| model | loss | {' | '.join(heads)} |",
        f"| --- | --- |{' --- |' * len(heads)}",
    ]
    for name, buckets in curves.items():
        cells = [_bits(b) for b in buckets if b["n"]]
        rows.append(f"| `{name}` | {found['readers'][name]['loss']:.2f} | {' | '.join(cells)} |")
    if same := found["curves"].get("same-content"):
        rows += [
            "",
            "The same for one and the same text, held in four parts, in two, or whole:",
            "",
        ]
        first = next(iter(same.values()))
        heads = [f"{b['words']:.0f} words at once" for b in first]
        rows += [f"| model | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
        rows += [f"| `{name}` | {' | '.join(map(_bits, bs))} |" for name, bs in same.items()]
    tokens = blind.get("target_tokens")
    budget = f"after {tokens:,} target tokens each" if tokens else "at one budget"
    thin = " Italic: fewer than 50 sentences." if any(b["thin"] for b in points) else ""
    rows += [
        "",
        f"Mean bits of a text with 95 % intervals over texts; one training run a model, {budget}.{thin} "
        "The guesser is an LSTM, so the Transformer's bits also hold what its decoder guesses better.",
        "",
        f"Measured by `{report.command}` (SHA-256 `{data['sha256'][:12]}…`): {data['pairs']:,} sentences and "
        f"{data['runs']:,} runs of sentences; {report.hardware}. All numbers: `models/report/bits.json`.",
    ]
    return "\n".join(rows)


def _bits(bucket: Mapping[str, Any]) -> str:
    value, low, high = (bucket[key] for key in ("bits", "bits_low", "bits_high"))
    if value is None:
        return "–"
    said = f"{value:.0f}" if low is None else f"{value:.0f} ({low:.0f} to {high:.0f})"
    return f"*{said}*" if bucket["thin"] else said
