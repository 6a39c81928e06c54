"""The package as others get it: what it imports, and what the wheel holds and does elsewhere."""

from __future__ import annotations

import ast
import itertools
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY
from packaging.requirements import Requirement
from transformers import PreTrainedModel, PreTrainedTokenizerFast

IMPORT_TO_PACKAGE = {
    "huggingface_hub": "huggingface-hub",
    "PIL": "pillow",
    "fastapi": "gradio",
    "starlette": "gradio",
}
"""Where the two names differ, or where a package is part of what another one offers."""


def users_of_packages() -> dict[str, set[str]]:
    """Third-party packages by their import name, each with the parts of seqviz that import it."""
    users: dict[str, set[str]] = {}
    package = REPOSITORY / "seqviz"
    for file in package.rglob("*.py"):
        part = file.relative_to(package).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                users.setdefault(name.partition(".")[0], set()).add(part)
    return {
        name: parts
        for name, parts in users.items()
        if name != "seqviz" and name not in sys.stdlib_module_names
    }


def test_every_import_is_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = {
        Requirement(line).name
        for line in itertools.chain(project["dependencies"], *extras.values())
    }
    assert {IMPORT_TO_PACKAGE.get(name, name) for name in users_of_packages()} <= declared


@pytest.mark.parametrize(("package", "part"), [("accelerate", "training"), ("tqdm", "training")])
def test_only_training_needs_the_extra_for_training(package, part):
    assert users_of_packages()[package] == {part}


def run_elsewhere(code: str, folder: Path, path: Path) -> str:
    """Run Python code in another folder, with `path` as the only place to find seqviz in."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_library_needs_neither_the_page_nor_training(
    tiny_model: Callable[..., PreTrainedModel],
    tiny_tokenizer: PreTrainedTokenizerFast,
    tmp_path: Path,
):
    """`load` and `translate` work without the extras ``app`` and ``train``."""
    for saved in (tiny_model("lstm-attention"), tiny_tokenizer):
        saved.save_pretrained(tmp_path / "tiny")
    training = json.dumps({"model": "lstm-attention", "dev_loss": 1.0})
    (tmp_path / "tiny" / "training.json").write_text(training, encoding="utf-8")
    code = """
import sys
for package in ("gradio", "accelerate", "sentencepiece", "google.protobuf", "matplotlib"):
    sys.modules[package] = None
import seqviz
print(type(seqviz.load("./tiny").translate("The bridge.").text).__name__)
"""
    assert run_elsewhere(code, tmp_path, REPOSITORY) == "str"


@pytest.fixture(scope="module")
def tracked_files() -> list[str]:
    """Paths of all files under version control, relative to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.split("\0") if (REPOSITORY / name).is_file()]


def test_weights_are_safetensors_and_nothing_is_a_link(tracked_files: list[str]):
    # A saved run holds what Accelerate writes; that of older code is no weights of ours.
    ours = [name for name in tracked_files if not name.startswith("tests/state_before_rooms/")]
    assert not [name for name in ours if name.endswith((".bin", ".pt", ".pth", ".pkl"))]
    assert not [name for name in tracked_files if (REPOSITORY / name).is_symlink()]


@pytest.fixture(scope="module")
def wheel(tracked_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a source distribution that was built from the tracked files alone.

    Not in the checkout: an old ``build/`` there would slip into the wheel.
    """
    folder = tmp_path_factory.mktemp("wheel")
    for name in tracked_files:
        (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, folder / "checkout" / name)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "checkout"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_is_complete(wheel: Path, tracked_files: list[str]):
    """Every tracked file of ``seqviz/`` and ``models/`` is in it, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {name for name in tracked_files if name.startswith("seqviz/")}
    expected |= {f"seqviz/{name}" for name in tracked_files if name.startswith("models/")}
    assert held == expected
    assert {
        "seqviz/models/tokenizer/tokenizer.json",
        "seqviz/texts.json",
        "seqviz/py.typed",
    } <= held


@pytest.mark.slow
def test_wheel_works_from_any_folder(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        if "seqviz/models/transformer/model.safetensors" not in archive.namelist():
            pytest.skip("no trained weights in models/")
        archive.extractall(tmp_path / "site")
    (tmp_path / "elsewhere").mkdir()
    code = """
import seqviz
for name in seqviz.MODEL_NAMES:
    assert seqviz.load(name).translate("The house is small.").text, name
print(seqviz.__file__)
"""
    printed = run_elsewhere(code, tmp_path / "elsewhere", tmp_path / "site")
    assert Path(printed).is_relative_to(tmp_path / "site")
