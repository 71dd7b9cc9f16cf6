"""The bare engine keeps what every engine promises on hosts over ssh, too."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ssh_hosts import Rack

from engines.contract_suite import EngineContract, Stage
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.ssh.host_facts import KnownInventories
from oarsman.engines.hosts.ssh.transport import SshTransport
from oarsman.job.observed import Admission, Place
from oarsman.job.state import Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import Action, Dismantle

from ..machine import mpijob, remove_run_folder
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]
LAUNCHER = ["sh", "-c", 'echo here; test -z "$NCCL_EXIT" && sleep 1000; exit $NCCL_EXIT']


class Engine(HostsEngine):
    """Of the submitter's own variables only some go along; those of the stories do under such a name."""

    async def apply(self, assignment: Assignment, action: Action) -> None:
        told = {f"NCCL_{name}": value for name, value in assignment.environment.items() if name == "EXIT"}
        await super().apply(replace(assignment, environment={**assignment.environment, **told}), action)


@pytest.fixture
def machine(tmp_path: Path, rack: Rack) -> Iterator[SshMachine]:
    machine = SshMachine(tmp_path / "state", rack)
    yield machine
    machine.close()


class TestOverSsh(EngineContract):
    @pytest.fixture
    def tell(self, machine: SshMachine) -> Callable[[Callable[[Stage], Awaitable[None]]], None]:
        def run(story: Callable[[Stage], Awaitable[None]]) -> None:
            asyncio.run(_on_stage(machine, story))

        return run


async def _on_stage(machine: SshMachine, story: Callable[[Stage], Awaitable[None]]) -> None:
    changed = asyncio.Event()
    machine.paths.make()
    machine.paths.make_run()  # as a supervisor does
    known_inventories = KnownInventories(left_out=lambda _: {}, keep=lambda *_: None)
    engine = Engine(
        job_folder=machine.paths.job, run_folder=machine.paths.job_run, transport=SshTransport(known_inventories)
    )
    await engine.start(lambda _uid: changed.set())
    annotations = {"oarsman.dev/code": "none", "oarsman.dev/inventory": str(machine.inventory)}
    job = replace(job_from_document(mpijob("contract", LAUNCHER, annotations=annotations)), uid=str(uuid.uuid4()))
    members = {job.launcher_host: "node1", job.worker_host(0): "node1", job.worker_host(1): "node2"}
    admission = Admission(placement=tuple(Place(member=name, machine=node) for name, node in members.items()))
    assignment = Assignment(
        job=job, status=Status(), environment=machine.environment, folder=Path(machine.folder), admission=admission
    )
    stage = Stage(engine, assignment, changed)
    try:
        await story(stage)
    finally:
        await engine.apply(assignment, Dismantle())
        await stage.until(lambda seen: not seen.prepared)
        await engine.close()
        machine.nothing_left(job.uid)
        remove_run_folder(machine.paths)
