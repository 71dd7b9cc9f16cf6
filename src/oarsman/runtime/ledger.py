"""Who has room on this machine, kept up to date job by job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.plan.policies.gang import Capacity, admit, request_of


class Ledger:
    """Decides only when something changed, and tells which jobs that concerns."""

    def __init__(self, capacity: Capacity, concerned: Callable[[str], None]) -> None:
        self._capacity = capacity
        self._concerned = concerned
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, Job] = {}
        self._decisions: dict[str, Admission] = {}
        self._stale = False

    def hold(self, job: Job) -> None:
        """It runs already: found so at start-up."""
        self._waiting.pop(job.uid, None)
        self._running[job.uid] = job

    @property
    def holders(self) -> tuple[str, ...]:
        """The uids of the jobs that have room."""
        return tuple(self._running)

    def ask(self, job: Job, now: datetime) -> Admission:
        if job.uid in self._running:
            changed = self._running[job.uid] != job  # scaled, for one: it may need less than before
            self._running[job.uid] = job
            if changed:
                self._reconsider()
            return Admission()
        if self._waiting.get(job.uid) != job:
            self._waiting[job.uid] = job
            self._stale = True
        if self._stale:
            self._decide(now)
        return self._decisions.get(job.uid, Admission())

    def release(self, uid: str) -> None:
        if self._running.pop(uid, None) is not None or self._waiting.pop(uid, None) is not None:
            self._decisions.pop(uid, None)
            self._reconsider()

    def _reconsider(self) -> None:
        """Whoever waits asks again."""
        self._stale = True
        for waiting in self._waiting:
            self._concerned(waiting)

    def _decide(self, now: datetime) -> None:
        self._stale = False
        uids = {job.key: uid for uid, job in self._waiting.items()}
        before = dict(self._decisions)
        running = [request_of(job, now) for job in self._running.values()]
        for decision in admit([request_of(job, now) for job in self._waiting.values()], running, self._capacity):
            uid = uids[decision.key]
            self._decisions[uid] = decision.admission
            if decision.admission.admitted:
                self._running[uid] = self._waiting.pop(uid)
            if before.get(uid) != decision.admission:
                self._concerned(uid)
