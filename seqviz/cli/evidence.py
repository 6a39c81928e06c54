"""Commands that measure what speaks for and against a result: bits, seeds, looks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqviz.cli.application import app
from seqviz.cli.measuring import Device, Out, Resamples, Work, Workers, check_file
from seqviz.cli.options import UsageError, default_runs, model_folders, say

Models = Annotated[
    list[str],
    typer.Option(help="A model folder, or NAME=FOLDER; several times."),
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="About so many sentences, evenly over the lengths; all if left out."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample and of the resamples.")]


@app.command(no_args_is_help=True)
def bits(
    data: Annotated[Path, typer.Option(help="Corpus file in document order; plain, .gz or .xz.")],
    without: Annotated[
        Path, typer.Option(help="Folder of the model without a source, lstm-blind.")
    ],
    model: Models,
    out: Out,
    sample: Sample = None,
    seed: Seed = 1,
    resamples: Resamples = 1_000,
    work: Work = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Measure how many bits of a translation the source tells a model, by length.

    Bits are the loss of the model without a source minus the model's own, so all must have had the same
    budget, corpora and tokenizer; others are refused.

    Example: seqviz train lstm-blind --data train.tsv.xz --dev dev.tsv.xz --tokens 15000000 --out my/lstm-blind
    seqviz bits --data dev.tsv.xz --without my/lstm-blind --model my/lstm --model my/lstm-attention --out bits.json
    """
    folders = model_folders(model)
    (blind,) = model_folders([str(without)]).values()
    check_file(out)
    from seqviz.measuring.evaluate import by_bits

    by_bits(
        data,
        blind,
        folders,
        work or default_runs() / "evaluations",
        say,
        sample=sample,
        seed=seed,
        resamples=resamples,
        workers=workers,
        device=device,
    ).write(out)
    say(f"{out} written")


@app.command(no_args_is_help=True)
def seeds(
    data: Annotated[
        Path, typer.Option(help="Development set in document order; plain, .gz or .xz.")
    ],
    model: Models,
    out: Out,
    sample: Sample = None,
    resamples: Resamples = 1_000,
    work: Work = None,
    workers: Workers = None,
    device: Device = None,
) -> None:
    """Measure how far two trainings of a model lie apart that differ in nothing but the seed.

    Example: seqviz train lstm --seed 2 --data train.tsv.xz --dev dev.tsv.xz --tokens 15000000 --out my/lstm-2
    seqviz seeds --data dev.tsv.xz --model my/lstm --model my/lstm-2 --out seeds.json
    """
    folders = model_folders(model)
    check_file(out)
    from seqviz.measuring.evaluate import by_seeds

    by_seeds(
        data,
        folders,
        work or default_runs() / "evaluations",
        say,
        sample=sample,
        resamples=resamples,
        workers=workers,
        device=device,
    ).write(out)
    say(f"{out} written")


@app.command(no_args_is_help=True)
def looks(
    reports: Annotated[
        list[Path],
        typer.Argument(metavar="{length.json}", help="Length reports of earlier weights."),
    ],
    out: Out,
) -> None:
    """Keep what earlier weights said to a prediction, so that every look at a test set can be shown.

    Reports are added to those that OUT holds already. `seqviz report` does it by itself before it measures anew.

    Example: seqviz looks old-length.json --out models/report/looks.json
    """
    check_file(out)
    from seqviz.measuring.looks import looks_report
    from seqviz.report import Report

    found = []
    for file in reports:
        if (report := Report.read(file)) is None:
            raise UsageError(f"expected a length report at {file}, found no file; check the path")
        found.append(report)
    looks_report(found, Report.read(out)).write(out)
    say(f"{out} written")
