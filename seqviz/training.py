"""The one training loop, for every model.

A run lives in a folder of its own, outside the model folder it produces. The learning rate warms up,
stays constant, and cools down over the last part of the token budget. The state before the cool-down
is kept: a later call with a larger budget goes on from there, so no training is ever wasted.

One step is one batch of about `Recipe.batch_tokens` target tokens, however many processes share it:
each takes every n-th sentence, and the gradient is the sum over all target tokens of the batch divided
by their number. So the number of processes and of accumulation chunks changes speed, not the result.

Shapes: `B` batch, `S` source length, `T` target length, `V` vocabulary.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import logging
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils.environment import parse_flag_from_env
from accelerate.utils.operations import broadcast_object_list
from accelerate.utils.other import load as load_pickled
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from tqdm import tqdm
from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from seqviz import corpus
from seqviz.architectures import build, num_parameters
from seqviz.files import file_digest, put_in_place, recover
from seqviz.loss import SequenceLoss
from seqviz.version import hardware, versions


class TrainingError(RuntimeError):
    """A run cannot start or go on; the message says what was expected, what came and what to do."""


class DivergedError(TrainingError):
    """A loss or a gradient is no longer finite."""


class SaveError(TrainingError):
    """Something could not be written; what stood there before is whole."""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; the same for all models but for the learning rates.

    Args:
        batch_tokens: target tokens of one step, over all processes.
        learning_rate: of AdamW, for the embedding table, biases and norms.
        matrix_learning_rate: of Muon (Jordan et al. 2024), for all other matrices; 0 leaves them to
            AdamW as well.
        warmup_tokens: target tokens until the full rate.
        cooldown: share of the token budget over which the rate falls linearly to 0, at the end.
        clip_norm: largest gradient norm.
        weight_decay: decoupled, of the matrices.
        join_probability: share of examples that are several consecutive sentences.
        seed: of weights and data order.
    """

    batch_tokens: int = 3_000
    learning_rate: float = 1e-3
    matrix_learning_rate: float = 0.012
    warmup_tokens: int = 150_000
    cooldown: float = 0.2
    clip_norm: float = 1.0
    weight_decay: float = 0.0
    join_probability: float = 0.15
    seed: int = 1


@dataclass
class Position:
    """Where a run stands; saved with the weights."""

    step: int = 0
    tokens: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    warmup_from: int = 0
    budget: int = 0
    length_histogram: list[int] = field(default_factory=lambda: [0] * (corpus.MAX_SOURCE_WORDS + 1))
    started_from: dict[str, Any] | None = None


def rate_factor(tokens: int, recipe: Recipe, budget: int, warmup_from: int = 0) -> float:
    """Factor on the learning rate after `tokens` target tokens: warm-up, 1, linear cool-down.

    Args:
        budget: target tokens of the finished model; 0 means no end, so no cool-down.
        warmup_from: tokens at which the warm-up began (not 0 where training goes on from weights).
    Returns:
        a factor above 0 and at most 1.
    """
    since = tokens - warmup_from + recipe.batch_tokens
    factor = min(1.0, since / recipe.warmup_tokens) if recipe.warmup_tokens else 1.0
    if budget:
        left = (budget - tokens) / max(1.0, recipe.cooldown * budget)
        factor = min(factor, max(left, 1e-3))
    return factor


def optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for tables, biases and norms, Muon for all other matrices.

    Muon orthogonalises its steps, which only makes sense for matrices between hidden states.
    """
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        is_matrix = (
            parameter.ndim == 2 and min(parameter.shape) > 1 and id(parameter) not in embeddings
        )
        (matrices if is_matrix and recipe.matrix_learning_rate else others).append(parameter)
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(
            others, lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
    ]
    if matrices:
        made.append(
            torch.optim.Muon(
                matrices, lr=recipe.matrix_learning_rate, weight_decay=recipe.weight_decay
            )
        )
    return made


def summed_loss(model: nn.Module, batch: corpus.Batch, device: torch.device) -> Tensor:
    """Cross-entropy of a batch summed over its real target tokens, in nats; teacher forcing.

    Args:
        model: one of the project's models, or a `SequenceLoss` of it, wrapped or not.
    """
    if isinstance(model, PreTrainedModel):
        model = SequenceLoss(model)
    return model(
        input_ids=torch.from_numpy(batch.input_ids).to(device),
        attention_mask=torch.from_numpy(batch.attention_mask).to(device),
        labels=torch.from_numpy(batch.labels).to(device),
    )


@torch.no_grad()
def mean_loss(
    model: PreTrainedModel,
    data: corpus.EncodedCorpus,
    device: torch.device,
    *,
    sample: int,
    batch_tokens: int = 4_000,
) -> float:
    """Teacher-forced loss on single sentences, nats a target token.

    Args:
        sample: pairs taken at even distances over the corpus; all if it has no more.
    """
    was_training = model.training
    model.eval()
    config = model.config
    chosen = np.unique(np.linspace(0, len(data) - 1, min(sample, len(data))).astype(int))
    pairs = sorted(
        (data.ids(int(i)) for i in chosen), key=lambda pair: (len(pair[1]), len(pair[0]))
    )
    total, tokens = 0.0, 0
    while pairs:
        rows = max(1, batch_tokens // (len(pairs[-1][1]) + 1))
        part, pairs = pairs[-rows:], pairs[:-rows]
        batch = corpus.make_batch(
            part, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id
        )
        total += summed_loss(model, batch, device).item()
        tokens += batch.num_target_tokens
    model.train(was_training)
    return total / tokens


# ---------------------------------------------------------------------------------------------
# Checkpoints


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), reverse=True)


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep warnings of a logger back."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _writing(what: str, folder: Path, num_bytes: int) -> Iterator[None]:
    """Turn whatever a writer raises, which for a full disk is often cryptic, into one clear line.

    Args:
        what: what is written, for the message.
        folder: where.
        num_bytes: space that it needs.
    Raises:
        SaveError: writing failed.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        raise SaveError(
            f"expected to write {what} in {folder}, about {num_bytes / 1e6:,.1f} MB, got "
            f"{type(error).__name__}: {' '.join(str(error).split())[:200]}; {free / 1e6:,.1f} MB are "
            "free there. What was saved before is whole: make room (or check rights and quota) and "
            "give the same command again"
        ) from error


def _state_bytes(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> int:
    """About the size of a saved state."""
    states = (value for o in optimizers for s in o.state.values() for value in s.values())
    tensors = [*model.parameters(), *model.buffers(), *filter(torch.is_tensor, states)]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _recover_checkpoints(folder: Path) -> None:
    for old in folder.glob(".checkpoint-*-old"):
        recover(folder / old.name.removeprefix(".").removesuffix("-old"))


DIGESTS = "digests.json"
"""File of a saved state: SHA-256 of all its other files."""


def save_checkpoint(
    accelerator: Accelerator, folder: Path, position: Position, keep: int = 2
) -> Path:
    """Save the full state aside, flush it, rename it; older ones than the last `keep` go.

    A state of a later step goes too: had it been whole, the run would have gone on from there.

    Raises:
        SaveError: in every process, if one of them could not write. Nothing half-written is left.
    """
    final = folder / f"checkpoint-{position.step:08d}"
    aside = folder / f".partial-{position.step:08d}"
    num_bytes = sum(_state_bytes(model, accelerator._optimizers) for model in accelerator._models)
    failure: SaveError | None = None

    @contextlib.contextmanager
    def together() -> Iterator[None]:
        """A part of the work that ends for every process when it ends badly for one."""
        nonlocal failure
        try:
            with _writing("a saved state", folder, num_bytes):
                yield
        except SaveError as error:
            failure = error
        (failed,) = _any(accelerator, failure is not None)
        if failed:
            if accelerator.is_main_process:
                shutil.rmtree(aside, ignore_errors=True)  # it would keep the disk full
            raise failure or SaveError("another process could not write its part of the state")

    with together():
        if accelerator.is_main_process:
            _recover_checkpoints(folder)
            for left_over in folder.glob(".partial-*"):  # of a call that was killed
                shutil.rmtree(left_over, ignore_errors=True)
            aside.mkdir(parents=True)
    with together(), _quiet("accelerate.utils.other"):  # warns of tied weights; loading ties again
        accelerator.save_state(str(aside))
    with together():
        if accelerator.is_main_process:
            (aside / "position.json").write_text(json.dumps(asdict(position)), encoding="utf-8")
            digests = {path.name: file_digest(path) for path in sorted(aside.iterdir())}
            (aside / DIGESTS).write_text(json.dumps(digests, indent=1), encoding="utf-8")
            put_in_place(aside, final)
            saved = _checkpoints(folder)
            newest = saved.index(final)
            for old in saved[:newest] + saved[newest + keep :]:
                shutil.rmtree(old, ignore_errors=True)
    return final


def _check_files(checkpoint: Path) -> None:
    """Compare the files of a state with their digests; a state saved before there were any passes.

    Raises:
        ValueError: a file is missing or not as it was written.
    """
    if not (checkpoint / DIGESTS).is_file():
        return
    digests = json.loads((checkpoint / DIGESTS).read_text(encoding="utf-8"))
    for name, digest in digests.items():
        if file_digest(checkpoint / name) != digest:
            raise ValueError(f"{name} is not as it was written")


def load_checkpoint(
    accelerator: Accelerator, folder: Path, say: Callable[[str], None]
) -> Position | None:
    """Load the newest whole state of `folder`, or None if there is none.

    All processes load the same one. Where it returns None after it said that a state cannot be read,
    model and optimisers may hold parts of that state.
    """
    if accelerator.is_main_process:
        _recover_checkpoints(folder)
    names = [path.name for path in _checkpoints(folder)]
    for path in (folder / name for name in _of_main(names, accelerator)):
        position, reason = None, "in another process"
        try:
            _check_files(path)
            position = Position(**json.loads((path / "position.json").read_text(encoding="utf-8")))
            # Accelerate passes over random states that it cannot read. A process that was not there
            # when the state was saved has none.
            random_states = path / f"random_states_{accelerator.process_index}.pkl"
            if accelerator.is_main_process or random_states.is_file():
                load_pickled(random_states)
            with _loading_into_models(accelerator):
                accelerator.load_state(str(path))
        except Exception as error:  # a damaged file raises whatever its reader raises
            position, reason = None, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        (failed,) = _any(accelerator, position is None)
        if not failed:
            return position
        say(f"{path.name} cannot be read ({reason}); going back to the one before")
    return None


@contextlib.contextmanager
def _loading_into_models(accelerator: Accelerator) -> Iterator[None]:
    """Weights of a saved state go into the models themselves, whatever is wrapped around them."""

    def load(wrapped: list[nn.Module], folder: str) -> None:
        while wrapped:
            _load_weights(
                accelerator.unwrap_model(wrapped.pop()).model, Path(folder) / "model.safetensors"
            )

    hook = accelerator.register_load_state_pre_hook(load)
    try:
        yield
    finally:
        hook.remove()


def _load_weights(model: nn.Module, path: Path) -> None:
    """Load a file of weights; tied ones stand in it once.

    Raises:
        ValueError: weights of another architecture.
    """
    state = {name.removeprefix("module."): value for name, value in load_file(path).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = set(getattr(model, "_tied_weights_keys", None) or {})
    missing = [key for key in missing if key not in tied and "embed_positions" not in key]
    if missing or unexpected:
        raise ValueError(
            f"expected weights of the same architecture in {path.parent}; missing {missing[:3]}, "
            f"unexpected {unexpected[:3]}"
        )


# ---------------------------------------------------------------------------------------------
# The log


class Log:
    """A JSONL file of what happened, cut back to the state a run goes on from."""

    def __init__(self, path: Path, enabled: bool) -> None:
        self.path, self.enabled = path, enabled

    def rewind(self, tokens: int) -> None:
        """Forget what was logged after `tokens`."""
        if self.enabled and self.path.is_file():
            kept = [json.dumps(row) for row in self.rows() if row["tokens"] <= tokens]
            aside = self.path.with_suffix(".partial")
            text = "".join(line + "\n" for line in kept)
            with _writing("the log", self.path.parent, len(text)):
                aside.write_text(text, encoding="utf-8")
                os.replace(aside, self.path)

    def add(self, **row: Any) -> None:
        if self.enabled:
            line = json.dumps(row) + "\n"
            with (
                _writing("the log", self.path.parent, len(line)),
                self.path.open("a", encoding="utf-8") as stream,
            ):
                stream.write(line)

    def rows(self) -> list[dict[str, Any]]:
        """All whole rows; a last line cut by a crash is passed over."""
        if not self.path.is_file():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8").split("\n"):
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found


def curve(rows: Sequence[dict[str, Any]], points: int = 200) -> dict[str, list[list[float]]]:
    """Loss curves for `training.json`: ``train`` and ``dev`` as [tokens, loss], thinned."""
    curves = {}
    for name in ("loss", "dev_loss"):
        # A model saved twice at the same tokens has one point there.
        all_points = list(
            {
                row["tokens"]: [row["tokens"], round(row[name], 4)] for row in rows if name in row
            }.values()
        )
        step = max(1, math.ceil(len(all_points) / points))
        curves["train" if name == "loss" else "dev"] = all_points[::-1][::step][::-1]
    return curves


# ---------------------------------------------------------------------------------------------
# The loop


class _StopRequest:
    """Turns the first Ctrl-C or SIGTERM into a request to save and stop; the second one interrupts.

    Args:
        grace: seconds in which a second signal counts as the first: a scheduler may signal a process
            that its launcher signals too.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.asked = False
        self._grace, self._asked_at = grace, 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _StopRequest:
        with contextlib.suppress(ValueError):  # not in the main thread: then nobody can signal us
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: object) -> None:
        if not self.asked:
            self.asked, self._asked_at = True, time.monotonic()
        elif time.monotonic() - self._asked_at >= self._grace:
            raise KeyboardInterrupt(
                "stopped at once by a second signal; the same command goes on from the last whole state"
            )


@dataclass(frozen=True)
class Result:
    """How a call of `train` ended.

    Attributes:
        finished: the budget was reached and the model saved.
        position: where the run stands.
        report: what ``training.json`` holds, if finished.
        interrupted: a signal ended the call early; the run was saved.
    """

    finished: bool
    position: Position
    report: dict[str, Any] | None = None
    interrupted: bool = False


def train(
    name: str,
    sources: Sequence[corpus.Source],
    tokenizer: Any,
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    tokens: int = 0,
    minutes: float = 0.0,
    dev: corpus.EncodedCorpus | None = None,
    dev_sample: int = 1_000,
    dev_every_tokens: int = 500_000,
    save_minutes: float = 4.0,
    accumulate: int = 1,
    start_from: str | os.PathLike[str] | None = None,
    config: dict[str, Any] | None = None,
    mixed_precision: str = "auto",
    on_step: Callable[[Position, float], None] | None = None,
) -> Result:
    """Train a model, or go on with it.

    Args:
        name: one of `seqviz.architectures.MODEL_NAMES` or an ablation.
        sources: encoded corpora with their repeats; the same list, in the same order, for every call.
        tokenizer: the shared tokenizer; saved with the model.
        run_folder: state and log of this run.
        out: folder of the finished model.
        recipe: settings of the run; must be the same when a run goes on.
        tokens: budget in target tokens of the finished model, the cool-down at its end.
        minutes: longest time of this call. With `tokens`, the run is saved and can go on later;
            alone, the cool-down begins in time for the model to be finished.
        dev: corpus for the validation loss; needed for a model that `seqviz.load` accepts.
        dev_sample: pairs of it.
        dev_every_tokens: target tokens between two validation losses.
        save_minutes: minutes between two saved states.
        accumulate: chunks in which a process works through its part of a batch.
        start_from: model folder whose weights begin a new run (with a new warm-up).
        config: settings of the architecture that differ from `build`'s.
        mixed_precision: "bf16", "no", or "auto": the faster one here. A run that goes on keeps its own.
        on_step: called after every step with position and loss.
    Raises:
        TrainingError: no budget, or one that the run is past; a run folder of other settings, or whose
            saved states are all damaged; unusable `start_from`; a loss that is not finite; processes
            that do not see each other; a `SaveError` where something cannot be written.
    """
    recipe = recipe or Recipe()
    if tokens <= 0 and minutes <= 0:
        raise TrainingError("expected a budget, got none; give --tokens or --minutes")
    run_folder, out = Path(run_folder), Path(out)
    precision = _precision(mixed_precision, run_folder)
    accelerator = _accelerator(precision)
    device = accelerator.device
    _check_processes(accelerator)

    def say(text: str) -> None:
        if accelerator.is_main_process:
            tqdm.write(text, file=sys.stderr)

    if accelerator.is_main_process:
        recover(out)
    _claim(run_folder, name, recipe, sources, tokenizer, config, accelerator)
    weights = build(name, len(tokenizer), seed=recipe.seed, **(config or {}))
    if device.type == "cpu":
        # Fused attention takes several times as long as plain products for sentences of some ten words.
        weights.set_attn_implementation("eager")
    position = Position()
    if start_from is not None and not _checkpoints(run_folder):
        position = _start_from(weights, Path(start_from))
    model, *prepared = accelerator.prepare(SequenceLoss(weights), *optimizers(weights, recipe))
    base_rates = [[group["lr"] for group in opt.param_groups] for opt in prepared]

    # A cool-down has its own folder, so that the state before it stays.
    branch = run_folder / f"cooldown-{tokens}" if tokens else None
    found = branch and load_checkpoint(accelerator, branch, say)
    found = found or load_checkpoint(accelerator, run_folder, say)
    if found is None and (_checkpoints(run_folder) or (branch and _checkpoints(branch))):
        raise TrainingError(
            f"expected a whole saved state in {run_folder}, none of those there can be read; to begin "
            "anew use another run folder or delete this one"
        )
    if found:
        position = found
        say(f"{name}: going on after {position.tokens:,} target tokens")
    position.budget = tokens
    if tokens and position.tokens >= tokens and not (branch and _checkpoints(branch)):
        raise TrainingError(
            f"expected a budget over the {position.tokens:,} target tokens that the run has seen at the "
            f"full rate, got {tokens:,}; there is no room for a cool-down, give a larger one"
        )
    if (
        tokens
        and position.tokens > (1 - recipe.cooldown) * tokens
        and not (branch and _checkpoints(branch))
    ):
        say(
            f"{name}: the run has already seen {position.tokens:,} of {tokens:,} tokens at the full "
            "rate; the cool-down is shorter than usual"
        )
    log = Log(run_folder / "log.jsonl", accelerator.is_main_process)
    log.rewind(position.tokens)

    started = time.monotonic()
    seconds_before, tokens_before, last_save = position.seconds, position.tokens, started
    last_said = started
    next_dev = (position.tokens // dev_every_tokens + 1) * dev_every_tokens
    smoothed: float | None = None
    recent: list[tuple[float, int]] = []
    bar = tqdm(
        total=tokens or None,
        initial=position.tokens,
        desc=name,
        unit=" tokens",
        unit_scale=True,
        disable=not (accelerator.is_main_process and sys.stderr.isatty()),
    )

    def elapsed() -> float:
        return time.monotonic() - started

    def save() -> None:
        nonlocal last_save
        position.seconds = seconds_before + elapsed()
        cooling = position.budget and position.tokens > (1 - recipe.cooldown) * position.budget
        folder = run_folder / f"cooldown-{position.budget}" if cooling else run_folder
        save_checkpoint(accelerator, folder, position)
        last_save = time.monotonic()

    finished = asked = False
    with _StopRequest(grace=5.0 if accelerator.num_processes > 1 else 0.0) as stop:
        for batch, examples_words in _batches(
            sources,
            recipe,
            position,
            accelerator,
            accumulate,
            tokenizer.pad_token_id,
            tokenizer.eos_token_id,
        ):
            if position.budget and position.tokens >= position.budget:
                finished = True
                break
            # Clocks and signals differ between processes, what follows from them must not.
            asked, time_is_over, cool_down, due = _any(
                accelerator,
                stop.asked,
                bool(minutes and tokens) and elapsed() > 60 * minutes,
                bool(minutes and not tokens and not position.budget) and elapsed() > 48 * minutes,
                time.monotonic() - last_save > 60 * save_minutes,
            )
            if cool_down:
                # Four fifths of the time are over: what the rest allows becomes the budget.
                save()
                speed = (position.tokens - tokens_before) / elapsed()
                left = max(60.0 * minutes - elapsed(), 0.25 * elapsed())
                more = _of_main(max(recipe.batch_tokens, int(speed * left)), accelerator)
                position.budget = position.tokens + more
                recipe = replace(recipe, cooldown=1 - position.tokens / position.budget)
            if asked:
                say(f"{name}: saving, then ending; a second signal ends at once")
            stopping = asked or time_is_over
            before_cooldown = (
                tokens
                and position.tokens <= (1 - recipe.cooldown) * tokens
                and position.tokens + batch.num_target_tokens > (1 - recipe.cooldown) * tokens
            )
            if stopping or before_cooldown or due:
                save()
            if stopping:
                break

            factor = rate_factor(position.tokens, recipe, position.budget, position.warmup_from)
            for optimizer, rates in zip(prepared, base_rates, strict=True):
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * factor
            loss_sum = torch.zeros((), device=device)
            for index, chunk in enumerate(batch.chunks):
                last = index == len(batch.chunks) - 1
                with contextlib.nullcontext() if last else accelerator.no_sync(model):
                    chunk_loss = summed_loss(model, chunk, device)
                    # Gradients are averaged over processes; we want their sum over all tokens.
                    scale = accelerator.num_processes / batch.num_target_tokens
                    accelerator.backward(chunk_loss * scale)
                    loss_sum += chunk_loss.detach()
            norm = accelerator.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            loss = accelerator.reduce(loss_sum, "sum").item() / batch.num_target_tokens
            if not math.isfinite(loss) or not math.isfinite(float(norm)):
                raise DivergedError(
                    f"expected a finite loss, got {loss} (gradient norm {float(norm)}) at step "
                    f"{position.step}; the last whole state is kept, try a lower learning rate"
                )
            for optimizer in prepared:
                optimizer.step()
                optimizer.zero_grad()

            position.step += 1
            position.tokens += batch.num_target_tokens
            position.batch += 1
            for words, count in zip(*np.unique(examples_words, return_counts=True), strict=True):
                position.length_histogram[min(int(words), corpus.MAX_SOURCE_WORDS)] += int(count)
            smoothed = loss if smoothed is None else 0.95 * smoothed + 0.05 * loss
            recent.append((loss * batch.num_target_tokens, batch.num_target_tokens))
            bar.update(batch.num_target_tokens)
            bar.set_postfix(loss=f"{smoothed:.3f}", refresh=False)
            if on_step:
                on_step(position, loss)
            if bar.disable and time.monotonic() - last_said > 30:
                last_said = time.monotonic()
                speed = (position.tokens - tokens_before) / elapsed()
                say(
                    f"{name}: {position.tokens:,}"
                    + (f" of {position.budget:,}" if position.budget else "")
                    + f" tokens, loss {smoothed:.3f}, {speed:,.0f} tokens/s"
                )
            if position.step % 20 == 0:
                log.add(
                    step=position.step,
                    tokens=position.tokens,
                    loss=sum(part for part, _ in recent) / sum(count for _, count in recent),
                    rate_factor=round(factor, 4),
                    gradient_norm=round(float(norm), 4),
                    seconds=round(seconds_before + elapsed(), 1),
                    tokens_per_second=round((position.tokens - tokens_before) / elapsed(), 1),
                )
                recent = []
            if dev is not None and position.tokens >= next_dev:
                next_dev += dev_every_tokens
                if accelerator.is_main_process:
                    dev_loss = mean_loss(weights, dev, device, sample=dev_sample)
                    log.add(tokens=position.tokens, step=position.step, dev_loss=dev_loss)
                    say(
                        f"{name}: {position.tokens:,} tokens, loss {smoothed:.3f}, dev loss "
                        f"{dev_loss:.3f}, {(position.tokens - tokens_before) / elapsed():,.0f} tokens/s"
                    )
                accelerator.wait_for_everyone()
        bar.close()
    position.seconds = seconds_before + elapsed()
    if not finished:
        say(f"{name}: saved after {position.tokens:,} target tokens; the same command goes on")
        return Result(False, position, interrupted=asked)

    save()
    report = None
    if accelerator.is_main_process:
        dev_loss = None if dev is None else mean_loss(weights, dev, device, sample=dev_sample)
        if dev_loss is not None:
            log.add(tokens=position.tokens, step=position.step, dev_loss=dev_loss)
        report = _report(name, weights, sources, recipe, position, log, dev, dev_loss, accelerator)
        with _writing("the finished model", out, 3 * num_parameters(weights)):
            save_model(weights, tokenizer, out, report)
        said_loss = "" if dev_loss is None else f", validation loss {dev_loss:.3f}"
        say(f"{name}: done after {position.tokens:,} target tokens{said_loss}; saved in {out}")
    accelerator.wait_for_everyone()
    return Result(True, position, report)


@dataclass(frozen=True)
class _Step:
    """This process's chunks of one batch, and the target tokens of the whole batch."""

    chunks: list[corpus.Batch]
    num_target_tokens: int


def _batches(
    sources: Sequence[corpus.Source],
    recipe: Recipe,
    position: Position,
    accelerator: Accelerator,
    accumulate: int,
    pad_token_id: int,
    eos_token_id: int,
) -> Iterator[tuple[_Step, np.ndarray]]:
    """Batches from `position` on, without end, with the source words of their examples."""
    process, processes = accelerator.process_index, accelerator.num_processes
    passes = [source.passes for source in sources]
    while True:
        epoch = corpus.plan_epoch(
            sources,
            seed=recipe.seed,
            epoch=position.epoch,
            join_probability=recipe.join_probability,
        )
        plan = corpus.plan_batches(
            epoch, batch_tokens=recipe.batch_tokens, seed=recipe.seed, number=position.epoch
        )
        for number in range(position.batch, len(plan)):
            examples = plan[number]
            mine = examples[process::processes]
            chunks = []
            for part in (mine[i::accumulate] for i in range(accumulate)):
                # A process without a sentence still takes part, with a target that counts nothing.
                rows = part if len(part) else examples[:1]
                pairs = [
                    passes[epoch.corpus[e]][epoch.read[e]].ids(
                        int(epoch.first[e]), int(epoch.count[e])
                    )
                    for e in rows
                ]
                chunk = corpus.make_batch(
                    pairs, pad_token_id=pad_token_id, eos_token_id=eos_token_id
                )
                if not len(part):
                    chunk.labels[:] = -100
                chunks.append(chunk)
            total = int(epoch.target_length[examples].sum())
            yield _Step(chunks, total), epoch.source_words[examples]
        position.epoch += 1
        position.batch = 0


def _any(accelerator: Accelerator, *flags: bool) -> list[bool]:
    """For each flag, true in every process if it is true in one."""
    if accelerator.num_processes == 1:
        return list(flags)
    sums: Any = torch.tensor([float(flag) for flag in flags], device=accelerator.device)
    return [value > 0 for value in accelerator.reduce(sums, "sum").tolist()]


def _of_main(value: Any, accelerator: Accelerator) -> Any:
    """The main process's value, in every process."""
    return broadcast_object_list([value])[0] if accelerator.num_processes > 1 else value


def processes() -> PartialState:
    """The processes that work together, for what they do before `train`.

    They wait for one another up to an hour: the first one may have a large corpus to encode.
    """
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU")  # as `Accelerator` itself asks
    return PartialState(on_cpu, timeout=timedelta(hours=1))


PRECISIONS = {"no": "fp32", "bf16": "bf16"}
"""What Accelerate calls it, and what reports do."""


def _precision(asked: str, run_folder: Path) -> str:
    """What Accelerate is told; a run that goes on keeps its own.

    Raises:
        TrainingError: no such precision, another one than the run's, or one that this machine has not.
    """
    if asked not in ("auto", *PRECISIONS):
        raise TrainingError(
            f"expected a mixed precision of bf16, no or auto, got {asked!r}; give one of these"
        )
    state = processes()
    device = state.device
    own = _own_precision(run_folder)
    if own and asked not in ("auto", own):
        raise TrainingError(
            f"expected {PRECISIONS[own]}, the precision of the run in {run_folder}, got {asked!r}; leave "
            "--mixed-precision out or use another run folder"
        )
    if own == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise TrainingError(
            f"expected a GPU with bf16, the precision of the run in {run_folder}, got one without; go on "
            "where there is one, or on the CPU with ACCELERATE_USE_CPU=1"
        )
    if own is None and asked == "auto":
        asked = "bf16" if bf16_pays(device) else "no"
        # Every process has measured for itself; one answer must hold for all.
        asked = broadcast_object_list([asked])[0] if state.num_processes > 1 else asked
    return own or asked


def _own_precision(run_folder: Path) -> str | None:
    """The precision that a run was begun in; None for a new run, and for one that did not record it."""
    try:
        settings = json.loads((run_folder / "settings.json").read_text(encoding="utf-8"))
        return settings.get("precision")
    except (OSError, ValueError, AttributeError):
        return None  # `_claim` says what is wrong


def _accelerator(precision: str) -> Accelerator:
    """Accelerate keeps the precision of a process's first run; a later run may have another."""
    if AcceleratorState._shared_state and AcceleratorState().mixed_precision != precision:
        AcceleratorState._reset_state()
    return Accelerator(mixed_precision=precision)


@functools.cache
def bf16_pays(device: torch.device) -> bool:
    """Whether bf16 is the faster precision here: on a GPU that has it; on a CPU by a product of each.

    On some processors bf16 has its own units, on others it is slower than float32. A quarter more is asked
    for, since converting costs something, too.
    """
    if device.type != "cpu":
        return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)

    def seconds(kind: torch.dtype) -> float:
        """Of the output layer's product with 512 states, the best of some within half a second."""
        states, table = torch.ones(512, 256, dtype=kind), torch.ones(256, 8000, dtype=kind)
        best, end = math.inf, time.perf_counter() + 0.5
        while time.perf_counter() < end:
            began = time.perf_counter()
            torch.mm(states, table)
            best = min(best, time.perf_counter() - began)
        return best

    return seconds(torch.float32) > 1.25 * seconds(torch.bfloat16)


def _check_processes(accelerator: Accelerator) -> None:
    """Refuse to train as several strangers that believe to be alone and write into one folder."""
    launched = int(os.environ.get("WORLD_SIZE", 1))
    if launched != accelerator.num_processes:
        raise TrainingError(
            f"expected {launched} processes, as the launcher says, got {accelerator.num_processes} that "
            "can work together; start one process for each GPU of this machine, or set "
            "ACCELERATE_USE_CPU=1 to train on the CPU"
        )


def _differences(before: Any, now: Any) -> str:
    """What has changed, item by item where there are any."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return f"{before} → {now}"
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return ", ".join(f"{key} {before.get(key)} → {now.get(key)}" for key in changed)


def _claim(
    run_folder: Path,
    name: str,
    recipe: Recipe,
    sources: Sequence[corpus.Source],
    tokenizer: Any,
    config: dict[str, Any] | None,
    accelerator: Accelerator,
) -> None:
    """Write the settings of a new run, or check that they are those of the run found."""
    settings = {
        "model": name,
        "recipe": asdict(recipe),
        "config": config or {},
        "data": [_identity(source) for source in sources],
        "tokenizer": hashlib.sha256(
            json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()
        ).hexdigest(),
        "precision": accelerator.mixed_precision,
    }
    path = run_folder / "settings.json"
    if path.is_file():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise TrainingError(
                f"expected the settings of the run in {path}, which is damaged ({error}); delete the file "
                "if the command is the one that began the run"
            ) from None
        for key, value in settings.items():
            # Runs begun before tokenizer and precision were recorded go on.
            if found.get(key, value) != value:
                raise TrainingError(
                    f"expected the {key} of the run in {run_folder}, got another: "
                    f"{_differences(found.get(key), value)}; use the same settings or another run folder"
                )
    elif accelerator.is_main_process:
        aside = path.with_suffix(".partial")
        with _writing("the settings of the run", run_folder, 10_000):
            run_folder.mkdir(parents=True, exist_ok=True)
            aside.write_text(json.dumps(settings, indent=1), encoding="utf-8")
            os.replace(aside, path)
    accelerator.wait_for_everyone()
    for _ in range(60):
        if path.is_file():
            return
        time.sleep(1)  # what another machine writes may take a while to show
    raise TrainingError(
        f"expected a run folder that all machines share, got {run_folder}, in which the settings that "
        "the main process wrote are not to be seen; give --runs on a shared disk"
    )


def _identity(source: corpus.Source) -> list[Any]:
    """What a run must find again of a corpus when it goes on."""
    information = source.corpus.information
    settings = {key: information[key] for key in ("longest", "noise") if key in information}
    return [
        information["sha256"],
        len(source.corpus),
        source.repeat,
        *([settings] if settings else []),
    ]


def _start_from(model: nn.Module, folder: Path) -> Position:
    """Load weights into a fresh model; the position follows what they have seen.

    Raises:
        TrainingError: no such folder, a damaged file, or weights of another architecture.
    """
    try:
        training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        position = Position(
            step=training["steps"],
            tokens=training["target_tokens"],
            epoch=training["next"]["epoch"],
            batch=training["next"]["batch"],
            seconds=training["seconds"],
            warmup_from=training["target_tokens"],
            length_histogram=training["length_histogram"],
            started_from={
                "target_tokens": training["target_tokens"],
                "dev_loss": training["dev_loss"],
            },
        )
        _load_weights(model, folder / "model.safetensors")
    except (OSError, ValueError, KeyError, SafetensorError, RuntimeError) as error:
        raise TrainingError(
            f"expected a model folder of the same architecture in {folder}, with training.json and "
            f"model.safetensors, got {type(error).__name__}: {str(error)[:300]}; check the folder"
        ) from error
    return position


def _report(
    name: str,
    model: nn.Module,
    sources: Sequence[corpus.Source],
    recipe: Recipe,
    position: Position,
    log: Log,
    dev: corpus.EncodedCorpus | None,
    dev_loss: float | None,
    accelerator: Accelerator,
) -> dict[str, Any]:
    return {
        "schema": 1,
        "model": name,
        "num_parameters": num_parameters(model),
        "target_tokens": position.tokens,
        "budget": position.budget,
        "steps": position.step,
        "seconds": round(position.seconds, 1),
        "next": {"epoch": position.epoch, "batch": position.batch},
        "started_from": position.started_from,
        "hardware": hardware(accelerator.device),
        "processes": accelerator.num_processes,
        "precision": PRECISIONS[accelerator.mixed_precision],
        "recipe": asdict(recipe),
        "data": [{**s.corpus.information, "repeat": s.repeat} for s in sources],
        "dev_data": dev and {k: dev.information[k] for k in ("name", "sha256", "pairs")},
        "dev_loss": None if dev_loss is None else round(dev_loss, 4),
        "losses": curve(log.rows()),
        "length_histogram": position.length_histogram,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Transformers shows a bar even for writing one small file."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def save_model(
    model: nn.Module, tokenizer: Any, folder: str | os.PathLike[str], report: dict[str, Any]
) -> None:
    """Save a finished model as an ordinary Transformers folder, weights in fp16.

    `report` becomes ``training.json``; the digest of the weights is added to it.
    Written beside `folder` and renamed, so that it holds the old model or the new one, never half.
    """
    folder = Path(folder)
    recover(folder)
    aside = folder.with_name(f".{folder.name}-new")
    shutil.rmtree(aside, ignore_errors=True)  # of a call that was killed
    try:
        aside.mkdir(parents=True)
        aside.chmod(0o755)
        with _no_progress_bar():
            copy.deepcopy(model).cpu().half().eval().save_pretrained(aside)
        # Stored in half precision, to be computed with in single precision, by whoever loads it.
        config = json.loads((aside / "config.json").read_text(encoding="utf-8"))
        config["dtype"] = "float32"
        (aside / "config.json").write_text(
            json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        tokenizer.save_pretrained(aside)
        report["weights_sha256"] = file_digest(aside / "model.safetensors")
        (aside / "training.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        for file in aside.iterdir():
            file.chmod(0o644)
        put_in_place(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
