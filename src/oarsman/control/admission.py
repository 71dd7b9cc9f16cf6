"""Who may start on this machine and on SSH hosts, kept up to date job by job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from oarsman import names
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.errors import OarsmanError
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.plan.capacity import gang, hosts
from oarsman.plan.capacity.gang import Capacity, request_of
from oarsman.plan.capacity.hosts import Placed, extend, gang_of


class MachineAdmission:
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
        for decision in gang.admit([request_of(job, now) for job in self._waiting.values()], running, self._capacity):
            uid = uids[decision.key]
            self._decisions[uid] = decision.admission
            if decision.admission.admitted:
                self._running[uid] = self._waiting.pop(uid)
            if before.get(uid) != decision.admission:
                self._concerned(uid)


log = logging.getLogger("oarsman")
_AGAIN_SECONDS = 10.0  # between two looks at hosts that a job waits for


class HostAdmission:
    """As on one machine, decides only when something changed and tells which jobs that concerns. But hosts have to be
    asked before anybody can be admitted, and may not answer."""

    def __init__(
        self,
        known_inventories: KnownInventories,
        concerned: Callable[[str], None],
        placed: Callable[[str], Mapping[str, str]],
    ) -> None:
        """placed: where the members of a job were, when it was last prepared."""
        self._known_inventories = known_inventories
        self._concerned = concerned
        self._placed = placed
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, tuple[Job, tuple[Place, ...]]] = {}
        self._decisions: dict[str, Admission] = {}
        self._stale: set[str] = set()  # inventories for which the decisions may be others now
        self._looking: dict[str, asyncio.Task[None]] = {}  # by inventory

    def hold(self, job: Job) -> None:
        """It runs already: found so at start-up."""
        self._waiting.pop(job.uid, None)
        places = tuple(Place(member=member, machine=machine) for member, machine in self._placed(job.uid).items())
        self._running[job.uid] = job, places

    @property
    def holders(self) -> tuple[str, ...]:
        return tuple(self._running)

    def release(self, uid: str) -> None:
        self._decisions.pop(uid, None)
        if self._running.pop(uid, None) is not None or self._waiting.pop(uid, None) is not None:
            self._reconsider()

    def ask(self, job: Job, now: datetime) -> Admission:
        try:
            inventory_facts = self._known_inventories.of(_inventory(job))
            if job.uid in self._running:
                return self._again(job, inventory_facts, now)
            if self._waiting.get(job.uid) != job:
                self._waiting[job.uid] = job
                self._stale.add(_inventory(job))
            if not inventory_facts.fresh and not (self._decisions.get(job.uid) and inventory_facts.troubles):
                self._look(_inventory(job), inventory_facts)
                return self._decisions.get(job.uid) or _waits("its hosts are being asked")
            if _inventory(job) in self._stale:
                self._decide(_inventory(job), inventory_facts, now)
        except OarsmanError as error:
            return _waits(error.message)
        if job.uid in self._running:
            return Admission(placement=self._running[job.uid][1])
        return self._decisions.get(job.uid, Admission(admitted=False))

    def _again(self, job: Job, inventory_facts: InventoryFacts, now: datetime) -> Admission:
        """A job that runs keeps its places; one that was scaled gets more, or gives some back."""
        before, places = self._running[job.uid]
        if before == job:
            return Admission(placement=places)
        answer = extend(places, gang_of(job, now), self._placed_jobs(now, but=job.uid), inventory_facts.machines())
        if not answer.admitted:
            return replace(answer, admitted=True, placement=places)
        self._running[job.uid] = job, answer.placement
        self._reconsider()
        return answer

    def _placed_jobs(self, now: datetime, *, but: str = "") -> list[Placed]:
        return [
            Placed(gang=gang_of(job, now), placement=places) for job, places in self._running.values() if job.uid != but
        ]

    def _reconsider(self) -> None:
        """Whoever waits asks again."""
        for uid, job in self._waiting.items():
            self._stale.add(_inventory(job))
            self._concerned(uid)

    def _decide(self, file: str, inventory_facts: InventoryFacts, now: datetime) -> None:
        """For all who wait for hosts of the same inventory at once."""
        self._stale.discard(file)
        rivals = {job.key: job for job in self._waiting.values() if _inventory(job) == file}
        gangs = [gang_of(job, now) for job in rivals.values()]
        for decision in hosts.admit(gangs, self._placed_jobs(now), inventory_facts.machines()):
            uid = rivals[decision.key].uid
            changed = self._decisions.get(uid) != decision.admission
            self._decisions[uid] = decision.admission
            if decision.admission.admitted:
                self._running[uid] = self._waiting.pop(uid), decision.admission.placement
            if changed:
                self._concerned(uid)
        if inventory_facts.troubles and any(_inventory(job) == file for job in self._waiting.values()):
            self._look(file, inventory_facts, after=_AGAIN_SECONDS)

    def _look(self, file: str, inventory_facts: InventoryFacts, after: float = 0.0) -> None:
        """Have the hosts asked, once for all who wait for them."""
        if file not in self._looking:
            self._looking[file] = asyncio.create_task(self._ask_hosts(file, inventory_facts, after))

    async def _ask_hosts(self, file: str, inventory_facts: InventoryFacts, after: float) -> None:
        await asyncio.sleep(after)
        try:
            await inventory_facts.look()
        except Exception:
            log.exception("the hosts of %s could not be asked", file)
            await asyncio.sleep(_AGAIN_SECONDS)
        del self._looking[file]
        self._stale.add(file)
        for uid, job in list(self._waiting.items()):
            if _inventory(job) == file:
                self._concerned(uid)


def _waits(reason: str) -> Admission:
    return Admission(admitted=False, reason=reason, about=names.REASON_NO_HOSTS)


def _inventory(job: Job) -> str:
    return job.annotation(names.ANNOTATION_INVENTORY)
