"""Version of seqviz and of the packages that decide a number."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions for reports, by package."""
    found = {"python": platform.python_version(), "seqviz": __version__}
    for package in ("torch", "transformers", "tokenizers", "accelerate", "sacrebleu", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
