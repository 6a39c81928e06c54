"""The everyday texts that open the page: what each model writes at every stage, and which text comes first.

A text grows by one sentence a stage. Each sentence is also translated alone, which says what a model
knew before it could forget (`seqviz.coverage.memory`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqviz import handwritten
from seqviz.coverage import Lexicon, mark
from seqviz.report import Report, Trainings, weights_of
from seqviz.translating.loading import load

CHOOSER = "lstm"
"""The text opens the page of which this model finds most words at the first stage."""
READS = 0.6
"""A model that finds a smaller share of the first stage in every text never learned to read."""


def everyday_report(models: Path, trainings: Trainings) -> Report:
    """Outputs of the shipped models on the everyday texts.

    Args:
        models: folder of the model folders.
        trainings: ``training.json`` of the models; `CHOOSER` among them.
    """
    texts = handwritten.texts("everyday")
    translators = {name: load(models / name) for name in trainings}
    found = everyday(translators, texts, Lexicon.load())
    data = {"name": handwritten.NAME, "texts": len(texts), **handwritten.everyday_digest()}
    return Report.now("seqviz report", data, found, weights_of(trainings))


def everyday(
    translators: Mapping[str, Any], texts: Sequence[Mapping[str, Any]], lexicon: Lexicon
) -> dict[str, Any]:
    """What each model writes, and which text comes first.

    Args:
        translators: by name; `CHOOSER` among them.
        texts: ``id`` and ``sentences`` of ``english``.
    Returns:
        ``outputs``: by text and model ``alone`` and ``stages``, one greedy output a sentence and a stage.
        ``found``: by text, content words that `CHOOSER` found at the first stage, and words judged.
        ``mean``: their mean share over all texts, 0 to 1.
        ``reads``: in at least one text that share reaches `READS`.
        ``first``: the text with the most words found; of equal ones the first.
    """
    outputs: dict[str, dict[str, Any]] = {}
    for text in texts:
        asked = [sentence["english"] for sentence in text["sentences"]] + handwritten.stages_of(
            text
        )
        outputs[text["id"]] = {}
        for name, translator in translators.items():
            made = [one.text for one in translator.translate(asked, attention=False)]
            half = len(made) // 2
            outputs[text["id"]][name] = {"alone": made[:half], "stages": made[half:]}
    found = {
        text["id"]: _found(
            text["sentences"][0]["english"], outputs[text["id"]][CHOOSER]["stages"][0], lexicon
        )
        for text in texts
    }
    shares = [found / judged if judged else 0.0 for found, judged in found.values()]
    return {
        "chooser": CHOOSER,
        "found": {
            id_: {"found": found, "judged": judged} for id_, (found, judged) in found.items()
        },
        "mean": round(sum(shares) / len(shares), 4),
        "reads": any(share >= READS for share in shares),
        "first": max(found, key=lambda id_: found[id_][0]),
        "outputs": outputs,
    }


def _found(english: str, output: str, lexicon: Lexicon) -> tuple[int, int]:
    judged = [word.found for word in mark(english, output, lexicon) if word.found is not None]
    return sum(judged), len(judged)
