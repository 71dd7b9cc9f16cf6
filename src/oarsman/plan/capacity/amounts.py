"""Amounts of what machines have and jobs ask for, by the name of the resource; and how people hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import reduce
from typing import Final

from oarsman.job.job import is_gpu
from oarsman.text.sentence import Text, listed

_GIB: Final = Decimal(1024**3)
_GPUS: Final = (Text("{n} GPU"), Text("{n} GPUs"))
_COUNTED: Final = {  # one, and several
    "cpu": (Text("{n} CPU"), Text("{n} CPUs")),
    "slots": (Text("{n} slot"), Text("{n} slots")),
    "pods": (Text("{n} pod"), Text("{n} pods")),
    "limits.cpu": (Text("{n} CPU limit"), Text("{n} CPU limits")),
}
_MEASURED: Final = {
    "memory": Text("{n} GiB of memory"),
    "limits.memory": Text("{n} GiB of memory limits"),
    "ephemeral-storage": Text("{n} GiB of ephemeral-storage"),
    "limits.ephemeral-storage": Text("{n} GiB of ephemeral-storage limits"),
}
_MOST_HOLDERS: Final = 3  # that are named


class Capacity(dict[str, Decimal]):
    """So much of each resource: GPUs, CPUs (slots, on the hosts of an inventory), memory in bytes, ... What is not
    named is zero."""

    def __missing__(self, name: str) -> Decimal:
        return Decimal(0)

    def __add__(self, other: Capacity) -> Capacity:
        return Capacity({name: self[name] + other[name] for name in self | other})

    def __sub__(self, other: Capacity) -> Capacity:
        return Capacity({name: self[name] - other[name] for name in self | other})

    def __mul__(self, count: int) -> Capacity:
        return Capacity({name: amount * count for name, amount in self.items()})

    @property
    def cpus(self) -> Decimal:
        return self["cpu"] + self["slots"]

    @property
    def memory(self) -> Decimal:
        return self["memory"]

    @property
    def gpus(self) -> int:
        return int(sum(amount for name, amount in self.items() if is_gpu(name)))

    @property
    def not_shared(self) -> Capacity:
        """What of it no two jobs may use at once, whatever they say."""
        return Capacity({name: amount for name, amount in self.items() if is_gpu(name)})

    @property
    def at_least_nothing(self) -> Capacity:
        return Capacity({name: max(amount, Decimal(0)) for name, amount in self.items()})

    def fitting(self, need: Capacity, most: int = 1) -> int:
        """How many times `need` goes into it, up to `most`."""
        for name, each in need.items():
            if each > 0:
                most = min(most, int(max(self[name], Decimal(0)) // each))
        return most


def total(amounts: Iterable[Capacity]) -> Capacity:
    found = Capacity()
    for one in amounts:
        for name, amount in one.items():
            found[name] += amount
    return found


# -- words ------------------------------------------------------------------------------------------------
def number(name: str, amount: Decimal) -> str:
    """Without its unit; memory in GiB."""
    shown = amount / _GIB if _is_memory(name) else amount
    return f"{shown.quantize(Decimal('0.01')).normalize():f}"


def plain(name: str, amount: Decimal) -> str:
    """4, but 4 GiB."""
    return f"{number(name, amount)} GiB" if _is_memory(name) else number(name, amount)


def named(name: str, amount: Decimal) -> str:
    """4 CPUs, 4 GiB of memory."""
    shown = number(name, amount)
    if name in _MEASURED:
        return Text(_MEASURED[name], n=shown)
    if _is_memory(name):
        return Text("{n} GiB of {what}", n=shown, what=name.partition(".")[0])
    if is_gpu(name) or name in _COUNTED:
        one, several = _GPUS if is_gpu(name) else _COUNTED[name]
        return Text(one if shown == "1" else several, n=shown)
    return Text("{n} {what}", n=shown, what=name)


def all_named(need: Capacity, resources: Iterable[str]) -> str:
    """2 CPUs and 4 GiB of memory and 1 GPU; what is not asked for is not named."""
    told = [named(name, need[name]) for name in resources if need[name]]
    return reduce(lambda first, last: Text("{others} and {last}", others=first, last=last), told) if told else ""


def _is_memory(name: str) -> bool:
    return name.removeprefix("limits.") in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def held_by(holders: Iterable[tuple[str, Decimal]], show: Callable[[Decimal], str], *, jobs: bool = False) -> str:
    """Who has how much, the largest first. `jobs`: all of them are."""
    most = sorted(((amount, who) for who, amount in holders if amount), key=lambda one: (-one[0], one[1]))
    if not most:
        return ""
    told = listed(Text("{who}: {amount}", who=who, amount=show(amount)) for amount, who in most[:_MOST_HOLDERS])
    if more := max(len(most) - _MOST_HOLDERS, 0):
        told = Text("{told} and {n} more jobs" if jobs else "{told} and {n} more", told=told, n=more)
    return Text(" (held by {holders})", holders=told)
