"""The state of a run on disk: whole or absent, found again after any crash."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils.other import load as load_pickled
from safetensors.torch import load_file
from torch import nn

from seqviz.constants import MAX_SOURCE_WORDS
from seqviz.files import file_digest, put_in_place, recover
from seqviz.training.errors import SaveError
from seqviz.training.processes import any_of, of_main
from seqviz.training.writing import writing


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
    length_histogram: list[int] = field(default_factory=lambda: [0] * (MAX_SOURCE_WORDS + 1))
    started_from: dict[str, Any] | None = None
    dev_loss: float | None = None  # of a state that is kept as the best one


def checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), reverse=True)


def read_position(checkpoint: Path) -> Position | None:
    """Where a saved state stands; None where that cannot be read."""
    try:
        return Position(**json.loads((checkpoint / "position.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


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
            with writing("a saved state", folder, num_bytes):
                yield
        except SaveError as error:
            failure = error
        (failed,) = any_of(accelerator, failure is not None)
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
            saved = checkpoints(folder)
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
    names = [path.name for path in checkpoints(folder)]
    for path in (folder / name for name in of_main(names, accelerator)):
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
        (failed,) = any_of(accelerator, position is None)
        if not failed:
            return position
        say(f"{path.name} cannot be read ({reason}); going back to the one before")
    return None


@contextlib.contextmanager
def _loading_into_models(accelerator: Accelerator) -> Iterator[None]:
    """Weights of a saved state go into the models themselves, whatever is wrapped around them."""

    def load(wrapped: list[nn.Module], folder: str) -> None:
        while wrapped:
            load_weights(
                accelerator.unwrap_model(wrapped.pop()).model, Path(folder) / "model.safetensors"
            )

    hook = accelerator.register_load_state_pre_hook(load)
    try:
        yield
    finally:
        hook.remove()


def load_weights(model: nn.Module, path: Path) -> None:
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
