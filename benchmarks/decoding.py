"""Greedy and beam search, one sentence at a time and a thousand, against other engines on the same weights.

    python benchmarks/decoding.py --out benchmarks/decoding.json

`generate` is the library's own loop over the same model; CTranslate2 reads the Transformer's folder, in fp32, on one thread.
Texts are the project's own hand-written ones, for the thousand over and over. All sides use the same threads, have
the same limit of output pieces and take turns, sentence by sentence, or 250 sentences by 250. Of one sentence ours
gives attention as well, except where that is said; the others do not. Of many, ours makes its own batches;
`generate` and CTranslate2 get batches of 32 of like length, which is near the best for both. `generate` has one
limit for a batch, ours has one for each sentence: part of that gain is that endless repetition ends sooner.
"""

from __future__ import annotations

import argparse
import itertools
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
from seqviz import handwritten
from seqviz.corpus import make_batch
from seqviz.files import write_json
from seqviz.shipped import models_folder
from seqviz.translating.inputs import output_limit
from seqviz.version import hardware, versions

BATCH, TURN, MANY = 32, 250, 1000
BEAMS = {"greedy": 1, "beam_4": 4}


def written(*kinds: str) -> list[str]:
    """Hand-written English of these kinds, from 5 to 75 words."""
    found = []
    for kind in kinds:
        stages = [stage for text in handwritten.texts(kind) for stage in text.get("stages", [text])]
        found += [stage["english"] for stage in stages]
    return found


def batches(texts: list[str]) -> list[list[str]]:
    ordered = sorted(texts, key=len)
    return [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]


def generate(translator: seqviz.Translator, texts: list[str], num_beams: int) -> None:
    """The same sentences by the library's own loop, up to the same limit."""
    config, tokenizer = translator.model.config, translator.tokenizer
    for batch in batches(texts):
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
                num_beams=num_beams,
                do_sample=False,
                max_new_tokens=output_limit(max(map(len, ids))),
            )


def ctranslate2(
    translator: seqviz.Translator, folder: str, threads: int
) -> Callable[[list[str], int], None]:
    """The Transformer in CTranslate2, as a function of texts and beams.

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

    def translate(texts: list[str], num_beams: int) -> None:
        for batch in batches(texts):
            pieces = [tokenizer.convert_ids_to_tokens(row) for row in tokenizer(batch).input_ids]
            other.translate_batch(
                pieces,
                beam_size=num_beams,
                max_decoding_length=output_limit(max(map(len, pieces)) - 1),
                suppress_sequences=[["<unk>"]],
            )

    return translate


def take_turns(
    sides: dict[str, Callable[[list[str]], Any]], turns: list[list[str]], rounds: int
) -> dict[str, Any]:
    """Milliseconds a turn of each side, median over rounds; and of the first one's rivals, the median over
    turns and rounds of how many times as long they took."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in sides}
    for side in sides.values():  # warm
        side(turns[0])
    for _ in range(rounds):
        for name in sides:
            seconds[name].append([])
        for given in turns:
            for name, side in sides.items():
                started = time.perf_counter()
                side(given)
                seconds[name][-1].append(time.perf_counter() - started)
    ours, *rivals = seconds
    found: dict[str, Any] = {
        f"{name}_ms": round(1000 * statistics.median(map(sum, runs)) / len(turns), 2)
        for name, runs in seconds.items()
    }
    for rival in rivals:
        ratios = [
            b / a
            for mine, theirs in zip(seconds[ours], seconds[rival], strict=True)
            for a, b in zip(mine, theirs, strict=True)
        ]
        found[f"{rival}_over_{ours}"] = round(statistics.median(ratios), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="of the single sentences")
    parser.add_argument("--many", type=int, default=MANY, help="sentences at once")
    parser.add_argument(
        "--model",
        action="append",
        choices=seqviz.MODEL_NAMES,
        help="measured anew; in --out the others stay",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.set_verbosity_error()
    sentences = written("development", "examples")
    every = list(itertools.islice(itertools.cycle(written("passages", "aligned")), options.many))
    turns = [every[i : i + TURN] for i in range(0, len(every), TURN)]
    results: dict[str, Any] = {"one_sentence": {}, "many": {}}
    if options.model and options.out and options.out.exists():
        results = json.loads(options.out.read_text(encoding="utf-8"))["results"]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.model or seqviz.MODEL_NAMES:
            translator = seqviz.load(name)

            def sides(
                threads: int, num_beams: int, attention: bool, translator: Any = translator
            ) -> dict[str, Callable[[list[str]], Any]]:
                def ours(texts: list[str], attention: bool = attention) -> None:
                    translator.translate(texts, num_beams=num_beams, attention=attention)

                found: dict[str, Callable[[list[str]], Any]] = {"seqviz": ours}
                if attention:
                    found["without_attention"] = lambda texts: ours(texts, False)
                found["generate"] = lambda texts: generate(translator, texts, num_beams)
                # Its idle threads would keep the cores busy while the others take their turns.
                if translator.name == "transformer" and threads == 1:
                    try:
                        other = ctranslate2(translator, folder, threads)
                        found["ctranslate2"] = lambda texts: other(texts, num_beams)
                    except ModuleNotFoundError as error:
                        print(f"without CTranslate2: {error}")
                return found

            for search, num_beams in BEAMS.items():
                for threads in (1, 2):
                    torch.set_num_threads(threads)
                    of_one = sides(threads, num_beams, attention=True)
                    found = take_turns(of_one, [[text] for text in sentences], options.rounds)
                    place = results["one_sentence"].setdefault(name, {})
                    place.setdefault(search, {})[f"{threads}_threads"] = found
                    print(f"{name:15} one, {search}, {threads} threads: {found}", flush=True)
                torch.set_num_threads(1)
                found = take_turns(sides(1, num_beams, attention=False), turns, 1)
                found["sentences_per_second"] = round(1000 * TURN / found["seqviz_ms"], 1)
                results["many"].setdefault(name, {})[search] = found
                print(f"{name:15} {len(every)}, {search}, 1 thread: {found}", flush=True)
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/decoding.py",
                "data": {
                    "name": handwritten.NAME,
                    "one_sentence": len(sentences),
                    "many": len(every),
                    "batch": BATCH,
                },
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
