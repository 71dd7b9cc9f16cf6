"""Rank 0 of a job in the foreground reads what the command was given, to its end; everybody else reads nothing."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .machine import PATIENCE, Machine, mpijob

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
MPIS = ("openmpi5", "openmpi4", "mpich", "intel")
# All ranks read to the end.
DIGESTS = "import hashlib, os, sys; print(os.environ['RANK'], hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
NOTHING = hashlib.sha256(b"").hexdigest()
SOMETHING = bytes(range(256)) * 1024  # more than a pipe holds; Open MPI 5 would repeat parts of it


def run(machine: Machine, *words: str, given: bytes | int) -> subprocess.CompletedProcess[bytes]:
    stdin: dict[str, object] = {"input": given} if isinstance(given, bytes) else {"stdin": given}
    return subprocess.run(
        machine.command("run", "--no-tags", *words),
        env=machine.environment,
        cwd=machine.folder,
        capture_output=True,
        timeout=PATIENCE,
        **stdin,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_0_has_all_of_it_and_the_others_have_nothing(machine_with: Callable[..., Machine], mpi: str) -> None:
    done = run(machine_with(mpi), "-n", "2", "--", sys.executable, "-c", DIGESTS, given=SOMETHING)
    assert done.returncode == 0, done.stderr
    wanted = [f"0 {hashlib.sha256(SOMETHING).hexdigest()}", f"1 {NOTHING}"]
    assert sorted(done.stdout.decode().splitlines()) == wanted


@pytest.mark.parametrize("mpi", MPIS)
def test_in_the_background_everybody_reads_the_end_at_once(machine_with: Callable[..., Machine], mpi: str) -> None:
    machine = machine_with(mpi)
    machine.ok("submit", "--name", "reader", "-n", "2", "--", sys.executable, "-c", DIGESTS)
    machine.until_finished("default/reader")
    assert sorted(machine.rank_lines("default/reader")) == [f"0 {NOTHING}", f"1 {NOTHING}"]


def test_a_file_is_read_by_whoever_is_next(machine: Machine, tmp_path: Path) -> None:
    """A script, then the ranks of its two launches, each from where the one before stopped."""
    (tmp_path / "lines").write_text("one\ntwo\nthree\n")
    reads = "read x; echo script $x; for _ in 1 2; do mpirun -n 1 sh -c 'read x; echo rank $x'; done"
    document = mpijob("script", ["sh", "-c", reads], workers=1)
    (machine.folder / "job.json").write_text(json.dumps(document))
    with open(tmp_path / "lines", "rb") as file:
        done = run(machine, "job.json", given=file.fileno())
    assert done.stdout.decode().splitlines() == ["script one", "rank two", "rank three"], done.stderr


def test_another_attempt_has_nothing_left_to_read(machine: Machine) -> None:
    command = ["mpirun", "-n", "1", "sh", "-c", "cat; exit 1"]
    document = mpijob("again", command, workers=1, run_policy={"backoffLimit": 1})
    (machine.folder / "job.json").write_text(json.dumps(document))
    done = run(machine, "job.json", given=b"once\n")
    assert (done.returncode, done.stdout) == (1, b"once\n"), done.stderr
    assert machine.until_finished("default/again").status.attempts[-1].number == 2


def test_a_hundred_megabytes_pass(machine: Machine) -> None:
    writes = subprocess.Popen(["head", "-c", "100000000", "/dev/zero"], stdout=subprocess.PIPE)
    assert writes.stdout is not None
    with writes, writes.stdout:
        done = run(machine, "-n", "1", "--", "wc", "-c", given=writes.stdout.fileno())
    assert done.stdout == b"100000000\n", done.stderr


@contextmanager
def in_a_terminal(machine: Machine, line: str) -> Iterator[int]:
    """A shell with job control that runs the line; the other end of its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(machine.folder)
        os.execvpe(
            "bash", ["bash", "--norc", "-i", "-c", f"set -m; PS1=; {line}"], {**machine.environment, "TERM": "dumb"}
        )
    try:
        yield terminal
    finally:
        os.close(terminal)
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.waitpid(pid, 0)


def until_seen(terminal: int, text: str) -> str:
    seen, deadline = "", time.monotonic() + PATIENCE
    readable = select.poll()  # not select(), which takes no descriptor above 1023
    readable.register(terminal, select.POLLIN)
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if readable.poll(1000):
            seen += os.read(terminal, 4096).decode(errors="replace")
    return seen


def test_what_is_typed_is_read_up_to_its_end(machine: Machine) -> None:
    with in_a_terminal(machine, "oarsman run -n 1 -- sh -c 'echo ready; wc -c; echo over'; echo code $?") as terminal:
        until_seen(terminal, "ready")
        os.write(terminal, b"typed\n\x04")
        seen = until_seen(terminal, "code 0")
    assert "] 6\r\n" in seen


def test_a_prompt_is_there_before_it_is_answered_and_a_bar_moves(machine: Machine) -> None:
    asks = "printf '\\r1 of 2'; read x; printf '\\r2 of 2'; read x; echo; printf 'Name: '; read name; echo hello $name"
    (machine.folder / "asks.sh").write_text(asks)
    with in_a_terminal(machine, "oarsman run --name asks -n 1 -- sh asks.sh; echo code $?") as terminal:
        for shown in ("] 1 of 2", "] 2 of 2", "] Name: "):
            until_seen(terminal, shown)
            os.write(terminal, b"you\n")
        until_seen(terminal, "hello you")
        until_seen(terminal, "code 0")
    assert machine.lines("default/asks") == ["2 of 2", "Name: hello you"]


def test_in_the_background_of_a_shell_it_is_not_halted_and_takes_nothing(machine: Machine) -> None:
    line = "oarsman run -n 1 -- sh -c 'echo ready; read x; echo got $x' & read mine; echo mine $mine; fg; echo code $?"
    with in_a_terminal(machine, line) as terminal:
        until_seen(terminal, "ready")
        os.write(terminal, b"for the shell\n")
        until_seen(terminal, "mine for the shell")
        os.write(terminal, b"for the job\n")
        until_seen(terminal, "got for the job")
        until_seen(terminal, "code 0")
