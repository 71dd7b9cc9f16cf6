"""What the engine makes of a journal and of job agents that come to an end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.core.journal import LauncherEnded, LauncherStarted, add_note
from oarsman.job.observed import Observed, Phase
from oarsman.job.state import Status
from oarsman.manifest import job_from_document

from .machine import mpijob


def observe(tmp_path: Path) -> Observed:
    job = job_from_document({**mpijob("pi", ["mpirun", "hostname"]), "metadata": {"name": "pi", "uid": "uid-pi"}})
    engine = HostsEngine(job_folder=lambda _uid: tmp_path, run_folder=lambda _uid: tmp_path / "run")
    return asyncio.run(engine.observe(Assignment(job=job, status=Status(), environment={}, folder=tmp_path)))


@pytest.mark.parametrize("called", ["agent", "keeper"])  # now, and by a version before, whose job still runs
def test_the_last_words_of_a_job_agent_count_even_if_it_dies_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    (tmp_path / "journal.jsonl").write_text(json.dumps({"t": 0.0, "e": called, "pid": 1, "started": "never"}) + "\n")
    add_note(str(tmp_path), LauncherStarted(1))

    def it_just_died(_process: process.ProcessId) -> bool:
        add_note(str(tmp_path), LauncherEnded(1, code=0, signal=None, memory=False, lines=[]))
        return False

    monkeypatch.setattr(process, "alive", it_just_died)
    launcher = observe(tmp_path).launcher
    assert launcher is not None
    assert launcher.phase is Phase.SUCCEEDED
