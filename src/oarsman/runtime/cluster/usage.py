"""What the pods of a job use, as the metrics server measured it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarsman import names
from oarsman.engines.kube.client import Kube, Resource, resources
from oarsman.errors import UnsupportedError
from oarsman.manifest.quantity import parse
from oarsman.runtime.jobs import HostUsage, JobRecord

METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")


async def of_job(kube: Kube, record: JobRecord) -> list[HostUsage]:
    if not await kube.has(METRICS):
        raise UnsupportedError(
            "this cluster does not measure what pods use", hint="install the metrics server: metrics.k8s.io is missing"
        )
    job, labels = record.job, f"{names.LABEL_JOB}={record.job.name}"
    measured = {item["metadata"]["name"]: item for item in await kube.list(METRICS, job.namespace, labels=labels)}
    pods = await kube.list(resources.PODS, job.namespace, labels=labels)
    return [
        _usage(pod, measured[pod["metadata"]["name"]]) for pod in _in_order(pods) if pod["metadata"]["name"] in measured
    ]


def _in_order(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The launcher, then the workers by number."""

    def place(pod: Mapping[str, Any]) -> tuple[str, int]:
        labels = pod["metadata"].get("labels") or {}
        index = labels.get(names.LABEL_INDEX) or "0"
        return labels.get(names.LABEL_ROLE) or "", int(index) if index.isdigit() else 0

    return sorted(pods, key=place)


def _usage(pod: Mapping[str, Any], measured: Mapping[str, Any]) -> HostUsage:
    uses = [container.get("usage") or {} for container in measured.get("containers") or ()]
    limits = [(c.get("resources") or {}).get("limits") or {} for c in pod["spec"]["containers"]]
    memory = [parse(limit["memory"]) for limit in limits if "memory" in limit]
    labels = pod["metadata"].get("labels") or {}
    return HostUsage(
        host=host_of(pod), role=labels.get(names.LABEL_ROLE) or "", processes=None,
        cpu_percent=float(sum(parse(use.get("cpu", "0")) for use in uses) * 100),
        memory_bytes=int(sum(parse(use.get("memory", "0")) for use in uses)),
        memory_limit_bytes=int(sum(memory)) if memory and len(memory) == len(limits) else None,
    )  # fmt: skip


def host_of(pod: Mapping[str, Any]) -> str:
    """The name the job knows it by: the launcher's pod has a suffix of its Job."""
    labels = pod["metadata"].get("labels") or {}
    if labels.get(names.LABEL_ROLE) == "launcher":
        return names.launcher_name(labels[names.LABEL_JOB])
    return str(pod["metadata"]["name"])
