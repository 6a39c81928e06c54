"""What a clone and a wheel promise: pins, commands, layers, sizes."""

from __future__ import annotations

import ast
import graphlib
import itertools
import re
import shlex
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")

LAYERS = [
    {
        "version",
        "constants",
        "files",
        "given",
        "report",
        "scores",
        "shipped",
        "language",
        "text_languages",
        "handwritten",
        "digits",
        "pieces",
    },
    {"tokenizer", "corpus", "data", "maps", "drawing"},
    {"architectures"},
    {"translating", "training"},
    {
        *(
            "looking",
            "coverage",
            "meaning",
            "drawing.export",
            "plotting",
            "probes",
        ),
        "trials",
    },
    {"lab"},
    {"measuring"},
    {"ui"},
    {"mounting"},
    {"cli", "__main__"},
]
"""From the bottom up; a module may import from its own layer and from those above it in this list."""


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]


def _imports(path: Path) -> set[str]:
    """Full names of what a file imports: of modules, or of what is taken from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def _modules() -> dict[Path, str]:
    """Every source file of the package with the name that `LAYERS` knows it by."""
    package = REPOSITORY / "seqviz"
    files = [p for p in package.rglob("*.py") if p != package / "__init__.py"]
    return {p: _name(p.relative_to(package).with_suffix("").parts) for p in files}


def _name(parts: Sequence[str]) -> str:
    """What `LAYERS` calls a module: its room, or a file that lies above its room."""
    file = ".".join(parts[:2])
    return file if any(file in names for names in LAYERS) else parts[0]


def test_imports_point_down_only() -> None:
    level = {name: number for number, names in enumerate(LAYERS) for name in names}
    for path, name in _modules().items():
        for module in _imports(path):
            parts = module.split(".")
            if parts[0] == "seqviz" and len(parts) > 1 and parts[1] in level:
                above = level[_name(parts[1:])] > level[name]
                assert not above, f"{path} imports {module}, which lies above it"


def test_imports_go_in_no_circle() -> None:
    """Also inside a layer, and also where an import waits for its function to be called."""
    package = REPOSITORY / "seqviz"
    names = {
        path: ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        for path in package.rglob("*.py")
    }
    modules = set(names.values()) - {"seqviz"}  # which imports nothing before it is asked
    imported = {
        name: {i if i in modules else i.rpartition(".")[0] for i in _imports(path)}
        for path, name in names.items()
    }
    sorter = graphlib.TopologicalSorter({name: imported[name] & modules for name in modules})
    sorter.prepare()  # raises CycleError, which names the circle


def test_every_module_has_a_layer() -> None:
    assert set(_modules().values()) <= {name for names in LAYERS for name in names}


def test_only_the_page_knows_gradio_and_only_figures_matplotlib() -> None:
    for path, name in _modules().items():
        roots = {module.split(".")[0] for module in _imports(path)}
        assert "gradio" not in roots or name in ("ui", "mounting"), path
        assert "matplotlib" not in roots or "figures" in path.parts, path


def test_space_header_and_pins_agree() -> None:
    header = yaml.safe_load(README.split("---\n")[1])
    pins = dict(
        line.split("==")
        for line in (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    assert header["sdk"] == "gradio"
    assert header["sdk_version"] == pins["gradio"]
    assert header["python_version"] == "3.11"
    assert (REPOSITORY / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60
    assert {"gradio", "torch", "transformers", "sentencepiece", "matplotlib"} <= set(pins)


def test_pins_lie_within_the_ranges_of_the_package() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(r for e in project["optional-dependencies"].values() for r in e),
    ]
    ranges = {r.name: r.specifier for r in map(Requirement, wanted)}
    for file in ("requirements.txt", "tests/requirements.txt"):
        for line in (REPOSITORY / file).read_text(encoding="utf-8").splitlines():
            assert "://" not in line
            name, _, version = line.partition("==")
            if name in ranges:
                assert version in ranges[name], f"{line} is outside {ranges[name]}"


def test_readme_has_the_two_commands() -> None:
    assert "\npip install -r requirements.txt && python app.py\n" in README
    assert "\npip install -r requirements.txt -r tests/requirements.txt && pytest\n" in README


def test_upload_takes_what_a_space_needs_and_no_more() -> None:
    from huggingface_hub.utils import filter_repo_objects

    page = (REPOSITORY / "docs" / "deploying.md").read_text(encoding="utf-8")
    (command,) = [line for line in page.splitlines() if line.startswith("hf upload ")]
    words = shlex.split(command)
    pairs = list(itertools.pairwise(words))
    tracked = [path.relative_to(REPOSITORY).as_posix() for path in _tracked()]
    taken = set(
        filter_repo_objects(
            [*tracked, "seqviz/__pycache__/cli.cpython-311.pyc"],
            allow_patterns=[value for option, value in pairs if option == "--include"],
            ignore_patterns=[value for option, value in pairs if option == "--exclude"],
        )
    )
    needed = {path for path in tracked if path.startswith(("seqviz/", "models/"))}
    needed |= {"app.py", "README.md", "README.zh.md", "requirements.txt", "packages.txt"}
    assert needed <= taken
    assert {path.split("/")[0] for path in taken - needed} <= {"LICENSE", "docs"}
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures and set(pictures) <= taken


def test_launching_training_is_taught_with_options_that_exist() -> None:
    """Both sides of every ``accelerate launch … -m seqviz train …``, parsed as they would be."""
    import typer
    from accelerate.commands.launch import launch_command_parser

    from seqviz.cli import app

    page = (REPOSITORY / "docs" / "training.md").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", page).splitlines()
    commands = [shlex.split(line) for line in lines if re.match(r"(\w+=\w+ )?accelerate ", line)]
    assert len(commands) == 3
    train = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    for words in commands:
        launched = launch_command_parser().parse_args(words[words.index("launch") + 1 :])
        assert launched.module and launched.training_script == "seqviz" and launched.multi_gpu
        assert launched.num_processes >= 2
        name, *arguments = launched.training_script_args
        assert name == "train"
        train.make_context("train", arguments)
    about = page.split("\n## All four")[1]
    for option in re.findall(r"`(--[a-z-]+)", about):
        known = {text for parameter in train.params for text in parameter.opts}
        assert option in known, option


def test_no_file_is_too_large() -> None:
    for path in _tracked():
        assert path.stat().st_size <= 16_000_000, path


def test_nothing_names_a_machine() -> None:
    """No absolute path of somebody's machine in what is tracked."""
    pattern = re.compile(r"/(?:home|root|work|Users)/\w")
    for path in _tracked():
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".yaml", ".css", ".js"}:
            text = path.read_text(encoding="utf-8")
            found = pattern.search(text) if path != Path(__file__) else None
            assert not found, f"{path}: {text[found.start() : found.start() + 60]}"
