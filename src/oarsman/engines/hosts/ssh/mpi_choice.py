"""Which MPI a job uses on SSH hosts: one that all its machines have, in the same generation and at the same place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from oarsman import names
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.job.job import Implementation, Job
from oarsman.text.sentence import Text

_BY_NAME = {"openmpi": Implementation.OPENMPI, "mpich": Implementation.MPICH, "intel": Implementation.INTEL}


def choose(job: Job, facts: Mapping[str, HostFacts]) -> FoundMpi | str:
    """The MPI, or why there is none. `facts` are those of the job's machines, the launcher's first."""
    wanted = job.annotation(names.ANNOTATION_MPI)
    suitable = {machine: _suitable(job, wanted, found.mpis) for machine, found in facts.items()}
    what = wanted or (job.implementation.value if job.implementation_stated else "MPI")
    for machine, mpis in suitable.items():
        if not mpis:
            there = ", ".join(str(mpi.found) for mpi in facts[machine].mpis if mpi.found) or Text("none at all")
            return Text(
                "{host} has no {what} (it has {there}). Install one there, or name its folder as `mpi` "
                "in the inventory; 'oarsman hosts check' shows what every host has",
                host=machine,
                what=what,
                there=there,
            )
    first, *others = suitable.items()
    for mpi in first[1]:
        if all(any(_same(mpi, other) for other in theirs) for _, theirs in others):
            found = mpi.found
            assert found is not None
            return found
    return _disagreement(first, others)


def unseen(job: Job, facts: Mapping[str, HostFacts]) -> list[str]:
    """The machines on which nobody has looked yet for the MPI that the job names by its path."""
    wanted = job.annotation(names.ANNOTATION_MPI)
    return [name for name, found in facts.items() if os.path.isabs(wanted) and not _suitable(job, wanted, found.mpis)]


def _suitable(job: Job, wanted: str, mpis: Sequence[HostMpi]) -> list[HostMpi]:
    if os.path.isabs(wanted):
        return [mpi for mpi in mpis if mpi.found and (mpi.launcher == wanted or _below(mpi.launcher, wanted))]
    implementation = _BY_NAME.get(wanted.lower()) if wanted else None
    if not wanted and job.implementation_stated:
        implementation = job.implementation
    known = [mpi for mpi in mpis if mpi.family is not None]
    return [mpi for mpi in known if implementation in (None, mpi.family.implementation if mpi.family else None)]


def _below(launcher: str, folder: str) -> bool:
    return os.path.dirname(launcher) in (folder.rstrip("/"), f"{folder.rstrip('/')}/bin")


def _same(one: HostMpi, other: HostMpi) -> bool:
    """The launcher names its helpers on other machines by their full paths."""
    return (one.family, os.path.dirname(one.launcher)) == (other.family, os.path.dirname(other.launcher))


def _disagreement(first: tuple[str, list[HostMpi]], others: Sequence[tuple[str, list[HostMpi]]]) -> str:
    machine, mpis = first
    for other, theirs in others:
        if not any(_same(mpi, their) for mpi in mpis for their in theirs):
            return Text(
                "{one} has {this}, {other} has {that}: all need the same, at the same place",
                one=machine,
                this=mpis[0].found,
                other=other,
                that=theirs[0].found,
            )
    return Text("the hosts have no MPI in common: all need the same, at the same place")
