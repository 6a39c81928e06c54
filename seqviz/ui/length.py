"""The Length tab: a sentence that keeps growing, and how each model keeps up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from html import escape
from importlib.metadata import version
from itertools import groupby
from typing import Any

import gradio as gr

from seqviz.ui import cards, curves
from seqviz.ui.service import BLEU_SETTINGS, CHRF_SETTINGS, MODELS, Scored, Service
from seqviz.ui.tab import MODEL_EVENT, Tab
from seqviz.ui.words import words

METRICS = ("chrf", "bleu")
FIRST_STAGE = 4

_STOPS_JS = """
watch('value', () => {
  const said = element.querySelector('.stops')?.dataset.said;
  document.querySelector('#length-slider input[type=range]')?.setAttribute('aria-valuetext', said);
});
"""  # the slider's own value is the number of the stop


def tab(service: Service, language: gr.Radio) -> Tab:
    """Make the tab inside the current ``gr.Tab``."""
    passages = service.passages()
    most = max(len(passage["stages"]) for passage in passages)
    lead = gr.HTML(_lead("en"))
    with gr.Row(elem_classes="actions low"):
        passage = gr.Dropdown(
            _passage_choices(passages, "en"),
            value=passages[0]["id"],
            label=words("length_passage", "en"),
            filterable=False,
            min_width=220,
            elem_id="passage",
        )
        grow = gr.Button(words("length_grow", "en"), min_width=120, elem_id="grow")
    slider = gr.Slider(
        1,
        most,
        value=FIRST_STAGE,
        step=1,
        label=words("length_slider", "en"),
        buttons=[],
        elem_id="length-slider",
    )
    stops = gr.HTML(elem_id="stops", js_on_load=_STOPS_JS)
    sentence = gr.HTML(elem_id="sentence")
    with gr.Row(elem_classes="split"):
        with gr.Column(scale=4, min_width=320):
            metric = gr.Radio(
                _metric_choices("en"),
                value="chrf",
                label=words("length_metric", "en"),
                container=False,
                elem_id="metric",
            )
            plot = gr.HTML(elem_id="plot")
        with gr.Column(scale=6, min_width=320):
            answers = gr.HTML(elem_id="stage-cards")
    measured = gr.HTML(_measured(service, "en"))
    how = gr.HTML(_how(service, "en"))

    def draw_stage(passage_id: str, stage: float, chosen: str) -> Iterator[tuple[str, str, str]]:
        yield from stage_of(service, passage_id, stage, chosen)

    def draw_path(passage_id: str, shown_metric: str, chosen: str) -> Iterator[str]:
        yield from path_of(service, passage_id, shown_metric, chosen)

    stage_event: dict[str, Any] = {
        "fn": draw_stage,
        "inputs": [passage, slider, language],
        "outputs": [stops, sentence, answers],
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
        **MODEL_EVENT,
    }
    path_event = {
        **stage_event,
        "fn": draw_path,
        "inputs": [passage, metric, language],
        "outputs": plot,
    }
    gr.on([slider.change, passage.input], **stage_event)
    gr.on([passage.input, metric.input], **path_event)
    grow.click(None, js="() => window.seqviz.grow()")

    def length(passage: str, stage: int) -> dict[str, Any]:
        """Translate one stage of a growing passage with all four models and score it.

        Args:
            passage: its id, such as "lost-keys".
            stage: from 1, the shortest.
        Returns:
            `passage`, `stage`, `words`, `english`, `reference`, and `models`: for each model `text`,
            `sentence_bleu`, `sentence_chrf` (0 to 100).
        """
        return answer(service, passage, stage)

    gr.api(length, api_name="length", **MODEL_EVENT)

    def texts(chosen: str) -> list[Any]:
        return [
            _lead(chosen),
            gr.Dropdown(_passage_choices(passages, chosen), label=words("length_passage", chosen)),
            gr.Button(words("length_grow", chosen)),
            gr.Slider(label=words("length_slider", chosen)),
            gr.Radio(_metric_choices(chosen), label=words("length_metric", chosen)),
            _measured(service, chosen),
            _how(service, chosen),
        ]

    return Tab(
        components=[lead, passage, grow, slider, metric, measured, how],
        texts=texts,
        show=[stage_event, path_event],
    )


# ---------------------------------------------------------------------------------------------
# One stage


def stage_of(
    service: Service, passage_id: str, stage: float, language: str
) -> Iterator[tuple[str, str, str]]:
    """Stops, texts and cards of a stage; the cards fill as the models finish."""
    passage = service.passage(passage_id)
    index = min(max(int(stage), 1), len(passage["stages"])) - 1
    stops, sentence = _stops(passage, index, language), _sentence(passage, index, language)
    known = {name: service.known_scores(name, passage_id)[index] for name in MODELS}
    shown = {
        name: _stage_card(name, language, scored)
        if scored
        else _stage_card(name, language, None, _waiting(service, name, language))
        for name, scored in known.items()
    }
    if not all(known.values()):
        yield stops, sentence, _grid(shown)
    for name, scored in known.items():
        if scored is None:
            try:
                shown[name] = _stage_card(name, language, service.scored(name, passage_id, index))
            except (RuntimeError, ValueError) as error:  # shown in the card as what it says
                shown[name] = _stage_card(name, language, None, cards.problem(str(error)))
            yield stops, sentence, _grid(shown)
    if all(known.values()):
        yield stops, sentence, _grid(shown)


def answer(service: Service, passage_id: Any, stage: Any) -> dict[str, Any]:
    try:
        passage = service.passage(passage_id)
    except KeyError as error:
        raise gr.Error(error.args[0], print_exception=False) from error
    count = len(passage["stages"])
    if isinstance(stage, bool) or not isinstance(stage, int) or not 1 <= stage <= count:
        raise gr.Error(
            f"expected stage to be a whole number from 1 to {count}, got {stage!r:.40}",
            print_exception=False,
        )
    texts = passage["stages"][stage - 1]
    answers = {}
    for name in MODELS:
        try:
            scored = service.scored(name, passage_id, stage - 1)
        except RuntimeError as error:
            raise gr.Error(str(error), print_exception=False) from error
        answers[name] = {
            "text": scored.translation.text,
            "sentence_bleu": round(scored.bleu, 2),
            "sentence_chrf": round(scored.chrf, 2),
        }
    return {
        "passage": passage_id,
        "stage": stage,
        "words": _count(texts["english"]),
        "english": texts["english"],
        "reference": texts["french"],
        "models": answers,
    }


def new_words(before: str, after: str) -> list[tuple[str, bool]]:
    """Words of `after`, and whether each is new against `before` (punctuation does not count)."""
    old = [word.strip(".,?!;:").lower() for word in before.split()]
    grown = after.split()
    plain = [word.strip(".,?!;:").lower() for word in grown]
    kept: set[int] = set()
    for block in SequenceMatcher(None, old, plain, autojunk=False).get_matching_blocks():
        kept.update(range(block.b, block.b + block.size))
    return [(word, index not in kept) for index, word in enumerate(grown)]


def _sentence(passage: dict[str, Any], index: int, language: str) -> str:
    texts = passage["stages"][index]
    before = passage["stages"][index - 1]["english"] if index else texts["english"]
    runs = []
    for new, group in groupby(new_words(before, texts["english"]), key=lambda pair: pair[1]):
        run = escape(" ".join(word for word, _ in group))
        runs.append(f"<mark>{run}</mark>" if new else run)
    count = words("length_english", language, number=_count(texts["english"]))
    said = f" {words('length_new', language)}" if index else ""
    gloss = ""
    if language == "zh":
        gloss = (
            f"<h2>{escape(words('length_gloss', language))}</h2>"
            f'<p lang="zh-CN">{escape(texts["chinese"])}</p>'
        )
    return (
        '<div class="texts"><div>'
        f'<h2>{escape(count)}<span class="aside">{escape(said)}</span></h2>'
        f'<p lang="en" translate="no">{" ".join(runs)}</p></div><div>{gloss}'
        f"<h2>{escape(words('length_reference', language))}</h2>"
        f'<p lang="fr" translate="no">{escape(cards.french(texts["french"]))}</p></div></div>'
    )


def _stops(passage: dict[str, Any], index: int, language: str) -> str:
    """Word counts under the stops of the slider, and where the plot's marker stands."""
    counts = [_count(stage["english"]) for stage in passage["stages"]]
    marks = "".join(
        f'<span class="{"here" if number == index else ""}">{count}</span>'
        for number, count in enumerate(counts)
    )
    said = words("length_words", language, number=counts[index])
    at = curves.x_of(counts[index], counts[0], counts[-1])
    return (
        f"<style>#plot {{ --at: {at:.1f}px }}</style>"
        f'<div class="stops" data-said="{escape(said)}" aria-hidden="true">{marks}</div>'
    )


def _stage_card(name: str, language: str, scored: Scored | None, body: str = "") -> str:
    scores, bar = "", ""
    if scored:
        body = cards.target([scored.translation], language) + cards.notes(
            [scored.translation], language
        )
        scores = " · ".join(
            f"{escape(words(f'length_{metric}', language))} <b>{value:.0f}</b>"
            for metric, value in (("chrf", scored.chrf), ("bleu", scored.bleu))
        )
        bar = (
            f'<span class="bar" aria-hidden="true"><i style="width:{scored.chrf:.0f}%"></i></span>'
        )
    return (
        f'<section class="card stage" data-model="{name}"{"" if body else " aria-busy=true"}>'
        f"<header><h2>{curves.key(name)}{escape(words(f'model_{name}', language))}</h2>"
        f'<span class="small">{scores}</span></header>{bar}{body}</section>'
    )


def _waiting(service: Service, name: str, language: str) -> str:
    said = words("card_working" if service.loaded(name) else "card_loading", language)
    return f'<p class="waiting">{escape(said)}<span class="dots" aria-hidden="true"></span></p>'


def _grid(shown: dict[str, str]) -> str:
    return f'<div class="stage-cards">{"".join(shown.values())}</div>'


# ---------------------------------------------------------------------------------------------
# The path over all stages


def path_of(service: Service, passage_id: str, metric: str, language: str) -> Iterator[str]:
    """The curves of a passage; first what is known, then model by model what is missing."""
    metric = metric if metric in METRICS else METRICS[0]
    missing = [name for name in MODELS if None in service.known_scores(name, passage_id)]
    if missing:
        yield _plot(service, passage_id, metric, language, filling=True)
    for name in missing:
        with suppress(RuntimeError):  # a model that cannot be loaded says so in its card
            service.score_path(name, passage_id)
        if name != missing[-1]:
            yield _plot(service, passage_id, metric, language, filling=True)
    yield _plot(service, passage_id, metric, language)


def _plot(
    service: Service, passage_id: str, metric: str, language: str, filling: bool = False
) -> str:
    passage = service.passage(passage_id)
    counts = [_count(stage["english"]) for stage in passage["stages"]]
    points = {
        name: [
            (float(count), getattr(scored, metric))
            for count, scored in zip(counts, service.known_scores(name, passage_id), strict=True)
            if scored
        ]
        for name in MODELS
    }
    metric_name = words(f"length_{metric}", language)
    said = []
    for name, curve in points.items():
        model = words(f"model_{name}", language)
        values = [
            words("length_plot_alt_value", language, score=f"{score:.0f}", words=f"{count:.0f}")
            for count, score in (curve[:1] + curve[-1:] if len(curve) > 1 else curve)
        ]
        said.append(
            words("length_plot_alt_model", language, model=model, values=", ".join(values))
            if values
            else words("length_plot_alt_none", language, model=model)
        )
    picture = curves.curves(
        points,
        ticks=counts,
        axis=words("length_axis", language),
        alt=words("length_plot_alt", language, metric=metric_name, models="; ".join(said)),
        marker=True,
    )
    note = words("length_filling", language) if filling else ""
    return (
        f"<figure><figcaption>{escape(words('length_plot', language, metric=metric_name))}</figcaption>"
        f'{picture}{_legend(language)}<p class="small" role="status">{escape(note)}</p></figure>'
    )


def _legend(language: str) -> str:
    items = "".join(
        f"<li>{curves.key(name)}{escape(words(f'model_{name}', language))}</li>" for name in MODELS
    )
    return f'<ul class="legend-models">{items}</ul>'


# ---------------------------------------------------------------------------------------------
# The whole test set


def _measured(service: Service, language: str) -> str:
    """The measured curve of the committed report, or that there is none yet."""
    title = f"<h2>{escape(words('length_measured', language))}</h2>"
    try:
        report = service.report("length")
        if report is None:
            said = words("length_measured_none", language)
            return f'<section class="measured">{title}<p>{escape(said)}</p></section>'
        natural = report["curves"]["natural"]
        buckets = {name: natural[name]["buckets"] for name in MODELS}
        first = buckets[MODELS[0]]
        points = {
            name: [
                ((bucket["low"] + bucket["high"]) / 2, float(bucket["bleu"])) for bucket in found
            ]
            for name, found in buckets.items()
        }
        bands = {
            name: [
                (
                    (bucket["low"] + bucket["high"]) / 2,
                    float(bucket["bleu_low"]),
                    float(bucket["bleu_high"]),
                )
                for bucket in found
            ]
            for name, found in buckets.items()
        }
        said = words(
            "length_measured_text",
            language,
            number=f"{sum(bucket['n'] for bucket in first):,}",
            low=first[0]["low"],
            high=first[-1]["high"],
        )
        ticks = [round((bucket["low"] + bucket["high"]) / 2) for bucket in first]
    except (KeyError, IndexError, TypeError, ValueError):
        said = words("length_measured_format", language)
        return f'<section class="measured">{title}<p>{escape(said)}</p></section>'
    picture = curves.curves(
        points, ticks=ticks, axis=words("length_axis", language), alt=said, bands=bands
    )
    return (
        f'<section class="measured">{title}<figure><figcaption>{escape(said)}</figcaption>'
        f"{picture}{_legend(language)}</figure></section>"
    )


def _how(service: Service, language: str) -> str:
    text = words(
        "length_how_text",
        language,
        stages=max(len(passage["stages"]) for passage in service.passages()),
        bleu=BLEU_SETTINGS,
        chrf=CHRF_SETTINGS,
        version=version("sacrebleu"),
    )
    return (
        f"<details><summary>{escape(words('length_how', language))}</summary>"
        f"<p>{escape(text)}</p></details>"
    )


def _lead(language: str) -> str:
    return f'<p class="lead">{escape(words("length_lead", language))}</p>'


def _passage_choices(passages: list[dict[str, Any]], language: str) -> list[tuple[str, str]]:
    return [(passage["title"][language], passage["id"]) for passage in passages]


def _metric_choices(language: str) -> list[tuple[str, str]]:
    return [(words(f"length_{metric}", language), metric) for metric in METRICS]


def _count(text: str) -> int:
    """Length of a sentence: whitespace words of the English."""
    return len(text.split())
