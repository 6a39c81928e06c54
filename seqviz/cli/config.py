"""Settings in a file: ``--config run.toml`` reads it, ``--print-config`` writes it.

A key is the name of an option, with ``_`` for ``-``; ``name`` is the model. Options of the command line go
before the file, the file goes before the defaults. A table ``[architecture]`` holds widths, layers and heads.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import typer

from seqviz.cli.options import UsageError

_NO_SETTINGS = {"config", "print_config", "finish", "finish_now", "help"}
"""Options that say what one call shall do, not what a run is."""

ARCHITECTURE = "architecture"
_FROM_FILE = "seqviz.architecture"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Put the settings of a file in the place of the defaults, before the other options are read.

    Raises:
        UsageError: no such file, no TOML, an unknown setting, or a value of another kind.
    """
    if path is None:
        return None
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"expected a file of settings at {path}, found none; --print-config writes one"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"expected a file of settings (TOML, UTF-8) at {path}, got: {error}"
        ) from None
    architecture = settings.pop(ARCHITECTURE, {})
    if not isinstance(architecture, dict):
        raise UsageError(
            f"expected [{ARCHITECTURE}] in {path} to be a table such as width = 432, got {architecture!r}"
        )
    kinds = get_type_hints(context.command.callback)
    known = _settings(context)
    for key, value in settings.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            raise UsageError(f"expected a setting of 'train' in {path}, got {key!r}; {hint}")
        settings[key] = _checked(key, value, str(kinds[key]), path)
    context.meta[_FROM_FILE] = architecture
    context.default_map = settings
    return path


def _settings(context: typer.Context) -> list[str]:
    """Names of the options that are settings."""
    names = [str(parameter.name) for parameter in context.command.params]
    return [name for name in names if name not in {*_NO_SETTINGS, ARCHITECTURE}]


def _checked(key: str, value: Any, kind: str, path: Path) -> Any:
    """A value of a file, if it is of the kind that the option takes; its range is checked with the option's."""
    several = "list[" in kind
    values = value if several and isinstance(value, list) else [value]
    number = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    if "float" in kind:
        expected, right = "a number", number
    elif "int" in kind:
        expected, right = (
            "a whole number",
            number and not any(isinstance(one, float) for one in values),
        )
    elif "bool" in kind:
        expected, right = "true or false", all(isinstance(one, bool) for one in values)
    else:
        expected = "a text in quotation marks" + (", or a list of such" if several else "")
        right = all(isinstance(one, str) for one in values)
    if not right:
        raise UsageError(f"expected {key} in {path} to be {expected}, got {value!r}")
    return values if several else value


# ---------------------------------------------------------------------------------------------
# Widths, layers, heads


def architecture_of(context: typer.Context, name: str, given: list[str]) -> dict[str, int | float]:
    """Widths, layers and heads of a model in full: as built, as in the file, as by ``--architecture``.

    Raises:
        UsageError: an unknown setting, or a value that is no number of its kind.
    """
    from seqviz.architectures import settings_of

    try:
        settings = settings_of(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    asked: dict[str, Any] = dict(context.meta.get(_FROM_FILE, {}))
    for text in given:
        key, _, value = (part.strip() for part in text.partition("="))
        try:
            asked[key] = json.loads(value)
        except ValueError:
            asked[key] = value
    for key, value in asked.items():
        if key not in settings:
            raise UsageError(
                f"expected a setting of the architecture of {name}, one of {', '.join(settings)}; got {key!r}"
            )
        whole = isinstance(settings[key], int)
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not number or (value < 1 if whole else not 0 <= value < 1):
            kind = "a whole number of 1 or more" if whole else "a number from 0 to below 1"
            raise UsageError(f"expected {key} of the architecture to be {kind}, got {value!r}")
        settings[key] = value
    return settings


# ---------------------------------------------------------------------------------------------
# Written


def as_toml(context: typer.Context, architecture: dict[str, int | float]) -> str:
    """All settings of a command in full, as a file that `read_config` takes."""
    lines = []
    for key in _settings(context):
        value = context.params[key]
        shown = f"# {key} is not set" if value is None else f"{key} = {_toml(value)}"
        lines.append(shown)
    lines += ["", f"[{ARCHITECTURE}]", *(f"{k} = {_toml(v)}" for k, v in architecture.items())]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
