"""Which rank the others wait for, while nobody writes anything: real programs, and what is made of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from for_every import for_every_row

from oarsman import names
from oarsman.engines.hosts.core.shims import silence
from oarsman.engines.hosts.core.shims.silence import Silence
from oarsman.job.state import Status

from .machine import PATIENCE, Machine, mpijob, python

SPINS = "while :; do :; done"


@contextmanager
def running(script: str) -> Iterator[int]:
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def until_it_used(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + PATIENCE
    while (silence.cpu_seconds(pid) or 0) < seconds:
        assert time.monotonic() < deadline, silence.cpu_seconds(pid)
        time.sleep(0.02)


@pytest.mark.parametrize("script", [SPINS, f"({SPINS}) & wait", f"sh -c '{SPINS}; :' & sleep 1000"])
def test_what_a_program_and_all_below_it_use_is_its_cpu(script: str) -> None:
    with running(script) as pid:
        looked = Silence(pid)
        assert not looked.look(0)
        until_it_used(pid, 0.5)
        assert not looked.look(1)  # it is told of nothing before a minute is over
        looked.seconds = looked.patience = 2
        assert looked.look(2)
        assert looked.told is not None
        assert looked.told >= 20


def test_one_that_sleeps_uses_none() -> None:
    with running("sleep 1000") as pid:
        looked = Silence(pid)
        assert [looked.look(15 * number) for number in range(5)] == [False] * 4 + [True]
        assert looked.told == 0


def test_of_a_process_that_is_not_there_nothing_is_said() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert silence.cpu_seconds(process.pid) is None


@for_every_row(
    [
        # the seconds of CPU it has used at each look, every 15 s; what is told at each of them
        ("idle", [9, 9, 9, 9, 9, 9], "....0."),
        ("busy", [0, 15, 30, 45, 60, 75], "....X."),
        ("between", [0, 0, 0, 0, 1, 1], "......"),
        ("begins to work", [0, 0, 0, 0, 0, 15, 30, 45, 60, 75, 90, 105, 120, 135, 150], "....0-........X"),
        ("not for long enough", [0, 0, 0, 0, 0, 1, 15, 30, 45, 60], "....0-...."),
        ("stops after work", [0, 15, 30, 45, 60, 60, 60, 60, 60], "....X...-"),
        ("a child that nobody waited for", [0, 0, 5, 5, 0, 0, 0, 0, 0, 0], ".........0"),
        ("nobody tells", [None] * 9, "........."),
        ("no longer", [0, 0, 0, 0, 0, None], "....0-"),
    ]
)
def test_what_is_told_of_a_program_that_writes_nothing(case: str, used: list[float | None], told: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(silence, "cpu_seconds", lambda _: rest.pop(0))
        rest, looked, words = list(used), Silence(1), ""
        for number in range(len(used)):
            news = looked.look(15 * number)
            words += {None: "-", 0: "0"}.get(looked.told, "X") if news else "."
    assert words == told, case


def test_a_program_that_pauses_again_and_again_is_told_of_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "cpu_seconds", lambda _: 1.0)
    looked, told = Silence(1), 0
    for begin in range(0, 200_000, 100):  # a line every 100 seconds, for two days
        for now in range(begin, begin + 100, 15):
            told += looked.look(now)
        told += looked.over()
    assert told == 2


# -- a job ------------------------------------------------------------------------------------------------------------
READS = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD\n"
    "import contextlib, os\n"
    "with contextlib.suppress(OSError): os.nice(-10 * (c.rank == 0))\n"  # it has its CPU, however busy the machine is
    "if c.rank == 1: print(open('input').read(), flush=True)\n"
    "c.Barrier()\n"
    "if c.rank == 1: open('input').read()\n"
    "c.Barrier()\n"
)


def reading(machine: Machine, name: str) -> str:
    """A job of which rank 1 reads from a pipe that gives nothing, and the other waits for it in MPI."""
    os.mkfifo(machine.folder / "input")
    quick = {"env": [{"name": "OARSMAN_SILENT_SECONDS", "value": "4"}]}
    return machine.submit(mpijob(name, ["mpirun", "-n", "2", *python(READS)], worker=quick))


def says_idle(status: Status) -> str:
    found = status.condition(names.RUNNING)
    return found.message if found is not None and found.reason == names.REASON_IDLE_RANK else ""


@pytest.mark.mpi
def test_a_rank_that_sleeps_while_the_other_waits_in_mpi_is_named_while_the_job_runs(machine: Machine) -> None:
    key = reading(machine, "idle")
    status = machine.until(key, lambda status: bool(says_idle(status))).status
    told = "rank 1 on idle-worker-1 has written nothing and used no CPU for a minute, while the others use theirs"
    assert status.is_true(names.RUNNING)
    assert says_idle(status) == f"{told}; they may wait for it"
    events = [line.split(maxsplit=3)[1:] for line in machine.ok("events", "idle").splitlines()]
    assert ["Warning", "RankIdle", says_idle(status)] in events
    assert says_idle(status) in machine.ok("describe", "idle")
    machine.ok("stop", "idle")
    cause = machine.until_finished(key).status.cause
    assert cause is not None
    before = "before that rank 1 on idle-worker-1 had used no CPU while the others used theirs"
    assert (cause.summary, cause.rank, cause.host) == (f"stopped by the user; {before}", 1, "idle-worker-1")


@pytest.mark.mpi
def test_nobody_is_named_any_more_once_that_rank_writes(machine: Machine) -> None:
    key = reading(machine, "again")
    machine.until(key, lambda status: bool(says_idle(status)))
    (machine.folder / "input").write_text("x")
    machine.until(key, lambda status: status.is_true(names.RUNNING) and not says_idle(status))
    machine.ok("stop", "again")
    cause = machine.until_finished(key).status.cause
    assert cause is not None
    assert cause.summary == "stopped by the user"
