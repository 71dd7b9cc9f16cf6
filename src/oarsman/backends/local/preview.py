"""What a job would be on this machine, worked out with the same parts that would run it. Changes nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from oarsman import names
from oarsman.backends.base import Preview
from oarsman.engines.hosts.core import cgroups, installed_mpi
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.separation import probe
from oarsman.engines.hosts.local import host_spec
from oarsman.engines.hosts.local.host_spec import LocalHostSpecs
from oarsman.job import launch
from oarsman.job.job import Job
from oarsman.job.mpi import Family, discover_hosts, hostfile

_RUN = "<run>"  # folders that exist only once the job does
_FOLDER = "<job>"


def preview(job: Job, environment: Mapping[str, str], folder: Path) -> Preview:
    separation = probe()
    stated = job.implementation if job.implementation_stated else None
    found = installed_mpi.choose(environment, wanted=job.annotation(names.ANNOTATION_MPI), stated=stated)
    mpi = found or FoundMpi(Family.OPENMPI5, "", os.path.join(os.defpath.split(os.pathsep)[-1], "mpirun"))
    host_specs = LocalHostSpecs(
        job=replace(job, uid="<uid>"),
        environment=environment,
        folder=folder,
        mpi=mpi,
        separation=separation,
        job_folder=_FOLDER,
        run_folder=_RUN,
        gpus={},
    )
    given = host_specs.given_to(job.launcher_host)
    placement = (
        launch.expected_placement(job.launch, job.hosts, job.slots_per_worker) if job.launch is not None else None
    )
    written = job.launcher.container.argv
    refused = host_spec.all_refusals(job, folder=folder, separation=separation)
    return Preview(
        mpi=str(found) if found is not None else "",
        hosts=job.hosts,
        ranks=dict(enumerate(placement or ())),
        hostfile=hostfile(mpi.family.implementation, job.hosts, job.slots_per_worker),
        discover_hosts=discover_hosts(job.hosts, job.slots_per_worker),
        environment={name: value for name, value in given.items() if environment.get(name) != value and _shown(name)},
        launch_line=shlex.join(written),
        rewritten=shlex.join(rewritten(job)),
        objects=_objects(job, host_specs, folder),
        not_honoured=(*refused, *host_spec.remarks(job, separation, cgroups.find())),
    )


def _shown(name: str) -> bool:
    """Our own plumbing is of no interest to anybody."""
    return not name.startswith("OARSMAN_") or name in (names.ENV_JOB, names.ENV_HOST)


def rewritten(job: Job) -> tuple[str, ...]:
    """The launch line as it would run, unless the job says to leave it alone."""
    argv = job.launcher.container.argv
    if not job.rewrites_launch_line:
        return tuple(argv)
    return tuple(launch.rewrite(argv).argv)


def _objects(job: Job, host_specs: LocalHostSpecs, folder: Path) -> tuple[str, ...]:
    network = "private network" if host_specs.private else "the machine's network"
    hosts = [f"host {name} ({host_specs.address(name)}, {network})" for name in (job.launcher_host, *_workers(job))]
    files = [f"{names.MPI_CONFIG_DIR}/{name}" for name in (names.HOSTFILE, names.DISCOVER_HOSTS, names.KUBEXEC)]
    return (
        *hosts,
        *(f"file {path} on every host" for path in files),
        f"launcher process in {folder}",
        "log files per rank",
    )


def _workers(job: Job) -> tuple[str, ...]:
    return tuple(job.worker_host(index) for index in range(job.workers))
