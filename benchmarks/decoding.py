"""Batched greedy decoding: sentences a second, against `model.generate` on the same batches.

    python benchmarks/decoding.py --out benchmarks/decoding.json

Texts are the project's own hand-written ones. Both sides use one thread and take turns. `generate` has one
limit for a batch, ours has one for each sentence: part of the gain is that endless repetition ends sooner.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from transformers.utils import logging

import seqviz
from seqviz.corpus import make_batch
from seqviz.report import write_json
from seqviz.version import hardware, versions

BATCH = 32


def texts() -> list[str]:
    """Hand-written English, from 5 to 75 words."""
    file = Path(seqviz.__file__).parent / "texts.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    stages = [stage["english"] for p in content["passages"] for stage in p["stages"]]
    return stages + [pair["english"] for pair in content["aligned"]]


def generate(translator: seqviz.Translator, batch: list[str]) -> None:
    """The same sentences by the library's own loop, up to the same limit."""
    config, tokenizer = translator.model.config, translator.tokenizer
    ids = tokenizer(batch, add_special_tokens=False).input_ids
    padded = make_batch(
        [(row, []) for row in ids],
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
    )
    with torch.inference_mode():
        translator.model.generate(
            input_ids=torch.from_numpy(padded.input_ids),
            attention_mask=torch.from_numpy(padded.attention_mask),
            num_beams=1,
            do_sample=False,
            max_new_tokens=2 * max(map(len, ids)) + 12,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    sentences = sorted(texts(), key=len)
    batches = [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]
    results = {}
    for name in seqviz.MODEL_NAMES:
        translator = seqviz.load(name)
        seconds: dict[str, list[float]] = {"translate": [], "generate": []}
        for _ in range(options.rounds):
            for batch in batches:
                started = time.perf_counter()
                translator.translate(batch)
                between = time.perf_counter()
                generate(translator, batch)
                seconds["translate"].append(between - started)
                seconds["generate"].append(time.perf_counter() - between)
        ratios = [b / a for a, b in zip(seconds["translate"], seconds["generate"], strict=True)]
        rate = options.rounds * len(sentences) / sum(seconds["translate"])
        results[name] = {
            "sentences_per_second": round(rate, 1),
            "times_as_fast_as_generate": round(statistics.median(ratios), 2),
        }
        print(f"{name:15} {rate:7.1f} sentences/s   {statistics.median(ratios):5.2f} × generate")
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/decoding.py",
                "data": {"name": "seqviz/texts.json", "sentences": len(sentences), "batch": BATCH},
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
