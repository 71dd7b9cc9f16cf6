"""Who may start, across jobs: a gang gets room for all its members at once, or it waits.

Half a gang is worth nothing and blocks others, so launcher and workers are admitted together. Jobs are
looked at by priority, then by how long they have waited. A job that does not fit is passed over and a
later one that fits may start in the room that is left, as long as nobody passed over has waited
`PATIENCE` or more. From then on nothing starts behind the one that waits, so room gathers for it:
large jobs start late, but they start.

A job that oversubscribes waits for no CPU and no memory and holds none; GPUs are never shared. A job that
says nothing about CPUs needs one per slot, or all there are if that is less: many small jobs queue up
instead of crowding each other out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Protocol, TypeVar

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.job.role import Role

PATIENCE: Final = timedelta(minutes=10)
_GIB: Final = Decimal(1024**3)
WAY_OUT: Final = "; --oversubscribe starts it all the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What there is. Memory in bytes."""

    cpus: Decimal
    memory: Decimal
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one job needs, launcher and workers together."""

    key: str
    cpus: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)
    gpus: int = 0
    priority: int = 0
    waited: timedelta = timedelta(0)
    oversubscribe: bool = False
    cpus_assumed: bool = False  # nothing was said about them
    owner: str = ""  # others' jobs are not named to them; empty: to whoever it is, all are

    def may_name(self, other: Request) -> bool:
        return not self.owner or self.owner == other.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    key: str
    admission: Admission


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of what there is: how it is found in a request or a capacity, and how people hear of it."""

    name: str
    one: str
    many: str
    shared: bool  # may be oversubscribed
    show: Callable[[Decimal], str]

    def of(self, amounts: Request | Capacity) -> Decimal:
        return Decimal(getattr(amounts, self.name))

    def named(self, amount: Decimal) -> str:
        shown = self.show(amount)
        return f"{shown} {self.one if shown == '1' else self.many}"


def _plain(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.01')).normalize():f}"


def _gibibytes(amount: Decimal) -> str:
    return _plain(amount / _GIB)


GPUS: Final = Resource("gpus", "GPU", "GPUs", False, _plain)
CPUS: Final = Resource("cpus", "CPU", "CPUs", True, _plain)
SLOTS: Final = Resource("cpus", "slot", "slots", True, _plain)  # what the CPUs of an inventory are called
MEMORY: Final = Resource("memory", "GiB of memory", "GiB of memory", True, _gibibytes)
_RESOURCES: Final = (GPUS, CPUS, MEMORY)


def request_of(job: Job, now: datetime) -> Request:
    """What a job asks for, summed over its members."""
    members: list[tuple[Role, int]] = [(job.launcher, 1)]
    if job.worker is not None:
        members.append((job.worker, job.worker.replicas))
    priority = job.annotation(names.ANNOTATION_PRIORITY, "0")
    cpus = sum((sum_of(role, "cpu") * count for role, count in members), Decimal(0))
    return Request(
        key=job.key,
        cpus=cpus or Decimal(job.slots),
        cpus_assumed=not cpus,
        memory=sum((sum_of(role, "memory") * count for role, count in members), Decimal(0)),
        gpus=sum(gpus_of(role) * count for role, count in members),
        priority=int(priority) if priority.removeprefix("-").isdigit() else 0,
        waited=max(now - job.created_at, timedelta(0)) if job.created_at else timedelta(0),
        oversubscribe=job.annotation(names.ANNOTATION_OVERSUBSCRIBE).lower() == "true",
        owner=job.owner,
    )


def holds(request: Request, capacity: Capacity) -> Capacity:
    """What a job has of the machine once it is admitted."""
    gpus, cpus, memory = (_need(request, resource, capacity) for resource in _RESOURCES)
    return Capacity(cpus=cpus, memory=memory, gpus=int(gpus))


def admit(waiting: Sequence[Request], running: Sequence[Request], capacity: Capacity) -> list[Decision]:
    """One decision per waiting job, in the order of the queue."""
    return in_turn(waiting, _OneMachine(capacity, list(running)))


# -- the queue, whatever the room is ----------------------------------------------------------------------
Asker = TypeVar("Asker", bound=Request, contravariant=True)
Waiting = TypeVar("Waiting", bound=Request)


class AdmissionControl(Protocol[Asker]):
    """What a queue is let into."""

    def impossible(self, asker: Asker) -> str | None:
        """Why it can never fit."""

    def short_of(self, asker: Asker) -> str | None:
        """Why it does not fit now."""

    def gathers(self, asker: Asker) -> bool:
        """Whether room for it gathers while nothing else starts."""

    def take(self, asker: Asker) -> Admission:
        """Lets it in; it fits."""


def in_turn(waiting: Iterable[Waiting], room: AdmissionControl[Waiting]) -> list[Decision]:
    decisions: list[Decision] = []
    blocker: Request | None = None  # passed over, and has waited long enough
    position = 0
    for request in sorted(waiting, key=lambda r: (-r.priority, -r.waited, r.key)):
        impossible = room.impossible(request)
        short = None if impossible else room.short_of(request)
        if impossible:
            about = names.REASON_NEVER_FITS
            admission = Admission(admitted=False, impossible=True, reason=impossible, about=about)
        elif blocker is None and short is None:
            admission = room.take(request)
        else:
            position += 1
            gathers, reason = room.gathers(request), short or _behind(request, blocker)
            about = names.REASON_WAITING if gathers else names.REASON_NO_HOSTS
            admission = Admission(admitted=False, position=position, reason=reason, about=about)
            if blocker is None and request.waited >= PATIENCE and gathers:
                blocker = request
        decisions.append(Decision(key=request.key, admission=admission))
    return decisions


def _behind(asker: Request, blocker: Request | None) -> str:
    assert blocker is not None
    who = blocker.key if asker.may_name(blocker) else "a job of somebody else"
    return f"waits behind {who}, which has waited {int(blocker.waited.total_seconds() // 60)} min"


def held_by(asker: Request, held: Iterable[tuple[Decimal, Request]], resource: Resource) -> str:
    """Who has how much of it, the largest first."""
    holders = [(amount, h) for amount, h in held if amount]
    named = [(amount, h.key) for amount, h in holders if asker.may_name(h)]
    others = sum((amount for amount, h in holders if not asker.may_name(h)), Decimal(0))
    most = sorted([*named, *([(others, "others")] if others else [])], key=lambda h: (-h[0], h[1]))
    if not most:
        return ""
    more = f" and {len(most) - 3} more" if len(most) > 3 else ""
    return f" (held by {', '.join(f'{key}: {resource.show(amount)}' for amount, key in most[:3])}{more})"


# -- one machine ------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _OneMachine:
    capacity: Capacity
    holders: list[Request]

    def impossible(self, asker: Request) -> str | None:
        for resource in _RESOURCES:
            whole = resource.of(self.capacity)
            if _need(asker, resource, self.capacity) > whole:
                way_out = WAY_OUT if resource.shared else ""
                asked = resource.named(resource.of(asker))
                return f"asks for {asked}, the machine has {resource.show(whole)}{way_out}"
        return None

    def short_of(self, asker: Request) -> str | None:
        missing = []
        for resource in _RESOURCES:
            need, whole = _need(asker, resource, self.capacity), resource.of(self.capacity)
            held = [(_need(h, resource, self.capacity), h) for h in self.holders]
            free = max(whole - sum((amount for amount, _ in held), Decimal(0)), Decimal(0))
            if need > free:
                of = f"{resource.show(free)} of {resource.show(whole)} are free"
                missing.append(f"needs {resource.named(need)}, {of}{held_by(asker, held, resource)}")
        return "; ".join(missing) or None

    def gathers(self, asker: Request) -> bool:
        return True

    def take(self, asker: Request) -> Admission:
        self.holders.append(asker)
        return Admission()


def _need(request: Request, resource: Resource, capacity: Capacity) -> Decimal:
    if request.oversubscribe and resource.shared:
        return Decimal(0)
    asked = resource.of(request)
    return min(asked, resource.of(capacity)) if request.cpus_assumed and resource is CPUS else asked


def sum_of(role: Role, resource: str) -> Decimal:
    """What one member asks for, all its containers together."""
    return sum((c.resources.effective(resource) for c in role.containers), Decimal(0))


def gpus_of(role: Role) -> int:
    return sum(c.resources.gpus for c in role.containers)
