"""What stands on an experiment's card: a sentence and a few bars, each number read from the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seqviz.constants import MODELS
from seqviz.drawing.styles import escape
from seqviz.lab import two_digits
from seqviz.language import Language


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        label: what it is of.
        share: its length, 0 to 1 of the longest there could be.
        said: its number.
        model: whose colour it has.
    """

    label: str
    share: float
    said: str
    model: str


@dataclass(frozen=True)
class Finding:
    """A sentence, and the bars that it explains."""

    says: str
    bars: list[Bar]


Reads = Callable[[Mapping[str, Any], Language], Finding]

_COLOURS = {"rnn": "rnn", "lstm": "lstm", "lstm-forget-1": "lstm", "lstm-forget-3": "lstm"}
"""Whose colour a layer has; attention has the Transformer's."""
GRADIENT_STEPS = 20
"""How far back the bars of the gradient look."""


def finding(name: str, report: Mapping[str, Any], language: str) -> Finding:
    """What the card of an experiment says.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the report is damaged.
    """
    table = f"lab.{name}"
    return _READS[table](report, Language.of(language).within(table))


def markup(found: Finding) -> str:
    bars = "".join(
        f'<li style="--share:{100 * min(1.0, max(0.0, bar.share)):.1f}%;--bar:var(--{bar.model})">'
        f"<span>{escape(bar.label)}</span><i></i><b>{escape(bar.said)}</b></li>"
        for bar in found.bars
    )
    return f'<p class="answer">{escape(found.says)}</p><ul class="bars">{bars}</ul>'


def _bar(kind: str, share: float, said: str, spoken: Language) -> Bar:
    return Bar(spoken.say(f"bar_{kind}"), share, said, _COLOURS.get(kind, "transformer"))


def _shares(shares: Mapping[str, float], spoken: Language) -> list[Bar]:
    """Bars of shares, 0 to 1."""
    return [_bar(kind, share, _percent(share, spoken), spoken) for kind, share in shares.items()]


def _percent(share: float, spoken: Language) -> str:
    """Small shares with the digits that count."""
    if share >= 0.01:
        return Language.of(spoken.code).percent(share)
    number = two_digits(100 * share) if share >= 1e-4 else "< 0.01"
    return Language.of(spoken.code).say("lab.game_percent", number=number)


def _gradient(report: Mapping[str, Any], spoken: Language) -> Finding:
    start = report["at_start"]["project"]
    kinds = ("rnn", "lstm-forget-1", "lstm-forget-3", "self-attention")
    left = {kind: float(start[kind]["median"][GRADIENT_STEPS]) for kind in kinds}
    return Finding(spoken.say("card", steps=GRADIENT_STEPS), _shares(left, spoken))


def _recall(report: Mapping[str, Any], spoken: Language) -> Finding:
    kinds = ("rnn", "lstm", "attention")
    alone, mixed = (
        {kind: float(report[training][kind]["accuracy"]["mean"][-1]) for kind in kinds}
        for training in ("alone", "mixed")
    )
    least = _percent(min(mixed.values()), spoken)
    return Finding(
        spoken.say("card", last=report["distances"][-1], mixed=least), _shares(alone, spoken)
    )


def _capacity(report: Mapping[str, Any], spoken: Language) -> Finding:
    fixed, attended = (
        {width: float(found["longest"]["median"]) for width, found in report[name].items()}
        for name in ("lstm", "lstm-attention")
    )
    most, narrow = float(report["max_length"]), min(attended, key=int)
    bars = [
        Bar(spoken.say("bar", width=width), length / most, f"{length:g}", "lstm")
        for width, length in fixed.items()
    ]
    last = attended[narrow]
    label = spoken.say("bar_attention", width=narrow)
    bars.append(Bar(label, last / most, f"{last:g}", "lstm-attention"))
    good = _percent(report["good"], spoken)
    said = spoken.say("card", good=good, least=narrow, attention=f"{last:g}")
    return Finding(said, bars)


def _cost(report: Mapping[str, Any], spoken: Language) -> Finding:
    doubled = report["doubling"][str(report["width_shown"])]
    low, high = doubled["from"], doubled["to"]
    longer = high / low  # the report's ratios are at the same number of tokens
    kinds = ("lstm", "attention-fused", "attention-naive")
    times = {kind: longer * doubled[kind]["seconds"] for kind in kinds}
    most = max(times.values())
    bars = [
        _bar(kind, ratio / most, spoken.say("times", number=f"{ratio:.1f}"), spoken)
        for kind, ratio in times.items()
    ]
    scores = two_digits(longer * doubled["attention-naive"]["score_bytes"])
    said = spoken.say("card", low=f"{low:,}", high=f"{high:,}", scores=scores)
    return Finding(said, bars)


def _training_cost(report: Mapping[str, Any], spoken: Language) -> Finding:
    """Down to the loss of the recurrent model without attention: seconds, or tokens where none are known."""
    say = Language.of(spoken.code).say
    levels = {level["final_loss_of"]: level for level in report["cost_to_equal_loss"]}
    level = levels["lstm"]
    times = {
        name: level["models"][name]["times"] for name in MODELS if level["models"][name] is not None
    }
    timed = all(one["seconds"] is not None for one in times.values())
    paid = {name: float(one["seconds" if timed else "tokens"]) for name, one in times.items()}
    bars = [
        Bar(say(f"model.{name}"), share / max(paid.values()), _percent(share, spoken), name)
        for name, share in paid.items()
    ]
    key = "card" if timed else "card_tokens"
    said = spoken.say(key, owner=say("model.lstm"), loss=f"{level['loss']:.2f}")
    return Finding(said, bars)


def _extrapolation(report: Mapping[str, Any], spoken: Language) -> Finding:
    task = report["tasks"]["last-write"]
    last = {
        kind: float(task["models"][kind]["accuracy"]["mean"][-1])
        for kind in ("rnn", "lstm", "attention")
    }
    said = spoken.say(
        "card",
        trained=report["trained_length"],
        longest=report["lengths"][-1],
        chance=_percent(task["chance"], spoken),
    )
    return Finding(said, _shares(last, spoken))


_READS: dict[str, Reads] = {
    "lab.gradient": _gradient,
    "lab.recall": _recall,
    "lab.capacity": _capacity,
    "lab.cost": _cost,
    "lab.training_cost": _training_cost,
    "lab.extrapolation": _extrapolation,
}
