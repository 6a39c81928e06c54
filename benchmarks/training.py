"""Training speed of the four models against a plain PyTorch loop over the same batches.

python benchmarks/training.py --out benchmarks/training.json

Needs no corpus: lengths are drawn as the models' training.json has them, ids are random. Both sides begin
with the same weights and see the same batches in turn, so their losses must agree.

With --joeynmt PYTHON, the Python of an environment that has Joey NMT, its nearest models take a step on each
batch as well, beside the project's loop with the optimiser that Joey NMT has, AdamW.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import re
import subprocess
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
from seqviz.files import write_json
from seqviz.lab.operations import (
    Lengths,
    draw_lengths,
    optimizer_operations,
    training_operations,
)
from seqviz.lab.timing import matmul_rate
from seqviz.shipped import models_folder
from seqviz.version import hardware, versions

STEPS, ROUNDS, SEED = 8, 2, 1

OURS = ("ours", "")
"""The project's loop among the sides that step beside one another."""

JOEYNMT_SCRIPT = Path(__file__).resolve().parent / "others" / "joey_nmt.py"
NOT_IN_JOEYNMT = {
    "rnn": "has neither a tanh RNN nor a recurrent decoder without attention",
    "lstm": "has no recurrent decoder without attention",
}
"""Models that Joey NMT has no equal of: what it has not."""

# The width was found by hand; operations_over_ours says how equal they are.
EQUAL_OPERATIONS = {"lstm-attention": {"equal_operations": {"width": 368}}}
"""Settings that give Joey NMT's model as many operations as ours, where the same widths do not."""

ALWAYS_DIFFERS = [
    "Joey NMT: AdamW as torch.optim has it, no Muon; ours_with_adamw has fused AdamW alone",
    "Joey NMT sorts each batch by length and counts the right predictions, which ours does not",
    "of Joey NMT's loader only the padding is timed, not the look-up of pieces",
]
DIFFERS = {
    "lstm-attention": [
        "scores before the softmax: from the recurrent width in Joey NMT, from the embedding's in ours, "
        "so only ours can share one table",
        "width of additive attention: the recurrent one in Joey NMT, attention_size in ours",
        "Joey NMT unrolls the decoder token by token, also without input feeding, which is off here as in "
        "ours; ours runs each layer over the whole target",
        "first state: one projection for all layers in Joey NMT; in ours one for each, and the vector is "
        "also added to each input",
    ],
    "transformer": ["order of the sines and cosines among the positions' dimensions"],
}
"""What else is not alike, beside the layers, widths, vocabulary and cells that are."""


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


class JoeyNMT:
    """Joey NMT's model in a process of its own, which waits while another side takes its step.

    Args:
        python: of an environment that has Joey NMT.
        config: of the project's model that it shall be like.
        recipe: learning rate, clipping.
        precision: "fp32" or "bf16", by its own autocast.
    Attributes:
        about: parameters, versions and threads; empty where it does not run.
        why_none: why it does not run, or None.
    """

    def __init__(
        self, python: str, config: dict[str, Any], recipe: training.Recipe, precision: str
    ) -> None:
        self.process, self.why_none, self.about = None, None, {}
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                [python, str(JOEYNMT_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                text=True,
                env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            )
        except OSError as error:
            self._give_up(str(error.strerror))
            return
        self.about = self.ask(
            config=config,
            recipe=dataclasses.asdict(recipe),
            precision=precision,
            num_threads=torch.get_num_threads(),
        )

    def ask(self, **job: Any) -> dict[str, Any]:
        """What it answers; nothing once it has failed."""
        if self.why_none is not None:
            return {}
        assert self.process is not None and self.process.stdin and self.process.stdout
        line = ""
        try:
            print(json.dumps(job), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
            return dict(json.loads(line))
        except (OSError, ValueError, TypeError):  # it ended, or is no Python
            pass
        if line:
            self._give_up(f"an answer that cannot be read, {line.strip()[:80]!r}")
            return {}
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        code = self.process.returncode
        self.log.seek(0)
        said = [line.strip() for line in self.log if line.strip()]
        self._give_up(f"it ended with {code}{': ' + said[-1] if said else ''}")
        return {}

    def _give_up(self, said: str) -> None:
        self.why_none = (
            f"expected --joeynmt to be the Python of an environment that has Joey NMT, got: {said[:200]}; "
            "see benchmarks/README.md"
        )

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


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
    """Speed of one model: the project's own loop and the plain one in fp32, by turns on each batch.

    Where bf16 is faster, the own loop then goes through the same batches in bf16.

    Args:
        name: of the architecture.
        report: content of ``training.json``: lengths, recipe.
        tokens: the tokenizer.
        steps: batches that are timed; one more before them warms up.
        rounds: times that all is done; of each batch the best one counts.
        examples: in the random corpus; None for as many as training had, so that batches are as even.
        config: settings of the architecture that differ from `build`'s.
    """
    recipe, data, epoch, plan, counts = _planned(report, len(tokens), steps, examples)
    fastest = "bf16" if training.bf16_pays(_device()) else "no"
    sides = dict.fromkeys(("no", fastest, "plain"))
    seconds = {side: np.full(steps, np.inf) for side in sides}
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
            _keep_best(seconds["no"], at, took)
            pairs = [data.corpus.ids(int(epoch.first[row])) for row in plan[at]]
            before = position.tokens - counts[at]
            factor = training.rate_factor(before, recipe, sum(counts))
            mark = time.perf_counter()
            differences.append(abs(plain.step(pairs, factor) - loss))  # noqa: B023
            _keep_best(seconds["plain"], at, time.perf_counter() - mark)
            mark = time.perf_counter()

        _train(name, data, tokens, recipe, sum(counts), config, on_step, "no")
        if fastest != "no":
            mark = time.perf_counter()

            def on_fast_step(position: training.Position, loss: float) -> None:
                nonlocal mark
                _keep_best(seconds[fastest], position.step - 1, time.perf_counter() - mark)
                mark = time.perf_counter()

            _train(name, data, tokens, recipe, sum(counts), config, on_fast_step, fastest)
    assert model is not None
    timed = np.concatenate(plan[1:])
    operations = training_operations(
        model.config, epoch.source_length[timed], epoch.target_length[timed]
    ).sum() + steps * optimizer_operations(model, dataclasses.asdict(recipe))
    target_tokens = sum(counts[1:])
    in_fp32, ours, looped = (float(seconds[side].sum()) for side in ("no", fastest, "plain"))
    return {
        "num_parameters": num_parameters(model),
        "target_tokens": target_tokens,
        "precision": training.PRECISIONS[fastest],
        "target_tokens_per_second": round(target_tokens / ours, 1),
        "fp32_target_tokens_per_second": round(target_tokens / in_fp32, 1),
        "times_as_fast_as_fp32": round(in_fp32 / ours, 3),
        "plain_target_tokens_per_second": round(target_tokens / looped, 1),
        "times_as_fast_as_the_plain_loop": round(looped / ours, 3),
        "seconds_per_step": round(ours / steps, 4),
        "operations_per_target_token": float(operations / target_tokens),
        "flops_per_second": float(operations / ours),
        "source_padding": _padding(epoch.source_length, plan[1:]),
        "target_padding": _padding(epoch.target_length, plan[1:]),
        "largest_loss_difference": float(f"{max(differences):.1e}"),
    }


def _keep_best(best: np.ndarray, at: int, seconds: float) -> None:
    """The best time of each step; the first step only warms up."""
    if at:
        best[at - 1] = min(best[at - 1], seconds)


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _planned(
    report: Mapping[str, Any], vocab_size: int, steps: int, examples: int | None
) -> tuple[training.Recipe, corpus.Source, corpus.Epoch, list[np.ndarray], list[int]]:
    """Recipe, corpus, its examples, the batches of a run and their target tokens."""
    # Lengths are those of joins already. The state is saved where the cool-down begins: before the
    # first step, which is not timed.
    recipe = training.Recipe(
        **{**report["recipe"], "join_probability": 0.0, "cooldown": 1.0, "seed": SEED}
    )
    lengths = draw_lengths(report, examples, SEED)
    data = corpus.Source(random_corpus(lengths, vocab_size, SEED))
    epoch = corpus.plan_epoch([data], seed=SEED, epoch=0, join_probability=0.0)
    plan = corpus.plan_batches(epoch, batch_tokens=recipe.batch_tokens, seed=SEED, number=0)
    plan = plan[: steps + 1]
    return recipe, data, epoch, plan, [int(epoch.target_length[rows].sum()) for rows in plan]


def beside_joeynmt(
    name: str,
    report: Mapping[str, Any],
    tokens: Any,
    python: str | None,
    *,
    steps: int = STEPS,
    rounds: int = ROUNDS,
    examples: int | None = None,
    config: dict[str, Any] | None = None,
) -> tuple[dict[str, Any] | None, str | None]:
    """Joey NMT's nearest models by turns with the project's own loop, as it is and with AdamW alone.

    Where bf16 is faster here, Joey NMT steps in both precisions and its faster one counts.

    Args:
        name, report, tokens, steps, rounds, examples, config: as for `measure`.
        python: of an environment that has Joey NMT; None where nobody asked.
    Returns:
        what was measured and None, or None and why.
    """
    if python is None:
        return None, "not asked for; give --joeynmt PYTHON"
    if name in NOT_IN_JOEYNMT:
        return None, NOT_IN_JOEYNMT[name]
    if torch.cuda.is_available():
        return None, "compared on a CPU only; hide the GPU to compare"
    recipe, data, epoch, plan, counts = _planned(report, len(tokens), steps, examples)
    recipes = {"ours": recipe, "adamw": dataclasses.replace(recipe, matrix_learning_rate=0.0)}
    batches: list[dict[str, Any]] = []
    for rows in plan:
        pairs = [data.corpus.ids(int(epoch.first[row])) for row in rows]
        source, target = ([ids.tolist() for ids in side] for side in zip(*pairs, strict=True))
        batches.append({"source": source, "target": target})
    like = build(name, len(tokens), seed=SEED, **(config or {})).config
    settings = {"same_widths": {}, **EQUAL_OPERATIONS.get(name, {})}
    precisions = list(dict.fromkeys(("no", "bf16" if training.bf16_pays(_device()) else "no")))
    sides = [(side, training.PRECISIONS[each]) for side in settings for each in precisions]
    others: dict[tuple[str, str], JoeyNMT] = {}
    # Of each loop: its own seconds a step, and those of the others that stepped beside it.
    seconds = {loop: {side: np.full(steps, np.inf) for side in (OURS, *sides)} for loop in recipes}
    losses: dict[tuple[str, str], list[float]] = {side: [] for side in sides}
    operations: dict[tuple[str, str], float] = {}
    try:
        for side in sides:
            widths = {**like.to_dict(), **settings[side[0]]}
            others[side] = JoeyNMT(python, widths, recipe, side[1])
            counted = others[side].ask(do="operations", **batches[0]).get("operations", 0)
            operations[side] = round(counted / _padded_operations(like, epoch, plan[0]), 3)
        for loop in [*recipes] * rounds:
            if any(other.why_none for other in others.values()):
                break
            mark = time.perf_counter()

            def on_step(position: training.Position, loss: float) -> None:
                nonlocal mark
                at, took = position.step - 1, time.perf_counter() - mark
                _keep_best(seconds[loop][OURS], at, took)  # noqa: B023
                for side, other in others.items():
                    if answer := other.ask(do="step", **batches[at]):
                        assert answer["target_tokens"] == counts[at]
                        losses[side].append(round(answer["loss"], 3))
                        _keep_best(seconds[loop][side], at, answer["seconds"])  # noqa: B023
                mark = time.perf_counter()

            _train(name, data, tokens, recipes[loop], sum(counts), config, on_step, precisions[-1])
    finally:
        for other in others.values():
            other.close()
    if reasons := [other.why_none for other in others.values() if other.why_none]:
        return None, reasons[0]
    target_tokens = sum(counts[1:])
    total = {
        loop: {side: float(best.sum()) for side, best in seconds[loop].items()} for loop in seconds
    }
    found: dict[str, Any] = {}
    for width, changed in settings.items():
        of_width = {side: total["adamw"][side] for side in sides if side[0] == width}
        side = min(of_width, key=lambda each: of_width[each])
        found[width] = {
            "settings": changed,
            **others[side].about,
            "precision": side[1],
            "target_tokens_per_second_of_precisions": {
                each[1]: round(target_tokens / of_width[each], 1) for each in of_width
            },
            "operations_over_ours": operations[side],
            "first_loss": losses[side][0],
            "last_loss": losses[side][-1],
            "target_tokens_per_second": round(target_tokens / of_width[side], 1),
            "times_as_long_as_ours": round(total["ours"][side] / total["ours"][OURS], 3),
            "times_as_long_as_ours_with_adamw": round(of_width[side] / total["adamw"][OURS], 3),
        }
    return {
        **found,
        "ours_with_adamw_target_tokens_per_second": round(target_tokens / total["adamw"][OURS], 1),
        "differs": [*ALWAYS_DIFFERS, *DIFFERS[name]],
    }, None


def _padded_operations(config: Any, epoch: corpus.Epoch, rows: np.ndarray) -> float:
    """Operations of a forward and a backward pass of this batch, its padding among them."""
    source, target = (
        np.full(len(rows), lengths[rows].max())
        for lengths in (epoch.source_length, epoch.target_length)
    )
    return float(training_operations(config, source, target).sum())


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
    precision: str = "auto",
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
            mixed_precision=precision,
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
    parser.add_argument(
        "--joeynmt",
        metavar="PYTHON",
        help="of an environment that has Joey NMT, to compare with; see benchmarks/README.md",
    )
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
        size = {key: getattr(options, key) for key in ("steps", "rounds", "examples")}
        results[name] = measure(name, report, tokens, **size)
        beside, why_none = beside_joeynmt(name, report, tokens, options.joeynmt, **size)
        results[name] |= {"joeynmt": beside, "why_no_joeynmt": why_none}
        rates.append(matmul_rate(1024, device))
        print(f"{name}: {results[name]}", flush=True)
    for found in results.values():
        found["share_of_matmul_rate"] = round(found["flops_per_second"] / max(rates), 4)
        print(f"{found['share_of_matmul_rate']:.1%} of {max(rates):.3g} operations a second")
    load_average = {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)}
    print(f"{torch.get_num_threads()} threads, load average {load_average}")
    given = {k: v for k, v in vars(options).items() if k not in ("out", "model")}
    given["joeynmt"] = options.joeynmt and "PYTHON"
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
