"""`seqviz meanings`: the tables behind the meaning lines, made and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqviz.cli.application import app
from seqviz.cli.options import UsageError, parts, say


@app.command(no_args_is_help=True)
def meanings(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="Corpus file of English and French, to make the table from. FILE:2 gives twice as many "
            "of the pairs as FILE. May be given several times.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the new table, such as meanings.fr-en.made.tsv.")
    ] = None,
    words: Annotated[int, typer.Option(min=1, help="The commonest French forms.")] = 14_000,
    pairs: Annotated[
        int, typer.Option(min=1, help="At most so many pairs are drawn from all files.")
    ] = 250_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice of pairs.")] = 1,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            help="Text file of French, such as outputs; '-' is standard input. Several times. Prints the "
            "words without a meaning."
        ),
    ] = None,
    shown: Annotated[
        bool, typer.Option(help="Check all French that the page shows from stored outputs.")
    ] = False,
) -> None:
    """Make the English table of word meanings from corpora, or print the words that no table has.

    The hand-written tables, English and Chinese, are not touched and overrule what is made. A check ends
    with exit status 1 if a word lacks its English or its Chinese meaning. Numbers and names need none.

    Example: seqviz meanings --data europarl.tsv.xz --data everyday.tsv.xz:2 --out meanings.fr-en.made.tsv

    Example: seqviz meanings --shown
    """
    if bool(data) == (bool(check) or shown):
        raise UsageError("expected either --data with --out, or --check FILE or --shown")
    if data:
        if out is None:
            raise UsageError("expected --out, the file of the new table")
        _make(data, out, words, pairs, seed)
    elif out is not None:
        raise UsageError("--out goes with --data; a check prints what it finds")
    else:
        _check(check or [], shown)


def _make(data: list[str], out: Path, words: int, pairs: int, seed: int) -> None:
    from seqviz import meaning
    from seqviz.coverage import meanings_of_forms

    if out.is_dir():
        raise UsageError(f"expected a file for --out, got the folder {out}; name a file in it")
    files = [(part.path, int(part.repeat)) for part in parts(data)]
    if any(share < 1 for _, share in files):
        raise UsageError("expected FILE or FILE:N with N at least 1")
    rows = meanings_of_forms(files, words=words, pairs=pairs, seed=seed, progress=say)
    meaning.save(rows, out)
    say(f"{out}: {len(rows):,} French forms")


def _check(files: list[Path], shown: bool) -> None:
    from seqviz import meaning

    french = [typer.get_text_stream("stdin").read() if f == Path("-") else _read(f) for f in files]
    texts = [line for text in french for line in text.splitlines()]
    if shown:
        texts += meaning.shown_texts()
    complete = True
    for language in meaning.FILES:
        found = meaning.coverage(texts, language)
        for word, number in sorted(found.lacking.items(), key=lambda row: (-row[1], row[0])):
            typer.echo(f"{language}\t{word}\t{number}")
        share = found.known / found.words if found.words else 1.0
        typer.echo(
            f"{language}: {found.known:,} of {found.words:,} running words have a meaning "
            f"({share:.1%}); {len(found.lacking):,} words lack one"
        )
        complete = complete and not found.lacking
    if not complete:
        raise typer.Exit(1)


def _read(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"expected a text file at {path}, found none; check the path")
    return path.read_text(encoding="utf-8")
