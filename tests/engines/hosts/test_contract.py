"""The bare engine keeps what every engine promises."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engines.contract_suite import EngineContract, Stage
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.job.state import Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import Dismantle

from .machine import Machine, mpijob, remove_run_folder

pytestmark = pytest.mark.mpi
LAUNCHER = ["sh", "-c", 'echo here; test -z "$EXIT" && sleep 1000; exit $EXIT']


class TestBareEngine(EngineContract):
    @pytest.fixture
    def tell(self, machine: Machine) -> Callable[[Callable[[Stage], Awaitable[None]]], None]:
        def run(story: Callable[[Stage], Awaitable[None]]) -> None:
            asyncio.run(_on_stage(machine, story))

        return run


async def _on_stage(machine: Machine, story: Callable[[Stage], Awaitable[None]]) -> None:
    changed = asyncio.Event()
    machine.paths.make()
    machine.paths.make_run()  # as a supervisor does
    engine = HostsEngine(job_folder=machine.paths.job, run_folder=machine.paths.job_run)
    await engine.start(lambda _uid: changed.set())
    job = replace(job_from_document(mpijob("contract", LAUNCHER)), uid=str(uuid.uuid4()))
    assignment = Assignment(job=job, status=Status(), environment=machine.environment, folder=Path(machine.folder))
    stage = Stage(engine, assignment, changed)
    try:
        await story(stage)
    finally:
        await engine.apply(assignment, Dismantle())
        await stage.until(lambda seen: not seen.prepared)
        await engine.close()
        machine.nothing_left(job.uid)
        remove_run_folder(machine.paths)
