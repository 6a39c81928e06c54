"""``seqviz lab NAME``: rerun an experiment, as `seqviz.cli` shows it.

Without options a command uses the settings of the committed report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

UsageError: Any = typer.BadParameter.__base__

lab = typer.Typer(
    help="Rerun an experiment: its numbers, figures and a sentence that says what they show.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Out = Annotated[
    Path | None,
    typer.Option(
        help="JSON file of the report, with its figures beside it (.svg, .zh.svg); without it the report "
        "is printed."
    ),
]


def _publish(report: dict[str, Any], out: Path | None, draw: Any) -> None:
    """Print a report of the lab, or write it with its figures and print what it says."""
    from seqviz import plotting
    from seqviz.report import write_json

    if out is None:
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
        return
    write_json(out, report)
    for language, ending in (("en", ".svg"), ("zh", ".zh.svg")):
        plotting.save(draw(report, language=language), out.with_suffix(ending))
    typer.echo(f"{out} written, and its figures", err=True)
    typer.echo(report["says"]["en"])


def _command(name: str, changed: dict[str, Any]) -> str:
    """The command that gives the same numbers again."""
    options: list[str] = []
    for option, value in changed.items():
        for one in value if isinstance(value, tuple) else (value,):
            options.append(f"--{option.removeprefix('num_').replace('_', '-')} {one}")
    return " ".join([f"seqviz lab {name}", *options])


def _check_out(out: Path | None) -> None:
    """Say that a report cannot be written where it is wanted before the work is done."""
    if out is not None and (out.is_dir() or out.suffix != ".json"):
        raise UsageError(f"expected a file for --out that ends in .json, got {out}")


def refresh(models: Path, trainings: dict[str, Any]) -> None:
    """Measure anew what speaks of other weights, where that takes minutes, and draw all figures."""
    from seqviz import plotting
    from seqviz.lab import gradient, training_cost
    from seqviz.report import read_report, stale, write_json
    from seqviz.shipped import models_folder

    folder = models / "report"

    def say(line: str) -> None:
        typer.echo(line, err=True)

    # Those that are loaded by name are the shipped ones.
    if models.resolve() == models_folder().resolve() and trainings:
        found = read_report(models, "gradient")
        if found and stale(found, trainings):
            settings = gradient.Settings(models=tuple(trainings))
            write_json(folder / "gradient.json", gradient.report(settings, say))
        found = read_report(models, "training_cost")
        if found and stale(found, trainings):
            content = training_cost.report(training_cost.Settings(), say)
            write_json(folder / "training_cost.json", content)
    for name, draw in plotting.lab.FIGURES.items():
        if found := read_report(models, name):
            for language, ending in (("en", ""), ("zh", ".zh")):
                plotting.save(draw(found, language=language), folder / f"{name}{ending}.svg")


@lab.command("gradient")
def lab_gradient(
    out: Out = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Random draws before training.")] = None,
    length: Annotated[
        int | None, typer.Option(min=2, help="Length of the random sequences.")
    ] = None,
    width: Annotated[int | None, typer.Option(min=2, help="Of inputs and states.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Trained model, by name or folder; several times; all four if left out."),
    ] = None,
) -> None:
    """Fading gradient: how much of a word still reaches the end state, by distance.

    Before training: a tanh RNN, LSTMs with three forget biases, self-attention. After training: the four
    models on hand-written texts, both directions apart. Takes some minutes.

    Example: seqviz lab gradient --out models/report/gradient.json
    """
    _check_out(out)
    from seqviz import plotting
    from seqviz.lab import gradient

    given = {
        "num_seeds": seeds,
        "length": length,
        "width": width,
        "models": tuple(model) if model else None,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    settings = gradient.Settings(**changed)
    command = _command("gradient", {n.replace("models", "model"): v for n, v in changed.items()})
    report = gradient.report(settings, lambda line: typer.echo(line, err=True), command)
    _publish(report, out, plotting.lab.gradient)
