"""The Dockerfile, and what it promises: another user, a file system that cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import free_port, wait_for_answer
from gradio_client import Client

import seqviz

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
USER = 10001


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]  # type: ignore[misc]


def environment() -> dict[str, str]:
    values = " ".join(rest for name, rest in instructions() if name == "ENV")
    return dict(re.findall(r"(\w+)=(\S+)", values))


def test_what_it_copies_is_there_and_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY"]
    for path in [path for paths in copied for path in paths]:
        assert (ROOT / path).exists() and f"!{path}" in ignored, path


def test_it_runs_as_another_user_on_the_python_of_the_space():
    names = dict(instructions())
    assert names["USER"] == f"{USER}:{USER}"
    assert re.fullmatch(r"python:3\.11-slim", names["FROM"])
    assert eval(names["CMD"]) == ["python", "app.py"]
    order = [name for name, _ in instructions()]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name in ("RUN", "COPY"))


# A mount namespace in which everything but /dev/shm is read-only. The interpreter may lie in a home that
# only root may enter: its folder is shown again beneath an empty, readable home.
READ_ONLY = r"""
set -e
mount --make-rprivate /
base=$1; shift
case "$base" in
  /root/*)
    mount --bind "$base" /media
    mount -t tmpfs -o mode=755 none /root; mkdir -p "$base"; mount --bind /media "$base" ;;
esac
awk '{print $2}' /proc/mounts | sort -ru | while read -r point; do
  case $point in /proc*|/sys*|/dev*) ;; *) mount -o remount,ro,bind "$point" || [ ! -e "$point" ] ;; esac
done
mount -t tmpfs -o mode=1777 none /dev/shm
if touch /tmp/seqviz-probe 2>/dev/null; then echo "still writable" >&2; exit 3; fi
exec setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups --bounding-set=-all --inh-caps=-all \
  --no-new-privs env -i "$@"
"""


def run_read_only(*command: str, **values: str) -> subprocess.Popen[str]:
    """The command as the Dockerfile's user, with nothing else in its environment than `values`."""
    given = [f"{name}={value}" for name, value in {"PATH": "/usr/bin:/bin", **values}.items()]
    return subprocess.Popen(
        ["unshare", "-m", "bash", "-c", READ_ONLY, "bash", sys.base_prefix, *given, *command],
        env={**os.environ, "USER_ID": str(USER)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def can_run() -> None:
    if not shutil.which("unshare") or not shutil.which("setpriv") or os.getuid() != 0:
        pytest.skip("needs root, unshare and setpriv")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import seqviz.version; print('read')"
    process = run_read_only(sys.executable, "-c", code, str(ROOT))
    said, _ = process.communicate()
    if said.strip() != "read":
        pytest.skip(f"no read-only file system for another user can be made here: {said.strip()}")


@pytest.fixture(scope="module")
def address(can_run: None) -> Iterator[str]:
    port = free_port()
    values = {**environment(), "GRADIO_SERVER_PORT": str(port), "PYTHONDONTWRITEBYTECODE": "1"}
    process = run_read_only(sys.executable, str(ROOT / "app.py"), **values)
    try:
        found = f"http://127.0.0.1:{port}"
        wait_for_answer(found, process, lambda: str(process.poll()))
        yield found
    finally:
        process.terminate()
        process.wait()


def test_the_page_answers_there(address):
    client = Client(address, verbose=False, httpx_kwargs={"timeout": 300})
    answer = client.predict("The boat is green.", api_name="/translate")
    text = "The boat is green."
    assert answer["lstm"]["text"] == seqviz.load("lstm").translate(text).text
    assert client.predict(text, api_name="/card")["type"] == "image/png"
    assert client.predict(text, "transformer", api_name="/attention")["parts"]
    assert set(client.predict(text, api_name="/reach")) == set(seqviz.MODEL_NAMES)


def test_the_command_line_works_there(can_run):
    command = (sys.executable, "-m", "seqviz", "translate", "--model", "rnn", "Hello.")
    process = run_read_only(*command, PYTHONPATH=str(ROOT), **environment())
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert len(said.strip().splitlines()) == 1, said


def test_without_any_folder_to_write_the_page_says_what_it_needs(can_run):
    process = run_read_only(sys.executable, "-c", "import seqviz.ui", PYTHONPATH=str(ROOT))
    said, _ = process.communicate()
    assert process.returncode == 1
    assert "let the environment variable TMPDIR name one" in said.strip().splitlines()[-1]
