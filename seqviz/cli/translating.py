"""Commands that translate and show where a model looks."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqviz.cli.application import app
from seqviz.cli.options import ClickException, UsageError

if TYPE_CHECKING:
    from seqviz.drawing.export import Panel
    from seqviz.maps import AttentionMap
    from seqviz.translating.result import Translation
    from seqviz.translating.translator import Translator

_LINES_AT_ONCE = 64

Results = Annotated[
    int | None,
    typer.Option(
        help="The N best translations, no text twice: as lines of rank, score and text, with --json "
        "as objects with a rank. Up to --beams; with --do-sample N draws."
    ),
]
ForceWords = Annotated[
    list[str] | None,
    typer.Option(
        help="A whole word that the output has to hold, or one of several forms: vote|votes. "
        "May be given several times."
    ),
]
BadWords = Annotated[
    list[str] | None,
    typer.Option(help="A whole word that the output must not hold. May be given several times."),
]


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
    num_return_sequences: Results = None,
    length_penalty: Annotated[
        float, typer.Option(help="Of beams: above 1 prefers long outputs, below 1 short ones.")
    ] = 1.0,
    do_sample: Annotated[
        bool, typer.Option("--do-sample", help="Draw each token by its probability.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(help="Of draws, above 0: below 1 probable tokens are drawn more often."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of draws; 0 if left out.")] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(help="Most pieces of an output, with its end; twice the input and 12."),
    ] = None,
    force_word: ForceWords = None,
    bad_word: BadWords = None,
) -> None:
    """Translate English into French. Of a file or standard input every line is a unit.

    Example: seqviz translate --model lstm --beams 4 --json < lines.txt

    Example: seqviz translate --beams 4 --num-return-sequences 3 --bad-word rapport "The report was adopted."

    Example: seqviz translate --do-sample --temperature 0.7 --seed 1 "The report was adopted."
    """
    if text is not None and file is not None:
        raise UsageError("expected TEXT or --file, got both")
    if text is None and file is None and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("expected TEXT, --file or standard input, got none")
    from seqviz.translating.decoding import Decoding
    from seqviz.translating.loading import load

    options: dict[str, Any] = {
        "num_beams": beams,
        "num_return_sequences": num_return_sequences,
        "length_penalty": length_penalty,
        "do_sample": do_sample,
        "temperature": temperature,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
        "force_words": [word.split("|") for word in force_word or ()],
        "bad_words": bad_word or (),
    }
    with _wrong_use():
        Decoding(**options)
    translator = load(model)
    for said in translator.notes:
        typer.echo(f"note: {said}", err=True)
    lines = iter([text]) if text is not None else _lines(file)
    number = 0
    while chunk := list(islice(lines, _LINES_AT_ONCE)):
        with _wrong_use():
            found = translator.translate(chunk, **options)
        for results in found:
            number += 1
            where = "note" if text is not None else f"note, line {number}"
            ranked = enumerate(results, 1) if num_return_sequences else [(None, results)]
            for rank, translation in ranked:
                _say(translation, rank, as_json, where)


@contextmanager
def _wrong_use() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def _say(translation: Translation, rank: int | None, as_json: bool, where: str) -> None:
    """Print a translation; notes go to standard error unless they are part of the JSON."""
    if as_json:
        ranked = translation.to_dict() | ({} if rank is None else {"rank": rank})
        typer.echo(json.dumps(ranked, ensure_ascii=False))
        return
    before = "" if rank is None else f"{rank}\t{translation.score:.4f}\t"
    typer.echo(before + translation.text)
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
            if number == 0 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ClickException(
                    f"expected UTF-8 text in {file or 'standard input'}, got UTF-16; convert it first, "
                    "such as with iconv -f UTF-16 -t UTF-8"
                )
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            yield line.removeprefix("\ufeff") if number == 0 else line


KINDS = ("cross", "encoder", "decoder", "saliency", "vector")


@dataclass(frozen=True)
class _View:
    """What is shown of a model: a kind of `KINDS`, of which head, by pieces or words, in which language."""

    kind: str
    layer: int | None
    head: int | None
    best: bool
    pieces: bool
    specials: bool
    language: str

    def of(self, name: str, text: str, beams: int, *, alone: bool) -> Panel:
        """What this view shows of a model and a text."""
        from seqviz.drawing.export import Panel
        from seqviz.drawing.names import ending
        from seqviz.language import Language
        from seqviz.looking.saliency import saliency
        from seqviz.translating.loading import load

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
        if self.kind == "vector" or (
            self.kind == "cross" and not alone and translator.has_one_vector
        ):
            return Panel(translation, vector=translator.vector(translation))
        if self.kind == "saliency":
            unit = "pieces" if self.pieces else "words"
            shares = saliency(translator, translation).shares(unit=unit, specials=self.specials)
            return Panel(translation, shares)
        shown = translation.attention(self.kind)
        layer, head, reading = self._place(name, translator, shown)
        shown = shown.at(reading)
        key = f"attention.read_later{ending(shown.languages)}"
        about = Language.of(self.language).say(key)
        if not self.pieces:
            shown = shown.words(specials=self.specials)
        elif not self.specials:
            shown = shown.without_specials()
        return Panel(translation, shown, layer, head, about=about if reading == "reading" else "")

    def _place(
        self, name: str, translator: Translator, shown: AttentionMap
    ) -> tuple[int | None, int | None, str]:
        """Layer, head, and the step at which the head is read."""
        from seqviz.looking.alignment_report import aligned_head

        if self.best:
            found = aligned_head(translator) if self.kind == "cross" else None
            if found is not None:
                return found
            if shown.num_layers * shown.num_heads > 1:
                raise UsageError(
                    f"expected a measured head of cross-attention for --best, found none for {name}; "
                    "use --layer and --head"
                )
        try:
            shown.head(self.layer, self.head)
        except IndexError as error:
            raise UsageError(str(error)) from error
        return self.layer, self.head, "predicting"


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
    from seqviz.drawing.export import FORMATS, export
    from seqviz.files import write_bytes
    from seqviz.language import LANGUAGES

    format = "json" if out is None else out.suffix.removeprefix(".").lower()
    if format not in FORMATS:
        raise UsageError(f"expected a file that ends in one of {', '.join(FORMATS)}, got {out}")
    if kind not in KINDS:
        raise UsageError(f"expected --kind to be one of {', '.join(KINDS)}; got {kind!r}")
    if language not in LANGUAGES:
        raise UsageError(f"expected --language to be en or zh, got {language!r}")
    if not 0 < darkest <= 1:
        raise UsageError(f"expected --darkest above 0 and at most 1, got {darkest}")
    if best and (layer is not None or head is not None):
        raise UsageError("expected --best or --layer and --head, got both")
    names = model or ["lstm-attention"]
    view = _View(kind, layer, head, best, pieces, specials, language)
    panels = [view.of(name, text, beams, alone=len(names) == 1) for name in names]
    data, note = export(panels, format, language=language, color_max=darkest)
    if note:
        typer.echo(f"note: {note}", err=True)
    if out is None:
        typer.echo(data.decode())
        return
    write_bytes(out, data)
    typer.echo(f"{out}: {' and '.join(panel.name for panel in panels)}", err=True)
