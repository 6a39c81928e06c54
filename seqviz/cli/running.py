"""Commands that run something: a benchmark, the page."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqviz.cli.application import app
from seqviz.cli.options import (
    ClickException,
    UsageError,
)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Such as decoding, training, startup, load; all if left out."),
    ] = None,
    joeynmt: Annotated[
        str | None,
        typer.Option(
            metavar="PYTHON",
            help="Of an environment that has Joey NMT; training is then compared with it.",
        ),
    ] = None,
) -> None:
    """Measure speed and memory, and write the table of benchmarks/README.md.

    Works in a checkout, with tests/requirements.txt installed, on a machine with nothing else to do.

    Example: seqviz bench decoding startup
    """
    import subprocess

    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    known = sorted(path.stem for path in folder.glob("*.py") if path.stem != "table")
    if not known:
        raise ClickException(
            f"expected the benchmarks of a checkout in {folder}, found none; run this from a clone of "
            "the repository"
        )
    if wrong := [name for name in names or () if name not in known]:
        raise UsageError(f"expected some of {', '.join(known)}; got {', '.join(wrong)}")
    environment = {**os.environ, "PYTHONPATH": str(folder.parent)}
    for name in names or known:
        typer.echo(f"{name} …", err=True)
        out = folder / f"{name}.json"
        command = [sys.executable, str(folder / f"{name}.py"), "--out", str(out)]
        if joeynmt and name == "training":
            command += ["--joeynmt", joeynmt]
        if code := subprocess.run(command, env=environment, cwd=folder.parent).returncode:
            raise ClickException(f"the benchmark {name} ended with {code}; see what it said above")
    table = [sys.executable, str(folder / "table.py")]
    subprocess.run(table, env=environment, cwd=folder.parent, check=True)
    typer.echo((folder / "README.md").read_text(encoding="utf-8").split("## Results")[-1].strip())


@app.command()
def page(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 7860,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy serves the page.")] = "",
) -> None:
    """Serve the page on this machine.

    Example: seqviz app --port 7860
    """
    try:
        from seqviz.ui import launch
    except ModuleNotFoundError as error:
        if error.name != "gradio":
            raise
        raise ClickException("the page needs Gradio; pip install 'seqviz[app]'") from error
    launch(host=host, port=port, root_path=root_path)


app.registered_commands[-1].name = "app"
