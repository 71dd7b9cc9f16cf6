"""A search for worlds that break a promise: random events, crashes between any two actions, lost writes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from oarsman import names
from oarsman.job.job import CleanPodPolicy, LauncherCreation, RestartPolicy
from oarsman.job.observed import Admission, Phase
from oarsman.plan.policies import retry
from oarsman.plan.reconcile import reconcile
from tests.builders import a_job
from tests.plan.memory_engine import MemoryEngine

NO_ROOM = Admission(admitted=False, position=1, reason="needs 4 CPUs, 1 of 8 is free")
indices = st.integers(0, 3)
codes = st.sampled_from([0, 1, 2, 127, 137, 143, 255])


class Worlds(RuleBasedStateMachine):
    engine: MemoryEngine
    final_code: int

    @initialize(
        workers=st.integers(0, 3),
        restart=st.sampled_from(list(RestartPolicy)),
        limit=st.sampled_from([None, 0, 1, 3]),
        elastic=st.booleans(),
        clean=st.sampled_from(list(CleanPodPolicy)),
        ttl=st.sampled_from([None, 0, 60]),
        deadline=st.sampled_from([None, 300]),
        keeps=st.booleans(),
        slow=st.booleans(),
        holds=st.booleans(),
        creation=st.sampled_from(list(LauncherCreation)),
        final_code=codes,
    )
    def begin(
        self,
        workers: int,
        restart: RestartPolicy,
        limit: int | None,
        elastic: bool,
        clean: CleanPodPolicy,
        ttl: int | None,
        deadline: int | None,
        keeps: bool,
        slow: bool,
        holds: bool,
        creation: LauncherCreation,
        final_code: int,
    ) -> None:
        job = a_job(
            workers=workers,
            restart=restart,
            elastic=elastic and workers > 0,
            backoff_limit=limit,
            clean_pod_policy=clean,
            ttl_seconds_after_finished=ttl,
            active_deadline_seconds=deadline,
        )
        job = replace(job, launcher_creation=creation)
        holds = holds and creation is LauncherCreation.AT_STARTUP
        self.engine = MemoryEngine(job, keeps_idle_members=keeps, slow_deletion=slow, launcher_holds=holds)
        self.final_code = final_code

    # -- the crank --------------------------------------------------------------------------------
    @rule()
    def turn(self) -> None:
        if not self.engine.deleted:
            self.engine.turn()

    @rule(after=st.integers(0, 6))
    def crash(self, after: int) -> None:
        if not self.engine.deleted:
            self.engine.turn(crash_after=after)

    @rule()
    def some_turns(self) -> None:
        for _ in range(4):
            self.turn()

    @rule()
    def bring_up(self) -> None:
        """Straight to a running job, where most of the trouble lies."""
        for _ in range(3):
            self.all_up()
            self.turn()

    @rule(code=codes, pause=st.sampled_from([0, 400]))
    def run_and_end(self, code: int, pause: float) -> None:
        """Straight to the end of an attempt, and perhaps past its back-off."""
        self.bring_up()
        self.engine.launcher_ends(code)
        self.some_turns()
        self.engine.advance(pause)
        self.turn()

    @rule()
    def wait_and_turn(self) -> None:
        """What the loop does: it looks again when it was told to."""
        plan = self.engine.last_plan
        if plan is not None and plan.look_again_in is not None:
            self.engine.now += plan.look_again_in
        self.turn()

    # -- the world --------------------------------------------------------------------------------
    @rule(index=indices, ready=st.booleans())
    def worker_up(self, index: int, ready: bool) -> None:
        self.engine.worker_up(index, ready=ready)

    @rule()
    def all_up(self) -> None:
        for index in list(self.engine.workers):
            self.engine.worker_up(index)
        self.engine.launcher_up()

    @rule(index=indices, reason=st.sampled_from(["", "Evicted", "HostLost"]))
    def worker_dies(self, index: int, reason: str) -> None:
        self.engine.worker_dies(index, reason)

    @rule(index=indices)
    def worker_vanishes(self, index: int) -> None:
        self.engine.workers.pop(index, None)

    @rule(code=codes)
    def launcher_ends(self, code: int) -> None:
        self.engine.launcher_ends(code)

    @rule()
    def launcher_vanishes(self) -> None:
        self.engine.launcher_vanishes()

    @rule()
    def launcher_gives_up(self) -> None:
        self.engine.launcher_gives_up()

    @rule()
    def launcher_is_replaced(self) -> None:
        self.engine.launcher_is_replaced()

    @rule()
    def pods_vanish_while_the_launcher_waits(self) -> None:
        launcher = self.engine.launcher
        if launcher is not None and launcher.phase is Phase.PENDING:
            self.engine.workers.clear()

    @rule()
    def settle(self) -> None:
        self.engine.settle()

    @rule(seconds=st.sampled_from([0.1, 3, 11, 61, 400]))
    def clock(self, seconds: float) -> None:
        self.engine.advance(seconds)

    @rule(room=st.booleans())
    def room(self, room: bool) -> None:
        self.engine.admission = Admission() if room else NO_ROOM

    # -- the user ---------------------------------------------------------------------------------
    @precondition(lambda self: self.engine.job.worker is not None)
    @rule(replicas=st.integers(1, 4))
    def scale(self, replicas: int) -> None:
        job = self.engine.job
        assert job.worker is not None
        worker = replace(job.worker, replicas=replicas)
        self.engine.job = replace(job, worker=worker, generation=job.generation + 1)

    @rule(suspend=st.booleans())
    def suspend(self, suspend: bool) -> None:
        self._suspend(suspend)

    @rule(sure=st.sampled_from([False, False, False, True]))
    def stop(self, sure: bool) -> None:
        self.engine.stop_requested = self.engine.stop_requested or sure

    def _suspend(self, suspend: bool) -> None:
        job = self.engine.job
        policy = replace(job.run_policy, suspend=suspend)
        self.engine.job = replace(job, run_policy=policy, generation=job.generation + 1)

    # -- what always holds -------------------------------------------------------------------------
    @invariant()
    def the_status_is_coherent(self) -> None:
        status = self.engine.status
        types = [c.type for c in status.conditions]
        assert len(types) == len(set(types))
        assert not (status.is_true(names.SUCCEEDED) and status.is_true(names.FAILED))
        assert status.finished == (status.completion_time is not None)
        if status.completion_time is not None:
            assert not any(status.is_true(t) for t in (names.RUNNING, names.RESTARTING, names.QUEUED))
            assert all(a.outcome for a in status.attempts)
            assert all(c.since <= status.completion_time for c in status.conditions)
        if status.is_true(names.FAILED):
            assert status.cause is not None
            assert "\n" not in status.cause.summary
        if status.is_true(names.SUSPENDED) and not status.finished:
            assert status.start_time is None
            assert all(a.outcome for a in status.attempts)
        numbers = [a.number for a in status.attempts]
        assert numbers == sorted(set(numbers))
        assert sum(a.outcome == "Failed" for a in status.attempts) <= retry.limit(self.engine.job) + 1
        assert sum(not a.outcome for a in status.attempts) <= 1

    @invariant()
    def attempts_that_never_began_are_not_counted(self) -> None:
        status = self.engine.status
        assert status.launcher.failed == sum(a.outcome == "Failed" for a in status.attempts)
        for attempt in status.attempts:
            if attempt.outcome == "NotStarted":
                assert attempt.cause is not None
                assert not attempt.launcher or self.engine.served.get(attempt.number) != attempt.launcher

    @invariant()
    def no_attempt_is_served_by_two(self) -> None:
        """Success is only ever that of the launcher which first ran the attempt's command."""
        for attempt in self.engine.status.attempts:
            if attempt.outcome == "Succeeded" and attempt.launcher:
                assert self.engine.served[attempt.number] == attempt.launcher

    @invariant()
    def a_world_that_rests_gets_a_status_that_rests(self) -> None:
        """The verdict on an attempt and what follows from it are two turns; a third has nothing to add."""
        seen = self.engine.observe()
        for _ in range(2):
            plan = reconcile(self.engine.job, seen, self.engine.now)
            if plan.actions:
                return
            seen = replace(seen, status=plan.status)
        again = reconcile(self.engine.job, seen, self.engine.now)
        if not again.actions:
            assert again.status == seen.status
            assert again.events == ()

    def teardown(self) -> None:
        engine = getattr(self, "engine", None)
        if engine is None:
            return
        engine.admission = Admission()
        self._suspend(False)
        engine.run(code=self.final_code)
        if engine.deleted:
            return
        assert engine.status.finished, "every job of finite work ends"
        self.the_status_is_coherent()
        self.what_is_left_may_stay()

    def what_is_left_may_stay(self) -> None:
        engine, policy = self.engine, self.engine.job.run_policy
        assert engine.launcher is None or engine.launcher.phase.ended
        assert all(index < engine.job.workers for index in engine.workers)
        if policy.clean_pod_policy is CleanPodPolicy.ALL:
            assert not engine.workers
            assert engine.launcher is None
        if policy.clean_pod_policy is CleanPodPolicy.RUNNING or not engine.keeps_idle_members:
            assert all(w.phase.ended for w in engine.workers.values())
        if not engine.keeps_idle_members:
            assert not engine.prepared
        failed = engine.status.condition(names.FAILED)
        if failed is not None and failed.reason in (names.REASON_STOPPED, names.REASON_DEADLINE):
            assert all(w.phase is not Phase.RUNNING for w in engine.workers.values())


Worlds.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWorlds = Worlds.TestCase
