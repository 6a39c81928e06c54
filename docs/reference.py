"""Build the API reference from the docstrings into a folder.

    python docs/reference.py FOLDER

Needs tests/requirements.txt (pdoc). Any warning is an error.
"""

from __future__ import annotations

import importlib
import sys
import typing
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import pdoc  # noqa: E402
import pdoc.render  # noqa: E402

from seqviz.measuring.names import PUBLIC, public  # noqa: E402


def main(folder: Path) -> None:
    for name in PUBLIC:
        module = importlib.import_module(name)
        for key in getattr(module, "__all__", ()):
            setattr(
                module, key, getattr(module, key)
            )  # seqviz imports its names when they are asked for
        for _, value in public(module):
            if isinstance(value, type) and issubclass(value, tuple):
                # pdoc looks for the types of a NamedTuple's fields in a module that has not imported them.
                value.__new__.__annotations__ = typing.get_type_hints(value)
    pdoc.render.configure(docformat="google")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*PUBLIC, "!seqviz.architectures.", output_directory=folder)  # not its rooms
    print(f"{folder / 'index.html'} written", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
