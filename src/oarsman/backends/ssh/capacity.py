"""What SSH hosts have, who holds it, and whether one more job would fit; by the arithmetic of admission itself.

And what a job would be there, worked out with the same parts that would run it. Changes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from oarsman import names
from oarsman.backends.base import Amounts, Fit, Holding, HostFinding, HostRecord, JobRecord, Preview
from oarsman.backends.local.capacity import running_and_waiting
from oarsman.control.host_state import last_check
from oarsman.engines.hosts.core.job_spec import find_spec
from oarsman.engines.hosts.ssh import host_facts
from oarsman.engines.hosts.ssh.diagnose.judge import FAIL, WARN, Finding
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.engines.hosts.ssh.host_spec import SshHostSpecs, base_folder
from oarsman.engines.hosts.ssh.transport import SshTransport, refused
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Job
from oarsman.job.observed import Place
from oarsman.plan import placement
from oarsman.plan.capacity import hosts as host_capacity
from oarsman.plan.capacity import queue
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Placed
from oarsman.plan.capacity.hosts import gang_of
from oarsman.store.paths import Paths

Check = tuple[float, list[Finding]]  # when it was, and all that it found


def hosts(
    inventory_facts: InventoryFacts, records: Sequence[JobRecord], now: datetime, paths: Paths
) -> list[HostRecord]:
    shares = [(job.gang.key, job.holds()) for job in _placed(records, now, paths)]
    check = last_check(inventory_facts.inventory, paths)
    found = []
    for machine in inventory_facts.machines():
        here = [(key, share[machine.name]) for key, share in shares if machine.name in share]
        facts, trouble = inventory_facts.facts.get(machine.name), inventory_facts.troubles.get(machine.name)
        used = None
        if facts is not None:
            used = Amounts(cpus=min(facts.load, facts.processors), memory_bytes=facts.memory - facts.memory_available)
        found.append(
            HostRecord(
                name=machine.name,
                state="left out" if machine.left_out else "ready",
                message=str(trouble) if trouble and trouble.message == machine.left_out else machine.left_out,
                total=Amounts.of(machine.capacity),
                held=Amounts.of(total(share for _, share in here)),
                used=used,
                holdings=tuple(Holding(key=key, amounts=Amounts.of(share)) for key, share in here),
                **_checked(machine.name, check),
            )
        )
    return found


def _checked(host: str, check: Check | None) -> dict[str, Any]:
    """What the last check says of this host, where it was one of those that were checked."""
    when, findings = check or (0.0, [])
    own = [finding for finding in findings if finding.host == host]
    if not own:
        return {}
    wrong = tuple(
        HostFinding(level=finding.level, message=finding.message, hint=finding.hint)
        for finding in own
        if finding.level in (WARN, FAIL)
    )
    return {"checked": datetime.fromtimestamp(when, UTC), "findings": wrong}


def held(records: Sequence[JobRecord], now: datetime, paths: Paths) -> dict[str, Capacity]:
    """By host, all jobs together."""
    found: dict[str, Capacity] = {}
    for job in _placed(records, now, paths):
        for machine, share in job.holds().items():
            found[machine] = found.get(machine, Capacity()) + share
    return found


def fit(
    job: Job, owner: str, inventory_facts: InventoryFacts, records: Sequence[JobRecord], now: datetime, paths: Paths
) -> Fit:
    gang, machines = gang_of(replace(job, owner=owner), now), inventory_facts.machines()
    placed = _placed(records, now, paths)
    waiting = [gang_of(record.job, now) for record in running_and_waiting(records)[1]]
    answer = queue.preview(gang, waiting, placed, machines, host_capacity)
    free, whole = queue.room_left(placed, machines)
    return Fit.of(answer, wanted=gang.whole, free=free, total=whole)


def _placed(records: Sequence[JobRecord], now: datetime, paths: Paths) -> list[Placed]:
    return [
        Placed(gang=gang_of(record.job, now), placement=_placement(paths, record.job.uid))
        for record in running_and_waiting(records)[0]
    ]


def _placement(paths: Paths, uid: str) -> tuple[Place, ...]:
    spec = find_spec(paths.job(uid))
    known = spec.placement if spec is not None else {}
    return tuple(Place(member=member, machine=machine) for member, machine in known.items())


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
