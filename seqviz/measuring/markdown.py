"""The results in the docs: a block of Markdown for each report.

Each block says what it was measured by, on what, and with which intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from seqviz.lab import EXPERIMENTS, claims
from seqviz.measuring import seeds
from seqviz.report import Report, Trainings

NOT_MEASURED = "Not measured yet."


def training(trainings: Trainings) -> str:
    """Size, budget, loss and BLEU of the models, as training left them."""
    rows = [
        "| model | parameters | target tokens seen | loss, nats a token | BLEU | brevity penalty |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, one in trainings.items():
        bleu = one.get("dev_bleu")
        scored = (
            f"{bleu['score']:.1f} | {bleu['brevity_penalty']:.2f}" if bleu else "not measured |"
        )
        rows.append(
            f"| `{name}` | {one['num_parameters']:,} | {one['target_tokens']:,} | "
            f"{one['dev_loss']:.3f} | {scored} |"
        )
    first = next(iter(trainings.values()))
    bleu = first.get("dev_bleu") or {}
    rows += [
        "",
        f"Measured by `seqviz train` at the end of each run, on development sentences of Europarl "
        f"(`{first['dev_data']['name']}`, SHA-256 `{first['dev_data']['sha256'][:12]}…`): loss with the "
        f"reference as input, BLEU of greedy output on {bleu.get('sentences', 0)} sentences "
        f"(`{bleu.get('signature', 'not measured')}`). One run a model, without intervals: a first look, no claim. "
        f"Trained on {first['hardware']}. Loss curves: `models/report/losses.svg`.",
    ]
    return "\n".join(rows)


def coverage(report: Report) -> str:
    """How far "not found" can be trusted."""
    half = report.results["reported"]
    return (
        f"*Not found*, as the page marks words, on {half['pairs']} hand-aligned pairs that nothing was chosen "
        f"on ({half['words']} content words, each once with and once without its translation): precision "
        f"{half['precision']:.2f}, recall {half['recall']:.2f} (`seqviz report`, "
        "`models/report/coverage.json`)."
    )


def _interval(entry: dict[str, float | None], digits: int = 2) -> str:
    """A value with its interval, in words."""
    value, low, high = entry["value"], entry["low"], entry["high"]
    if value is None:
        return "none"
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def length(report: Report, two_seeds: Report | None = None) -> str:
    """Markdown of what a length report found: figure, effect of length, what was predicted.

    Args:
        two_seeds: what two seeds differ by, see `seeds`; a smaller difference is said to be no finding.
    """
    found = report.results
    curves, effects = found["curves"], found["effects"]
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
    if found.get("references"):
        rows += ["", *_beside(found)]
    prediction = found.get("prediction")
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
                f"`{h['second']}`, {h['curve']}: {_interval(h, 3)} | {_verdict(h, two_seeds)} |"
            )
    data, seen = report.data, next(iter(report.models.values()))["target_tokens"]
    sampled = f", a sample of {data['sample']:,}" if data.get("sample") else ""
    rows += [
        "",
        f"Measured by `{report.command}` (SHA-256 `{data['sha256'][:12]}…`): {data['pairs']:,} sentences"
        f"{sampled} and {data['runs']:,} runs of sentences, greedy search, {found['resamples']:,} paired "
        f"bootstrap resamples, weights after {seen:,} target tokens; {report.hardware}; "
        f"{', '.join(f'{k} {v}' for k, v in report.versions.items())}. The intervals cover the choice "
        "of test sentences, not that of a training seed. All numbers: `models/report/length.json`; where it "
        "breaks along a sentence: `models/report/where-it-breaks.svg`.",
    ]
    return "\n".join(rows)


def _verdict(hypothesis: Mapping[str, Any], two_seeds: Report | None) -> str:
    """What came out, and whether a seed makes as much of a difference."""
    verdict, value = hypothesis["verdict"], hypothesis.get("value")
    chance = seeds.apart(two_seeds, hypothesis["curve"], hypothesis["measure"])
    if chance is None or value is None or verdict == "undecided":
        return verdict
    if abs(value) < chance:
        return f"no finding: two seeds differ by {chance:.3f}"
    return f"{verdict}; two seeds differ by {chance:.3f}"


def _beside(found: Mapping[str, Any]) -> list[str]:
    """What is left of the first point, circles, and found words beyond chance, from the first point to the last."""
    rows = [
        "![BLEU left of the first point](models/report/kept.svg)",
        "",
        "![Outputs that repeat themselves](models/report/circles.svg)",
        "",
        "From the first point of a curve to its last that rests on 50 texts or more. *In circles*: outputs that "
        "repeat themselves. *Found*: content words found, beyond what the output for another text of like length "
        "holds by chance, as a share of what the human translation holds beyond it. Models write the commonest "
        "word, people do not, so this can pass 100 %.",
        "",
        "| curve | model | words | BLEU left | in circles | found beyond chance |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for curve, models in found["curves"].items():
        for name, entry in models.items():
            thick = [b for b in entry["buckets"] if b["n"] and not b["thin"]]
            if not thick:
                continue
            first, last = thick[0], thick[-1]
            ends = [
                f"{_spread(first, key, 100)} → {_spread(last, key, 100)}"
                for key in ("repeated", "found_above")
            ]
            rows.append(
                f"| {curve} | `{name}` | {first['words']:.0f} → {last['words']:.0f} | "
                f"{_spread(last, 'bleu_kept', 100)} | {' | '.join(ends)} |"
            )
        human = [p for p in found["references"][curve] if p["n"] >= 50]
        if human:
            rows.append(
                f"| {curve} | people | {human[0]['words']:.0f} → {human[-1]['words']:.0f} | | "
                f"{_spread(human[0], 'repeated', 100)} → {_spread(human[-1], 'repeated', 100)} | |"
            )
    return rows


def chains(report: Report) -> str:
    """Markdown of what is forgotten when the same everyday sentences stand together."""
    found = report.results
    everything = found["sets"]["all"]
    sizes = found["sizes"]
    rows = [
        f"The same {everything['n']:,} everyday sentences, alone and in chains of "
        f"{', '.join(map(str, sizes[1:]))} strangers; training joins at most "
        f"{max(p['sentences'] for p in next(iter(everything['models'].values())) if p['trained'])}. BLEU is "
        f"taken over units of {found['unit']} sentences, the same ones at every size. *Forgotten*: of the "
        "content words that are found when their sentence stands alone, the share that is not found in the "
        "chain. *By chance*: the same in the output for another chain of like length, so that is what a model "
        f"without any memory gets. Mean of {found['orders']} orders, 95 % intervals over units.",
        "",
        *_chains_table(everything),
    ]
    if unseen := found["sets"].get("unseen"):
        rows += [
            "",
            f"Without the pairs whose French side stands in the training corpora, {unseen['n']:,} sentences "
            "are left:",
            "",
            *_chains_table(unseen),
        ]
    singles = ", ".join(
        f"`{name}` {single['bleu']:.1f}" for name, single in everything["single"].items()
    )
    circles = ", ".join(f"{100 * r['repeated']:.1f} %" for r in everything["references"])
    rows += [
        "",
        f"BLEU over single sentences: {singles}. Human translations count as repeating themselves in "
        f"{circles} of the chains, from the shortest to the longest.",
        "",
        f"Measured by `{report.command}`; {report.hardware}.",
    ]
    return "\n".join(rows)


def _chains_table(found: Mapping[str, Any]) -> list[str]:
    """A row for each model and size."""
    rows = [
        "| model | sentences | words | BLEU | of that alone | words known | forgotten | by chance | in circles |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, points in found["models"].items():
        for point in points:
            cells = [
                f"`{name}`",
                str(point["sentences"]),
                f"{point['words']:.0f}",
                _spread(point, "bleu", 1, 1),
                _spread(point, "bleu_kept", 100),
                _spread(point, "known", 100),
                _spread(point, "forgotten", 100),
                _share(point["forgotten_chance"]),
                _spread(point, "repeated", 100),
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _spread(point: Mapping[str, Any], key: str, scale: float, digits: int = 0) -> str:
    """A measure with its interval; shares in percent."""
    value, low, high = (point[k] for k in (key, f"{key}_low", f"{key}_high"))
    if value is None:
        return "–"
    unit = " %" if scale == 100 else ""
    said = f"{scale * value:.{digits}f}{unit}"
    if low is None or high is None:
        return said
    return f"{said} ({scale * low:.{digits}f} to {scale * high:.{digits}f})"


_READ = {"predicting": "at the step that chose the word", "reading": "one step later"}


def _contender(key: str, results: Mapping[str, Any]) -> str | None:
    """What links words, in words; None for what is in the table under another name."""
    if key == "diagonal":
        return "a plain diagonal, no model"
    name, _, what = key.partition(":")
    if what == "saliency":
        return f"`{name}`, saliency (gradient × input)"
    chosen = results["choice"][name]
    if what == "mean":
        return f"`{name}`, mean of all heads, read {_READ[chosen['reading']]}"
    if what == chosen["reading"]:
        return None
    heads = results["heads"][name]
    best = heads["best"][what] if what else chosen
    several = len(heads["aer"]) * len(heads["aer"][0]) > 1
    head = f", layer {best['layer'] + 1} head {best['head'] + 1}" if several else ""
    chosen_one = "" if what else " (chosen)"
    return f"`{name}`, attention{head}, read {_READ[best['reading']]}{chosen_one}"


def alignment(report: Report) -> str:
    """Markdown of how far attention and saliency agree with alignments made by hand."""
    data, found = report.data, report.results
    rows = [
        "Where the models look, against word alignments made by hand: alignment error rate (0 is best). Each "
        "French word is linked to the English word of most weight; the human translation is given. A word's "
        "attention is read at the step that chose it, or one step later, when the word is the input. Head "
        f"and step were chosen on {data['chosen_on']} of our sentence pairs and are scored on the other "
        f"{data['reported']}. These pairs are short, and we wrote and aligned them ourselves: a small sample. "
        "95 % intervals over sentence pairs.",
        "",
        *_alignment_table(found, "results"),
    ]
    if found.get("public"):
        rows += [
            "",
            f"The same on {data['public_pairs']} public pairs that other people aligned, longer and from "
            "parliament. There possible links count as sure, so our pairs stand beside them once more under "
            "that rule. Nothing was chosen on the public pairs.",
            "",
            *_alignment_table(found, "public", "own_as_public"),
        ]
    if found.get("deletion"):
        rows += ["", *_deletion_table(found["deletion"])]
    rows += [
        "",
        f"Measured by `{report.command}`; {report.hardware}. Every head: "
        "`models/report/attention.json`. A head that agrees with alignments is not thereby a reason for what "
        "a model writes.",
    ]
    return "\n".join(rows)


def _deletion_table(deletion: Mapping[str, Any]) -> list[str]:
    """What deleting the word ranked first costs: a model a row, a ranking a column."""
    rankings = ("attention", "saliency", "aligned", "diagonal")
    rows = [
        "Does the word ranked first matter? We delete it from the English sentence and read again. The cost "
        "is what the French word's loss gains, nats a word, minus the cost of a random other English word. "
        "*Aligned* is the word that we linked by hand, *diagonal* the word at the same place. Deletion leaves "
        "sentences that no one writes.",
        "",
        f"| | {' | '.join(rankings)} |",
        f"| --- |{' --- |' * len(rankings)}",
    ]
    for name, found in deletion["models"].items():
        cells = [
            _interval(found[ranking]["gain"]) if found.get(ranking, {}).get("gain") else "–"
            for ranking in rankings
        ]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return rows


def _alignment_table(
    results: Mapping[str, Any], which: str, beside: str | None = None
) -> list[str]:
    """Rows by error rate; `beside` adds the error rate on other pairs."""
    more = " our pairs, same rule |" if beside else ""
    rows = [
        f"| | error rate | precision | recall |{more}",
        f"| --- | --- | --- | --- |{' --- |' if beside else ''}",
    ]
    for key, scored in sorted(results[which].items(), key=lambda item: item[1]["aer"]["value"]):
        if said := _contender(key, results):
            row = (
                f"| {said} | {_interval(scored['aer'])} | {scored['precision']:.2f} | "
                f"{scored['recall']:.2f} |"
            )
            if beside:
                row += f" {_interval(results[beside][key]['aer'])} |"
            rows.append(row)
    return rows


def quality(report: Report, names: Iterable[str]) -> str:
    """A table of the models by test set and search, and what it was measured by."""

    def cell(entry: Mapping[str, Any], key: str) -> str:
        low, high = entry[f"{key}_low"], entry[f"{key}_high"]
        interval = "" if low is None or high is None else f" ({low:.1f} to {high:.1f})"
        return f"{entry[key]:.1f}{interval}"

    rows = [
        "| model | test set | BLEU, greedy | BLEU, beam | chrF, greedy | chrF, beam |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    widths: set[str] = set()
    for name in names:
        for test_set, content in report.results["test_sets"].items():
            greedy, *wider = (
                (beams, found[name])
                for beams, found in sorted(content["searches"].items(), key=lambda i: int(i[0]))
            )
            widths.update(beams for beams, _ in wider)
            cells = [
                cell(entry, metric) if entry else "not measured"
                for metric in ("bleu", "chrf")
                for entry in (greedy[1], wider[-1][1] if wider else None)
            ]
            rows.append(f"| `{name}` | {test_set} | {' | '.join(cells)} |")
    sets = "; ".join(
        f"{name}: {content['data']['pairs']:,} of {content['data']['lines']:,} pairs of "
        f"`{content['data']['name']}`, SHA-256 `{content['data']['sha256'][:12]}…`"
        for name, content in report.results["test_sets"].items()
    )
    beams = f", beam of {' and '.join(sorted(widths))}" if widths else ""
    rows += [
        "",
        f"Measured by `{report.command}` ({sets}){beams}; {report.results['resamples']:,} paired bootstrap "
        f"resamples, 95 % intervals; `{report.results['signatures']['bleu']}`, `{report.results['signatures']['chrf']}`; "
        f"{report.hardware}. All numbers: `models/report/quality.json`.",
    ]
    return "\n".join(rows)


def lab(reports: Mapping[str, Report], trainings: Trainings) -> dict[str, str]:
    """The lab: one sentence an experiment, and the article's claims; of these weights alone."""
    current = {
        name: report
        for name, report in reports.items()
        if not report.models or not report.stale(trainings)
    }
    said = [
        f"- {current[name].results['says']['en']} (`{current[name].command}`; {current[name].hardware}; "
        f"`models/report/{name}.svg`)"
        for name in EXPERIMENTS
        if name in current
    ]
    judged = {
        name: current[name].content() for name in {*EXPERIMENTS, *claims.REPORTS} if name in current
    }
    return {"lab": "\n".join(said) or NOT_MEASURED, "claims": claims.markdown(judged)}
