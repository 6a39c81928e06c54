"""The frame of an experiment: what it is run with, what several seeds say together, and its report.

An experiment has settings (`seqviz.lab.settings`), a function from settings to results, and a sentence
made from the results. On made-up tasks the learning rate of each model is chosen by a small search on
seeds of its own, and then every seed is run with it: see `learned`.

What comes out is *what was learned at a budget*. More steps, another schedule or regularisation can do
better: Pascanu et al. 2013 solve lags of 50 to 200 with a tanh RNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from seqviz.lab.readers import TEST, VALIDATION
from seqviz.language import LANGUAGES
from seqviz.report import Report

Say = Callable[[str], None]
"""Takes a line whenever a part of an experiment begins or is done."""


def quiet(line: str) -> None:
    """Say nothing."""


# ---------------------------------------------------------------------------------------------
# The experiment and its report


@dataclass(frozen=True)
class Experiment:
    """One experiment of the lab.

    Attributes:
        name: of its report; its command has "-" where this has "_".
        settings: class of its settings.
        run: settings and `Say` → results.
        sentence: results and language → what they say, in words.
        data: settings and results → what was measured on, in plain types.
        given: what belongs to its settings though nobody can set it, such as seeds.
    """

    name: str
    settings: type
    run: Callable[[Any, Say], dict[str, Any]] = field(repr=False)
    sentence: Callable[[Mapping[str, Any], str], str] = field(repr=False)
    data: Callable[[Any, dict[str, Any]], Mapping[str, Any]] = field(repr=False)
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        return f"seqviz lab {self.name.replace('_', '-')}"

    def measure(self, settings: Any = None, say: Say = quiet) -> dict[str, Any]:
        """Run it, and say what came out.

        Args:
            settings: None for those of the committed report.
            say: takes a line whenever a part begins or is done.
        Returns:
            the results, with ``says`` (the sentence, by language).
        """
        results = self.run(self.settings() if settings is None else settings, say)
        return {**results, "says": self.says(results)}

    def says(self, results: Mapping[str, Any]) -> dict[str, str]:
        """What results say, by language."""
        return {language: self.sentence(results, language) for language in LANGUAGES}

    def report(self, settings: Any, say: Say = quiet, command: str | None = None) -> Report:
        """What was run, on what, where, and what came out.

        Args:
            command: that gives the same numbers again; None for the one without options.
        """
        results = self.measure(settings, say)
        data, models = self.data(settings, results), results.pop("models", None)
        here = results.pop("hardware", None)
        given = {"settings": {**asdict(settings), **self.given}}
        made = Report.now(command or self.command, data, {**given, **results}, models)
        return replace(made, hardware=here) if here else made


def find(name: str) -> Experiment:
    """One of `seqviz.lab.EXPERIMENTS` by its name."""
    return import_module(f"seqviz.lab.{name}").EXPERIMENT


# ---------------------------------------------------------------------------------------------
# Learning: one rate for each model, several seeds

Answers = Callable[[float, int, int], Sequence[Any]]
"""Learning rate, seed and stream of random numbers → share of right answers (or, behind each other, of each
position), by what is tested. Trains a model and tests it on that stream: the test's, or the search's."""


def learned(
    settings: Any,
    here: str,
    answers: Answers,
    say: Say,
    search_seeds: Sequence[int] = (0,),
    tell: Callable[[Sequence[float]], str] = lambda row: " ".join(f"{each:.2f}" for each in row),
) -> tuple[dict[str, Any], list[Sequence[Any]]]:
    """Choose a learning rate, then run every seed with it.

    Args:
        settings: ``rates`` and ``num_seeds`` are read. The seeds are 1, 2, …
        here: what is run, for `say`.
        search_seeds: of the search.
        tell: what is said of a seed's shares.
    Returns:
        ``search``, ``rate`` and ``accuracy`` (see `over_seeds`); and what `answers` gave, by seed.
    """

    def score(rate: float) -> float:
        found = [each for seed in search_seeds for each in answers(rate, seed, VALIDATION)]
        return float(f"{np.mean([np.mean(each) for each in found]):.9g}")

    chosen = search(settings.rates, score, lambda line: say(f"{here}: {line}"))
    by_seed, rows = [], []
    for seed in range(1, settings.num_seeds + 1):
        by_seed.append(answers(chosen["chosen"], seed, TEST))
        rows.append([float(np.mean(each)) for each in by_seed[-1]])
        say(f"{here}, seed {seed}: {tell(rows[-1])}")
    return {"search": chosen, "rate": chosen["chosen"], "accuracy": over_seeds(rows)}, by_seed


def budget(settings: Any) -> dict[str, int]:
    """What every run of an experiment got."""
    return {name: getattr(settings, name) for name in ("steps", "batch_size", "num_seeds")}


def search(
    rates: Sequence[float], score: Callable[[float], float], say: Callable[[str], None]
) -> dict[str, Any]:
    """Try every learning rate; of equally good ones the smallest is chosen.

    Args:
        rates: to try.
        score: trains with a rate and gives the mean accuracy on validation data.
    Returns:
        ``tried`` (pairs of rate and accuracy) and ``chosen``.
    """
    tried = []
    for rate in rates:
        tried.append((rate, score(rate)))
        say(f"learning rate {rate:g}: {tried[-1][1]:.3f}")
    chosen = min(tried, key=lambda pair: (-pair[1], pair[0]))[0]
    return {"tried": [list(pair) for pair in tried], "chosen": chosen}


# ---------------------------------------------------------------------------------------------
# Several seeds

_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
)  # fmt: skip
"""97.5 % quantiles of Student's t with 1, 2, … degrees of freedom."""


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean over seeds: mean ± t s/√n (Student), cut to 0–1.

    It covers the seeds of weights and training data, with few of them roughly; not the choice of task,
    size or budget.

    Args:
        values: accuracies, one a seed; at most `MAX_SEEDS`.
    Returns:
        None for one seed, which says nothing about others.
    """
    count = len(values)
    if count < 2:
        return None
    half = _STUDENT[count - 2] * float(np.std(values, ddof=1)) / math.sqrt(count)
    mean = float(np.mean(values))
    return max(0.0, mean - half), min(1.0, mean + half)


def over_seeds(rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Accuracies of several seeds at several points, summed up.

    Args:
        rows: one list a seed.
    Returns:
        ``mean``, ``low`` and ``high`` (see `interval`; None for one seed), lists by point; ``seeds``, the rows.
    """
    columns = list(zip(*rows, strict=True))
    bands = [interval(column) for column in columns]
    return {
        "mean": plain(np.mean(columns, axis=1)),
        "low": None if bands[0] is None else plain([band[0] for band in bands if band]),
        "high": None if bands[0] is None else plain([band[1] for band in bands if band]),
        "seeds": [plain(row) for row in rows],
    }


def plain(numbers: Any) -> list[float]:
    """Numbers for a report: no noise of the last bits."""
    return [float(f"{number:.9g}") for number in numbers]
