"""Who may start, across jobs: a gang gets room for all its members at once, or it waits.

Half a gang is worth nothing and blocks others, so launcher and workers are admitted together. Jobs are looked at by
priority, then by how long they have waited. A job that does not fit is passed over and a later one that fits may start
in the room that is left, as long as nobody passed over has waited `PATIENCE` or more. From then on nothing starts
behind the one that waits, so room gathers for it: large jobs start late, but they start.

Whoever is far from the head of the queue is told just that. Its place and the holders change whenever somebody leaves,
and to write that down for all who wait is work that grows with the square of the queue; nobody there starts soon. The
place is counted when somebody asks for the queue.

A machine that is left out counts as one that may come back: a job that needs it waits, holds nobody else up, and is
told why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.plan.capacity import hosts
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Gang, Placed, Share
from oarsman.plan.capacity.placement import Machine, Spot, emptied, fits, place, place_workers
from oarsman.text.sentence import Text

PATIENCE: Final = timedelta(minutes=10)
NEAR: Final = 10  # places from the head of the queue for which each change is told


class SiteRules(Protocol):
    """What differs between places that jobs are started on: the modules `one_machine` and `hosts`."""

    def gang_of(self, job: Job, now: datetime, machines: Sequence[Machine], /) -> Gang:
        """What a job asks for."""

    def never(self, gang: Gang, empty: Sequence[Spot], /) -> str:
        """Why it would not fit even if nothing else ran."""

    def short(self, gang: Gang, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]], /) -> str:
        """Why it does not fit now, although it may one day. `spots` are all machines, also those left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    key: str
    admission: Admission


def admit(
    waiting: Iterable[Gang], running: Iterable[Placed], machines: Sequence[Machine], site: SiteRules
) -> list[Decision]:
    """One decision per waiting job, in the order of the queue."""
    room = Room(machines, running, site)
    decisions: list[Decision] = []
    blocker: Gang | None = None  # passed over, and has waited long enough
    position = 0
    for gang in sorted(waiting, key=lambda gang: (-gang.priority, -gang.waited, gang.key)):
        impossible = room.impossible(gang)
        found = None if impossible else room.found(gang)
        if impossible:
            about = names.REASON_NEVER_FITS
            admission = Admission(admitted=False, impossible=True, reason=impossible, about=about)
        elif blocker is None and found is not None:
            room.take(Placed(gang=gang, placement=found))
            admission = Admission(placement=found)
        else:
            position += 1
            gathers = room.gathers(gang)
            if gathers and position > NEAR:
                admission = Admission(admitted=False, reason=Text("at least {n} jobs are before it", n=NEAR))
            else:
                reason = room.short_of(gang) if found is None else _behind(gang, blocker)
                about = names.REASON_WAITING if gathers else room.away(gang)
                admission = Admission(admitted=False, position=position, reason=reason, about=about)
            if blocker is None and gang.waited >= PATIENCE and gathers:
                blocker = gang
        decisions.append(Decision(key=gang.key, admission=admission))
    return decisions


def preview(
    gang: Gang, waiting: Iterable[Gang], running: Iterable[Placed], machines: Sequence[Machine], site: SiteRules
) -> Admission:
    """What would become of one more job, behind those that wait."""
    asked = replace(gang, key="")  # no job has this one
    decisions = admit([*waiting, asked], running, machines, site)
    return next(decision.admission for decision in decisions if decision.key == asked.key)


def extend(placement: Sequence[Place], gang: Gang, others: Iterable[Placed], machines: Sequence[Machine]) -> Admission:
    """The places of a running job whose number of workers was changed; `others` are all other jobs that run.

    New workers all get a place, or none does and the reason is told; workers that are too many, those with the highest
    numbers, lose theirs. Nobody is moved.
    """
    known = {gang.launcher, *gang.workers}
    kept = tuple(seat for seat in placement if seat.member in known)
    placed = {seat.member for seat in kept}
    missing = [member for member in gang.workers if member not in placed]
    room = Room(machines, [*others, Placed(gang=gang, placement=kept)])
    own = Counter(seat.machine for seat in kept if seat.member != gang.launcher or gang.launcher_apart)
    found = place_workers(gang, missing, [replace(spot, own=own[spot.machine.name]) for spot in room.usable()])
    if found is None:
        reason = hosts.no_more(gang, len(missing), room.spots(), room.shares)
        return Admission(admitted=False, placement=kept, reason=reason)
    return Admission(placement=(*kept, *found))


def room_left(running: Iterable[Placed], machines: Sequence[Machine]) -> tuple[Capacity, Capacity]:
    """What is free on the machines that can be used, and all that they have."""
    usable = Room(machines, running).usable()
    return total(spot.free.at_least_nothing for spot in usable), total(spot.machine.capacity for spot in usable)


def _behind(asker: Gang, blocker: Gang | None) -> str:
    assert blocker is not None
    who = blocker.key if asker.may_name(blocker.owner) else Text("another user's job")
    minutes = int(blocker.waited.total_seconds() // 60)
    return Text("waits behind {who}, which has waited {minutes} min", who=who, minutes=minutes)


class Room:
    """The machines while a queue is gone through, and who has what of them.

    Queues are long because many jobs ask for the same: that is gone through once.
    """

    def __init__(self, machines: Sequence[Machine], running: Iterable[Placed], site: SiteRules = hosts) -> None:
        self.shares: dict[str, list[Share]] = {}  # by machine
        self._site = site
        self._empty = emptied(machines)
        pairs = zip(machines, self._empty, strict=True)
        self._spots = {machine.name: Spot(machine=machine, free=best.free) for machine, best in pairs}
        self._never: dict[object, str] = {}  # by how many machines there are, and what is asked of them
        self._short: dict[object, str] = {}  # by what is asked, until somebody takes something
        for job in running:
            self.take(job)

    def take(self, job: Placed) -> None:
        self._short.clear()
        for machine, held in job.holds().items():
            share = Share(key=job.gang.key, owner=job.gang.owner, amounts=held)
            self.shares.setdefault(machine, []).append(share)
        for seat in job.placement:
            spot = self._spots.get(seat.machine)  # None: it is no longer in the inventory
            if spot is not None:
                self._spots[seat.machine] = spot.holding(job.gang, job.gang.need_of(seat.member))

    def impossible(self, gang: Gang) -> str:
        """Why it can never fit; empty if it can."""
        return self._never_on(self._empty, gang)

    def gathers(self, gang: Gang) -> bool:
        """Whether room for it gathers while nothing else starts."""
        return not self._never_on([spot for spot in self._empty if not spot.machine.left_out], gang)

    def away(self, gang: Gang) -> str:
        """Whether it waits for hosts that may come back, or for somebody who has to let us in."""
        never = self._never_on([spot for spot in self._empty if not spot.machine.closed], gang)
        return names.REASON_CLOSED if never else names.REASON_NO_HOSTS

    def found(self, gang: Gang) -> tuple[Place, ...] | None:
        """Places for all of it, if it fits now."""
        return None if gang.asked in self._short else place(gang, self.usable())

    def short_of(self, gang: Gang) -> str:
        """Why it does not fit now."""
        if gang.asked not in self._short:
            self._short[gang.asked] = self._site.short(gang, self.spots(), self.shares)
        return self._short[gang.asked]

    def spots(self) -> list[Spot]:
        return list(self._spots.values())

    def usable(self) -> list[Spot]:
        return [spot for spot in self._spots.values() if not spot.machine.left_out]

    def _never_on(self, empty: Sequence[Spot], gang: Gang) -> str:
        known = len(empty), gang.asked
        if known not in self._never:
            self._never[known] = "" if fits(gang, empty) else self._site.never(gang, empty)
        return self._never[known]
