"""Made-up reports in the form of the real ones, for tests of the page. The numbers mean nothing."""

from __future__ import annotations

import math
from typing import Any

from seqviz import handwritten

MODELS = ("rnn", "lstm", "lstm-attention", "transformer")
BUCKETS = [(1, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, 60), (61, 80), (81, 100)]
SIZES = [3085, 4210, 2877, 1502, 701, 268, 133, 31]
_BEST = {"rnn": 6.0, "lstm": 11.0, "lstm-attention": 21.0, "transformer": 23.0}
_FALL = {"rnn": 0.030, "lstm": 0.022, "lstm-attention": 0.004, "transformer": 0.009}


def digest(name: str) -> str:
    return (name.encode().hex() * 8)[:64]


def _bucket(name: str, low: int, high: int, n: int, **more: Any) -> dict[str, Any]:
    words = (low + high) / 2 - 0.4
    bleu = _BEST[name] * math.exp(-_FALL[name] * words) * (0.8 if high <= 10 else 1.0)
    chrf = 18 + 1.6 * bleu
    wide = 28 / math.sqrt(n)
    return {
        "low": low,
        "high": high,
        "n": n,
        "words": round(words, 1),
        "thin": n < 50,
        **more,
        "bleu": round(bleu, 2),
        "bleu_low": round(max(0.0, bleu - wide), 2),
        "bleu_high": round(bleu + wide, 2),
        "chrf": round(chrf, 2),
        "chrf_low": round(chrf - wide, 2),
        "chrf_high": round(chrf + wide, 2),
        "brevity_penalty": 0.94,
        "length_ratio": 0.97,
        "loss": 3.1,
        "loss_low": 3.0,
        "loss_high": 3.2,
        "repeated": 0.08,
        "limit": 0.01,
    }


def _effects() -> dict[str, Any]:
    def around(value: float) -> dict[str, float]:
        return {"value": value, "low": round(value - 0.06, 4), "high": round(value + 0.06, 4)}

    models = {
        name: {
            "loss_change": around(fall * 10),
            "bleu_ratio": around(round(math.exp(-30 * fall), 4)),
            "bleu_drop": around(1.0),
            "bleu": [round(_BEST[name], 2), round(_BEST[name] * math.exp(-30 * fall), 2)],
            "chrf": [40.0, 35.0],
            "loss": [3.0, 3.2],
        }
        for name, fall in _FALL.items()
    }
    return {
        "short": {"low": 26, "high": 35, "n": 1800},
        "long": {"low": 51, "high": 70, "n": 350},
        "models": models,
        "pairs": [
            {
                "first": "lstm",
                "second": "lstm-attention",
                "loss_change": around(0.2),
                "bleu_ratio": around(-0.3),
                "bleu_drop": around(0.5),
            }
        ],
    }


def _hypothesis(
    measure: str, expected: str, curve: str, value: float, verdict: str
) -> dict[str, Any]:
    return {
        "id": "H",
        "curve": curve,
        "measure": measure,
        "first": "lstm",
        "second": "lstm-attention",
        "expected": expected,
        "says": "made up",
        "value": value,
        "low": round(value - 0.05, 3),
        "high": round(value + 0.05, 3),
        "verdict": verdict,
    }


def _positions(kind: str, start: float, slope: float) -> list[dict[str, Any]]:
    return [
        {
            "low": 10 * i + 1,
            "high": 10 * i + 10,
            "n": 900,
            kind: start + slope * i,
            f"{kind}_low": start + slope * i - 0.05,
            f"{kind}_high": start + slope * i + 0.05,
        }
        for i in range(7)
    ]


def length_report() -> dict[str, Any]:
    """In the form of ``models/report/length.json``."""
    natural = {
        name: {
            "buckets": [
                _bucket(name, low, high, n) for (low, high), n in zip(BUCKETS, SIZES, strict=True)
            ]
        }
        for name in MODELS
    }
    same = {
        name: {
            "buckets": [
                _bucket(name, low, high, 412, parts=parts)
                for parts, low, high in ((4, 13, 18), (2, 26, 35), (1, 51, 70))
            ]
        }
        for name in MODELS
    }
    return {
        "schema": 1,
        "command": "seqviz evaluate --data test.tsv.xz --out models/report/length.json",
        "data": {"name": "test.tsv.xz", "sha256": "0" * 64, "pairs": sum(SIZES)},
        "created": "2026-12-01T10:00:00+00:00",
        "hardware": "made up",
        "versions": {},
        "resamples": 1000,
        "num_beams": 1,
        "signatures": {"bleu": "nrefs:1|tok:13a", "chrf": "nrefs:1|nc:6"},
        "models": {
            name: {"weights_sha256": digest(name), "target_tokens": 20_000_000} for name in MODELS
        },
        "length_histogram": [0] + [round(9000 * n * math.exp(-n / 14) / 14) for n in range(1, 101)],
        "curves": {"natural": natural, "same-content": same},
        "effects": {"natural": _effects(), "same-content": _effects()},
        "prediction": {
            "sha256": "0" * 64,
            "written": "2026-11-30",
            "hypotheses": [
                _hypothesis("loss_change", "above", "same-content", 0.2, "holds"),
                _hypothesis("bleu_ratio", "below", "natural", 0.2, "contradicted"),
                _hypothesis("bleu_ratio", "below", "same-content", 0.01, "undecided"),
            ],
        },
        "positions": {
            "loss": {"natural": {name: _positions("loss", 3.0, 0.1) for name in MODELS}},
            "found": {
                "natural": {
                    "reference": _positions("found", 0.9, 0.0),
                    **{name: _positions("found", 0.7, -0.08) for name in MODELS},
                }
            },
        },
    }


def everyday_report() -> dict[str, Any]:
    """In the form of ``models/report/everyday.json``; every output is the French written by hand, but for
    the RNN's, which says nothing, and the LSTM's, which stops after the second sentence."""
    texts = handwritten.texts("everyday")
    outputs: dict[str, Any] = {}
    for text in texts:
        alone = [sentence["french"] for sentence in text["sentences"]]
        stages = handwritten.stages_of(text, "french")
        outputs[text["id"]] = {name: {"alone": alone, "stages": stages} for name in MODELS} | {
            "rnn": {"alone": [""] * len(alone), "stages": [""] * len(alone)},
            "lstm": {"alone": alone, "stages": stages[:2] + stages[1:2] * (len(alone) - 2)},
        }
    return {
        "schema": 1,
        "data": handwritten.everyday_digest(),
        "models": length_report()["models"],
        "chooser": "lstm",
        "found": {text["id"]: {"found": 2, "judged": 3} for text in texts},
        "mean": 0.6667,
        "reads": True,
        "first": "snow",
        "outputs": outputs,
    }
