"""What stands around the lanes of a growing text: the stops of the slider, the English, the path of scores."""

from __future__ import annotations

from seqviz.drawing.styles import escape
from seqviz.language import Language
from seqviz.ui import curves, measured
from seqviz.ui.growth import Growth
from seqviz.ui.lanes import Shown
from seqviz.ui.service import MODELS

METRICS = ("bleu", "chrf")


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


def reference(shown: Shown) -> str:
    """At each stage the meaning, on the Chinese page, and the French written by hand."""
    stages = []
    for number, stage in enumerate(shown.text.stages, start=1):
        parts = []
        if shown.language == "zh" and stage.chinese:
            parts.append(f'<p class="gloss" lang="zh-CN">{escape(stage.chinese)}</p>')
        if stage.french:
            parts.append(
                f'<p class="reference"><b>{shown.say("length.reference")}</b> '
                f'<span lang="fr" translate="no">{escape(stage.french)}</span></p>'
            )
        stages.append(f'<div data-stage="{number}">{"".join(parts)}</div>')
    return "".join(stages)


def path(shown: Shown) -> str:
    """What this text keeps at all its lengths, on the axis of the measured curves."""
    metrics = METRICS if shown.text.stages[0].french else ("kept",)
    figures = "".join(_path(shown, metric) for metric in metrics)
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
        for stage, count in enumerate(shown.text.counts)
        if (value := _value(shown, name, stage, metric)) is not None
    ]


def _value(shown: Shown, name: str, stage: int, metric: str) -> float | None:
    """A score of one stage, 0 to 100; None where it is not known yet, or not judged."""
    output = shown.outputs[name][stage]
    if output is None:
        return None
    reference = shown.text.stages[stage].french
    if reference is None:
        came = shown.came(name, stage)
        return 100 * came.kept / came.judged if came.judged else None
    from seqviz.scores import sentence_scores

    return sentence_scores(output.text, reference)[metric]
