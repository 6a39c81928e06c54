"""Probes: numbers and names that must come through, and what visitors type first.

All were written by hand, with every answer that counts, before any output was seen (``probes.json``).

    probes = Probes.shipped()
    found = run(seqviz.load("transformer"), probes)
    found["figures"]["numbers"]  # {"right": 41, "all": 50}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from seqviz.report import Report, weights_of

if TYPE_CHECKING:
    from seqviz.translating.translator import Translator


@dataclass(frozen=True)
class Probe:
    """One short English text.

    Attributes:
        group: "numbers", "names" or "inputs".
        kind: within the group, such as "date"; "" where it has none.
        source: English.
        accepted: what must stand in the output (numbers, names), or what all of it must be (inputs),
            where ``(a|b|)`` stands for one of these.
    """

    group: str
    kind: str
    source: str
    accepted: tuple[str, ...]

    def is_right(self, output: str) -> bool:
        """Whether an output counts."""
        if self.group == "inputs":
            return any(
                re.fullmatch(_letters(answer, "(|)?"), _letters(output)) for answer in self.accepted
            )
        text = " ".join(output.split())  # all spaces alike
        # The longest first: 14 h 30 is not 14 h.
        for answer in sorted(self.accepted, key=len, reverse=True):
            if self.group == "names":
                found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text)
                return found is not None
            after = r"(?![\w-])(?![.,][0-9])(?! (?:mill|bill|trill))"  # 15 is not 15 million
            whole = rf"(?<![\w-])(?<![0-9][.,]){re.escape(answer)}{after}"
            rest, times = re.subn(whole, "", text, count=1, flags=re.IGNORECASE)
            if times:
                return re.search("[0-9]", rest) is None
        return False


@dataclass(frozen=True)
class Probes:
    """All probes, and the digest of the file that they came from."""

    probes: tuple[Probe, ...]
    digest: str

    @classmethod
    def shipped(cls) -> Self:
        """Those of the project."""
        content = Path(__file__).with_name("probes.json").read_bytes()
        groups = json.loads(content)
        probes = [
            Probe("numbers", item["kind"], item["source"], tuple(item["accepted"]))
            for item in groups["numbers"]
        ]
        for item in groups["names"]:
            kind = "European" if item["european"] else "other"
            probes.append(Probe("names", kind, item["source"], (item["name"],)))
        for item in groups["inputs"]:
            bare = item["source"].islower() and item["source"][-1].isalpha()
            kind = "lower case, no stop" if bare else "with capitals and stops"
            probes.append(Probe("inputs", kind, item["source"], tuple(item["accepted"])))
        return cls(tuple(probes), sha256(content).hexdigest())


def run(translator: Translator, probes: Probes) -> dict[str, Any]:
    """Translate all probes greedily.

    Returns:
        ``figures``: for each group, and for each kind of it as "group: kind", how many are ``right`` of
        ``all``; ``outputs``: ``group``, ``kind``, ``source``, ``output`` and ``right`` of each probe.
    """
    translations = translator.translate([probe.source for probe in probes.probes])
    figures: dict[str, dict[str, int]] = {}
    outputs = []
    for probe, translation in zip(probes.probes, translations, strict=True):
        right = probe.is_right(translation.text)
        for key in (probe.group, f"{probe.group}: {probe.kind}"):
            figure = figures.setdefault(key, {"right": 0, "all": 0})
            figure["right"] += right
            figure["all"] += 1
        outputs.append(
            {
                "group": probe.group,
                "kind": probe.kind,
                "source": probe.source,
                "output": translation.text,
                "right": right,
            }
        )
    return {"figures": figures, "outputs": outputs}


def report(translators: Mapping[str, Translator], command: str) -> Report:
    """`run` with each model.

    Args:
        translators: by the name that they are reported under.
        command: that gives the same numbers again.
    """
    probes = Probes.shipped()
    return Report.now(
        command,
        {"file": "probes.json", "sha256": probes.digest},
        {"results": {name: run(translator, probes) for name, translator in translators.items()}},
        weights_of({name: translator.training for name, translator in translators.items()}),
    )


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Figures of all models as lines of text.

    Args:
        results: by model, what `run` returned.
    """
    rows = [["", *results]]
    first = next(iter(results.values()))["figures"]
    for key in first:
        name = key if ":" not in key else f"  {key.partition(': ')[2]}"
        figures = [found["figures"][key] for found in results.values()]
        rows.append([name, *(f"{f['right']} of {f['all']}" for f in figures)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    )


def _letters(text: str, kept: str = "") -> str:
    """Small letters and digits, one space for all that stands between them but the characters `kept`."""
    return re.sub(rf"[^\w{re.escape(kept)}]+|_+", " ", text.lower()).strip()
