"""The command line: `seqviz COMMAND --help` shows examples.

Answers go to standard output, everything else to standard error. Exit status: 0, 1 (failed), 2 (wrong
use). An error is one line. Heavy packages are imported by the command that needs them.
"""

from __future__ import annotations

import os
import sys

import typer

from seqviz.cli.application import app
from seqviz.cli.options import ClickException, UsageError

# isort: off
# In the order in which --help shows them.
from seqviz.cli import training, trials, translating, measuring, evidence  # noqa: F401
from seqviz.cli import meanings, corpora, running  # noqa: F401

# isort: on

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; every error that a person can cause is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = typer.main.get_command(app)(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.ctx.get_help(), err=True)
            sys.exit(2)
        command = error.ctx.command_path if error.ctx else "seqviz"
        _fail(f"{error.format_message()} (see '{command} --help')", 2)
    except ClickException as error:
        _fail(error.format_message(), 1)
    except (typer.Abort, KeyboardInterrupt):
        _fail("stopped", 1)
    except BrokenPipeError:
        # The reader has gone (… | head): no more output, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ModuleNotFoundError as error:
        extra = "train" if error.name in ("accelerate", "sentencepiece", "tqdm") else "app,train"
        _fail(
            f"this command needs the package {error.name}, which is not installed; "
            f"pip install 'seqviz[{extra}]', or in a checkout pip install '.[{extra}]'",
            1,
        )
    except (ValueError, OSError, RuntimeError) as error:
        _fail(" ".join(str(error).split()) or type(error).__name__, 1)


def _fail(message: str, code: int) -> None:
    try:
        typer.echo(f"seqviz: error: {message}", err=True)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
