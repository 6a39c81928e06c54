"""A report: what was run, on what, on which weights, and what came out; one JSON file each.

report = Report.now("seqviz lab recall", data, results)
report.write(folder / "recall.json")
found = Report.read(models / "report" / "recall.json")  # None where there is none
why = found.stale(read_training(models))                 # None where it is of these weights
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from seqviz.version import hardware, versions


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Write JSON aside and rename it: a reader sees the old file or the new one, never half."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write a text file aside and rename it."""
    write_bytes(path, content.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file aside and rename it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


HEADER = ("schema", "command", "data", "versions", "hardware", "created", "models")
"""Keys of every report, in their order; what a report does not need is left out of its file."""

Trainings = Mapping[str, Mapping[str, Any]]
"""``training.json`` of models, by the name of the model."""


@dataclass(frozen=True)
class Report:
    """A measurement with everything that decides its numbers.

    Attributes:
        command: gives the same numbers again.
        data: what was measured on: names and digests of files, or lists of them; None where the results say it.
        results: the measurement's own keys.
        models: of each model ``weights_sha256`` and what else is told of it; empty where it is of no weights.
        versions, hardware, created: of the run; hardware and created may be empty where they decide nothing.
        schema: of the results.
    """

    command: str
    data: Any
    results: Mapping[str, Any]
    models: Trainings = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    created: str = ""
    schema: int = 1

    @classmethod
    def now(
        cls,
        command: str,
        data: Any,
        results: Mapping[str, Any],
        models: Trainings | None = None,
        *,
        device: object = "cpu",
        schema: int = 1,
        dated: bool = True,
    ) -> Self:
        """A report of what has just been measured in this process.

        Args:
            command, data, results, models, schema: see the class.
            device: what was measured on.
            dated: False leaves out hardware and time, so that the same numbers give the same file.
        """
        return cls(
            command=command,
            data=data,
            results=results,
            models=models or {},
            versions=versions(),
            hardware=hardware(device) if dated else "",
            created=datetime.now(UTC).isoformat(timespec="seconds") if dated else "",
            schema=schema,
        )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """The report that `content` says, as it stands in a file; what it lacks stays empty."""
        empty = {"schema": None, "command": "", "data": None, "hardware": "", "created": ""}
        header = {key: content.get(key, empty.get(key, {})) for key in HEADER}
        return cls(results={k: v for k, v in content.items() if k not in HEADER}, **header)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Self | None:
        """A report from its file; None where there is no file.

        Raises:
            ValueError: the file is damaged.
        """
        file = Path(file)
        if not file.is_file():
            return None
        try:
            return cls.of(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, AttributeError) as error:
            raise ValueError(
                f"{file}: expected JSON, it is damaged ({error}); measure it anew"
            ) from error

    def content(self) -> dict[str, Any]:
        """The report as it stands in a file: the header, then the results."""
        header = {key: getattr(self, key) for key in HEADER}
        return {k: v for k, v in header.items() if v not in (None, "", {})} | dict(self.results)

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write the report, whole or not at all."""
        write_json(file, self.content())

    def is_of(self, name: str, training: Mapping[str, Any]) -> bool:
        """Whether it was measured on the weights that `training` (``training.json``) speaks of."""
        measured = self.models.get(name, {}).get("weights_sha256")
        return measured is not None and measured == training.get("weights_sha256")

    def stale(self, trainings: Trainings, data: Mapping[str, Any] | None = None) -> str | None:
        """Why the report does not speak of the weights and data at hand, in words; None if it does.

        Args:
            trainings: ``training.json`` of the weights.
            data: keys of the report's ``data`` that must have these values, such as a digest.
        """
        other = [name for name, training in trainings.items() if not self.is_of(name, training)]
        if other:
            return f"it was measured on other weights of {', '.join(other)}"
        changed = [key for key, value in (data or {}).items() if self.data.get(key) != value]
        return f"it was measured on other data ({', '.join(changed)})" if changed else None


def weights_of(trainings: Trainings) -> dict[str, dict[str, Any]]:
    """A report's ``models``: of each model the digest of its weights."""
    return {name: {"weights_sha256": t.get("weights_sha256")} for name, t in trainings.items()}


_WHAT = {
    "rnn": "A plain tanh RNN translator: the decoder sees one fixed vector of the source.",
    "lstm": "An LSTM translator: the decoder sees one fixed vector of the source.",
    "lstm-attention": "An LSTM translator with additive (Bahdanau) attention over the source.",
    "transformer": "A small Transformer translator (Marian classes of Transformers, unchanged).",
    "lstm-mean": "An LSTM translator whose context is the plain mean of the source states.",
}


def card(training: dict[str, Any], about_data: str = "") -> str:
    """The README of a model folder, from what ``training.json`` says.

    Args:
        training: content of ``training.json``.
        about_data: Markdown on source and terms of the training data.
    """
    recipe = training["recipe"]
    bleu = training.get("dev_bleu")
    loss = training.get("dev_loss")
    rows = [
        ("Trainable parameters", f"{training['num_parameters']:,}"),
        (
            "Training budget",
            f"{training['target_tokens']:,} target tokens, {training['steps']:,} steps",
        ),
        (
            "Time",
            f"{training['seconds'] / 60:,.0f} minutes of wall-clock time on {training['hardware']}",
        ),
        ("Development loss", "not measured" if loss is None else f"{loss:.3f} nats a target token"),
        (
            "Development BLEU",
            "not measured"
            if not bleu
            else f"{bleu['score']:.1f} ({bleu['sentences']} sentences, greedy; "
            f"`{bleu['signature'].replace('|', ' ')}`)",
        ),
        (
            "Recipe",
            f"{recipe['batch_tokens']:,} target tokens a step; AdamW {recipe['learning_rate']:g}, Muon "
            f"{recipe['matrix_learning_rate']:g} for matrices; warm-up "
            f"{recipe['warmup_tokens']:,} tokens, linear cool-down over the last "
            f"{recipe['cooldown']:.0%}; seed {recipe['seed']}",
        ),
        ("Versions", ", ".join(f"{k} {v}" for k, v in training["versions"].items())),
    ]
    started = training.get("started_from")
    if started:
        rows.append(("Went on from", f"weights of {started['target_tokens']:,} target tokens"))
    files = "\n".join(
        f"| {d['name']} | {d['pairs']:,} | {d['repeat']} | `{d['sha256'][:16]}…` |"
        for d in training["data"]
    )
    table = "\n".join(f"| {key} | {value} |" for key, value in rows)
    return f"""---
license: apache-2.0
language: [en, fr]
pipeline_tag: translation
---
# {training["model"]}

{_WHAT.get(training["model"], "A translator trained with seqviz.")} Part of seqviz, where four
generations of translators, trained alike on the same data, can be compared side by side. It is small on
purpose and not meant for real translation work.

| | |
| --- | --- |
{table}

| data file | pairs kept | times an epoch | SHA-256 |
| --- | --- | --- | --- |
{files}

Loss curve, cleaning counts and full digests: `training.json`.

{about_data.strip()}
"""


# ---------------------------------------------------------------------------------------------
# Reports of measurements


def read_report(models: Path, name: str) -> dict[str, Any] | None:
    """A report of ``models/report``, such as "length"; None where there is none.

    Raises:
        ValueError: the file is damaged.
    """
    file = models / "report" / f"{name}.json"
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{file}: expected JSON, it is damaged ({error}); measure it anew"
        ) from error


def stale(report: dict[str, Any] | None, trainings: dict[str, dict[str, Any]]) -> str | None:
    """Why a report does not speak of the weights beside it, in words; None if it does.

    Args:
        report: holds ``models[name]["weights_sha256"]``.
        trainings: ``training.json`` of the weights.
    """
    if report is None:
        return "there is none"
    measured = report.get("models", {})
    other = [
        name
        for name, training in trainings.items()
        if measured.get(name, {}).get("weights_sha256") != training["weights_sha256"]
    ]
    return f"it was measured on other weights of {', '.join(other)}" if other else None


def _interval(entry: dict[str, float | None], digits: int = 2) -> str:
    """A value with its interval, in words."""
    value, low, high = entry["value"], entry["low"], entry["high"]
    if value is None:
        return "none"
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def length_results(report: dict[str, Any]) -> str:
    """Markdown of what a length report found: figure, effect of length, what was predicted."""
    curves, effects = report["curves"], report["effects"]
    same, natural = effects["same-content"], effects["natural"]
    short, long = same["short"], same["long"]
    halves = next(
        b for m in curves["same-content"].values() for b in m["buckets"] if b["parts"] == 2
    )
    rows = [
        "![BLEU by sentence length for the four models, with intervals](models/report/length.svg)",
        "",
        f"What {long['low']}–{long['high']} words held at once cost against {short['low']}–{short['high']}, "
        "with 95 % intervals. *Same content*: the same text, translated in two halves or whole; *natural*: "
        "sentences that are that long by themselves. Cuts fall between whole sentences, so the halves have "
        f"{halves['words_low']} to {halves['words_high']} words (5th to 95th percentile), {halves['words']:.0f} in the mean.",
        "",
        "| model | BLEU in halves → whole | BLEU kept, same content | BLEU kept, natural | loss added, same content |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, effect in same["models"].items():
        by_parts = {b["parts"]: b["bleu"] for b in curves["same-content"][name]["buckets"]}
        kept = (_interval(e["bleu_ratio"]) for e in (effect, natural["models"][name]))
        rows.append(
            f"| `{name}` | {by_parts[2]:.1f} → {by_parts[1]:.1f} | {' | '.join(kept)} | "
            f"{_interval(effect['loss_change'], 3)} |"
        )
    prediction = report.get("prediction")
    if prediction:
        rows += [
            "",
            f"Predicted on {prediction['written']}, before the test set was translated "
            "(`models/report/prediction.json`):",
            "",
            "| | prediction | difference measured | |",
            "| --- | --- | --- | --- |",
        ]
        for h in prediction["hypotheses"]:
            rows.append(
                f"| {h['id']} | {h['says']} | {h['measure'].replace('_', ' ')} of `{h['first']}` minus "
                f"`{h['second']}`, {h['curve']}: {_interval(h, 3)} | {h['verdict']} |"
            )
    data, seen = report["data"], next(iter(report["models"].values()))["target_tokens"]
    sampled = f", a sample of {data['sample']:,}" if data.get("sample") else ""
    rows += [
        "",
        f"Measured by `{report['command']}` (SHA-256 `{data['sha256'][:12]}…`): {data['pairs']:,} sentences"
        f"{sampled} and {data['runs']:,} runs of sentences, greedy search, {report['resamples']:,} paired "
        f"bootstrap resamples, weights after {seen:,} target tokens; {report['hardware']}; "
        f"{', '.join(f'{k} {v}' for k, v in report['versions'].items())}. The intervals cover the choice "
        "of test sentences, not that of a training seed. All numbers: `models/report/length.json`; where it "
        "breaks along a sentence: `models/report/where-it-breaks.svg`.",
    ]
    return "\n".join(rows)


_CONTENDERS = {
    "": "attention",
    ":mean": "mean of all heads",
    ":saliency": "saliency (gradient × input)",
}


def alignment_results(report: dict[str, Any]) -> str:
    """Markdown of how far attention and saliency agree with alignments made by hand."""
    data = report["data"]
    rows = [
        "Where the models look, against word alignments made by hand: alignment error rate (0 is best) on "
        f"{data['reported']} sentence pairs, each French word linked to the English word of most weight, the "
        "human translation given. The Transformer's head was chosen on the other "
        f"{data['chosen_on']} pairs. 95 % intervals over sentence pairs; a small sample.",
        "",
        "| | error rate | precision | recall |",
        "| --- | --- | --- | --- |",
    ]
    for key, found in sorted(report["results"].items(), key=lambda item: item[1]["aer"]["value"]):
        name, _, what = key.partition(":")
        said = "a plain diagonal, no model"
        if key != "diagonal":
            said = f"`{name}`, {_CONTENDERS[f':{what}' if what else '']}"
            chosen = report["choice"].get(name)
            if chosen and not what:
                said += f", layer {chosen['layer'] + 1} head {chosen['head'] + 1}"
        rows.append(
            f"| {said} | {_interval(found['aer'])} | {found['precision']:.2f} | {found['recall']:.2f} |"
        )
    rows += [
        "",
        f"Measured by `{report['command']}`; {report['hardware']}. Every head: "
        "`models/report/attention.json`. A head that agrees with alignments is not thereby a reason for what "
        "a model writes.",
    ]
    return "\n".join(rows)


_BEGIN, _END = "<!-- results:begin -->", "<!-- results:end -->"


def read_training(models: Path) -> dict[str, dict[str, Any]]:
    """``training.json`` of every model folder that has weights, in historical order."""
    order = list(_WHAT)
    found = {
        file.parent.name: json.loads(file.read_text(encoding="utf-8"))
        for file in models.glob("*/training.json")
        if (file.parent / "model.safetensors").is_file()
    }
    return dict(
        sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else 99)
    )


def results(
    trainings: dict[str, dict[str, Any]],
    length: dict[str, Any] | None = None,
    found: dict[str, Any] | None = None,
    more: Sequence[str] = (),
) -> str:
    """Markdown of what was measured on the shipped weights, with what it was measured by.

    Args:
        trainings: ``training.json`` of the models.
        length: content of ``length.json``, see `seqviz.length_report`.
        found: content of ``coverage.json``: how far "not found" can be trusted.
        more: Markdown of other measurements, which follow.
    """
    rows = [
        "| model | parameters | target tokens seen | loss, nats a token | BLEU | brevity penalty |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, training in trainings.items():
        bleu = training.get("dev_bleu")
        rows.append(
            f"| `{name}` | {training['num_parameters']:,} | {training['target_tokens']:,} | "
            f"{training['dev_loss']:.3f} | "
            + (
                f"{bleu['score']:.1f} | {bleu['brevity_penalty']:.2f} |"
                if bleu
                else "not measured | |"
            )
        )
    first = next(iter(trainings.values()), None)
    if not first:
        return "Not measured yet."
    bleu = first.get("dev_bleu") or {}
    rows += [
        "",
        f"Measured by `seqviz train` at the end of each run, on development sentences of Europarl "
        f"(`{first['dev_data']['name']}`, SHA-256 `{first['dev_data']['sha256'][:12]}…`): loss with the "
        f"reference as input, BLEU of greedy output on {bleu.get('sentences', 0)} sentences "
        f"(`{bleu.get('signature', 'not measured')}`). One run a model, without intervals: a first look, no claim. "
        f"Trained on {first['hardware']}. Loss curves: `models/report/losses.svg`.",
    ]
    if length:
        rows += ["", length_results(length)]
        why = stale(length, trainings)
        if why:
            rows += ["", f"This measurement is not of the weights shipped now: {why}."]
    if found:
        half = found["reported"]
        rows += [
            "",
            f"*Not found*, as the page marks words, on {half['pairs']} hand-aligned pairs that nothing was chosen "
            f"on ({half['words']} content words, each once with and once without its translation): precision "
            f"{half['precision']:.2f}, recall {half['recall']:.2f} (`seqviz report`, "
            "`models/report/coverage.json`).",
        ]
    for block in more:
        rows += ["", block]
    return "\n".join(rows)


def fill_readme(text: str, block: str) -> str:
    """`text` with `block` between the two result markers.

    Raises:
        ValueError: not exactly one of each marker, in order.
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end or _BEGIN in rest or _END in after:
        raise ValueError(
            f"expected one {_BEGIN} followed by one {_END} in the README; restore them"
        )
    return f"{before}{begin}\n{block}\n{end}{after}"
