"""README and docs: filled in by code, examples that run, links that lead somewhere, pictures of these weights."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqviz.constants import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS
from seqviz.drawing import figures
from seqviz.measuring import artefacts, names
from seqviz.measuring import readme as readme_blocks
from seqviz.measuring.pages import blocks_in, fill, language_of, pages
from seqviz.report import Report, read_training, weights_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = pages(ROOT / "README.md")
ENGLISH = [page for page in PAGES if language_of(page) == "en"]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def code(page: Path, language: str) -> list[str]:
    """Blocks of code of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXTS[page], re.DOTALL | re.MULTILINE)


# -- numbers


def test_there_are_the_pages_that_the_readme_promises():
    found = [page.relative_to(ROOT).as_posix() for page in PAGES]
    docs = (
        "api",
        "decoding",
        "deploying",
        "fine-tuning",
        "interpretability",
        "lab",
        "measuring",
        "results",
        "training",
    )
    assert found == ["README.md", "README.zh.md", *(f"docs/{name}.md" for name in docs)]
    assert len(TEXTS[ROOT / "README.md"].splitlines()) <= 120


def test_blocks_are_filled_in_between_their_markers():
    text = "a\n<!-- one:begin -->\nold\n<!-- one:end -->\nb\n<!-- two:begin -->\n<!-- two:end -->\n"
    blocks = {"one": "new\n\n![x](models/x.svg)", "two": "[y](docs/y.md) [z](https://z)"}
    filled = fill(text, blocks)
    assert filled == text.replace("old", blocks["one"]).replace(
        "<!-- two:begin -->\n", f"<!-- two:begin -->\n{blocks['two']}\n"
    )
    assert fill(filled, blocks) == filled
    inside = fill(text, blocks, "docs/a.md")
    assert "](../models/x.svg)" in inside and "](../docs/y.md) [z](https://z)" in inside
    assert fill(inside, blocks, "docs/a.md") == inside
    with pytest.raises(ValueError, match="a block of README.md to be one of one, got 'two'; mend"):
        fill(text, {"one": ""})


@pytest.mark.parametrize(
    "marks", ["a:begin", "a:end", "a:end a:begin", "a:begin b:end", "a:begin b:begin a:end b:end"]
)
def test_markers_that_are_no_pair_are_refused(marks: str):
    text = "".join(f"<!-- {mark} -->\n" for mark in marks.split())
    with pytest.raises(ValueError, match=f"of x.md .* got {marks.replace(' ', ', ')}; restore"):
        fill(text, {"a": "", "b": ""}, "x.md")


@pytest.fixture(scope="module")
def trainings(models_folder: Path) -> dict[str, dict[str, Any]]:
    return read_training(models_folder)


@pytest.fixture(scope="module")
def reports(models_folder: Path) -> dict[str, Report]:
    found = {a.name: Report.read(models_folder / f"report/{a.name}.json") for a in artefacts.ARTEFACTS}  # fmt: skip
    return {name: report for name, report in found.items() if report}


@by_name
def test_numbers_are_those_of_the_weights(
    page: Path, trainings: dict[str, Any], reports: dict[str, Report]
):
    blocks = artefacts.blocks(reports, trainings, language_of(page))
    filled = fill(TEXTS[page], blocks, page.relative_to(ROOT).as_posix())
    assert filled == TEXTS[page], "run 'seqviz report'"


def test_every_block_stands_on_some_page(trainings: dict[str, Any], reports: dict[str, Report]):
    shown = {name for page in ENGLISH for name in blocks_in(TEXTS[page])}
    assert shown == set(artefacts.blocks(reports, trainings))


def test_both_readmes_have_the_same_blocks_code_and_headings():
    english, chinese = ROOT / "README.md", ROOT / "README.zh.md"
    assert blocks_in(TEXTS[english]) == blocks_in(TEXTS[chinese])
    for language in ("sh", "python"):
        bare = [
            [re.sub(r"\s*#.*", "", block) for block in code(page, language)]
            for page in (english, chinese)
        ]
        assert bare[0] == bare[1]
    assert TEXTS[english].count("\n## ") == TEXTS[chinese].count("\n## ")
    assert "您" not in TEXTS[chinese]


def test_the_readme_says_what_speaks_against_its_table(reports: dict[str, Report]):
    """Who cannot translate short sentences is said by the numbers, in the same breath."""
    length = reports["length"].content()
    first = {n: m["buckets"][0]["bleu"] for n, m in length["curves"]["natural"].items()}
    for bleu, said in ((0.39, "cannot translate even short"), (0.41, "Read it with care")):
        best = max(first.values())
        for name, model in length["curves"]["natural"].items():
            model["buckets"][0]["bleu"] = best * (bleu if name == "lstm" else 1)
        text = readme_blocks.blocks({"length": Report.of(length)}, {}, "en")["results"]
        assert said in text
        assert ("cannot translate" in text) == (bleu < readme_blocks.POOR)
        assert f"`lstm` {best * bleu:.1f}" in text


def test_the_limits_of_a_text_are_those_of_the_code():
    for page in (ROOT / "README.md", ROOT / "README.zh.md"):
        assert re.search(rf"\b{MAX_SOURCE_WORDS} \D+ {MAX_SOURCE_PIECES} ", TEXTS[page])


# -- pictures


@pytest.mark.parametrize("name", ["slider.webp", "slider.zh.webp"])
def test_the_moving_picture_shows_these_weights(name: str, trainings: dict[str, Any]):
    file = ROOT / "docs" / name
    assert file.stat().st_size <= 2_000_000
    with Image.open(file) as picture:
        shown = json.loads(picture.getexif()[0x010E])
        assert getattr(picture, "n_frames", 1) >= 5
        frames = []
        for number in range(picture.n_frames):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("L"), dtype=float))
    assert shown["models"] == weights_of(trainings), f"run '{shown['command']}'"
    assert all(np.abs(one - other).mean() > 0.5 for one, other in zip(frames, frames[1:]))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_is_drawn_from_the_report(
    language: str, reports: dict[str, Report], models_folder: Path
):
    """Line for line; places may differ by a hair between machines."""
    site = artefacts.Site(models_folder, {}, print, Path())
    (artefact,) = [a for a in artefacts.ARTEFACTS if a.name == "length"]
    draw = artefact.figures(site, reports["length"])["same-content"]
    drawn = io.BytesIO()
    figures.save(draw(reports["length"].content(), language=language), drawn, "svg")
    ending = "" if language == "en" else ".zh"
    kept = (models_folder / "report" / f"same-content{ending}.svg").read_text(encoding="utf-8")
    number = r"-?\d+\.\d+"
    shapes = [re.sub(number, "#", text) for text in (drawn.getvalue().decode("utf-8"), kept)]
    assert shapes[0] == shapes[1], "run 'seqviz report'"
    places = [
        np.array(re.findall(number, text), float) for text in (drawn.getvalue().decode(), kept)
    ]
    assert np.abs(places[0] - places[1]).max() < 1, "run 'seqviz report'"


# -- links


def anchors(text: str) -> set[str]:
    """What a heading can be linked by."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_name
def test_links_lead_somewhere(page: Path):
    text = TEXTS[page]
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links or page.name == "training.md"
    for link in links:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file() and target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link
    hosts = set(re.findall(r"https?://([\w.]+)", text))
    assert hosts <= {"127.0.0.1"}, "a page that names another host may need it"


def test_the_readme_leads_to_every_page():
    for page in (ROOT / "README.md", ROOT / "README.zh.md"):
        for other in PAGES:
            assert other == page or f"]({other.relative_to(ROOT).as_posix()})" in TEXTS[page]


# -- examples


def runs_elsewhere(block: str) -> bool:
    """In tests/test_client.py, or tests/test_interpretability.py, which skips what is not installed."""
    needed = r"^(?:from|import) (?:gradio_client|captum|inseq|bertviz)\b"
    return re.search(needed, block, re.MULTILINE) is not None


@by_name
def test_examples_in_python_run(page: Path, tmp_path: Path, models_folder: Path):
    blocks = [block for block in code(page, "python") if not runs_elsewhere(block)]
    if not blocks or language_of(page) != "en":
        pytest.skip("none, or those of the README")
    if not (models_folder / "rnn" / "model.safetensors").is_file():
        pytest.skip("no shipped weights")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for promised in re.findall(r"# (\[.*\])$", "\n".join(blocks), re.M):
        assert promised in done.stdout
    for written in re.findall(r'plotting\.save\(.*"(.*)"\)', "\n".join(blocks)):
        assert (tmp_path / written).stat().st_size


def commands() -> list[str]:
    """Every command line of the pages that calls seqviz, in blocks of code and in tables."""
    found = []
    for page in PAGES:
        for block in code(page, "sh"):
            lines = re.sub(r"\\\n\s*", "", block).splitlines()
            found += [line for line in lines if not line.startswith("#")]
        found += re.findall(r"^\| `(seqviz [^`]*)`", TEXTS[page], re.M)
    return sorted({line for line in found if re.search(r"(^|\| |  )seqviz [a-z]", line)})


@pytest.mark.parametrize("line", commands())
def test_commands_have_options_that_exist(line: str):
    import click
    import typer

    from seqviz.cli import app

    line = re.sub(r"^.*?(?=seqviz [a-z])", "", line).split(" || ")[0].replace("$model", "lstm")
    _, *words = shlex.split(line, comments=True)
    command: Any = typer.main.get_command(app)
    context = click.Context(command, info_name="seqviz")
    while hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, line
        command = command.commands[name]
    parser = command.make_parser(context)
    parser.parse_args(words)  # fails on an unknown option


# -- names


def taught() -> set[str]:
    """Full names of all that pages and notebook import."""
    book = json.loads((ROOT / "docs" / "tour.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    blocks = [block for page in PAGES for block in code(page, "python")]
    found = set()
    for block in [*blocks, *(re.sub(r"^%.*$", "", cell, flags=re.M) for cell in cells)]:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] == "seqviz"}


PROMISED = {
    *("seqviz.plotting", "seqviz.coverage", "seqviz.scores"),
    *("seqviz.lab.gradient.reach", "seqviz.training.train", "seqviz.corpus", "seqviz.tokenizer"),
}
"""Beside those that are taught."""


def test_pages_and_notebook_teach_imports():
    assert {"seqviz", "seqviz.plotting", "seqviz.coverage", "seqviz.lab.gradient.reach"} <= taught()


@pytest.mark.parametrize("name", sorted(taught() | PROMISED))
def test_what_is_taught_can_be_imported(name: str):
    code = f"import importlib; importlib.import_module({name!r})"
    if name not in ("seqviz",):
        package, _, last = name.rpartition(".")
        code = f"from {package} import {last}"
    exec(compile(code, name, "exec"), {})


def test_the_list_of_names_holds_what_design_promises():
    listed = names.index()
    for name in (
        "load",
        "Translator",
        ".translate",
        ".attention",
        "length_curve",
        "reach",
        "train",
    ):
        assert f"- `{name}`: " in listed, name
    for module in names.PUBLIC:
        importlib.import_module(module)
        assert f"**`{module}`**: " in listed


def test_a_public_name_without_a_docstring_is_refused():
    with pytest.raises(ValueError, match="expected a docstring of .*, got none; write one"):
        names._sentence(lambda: None)


def test_the_api_reference_is_built_without_a_warning(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "reference.py"), str(tmp_path / "reference")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.splitlines() == [f"{tmp_path / 'reference' / 'index.html'} written"]
    for module in names.PUBLIC:
        page = tmp_path / "reference" / Path(*module.split(".")).with_suffix(".html")
        assert page.is_file(), module
    text = (tmp_path / "reference" / "seqviz.html").read_text(encoding="utf-8")
    assert "prefix_ids" in text and "Raises" in text
