"""The report by length says what arithmetic says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from seqviz.coverage import Lexicon
from seqviz.drawing import figures
from seqviz.measuring import kept
from seqviz.measuring import plan as plans
from seqviz.measuring.length import check, length_report
from seqviz.measuring.outputs import Output, Outputs
from seqviz.plotting import length_curve


def _words(number: int, start: int) -> str:
    return " ".join(f"mot{start + i}" for i in range(number))


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> plans.Plan:
    """Sentences of 8, 25, 30, 35, 55, 70 words; then runs of four sentences of 15."""
    rows, at = [], 0
    for length in (8, 25, 30, 35, 55, 70):
        for _ in range(60 if length == 30 else 10):
            rows.append((f"d{at}", _words(length, at)))
            at += length
    for run in range(12):
        for _ in range(4):
            rows.append((f"run{run}", _words(15, at)))
            at += 15
    file = tmp_path_factory.mktemp("length") / "test.tsv"
    file.write_text("".join(f"{d}\t{s}\t{s}\n" for d, s in rows), encoding="utf-8")
    return plans.plan(file)


def _copying(plan: plans.Plan, words: int, nats: float = 1.0) -> Outputs:
    """A made-up model that copies the first words of the reference; its loss doubles after them."""
    return Outputs(
        translations={s: Output(" ".join(s.split()[:words])) for s in plan.sources()},
        losses={
            text: np.array([nats if i < words else 2 * nats for i in range(len(text[1].split()))])
            for text in plan.texts()
        },
        information={"weights_sha256": "0" * 64, "target_tokens": 1},
        length_histogram=[0, 1, 2],
    )


@pytest.fixture(scope="module")
def report(plan: plans.Plan) -> dict[str, Any]:
    outputs = {"all": _copying(plan, 1_000), "twenty": _copying(plan, 20)}
    return length_report(plan, outputs, number=200, prediction=_prediction()).content()


def _prediction() -> dict[str, Any]:
    def hypothesis(id_: str, first: str, second: str, expected: str, curve: str) -> dict[str, Any]:
        return {
            "id": id_,
            "curve": curve,
            "measure": "bleu_ratio",
            "first": first,
            "second": second,
            "expected": expected,
        }

    return {
        "written": "2026-11-30",
        "hypotheses": [
            hypothesis("right", "twenty", "all", "below", "same-content"),
            hypothesis("wrong", "twenty", "all", "above", "same-content"),
            hypothesis("turned", "all", "twenty", "above", "natural"),
            hypothesis("unknown", "all", "nobody", "above", "natural"),
            {**hypothesis("anchor", "twenty", "all", "below", "same-content"), "from": "13-18"},
            {**hypothesis("no-anchor", "twenty", "all", "below", "natural"), "from": "13-18"},
        ],
    }


def _bleu(copied: int, length: int) -> float:
    return 100.0 * math.exp(min(0.0, 1 - length / copied))


def test_a_model_that_copies_twenty_words_falls_as_arithmetic_says(report: dict[str, Any]) -> None:
    found = {b["low"]: b for b in report["curves"]["natural"]["twenty"]["buckets"]}
    assert found[1]["bleu"] == 100.0
    assert found[51]["bleu"] == pytest.approx(_bleu(20, 55), abs=0.01)
    assert found[61]["bleu"] == pytest.approx(_bleu(20, 70), abs=0.01)
    assert found[61]["brevity_penalty"] == pytest.approx(math.exp(1 - 70 / 20), abs=1e-4)
    assert found[61]["length_ratio"] == pytest.approx(20 / 70, abs=1e-4)
    assert found[51]["loss"] == pytest.approx((20 + 2 * 35) / 55, abs=1e-4)
    assert found[31]["bleu_low"] == found[31]["bleu"] == found[31]["bleu_high"]
    assert all(b["bleu"] == 100.0 for b in report["curves"]["natural"]["all"]["buckets"] if b["n"])


def test_buckets_hold_every_sentence_once_and_thin_ones_are_kept(
    report: dict[str, Any], plan: plans.Plan
) -> None:
    buckets = report["curves"]["natural"]["all"]["buckets"]
    counts = {(b["low"], b["high"]): b["n"] for b in buckets}
    assert counts == {
        (1, 10): 10,
        (11, 20): 48,
        (21, 30): 70,
        (31, 40): 10,
        (41, 50): 0,
        (51, 60): 10,
        (61, 80): 10,
        (81, 100): 0,
    }
    assert sum(counts.values()) == len(plan.pairs)
    assert [b["thin"] for b in buckets][:4] == [True, True, False, True]
    empty = buckets[4]
    for key in ("words", "bleu", "bleu_low", "chrf", "loss", "brevity_penalty", "repeated"):
        assert empty[key] is None, key
    overall = report["curves"]["natural"]["all"]["overall"]
    assert (overall["n"], overall["bleu"]) == (len(plan.pairs), 100.0)


def test_bucket_scores_are_sacrebleus(plan: plans.Plan) -> None:
    cut = Outputs(
        {s: Output(s[: len(s) * 2 // 3].replace("7", "1")) for s in plan.sources()}, {}, {}
    )
    found = length_report(plan, {"m": cut}, number=20).content()
    bucket = found["curves"]["natural"]["m"]["buckets"][2]
    chosen = [p for p in plan.pairs if 21 <= len(p.source.split()) <= 30]
    expected = BLEU().corpus_score(
        [cut.translations[p.source].text for p in chosen], [[p.target for p in chosen]]
    )
    assert bucket["bleu"] == pytest.approx(expected.score, abs=0.006)
    assert bucket["loss"] is None  # nothing was measured


def test_same_content_scores_the_same_text_at_every_point(report: dict[str, Any]) -> None:
    assert report["data"]["runs"] == 12
    buckets = report["curves"]["same-content"]["twenty"]["buckets"]
    assert [(b["parts"], b["low"], b["high"], b["words"]) for b in buckets] == [
        (4, 13, 18, 15.0),
        (2, 26, 35, 30.0),
        (1, 51, 70, 60.0),
    ]
    assert buckets[0]["bleu"] == 100.0
    assert buckets[2]["bleu"] == pytest.approx(_bleu(20, 60), abs=0.01)
    # Two halves: 20 words, a gap, 20 words. Seventeen 4-grams of each half and none across the gap.
    precision = (1 * 38 / 39 * 36 / 38 * 34 / 37) ** 0.25
    assert buckets[1]["bleu"] == pytest.approx(precision * _bleu(40, 60), abs=0.01)
    assert [b["loss"] for b in buckets] == [
        1.0,
        pytest.approx(4 / 3, abs=1e-4),
        pytest.approx(5 / 3, abs=1e-4),
    ]


def test_effects_and_their_differences(report: dict[str, Any]) -> None:
    effect = report["effects"]["same-content"]
    assert effect["short"] == {"low": 26, "high": 35, "n": 12}
    assert effect["long"] == {"low": 51, "high": 70, "n": 12}
    assert effect["models"]["all"]["bleu_ratio"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    twenty = effect["models"]["twenty"]
    assert twenty["loss_change"]["value"] == pytest.approx(1 / 3, abs=1e-4)
    short, long = (b["bleu"] for b in report["curves"]["same-content"]["twenty"]["buckets"][1:])
    assert twenty["bleu_drop"]["value"] == pytest.approx(short - long, abs=0.02)
    assert twenty["bleu_ratio"]["value"] == pytest.approx(long / short, abs=1e-3)
    (pair,) = effect["pairs"]
    assert (pair["first"], pair["second"]) == ("all", "twenty")
    assert pair["bleu_ratio"]["value"] == pytest.approx(1 - long / short, abs=1e-3)


def test_natural_effects_have_intervals_that_hold_the_value(report: dict[str, Any]) -> None:
    effect = report["effects"]["natural"]
    assert (effect["short"]["n"], effect["long"]["n"]) == (70, 20)
    drop = effect["models"]["twenty"]["bleu_drop"]
    assert drop["low"] < drop["value"] < drop["high"]


def test_every_point_is_told_as_a_share_of_the_first(report: dict[str, Any]) -> None:
    for curve in report["curves"].values():
        for model in curve.values():
            first = next(b for b in model["buckets"] if b["n"])
            for bucket in model["buckets"]:
                for score in ("bleu", "chrf"):
                    left = bucket[f"{score}_kept"]
                    if not bucket["n"]:
                        assert left is None
                        continue
                    assert left == pytest.approx(bucket[score] / first[score], abs=2e-4)
                    assert bucket[f"{score}_kept_low"] <= left <= bucket[f"{score}_kept_high"]
    assert [b["parts"] for b in report["curves"]["same-content"]["all"]["buckets"]] == [4, 2, 1]


def test_people_stand_beside_the_models(report: dict[str, Any]) -> None:
    """Words that are all different repeat nothing; the buckets are those of the models."""
    for curve, points in report["references"].items():
        buckets = report["curves"][curve]["all"]["buckets"]
        assert [(p["low"], p["high"], p["n"]) for p in points] == [
            (b["low"], b["high"], b["n"]) for b in buckets
        ]
        assert {p["repeated"] for p in points if p["n"]} == {0}


def test_anchors_begin_at_short_texts(report: dict[str, Any]) -> None:
    natural, runs = report["anchors"]["natural"], report["anchors"]["same-content"]
    assert list(natural) == ["1-10", "11-20"] and list(runs) == ["13-18"]
    found = runs["13-18"]["models"]["twenty"]
    assert found["bleu"] == pytest.approx([100, _bleu(20, 60)], abs=0.01)
    assert found["bleu_ratio"]["value"] == pytest.approx(_bleu(20, 60) / 100, abs=1e-4)
    assert found["loss_change"]["value"] == pytest.approx(40 / 60, abs=1e-4)
    assert found["chrf_ratio"]["low"] <= found["chrf_ratio"]["value"] < 1
    assert runs["13-18"]["models"]["all"]["chrf_ratio"]["value"] == 1
    answers = {h["id"]: h for h in report["prediction"]["hypotheses"]}
    assert answers["anchor"]["value"] == pytest.approx(_bleu(20, 60) / 100 - 1, abs=1e-4)
    assert (answers["anchor"]["verdict"], answers["no-anchor"]["verdict"]) == ("holds", "undecided")


def test_found_words_beyond_chance(tmp_path: Path) -> None:
    """One model copies; another writes what stands in another sentence of like length."""
    nouns = {"cat": "chat", "dog": "chien", "house": "maison", "water": "eau"}
    rows = [[n, m] for n, m in nouns.items() for _ in range(15)]
    lines = [f"d{i}\tThe {n} {i}.\tLe {m} {i}.\n" for i, (n, m) in enumerate(rows)]
    (tmp_path / "t.tsv").write_text("".join(lines), encoding="utf-8")
    plan = plans.plan(tmp_path / "t.tsv")
    copies = {p.source: Output(p.target) for p in plan.pairs}
    turned = {p.source: Output(q.target) for p, q in zip(plan.pairs, plan.pairs[30:] + plan.pairs)}
    outputs = {"copies": Outputs(copies), "elsewhere": Outputs(turned)}
    report = length_report(plan, outputs, number=20, lexicon=Lexicon(nouns, {})).content()
    first = {n: m["buckets"][0] for n, m in report["curves"]["natural"].items()}
    assert first["copies"]["found"] == first["copies"]["found_reference"] == 1
    assert first["copies"]["found_above"] == 1
    assert 0 < first["copies"]["found_chance"] < 1
    assert first["elsewhere"]["found"] < 0.5 and first["elsewhere"]["found_above"] < 0.5


def test_the_neighbour_is_of_another_text() -> None:
    assert kept.neighbours([5, 5, 9, 6], [0, 0, 0, 1]) == [3, 3, 3, 1]


def test_shares_and_circles_are_drawn(report: dict[str, Any]) -> None:
    for language, expected in (("en", "repeat themselves"), ("zh", "重复")):
        left, _ = figures.circles(report, language=language).axes
        assert expected in left.get_ylabel()
    axes, *_ = figures.kept(report).axes
    (line,) = [line for line in axes.get_lines() if line.get_label() == "twenty"]
    buckets = report["curves"]["natural"]["twenty"]["buckets"]
    thick = [100 * b["bleu_kept"] for b in buckets if b["n"] and not b["thin"]]
    assert thick and line.get_ydata().tolist() == pytest.approx(thick)
    with pytest.raises(ValueError, match="with bleu_kept of enough sentences, found none; measure"):
        figures.kept({"curves": {}})


def test_hypotheses_are_answered(report: dict[str, Any]) -> None:
    verdicts = {h["id"]: h["verdict"] for h in report["prediction"]["hypotheses"]}
    assert verdicts == {
        "right": "holds",
        "wrong": "contradicted",
        "turned": "holds",
        "unknown": "undecided",
        "anchor": "holds",
        "no-anchor": "undecided",
    }
    right = report["prediction"]["hypotheses"][0]
    assert right["low"] <= right["value"] <= right["high"] < 0


def test_an_interval_that_holds_zero_decides_nothing(plan: plans.Plan) -> None:
    same = {"all": _copying(plan, 30), "twenty": _copying(plan, 30)}
    found = length_report(plan, same, number=50, prediction=_prediction()).content()
    verdicts = {h["id"]: h["verdict"] for h in found["prediction"]["hypotheses"]}
    assert set(verdicts.values()) == {"undecided"}


def test_loss_by_position(report: dict[str, Any]) -> None:
    bins = report["positions"]["loss"]["natural"]["twenty"]
    assert [(b["low"], b["loss"]) for b in bins] == [
        (1, 1.0), (11, 1.0), (21, 2.0), (31, 2.0), (41, 2.0), (51, 2.0), (61, 2.0)
    ]  # fmt: skip
    assert [b["n"] for b in bins] == [200, 200, 200, 200, 200, 150, 100]
    whole, quarters = (report["positions"]["loss"][cut]["twenty"] for cut in ("1", "4"))
    assert [b["loss"] for b in whole] == [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert [b["loss"] for b in quarters] == [1.0] * 6
    assert [b["n"] for b in whole] == [b["n"] for b in quarters] == [120] * 6


def test_found_words_by_position(tmp_path: Path, models_folder: Path) -> None:
    # 60 words: five content words first, two in the middle, three at the end.
    source = "house water book school city " + "of " * 20 + "government bread " + "of " * 30
    source += "milk friend night"
    target = "maison eau livre école ville gouvernement pain lait ami nuit"
    file = tmp_path / "t.tsv"
    file.write_text(f"a\t{source}\t{target}\n" * 3, encoding="utf-8")
    plan = plans.plan(file)
    outputs = Outputs({source: Output("maison eau livre école pain")}, {}, {})
    found = length_report(plan, {"m": outputs}, number=20, lexicon=Lexicon.load()).content()
    by_position = found["positions"]["found"]["natural"]
    assert {b["found"] for b in by_position["reference"]} == {1.0}
    assert [(b["low"], b["n"], b["found"]) for b in by_position["m"]] == [
        (1, 15, 0.8),
        (21, 6, 0.5),
        (51, 9, 0.0),
    ]
    assert found["curves"]["natural"]["m"]["buckets"][5]["found"] == 0.5


def test_a_model_that_says_nothing(plan: plans.Plan) -> None:
    silent = Outputs({s: Output("", limit=True) for s in plan.sources()}, {}, {})
    found = length_report(plan, {"silent": silent, "all": _copying(plan, 99)}, number=20).content()
    bucket = found["curves"]["natural"]["silent"]["buckets"][0]
    assert (bucket["bleu"], bucket["chrf"], bucket["length_ratio"]) == (0.0, 0.0, 0.0)
    assert bucket["limit"] == 1.0
    ratio = found["effects"]["natural"]["models"]["silent"]["bleu_ratio"]
    assert ratio == {"value": None, "low": None, "high": None}


def test_a_bucket_of_one_sentence_has_no_interval(tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    rows = [(f"d{length}", _words(length, 100 * length)) for length in (8, 30, 55, 56)]
    file.write_text("".join(f"{d}\t{s}\t{s}\n" for d, s in rows), encoding="utf-8")
    few = plans.plan(file)
    found = length_report(few, {"twenty": _copying(few, 20)}, number=20).content()
    buckets = {b["low"]: b for b in found["curves"]["natural"]["twenty"]["buckets"]}
    for low, n in ((1, 1), (21, 1), (51, 2)):
        bucket = buckets[low]
        assert bucket["n"] == n and bucket["bleu"] > 0 and bucket["loss"] > 0
        bounds = [
            bucket[f"{m}_{side}"] for m in ("bleu", "chrf", "loss") for side in ("low", "high")
        ]
        assert (None in bounds) == (n == 1) and (set(bounds) == {None}) == (n == 1)
    effect = found["effects"]["natural"]["models"]["twenty"]["loss_change"]
    assert effect["value"] is not None and effect["low"] is effect["high"] is None
    length_curve(found)


def test_a_missing_translation_is_an_error(plan: plans.Plan) -> None:
    with pytest.raises(ValueError, match="expected a translation of 'mot0"):
        length_report(plan, {"m": Outputs({}, {}, {})}, number=20)


def test_the_report_is_plain_json_without_a_sentence(report: dict[str, Any]) -> None:
    text = json.dumps(report, allow_nan=False)
    assert "mot1 mot2" not in text
    assert check(json.loads(text)) == json.loads(text)
    assert report["length_histogram"] == [0, 1, 2]


@pytest.mark.parametrize("content", [None, [], {}, {"curves": {}}, "text"])
def test_something_else_is_no_report(content: Any) -> None:
    with pytest.raises(ValueError, match="expected a length report"):
        check(content)


def test_reports_of_other_schemas_or_with_holes_are_refused(report: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema 1, got schema 2; measure it anew"):
        check({**report, "schema": 2})
    for key in ("curves", "models", "effects"):
        with pytest.raises(ValueError, match=r"file: not a whole length report"):
            check({k: v for k, v in report.items() if k != key}, "file")
    broken = json.loads(json.dumps(report))
    broken["curves"]["natural"]["all"]["buckets"][0]["low"] = 11
    with pytest.raises(ValueError, match="bucket 11 to 10"):
        check(broken)
