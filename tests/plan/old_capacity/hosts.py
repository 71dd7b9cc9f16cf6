"""Who may start on several hosts, and where: whole gangs only, each member on one machine.

The queue is that of one machine (`gang.in_turn`): by priority, then by how long a job has waited; small jobs may pass
large ones until those have waited `PATIENCE`. A worker needs its slots, or its CPUs where it asks for more of them, its
memory and its GPUs on one machine. Slots are what the inventory says: a worker that wants more than any host has never
starts, unless it oversubscribes. A machine that is left out counts as one that may come back: a job that needs it
waits, holds nobody else up, and is told why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.job.role import Role
from tests.plan.old_capacity.gang import Capacity, Decision, Request, gpus_of, in_turn, request_of, sum_of
from tests.plan.old_capacity.placement import NOTHING, Gang, Machine, Spot, place, place_workers, plus, times, total
from tests.plan.old_capacity.reasons import never, no_more, short

_ASKED = tuple(
    known.name for known in fields(Gang) if known.name not in ("key", "priority", "waited", "launcher", "workers")
)
__all__ = ["Fit", "Gang", "Machine", "Placed", "admit", "extend", "fit", "gang_of", "holds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A job that has its places."""

    gang: Gang
    placement: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a job could start at once, could start later, or never could; and where it would."""

    now: bool
    ever: bool
    reason: str = ""  # empty if it fits now
    wanted: Capacity
    free: Capacity
    total: Capacity
    placement: tuple[Place, ...] = ()


def gang_of(job: Job, now: datetime) -> Gang:
    """What a job asks for, member by member."""
    asked = request_of(job, now)
    apart = job.run_launcher_as_worker or not job.workers
    launcher = _need(job.launcher, job.slots_per_worker if apart else 0)
    worker = _need(job.worker, job.slots_per_worker) if job.worker is not None else NOTHING
    whole = plus(launcher, times(worker, job.workers))
    queued = {known.name: getattr(asked, known.name) for known in fields(Request)}
    return Gang(
        **{**queued, "cpus": whole.cpus, "memory": whole.memory, "gpus": whole.gpus},
        launcher=job.launcher_host,
        workers=tuple(job.worker_host(i) for i in range(job.workers)),
        worker_need=worker,
        launcher_need=launcher,
        launcher_apart=apart,
        selector=_selector(job.worker),
        launcher_selector=_selector(job.launcher),
        spread=job.annotation(names.ANNOTATION_PLACEMENT) == "node",
    )


def holds(job: Placed) -> Mapping[str, Capacity]:
    """What a job has of each machine."""
    held: dict[str, Capacity] = {}
    for seat in job.placement:
        need = job.gang.counted(job.gang.need_of(seat.member))
        held[seat.machine] = plus(held.get(seat.machine, NOTHING), need)
    return held


def admit(waiting: Sequence[Gang], running: Sequence[Placed], machines: Sequence[Machine]) -> list[Decision]:
    """One decision per waiting job, in the order of the queue."""
    return in_turn(waiting, _Hosts(machines, running))


def fit(asked: Gang, waiting: Sequence[Gang], running: Sequence[Placed], machines: Sequence[Machine]) -> Fit:
    """What would become of one more job, behind those that wait."""
    asked = replace(asked, key="")  # no job has this one
    answers = {decision.key: decision.admission for decision in admit([*waiting, asked], running, machines)}
    hosts = _Hosts(machines, running)
    answer = answers[asked.key]
    return Fit(
        now=answer.admitted,
        ever=not answer.impossible,
        reason=answer.reason,
        wanted=Capacity(cpus=asked.cpus, memory=asked.memory, gpus=asked.gpus),
        free=total(_at_least_nothing(spot.free) for spot in hosts.usable()),
        total=total(spot.machine.capacity for spot in hosts.usable()),
        placement=answer.placement,
    )


def extend(placement: Sequence[Place], gang: Gang, others: Sequence[Placed], machines: Sequence[Machine]) -> Admission:
    """The places of a running job whose number of workers was changed; `others` are all other jobs that run.

    New workers all get a place, or none does and the reason is told; workers that are too many, those with the highest
    numbers, lose theirs. Nobody is moved.
    """
    known = {gang.launcher, *gang.workers}
    kept = tuple(seat for seat in placement if seat.member in known)
    placed = {seat.member for seat in kept}
    missing = [member for member in gang.workers if member not in placed]
    hosts = _Hosts(machines, [*others, Placed(gang=gang, placement=kept)])
    own = Counter(seat.machine for seat in kept if seat.member != gang.launcher or gang.launcher_apart)
    spots = [replace(spot, own=own[spot.machine.name]) for spot in hosts.usable()]
    found = place_workers(gang, missing, spots)
    if found is None:
        reason = no_more(gang, len(missing), hosts.spots(), hosts.holdings)
        return Admission(admitted=False, placement=kept, reason=reason)
    return Admission(placement=(*kept, *found))


class _Hosts:
    """The machines while a queue is gone through, and who has what of them."""

    def __init__(self, machines: Sequence[Machine], running: Sequence[Placed]) -> None:
        self.machines = machines
        self.holdings: dict[str, list[tuple[Capacity, Gang]]] = {}
        self._spots = {machine.name: Spot(machine=machine, free=machine.at_best) for machine in machines}
        self._found: dict[str, tuple[Place, ...]] = {}
        self._never: dict[object, str | None] = {}  # by how many machines there are, and what is asked of them
        self._short: dict[object, str] = {}  # by what is asked, until somebody takes something
        for job in running:
            self._add(job)

    def impossible(self, asker: Gang) -> str | None:
        return self._never_on(self.machines, asker)

    def short_of(self, asker: Gang) -> str | None:
        known = _all_but_who(asker)
        if known in self._short:
            return self._short[known]
        found = place(asker, self.usable())
        if found is None:
            return self._short.setdefault(known, short(asker, self.spots(), self.holdings))
        self._found[asker.key] = found
        return None

    def gathers(self, asker: Gang) -> bool:
        return self._never_on([machine for machine in self.machines if not machine.left_out], asker) is None

    def _never_on(self, machines: Sequence[Machine], asker: Gang) -> str | None:
        """Queues are long because many jobs ask for the same: that is gone through once."""
        known = (len(machines), _all_but_who(asker))
        if known not in self._never:
            self._never[known] = never(asker, machines)
        return self._never[known]

    def take(self, asker: Gang) -> Admission:
        placement = self._found[asker.key]
        self._add(Placed(gang=asker, placement=placement))
        return Admission(placement=placement)

    def spots(self) -> list[Spot]:
        return list(self._spots.values())

    def usable(self) -> list[Spot]:
        return [spot for spot in self._spots.values() if not spot.machine.left_out]

    def _add(self, job: Placed) -> None:
        self._short.clear()
        for machine, held in holds(job).items():
            self.holdings.setdefault(machine, []).append((held, job.gang))
        for seat in job.placement:
            spot = self._spots.get(seat.machine)  # None: it is no longer in the inventory
            if spot is not None:
                self._spots[seat.machine] = spot.holding(job.gang, job.gang.need_of(seat.member))


def _all_but_who(gang: Gang) -> tuple[object, ...]:
    """The same for all to whom the same machines have the same to say."""
    asked = [getattr(gang, name) for name in _ASKED]
    return (len(gang.workers), *(tuple(sorted(a.items())) if isinstance(a, Mapping) else a for a in asked))


def _need(role: Role, slots: int) -> Capacity:
    """Slots are processes, so a member takes as many as it may start; more, if it asks for more CPUs than that."""
    cpus = max(sum_of(role, "cpu"), Decimal(slots))
    return Capacity(cpus=cpus, memory=sum_of(role, "memory"), gpus=gpus_of(role))


def _selector(role: Role | None) -> Mapping[str, str]:
    """Labels that a machine must have, from the pod template."""
    asked = ((role.template.get("spec") or {}).get("nodeSelector") or {}) if role is not None else {}
    return {str(label): str(value) for label, value in asked.items()}


def _at_least_nothing(free: Capacity) -> Capacity:
    return Capacity(cpus=max(free.cpus, Decimal(0)), memory=max(free.memory, Decimal(0)), gpus=max(free.gpus, 0))
