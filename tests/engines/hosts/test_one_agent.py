"""One job has one job agent, however slowly one starts and whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import agent_lock, process, shims
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.core.job_spec import write_spec
from oarsman.engines.hosts.core.journal import AgentStarted, JournalReader, add_note
from oarsman.errors import RetryableError
from oarsman.job.state import Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import Prepare

from .machine import PATIENCE, mpijob
from .specs import a_spec

HOLDER = (
    "import fcntl, sys\n"
    "file = open(sys.argv[1], 'w')\n"
    "fcntl.lockf(file, fcntl.LOCK_EX)\n"
    "print('held', flush=True)\n"
    "input()\n"
)


def start_agent(folder: Path) -> subprocess.CompletedProcess[str]:
    words = [*shims.starter(), "job-agent", str(folder)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, start_new_session=True)


def agents(folder: Path) -> list[process.ProcessId]:
    facts = [noted.fact for noted in JournalReader(str(folder)).news()]
    return [process.ProcessId(fact.pid, fact.started) for fact in facts if isinstance(fact, AgentStarted)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Of a job that was prepared."""
    write_spec(tmp_path, a_spec(run_folder=str(tmp_path / "run")))
    yield tmp_path
    for agent in agents(tmp_path):
        process.send_signal(agent, signal.SIGKILL)


def test_a_second_job_agent_leaves_the_first_one_alone(folder: Path) -> None:
    assert start_agent(folder).returncode == 0
    (first,) = agents(folder)
    late = start_agent(folder)
    assert late.returncode != 0
    assert "another job agent" in late.stderr
    assert agents(folder) == [first]
    assert process.alive(first)
    assert (folder / "run/k").is_socket()
    process.send_signal(first, signal.SIGTERM)
    psutil.wait_procs([psutil.Process(first.pid)] if process.alive(first) else [], timeout=PATIENCE)
    assert start_agent(folder).returncode == 0, "the next one may come when it is gone"


def test_a_job_agent_that_was_killed_is_in_nobodys_way(folder: Path) -> None:
    assert start_agent(folder).returncode == 0
    (first,) = agents(folder)
    waited_for = psutil.Process(first.pid)
    process.send_signal(first, signal.SIGKILL)
    waited_for.wait(PATIENCE)
    assert start_agent(folder).returncode == 0


@pytest.fixture
def starting(folder: Path) -> Iterator[None]:
    """A job agent that is there and has not said so yet."""
    words = [sys.executable, "-c", HOLDER, str(folder / agent_lock.FILE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate("\n")


def test_what_a_starting_job_agent_has_is_neither_cleared_away_nor_prepared_anew(folder: Path, starting: None) -> None:
    add_note(str(folder), AgentStarted(1, "never"))  # the one before it was killed
    (folder / "run").mkdir()
    before = (folder / "spec.json").read_text()
    job = job_from_document({**mpijob("pi", ["mpirun", "hostname"]), "metadata": {"name": "pi", "uid": "uid-pi"}})
    engine = HostsEngine(job_folder=lambda _uid: folder, run_folder=lambda _uid: folder / "run")
    assignment = Assignment(job=job, status=Status(), environment=dict(os.environ), folder=folder)

    async def turn() -> None:
        await engine.observe(assignment)
        await engine.apply(assignment, Prepare())

    with pytest.raises(RetryableError, match="another job agent"):
        asyncio.run(turn())
    assert (folder / "run").is_dir()
    assert (folder / "spec.json").read_text() == before
