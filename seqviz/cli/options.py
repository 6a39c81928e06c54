"""Options that several commands have, and what they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seqviz.data.epochs import WeightedCorpus
    from seqviz.data.mix import Part

Data = Annotated[
    list[str],
    typer.Option(
        "--data",
        help="Corpus file (document, source, target; plain, .gz or .xz). FILE:2 goes through it twice "
        "an epoch, FILE:0.25 through another quarter in each, FILE:2:15 only through pairs of at most 15 "
        "source words. May be given several times.",
    ),
]
Noise = Annotated[
    str,
    typer.Option(
        help="How English–French pairs are rewritten: off, default, or shares such as "
        "lower_case=0.1,no_stop=0.1,capitals=0.02,numbers=0.5,names=1,unknown=0.01."
    ),
]
JoinProbability = Annotated[
    float, typer.Option(min=0, max=1, help="Share of examples that join 2 to 8 sentences.")
]
Languages = Annotated[
    str, typer.Option(help="Source and target, codes of ISO 639-1 such as en-fr.")
]
SourceLanguage = Annotated[
    str | None, typer.Option("--source", help="Language of the source alone, such as en.")
]
TargetLanguage = Annotated[
    str | None, typer.Option("--target", help="Language of the target alone, such as zh.")
]
TokenizerFolder = Annotated[Path, typer.Option(help="Folder of the shared tokenizer.")]
HeldOut = Annotated[
    list[Path] | None,
    typer.Option(
        help="Corpus file whose pairs must not be trained on. May be given several times."
    ),
]
BatchTokens = Annotated[int, typer.Option(min=1, help="Target tokens a step.")]
WarmupTokens = Annotated[int, typer.Option(min=0, help="Target tokens of warm-up.")]
Threads = Annotated[int, typer.Option(min=0, help="CPU threads; 0 leaves PyTorch's choice.")]

# Typer may carry its own copy of Click; the exception that it exports leads to the bases of either.
UsageError: Any = typer.BadParameter.__base__
ClickException: Any = UsageError.__base__


def parts(data: list[str]) -> list[Part]:
    from seqviz.data import mix

    try:
        return [mix.parse(text) for text in data]
    except ValueError as error:
        raise UsageError(str(error)) from None


def mix_of(
    data: list[str],
    shared: Any,
    cache: Path,
    held_out: list[Path],
    noise: str,
    seed: int,
    source_language: str = "en",
) -> list[WeightedCorpus]:
    """The encoded sources of --data, --held-out and --noise."""
    from seqviz.data import mix
    from seqviz.data import noise as noises
    from seqviz.data.pairs import held_out_digests

    try:
        rewriting = noises.Noise.parse(noise)
    except ValueError as error:
        raise UsageError(str(error)) from None
    kept_out = held_out_digests(held_out)
    return mix.sources(
        parts(data),
        shared,
        cache,
        held_out=kept_out,
        noise=rewriting,
        seed=seed,
        source_language=source_language,
    )


def use_threads(number: int) -> None:
    """What --threads asks for."""
    import torch

    if number:
        torch.set_num_threads(number)


def default_runs() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "seqviz" / "runs"


def say(line: str) -> None:
    typer.echo(line, err=True)


def model_folders(names: list[str] | None) -> dict[str, Path]:
    """Folders of models by the name they are reported under: NAME=FOLDER, a shipped model, or a folder."""
    from seqviz.architectures import MODEL_NAMES
    from seqviz.shipped import models_folder

    folders: dict[str, Path] = {}
    for given in names or list(MODEL_NAMES):
        called, equals, name = given.partition("=")
        if not equals or Path(given).is_dir():
            called, name = "", given
        folder = models_folder() / name if name in MODEL_NAMES else Path(name)
        for file in ("model.safetensors", "tokenizer.json", "training.json"):
            if not (folder / file).is_file():
                raise UsageError(
                    f"expected one of {', '.join(MODEL_NAMES)} or a model folder, got {name!r} "
                    f"(no {file} in it)"
                )
        key = called or (name if name in MODEL_NAMES else folder.resolve().name)
        if key in folders:
            raise UsageError(f"expected models of different names, got {key!r} twice")
        folders[key] = folder
    return folders


def language_pair(
    languages: str, source: str | None = None, target: str | None = None
) -> tuple[str, str]:
    """The codes of --languages, --source and --target, of which the latter two go before."""
    from seqviz.text_languages import LanguageError, LanguagePair

    first, dash, second = languages.lower().partition("-")
    if not dash:
        raise UsageError(
            f"expected --languages such as en-fr, two different ones, got {languages!r}"
        )
    try:
        return LanguagePair.of((source or first).lower(), (target or second).lower()).codes
    except LanguageError as error:
        raise UsageError(str(error)) from None
