"""A run folder has one owner; what the environment could change in secret is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from accelerate import Accelerator
from filelock import FileLock
from test_training import BUDGET, Trace, folder, newest, no_cuda, run, sources  # noqa: F401

from seqviz.training import TrainingError
from seqviz.training.lock import RunLock

HOLD = """
import sys, time
from pathlib import Path
from accelerate import Accelerator
from seqviz.training.lock import RunLock
lock = RunLock(Path(sys.argv[1]), Accelerator(cpu=True))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the run folder."""
    started = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert started.stdout and started.stdout.readline() == "held\n"
    yield started
    started.kill()
    started.wait()


def content(folder: Path) -> dict[str, bytes]:  # noqa: F811
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_second_process_is_refused_and_a_killed_one_does_not_block(run, tmp_path, holder):  # noqa: F811
    """The line names the first and nothing of its folder changes; a stale lock is no lock."""
    before = content(tmp_path / "run")
    (since,) = [json.loads(before["lock.json"])["since"]]
    with pytest.raises(
        TrainingError,
        match=f"expected a run folder in which no other process works, got .*/run, which has been held by "
        f"process {holder.pid} on {socket.gethostname()} since {since}; wait for it, stop it",
    ) as refused:
        run(Trace(), tokens=BUDGET)
    assert "\n" not in str(refused.value)
    assert content(tmp_path / "run") == before

    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / "lock.json").is_file()  # nobody could take it away
    assert run(Trace(), tokens=BUDGET, stop_at=2).position.step == 2
    assert not (tmp_path / "run" / "lock.json").exists()


def test_a_run_gives_its_folder_free_however_it_ends(run, tmp_path):  # noqa: F811
    """While it trains nobody else gets in; after an end, a refusal or an error everybody does."""
    seen = []

    def somebody_else(position, loss):
        with pytest.raises(TrainingError, match=f"held by process {os.getpid()} on"):
            RunLock(tmp_path / "run", Accelerator())
        seen.append(position.step)
        raise RuntimeError("an error in a step")

    with pytest.raises(RuntimeError, match="an error in a step"):
        run(Trace(), tokens=BUDGET, on_step=somebody_else)
    assert seen == [1]
    run(Trace(), tokens=BUDGET, stop_at=2)
    with pytest.raises(TrainingError, match="expected the model of the run") as kept:
        run(Trace(), tokens=BUDGET, name="lstm")
    run(Trace(), tokens=BUDGET, stop_at=3)
    assert kept.value is not None  # its traceback still holds the refused run
    assert newest(tmp_path / "run").name == "checkpoint-00000003"


def test_a_disk_without_locks_is_said(tmp_path, monkeypatch, capfd):
    def missing(self, timeout):
        raise NotImplementedError("flock")

    monkeypatch.setattr(FileLock, "acquire", missing)
    RunLock(tmp_path / "run", Accelerator()).release()
    assert "note: the disk of" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("GRADIENT_ACCUMULATION_STEPS", "4", "got '4': .*give --accumulate"),
        ("DYNAMO_BACKEND", "INDUCTOR", "got 'INDUCTOR': compiled models round otherwise"),
        ("USE_DEEPSPEED", "true", "got 'true': .*not a model; unset it"),
        ("USE_FSDP", "True", "got 'True': .*not a model; unset it"),
    ],
)
def test_what_would_change_gradients_is_refused(run, tmp_path, monkeypatch, name, value, said):  # noqa: F811
    monkeypatch.setenv(f"ACCELERATE_{name}", value)
    with pytest.raises(
        TrainingError, match=f"expected no ACCELERATE_{name} in the environment, {said}"
    ):
        run(Trace(), tokens=BUDGET)
    assert not (tmp_path / "run").exists()


def test_what_a_launcher_always_sets_is_no_objection(run, monkeypatch):  # noqa: F811
    for name, value in (
        ("GRADIENT_ACCUMULATION_STEPS", "1"),
        ("DYNAMO_BACKEND", "NO"),
        ("USE_FSDP", "false"),
        ("MIXED_PRECISION", "no"),
    ):
        monkeypatch.setenv(f"ACCELERATE_{name}", value)
    run(Trace(), tokens=BUDGET, stop_at=1)


def test_the_launchers_precision_counts_where_none_is_asked_for(run, tmp_path, monkeypatch):  # noqa: F811
    def precision_of_a_run(name, **arguments):
        run(Trace(), tokens=BUDGET, stop_at=1, run_folder=tmp_path / name, **arguments)
        return json.loads((tmp_path / name / "settings.json").read_text())["precision"]

    assert precision_of_a_run("plain") == "no"
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert precision_of_a_run("launched") == "bf16"
    assert precision_of_a_run("asked", mixed_precision="no") == "no"
    with pytest.raises(TrainingError, match="expected fp32, the precision of the run in .*'bf16'"):
        precision_of_a_run("plain")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with pytest.raises(TrainingError, match="bf16, no or auto, got 'fp16'; .*ACCELERATE_MIXED"):
        precision_of_a_run("other")
