"""Commands that measure: evaluate, chains, quality, alignment, probes, lexicon, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqviz.cli.application import app
from seqviz.cli.options import (
    UsageError,
    default_runs,
    model_folders,
    parts,
    say,
)
from seqviz.lab.commands import lab

Out = Annotated[Path, typer.Option(help="JSON file that the report is written to.")]
Models = Annotated[
    list[str] | None,
    typer.Option(help="A shipped model or a model folder; several times; all four if left out."),
]
Resamples = Annotated[int, typer.Option(min=10, help="Of the bootstrap.")]
Work = Annotated[
    Path | None,
    typer.Option(
        help="Folder that remembers outputs, so that one can go on; in the user's cache if left out."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes, one thread each; one a core if left out.")
]
Device = Annotated[str | None, typer.Option(help='"cpu", "cuda", …')]


@app.command(no_args_is_help=True)
def evaluate(
    data: Annotated[
        Path, typer.Option(help="Corpus file (document, source, target; plain, .gz or .xz).")
    ],
    out: Out,
    model: Models = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="About so many sentences, evenly over the lengths; all if left out."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the resamples.")] = 1,
    beams: Annotated[int, typer.Option(min=1, max=32, help="1 is greedy search.")] = 1,
    resamples: Resamples = 1_000,
    runs: Annotated[
        bool, typer.Option(help="Also the same-content curve; for a corpus in document order.")
    ] = True,
    prediction: Annotated[
        Path | None, typer.Option(help="Prediction whose hypotheses the report answers.")
    ] = None,
    work: Work = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Measure quality by sentence length: BLEU, chrF and loss with intervals, two curves, the effect.

    A stopped evaluation goes on where it was when it is called again.

    Examples: seqviz evaluate --data test.tsv.xz --sample 2000 --out length.json
    seqviz evaluate --data test.tsv.xz --model lstm --model my-models/lstm-wide --out mine.json
    """
    folders = model_folders(model)
    check_file(out)
    if prediction and not prediction.is_file():
        raise UsageError(f"expected a prediction at {prediction}, found none; check the path")
    from seqviz.measuring.evaluate import by_length

    by_length(
        data,
        folders,
        work or default_runs() / "evaluations",
        say,
        named=bool(model),
        sample=sample,
        seed=seed,
        beams=beams,
        resamples=resamples,
        runs=runs,
        prediction=prediction,
        workers=workers,
        device=device,
    ).write(out)
    say(f"{out} written")


@app.command(no_args_is_help=True)
def chains(
    data: Annotated[Path, typer.Option(help="Corpus file of short sentences; plain, .gz or .xz.")],
    out: Out,
    training: Annotated[
        list[Path] | None,
        typer.Option(
            help="Corpus that the models were trained on; several times. Then everything is measured a "
            "second time without pairs whose French side stands there."
        ),
    ] = None,
    model: Models = None,
    sample: Annotated[int, typer.Option(min=48, help="At most so many sentences.")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample, orders and resamples.")] = 1,
    resamples: Resamples = 1_000,
    work: Work = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Measure what a model forgets: the same everyday sentences alone, and in chains of 2, 4, 8 and 12.

    Every point scores the same sentences. A word counts as forgotten if it is found when its sentence stands
    alone and not when other sentences stand beside it.

    Example: seqviz chains --data tatoeba/test.tsv.xz --training tatoeba/train.tsv.xz
    --out models/report/chains.json
    """
    folders = model_folders(model)
    check_file(out)
    from seqviz.measuring.evaluate import by_chains

    by_chains(
        data,
        folders,
        work or default_runs() / "evaluations",
        say,
        training=training or (),
        named=bool(model),
        sample=sample,
        seed=seed,
        resamples=resamples,
        workers=workers,
        device=device,
    ).write(out)
    say(f"{out} written")


@app.command(no_args_is_help=True)
def quality(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="Test set as NAME=FILE (document, source, target; plain, .gz or .xz). May be given "
            "several times.",
        ),
    ],
    out: Out,
    model: Models = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many sentences of a set, at even distances."),
    ] = 3_000,
    beams: Annotated[
        int, typer.Option(min=2, max=32, help="Width of the search beside greedy search.")
    ] = 4,
    resamples: Resamples = 1_000,
    work: Work = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Measure BLEU, chrF and loss on whole test sets, greedy and with a beam.

    The project's own hand-written development sentences are measured, too. A stopped
    measurement goes on where it was when it is called again.

    Example: seqviz quality --data Europarl=europarl/test.tsv.xz --data Tatoeba=tatoeba/test.tsv.xz
    --out models/report/quality.json
    """
    files: dict[str, Path] = {}
    for given in data:
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"expected NAME=FILE for --data, got {given!r}")
        if name in files:
            raise UsageError(f"expected test sets of different names, got {name!r} twice")
        files[name] = Path(path)
    folders = model_folders(model)
    from seqviz.measuring.evaluate import on_test_sets

    on_test_sets(
        files,
        folders,
        work or default_runs() / "evaluations",
        say,
        named=bool(model),
        sample=sample,
        beams=beams,
        resamples=resamples,
        workers=workers,
        device=device,
    ).write(out)
    say(f"{out} written")


@app.command()
def probes(
    model: Models = None,
    out: Annotated[
        Path | None, typer.Option(help="JSON file that the report with all outputs is written to.")
    ] = None,
) -> None:
    """Count the numbers and names that come through, and the right answers to what visitors type first.

    Translated greedily; which answers count was written by hand before any output was seen.

    Examples: seqviz probes
    seqviz probes --model transformer --out probes.json
    """
    folders = model_folders(model)
    if out and out.is_dir():
        raise UsageError(f"expected a file for --out, got the folder {out}; name a file in it")
    from seqviz import probes as hand_written
    from seqviz.translating.loading import load

    translators = {name: load(folder) for name, folder in folders.items()}
    chosen = "".join(f" --model {name}" for name in folders if model)
    found = hand_written.report(translators, f"seqviz probes{chosen}")
    typer.echo(hand_written.table(found.results["results"]))
    if out:
        found.write(out)
        typer.echo(f"{out} written", err=True)


@app.command(no_args_is_help=True)
def lexicon(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="Corpus file of English and French (plain, .gz or .xz). FILE:2 gives twice as many of "
            "the pairs as FILE; what a small file cannot give, the others do. May be given several times.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="File of the new table.")],
    pairs: Annotated[
        int, typer.Option(min=1, help="At most so many pairs are drawn from all files.")
    ] = 250_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice of pairs.")] = 1,
) -> None:
    """Make the table of word translations that "found or not found" looks words up in.

    Example: seqviz lexicon --data train.tsv.xz --data everyday.tsv.xz:10 --out models/lexicon.json
    """
    from seqviz import coverage

    files = [(part.path, int(part.repeat)) for part in parts(data)]
    if any(share < 1 for _, share in files):
        raise UsageError("expected FILE or FILE:N with N at least 1")
    content = coverage.estimate(
        files, pairs=pairs, seed=seed, progress=lambda line: typer.echo(line, err=True)
    )
    shown = (f"--data {path.name}{f':{share}' if share > 1 else ''}" for path, share in files)
    command = f"seqviz lexicon {' '.join(shown)} --out {out.name} --pairs {pairs} --seed {seed}"
    coverage.save(content, out, command)
    typer.echo(
        f"{out}: {len(content['translations']):,} English and {len(content['meanings']):,} French words",
        err=True,
    )


@app.command()
def alignment(
    public: Annotated[
        Path | None,
        typer.Option(
            help="JSON file of pairs that other people aligned: english, french, and sure and possible "
            "links between whitespace words, counted from 0."
        ),
    ] = None,
    models: Annotated[Path, typer.Option(help="Folder of the model folders.")] = Path("models"),
    out: Annotated[
        Path | None,
        typer.Option(help="JSON file of the report; report/attention.json there if left out."),
    ] = None,
) -> None:
    """Compare where the models look with word alignments made by hand, ours and public ones.

    'seqviz report' does the same without public pairs.

    Example: seqviz alignment --public alignments/europarl.json
    """
    from seqviz.measuring.artefacts import attention_report
    from seqviz.report import read_training

    if public and not public.is_file():
        raise UsageError(f"expected aligned pairs at {public}, found none; check the path")
    place = out or models / "report" / "attention.json"
    attention_report(models, read_training(models), public).write(place)
    say(f"{place} written")


@app.command()
def report(
    models: Annotated[Path, typer.Option(help="Folder of the model folders.")] = Path("models"),
    readme: Annotated[
        Path,
        typer.Option(help="README whose results are filled in, with the docs beside it."),
    ] = Path("README.md"),
    data: Annotated[
        Path | None,
        typer.Option(help="Test set, to measure by length anew if the weights have changed."),
    ] = None,
) -> None:
    """Bring everything that speaks of the shipped weights up to date: reports, figures, README, docs, cards.

    What was measured on other weights is measured anew. By length that needs the test set and an hour, the
    gradients some minutes; quality on whole test sets is measured by `seqviz quality`.

    Example: seqviz report --data test.tsv.xz
    """
    from seqviz.measuring.artefacts import bring_up_to_date

    bring_up_to_date(models, readme, default_runs() / "evaluations", say, data)


app.add_typer(lab, name="lab")


def check_file(out: Path) -> None:
    if out.is_dir():
        raise UsageError(f"expected a file for --out, got the folder {out}; name a file in it")
