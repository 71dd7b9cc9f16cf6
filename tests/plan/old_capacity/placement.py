"""Where the members of a gang go on hosts: by slot, by node, or evenly where they crowd each other anyway.

All workers of a job are alike, and at most one party is not: the launcher, which sits beside the first worker or has a
place of its own. So whether a gang fits is known exactly: that party is tried on each machine, the others are counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from oarsman.job.observed import Place
from tests.plan.old_capacity.gang import GPUS, MEMORY, SLOTS, Capacity, Request

RESOURCES: Final = (GPUS, SLOTS, MEMORY)
NOTHING: Final = Capacity(cpus=Decimal(0), memory=Decimal(0))
_BOUNDLESS: Final = 10**18
_NAME_LABEL: Final = "kubernetes.io/hostname"  # every node has it, so manifests use it


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine of an inventory. Memory in bytes; None is not known, as it did not answer yet."""

    name: str
    slots: Decimal | int | None
    memory: Decimal | int | None
    gpus: int | None = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out: str = ""  # why it is not used, where it is not

    @property
    def capacity(self) -> Capacity:
        """What is known of it."""
        return Capacity(cpus=Decimal(self.slots or 0), memory=Decimal(self.memory or 0), gpus=self.gpus or 0)

    @property
    def at_best(self) -> Capacity:
        """What it may turn out to have: nobody is turned away for good because a machine is away."""
        slots, memory, gpus = (_BOUNDLESS if n is None else n for n in (self.slots, self.memory, self.gpus))
        return Capacity(cpus=Decimal(slots), memory=Decimal(memory), gpus=int(gpus))

    @property
    def why_left_out(self) -> str:
        """In a sentence that names it; what is in the way to a machine names it already."""
        named = self.left_out.startswith((f"{self.name}: ", f"{self.name} ("))
        return self.left_out if named else f"{self.name} is left out: {self.left_out}"

    def takes(self, selector: Mapping[str, str]) -> bool:
        return not selector or {*self.labels.items(), (_NAME_LABEL, self.name)}.issuperset(selector.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang(Request):
    """What one job asks of an inventory; what it inherits is the sum over all members."""

    launcher: str
    workers: tuple[str, ...] = ()
    worker_need: Capacity = NOTHING
    launcher_need: Capacity = NOTHING
    launcher_apart: bool = False  # it takes ranks itself and has a place of its own; else it sits beside worker 0
    selector: Mapping[str, str] = field(default_factory=dict)  # labels of the machines that take its workers
    launcher_selector: Mapping[str, str] = field(default_factory=dict)
    spread: bool = False  # over as many machines as possible

    @property
    def first(self) -> tuple[str, ...]:
        """Those who must be on one machine with the launcher."""
        return (self.launcher,) if self.launcher_apart else (self.launcher, *self.workers[:1])

    @property
    def others(self) -> tuple[str, ...]:
        return self.workers if self.launcher_apart else self.workers[1:]

    @property
    def first_need(self) -> Capacity:
        return self.launcher_need if self.launcher_apart else plus(self.launcher_need, self.worker_need)

    @property
    def first_selector(self) -> Mapping[str, str]:
        return self.launcher_selector if self.launcher_apart else self.selector

    @property
    def parties(self) -> int:
        """How many places it takes: those who must be together have one."""
        return 1 + len(self.others)

    def need_of(self, member: str) -> Capacity:
        return self.launcher_need if member == self.launcher else self.worker_need

    def counted(self, need: Capacity) -> Capacity:
        """What of it must be free: who oversubscribes waits for GPUs alone, and holds nothing else."""
        return replace(NOTHING, gpus=need.gpus) if self.oversubscribe else need


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A machine at one moment of the queue."""

    machine: Machine
    free: Capacity
    crowd: Decimal = Decimal(0)  # slots that members on it asked for, also of those who hold none
    own: int = 0  # parties of this gang on it

    def holding(self, gang: Gang, need: Capacity, *, own: int = 0) -> Spot:
        """With this much less of it free."""
        free = minus(self.free, gang.counted(need))
        return Spot(machine=self.machine, free=free, crowd=self.crowd + need.cpus, own=self.own + own)


def plus(one: Capacity, other: Capacity) -> Capacity:
    return Capacity(cpus=one.cpus + other.cpus, memory=one.memory + other.memory, gpus=one.gpus + other.gpus)


def minus(one: Capacity, other: Capacity) -> Capacity:
    return Capacity(cpus=one.cpus - other.cpus, memory=one.memory - other.memory, gpus=one.gpus - other.gpus)


def times(need: Capacity, count: int) -> Capacity:
    return Capacity(cpus=need.cpus * count, memory=need.memory * count, gpus=need.gpus * count)


def total(amounts: Iterable[Capacity]) -> Capacity:
    result = NOTHING
    for one in amounts:
        result = plus(result, one)
    return result


def fitting(need: Capacity, free: Capacity, most: int) -> int:
    """How many times `need` goes into what is free, up to `most`."""
    for each, there in ((need.gpus, free.gpus), (need.cpus, free.cpus), (need.memory, free.memory)):
        if each > 0:
            most = min(most, int(max(there, 0) // each))
    return most


# -- a whole gang -----------------------------------------------------------------------------------------
def place(gang: Gang, spots: Sequence[Spot]) -> tuple[Place, ...] | None:
    """A place for every member, or None."""
    chosen = _best_first(gang, spots)
    if chosen is None:
        return None
    after = list(spots)
    after[chosen] = after[chosen].holding(gang, gang.first_need, own=1)
    others = place_workers(gang, gang.others, after)
    assert others is not None
    machine = spots[chosen].machine.name
    return (*(Place(member=member, machine=machine) for member in gang.first), *others)


def place_workers(gang: Gang, members: Sequence[str], spots: Sequence[Spot]) -> tuple[Place, ...] | None:
    """A place for each of these workers. By slot, machines with some of the gang come first; by node, last."""
    counts = _worker_counts(gang, len(members), spots)
    if sum(counts) < len(members):
        return None
    if gang.oversubscribe:
        seats = _evenly(counts, len(members), lambda i, taken: _crowding(gang, spots[i], taken + 1))
    elif gang.spread:
        seats = _evenly(counts, len(members), lambda i, taken: spots[i].own + taken)
    else:
        seats = _filled(counts, len(members), [i for i, spot in enumerate(spots) if spot.own])
    return tuple(Place(member=m, machine=spots[i].machine.name) for m, i in zip(members, seats, strict=True))


def most_placed(gang: Gang, spots: Sequence[Spot]) -> int:
    """How many parties (workers, and the launcher where it is apart) have a place, as well as it can be done."""
    wanted = len(gang.others)
    return max((1 + min(sum(counts), wanted) for _, counts in _firsts(gang, spots)), default=0)


def most_workers(gang: Gang, wanted: int, spots: Sequence[Spot]) -> int:
    return min(sum(_worker_counts(gang, wanted, spots)), wanted)


def crowded(gang: Gang) -> Gang:
    return replace(gang, oversubscribe=True)


def _best_first(gang: Gang, spots: Sequence[Spot]) -> int | None:
    """The machine of the launcher, such that all others have a place too."""
    wanted = len(gang.others)

    def liking(index: int, counts: Sequence[int]) -> int | Decimal:
        if gang.oversubscribe:
            return _crowding(gang, spots[index], 1)
        if gang.spread:
            return -min(sum(1 for i, count in enumerate(counts) if count and i != index), wanted)
        return _further_machines(counts, wanted, [index])

    able = [(liking(index, counts), index) for index, counts in _firsts(gang, spots) if sum(counts) >= wanted]
    return min(able)[1] if able else None


def _firsts(gang: Gang, spots: Sequence[Spot]) -> Iterable[tuple[int, list[int]]]:
    """Machines that take the launcher, and how many of the other workers each machine takes then."""
    wanted, need = len(gang.others), gang.counted(gang.first_need)
    counts = _worker_counts(gang, wanted, spots)
    for index, spot in enumerate(spots):
        if spot.machine.takes(gang.first_selector) and fitting(need, spot.free, 1):
            there = _worker_counts(gang, wanted, [spot.holding(gang, gang.first_need, own=1)])
            yield index, [*counts[:index], *there, *counts[index + 1 :]]


def _worker_counts(gang: Gang, most: int, spots: Sequence[Spot]) -> list[int]:
    need = gang.counted(gang.worker_need)
    return [fitting(need, spot.free, most) if spot.machine.takes(gang.selector) else 0 for spot in spots]


def _crowding(gang: Gang, spot: Spot, more: int) -> Decimal:
    return (spot.crowd + gang.worker_need.cpus * more) / max(spot.machine.capacity.cpus, Decimal(1))


# -- by slot, by node -------------------------------------------------------------------------------------
def _filled(counts: Sequence[int], wanted: int, used: Sequence[int]) -> list[int]:
    """As few machines as possible; of all such choices the earliest in the inventory's order."""
    further = _further_machines(counts, wanted, used)
    chosen, left = list(used), wanted - sum(counts[i] for i in used)
    candidates = [i for i in range(len(counts)) if i not in used]
    for place_in_list, i in enumerate(candidates):
        if further == 0:
            break
        later = sorted((counts[j] for j in candidates[place_in_list + 1 :]), reverse=True)
        if counts[i] + sum(later[: further - 1]) >= left:
            chosen.append(i)
            left -= counts[i]
            further -= 1
    return [i for i in chosen for _ in range(counts[i])][:wanted]


def _further_machines(counts: Sequence[int], wanted: int, used: Sequence[int]) -> int:
    """How many machines it takes beside those in use."""
    left, number = wanted - sum(counts[i] for i in used), 0
    for count in sorted((count for i, count in enumerate(counts) if i not in used), reverse=True):
        if left <= 0:
            break
        left, number = left - count, number + 1
    return number


def _evenly(counts: Sequence[int], wanted: int, load: Callable[[int, int], int | Decimal]) -> list[int]:
    """One after the other to the machine with the least load, the earlier one of two alike."""
    heap = [(load(i, 0), i, 0) for i, count in enumerate(counts) if count]
    heapq.heapify(heap)
    seats: list[int] = []
    while len(seats) < wanted:
        _, i, taken = heapq.heappop(heap)
        seats.append(i)
        if taken + 1 < counts[i]:
            heapq.heappush(heap, (load(i, taken + 1), i, taken + 1))
    return seats
