"""Room is given to whole jobs, and those concerned are told when it changes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from oarsman.control.admission import AdmissionControl, on_this_machine
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.manifest import job_from_document
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def a_job(name: str, cpus: int | None) -> Job:
    container: dict[str, Any] = {"name": "c", "command": ["mpirun", "-n", "1", "hostname"]}
    if cpus is not None:
        container["resources"] = {"requests": {"cpu": cpus}}
    replica = {"template": {"spec": {"containers": [container]}}}
    document = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"mpiReplicaSpecs": {"Launcher": replica}},
    }
    return job_from_document(document)


def admission_control(cpus: int) -> tuple[AdmissionControl, list[str]]:
    told: list[str] = []
    machine = Machine(name="", capacity=Capacity(cpu=Decimal(cpus), memory=Decimal(1 << 40)))
    return on_this_machine(machine, told.append), told


def test_room_is_held_until_it_is_given_back() -> None:
    books, told = admission_control(4)
    first, second = a_job("first", 3), a_job("second", 2)
    assert books.ask(first, NOW) == Admission()  # on one machine nobody has to be told where
    waiting = books.ask(second, NOW)
    assert not waiting.admitted
    assert waiting.position == 1
    assert "held by default/first" in waiting.reason
    told.clear()
    books.release("uid-first")
    assert told == ["uid-second"]
    assert books.ask(second, NOW).admitted


def test_asking_again_changes_nothing() -> None:
    books, told = admission_control(4)
    first = a_job("first", 3)
    assert books.ask(first, NOW).admitted
    told.clear()
    assert books.ask(first, NOW).admitted
    assert told == []


def test_a_job_found_running_holds_its_room() -> None:
    books, _ = admission_control(4)
    books.hold(a_job("found", 4))
    assert not books.ask(a_job("late", 1), NOW).admitted


def test_jobs_without_requests_take_a_cpu_per_slot_but_never_more_than_there_are() -> None:
    books, _ = admission_control(1)
    assert books.ask(a_job("first", None), NOW).admitted
    waiting = books.ask(a_job("second", None), NOW)
    assert not waiting.admitted
    assert not waiting.impossible


def test_a_running_job_that_shrinks_makes_room() -> None:
    books, told = admission_control(4)
    assert books.ask(a_job("wide", 4), NOW).admitted
    late = a_job("late", 2)
    assert not books.ask(late, NOW).admitted
    told.clear()
    books.ask(a_job("wide", 1), NOW)
    assert told == ["uid-late"]
    assert books.ask(late, NOW).admitted


def test_a_running_job_that_grows_beyond_the_machine_is_not_stopped_and_makes_others_wait() -> None:
    books, _ = admission_control(4)
    assert books.ask(a_job("wide", 2), NOW).admitted
    assert books.ask(a_job("wide", 6), NOW) == Admission()
    assert "0 of 4 are free (held by default/wide: 6)" in books.ask(a_job("late", 1), NOW).reason
