"""The command line as a person uses it: its two streams and its exit status.

One process of its own shows that these are a process's; all else is asked of `cli.main` here, since importing
PyTorch takes longer than any of it.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


class Done(NamedTuple):
    """What a command leaves."""

    code: object
    out: str
    err: str


def run_here(
    arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Done:
    """``seqviz ARGUMENTS`` in this process."""
    monkeypatch.setattr(sys, "argv", ["seqviz", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err, captured.err
    return Done(stop.value.code, captured.out, captured.err)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """``run(*arguments, stdin=b"")`` is ``seqviz ARGUMENTS`` in this process."""

    def call(*arguments: str, stdin: bytes | None = b"") -> Done:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        return run_here(arguments, monkeypatch, capsys)

    return call


def test_training_never_replaces_another_model(model: Path, run) -> None:
    before = {file.name: file.read_bytes() for file in model.iterdir()}
    command = ["train", "lstm", "--data", "no.tsv", "--tokens", "1000", "--out", str(model)]
    code, _, said = run(*command)
    assert code == 2 and "found transformer; give another --out" in said
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before
    # The model itself may be trained on: then it is the corpus that is missing.
    command[1] = "transformer"
    code, _, said = run(*command)
    assert code != 0 and "no.tsv" in said and "another --out" not in said


def test_translate_an_argument_a_file_and_standard_input(model: Path, tmp_path: Path, run) -> None:
    text = "The bridge is green."
    one = run("translate", "--model", str(model), text)
    assert one.code == 0
    assert one.out.count("\n") == 1
    lines = f"\ufeff{text}\r\n\nNobody\u2028painted an apple.\n".encode()
    file = tmp_path / "lines.txt"
    file.write_bytes(lines)
    from_file = run("translate", "--model", str(model), "--file", str(file))
    piped = run("translate", "--model", str(model), stdin=lines)
    assert from_file.out == piped.out
    out = piped.out.split("\n")
    assert len(out) == 4  # three lines, the second of them empty
    assert out[0] + "\n" == one.out
    assert out[1] == ""


def test_translate_json_and_raw_bytes(model: Path, run) -> None:
    result = run(
        "translate", "--model", str(model), "--json", "--beams", "2", stdin=b"The \xff bridge\n"
    )
    row = json.loads(result.out)
    assert row["source"] == "The \ufffd bridge"
    assert row["num_beams"] == 2
    assert "surrogate" in {note["kind"] for note in row["notes"]}
    assert len(row["target_tokens"]) == len(row["token_log_probs"])


def test_translate_the_n_best_by_chance_and_with_words(model: Path, run) -> None:
    def said(*options: str) -> list[str]:
        arguments = ["translate", "--model", str(model), *options, "The bridge is green."]
        code, out, _ = run(*arguments)
        assert code == 0
        return out.splitlines()

    rows = [line.split("\t") for line in said("--beams", "3", "--num-return-sequences", "3")]
    assert [row[0] for row in rows] == ["1", "2", "3"] and len({row[2] for row in rows}) == 3
    assert float(rows[0][1]) >= float(rows[1][1]) >= float(rows[2][1])
    ranked = map(json.loads, said("--json", "--beams", "3", "--num-return-sequences", "2"))
    assert [(row["rank"], row["text"]) for row in ranked] == [(1, rows[0][2]), (2, rows[1][2])]
    drawn = said("--do-sample", "--temperature", "1.5", "--seed", "4")
    assert (
        drawn == said("--do-sample", "--temperature", "1.5", "--seed", "4") != said("--do-sample")
    )
    (words,) = said("--force-word", "bateau", "--force-word", "ponts|pont", "--bad-word", "vert")
    assert {"bateau"} < set(re.findall(r"\w+", words)) and re.search(r"\bponts?\b", words)
    assert len(json.loads(said("--json", "--max-new-tokens", "2")[0])["target_tokens"]) <= 2
    assert said("--beams", "4", "--length-penalty", "6") != said(
        "--beams", "4", "--length-penalty", "-9"
    )


def test_words_that_do_not_fit_are_wrong_use(model: Path, run) -> None:
    arguments = ["translate", "--model", str(model), "--max-new-tokens", "2", "Nobody!"]
    arguments += ["--force-word", "une grande carte"]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "expected room for force_words" in err


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_of_utf16_is_one_clear_error(
    encoding: str,
    model: Path,
    tmp_path: Path,
    run,
) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes("\ufeffThe bridge.\nNobody!\n".encode(encoding))
    arguments = ["translate", "--model", str(model), "--file", str(file)]
    code, out, err = run(*arguments)
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert f"expected UTF-8 text in {file}, got UTF-16" in err


def test_a_closed_standard_input_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of <&-
    code, out, err = run("translate", stdin=None)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "expected TEXT, --file or standard input, got none" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "--num-return-sequences", "2", "hi"], 2, "got 2 of 1"),
        (["translate", "--do-sample", "--temperature", "0", "hi"], 2, "temperature above 0"),
        (["translate", "--do-sample", "--temperature", "nan", "hi"], 2, "temperature above 0"),
        (["translate", "--do-sample", "--beams", "2", "hi"], 2, "num_beams 1 with do_sample"),
        (["translate", "--max-new-tokens", "0", "hi"], 2, "max_new_tokens from 1"),
        (["translate", "--model", "gpt", "hi"], 1, "expected one of rnn, lstm"),
        (["translate", "--beams", "0", "hi"], 2, "--beams"),
        (["translate", "--nonsense"], 2, "--nonsense"),
        (["nonsense"], 2, "nonsense"),
        (["translate", "--file", "missing.txt", "hi"], 2, "got both"),
        (["train", "lstm", "--data", "x.tsv", "--out", "y"], 2, "expected a budget"),
        (
            ["train", "lstm", "--data", "x.tsv", "--out", "y", "--finish", "--finish-now"],
            2,
            "got both",
        ),
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
    run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    got, out, err = run(*arguments)
    assert got == code
    assert message in err
    assert err.startswith("seqviz: error: ")
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_version(run) -> None:
    code, out, _ = run("--version")
    assert (code, out) == (0, f"{__version__}\n")


def test_a_missing_package_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run
) -> None:
    (tmp_path / "pairs.tsv").write_text("d\tA bridge.\tUn pont.\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    monkeypatch.setitem(sys.modules, "gradio", None)
    monkeypatch.setitem(sys.modules, "seqviz.ui", None)
    arguments = ["--data", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "tokenizer")]
    for command in (["tokenizer", *arguments], ["app"]):
        code, out, err = run(*command)
        assert (code, out) == (1, "")
        assert "pip install" in err
        assert err.startswith("seqviz: error: ")
        assert err.count("\n") == 1


def test_help_has_examples(run) -> None:
    for command in ("train", "tokenizer", "translate", "app"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Example" in out
    assert "Commands" in run("--help").out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line(model: Path) -> None:
    """Of a real process, which also flushes its output once more as it ends."""
    command = [sys.executable, "-m", "seqviz", "translate", "--model", str(model), "--json"]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            command,
            input=b"The bridge.\n",
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr.decode() == "seqviz: error: [Errno 28] No space left on device\n"


def test_a_tokenizer_and_a_model_from_the_command_line(
    tmp_path: Path, sentence_pairs: Any, run
) -> None:
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
    assert made.code == 0, made.err
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
    assert trained.code == 0, trained.err
    report = json.loads((tmp_path / "lstm" / "training.json").read_text(encoding="utf-8"))
    assert 4000 <= report["target_tokens"] < 4400
    assert report["dev_bleu"]["sentences"] == len(sentence_pairs)
    assert "tok:13a" in report["dev_bleu"]["signature"]
    card = (tmp_path / "lstm" / "README.md").read_text(encoding="utf-8")
    assert "pairs.tsv" in card
    translated = run("translate", "--model", str(tmp_path / "lstm"), "The bridge.")
    assert translated.code == 0, translated.err


# -- evaluate and report


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any, tiny_tokenizer: Any) -> Path:
    """A folder of two trained-looking models."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("lstm", "lstm-attention"):
        report = {
            "model": name,
            "dev_loss": 2.0,
            "target_tokens": 10,
            "num_parameters": 5,
            "steps": 1,
            "seconds": 60,
            "hardware": "CPU",
            "recipe": {
                "batch_tokens": 1,
                "learning_rate": 1,
                "matrix_learning_rate": 1,
                "warmup_tokens": 1,
                "cooldown": 0.2,
                "seed": 1,
            },
            "versions": {},
            "data": [],
            "dev_data": {"name": "dev.tsv", "sha256": "0" * 64},
        }
        save_model(tiny_model(name), tiny_tokenizer, folder / name, report)
    return folder


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory, sentence_pairs: Any) -> Path:
    file = tmp_path_factory.mktemp("data") / "test.tsv"
    rows = [*sentence_pairs[:29], [" ".join(side) for side in zip(*sentence_pairs[40:46])]]
    file.write_text("".join(f"d\t{s}\t{t}\n" for s, t in rows), encoding="utf-8")
    return file


def test_evaluate_and_report(
    models: Path, test_set: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction = models / "report" / "prediction.json"
    prediction.parent.mkdir()
    hypothesis = {
        "id": "H1",
        "curve": "same-content",
        "measure": "bleu_ratio",
        "first": "lstm",
        "second": "lstm-attention",
        "expected": "below",
        "says": "It falls.",
    }
    prediction.write_text(
        json.dumps({"written": "2026-11-30", "hypotheses": [hypothesis]}), encoding="utf-8"
    )
    chosen = [
        word for name in ("lstm", "lstm-attention") for word in ("--model", str(models / name))
    ]
    out = tmp_path / "new" / "length.json"
    arguments = ["evaluate", "--data", str(test_set), "--out", str(out), "--resamples", "20"]
    arguments += [
        "--work",
        str(tmp_path / "work"),
        "--workers",
        "1",
        "--prediction",
        str(prediction),
    ]
    result = run(*arguments, *chosen)
    assert result.code == 0, result.err
    assert result.out == ""
    assert "30 sentences" in result.err
    assert "100% done" in result.err
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["command"] == (
        "seqviz evaluate --data test.tsv --model lstm --model lstm-attention --resamples 20 "
        "--prediction prediction.json"
    )
    assert content["legend"]["bleu_ratio"]
    assert list(content["models"]) == ["lstm", "lstm-attention"]
    assert content["prediction"]["hypotheses"][0]["verdict"] in (
        "holds",
        "contradicted",
        "undecided",
    )
    assert len(content["prediction"]["sha256"]) == 64
    assert sentence_free(content, test_set)
    again = run(*arguments, *chosen)
    assert "% done" not in again.err
    assert "texts remembered in" in again.err
    same = json.loads(out.read_text(encoding="utf-8"))
    assert {**same, "created": ""} == {**content, "created": ""}

    # The report is made of it: figures, README, docs, cards; and says when it is out of date.
    readme = tmp_path / "README.md"
    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    for file, block in ((readme, "results"), (page, "length")):
        file.write_text(f"<!-- {block}:begin -->\n<!-- {block}:end -->\n", encoding="utf-8")
    length = models / "report" / "length.json"
    length.write_text(out.read_text(encoding="utf-8"), encoding="utf-8")
    command = ["report", "--models", str(models), "--readme", str(readme)]
    result = run(*command)
    assert result.code == 0, result.err
    assert "out of date" not in result.err
    assert "| `lstm` | " in readme.read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert "| H1 | It falls. | bleu ratio of `lstm` minus `lstm-attention`" in text
    assert "not of the weights" not in text
    for name in ("length.svg", "length.zh.svg", "where-it-breaks.svg", "where-it-breaks.zh.svg"):
        assert (models / "report" / name).read_text(encoding="utf-8").rstrip().endswith("</svg>")
    everyday = json.loads((models / "report" / "everyday.json").read_text(encoding="utf-8"))
    assert everyday["first"] in everyday["outputs"]
    content["models"]["lstm"]["weights_sha256"] = "1" * 64
    length.write_text(json.dumps(content), encoding="utf-8")
    result = run(*command)
    assert "length.json is out of date (it was measured on other weights of lstm)" in result.err
    text = page.read_text(encoding="utf-8")
    assert "not of the weights" in readme.read_text(encoding="utf-8")
    assert "This measurement is not of the weights shipped now" in text
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    result = run(*command, "--data", str(test_set))
    assert result.code == 0, result.err
    assert "not of the weights" not in readme.read_text("utf-8") + page.read_text("utf-8")


def sentence_free(content: Any, corpus: Path) -> bool:
    """No sentence of a corpus stands in a report."""
    text = json.dumps(content, ensure_ascii=False)
    rows = [line.split("\t") for line in corpus.read_text(encoding="utf-8").splitlines()]
    return not any(side in text for row in rows for side in row[1:])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--data", "none.tsv", "--out", "x.json"], 1, "expected a corpus file at none.tsv"),
        (["--data", "DATA", "--out", "x", "--model", "gru"], 2, "got 'gru'"),
        (["--data", "DATA", "--out", "x", "--model", "M", "--model", "M"], 2, "'lstm' twice"),
        (["--data", "DATA", "--out", "x", "--prediction", "none"], 2, "prediction at none"),
        (["--data", "DATA", "--out", "x", "--sample", "0"], 2, "greater than or equal to 1"),
        (["--data", "DATA"], 2, "--out"),
        (["--data", "DATA", "--out", "FOLDER"], 2, "expected a file for --out, got the folder"),
    ],
)
def test_evaluate_says_what_is_wrong(
    arguments: list[str],
    code: int,
    message: str,
    models: Path,
    test_set: Path,
    run,
) -> None:
    known = {"DATA": str(test_set), "M": str(models / "lstm"), "FOLDER": str(models)}
    given = [known.get(a, a) for a in arguments]
    found, _, err = run("evaluate", *given)
    assert found == code
    assert message in err
