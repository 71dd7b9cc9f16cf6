"""The tests' own machine says so when it could not be cleared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from oarsman import names
from oarsman.backends.local.follow import SupervisorLink

from . import machine as module
from .machine import Machine, mpijob


def test_a_machine_that_cannot_remove_a_job_says_so_and_ends_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "state")
    resting = {"suspend": True}
    left, gone = (machine.submit(mpijob(name, ["hostname"], run_policy=resting)) for name in ("left", "gone"))
    stray = subprocess.Popen(["sleep", "600"], env={names.ENV_JOB: machine.uid(left)})
    monkeypatch.setattr(module, "PATIENCE", 5.0)
    try:
        with pytest.raises(AssertionError, match="default/left: AssertionError") as told:
            machine.close()
    finally:
        stray.kill()
        stray.wait()
    assert gone not in str(told.value)
    assert not machine.jobs.list()
    assert SupervisorLink(machine.paths).reach() is None
