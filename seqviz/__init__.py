"""seqviz: four generations of sequence-to-sequence translators, side by side.

import seqviz
translator = seqviz.load("lstm-attention")
translation = translator.translate("The report was adopted yesterday.")
print(translation.text)
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from typing import TYPE_CHECKING, Any

from seqviz.version import __version__, versions

if TYPE_CHECKING:
    from seqviz.constants import MODEL_NAMES
    from seqviz.looking.alignment_report import aligned_head
    from seqviz.looking.saliency import Saliency, saliency
    from seqviz.maps import AttentionMap
    from seqviz.mounting import mount
    from seqviz.shipped import ModelError
    from seqviz.translating.loading import load
    from seqviz.translating.notes import Note
    from seqviz.translating.result import Candidate, Translation
    from seqviz.translating.translator import Translator

__all__ = [
    "MODEL_NAMES",
    "AttentionMap",
    "Candidate",
    "ModelError",
    "Note",
    "Saliency",
    "Translation",
    "Translator",
    "__version__",
    "aligned_head",
    "load",
    "mount",
    "saliency",
    "versions",
]

_HOMES = {
    "MODEL_NAMES": "seqviz.constants",
    "AttentionMap": "seqviz.maps",
    "Candidate": "seqviz.translating.result",
    "ModelError": "seqviz.shipped",
    "Note": "seqviz.translating.notes",
    "Saliency": "seqviz.looking.saliency",
    "Translation": "seqviz.translating.result",
    "Translator": "seqviz.translating.translator",
    "aligned_head": "seqviz.looking.alignment_report",
    "load": "seqviz.translating.loading",
    "mount": "seqviz.mounting",
    "saliency": "seqviz.looking.saliency",
}


def __getattr__(name: str) -> Any:
    """Import PyTorch and Transformers only when something that needs them is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _WhenTransformersIsImported(importlib.abc.MetaPathFinder):
    """Makes `AutoModelForSeq2SeqLM` know our models as soon as somebody imports Transformers.

    Doing it here and now would import PyTorch, which takes seconds that the page does not have at start.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != "transformers":
            return None
        # Asked of the other finders: whoever only asks must not use this one up.
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: Any) -> None:
                execute(module)
                importlib.import_module("seqviz.architectures")

            spec.loader.exec_module = execute_and_register
        return spec


if "transformers" in sys.modules:
    importlib.import_module("seqviz.architectures")
else:
    sys.meta_path.insert(0, _WhenTransformersIsImported())
