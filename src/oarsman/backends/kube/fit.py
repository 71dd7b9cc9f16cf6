"""Whether a job has room on the nodes and in the quotas of its namespace: what is read of both for the arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from oarsman import names
from oarsman.backends.base import Fit
from oarsman.backends.kube.nodes import ClusterView, NodePodSpec, needs_of_pod, read
from oarsman.engines.kube.client import Forbidden, Kube, Resource
from oarsman.job.job import Job, Role
from oarsman.plan.capacity import nodes
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Gang, Party, Share, Toleration
from oarsman.plan.capacity.nodes import Quota

QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def quotas(kube: Kube, namespace: str) -> list[Quota]:
    try:
        return quotas_of(await kube.list(QUOTAS, namespace))
    except Forbidden:
        return []


def quotas_of(documents: Sequence[Mapping[str, Any]]) -> list[Quota]:
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
