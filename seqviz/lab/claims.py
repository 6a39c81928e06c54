"""The article's claims, what the literature says, and what was measured here.

The article and the literature stand in the tables of texts (``[claims.a]`` to ``[claims.i]``). What was
measured is read from reports whenever it is asked for, and so is the verdict, as far as it rests on a
measurement: without the report it says "not measured".

    for claim in CLAIMS:
        print(claim.id, claim.judge(reports).verdict)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seqviz.lab import two_digits
from seqviz.language import LANGUAGES, Language

Reports = Mapping[str, Mapping[str, Any]]
"""Content of ``models/report/NAME.json`` by name; those that are not there are left out."""

REPORTS = ("length", "gradient", "recall", "cost", "training_cost")
"""What the claims are measured by."""

VERDICTS = ("holds", "holds-partly", "does-not-hold", "not-measured")

Says = dict[str, str]
"""A text by language, "en" and "zh"."""


def says(key: str, **values: Any) -> Says:
    """A text in every language.

    Args:
        key: of the text.
        values: for it; one that differs by language is a function of the language.
    """
    spoken = [Language.of(code) for code in LANGUAGES]
    return {
        each.code: each.say(key, **{n: v(each) if callable(v) else v for n, v in values.items()})
        for each in spoken
    }


@dataclass(frozen=True)
class Judged:
    """What became of a claim.

    Attributes:
        verdict: one of `VERDICTS`.
        says: what was measured here, by language.
        why: the same in one sentence, for the card that turns.
        commands: that give the numbers in it again.
    """

    verdict: str
    says: Says
    commands: tuple[str, ...] = ()
    why: Says = field(default_factory=lambda: NOT_MEASURED)


NOT_MEASURED: Says = says("claims.not_measured")


def _judged(verdict: str, id_: str, **values: Any) -> Judged:
    """A verdict with its two texts, ``claims.ID.measured`` and ``claims.ID.why``, from the same numbers."""
    why = says(f"claims.{id_}.why", **values)
    return Judged(verdict, says(f"claims.{id_}.measured", **values), why=why)


@dataclass(frozen=True)
class Claim:
    """One claim of the article.

    Attributes:
        id: a letter.
        needs: reports without which nothing can be said.
        measure: reports → what they say of the claim. The reports it needs are there.
    """

    id: str
    needs: tuple[str, ...]
    measure: Callable[[Reports], Judged] = field(repr=False)

    @property
    def front(self) -> Says:
        """What the article says, in a few words."""
        return says(f"claims.{self.id}.front")

    @property
    def article(self) -> Says:
        """What the article says."""
        return says(f"claims.{self.id}.article")

    @property
    def literature(self) -> Says:
        """What papers say, with their names."""
        return says(f"claims.{self.id}.literature")

    def judge(self, reports: Reports) -> Judged:
        """The verdict and the numbers that it rests on.

        A report of other models or layers than the claim speaks of, or with null in the place of a number
        that could not be computed, counts as none.

        Raises:
            ValueError: a report is damaged.
        """
        if any(name not in reports for name in self.needs):
            return Judged("not-measured", NOT_MEASURED)
        try:
            found = self.measure(reports)
        except (KeyError, TypeError):
            return Judged("not-measured", NOT_MEASURED)
        assert found.verdict in VERDICTS, found.verdict
        commands = dict.fromkeys(str(reports[name]["command"]) for name in self.needs)
        return replace(found, commands=tuple(commands))


# ---------------------------------------------------------------------------------------------
# What the reports say


def _percent(share: float) -> str:
    return two_digits(100 * share)


def _kept(name: str, model: Mapping[str, Any]) -> dict[str, str]:
    """What a model keeps of its BLEU, and the ends of the interval, in percent; keys begin with `name`."""
    found = model["bleu_ratio"]
    return {f"{name}_{key}": _percent(found[key]) for key in ("value", "low", "high")}


def _lengths(effect: Mapping[str, Any]) -> dict[str, str]:
    """The two lengths that a measured effect is between, in words."""
    return {key: f"{effect[key]['low']}–{effect[key]['high']}" for key in ("short", "long")}


def _by_length(reports: Reports) -> Judged:
    """e. BLEU between 30 and 60 words, one fixed vector."""
    effects = reports["length"]["effects"]
    same, natural = (effects[curve]["models"] for curve in ("same-content", "natural"))
    values = {
        **_lengths(effects["same-content"]),
        **_kept("lstm", same["lstm"]),
        **_kept("rnn", same["rnn"]),
        **_kept("natural", natural["lstm"]),
    }
    # A fall: the whole interval lies below 1. Whose finding it was is settled by the literature.
    fell = [models["lstm"]["bleu_ratio"]["high"] < 1 for models in (same, natural)]
    verdict = "holds-partly" if any(fell) else "does-not-hold"
    return _judged(verdict, "e", **values)


NO_DECAY = 0.9
"""A model that keeps less of its BLEU decays, whatever the interval."""


def _no_decay(reports: Reports) -> Judged:
    """f. BLEU between 30 and 60 words, with attention and without."""
    effect = reports["length"]["effects"]["same-content"]
    models = effect["models"]
    values = {
        **_lengths(effect),
        **_kept("with", models["lstm-attention"]),
        **_kept("without", models["lstm"]),
        **_kept("transformer", models["transformer"]),
    }
    kept = models["lstm-attention"]["bleu_ratio"]
    if kept["high"] >= 1:
        verdict = "holds"
    else:
        better = kept["low"] > models["lstm"]["bleu_ratio"]["high"]
        verdict = "holds-partly" if better and kept["value"] >= NO_DECAY else "does-not-hold"
    return _judged(verdict, "f", **values)


def _vanishing(reports: Reports) -> Judged:
    """i. Why gradients vanish, and what the LSTM's cell does about it."""
    report = reports["gradient"]
    faded = report["faded_at"]["project"]
    last = len(report["at_start"]["project"]["rnn"]["median"]) - 1

    def lstm(bias: str) -> Callable[[Language], str]:
        distance = faded[f"lstm-forget-{bias}"]
        key = "claims.i.kept" if distance is None else "claims.i.faded"
        return lambda language: language.say(key, distance=distance, last=last)

    # The recurrent weights are orthogonal at the start: every singular value is 1.
    at_one = faded["rnn"] is not None
    adding_is_enough = faded["lstm-forget-0"] is None
    return _judged(
        "holds-partly" if at_one or not adding_is_enough else "holds",
        "i",
        share=_percent(report["share"]),
        steps=_steps("claims.i.after", "claims.i.never", faded["rnn"]),
        bias_0=lstm("0"),
        bias_1=lstm("1"),
        bias_3=lstm("3"),
    )


def _steps(after: str, never: str, steps: int | None) -> Callable[[Language], str]:
    """When a gradient has faded, by the keys of the two answers."""
    return lambda language: language.say(never if steps is None else after, steps=steps)


def _recalled(found: Mapping[str, Any], distances: Sequence[int]) -> Callable[[Language], str]:
    """Up to which distance a model of the recall experiment answers."""
    distance, means = found["half_way"]["mean"], found["accuracy"]["mean"]
    if distance is not None:
        key, shown = "claims.recalled", f"{distance:.0f}"
    elif means[-1] > 0.5:
        key, shown = "claims.recalled_more", str(distances[-1])
    else:
        key, shown = "claims.recalled_less", str(distances[0])
    return lambda language: language.say(key, distance=shown)


ARTICLE_RNN = (10, 20)
"""Steps a plain RNN remembers, by the article."""


def _rnn_memory(reports: Reports) -> Judged:
    """c. How long a plain RNN remembers: in a task that is learned, and by its gradient at the start."""
    recall, faded = reports["recall"], reports["gradient"]["faded_at"]["project"]["rnn"]
    alone, mixed = (recall[training]["rnn"] for training in ("alone", "mixed"))
    low, high = ARTICLE_RNN
    distances = [alone["half_way"]["mean"], mixed["half_way"]["mean"], faded]
    within = [d is not None and low <= d <= high for d in distances]
    return _judged(
        "holds" if all(within) else "holds-partly" if any(within) else "does-not-hold",
        "c",
        share=_percent(reports["gradient"]["share"]),
        at=_steps("claims.c.after", "claims.c.never", faded),
        alone=_recalled(alone, recall["distances"]),
        mixed=_recalled(mixed, recall["distances"]),
    )


def _lstm_memory(reports: Reports) -> Judged:
    """d. How long an LSTM remembers; the article's figure is of language models, which are not measured."""
    recall = reports["recall"]
    values = {
        f"{training}_{bias}": _recalled(recall[training][kind], recall["distances"])
        for training in ("alone", "mixed")
        for bias, kind in ((1, "lstm"), (3, "lstm-forget-3"))
    }
    return _judged("not-measured", "d", **values)


ARTICLE_BUSY = ((0.05, 0.15), (0.70, 0.95))
"""Shares of the time in which a GPU is busy training an LSTM and a Transformer, by the article."""


def _busy(reports: Reports) -> Judged:
    """a. How much of the hardware a recurrent and an attention layer use."""
    report = reports["cost"]
    values, busy = {"hardware": report["hardware"]}, []
    for name, layer in (("lstm", "lstm"), ("attention", "attention-fused")):
        runs = [found[layer]["forward_backward"] for found in report["layers"].values()]
        every = [share for run in runs for share in run["share_of_matmul_rate"]]
        values |= {f"{name}_low": _percent(min(every)), f"{name}_high": _percent(max(every))}
        busy.append([share for run in runs for share in run.get("kernel_busy", ())])
    if not all(busy):
        return Judged(
            "not-measured",
            says("claims.a.no_gpu", said=lambda each: each.say("claims.a.measured", **values)),
            why=says("claims.a.no_gpu", said=lambda each: each.say("claims.a.why", **values)),
        )
    within = [
        low <= sum(shares) / len(shares) <= high
        for shares, (low, high) in zip(busy, ARTICLE_BUSY, strict=True)
    ]
    verdict = "holds" if all(within) else "holds-partly" if any(within) else "does-not-hold"
    return _judged(verdict, "a", **values)


FOURFOLD = 3.0
"""From this ratio on the time of one sentence is taken to be quadrupled rather than doubled."""


def _square(reports: Reports) -> Judged:
    """g. One step instead of N, and what twice the length costs."""
    report = reports["cost"]
    # At the same number of tokens: a sentence's own time grows by twice this ratio.
    ratios = {
        width: 2 * doubled["attention-naive"]["seconds"]
        for width, doubled in report["doubling"].items()
        if doubled
    }
    if not ratios:
        return Judged("not-measured", NOT_MEASURED)
    narrow, wide = (choose(ratios, key=int) for choose in (min, max))
    doubled = report["doubling"][narrow]
    low, high = doubled["from"], doubled["to"]
    scores = 2 * doubled["attention-naive"]["score_bytes"]
    lstm = 2 * doubled["lstm"]["seconds"]
    layers = report["layers"][narrow]
    steps, one = (layers[layer]["path_length"][-1] for layer in ("lstm", "attention-naive"))
    values = {
        "low": f"{low:,}",
        "high": f"{high:,}",
        "narrow": narrow,
        "wide": wide,
        "narrow_time": f"{ratios[narrow]:.1f}",
        "wide_time": f"{ratios[wide]:.1f}",
        "lstm": f"{lstm:.1f}",
        "scores": f"{scores:.1f}",
        "steps": f"{steps:,}",
        "one": one,
    }
    verdict = "holds" if min(ratios.values()) >= FOURFOLD else "holds-partly"
    return _judged(verdict, "g", **values)


ARTICLE_FASTER = (5.0, 10.0)
"""How much faster a Transformer trains, by the article."""


def _faster(reports: Reports) -> Judged:
    """h. Cost of the same loss: the Transformer against the LSTMs."""
    levels = {
        level["final_loss_of"]: level for level in reports["training_cost"]["cost_to_equal_loss"]
    }
    faster, parts, short = [], [], []
    for name in ("lstm", "lstm-attention"):
        paid = levels[name]["models"]["transformer"]
        values = {"name": name, "loss": f"{levels[name]['loss']:.2f}"}
        if paid is None:
            faster.append(0.0)
            parts.append(says("claims.h.not_reached", **values))
            short.append(says("claims.h.missed", **values))
            continue
        times = paid["times"]
        if times["seconds"] is None:
            return Judged("not-measured", NOT_MEASURED)
        faster.append(1 / times["seconds"])
        values |= {"faster": f"{faster[-1]:.1f}", "fewer": f"{1 / times['operations']:.1f}"}
        key = "claims.h.reached_at_once" if paid["at_most"] else "claims.h.reached"
        parts.append(says(key, **values))
        short.append(says("claims.h.faster", **values))
    low, high = ARTICLE_FASTER
    within = [low <= times <= high for times in faster]
    verdict = "holds" if all(within) else "holds-partly" if any(within) else "does-not-hold"

    def listed(language: Language) -> str:
        return language.join([part[language.code] for part in parts], "clauses")

    def listed_short(language: Language) -> str:
        return language.join([part[language.code] for part in short], "list")

    return _judged(verdict, "h", list=listed, short=listed_short)


def _not_here(reports: Reports) -> Judged:
    """b. Days on eight V100, which nobody here has."""
    return _judged("does-not-hold", "b")


# ---------------------------------------------------------------------------------------------
# The claims

CLAIMS: tuple[Claim, ...] = (
    Claim("a", ("cost",), _busy),
    Claim("b", (), _not_here),
    Claim("c", ("recall", "gradient"), _rnn_memory),
    Claim("d", ("recall",), _lstm_memory),
    Claim("e", ("length",), _by_length),
    Claim("f", ("length",), _no_decay),
    Claim("g", ("cost",), _square),
    Claim("h", ("training_cost",), _faster),
    Claim("i", ("gradient",), _vanishing),
)
"""In the order of the article."""


def markdown(reports: Reports) -> str:
    """The claims as a table for the docs."""
    rows = [
        "| the article | the literature | measured here | verdict |",
        "| --- | --- | --- | --- |",
    ]
    for claim in CLAIMS:
        found = claim.judge(reports)
        commands = "".join(f" `{command}`" for command in found.commands)
        rows.append(
            f"| {claim.article['en']} | {claim.literature['en']} | {found.says['en']}{commands} | "
            f"{Language.of('en').say(f'lab.verdict_{found.verdict}')} |"
        )
    return "\n".join(rows)
