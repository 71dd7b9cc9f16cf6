"""Whose sweep it is: nobody gets at somebody else's through a job, or a sweep, of the same name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from console.api.memory import FAILED, SUCCEEDED, MemoryJobs, a_document
from waiting import waiting

from oarsman import names
from oarsman.errors import ConflictError
from oarsman.manifest import to_yaml
from oarsman.portal import shared
from oarsman.service import JobService
from oarsman.service.models import Create, Identity, Role, SweepSpec

SPEC = SweepSpec(name="s", manifest=to_yaml([a_document("x", slotsPerWorker="{{slots}}")]), grid={"slots": [2, 3]})
BY_HAND = tuple(replace(c, reason=names.REASON_STOPPED) if c.type == names.FAILED else c for c in FAILED.conditions)
STOPPED = replace(FAILED, conditions=BY_HAND)


def a_desk(jobs: MemoryJobs, name: str) -> Any:
    return waiting(JobService(jobs, Identity(name=name, role=Role.USER), environment={}, folder=Path("/")))


def what_there_is(jobs: MemoryJobs, owner: str) -> dict[str, tuple[str, bool]]:
    return {one.job.name: (one.job.uid, one.stop_requested) for one in jobs.records() if one.owner == owner}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda service: service.resume_sweep("default/s"), id="resume"),
        pytest.param(lambda service: service.stop_sweep("default/s"), id="stop"),
        pytest.param(lambda service: service.delete_sweep("default/s"), id="delete"),
        pytest.param(lambda service: service.create_sweep(SPEC), id="begin"),
    ],
)
def test_a_job_that_calls_itself_a_point_opens_no_way_to_the_sweep(act: Callable[[Any], object]) -> None:
    jobs = MemoryJobs()
    a_desk(jobs, "ada").create_sweep(SPEC)
    jobs._put(replace(jobs.record("default/s-0001"), status=STOPPED))
    before, bob = what_there_is(jobs, "ada"), a_desk(jobs, "bob")
    document = a_document("s-0007")
    document["metadata"]["labels"] = {names.LABEL_SWEEP: "s"}
    bob.create(Create(document=document))
    with pytest.raises(ConflictError):
        act(bob)
    assert what_there_is(jobs, "ada") == before
    assert list(what_there_is(jobs, "bob")) == ["s-0007"]


def test_a_sweep_that_has_ended_is_not_stopped() -> None:
    jobs = MemoryJobs()
    ada = a_desk(jobs, "ada")
    ada.create_sweep(SPEC)
    for number, status in enumerate((SUCCEEDED, FAILED)):
        jobs._put(replace(jobs.record(f"default/s-000{number}"), status=status))
    with pytest.raises(ConflictError, match="default/s has ended already"):
        ada.stop_sweep("default/s")
    jobs._put(replace(jobs.record("default/s-0001"), status=STOPPED))
    assert ada.stop_sweep("default/s").state == "Stopped"


def test_a_parameter_that_the_manifest_does_not_use_is_warned_of() -> None:
    ada = a_desk(MemoryJobs(), "ada")
    assert ada.preview_sweep(SPEC).warnings == ()
    (said,) = ada.preview_sweep(SPEC.model_copy(update={"grid": {"slots": [2], "lr": [1, 2]}})).warnings
    assert said.startswith("nothing in the manifest uses the parameter lr: write {{lr}} where its value belongs")
    reads = SPEC.model_copy(update={"grid": {"slots": [2], "lr": [1]}, "manifest": SPEC.manifest + "# $SWEEP_LR\n"})
    assert ada.preview_sweep(reads).warnings == ()


def test_a_name_that_was_given_up_meanwhile_is_no_way_to_a_job_of_somebody_else() -> None:
    """Ben's sweep waits to run a stopped point again; he deletes it, and Ada gives a job of hers that name."""
    jobs = MemoryJobs()
    ben, key = Identity(name="ben", role=Role.USER), "default/s-0001"
    service = JobService(jobs, ben, environment={}, folder=Path("/"))
    a_desk(jobs, "ben").create_sweep(SPEC)
    for index in range(2):
        jobs._put(replace(jobs.record(f"default/s-000{index}"), status=STOPPED))
    drive = shared().run(service.driven_sweep("default/s"))
    shared().run(drive.hand_in(1))
    jobs.vanish(key)
    hers = jobs.add("s-0001", SUCCEEDED, "ada")
    with pytest.raises(ConflictError):
        shared().run(drive.hand_in())
    assert jobs.record(key).job.uid == hers.job.uid


def test_a_sweep_of_the_same_name_replaces_no_job_of_somebody_else() -> None:
    jobs = MemoryJobs()
    a_desk(jobs, "ada").create_sweep(SPEC)
    jobs._put(replace(jobs.record("default/s-0001"), status=STOPPED))
    jobs.vanish("default/s-0000")
    before = what_there_is(jobs, "ada")
    a_desk(jobs, "bob").create_sweep(SPEC)
    assert what_there_is(jobs, "ada") == before
    assert list(what_there_is(jobs, "bob")) == ["s-0000"]
