"""What SSH hosts have, who holds it, and whether one more job would fit; by the arithmetic of admission itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from oarsman.backends.base import Amounts, Fit, Holding, HostFinding, HostRecord, JobRecord
from oarsman.control.host_state import last_check
from oarsman.engines.hosts.core.job_spec import read_spec
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, WARN, Finding
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.job.job import Job
from oarsman.job.observed import Place
from oarsman.plan.capacity import hosts as host_capacity
from oarsman.plan.capacity.gang import Capacity
from oarsman.plan.capacity.placement import plus
from oarsman.plan.reconcile import ours
from oarsman.store.paths import Paths

Check = tuple[float, list[Finding]]  # when it was, and all that it found


def hosts(
    inventory_facts: InventoryFacts, records: Sequence[JobRecord], now: datetime, paths: Paths
) -> list[HostRecord]:
    running, _ = _jobs(records, now, paths)
    shares = [(job.gang.key, host_capacity.holds(job)) for job in running]
    check = last_check(inventory_facts.inventory, paths)
    found = []
    for machine in inventory_facts.machines():
        holdings = tuple(
            Holding(key=key, amounts=_amounts(share[machine.name])) for key, share in shares if machine.name in share
        )
        facts, trouble = inventory_facts.facts.get(machine.name), inventory_facts.troubles.get(machine.name)
        used = None
        if facts is not None:
            used = Amounts(cpus=min(facts.load, facts.processors), memory_bytes=facts.memory - facts.memory_available)
        found.append(
            HostRecord(
                name=machine.name,
                state="left out" if machine.left_out else "ready",
                message=str(trouble) if trouble and trouble.message == machine.left_out else machine.left_out,
                total=_amounts(machine.capacity),
                held=Amounts(
                    cpus=sum(holding.amounts.cpus for holding in holdings),
                    memory_bytes=sum(holding.amounts.memory_bytes for holding in holdings),
                    gpus=sum(holding.amounts.gpus for holding in holdings),
                ),
                used=used,
                holdings=holdings,
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
    for job in _jobs(records, now, paths)[0]:
        for machine, share in host_capacity.holds(job).items():
            found[machine] = plus(found[machine], share) if machine in found else share
    return found


def fit(
    job: Job, owner: str, inventory_facts: InventoryFacts, records: Sequence[JobRecord], now: datetime, paths: Paths
) -> Fit:
    running, waiting = _jobs(records, now, paths)
    answer = host_capacity.fit(
        host_capacity.gang_of(replace(job, owner=owner), now), waiting, running, inventory_facts.machines()
    )
    return Fit(
        now=answer.now,
        ever=answer.ever,
        reason=answer.reason,
        wanted=_amounts(answer.wanted),
        free=_amounts(answer.free),
        total=_amounts(answer.total),
        machines={place.member: place.machine for place in answer.placement},
    )


def _jobs(
    records: Sequence[JobRecord], now: datetime, paths: Paths
) -> tuple[list[host_capacity.Placed], list[host_capacity.Gang]]:
    """Of the unsettled jobs those that have their places, and those that wait for some."""
    running, waiting = [], []
    for record in records:
        if not ours(record.job):
            continue
        gang = host_capacity.gang_of(record.job, now)
        if record.status.start_time is not None:  # also one that has ended and is being cleared away
            running.append(host_capacity.Placed(gang=gang, placement=_placement(paths, record.job.uid)))
        elif not (record.status.finished or record.job.run_policy.suspend or record.stop_requested or record.deleting):
            waiting.append(gang)
    return running, waiting


def _placement(paths: Paths, uid: str) -> tuple[Place, ...]:
    try:
        known = read_spec(str(paths.job(uid))).get("placement", {})
    except (OSError, ValueError):
        return ()
    return tuple(Place(member=member, machine=machine) for member, machine in known.items())


def _amounts(capacity: Capacity) -> Amounts:
    return Amounts(cpus=float(capacity.cpus), memory_bytes=int(capacity.memory), gpus=capacity.gpus)
