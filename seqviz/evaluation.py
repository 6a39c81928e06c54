"""Translate a test set with several models, in a way that can be stopped and go on.

Three steps, so that each can be used and tested alone: `plan` says what is translated, `run` does it
and remembers it on disk, and `seqviz.length_report` turns the outputs into numbers.

Length of a sentence: whitespace words of its source. Losses: nats, teacher forcing, without the end
token.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from seqviz import corpus, scores
from seqviz.corpus import Pair
from seqviz.version import versions

BUCKETS = (
    (1, 10),
    (11, 20),
    (21, 30),
    (31, 40),
    (41, 50),
    (51, 60),
    (61, 80),
    (81, 100),
)
"""Words of a sentence, both ends included."""

LONG = (51, 70)
"""Words of a run of sentences."""

PARTS = (4, 2, 1)
"""Into how many parts a run is cut, from the shortest inputs to the longest."""


# ---------------------------------------------------------------------------------------------
# What is translated


@dataclass(frozen=True)
class Run:
    """Consecutive sentences of one document, and the ways in which they are cut.

    Attributes:
        first, count: which pairs of the file.
        cuts: for each of `PARTS` the parts, each (source, target) of joined sentences.
    """

    first: int
    count: int
    cuts: Mapping[int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Plan:
    """What an evaluation translates.

    Attributes:
        pairs: of the natural curve.
        runs: of the same-content curve.
        skipped: pairs of the file that are not evaluated, by reason.
        data: name, digest and size of the file.
        sample, seed: how many sentences were asked for, None for all.
    """

    pairs: tuple[Pair, ...]
    runs: tuple[Run, ...]
    skipped: Mapping[str, int]
    data: Mapping[str, Any]
    sample: int | None = None
    seed: int = 1

    def sources(self) -> list[str]:
        """Every text to translate, once, longest first."""
        found = dict.fromkeys(pair.source for pair in self.pairs)
        found.update(dict.fromkeys(source for source, _ in self._parts()))
        return sorted(found, key=len, reverse=True)

    def texts(self) -> list[tuple[str, str]]:
        """Every (source, target) whose loss is measured, once, longest first."""
        found = dict.fromkeys((pair.source, pair.target) for pair in self.pairs)
        found.update(dict.fromkeys(self._parts()))
        return sorted(found, key=lambda text: len(text[1]), reverse=True)

    def _parts(self) -> Iterable[tuple[str, str]]:
        return (part for run in self.runs for cut in run.cuts.values() for part in cut)


def plan(
    path: str | os.PathLike[str], *, sample: int | None = None, seed: int = 1, runs: bool = True
) -> Plan:
    """Read a corpus file and decide what is translated.

    Args:
        path: corpus file, see `corpus.read_pairs`.
        sample: about so many sentences, spread evenly over the buckets as far as they hold enough,
            and a quarter as many runs; None takes all.
        seed: of the sample.
        runs: also the same-content curve.
    Raises:
        CorpusError: see `corpus.read_pairs`; also when no pair can be evaluated.
        ValueError: a sample below 1.
    """
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise ValueError(f"expected a sample of at least 1 sentence, got {sample!r}")
    path = Path(path)
    every = list(corpus.read_pairs(path))
    kept: list[Pair] = []
    skipped: dict[str, int] = {}
    for pair in every:
        reason = None
        if not pair.source.strip() or not pair.target.strip():
            reason = "empty side"
        elif words_in(pair.source) > corpus.MAX_SOURCE_WORDS:
            reason = f"over {corpus.MAX_SOURCE_WORDS} source words"
        if reason:
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            kept.append(pair)
    if not kept:
        reasons = ", ".join(f"{count} {why}" for why, count in skipped.items())
        raise corpus.CorpusError(f"{path}: no pair can be evaluated ({reasons})")
    found = find_runs(every) if runs else []
    if sample is not None:
        random = np.random.default_rng([seed, 17])
        kept = [kept[i] for i in _stratified([words_in(p.source) for p in kept], sample, random)]
        size = min(len(found), -(-sample // 4))
        chosen = sorted(random.permutation(len(found))[:size].tolist())
        found = [found[i] for i in chosen]
    return Plan(
        pairs=tuple(kept),
        runs=tuple(found),
        skipped=skipped,
        data={"name": path.name, "sha256": corpus.file_digest(path), "lines": len(every)},
        sample=sample,
        seed=seed,
    )


def thinned(plan: Plan, count: int | None) -> Plan:
    """The plan with `count` sentences at even distances, as long as the file's are; None keeps all.

    Raises:
        ValueError: a count below 1.
    """
    if count is not None and count < 1:
        raise ValueError(f"expected at least 1 sentence, got {count}")
    if count is None or count >= len(plan.pairs):
        return plan
    chosen = np.linspace(0, len(plan.pairs) - 1, count).round().astype(int)
    return replace(plan, pairs=tuple(plan.pairs[i] for i in chosen), sample=count)


def written(use: str) -> Plan:
    """The project's own hand-written pairs, such as "development", as a plan without runs.

    Raises:
        KeyError: no such list in ``texts.json``.
    """
    file = Path(__file__).parent / "texts.json"
    pairs = json.loads(file.read_text(encoding="utf-8"))[use]
    return Plan(
        pairs=tuple(Pair(text["id"], text["english"], text["french"]) for text in pairs),
        runs=(),
        skipped={},
        data={"name": file.name, "sha256": corpus.file_digest(file), "lines": len(pairs)},
    )


def words_in(text: str) -> int:
    """Length of a text as this project counts it."""
    return len(text.split())


def _stratified(lengths: Sequence[int], size: int, random: np.random.Generator) -> list[int]:
    """Numbers of about `size` sentences, as evenly over the buckets as they allow, in order."""
    members = [
        random.permutation([i for i, n in enumerate(lengths) if low <= n <= high]).astype(int)
        for low, high in BUCKETS
    ]
    chosen: list[int] = []
    left = size
    # The smallest bucket first: what it lacks is shared among those that hold more.
    for number, group in enumerate(sorted(members, key=len)):
        share = left // (len(members) - number)
        chosen += group[:share].tolist()
        left -= min(share, len(group))
    return sorted(chosen)


def find_runs(pairs: Sequence[Pair]) -> list[Run]:
    """Runs of at least four whole sentences with `LONG` words together, none sharing a sentence.

    From the first sentence on, the shortest run that fits is taken, and the search goes on behind it.
    """
    lengths = [words_in(pair.source) for pair in pairs]
    usable = [bool(n and pair.target.strip()) for n, pair in zip(lengths, pairs, strict=True)]
    found: list[Run] = []
    first = 0
    while first < len(pairs):
        total, end = 0, first
        run = None
        while end < len(pairs) and usable[end] and pairs[end].document == pairs[first].document:
            total += lengths[end]
            end += 1
            if total > LONG[1]:
                break
            if total >= LONG[0] and end - first >= max(PARTS):
                run = Run(first, end - first, {n: _cut(pairs[first:end], n) for n in PARTS})
                break
        if run:
            found.append(run)
            first = end
        else:
            first += 1
    return found


def _cut(pairs: Sequence[Pair], parts: int) -> tuple[tuple[str, str], ...]:
    """Sentences as so many parts, cut where the longest part is shortest."""
    lengths = [words_in(pair.source) for pair in pairs]
    best: tuple[int, ...] = ()
    shortest = None
    for cuts in combinations(range(1, len(pairs)), parts - 1):
        edges = (0, *cuts, len(pairs))
        longest = max(sum(lengths[a:b]) for a, b in pairwise(edges))
        if shortest is None or longest < shortest:
            shortest, best = longest, edges
    return tuple(
        (
            " ".join(pair.source.strip() for pair in pairs[a:b]),
            " ".join(pair.target.strip() for pair in pairs[a:b]),
        )
        for a, b in pairwise(best)
    )


# ---------------------------------------------------------------------------------------------
# What the models make of it


@dataclass(frozen=True)
class Output:
    """A translation as the scores need it: its text, and whether it repeats or hit the limit."""

    text: str
    repeated: bool = False
    limit: bool = False


@dataclass
class Outputs:
    """What one model made of a plan.

    Attributes:
        translations: by source text.
        losses: by (source, target): loss of each target piece but the end token, nats, (T,).
        information: digest of the weights and whatever else the report should hold.
        length_histogram: training examples of 0, 1, 2, … source words.
    """

    translations: dict[str, Output]
    losses: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    information: dict[str, Any] = field(default_factory=dict)
    length_histogram: list[int] | None = None


def _digest(*texts: str) -> str:
    joined = "\t".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=12).hexdigest()


class Work:
    """What has been computed for one model, kept in a folder so that an evaluation can go on later.

    Files are named by the digest of weights and tokenizer and grow line by line; a half-written last
    line, left by a process that was killed, is dropped.

    Args:
        folder: where the files are.
        model: folder of the model.
        num_beams: of the search.
    """

    def __init__(self, folder: Path, model: Path, num_beams: int = 1) -> None:
        self.model = model
        self.num_beams = num_beams
        self.weights = corpus.file_digest(model / "model.safetensors")
        key = _digest(self.weights, corpus.file_digest(model / "tokenizer.json"))
        folder.mkdir(parents=True, exist_ok=True)
        self._translations = _Journal(folder / f"translations-{key}-beams{num_beams}.jsonl")
        self._losses = _Journal(folder / f"losses-{key}.jsonl")

    def jobs(self, plan: Plan, size: int = 384) -> list[_Job]:
        """What is still to be computed, in pieces of similar length."""
        sources = [s for s in plan.sources() if _digest(s) not in self._translations]
        texts = [t for t in plan.texts() if _digest(*t) not in self._losses]
        made = []
        for kind, items in (("translate", sources), ("loss", texts)):
            for start in range(0, len(items), size):
                made.append(_Job(self, kind, items[start : start + size]))
        return made

    def known(self, plan: Plan) -> int:
        """How many texts of the plan are translated already."""
        return sum(_digest(source) in self._translations for source in plan.sources())

    def keep(self, job: _Job, results: list[Any]) -> None:
        """Remember the results of a job."""
        if job.kind == "translate":
            self._translations.add(
                {_digest(s): list(r) for s, r in zip(job.items, results, strict=True)}
            )
        else:
            self._losses.add({_digest(*t): r for t, r in zip(job.items, results, strict=True)})

    def outputs(self, plan: Plan) -> Outputs:
        """Everything that a report needs."""
        training = json.loads((self.model / "training.json").read_text(encoding="utf-8"))
        return Outputs(
            translations={
                s: Output(*self._translations.values[_digest(s)]) for s in plan.sources()
            },
            losses={t: np.array(self._losses.values[_digest(*t)]) for t in plan.texts()},
            information={
                "weights_sha256": self.weights,
                "target_tokens": training.get("target_tokens"),
            },
            length_histogram=training.get("length_histogram"),
        )


@dataclass(frozen=True)
class _Job:
    work: Work
    kind: str
    items: list[Any]

    @property
    def words(self) -> int:
        """Size of the job, for an estimate of the time left: a loss costs a third of a translation."""
        if self.kind == "translate":
            return 3 * sum(words_in(source) for source in self.items)
        return sum(words_in(source) for source, _ in self.items)


class _Journal:
    """A dictionary on disk that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        if not path.is_file():
            return
        whole = 0
        with path.open("rb") as stream:
            for line in stream:
                try:
                    key, value = json.loads(line)
                except ValueError:
                    break
                if not line.endswith(b"\n"):
                    break
                self.values[key] = value
                whole += len(line)
        if whole < path.stat().st_size:
            os.truncate(path, whole)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def add(self, values: Mapping[str, Any]) -> None:
        lines = "".join(f"{json.dumps([k, v], ensure_ascii=False)}\n" for k, v in values.items())
        with self.path.open("ab") as stream:
            stream.write(lines.encode("utf-8", "surrogatepass"))
            stream.flush()
            os.fsync(stream.fileno())
        self.values.update(values)


def run(
    plan: Plan,
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

    def keep(job: _Job, results: list[Any]) -> None:
        nonlocal done
        job.work.keep(job, results)
        done += job.words
        if say:
            say(done, total, (time.monotonic() - started) / done * (total - done))

    def arguments(job: _Job) -> tuple[Any, ...]:
        return job.kind, str(job.work.model), job.items, job.work.num_beams, device

    if workers == 1:
        for job in jobs:
            keep(job, _work(*arguments(job)))
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _start_worker) as pool:
        waiting: dict[Future[list[Any]], _Job] = {}
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
    from seqviz.translation import load

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


# ---------------------------------------------------------------------------------------------
# The hand-written passages


def passages(translators: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sentence scores of every stage of the growing passages, and which passage is typical.

    The effect of a passage is how much more chrF `lstm` loses than `lstm-attention` from the stage
    nearest 30 words to the stage nearest 60. ``first`` has the median effect (of an even number the
    lower of the two in the middle), ``opposite`` the most negative one, or is null if none is negative.

    Args:
        translators: by name; `lstm` and `lstm-attention` among them.
        texts: passages of ``texts.json``: ``id``, ``stages`` of ``english, french``.
    """
    found: dict[str, Any] = {}
    for text in texts:
        stages = text["stages"]
        entry: dict[str, Any] = {"words": [words_in(stage["english"]) for stage in stages]}
        for name, translator in translators.items():
            made = translator.translate([stage["english"] for stage in stages], attention=False)
            both = [
                scores.sentence_scores(translation.text, stage["french"])
                for translation, stage in zip(made, stages, strict=True)
            ]
            entry[name] = {m: [round(each[m], 2) for each in both] for m in ("bleu", "chrf")}
        found[text["id"]] = entry

    def effect(entry: dict[str, Any]) -> float:
        short, long = (
            min(range(len(entry["words"])), key=lambda i: abs(entry["words"][i] - target))
            for target in (30, 60)
        )
        drop = {
            name: entry[name]["chrf"][short] - entry[name]["chrf"][long]
            for name in ("lstm", "lstm-attention")
        }
        return round(drop["lstm"] - drop["lstm-attention"], 2)

    effects = {id_: effect(entry) for id_, entry in found.items()}
    order = sorted(effects, key=lambda id_: (effects[id_], id_))
    return {
        "schema": 1,
        "versions": versions(),
        "effects": effects,
        "first": order[(len(order) - 1) // 2],
        "opposite": order[0] if effects[order[0]] < 0 else None,
        "passages": found,
    }
