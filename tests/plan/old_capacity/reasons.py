"""Why a gang does not start on hosts, in one line: what it needs, how much of it fits, and who has the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.plan.old_capacity.gang import GPUS, MEMORY, SLOTS, WAY_OUT, Capacity, Resource, held_by
from tests.plan.old_capacity.placement import (
    NOTHING,
    RESOURCES,
    Gang,
    Machine,
    Spot,
    crowded,
    fitting,
    most_placed,
    most_workers,
    place,
    total,
)

Holdings = Mapping[str, Sequence[tuple[Capacity, Gang]]]  # machine -> who has what of it
_MOST_NAMED: Final = 8  # of the machines that are left out


# -- never ------------------------------------------------------------------------------------------------
def never(gang: Gang, machines: Sequence[Machine]) -> str | None:
    """Why it would not fit even if nothing else ran, or None if it would."""
    if not machines:
        return "the inventory has no hosts"
    empty = [Spot(machine=machine, free=machine.at_best) for machine in machines]
    if place(gang, empty) is not None:
        return None
    reason = (
        _no_labels(gang, machines)
        or _too_large(gang, machines)
        or _too_much(gang, machines)
        or _not_together(gang, machines)
        or f"even with nothing else on them, the hosts have room for {most_placed(gang, empty)} of {_counted(gang)}"
    )
    helps = place(crowded(gang), empty) is not None
    return f"{reason}{WAY_OUT}" if helps else reason


def _parties(gang: Gang) -> list[tuple[str, Capacity, Mapping[str, str]]]:
    """Who needs what on one machine, with which labels."""
    worker = ("one worker", gang.counted(gang.worker_need), gang.selector)
    both = "the launcher" if gang.launcher_apart else "the launcher and a worker"
    first = (both, gang.counted(gang.first_need), gang.first_selector)
    if not gang.workers:
        return [first]
    return [worker] if first[1:] == worker[1:] else [worker, first]


def _no_labels(gang: Gang, machines: Sequence[Machine]) -> str | None:
    for who, _, selector in _parties(gang):
        if not _with_labels(machines, selector):
            wanted = ", ".join(f"{label}={value}" for label, value in sorted(selector.items()))
            return f"no host has the labels for {who}: {wanted}"
    return None


def _too_large(gang: Gang, machines: Sequence[Machine]) -> str | None:
    for who, need, selector in _parties(gang):
        those = _with_labels(machines, selector)
        for resource in RESOURCES:
            has_each = [resource.of(machine.at_best) for machine in those]
            most = max(has_each)
            if resource.of(need) > most:
                best = those[has_each.index(most)].name
                has = f"{best} has most: {resource.show(most)}" if most else "none has any"
                return f"{_no_host(selector)} {resource.named(resource.of(need))} for {who} ({has})"
    return None


def _too_much(gang: Gang, machines: Sequence[Machine]) -> str | None:
    if gang.launcher_apart and gang.workers and gang.launcher_selector != gang.selector:
        return None  # they do not share what they ask for
    those = _with_labels(machines, gang.first_selector)
    needs = gang.counted(Capacity(cpus=gang.cpus, memory=gang.memory, gpus=gang.gpus))
    for resource in RESOURCES:
        whole = resource.of(total(machine.at_best for machine in those))
        if resource.of(needs) > whole:
            have = "the hosts with its labels have" if gang.first_selector else "the hosts have"
            return f"asks for {resource.named(resource.of(needs))}, {have} {resource.show(whole)}"
    return None


def _not_together(gang: Gang, machines: Sequence[Machine]) -> str | None:
    for who, need, selector in _parties(gang):
        if not any(fitting(need, machine.at_best, 1) for machine in _with_labels(machines, selector)):
            return f"{_no_host(selector)} {_amounts(need)} together for {who}"
    return None


def _no_host(selector: Mapping[str, str]) -> str:
    return "no host with its labels has" if selector else "no host has"


def _with_labels(machines: Sequence[Machine], selector: Mapping[str, str]) -> list[Machine]:
    return [machine for machine in machines if machine.takes(selector)]


# -- not now ----------------------------------------------------------------------------------------------
def short(gang: Gang, spots: Sequence[Spot], held: Holdings) -> str:
    """Why it does not fit now, although it may one day. `spots` are all machines, also those left out."""
    usable = [spot for spot in spots if not spot.machine.left_out]
    lasting = None if len(usable) == len(spots) else _until_they_are_back(gang, usable)
    fit = most_placed(gang, usable)
    reason = lasting or _too_few(_asked(gang), fit, gang.parties == 1, _full(gang, gang.parties, usable, held))
    missed = _left_out(gang, spots) if lasting or place(gang, spots) is not None else []
    return "; ".join([reason, *missed])


def _until_they_are_back(gang: Gang, usable: Sequence[Spot]) -> str | None:
    return never(gang, [spot.machine for spot in usable]) if usable else "no host can be used now"


def no_more(gang: Gang, wanted: int, spots: Sequence[Spot], held: Holdings) -> str:
    """Why so many more workers do not fit now."""
    usable = [spot for spot in spots if not spot.machine.left_out]
    more = f"{wanted} more worker{'s' * (wanted > 1)} with {_each(gang.counted(gang.worker_need), wanted)}"
    reason = _too_few(more, most_workers(gang, wanted, usable), wanted == 1, _full(gang, wanted, usable, held))
    missed = _left_out(gang, spots) if most_workers(gang, wanted, spots) == wanted else []
    return "; ".join([reason, *missed])


def _too_few(asked: str, fit: int, single: bool, full: str) -> str:
    if single:
        fits = "it does not fit now"
    else:
        fits = f"{fit} fit now" if fit > 1 else "1 fits now" if fit else "none fits now"
    return f"needs {asked}; {fits}: {full}" if full else f"needs {asked}; {fits}"


def _full(gang: Gang, wanted: int, spots: Sequence[Spot], held: Holdings) -> str:
    """The machine where most of the gang would have gone, but for others."""
    for _, need, selector in _parties(gang):
        those = [spot for spot in spots if spot.machine.takes(selector)]
        lost = [fitting(need, s.machine.capacity, wanted) - fitting(need, s.free, wanted) for s in those]
        if any(lost):
            return _tells(gang, need, those[lost.index(max(lost))], held)
    return ""


def _tells(gang: Gang, need: Capacity, spot: Spot, held: Holdings) -> str:
    asked = [resource for resource in RESOURCES if resource.of(need)]
    scarce = min(asked, key=lambda resource: resource.of(spot.free) // resource.of(need))
    free, whole = max(scarce.of(spot.free), NOTHING.cpus), scarce.of(spot.machine.capacity)
    holders = held_by(gang, [(scarce.of(has), who) for has, who in held.get(spot.machine.name, ())], scarce)
    return f"{spot.machine.name} has {scarce.show(free)} of {scarce.named(whole)} free{holders}"


def _left_out(gang: Gang, spots: Sequence[Spot]) -> list[str]:
    parties = _parties(gang)
    missed = [
        spot.machine
        for spot in spots
        if spot.machine.left_out
        and any(spot.machine.takes(labels) and fitting(need, spot.machine.at_best, 1) for _, need, labels in parties)
    ]
    told = [machine.why_left_out for machine in missed[:_MOST_NAMED]]
    more = len(missed) - len(told)
    counted = "1 more host is left out" if more == 1 else f"{more} more hosts are left out"
    return [*told, counted] if more else told


# -- what is asked for ------------------------------------------------------------------------------------
def _asked(gang: Gang) -> str:
    """4 workers with 2 slots and 1 GPU each."""
    worker, launcher = gang.counted(gang.worker_need), gang.counted(gang.launcher_need)
    if not gang.workers:
        return f"1 launcher with {_amounts(launcher)}"
    if gang.launcher_apart and launcher == worker:
        return f"{_counted(gang)} with {_each(worker, gang.parties)}"
    number = len(gang.workers)
    workers = f"{number} worker{'s' * (number > 1)} with {_each(worker, number)}"
    return f"{workers} and 1 launcher with {_amounts(launcher)}" if launcher != NOTHING else workers


def _counted(gang: Gang) -> str:
    number = len(gang.workers)
    workers = f"{number} worker{'s' * (number > 1)}"
    if not gang.launcher_apart:
        return workers
    return f"1 launcher and {workers}" if number else "1 launcher"


def _each(need: Capacity, number: int) -> str:
    return f"{_amounts(need)} each" if number > 1 else _amounts(need)


def _amounts(need: Capacity) -> str:
    order: tuple[Resource, ...] = (SLOTS, GPUS, MEMORY)
    return " and ".join(resource.named(resource.of(need)) for resource in order if resource.of(need))
