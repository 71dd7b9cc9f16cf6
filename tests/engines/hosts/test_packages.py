"""What an environment changes in what a host is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.client.mpijob import MPIJob
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.job_spec import LocalHostSpec, Separation
from oarsman.engines.hosts.local.host_spec import LocalHostSpecs
from oarsman.job.mpi import Family
from oarsman.manifest import job_from_document


@pytest.mark.parametrize(
    ("chosen", "launcher", "worker"),
    [
        (None, "/run/x/bin:/envs/t/bin:/usr/bin:/opt/mpi/bin", "/envs/t/bin:/usr/bin:/opt/mpi/bin"),
        ("openmpi", "/run/x/bin:/envs/t/bin:/usr/bin:/opt/mpi/bin", "/envs/t/bin:/usr/bin:/opt/mpi/bin"),
    ],
)
def test_the_programs_of_an_environment_come_first_whichever_mpi_is_chosen(
    chosen: str | None, launcher: str, worker: str
) -> None:
    job = job_from_document(MPIJob("pi", command=["true"], workers=1, implementation=chosen).to_dict())
    host_specs = LocalHostSpecs(
        job=job,
        environment={"PATH": "/usr/bin"},
        folder=Path("/"),
        mpi=FoundMpi(Family.OPENMPI5, "5", "/opt/mpi/bin/mpirun"),
        separation=Separation(),
        job_folder="/jobs/x",
        run_folder="/run/x",
        gpus={},
        packages="/envs/t",
    )
    hosts = host_specs.specification().hosts
    for name, path in (("pi-launcher", launcher), ("pi-worker-0", worker)):
        host = hosts[name]
        assert isinstance(host, LocalHostSpec)
        assert host.environment["PATH"] == host.own["PATH"] == path
