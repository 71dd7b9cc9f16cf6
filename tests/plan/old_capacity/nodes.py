"""The machines of a cluster: what they have, what is promised of it and to whom, and what is used."""

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
from oarsman.backends.base import Amounts, Holding, HostRecord
from oarsman.engines.kube.client import ApiError, Forbidden, Kube, Meta, Resource, resources
from oarsman.manifest.quantity import parse

FRESH_SECONDS: Final = 3.0  # whoever types a manifest asks often whether it fits
METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
_NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
Needs = Mapping[str, Decimal]  # by the name of the resource


# -- what is looked at of pods and nodes ---------------------------------------------------------------
class _View(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _Wanted(_View, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Container(_View, frozen=True):
    resources: _Wanted = _Wanted()
    restart_policy: str = ""


class PodSpec(_View, frozen=True):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: _Wanted | None = None  # of the pod as a whole, on newer servers


class _Pod(_View, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()


class Taint(_View, frozen=True):
    key: str
    effect: str = ""
    value: str = ""


class _NodeSpec(_View, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class _Condition(_View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _NodeStatus(_View, frozen=True):
    allocatable: dict[str, str | int | float] = {}
    conditions: list[_Condition] = []


class _Node(_View, frozen=True):
    metadata: Meta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


# -- what is made of them ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    name: str
    state: str
    message: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    has: Needs
    held: Needs
    jobs: Mapping[str, Needs]  # by their key

    @property
    def free(self) -> Needs:
        return {name: max(amount - self.held.get(name, Decimal(0)), Decimal(0)) for name, amount in self.has.items()}

    def record(self, used: Amounts | None) -> HostRecord:
        holdings = tuple(Holding(key=key, amounts=amounts(needs)) for key, needs in sorted(self.jobs.items()))
        return HostRecord(
            name=self.name,
            state=self.state,
            message=self.message,
            total=amounts(self.has),
            held=amounts(self.held),
            used=used,
            holdings=holdings,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The cluster as this user may see it."""

    machines: tuple[Machine, ...] | None  # None: not to be seen
    pods_seen: bool = True  # of all namespaces


class Looker:
    """Looks at the nodes at most every few seconds, once for all who ask."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._seen: tuple[float, Place] | None = None

    async def place(self, kube: Kube) -> Place:
        async with self._looking:
            if self._seen is None or time.monotonic() - self._seen[0] > FRESH_SECONDS:
                self._seen = time.monotonic(), await _look(kube)
            return self._seen[1]

    async def records(self, kube: Kube) -> list[HostRecord]:
        place, used = await asyncio.gather(self.place(kube), _used(kube))
        return [machine.record(used.get(machine.name)) for machine in place.machines or ()]


async def _look(kube: Kube) -> Place:
    try:
        nodes = await kube.list(resources.NODES, view=_Node)
    except Forbidden:
        return Place(machines=None)
    try:
        pods = await kube.list(resources.PODS, fields=_NOT_ENDED, view=_Pod)
        seen = True
    except Forbidden:
        pods, seen = [], False
    on: dict[str, list[_Pod]] = defaultdict(list)
    for pod in pods:
        on[pod.spec.node_name].append(pod)
    found = [_machine(node, on[node.metadata.name]) for node in sorted(nodes, key=lambda node: node.metadata.name)]
    return Place(machines=tuple(found), pods_seen=seen)


async def _used(kube: Kube) -> dict[str, Amounts]:
    try:
        if not await kube.has(METRICS):
            return {}
        found = await kube.list(METRICS)
    except ApiError:  # measured by somebody else than the server, who may be away
        return {}
    return {item["metadata"]["name"]: amounts(read(item.get("usage"))) for item in found}


def _machine(node: _Node, pods: Iterable[_Pod]) -> Machine:
    held: list[Needs] = []
    jobs: dict[str, list[Needs]] = defaultdict(list)
    for pod in pods:
        needs = needs_of_pod(pod.spec)
        held.append(needs)
        labels = pod.metadata.labels
        if names.LABEL_JOB in labels and names.LABEL_ROLE in labels and _ours(labels):
            jobs[f"{pod.metadata.namespace}/{labels[names.LABEL_JOB]}"].append(needs)
    state, message = _state(node)
    return Machine(
        name=node.metadata.name,
        state=state,
        message=message,
        labels=node.metadata.labels,
        taints=tuple(node.spec.taints or ()),
        has=read(node.status.allocatable),
        held=total(held),
        jobs={key: total(needs) for key, needs in jobs.items()},
    )


def _ours(labels: Mapping[str, str]) -> bool:
    """Other operators of the same family mark their pods with the same names."""
    return labels.get(names.LABEL_OPERATOR, "mpi").startswith("mpi")


def _state(node: _Node) -> tuple[str, str]:
    conditions = {condition.type: condition for condition in node.status.conditions}
    ready = conditions.get("Ready", _Condition(status="Unknown", message="nothing was heard from it yet"))
    if ready.status != "True":
        return ("lost" if ready.status == "Unknown" else "unready"), ready.message or ready.reason
    if node.spec.unschedulable:
        return "cordoned", "somebody marked it: nothing new is placed on it"
    for name in _PRESSURES:
        if (condition := conditions.get(name)) is not None and condition.status == "True":
            return "pressed", condition.message or name
    return "ready", ""


# -- amounts -------------------------------------------------------------------------------------------
def read(found: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: parse(amount) for name, amount in (found or {}).items()}


def total(needs: Iterable[Needs]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for one in needs:
        for name, amount in one.items():
            found[name] = found.get(name, Decimal(0)) + amount
    return found


def needs_of_pod(spec: PodSpec) -> Needs:
    """As the scheduler counts: what runs together is added, what runs before it only has to fit."""
    together = [_effective(one.resources) for one in spec.containers]
    highest: dict[str, Decimal] = {}
    beside: list[Needs] = []
    for one in spec.init_containers or ():
        needs = _effective(one.resources)
        if one.restart_policy == "Always":  # stays beside the others
            beside.append(needs)
            needs = {}
        for name, amount in total([*beside, needs]).items():
            highest[name] = max(highest.get(name, Decimal(0)), amount)
    needed = total([*together, *beside])
    for name, amount in highest.items():
        needed[name] = max(needed.get(name, Decimal(0)), amount)
    if spec.resources is not None:
        needed.update(_effective(spec.resources))
    return total([needed, read(spec.overhead), {"pods": Decimal(1)}])


def _effective(wanted: _Wanted) -> dict[str, Decimal]:
    """The request, or the limit where there is none."""
    return {**read(wanted.limits), **read(wanted.requests)}


def gpus(needs: Needs) -> int:
    return int(sum(amount for name, amount in needs.items() if name.rsplit("/", 1)[-1] in ("gpu", "vgpu")))


def amounts(needs: Needs) -> Amounts:
    zero = Decimal(0)
    return Amounts(cpus=float(needs.get("cpu", zero)), memory_bytes=int(needs.get("memory", zero)), gpus=gpus(needs))
