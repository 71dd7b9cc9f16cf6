"""What a job would be on SSH hosts, worked out with the same parts that would run it. Changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from oarsman import names
from oarsman.backends.base import Fit, Preview
from oarsman.engines.hosts.ssh import mpi_choice
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.engines.hosts.ssh.host_spec import SshHostSpecs, base_folder
from oarsman.engines.hosts.ssh.transport import SshTransport, network_of, refused
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Job
from oarsman.plan import placement

_RUN = "<run>"  # of a job that has none yet
_UID = "0" * 32
_FOLDER = "/tmp/oarsman-<uid>"


def preview(job: Job, fit: Fit, inventory_facts: InventoryFacts, environment: Mapping[str, str]) -> Preview:
    """Where it would be is only known of one that could start now."""
    planned = _host_specs(job, fit, inventory_facts, environment) if fit.machines else ""
    files: Mapping[str, str] = {}
    given: Mapping[str, str] = {}
    if isinstance(planned, SshHostSpecs):
        files = _transport().host_files(job, job.hosts, planned.specification())
        given = planned.given_to(job.launcher_host)
    line = shlex.join(job.launcher.container.argv)
    return Preview(
        mpi=str(planned.mpi) if isinstance(planned, SshHostSpecs) else "",
        hosts=job.hosts,
        ranks=dict(enumerate(placement.planned(job, fit.machines))),
        hostfile=files.get(names.HOSTFILE, ""),
        discover_hosts=files.get(names.DISCOVER_HOSTS, ""),
        environment={name: _nameless(value) for name, value in given.items() if _shown(name)},
        launch_line=line,
        rewritten=line,  # which machines and which options are added is settled on the launcher's machine
        objects=tuple(_objects(job, fit.machines)),
        not_honoured=(*([planned] if isinstance(planned, str) and planned else ()), *refusals(job)),
        fit=fit,
        machines=fit.machines,
    )


def _transport() -> SshTransport:
    return SshTransport(KnownInventories(left_out=lambda _: {}, keep=lambda *_: None))


def _host_specs(
    job: Job, fit: Fit, inventory_facts: InventoryFacts, environment: Mapping[str, str]
) -> SshHostSpecs | str:
    """What its hosts would be given, or why nothing can be."""
    places = {member: host for member, name in fit.machines.items() if (host := inventory_facts.inventory.host(name))}
    machines = {host.name: host for host in places.values()}
    facts = {name: inventory_facts.facts[name] for name in machines}
    mpi = mpi_choice.choose(job, facts)
    if isinstance(mpi, str):
        return mpi
    networks = network_of(machines, facts)
    if isinstance(networks, Trouble):
        return str(networks)
    return SshHostSpecs(
        job=replace(job, uid=_UID),
        environment=environment,
        places=places,
        facts=facts,
        mpi=mpi,
        networks=networks,
        ssh=inventory_facts.ssh,
        run_folder=_RUN,
        folders=dict.fromkeys(machines, "<folder>"),
        gpus={},
    )


def _shown(name: str) -> bool:
    """Our own plumbing is of no interest to anybody."""
    return not name.startswith("OARSMAN_") or name == names.ENV_HOST


def _nameless(text: str) -> str:
    return text.replace(base_folder(_UID), _FOLDER)


def refusals(job: Job) -> tuple[str, ...]:
    reason = refused(job)
    return (reason,) if reason is not None else ()


def _objects(job: Job, machines: Mapping[str, str]) -> Iterator[str]:
    for member in (job.launcher_host, *(host for host in job.hosts if host != job.launcher_host)):
        yield f"host {member} on {machines[member]}" if member in machines else f"host {member}"
    yield f"folder {_FOLDER} on every machine, removed at the end"
    yield "log files per rank"
