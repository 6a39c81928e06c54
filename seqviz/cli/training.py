"""Commands that train: tokenizer, train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqviz.cli.application import app
from seqviz.cli.config import architecture_of, as_toml, read_config
from seqviz.cli.options import (
    BatchTokens,
    Data,
    HeldOut,
    JoinProbability,
    Languages,
    Noise,
    SourceLanguage,
    TargetLanguage,
    Threads,
    TokenizerFolder,
    UsageError,
    WarmupTokens,
    default_runs,
    language_pair,
    mix_of,
    parts,
    use_threads,
)

if TYPE_CHECKING:
    from seqviz.data.encoded import EncodedCorpus
    from seqviz.data.epochs import WeightedCorpus

SHARED_TOKENIZER = Path("models/tokenizer")
SENTENCES = 1_000_000
"""About so many of a corpus make a tokenizer."""


@app.command(no_args_is_help=True)
def tokenizer(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the new tokenizer.")],
    vocabulary_size: Annotated[
        int, typer.Option(min=100, max=65_000, help="Pieces, the three special ones included.")
    ] = 8000,
    sentences: Annotated[
        int, typer.Option(min=1, help="About so many sentences are read, at even distances.")
    ] = SENTENCES,
) -> None:
    """Train the shared tokenizer on both sides of corpora.

    Example: seqviz tokenizer --data train.tsv.xz --out models/tokenizer
    """
    made = _make_tokenizer(data, out, vocabulary_size, sentences)
    typer.echo(f"{made:,} pieces in {out}", err=True)


def _make_tokenizer(data: list[str], out: Path, vocabulary_size: int, sentences: int) -> int:
    """Train a tokenizer on both sides of corpora; gives how many pieces it has."""
    from seqviz.data import tokenizer as tokenizers
    from seqviz.data.kept import MAX_LINE_CHARACTERS
    from seqviz.data.pairs import read_pairs

    files = [part.path for part in parts(data)]
    pairs = 0
    for path in files:
        unusable: list[str] = []
        pairs += sum(
            1
            for _ in read_pairs(
                path, unusable=lambda number, why, to=unusable: to.append(f"line {number}: {why}")
            )
        )
        if unusable:
            typer.echo(
                f"note: {path}: {len(unusable):,} lines without a pair are passed over; the first, "
                f"{unusable[0]}",
                err=True,
            )
    step = max(1, round(2 * pairs / sentences))

    def text() -> Iterator[str]:
        for path in files:
            every = read_pairs(path, unusable=lambda *_: None)
            for pair in islice(every, 0, None, step):
                if len(pair.source) + len(pair.target) <= MAX_LINE_CHARACTERS:
                    yield pair.source
                    yield pair.target

    made = tokenizers.train(text(), out, vocabulary_size=vocabulary_size)
    return len(made)


ModelName = Annotated[
    str,
    typer.Argument(
        help="rnn, lstm, lstm-attention, transformer; or lstm-mean, lstm-blind: the ablations."
    ),
]
Dev = Annotated[
    Path | None,
    typer.Option(
        help="Corpus file for validation loss and BLEU; a model without it is not loaded."
    ),
]
Runs = Annotated[
    Path | None, typer.Option(help="Folder for the state of runs [default: the user's cache].")
]
Tokens = Annotated[
    int, typer.Option(min=0, help="Budget in target tokens; a larger one later goes on.")
]
StartFrom = Annotated[Path | None, typer.Option(help="Model folder whose weights begin the run.")]
AboutData = Annotated[
    Path | None, typer.Option(help="Markdown on source and terms of the data, for the card.")
]
MatrixRate = Annotated[float, typer.Option(min=0, help="Muon's; 0 turns Muon off.")]
Accumulate = Annotated[int, typer.Option(min=1, help="Chunks of a batch, to save memory.")]
Precision = Annotated[str, typer.Option(help="bf16, no, or auto: the faster of the two here.")]
Finish = Annotated[
    bool,
    typer.Option("--finish", help="Begin the cool-down where the run stands, and end with it."),
]
FinishNow = Annotated[
    bool, typer.Option("--finish-now", help="Make the model of the last saved state, as it is.")
]
EvaluateEvery = Annotated[
    int, typer.Option(min=1, help="Target tokens between two validations; each redraws losses.svg.")
]
Patience = Annotated[
    int,
    typer.Option(
        min=0,
        help="End after so many validations in a row without a lower loss; the state of the lowest is kept and "
        "written. 0: never, and the last state is written.",
    ),
]
Tracker = Annotated[
    str | None, typer.Option(help="tensorboard: losses go there, too (seqviz[tracking]).")
]
VocabularySize = Annotated[
    int,
    typer.Option(
        min=0,
        max=65_000,
        help="Pieces of the tokenizer, which is trained first where there is none; 0: it must be there.",
    ),
]
Architecture = Annotated[
    list[str] | None,
    typer.Option(
        help="A width, or a number of layers or heads, such as width=256; --print-config shows all. May be "
        "given several times."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        is_eager=True,
        callback=read_config,
        help="File of settings (TOML), as --print-config writes it; options go before it.",
    ),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print all settings as such a file, and end.")
]
Cooldown = Annotated[
    float, typer.Option(min=0, max=0.99, help="Share of the budget over which rates fall to 0.")
]
SaveMinutes = Annotated[
    float, typer.Option(min=0, help="Minutes between two saved states; 0 saves every step.")
]


@app.command(no_args_is_help=True)
def train(
    context: typer.Context,
    name: ModelName,
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the finished model.")],
    tokenizer: TokenizerFolder = SHARED_TOKENIZER,
    vocabulary_size: VocabularySize = 0,
    dev: Dev = None,
    held_out: HeldOut = None,
    runs: Runs = None,
    evaluate_every: EvaluateEvery = 500_000,
    patience: Patience = 0,
    tracker: Tracker = None,
    tokens: Tokens = 0,
    minutes: Annotated[float, typer.Option(min=0, help="Longest time of this call.")] = 0.0,
    start_from: StartFrom = None,
    about_data: AboutData = None,
    languages: Languages = "en-fr",
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and data order.")] = 1,
    batch_tokens: BatchTokens = 3000,
    learning_rate: Annotated[float, typer.Option(min=0, help="AdamW's.")] = 1e-3,
    matrix_learning_rate: MatrixRate = 0.012,
    noise: Noise = "off",
    join_probability: JoinProbability = 0.15,
    warmup_tokens: WarmupTokens = 150_000,
    cooldown: Cooldown = 0.2,
    clip_norm: Annotated[float, typer.Option(min=0, help="Largest gradient norm.")] = 1.0,
    weight_decay: Annotated[float, typer.Option(min=0, help="Of the matrices, by Muon.")] = 0.0,
    architecture: Architecture = None,
    accumulate: Accumulate = 1,
    mixed_precision: Precision = "auto",
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 0,
    finish: Finish = False,
    finish_now: FinishNow = False,
    config: Config = None,
    print_config: PrintConfig = False,
) -> None:
    """Train a model, or go on with it.

    Ctrl-C and SIGTERM save first; the same command goes on. A larger --tokens goes on from the state
    before the cool-down. For several GPUs: accelerate launch --multi_gpu -m seqviz train …

    Example: seqviz train lstm --data train.tsv.xz --dev dev.tsv.xz --tokens 2000000 --out models/lstm
    """
    asked = SimpleNamespace(**locals())  # by the names of the options
    if print_config:
        typer.echo(as_toml(context, architecture_of(context, name, architecture or [])))
        return
    if tokens <= 0 and minutes <= 0 and not (finish or finish_now):
        raise UsageError("expected a budget, got none; give --tokens or --minutes")
    if finish and finish_now:
        raise UsageError("expected --finish or --finish-now, got both; give one of them")
    asked.languages = language_pair(languages, source, target)
    _check_languages(asked.languages, scored=dev is not None)
    _check_place(out, name)
    _train(asked)


def _train(asked: Any) -> None:
    """What `train` was asked for."""
    from seqviz import training
    from seqviz.architectures import settings_of

    use_threads(asked.threads)
    recipe = training.Recipe(
        **{field.name: getattr(asked, field.name) for field in fields(training.Recipe)}
    )
    built = settings_of(asked.name)
    wanted = architecture_of(asked.context, asked.name, asked.architecture or [])
    runs = asked.runs or default_runs()
    shared, sources, dev_corpus = _corpora(asked, runs / "encoded")
    if 0 < asked.tokens < 4 * asked.warmup_tokens:
        _note(
            f"note: the warm-up takes {asked.warmup_tokens:,} of {asked.tokens:,} tokens; for a short run give "
            "a smaller --warmup-tokens and --batch-tokens"
        )
    try:
        result = training.train(
            asked.name,
            sources,
            shared,
            runs / f"{asked.name}-{asked.seed}",
            asked.out,
            recipe=recipe,
            tokens=asked.tokens,
            minutes=asked.minutes,
            dev=dev_corpus,
            dev_every_tokens=asked.evaluate_every,
            patience=asked.patience,
            tracker=asked.tracker,
            start_from=asked.start_from,
            # What differs, so that a run goes on with or without a file that says the rest.
            config={key: value for key, value in wanted.items() if value != built[key]},
            accumulate=asked.accumulate,
            mixed_precision=asked.mixed_precision,
            save_minutes=asked.save_minutes,
            finish="now" if asked.finish_now else "cooldown" if asked.finish else None,
            source_language=asked.languages[0],
            target_language=asked.languages[1],
        )
    except KeyboardInterrupt as error:
        typer.echo(f"seqviz: {str(error) or 'stopped'}", err=True)
        raise typer.Exit(130) from None
    if result.report is not None:
        _finish_model(asked.out, result.report, asked.dev, asked.about_data)
    if result.interrupted:
        raise typer.Exit(130)  # so that a loop over models in a shell can stop too


def _corpora(asked: Any, cache: Path) -> tuple[Any, list[WeightedCorpus], EncodedCorpus | None]:
    """The tokenizer, what is trained on and what is validated on; says what was found in the files."""
    from seqviz.data.encoded import encode_corpus, findings
    from seqviz.training.processes import processes

    language = asked.languages[0]
    with processes().main_process_first():  # the others then find the encoded corpora
        shared = _tokenizer(asked.tokenizer, asked.data, asked.vocabulary_size)
        held_out = asked.held_out or []
        sources = mix_of(asked.data, shared, cache, held_out, asked.noise, asked.seed, language)
        dev_corpus = None
        if asked.dev is not None:
            dev_corpus = encode_corpus(asked.dev, shared, cache, source_language=language)
    for encoded in [*(source.corpus for source in sources), *([dev_corpus] if dev_corpus else [])]:
        _note(findings(encoded.information))
    if asked.dev is None:
        _note("note: without --dev there is no validation loss, and seqviz.load refuses the model")
    return shared, sources, dev_corpus


def _tokenizer(folder: Path, data: list[str], vocabulary_size: int) -> Any:
    """The tokenizer of a folder, trained first where its size is given and it is not there."""
    from seqviz.data import tokenizer as tokenizers

    if vocabulary_size and not (folder / "tokenizer.json").is_file():
        _make_tokenizer(data, folder, vocabulary_size, SENTENCES)
    shared = tokenizers.load(folder)
    if vocabulary_size and len(shared) != vocabulary_size:
        raise UsageError(
            f"expected a tokenizer of {vocabulary_size:,} pieces in {folder}, got one of {len(shared):,}; "
            "leave --vocabulary-size out, or give another --tokenizer, which is then trained"
        )
    return shared


def _note(text: str) -> None:
    """A line on standard error, however many processes train."""
    from seqviz.training.processes import processes

    if processes().is_main_process:
        typer.echo(text, err=True)


def _check_languages(languages: tuple[str, str], scored: bool) -> None:
    """What words and BLEU of the languages need is there: said now, and not after hours of training."""
    from seqviz import scores
    from seqviz.text_languages import LanguagePair

    LanguagePair.of(*languages).check()
    if scored:
        scores.bleu_metric(languages[1])


def _check_place(out: Path, name: str) -> None:
    """Raises a usage error where another model lies in the folder."""
    other = _model_in(out)
    if other is not None and other != name:
        raise UsageError(f"expected no other model in {out}, found {other}; give another --out")


def _model_in(folder: Path) -> str | None:
    """Name of the trained model in a folder; None where there is none."""
    try:
        return str(json.loads((folder / "training.json").read_text(encoding="utf-8"))["model"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _finish_model(
    folder: Path, report: dict[str, Any], dev: Path | None, about_data: Path | None
) -> None:
    """Score a finished model on 500 development sentences and write its card."""
    from seqviz.files import write_json, write_text
    from seqviz.measuring.card import card

    if dev is not None and report["dev_loss"] is not None:
        from seqviz import scores
        from seqviz.constants import MAX_SOURCE_WORDS
        from seqviz.data.pairs import read_pairs
        from seqviz.text_languages import LanguagePair
        from seqviz.translating.loading import load

        pairs = list(read_pairs(dev, unusable=lambda *_: None))
        languages = LanguagePair.recorded(report)
        pairs = [p for p in pairs if 0 < languages.source.length(p.source) <= MAX_SOURCE_WORDS]
        pairs = pairs[:: max(1, len(pairs) // 500)][:500]
        translations = load(folder).translate([p.source for p in pairs])
        report["dev_bleu"] = scores.corpus_bleu(
            [t.text for t in translations], [p.target for p in pairs], languages.target.code
        )
        typer.echo(f"{folder}: development BLEU {report['dev_bleu']['score']:.1f}", err=True)
    write_json(folder / "training.json", report)
    about = about_data.read_text(encoding="utf-8") if about_data else ""
    write_text(folder / "README.md", card(report, about))
