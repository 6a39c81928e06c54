"""The hand-written growing passages: sentence scores of every stage, and which passage is typical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqviz import handwritten, scores
from seqviz.measuring.plan import words_in
from seqviz.report import Report, Trainings, weights_of
from seqviz.translating.loading import load


def passages_report(models: Path, trainings: Trainings) -> Report:
    """Scores of the shipped models on the hand-written passages.

    Args:
        models: folder of the model folders.
        trainings: ``training.json`` of the models that are measured.
    """
    texts = handwritten.texts("passages")
    found = passages({name: load(models / name) for name in trainings}, texts)
    data = {"name": handwritten.NAME, "passages": len(texts)}
    return Report.now("seqviz report", data, found, weights_of(trainings))


def passages(translators: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sentence scores of every stage of the growing passages, and which passage is typical.

    The effect of a passage is how much more chrF `lstm` loses than `lstm-attention` from the stage
    nearest 30 words to the stage nearest 60. ``first`` has the median effect (of an even number the
    lower of the two in the middle), ``opposite`` the most negative one, or is null if none is negative.

    Args:
        translators: by name; `lstm` and `lstm-attention` among them.
        texts: hand-written passages: ``id``, ``stages`` of ``english, french``.
    """
    found: dict[str, Any] = {}
    for text in texts:
        stages = text["stages"]
        entry: dict[str, Any] = {"words": [words_in(stage["english"]) for stage in stages]}
        for name, translator in translators.items():
            made = translator.translate([stage["english"] for stage in stages], attention=False)
            both = [
                scores.sentence_scores(translation.text, stage["french"])
                for translation, stage in zip(made, stages, strict=True)
            ]
            entry[name] = {m: [round(each[m], 2) for each in both] for m in ("bleu", "chrf")}
        found[text["id"]] = entry

    def effect(entry: dict[str, Any]) -> float:
        short, long = (
            min(range(len(entry["words"])), key=lambda i: abs(entry["words"][i] - target))
            for target in (30, 60)
        )
        drop = {
            name: entry[name]["chrf"][short] - entry[name]["chrf"][long]
            for name in ("lstm", "lstm-attention")
        }
        return round(drop["lstm"] - drop["lstm-attention"], 2)

    effects = {id_: effect(entry) for id_, entry in found.items()}
    order = sorted(effects, key=lambda id_: (effects[id_], id_))
    return {
        "effects": effects,
        "first": order[(len(order) - 1) // 2],
        "opposite": order[0] if effects[order[0]] < 0 else None,
        "passages": found,
    }
