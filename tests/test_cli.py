"""The command line as a person uses it: a real process, its two streams and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seqviz import cli
from seqviz.training import save_model
from seqviz.version import __version__


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any, tiny_tokenizer: Any) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "transformer"
    save_model(
        tiny_model("transformer"), tiny_tokenizer, folder, {"model": "transformer", "dev_loss": 2.0}
    )
    return folder


def run(
    *arguments: str | bytes, stdin: bytes | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, "-m", "seqviz", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONUTF8": "1"},
        check=False,
    )
    decoded = (result.stdout.decode("utf-8"), result.stderr.decode("utf-8"))
    assert "Traceback" not in decoded[1]
    return subprocess.CompletedProcess(result.args, result.returncode, *decoded)


def run_here(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str, str]:
    """As `run`, in this process: for what needs no process of its own."""
    monkeypatch.setattr(sys, "argv", ["seqviz", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def test_translate_an_argument_a_file_and_standard_input(model: Path, tmp_path: Path) -> None:
    text = "The bridge is green."
    one = run("translate", "--model", str(model), text)
    assert one.returncode == 0
    assert one.stdout.count("\n") == 1
    lines = f"\ufeff{text}\r\n\nNobody\u2028painted an apple.\n".encode()
    file = tmp_path / "lines.txt"
    file.write_bytes(lines)
    from_file = run("translate", "--model", str(model), "--file", str(file))
    piped = run("translate", "--model", str(model), stdin=lines)
    assert from_file.stdout == piped.stdout
    out = piped.stdout.split("\n")
    assert len(out) == 4  # three lines, the second of them empty
    assert out[0] + "\n" == one.stdout
    assert out[1] == ""


def test_translate_json_and_raw_bytes(model: Path) -> None:
    result = run(
        "translate", "--model", str(model), "--json", "--beams", "2", stdin=b"The \xff bridge\n"
    )
    row = json.loads(result.stdout)
    assert row["source"] == "The \ufffd bridge"
    assert row["num_beams"] == 2
    assert "surrogate" in {note["kind"] for note in row["notes"]}
    assert len(row["target_tokens"]) == len(row["token_log_probs"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "--model", "gpt", "hi"], 1, "expected one of rnn, lstm"),
        (["translate", "--beams", "0", "hi"], 2, "--beams"),
        (["translate", "--nonsense"], 2, "--nonsense"),
        (["nonsense"], 2, "nonsense"),
        (["translate", "--file", "missing.txt", "hi"], 2, "got both"),
        (["train", "lstm", "--data", "x.tsv", "--out", "y"], 2, "expected a budget"),
        (
            ["train", "lstm", "--data", "x.tsv", "--out", "y", "--tokens", "10"],
            1,
            "expected a tokenizer",
        ),
        (["tokenizer", "--data", "x.tsv", "--out", "y"], 1, "expected a corpus file at x.tsv"),
    ],
)
def test_an_error_is_one_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    got, out, err = run_here(arguments, monkeypatch, capsys)
    assert got == code
    assert message in err
    assert err.startswith("seqviz: error: ")
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_here(["--version"], monkeypatch, capsys)
    assert (code, out) == (0, f"{__version__}\n")


def test_a_missing_package_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.tsv").write_text("d\tA bridge.\tUn pont.\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    monkeypatch.setitem(sys.modules, "gradio", None)
    monkeypatch.setitem(sys.modules, "seqviz.ui", None)
    arguments = ["--data", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "tokenizer")]
    for command in (["tokenizer", *arguments], ["app"]):
        code, out, err = run_here(command, monkeypatch, capsys)
        assert (code, out) == (1, "")
        assert "pip install" in err
        assert err.startswith("seqviz: error: ")
        assert err.count("\n") == 1


def test_help_has_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("train", "tokenizer", "translate", "app"):
        code, out, _ = run_here([command, "--help"], monkeypatch, capsys)
        assert code == 0
        assert "Example" in out
    assert "Commands" in run_here(["--help"], monkeypatch, capsys)[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line(model: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "seqviz",
                "translate",
                "--model",
                str(model),
                "--json",
                "The bridge.",
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr.decode() == "seqviz: error: [Errno 28] No space left on device\n"


def test_a_tokenizer_and_a_model_from_the_command_line(tmp_path: Path, sentence_pairs: Any) -> None:
    """The whole way: corpus, tokenizer, training, translation."""
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text("".join(f"d\t{a}\t{b}\n" for a, b in sentence_pairs), encoding="utf-8")
    made = run(
        "tokenizer",
        "--data",
        str(corpus),
        "--out",
        str(tmp_path / "tokenizer"),
        "--vocabulary-size",
        "300",
    )
    assert made.returncode == 0, made.stderr
    trained = run(
        "train", "lstm",
        "--data", str(corpus),
        "--dev", str(corpus),
        "--tokenizer", str(tmp_path / "tokenizer"),
        "--runs", str(tmp_path / "runs"),
        "--out", str(tmp_path / "lstm"),
        "--tokens", "4000",
        "--batch-tokens", "400",
        "--warmup-tokens", "800",
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    report = json.loads((tmp_path / "lstm" / "training.json").read_text(encoding="utf-8"))
    assert 4000 <= report["target_tokens"] < 4400
    assert report["dev_bleu"]["sentences"] == len(sentence_pairs)
    assert "tok:13a" in report["dev_bleu"]["signature"]
    card = (tmp_path / "lstm" / "README.md").read_text(encoding="utf-8")
    assert "pairs.tsv" in card
    translated = run("translate", "--model", str(tmp_path / "lstm"), "The bridge.")
    assert translated.returncode == 0, translated.stderr
