"""What models made of a plan, remembered on disk so that an evaluation can go on later.

Losses: nats, teacher forcing, without the end token.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqviz.files import file_digest
from seqviz.measuring.plan import Texts, words_in


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
        self.weights = file_digest(model / "model.safetensors")
        key = _digest(self.weights, file_digest(model / "tokenizer.json"))
        folder.mkdir(parents=True, exist_ok=True)
        self._translations = _Journal(folder / f"translations-{key}-beams{num_beams}.jsonl")
        self._losses = _Journal(folder / f"losses-{key}.jsonl")

    def jobs(self, plan: Texts, size: int = 384) -> list[Job]:
        """What is still to be computed, in pieces of similar length."""
        sources = [s for s in plan.sources() if _digest(s) not in self._translations]
        texts = [t for t in plan.texts() if _digest(*t) not in self._losses]
        made = []
        for kind, items in (("translate", sources), ("loss", texts)):
            for start in range(0, len(items), size):
                made.append(Job(self, kind, items[start : start + size]))
        return made

    def known(self, plan: Texts) -> int:
        """How many texts of the plan are translated already."""
        return sum(_digest(source) in self._translations for source in plan.sources())

    def keep(self, job: Job, results: list[Any]) -> None:
        """Remember the results of a job."""
        if job.kind == "translate":
            self._translations.add(
                {_digest(s): list(r) for s, r in zip(job.items, results, strict=True)}
            )
        else:
            self._losses.add({_digest(*t): r for t, r in zip(job.items, results, strict=True)})

    def outputs(self, plan: Texts) -> Outputs:
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
class Job:
    """Some texts for one model to translate ("translate") or to measure the loss of ("loss")."""

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
