"""From test sets and model folders to a report: translate what is missing, then score.

A stopped measurement goes on where it was: outputs are remembered in a folder, see `outputs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqviz import scores
from seqviz.coverage import Lexicon
from seqviz.files import file_digest
from seqviz.measuring import bits, chains, seeds, translate
from seqviz.measuring import plan as plans
from seqviz.measuring.length import length_report
from seqviz.measuring.outputs import Outputs, Work
from seqviz.measuring.plan import Plan, Texts
from seqviz.measuring.quality import quality_report
from seqviz.report import Report
from seqviz.text_languages import LanguageError, LanguagePair

Say = Callable[[str], None]
"""Takes a line on what is being done."""


def by_length(
    data: Path,
    models: Mapping[str, Path],
    work: Path,
    say: Say,
    *,
    named: bool = True,
    sample: int | None = None,
    seed: int = 1,
    beams: int = 1,
    resamples: int = 1_000,
    runs: bool = True,
    prediction: Path | None = None,
    workers: int | None = None,
    device: str | None = None,
) -> Report:
    """Measure quality by sentence length.

    Args:
        data: corpus file.
        models: folders by the name they are reported under.
        work: folder that remembers outputs.
        say: takes progress.
        named: whether the models were asked for by name, so that the report's command names them.
        sample, seed, runs: see `plan.plan`.
        beams: 1 is greedy search.
        resamples: of the bootstrap.
        prediction: file of hypotheses that the report answers.
        workers, device: see `translate.run`.
    """
    foreseen = None
    if prediction:
        foreseen = json.loads(prediction.read_text(encoding="utf-8"))
        foreseen = {**foreseen, "sha256": file_digest(prediction)}
    languages = languages_of(models)
    plan = plans.plan(data, sample=sample, seed=seed, runs=runs, languages=languages)
    say(
        f"{_several(len(plan.pairs), 'sentence')}, {_several(len(plan.runs), 'run')} of sentences, "
        f"{_several(len(models), 'model')}"
    )
    for reason, count in plan.skipped.items():
        say(f"note: {_several(count, 'pair')} left out: {reason}")
    works = {name: Work(work, folder, beams) for name, folder in models.items()}
    if known := sum(each.known(plan) for each in works.values()):
        say(f"going on: {_several(known, 'text')} remembered in {work}")
    outputs = _translated(plan, works, work, say, workers, device)
    say("scoring")
    options = {
        "data": [data.name],
        "model": [*models] if named else [],
        "sample": [sample] if sample is not None else [],
        "seed": [seed] if seed != 1 else [],
        "beams": [beams] if beams > 1 else [],
        "resamples": [resamples] if resamples != 1_000 else [],
        "prediction": [prediction.name] if prediction else [],
    }
    return length_report(
        plan,
        outputs,
        number=resamples,
        num_beams=beams,
        prediction=foreseen,
        lexicon=_lexicon(languages, say),
        command=_command("seqviz evaluate", options) + ("" if runs else " --no-runs"),
        device=device,
    )


def on_test_sets(
    files: Mapping[str, Path],
    models: Mapping[str, Path],
    work: Path,
    say: Say,
    *,
    named: bool = True,
    sample: int | None = 3_000,
    beams: int = 4,
    resamples: int = 1_000,
    workers: int | None = None,
    device: str | None = None,
) -> Report:
    """Measure quality on whole test sets and, English into French, on the hand-written sentences.

    Greedy and with a beam.

    Args:
        files: corpus files by the name of the test set.
        models, work, say, named, resamples, workers, device: as in `by_length`.
        sample: at most so many sentences of a set, at even distances.
        beams: width of the search beside greedy search.
    """
    languages = languages_of(models)
    sets = {
        name: plans.thinned(plans.plan(path, runs=False, languages=languages), sample)
        for name, path in files.items()
    }
    if languages.is_default:
        sets["hand-written"] = plans.written("development")
    measured: dict[str, tuple[Plan, dict[int, dict[str, Outputs]]]] = {}
    for name, plan in sets.items():
        searches = {}
        for width in (1, beams):
            search = "greedy" if width == 1 else f"{width} beams"
            say(f"{name}, {_several(len(plan.pairs), 'sentence')}, {search}")
            works = {model: Work(work, folder, width) for model, folder in models.items()}
            searches[width] = _translated(plan, works, work, say, workers, device)
        measured[name] = (plan, searches)
    options = {
        "data": [f"{name}={path.name}" for name, path in files.items()],
        "model": [*models] if named else [],
        "sample": [sample],
        "beams": [beams],
        "resamples": [resamples] if resamples != 1_000 else [],
    }
    command = _command("seqviz quality", options)
    return quality_report(measured, number=resamples, command=command, device=device)


def by_chains(
    data: Path,
    models: Mapping[str, Path],
    work: Path,
    say: Say,
    *,
    training: Sequence[Path] = (),
    named: bool = True,
    sample: int | None = 2_000,
    seed: int = 1,
    resamples: int = 1_000,
    workers: int | None = None,
    device: str | None = None,
) -> Report:
    """Measure quality and memory by the number of strangers that stand in one text, greedy.

    Args:
        data: corpus file of short sentences.
        models, work, say, named, seed, resamples, workers, device: as in `by_length`.
        training: corpora that the models were trained on; with them everything is measured a second time
            without pairs whose French side stands there.
        sample: at most so many sentences.
    Raises:
        CorpusError: see `chains.chains`.
        LexiconError: no table of words.
        LanguageError: other languages than those of the table.
    """
    languages = languages_of(models)
    if not languages.is_default:
        raise LanguageError(
            f"expected models from English into French, got {languages}; chains are measured by the words that "
            "are found, and there is no table of words for these languages"
        )
    lexicon = Lexicon.load()
    drawn = {"all": chains.chains(data, sample=sample, seed=seed)}
    if training:
        say(f"reading the French sides of {_several(len(training), 'corpus file')}")
        seen = chains.seen_targets(training)
        drawn["unseen"] = chains.chains(data, sample=sample, seed=seed, seen=seen)
    works = {name: Work(work, folder) for name, folder in models.items()}
    sets = {}
    for which, texts in drawn.items():
        say(f"{which}: {_several(len(texts.pairs), 'sentence')} in {chains.SHUFFLES} orders")
        for reason, count in texts.skipped.items():
            say(f"note: {_several(count, 'pair')} left out: {reason}")
        sets[which] = (texts, _translated(texts, works, work, say, workers, device))
    say("scoring")
    options = {
        "data": [data.name],
        "training": [path.name for path in training],
        "model": [*models] if named else [],
        "sample": [sample] if sample != 2_000 else [],
        "seed": [seed] if seed != 1 else [],
        "resamples": [resamples] if resamples != 1_000 else [],
    }
    return chains.chains_report(
        sets,
        lexicon,
        {
            "name": data.name,
            "sha256": file_digest(data),
            "training": {path.name: file_digest(path) for path in training},
        },
        number=resamples,
        seed=seed,
        command=_command("seqviz chains", options),
        device=device,
    )


def _translated(
    plan: Texts,
    works: Mapping[str, Work],
    place: Path,
    say: Say,
    workers: int | None,
    device: str | None,
) -> dict[str, Outputs]:
    """The outputs of each model; what is missing is translated, and a stop says how it goes on."""

    def progress(done: int, total: int, left: float) -> None:
        say(f"{done / total:.0%} done, about {left / 60:.0f} minutes left")

    try:
        translate.run(plan, list(works.values()), workers=workers, device=device, say=progress)
    except KeyboardInterrupt:
        say(f"stopped; the same command goes on from what {place} remembers")
        raise
    return {name: each.outputs(plan) for name, each in works.items()}


def languages_of(models: Mapping[str, Path]) -> LanguagePair:
    """The languages of all the models, for which everything is there.

    Raises:
        LanguageError: models of several pairs, or something is not installed.
    """
    found = {name: LanguagePair.of_model(folder) for name, folder in models.items()}
    if len(set(found.values())) > 1:
        several = ", ".join(f"{name} {languages}" for name, languages in found.items())
        raise LanguageError(f"expected models of one pair of languages, got {several}")
    languages = next(iter(found.values()))
    languages.check()
    scores.bleu_metric(languages.target)
    return languages


def _lexicon(languages: LanguagePair, say: Say) -> Lexicon | None:
    if not languages.is_default:
        say(f"note: there is no table of words for {languages}, so found words are not counted")
        return None
    try:
        return Lexicon.load()
    except ValueError:
        say("note: no lexicon, so found words are not counted")
        return None


def _command(name: str, options: Mapping[str, list[Any]]) -> str:
    """The command that measures the same again."""
    given = (f"--{option} {value}" for option, values in options.items() for value in values)
    return " ".join([name, *given])


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def by_bits(
    data: Path,
    without: Path,
    models: Mapping[str, Path],
    work: Path,
    say: Say,
    *,
    sample: int | None = None,
    seed: int = 1,
    resamples: int = 1_000,
    workers: int | None = None,
    device: str | None = None,
) -> Report:
    """Measure the bits that the source tells each model, by length; only losses, no translations.

    Args:
        data, work, say, sample, seed, resamples, workers, device: as in `by_length`.
        without: folder of the model without a source, ``lstm-blind``.
        models: folders of the others, by the name they are reported under.
    Raises:
        BudgetError: models that must not be compared, see `bits.check_alike`.
    """
    blind = "without a source"
    bits.check_without(without)
    bits.check_alike({blind: without, **models})
    plan = plans.plan(data, sample=sample, seed=seed)
    say(
        f"{_several(len(plan.pairs), 'sentence')}, {_several(len(plan.runs), 'run')} of sentences, "
        f"{_several(1 + len(models), 'model')}; losses only"
    )
    works = {name: Work(work, folder) for name, folder in {blind: without, **models}.items()}
    outputs = _translated(bits.LossesOf(plan), works, work, say, workers, device)
    options = {
        "data": [data.name],
        "without": [without.name],
        "model": [f"{name}={folder.name}" for name, folder in models.items()],
        "sample": [sample] if sample is not None else [],
        "seed": [seed] if seed != 1 else [],
        "resamples": [resamples] if resamples != 1_000 else [],
    }
    name = json.loads((without / "training.json").read_text(encoding="utf-8"))["model"]
    return bits.bits_report(
        plan,
        (name, outputs.pop(blind)),
        outputs,
        number=resamples,
        command=_command("seqviz bits", options),
        device=device,
    )


def by_seeds(
    data: Path,
    models: Mapping[str, Path],
    work: Path,
    say: Say,
    *,
    sample: int | None = None,
    resamples: int = 1_000,
    workers: int | None = None,
    device: str | None = None,
) -> Report:
    """Measure how far seeds of the same models lie apart, by length, greedy.

    Args:
        data, work, say, sample, resamples, workers, device: as in `by_length`.
        models: folders, of each model two or more that differ in nothing but the seed.
    Raises:
        BudgetError: other models, see `seeds.by_seed`.
    """
    runs = seeds.by_seed(models)
    length = by_length(
        data,
        models,
        work,
        say,
        sample=sample,
        resamples=resamples,
        workers=workers,
        device=device,
    )
    options = {
        "data": [data.name],
        "model": [f"{name}={folder.name}" for name, folder in models.items()],
        "sample": [sample] if sample is not None else [],
        "resamples": [resamples] if resamples != 1_000 else [],
    }
    return seeds.seeds_report(length, runs, command=_command("seqviz seeds", options))
