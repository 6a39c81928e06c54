"""The benchmarks' table is made from their files, and their command says what it needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from seqviz import cli
from seqviz.report import fill_readme

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.append(str(FOLDER))

import table  # noqa: E402


def run(monkeypatch, capsys, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["seqviz", "bench", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0), capsys.readouterr().err


def test_the_table_is_that_of_the_files():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert readme == fill_readme(readme, table.table(FOLDER)), "run python benchmarks/table.py"


def test_every_benchmark_is_described_and_has_its_lines():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    scripts = {path.stem for path in FOLDER.glob("*.py")} - {"table"}
    assert scripts == set(table.BENCHMARKS)
    for name in scripts:
        assert f"python benchmarks/{name}.py" in readme


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_results_name_their_command_versions_and_hardware(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["command"].startswith(f"python benchmarks/{file.stem}.py")
    assert content["hardware"] and content["versions"]["torch"] and content["results"]


def test_an_unknown_name_is_one_line(monkeypatch, capsys):
    code, said = run(monkeypatch, capsys, "warp")
    assert code == 2 and "expected some of" in said and "decoding" in said


def test_a_benchmark_that_fails_stops_the_command(monkeypatch, capsys):
    monkeypatch.setattr("subprocess.run", lambda *a, **k: type("Done", (), {"returncode": 3})())
    code, said = run(monkeypatch, capsys, "decoding")
    assert code == 1 and "the benchmark decoding ended with 3" in said
