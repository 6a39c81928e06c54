"""A run: its model and optimisers, where it stands, its log, and when it saves and ends."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seqviz.architectures import build
from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.data.encoded import EncodedCorpus
from seqviz.data.epochs import WeightedCorpus
from seqviz.files import recover
from seqviz.text_languages import LanguagePair
from seqviz.training.batches import Step
from seqviz.training.beginning import claim, start_position
from seqviz.training.best import Best
from seqviz.training.errors import DivergedError, TrainingError
from seqviz.training.languages import check_languages
from seqviz.training.lock import RunLock
from seqviz.training.log import Log
from seqviz.training.loss import SequenceLoss, mean_loss
from seqviz.training.processes import (
    accelerator_in,
    any_of,
    check_environment,
    check_processes,
    of_main,
    precision_of,
)
from seqviz.training.recipe import Recipe, optimizers, rate_factor
from seqviz.training.state import (
    Position,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from seqviz.training.watching import Tracker, check_tracker, draw_losses


class Run:
    """Found again in its folder, or begun there.

    A cool-down has a folder of its own, so that the state before it stays: a later call with a larger budget
    goes on from there.

    Args: as `seqviz.training.train` has them.
    Attributes:
        weights: the model itself.
        model: the model with its loss, wrapped for the processes that share it.
        optimizers: of its matrices and of all else.
        position: where the run stands.
        asked: a signal asked the call to end.
        best: the state of the lowest validation loss, with patience.
        rate_at_end: factor on the learning rate of what is written, where that is not the end of a budget.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[WeightedCorpus],
        tokenizer: Any,
        folder: Path,
        out: Path,
        *,
        recipe: Recipe,
        tokens: int,
        minutes: float,
        save_minutes: float,
        dev: EncodedCorpus | None,
        dev_sample: int,
        dev_every_tokens: int,
        patience: int,
        tracker: str | None,
        start_from: str | os.PathLike[str] | None,
        config: dict[str, Any] | None,
        mixed_precision: str,
        finish: str | None,
        languages: LanguagePair,
    ) -> None:
        if finish not in (None, "cooldown", "now"):
            raise TrainingError(f"expected finish to be None, cooldown or now, got {finish!r}")
        if tokens <= 0 and minutes <= 0 and not finish:
            raise TrainingError("expected a budget, got none; give --tokens or --minutes")
        if patience and dev is None:
            raise TrainingError(
                "expected a development corpus with --patience, got none; give --dev"
            )
        check_environment()
        check_tracker(tracker)
        self.name, self.sources, self.folder, self.recipe = name, sources, folder, recipe
        self.tokens, self.minutes, self.save_minutes = tokens, minutes, save_minutes
        self.finish, self.patience, self.rate_at_end = finish, patience, None
        self.dev, self.dev_sample, self.dev_every_tokens = dev, dev_sample, dev_every_tokens
        self.languages = languages
        check_languages(languages, sources, dev)
        self.accelerator = accelerator_in(precision_of(mixed_precision, folder), tracker, folder)
        check_processes(self.accelerator)
        self._lock = RunLock(folder, self.accelerator)
        try:
            self._begin(tokenizer, out, config, start_from)
        except BaseException:
            self._lock.release()
            raise

    def _begin(
        self,
        tokenizer: Any,
        out: Path,
        config: dict[str, Any] | None,
        start_from: str | os.PathLike[str] | None,
    ) -> None:
        """Find the run in its folder, which is ours by now, or begin it there."""
        folder, name, recipe = self.folder, self.name, self.recipe
        if self.accelerator.is_main_process:
            recover(out)
        languages = self.languages
        claim(folder, name, recipe, self.sources, tokenizer, config, self.accelerator, languages)
        self.weights = build(name, len(tokenizer), seed=recipe.seed, **(config or {}))
        if not languages.is_default:
            self.weights.config.languages = list(languages.codes)
        if self.device.type == "cpu":
            # Fused attention takes several times as long as plain products for sentences of some ten words.
            self.weights.set_attn_implementation("eager")
        self.position = Position()
        if start_from is not None and not checkpoints(folder):
            self.position = start_position(self.weights, Path(start_from))
        self.model, *self.optimizers = self.accelerator.prepare(
            SequenceLoss(self.weights), *optimizers(self.weights, recipe)
        )
        self._full_rates = [[g["lr"] for g in opt.param_groups] for opt in self.optimizers]
        self._restore()
        self._tracker = Tracker(self.accelerator, self.position.tokens)
        self.log = Log(folder / "log.jsonl", self.accelerator.is_main_process, self._tracker)
        self.log.rewind(self.position.tokens)
        places = [(folder, self.tokens or math.inf), (self._cooldown_folder(self.tokens), math.inf)]
        self.best = Best(self.accelerator, self.patience, places, self.log.rows(), self.say)

        self.asked = False
        self._started = self._last_save = self._last_said = time.monotonic()
        self._seconds_before, self._tokens_before = self.position.seconds, self.position.tokens
        self._next_dev = (self.position.tokens // self.dev_every_tokens + 1) * self.dev_every_tokens
        self._smoothed: float | None = None
        self._recent: list[tuple[float, int]] = []
        self._bar = tqdm(
            total=self.tokens or None,
            initial=self.position.tokens,
            desc=name,
            unit=" tokens",
            unit_scale=True,
            disable=not (self.accelerator.is_main_process and sys.stderr.isatty()),
        )

    @property
    def device(self) -> Any:
        return self.accelerator.device

    def say(self, text: str) -> None:
        if self.accelerator.is_main_process:
            tqdm.write(text, file=sys.stderr)

    # -----------------------------------------------------------------------------------------
    # Saved and found again

    def _restore(self) -> None:
        """Go on from the newest whole state: of the cool-down to this budget, or of the run."""
        if self.finish == "cooldown":
            self.tokens = self._budget_to_cool_down_now()
        tokens, cooling = self.tokens, self._cooldown_folder(self.tokens)
        found = tokens and load_checkpoint(self.accelerator, cooling, self.say)
        found = found or load_checkpoint(self.accelerator, self.folder, self.say)
        cooled = bool(tokens and checkpoints(cooling))
        if found:
            self.position = found
            self.say(f"{self.name}: going on after {found.tokens:,} target tokens")
        elif cooled or checkpoints(self.folder):
            raise TrainingError(
                f"expected a whole saved state in {self.folder}, none of those there can be read; to begin "
                "anew use another run folder or delete this one"
            )
        elif self.finish:
            raise TrainingError(
                f"expected a saved state in {self.folder} to finish, found none; train first, or check the "
                "run folder, the name of the model and the seed"
            )
        if self.finish == "now":
            self._end_here()
            return
        seen, self.position.budget = self.position.tokens, tokens
        if not tokens or cooled:
            return
        if seen >= tokens:
            raise TrainingError(
                f"expected a budget over the {seen:,} target tokens that the run has seen at the full rate, "
                f"got {tokens:,}; there is no room for a cool-down, give a larger one"
            )
        if seen > self._cooldown_begins(tokens):
            self.say(
                f"{self.name}: the run has already seen {seen:,} of {tokens:,} tokens at the full rate; "
                "the cool-down is shorter than usual"
            )

    def _budget_to_cool_down_now(self) -> int:
        """The budget whose cool-down begins where the run stands; the one asked for, if that is nearer.

        The state of the run stays where it is, so that the same call comes to the same budget again.
        """
        if self.tokens and checkpoints(self._cooldown_folder(self.tokens)):
            return self.tokens  # which is being cooled down to
        found = load_checkpoint(self.accelerator, self.folder, self.say)
        if found is None:
            return self.tokens
        from_here = max(math.ceil(found.tokens / (1 - self.recipe.cooldown)), found.tokens + 1)
        return min(from_here, self.tokens) if self.tokens > found.tokens else from_here

    def _end_here(self) -> None:
        """The state found is the finished model, at the rate that it was trained with last."""
        at = self.position
        self.rate_at_end = rate_factor(at.tokens, self.recipe, at.budget, at.warmup_from)
        self.tokens = at.budget = at.tokens
        self.say(
            f"{self.name}: ending here, at {self.rate_at_end:.0%} of the full learning rate; a cool-down "
            "makes a better model"
        )

    def _cooldown_begins(self, budget: int) -> float:
        return (1 - self.recipe.cooldown) * budget

    def _cooldown_folder(self, budget: int) -> Path:
        return self.folder / f"cooldown-{budget}"

    def save(self) -> None:
        """Save the state, in the folder of the cool-down once that has begun."""
        if self.finish == "now":
            return  # it has just been read, and is what a later call goes on from
        self.position.seconds = self.seconds
        save_checkpoint(self.accelerator, self._folder_of_states, self.position)
        self._last_save = time.monotonic()

    @property
    def _folder_of_states(self) -> Path:
        budget = self.position.budget
        cooling = budget and self.position.tokens > self._cooldown_begins(budget)
        return self._cooldown_folder(budget) if cooling else self.folder

    # -----------------------------------------------------------------------------------------
    # Before a step

    @property
    def is_finished(self) -> bool:
        """Whether the budget is spent, or the patience, which `finish` does not ask for."""
        if self.best.is_long_ago and not self.finish:
            return True
        return bool(self.position.budget) and self.position.tokens >= self.position.budget

    def must_end(self, step: Step, asked: bool) -> bool:
        """Save where it is due; whether the call must end before this step, with the state saved.

        Args:
            asked: a signal asked this process to end.
        """
        # Clocks and signals differ between processes, what follows from them must not.
        elapsed = self._elapsed()
        open_end = bool(self.minutes and not self.tokens and not self.position.budget)
        asked, time_is_over, cool_down, due = any_of(
            self.accelerator,
            asked,
            bool(self.minutes and self.tokens) and elapsed > 60 * self.minutes,
            open_end and elapsed > 48 * self.minutes,
            time.monotonic() - self._last_save > 60 * self.save_minutes,
        )
        if cool_down:
            self._cool_down_now()
        if asked:
            self.asked = True
            self.say(f"{self.name}: saving, then ending; a second signal ends at once")
        begins = self._cooldown_begins(self.tokens)
        seen = self.position.tokens
        before_cooldown = self.tokens and seen <= begins < seen + step.num_target_tokens
        if asked or time_is_over or before_cooldown or due:
            self.save()
        return asked or time_is_over

    def _cool_down_now(self) -> None:
        """Four fifths of the time are over: what the rest allows becomes the budget."""
        self.save()
        seen, elapsed = self.position.tokens, self._elapsed()
        speed = (seen - self._tokens_before) / elapsed
        left = max(60.0 * self.minutes - elapsed, 0.25 * elapsed)
        more = of_main(max(self.recipe.batch_tokens, int(speed * left)), self.accelerator)
        self.position.budget = seen + more
        self.recipe = replace(self.recipe, cooldown=1 - seen / self.position.budget)

    # -----------------------------------------------------------------------------------------
    # In a step

    def set_rates(self) -> None:
        """Give the optimisers the learning rates of this step."""
        at = self.position
        self._factor = rate_factor(at.tokens, self.recipe, at.budget, at.warmup_from)
        for optimizer, rates in zip(self.optimizers, self._full_rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * self._factor

    def check_finite(self, loss: float, norm: float) -> None:
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise DivergedError(
                f"expected a finite loss, got {loss} (gradient norm {norm}) at step {self.position.step}; the "
                "last whole state is kept, try a lower learning rate"
            )

    def advance(self, step: Step, loss: float) -> None:
        """Count a step that was taken."""
        self.position.step += 1
        self.position.tokens += step.num_target_tokens
        self.position.batch += 1
        for words, count in zip(*np.unique(step.source_words, return_counts=True), strict=True):
            self.position.length_histogram[min(int(words), MAX_SOURCE_WORDS)] += int(count)
        self._smoothed = loss if self._smoothed is None else 0.95 * self._smoothed + 0.05 * loss
        self._recent.append((loss * step.num_target_tokens, step.num_target_tokens))
        self._bar.update(step.num_target_tokens)
        self._bar.set_postfix(loss=f"{self._smoothed:.3f}", refresh=False)

    def note(self, norm: float) -> None:
        """Say and log what is due after a step; take the validation loss where that is due."""
        at = self.position
        if self._bar.disable and time.monotonic() - self._last_said > 30:
            self._last_said = time.monotonic()
            budget = f" of {at.budget:,}" if at.budget else ""
            self.say(f"{self.name}: {at.tokens:,}{budget} tokens, {self._progress()}")
        if at.step % 20 == 0:
            self.log.add(
                step=at.step,
                tokens=at.tokens,
                loss=sum(part for part, _ in self._recent)
                / sum(count for _, count in self._recent),
                rate_factor=round(self._factor, 4),
                gradient_norm=round(norm, 4),
                seconds=round(self.seconds, 1),
                tokens_per_second=round(self._speed(), 1),
            )
            self._recent = []
        if self.dev is not None and at.tokens >= self._next_dev:
            self._next_dev += self.dev_every_tokens
            loss = self._validate()
            self.say(
                f"{self.name}: {at.tokens:,} tokens, {self._progress(f', dev loss {loss:.3f}')}"
            )
            here = replace(at, seconds=self.seconds, dev_loss=loss)
            self.best.note(here, self._folder_of_states)

    def _progress(self, more: str = "") -> str:
        return f"loss {self._smoothed:.3f}{more}, {self._speed():,.0f} tokens/s"

    # -----------------------------------------------------------------------------------------
    # At the end

    def end(self) -> float | None:
        """Save, then choose what is written: the last state or, with patience, a better one before it.

        Returns:
            its validation loss, None without a development corpus.
        """
        self.save()
        if self.dev is None:
            return None
        loss = self._validate()
        best = self.best.take(loss)
        if best is None:
            return loss
        self.say(
            f"{self.name}: the lowest validation loss, {best.dev_loss:.3f}, was that after {best.tokens:,} "
            f"target tokens, and {loss:.3f} that after {self.position.tokens:,}; the former state is written"
        )
        self.position = best
        self.rate_at_end = rate_factor(best.tokens, self.recipe, best.budget, best.warmup_from)
        return best.dev_loss

    def _validate(self) -> float:
        """The validation loss, which the log and the picture of the losses keep."""
        loss = 0.0
        if self.accelerator.is_main_process:
            assert self.dev is not None
            loss = mean_loss(self.weights, self.dev, self.device, sample=self.dev_sample)
            self.log.add(tokens=self.position.tokens, step=self.position.step, dev_loss=loss)
            draw_losses(self.folder, self.name, self.log.rows())
        return of_main(loss, self.accelerator)

    def close(self) -> None:
        self._bar.close()
        self._tracker.close()
        self.position.seconds = self.seconds
        self._lock.release()

    def _elapsed(self) -> float:
        """Seconds of this call."""
        return time.monotonic() - self._started

    @property
    def seconds(self) -> float:
        """Of all calls of the run."""
        return self._seconds_before + self._elapsed()

    def _speed(self) -> float:
        """Target tokens a second in this call."""
        return (self.position.tokens - self._tokens_before) / self._elapsed()
