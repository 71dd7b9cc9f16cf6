"""The one arithmetic decides, places and says as the three before it did."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarsman import names
from oarsman.backends.kube import fit as new_fit
from oarsman.backends.kube.nodes import Node, Seen
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.job.role import Container, Resources, Role
from oarsman.plan.capacity import hosts, one_machine, queue
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Placed, Taint, asked_by, needed_by, priority_of
from oarsman.plan.capacity.placement import Machine
from tests.builders import at
from tests.plan.old_capacity import fit as old_fit
from tests.plan.old_capacity import gang as old_gang
from tests.plan.old_capacity import hosts as old_hosts
from tests.plan.old_capacity import nodes as old_nodes

GIB = 1024**3
NOW = at(3600)
many = settings(
    max_examples=int(os.environ.get("EXAMPLES", "200")), deadline=None, suppress_health_check=list(HealthCheck)
)
randoms = st.randoms(use_true_random=True)
seen: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def told() -> Iterator[None]:
    yield
    for what, times in sorted(seen.items()):
        print(f"{times:8} {what}")


# -- jobs: made with a Random that hypothesis seeds, which is much faster than drawing each of so many values ----
def some(rnd: Random, *choices: Any) -> Any:
    return rnd.choice(choices)


LABELS = ({}, {}, {}, {}, {}, {"disk": "ssd"}, {"disk": "ssd", "zone": "b"}, {"kubernetes.io/hostname": "node2"})


def amounts(rnd: Random) -> dict[str, Decimal]:
    found = {}
    if (cpu := some(rnd, None, None, "0", "0.5", "1", "1", "2", "3", "5")) is not None:
        found["cpu"] = Decimal(cpu)
    if (memory := some(rnd, None, None, None, "1", "1", "2", "5.5")) is not None:
        found["memory"] = Decimal(memory) * GIB
    if (gpu := some(rnd, None, None, None, None, None, "1", "2")) is not None:
        found[some(rnd, "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu", "amd.com/gpu")] = Decimal(gpu)
    return found


def a_role(rnd: Random, *, pods: bool) -> Role:
    resources = [
        Resources(requests=amounts(rnd), limits=some(rnd, {}, {}, amounts(rnd))) for _ in range(some(rnd, 1, 1, 1, 2))
    ]
    containers = tuple(Container(name=f"c{n}", resources=one) for n, one in enumerate(resources))
    kinds = ("requests", "limits")
    written = [
        {"name": f"c{n}", "resources": {kind: {k: str(v) for k, v in getattr(one, kind).items()} for kind in kinds}}
        for n, one in enumerate(resources)
    ]
    spec: dict[str, Any] = {"nodeSelector": some(rnd, *LABELS), "containers": written}
    if pods:
        spec["tolerations"] = [a_toleration(rnd) for _ in range(some(rnd, 0, 1, 2))]
    return Role(containers=containers, replicas=some(rnd, 0, 1, 1, 2, 2, 3, 4, 6), template={"spec": spec})


def a_toleration(rnd: Random) -> dict[str, str | None]:
    values = {
        "key": (None, "", "gpu", "control-plane"),
        "operator": (None, "Exists", "Equal"),
        "value": (None, "", "yes"),
        "effect": (None, "", "NoSchedule", "NoExecute"),
    }
    return {name: some(rnd, *choices) for name, choices in values.items() if some(rnd, True, False)}


def a_job(rnd: Random, name: str, *, pods: bool = False) -> Job:
    created = at(3600 - some(rnd, 0, 30, 300, 599, 600, 601, 900, 3599))
    return Job(
        name=name,
        uid=name,
        owner=some(rnd, "", "", "ada", "eve"),
        created_at=some(rnd, created, created, created, None),
        launcher=a_role(rnd, pods=pods),
        worker=some(rnd, a_role(rnd, pods=pods), a_role(rnd, pods=pods), a_role(rnd, pods=pods), None),
        slots_per_worker=some(rnd, 1, 1, 1, 2, 3, 5),
        run_launcher_as_worker=some(rnd, True, False, False),
        annotations={
            names.ANNOTATION_PRIORITY: some(rnd, "0", "0", "0", "1", "-3", "high"),
            names.ANNOTATION_OVERSUBSCRIBE: some(rnd, "", "", "", "", "true", "True"),
            names.ANNOTATION_PLACEMENT: some(rnd, "", "node"),
        },
    )


def some_jobs(rnd: Random, prefix: str, most: int) -> list[Job]:
    return [a_job(rnd, f"{prefix}{n}") for n in range(rnd.randint(0, most))]


# -- one machine ----------------------------------------------------------------------------------------------
@many
@given(randoms)
def test_one_machine(rnd: Random) -> None:
    cpus, memory, gpus = some(rnd, "0.5", "2", "4", "8", "16", "32"), some(rnd, 1, 2, 8, 16, 32), rnd.randint(0, 8)
    waiting, running = some_jobs(rnd, "w", 6), some_jobs(rnd, "r", 4)
    before = old_gang.Capacity(cpus=Decimal(cpus), memory=Decimal(memory * GIB), gpus=gpus)
    machine = Machine(name="", capacity=Capacity(cpu=Decimal(cpus), memory=Decimal(memory * GIB), gpu=Decimal(gpus)))
    asked = {job.key: old_gang.request_of(job, NOW) for job in (*waiting, *running)}
    gangs = {job.key: one_machine.gang_of(job, NOW, [machine]) for job in (*waiting, *running)}
    placed = [one_machine.placed(gangs[job.key], machine) for job in running]
    for job in (*waiting, *running):
        old, wanted, said = asked[job.key], needed_by(job), asked_by(job)
        assert (old.cpus, old.memory, old.gpus, old.priority) == (
            wanted.cpus,
            wanted.memory,
            wanted.gpus,
            priority_of(job),
        )
        assert old.cpus_assumed == (not said.cpus)
        held, new = old_gang.holds(old, before), one_machine.placed(gangs[job.key], machine).holds()[""]
        assert (held.cpus, held.memory, held.gpus) == (new.cpus, new.memory, new.gpus)
    decisions = queue.admit([gangs[job.key] for job in waiting], placed, [machine], one_machine)
    old_decisions = old_gang.admit([asked[job.key] for job in waiting], [asked[job.key] for job in running], before)
    seen["one machine: examples"] += 1
    assert len(decisions) == len(old_decisions)
    for new_one, old_one in zip(decisions, old_decisions, strict=True):
        seen[f"one machine: decisions, {kind(old_one.admission)}"] += 1
        assert new_one.key == old_one.key
        expected = old_one.admission
        assert [place.machine for place in new_one.admission.placement] == [""] * expected.admitted
        assert without_places(new_one.admission) == expected
    free, _ = queue.room_left(placed, [machine])
    held_of = [old_gang.holds(asked[job.key], before) for job in running]
    for what in ("cpus", "memory", "gpus"):
        left = getattr(before, what) - sum(getattr(share, what) for share in held_of)
        assert getattr(free, what) == max(left, 0)


def without_places(admission: Admission) -> Admission:
    return replace(admission, placement=())


def kind(admission: Admission) -> str:
    if admission.admitted:
        return "admitted"
    return "never" if admission.impossible else "behind" if admission.reason.startswith("waits behind") else "short"


# -- hosts ------------------------------------------------------------------------------------------------------
def host_pairs(rnd: Random) -> list[tuple[old_hosts.Machine, Machine]]:
    found = []
    for number in range(1, some(rnd, 0, 1, 2, 3, 4, 5) + 1):
        known = {
            "gpu": some(rnd, 0, 1, 2, 4, 8, None),
            "slots": some(rnd, 0, 2, 4, 6, 8, 16, 32, None),
            "memory": some(rnd, 0, 4, 8, 16, 32, 64, None),
        }
        if some(rnd, True, True, True, False):
            known = {name: amount or 0 for name, amount in known.items()}
        unknown = tuple(name for name, amount in known.items() if amount is None)
        name = f"node{number}"
        why = some(rnd, "away", f"{name}: no answer", f"{name} (10.0.0.1): no answer")
        left_out = why if unknown else some(rnd, "", "", "", why)
        labels = some(rnd, {}, {}, {"disk": "ssd"}, {"disk": "ssd", "zone": "b"})
        capacity = {n: Decimal(a * (GIB if n == "memory" else 1)) for n, a in known.items() if a is not None}
        old = old_hosts.Machine(
            name=name,
            slots=known["slots"],
            memory=capacity.get("memory"),
            gpus=known["gpu"],
            labels=labels,
            left_out=left_out,
        )
        new = Machine(name=name, capacity=Capacity(capacity), unknown=unknown, labels=labels, left_out=left_out)
        found.append((old, new))
    return found


def places_of(rnd: Random, job: Job) -> tuple[Place, ...]:
    members = [job.launcher_host, *(job.worker_host(i) for i in range(job.workers))]
    members = some(rnd, members, members[: rnd.randint(0, len(members))])
    return tuple(Place(member=m, machine=f"node{rnd.randint(1, 6)}") for m in members)


@many
@given(randoms)
def test_hosts(rnd: Random) -> None:
    pairs, waiting, running = host_pairs(rnd), some_jobs(rnd, "w", 6), some_jobs(rnd, "r", 3)
    before, machines = [old for old, _ in pairs], [new for _, new in pairs]
    places = {job.key: places_of(rnd, job) for job in running}
    was = [old_hosts.Placed(gang=old_hosts.gang_of(job, NOW), placement=places[job.key]) for job in running]
    now = [Placed(gang=hosts.gang_of(job, NOW), placement=places[job.key]) for job in running]
    for old, new in zip(was, now, strict=True):
        held, shares = old_hosts.holds(old), new.holds()
        assert list(held) == list(shares)
        for name, share in held.items():
            assert (share.cpus, share.memory, share.gpus) == (
                shares[name].cpus,
                shares[name].memory,
                shares[name].gpus,
            )
    old_decisions = old_hosts.admit([old_hosts.gang_of(job, NOW) for job in waiting], was, before)
    decisions = queue.admit([hosts.gang_of(job, NOW) for job in waiting], now, machines, hosts)
    seen["hosts: examples"] += 1
    for old_one in old_decisions:
        seen[f"hosts: decisions, {kind(old_one.admission)}"] += 1
    assert [(d.key, d.admission) for d in decisions] == [(d.key, d.admission) for d in old_decisions]
    if not waiting:
        return
    one, others = waiting[0], waiting[1:]
    old_answer = old_hosts.fit(old_hosts.gang_of(one, NOW), [old_hosts.gang_of(j, NOW) for j in others], was, before)
    answer = queue.preview(hosts.gang_of(one, NOW), [hosts.gang_of(j, NOW) for j in others], now, machines, hosts)
    assert (old_answer.now, old_answer.ever, old_answer.reason, old_answer.placement) == (
        answer.admitted,
        not answer.impossible,
        answer.reason,
        answer.placement,
    )
    amounts = (hosts.gang_of(one, NOW).whole, *queue.room_left(now, machines))
    for old_amount, amount in zip((old_answer.wanted, old_answer.free, old_answer.total), amounts, strict=True):
        assert (old_amount.cpus, old_amount.memory, old_amount.gpus) == (amount.cpus, amount.memory, amount.gpus)


@many
@given(randoms)
def test_scaled_on_hosts(rnd: Random) -> None:
    pairs, job, workers, running = host_pairs(rnd), a_job(rnd, "scaled"), rnd.randint(0, 8), some_jobs(rnd, "r", 3)
    before, machines = [old for old, _ in pairs], [new for _, new in pairs]
    placement = places_of(rnd, job)
    scaled = replace(job, worker=replace(job.worker, replicas=workers)) if job.worker is not None else job
    places = {job.key: places_of(rnd, job) for job in running}
    was = [old_hosts.Placed(gang=old_hosts.gang_of(job, NOW), placement=places[job.key]) for job in running]
    now = [Placed(gang=hosts.gang_of(job, NOW), placement=places[job.key]) for job in running]
    old = old_hosts.extend(placement, old_hosts.gang_of(scaled, NOW), was, before)
    seen["scaled on hosts: examples"] += 1
    seen["scaled on hosts: " + ("placed" if old.admitted else "no more")] += 1
    assert queue.extend(placement, hosts.gang_of(scaled, NOW), now, machines) == old


# -- nodes ------------------------------------------------------------------------------------------------------
RESOURCES = ("cpu", "memory", "pods", "nvidia.com/gpu", "amd.com/gpu")


def a_taint(rnd: Random) -> dict[str, str]:
    return {
        "key": some(rnd, "gpu", "control-plane", "node.kubernetes.io/unreachable"),
        "value": some(rnd, "", "yes"),
        "effect": some(rnd, "NoSchedule", "NoExecute", "PreferNoSchedule", ""),
    }


def node_pairs(rnd: Random) -> list[tuple[old_nodes.Machine, Node]]:
    found = []
    for number in range(1, some(rnd, 0, 1, 2, 3, 4, 5) + 1):
        has = {
            "cpu": Decimal(some(rnd, 1, 2, 4, 6, 8, 16)),
            "memory": Decimal(some(rnd, 1, 4, 8, 16, 32) * GIB),
            "pods": Decimal(some(rnd, 1, 3, 10, 10)),
        }
        for name in RESOURCES[3:]:
            if some(rnd, True, True, False):
                has[name] = Decimal(rnd.randint(0, 4))
        jobs: dict[str, dict[str, Decimal]] = {}
        for key in rnd.sample(["x/a", "x/b", "x/c", "x/d", "y/e"], rnd.randint(0, 3)):
            jobs[key] = {
                "cpu": Decimal(rnd.randint(0, 3)),
                "memory": Decimal(rnd.randint(0, 3) * GIB),
                "pods": Decimal(1),
                "nvidia.com/gpu": Decimal(rnd.randint(0, 1)),
            }
        held = old_nodes.total([*jobs.values(), {"cpu": Decimal(some(rnd, 0, 0, 1, 2))}])
        state = some(rnd, "ready", "ready", "ready", "ready", "lost", "cordoned")
        labels = some(rnd, {}, {}, {"disk": "ssd"}, {"disk": "ssd", "zone": "b"})
        labels = {"kubernetes.io/hostname": f"node{number}", **labels}
        taints = [a_taint(rnd) for _ in range(some(rnd, 0, 0, 0, 1, 2))]
        old = old_nodes.Machine(
            name=f"node{number}",
            state=state,
            message="",
            labels=labels,
            taints=tuple(old_nodes.Taint(**taint) for taint in taints),
            has=has,
            held=held,
            jobs=jobs,
        )
        machine = Machine(
            name=f"node{number}",
            capacity=Capacity(has),
            labels=labels,
            taints=tuple(Taint(**taint) for taint in taints),
            left_out="" if state == "ready" else state,
        )
        shares = {key: Capacity(needs) for key, needs in jobs.items()}
        found.append((old, Node(machine=machine, state=state, message="", held=Capacity(held), jobs=shares)))
    return found


COUNTED = ("cpu", "requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "pods", "count/pods", "services")
COUNTED = (*COUNTED, "requests.nvidia.com/gpu", f"count/{names.PLURAL}.{names.GROUP}")


def some_quotas(rnd: Random) -> list[dict[str, tuple[str, str]]]:
    return [
        {
            name: (some(rnd, "0", "1", "4", "20", "8Gi"), some(rnd, "0", "0", "1", "5"))
            for name in rnd.sample(COUNTED, 2)
        }
        for _ in range(some(rnd, 0, 0, 0, 0, 1, 2))
    ]


def quota(number: int, given: dict[str, tuple[str, str]], in_status: bool, scoped: bool) -> dict[str, Any]:
    hard, used = ({name: amount[n] for name, amount in given.items()} for n in (0, 1))
    spec: dict[str, Any] = {"hard": hard, **({"scopes": ["BestEffort"]} if scoped else {})}
    status = {"hard": hard, "used": used} if in_status else {"used": used}
    return {"metadata": {"name": f"q{number}", "namespace": "n"}, "spec": spec, "status": status}


def really_fits(kinds: list[old_fit.Kind], machines: list[old_nodes.Machine], *, for_ever: bool) -> bool:
    """Found by trying: every machine for the launcher, the workers counted one by one."""
    (launcher, *rest) = kinds
    for first in machines:
        room = {m.name: dict(m.has if for_ever else m.free) for m in machines}
        if not launcher.suits(first, for_ever=for_ever) or not take(room[first.name], launcher):
            continue
        left = rest[0].count if rest else 0
        for machine in machines:
            while left and rest[0].suits(machine, for_ever=for_ever) and take(room[machine.name], rest[0]):
                left -= 1
        if not left:
            return True
    return False


def take(room: dict[str, Decimal], kind: old_fit.Kind) -> bool:
    if any(room.get(name, Decimal(0)) < need for name, need in kind.needs.items()):
        return False
    for name, need in kind.needs.items():
        room[name] = room.get(name, Decimal(0)) - need
    return True


@many
@given(randoms)
def test_nodes(rnd: Random) -> None:
    pairs, job, quotas = node_pairs(rnd), a_job(rnd, "pi", pods=True), some_quotas(rnd)
    visible, in_status = some(rnd, True, True, True, True, False, None), some(rnd, True, False)
    documents = [quota(n, one, in_status, scoped=some(rnd, False, False, True)) for n, one in enumerate(quotas)]
    machines, nodes = [old for old, _ in pairs], tuple(node for _, node in pairs)
    kinds = old_fit.kinds_of(job)
    hidden = visible is None
    old = old_fit.fit(
        kinds, old_nodes.Place(machines=None if hidden else tuple(machines), pods_seen=bool(visible)), documents
    )
    new = new_fit.fit(job, Seen(nodes=None if hidden else nodes, pods=bool(visible)), new_fit.quotas_of(documents))
    seen["nodes: examples"] += 1
    assert (old.wanted, old.free, old.total, new.machines) == (new.wanted, new.free, new.total, {})
    seen[f"nodes: {'fits' if old.now else 'later' if old.ever else 'never'}"] += 1
    if (old.now, old.ever, old.reason) == (new.now, new.ever, new.reason):
        return
    ready = [machine for machine in machines if machine.state == "ready"]
    if new.ever and not old.ever:
        assert really_fits(kinds, machines, for_ever=True), (old, new)
        seen["nodes: DIFFERENT, never before, but every member has a place"] += 1
    elif new.now and not old.now:
        assert really_fits(kinds, ready, for_ever=False), (old, new)
        seen["nodes: DIFFERENT, not now before, but every member has a place"] += 1
    else:
        assert (old.now, old.ever) == (new.now, new.ever), (old, new)
        assert not really_fits(kinds, machines if not old.ever else ready, for_ever=not old.ever)
        pattern = tuple(
            " ".join("N" if w.replace(".", "").isdigit() else w for w in r.split()) for r in (old.reason, new.reason)
        )
        seen[f"nodes: DIFFERENT WORDS: {pattern[0]!r} -> {pattern[1]!r}"] += 1
