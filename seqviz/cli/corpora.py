"""`seqviz corpus`: public corpora as files of the project."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqviz.cli.application import app
from seqviz.cli.options import Languages, SourceLanguage, TargetLanguage, language_pair

if TYPE_CHECKING:
    from seqviz.data.pairs import Pair
    from seqviz.data.sets import HeldOut

corpus_app = typer.Typer(
    help="Build corpus files out of public ones that were downloaded: cleaned, with sets held out.",
    no_args_is_help=True,
)

CorpusFolder = Annotated[
    Path,
    typer.Option("--out", help="Folder of train.tsv.xz, dev.tsv.xz, test.tsv.xz and corpus.json."),
]
DevPattern = Annotated[
    str | None, typer.Option("--dev", help="Documents of the development set, a pattern.")
]
TestPattern = Annotated[
    str | None, typer.Option("--test", help="Documents of the test set, such as 'ep-00-1[12]-*'.")
]
Share = Annotated[
    float,
    typer.Option(
        min=0.0, max=0.4, help="Part of the text in each of these two, where no pattern is given."
    ),
]
Apart = Annotated[
    list[Path] | None,
    typer.Option(
        help="Corpus file, such as another test set, none of whose sides may stand in training. May be "
        "given several times."
    ),
]
CheckLanguage = Annotated[
    bool, typer.Option("--language-check/--no-language-check", help="Drop text of other languages.")
]
AcceptDropped = Annotated[
    bool,
    typer.Option("--accept-dropped", help="Go on where a third or more is dropped for one reason."),
]


@corpus_app.command("europarl", no_args_is_help=True)
def corpus_europarl(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="The archive of a pair (fr-en.tgz), the two files out of it (source first), or the "
            "folder txt of the unpacked source release, which knows sessions."
        ),
    ],
    out: CorpusFolder,
    languages: Languages = "en-fr",
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    dev: DevPattern = None,
    test: TestPattern = None,
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
    accept_dropped: AcceptDropped = False,
) -> None:
    """Build a corpus out of Europarl, release v7.

    Example: seqviz corpus europarl fr-en.tgz --languages en-fr --out europarl
    """
    from seqviz.data.public import read_europarl
    from seqviz.data.sets import HeldOut

    both = language_pair(languages, source, target)
    _build(
        lambda counts: read_europarl(paths, both, counts),
        paths,
        both,
        out,
        HeldOut(dev, test, held_out),
        language_check,
        apart or [],
        accept_dropped,
    )


@corpus_app.command("tatoeba", no_args_is_help=True)
def corpus_tatoeba(
    path: Annotated[
        Path,
        typer.Argument(help="fra-eng.zip of manythings.org/anki, or Tatoeba's export of pairs."),
    ],
    out: CorpusFolder,
    languages: Languages = "en-fr",
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
    accept_dropped: AcceptDropped = False,
) -> None:
    """Build a corpus out of everyday sentences of Tatoeba.

    Example: seqviz corpus tatoeba fra-eng.zip --languages en-fr --out tatoeba
    """
    from seqviz.data.public import read_tatoeba
    from seqviz.data.sets import HeldOut

    both = language_pair(languages, source, target)
    _build(
        lambda counts: read_tatoeba(path, both, counts),
        [path],
        both,
        out,
        HeldOut(share=held_out),
        language_check,
        apart or [],
        accept_dropped,
    )


@corpus_app.command("dataset", no_args_is_help=True)
def corpus_dataset(
    name: Annotated[
        str, typer.Argument(help="Folder that the package datasets saved, or a name on the Hub.")
    ],
    out: CorpusFolder,
    languages: Languages = "en-fr",
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    subset: Annotated[str | None, typer.Option(help="Configuration of a name on the Hub.")] = None,
    split: Annotated[str, typer.Option(help="Which part of the dataset.")] = "train",
    dev: DevPattern = None,
    test: TestPattern = None,
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
    accept_dropped: AcceptDropped = False,
) -> None:
    """Build a corpus out of a dataset with a column "translation".

    Example: seqviz corpus dataset my-dataset --languages de-en --out corpus
    """
    from seqviz.data.public import read_dataset
    from seqviz.data.sets import HeldOut

    both = language_pair(languages, source, target)
    _build(
        lambda counts: read_dataset(name, both, counts, subset=subset, split=split),
        [],
        both,
        out,
        HeldOut(dev, test, held_out),
        language_check,
        apart or [],
        accept_dropped,
    )


def _build(
    read: Callable[[Counter[str]], Iterable[Pair]],
    files: list[Path],
    languages: tuple[str, str],
    out: Path,
    held_out: HeldOut,
    check: bool,
    apart: list[Path],
    accept_dropped: bool,
) -> None:
    from seqviz.data.cleaning import Cleaner, language_check
    from seqviz.data.sets import build
    from seqviz.files import file_digest

    counts: Counter[str] = Counter()
    cleaner = Cleaner(languages, language_check() if check else None)
    about = {
        "command": shlex.join(["seqviz", *(_shown(argument) for argument in sys.argv[1:])]),
        "data": [
            {"name": path.name, "sha256": file_digest(path)} for path in files if path.is_file()
        ],
    }
    report = build(
        read(counts), out, cleaner, held_out, counts, about, apart, accept_dropped=accept_dropped
    )
    for name, number in report["dropped"].items():
        typer.echo(f"dropped {number:,}: {name}", err=True)
    for name, number in report["pairs"].items():
        typer.echo(f"{out / name}.tsv.xz: {number:,} pairs", err=True)
        if not number:
            typer.echo(
                f"note: no document fell into {name}; for a small corpus give a larger --held-out "
                "(documents are drawn by their names), or patterns of names where it has them",
                err=True,
            )
    if 2 * report["dropped"].get("other language", 0) > report["read"]:
        typer.echo(
            f"note: more than half is not in {languages[0]} and {languages[1]}; are the files the right "
            "way round, and --languages right?",
            err=True,
        )


def _shown(argument: str) -> str:
    """An argument without the folders of this machine."""
    return Path(argument).name if os.sep in argument else argument


app.add_typer(corpus_app, name="corpus")
