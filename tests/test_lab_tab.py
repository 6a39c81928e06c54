"""The Lab tab without a browser: the telephone game, what it says of reports, its endpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import pytest

from seqviz.drawing.inline import as_element
from seqviz.lab import EXPERIMENTS, claims
from seqviz.language import Language
from seqviz.translating.translator import Translator
from seqviz.ui import deck, experiments, findings, lab, telephone
from seqviz.ui.service import MODELS, Service

REPORTS = Path(__file__).resolve().parents[1] / "models" / "report"
PATH = ".//svg[@class='path']"
ODD = ("<script>alert(1)</script>", "${7*7}", "the", "the", "&", "'")


@pytest.fixture(scope="module")
def translators(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}


@pytest.fixture
def service(translators, tmp_path: Path) -> Service:
    (tmp_path / "report").mkdir()
    return Service(tmp_path, translators=translators)


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{markup.replace('&nbsp;', ' ')}</div>")


def last(service: Service, text: Any, language: str = "en") -> str:
    return list(lab.draw_game(service, text, language))[-1]


# ---------------------------------------------------------------------------------------------
# The telephone game


SHARES = [0.0, 0.125, 0.25, 0.375, 0.5, 1.0]
GOAL = (telephone.WIDTH / 2, telephone.BOX)


def ends(line: ElementTree.Element) -> tuple[tuple[float, float], tuple[float, float]]:
    x1, y1, x2, y2 = (float(line.get(key, "nan")) for key in ("x1", "y1", "x2", "y2"))
    return (x1, y1), (x2, y2)


def test_one_vector_gets_words_handed_on_each_as_strong_as_its_share():
    root = parsed(telephone.picture("rnn", ODD, SHARES, "en"))
    spans = root.findall(".//p[@class='passed']/span")
    assert [span.text for span in spans] == list(ODD)
    assert [span.get("style") for span in spans] == [
        f"--share:{100 * share:.1f}%" for share in SHARES
    ]
    faint = [max(telephone.FAINTEST, share) for share in SHARES]
    dots = root.findall(f"{PATH}/circle")
    assert [float(dot.get("fill-opacity", 0)) for dot in dots] == pytest.approx(faint, abs=6e-4)
    assert not root.findall(".//script")
    # From word to word, and from both ends of the sentence to the decoder.
    places = [(float(dot.get("cx", 0)), telephone.FOOT) for dot in dots]
    lines = [ends(line) for line in root.findall(f"{PATH}/line")]
    assert lines == [*zip(places, places[1:]), (places[0], GOAL), (places[-1], GOAL)]
    said = "".join(root.itertext())
    # The median of six shares lies between the third and the fourth.
    assert Language.of("en").say("lab.game_kept", percent="31\u00a0%") in said
    assert Language.of("en").say("lab.game_steps", steps=3) in said
    assert root.findall(PATH)[0].get("aria-label") == Language.of("en").say(
        "lab.game_alt",
        model="RNN",
        word=ODD[0],
        share="< 0.01\u00a0%",
    )


def test_a_decoder_that_looks_back_gets_each_word_in_one_step():
    root = parsed(telephone.picture("lstm-attention", ODD, None, "en"))
    spans = root.findall(".//p[@class='passed']/span")
    assert {span.get("style") for span in spans} == {"--share:100.0%"}
    dots = root.findall(f"{PATH}/circle")
    lines = [ends(line) for line in root.findall(f"{PATH}/line")]
    assert lines == [((float(dot.get("cx", 0)), telephone.FOOT), GOAL) for dot in dots]
    assert len(lines) == len(ODD)
    said = "".join(root.itertext())
    assert Language.of("en").say("lab.game_step") in said
    assert "\u00a0%" not in said  # nothing here was measured


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
        looks_back = name in ("lstm-attention", "transformer")
        shares = [1.0] * 6 if looks_back else found.shares("vector")
        assert [s.get("style") for s in spans] == [f"--share:{100 * x:.1f}%" for x in shares]
        steps = Language.of("en").say("lab.game_steps", steps=3)
        if looks_back:
            steps = Language.of("en").say("lab.game_step")
        assert section.findall("./header/p")[0].text == steps
    assert Language.of("zh").say("lab.game_step") in last(service, text, language="zh")


def test_texts_that_cannot_be_passed_on(service):
    assert Language.of("en").say("lab.game_empty") in last(service, "  \n ")
    assert Language.of("zh").say("lab.game_empty") in last(service, None, language="zh")
    assert Language.of("en").say("lab.game_long") in last(service, "word " * 101)
    assert "5,005" in last(service, "word " * 1001)
    chinese = last(service, "我弟弟不想出门。")
    assert Language.of("zh").say("translate.chinese") in chinese and "telephone" not in chinese
    for text in ("<script>alert(1)</script> ${7*7}", "a\x00\ud800b", "🙂"):
        assert "<script" not in last(service, text)


def test_a_model_that_is_missing_is_said(translators, tmp_path: Path):
    others = {name: made for name, made in translators.items() if name != "lstm"}
    service = Service(tmp_path, translators=others)
    sections = parsed(last(service, "The green boat.")).findall(".//section")
    broken = [s.get("data-model") for s in sections if not s.findall(".//p[@class='passed']")]
    assert broken == ["lstm"] and str(tmp_path) in "".join(sections[1].itertext())


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


def copied(service: Service, name: str) -> dict[str, Any]:
    """A committed report, put beside the models of the test."""
    file = REPORTS / f"{name}.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    write(service, name, found)
    return found


def numbers(markup: str) -> list[str]:
    return sorted(re.findall(r"\d[\d,.]*\d|\d", re.sub("<[^>]*>", " ", markup)))


def test_without_reports_nothing_is_claimed(service):
    for language in ("en", "zh"):
        for name in EXPERIMENTS:
            command = f"seqviz lab {name.replace('_', '-')}"
            missing = Language.of(language).say("lab.none", command=command)
            assert missing in experiments.front(service, name, language)
            assert missing in experiments.body(service, name, language)
            assert 'class="bars"' not in experiments.front(service, name, language)
        for made in (deck.deck(service, language), deck.table(service, language)):
            found = re.findall('data-verdict="([^"]*)"', made)
            assert sorted(set(found)) == ["does-not-hold", "not-measured"]
            assert found.count("not-measured") == len(claims.CLAIMS) - 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_card_says_the_same_numbers_in_both_languages(service, name: str):
    report = copied(service, name)
    english, chinese = (
        findings.markup(findings.finding(name, report, language)) for language in ("en", "zh")
    )
    assert numbers(english) == numbers(chinese)
    assert english.count("<li") == chinese.count("<li") >= 3
    for language in ("en", "zh"):
        front = parsed(experiments.front(service, name, language))
        opens = front.findall(".//button")
        assert [one.get("aria-expanded") for one in opens] == ["false"]
        assert [one.get("aria-controls") for one in opens] == [f"lab-body-{name}"]
        whole = experiments.card(service, name, language)
        assert whole.count(f'id="lab-body-{name}"') == 1
        assert experiments.body(service, name, language) in whole


def test_bars_follow_the_reports(service):
    def shown(name: str, report: dict[str, Any]) -> list[tuple[float, str]]:
        return [(bar.share, bar.said) for bar in findings.finding(name, report, "en").bars]

    recall = copied(service, "recall")
    for kind, right in (("rnn", 0.25), ("lstm", 0.005), ("attention", 1.0)):
        recall["alone"][kind]["accuracy"]["mean"][-1] = right
    assert shown("recall", recall) == [
        (0.25, "25 %"),
        (0.005, "0.5\u00a0%"),
        (1.0, "100 %"),
    ]
    cost = copied(service, "cost")
    doubled = cost["doubling"][str(cost["width_shown"])]
    for layer, ratio in (("lstm", 1.0), ("attention-fused", 1.5), ("attention-naive", 2.0)):
        doubled[layer]["seconds"] = ratio
    # The report's ratios are at one number of tokens: a sentence's own are twice as large.
    assert shown("cost", cost) == [(0.5, "2.0×"), (0.75, "3.0×"), (1.0, "4.0×")]
    paid = copied(service, "training_cost")
    level = next(one for one in paid["cost_to_equal_loss"] if one["final_loss_of"] == "lstm")
    for model, share in (("lstm", 1.0), ("lstm-attention", 0.5), ("transformer", 0.25)):
        level["models"][model]["times"] |= {"seconds": share, "tokens": share / 2}
    assert [share for share, _ in shown("training_cost", paid)] == [1.0, 0.5, 0.25]
    timed = findings.finding("training_cost", paid, "en").says
    level["models"]["lstm"]["times"]["seconds"] = None
    assert findings.finding("training_cost", paid, "en").says != timed
    assert shown("training_cost", paid)[2][1] == "12 %"


def test_a_damaged_card_says_so(service):
    for name in EXPERIMENTS:
        write(service, name, report())  # sound but for its numbers
        command = f"seqviz lab {name.replace('_', '-')}"
        damaged = Language.of("en").say("lab.damaged", command=command)
        assert damaged in experiments.front(service, name, "en")


def test_claims_turn_to_what_was_measured(service):
    assert sorted(deck.ORDER) == sorted(deck.LEADS_TO) == [one.id for one in claims.CLAIMS]
    reports = {name: copied(service, name) for name in ("recall", "gradient", "cost")}
    for language in ("en", "zh"):
        cards = parsed(deck.deck(service, language)).findall(".//article")
        assert len(cards) == len(claims.CLAIMS)
        for card, id_ in zip(cards, deck.ORDER, strict=True):
            claim = next(one for one in claims.CLAIMS if one.id == id_)
            button, back = card.findall("./button")[0], card.findall("./div")[0]
            assert button.get("aria-expanded") == "false"
            assert button.get("aria-controls") == back.get("id")
            assert claim.front[language] in "".join(button.itertext())
            link = back.findall(".//a")[0]
            assert link.get("data-leads") in (*EXPERIMENTS, "length")
            verdict = back.findall("./b")[0].get("data-verdict")
            if set(claim.needs) <= set(reports):
                found = claim.judge(reports)
                assert verdict == found.verdict
                assert found.why[language] in "".join(back.itertext())
            else:
                assert verdict == "not-measured"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_is_shown(service, language: str):
    write(service, "recall", report())
    said = experiments.body(service, "recall", language)
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
    said = experiments.body(service, "recall", language)
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
    said = experiments.body(service, "recall", "en")
    damaged = Language.of("en").say("lab.damaged", command="seqviz lab recall")
    missing = Language.of("en").say("lab.none", command="seqviz lab recall")
    assert damaged in said or (content == "null" and missing in said)
    assert 'class="bars"' not in experiments.front(service, "recall", "en")
    deck.table(service, "zh")


def test_older_weights_are_said(translators, tmp_path: Path):
    for name in MODELS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.json").write_text(
            json.dumps({"weights_sha256": f"new {name}"}), encoding="utf-8"
        )
    (tmp_path / "report").mkdir()
    service = Service(tmp_path, translators=translators)
    models = {name: {"weights_sha256": f"new {name}"} for name in MODELS}
    found = {**copied(service, "gradient"), "models": models}
    write(service, "gradient", found)
    assert Language.of("en").say("lab.older") not in experiments.front(service, "gradient", "en")
    models["lstm"] = {"weights_sha256": "old"}
    write(service, "gradient", found)
    assert Language.of("en").say("lab.older") in experiments.front(service, "gradient", "en")
    assert not re.search("holds-partly", deck.deck(service, "en"))


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
        for end in lab.ENDS:
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
