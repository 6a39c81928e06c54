"""Training as processes of their own: killed, signalled, without room to save, several at once.

The models are tiny (see `tiny_seqviz`), all else is the real command line.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_seqviz import ENVIRONMENT, Life, Server

from seqviz import corpus
from seqviz.training import Recipe

NAME = "lstm-attention"
TOKENS = 4_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("said"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory, sentence_pairs, tiny_tokenizer_folder) -> Path:
    """Folder with a tokenizer, 61 pairs to train on and 8 to measure with."""
    folder = tmp_path_factory.mktemp("data")
    shutil.copytree(tiny_tokenizer_folder, folder / "tokenizer")
    for name, pairs in (("train", sentence_pairs[:61]), ("dev", sentence_pairs[100:108])):
        lines = [f"{name}{i // 20}\t{en}\t{fr}\n" for i, (en, fr) in enumerate(pairs)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def command(data: Path, place: Path, *more: object) -> list[object]:
    """Arguments of a training below `place` that saves after every step."""
    return [
        "train", NAME, "--data", data / "train.tsv", "--dev", data / "dev.tsv",
        "--tokenizer", data / "tokenizer", "--runs", place / "runs", "--out", place / "models" / NAME,
        "--tokens", TOKENS, "--batch-tokens", 150, "--warmup-tokens", 500, "--save-minutes", 0,
        "--mixed-precision", "no", *more,
    ]  # fmt: skip


class Outcome:
    """What a finished training below a folder left."""

    def __init__(self, place: Path) -> None:
        model = place / "models" / NAME
        self.report = json.loads((model / "training.json").read_text(encoding="utf-8"))
        self.stored = (model / "model.safetensors").read_bytes()
        self.weights = load_file(states(place)[-1] / "model.safetensors")
        self.loss = self.report["losses"]["dev"][-1]

    def is_the_same_as(self, other: Outcome) -> None:
        """Bit for bit: on one machine, with one thread, nothing is left to chance."""
        assert self.loss == other.loss
        assert self.report["dev_bleu"] == other.report["dev_bleu"]
        for key in ("steps", "target_tokens", "next", "length_histogram", "weights_sha256"):
            assert self.report[key] == other.report[key], key
        assert self.stored == other.stored
        for key, value in other.weights.items():
            assert torch.equal(self.weights[key], value), key

    def is_close_to(self, other: Outcome) -> None:
        """Several processes add up in another order: all but the last digits are the same."""
        for key in ("steps", "target_tokens", "next", "length_histogram"):
            assert self.report[key] == other.report[key], key
        assert self.loss == pytest.approx(other.loss, abs=1e-5)
        for key, value in other.weights.items():
            torch.testing.assert_close(self.weights[key], value, rtol=0, atol=1e-5)


def states(place: Path) -> list[Path]:
    """Saved states of the run, oldest first."""
    run = place / "runs" / f"{NAME}-1"
    found = [*run.glob("checkpoint-*"), *run.glob("cooldown-*/checkpoint-*")]
    return sorted(found, key=lambda path: path.name)


def newest_step(place: Path) -> int:
    return max((int(path.name[-8:]) for path in states(place)), default=0)


def left_overs(place: Path) -> list[Path]:
    """Hidden files, which are what saving writes aside; encoding may have been killed too."""
    return [path for path in place.rglob(".*") if not path.name.startswith(".encoding-")]


def wait_for_step(place: Path, step: int) -> None:
    end = time.monotonic() + 300
    while newest_step(place) < step:
        assert time.monotonic() < end, f"no step {step} within five minutes"
        time.sleep(0.002)


@pytest.fixture(scope="module")
def whole(server, data, tmp_path_factory):
    """An undisturbed training: what it left, and the seconds that a step took."""
    place = tmp_path_factory.mktemp("whole")
    life = server.start(*command(data, place))
    wait_for_step(place, 1)
    began = time.monotonic()
    assert life.wait() == 0, life.said
    outcome = Outcome(place)
    return outcome, (time.monotonic() - began) / outcome.report["steps"]


def finish(server: Server, data: Path, place: Path, whole: Outcome) -> None:
    """Give the same command again, undisturbed; the result is that of a run without a stop."""
    life = server.start(*command(data, place))
    assert life.wait() == 0, life.said
    Outcome(place).is_the_same_as(whole)
    assert left_overs(place) == []


# ---------------------------------------------------------------------------------------------
# kill -9


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_random_moments(server, data, whole, tmp_path, kills):
    """From the first import to the card of the finished model, most often while saving."""
    outcome, seconds = whole
    draw = random.Random(kills)
    last = outcome.report["steps"]
    reached, ends = [], []
    for number in range(kills):
        life = server.start(*command(data, tmp_path))
        # Spread over the run; the last ones fall after it, where the model is written.
        target = min(last, int((last + 0.15 * last) * (number + draw.random()) / kills))
        wait_for_step(tmp_path, target)
        time.sleep(draw.uniform(0, 0.3 if target == last else 2 * seconds))
        life.kill(signal.SIGKILL)
        ends.append(life.wait())
        reached.append(newest_step(tmp_path))
        assert "cannot be read" not in life.said
    assert set(ends) <= {-signal.SIGKILL, 0} and ends.count(-signal.SIGKILL) > kills / 2
    assert reached == sorted(reached) and 0 < reached[kills // 2] < last
    finish(server, data, tmp_path, outcome)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_between_any_two_changes_of_files(server, data, whole, tmp_path, every):
    """Before the first, the second, … change, until one call gets through to the end.

    A finished run saves its last state and its model anew, over those that stand there.
    """
    finish(server, data, tmp_path, whole[0])
    state, model = states(tmp_path)[-1], tmp_path / "models" / NAME
    number, end = 1, -signal.SIGKILL
    while end == -signal.SIGKILL:
        life = server.start(*command(data, tmp_path), KILL=number)
        end = life.wait()
        assert "cannot be read" not in life.said
        for folder in (state, model):  # the new one or the old
            kept = folder if folder.exists() else folder.with_name(f".{folder.name}-old")
            assert (kept / "model.safetensors").is_file(), (folder.name, number)
        number += every
    assert end == 0 and number > 40
    finish(server, data, tmp_path, whole[0])


# ---------------------------------------------------------------------------------------------
# No room


def one_line_error(life: Life) -> str:
    assert "Traceback" not in life.said, life.said
    (line,) = [line for line in life.said.splitlines() if "error" in line.lower()]
    assert life.said.splitlines()[-1] == line and line.startswith("seqviz: error: ")
    return line


@pytest.fixture()
def begun(server, data, tmp_path):
    """A run killed after some steps: its newest state."""
    life = server.start(*command(data, tmp_path))
    wait_for_step(tmp_path, 5)
    life.kill(signal.SIGKILL)
    life.wait()
    return states(tmp_path)[-1]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_full_disk(server, data, whole, tmp_path, begun):
    """Each file of a state in turn is the one that does not fit."""
    before = content(begun)
    for name in ("model.safetensors", "optimizer.bin", "optimizer_1.bin", "random_states_0.pkl"):
        life = server.start(*command(data, tmp_path), LIMIT=len(before[name]) - 1)
        assert life.wait() == 1
        assert re.search(
            r"expected to write a saved state in \S+, about \d+\.\d MB, got \w+: .* MB are free there\. "
            "What was saved before is whole: make room .* and give the same command again",
            one_line_error(life),
        ), name
        assert states(tmp_path)[-1] == begun and content(begun) == before
        assert left_overs(tmp_path) == []
    finish(server, data, tmp_path, whole[0])


@pytest.fixture()
def small_disk(tmp_path):
    """A file system of 3 MB, where that is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3M", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full(server, data, whole, small_disk):
    life = server.start(*command(data, small_disk))
    wait_for_step(small_disk, 5)
    life.kill(signal.SIGKILL)
    life.wait()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as stream, pytest.raises(OSError, match="No space left"):
        while True:
            stream.write(bytes(4096))
    step = newest_step(small_disk)
    life = server.start(*command(data, small_disk))
    assert life.wait() == 1
    assert "MB are free there" in one_line_error(life)
    assert newest_step(small_disk) == step
    filler.unlink()
    finish(server, data, small_disk, whole[0])


# ---------------------------------------------------------------------------------------------
# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_saves(server, data, whole, tmp_path, number):
    life = server.start(*command(data, tmp_path))
    wait_for_step(tmp_path, 5)
    life.kill(number)
    assert life.wait() == 130
    assert "saving, then ending; a second signal ends at once" in life.said
    assert re.search(r"saved after [\d,]+ target tokens; the same command goes on\n$", life.said)
    assert 5 <= newest_step(tmp_path) < whole[0].report["steps"]
    finish(server, data, tmp_path, whole[0])


@pytest.mark.parametrize("then", ["fsync", "replace"])
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_at_once(server, data, whole, tmp_path, first, then):
    """It comes while the state is written, or just before its rename, and damages nothing."""
    life = server.start(
        *command(data, tmp_path), SIGNALS=f"5 {then} {int(first)} {int(signal.SIGTERM)}"
    )
    assert life.wait() == 130
    assert "Traceback" not in life.said
    assert life.said.endswith(
        "seqviz: stopped at once by a second signal; the same command goes on from the last whole "
        "state\n"
    )
    assert "saved after" not in life.said
    assert newest_step(tmp_path) == 4
    finish(server, data, tmp_path, whole[0])


# ---------------------------------------------------------------------------------------------
# A corpus that has been through a lot


def test_knocks_of_the_corpus(server, data, whole, tmp_path):
    """What cannot be used changes nothing: tokenizer and model are those of the clean corpus."""
    bad = {
        b"d\tx\t" + b"y " * 2_500_000: "line over 20000 characters",
        b"d\tonly two": "not 3 columns",
        b"d\tone\ttwo\tthree": "not 3 columns",
        b"d\tcaf\xe9\tcaf\xe9": "not UTF-8",
        b"d\ta\0b\tc": "NUL character",
    }
    rows = (data / "train.tsv").read_bytes().splitlines()
    rows[40] = rows[40].replace(b" ", "\u2028".encode(), 1).replace(b" ", b"\f", 1)
    for number, row in enumerate(bad):
        rows.insert(5 * number + 3, row)
    knocked = tmp_path / "data"
    shutil.copytree(data, knocked)
    (knocked / "train.tsv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(rows) + b"\r\n")

    made = {}
    for name, folder in (("clean", data), ("knocked", knocked)):
        life = server.start(
            "tokenizer", "--data", folder / "train.tsv", "--out", tmp_path / name,
            "--vocabulary-size", 200,
        )  # fmt: skip
        assert life.wait() == 0, life.said
        made[name] = (tmp_path / name / "tokenizer.json").read_bytes()
    assert (
        f"note: {knocked}/train.tsv: 4 lines without a pair are passed over; the first, line 9: "
        in life.said
    )
    assert made["clean"] == made["knocked"]

    life = server.start(*command(knocked, tmp_path))
    assert life.wait() == 0, life.said
    assert (
        "train.tsv: 61 of 66 lines kept; dropped: 1 NUL character (first: line 24), 1 line over 20000 "
        "characters (first: line 4), 2 not 3 columns (first: line 9), 1 not UTF-8 (first: line 19); odd "
        "but harmless: 1 byte-order mark (first: line 1), 62 line end with carriage return (first: line "
        "1), 1 line separator inside a line (first: line 46)\n"
    ) in life.said  # fmt: skip
    outcome = Outcome(tmp_path)
    (about,) = outcome.report["data"]
    assert about["dropped"]["not 3 columns"] == 2 and about["first_lines"]["NUL character"] == 24
    outcome.is_the_same_as(whole[0])


# ---------------------------------------------------------------------------------------------
# Several processes


SHARED = ("--matrix-learning-rate", 0, "--accumulate", 2)
"""Muon rounds to bf16 within, which turns a last digit into a visible one."""


def start_two(server: Server, arguments: list[object], **environment: object) -> list[Life]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        server.start(
            *arguments, WORLD_SIZE=2, LOCAL_WORLD_SIZE=2, RANK=rank, LOCAL_RANK=rank,
            MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
            **{key: value for key, value in environment.items() if not key.startswith("_")},
            **environment.get(f"_{rank}", {}),
        )
        for rank in range(2)
    ]  # fmt: skip


class Steps:
    """What processes wrote down: by rank, the steps in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.of = {
            int(path.stem): [json.loads(line) for line in path.read_text().splitlines()]
            for path in sorted(folder.glob("*.jsonl"))
        }

    def gradient(self, rank: int, step: int) -> torch.Tensor:
        return torch.load(self.folder / f"{rank}-{step}.pt")


def record(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def alone(server, data, tmp_path_factory):
    """One process's training on the same batches: what it left and its steps."""
    place = tmp_path_factory.mktemp("alone")
    folder = record(place / "record")
    life = server.start(*command(data, place, "--matrix-learning-rate", 0), RECORD=folder)
    assert life.wait() == 0, life.said
    return Outcome(place), Steps(folder)


def planned(data: Path, tokenizer, cache: Path) -> tuple[list[list[list[int]]], list[int]]:
    """By the plan: (source, target) ids of all examples of the first epochs, and their batches."""
    encoded = corpus.encode_corpus(data / "train.tsv", tokenizer, cache)
    recipe = Recipe()
    examples, batches = [], []
    for number in range(2):
        epoch = corpus.plan_epoch(
            [corpus.Source(encoded)], seed=recipe.seed, epoch=number,
            join_probability=recipe.join_probability,
        )  # fmt: skip
        plan = corpus.plan_batches(epoch, batch_tokens=150, seed=recipe.seed, number=number)
        batches.append(len(plan))
        rows = [encoded.ids(int(f), int(c)) for f, c in zip(epoch.first, epoch.count, strict=True)]
        examples.append([[[*s.tolist(), 0], [*t.tolist(), 0]] for s, t in rows])
    return examples, batches


def check_two(steps: Steps, alone: Steps) -> None:
    """Two processes took the steps of one: sentences, rates, losses, gradients."""
    assert set(steps.of) == {0, 1}
    assert len(steps.of[0]) == len(steps.of[1]) == len(alone.of[0])
    uneven = 0
    for one, zero, other in zip(alone.of[0], steps.of[0], steps.of[1], strict=True):
        assert one["step"] == zero["step"] == other["step"]
        assert one["tokens"] == zero["tokens"] == other["tokens"]
        assert one["rates"] == zero["rates"] == other["rates"]
        assert zero["loss"] == other["loss"] == pytest.approx(one["loss"], abs=1e-5)
        assert sorted(zero["rows"] + other["rows"]) == sorted(one["rows"])
        uneven += len(zero["rows"]) != len(other["rows"])
        expected = alone.gradient(0, one["step"])
        for rank in (0, 1):
            torch.testing.assert_close(
                steps.gradient(rank, one["step"]), expected, rtol=0, atol=1e-5
            )
    assert uneven > 3  # batches of an odd number of sentences
    # Of files the other process writes only its random state, which Python's `open` is not for.
    assert [name for step in steps.of[1] for name in step["wrote"]] == []
    assert any(step["wrote"] for step in steps.of[0])


def test_two_processes_are_one(server, data, alone, tmp_path, tiny_tokenizer):
    outcome, steps_alone = alone
    folder = record(tmp_path / "record")
    lives = start_two(server, command(data, tmp_path, *SHARED), RECORD=folder)
    assert [life.wait() for life in lives] == [0, 0], [life.said for life in lives]
    steps = Steps(folder)
    check_two(steps, steps_alone)
    Outcome(tmp_path).is_close_to(outcome)
    assert Outcome(tmp_path).report["processes"] == 2
    assert lives[1].said == ""  # what is to be said is said once

    # Every example once an epoch, over an odd number of batches.
    examples, batches = planned(data, tiny_tokenizer, tmp_path / "cache")
    assert all(number % 2 for number in batches), batches
    assert len(steps.of[0]) > sum(batches)
    for epoch in range(2):
        seen = [
            row
            for rank in (0, 1)
            for s in steps.of[rank]
            if s["epoch"] == epoch
            for row in s["rows"]
        ]
        assert sorted(seen) == sorted(examples[epoch])


@pytest.mark.parametrize("signalled", [0, 1])
def test_two_processes_stopped_and_resumed(server, data, alone, tmp_path, signalled):
    """A signal to one of them stops both; two go on, or one, to what one alone comes to.

    The signal comes twice in close succession, as from a terminal and from a launcher.
    """
    lives = start_two(
        server,
        command(data, tmp_path / "two", *SHARED, "--save-minutes", 60),
        RECORD=record(tmp_path / "record"), **{f"_{signalled}": {"SIGNALS": "7 fsync 15 15"}},
    )  # fmt: skip
    assert [life.wait() for life in lives] == [130, 130], [life.said for life in lives]
    assert "saved after" in lives[0].said
    assert newest_step(tmp_path / "two") == 7
    assert {path.name for path in states(tmp_path / "two")[-1].glob("random_states_*")} == {
        "random_states_0.pkl", "random_states_1.pkl",
    }  # fmt: skip
    shutil.copytree(tmp_path / "two", tmp_path / "one")

    arguments = command(data, tmp_path / "two", *SHARED)
    lives = start_two(server, arguments, RECORD=tmp_path / "record")
    assert [life.wait() for life in lives] == [0, 0], [life.said for life in lives]
    check_two(Steps(tmp_path / "record"), alone[1])
    Outcome(tmp_path / "two").is_close_to(alone[0])

    life = server.start(*command(data, tmp_path / "one", "--matrix-learning-rate", 0))
    assert life.wait() == 0, life.said
    assert "going on after" in life.said
    Outcome(tmp_path / "one").is_close_to(alone[0])


def test_full_disk_of_one_of_two_processes(server, data, alone, tmp_path):
    """Both end, and what was saved before is whole."""
    lives = start_two(server, command(data, tmp_path, *SHARED))
    wait_for_step(tmp_path, 4)
    for life in lives:
        life.kill(signal.SIGKILL)
        life.wait()
    step = newest_step(tmp_path)
    for rank in (0, 1):
        lives = start_two(
            server, command(data, tmp_path, *SHARED), **{f"_{rank}": {"LIMIT": 4_000}}
        )
        assert [life.wait() for life in lives] == [1, 1]
        assert "expected to write" in one_line_error(lives[rank])
        assert newest_step(tmp_path) == step and left_overs(tmp_path) == []
    lives = start_two(server, command(data, tmp_path, *SHARED))
    assert [life.wait() for life in lives] == [0, 0], [life.said for life in lives]
    Outcome(tmp_path).is_close_to(alone[0])


def test_two_processes_keep_the_best_state_together(server, data, tmp_path):
    """Both count the main one's losses, save their parts of the state, and write the same one."""
    arguments = command(
        data, tmp_path, *SHARED, "--evaluate-every", 300, "--patience", 2, "--learning-rate", 0.3
    )
    lives = start_two(server, arguments)
    assert [life.wait() for life in lives] == [0, 0], [life.said for life in lives]
    assert "the lowest validation loss" in lives[0].said and lives[1].said == ""
    outcome = Outcome(tmp_path)
    losses = outcome.report["losses"]["dev"]
    assert outcome.report["dev_loss"] == min(loss for _, loss in losses) < losses[-1][1]
    assert outcome.report["target_tokens"] < losses[-1][0]
    (best,) = (tmp_path / "runs").glob("*/best/checkpoint-*")
    assert {path.name for path in best.glob("random_states_*")} == {
        "random_states_0.pkl", "random_states_1.pkl",
    }  # fmt: skip


def test_processes_that_do_not_see_each_other(server, data, tmp_path):
    life = server.start(
        *command(data, tmp_path), WORLD_SIZE=2, RANK=0, LOCAL_RANK=-1, ACCELERATE_USE_CPU=0
    )
    assert life.wait() == 1
    assert "expected 2 processes, as the launcher says, got 1 that" in one_line_error(life)


@pytest.mark.slow
def test_launched_by_accelerate(data, alone, tmp_path):
    """Ctrl-C reaches the processes and their launcher, which passes it on: that counts once.

    The same command then goes on and ends by itself.
    """
    folder = record(tmp_path / "record")
    launch = [
        sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2",
        "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
        "--main_process_port", "0", "-m", "tiny_seqviz",
        *map(str, command(data, tmp_path, *SHARED)),
    ]  # fmt: skip
    environment = {**ENVIRONMENT, "RECORD": str(folder)}
    first = subprocess.Popen(
        launch, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for_step(tmp_path, 5)
    os.killpg(first.pid, signal.SIGINT)
    _, said = first.communicate(timeout=120)
    assert first.returncode != 0
    assert "saved after" in said
    second = subprocess.run(launch, env=environment, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0, second.stderr
    check_two(Steps(folder), alone[1])
    Outcome(tmp_path).is_close_to(alone[0])
