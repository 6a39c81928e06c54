"""The command line with tiny models, for tests that end real processes in unkind ways.

``python -m tiny_seqviz train …`` is ``seqviz train …`` but for the size of the models. With ``RECORD``,
a folder, in the environment every process writes down there what each of its steps was. With
``LIMIT``, bytes, no file can grow larger, which is how a full disk looks to whoever writes. With
``SIGNALS``, e.g. ``5 fsync 15 2``, it sends itself signal 15 after step 5 and signal 2 when it then
calls `os.fsync`, that is, while it saves. With ``KILL``, a number, it is killed just before it makes,
opens for writing, renames or removes a file or folder for so many times.

``python -m tiny_seqviz serve`` imports everything once, then forks one process for each line of JSON
that it reads, because importing takes longer than such a training. It is asked by `Server`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

RECURRENT = {"d_model": 16, "width": 16, "vector_size": 8, "attention_size": 8, "num_layers": 1}
TRANSFORMER = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
HERE = Path(__file__).resolve().parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)]),
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "ACCELERATE_USE_CPU": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


# ---------------------------------------------------------------------------------------------
# In the process that trains


def command_line(*arguments: str) -> None:
    """Run the command line with tiny models; ends by `SystemExit`, as it does."""
    import resource

    from seqviz import cli, training

    if limit := os.environ.get("LIMIT"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    if signals := os.environ.get("SIGNALS"):
        _signal_itself(*signals.split())
    if kill := os.environ.get("KILL"):
        _kill_itself(int(kill))
    train = training.train
    record = os.environ.get("RECORD")
    trace = _Trace(Path(record)) if record else None

    def on_step(position: Any, loss: float) -> None:
        for call in _after_step:
            call(position)
        if trace:
            trace.step(position, loss)

    def tiny(name: str, *args: Any, **kwargs: Any) -> Any:
        kwargs["config"] = TRANSFORMER if name == "transformer" else RECURRENT
        return train(name, *args, on_step=on_step, **kwargs)

    training.train = tiny  # type: ignore[assignment]
    sys.argv = ["seqviz", *arguments]
    cli.main()


def _changes_files(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open":
        return isinstance(args[0], str) and bool(args[2] & (os.O_WRONLY | os.O_RDWR))
    return event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")


def _kill_itself(number: int) -> None:
    left = [number]

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if _changes_files(event, args):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)


_after_step: list[Any] = []


def _signal_itself(step: str, then: str, first: str, second: str) -> None:
    real = getattr(os, then)
    first_is_sent: list[bool] = []

    def at_first(position: Any) -> None:
        if position.step == int(step):
            first_is_sent.append(True)
            os.kill(os.getpid(), int(first))

    def at_second(*args: Any) -> Any:
        if first_is_sent:
            first_is_sent.clear()
            os.kill(os.getpid(), int(second))
        return real(*args)

    _after_step.append(at_first)
    setattr(os, then, at_second)


class _Trace:
    """Writes a line for every step: its number, tokens, loss, learning rates, and what was seen.

    Gradients go to a file of their own, as the optimizers get them.
    """

    def __init__(self, folder: Path) -> None:
        import torch

        from seqviz.training import loop, run

        self.folder, self.rank = folder, os.environ.get("RANK", "0")
        self.rows: list[list[list[int]]] = []
        self.rates: list[float] = []
        self.gradients: list[torch.Tensor] = []
        self.wrote: list[str] = []
        summed_loss, optimizers = loop.summed_loss, run.optimizers

        def loss(model: Any, batch: Any, device: Any) -> Any:
            if model.training:
                columns = batch.input_ids, batch.attention_mask, batch.labels
                for source, mask, target in zip(*columns, strict=True):
                    if (target != -100).any():  # else it only stands in for a missing sentence
                        self.rows.append(
                            [source[mask == 1].tolist(), target[target != -100].tolist()]
                        )
            return summed_loss(model, batch, device)

        def before(optimizer: Any, *_: Any) -> None:
            for group in optimizer.param_groups:
                self.rates.append(group["lr"])
                self.gradients += [p.grad.flatten().clone() for p in group["params"]]

        def made(*args: Any) -> Any:
            result = optimizers(*args)
            for optimizer in result:
                optimizer.register_step_pre_hook(before)
            return result

        loop.summed_loss, run.optimizers = loss, made
        sys.addaudithook(self.audit)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Note the files that this process opens for writing, but its own notes."""
        if event == "open" and _changes_files(event, args):
            path = Path(args[0])
            if path != Path(os.devnull) and self.folder not in path.parents:
                self.wrote.append(args[0])

    def step(self, position: Any, loss: float) -> None:
        import torch

        torch.save(torch.cat(self.gradients), self.folder / f"{self.rank}-{position.step}.pt")
        line = {
            "step": position.step,
            "tokens": position.tokens,
            "epoch": position.epoch,
            "loss": loss,
            "rates": self.rates,
            "rows": self.rows,
            "wrote": self.wrote,
        }
        with (self.folder / f"{self.rank}.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        self.rows, self.rates, self.gradients, self.wrote = [], [], [], []


def serve() -> None:
    """Fork a process for each line of standard input; answer with its number, later its end."""
    import torch

    from seqviz import cli, scores, training
    from seqviz.drawing import figures
    from seqviz.translating import loading

    assert cli and figures and scores and training and loading  # imported once, for all
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _child(**asked)
        print(json.dumps(answer), flush=True)


def _child(arguments: list[str], environment: dict[str, str], said: str) -> None:
    code = 70
    try:
        os.setsid()
        os.environ.update(environment)
        stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        command_line(*arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# ---------------------------------------------------------------------------------------------
# In the test


class Server:
    """Starts tiny trainings as processes of their own within milliseconds."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tiny_seqviz", "serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip

    def _ask(self, question: dict[str, Any]) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, *arguments: object, **environment: object) -> Life:
        self._count += 1
        said = self._folder / f"said-{self._count}"
        pid = self._ask(
            {
                "arguments": [str(argument) for argument in arguments],
                "environment": {key: str(value) for key, value in environment.items()},
                "said": str(said),
            }
        )
        return Life(self, pid, said)

    def wait(self, pid: int) -> int:
        return self._ask({"wait": pid})

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Life:
    """One process of a `Server`."""

    def __init__(self, server: Server, pid: int, said: Path) -> None:
        self._server, self.pid, self._said = server, pid, said

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Exit status; negative: the signal that ended it."""
        return self._server.wait(self.pid)

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8") if self._said.exists() else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        command_line(*sys.argv[1:])
