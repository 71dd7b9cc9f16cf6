"""A gang: all members of a job, which start together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from oarsman import names
from oarsman.job.job import Job, Role
from oarsman.job.observed import Place
from oarsman.plan.capacity.amounts import Capacity
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """Keeps members off a node, unless they tolerate it."""

    key: str
    effect: str = ""
    value: str = ""

    @property
    def passing(self) -> bool:
        """It comes and goes with the state of the node."""
        return self.key.startswith("node.kubernetes.io/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    key: str = ""  # empty: of every taint, if the operator is Exists
    operator: str = ""
    value: str = ""
    effect: str = ""  # empty: of every effect

    def covers(self, taint: Taint) -> bool:
        if self.effect not in ("", taint.effect):
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """What has to be on one machine: a worker, the launcher, or both."""

    need: Capacity = field(default_factory=Capacity)
    selector: Mapping[str, str] = field(default_factory=dict)  # labels of the machines that take it
    tolerations: tuple[Toleration, ...] = ()

    @property
    def asked(self) -> tuple[object, ...]:
        """Equal for two to whom the same machines have the same to say."""
        return tuple(self.need.items()), tuple(sorted(self.selector.items())), self.tolerations


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """What one job asks for, and its turn in the queue.

    All workers are alike, and at most one party is not: the launcher, which sits beside the first worker or has a place
    of its own.
    """

    key: str
    priority: int = 0
    waited: timedelta = timedelta(0)
    oversubscribe: bool = False  # waits for no CPU and no memory and holds none; GPUs are never shared
    owner: str = ""  # others' jobs are not named to them; empty: to whoever it is, all are
    launcher: str  # their names
    workers: tuple[str, ...] = ()
    launcher_alone: Party = field(default_factory=Party)
    worker: Party = field(default_factory=Party)
    launcher_apart: bool = False  # it has a place of its own; else it sits beside worker 0
    spread: bool = False  # over as many machines as possible
    # How many workers there are and what each asks for, where the launcher stands for all: for who hears of it.
    made_of: tuple[int, Capacity] = field(default_factory=lambda: (0, Capacity()))

    @staticmethod
    def of(job: Job, now: datetime, *, launcher: Party, worker: Party | None = None, launcher_apart: bool) -> Gang:
        """Its turn in the queue is the same everywhere; what its members need is not. Without `worker` the launcher
        stands for all of them."""
        return Gang(
            key=job.key,
            priority=priority_of(job),
            waited=max(now - job.created_at, timedelta(0)) if job.created_at else timedelta(0),
            oversubscribe=job.annotation(names.ANNOTATION_OVERSUBSCRIBE).lower() == "true",
            owner=job.owner,
            launcher=job.launcher_host,
            workers=tuple(job.worker_host(i) for i in range(job.workers)) if worker is not None else (),
            launcher_alone=launcher,
            worker=worker if worker is not None else Party(),
            launcher_apart=launcher_apart,
            spread=job.annotation(names.ANNOTATION_PLACEMENT) == "node",
        )

    @property
    def first(self) -> Party:
        """The launcher, and who must be on one machine with it."""
        if self.launcher_apart:
            return self.launcher_alone
        return replace(self.worker, need=self.launcher_alone.need + self.worker.need)

    @property
    def others(self) -> tuple[str, ...]:
        return self.workers if self.launcher_apart else self.workers[1:]

    @property
    def parties(self) -> int:
        """How many places it takes."""
        return 1 + len(self.others)

    @property
    def whole(self) -> Capacity:
        """What all members need together."""
        return self.launcher_alone.need + self.worker.need * len(self.workers)

    def need_of(self, member: str) -> Capacity:
        return self.launcher_alone.need if member == self.launcher else self.worker.need

    def counted(self, need: Capacity) -> Capacity:
        """What of it must be free."""
        return need.not_shared if self.oversubscribe else need

    @property
    def asked(self) -> tuple[object, ...]:
        """All but whose turn it is: many jobs ask for the same."""
        parties = (self.launcher_alone.asked, self.worker.asked, self.launcher_apart, self.spread)
        count, each = self.made_of
        return len(self.workers), *parties, self.oversubscribe, self.owner, count, *each.items()

    def may_name(self, owner: str) -> bool:
        return not self.owner or self.owner == owner

    def as_named_to(self, shares: Sequence[Share], resource: str) -> list[tuple[str, Decimal]]:
        """Who has how much of a resource; jobs that it may not hear of are counted together."""
        named = [(share.key, share.amounts[resource]) for share in shares if self.may_name(share.owner)]
        others = [share.amounts[resource] for share in shares if not self.may_name(share.owner)]
        return [*named, (Text("others"), sum(others, Decimal(0)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one job has of a machine."""

    key: str
    owner: str = ""
    amounts: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A gang that has its places."""

    gang: Gang
    placement: tuple[Place, ...]

    def holds(self) -> Mapping[str, Capacity]:
        """What it has of each machine."""
        held: dict[str, Capacity] = {}
        for seat in self.placement:
            need = self.gang.counted(self.gang.need_of(seat.member))
            held[seat.machine] = held.get(seat.machine, Capacity()) + need
        return held


# -- what a job asks for ----------------------------------------------------------------------------------
def priority_of(job: Job) -> int:
    priority = job.annotation(names.ANNOTATION_PRIORITY, "0")
    return int(priority) if priority.removeprefix("-").isdigit() else 0


def needed_by(job: Job, *, cpus: Decimal | None = None) -> Capacity:
    """What all members together need. Where nothing is said about CPUs it is one per slot, or all there are (`cpus`)
    if that is less."""
    need = asked_by(job)
    if not need["cpu"]:
        need["cpu"] = Decimal(job.slots) if cpus is None else min(Decimal(job.slots), cpus)
    return need


def asked_by(job: Job) -> Capacity:
    """What all members together say that they need."""
    launcher = asked_of(job.launcher)
    return launcher if job.worker is None else launcher + asked_of(job.worker) * job.worker.replicas


def asked_of(role: Role) -> Capacity:
    """What one member asks for, all its containers together."""
    resources = [container.resources for container in role.containers]
    return Capacity(
        gpu=Decimal(sum(one.gpus for one in resources)),
        cpu=sum((one.effective("cpu") for one in resources), Decimal(0)),
        memory=sum((one.effective("memory") for one in resources), Decimal(0)),
    )
