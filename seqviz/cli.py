"""The command line. Answers go to standard output, everything else to standard error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="seqviz",
    help="Four generations of sequence-to-sequence translators, side by side.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Data = Annotated[
    list[str],
    typer.Option(
        "--data",
        help="Corpus file (document, source, target; .tsv, .gz, .xz). FILE:2 goes through it twice an epoch.",
    ),
]


def _split_repeat(text: str) -> tuple[Path, int]:
    path, _, repeat = text.rpartition(":")
    if path and repeat.isdigit():
        return Path(path), int(repeat)
    return Path(text), 1


@app.command()
def tokenizer(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the new tokenizer.")],
    vocabulary_size: Annotated[int, typer.Option(help="Pieces, special ones included.")] = 8000,
    sentences: Annotated[int, typer.Option(help="At most so many sentences are read.")] = 1_000_000,
) -> None:
    """Train the shared tokenizer on both sides of corpora.

    Example: seqviz tokenizer --data train.tsv.xz --out models/tokenizer
    """
    from seqviz import corpus
    from seqviz import tokenizer as tokenizers

    files = [_split_repeat(text) for text in data]
    pairs = sum(1 for path, _ in files for _ in corpus.read_pairs(path))
    step = max(1, round(2 * pairs / sentences))

    def text():
        for path, _ in files:
            for number, pair in enumerate(corpus.read_pairs(path)):
                if number % step == 0:
                    yield pair.source
                    yield pair.target

    made = tokenizers.train(text(), out, vocabulary_size=vocabulary_size)
    typer.echo(f"{len(made):,} pieces in {out}", err=True)


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="rnn, lstm, lstm-attention, transformer or lstm-mean.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the finished model.")],
    tokenizer: Annotated[Path, typer.Option(help="Folder of the shared tokenizer.")] = Path("models/tokenizer"),
    dev: Annotated[Path | None, typer.Option(help="Corpus file for the validation loss.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder for the state of runs.")] = Path.home() / ".cache/seqviz/runs",
    tokens: Annotated[int, typer.Option(help="Budget in target tokens.")] = 0,
    minutes: Annotated[float, typer.Option(help="Longest time of this call.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of weights and data order.")] = 1,
    batch_tokens: Annotated[int, typer.Option(help="Target tokens a step.")] = 5000,
    learning_rate: Annotated[float, typer.Option(help="AdamW's.")] = 1e-3,
    matrix_learning_rate: Annotated[float, typer.Option(help="Muon's; 0 turns Muon off.")] = 0.015,
    warmup_tokens: Annotated[int, typer.Option(help="Target tokens of warm-up.")] = 250_000,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 leaves PyTorch's choice.")] = 0,
) -> None:
    """Train a model, or go on with it.

    Example: seqviz train lstm --data train.tsv.xz --dev dev.tsv.xz --tokens 2000000 --out models/lstm
    """
    import torch

    from seqviz import corpus, training
    from seqviz import tokenizer as tokenizers

    if threads:
        torch.set_num_threads(threads)
    shared = tokenizers.load(tokenizer)
    cache = runs / "encoded"
    sources = [
        corpus.Source(corpus.encode_corpus(path, shared, cache), repeat)
        for path, repeat in map(_split_repeat, data)
    ]
    recipe = training.Recipe(
        batch_tokens=batch_tokens,
        learning_rate=learning_rate,
        matrix_learning_rate=matrix_learning_rate,
        warmup_tokens=warmup_tokens,
        seed=seed,
    )
    training.train(
        name,
        sources,
        shared,
        runs / f"{name}-{seed}",
        out,
        recipe=recipe,
        tokens=tokens,
        minutes=minutes,
        dev=None if dev is None else corpus.encode_corpus(dev, shared, cache),
    )
