"""What is around a job on a cluster, beside its record: its namespace, and pods that outlive it."""

from __future__ import annotations

from oarsman.engines.kube.client import Forbidden, Kube, NotFound, resources
from oarsman.job.job import Job
from oarsman.runtime.cluster import pods

_ENDED = ("Succeeded", "Failed")


async def lacks(kube: Kube, namespace: str) -> bool:
    """Whether the cluster is known not to have the namespace. Those who may not see namespaces are told nothing."""
    try:
        await kube.get(resources.NAMESPACES, namespace)
    except NotFound:
        return True
    except Forbidden:
        pass
    return False


async def workers_left(kube: Kube, job: Job) -> int:
    """How many worker pods of the job live and are to stay."""
    try:
        found = await kube.list(resources.PODS, job.namespace, labels=pods.selector(job, "worker"))
    except Forbidden:
        return 0
    return sum(
        "deletionTimestamp" not in pod["metadata"] and (pod.get("status") or {}).get("phase") not in _ENDED
        for pod in found
    )
