"""An engine that exists in memory alone: a small world that obeys plans and can be harmed.

It checks, with every action, what must never happen. Deletions take effect at once or leave the member
terminating until `settle`, as Kubernetes does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Exit, Member, Observed, Phase
from oarsman.job.state import Status
from oarsman.plan.actions import (
    Action,
    CreateLauncher,
    CreateWorker,
    DeleteJob,
    DeleteLauncher,
    DeleteWorker,
    Dismantle,
    Event,
    Plan,
    Prepare,
    PublishHosts,
)
from oarsman.plan.reconcile import reconcile
from tests.builders import T0, a_launcher, a_worker


@dataclass
class MemoryEngine:
    job: Job
    keeps_idle_members: bool = True
    slow_deletion: bool = False
    launcher_holds: bool = False  # as on Kubernetes: made early, Pending until its workers answer
    now: datetime = T0
    status: Status = field(default_factory=Status)
    workers: dict[int, Member] = field(default_factory=dict)
    launcher: Member | None = None
    published: tuple[str, ...] | None = None
    prepared: bool = False
    admission: Admission = field(default_factory=Admission)
    stop_requested: bool = False
    deleted: bool = False
    work_done: bool = False  # a launcher has ended well and has not been harmed since
    events: list[Event] = field(default_factory=list)
    last_plan: Plan | None = None
    launchers_made: int = 0
    served: dict[int, str] = field(default_factory=dict)  # attempt -> the launcher that ran its command

    def observe(self) -> Observed:
        return Observed(
            status=self.status,
            workers=tuple(self.workers[i] for i in sorted(self.workers)),
            launcher=self.launcher,
            published_hosts=self.published,
            prepared=self.prepared,
            admission=self.admission,
            stop_requested=self.stop_requested,
            keeps_idle_members=self.keeps_idle_members,
            launcher_holds=self.launcher_holds,
        )

    def turn(self, *, crash_after: int | None = None) -> Plan:
        """One turn. `crash_after`: the engine dies after that many actions, before the status is written."""
        plan = reconcile(self.job, self.observe(), self.now)
        self.last_plan = plan
        for action in plan.actions if crash_after is None else plan.actions[:crash_after]:
            self.apply(action)
        if crash_after is None:
            self._write(plan)
        return plan

    def _write(self, plan: Plan) -> None:
        if self.status.finished:
            assert plan.status.is_true("Succeeded") == self.status.is_true("Succeeded"), "an end is final"
            assert plan.status.completion_time == self.status.completion_time
        self.status = plan.status
        self.events += plan.events

    # -- actions ----------------------------------------------------------------------------------
    def apply(self, action: Action) -> None:
        match action:
            case Prepare():
                self.prepared = True
            case CreateWorker(index):
                self._create_worker(index)
            case DeleteWorker(index):
                self._delete_worker(index)
            case CreateLauncher(attempt):
                self._create_launcher(attempt)
            case DeleteLauncher(attempt):
                self._delete_launcher(attempt)
            case PublishHosts(hosts):
                assert self.prepared, "hosts are published into what was prepared"
                self.published = hosts
            case Dismantle():
                assert not self.living, "what is in use is not dismantled"
                self.prepared, self.published = False, None
            case DeleteJob():
                assert self.status.finished, "only a finished job is deleted"
                self.deleted = True

    def _create_worker(self, index: int) -> None:
        assert not self.status.finished, "a finished job never starts again"
        assert not self.job.run_policy.suspend, "a suspended job gets no workers"
        assert self.prepared, "prepared before anything is created"
        assert index not in self.workers, "a number is free before it is used again"
        assert index < self.job.workers, "no more workers than asked for"
        self.workers[index] = a_worker(index, Phase.PENDING)

    def _delete_worker(self, index: int) -> None:
        if not self.status.finished:
            host = self.job.worker_host(index)
            assert host not in (self.published or ()), f"{host} is deleted while it is published"
        left = self._ending(self.workers.pop(index, None))
        if left is not None:
            self.workers[index] = left

    def _create_launcher(self, attempt: int) -> None:
        assert not self.status.finished, "a finished job never starts again"
        assert not self.job.run_policy.suspend, "a suspended job gets no launcher"
        assert self.launcher is None, "never two launchers"
        assert self.prepared
        assert not self.work_done, "work that is done is not done again"
        known = {a.number for a in self.status.attempts}
        assert attempt not in known, "an attempt on record is never started a second time"
        usable = {w.name for w in self.workers.values() if w.phase is Phase.RUNNING and w.ready and not w.terminating}
        if self.launcher_holds:
            coming = {w.name for w in self.workers.values() if not w.phase.ended and not w.terminating}
            assert self.published == self.job.hosts, "one that waits finds the complete list"
            assert set(self.published) <= coming | {self.job.launcher_host}, "no host has to go away first"
        else:
            dead = set(self.published or ()) - usable - {self.job.launcher_host}
            assert not dead, f"published but not usable: {dead}"
        self.launcher = self._new_launcher(attempt)

    def _new_launcher(self, attempt: int) -> Member:
        self.launchers_made += 1
        instance = f"pi-launcher-{self.launchers_made}" if self.launcher_holds else ""
        return a_launcher(Phase.PENDING, attempt=attempt, instance=instance)

    def _delete_launcher(self, attempt: int) -> None:
        launcher, policy = self.launcher, self.job.run_policy
        if launcher is None:
            return
        assert launcher.attempt == attempt
        closed = {a.number for a in self.status.attempts if a.outcome}
        start, seconds = self.status.start_time, policy.active_deadline_seconds
        late = start is not None and seconds is not None and self.now >= start + timedelta(seconds=seconds)
        asked = policy.suspend or self.stop_requested or late or self.status.finished
        assert asked or attempt in closed, "a launcher goes when someone asked, or its attempt is on record as over"
        self.launcher = self._ending(launcher)

    def _ending(self, member: Member | None) -> Member | None:
        if member is None or not self.slow_deletion:
            return None
        return replace(member, terminating=True, ready=False)

    # -- the world --------------------------------------------------------------------------------
    @property
    def living(self) -> list[Member]:
        members = [*self.workers.values(), *((self.launcher,) if self.launcher else ())]
        return [m for m in members if not m.phase.ended]

    def settle(self) -> None:
        """What was terminating is gone."""
        self.workers = {i: w for i, w in self.workers.items() if not w.terminating}
        if self.launcher is not None and self.launcher.terminating:
            self.launcher_vanishes()

    def worker_up(self, index: int, *, ready: bool = True) -> None:
        worker = self.workers.get(index)
        if worker is not None and not worker.phase.ended and not worker.terminating:
            self.workers[index] = replace(worker, phase=Phase.RUNNING, ready=ready)

    def worker_dies(self, index: int, reason: str = "") -> None:
        worker = self.workers.get(index)
        if worker is not None and not worker.phase.ended:
            ended = replace(worker, phase=Phase.FAILED, ready=False, reason=reason, finished_at=self.now)
            self.workers[index] = replace(ended, exit=Exit(code=1))

    def launcher_up(self) -> None:
        """Its command begins; one that holds waits until every worker answers."""
        if self.launcher is None or self.launcher.phase is not Phase.PENDING or self.launcher.terminating:
            return
        if self.launcher_holds and not self.all_answer:
            return
        self.launcher = replace(self.launcher, phase=Phase.RUNNING, started_at=self.now)
        self.served.setdefault(self.launcher.attempt, self.launcher.instance)

    @property
    def all_answer(self) -> bool:
        found = [self.workers.get(i) for i in range(self.job.workers)]
        return all(w is not None and w.phase is Phase.RUNNING and w.ready and not w.terminating for w in found)

    def launcher_gives_up(self) -> None:
        """The barrier inside has lost its patience."""
        if self.launcher_holds and self.launcher is not None and self.launcher.phase is Phase.PENDING:
            if self.launcher.terminating or not self.job.workers:
                return
            failed = replace(self.launcher, phase=Phase.FAILED, finished_at=self.now, reason=names.REASON_BARRIER)
            self.launcher = replace(failed, message="pi-worker-0: connection refused (waited 300 s)")

    def launcher_is_replaced(self) -> None:
        """A controller of the cluster's puts another in the place of one that went."""
        old = self.launcher
        if not self.launcher_holds or old is None or old.phase.ended or old.terminating:
            return
        noticed = any(a.launcher == old.instance for a in self.status.attempts)
        if old.phase is Phase.PENDING or noticed:  # one that ran and went unseen nobody can know of
            self.launcher = self._new_launcher(old.attempt)

    def launcher_ends(self, code: int) -> None:
        if self.launcher is not None and self.launcher.phase is Phase.RUNNING:
            phase = Phase.FAILED if code else Phase.SUCCEEDED
            exit_ = Exit(code=code, signal=code - 128 if 128 < code < 192 else None)
            closed = {a.number for a in self.status.attempts if a.outcome}
            first = self.served.get(self.launcher.attempt) == self.launcher.instance
            self.work_done = code == 0 and self.launcher.attempt not in closed and first
            self.launcher = replace(self.launcher, phase=phase, exit=exit_, finished_at=self.now)

    def launcher_vanishes(self) -> None:
        self.launcher, self.work_done = None, False

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # -- to the end -------------------------------------------------------------------------------
    def run(self, *, code: int = 0, turns: int = 400) -> None:
        """Let time pass in a world where everything works (but the launcher may end with `code`), until it rests."""
        for _ in range(turns):
            if self.deleted:
                return
            before = (self.status, dict(self.workers), self.launcher, self.published)
            self.settle()
            for index in list(self.workers):
                self.worker_up(index)
            if self.launcher is not None and self.launcher.phase is Phase.RUNNING:
                self.launcher_ends(code)
            self.launcher_up()
            plan = self.turn()
            resting = not plan.actions and before == (self.status, self.workers, self.launcher, self.published)
            if resting and plan.look_again_in is None:
                return
            wait = plan.look_again_in if resting and plan.look_again_in else timedelta(milliseconds=10)
            self.now += wait
        raise AssertionError(f"still not at rest: {self.status.phase} {self.last_plan}")
