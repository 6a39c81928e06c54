"""Greedy decoding, one sentence at a time and in batches, against other engines on the same weights.

    python benchmarks/decoding.py --out benchmarks/decoding.json

`generate` is the library's own loop over the same model; CTranslate2 reads the Transformer's folder, in fp32.
Texts are the project's own hand-written ones. All sides use the same threads, have the same limit of output
pieces and take turns, sentence by sentence. Ours gives attention as well, except where that is said; the others do
not. In batches `generate` has one limit for all, ours has one for each sentence: part of that gain is that endless
repetition ends sooner.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

import seqviz
from seqviz.corpus import make_batch
from seqviz.report import write_json
from seqviz.shipped import models_folder
from seqviz.translation import output_limit
from seqviz.version import hardware, versions

BATCH = 32


def written(*kinds: str) -> list[str]:
    """Hand-written English of these kinds, from 5 to 75 words."""
    file = Path(seqviz.__file__).parent / "texts.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    found = []
    for kind in kinds:
        texts = content[kind]
        stages = [stage for text in texts for stage in text.get("stages", [text])]
        found += [stage["english"] for stage in stages]
    return found


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
            max_new_tokens=output_limit(max(map(len, ids))),
        )


def ctranslate2(translator: seqviz.Translator, folder: str, threads: int) -> Callable[[str], None]:
    """The Transformer in CTranslate2, as a function of one sentence.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    import ctranslate2 as engine

    converted = Path(folder) / "converted"
    if not converted.exists():
        source = str(models_folder() / translator.name)
        engine.converters.TransformersConverter(source).convert(str(converted))
    other = engine.Translator(
        str(converted), device="cpu", compute_type="float32", intra_threads=threads, inter_threads=1
    )
    tokenizer = translator.tokenizer

    def translate(text: str) -> None:
        pieces = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
        other.translate_batch(
            [pieces],
            beam_size=1,
            max_decoding_length=output_limit(len(pieces) - 1),
            suppress_sequences=[["<unk>"]],
        )

    return translate


def take_turns(sides: dict[str, Callable[[Any], Any]], inputs: list, rounds: int) -> dict[str, Any]:
    """Seconds of each side for all inputs together, median over rounds; and of the first one's rivals, the
    median over inputs and rounds of how many times as long they took."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in sides}
    for _ in range(rounds + 1):  # the first is thrown away
        for name in sides:
            seconds[name].append([])
        for given in inputs:
            for name, side in sides.items():
                started = time.perf_counter()
                side(given)
                seconds[name][-1].append(time.perf_counter() - started)
    ours, *rivals = seconds
    found: dict[str, Any] = {
        f"{name}_ms": round(1000 * statistics.median(map(sum, runs[1:])) / len(inputs), 2)
        for name, runs in seconds.items()
    }
    for rival in rivals:
        ratios = [
            b / a
            for mine, theirs in zip(seconds[ours][1:], seconds[rival][1:], strict=True)
            for a, b in zip(mine, theirs, strict=True)
        ]
        found[f"{rival}_over_{ours}"] = round(statistics.median(ratios), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.set_verbosity_error()
    sentences = written("development", "examples")
    every = sorted(written("passages", "aligned"), key=len)
    batches = [every[i : i + BATCH] for i in range(0, len(every), BATCH)]
    results: dict[str, Any] = {"one_sentence": {}, "batches": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in seqviz.MODEL_NAMES:
            translator = seqviz.load(name)
            for threads in (1, 2):
                torch.set_num_threads(threads)
                sides: dict[str, Callable[[str], Any]] = {
                    "seqviz": translator.translate,
                    "without_attention": lambda text, t=translator: t.translate(
                        text, attention=False
                    ),
                    "generate": lambda text, t=translator: generate(t, [text]),
                }
                if name == "transformer":
                    try:
                        sides["ctranslate2"] = ctranslate2(translator, folder, threads)
                    except ModuleNotFoundError as error:
                        print(f"without CTranslate2: {error}")
                found = take_turns(sides, sentences, options.rounds)
                results["one_sentence"].setdefault(name, {})[f"{threads}_threads"] = found
                print(f"{name:15} one sentence, {threads} threads: {found}", flush=True)
            torch.set_num_threads(1)
            sides = {
                "seqviz": lambda batch, t=translator: t.translate(batch, attention=False),
                "generate": lambda batch, t=translator: generate(t, batch),
            }
            found = take_turns(sides, batches, options.rounds)
            results["batches"][name] = found
            print(f"{name:15} batches of {BATCH}, 1 thread: {found}", flush=True)
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/decoding.py",
                "data": {
                    "name": "seqviz/texts.json",
                    "one_sentence": len(sentences),
                    "batches": len(batches),
                    "batch": BATCH,
                },
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
