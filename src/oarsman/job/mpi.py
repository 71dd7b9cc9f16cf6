"""The facts of each MPI implementation: how it writes hosts down, which variables it reads.

Open MPI 4 reads OMPI_MCA_orte_* and OMPI_MCA_plm_rsh_*, Open MPI 5 ignores both and reads PRTE_MCA_*.
Each ignores the other's names, so both generations are always exported: a launcher that finds no
hostfile runs every rank on itself and reports success.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from oarsman.job.job import Implementation


class Family(str, Enum):
    """An implementation as found on a machine: Open MPI's two generations need different treatment."""

    OPENMPI4 = "Open MPI 4"
    OPENMPI5 = "Open MPI 5"
    MPICH = "MPICH"
    INTEL = "Intel MPI"

    @property
    def implementation(self) -> Implementation:
        others = {Family.MPICH: Implementation.MPICH, Family.INTEL: Implementation.INTEL}
        return others.get(self, Implementation.OPENMPI)


Slots = int | Mapping[str, int] | Iterable[tuple[str, int]]  # of every host, or of each by its name


def hostfile(implementation: Implementation, hosts: Iterable[str], slots: Slots) -> str:
    form = "{} slots={}\n" if implementation is Implementation.OPENMPI else "{}:{}\n"
    return "".join(form.format(*each) for each in _with_slots(hosts, slots))


def discover_hosts(hosts: Iterable[str], slots: Slots) -> str:
    """The script Horovod Elastic asks for the hosts of the moment. Slots are always said."""
    return "#!/bin/sh\n" + "".join(f"echo {host}:{count}\n" for host, count in _with_slots(hosts, slots))


def _with_slots(hosts: Iterable[str], slots: Slots) -> Iterator[tuple[str, int]]:
    if isinstance(slots, int):
        return ((host, slots) for host in hosts)
    by_name = dict(slots)
    return ((host, by_name[host]) for host in hosts)


# Daemons of Open MPI 5 on other hosts start ranks from several threads, and can then miss the end of one that is over
# at once: mpirun waits for it for ever, although every rank has ended.
ONE_THREAD: Mapping[str, str] = {"PRTE_MCA_odls_base_max_threads": "0"}


def launcher_variables(*, hostfile: str, agent: str, slots: int) -> Mapping[str, str]:
    """What makes a launcher of any family use our hosts and reach them through `agent`."""
    return {
        "OMPI_MCA_plm": "rsh",  # also inside a batch system's allocation, or an image that says otherwise
        "OMPI_MCA_plm_rsh_agent": agent,
        "OMPI_MCA_orte_default_hostfile": hostfile,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": agent,
        "PRTE_MCA_prte_default_hostfile": hostfile,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": str(slots),
        **ONE_THREAD,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": agent,
        "HYDRA_HOST_FILE": hostfile,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
        "I_MPI_HYDRA_HOST_FILE": hostfile,
        "I_MPI_PERHOST": str(slots),
    }
