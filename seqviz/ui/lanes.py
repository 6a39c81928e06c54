"""Lanes: a text in four models, one under the other, at every stage of its growth.

A lane has the model's name, how many words came through, its copy of the English in which lost words are
struck out, the French, and what the French says, word by word. What belongs to one stage wears
``data-stage``; a script shows the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import cards, curves, outcomes
from seqviz.ui.growth import Growth
from seqviz.ui.outcomes import Output
from seqviz.ui.service import MODELS, Service

if TYPE_CHECKING:
    from seqviz.coverage import Remembered

CLASSES = {"kept": "kept", "forgotten": "lost", "never knew": "never"}
READING = ("capitals", "split", "surrogate", "unknown")
"""Notes on how the text was read: the same for all models, so they are said once."""
ELSEWHERE = ("language", "repetition", *READING)
"""Notes that a lane says in another way: above all lanes, and by a sign."""
SPARK = (96.0, 20.0)


@dataclass
class Shown:
    """A growing text and what is known of it so far.

    Attributes:
        outputs: by model, one entry a stage; None where it is not known yet.
        failed: models that cannot be used, and why.
    """

    service: Service
    text: Growth
    language: str
    outputs: Mapping[str, Sequence[Output | None]]
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """Models that have not done all stages."""
        return [name for name in MODELS if name not in self.failed and None in self.outputs[name]]

    def say(self, key: str, **values: object) -> str:
        """A text of the page, escaped."""
        return escape(Language.of(self.language).say(key, **values))

    def words(self, name: str, stage: int) -> list[Remembered]:
        """The English words of a stage with their states; none before the output is known."""
        return outcomes.words_at(self.text, self.outputs[name], stage)

    def came(self, name: str, stage: int) -> outcomes.Came:
        return outcomes.came(self.words(name, stage))


def lanes(shown: Shown) -> str:
    """All four lanes."""
    marked = shown.service.lexicon() is not None
    said = shown.say("lanes.legend" if marked else "lanes.unmarked")
    legend = f'<p class="legend">{said}</p>'
    every = "".join(lane(shown, name) for name in MODELS)
    return f'{_read(shown)}<div class="lanes">{every}</div>{legend}'


def _read(shown: Shown) -> str:
    """How the text was read, where that is not how it was written."""
    outputs = (output for every in shown.outputs.values() for output in every if output)
    told = (note for output in outputs for note in output.notes if note.kind in READING)
    return cards.notes(told, shown.language, elsewhere=())


def lane(shown: Shown, name: str) -> str:
    """One model's lane."""
    stages = "".join(_stage(shown, name, stage) for stage in range(len(shown.text.stages)))
    busy = ' aria-busy="true"' if name in shown.missing else ""
    how = escape(Language.of(shown.language).within("how").say(name))
    return (
        f'<section class="card lane" data-model="{name}"{busy}>'
        f'<header><h2>{curves.key(name)}{shown.say(f"model.{name}")}</h2><span class="how">{how}</span>'
        f"{_counts(shown, name)}{_spark(shown, name)}</header>"
        f'<div class="held">{stages}</div></section>'
    )


def _stage(shown: Shown, name: str, stage: int) -> str:
    output = shown.outputs[name][stage]
    if output is not None:
        body = _english(shown, name, stage) + french(output, shown)
        body += meaning(output.text, shown.language) + cards.notes(
            output.notes, shown.language, elsewhere=ELSEWHERE
        )
    elif name in shown.failed:
        body = cards.problem(shown.failed[name])
    else:
        said = shown.say("card.working" if shown.service.loaded(name) else "card.loading")
        body = f'<p class="waiting">{said}<span class="dots" aria-hidden="true"></span></p>'
    return f'<div data-stage="{stage + 1}">{body}</div>'


def _english(shown: Shown, name: str, stage: int) -> str:
    """The model's copy of the English: kept, struck out where it forgot, pale where it never knew."""
    output = shown.outputs[name][stage]
    lost = output.numbers[0] if output else ()
    drawn = " ".join(_word(word, shown.language, lost) for word in shown.words(name, stage))
    text = drawn or escape(shown.text.stages[stage].english)
    return f'<p class="english" lang="en" translate="no">{text}</p>'


def _word(word: Remembered, language: str, lost: Sequence[str]) -> str:
    text = escape(word.text)
    if cards.holds_number(word.text, lost):
        return f'<b class="wrong">{text}</b>'
    if word.state in (None, "kept"):
        return text
    kind = CLASSES[word.state]
    title = escape(Language.of(language).say(f"lanes.{kind}_title"))
    tag = "s" if kind == "lost" else "span"
    return f'<{tag} class="{kind}" title="{title}">{text}</{tag}>'


def french(output: Output, shown: Shown) -> str:
    """The French, with what it repeats underlined; or that the model wrote nothing."""
    if not output.text:
        return f'<p class="waiting">{shown.say("card.silent")}</p>'
    invented = output.numbers[1]
    copied = any(note.kind == "copied" for note in output.notes)  # no French: no French spaces
    paragraphs = "".join(
        f"<p>{escape(part) if copied else cards.target(part, shown.language, shown.service.meanings, invented)}</p>"
        for part in output.text.split("\n\n")
    )
    return f'<div class="target" lang="fr" translate="no">{paragraphs}</div>'


def meaning(text: str, language: str) -> str:
    """What the French says, word by word; a word that the table lacks stays French."""
    from seqviz.meaning import gloss

    said = [
        escape(known) if known else f'<i lang="fr">{escape(word)}</i>'
        for word, known in gloss(text, language)
    ]
    if not said:
        return ""
    tag = Language.of(language).say("language.tag")
    return f'<div class="means" lang="{tag}"><p><span aria-hidden="true">≈</span> {" ".join(said)}</p></div>'


def _counts(shown: Shown, name: str) -> str:
    """At each stage: how many words came through, how many were forgotten."""
    parts = []
    for stage in range(len(shown.text.stages)):
        came = shown.came(name, stage)
        said = ""
        if came.judged:
            said = "".join(
                f'<span class="{size}">{shown.say(key, kept=came.kept, judged=came.judged)}</span>'
                for size, key in (("long", "lanes.kept"), ("short", "lanes.kept_short"))
            )
        if came.forgotten:
            said += f' <b class="forgot">{shown.say("lanes.forgot", number=came.forgotten)}</b>'
        output = shown.outputs[name][stage]
        if output and any(note.kind == "repetition" for note in output.notes):
            circles = shown.say("lanes.circles")
            said += (
                f' <b class="circles" title="{circles}">↻<span class="long"> {circles}</span></b>'
            )
        parts.append(f'<span class="counts" data-stage="{stage + 1}">{said}</span>')
    return "".join(parts)


def _spark(shown: Shown, name: str) -> str:
    """A small line: the share of words that came through, over the stages."""
    shares = []
    for stage in range(len(shown.text.stages)):
        came = shown.came(name, stage)
        if came.judged:
            shares.append((stage, came.kept / came.judged))
    if len(shares) < 2:
        return ""
    width, height = SPARK
    last = len(shown.text.stages) - 1
    points = [
        (2 + stage / last * (width - 4), height - 2 - share * (height - 4))
        for stage, share in shares
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle data-stage="{stage + 1}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{name})"/>'
        for (stage, _), (x, y) in zip(shares, points, strict=True)
    )
    return (
        f'<svg class="spark" viewBox="0 0 {width:g} {height:g}" aria-hidden="true">'
        f'<polyline points="{line}" fill="none" stroke="var(--{name})" stroke-width="1.5"/>{dots}</svg>'
    )
