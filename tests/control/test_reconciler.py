"""The reconciler over the store, with an engine that has trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from oarsman import names
from oarsman.control.admission import on_this_machine
from oarsman.control.queue import WorkQueue
from oarsman.control.reconciler import EngineSite, Reconciler
from oarsman.control.store_records import StoreRecords
from oarsman.engines.contract import Assignment
from oarsman.errors import RetryableError
from oarsman.job.observed import Observed
from oarsman.job.state import Status
from oarsman.plan.actions import Action
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine
from oarsman.status.codec import from_wire
from oarsman.store.jobs import JobStore

NOW = datetime(2026, 11, 15, tzinfo=UTC)


class Powerless:
    """An engine that can do nothing at all."""

    name = "powerless"

    async def start(self, notify: Callable[[str], None]) -> None: ...
    async def adopt(self, assignment: Assignment) -> None: ...
    async def observe(self, assignment: Assignment) -> Observed:
        return Observed(status=assignment.status, admission=assignment.admission, prepared=False)

    async def apply(self, assignment: Assignment, action: Action) -> None:
        raise RetryableError("no space left on device")

    async def forget(self, uid: str) -> None: ...
    async def close(self) -> None: ...


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    store = JobStore(tmp_path / "oarsman.db")
    container = {"name": "c", "command": ["mpirun", "-n", "1", "hostname"]}
    replica = {"template": {"spec": {"containers": [container]}}}
    document = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {"mpiReplicaSpecs": {"Launcher": replica, "Worker": {"replicas": 1, **replica}}},
    }
    store.add(
        uid="u",
        namespace="default",
        name="pi",
        engine="local",
        owner="me",
        folder="/",
        document=document,
        environment={},
        now=NOW,
    )
    yield store
    store.close()


def turn(store: JobStore, at: datetime) -> Status:
    queue = WorkQueue()
    machine = Machine(name="", capacity=Capacity(cpu=Decimal(4), memory=Decimal(1 << 30)))
    records = StoreRecords(store, lambda _uid: None, now=lambda: at)
    site = EngineSite(Powerless(), on_this_machine(machine, queue.add))
    reconciler = Reconciler(records, site, queue, now=lambda: at)
    with pytest.raises(RetryableError):
        asyncio.run(reconciler.turn("u"))
    stored = store.by_uid("u")
    assert stored is not None
    return from_wire(stored.status)


def test_a_job_that_cannot_be_started_says_why_and_does_not_wait_for_ever(store: JobStore) -> None:
    for minute in (0, 1):
        assert not turn(store, NOW + timedelta(minutes=minute)).finished
    created, event = store.events("u")
    assert (created.reason, created.count) == (names.REASON_CREATED, 1)
    assert (event.reason, event.message, event.count) == (names.REASON_TROUBLE, "no space left on device", 2)
    failed = turn(store, NOW + timedelta(minutes=6)).condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_BARRIER
