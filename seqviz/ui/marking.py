"""Which English words an output has, and which it has not: bars under the words, one a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import curves
from seqviz.ui.service import MODELS, counted

if TYPE_CHECKING:
    from seqviz.coverage import Word

Marks = Mapping[str, "Sequence[Word]"]
"""By model, for each word of the source whether its output has it; models that are not done are left out."""


def word(text: str, found: Mapping[str, bool | None], language: str) -> str:
    """A word with its four bars; a word that no model was judged by stays plain.

    Args:
        found: by model, whether its output has the word; None where that is not judged.
    """
    say = Language.of(language).say
    judged = {name: is_found for name, is_found in found.items() if is_found is not None}
    if not judged:
        return escape(text)
    absent = [name for name, is_found in judged.items() if not is_found]
    if absent:
        models = Language.of(language).join([say(f"model.{name}") for name in absent], "names")
        said = say("length.not_found", models=models)
    elif len(judged) == len(MODELS):
        said = say("length.found_all")
    else:
        said = ""
    classes = " ".join(
        f"{'f' if judged[name] else 'n'}{number}"
        for number, name in enumerate(MODELS, start=1)
        if name in judged
    )
    title = f' title="{escape(said)}"' if said else ""
    return f'<span class="w {classes}"{title}>{escape(text)}</span>'


def legend(language: str, marked: bool) -> str:
    """What the bars under words mean, or why there are none."""
    say = Language.of(language).say
    if not marked:
        return escape(say("length.bars_none"))
    keys = "".join(
        f'<span class="bar-key"><i class="w {_only(index)}"></i>'
        f"{escape(say(f'model.{name}'))}</span>"
        for index, name in enumerate(MODELS)
    )
    about = escape(say("length.bars_about"))
    return f'<span title="{about}">{escape(say("length.bars"))}</span> {keys}'


def _only(index: int) -> str:
    """The four bars of a word of which only one is filled."""
    return " ".join(f"{'n' if other == index else 'f'}{other + 1}" for other in range(len(MODELS)))


def unseen(marks: Marks, language: str) -> str:
    """The words not found, model by model, for those who do not see the bars."""
    spoken = Language.of(language)
    missing = []
    for name, row in marks.items():
        if absent := [one.text.strip(".,?!;:\"'()") for one in row if one.found is False]:
            model, absent = spoken.say(f"model.{name}"), spoken.join(absent, "names")
            said = spoken.say("length.not_found_words", model=model, words=absent)
            missing.append(escape(said))
    return f'<p class="unseen">{spoken.join(missing, "clauses")}</p>' if missing else ""


def summary(source: str, marks: Marks, language: str) -> str:
    """How many words each model's output has, and the source with its bars.

    Args:
        source: whose words are marked, in the order of the marks.
    """
    say = Language.of(language).say
    label = escape(say("length.found"))
    cells = []
    for name in MODELS:
        said, percent = "…", 0.0
        if name in marks:
            counts = counted(marks[name])
            said = f"{counts[0]} / {counts[1]}" if counts else "–"
            percent = 100 * counts[0] / counts[1] if counts else 0.0
        cells.append(
            f'<div class="cell" data-model="{name}"><p class="name">{curves.key(name)}'
            f"<span>{escape(say(f'model.{name}'))}</span></p>"
            f'<p class="measure found"><span>{label}</span><b>{said}</b><span class="bar" aria-hidden="true">'
            f'<i style="width:{percent:.0f}%"></i></span></p></div>'
        )
    shown = " ".join(
        word(text, {name: row[place].found for name, row in marks.items()}, language)
        for place, text in enumerate(source.split())
    )
    return (
        f'<div class="strip"><p class="strip-label">{label}</p>'
        f"{''.join(cells)}</div>"
        f'<p class="english" lang="en" translate="no">{shown}</p>{unseen(marks, language)}'
        f'<p class="legend">{legend(language, True)}</p>'
    )
