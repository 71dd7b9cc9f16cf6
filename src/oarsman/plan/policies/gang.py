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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.job.role import Role

PATIENCE: Final = timedelta(minutes=10)
_GIB: Final = Decimal(1024**3)


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
class _Resource:
    amount: Callable[[Request], Decimal]
    whole: Callable[[Capacity], Decimal]
    one: str
    many: str
    shared: bool  # may be oversubscribed
    show: Callable[[Decimal], str]

    def named(self, amount: Decimal) -> str:
        shown = self.show(amount)
        return f"{shown} {self.one if shown == '1' else self.many}"


def _plain(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.01')).normalize():f}"


def _gibibytes(amount: Decimal) -> str:
    return _plain(amount / _GIB)


_RESOURCES: Final = (
    _Resource(lambda r: Decimal(r.gpus), lambda c: Decimal(c.gpus), "GPU", "GPUs", False, _plain),
    _Resource(lambda r: r.cpus, lambda c: c.cpus, "CPU", "CPUs", True, _plain),
    _Resource(lambda r: r.memory, lambda c: c.memory, "GiB of memory", "GiB of memory", True, _gibibytes),
)


def request_of(job: Job, now: datetime) -> Request:
    """What a job asks for, summed over its members."""
    members: list[tuple[Role, int]] = [(job.launcher, 1)]
    if job.worker is not None:
        members.append((job.worker, job.worker.replicas))
    priority = job.annotation(names.ANNOTATION_PRIORITY, "0")
    cpus = sum((_sum(role, "cpu") * count for role, count in members), Decimal(0))
    return Request(
        key=job.key,
        cpus=cpus or Decimal(job.slots),
        cpus_assumed=not cpus,
        memory=sum((_sum(role, "memory") * count for role, count in members), Decimal(0)),
        gpus=sum(sum(c.resources.gpus for c in role.containers) * count for role, count in members),
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
    holders = list(running)
    decisions: list[Decision] = []
    blocker: Request | None = None  # passed over, and has waited long enough
    position = 0
    for request in sorted(waiting, key=lambda r: (-r.priority, -r.waited, r.key)):
        impossible = _impossible(request, capacity)
        short = _short_of(request, holders, capacity)
        if impossible:
            admission = Admission(admitted=False, impossible=True, reason=impossible)
        elif blocker is None and short is None:
            holders.append(request)
            admission = Admission()
        else:
            position += 1
            admission = Admission(admitted=False, position=position, reason=short or _behind(request, blocker))
            if blocker is None and request.waited >= PATIENCE:
                blocker = request
        decisions.append(Decision(key=request.key, admission=admission))
    return decisions


def _need(request: Request, resource: _Resource, capacity: Capacity) -> Decimal:
    if request.oversubscribe and resource.shared:
        return Decimal(0)
    asked = resource.amount(request)
    return min(asked, resource.whole(capacity)) if request.cpus_assumed and resource.one == "CPU" else asked


def _impossible(request: Request, capacity: Capacity) -> str | None:
    for resource in _RESOURCES:
        whole = resource.whole(capacity)
        if _need(request, resource, capacity) > whole:
            way_out = " (--oversubscribe starts it all the same)" if resource.shared else ""
            asked = resource.named(resource.amount(request))
            return f"asks for {asked}, the machine has {resource.show(whole)}{way_out}"
    return None


def _short_of(request: Request, holders: Sequence[Request], capacity: Capacity) -> str | None:
    """What there is too little of, and who has it, or None when the whole gang fits."""
    missing = []
    for resource in _RESOURCES:
        need, whole = _need(request, resource, capacity), resource.whole(capacity)
        held = [(_need(h, resource, capacity), h) for h in holders]
        free = max(whole - sum((amount for amount, _ in held), Decimal(0)), Decimal(0))
        if need > free:
            of = f"{resource.show(free)} of {resource.show(whole)} are free"
            missing.append(f"needs {resource.named(need)}, {of}{_held_by(request, held, resource)}")
    return "; ".join(missing) or None


def _held_by(asker: Request, held: Sequence[tuple[Decimal, Request]], resource: _Resource) -> str:
    named = [(amount, h.key) for amount, h in held if amount and asker.may_name(h)]
    others = sum((amount for amount, h in held if not asker.may_name(h)), Decimal(0))
    most = sorted([*named, *([(others, "others")] if others else [])], key=lambda h: (-h[0], h[1]))
    if not most:
        return ""
    more = f" and {len(most) - 3} more" if len(most) > 3 else ""
    return f" (held by {', '.join(f'{key}: {resource.show(amount)}' for amount, key in most[:3])}{more})"


def _behind(asker: Request, blocker: Request | None) -> str:
    assert blocker is not None
    who = blocker.key if asker.may_name(blocker) else "a job of somebody else"
    return f"waits behind {who}, which has waited {int(blocker.waited.total_seconds() // 60)} min"


def _sum(role: Role, resource: str) -> Decimal:
    return sum((c.resources.effective(resource) for c in role.containers), Decimal(0))
