"""``seqviz lab NAME``: rerun an experiment, as `seqviz.cli` shows it.

Without options a command uses the settings of the committed report. Its options are made from the fields of
those settings: see `seqviz.lab.settings`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from seqviz.lab import settings

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

COMMANDS: dict[str, tuple[type, str]] = {
    "gradient": (
        settings.Gradient,
        """Fading gradient: how much of a word still reaches the end state, by distance.

    Before training: a tanh RNN, LSTMs with three forget biases, self-attention. After training: the four
    models on hand-written texts, both directions apart. Takes some minutes.

    Example: seqviz lab gradient --out models/report/gradient.json
    """,
    ),
    "cost": (
        settings.Cost,
        """What one layer costs: LSTM against self-attention, by length.

    Time, memory and use of the hardware of a recurrent and of an attention layer at the same number of tokens,
    longer and longer sequences; and what generating one more token costs. Takes some minutes; other work on
    the machine makes its times wrong.

    Example: seqviz lab cost --out models/report/cost.json
    """,
    ),
    "training_cost": (
        settings.TrainingCost,
        """What training cost: loss of the shipped models against tokens, operations and seconds.

    Reads what training wrote down; nothing is trained. Seconds come from the rates of benchmarks/training.py.

    Example: seqviz lab training-cost --out models/report/training_cost.json
    """,
    ),
    "recall": (
        settings.Recall,
        """Recall: name a symbol that was shown once, after a stretch of noise.

    A tanh RNN, two LSTMs and attention of equal size, trained on all distances at once and on each alone.
    Shows what is learned within an equal budget, not a limit. Takes about half an hour.

    Example: seqviz lab recall --out models/report/recall.json
    """,
    ),
    "capacity": (
        settings.Capacity,
        """Bottleneck: copy a random sequence through a state of a given width, with and without attention.

    Shows what is learned within an equal budget, not what a state can hold. Takes about half an hour.

    Example: seqviz lab capacity --out models/report/capacity.json
    """,
    ),
    "extrapolation": (
        settings.Extrapolation,
        """Beyond the trained lengths: recurrence against attention on three tasks.

    Trained on short sequences, tested on longer ones. Takes about a quarter of an hour.

    Example: seqviz lab extrapolation --out models/report/extrapolation.json
    """,
    ),
}
"""By name of the experiment its settings and what its command says of itself, in the order of the help."""


def _command(name: str, kind: type) -> Callable[..., None]:
    """The function behind ``seqviz lab NAME``: an option for each field of the settings that has one.

    Args:
        name: of the experiment.
        kind: class of its settings.
    """
    options = [field for field in settings.fields_of(kind) if field.option]

    def run(out: Path | None = None, **given: Any) -> None:
        from seqviz.lab.experiment import find

        if out is not None and (out.is_dir() or out.suffix != ".json"):
            raise UsageError(f"expected a file for --out that ends in .json, got {out}")
        experiment = find(name)
        command, fields = [experiment.command], {}
        for field in options:
            value = given[field.name]
            if field.option is None or value in (None, []):
                continue
            values = tuple(value) if field.several else (value,)
            command += [f"--{field.option.name} {one}" for one in values]
            one = str(value) if field.option.file else value
            fields[field.name] = values if field.several else one
        report = experiment.report(
            kind(**fields), lambda line: typer.echo(line, err=True), " ".join(command)
        )
        _publish(name, report, out)

    types: dict[str, Any] = {"out": Out}
    for field in options:
        assert field.option
        kind_of_one = Path if field.option.file else field.type
        low = next((r.low for r in field.ranges if not isinstance(r, settings.LearningRates)), None)
        types[field.name] = Annotated[
            (list[kind_of_one] if field.several else kind_of_one) | None,
            typer.Option(f"--{field.option.name}", min=low, help=field.option.help),
        ]
    run.__annotations__ = types
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=each)
            for one, each in types.items()
        ]
    )
    return run


def _publish(name: str, report: Any, out: Path | None) -> None:
    """Print a report of the lab, or write it with its figures and print what it says."""
    from seqviz.drawing import figures

    content = report.content()
    if out is None:
        typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    report.write(out)
    for language, ending in (("en", ".svg"), ("zh", ".zh.svg")):
        figure = figures.lab.FIGURES[name](content, language=language)
        figures.save(figure, out.with_suffix(ending))
    typer.echo(f"{out} written, and its figures", err=True)
    typer.echo(content["says"]["en"])


for _name, (_kind, _help) in COMMANDS.items():
    lab.command(_name.replace("_", "-"), help=inspect.cleandoc(_help))(_command(_name, _kind))
