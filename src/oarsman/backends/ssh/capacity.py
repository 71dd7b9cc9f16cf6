"""What SSH hosts have, who holds it, and whether one more job would fit; by the arithmetic of admission itself.

And what a job would be there, worked out with the same parts that would run it. Changes nothing.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from oarsman import names
from oarsman.backends.base import Amounts, Fit, HostFinding, HostRecord, JobRecord, Preview
from oarsman.backends.local.capacity import HostCapacity
from oarsman.control.host_state import last_check, left_out, placement_of
from oarsman.engines.hosts.core.installed_mpi import not_looked_for
from oarsman.engines.hosts.ssh import host_facts
from oarsman.engines.hosts.ssh.diagnose.judge import FAIL, WARN
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.engines.hosts.ssh.host_spec import SshHostSpecs, base_folder
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.transport import SshTransport, refused
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Job
from oarsman.plan import placement
from oarsman.plan.capacity import hosts as host_capacity
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text


def site(machines: Sequence[Machine], paths: Paths) -> HostCapacity:
    return HostCapacity(machines, host_capacity, partial(placement_of, paths))


def hosts(
    inventory_facts: InventoryFacts, records: Sequence[JobRecord], now: datetime, paths: Paths
) -> list[HostRecord]:
    machines = inventory_facts.machines()
    shares = [(job.gang.key, job.holds()) for job in site(machines, paths).placed(records, now)]
    on_purpose = left_out(inventory_facts.inventory, paths)
    when, findings = last_check(inventory_facts.inventory, paths) or (0.0, [])
    found = []
    for machine in machines:
        facts, trouble = inventory_facts.facts.get(machine.name), inventory_facts.troubles.get(machine.name)
        used = None
        if facts is not None:
            used = Amounts(cpus=min(facts.load, facts.processors), memory_bytes=facts.memory - facts.memory_available)
        checked = [finding for finding in findings if finding.host == machine.name]
        found.append(
            HostRecord.of(
                machine,
                [(key, share[machine.name]) for key, share in shares if machine.name in share],
                state=_state(machine, trouble, on_purpose=machine.name in on_purpose),
                message=str(trouble) if trouble and trouble.message == machine.left_out else machine.left_out,
                used=used,
                checked=datetime.fromtimestamp(when, UTC) if checked else None,
                findings=tuple(
                    HostFinding(level=finding.level, message=finding.message, hint=finding.hint)
                    for finding in checked
                    if finding.level in (WARN, FAIL)
                ),
            )
        )
    return found


def _state(machine: Machine, trouble: Trouble | None, *, on_purpose: bool) -> str:
    if trouble is not None and not on_purpose:
        return "lost"
    return "left out" if machine.left_out else "ready"


def held(records: Sequence[JobRecord], now: datetime, paths: Paths) -> dict[str, Capacity]:
    """By host, all jobs together."""
    found: dict[str, Capacity] = defaultdict(Capacity)
    for job in site((), paths).placed(records, now):
        for machine, share in job.holds().items():
            found[machine] += share
    return found


_RUN = "<run>"  # of a job that has none yet
_UID = "0" * 32
_FOLDER = "/tmp/oarsman-<uid>"


def preview(
    job: Job,
    fit: Fit,
    inventory_facts: InventoryFacts,
    environment: Mapping[str, str],
    known: Mapping[str, HostFacts] | None = None,
    *,
    trusts: bool = True,
) -> Preview:
    """Where it would be is only known of one that could start now. known: what hosts said when asked for this job;
    without trust they were not asked for the MPI that it names."""
    known = known or inventory_facts.facts
    planned = _host_specs(job, fit, inventory_facts, known, environment) if fit.machines else ""
    if isinstance(planned, str) and planned and job.mpi_path and not trusts:
        planned = not_looked_for(job.mpi_path)
    files: Mapping[str, str] = {}
    given: Mapping[str, str] = {}
    if isinstance(planned, SshHostSpecs):
        transport = SshTransport(KnownInventories(left_out=lambda _: {}, keep=lambda *_: None))
        files = transport.host_files(job, job.hosts, planned.specification())
        given = planned.given_to(job.launcher_host)
    line = shlex.join(job.launcher.container.argv)
    return Preview(
        mpi=str(planned.mpi) if isinstance(planned, SshHostSpecs) else "",
        hosts=job.hosts,
        ranks=dict(enumerate(placement.planned(job, fit.machines))),
        hostfile=files.get(names.HOSTFILE, ""),
        discover_hosts=files.get(names.DISCOVER_HOSTS, ""),
        environment={
            name: value.replace(base_folder(_UID), _FOLDER)
            for name, value in given.items()
            if not name.startswith("OARSMAN_") or name == names.ENV_HOST  # our own plumbing interests nobody
        },
        launch_line=line,
        rewritten=line,  # which machines and which options are added is settled on the launcher's machine
        objects=tuple(_objects(job, fit.machines)),
        not_honoured=(*([planned] if isinstance(planned, str) and planned else ()), *refusals(job)),
        fit=fit,
        machines=fit.machines,
    )


def _host_specs(
    job: Job, fit: Fit, inventory_facts: InventoryFacts, known: Mapping[str, HostFacts], environment: Mapping[str, str]
) -> SshHostSpecs | str:
    """What its hosts would be given, or why nothing can be."""
    places = {member: host for member, name in fit.machines.items() if (host := inventory_facts.inventory.host(name))}
    machines = {host.name: host for host in places.values()}
    facts = {name: known[name] for name in machines}
    mpi = host_facts.choose_mpi(job, facts)
    if isinstance(mpi, str):
        return mpi
    networks = host_facts.network_of(machines, facts)
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


def refusals(job: Job) -> tuple[str, ...]:
    reason = refused(job)
    return (reason,) if reason is not None else ()


def _objects(job: Job, machines: Mapping[str, str]) -> Iterator[str]:
    for member in (job.launcher_host, *(host for host in job.hosts if host != job.launcher_host)):
        if member in machines:
            yield Text("host {name} on {machine}", name=member, machine=machines[member])
        else:
            yield Text("host {name}", name=member)
    yield Text("folder {folder} on every machine, removed at the end", folder=_FOLDER)
    yield Text("log files per rank")
