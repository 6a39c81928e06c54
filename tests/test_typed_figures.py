"""No measured figure is typed: a number on a page or in a text is filled in by code, or stands in the lists here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seqviz.language import LANGUAGES, Language

REPOSITORY = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"(?<![A-Za-z\d.,])\d+(?:[.,]\d+)*(?![A-Za-z\d])")
YEAR = re.compile(r"(19|20)\d\d")

ON_PAGES = {
    "README.md": ["3.11", "3.13", "100", "160", "2.0"],  # versions; when a text is cut; a licence
    "README.zh.md": ["3.11", "3.13", "100", "160", "2.0"],
    "docs/api.md": [],
    "docs/decoding.md": ["1"],
    "docs/deploying.md": ["128", "2,000"],  # room in the queue; what the load test asks for
    "docs/fine-tuning.md": [],
    "docs/interpretability.md": ["0"],
    "docs/lab.md": ["5", "320"],  # distances of an experiment
    "docs/measuring.md": ["95", "1"],  # kind of interval; a status
    "docs/reference.md": [],
    "docs/results.md": [],
    # Settings and their defaults; versions, a status, ISO 639-1, UTF-8, room on a disk.
    "docs/training.md": "1 3 3.11 8 30 100 130 200 639 0.8 2,000 20,000 500,000".split(),
    # A licence; counts of corpora that are not part of the project.
    "models/DATA.md": ["2.0", "46,955", "5"],
}
"""Which numbers stand typed on a page, besides years and what code fills in between markers."""

OF_OTHERS = re.compile(r"claims\.\w+\.(article|literature|front)")
"""Texts that quote what others say, figures included."""

IN_TEXTS = {
    "page.footer": ["2.0"],
    "translate.beams_4": ["4"],
    "translate.numbers_text": ["3"],  # the bound that the tests of the architectures hold
    "length.stage": ["1"],
    "length.told_same-content": [
        "51",
        "70",
    ],  # from here on to `breaks_loss`: buckets of lengths, kinds of intervals
    "length.told_interval": ["95", "50"],
    "length.told_bleu": ["26", "35", "51", "70"],
    "length.told_chrf": ["26", "35", "51", "70"],
    "length.told_low": ["0"],
    "length.effect_caption": ["26", "35", "51", "70", "95"],
    "length.positions_loss": ["51", "70"],
    "length.positions_found": ["51", "70"],
    "length.figure.breaks_loss_in_words": ["51", "70"],
    "length.figure.breaks_loss_in_characters": ["51", "70"],
    "length.figure.breaks_loss": ["51", "70"],
    "length.how_text": ["0", "100"],  # ends of a scale
    "attention.caution_saliency": ["1"],
    "attention.parts": ["100"],  # where a text is cut
    "attention.point_number": ["1", "6", "60"],  # range of a state; an example
    "lab.game_long": ["100"],
    "lab.game_step": ["1"],
    "lab.gradient.bar_lstm-forget-1": ["1"],  # settings of the experiments, and axes
    "lab.gradient.bar_lstm-forget-3": ["3"],
    "lab.gradient.start": ["0"],
    "lab.gradient.flat": ["0"],
    "lab.gradient.figure.of_first": ["0"],
    "lab.recall.kind_lstm-forget-3": ["3"],
    "lab.cost.figure.time_axis": ["1,000"],
    "lab.cost.figure.crossing": ["2"],
    "lab.cost.figure.note": ["2"],
    "lab.training_cost.figure.loss_by_operations_axis": ["10"],
    "lab.extrapolation.begin": ["1"],
    "lab.learning.figure.kind_lstm-forget-3": ["3"],
    "lab.learning.figure.recall_note": ["95"],
    "lab.learning.figure.extrapolation_parity": ["1"],
    "lab.learning.figure.extrapolation_note": ["95"],
    "claims.b.why": ["4", "46"],  # a citation
    "claims.d.measured": ["1", "3"],  # forget biases
    "claims.i.why": ["0", "1", "3"],
    "claims.i.measured": ["0", "1", "3"],
    "readme.measured": ["0", "100", "95"],
}


def typed(text: str) -> set[str]:
    """Numbers that a person typed: not in code, in addresses or in fields that code fills."""
    for left_out in (
        r"<!-- (\S+):begin -->.*?<!-- \1:end -->",
        r"\A---\n.*?\n---\n",
        r"```.*?```",
        r"`[^`]*`",
        r"\]\([^)]*\)",
        r"https?://\S+",
        r"\{[^}]*\}",
    ):
        text = re.sub(left_out, " ", text, flags=re.DOTALL)
    return {number for number in NUMBER.findall(text) if not YEAR.fullmatch(number)}


def pages() -> list[str]:
    found = [*REPOSITORY.glob("README*.md"), *(REPOSITORY / "docs").glob("*.md")]
    return [*sorted(str(page.relative_to(REPOSITORY)) for page in found), "models/DATA.md"]


def test_a_typed_figure_is_seen():
    assert typed("It keeps 69 % of 24.5 BLEU, with 2,000 texts.") == {"69", "24.5", "2,000"}
    assert typed("保住69%。") == {"69"}
    assert typed("Cho 2014, V100, fp16, `69`, [here](a/69), <https://a.b/69>, {share} %") == set()
    assert typed("<!-- a:begin -->\n69\n<!-- a:end -->\n```\n69\n```\n") == set()


@pytest.mark.parametrize("page", pages())
def test_pages(page: str):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert typed(text) <= set(ON_PAGES[page]), "let code fill it in, or say in the list what it is"


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts(language: str):
    texts = Language.of(language).texts
    found = {key: typed(text) - set(IN_TEXTS.get(key, ())) for key, text in texts.items()}
    assert {key: n for key, n in found.items() if n and not OF_OTHERS.fullmatch(key)} == {}
    assert set(IN_TEXTS) <= set(texts), "a text of the list is gone"
