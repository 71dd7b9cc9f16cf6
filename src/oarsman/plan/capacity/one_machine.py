"""One machine: an inventory of one host, on which a job is placed as a whole.

A job that says nothing about CPUs needs one per slot, or all there are if that is less: many small jobs queue up
instead of crowding each other out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from oarsman.job.job import Job
from oarsman.plan.capacity.amounts import held_by, named, number, plain
from oarsman.plan.capacity.gang import Gang, Party, Share, asked_of, needed_by
from oarsman.plan.capacity.placement import Machine, Spot, with_way_out
from oarsman.text.sentence import Text, sentences
from oarsman.text.units import workers

_RESOURCES = ("gpu", "cpu", "memory")  # in the order in which people hear of them


def gang_of(job: Job, now: datetime, machines: Sequence[Machine]) -> Gang:
    """Launcher and workers together."""
    [machine] = machines
    need = needed_by(job, cpus=machine.capacity.cpus)
    gang = Gang.of(job, now, launcher=Party(need=need), launcher_apart=True)
    return gang if job.worker is None else replace(gang, made_of=(job.workers, asked_of(job.worker)))


def never(gang: Gang, empty: Sequence[Spot]) -> str:
    [spot] = empty
    need = gang.counted(gang.whole)
    name = next(name for name in _RESOURCES if need[name] > spot.free[name])
    asked, has = named(name, need[name]), plain(name, spot.free[name])
    count, each = gang.made_of
    if count > 1 and each[name] * count == need[name]:
        asked = Text("{what} ({workers} x {each})", what=asked, workers=workers(count), each=plain(name, each[name]))
    return with_way_out(Text("asks for {asked}, the machine has {whole}", asked=asked, whole=has), gang, empty)


def short(gang: Gang, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]]) -> str:
    [spot] = spots
    need, free, whole = gang.counted(gang.whole), spot.free.at_least_nothing, spot.machine.capacity
    return sentences(
        Text(
            "needs {need}, {free} of {whole} are free{held}",
            need=named(name, need[name]),
            free=number(name, free[name]),
            whole=number(name, whole[name]),
            held=held_by(gang.as_named_to(shares.get(spot.machine.name, ()), name), partial(number, name)),
        )
        for name in _RESOURCES
        if need[name] > free[name]
    )
