"""Markup of a growing text at all its stages; a script shows the one that the slider points at.

What belongs to one stage wears ``data-stage``, what belongs to one score ``data-metric``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import cards, curves, marking, measured
from seqviz.ui.growth import OWN, Growth, new_words
from seqviz.ui.service import MODELS, Scored, Service

METRICS = ("bleu", "chrf")


@dataclass
class Shown:
    """A growing text and what is known of it so far.

    Attributes:
        scored: by model, one entry a stage; None where it is not computed yet.
        failed: models that cannot be used, and why.
        marked: there is a lexicon to say which words were found.
    """

    service: Service
    text: Growth
    language: str
    marked: bool
    scored: dict[str, list[Scored | None]]
    failed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, service: Service, text: Growth, language: str) -> Shown:
        marked = service.lexicon() is not None
        shown = cls(service, text, language, marked, {})
        shown.refresh()
        return shown

    def refresh(self) -> None:
        """Take up what has been computed since."""
        self.scored = {name: self.service.known(name, self.text) for name in MODELS}

    @property
    def missing(self) -> list[str]:
        """Models that have not done all stages."""
        return [name for name in MODELS if name not in self.failed and None in self.scored[name]]

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("agreement",) if self.text.id == OWN else METRICS

    def say(self, key: str, **values: object) -> str:
        """A text of the page, escaped."""
        return escape(Language.of(self.language).say(key, **values))

    def measure(self, name: str) -> str:
        """What "found", "agreement" or one of `METRICS` is called, escaped."""
        return escape(Language.of(self.language).within("length").say(name))

    def model(self, name: str) -> str:
        return self.say(f"model.{name}")


def stops(text: Growth, language: str) -> str:
    """Word counts under the stops of the slider, and what a screen reader says at each."""
    marks = "".join(f"<span>{count}</span>" for count in text.counts)
    said = "|".join(
        Language.of(language).say("length.words", number=count) for count in text.counts
    )
    counts = " ".join(map(str, text.counts))
    single = " single" if len(text.counts) == 1 else ""
    return (
        f'<div class="stops{single}" data-counts="{counts}" data-said="{escape(said)}" '
        f'aria-hidden="true">{marks}</div>'
    )


# ---------------------------------------------------------------------------------------------
# Four small bars


def strip(shown: Shown) -> str:
    """For each model, words found and scores of the stage as bars."""
    cells = []
    for name in MODELS:
        measures = []
        if shown.marked:
            measures.append(_measure(shown, name, "found"))
        measures += [_measure(shown, name, metric) for metric in shown.metrics]
        cells.append(
            f'<div class="cell" data-model="{name}"><p class="name">{curves.key(name)}'
            f"<span>{shown.model(name)}</span></p>{''.join(measures)}</div>"
        )
    label = shown.measure("found" if shown.marked else shown.metrics[-1])
    kind = "" if shown.marked else " unmarked"
    return f'<div class="strip{kind}"><p class="strip-label">{label}</p>{"".join(cells)}</div>'


def _measure(shown: Shown, name: str, metric: str) -> str:
    values, widths = [], []
    for number, scored in enumerate(shown.scored[name], start=1):
        said, percent = _value(scored, metric)
        values.append(f'<b data-stage="{number}">{said}</b>')
        widths.append(f"--s{number}:{percent:.0f}")
    switch = f' data-metric="{metric}"' if metric in METRICS else ""
    return (
        f'<p class="measure {metric}"{switch}><span>{shown.measure(metric)}</span>'
        f'{"".join(values)}<span class="bar" aria-hidden="true"><i style="{";".join(widths)}"></i></span></p>'
    )


def _value(scored: Scored | None, metric: str) -> tuple[str, float]:
    """A measure in words, and as a percentage."""
    if scored is None:
        return "…", 0.0
    if metric == "found":
        if scored.found is None:
            return "–", 0.0
        found, judged = scored.found
        return f"{found} / {judged}", 100.0 * found / judged
    value = getattr(scored, metric)
    return ("–", 0.0) if value is None else (f"{value:.0f}", value)


# ---------------------------------------------------------------------------------------------
# The English


def sentence(shown: Shown) -> str:
    """The English of each stage: new words shaded, a bar for each model that has a word not."""
    legend = f'<p class="legend">{shown.say("length.new")} '
    legend += f"{marking.legend(shown.language, shown.marked)}</p>"
    stages = "".join(_english(shown, index) for index in range(len(shown.text.stages)))
    return f'<div class="stages held">{stages}</div>{legend}'


def _english(shown: Shown, index: int) -> str:
    stage = shown.text.stages[index]
    before = shown.text.stages[max(0, index - 1)].english
    marks = {name: scored.marks for name, row in shown.scored.items() if (scored := row[index])}
    runs, place = [], 0
    for new, group in groupby(new_words(before, stage.english), key=lambda pair: pair[1]):
        run = []
        for word, _ in group:
            found = {n: m[place].found for n, m in marks.items() if m}
            run.append(marking.word(word, found, shown.language))
            place += 1
        text = " ".join(run)
        runs.append(f"<mark>{text}</mark>" if new and index else text)
    unseen = marking.unseen(marks, shown.language)
    gloss = ""
    if shown.language == "zh" and stage.chinese:
        gloss = (
            f'<p class="gloss" lang="zh-CN">{shown.say("translate.gloss", text=stage.chinese)}</p>'
        )
    number = len(stage.english.split())
    count = shown.say("length.english_one" if number == 1 else "length.english", number=number)
    return (
        f'<div data-stage="{index + 1}"><h2>{count}</h2>'
        f'<p class="english" lang="en" translate="no">{" ".join(runs)}</p>{unseen}{gloss}</div>'
    )


# ---------------------------------------------------------------------------------------------
# The translations


def answers(shown: Shown) -> str:
    """The four translations of each stage, and the reference where there is one."""
    stages = []
    for index, stage in enumerate(shown.text.stages):
        boxes = [_card(shown, name, shown.scored[name][index]) for name in MODELS]
        if stage.french is not None:
            boxes.append(
                f'<section class="card stage reference"><h2>{shown.say("length.reference")}</h2>'
                f'<div class="target" lang="fr" translate="no"><p>{escape(cards.french(stage.french))}'
                "</p></div></section>"
            )
        stages.append(f'<div class="stage-cards" data-stage="{index + 1}">{"".join(boxes)}</div>')
    tap = f" {shown.say('length.tap')}" if shown.marked else ""
    return f'{"".join(stages)}<p class="legend">{shown.say("length.sure")}{tap}</p>'


def _card(shown: Shown, name: str, scored: Scored | None) -> str:
    scores, busy = "", ""
    if scored:
        body = cards.target([scored.translation], shown.language, shown.service.meanings)
        body += cards.notes([scored.translation], shown.language)
        measures = ["found"] if shown.marked else []
        scores = " · ".join(
            f"{shown.measure(metric)} <b>{_value(scored, metric)[0]}</b>"
            for metric in (*measures, *reversed(shown.metrics))
        )
    elif name in shown.failed:
        body = cards.problem(shown.failed[name])
    else:
        said = shown.say("card.working" if shown.service.loaded(name) else "card.loading")
        body = f'<p class="waiting">{said}<span class="dots" aria-hidden="true"></span></p>'
        busy = ' aria-busy="true"'
    return (
        f'<section class="card stage" data-model="{name}"{busy}>'
        f"<header><h2>{curves.key(name)}{shown.model(name)}</h2>"
        f'<span class="small">{scores}</span></header>{body}</section>'
    )


# ---------------------------------------------------------------------------------------------
# The path over all stages


def path(shown: Shown) -> str:
    """Scores of this text at all its lengths, on the axis of the measured curves."""
    figures = "".join(_path(shown, metric) for metric in shown.metrics)
    spoken = Language.of(shown.language)
    waiting = spoken.join([spoken.say(f"model.{name}") for name in shown.missing], "names")
    note = shown.say("length.filling", models=waiting) if waiting else ""
    return f'<div class="path">{figures}<p class="small" role="status">{note}</p></div>'


def _path(shown: Shown, metric: str) -> str:
    spoken = Language.of(shown.language)
    say = spoken.say
    points = {name: _points(shown, name, metric) for name in MODELS}
    name_of_metric = say(f"length.{metric}")
    told = []
    for name, curve in points.items():
        model = say(f"model.{name}")
        ends = curve[:1] + curve[-1:] if len(curve) > 1 else curve
        values = [
            say("length.plot_alt_value", score=f"{s:.0f}", words=f"{at:.0f}") for at, s in ends
        ]
        key = "length.plot_alt_model" if values else "length.plot_alt_none"
        told.append(say(key, model=model, values=spoken.join(values, "list")))
    picture = curves.curves(
        points,
        ticks=measured.TICKS,
        axis=say("length.axis"),
        alt=say("length.plot_alt", metric=name_of_metric, models=spoken.join(told, "clauses")),
        marker=True,
    )
    switch = f' data-metric="{metric}"' if metric in METRICS else ""
    caption = shown.say("length.path", metric=name_of_metric)
    return f"<figure{switch}><figcaption>{caption}</figcaption>{picture}</figure>"


def _points(shown: Shown, name: str, metric: str) -> list[tuple[float, float]]:
    return [
        (float(count), value)
        for count, scored in zip(shown.text.counts, shown.scored[name], strict=True)
        if scored and (value := getattr(scored, metric)) is not None
    ]
