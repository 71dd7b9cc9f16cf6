"""The SSH hosts of an inventory: what a job asks of them member by member, and why it does not start on them, in one
line: what it needs, how much of it fits, and who has the rest.

A worker needs its slots, or its CPUs where it asks for more of them, its memory and its GPUs on one machine. Slots are
what the inventory says: a worker that wants more than any host has never starts, unless it oversubscribes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final

from oarsman.job.job import Job, Role
from oarsman.plan.capacity.amounts import Capacity, all_named, held_by, named, number, plain, total
from oarsman.plan.capacity.gang import Gang, Party, Share, asked_of
from oarsman.plan.capacity.placement import Machine, Spot, emptied, fits, most_placed, most_workers, with_way_out
from oarsman.text.sentence import Text, all_of, sentences
from oarsman.text.units import workers

_RESOURCES: Final = ("gpu", "slots", "memory")  # what is looked at first is told first
_AS_ASKED: Final = ("slots", "gpu", "memory")
_MOST_NAMED: Final = 8  # of the machines that are left out


# -- what a job asks for ----------------------------------------------------------------------------------
def gang_of(job: Job, now: datetime, _machines: Sequence[Machine] = ()) -> Gang:
    """The same whatever the machines are."""
    apart = job.run_launcher_as_worker or not job.workers
    launcher = _party(job.launcher, job.slots_per_worker if apart else 0)
    worker = _party(job.worker, job.slots_per_worker) if job.worker is not None else None
    return Gang.of(job, now, launcher=launcher, worker=worker, launcher_apart=apart)


def _party(role: Role, slots: int) -> Party:
    """Slots are processes, so a member takes as many as it may start; more, if it asks for more CPUs than that."""
    asked = asked_of(role)
    need = Capacity(gpu=asked["gpu"], slots=max(asked["cpu"], Decimal(slots)), memory=asked["memory"])
    selector = (role.template.get("spec") or {}).get("nodeSelector") or {}
    return Party(need=need, selector={str(label): str(value) for label, value in selector.items()})


# -- never ------------------------------------------------------------------------------------------------
def never(gang: Gang, empty: Sequence[Spot]) -> str:
    if not empty:
        return Text("the inventory has no hosts")
    reason = _no_labels(gang, empty) or _too_large(gang, empty) or _too_much(gang, empty) or _not_together(gang, empty)
    if reason is None:
        placed, wanted = most_placed(gang, empty), _counted(gang)
        template = Text("even with nothing else on them, the hosts have room for {placed} of {all}")
        reason = Text(template, placed=placed, all=wanted)
    return with_way_out(reason, gang, empty)


def _parties(gang: Gang) -> list[tuple[str, Capacity, Party]]:
    """Who needs what on one machine."""
    worker = (Text("one worker"), gang.counted(gang.worker.need), gang.worker)
    both = Text("the launcher") if gang.launcher_apart else Text("the launcher and a worker")
    first = (both, gang.counted(gang.first.need), gang.first)
    return [worker, first] if gang.workers else [first]


def _no_labels(gang: Gang, empty: Sequence[Spot]) -> str | None:
    for who, _, party in _parties(gang):
        if not _taking(empty, party):
            wanted = ", ".join(f"{label}={value}" for label, value in sorted(party.selector.items()))
            return Text("no host has the labels for {who}: {labels}", who=who, labels=wanted)
    return None


def _too_large(gang: Gang, empty: Sequence[Spot]) -> str | None:
    for who, need, party in _parties(gang):
        those = _taking(empty, party)
        for name in _RESOURCES:
            largest = max(those, key=lambda spot: spot.free[name])
            most = largest.free[name]
            if need[name] > most:
                has = Text("{host} has most: {n}", host=largest.machine.name, n=plain(name, most))
                of_all = Text("no host has {need} for {who} ({most})")
                of_some = Text("no host with its labels has {need} for {who} ({most})")
                said = {"need": named(name, need[name]), "who": who, "most": has if most else Text("none has any")}
                return Text(of_some if party.selector else of_all, **said)
    return None


def _too_much(gang: Gang, empty: Sequence[Spot]) -> str | None:
    if gang.launcher_apart and gang.workers and gang.launcher_alone.selector != gang.worker.selector:
        return None  # they do not share what they ask for
    needs, whole = gang.counted(gang.whole), total(spot.free for spot in _taking(empty, gang.first))
    for name in _RESOURCES:
        if needs[name] > whole[name]:
            of_all = Text("asks for {asked}, the hosts have {whole}")
            of_some = Text("asks for {asked}, the hosts with its labels have {whole}")
            template = of_some if gang.first.selector else of_all
            return Text(template, asked=named(name, needs[name]), whole=plain(name, whole[name]))
    return None


def _not_together(gang: Gang, empty: Sequence[Spot]) -> str | None:
    for who, need, party in _parties(gang):
        if not any(spot.free.fitting(need) for spot in _taking(empty, party)):
            of_all = Text("no host has {needs} together for {who}")
            of_some = Text("no host with its labels has {needs} together for {who}")
            return Text(of_some if party.selector else of_all, needs=all_named(need, _AS_ASKED), who=who)
    return None


def _taking(spots: Sequence[Spot], party: Party) -> list[Spot]:
    return [spot for spot in spots if spot.machine.takes(party)]


# -- not now ----------------------------------------------------------------------------------------------
def short(gang: Gang, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]]) -> str:
    usable = _usable(spots)
    lasting = "" if len(usable) == len(spots) else _until_they_are_back(gang, usable)
    fit = most_placed(gang, usable)
    reason = lasting or _too_few(_asked(gang), fit, gang.parties == 1, _full(gang, gang.parties, usable, shares))
    missed = _left_out(gang, spots) if lasting or fits(gang, spots) else []
    return sentences([reason, *missed])


def _until_they_are_back(gang: Gang, usable: Sequence[Spot]) -> str:
    if not usable:
        return Text("no host can be used now")
    empty = emptied(spot.machine for spot in usable)
    return "" if fits(gang, empty) else never(gang, empty)


def no_more(gang: Gang, wanted: int, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]]) -> str:
    """Why so many more workers do not fit now."""
    usable = _usable(spots)
    those = Text("{n} more workers", n=wanted) if wanted > 1 else Text("{n} more worker", n=wanted)
    more = _with(those, gang.counted(gang.worker.need), wanted)
    reason = _too_few(more, most_workers(gang, wanted, usable), wanted == 1, _full(gang, wanted, usable, shares))
    missed = _left_out(gang, spots) if most_workers(gang, wanted, spots) == wanted else []
    return sentences([reason, *missed])


def _usable(spots: Sequence[Spot]) -> list[Spot]:
    return [spot for spot in spots if not spot.machine.left_out]


def _too_few(asked: str, fit: int, single: bool, full: str) -> str:
    if single:
        fits = Text("it does not fit now")
    else:
        fits = Text("{n} fit now", n=fit) if fit > 1 else Text("1 fits now") if fit else Text("none fits now")
    if not full:
        return Text("needs {asked}; {fits}", asked=asked, fits=fits)
    return Text("needs {asked}; {fits}: {full}", asked=asked, fits=fits, full=full)


def _full(gang: Gang, wanted: int, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]]) -> str:
    """The machine where most of the gang would have gone, but for others."""
    for _, need, party in _parties(gang):
        those = _taking(spots, party)
        lost = [spot.machine.capacity.fitting(need, wanted) - spot.free.fitting(need, wanted) for spot in those]
        if any(lost):
            return _tells(gang, need, those[lost.index(max(lost))], shares)
    return ""


def _tells(gang: Gang, need: Capacity, spot: Spot, shares: Mapping[str, Sequence[Share]]) -> str:
    machine, asked = spot.machine, [name for name in _RESOURCES if need[name]]
    name = min(asked, key=lambda name: spot.free[name] // need[name])
    free, whole = number(name, max(spot.free[name], Decimal(0))), named(name, machine.capacity[name])
    holders = held_by(gang.as_named_to(shares.get(machine.name, ()), name), partial(number, name))
    return Text("{host} has {free} of {whole} free{held}", host=machine.name, free=free, whole=whole, held=holders)


def _left_out(gang: Gang, spots: Sequence[Spot]) -> list[str]:
    parties = _parties(gang)
    missed = [
        spot.machine
        for spot in spots
        if spot.machine.left_out
        and any(spot.machine.takes(party) and spot.machine.at_best.capacity.fitting(need) for _, need, party in parties)
    ]
    told = [machine.why_left_out for machine in missed[:_MOST_NAMED]]
    more = len(missed) - len(told)
    counted = Text("1 more host is left out") if more == 1 else Text("{n} more hosts are left out", n=more)
    return [*told, counted] if more else told


# -- what is asked for ------------------------------------------------------------------------------------
def _asked(gang: Gang) -> str:
    """4 workers with 2 slots and 1 GPU each."""
    worker, launcher = gang.counted(gang.worker.need), gang.counted(gang.launcher_alone.need)
    if not gang.workers:
        return _with(Text("1 launcher"), launcher, 1)
    if gang.launcher_apart and launcher == worker:
        return _with(_counted(gang), worker, gang.parties)
    count = len(gang.workers)
    asked = _with(workers(count), worker, count)
    return all_of([asked, _with(Text("1 launcher"), launcher, 1)]) if any(launcher.values()) else asked


def _counted(gang: Gang) -> str:
    those = workers(len(gang.workers))
    if not gang.launcher_apart:
        return those
    return Text("1 launcher and {workers}", workers=those) if gang.workers else Text("1 launcher")


def _with(who: str, need: Capacity, number: int) -> str:
    template = Text("{who} with {each} each") if number > 1 else Text("{who} with {each}")
    return Text(template, who=who, each=all_named(need, _AS_ASKED))
