"""The command that trains many small models and compares them: trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqviz.cli.application import app
from seqviz.cli.options import (
    BatchTokens,
    Data,
    HeldOut,
    JoinProbability,
    Noise,
    Threads,
    TokenizerFolder,
    UsageError,
    WarmupTokens,
    default_runs,
    mix_of,
    use_threads,
)
from seqviz.cli.training import SHARED_TOKENIZER

After = Annotated[
    Path | None,
    typer.Option(help="Report of 'trials recipe', whose rates of Muon 'adam' keeps."),
]
Trials = Annotated[
    str,
    typer.Argument(
        help="step: target tokens a step; recipe: Muon's learning rate of every model; adam: AdamW's, at the "
        "rate of Muon that --after found; mechanism: seeds and contexts of the LSTM."
    ),
]
DevFiles = Annotated[
    list[Path],
    typer.Option(
        help="Corpus file for the loss that decides. Given several times, each has equally many pairs."
    ),
]
OnlyModels = Annotated[
    list[str] | None,
    typer.Option(help="Only this model's trials, in this process. May be given several times."),
]


@app.command(no_args_is_help=True)
def trials(
    what: Trials,
    data: Data,
    dev: DevFiles,
    out: Annotated[Path, typer.Option(help="Report (JSON), written when all trials are done.")],
    tokens: Annotated[int, typer.Option(min=1, help="Target tokens of each trial.")] = 600_000,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder for the state of trials [default: the user's cache]."),
    ] = None,
    model: OnlyModels = None,
    tokenizer: TokenizerFolder = SHARED_TOKENIZER,
    held_out: HeldOut = None,
    noise: Noise = "off",
    join_probability: JoinProbability = 0.15,
    batch_tokens: BatchTokens = 3000,
    warmup_tokens: WarmupTokens = 150_000,
    after: After = None,
    threads: Threads = 0,
) -> None:
    """Train many small models at one equal budget, and compare their development losses.

    Stopped at any time, the same command goes on. Several processes may share --work, each with other
    models; the last one then writes the report, without --model.

    Example: seqviz trials recipe --data train.tsv.xz --dev dev.tsv.xz --out models/report/recipe.json
    """
    from seqviz import training
    from seqviz import trials as short
    from seqviz.data import tokenizer as tokenizers
    from seqviz.data.encoded import encode_corpus
    from seqviz.files import write_json

    searches = {"recipe": short.next_matrix_trial, "adam": short.next_adam_trial}
    plans = {
        "step": short.step_trials,
        "recipe": short.recipe_trials,
        "adam": lambda recipe: short.adam_trials(recipe, _matrix_rates(after)),
        "mechanism": short.mechanism_trials,
    }
    if what not in plans:
        raise UsageError(f"expected {', '.join(plans)}, got {what!r}")
    if (what == "adam") != (after is not None):
        raise UsageError(
            "expected --after with adam, and only there: the report of 'trials recipe'"
        )
    use_threads(threads)
    plan = plans[what](
        training.Recipe(
            batch_tokens=batch_tokens,
            warmup_tokens=warmup_tokens,
            join_probability=join_probability,
        )
    )
    known = list(dict.fromkeys(trial.model for trial in plan))
    for name in model or []:
        if name not in known:
            raise UsageError(f"expected a model of {', '.join(known)}, got {name!r}")
    folder = work or default_runs() / "trials"
    shared = tokenizers.load(tokenizer)
    sources = mix_of(data, shared, folder / "encoded", held_out or [], noise, 1)
    encoded = [encode_corpus(path, shared, folder / "encoded") for path in dev]
    pairs = [pair for path in dev for pair in short.dev_pairs(path, short.DEV_PAIRS // len(dev))]

    def run_one(trial: short.Trial) -> dict[str, Any] | None:
        typer.echo(f"{trial.model}, {trial.name}", err=True)
        return short.run(trial, sources, shared, encoded[0], pairs, folder, tokens)

    mine = [trial for trial in plan if not model or trial.model in model]
    results = short.search(mine, run_one, searches.get(what))
    if results is None:
        raise typer.Exit(130)
    if model:
        typer.echo(
            f"trials of {', '.join(model)} are done; without --model the report is written",
            err=True,
        )
        return
    write_json(out, short.report(what, results, tokens, sources, encoded, len(pairs)))


def _matrix_rates(report: Path | None) -> dict[str, float]:
    """Muon's best rate of each model, from the report of its search."""
    from seqviz.report import Report

    found = Report.read(report) if report else None
    if found is None or "lowest" not in found.results:
        raise UsageError(f"expected the report of 'trials recipe' at {report}, found none")
    trials = found.results["trials"]
    return {
        model: trials[model][name]["matrix_learning_rate"]
        for model, name in found.results["lowest"].items()
    }
