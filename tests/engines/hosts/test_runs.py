"""A job that is run again: what it left is still there, and goes when it should."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from datetime import UTC, datetime

import pytest

from oarsman import names
from oarsman.backends.local.follow import SupervisorLink
from oarsman.errors import NotFoundError
from oarsman.store.jobs import JobStore

from .machine import PATIENCE, Machine, mpijob

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
A_RUN = {"logs", "spec.json"}  # what is in the folder of an earlier one


def said(machine: Machine, key: str) -> list[str]:
    return [line for line in machine.lines(key) if line.startswith("this is")]


def run(machine: Machine, text: str, name: str = "again", replaces: str | None = None, **more: object) -> str:
    """One more run, to its end. Its uid."""
    scratch = [{"name": "scratch", "emptyDir": {}}]
    document = mpijob(name, ["mpirun", "-n", "1", "sh", "-c", f"echo this is {text}; exit 3"], workers=1, **more)  # type: ignore[arg-type]
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = scratch
    machine.jobs.submit(document, environment=machine.environment, folder=machine.folder, replaces=replaces)
    machine.until_finished(f"default/{name}")
    return machine.uid(f"default/{name}")


def three_runs(machine: Machine) -> list[str]:
    uids: list[str] = []
    for text in ("the first", "the second", "the third"):
        uids.append(run(machine, text, replaces=uids[-1] if uids else None))
    return uids


def until_cleared(machine: Machine, uid: str) -> None:
    """Of all but what is kept of an earlier run."""
    deadline = time.monotonic() + PATIENCE
    while (left := {path.name for path in machine.paths.job(uid).iterdir()} - {"usage.jsonl"}) != A_RUN:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert not machine.paths.job_run(uid).exists()


def test_every_run_keeps_its_log_its_cause_and_its_events_until_the_job_is_deleted(machine: Machine) -> None:
    uids = three_runs(machine)
    key = "default/again"
    runs = machine.jobs.runs(key)
    assert [(record.run, record.job.uid) for record in runs] == [(3, uids[2]), (2, uids[1]), (1, uids[0])]
    assert [said(machine, f"{key}#{number}") for number in (1, 2, 3)] == [
        ["this is the first"],
        ["this is the second"],
        ["this is the third"],
    ]
    first = machine.jobs.get(f"{key}#1")
    assert first.status.cause is not None
    assert (first.status.cause.exit_code, first.mpi != "") == (3, True)
    assert names.REASON_CREATED in [event.reason for event in machine.jobs.events(f"{key}#1")]
    for uid in uids[:2]:
        until_cleared(machine, uid)
    machine.jobs.delete(key)
    for uid in uids:
        machine.folders_gone(uid)
    with pytest.raises(NotFoundError):
        machine.jobs.get(f"{key}#1")


def test_a_run_that_is_one_too_many_goes_with_its_log(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_RUNS_KEPT", "1")
    uids = three_runs(machine)
    machine.folders_gone(uids[0])
    assert [record.run for record in machine.jobs.runs("default/again")] == [3, 2]
    assert said(machine, "default/again#2") == ["this is the second"]


def test_earlier_runs_go_with_a_job_whose_time_to_live_is_over(machine: Machine) -> None:
    first = run(machine, "the first", "brief")
    document = mpijob("brief", ["mpirun", "-n", "1", "hostname"], workers=1, run_policy={"ttlSecondsAfterFinished": 0})
    machine.jobs.submit(document, environment=machine.environment, folder=machine.folder, replaces=first)
    machine.folders_gone(first)
    with pytest.raises(NotFoundError):
        machine.jobs.runs("default/brief")


def test_a_command_that_is_killed_right_after_it_handed_in_the_next_run_leaves_nothing_behind(
    own_machine: Machine,
) -> None:
    """Nobody is told of the run before; the next supervisor finds it."""
    first = run(own_machine, "the first")
    with closing(JobStore(own_machine.paths.database)) as store:
        while not (before := store.get("default/again")).finished:  # there is something to end yet
            time.sleep(0.02)
        assert SupervisorLink(own_machine.paths).stop()
        fields = ("namespace", "name", "engine", "owner", "folder", "document")
        same = {name: getattr(before, name) for name in fields}
        environment = own_machine.environment
        store.replace(
            before.uid, keeping=10, uid=str(uuid.uuid4()), environment=environment, now=datetime.now(UTC), **same
        )
    own_machine.until_finished("default/again")
    until_cleared(own_machine, first)
    assert said(own_machine, "default/again#1") == ["this is the first"]
    assert own_machine.jobs.get("default/again").run == 2
