"""Limits of a process: resources (`ulimit`), niceness and processors. A job has those of whoever submitted it.

They travel with its variables; inherited, they would be those of the shell that once started the supervisor.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.text.sentence import Text, listed

if TYPE_CHECKING:  # a job agent does without it, which saves a third of its start
    from oarsman.job.job import Job

# As limits.conf calls them.
_IN_BYTES = ("as", "core", "data", "fsize", "memlock", "msgqueue", "rss", "stack")
_COUNTED = ("cpu", "nice", "nofile", "nproc", "rtprio", "rttime", "sigpending")
_UNLIMITED = resource.RLIM_INFINITY
# Of the others every machine has its own.
_USUAL = {**dict.fromkeys(("as", "cpu", "data", "fsize", "rss"), _UNLIMITED), "stack": 8 << 20}
_FILES_BESIDE = 64  # of a job agent, besides one for each rank: hosts, callers, its journal
_MOST_CPUS = 8192  # that Linux can be built for


class Limits(NamedTuple):
    soft: Mapping[str, int]
    nice: int = 0
    cpus: Sequence[int] = ()  # empty: not known on this system


def of_this_process() -> Limits:
    return Limits({name: resource.getrlimit(number)[0] for name, number in _numbers().items()}, *_scheduled())


def write(limits: Limits) -> str:
    return json.dumps(limits._asdict())


def read(text: str) -> Limits | None:
    """None of a job from before they were recorded."""
    return Limits(**json.loads(text)) if text else None


def fitted(wanted: Limits) -> Limits:
    """What of it a child of this process can have without privileges."""
    hard = {name: resource.getrlimit(number)[1] for name, number in _numbers().items()}
    soft = {name: min(amount, hard[name], key=_height) for name, amount in wanted.soft.items() if name in hard}
    return Limits(soft, *_tried(wanted.nice, wanted.cpus))


def all_cpus() -> Sequence[int]:
    """Those that a job can be given here, whichever of them this process was confined to."""
    return _tried(_scheduled()[0], range(_MOST_CPUS))[1]


def apply(limits: Limits) -> None:
    """To this process. What is refused stays as it is."""
    _schedule(limits.nice, limits.cpus)  # first: how nice one may be is a resource, too
    for name, number in _numbers().items():
        if name in limits.soft:
            hard = resource.getrlimit(number)[1]
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(number, (min(limits.soft[name], hard, key=_height), hard))


def open_more_files() -> None:
    """As many as this process may have without privileges; what is usual is meant for programs of another kind."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):  # where more is said than can be had
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def too_few_files(ranks: int) -> str:
    """Why so many ranks cannot be looked after; empty if they can."""
    hard, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[1], ranks + _FILES_BESIDE
    if _height(hard) >= needed:
        return ""
    words = Text("{ranks} ranks need {needed} open files, and {hard} can be had (ulimit -Hn): raise it or start fewer")
    return Text(words, ranks=ranks, needed=needed, hard=hard)


def told(wanted: Limits, given: Limits) -> str:
    """What of it is not as usual, not as it is for this process, or not as it was asked for."""
    own = of_this_process()
    parts = []
    for name, amount in given.soft.items():
        if not amount == wanted.soft[name] == own.soft[name] == _USUAL.get(name, amount):
            parts.append(_told(name, _amount(name, amount), _amount(name, wanted.soft[name])))
    if not given.nice == wanted.nice == 0:
        parts.append(_told(Text("niceness"), str(given.nice), str(wanted.nice)))
    if not list(given.cpus) == list(wanted.cpus) == list(all_cpus()):
        parts.append(_told(Text("CPUs"), _ranges(given.cpus), _ranges(wanted.cpus)))
    return listed(parts)


def not_kept(job: Job, slices: Slices | None) -> str:
    """What whoever limited the job's memory has to know before it starts. None: on machines of others."""
    if not job.limits_memory or (slices is not None and slices.memory):
        return ""
    if slices is None:
        return Text("memory limits are not enforced: hosts are used as they are")
    return Text("memory limits are not enforced: no control group can be made here")


def _told(what: str, given: str, wanted: str) -> str:
    if given == wanted:
        return Text("{what} {amount}", what=what, amount=given)
    return Text("{what} {amount} ({wanted} cannot be had)", what=what, amount=given, wanted=wanted)


def _amount(name: str, amount: int) -> str:
    if amount == _UNLIMITED:
        return Text("unlimited")
    from oarsman.text import units  # shims and hosts have nothing to tell

    return units.size(amount) if name in _IN_BYTES else str(amount)


def _ranges(cpus: Sequence[int]) -> str:
    """As taskset takes them: 0-3,7."""
    from oarsman.text import units  # as above

    return units.ranges(cpus).replace(" ", "")


def _numbers() -> dict[str, int]:
    """Those that this system has."""
    known = {name: getattr(resource, f"RLIMIT_{name.upper()}", None) for name in sorted((*_IN_BYTES, *_COUNTED))}
    return {name: number for name, number in known.items() if number is not None}


def _height(amount: int) -> float:
    return float("inf") if amount == _UNLIMITED else amount


def _scheduled() -> tuple[int, Sequence[int]]:
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ()
    return os.getpriority(os.PRIO_PROCESS, 0), cpus


def _schedule(nice: int, cpus: Sequence[int]) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cpus)


def _tried(nice: int, cpus: Sequence[int]) -> tuple[int, Sequence[int]]:
    """What becomes of it. On Linux each thread has its own, which end with it."""
    from concurrent.futures import ThreadPoolExecutor  # only the supervisor tries

    if not hasattr(os, "sched_setaffinity"):
        return max(nice, _scheduled()[0]), ()

    def attempt() -> tuple[int, Sequence[int]]:
        _schedule(nice, cpus)
        return _scheduled()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(attempt).result()
