"""The machines of a cluster: what they have, what is promised of it and to whom, and what is used.

And whether a job has room on them and in the quotas of its namespace: what is read of both for the arithmetic.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import msgspec

from oarsman import names
from oarsman.backends.base import Amounts, Fit, HostRecord
from oarsman.engines.kube.client import ApiError, Forbidden, Kube, Meta, Resource, resources
from oarsman.engines.kube.views import ObjectCondition
from oarsman.job.job import Job, Role
from oarsman.manifest.quantity import parse
from oarsman.plan.capacity import nodes
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Gang, Party, Share, Taint, Toleration
from oarsman.plan.capacity.nodes import Quota
from oarsman.plan.capacity.placement import Machine, Spot
from oarsman.text.sentence import Text

READY: Final = "ready"
FRESH_SECONDS: Final = 3.0  # whoever types a manifest asks often whether it fits
METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
_NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


# -- what is looked at of pods and nodes ---------------------------------------------------------------
_Quantities = dict[str, str | int | float]


class _Wanted(msgspec.Struct, frozen=True, rename="camel"):
    requests: _Quantities | None = None
    limits: _Quantities | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    resources: _Wanted = _Wanted()
    restart_policy: str = ""


class NodePodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] | None = None
    overhead: _Quantities | None = None
    resources: _Wanted | None = None  # of the pod as a whole, on newer servers


class _Pod(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta
    spec: NodePodSpec = NodePodSpec()


class _NodeSpec(msgspec.Struct, frozen=True, rename="camel"):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    allocatable: _Quantities = {}
    conditions: list[ObjectCondition] = []


class _Node(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


# -- what is made of them ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    machine: Machine  # left out unless it is ready
    state: str
    message: str
    held: Capacity
    jobs: Mapping[str, Capacity]  # by their key

    @property
    def spot(self) -> Spot:
        return Spot(machine=self.machine, free=(self.machine.capacity - self.held).at_least_nothing)

    def record(self, used: Amounts | None) -> HostRecord:
        own = {"state": self.state, "message": self.message, "held": Amounts.of(self.held), "used": used}
        return HostRecord.of(self.machine, sorted(self.jobs.items()), **own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as this user may see it."""

    nodes: tuple[ClusterNode, ...] | None  # None: not to be seen
    pods: bool = True  # of all namespaces


class Looker:
    """Looks at the nodes at most every few seconds, once for all who ask."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._seen: tuple[float, ClusterView] | None = None

    async def look(self, kube: Kube) -> ClusterView:
        async with self._looking:
            if self._seen is None or time.monotonic() - self._seen[0] > FRESH_SECONDS:
                self._seen = time.monotonic(), await _look(kube)
            return self._seen[1]

    async def records(self, kube: Kube) -> list[HostRecord]:
        seen, used = await asyncio.gather(self.look(kube), _used(kube))
        return [node.record(used.get(node.machine.name)) for node in seen.nodes or ()]


async def _look(kube: Kube) -> ClusterView:
    try:
        nodes = await kube.list(resources.NODES, view=_Node)
    except Forbidden:
        return ClusterView(nodes=None)
    on: dict[str, list[_Pod]] = defaultdict(list)
    seen = True
    try:
        for pod in await kube.list(resources.PODS, fields=_NOT_ENDED, view=_Pod):
            on[pod.spec.node_name].append(pod)
    except Forbidden:
        seen = False
    found = [_node(node, on[node.metadata.name]) for node in sorted(nodes, key=lambda node: node.metadata.name)]
    return ClusterView(nodes=tuple(found), pods=seen)


async def _used(kube: Kube) -> dict[str, Amounts]:
    try:
        found = await kube.list(METRICS) if await kube.has(METRICS) else []
    except ApiError:  # measured by somebody else than the server, who may be away
        return {}
    return {item["metadata"]["name"]: Amounts.of(read(item.get("usage"))) for item in found}


def _node(node: _Node, pods: Iterable[_Pod]) -> ClusterNode:
    held: list[Capacity] = []
    jobs: dict[str, list[Capacity]] = defaultdict(list)
    for pod in pods:
        needs = needs_of_pod(pod.spec)
        held.append(needs)
        labels = pod.metadata.labels
        # Other operators of the same family mark their pods with the same names.
        ours = labels.get(names.LABEL_OPERATOR, "mpi").startswith("mpi")
        if ours and names.LABEL_JOB in labels and names.LABEL_ROLE in labels:
            jobs[f"{pod.metadata.namespace}/{labels[names.LABEL_JOB]}"].append(needs)
    state, message = _state(node)
    return ClusterNode(
        machine=Machine(
            name=node.metadata.name,
            capacity=read(node.status.allocatable),
            labels=node.metadata.labels,
            taints=tuple(node.spec.taints or ()),
            left_out="" if state == READY else state,
        ),
        state=state,
        message=message,
        held=total(held),
        jobs={key: total(needs) for key, needs in jobs.items()},
    )


def _state(node: _Node) -> tuple[str, str]:
    conditions = {condition.type: condition for condition in node.status.conditions}
    ready = conditions.get("Ready", ObjectCondition(status="Unknown", message=Text("it has not responded yet")))
    if ready.status != "True":
        return ("lost" if ready.status == "Unknown" else "unready"), ready.message or ready.reason
    if node.spec.unschedulable:
        return "cordoned", Text("it is cordoned: no new pods are placed on it")
    for name in _PRESSURES:
        if (condition := conditions.get(name)) is not None and condition.status == "True":
            return "pressed", condition.message or name
    return READY, ""


# -- amounts -------------------------------------------------------------------------------------------
def read(found: Mapping[str, Any] | None) -> Capacity:
    return Capacity({name: parse(amount) for name, amount in (found or {}).items()})


def needs_of_pod(spec: NodePodSpec) -> Capacity:
    """As the scheduler counts: what runs together is added, what runs before it only has to fit."""
    together = [_effective(one.resources) for one in spec.containers]
    highest = Capacity()
    beside: list[Capacity] = []
    for one in spec.init_containers or ():
        needs = _effective(one.resources)
        if one.restart_policy == "Always":  # stays beside the others
            beside.append(needs)
            needs = Capacity()
        for name, amount in total([*beside, needs]).items():
            highest[name] = max(highest[name], amount)
    needed = total([*together, *beside])
    for name, amount in highest.items():
        needed[name] = max(needed[name], amount)
    if spec.resources is not None:
        needed.update(_effective(spec.resources))
    return total([needed, read(spec.overhead), Capacity(pods=Decimal(1))])


def _effective(wanted: _Wanted) -> Capacity:
    """The request, or the limit where there is none."""
    return Capacity(read(wanted.limits) | read(wanted.requests))


QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def quotas(kube: Kube, namespace: str) -> list[Quota]:
    try:
        documents = await kube.list(QUOTAS, namespace)
    except Forbidden:
        return []
    found = []
    for document in documents:
        metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue  # for some pods only; which ones is decided when they are made
        hard, used = read(status.get("hard") or spec.get("hard")), read(status.get("used"))
        found.append(Quota(name=metadata["name"], namespace=metadata["namespace"], hard=hard, used=used))
    return found


def fit(job: Job, seen: ClusterView, quotas: Sequence[Quota]) -> Fit:
    gang, found = gang_of(job), seen.nodes or ()
    answer = nodes.preview(
        gang,
        None if seen.nodes is None else [node.spot for node in found],
        {node.machine.name: [Share(key=key, amounts=held) for key, held in node.jobs.items()] for node in found},
        counted=_as_quotas_count(job, gang),
        quotas=quotas,
        pods_seen=seen.pods,
    )
    free = total(node.spot.free for node in found if not node.machine.left_out)
    return Fit.of(answer, wanted=gang.whole, free=free, total=total(node.machine.capacity for node in found))


def gang_of(job: Job) -> Gang:
    """Every member is a pod, with a place of its own."""
    return Gang(
        key=job.key,
        launcher=job.launcher_host,
        workers=tuple(job.worker_host(i) for i in range(job.workers)),
        launcher_alone=_party(job.launcher),
        worker=_party(job.worker) if job.worker is not None else Party(),
        launcher_apart=True,
    )


def _party(role: Role) -> Party:
    spec = role.template.get("spec") or {}
    return Party(
        need=needs_of_pod(_pod(role)),
        selector=spec.get("nodeSelector") or {},
        tolerations=tuple(
            Toleration(**{name: one.get(name) or "" for name in ("key", "operator", "value", "effect")})
            for one in spec.get("tolerations") or ()
        ),
    )


def _pod(role: Role) -> NodePodSpec:
    return msgspec.convert(role.template.get("spec") or {}, NodePodSpec)


def _as_quotas_count(job: Job, gang: Gang) -> Capacity:
    limits = _limits(job.launcher)
    if job.worker is not None:
        limits += _limits(job.worker) * job.workers
    return Capacity(
        {
            **gang.whole,
            **{f"requests.{name}": amount for name, amount in gang.whole.items()},
            **{f"limits.{name}": amount for name, amount in limits.items()},
            "count/pods": gang.whole["pods"],
            f"count/{names.PLURAL}.{names.GROUP}": Decimal(1),
        }
    )


def _limits(role: Role) -> Capacity:
    return total(read(container.resources.limits) for container in _pod(role).containers)
