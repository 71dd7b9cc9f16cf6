"""Where ranks ran against where they were planned.

A launcher that does not find its hostfile runs every rank on itself and reports success. So each
rank's report is compared with the plan: exactly, where the launch line says enough to know the plan,
and loosely (a host of this job) where it does not. A script may launch more than once: each world has its own launch
line, and the one in the manifest is only the first of them.

Where several members share a machine, MPI knows that machine as one host with all their slots: machines are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from oarsman import names
from oarsman.job.job import Implementation, Job
from oarsman.job.launch import LaunchLine, expected_placement
from oarsman.job.observed import Observed, RankReport, World
from oarsman.job.state import Attempt
from oarsman.text.sentence import Text


def seen(ranks: Sequence[RankReport]) -> Mapping[int, str]:
    return {r.rank: short(r.host) for r in sorted(ranks, key=lambda r: r.rank)}


def short(host: str) -> str:
    """The first label: the name a host has in this job, however the resolver completed it. An address has no labels."""
    return host if host.replace(".", "").isdigit() else host.split(".", 1)[0]


def mistake(
    job: Job, world: World, attempt: Attempt | None, *, complete: bool, machines: Mapping[str, str] | None = None
) -> str | None:
    """What is wrong, in one line, or None. `complete`: every rank has had its chance to report.

    `machines`: member -> machine, where that is not one of its own.
    """
    if not world.ranks:
        return None
    machines = machines or {}
    found = {rank: _machine(host, machines) for rank, host in seen(world.ranks).items()}
    hosts = hosts_at_launch(job, attempt)
    planned = None if _scaled(job, world.hosts, hosts) else expected(_launched_with(job, world), hosts, machines)
    if planned is None:
        known = (*job.hosts, *hosts, *world.hosts)
        return _stranger(found, job, {short(_machine(host, machines)) for host in known})
    wrong = [
        Text("rank {rank} ran on {host}, planned {planned}", rank=rank, host=host, planned=planned[rank])
        if rank < len(planned)
        else Text("rank {rank} ran on {host}, planned were {count} ranks", rank=rank, host=host, count=len(planned))
        for rank, host in found.items()
        if rank >= len(planned) or short(planned[rank]) != short(host)
    ]
    failed = any(rank.exit is not None and rank.exit.code != 0 for rank in world.ranks)  # before others had begun
    missing = [
        Text("rank {rank} never ran, planned {host}", rank=rank, host=host)
        for rank, host in enumerate(planned if complete and not failed else ())
        if rank not in found
    ]
    return _first_of(wrong or missing)


def _launched_with(job: Job, world: World) -> Job:
    """The same job with the words of this world. Those of a script are known when it has said them, not before."""
    if job.launch is None or (world.line is None and not job.launch.in_shell):
        return job
    return replace(job, launch=world.line)


def _scaled(job: Job, then: Sequence[str], at_first: Sequence[str]) -> bool:
    """Whether a world was launched on other hosts than those its attempt began with. The list may have changed while
    its launcher read it, so nobody knows its plan."""
    return job.elastic or bool(then and set(then) != set(at_first))


def expected_of_newest(job: Job, seen: Observed) -> Mapping[int, str]:
    """Rank -> host of the newest world. Scaling the job since then did not move its ranks."""
    hosts = hosts_at_launch(job, seen.status.attempt)
    asked = replace(job, launch=seen.line) if seen.line is not None else job
    planned = None if _scaled(job, seen.world_hosts, hosts) else expected(asked, hosts, seen.machines)
    return {rank: short(host) for rank, host in enumerate(planned or ())}


def expected(job: Job, hosts: Sequence[str], machines: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """The plan of a launcher whose kind is not stated is known only where both kinds would do the same.

    A machine stands where its first member does, with the slots of all of them.
    """
    if job.launch is None:
        return None
    hydra = True if job.implementation is not Implementation.OPENMPI else None
    slots = {
        machine: job.slots_per_worker * count
        for machine, count in Counter(_machine(host, machines or {}) for host in hosts).items()
    }
    plan = expected_placement(job.launch, tuple(slots), slots, hydra=hydra)
    others = []
    if not job.implementation_stated:
        others.append(expected_placement(job.launch, tuple(slots), slots, hydra=True if hydra is None else None))
    if not job.implementation_stated or job.implementation is Implementation.INTEL:
        by_intel = _as_intel_reads(job.launch, job.slots_per_worker)
        others.append(expected_placement(by_intel, tuple(slots), slots, hydra=True) if by_intel else plan)
    return plan if all(other == plan for other in others) else None


def _as_intel_reads(line: LaunchLine, slots: int) -> LaunchLine | None:
    """Intel's launcher gives hosts that are named without a number as many ranks as I_MPI_PERHOST says; None where that
    makes no difference."""
    by_name = line.per_node is None and any(host.slots is None for host in line.hosts)
    return replace(line, per_node=slots) if by_name else None


def planned(job: Job, machines: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """By rank, the host it belongs to; empty where nobody can know. Hosts that share a machine are one to MPI, and each
    has its slots of it."""
    members: dict[str, list[str]] = {}
    for host in job.hosts:
        members.setdefault(_machine(host, machines or {}), []).append(host)
    seen = dict.fromkeys(members, 0)
    found = []
    for machine in expected(job, job.hosts, machines) or ():
        here = members[machine]
        found.append(here[min(seen[machine] // job.slots_per_worker, len(here) - 1)])
        seen[machine] += 1
    return tuple(found)


def _machine(member: str, machines: Mapping[str, str]) -> str:
    return machines.get(member, member)


def hosts_at_launch(job: Job, attempt: Attempt | None) -> tuple[str, ...]:
    """Scaling a running job changes its hosts, not where the ranks of this attempt were sent."""
    count = job.workers if attempt is None or attempt.workers is None else attempt.workers
    workers = tuple(job.worker_host(i) for i in range(count))
    return (job.launcher_host, *workers) if job.run_launcher_as_worker or not workers else workers


def _stranger(found: Mapping[int, str], job: Job, known: Set[str]) -> str | None:
    """An elastic job has had hosts that are no longer listed; they are known by their name."""
    ours = names.worker_name(job.name, 0)[:-1]
    wrong = [
        Text("rank {rank} ran on {host}, which is not a host of this job", rank=rank, host=host)
        for rank, host in found.items()
        if short(host) not in known and not (job.elastic and host.startswith(ours))
    ]
    return _first_of(wrong)


def _first_of(wrong: Sequence[str]) -> str | None:
    if not wrong:
        return None
    return Text("{first} (and {count} more)", first=wrong[0], count=len(wrong) - 1) if len(wrong) > 1 else wrong[0]
