"""Settings of a run in a file: read, checked, and written so that they can be read again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_cli import run_here

from seqviz.architectures import build, settings_of
from seqviz.constants import ABLATION_NAMES, MODEL_NAMES

RUN = """
name = "lstm"
data = ["a.tsv:2", "b.tsv"]
out = "models/lstm"
tokens = 5000
learning_rate = 2e-3
seed = 7

[architecture]
width = 64
num_layers = 1
"""


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """``ask("train", …)`` in a folder of its own with ``run.toml``: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(RUN, encoding="utf-8")
    return lambda *arguments: run_here(list(map(str, arguments)), monkeypatch, capsys)


def printed(ask: Any, *arguments: object) -> tuple[str, dict[str, Any]]:
    code, out, err = ask("train", *arguments, "--print-config")
    assert (code, err) == (0, "")
    return out, tomllib.loads(out)


def test_a_file_goes_before_defaults_and_options_before_the_file(ask):
    _, found = printed(ask, "--config", "run.toml")
    assert found["tokens"] == 5000 and found["seed"] == 7 and found["learning_rate"] == 2e-3
    assert found["batch_tokens"] == 3000 and found["matrix_learning_rate"] == 0.012
    assert found["architecture"] == {**settings_of("lstm"), "width": 64, "num_layers": 1}

    _, found = printed(
        ask, "--config", "run.toml", "--seed", 8, "--data", "c.tsv", "--architecture", "width=32"
    )
    assert (found["seed"], found["data"], found["tokens"]) == (8, ["c.tsv"], 5000)
    assert found["architecture"]["width"] == 32 and found["architecture"]["num_layers"] == 1


def test_what_is_printed_can_be_read_and_says_everything(ask):
    arguments = [
        "transformer", "--data", 'a "quoted" \\ ü.tsv:2:15', "--out", "models/t", "--minutes", 3,
        "--learning-rate", "1e-7", "--noise", "default", "--architecture", "decoder_layers=2",
    ]  # fmt: skip
    first, found = printed(ask, *arguments)
    Path("again.toml").write_text(first, encoding="utf-8")
    assert printed(ask, "--config", "again.toml")[0] == first
    assert found["data"] == ['a "quoted" \\ ü.tsv:2:15'] and found["noise"] == "default"
    assert found["architecture"]["encoder_attention_heads"] == 4

    # All options but those that say what one call shall do.
    import typer

    from seqviz.cli import app

    options = typer.main.get_command(app).commands["train"].params  # type: ignore[attr-defined]
    named = {line.removeprefix("# ").split(" ")[0] for line in first.splitlines() if line}
    assert {option.name for option in options} - named == {
        *("config", "print_config", "finish", "finish_now", "architecture"),
    }


@pytest.mark.parametrize("name", [*MODEL_NAMES, *ABLATION_NAMES])
def test_settings_of_an_architecture_are_those_of_the_built_model(name):
    config = build(name, 50).config
    assert settings_of(name) == {key: getattr(config, key) for key in settings_of(name)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokns = 5", "expected a setting of 'train' in bad.toml, got 'tokns'; did you mean tokens?"),
        ("zzz = 5", "got 'zzz'; known are name, data, out"),
        ("batch-tokens = 5", "got 'batch-tokens'; did you mean batch_tokens?"),
        ("finish = true", "expected a setting of 'train' in bad.toml, got 'finish'"),
        ('tokens = "many"', "expected tokens in bad.toml to be a whole number, got 'many'"),
        ("tokens = 1.5", "expected tokens in bad.toml to be a whole number, got 1.5"),
        ("tokens = true", "expected tokens in bad.toml to be a whole number, got True"),
        ("tokens = -1", "'--tokens'"),
        ('learning_rate = "x"', "expected learning_rate in bad.toml to be a number, got 'x'"),
        ("data = 3", "data in bad.toml to be a text in quotation marks, or a list of such, got 3"),
        ("out = []", "expected out in bad.toml to be a text in quotation marks, got []"),
        ("architecture = 3", "expected [architecture] in bad.toml to be a table"),
        ("tokens = ", "expected a file of settings (TOML, UTF-8) at bad.toml, got: Invalid value (at"),
        ("[architecture]\nheads = 3", "architecture of lstm, one of d_model, width, num_layers"),
        ("[architecture]\nwidth = 3.5", "expected width of the architecture to be a whole number of"),
        ("[architecture]\nwidth = 0", "expected width of the architecture to be a whole number of"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_line(ask, text, said):
    Path("bad.toml").write_text(text, encoding="utf-8")
    code, out, err = ask(
        "train", "lstm", "--data", "a.tsv", "--out", "m", "--config", "bad.toml", "--print-config"
    )
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1


def test_no_file_and_no_text(ask):
    code, _, err = ask("train", "lstm", "--config", "none.toml", "--print-config")
    assert code == 2 and "expected a file of settings at none.toml, found none" in err
    Path("run.toml").write_bytes(b"\xff\xfe")
    code, _, err = ask("train", "lstm", "--config", "run.toml", "--print-config")
    assert code == 2 and "expected a file of settings (TOML, UTF-8)" in err


def test_a_run_from_one_file(ask, sentence_pairs):
    """Tokenizer, widths, training; the same run goes on with options in place of the file."""
    lines = [f"d\t{a}\t{b}\n" for a, b in sentence_pairs]
    Path("pairs.tsv").write_text("".join(lines), encoding="utf-8")
    Path("run.toml").write_text(
        """
        name = "lstm"
        data = "pairs.tsv"
        out = "model"
        tokenizer = "tokenizer"
        vocabulary_size = 300
        runs = "runs"
        tokens = 1_500
        batch_tokens = 400
        warmup_tokens = 800
        cooldown = 0.5
        mixed_precision = "no"
        architecture = { width = 16, d_model = 16, num_layers = 1, vector_size = 432 }
        """,
        encoding="utf-8",
    )
    code, _, err = ask("train", "--config", "run.toml")
    assert code == 0, err
    report = json.loads(Path("model/training.json").read_text(encoding="utf-8"))
    assert report["recipe"]["cooldown"] == 0.5 and report["budget"] == 1_500
    config = json.loads(Path("model/config.json").read_text(encoding="utf-8"))
    assert (config["width"], config["vocab_size"]) == (16, 300)
    run = json.loads(Path("runs/lstm-1/settings.json").read_text(encoding="utf-8"))
    assert run["config"] == {"width": 16, "d_model": 16, "num_layers": 1}  # what differs

    code, _, err = ask("train", "--config", "run.toml", "--vocabulary-size", 301)
    assert code == 2 and "expected a tokenizer of 301 pieces in tokenizer, got one of 300" in err
    more, _ = printed(ask, "--config", "run.toml", "--tokens", 2_000)
    Path("more.toml").write_text(more, encoding="utf-8")
    code, _, err = ask("train", "--config", "more.toml")
    assert code == 0 and "going on after" in err
