"""The benchmarks' table is made from their files, and their command says what it needs."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from seqviz import cli
from seqviz.measuring.pages import fill
from seqviz.training import Recipe

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
    assert readme == fill(readme, {"results": table.table(FOLDER)}), (
        "run python benchmarks/table.py"
    )


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


# ---------------------------------------------------------------------------------------------
# Joey NMT, without Joey NMT

# Answers as benchmarks/others/joey_nmt.py does; a step takes as many seconds as the model is wide.
STAND_IN = """
import json, sys
PRECISIONS = {"fp32": 1, "bf16": BF16}
for line in sys.stdin:
    job = json.loads(line)
    if "config" in job:
        width, precision = job["config"]["width"], job["precision"]
        answer = {"versions": {"joeynmt": "9.8"}, "num_threads": job["num_threads"]}
    elif job["do"] == "operations":
        answer = {"operations": 1e6 * width}
    else:
        tokens = sum(len(ids) + 1 for ids in job["target"])
        assert min(map(min, job["source"] + job["target"])) >= 2
        answer = {"seconds": width / PRECISIONS[precision], "loss": width / 7, "target_tokens": tokens}
    print(json.dumps(answer), flush=True)
"""
TINY = {"d_model": 8, "width": 12, "vector_size": 12, "attention_size": 4, "num_layers": 1}
REPORT = {
    "recipe": asdict(Recipe(batch_tokens=60)),
    "target_tokens": 44,
    "data": [{"source_pieces": 300, "target_pieces": 400}],
    "length_histogram": [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1],
}


@pytest.fixture(scope="module")
def training() -> Any:
    spec = importlib.util.spec_from_file_location("training_benchmark", FOLDER / "training.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def python(tmp_path: Path) -> Any:
    """Makes a "Python" that runs these lines whatever script it is given."""

    def make(lines: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!{sys.executable}\n{lines}", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return make


def beside(training: Any, tokens: Any, python: str | None, name: str = "lstm-attention") -> Any:
    return training.beside_joeynmt(
        name, REPORT, tokens, python, steps=2, rounds=2, examples=40, config=TINY
    )


def test_joey_nmt_steps_by_turns_on_the_same_batches(training, tiny_tokenizer, python, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found, why_none = beside(training, tiny_tokenizer, python(STAND_IN.replace("BF16", "1")))
    assert why_none is None
    same, equal = found["same_widths"], found["equal_operations"]
    wide = training.EQUAL_OPERATIONS["lstm-attention"]["equal_operations"]["width"]
    assert same["settings"] == {} and equal["settings"] == {"width": wide}
    assert same["last_loss"] == round(12 / 7, 3) and equal["first_loss"] == round(wide / 7, 3)
    for key in ("times_as_long_as_ours", "times_as_long_as_ours_with_adamw"):
        assert same[key] > 20  # 12 seconds a step
        assert equal[key] / same[key] == pytest.approx(wide / 12, rel=1e-3)
    assert equal["operations_over_ours"] / same["operations_over_ours"] == pytest.approx(
        wide / 12, rel=0.01
    )
    tokens_per_step = 12 * same["target_tokens_per_second"]
    assert 30 < tokens_per_step <= 60
    assert found["ours_with_adamw_target_tokens_per_second"] > 10 * tokens_per_step / 12
    assert same["versions"] == {"joeynmt": "9.8"} and found["differs"]
    json.dumps(found)


@pytest.mark.parametrize(("times", "faster"), [(2, "bf16"), (0.5, "fp32")])
def test_joey_nmt_counts_in_its_faster_precision(
    training, tiny_tokenizer, python, monkeypatch, times, faster
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(training.training, "bf16_pays", lambda device: True)
    found, why_none = beside(
        training, tiny_tokenizer, python(STAND_IN.replace("BF16", str(times))), "lstm-attention"
    )
    assert why_none is None
    same = found["same_widths"]
    rates = same["target_tokens_per_second_of_precisions"]
    assert same["precision"] == faster and set(rates) == {"fp32", "bf16"}
    assert same["target_tokens_per_second"] == max(rates.values()) == rates[faster]
    assert rates["bf16"] / rates["fp32"] == pytest.approx(times, rel=0.05)


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_joey_nmt_has_no_equal_of_these(training, tiny_tokenizer, name):
    found, why_none = beside(training, tiny_tokenizer, "never started", name)
    assert found is None and "no recurrent decoder without attention" in why_none.replace(
        "nor a", "no"
    )


def test_nobody_asked_for_joey_nmt(training, tiny_tokenizer):
    assert beside(training, tiny_tokenizer, None) == (None, "not asked for; give --joeynmt PYTHON")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (None, "got: No such file or directory"),
        (
            "import sys; sys.exit('No module named joeynmt')",
            "got: it ended with 1: No module named joeynmt",
        ),
        ("print('Hello')", "got: an answer that cannot be read, 'Hello'"),
        ("print(3)", "got: an answer that cannot be read, '3'"),
        ("import os; os._exit(7)", "got: it ended with 7; see"),
        (
            STAND_IN.replace("BF16", "1").replace('"do"] == ', '"do"] != "step" or 1 / 0 and ')[
                :-1
            ],
            "got: it ended with 1: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_a_python_without_joey_nmt_fails_nothing(
    training, tiny_tokenizer, python, tmp_path, monkeypatch, lines, said
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    given = python(lines) if lines else str(tmp_path / "none")
    found, why_none = beside(training, tiny_tokenizer, given)
    assert found is None
    assert why_none.startswith(
        "expected --joeynmt to be the Python of an environment that has Joey"
    )
    assert said in why_none and why_none.endswith("see benchmarks/README.md")


def test_the_table_names_joey_nmt_where_there_is_a_figure():
    def found(**more: Any) -> dict[str, Any]:
        return {
            "target_tokens_per_second": 1234.5,
            "times_as_fast_as_the_plain_loop": 1.01,
            "share_of_matmul_rate": 0.6,
            **more,
        }

    def figure(ratio: float) -> dict[str, Any]:
        return {
            "times_as_long_as_ours": ratio,
            "times_as_long_as_ours_with_adamw": ratio + 0.1,
            "versions": {"joeynmt": "9.8"},
        }

    plain = "1,234, 1.01 times a plain loop, 60 % of the matmul rate"
    without = {"lstm": found(joeynmt=None, why_no_joeynmt="not asked for"), "rnn": found()}
    assert table.training(without) == [
        ("target tokens a second in training, 1 thread", f"`lstm` {plain}; `rnn` {plain}")
    ]
    same = {"same_widths": figure(1.5)}
    results = {
        "lstm": found(joeynmt=None, why_no_joeynmt="has no such decoder"),
        "lstm-attention": found(joeynmt={**same, "equal_operations": figure(1.25)}),
        "transformer": found(joeynmt=same),
    }
    ((what, said),) = table.training(results)
    assert what.endswith("1 thread; beside Joey NMT 9.8")
    assert said.split("; ") == [
        f"`lstm` {plain} (Joey NMT has no such decoder)",
        f"`lstm-attention` {plain}, Joey NMT 1.25 times as long (1.35 times with AdamW in both)",
        f"`transformer` {plain}, Joey NMT 1.50 times as long (1.60 times with AdamW in both)",
    ]


def test_the_command_hands_the_python_to_training_alone(monkeypatch, capsys):
    commands = []

    def note(command: list[str], **_: Any) -> Any:
        commands.append(command[1:])
        return type("Done", (), {"returncode": 0})()

    monkeypatch.setattr("subprocess.run", note)
    code, _ = run(monkeypatch, capsys, "decoding", "training", "--joeynmt", "its/bin/python")
    assert code == 0
    assert [command[-2:] for command in commands[:2]] == [
        ["--out", str(FOLDER / "decoding.json")],
        ["--joeynmt", "its/bin/python"],
    ]
