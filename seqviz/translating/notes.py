"""What a reader should know about a translation: notes, their kinds, and how they are said.

`Note.message` is for the command line and for programs; `said` is for readers of a page, in their language.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from seqviz.language import Language
from seqviz.text_languages import TextLanguage

Kind = Literal[
    "empty",
    "surrogate",
    "capitals",
    "unknown",
    "copied",
    "split",
    "truncated",
    "limit",
    "repetition",
    "numbers",
    "language",
    "forced",
]


class Note(NamedTuple):
    """Something a reader should know about a translation.

    `kind` is one of `Kind`, `message` says it in English, `values` holds the pieces of it for other
    languages.
    """

    kind: Kind
    message: str
    values: tuple[Any, ...] = ()


EMPTY = Note("empty", "nothing to translate: the text is empty")
SURROGATE = Note("surrogate", "broken characters were replaced by \ufffd")
CAPITALS = Note("capitals", "written in capitals: read in small letters")
LANGUAGE = Note("language", "this does not look like English; the models read English only")
COPIED = Note("copied", "no piece of this is known to the models: it comes back as it is")


def other_language(expected: TextLanguage) -> Note:
    """The text does not look like the language that the model reads."""
    if expected.code == "en":
        return LANGUAGE
    message = f"this does not look like {expected.name}; the model reads {expected.name} only"
    return Note("language", message, (expected.code,))


def unknown(characters: Iterable[str]) -> Note:
    """Of the first ten characters."""
    shown = tuple(characters)[:10]
    return Note("unknown", f"unknown to the models: {' '.join(shown)}", shown)


def split(parts: int, max_words: int, max_pieces: int) -> Note:
    message = f"over {max_words} words or {max_pieces} pieces: translated in {parts} parts"
    return Note("split", message, (parts,))


def truncated(pieces: int, read: int) -> Note:
    message = f"one word has {pieces} pieces, only the first {read} were read"
    return Note("truncated", message, (pieces, read))


def limit(pieces: int) -> Note:
    return Note("limit", f"stopped at the limit of {pieces} pieces before the end", (pieces,))


def repetition(shown: str) -> Note:
    return Note("repetition", f"repeats itself: {shown}", (shown,))


def numbers(missing: tuple[str, ...], invented: tuple[str, ...]) -> Note:
    said = [
        f"{what} {', '.join(dict.fromkeys(which))}"
        for what, which in (("missing", missing), ("not in the source", invented))
        if which
    ]
    return Note("numbers", f"check the numbers: {'; '.join(said)}", (missing, invented))


def forced(pieces: int) -> Note:
    were = "piece was" if pieces == 1 else "pieces were"
    return Note("forced", f"the first {pieces} {were} given", (pieces,))


def merged(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each kind once, the first; but the unknown characters and the numbers of all."""
    kinds: dict[str, Note] = {}
    for note in notes:
        first = kinds.setdefault(note.kind, note)
        if first is note:
            continue
        if note.kind == "unknown":
            kinds["unknown"] = unknown(dict.fromkeys((*first.values, *note.values)))
        elif note.kind == "numbers":
            missing, invented = (a + b for a, b in zip(first.values, note.values, strict=True))
            kinds["numbers"] = numbers(missing, invented)
    return tuple(kinds.values())


def said(note: Note, language: str | Language) -> str:
    """A note as a sentence for readers, plain text; its message where there are no words for it."""
    spoken = Language.of(language)
    say = spoken.within("note").say
    match note.kind, note.values:
        case ("empty" | "surrogate" | "capitals" | "copied") as kind, _:
            return say(kind)
        case "unknown", shown:
            return say("unknown", shown=" ".join(map(str, shown)))
        case "truncated", (pieces, read, *_):
            return say("truncated", pieces=pieces, read=read)
        case ("split" | "limit" | "forced") as kind, (number, *_):
            return say(kind, number=number)
        case "repetition", (shown, *_):
            return say("repetition", shown=shown)
        case "numbers", (_, _):
            lost, new = (spoken.join(dict.fromkeys(map(str, n)), "names") for n in note.values)
            which = "" if lost and new else "_missing" if lost else "_invented"
            return say(f"numbers{which}", missing=lost, invented=new)
    return note.message
