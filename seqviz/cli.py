"""The command line: `seqviz COMMAND --help` shows examples.

Answers go to standard output, everything else to standard error. Exit status: 0, 1 (failed), 2 (wrong
use). An error is one line. Heavy packages are imported by the command that needs them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqviz.lab.commands import lab

if TYPE_CHECKING:
    from seqviz.corpus import Source
    from seqviz.data.mix import Part

app = typer.Typer(
    name="seqviz",
    help="Four generations of sequence-to-sequence translators, side by side.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
        "lower_case=0.1,no_stop=0.1,capitals=0.02,numbers=0.5,names=0.5,unknown=0.01."
    ),
]
JoinProbability = Annotated[
    float, typer.Option(min=0, max=1, help="Share of examples that join 2 to 8 sentences.")
]
Languages = Annotated[str, typer.Option(help="Source and target, such as en-fr.")]
_LINES_AT_ONCE = 64

# Typer may carry its own copy of Click; the exception that it exports leads to the bases of either.
UsageError: Any = typer.BadParameter.__base__
ClickException: Any = UsageError.__base__


def _parts(data: list[str]) -> list[Part]:
    from seqviz.data import mix

    try:
        return [mix.parse(text) for text in data]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _mix(
    data: list[str], shared: Any, cache: Path, held_out: list[Path], noise: str, seed: int
) -> list[Source]:
    """The encoded sources of --data, --held-out and --noise."""
    from seqviz import corpus
    from seqviz.data import mix
    from seqviz.data import noise as noises

    try:
        rewriting = noises.Noise.parse(noise)
    except ValueError as error:
        raise UsageError(str(error)) from None
    kept_out = corpus.held_out_digests(held_out)
    return mix.sources(_parts(data), shared, cache, held_out=kept_out, noise=rewriting, seed=seed)


def _default_runs() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "seqviz" / "runs"


def _print_version(asked: bool) -> None:
    if asked:
        from seqviz.version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command(no_args_is_help=True)
def tokenizer(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the new tokenizer.")],
    vocabulary_size: Annotated[
        int, typer.Option(min=100, max=65_000, help="Pieces, the three special ones included.")
    ] = 8000,
    sentences: Annotated[
        int, typer.Option(min=1, help="About so many sentences are read, at even distances.")
    ] = 1_000_000,
) -> None:
    """Train the shared tokenizer on both sides of corpora.

    Example: seqviz tokenizer --data train.tsv.xz --out models/tokenizer
    """
    from seqviz import corpus
    from seqviz import tokenizer as tokenizers

    files = [part.path for part in _parts(data)]
    pairs = 0
    for path in files:
        unusable: list[str] = []
        pairs += sum(
            1
            for _ in corpus.read_pairs(
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
            every = corpus.read_pairs(path, unusable=lambda *_: None)
            for pair in islice(every, 0, None, step):
                if len(pair.source) + len(pair.target) <= corpus.MAX_LINE_CHARACTERS:
                    yield pair.source
                    yield pair.target

    made = tokenizers.train(text(), out, vocabulary_size=vocabulary_size)
    typer.echo(f"{len(made):,} pieces in {out}", err=True)


@app.command(no_args_is_help=True)
def train(
    name: Annotated[
        str,
        typer.Argument(help="rnn, lstm, lstm-attention, transformer; or lstm-mean, the ablation."),
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the finished model.")],
    tokenizer: Annotated[Path, typer.Option(help="Folder of the shared tokenizer.")] = Path(
        "models/tokenizer"
    ),
    dev: Annotated[
        Path | None,
        typer.Option(
            help="Corpus file for validation loss and BLEU; a model without it is not loaded."
        ),
    ] = None,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Corpus file whose pairs must not be trained on. May be given several times."
        ),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder for the state of runs [default: the user's cache].")
    ] = None,
    tokens: Annotated[
        int, typer.Option(min=0, help="Budget in target tokens; a larger one later goes on.")
    ] = 0,
    minutes: Annotated[float, typer.Option(min=0, help="Longest time of this call.")] = 0.0,
    start_from: Annotated[
        Path | None, typer.Option(help="Model folder whose weights begin the run.")
    ] = None,
    about_data: Annotated[
        Path | None, typer.Option(help="Markdown on source and terms of the data, for the card.")
    ] = None,
    languages: Languages = "en-fr",
    seed: Annotated[int, typer.Option(min=0, help="Of weights and data order.")] = 1,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Target tokens a step.")] = 3000,
    learning_rate: Annotated[float, typer.Option(min=0, help="AdamW's.")] = 1e-3,
    matrix_learning_rate: Annotated[
        float, typer.Option(min=0, help="Muon's; 0 turns Muon off.")
    ] = 0.012,
    noise: Noise = "off",
    join_probability: JoinProbability = 0.15,
    warmup_tokens: Annotated[int, typer.Option(min=0, help="Target tokens of warm-up.")] = 150_000,
    accumulate: Annotated[int, typer.Option(min=1, help="Chunks of a batch, to save memory.")] = 1,
    mixed_precision: Annotated[
        str, typer.Option(help="bf16, no, or auto: the faster of the two here.")
    ] = "auto",
    save_minutes: Annotated[
        float, typer.Option(min=0, help="Minutes between two saved states; 0 saves every step.")
    ] = 4.0,
    threads: Annotated[
        int, typer.Option(min=0, help="CPU threads; 0 leaves PyTorch's choice.")
    ] = 0,
) -> None:
    """Train a model, or go on with it.

    Ctrl-C and SIGTERM save first; the same command goes on. A larger --tokens goes on from the state
    before the cool-down. For several GPUs: accelerate launch --multi_gpu -m seqviz train …

    Example: seqviz train lstm --data train.tsv.xz --dev dev.tsv.xz --tokens 2000000 --out models/lstm
    """
    if tokens <= 0 and minutes <= 0:
        raise UsageError("expected a budget, got none; give --tokens or --minutes")
    both = _languages(languages)
    other = _model_in(out)
    if other is not None and other != name:
        raise UsageError(f"expected no other model in {out}, found {other}; give another --out")
    import torch

    from seqviz import corpus, training
    from seqviz import tokenizer as tokenizers
    from seqviz.training.processes import processes

    if threads:
        torch.set_num_threads(threads)
    runs = runs or _default_runs()
    shared = tokenizers.load(tokenizer)
    cache = runs / "encoded"
    together = processes()

    def note(text: str) -> None:
        if together.is_main_process:
            typer.echo(text, err=True)

    with together.main_process_first():  # the others then find the encoded corpora
        sources = _mix(data, shared, cache, held_out or [], noise, seed)
        encoded_dev = None if dev is None else corpus.encode_corpus(dev, shared, cache)
    for encoded in [
        *(source.corpus for source in sources),
        *([encoded_dev] if encoded_dev else []),
    ]:
        note(corpus.findings(encoded.information))
    if dev is None:
        note("note: without --dev there is no validation loss, and seqviz.load refuses the model")
    if 0 < tokens < 4 * warmup_tokens:
        note(
            f"note: the warm-up takes {warmup_tokens:,} of {tokens:,} tokens; for a short run give a "
            "smaller --warmup-tokens and --batch-tokens"
        )
    try:
        result = training.train(
            name,
            sources,
            shared,
            runs / f"{name}-{seed}",
            out,
            recipe=training.Recipe(
                batch_tokens=batch_tokens,
                learning_rate=learning_rate,
                matrix_learning_rate=matrix_learning_rate,
                warmup_tokens=warmup_tokens,
                join_probability=join_probability,
                seed=seed,
            ),
            tokens=tokens,
            minutes=minutes,
            dev=encoded_dev,
            start_from=start_from,
            accumulate=accumulate,
            mixed_precision=mixed_precision,
            save_minutes=save_minutes,
        )
    except KeyboardInterrupt as error:
        typer.echo(f"seqviz: {str(error) or 'stopped'}", err=True)
        raise typer.Exit(130) from None
    if result.report is not None:
        result.report["languages"] = list(both)
        _finish_model(out, result.report, dev, about_data)
    if result.interrupted:
        raise typer.Exit(130)  # so that a loop over models in a shell can stop too


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
        from seqviz import corpus, scores
        from seqviz.translating.loading import load

        pairs = list(corpus.read_pairs(dev, unusable=lambda *_: None))
        pairs = [p for p in pairs if 0 < len(p.source.split()) <= corpus.MAX_SOURCE_WORDS]
        pairs = pairs[:: max(1, len(pairs) // 500)][:500]
        translations = load(folder).translate([p.source for p in pairs])
        report["dev_bleu"] = scores.corpus_bleu(
            [t.text for t in translations], [p.target for p in pairs]
        )
        typer.echo(f"{folder}: development BLEU {report['dev_bleu']['score']:.1f}", err=True)
    write_json(folder / "training.json", report)
    about = about_data.read_text(encoding="utf-8") if about_data else ""
    write_text(folder / "README.md", card(report, about))


@app.command(no_args_is_help=True)
def trials(
    what: Annotated[
        str,
        typer.Argument(
            help="step: target tokens a step; recipe: Muon's learning rate of every model; mechanism: "
            "seeds and contexts of the LSTM."
        ),
    ],
    data: Data,
    dev: Annotated[
        list[Path],
        typer.Option(
            help="Corpus file for the loss that decides. Given several times, each has equally many pairs."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Report (JSON), written when all trials are done.")],
    tokens: Annotated[int, typer.Option(min=1, help="Target tokens of each trial.")] = 600_000,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder for the state of trials [default: the user's cache]."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Only this model's trials, in this process. May be given several times."),
    ] = None,
    tokenizer: Annotated[Path, typer.Option(help="Folder of the shared tokenizer.")] = Path(
        "models/tokenizer"
    ),
    held_out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Corpus file whose pairs must not be trained on. May be given several times."
        ),
    ] = None,
    noise: Noise = "off",
    join_probability: JoinProbability = 0.15,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Target tokens a step.")] = 3000,
    warmup_tokens: Annotated[int, typer.Option(min=0, help="Target tokens of warm-up.")] = 150_000,
    threads: Annotated[
        int, typer.Option(min=0, help="CPU threads; 0 leaves PyTorch's choice.")
    ] = 0,
) -> None:
    """Train many small models at one equal budget, and compare their development losses.

    Stopped at any time, the same command goes on. Several processes may share --work, each with other
    models; the last one then writes the report, without --model.

    Example: seqviz trials recipe --data train.tsv.xz --dev dev.tsv.xz --out models/report/recipe.json
    """
    import torch

    from seqviz import corpus, training
    from seqviz import tokenizer as tokenizers
    from seqviz import trials as short
    from seqviz.files import write_json

    plans = {
        "step": short.step_trials,
        "recipe": short.recipe_trials,
        "mechanism": short.mechanism_trials,
    }
    if what not in plans:
        raise UsageError(f"expected {', '.join(plans)}, got {what!r}")
    if threads:
        torch.set_num_threads(threads)
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
    folder = work or _default_runs() / "trials"
    shared = tokenizers.load(tokenizer)
    sources = _mix(data, shared, folder / "encoded", held_out or [], noise, 1)
    encoded = [corpus.encode_corpus(path, shared, folder / "encoded") for path in dev]
    pairs = [pair for path in dev for pair in short.dev_pairs(path, short.DEV_PAIRS // len(dev))]

    def run_one(trial: short.Trial) -> dict[str, Any] | None:
        typer.echo(f"{trial.model}, {trial.name}", err=True)
        return short.run(trial, sources, shared, encoded[0], pairs, folder, tokens)

    mine = [trial for trial in plan if not model or trial.model in model]
    results = short.search(mine, run_one, by_rate=what == "recipe")
    if results is None:
        raise typer.Exit(130)
    if model:
        typer.echo(
            f"trials of {', '.join(model)} are done; without --model the report is written",
            err=True,
        )
        return
    write_json(out, short.report(what, results, tokens, sources, encoded, len(pairs)))


@app.command()
def translate(
    text: Annotated[
        str | None, typer.Argument(help="English text; or use --file or standard input.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="rnn, lstm, lstm-attention, transformer, or a folder.")
    ] = "transformer",
    beams: Annotated[int, typer.Option(min=1, max=32, help="1 is greedy search.")] = 1,
    file: Annotated[Path | None, typer.Option(help="Translate a file, line by line.")] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object a line: tokens, probabilities, notes, time."),
    ] = False,
) -> None:
    """Translate English into French. Of a file or standard input every line is a unit.

    Examples: seqviz translate "The report was adopted."
    seqviz translate --model lstm --beams 4 --json < lines.txt
    """
    if text is not None and file is not None:
        raise UsageError("expected TEXT or --file, got both")
    if text is None and file is None and sys.stdin.isatty():
        raise UsageError("expected TEXT, --file or standard input, got none")
    from seqviz.translating.loading import load

    translator = load(model)
    lines = iter([text]) if text is not None else _lines(file)
    number = 0
    while chunk := list(islice(lines, _LINES_AT_ONCE)):
        for translation in translator.translate(chunk, num_beams=beams):
            number += 1
            if as_json:
                typer.echo(json.dumps(translation.to_dict(), ensure_ascii=False))
                continue
            typer.echo(translation.text)
            where = "note" if text is not None else f"note, line {number}"
            for note in translation.notes:
                if note.kind != "empty":
                    typer.echo(f"{where}: {note.message}", err=True)


def _lines(file: Path | None) -> Iterator[str]:
    """Lines of a file or of standard input; only a line feed ends one."""
    if file is not None and not file.is_file():
        raise UsageError(f"expected a text file at {file}, found none; check the path")
    stream = sys.stdin.buffer if file is None else file.open("rb")
    with stream:
        for number, raw in enumerate(stream):
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            yield line.removeprefix("\ufeff") if number == 0 else line


@app.command(no_args_is_help=True)
def attend(
    text: Annotated[str, typer.Argument(help="English text that the model reads at once.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File of the picture (.html, .svg, .png) or of its numbers (.csv, .json); without it "
            "the numbers are printed as JSON."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="rnn, lstm, lstm-attention, transformer, or a folder; twice for two side by side. "
            "[default: lstm-attention]"
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="cross (French looks at English), encoder, decoder, saliency (for every model), or "
            "vector (of rnn and lstm)."
        ),
    ] = "cross",
    layer: Annotated[
        int | None, typer.Option(min=0, help="From 0; the mean of all if left out.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=0, help="From 0; the mean of all if left out.")
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="The head closest to alignments made by hand.")
    ] = False,
    pieces: Annotated[bool, typer.Option("--pieces", help="Pieces instead of words.")] = False,
    specials: Annotated[bool, typer.Option("--specials", help="Show the end token, too.")] = False,
    beams: Annotated[int, typer.Option(min=1, max=32, help="1 is greedy search.")] = 1,
    language: Annotated[str, typer.Option(help="Of the words in the picture: en or zh.")] = "en",
    darkest: Annotated[
        float, typer.Option(help="Weight of the darkest colour, above 0 and at most 1.")
    ] = 1.0,
) -> None:
    """Show where a model looks, what each of its words depends on, or its one vector.

    Example: seqviz attend "The cat sleeps." --out cat.html

    Example: seqviz attend "The cat sleeps." --model lstm --model transformer --kind saliency --out cat.svg
    """
    from seqviz.drawing.export import FORMATS, Panel, export
    from seqviz.files import write_bytes
    from seqviz.language import LANGUAGES
    from seqviz.looking.alignment_report import aligned_head
    from seqviz.looking.saliency import saliency
    from seqviz.translating.loading import load

    format = "json" if out is None else out.suffix.removeprefix(".").lower()
    kinds = ("cross", "encoder", "decoder", "saliency", "vector")
    if format not in FORMATS:
        raise UsageError(f"expected a file that ends in one of {', '.join(FORMATS)}, got {out}")
    if kind not in kinds:
        raise UsageError(f"expected --kind to be one of {', '.join(kinds)}; got {kind!r}")
    if language not in LANGUAGES:
        raise UsageError(f"expected --language to be en or zh, got {language!r}")
    if not 0 < darkest <= 1:
        raise UsageError(f"expected --darkest above 0 and at most 1, got {darkest}")
    if best and (layer is not None or head is not None):
        raise UsageError("expected --best or --layer and --head, got both")
    panels = []
    for name in model or ["lstm-attention"]:
        translator = load(name)
        translation = translator.translate(text, beams, attention=True)
        if translation.parts:
            raise UsageError(
                f"expected a text that a model reads at once, got one that it reads in "
                f"{len(translation.parts)} parts; give one sentence"
            )
        if not translation.source_words or not translation.target_tokens:
            raise UsageError(f"expected a text with words, and words written by {name}, got none")
        # Beside a model with attention, one without it shows what it has, as on the page.
        if kind == "vector" or (
            kind == "cross" and len(model or []) > 1 and translator.has_one_vector
        ):
            panels.append(Panel(translation, vector=translator.vector(translation)))
            continue
        if kind == "saliency":
            shown = saliency(translator, translation).shares(
                unit="pieces" if pieces else "words", specials=specials
            )
            panels.append(Panel(translation, shown))
            continue
        shown = translation.attention(kind)
        if not pieces:
            shown = shown.words(specials=specials)
        elif not specials:
            shown = shown.without_specials()
        place = (layer, head)
        if best and shown.num_layers * shown.num_heads > 1:
            found = aligned_head(translator) if kind == "cross" else None
            if found is None:
                raise UsageError(
                    f"expected a measured head of cross-attention for --best, found none for {name}; "
                    "use --layer and --head"
                )
            place = found
        try:
            shown.head(*place)
        except IndexError as error:
            raise UsageError(str(error)) from error
        panels.append(Panel(translation, shown, *place))
    data, note = export(panels, format, language=language, color_max=darkest)
    if note:
        typer.echo(f"note: {note}", err=True)
    if out is None:
        typer.echo(data.decode())
        return
    write_bytes(out, data)
    typer.echo(f"{out}: {' and '.join(panel.name for panel in panels)}", err=True)


@app.command(no_args_is_help=True)
def evaluate(
    data: Annotated[
        Path, typer.Option(help="Corpus file (document, source, target; plain, .gz or .xz).")
    ],
    out: Annotated[Path, typer.Option(help="JSON file that the report is written to.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A shipped model or a model folder; several times; all four if left out."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="About so many sentences, evenly over the lengths; all if left out."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the resamples.")] = 1,
    beams: Annotated[int, typer.Option(min=1, max=32, help="1 is greedy search.")] = 1,
    resamples: Annotated[int, typer.Option(min=10, help="Of the bootstrap.")] = 1_000,
    runs: Annotated[
        bool, typer.Option(help="Also the same-content curve; for a corpus in document order.")
    ] = True,
    prediction: Annotated[
        Path | None, typer.Option(help="Prediction whose hypotheses the report answers.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder that remembers outputs, so that one can go on; in the user's cache if left out."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, one thread each; one a core if left out.")
    ] = None,
    device: Annotated[str | None, typer.Option(help='"cpu", "cuda", …')] = None,
) -> None:
    """Measure quality by sentence length: BLEU, chrF and loss with intervals, two curves, the effect.

    A stopped evaluation goes on where it was when it is called again.

    Examples: seqviz evaluate --data test.tsv.xz --sample 2000 --out length.json
    seqviz evaluate --data test.tsv.xz --model lstm --model my-models/lstm-wide --out mine.json
    """
    folders = _model_folders(model)
    if out.is_dir():
        raise UsageError(f"expected a file for --out, got the folder {out}; name a file in it")
    if prediction and not prediction.is_file():
        raise UsageError(f"expected a prediction at {prediction}, found none; check the path")
    from seqviz.measuring.evaluate import by_length

    by_length(
        data,
        folders,
        work or _default_runs() / "evaluations",
        _say,
        named=bool(model),
        sample=sample,
        seed=seed,
        beams=beams,
        resamples=resamples,
        runs=runs,
        prediction=prediction,
        workers=workers,
        device=device,
    ).write(out)
    _say(f"{out} written")


@app.command(no_args_is_help=True)
def quality(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="Test set as NAME=FILE (document, source, target; plain, .gz or .xz). May be given "
            "several times.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="JSON file that the report is written to.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A shipped model or a model folder; several times; all four if left out."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many sentences of a set, at even distances."),
    ] = 3_000,
    beams: Annotated[
        int, typer.Option(min=2, max=32, help="Width of the search beside greedy search.")
    ] = 4,
    resamples: Annotated[int, typer.Option(min=10, help="Of the bootstrap.")] = 1_000,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder that remembers outputs, so that one can go on; in the user's cache if left out."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, one thread each; one a core if left out.")
    ] = None,
    device: Annotated[str | None, typer.Option(help='"cpu", "cuda", …')] = None,
) -> None:
    """Measure BLEU, chrF and loss on whole test sets, greedy and with a beam.

    The project's own hand-written development sentences are measured, too. A stopped
    measurement goes on where it was when it is called again.

    Example: seqviz quality --data Europarl=europarl/test.tsv.xz --data Tatoeba=tatoeba/test.tsv.xz
    --out models/report/quality.json
    """
    files: dict[str, Path] = {}
    for given in data:
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"expected NAME=FILE for --data, got {given!r}")
        if name in files:
            raise UsageError(f"expected test sets of different names, got {name!r} twice")
        files[name] = Path(path)
    folders = _model_folders(model)
    from seqviz.measuring.evaluate import on_test_sets

    on_test_sets(
        files,
        folders,
        work or _default_runs() / "evaluations",
        _say,
        named=bool(model),
        sample=sample,
        beams=beams,
        resamples=resamples,
        workers=workers,
        device=device,
    ).write(out)
    _say(f"{out} written")


@app.command()
def probes(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A shipped model or a model folder; several times; all four if left out."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="JSON file that the report with all outputs is written to.")
    ] = None,
) -> None:
    """Count the numbers and names that come through, and the right answers to what visitors type first.

    Translated greedily; which answers count was written by hand before any output was seen.

    Examples: seqviz probes
    seqviz probes --model transformer --out probes.json
    """
    folders = _model_folders(model)
    if out and out.is_dir():
        raise UsageError(f"expected a file for --out, got the folder {out}; name a file in it")
    from seqviz import probes as hand_written
    from seqviz.translating.loading import load

    translators = {name: load(folder) for name, folder in folders.items()}
    chosen = "".join(f" --model {name}" for name in folders if model)
    found = hand_written.report(translators, f"seqviz probes{chosen}")
    typer.echo(hand_written.table(found.results["results"]))
    if out:
        found.write(out)
        typer.echo(f"{out} written", err=True)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _model_folders(names: list[str] | None) -> dict[str, Path]:
    """Folders of models by the name they are reported under."""
    from seqviz.architectures import MODEL_NAMES
    from seqviz.shipped import models_folder

    folders: dict[str, Path] = {}
    for name in names or list(MODEL_NAMES):
        folder = models_folder() / name if name in MODEL_NAMES else Path(name)
        for file in ("model.safetensors", "tokenizer.json", "training.json"):
            if not (folder / file).is_file():
                raise UsageError(
                    f"expected one of {', '.join(MODEL_NAMES)} or a model folder, got {name!r} "
                    f"(no {file} in it)"
                )
        key = name if name in MODEL_NAMES else folder.resolve().name
        if key in folders:
            raise UsageError(f"expected models of different names, got {key!r} twice")
        folders[key] = folder
    return folders


@app.command(no_args_is_help=True)
def lexicon(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="Corpus file of English and French (plain, .gz or .xz). FILE:2 gives twice as many of "
            "the pairs as FILE; what a small file cannot give, the others do. May be given several times.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="File of the new table.")],
    pairs: Annotated[
        int, typer.Option(min=1, help="At most so many pairs are drawn from all files.")
    ] = 250_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice of pairs.")] = 1,
) -> None:
    """Make the table of word translations that "found or not found" looks words up in.

    Example: seqviz lexicon --data train.tsv.xz --data everyday.tsv.xz:10 --out models/lexicon.json
    """
    from seqviz import coverage

    files = [(part.path, int(part.repeat)) for part in _parts(data)]
    if any(share < 1 for _, share in files):
        raise UsageError("expected FILE or FILE:N with N at least 1")
    content = coverage.estimate(
        files, pairs=pairs, seed=seed, progress=lambda line: typer.echo(line, err=True)
    )
    shown = (f"--data {path.name}{f':{share}' if share > 1 else ''}" for path, share in files)
    command = f"seqviz lexicon {' '.join(shown)} --out {out.name} --pairs {pairs} --seed {seed}"
    coverage.save(content, out, command)
    typer.echo(
        f"{out}: {len(content['translations']):,} English and {len(content['meanings']):,} French words",
        err=True,
    )


@app.command()
def report(
    models: Annotated[Path, typer.Option(help="Folder of the model folders.")] = Path("models"),
    readme: Annotated[Path, typer.Option(help="README whose results are filled in.")] = Path(
        "README.md"
    ),
    data: Annotated[
        Path | None,
        typer.Option(help="Test set, to measure by length anew if the weights have changed."),
    ] = None,
) -> None:
    """Bring everything that speaks of the shipped weights up to date: reports, figures, README, cards.

    What was measured on other weights is measured anew. By length that needs the test set and an hour, the
    gradients some minutes; quality on whole test sets is measured by `seqviz quality`.

    Example: seqviz report --data test.tsv.xz
    """
    from seqviz.measuring.artefacts import bring_up_to_date

    bring_up_to_date(models, readme, _default_runs() / "evaluations", _say, data)


app.add_typer(lab, name="lab")


# ---------------------------------------------------------------------------------------------
# Corpora

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
    dev: DevPattern = None,
    test: TestPattern = None,
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
) -> None:
    """Build a corpus out of Europarl, release v7.

    Example: seqviz corpus europarl fr-en.tgz --languages en-fr --out europarl
    """
    from seqviz import building

    both = _languages(languages)
    _build(
        lambda counts: building.read_europarl(paths, both, counts),
        paths,
        both,
        out,
        building.HeldOut(dev, test, held_out),
        language_check,
        apart or [],
    )


@corpus_app.command("tatoeba", no_args_is_help=True)
def corpus_tatoeba(
    path: Annotated[
        Path,
        typer.Argument(help="fra-eng.zip of manythings.org/anki, or Tatoeba's export of pairs."),
    ],
    out: CorpusFolder,
    languages: Languages = "en-fr",
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
) -> None:
    """Build a corpus out of everyday sentences of Tatoeba.

    Example: seqviz corpus tatoeba fra-eng.zip --languages en-fr --out tatoeba
    """
    from seqviz import building

    both = _languages(languages)
    _build(
        lambda counts: building.read_tatoeba(path, both, counts),
        [path],
        both,
        out,
        building.HeldOut(share=held_out),
        language_check,
        apart or [],
    )


@corpus_app.command("dataset", no_args_is_help=True)
def corpus_dataset(
    name: Annotated[
        str, typer.Argument(help="Folder that the package datasets saved, or a name on the Hub.")
    ],
    out: CorpusFolder,
    languages: Languages = "en-fr",
    subset: Annotated[str | None, typer.Option(help="Configuration of a name on the Hub.")] = None,
    split: Annotated[str, typer.Option(help="Which part of the dataset.")] = "train",
    dev: DevPattern = None,
    test: TestPattern = None,
    held_out: Share = 0.01,
    apart: Apart = None,
    language_check: CheckLanguage = True,
) -> None:
    """Build a corpus out of a dataset with a column "translation".

    Example: seqviz corpus dataset my-dataset --languages de-en --out corpus
    """
    from seqviz import building

    both = _languages(languages)
    _build(
        lambda counts: building.read_dataset(name, both, counts, subset=subset, split=split),
        [],
        both,
        out,
        building.HeldOut(dev, test, held_out),
        language_check,
        apart or [],
    )


def _languages(text: str) -> tuple[str, str]:
    first, _, second = text.lower().partition("-")
    if not (first.isalpha() and second.isalpha()) or first == second:
        raise UsageError(f"expected --languages such as en-fr, two different ones, got {text!r}")
    return first, second


def _build(
    read: Any,
    files: list[Path],
    languages: tuple[str, str],
    out: Path,
    held_out: Any,
    check: bool,
    apart: list[Path],
) -> None:
    from collections import Counter

    from seqviz import building
    from seqviz.files import file_digest

    counts: Counter[str] = Counter()
    cleaner = building.Cleaner(languages, building.language_check() if check else None)
    about = {
        "command": shlex.join(["seqviz", *(_shown(argument) for argument in sys.argv[1:])]),
        "data": [
            {"name": path.name, "sha256": file_digest(path)} for path in files if path.is_file()
        ],
    }
    report = building.build(read(counts), out, cleaner, held_out, counts, about, apart)
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


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Such as decoding, training, startup, load; all if left out."),
    ] = None,
    joeynmt: Annotated[
        str | None,
        typer.Option(
            metavar="PYTHON",
            help="Of an environment that has Joey NMT; training is then compared with it.",
        ),
    ] = None,
) -> None:
    """Measure speed and memory, and write the table of benchmarks/README.md.

    Works in a checkout, with tests/requirements.txt installed, on a machine with nothing else to do.

    Example: seqviz bench decoding startup
    """
    import subprocess

    folder = Path(__file__).resolve().parents[1] / "benchmarks"
    known = sorted(path.stem for path in folder.glob("*.py") if path.stem != "table")
    if not known:
        raise ClickException(
            f"expected the benchmarks of a checkout in {folder}, found none; run this from a clone of "
            "the repository"
        )
    if wrong := [name for name in names or () if name not in known]:
        raise UsageError(f"expected some of {', '.join(known)}; got {', '.join(wrong)}")
    environment = {**os.environ, "PYTHONPATH": str(folder.parent)}
    for name in names or known:
        typer.echo(f"{name} …", err=True)
        out = folder / f"{name}.json"
        command = [sys.executable, str(folder / f"{name}.py"), "--out", str(out)]
        if joeynmt and name == "training":
            command += ["--joeynmt", joeynmt]
        if code := subprocess.run(command, env=environment, cwd=folder.parent).returncode:
            raise ClickException(f"the benchmark {name} ended with {code}; see what it said above")
    table = [sys.executable, str(folder / "table.py")]
    subprocess.run(table, env=environment, cwd=folder.parent, check=True)
    typer.echo((folder / "README.md").read_text(encoding="utf-8").split("## Results")[-1].strip())


@app.command()
def page(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 7860,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy serves the page.")] = "",
) -> None:
    """Serve the page on this machine.

    Example: seqviz app --port 7860
    """
    try:
        from seqviz.ui import launch
    except ModuleNotFoundError as error:
        if error.name != "gradio":
            raise
        raise ClickException("the page needs Gradio; pip install 'seqviz[app]'") from error
    launch(host=host, port=port, root_path=root_path)


app.registered_commands[-1].name = "app"


def main() -> None:
    """Run the command line; every error that a person can cause is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = typer.main.get_command(app)(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.ctx.get_help(), err=True)
            sys.exit(2)
        command = error.ctx.command_path if error.ctx else "seqviz"
        _fail(f"{error.format_message()} (see '{command} --help')", 2)
    except ClickException as error:
        _fail(error.format_message(), 1)
    except (typer.Abort, KeyboardInterrupt):
        _fail("stopped", 1)
    except BrokenPipeError:
        # The reader has gone (… | head): no more output, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ModuleNotFoundError as error:
        extra = "train" if error.name in ("accelerate", "sentencepiece", "tqdm") else "app,train"
        _fail(
            f"this command needs the package {error.name}, which is not installed; "
            f"pip install 'seqviz[{extra}]', or in a checkout pip install '.[{extra}]'",
            1,
        )
    except (ValueError, OSError, RuntimeError) as error:
        _fail(" ".join(str(error).split()) or type(error).__name__, 1)


def _fail(message: str, code: int) -> None:
    try:
        typer.echo(f"seqviz: error: {message}", err=True)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


if __name__ == "__main__":
    main()
