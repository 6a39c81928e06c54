"""The Lab tab without a browser: the telephone game, what it says of reports, its endpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import numpy as np
import pytest

from seqviz.drawing.inline import as_element
from seqviz.lab.gradient import Reach
from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import experiments, lab, story, telephone
from seqviz.ui.service import MODELS, Service
from seqviz.ui.translate import is_own

PATH = ".//svg[@class='path']"
ODD = ("<script>alert(1)</script>", "${7*7}", "the", "the", "&", "'")


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}


@pytest.fixture
def service(translators, tmp_path: Path) -> Service:
    (tmp_path / "report").mkdir()
    return Service(tmp_path, translators=translators)


def reached(source: tuple[str, ...], forward: list[float]) -> Reach:
    norms = np.array(forward)
    return Reach("rnn", source, norms, norms[::-1], norms, (1.0, 1.0, 1.0))


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{markup.replace('&nbsp;', ' ')}</div>")


def last(service: Service, text: Any, end: str = "forward", language: str = "en") -> str:
    return list(lab.draw_game(service, text, end, language))[-1]


# ---------------------------------------------------------------------------------------------
# The telephone game


@pytest.mark.parametrize("name", MODELS)
def test_a_word_is_as_strong_as_its_share(name: str):
    root = parsed(telephone.picture(name, reached(ODD, [0.0, 1, 2, 3, 4, 8]), "forward", "en"))
    shares = [0, 12.5, 25, 37.5, 50, 100]
    spans = root.findall(".//p[@class='passed']/span")
    assert [span.text for span in spans] == list(ODD)
    assert [span.get("style") for span in spans] == [f"--share:{share:.1f}%" for share in shares]
    joined = root.findall(f"{PATH}/{'line' if name != 'transformer' else 'path'}")
    assert len(joined) == len(ODD)
    faint = [max(telephone.FAINTEST, share / 100) for share in shares]
    assert [float(one.get("stroke-opacity", 0)) for one in joined] == pytest.approx(faint, abs=6e-4)
    assert not root.findall(".//script")
    # The first third is two words: (0 + 1/8) / 2.
    assert "first 2 words" in "".join(root.itertext()) and "6.2\u00a0%" in "".join(root.itertext())


@pytest.mark.parametrize("end", telephone.ENDS)
def test_the_path_ends_where_the_reading_ends(end: str):
    found = reached(("a", "b", "c"), [1.0, 2.0, 4.0])
    root = parsed(telephone.picture("rnn", found, end, "en"))
    dots = [float(dot.get("cx", 0)) for dot in root.findall(f"{PATH}/circle")]
    goal = float(root.findall(f"{PATH}/rect")[0].get("x", 0))
    assert dots == sorted(dots)  # as the words stand
    assert goal > dots[-1] if end == "forward" else goal < dots[0]
    # The last word read is the one joined to the end.
    lines = [(float(x.get("x1", 0)), float(x.get("x2", 0))) for x in root.findall(f"{PATH}/line")]
    read_last = lines[-1] if end == "forward" else lines[0]
    assert abs(read_last[1] - (goal + 6)) < 0.11
    assert all((stop > start) == (end == "forward") for start, stop in lines)
    # Read backward the first word read is "c"; its share at that end is 1/4, as `reached` mirrors.
    assert root.findall(PATH)[0].get("aria-label") == Language.of("en").say(
        "lab.game_alt",
        model="RNN",
        first="a" if end == "forward" else "c",
        share="25\u00a0%",
    )


@pytest.mark.parametrize(
    "share, said",
    [
        (1, "100"),
        (0.3749, "37"),
        (0.0995, "10"),
        (0.0042, "0.42"),
        (1e-4, "0.01"),
        (1e-6, "< 0.01"),
    ],
)
def test_percentages(share: float, said: str):
    assert telephone.percent(share, "en") == f"{said}\u00a0%"
    assert telephone.percent(share, "zh") == f"{said}%"


def test_the_game_of_a_sentence(service):
    text = "The teacher painted the green boat."
    drawn = last(service, text)
    root = parsed(drawn)
    sections = root.findall(".//section")
    assert [section.get("data-model") for section in sections] == list(MODELS)
    for section, name in zip(sections, MODELS, strict=True):
        spans = section.findall(".//p[@class='passed']/span")
        found = service.reach(name, text)
        assert [span.text for span in spans] == list(found.words) == text.split()
        shares = [f"--share:{100 * share:.1f}%" for share in found.shares("forward")]
        assert [span.get("style") for span in spans] == shares
        steps = Language.of("en").say("lab.game_steps", steps=5)
        if name == "transformer":
            steps = Language.of("en").say("lab.game_step")
        assert section.findall("./header/p")[0].text == steps
    assert last(service, text, "backward") != drawn
    assert Language.of("zh").say("lab.game_step") in last(service, text, language="zh")


def test_texts_that_cannot_be_passed_on(service):
    assert Language.of("en").say("lab.game_empty") in last(service, "  \n ")
    assert Language.of("zh").say("lab.game_empty") in last(service, None, language="zh")
    assert Language.of("en").say("lab.game_long") in last(service, "word " * 101)
    assert "5,005" in last(service, "word " * 1001)
    chinese = last(service, "我弟弟不想出门。")
    assert Language.of("en").say("translate.language") in chinese and "telephone" in chinese
    for text in ("<script>alert(1)</script> ${7*7}", "a\x00\ud800b", "🙂"):
        assert "<script" not in last(service, text)


def test_a_model_that_is_missing_is_said(translators, tmp_path: Path):
    others = {name: made for name, made in translators.items() if name != "lstm"}
    service = Service(tmp_path, translators=others)
    sections = parsed(last(service, "The green boat.")).findall(".//section")
    broken = [s.get("data-model") for s in sections if not s.findall(".//p[@class='passed']")]
    assert broken == ["lstm"] and str(tmp_path) in "".join(sections[1].itertext())


def test_the_first_text_is_near_forty_words(service):
    text = lab.first_text(service)
    stages = [stage.english for stage in story.text_of(service).stages]
    assert text in stages and abs(len(text.split()) - lab.FIRST_WORDS) <= 4


def test_only_an_own_text_comes_along(service):
    assert is_own("My own sentence.") and not is_own(" ") and not is_own(None)
    assert not is_own(service.examples()[0]["english"])


# ---------------------------------------------------------------------------------------------
# Reports


def report(**more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "command": "seqviz lab recall --seeds 2",
        "hardware": "CPU of a <test>",
        "created": "2026-12-01T05:00:00+00:00",
        "says": {"en": "Half way at 17.5 steps.", "zh": "在 17.5 步处过半。"},
        **more,
    }


def write(service: Service, name: str, content: Any) -> None:
    file = service.folder / "report" / f"{name}.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def section(service: Service, name: str, language: str = "en") -> str:
    column = experiments.column(service, language)
    return re.findall(rf'<section class="experiment" id="lab-{name}">.*?</section>', column, re.S)[
        0
    ]


def test_without_reports_nothing_is_claimed(service):
    for language in ("en", "zh"):
        column = experiments.column(service, language)
        for name in experiments.EXPERIMENTS:
            command = f"seqviz lab {name.replace('_', '-')}"
            assert Language.of(language).say("lab.none", command=command) in column
        table = experiments.table(service, language)
        assert Language.of(language).say("lab.verdict_not-measured") in table
        assert not re.search(r"\d %|\d%", re.sub(r'<td data-label="[^"]*">', "|", column))


@pytest.mark.parametrize(
    ("above", "between", "below"),
    [
        (
            "Of 5 seeds. Half way after 17.5 steps in the one, after 40 in the other (et al. 2014 said so).",
            " ",
            "More. And more.",
        ),
        (
            "共 5 个种子。一个模型在 17.5 步之后降到满分与随机猜测的中点，另一个在 40 步之后。",
            "",
            "还有。最后。",
        ),
        ("One short sentence.", "", ""),
    ],
)
def test_above_the_figure_stands_a_sentence(above: str, between: str, below: str):
    """Or two, where the first is short and only begins."""
    assert experiments._answer(above + between + below) == (above, below)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_is_shown(service, language: str):
    write(service, "recall", report())
    said = section(service, "recall", language)
    assert report()["says"][language] in said
    assert "seqviz lab recall --seeds 2" in said and "2026-12-01" in said
    assert "CPU of a &lt;test&gt;" in said
    assert Language.of(language).say("lab.none", command="seqviz lab recall") not in said
    assert "<figure" not in said
    (service.folder / "report" / f"recall{'.zh' if language == 'zh' else ''}.svg").write_text(
        '<?xml?><svg width="1pt" height="2pt" viewBox="0 0 1 2"><g id="patch_1">'
        '<path style="fill: #ffffff"/></g><path id="m1" style="stroke: #0072b2"/></svg>',
        encoding="utf-8",
    )
    said = section(service, "recall", language)
    assert "var(--transformer, #0072b2)" in said and 'id="patch_1"' not in said
    assert 'width="1pt"' not in said and "#ffffff" not in said and 'id="m1"' in said


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        {"schema": 2},
        {**report(), "schema": 2},
        {k: v for k, v in report().items() if k != "says"},
        report(says={"en": "only"}),
        report(command=""),
    ],
)
def test_a_damaged_report_is_said_to_be_so(service, content: Any):
    write(service, "recall", content)
    said = section(service, "recall")
    damaged = Language.of("en").say("lab.damaged", command="seqviz lab recall")
    missing = Language.of("en").say("lab.none", command="seqviz lab recall")
    assert damaged in said or (content == "null" and missing in said)
    experiments.table(service, "zh")


def test_older_weights_are_said(translators, tmp_path: Path):
    for name in MODELS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.json").write_text(
            json.dumps({"weights_sha256": f"new {name}"}), encoding="utf-8"
        )
    (tmp_path / "report").mkdir()
    service = Service(tmp_path, translators=translators)
    models = {name: {"weights_sha256": f"new {name}"} for name in MODELS}
    write(service, "gradient", report(models=models))
    assert Language.of("en").say("lab.older") not in section(service, "gradient")
    models["lstm"] = {"weights_sha256": "old"}
    write(service, "gradient", report(models=models))
    assert Language.of("en").say("lab.older") in section(service, "gradient")


def test_content_of_a_report(service):
    write(service, "recall", report())
    assert experiments.content(service, "recall") == report()
    for name in ("../recall", "recall.json", "/etc/passwd", "", None, 5, ["recall"]):
        with pytest.raises(gr.Error, match="expected one of recall, got"):
            experiments.content(service, name)
    write(service, "cost", "{")
    with pytest.raises(gr.Error, match="damaged"):
        experiments.content(service, "cost")


def test_an_element_needs_an_svg():
    with pytest.raises(ValueError, match="expected an SVG file, got 'no picture'"):
        as_element("no picture")


# ---------------------------------------------------------------------------------------------
# The endpoint


def test_reach_endpoint(service):
    text = "The old sailor\nhas forgotten those letters."
    answer = lab.answer(service, text)
    assert tuple(answer) == MODELS
    for name, found in answer.items():
        assert found["words"] == text.split()
        for end in telephone.ENDS:
            exact = service.reach(name, " ".join(text.split())).shares(end)
            assert found[end] == pytest.approx(exact, abs=6e-5) and max(found[end]) == 1


@pytest.mark.parametrize(
    "text, said",
    [
        (5, "expected text, got int"),
        (None, "expected text, got NoneType"),
        ("", "at least one word"),
        ("word " * 101, "at most 100 words"),
        ("a" * 3_000_000, "3,000,000 characters"),
    ],
)
def test_reach_endpoint_refuses(service, text: Any, said: str):
    with pytest.raises(gr.Error, match=said):
        lab.answer(service, text)
