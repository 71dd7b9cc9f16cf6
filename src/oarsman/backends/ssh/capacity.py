"""What SSH hosts have, who holds it, and whether one more job would fit; by the arithmetic of admission itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from oarsman.backends.base import Amounts, Fit, Holding, HostFinding, HostRecord, JobRecord
from oarsman.backends.local.capacity import running_and_waiting
from oarsman.control.host_state import last_check
from oarsman.engines.hosts.core.job_spec import find_spec
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, WARN, Finding
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.job.job import Job
from oarsman.job.observed import Place
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
