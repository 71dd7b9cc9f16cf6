"""Who may start on this machine and on SSH hosts, kept up to date job by job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from oarsman import names
from oarsman.control.environments import NOTHING, Attaching
from oarsman.engines.contract import Assignment
from oarsman.errors import OarsmanError
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.plan.capacity import one_machine, queue
from oarsman.plan.capacity.gang import Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.capacity.queue import SiteRules
from oarsman.plan.reconcile import not_before
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman")
_AGAIN_SECONDS = 10.0  # between two looks at hosts that a job waits for


class Facts(Protocol):
    """What is known of the machines of one inventory. Hosts have to be asked first, and may not answer."""

    @property
    def fresh(self) -> bool: ...
    @property
    def troubles(self) -> Mapping[str, object]: ...
    def machines(self) -> Sequence[Machine]: ...
    async def look(self) -> None: ...


@dataclass(eq=False)
class AdmissionControl:
    """Decides only when something changed, and tells which jobs that concerns."""

    site: SiteRules
    facts_of: Callable[[str], Facts]  # the machines of an inventory
    concerned: Callable[[str], None]
    placed: Callable[[Job], Mapping[str, str]]  # where the members of a job were, when it was last prepared
    environments: Attaching | None = None  # which jobs may have to wait for

    def __post_init__(self) -> None:
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, tuple[Job, tuple[Place, ...]]] = {}
        self._decisions: dict[str, Admission] = {}
        self._stale: set[str] = set()  # inventories for which the decisions may be others now
        self._looking: dict[str, asyncio.Task[None]] = {}  # by inventory

    def hold(self, job: Job) -> None:
        self._waiting.pop(job.uid, None)
        places = tuple(Place(member=member, machine=machine) for member, machine in self.placed(job).items())
        self._running[job.uid] = job, places

    @property
    def holders(self) -> tuple[str, ...]:
        """The uids of the jobs that have room."""
        return tuple(self._running)

    def release(self, uid: str) -> None:
        self._decisions.pop(uid, None)
        if self._running.pop(uid, None) is not None or self._waiting.pop(uid, None) is not None:
            self._reconsider()

    async def admit(self, assignment: Assignment, now: datetime) -> Assignment:
        """With room, if there is some, and in its environment. Whoever waits for an environment, or whom a policy
        delays, asks for none."""
        job, environments = assignment.job, self.environments
        asking = not (assignment.status.finished or job.run_policy.suspend or not_before(job, assignment.status, now))
        attached = environments.of(job) if environments is not None else NOTHING
        if attached.admission is not None and assignment.status.start_time is None:
            self.release(job.uid)
        elif asking:
            assignment = replace(assignment, admission=self.ask(job, now))
            if environments is not None and attached.tree is not None and assignment.admission.admitted:
                attached = await asyncio.to_thread(environments.keep, job)
        if attached.admission is not None and asking:
            assignment = replace(assignment, admission=attached.admission)
        return attached.equip(assignment)

    def ask(self, job: Job, now: datetime) -> Admission:
        inventory = _inventory(job)
        try:
            facts = self.facts_of(inventory)
            if job.uid in self._running:
                return self._again(job, facts, now)
            if self._waiting.get(job.uid) != job:
                self._waiting[job.uid] = job
                self._stale.add(inventory)
            if not facts.fresh and not (self._decisions.get(job.uid) and facts.troubles):
                self._look(inventory, facts)
                return self._decisions.get(job.uid) or _waits(Text("its hosts are being asked"))
            if inventory in self._stale:
                self._decide(inventory, facts, now)
        except OarsmanError as error:
            return _waits(error.message)
        if job.uid in self._running:
            return self._admitted(job.uid)
        return self._decisions.get(job.uid, Admission(admitted=False))

    def _again(self, job: Job, facts: Facts, now: datetime) -> Admission:
        """A job that runs keeps its places; one that was scaled gets more, or gives some back."""
        before, places = self._running[job.uid]
        if before == job:
            return self._admitted(job.uid)
        machines = facts.machines()
        others = self._placed_jobs(now, machines, but=job.uid)
        answer = queue.extend(places, self.site.gang_of(job, now, machines), others, machines)
        if not answer.admitted:
            return self._admitted(job.uid, reason=answer.reason)
        self._running[job.uid] = job, answer.placement
        self._reconsider()
        return self._admitted(job.uid)

    def _admitted(self, uid: str, reason: str = "") -> Admission:
        """On a machine without a name all are together: there is nothing to tell."""
        return Admission(placement=tuple(place for place in self._running[uid][1] if place.machine), reason=reason)

    def _placed_jobs(self, now: datetime, machines: Sequence[Machine], *, but: str = "") -> list[Placed]:
        return [
            Placed(gang=self.site.gang_of(job, now, machines), placement=places)
            for job, places in self._running.values()
            if job.uid != but
        ]

    def _reconsider(self) -> None:
        """One who waits for each inventory asks again: it is decided for all of them then, and others are told if that
        changes something."""
        first = {_inventory(job): uid for uid, job in reversed(self._waiting.items())}
        for inventory, uid in first.items():
            self._stale.add(inventory)
            self.concerned(uid)

    def _decide(self, inventory: str, facts: Facts, now: datetime) -> None:
        """For all who wait for hosts of the same inventory at once."""
        self._stale.discard(inventory)
        rivals = {job.key: job for job in self._waiting.values() if _inventory(job) == inventory}
        machines = facts.machines()
        gangs = [self.site.gang_of(job, now, machines) for job in rivals.values()]
        for decision in queue.admit(gangs, self._placed_jobs(now, machines), machines, self.site):
            uid = rivals[decision.key].uid
            changed = self._decisions.get(uid) != decision.admission
            self._decisions[uid] = decision.admission
            if decision.admission.admitted:
                self._running[uid] = self._waiting.pop(uid), decision.admission.placement
            if changed:
                self.concerned(uid)
        if facts.troubles and any(_inventory(job) == inventory for job in self._waiting.values()):
            self._look(inventory, facts, after=_AGAIN_SECONDS)

    def _look(self, inventory: str, facts: Facts, after: float = 0.0) -> None:
        """Have the hosts asked, once for all who wait for them."""
        if inventory not in self._looking:
            self._looking[inventory] = asyncio.create_task(self._ask_hosts(inventory, facts, after))

    async def _ask_hosts(self, inventory: str, facts: Facts, after: float) -> None:
        await asyncio.sleep(after)
        try:
            await facts.look()
        except Exception:
            log.exception("the hosts of %s could not be asked", inventory)
            await asyncio.sleep(_AGAIN_SECONDS)
        del self._looking[inventory]
        self._stale.add(inventory)
        for uid, job in list(self._waiting.items()):
            if _inventory(job) == inventory:
                self.concerned(uid)


def on_this_machine(
    machine: Machine, concerned: Callable[[str], None], environments: Attaching | None = None
) -> AdmissionControl:
    """It is an inventory of one host, which is never away."""
    return AdmissionControl(
        one_machine,
        lambda _: _Measured(machine),
        concerned,
        lambda job: {job.launcher_host: machine.name},
        environments,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    machine: Machine
    fresh: bool = True
    troubles: Mapping[str, object] = field(default_factory=dict)

    def machines(self) -> Sequence[Machine]:
        return [self.machine]

    async def look(self) -> None:
        """All that there is to know of it was measured."""


def _waits(reason: str) -> Admission:
    return Admission(admitted=False, reason=reason, about=names.REASON_NO_HOSTS)


def _inventory(job: Job) -> str:
    return job.annotation(names.ANNOTATION_INVENTORY)
