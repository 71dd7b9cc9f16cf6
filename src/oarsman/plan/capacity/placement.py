"""Where the members of a gang go: by slot, by node, or evenly where they crowd each other anyway.

All workers of a job are alike, and at most one party is not: the launcher. So whether a gang fits is known exactly:
that party is tried on each machine, the others are counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from oarsman.job.observed import Place
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Gang, Party, Taint
from oarsman.text.sentence import Text

_BOUNDLESS: Final = Decimal(10**18)
_NAME_LABEL: Final = "kubernetes.io/hostname"  # every node has it, so manifests use it
_KEEPS_OFF: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine, an SSH host, a node."""

    name: str  # none for this machine: nobody has to be told that a job is on it
    capacity: Capacity  # what is known of it
    unknown: tuple[str, ...] = ()  # resources of which it did not say yet how much it has
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    left_out: str = ""  # why it is not used, where it is not
    closed: bool = False  # that stays so until somebody acts

    @property
    def at_best(self) -> Machine:
        """What it may turn out to be: nobody is turned away for good because a machine is away or not well now."""
        capacity = Capacity(self.capacity | dict.fromkeys(self.unknown, _BOUNDLESS))
        return replace(self, capacity=capacity, taints=tuple(taint for taint in self.taints if not taint.passing))

    @property
    def why_left_out(self) -> str:
        """In a sentence that names it; what is in the way to a machine names it already."""
        named = self.left_out.startswith((f"{self.name}: ", f"{self.name} ("))
        return self.left_out if named else Text("{host} is left out: {why}", host=self.name, why=self.left_out)

    def takes(self, party: Party) -> bool:
        """Whether it may be there at all, room or not."""
        if party.selector and not ({_NAME_LABEL: self.name, **self.labels}.items() >= party.selector.items()):
            return False
        return all(
            taint.effect not in _KEEPS_OFF or any(one.covers(taint) for one in party.tolerations)
            for taint in self.taints
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A machine at one moment of the queue."""

    machine: Machine
    free: Capacity
    crowd: Decimal = Decimal(0)  # slots that members on it asked for, also of those who hold none
    own: int = 0  # parties of this gang on it

    def holding(self, gang: Gang, need: Capacity, *, own: int = 0) -> Spot:
        """With this much less of it free."""
        free = self.free - gang.counted(need)
        return Spot(machine=self.machine, free=free, crowd=self.crowd + need.cpus, own=self.own + own)


def emptied(machines: Iterable[Machine]) -> list[Spot]:
    """As if nothing ran on them and all were well."""
    return [Spot(machine=best, free=best.capacity) for best in (machine.at_best for machine in machines)]


# -- a whole gang -----------------------------------------------------------------------------------------
def place(gang: Gang, spots: Sequence[Spot]) -> tuple[Place, ...] | None:
    """A place for every member, or None."""
    chosen = _best_first(gang, spots)
    if chosen is None:
        return None
    after = list(spots)
    after[chosen] = after[chosen].holding(gang, gang.first.need, own=1)
    others = place_workers(gang, gang.others, after)
    assert others is not None
    beside = gang.workers[: len(gang.workers) - len(gang.others)]
    machine = spots[chosen].machine.name
    return (*(Place(member=member, machine=machine) for member in (gang.launcher, *beside)), *others)


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


def fits(gang: Gang, spots: Sequence[Spot]) -> bool:
    """Whether every member would have a place."""
    return any(others == len(gang.others) for _, others in _firsts(gang, spots))


def most_placed(gang: Gang, spots: Sequence[Spot]) -> int:
    """How many parties (workers, and the launcher where it is apart) have a place, as well as it can be done."""
    return max((1 + others for _, others in _firsts(gang, spots)), default=0)


def most_workers(gang: Gang, wanted: int, spots: Sequence[Spot]) -> int:
    return min(sum(_worker_counts(gang, wanted, spots)), wanted)


def with_way_out(reason: str, gang: Gang, empty: Sequence[Spot]) -> str:
    """Why a job never fits, and what helps, if it does."""
    if not fits(replace(gang, oversubscribe=True), empty):
        return reason
    return Text("{reason}; --oversubscribe starts it anyway", reason=reason)


def _best_first(gang: Gang, spots: Sequence[Spot]) -> int | None:
    """The machine of the launcher, such that all others have a place too."""
    wanted = len(gang.others)
    able = [index for index, others in _firsts(gang, spots) if others == wanted]
    before = _worker_counts(gang, wanted, spots)

    def liking(index: int) -> int | Decimal:
        if gang.oversubscribe:
            return _crowding(gang, spots[index], 1)
        if gang.spread:
            return -min(sum(1 for i, count in enumerate(before) if count and i != index), wanted)
        counts = [*before[:index], *_beside_first(gang, spots[index]), *before[index + 1 :]]
        return _further_machines(counts, wanted, [index])

    return min(able, key=liking, default=None)


def _firsts(gang: Gang, spots: Sequence[Spot]) -> Iterable[tuple[int, int]]:
    """Machines that take the launcher, and how many of the other workers have a place then."""
    wanted, first = len(gang.others), gang.first
    need, counts = gang.counted(first.need), _worker_counts(gang, wanted, spots)
    everywhere = sum(counts)
    for index, spot in enumerate(spots):
        if spot.machine.takes(first) and spot.free.fitting(need):
            [there] = _beside_first(gang, spot)
            yield index, min(everywhere - counts[index] + there, wanted)


def _beside_first(gang: Gang, spot: Spot) -> list[int]:
    """How many of the other workers a machine takes that has the launcher already."""
    return _worker_counts(gang, len(gang.others), [spot.holding(gang, gang.first.need, own=1)])


def _worker_counts(gang: Gang, most: int, spots: Sequence[Spot]) -> list[int]:
    need = gang.counted(gang.worker.need)
    return [spot.free.fitting(need, most) if spot.machine.takes(gang.worker) else 0 for spot in spots]


def _crowding(gang: Gang, spot: Spot, more: int) -> Decimal:
    return (spot.crowd + gang.worker.need.cpus * more) / max(spot.machine.capacity.cpus, Decimal(1))


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
