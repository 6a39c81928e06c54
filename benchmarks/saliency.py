"""Saliency of a long sentence against the plain loop: one backward pass for each output token.

python benchmarks/saliency.py --out benchmarks/saliency.json
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch

from seqviz import MODEL_NAMES, load
from seqviz.files import write_json
from seqviz.looking.saliency import saliency_values
from seqviz.translating.translator import Translator
from seqviz.version import hardware, versions

TEXT = (
    "When the library closed in the evening, the two sisters walked slowly along the river to the old "
    "station, bought some bread and a little cheese from the last shop that was still open, and waited for "
    "almost an hour on the cold platform, because the train from the north, which should have arrived before "
    "seven, was late again that night."
)
LOOPED, ROUNDS = 8, 3


def plain_loop(
    translator: Translator, source_ids: list[int], target_ids: list[int], positions: list[int]
) -> np.ndarray:
    """Gradient × input at some positions, (positions, S): one forward pass, a backward pass for each."""
    model = translator.model
    encoder = model.model.encoder
    ids = torch.tensor([[*source_ids, translator.tokenizer.eos_token_id]])
    embedded = (encoder.embed_tokens(ids) * encoder.embed_scale).detach().requires_grad_()
    start = model.config.decoder_start_token_id
    log_probs = model(
        inputs_embeds=embedded,
        attention_mask=torch.ones_like(ids),
        decoder_input_ids=torch.tensor([[start, *target_ids[:-1]]]),
        use_cache=False,
    ).logits[0].log_softmax(dim=-1)  # fmt: skip
    rows = []
    for t in positions:
        (gradient,) = torch.autograd.grad(
            log_probs[t, target_ids[t]], embedded, retain_graph=t != positions[-1]
        )
        rows.append((gradient * embedded).sum(dim=-1)[0].detach().numpy())
    return np.stack(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = {}
    for name in MODEL_NAMES:
        translator = load(name)
        translation = translator.translate(TEXT)
        source = translator.tokenizer.convert_tokens_to_ids(list(translation.source_tokens[:-1]))
        target = list(translation.target_ids)
        # Every backward pass of the loop costs the same, so a few at even distances stand for all.
        places = np.unique(np.linspace(0, len(target) - 1, LOOPED).round().astype(int)).tolist()
        fast, slow, process = [], [], []
        for _ in range(ROUNDS):
            started, used = time.perf_counter(), time.process_time()
            values = saliency_values(translator, source, target)
            middle, between = time.perf_counter(), time.process_time()
            looped = plain_loop(translator, source, target, places)
            slow.append((time.perf_counter() - middle) / len(places) * len(target))
            fast.append(middle - started)
            process.append(between - used)
        results[name] = {
            "source_pieces": len(source) + 1,
            "target_pieces": len(target),
            "times_as_fast_as_the_loop": round(min(slow) / min(fast), 1),
            "seconds": round(min(fast), 2),
            "processor_seconds": round(min(process), 2),
            "largest_difference": float(f"{np.abs(values[places] - looped).max():.1e}"),
        }
        print(f"{name}: {results[name]}")
    load_average = round(os.getloadavg()[0], 1)
    print(f"{len(TEXT.split())} words, {options.threads} threads, load average {load_average}")
    if options.out:
        write_json(
            options.out,
            {
                "command": f"python benchmarks/saliency.py --threads {options.threads}",
                "data": {"words": len(TEXT.split()), "rounds": ROUNDS, "best_of_rounds": True},
                "versions": versions(),
                "hardware": hardware(),
                "load_average": load_average,
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
