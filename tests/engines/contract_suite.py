"""What every engine promises, as tests. An engine's own suite inherits this class and provides `stage`.

An engine is observed and ordered about here without the plan and without the loop: one action, then
looking until what it says comes true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from oarsman.engines.contract import Assignment, Engine
from oarsman.job.observed import Observed, Phase
from oarsman.plan.actions import (
    Action,
    CreateLauncher,
    CreateWorker,
    DeleteLauncher,
    DeleteWorker,
    Dismantle,
    Prepare,
    PublishHosts,
)

PATIENCE = 180.0


@dataclass
class Stage:
    """An engine and a job of two workers. Its launcher prints `here` and ends with the code in EXIT, or waits."""

    engine: Engine
    assignment: Assignment
    changed: asyncio.Event

    async def do(self, *actions: Action) -> None:
        for action in actions:
            await self.engine.apply(self.assignment, action)

    async def until(self, wanted: Callable[[Observed], bool]) -> Observed:
        """Look again whenever the engine says that something may have changed."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.changed.clear()
                seen = await self.engine.observe(self.assignment)
                if wanted(seen):
                    return seen
                await self.changed.wait()

    async def start_workers(self) -> Observed:
        await self.do(Prepare(), PublishHosts(()), CreateWorker(0), CreateWorker(1))
        return await self.until(lambda seen: len(seen.workers) == 2 and all(w.ready for w in seen.workers))

    async def start_launcher(self) -> Observed:
        await self.start_workers()
        await self.do(PublishHosts(self.assignment.job.hosts), CreateLauncher(1))
        return await self.until(lambda seen: seen.launcher is not None)


def alive(seen: Observed) -> list[int]:
    return sorted(worker.index for worker in seen.workers if not worker.phase.ended)


class EngineContract:
    @pytest.fixture
    def tell(self) -> Callable[[Callable[[Stage], object]], None]:
        """Runs one story on a fresh stage and clears the stage afterwards. Engines override `stage`."""
        raise NotImplementedError

    def test_a_job_nobody_has_prepared_has_no_members(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            seen = await stage.engine.observe(stage.assignment)
            assert (seen.workers, seen.launcher, seen.published_hosts) == ((), None, None)
            assert not seen.prepared

        tell(story)

    def test_workers_come_up_under_their_numbers_and_names(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            seen = await stage.start_workers()
            job = stage.assignment.job
            assert {w.index: w.name for w in seen.workers} == {0: job.worker_host(0), 1: job.worker_host(1)}
            assert all(w.phase is Phase.RUNNING for w in seen.workers)
            assert seen.prepared

        tell(story)

    def test_published_hosts_come_back_exactly(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            await stage.start_workers()
            for hosts in (stage.assignment.job.hosts, stage.assignment.job.hosts[:1], ()):
                await stage.do(PublishHosts(hosts))
                await stage.until(lambda seen, hosts=hosts: seen.published_hosts == hosts)  # type: ignore[misc]

        tell(story)

    def test_every_action_may_come_twice(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            await stage.start_workers()
            before = await stage.start_workers()
            assert len(before.workers) == 2
            await stage.do(CreateLauncher(1), CreateLauncher(1))
            await stage.until(lambda seen: seen.launcher is not None)
            await stage.do(DeleteWorker(1), DeleteWorker(1))
            await stage.until(lambda seen: alive(seen) == [0])
            await stage.do(DeleteLauncher(1), DeleteLauncher(1), DeleteWorker(0))
            await stage.until(lambda seen: alive(seen) == [] and seen.launcher is None)
            await stage.do(Dismantle(), Dismantle())
            await stage.until(lambda seen: not seen.prepared)

        tell(story)

    def test_a_launcher_ends_with_its_code(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            stage.assignment = replace(stage.assignment, environment={**stage.assignment.environment, "EXIT": "3"})
            await stage.start_launcher()
            seen = await stage.until(lambda seen: seen.launcher is not None and seen.launcher.phase.ended)
            assert seen.launcher is not None
            assert seen.launcher.phase is Phase.FAILED
            assert seen.launcher.exit is not None
            assert seen.launcher.exit.code == 3
            assert seen.launcher.attempt == 1
            assert "here" in seen.launcher_lines

        tell(story)

    def test_a_second_attempt_follows_a_dismissed_first(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            stage.assignment = replace(stage.assignment, environment={**stage.assignment.environment, "EXIT": "0"})
            await stage.start_launcher()
            await stage.until(lambda seen: seen.launcher is not None and seen.launcher.phase is Phase.SUCCEEDED)
            await stage.do(DeleteLauncher(1))
            await stage.until(lambda seen: seen.launcher is None)
            await stage.do(CreateLauncher(2))
            seen = await stage.until(lambda seen: seen.launcher is not None and seen.launcher.phase.ended)
            assert seen.launcher is not None
            assert seen.launcher.attempt == 2

        tell(story)

    def test_a_deleted_worker_leaves_the_others_alone(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            await stage.start_launcher()
            await stage.do(DeleteWorker(1))
            seen = await stage.until(lambda seen: alive(seen) == [0])
            assert seen.launcher is not None
            assert seen.launcher.phase is Phase.RUNNING

        tell(story)

    def test_a_forgotten_job_is_as_if_it_had_never_been(self, tell: Callable[..., None]) -> None:
        async def story(stage: Stage) -> None:
            await stage.start_workers()
            await stage.do(DeleteWorker(0), DeleteWorker(1), Dismantle())
            await stage.until(lambda seen: not seen.prepared)
            await stage.engine.forget(stage.assignment.job.uid)
            seen = await stage.engine.observe(stage.assignment)
            assert (seen.workers, seen.launcher, seen.published_hosts) == ((), None, None)

        tell(story)
