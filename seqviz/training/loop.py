"""The one training loop, for every model.

A run lives in a folder of its own, outside the model folder it produces. The learning rate warms up,
stays constant, and cools down over the last part of the token budget. The state before the cool-down
is kept: a later call with a larger budget goes on from there, so no training is ever wasted.

One step is one batch of about `Recipe.batch_tokens` target tokens, however many processes share it:
each takes every n-th sentence, and the gradient is the sum over all target tokens of the batch divided
by their number. So the number of processes and of accumulation chunks changes speed, not the result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seqviz.architectures import num_parameters
from seqviz.data.encoded import EncodedCorpus
from seqviz.data.epochs import WeightedCorpus
from seqviz.text_languages import LanguagePair
from seqviz.training.batches import Step, batches
from seqviz.training.loss import summed_loss
from seqviz.training.model_folder import save_model, training_record
from seqviz.training.processes import summed
from seqviz.training.recipe import Recipe
from seqviz.training.run import Run
from seqviz.training.signals import StopRequest
from seqviz.training.state import Position
from seqviz.training.writing import writing


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
    sources: Sequence[WeightedCorpus],
    tokenizer: Any,
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    tokens: int = 0,
    minutes: float = 0.0,
    dev: EncodedCorpus | None = None,
    dev_sample: int = 1_000,
    dev_every_tokens: int = 500_000,
    patience: int = 0,
    tracker: str | None = None,
    save_minutes: float = 4.0,
    accumulate: int = 1,
    start_from: str | os.PathLike[str] | None = None,
    config: dict[str, Any] | None = None,
    mixed_precision: str = "auto",
    finish: str | None = None,
    source_language: str = "en",
    target_language: str = "fr",
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
        patience: validations in a row without a lower loss that end the run; what is written then is the state of
            the lowest loss. 0: none do, and the last state is written.
        tracker: "tensorboard" shows the losses there, from the run folder.
        save_minutes: minutes between two saved states.
        accumulate: chunks in which a process works through its part of a batch.
        start_from: model folder whose weights begin a new run (with a new warm-up).
        config: settings of the architecture that differ from `build`'s.
        mixed_precision: "bf16", "no", or "auto": the faster one here. A run that goes on keeps its own.
        finish: "cooldown" lets the cool-down begin where the run stands, "now" makes the model of its last state.
        source_language, target_language: codes of ISO 639-1, which the model keeps.
        on_step: called after every step with position and loss.
    Raises:
        TrainingError: no budget, or one that the run is past; a run folder of other settings, or whose
            saved states are all damaged; unusable `start_from`; a loss that is not finite; processes
            that do not see each other; a `SaveError` where something cannot be written.
        LanguageError: no such languages, or what finds their words is not installed.
    """
    run = Run(
        name,
        sources,
        tokenizer,
        Path(run_folder),
        Path(out),
        recipe=recipe or Recipe(),
        tokens=tokens,
        minutes=minutes,
        save_minutes=save_minutes,
        dev=dev,
        dev_sample=dev_sample,
        dev_every_tokens=dev_every_tokens,
        patience=patience,
        tracker=tracker,
        start_from=start_from,
        config=config,
        mixed_precision=mixed_precision,
        finish=finish,
        languages=LanguagePair.of(source_language, target_language),
    )
    with contextlib.closing(run):
        go_on(run, tokenizer, accumulate, on_step)
        if run.is_finished:
            return _finish(run, tokenizer, Path(out))
        run.say(
            f"{name}: saved after {run.position.tokens:,} target tokens; the same command goes on"
        )
        return Result(False, run.position, interrupted=run.asked)


def go_on(
    run: Run,
    tokenizer: Any,
    accumulate: int,
    on_step: Callable[[Position, float], None] | None,
) -> None:
    """Take one step after the other, until the run is finished or must end."""
    grace = 5.0 if run.accelerator.num_processes > 1 else 0.0
    ids = tokenizer.pad_token_id, tokenizer.eos_token_id
    with StopRequest(grace) as stop:
        for step in batches(
            run.sources, run.recipe, run.position, run.accelerator, accumulate, *ids
        ):
            if run.is_finished or run.must_end(step, stop.asked):
                break
            run.set_rates()  # warm-up, 1, cool-down
            loss = backward(run, step)  # the gradient of the mean loss
            norm = clip(run)
            run.check_finite(loss, norm)
            for optimizer in run.optimizers:
                optimizer.step()
                optimizer.zero_grad()
            run.advance(step, loss)
            if on_step:
                on_step(run.position, loss)
            run.note(norm)


def backward(run: Run, step: Step) -> float:
    """Add the gradient of a batch's mean loss to the parameters; gives the loss, nats a target token."""
    loss_sum = torch.zeros((), device=run.device)
    for chunk in step.chunks:
        last = chunk is step.chunks[-1]
        with contextlib.nullcontext() if last else run.accelerator.no_sync(run.model):
            chunk_loss = summed_loss(run.model, chunk, run.device)
            # Gradients are averaged over processes; we want their sum over all tokens.
            scale = run.accelerator.num_processes / step.num_target_tokens
            run.accelerator.backward(chunk_loss * scale)
            loss_sum += chunk_loss.detach()
    return summed(loss_sum, run.accelerator).item() / step.num_target_tokens


def clip(run: Run) -> float:
    """Shorten a gradient longer than the recipe's `clip_norm`; gives the length that it had."""
    norm = run.accelerator.clip_grad_norm_(run.model.parameters(), run.recipe.clip_norm)
    assert norm is not None  # as under DeepSpeed alone
    return float(norm)


def _finish(run: Run, tokenizer: Any, out: Path) -> Result:
    """Save the run, then the model."""
    dev_loss = run.end()
    record = None
    if run.accelerator.is_main_process:
        record = training_record(run, dev_loss)
        with writing("the finished model", out, 3 * num_parameters(run.weights)):
            save_model(run.weights, tokenizer, out, record)
        said_loss = "" if dev_loss is None else f", validation loss {dev_loss:.3f}"
        run.say(
            f"{run.name}: done after {run.position.tokens:,} target tokens{said_loss}; saved in {out}"
        )
    run.accelerator.wait_for_everyone()
    return Result(True, run.position, record)
