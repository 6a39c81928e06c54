"""Write the results of all benchmarks into benchmarks/README.md, from their JSON files.

    python benchmarks/table.py

A benchmark that was not run has no line. `seqviz bench` runs the benchmarks and then this.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seqviz.files import write_text
from seqviz.measuring.pages import fill

HERE = Path(__file__).resolve().parent
Results = dict[str, Any]


def _each(results: Results, say: Callable[[Any], str]) -> str:
    return "; ".join(f"`{name}` {say(found)}" for name, found in results.items())


_SEARCHES = {"greedy": "greedy", "beam_4": "4 beams"}


def _rivals(found: Results) -> str:
    said = f"`generate` {found['generate_over_seqviz']:.2f}"
    if "ctranslate2_over_seqviz" in found:
        said += f", CTranslate2 {found['ctranslate2_over_seqviz']:.2f}"
    return f"{said} times as long"


def decoding(results: Results) -> list[tuple[str, str]]:
    rows = []
    for search, called in _SEARCHES.items():
        for number in "12":

            def say(found: Any, search: str = search, number: str = number) -> str:
                one = found[search][f"{number}_threads"]
                return f"{one['seqviz_ms']:.0f} ms, {_rivals(one)}"

            rows.append(
                (
                    f"one sentence, {called}, with its attention, {number} thread{'s' * (number != '1')}",
                    _each(results["one_sentence"], say),
                )
            )
    for search, called in _SEARCHES.items():

        def say_many(found: Any, search: str = search) -> str:
            many = found[search]
            return f"{many['sentences_per_second']:.0f} sentences a second, {_rivals(many)}"

        rows.append((f"1,000 sentences, {called}, 1 thread", _each(results["many"], say_many)))
    return rows


def training(results: Results) -> list[tuple[str, str]]:
    versions = {
        beside["same_widths"]["versions"]["joeynmt"]
        for found in results.values()
        if (beside := found.get("joeynmt"))
    }

    def say(found: Any) -> str:
        said = (
            f"{found['target_tokens_per_second']:,.0f}, "
            f"{found['times_as_fast_as_the_plain_loop']:.2f} times a plain loop, "
            f"{100 * found['share_of_matmul_rate']:.0f} % of the matmul rate"
        )
        if beside := found.get("joeynmt"):
            one = beside.get("equal_operations", beside["same_widths"])
            said += (
                f", Joey NMT {one['times_as_long_as_ours']:.2f} times as long "
                f"({one['times_as_long_as_ours_with_adamw']:.2f} times with AdamW in both)"
            )
        elif versions:
            said += f" (Joey NMT {found['why_no_joeynmt']})"
        return said

    what = "target tokens a second in training, 1 thread"
    if versions:
        what += f"; beside Joey NMT {', '.join(sorted(versions))}"
    return [(what, _each(results, say))]


def startup(results: Results) -> list[tuple[str, str]]:
    median = results["median"]
    return [
        (
            "from `python app.py` to an answer",
            f"page {median['page_seconds']:.1f} s ({median['times_an_empty_page']:.2f} times an empty "
            f"Gradio page), models warm {median['warm_seconds']:.1f} s, {median['warm_mib']:,.0f} MiB",
        )
    ]


def load(results: Results) -> list[tuple[str, str]]:
    rows = []
    if crowd := results.get("visitors_at_once"):
        rows.append(
            (
                f"{crowd['visitors']} visitors at once, {crowd['words']} words each",
                f"95 % answered within {crowd['p95_seconds']:.1f} s ({crowd['p95_over_alone']:.0f} "
                f"times one visitor alone), {len(crowd['wrong'])} wrong",
            )
        )
    if closed := results.get("closed_tab"):
        rows.append(
            (
                "a tab closed while it works",
                f"{100 * closed['share_of_work_after_closing']:.0f} % of the work was done",
            )
        )
    if many := results.get("many_requests"):
        rows.append(
            (
                f"memory over {many['requests']:,} requests",
                f"{many['second_half_growth_mib']:+.0f} MiB in the second half",
            )
        )
    return rows


def saliency(results: Results) -> list[tuple[str, str]]:
    return [
        (
            "saliency against one backward pass for each output token",
            _each(results, lambda found: f"{found['times_as_fast_as_the_loop']:.1f} times as fast"),
        )
    ]


def attention_map(results: Results) -> list[tuple[str, str]]:
    return [
        (
            "a map of 60 × 60 words on the screen, after the translation",
            _each(results, lambda found: f"{found['after_translation_seconds']:.2f} s"),
        )
    ]


def bootstrap(results: Results) -> list[tuple[str, str]]:
    return [
        (
            "intervals from cached counts against scoring every resample",
            f"{results['times_as_fast_as_scoring_anew']:.0f} times as fast",
        )
    ]


BENCHMARKS: dict[str, Callable[[Results], list[tuple[str, str]]]] = {
    "decoding": decoding,
    "training": training,
    "startup": startup,
    "load": load,
    "attention_map": attention_map,
    "saliency": saliency,
    "bootstrap": bootstrap,
}


def table(folder: Path) -> str:
    """The results as Markdown: what, figures, and the command with its hardware and PyTorch."""
    lines = ["| what | measured | by |", "| --- | --- | --- |"]
    for name, rows_of in BENCHMARKS.items():
        file = folder / f"{name}.json"
        if not file.is_file():
            continue
        content = json.loads(file.read_text(encoding="utf-8"))
        by = f"`{content['command']}`, {content['hardware']}, torch {content['versions']['torch']}"
        lines += [f"| {what} | {said} | {by} |" for what, said in rows_of(content["results"])]
    return "\n".join(lines)


def main() -> None:
    readme = HERE / "README.md"
    write_text(readme, fill(readme.read_text(encoding="utf-8"), {"results": table(HERE)}))


if __name__ == "__main__":
    main()
