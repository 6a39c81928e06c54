"""Training speed of the four models against a plain PyTorch loop over the same batches.

python benchmarks/training.py --out benchmarks/training.json

Needs no corpus: lengths are drawn as the models' training.json has them, ids are random. Both sides begin
with the same weights and see the same batches in turn, so their losses must agree.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedModel

from seqviz import MODEL_NAMES, corpus, tokenizer, training
from seqviz.architectures import build, num_parameters
from seqviz.lab.cost import matmul_rate
from seqviz.lab.training_cost import (
    Lengths,
    draw_lengths,
    optimizer_operations,
    training_operations,
)
from seqviz.report import write_json
from seqviz.shipped import models_folder
from seqviz.version import hardware, versions

STEPS, ROUNDS, SEED = 8, 2, 1


class PlainLoop:
    """What a first version of the loop looks like: the library's optimisers as they come, one step at a time.

    Args:
        model: with the same weights as the other side.
        recipe: learning rates, clipping.
    """

    def __init__(self, model: PreTrainedModel, recipe: training.Recipe) -> None:
        self.model, self.clip_norm = model, recipe.clip_norm
        self.autocast = torch.autocast("cuda", torch.bfloat16, enabled=model.device.type == "cuda")
        adamw, *muon = training.optimizers(model, recipe)
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(
                adamw.param_groups[0]["params"],
                lr=recipe.learning_rate,
                betas=(0.9, 0.98),
                weight_decay=0.0,
            )
        ]
        for one in muon:
            self.optimizers.append(
                torch.optim.Muon(
                    one.param_groups[0]["params"],
                    lr=recipe.matrix_learning_rate,
                    weight_decay=recipe.weight_decay,
                )
            )
        self.rates = [one.param_groups[0]["lr"] for one in self.optimizers]

    def step(self, pairs: list[Any], rate_factor: float) -> float:
        """One step on pairs of source and target ids; gives the mean loss of its target tokens."""
        config, device = self.model.config, self.model.device
        batch = corpus.make_batch(
            pairs, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id
        )
        labels = torch.from_numpy(batch.labels).to(device)
        with self.autocast:
            logits = self.model(
                input_ids=torch.from_numpy(batch.input_ids).to(device),
                attention_mask=torch.from_numpy(batch.attention_mask).to(device),
                decoder_input_ids=self.model.prepare_decoder_input_ids_from_labels(labels),
                use_cache=False,
            ).logits
        loss = functional.cross_entropy(
            logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100
        )
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.clip_norm)
        for optimizer, rate in zip(self.optimizers, self.rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * rate_factor
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()


def random_corpus(lengths: Lengths, vocab_size: int, seed: int) -> corpus.EncodedCorpus:
    """Random ids in sentences of these lengths; no end tokens among them, as in a real one."""
    draw = np.random.default_rng(seed)
    sides = []
    for side in (lengths.source, lengths.target):
        offsets = np.concatenate([[0], np.cumsum(side - 1)])
        sides.append((draw.integers(2, vocab_size - 1, offsets[-1], dtype=np.uint16), offsets))
    return corpus.EncodedCorpus(
        source=sides[0][0],
        target=sides[1][0],
        source_offsets=sides[0][1],
        target_offsets=sides[1][1],
        source_words=lengths.words.astype(np.uint16),
        document=np.zeros(len(lengths.words), np.int32),
        information={"sha256": "random", "name": "random ids"},
    )


def measure(
    name: str,
    report: Mapping[str, Any],
    tokens: Any,
    *,
    steps: int = STEPS,
    rounds: int = ROUNDS,
    examples: int | None = None,
    config: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Speed of one model: the project's own loop and the plain one, by turns on each batch.

    Args:
        name: of the architecture.
        report: content of ``training.json``: lengths, recipe.
        tokens: the tokenizer.
        steps: batches that are timed; one more before them warms up.
        rounds: times that all is done; of each batch the best one counts.
        examples: in the random corpus; None for as many as training had, so that batches are as even.
        config: settings of the architecture that differ from `build`'s.
    """
    # Lengths are those of joins already. The state is saved where the cool-down begins: before the
    # first step, which is not timed.
    recipe = training.Recipe(
        **{**report["recipe"], "join_probability": 0.0, "cooldown": 1.0, "seed": SEED}
    )
    lengths = draw_lengths(report, examples, SEED)
    data = corpus.Source(random_corpus(lengths, len(tokens), SEED))
    epoch = corpus.plan_epoch([data], seed=SEED, epoch=0, join_probability=0.0)
    plan = corpus.plan_batches(epoch, batch_tokens=recipe.batch_tokens, seed=SEED, number=0)
    plan = plan[: steps + 1]
    counts = [int(epoch.target_length[rows].sum()) for rows in plan]
    seconds = {"ours": np.full(steps, np.inf), "plain": np.full(steps, np.inf)}
    differences: list[float] = []
    model = None
    for _ in range(rounds):
        model = build(name, len(tokens), seed=SEED, **(config or {}))
        if torch.cuda.is_available():
            model.to("cuda")
        plain = PlainLoop(model, recipe)
        mark = time.perf_counter()

        def on_step(position: training.Position, loss: float) -> None:
            nonlocal mark
            took, at = time.perf_counter() - mark, position.step - 1
            pairs = [data.corpus.ids(int(epoch.first[row])) for row in plan[at]]
            before = position.tokens - counts[at]
            factor = training.rate_factor(before, recipe, sum(counts))
            mark = time.perf_counter()
            differences.append(abs(plain.step(pairs, factor) - loss))  # noqa: B023
            looped = time.perf_counter() - mark
            if at:
                seconds["ours"][at - 1] = min(seconds["ours"][at - 1], took)
                seconds["plain"][at - 1] = min(seconds["plain"][at - 1], looped)
            mark = time.perf_counter()

        _train(name, data, tokens, recipe, sum(counts), config, on_step)
    assert model is not None
    timed = np.concatenate(plan[1:])
    operations = training_operations(
        model.config, epoch.source_length[timed], epoch.target_length[timed]
    ).sum() + steps * optimizer_operations(model, dataclasses.asdict(recipe))
    target_tokens = sum(counts[1:])
    ours, looped = (float(each.sum()) for each in seconds.values())
    return {
        "num_parameters": num_parameters(model),
        "target_tokens": target_tokens,
        "target_tokens_per_second": round(target_tokens / ours, 1),
        "plain_target_tokens_per_second": round(target_tokens / looped, 1),
        "times_as_fast_as_the_plain_loop": round(looped / ours, 3),
        "seconds_per_step": round(ours / steps, 4),
        "operations_per_target_token": float(operations / target_tokens),
        "flops_per_second": float(operations / ours),
        "source_padding": _padding(epoch.source_length, plan[1:]),
        "target_padding": _padding(epoch.target_length, plan[1:]),
        "largest_loss_difference": float(f"{max(differences):.1e}"),
    }


def _padding(lengths: np.ndarray, plan: list[np.ndarray]) -> float:
    """Share of padding in batches of examples with these lengths."""
    padded = sum(len(rows) * int(lengths[rows].max()) for rows in plan)
    return round(1 - int(lengths[np.concatenate(plan)].sum()) / padded, 4)


def _train(
    name: str,
    data: corpus.Source,
    tokens: Any,
    recipe: training.Recipe,
    budget: int,
    config: dict[str, Any] | None,
    on_step: Callable[[training.Position, float], None],
) -> None:
    """The project's own loop, as `seqviz train` runs it; what it saves is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        training.train(
            name,
            [data],
            tokens,
            Path(folder) / "run",
            Path(folder) / "model",
            recipe=recipe,
            tokens=budget,
            save_minutes=1e6,
            config=config,
            on_step=on_step,
        )


def threads_of(report: Mapping[str, Any]) -> int:
    """Threads that a run had, from what it says of its hardware; all where it says nothing."""
    found = re.search(r"(\d+) threads", str(report.get("hardware")))
    return int(found.group(1)) if found else torch.get_num_threads()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, help="default: what training had; 0 for all")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--examples", type=int, help="of the random corpus; default: as training")
    parser.add_argument("--model", action="append", choices=MODEL_NAMES)
    options = parser.parse_args(arguments)
    folder = models_folder()
    reports = {
        name: json.loads((folder / name / "training.json").read_text(encoding="utf-8"))
        for name in options.model or MODEL_NAMES
    }
    if options.threads is None:
        options.threads = threads_of(next(iter(reports.values())))
    torch.set_num_threads(options.threads or os.cpu_count() or 1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokens = tokenizer.load(folder / "tokenizer")
    load_before = os.getloadavg()[0]
    rates, results = [matmul_rate(1024, device)], {}
    for name, report in reports.items():
        results[name] = measure(
            name,
            report,
            tokens,
            steps=options.steps,
            rounds=options.rounds,
            examples=options.examples,
        )
        rates.append(matmul_rate(1024, device))
        print(f"{name}: {results[name]}", flush=True)
    for found in results.values():
        found["share_of_matmul_rate"] = round(found["flops_per_second"] / max(rates), 4)
        print(f"{found['share_of_matmul_rate']:.1%} of {max(rates):.3g} operations a second")
    load_average = {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)}
    print(f"{torch.get_num_threads()} threads, load average {load_average}")
    given = {k: v for k, v in vars(options).items() if k not in ("out", "model")}
    command = ["python benchmarks/training.py"]
    for key, value in given.items():
        if value is not None and value != parser.get_default(key):
            command.append(f"--{key} {value}")
    command += [f"--model {name}" for name in options.model or ()]
    if options.out:
        write_json(
            options.out,
            {
                "command": " ".join(command),
                "data": {
                    "ids": "random, seed 1",
                    "lengths": "drawn from length_histogram of training.json",
                    "steps": options.steps,
                    "rounds": options.rounds,
                    "best_of_rounds": True,
                },
                "versions": versions(),
                "hardware": hardware(device),
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "num_threads": torch.get_num_threads(),
                "load_average": load_average,
                "matmul": {"flops_per_second": max(rates), "all": rates},
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
