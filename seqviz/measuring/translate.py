"""Translate a plan with several models in several processes, so that it can be stopped and go on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

from seqviz.measuring.outputs import Job, Work
from seqviz.measuring.plan import Texts


def run(
    plan: Texts,
    works: Sequence[Work],
    *,
    workers: int | None = None,
    device: str | None = None,
    say: Callable[[int, int, float], None] | None = None,
) -> None:
    """Translate and measure what is missing, and keep it; may be stopped and called again.

    Args:
        plan: what to translate.
        works: one a model.
        workers: processes with one thread each; None takes one a core, or one on a GPU.
        device: as in `seqviz.load`.
        say: is told (done, all, seconds left) after every job.
    """
    jobs = [job for work in works for job in work.jobs(plan)]
    total = sum(job.words for job in jobs)
    if not jobs:
        return
    if workers is None:
        on_cpu = device is None or device == "cpu"
        workers = min(len(jobs), _cores() if on_cpu else 1)
    started, done = time.monotonic(), 0

    def keep(job: Job, results: list[Any]) -> None:
        nonlocal done
        job.work.keep(job, results)
        done += job.words
        if say:
            say(done, total, (time.monotonic() - started) / done * (total - done))

    def arguments(job: Job) -> tuple[Any, ...]:
        return job.kind, str(job.work.model), job.items, job.work.num_beams, device

    if workers == 1:
        for job in jobs:
            keep(job, _work(*arguments(job)))
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _start_worker) as pool:
        waiting: dict[Future[list[Any]], Job] = {}
        try:
            # Few at a time: an interrupted evaluation need not wait for all that were handed over.
            queue = iter(jobs)
            while True:
                while len(waiting) < workers + 1 and (job := next(queue, None)):
                    waiting[pool.submit(_work, *arguments(job))] = job
                if not waiting:
                    break
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    keep(waiting.pop(future), future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_worker() -> None:
    import signal

    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C


@lru_cache(maxsize=1)
def _loaded(folder: str, device: str | None) -> Any:
    from seqviz.translating.loading import load

    return load(folder, device)


def _work(kind: str, folder: str, items: list[Any], num_beams: int, device: str | None) -> Any:
    """Results of a job, in plain types; runs in a process of its own."""
    translator = _loaded(folder, device)
    if kind == "translate":
        found = []
        for translation in translator.translate(items, num_beams, attention=False):
            kinds = {note.kind for note in translation.notes}
            found.append((translation.text, "repetition" in kinds, "limit" in kinds))
        return found
    return [[round(float(x), 4) for x in row] for row in translator.losses(items)]
