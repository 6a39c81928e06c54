"""Processes that share a run: what one knows, all must know; and the precision that all compute in."""

from __future__ import annotations

import functools
import json
import math
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils.environment import parse_flag_from_env
from accelerate.utils.operations import broadcast_object_list
from torch import Tensor

from seqviz.training.errors import TrainingError


def any_of(accelerator: Accelerator, *flags: bool) -> list[bool]:
    """For each flag, true in every process if it is true in one."""
    if accelerator.num_processes == 1:
        return list(flags)
    counts = torch.tensor([float(flag) for flag in flags], device=accelerator.device)
    return [value > 0 for value in summed(counts, accelerator).tolist()]


def summed(values: Tensor, accelerator: Accelerator) -> Tensor:
    """The sum over all processes, in every process."""
    found = accelerator.reduce(values, "sum")
    assert isinstance(found, Tensor)  # a tensor for a tensor
    return found


def of_main(value: Any, accelerator: Accelerator) -> Any:
    """The main process's value, in every process."""
    return broadcast_object_list([value])[0] if accelerator.num_processes > 1 else value


def processes() -> PartialState:
    """The processes that work together, for what they do before `train`.

    They wait for one another up to an hour: the first one may have a large corpus to encode.
    """
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU")  # as `Accelerator` itself asks
    return PartialState(on_cpu, timeout=timedelta(hours=1))


_NOT_READ = {
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": (
        "1",
        "Accelerate would divide every gradient by it; unset it and give --accumulate, which changes none",
    ),
    "ACCELERATE_DYNAMO_BACKEND": ("no", "compiled models round otherwise; unset it"),
    **{
        f"ACCELERATE_USE_{name}": (
            "false",
            "here processes share the sentences of a batch, not a model; unset it and use "
            "accelerate launch --multi_gpu",
        )
        for name in ("DEEPSPEED", "FSDP", "MEGATRON_LM", "PARALLELISM_CONFIG")
    },
}
"""Variables of the environment that would change gradients: what they may be, and what they would do."""


def check_environment() -> None:
    """Refuse what Accelerate would take from the environment without a word.

    ``ACCELERATE_MIXED_PRECISION`` is read by `precision_of`; all others say where to compute, not what.

    Raises:
        TrainingError: a variable that would change gradients.
    """
    for name, (harmless, why) in _NOT_READ.items():
        value = os.environ.get(name, harmless)
        if value.lower() not in ("", harmless):
            raise TrainingError(f"expected no {name} in the environment, got {value!r}: {why}")


PRECISIONS = {"no": "fp32", "bf16": "bf16"}
"""What Accelerate calls it, and what reports do."""


def precision_of(asked: str, run_folder: Path) -> str:
    """What Accelerate is told; a run that goes on keeps its own.

    ``ACCELERATE_MIXED_PRECISION``, which a launcher sets, counts where "auto" is asked for; its "no" does not,
    since a launcher that was told nothing sets that.

    Raises:
        TrainingError: no such precision, another one than the run's, or one that this machine has not.
    """
    launcher = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if asked == "auto" and launcher not in ("", "no"):
        asked = launcher
    if asked not in ("auto", *PRECISIONS):
        raise TrainingError(
            f"expected a mixed precision of bf16, no or auto, got {asked!r}; give one of these with "
            "--mixed-precision or in ACCELERATE_MIXED_PRECISION"
        )
    state = processes()
    device = state.device
    assert device is not None
    own = _own_precision(run_folder)
    if own and asked not in ("auto", own):
        raise TrainingError(
            f"expected {PRECISIONS[own]}, the precision of the run in {run_folder}, got {asked!r}; leave "
            "--mixed-precision (or ACCELERATE_MIXED_PRECISION) out or use another run folder"
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


def accelerator_in(
    precision: str, tracker: str | None = None, folder: Path | None = None
) -> Accelerator:
    """Accelerate keeps the precision of a process's first run; a later run may have another."""
    if AcceleratorState._shared_state and AcceleratorState().mixed_precision != precision:
        AcceleratorState._reset_state()
    return Accelerator(mixed_precision=precision, log_with=tracker, project_dir=folder)


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


def check_processes(accelerator: Accelerator) -> None:
    """Refuse to train as several strangers that believe to be alone and write into one folder."""
    launched = int(os.environ.get("WORLD_SIZE", 1))
    if launched != accelerator.num_processes:
        raise TrainingError(
            f"expected {launched} processes, as the launcher says, got {accelerator.num_processes} that "
            "can work together; start one process for each GPU of this machine, or set "
            "ACCELERATE_USE_CPU=1 to train on the CPU"
        )
