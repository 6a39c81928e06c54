"""The article's claims: every number from a report, every verdict by a rule."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from seqviz.lab import claims
from seqviz.lab.claims import CLAIMS, Claim

REPOSITORY = Path(__file__).resolve().parents[1]


def claim(id_: str) -> Claim:
    return next(one for one in CLAIMS if one.id == id_)


def kept(value: float, low: float, high: float) -> dict[str, Any]:
    return {"bleu_ratio": {"value": value, "low": low, "high": high}}


def recalled(half_way: float | None, last: float = 0.06) -> dict[str, Any]:
    return {"half_way": {"mean": half_way}, "accuracy": {"mean": [1.0, last]}}


def layer(shares: list[float], **more: Any) -> dict[str, Any]:
    return {"forward_backward": {"share_of_matmul_rate": shares, **more}, "path_length": [31, 2047]}


@pytest.fixture
def reports() -> dict[str, Any]:
    """As the project's commands write them, with made-up numbers and nothing that is not read."""
    effects = {
        "rnn": kept(0.21, 0.19, 0.24),
        "lstm": kept(0.69, 0.66, 0.72),
        "lstm-attention": kept(0.96, 0.95, 0.965),
        "transformer": kept(0.94, 0.93, 0.95),
    }
    natural = {name: kept(1.03, 0.99, 1.07) for name in effects}
    doubled = {
        "from": 1024,
        "to": 2048,
        "lstm": {"seconds": 1.02},
        "attention-naive": {"seconds": 1.8, "score_bytes": 2.0},
    }
    wide = {**doubled, "attention-naive": {"seconds": 1.25, "score_bytes": 2.0}}
    attention = layer([0.5, 0.31])
    attention["path_length"] = [1, 1]
    layers = {
        "lstm": layer([0.2, 0.11]),
        "attention-fused": attention,
        "attention-naive": attention,
    }
    curves = {"rnn": {"median": [1.0] * 100}}
    return {
        "length": {
            "command": "seqviz evaluate",
            "effects": {
                "same-content": {
                    "models": effects,
                    "short": {"low": 24, "high": 36},
                    "long": {"low": 50, "high": 71},
                },
                "natural": {"models": natural},
            },
        },
        "gradient": {
            "command": "seqviz lab gradient",
            "share": 0.01,
            "at_start": {"project": curves},
            "faded_at": {
                "project": {
                    "rnn": 12,
                    "lstm-forget-0": 13,
                    "lstm-forget-1": 24,
                    "lstm-forget-3": None,
                }
            },
        },
        "recall": {
            "command": "seqviz lab recall",
            "distances": [5, 320],
            "alone": {
                "rnn": recalled(17.4),
                "lstm": recalled(33),
                "lstm-forget-3": recalled(81),
            },
            "mixed": {
                "rnn": recalled(None, 1.0),
                "lstm": recalled(None, 0.99),
                "lstm-forget-3": recalled(None, 1.0),
            },
        },
        "cost": {
            "command": "seqviz lab cost",
            "hardware": "CPU of a test",
            "layers": {"64": layers},
            "doubling": {"64": doubled, "512": wide},
        },
        "training_cost": copy.deepcopy(TRAINING_COST),
    }


def paid(seconds: float | None, operations: float, at_most: bool = False) -> dict[str, Any]:
    return {"times": {"seconds": seconds, "operations": operations}, "at_most": at_most}


TRAINING_COST: dict[str, Any] = {
    "command": "seqviz lab training-cost",
    "cost_to_equal_loss": [
        {"final_loss_of": "lstm", "loss": 3.08, "models": {"transformer": paid(0.16, 0.2, True)}},
        {
            "final_loss_of": "lstm-attention",
            "loss": 2.28,
            "models": {"transformer": paid(0.5, 0.4)},
        },
    ],
}


def test_claims_are_complete():
    assert [one.id for one in CLAIMS] == list("abcdefghi")
    for one in CLAIMS:
        assert set(one.needs) <= set(claims.REPORTS)
        for text in (one.article, one.literature):
            assert set(text) == {"en", "zh"} and all(text.values())
            assert not re.search("[\u3000-\u30ff\u4e00-\u9fff]", text["en"])
            assert re.search("[\u4e00-\u9fff]", text["zh"])


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_without_its_reports_a_claim_is_not_measured(reports, one: Claim):
    if not one.needs:
        return
    for missing in one.needs:
        fewer = {name: report for name, report in reports.items() if name != missing}
        found = one.judge(fewer)
        assert found.verdict == "not-measured" and found.says == claims.NOT_MEASURED
        assert not found.commands
    assert not re.search(r"\d", "".join(one.judge({}).says.values()))


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_a_report_of_other_models_counts_as_none(reports, one: Claim):
    if one.needs:
        others = {name: {**reports[name], **EMPTY} for name in one.needs}
        assert one.judge(others) == claims.Judged("not-measured", claims.NOT_MEASURED)


EMPTY: dict[str, Any] = {
    "effects": {"same-content": {"models": {}}, "natural": {"models": {}}},
    "faded_at": {"project": {}},
    "alone": {},
    "mixed": {},
    "layers": {"64": {}},
    "cost_to_equal_loss": [],
}


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_both_languages_say_the_same_numbers(reports, one: Claim):
    says = one.judge(reports).says
    english, chinese = (sorted(re.findall(r"\d[\d,.]*\d|\d", says[key])) for key in ("en", "zh"))
    assert english == chinese and (english or not one.needs)
    assert "{" not in says["en"] + says["zh"]


def verdict(reports: dict[str, Any], id_: str) -> str:
    return claim(id_).judge(reports).verdict


def test_a_ratio_that_could_not_be_computed(reports):
    for models in reports["length"]["effects"].values():
        models["models"]["lstm"] = {"bleu_ratio": {"value": None, "low": None, "high": None}}
    assert verdict(reports, "e") == verdict(reports, "f") == "not-measured"


def test_a_quality_that_falls(reports):
    """e: the effect is there or not; that it was Sutskever's finding never holds."""
    assert verdict(reports, "e") == "holds-partly"
    assert (
        "69 % of its BLEU (66 to 72), rnn 21 % (19 to 24)" in claim("e").judge(reports).says["en"]
    )
    models = reports["length"]["effects"]["same-content"]["models"]
    models["lstm"] = kept(0.99, 0.97, 1.01)
    assert verdict(reports, "e") == "does-not-hold"
    reports["length"]["effects"]["natural"]["models"]["lstm"] = kept(0.9, 0.8, 0.95)
    assert verdict(reports, "e") == "holds-partly"


@pytest.mark.parametrize(
    "kept_by_attention, said",
    [
        ((0.99, 0.98, 1.01), "holds"),
        ((1.05, 1.02, 1.08), "holds"),
        ((0.96, 0.95, 0.965), "holds-partly"),
        ((0.85, 0.84, 0.86), "does-not-hold"),
        ((0.92, 0.7, 0.97), "does-not-hold"),  # no better than without
    ],
)
def test_a_quality_that_stays(reports, kept_by_attention, said: str):
    models = reports["length"]["effects"]["same-content"]["models"]
    models["lstm-attention"] = kept(*kept_by_attention)
    assert verdict(reports, "f") == said


@pytest.mark.parametrize(
    "alone, mixed, faded, said",
    [
        (17.4, 11, 12, "holds"),
        (17.4, None, 12, "holds-partly"),
        (170, None, 12, "holds-partly"),
        (170, 40, None, "does-not-hold"),
        (9.9, 20.1, 21, "does-not-hold"),
        (10, 20, 10, "holds"),
    ],
)
def test_how_long_an_rnn_remembers(reports, alone, mixed, faded, said: str):
    reports["recall"]["alone"]["rnn"] = recalled(alone)
    reports["recall"]["mixed"]["rnn"] = recalled(mixed, 1.0)
    reports["gradient"]["faded_at"]["project"]["rnn"] = faded
    assert verdict(reports, "c") == said
    says = claim("c").judge(reports).says["en"]
    assert f"distance of {alone:.0f} if" in says
    assert ("never" if faded is None else f"after {faded} steps") in says
    assert ("more than 320" in says) == (mixed is None)
    reports["recall"]["mixed"]["rnn"] = recalled(None, 0.1)
    assert "less than 5 if trained on short" in claim("c").judge(reports).says["en"]


def test_what_an_lstm_remembers_is_told_but_not_judged(reports):
    found = claim("d").judge(reports)
    assert found.verdict == "not-measured"
    assert (
        "33 (forget bias 1) and 81 (3)" in found.says["en"] and "more than 320" in found.says["en"]
    )


def test_how_busy_the_hardware_is(reports):
    found = claim("a").judge(reports)
    assert found.verdict == "not-measured"
    assert "LSTM 11 to 20 %" in found.says["en"] and "31 to 50 %" in found.says["en"]
    assert "CPU of a test" in found.says["en"]
    layers = reports["cost"]["layers"]["64"]
    for busy, said in (
        ((0.1, 0.8), "holds"),
        ((0.1, 0.5), "holds-partly"),
        ((0.6, 0.5), "does-not-hold"),
    ):
        for name, share in zip(("lstm", "attention-fused"), busy, strict=True):
            run = copy.deepcopy(layers[name])
            run["forward_backward"]["kernel_busy"] = [share, share]
            layers[name] = run
        assert verdict(reports, "a") == said


def test_what_twice_the_length_costs(reports):
    found = claim("g").judge(reports)
    assert found.verdict == "holds-partly"
    # A sentence's own ratio is twice that at the same number of tokens.
    assert "4.0 times the memory" in found.says["en"]
    assert "3.6 times as long at width 64 and 2.5 times at width 512" in found.says["en"]
    assert "2,047 steps against 1" in found.says["en"]
    reports["cost"]["doubling"]["512"]["attention-naive"]["seconds"] = 1.5
    assert verdict(reports, "g") == "holds"
    reports["cost"]["doubling"] = {"64": None}
    assert verdict(reports, "g") == "not-measured"


def test_how_much_faster_the_transformer_trains(reports):
    found = claim("h").judge(reports)
    assert found.verdict == "holds-partly"
    says = "at least 6.2 times as fast, with at least 5.0 times fewer operations, down to the final loss of lstm (3.08)"
    assert says in found.says["en"] and "2.0 times as fast, with 2.5" in found.says["en"]
    second = reports["training_cost"]["cost_to_equal_loss"][1]["models"]
    second["transformer"] = paid(0.125, 0.4)
    assert verdict(reports, "h") == "holds"
    # Faster, but less than the claim: 2 times.
    for first in (paid(1.25, 0.4), paid(0.5, 0.4), None):
        for level in reports["training_cost"]["cost_to_equal_loss"]:
            level["models"]["transformer"] = first
        assert verdict(reports, "h") == "does-not-hold"
    assert (
        "did not come down to the final loss of lstm (3.08)" in claim("h").judge(reports).says["en"]
    )
    second["transformer"] = paid(None, 0.4)
    assert verdict(reports, "h") == "not-measured"


def test_why_gradients_vanish(reports):
    assert verdict(reports, "i") == "holds-partly"
    says = claim("i").judge(reports).says["en"]
    assert "after 12 steps" in says and "not within 99 with 3" in says
    faded = reports["gradient"]["faded_at"]["project"]
    faded |= {"rnn": None, "lstm-forget-0": None}
    assert verdict(reports, "i") == "holds"


def test_the_table_of_the_readme(reports):
    table = claims.markdown(reports)
    rows = [row for row in table.splitlines() if row.startswith("| ")]
    assert len(rows) == 2 + len(CLAIMS) and all(row.count(" | ") == 3 for row in rows)
    assert "`seqviz lab recall` `seqviz lab gradient`" in table
    assert claims.markdown({}).count("| not measured here |") == len(CLAIMS) - 1


def test_the_committed_reports_are_read_as_they_are():
    """What is in the repository has the keys that the claims read."""
    found = {
        name: json.loads(file.read_text(encoding="utf-8"))
        for name in claims.REPORTS
        if (file := REPOSITORY / "models" / "report" / f"{name}.json").is_file()
    }
    assert found
    for one in CLAIMS:
        assert one.judge(found).verdict in claims.VERDICTS
