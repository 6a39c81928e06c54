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


def _check_out(out: Path | None) -> None:
    """Say that a report cannot be written where it is wanted before the work is done."""
    if out is not None and (out.is_dir() or out.suffix != ".json"):
        raise UsageError(f"expected a file for --out that ends in .json, got {out}")


def _run(name: str, out: Path | None, options: dict[str, Any], **fields: str) -> None:
    """Run an experiment and publish its report.

    Args:
        name: of the command.
        options: by the option's name; None or an empty list for the settings' default.
        fields: the settings' name of an option, where it is another than the option's.
    """
    from importlib import import_module

    from seqviz import plotting

    _check_out(out)
    key = name.replace("-", "_")
    experiment = import_module(f"seqviz.lab.{key}")
    given = {option: value for option, value in options.items() if value not in (None, [])}
    settings = experiment.Settings(
        **{
            fields.get(option, option): tuple(value) if isinstance(value, list) else value
            for option, value in given.items()
        }
    )
    command = [f"seqviz lab {name}"]
    for option, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            command.append(f"--{option.replace('_', '-')} {one}")
    report = experiment.report(settings, lambda line: typer.echo(line, err=True), " ".join(command))
    _publish(report, out, plotting.lab.FIGURES[key])


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
    options = {"seeds": seeds, "length": length, "width": width, "model": model}
    _run("gradient", out, options, seeds="num_seeds", model="models")


@lab.command("cost")
def lab_cost(
    out: Out = None,
    width: Annotated[
        list[int] | None, typer.Option(min=2, help="Of inputs and states; several times, rising.")
    ] = None,
    length: Annotated[
        list[int] | None, typer.Option(min=2, help="Tokens a sentence; several times, rising.")
    ] = None,
    position: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Tokens before a step of generation; several times, rising."),
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="At once, for every length.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Timings; the best counts.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: what PyTorch has.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
) -> None:
    """What one layer costs: LSTM against self-attention, by length.

    Time, memory and use of the hardware of a recurrent and of an attention layer at the same number of tokens,
    longer and longer sequences; and what generating one more token costs. Takes some minutes; other work on
    the machine makes its times wrong.

    Example: seqviz lab cost --out models/report/cost.json
    """
    options = {
        "width": width,
        "length": length,
        "position": position,
        "tokens": tokens,
        "repeats": repeats,
        "threads": threads,
        "device": device,
    }
    plural = {"width": "widths", "length": "lengths", "position": "positions"}
    _run("cost", out, options, threads="num_threads", **plural)


@lab.command("training-cost")
def lab_training_cost(
    out: Out = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name of a model folder; several times; all four if left out."),
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="Folder that holds the models; default: the shipped ones.")
    ] = None,
    benchmark: Annotated[
        Path | None,
        typer.Option(
            help="File that benchmarks/training.py wrote; default: benchmarks/training.json, if there."
        ),
    ] = None,
) -> None:
    """What training cost: loss of the shipped models against tokens, operations and seconds.

    Reads what training wrote down; nothing is trained. Seconds come from the rates of benchmarks/training.py.

    Example: seqviz lab training-cost --out models/report/training_cost.json
    """
    options = {
        "model": model,
        "models": str(models) if models else None,
        "benchmark": str(benchmark) if benchmark else None,
    }
    _run("training-cost", out, options, model="models", models="folder")


Seeds = Annotated[int | None, typer.Option(min=1, help="Runs of each model, each from its seed.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Batches of a run; fewer learn less.")]
Rates = Annotated[
    list[float] | None,
    typer.Option(help="Learning rate to choose from; several times."),
]


@lab.command("recall")
def lab_recall(
    out: Out = None,
    distance: Annotated[
        list[int] | None,
        typer.Option(help="Noise tokens between symbol and query; several times, rising."),
    ] = None,
    search_distance: Annotated[
        list[int] | None,
        typer.Option(help="Distance at which learning rates are compared; several times, rising."),
    ] = None,
    seeds: Seeds = None,
    steps: Steps = None,
    width: Annotated[int | None, typer.Option(min=2, help="Of embeddings and states.")] = None,
    rate: Rates = None,
) -> None:
    """Recall: name a symbol that was shown once, after a stretch of noise.

    A tanh RNN, two LSTMs and attention of equal size, trained on all distances at once and on each alone.
    Shows what is learned within an equal budget, not a limit. Takes about half an hour.

    Example: seqviz lab recall --out models/report/recall.json
    """
    options = {
        "distance": distance,
        "search_distance": search_distance,
        "seeds": seeds,
        "steps": steps,
        "width": width,
        "rate": rate,
    }
    plural = {"distance": "distances", "search_distance": "search_distances", "rate": "rates"}
    _run("recall", out, options, seeds="num_seeds", **plural)


@lab.command("capacity")
def lab_capacity(
    out: Out = None,
    width: Annotated[
        list[int] | None, typer.Option(min=1, help="Of a state; several times, rising.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=2, help="Longest sequence trained and tested.")
    ] = None,
    seeds: Seeds = None,
    steps: Steps = None,
    rate: Rates = None,
) -> None:
    """Bottleneck: copy a random sequence through a state of a given width, with and without attention.

    Shows what is learned within an equal budget, not what a state can hold. Takes about half an hour.

    Example: seqviz lab capacity --out models/report/capacity.json
    """
    options = {
        "width": width,
        "max_length": max_length,
        "seeds": seeds,
        "steps": steps,
        "rate": rate,
    }
    _run("capacity", out, options, width="widths", seeds="num_seeds", rate="rates")


@lab.command("extrapolation")
def lab_extrapolation(
    out: Out = None,
    length: Annotated[
        list[int] | None, typer.Option(min=1, help="Length tested; several times, rising.")
    ] = None,
    trained_length: Annotated[
        int | None, typer.Option(min=1, help="Longest length in training.")
    ] = None,
    seeds: Seeds = None,
    steps: Steps = None,
    width: Annotated[int | None, typer.Option(min=2, help="Of embeddings and states.")] = None,
    rate: Rates = None,
) -> None:
    """Beyond the trained lengths: recurrence against attention on three tasks.

    Trained on short sequences, tested on longer ones. Takes about a quarter of an hour.

    Example: seqviz lab extrapolation --out models/report/extrapolation.json
    """
    options = {
        "length": length,
        "trained_length": trained_length,
        "seeds": seeds,
        "steps": steps,
        "width": width,
        "rate": rate,
    }
    _run("extrapolation", out, options, length="lengths", seeds="num_seeds", rate="rates")
