"""What decides a number besides the data: versions of packages, and the hardware."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions for reports, by package."""
    found = {"python": platform.python_version(), "seqviz": __version__}
    for package in (
        "torch",
        "transformers",
        "tokenizers",
        "accelerate",
        "sacrebleu",
        "snowballstemmer",
        "numpy",
    ):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor in words."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def hardware(device: object = "cpu") -> str:
    """The processor or accelerator in words, with the threads PyTorch uses on a CPU."""
    import torch

    if str(device).startswith("cuda"):
        return torch.cuda.get_device_name(torch.device(str(device)))
    return f"CPU {processor()}, {torch.get_num_threads()} threads"
