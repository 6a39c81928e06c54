"""The page under people: many visitors at once, a full queue, closed tabs, thousands of requests.

    python benchmarks/load.py --out benchmarks/load.json

Starts ``python app.py`` on the shipped weights, talks to it as its visitors do (`gradio_client`, and the
page's own stream of events where a tab is closed), and checks every answer against the same models loaded
here. Ends with 1 if something is wrong: an answer, a mixed-up visitor, a queue that says nothing, work that
goes on for nobody, hostile input that is not refused or is read as more than text.

Times depend on the machine and stand beside the time of one visitor alone, taken in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import httpx
import psutil
from gradio_client import Client
from gradio_client.exceptions import AppError
from gradio_client.utils import Status
from startup import served

import seqviz
from seqviz.files import write_json
from seqviz.version import hardware, versions

ROOT = Path(__file__).resolve().parents[1]

WHO = "sailor teacher farmer doctor minister painter student neighbour baker driver".split()
WHAT = "letter report garden window bridge ticket answer lesson story question".split()
WHEN = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def sentence(number: int) -> str:
    """An English sentence of 20 words; no two of the first 700 are alike."""
    who, what, when = WHO[number % 10], WHAT[number // 10 % 10], WHEN[number // 100 % 7]
    return (
        f"Last {when} the old {who} told us that the {what} which everybody had been "
        "waiting for would not come before spring."
    )


def short(number: int) -> str:
    """An English sentence of 6 words; no two of the first 700 are alike."""
    return f"The {WHO[number % 10]} lost a {WHAT[number // 10 % 10]} on {WHEN[number // 100 % 7]}."


@contextmanager
def app() -> Iterator[tuple[str, psutil.Process]]:
    """The page in a process of its own, once its models are warm: its address and process."""
    with served(sys.executable, "app.py") as (url, _, process):
        translate(client(url), "The boat is green.")
        yield url, process


def client(url: str) -> Client:
    """A new visitor."""
    return Client(url, verbose=False)


def translate(visitor: Client, text: str) -> dict[str, Any]:
    return visitor.predict(text, api_name="/translate")


def outputs(answer: dict[str, Any]) -> dict[str, str]:
    return {name: answer[name]["text"] for name in seqviz.MODEL_NAMES}


def expected(texts: list[str]) -> dict[str, dict[str, str]]:
    """What each model makes of each text, translated one by one, without the page."""
    found: dict[str, dict[str, str]] = {text: {} for text in texts}
    for name in seqviz.MODEL_NAMES:
        translator = seqviz.load(name)
        for text in texts:
            found[text][name] = translator.translate(text).text
    return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))]


# ---------------------------------------------------------------------------------------------
# Experiments: each returns its numbers, with what went wrong under "wrong"


def visitors_at_once(url: str, count: int, rounds: int) -> dict[str, Any]:
    """`count` visitors press Translate at the same moment, each with a text of their own."""
    texts = [sentence(number) for number in range(count * rounds)]
    right = expected(texts)
    visitors = [client(url) for _ in range(count)]
    alone = []
    for number in range(5):
        before = time.perf_counter()
        translate(visitors[0], sentence(600 + number))
        alone.append(time.perf_counter() - before)

    gate = threading.Barrier(count)
    places: set[int] = set()

    def visit(visitor: Client, text: str) -> tuple[float, str | None]:
        gate.wait()
        before = time.perf_counter()
        job = visitor.submit(text, api_name="/translate")
        while not job.done():
            status = job.status()
            if status.code == Status.IN_QUEUE and status.rank is not None:
                places.add(status.rank)
            time.sleep(0.05)
        took = time.perf_counter() - before
        if outputs(job.result()) != right[text]:
            return took, f"wrong answer to {text!r}"
        return took, None

    seconds, wrong = [], []
    for number in range(rounds):
        mine = texts[number * count : (number + 1) * count]
        with ThreadPoolExecutor(count) as pool:
            for took, problem in pool.map(visit, visitors, mine):
                seconds.append(took)
                wrong += [problem] if problem else []
    if max(places, default=0) < count // 2:
        wrong.append(f"places in the queue were not told: {sorted(places)}")
    p95 = percentile(seconds, 0.95)
    return {
        "visitors": count,
        "rounds": rounds,
        "words": 20,
        "alone_seconds": round(statistics.median(alone), 3),
        "p50_seconds": round(percentile(seconds, 0.5), 2),
        "p95_seconds": round(p95, 2),
        "p95_over_alone": round(p95 / statistics.median(alone), 1),
        "highest_place_told": max(places, default=0),
        "wrong": wrong,
    }


def full_queue(url: str, count: int) -> dict[str, Any]:
    """More visitors than the queue holds: who finds it full is told so, all others are answered."""
    visitors = [client(url) for _ in range(count)]
    gate = threading.Barrier(count)
    texts = [sentence(200 + number) for number in range(count)]

    def visit(visitor: Client, text: str) -> str:
        gate.wait()
        try:
            outputs(translate(visitor, text))
        except Exception as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(count) as pool:
        said = list(pool.map(visit, visitors, texts))
    refused = [message for message in said if message]
    wrong = [message for message in refused if "full" not in message.lower()]
    if not refused:
        wrong.append("nobody was told that the queue is full")
    after = outputs(translate(visitors[0], texts[0]))
    if after != expected([texts[0]])[texts[0]]:
        wrong.append("wrong answer after the queue had been full")
    return {
        "visitors": count,
        "answered": said.count(""),
        "refused": len(refused),
        "message": refused[0] if refused else None,
        "wrong": wrong,
    }


def closed_tab(url: str, process: psutil.Process) -> dict[str, Any]:
    """Processor time for a long text: with the tab open, and closed at the first sign of work.

    Also with the tab closed while it waits in the queue behind other people's work.
    """
    button = _translate_button(httpx.get(f"{url}/config").json())

    def visit(number: int, stop_after: int | None) -> float:
        """Processor seconds of the server for one visitor, who closes after `stop_after` events."""
        text = " ".join(sentence(number + i) for i in range(24))
        session = secrets.token_hex(6)
        before = _cpu(process)
        body = {"data": [text, 4, "en"], "fn_index": button, "session_hash": session}
        httpx.post(f"{url}/gradio_api/queue/join", json=body).raise_for_status()
        events = 0
        stream = f"{url}/gradio_api/queue/data?session_hash={session}"
        with httpx.stream("GET", stream, timeout=120) as answer:
            for line in answer.iter_lines():
                if '"process_completed"' in line:
                    break
                events += '"process_generating"' in line or '"process_starts"' in line
                if stop_after is not None and events >= stop_after:
                    break
        _until_idle(process)
        return _cpu(process) - before

    whole = visit(300, None)
    closed = visit(330, 1)
    # Behind two others that keep both workers busy:
    sessions = [secrets.token_hex(6) for _ in range(8)]
    before = _cpu(process)
    for number, session in enumerate(sessions):
        text = " ".join(sentence(360 + 24 * number + i) for i in range(24))
        body = {"data": [text, 4, "en"], "fn_index": button, "session_hash": session}
        httpx.post(f"{url}/gradio_api/queue/join", json=body).raise_for_status()
    streams = [
        httpx.Client(timeout=120).stream(
            "GET", f"{url}/gradio_api/queue/data?session_hash={session}"
        )
        for session in sessions
    ]
    for stream in streams:
        next(stream.__enter__().iter_lines())
    for stream in streams:
        stream.__exit__(None, None, None)
    _until_idle(process)
    eight = _cpu(process) - before
    wrong = []
    if closed > 0.6 * whole:
        wrong.append(f"a closed tab used {closed:.1f} of {whole:.1f} processor seconds")
    if eight > 4 * whole:
        wrong.append(f"eight closed tabs used {eight:.1f} processor seconds, one open {whole:.1f}")
    return {
        "words": 480,
        "open_cpu_seconds": round(whole, 2),
        "closed_cpu_seconds": round(closed, 2),
        "share_of_work_after_closing": round(closed / whole, 2),
        "eight_closed_share_of_their_work": round(eight / (8 * whole), 2),
        "wrong": wrong,
    }


def _translate_button(config: dict[str, Any]) -> int:
    """Number of the handler behind the button of the first tab."""
    ids = {
        component["id"]
        for component in config["components"]
        if component["props"].get("elem_id") == "translate" and component["type"] == "button"
    }
    for dependency in config["dependencies"]:
        if any(target in ids and event == "click" for target, event in dependency["targets"]):
            return dependency["id"]
    raise RuntimeError("the page has no Translate button")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _until_idle(process: psutil.Process) -> None:
    """Wait until the server has used next to nothing for a second."""
    last = _cpu(process)
    while True:
        time.sleep(1.0)
        now = _cpu(process)
        if now - last < 0.2:
            return
        last = now


def many_requests(url: str, process: psutil.Process, count: int) -> dict[str, Any]:
    """Resident memory while `count` requests of all kinds come in from visitors who come and go."""
    memory: list[tuple[int, float]] = []
    wrong: list[str] = []
    visitor = client(url)
    for number in range(count):
        if number % 50 == 0:
            memory.append((number, process.memory_info().rss / 2**20))
            visitor.close()
            visitor = client(url)
        text = short(number)
        kind = number % 10
        if kind < 6:
            found = translate(visitor, text)
            good = set(found) == set(seqviz.MODEL_NAMES)
        elif kind == 6:
            found = visitor.predict(text, "transformer", api_name="/attention")
            good = bool(found)
        elif kind == 7:
            good = bool(visitor.predict("lost-keys", 1 + number % 7, "", api_name="/length"))
        elif kind == 8:
            good = set(visitor.predict(text, api_name="/reach")) != set()
        elif number % 100 == 9:
            good = visitor.predict(text, api_name="/card")["type"] == "image/png"
        else:
            good = httpx.get(url, timeout=30).status_code == 200
        if not good:
            wrong.append(f"request {number}: no answer")
    memory.append((count, process.memory_info().rss / 2**20))
    settled = [(n, m) for n, m in memory if n >= count // 2]
    growth = settled[-1][1] - settled[0][1]
    if growth > 50:
        wrong.append(f"memory grew by {growth:.0f} MiB over the second half")
    return {
        "requests": count,
        "resident_mib": {str(n): round(m) for n, m in memory if n % 200 == 0 or n == count},
        "second_half_growth_mib": round(growth, 1),
        "wrong": wrong,
    }


def hostile(url: str, process: psutil.Process) -> dict[str, Any]:
    """Input that should be text or an error, and never anything else."""
    visitor = client(url)
    wrong: list[str] = []
    canary = Path(tempfile.gettempdir()) / f"seqviz-{secrets.token_hex(4)}"
    as_text = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "${7*7} {{7*7}} {% raw %} #{7*7}",
        "{0.__class__.__mro__} %s %n",
        f"$(touch {canary}) `touch {canary}` ; touch {canary}",
        f"__import__('os').system('touch {canary}')",
        "a\x00b\x07c\x1b[31m\u202e\u2028\ufeff",
        "</s> <pad> <unk> <s>",
        "../../etc/passwd",
        "file:///etc/passwd",
    ]
    for text in as_text:
        for name, found in translate(visitor, text).items():
            if "root:" in found["text"] or "49" in found["text"].replace(text, ""):
                wrong.append(f"{name} read {text!r} as more than text: {found['text']!r}")
    refused = [
        ("/translate", ("a" * 3_000_000, 1)),
        ("/translate", ({"path": "/etc/passwd"}, 1)),
        ("/translate", (None, 1)),
        ("/translate", ("The boat.", 10**9)),
        ("/translate", ("The boat.", "../../etc/passwd")),
        ("/attention", ("The boat.", "../../../etc/passwd")),
        ("/attention", ("The boat.", "transformer", "cross", 10**6, -1)),
        ("/attention", ("word " * 700_000,)),
        ("/length", ("../../etc/passwd", 1)),
        ("/length", ("lost-keys", -1)),
        ("/reach", ("word " * 101,)),
        ("/report", ("../../../etc/passwd",)),
        ("/report", ("/etc/passwd",)),
        ("/card", ("",)),
    ]
    messages = {}
    for name, arguments in refused:
        shown = f"{name} {repr(arguments)[:48]}"
        try:
            visitor.predict(*arguments, api_name=name)
        except AppError as error:
            messages[shown] = str(error)[:120]
            if not 10 < len(str(error)) < 600 or "Traceback" in str(error):
                wrong.append(f"{shown}: unclear error {str(error)[:200]!r}")
        else:
            wrong.append(f"{shown}: was not refused")
    for path in (
        "file=/etc/passwd",
        "file=models/rnn/config.json",
        "file=../app.py",
        "file=app.py",
    ):
        status = httpx.get(f"{url}/gradio_api/{path}").status_code
        if status < 400:
            wrong.append(f"GET {path}: {status}")
    if canary.exists():
        wrong.append("a text was executed")
    written = [
        file.path
        for file in process.open_files()
        if getattr(file, "mode", "r") not in ("r", "") and not file.path.startswith("/dev")
    ]
    if outputs(translate(visitor, short(3))) != expected([short(3)])[short(3)]:
        wrong.append("wrong answer after hostile input")
    return {
        "read_as_text": len(as_text),
        "refused": len(messages),
        "files_open_for_writing": len(written),
        "messages": messages,
        "wrong": wrong,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--only", action="append", help="name of an experiment; may be repeated")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with app() as (url, process):
        experiments = {
            "visitors_at_once": lambda: visitors_at_once(url, options.visitors, options.rounds),
            "full_queue": lambda: full_queue(url, 50),
            "closed_tab": lambda: closed_tab(url, process),
            "hostile": lambda: hostile(url, process),
            "many_requests": lambda: many_requests(url, process, options.requests),
        }
        for name, experiment in experiments.items():
            if options.only and name not in options.only:
                continue
            before = time.perf_counter()
            results[name] = experiment()
            print(f"{name} ({time.perf_counter() - before:.0f} s)", flush=True)
            print(json.dumps(results[name], indent=2, ensure_ascii=False), flush=True)
        results["resident_mib_at_end"] = round(process.memory_info().rss / 2**20)
    if options.out:
        write_json(
            options.out,
            {
                "command": "python benchmarks/load.py",
                "data": {"name": "sentences made from word lists in the script"},
                "versions": versions(),
                "hardware": hardware(),
                "results": results,
            },
        )
    wrong = [
        f"{name}: {what}"
        for name, r in results.items()
        if isinstance(r, dict)
        for what in r["wrong"]
    ]
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
