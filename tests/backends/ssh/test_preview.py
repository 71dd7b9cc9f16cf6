"""What a job would be on SSH hosts, worked out from what the hosts said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oarsman.backends.base import Amounts, Fit
from oarsman.backends.ssh.capacity import preview, refusals
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.engines.hosts.ssh.interfaces import Address
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.job.job import Job
from oarsman.job.mpi import Family
from oarsman.manifest import job_from_document

MPI = HostMpi(launcher="/usr/bin/mpirun", real="/usr/bin/mpirun", family=Family.OPENMPI4, version="4.1.4")
MACHINES = {"pi-launcher": "node1", "pi-worker-0": "node1", "pi-worker-1": "node1", "pi-worker-2": "node2"}


def a_job(**container: Any) -> Job:
    command = ["mpirun", "-np", "6", "./pi"]
    return job_from_document(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "pi"},
            "spec": {
                "slotsPerWorker": 2,
                "mpiReplicaSpecs": {
                    "Launcher": {
                        "template": {"spec": {"containers": [{"name": "l", "command": command, **container}]}}
                    },
                    "Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "w"}]}}},
                },
            },
        }
    )


def facts(number: int, *mpis: HostMpi) -> HostFacts:
    return HostFacts(
        hostname=f"node{number}",
        user="rower",
        uid=5001,
        home="/home/rower",
        system="Linux",
        architecture="x86_64",
        processors=4,
        memory=1 << 33,
        memory_available=1 << 32,
        load=0.1,
        clock=0.0,
        gpus=(),
        path="/usr/bin",
        login_path=None,
        mpis=mpis,
        folder="/home/rower/.oarsman",
        folder_problem="",
        folder_free=None,
        temporary_free=None,
        addresses=(Address(interface="eth0", address=f"10.0.0.{number}", prefix=24),),
        reached=f"10.0.0.{number}",
        rdma=(),
        complete=True,
    )


def a_survey(folder: Path, *second: HostMpi) -> InventoryFacts:
    """Two hosts; the second has these MPIs."""
    (folder / "hosts").write_text("node1 slots=4\nnode2 slots=2\n")
    inventory_facts = KnownInventories(left_out=lambda _: {}, keep=lambda *_: None).of(str(folder / "hosts"))
    inventory_facts.facts = {"node1": facts(1, MPI), "node2": facts(2, *second)}
    return inventory_facts


def a_fit(machines: dict[str, str], **given: Any) -> Fit:
    return Fit(
        **{"now": True, "ever": True, **given}, wanted=Amounts(), free=Amounts(), total=Amounts(), machines=machines
    )


def test_a_job_that_fits_is_shown_as_it_would_run(tmp_path: Path) -> None:
    found = preview(a_job(), a_fit(MACHINES), a_survey(tmp_path, MPI), {"NCCL_DEBUG": "INFO", "EDITOR": "vi"})
    assert found.mpi == "Open MPI 4.1.4 (/usr/bin/mpirun)"
    assert found.hostfile == "10.0.0.1 slots=4\n10.0.0.2 slots=2\n"  # two workers share the first machine
    assert found.ranks == {rank: f"pi-worker-{rank // 2}" for rank in range(6)}
    assert found.machines == MACHINES
    assert "host pi-worker-2 on node2" in found.objects
    assert found.environment["OMPI_MCA_btl_tcp_if_include"] == "10.0.0.0/24"
    assert found.environment["NCCL_DEBUG"] == "INFO"
    assert "EDITOR" not in found.environment
    assert not [value for value in found.environment.values() if "0000" in value]  # it has no uid yet
    assert found.not_honoured == ()


def test_of_one_that_does_not_fit_no_machine_is_told(tmp_path: Path) -> None:
    found = preview(a_job(), a_fit({}, now=False, reason="too many"), a_survey(tmp_path, MPI), {})
    assert (found.machines, found.hostfile, found.environment) == ({}, "", {})
    assert found.fit is not None
    assert found.fit.reason == "too many"
    assert found.ranks == {rank: f"pi-worker-{rank // 2}" for rank in range(6)}


def test_hosts_without_a_common_mpi_are_told_of(tmp_path: Path) -> None:
    found = preview(a_job(), a_fit(MACHINES), a_survey(tmp_path), {})
    assert found.not_honoured[0].startswith("node2 has no MPI (it has none at all).")
    assert found.mpi == ""


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({}, ()),
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, ("envFrom: exists on Kubernetes only",)),
        ({"command": [], "image": "pi"}, ("the launcher has no command",)),
    ],
)
def test_what_hosts_cannot_honour_is_told(container: dict[str, Any], said: tuple[str, ...]) -> None:
    found = refusals(a_job(**container))
    assert len(found) == len(said)
    assert all(words in text for words, text in zip(said, found, strict=True))
