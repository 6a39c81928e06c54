"""Intervals from cached counts, against scoring every resample with sacreBLEU anew.

python benchmarks/bootstrap.py --out benchmarks/bootstrap.json
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from sacrebleu.metrics import BLEU

from seqviz import scores
from seqviz.files import write_json
from seqviz.version import hardware, versions

SENTENCES, RESAMPLES, SLOW_RESAMPLES = 1_000, 1_000, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    draw = random.Random(1)
    words = [f"mot{i}" for i in range(500)]
    references = [" ".join(draw.choices(words, k=25)) for _ in range(SENTENCES)]
    hypotheses = [
        " ".join(w if draw.random() < 0.6 else draw.choice(words) for w in reference.split())
        for reference in references
    ]
    started = time.perf_counter()
    counts, _ = scores.sentence_counts(hypotheses, references)
    draws = scores.resamples(SENTENCES, RESAMPLES, (1,))
    fast = scores.resampled(scores.bleu, counts, draws)
    middle = time.perf_counter()
    for row in draws[:SLOW_RESAMPLES].astype(int):
        chosen = [i for i, times in enumerate(row) for _ in range(times)]
        BLEU().corpus_score([hypotheses[i] for i in chosen], [[references[i] for i in chosen]])
    slow = (time.perf_counter() - middle) / SLOW_RESAMPLES * RESAMPLES
    ratio = slow / (middle - started)
    print(
        f"{RESAMPLES} resamples of {SENTENCES} sentences: {ratio:.0f} × as fast ({len(fast)} scores)"
    )
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/bootstrap.py",
                "data": {"sentences": SENTENCES, "resamples": RESAMPLES},
                "versions": versions(),
                "hardware": hardware(),
                "results": {"times_as_fast_as_scoring_anew": round(ratio, 1)},
            },
        )


if __name__ == "__main__":
    main()
