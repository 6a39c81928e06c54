"""From ``python app.py`` to an answer: seconds and memory, beside a Gradio page with nothing on it.

    python benchmarks/startup.py --out benchmarks/startup.json

Each round starts the empty page and ours one after the other, and for ours waits first until the page
answers and then until all four models have translated a sentence. The files lie in the system's cache
after the first round, which is reported by itself.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import httpx
import psutil
from gradio_client import Client

from seqviz.files import write_json
from seqviz.version import hardware, versions

ROOT = Path(__file__).resolve().parents[1]
EMPTY = "import gradio as gr\nwith gr.Blocks() as page: gr.Textbox()\npage.launch(quiet=True, ssr_mode=False)"


@contextmanager
def served(*command: str) -> Iterator[tuple[str, float, psutil.Process]]:
    """A page from the start of its process until it answers: address, seconds, process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port)}
    before = time.perf_counter()
    started = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                httpx.get(url, timeout=5).raise_for_status()
                break
            except httpx.TransportError:
                if started.poll() is not None:
                    raise RuntimeError(f"{command} ended with {started.returncode}") from None
                time.sleep(0.02)
        yield url, time.perf_counter() - before, psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(30)


def once() -> dict[str, float]:
    with served(sys.executable, "-c", EMPTY) as (_, empty, process):
        empty_memory = process.memory_info().rss / 2**20
    before = time.perf_counter()
    with served(sys.executable, "app.py") as (url, answers, process):
        Client(url, verbose=False).predict("The boat is green.", api_name="/translate")
        warm = time.perf_counter() - before
        memory = process.memory_info().rss / 2**20
    return {
        "empty_page_seconds": empty,
        "page_seconds": answers,
        "times_an_empty_page": answers / empty,
        "warm_seconds": warm,
        "empty_page_mib": empty_memory,
        "warm_mib": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds = [once() for _ in range(options.rounds)]
    results: dict[str, Any] = {
        "first_round": {key: round(value, 2) for key, value in rounds[0].items()},
        "median": {
            key: round(statistics.median(found[key] for found in rounds), 2) for key in rounds[0]
        },
        "rounds": len(rounds),
    }
    for key, value in results["median"].items():
        print(f"{key:22} {value:8.2f}   (first round {results['first_round'][key]:.2f})")
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/startup.py",
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
