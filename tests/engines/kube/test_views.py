"""What is kept of an object: the little that is looked at, and what objects have in common once."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

from oarsman.engines.kube import views
from oarsman.engines.kube.client import Informer
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.client.codec import decode
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.config_map import config_maps
from oarsman.engines.kube.objects.worker import worker

from .kube_jobs import a_kube_job, document

Object = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
MANAGED = [
    {
        "manager": who,
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsV1": {"f:spec": {f"f:field-{number}": {} for number in range(80)}},
    }
    for who in ("kubectl", "oarsman", "kubelet")
]


def _stored(body: Object, number: int) -> Object:
    """As a server has it."""
    kept = {"uid": f"{number:08}-0000-0000-0000-000000000000", "resourceVersion": f"{number + 1000}"}
    body["metadata"] = {**body["metadata"], **kept, "creationTimestamp": NOW, "managedFields": MANAGED}
    return body


def _pod(number: int) -> Object:
    made = _stored(worker(a_kube_job(name=f"job-{number // 10}"), number % 10, KubeOptions()), number)
    made["spec"]["nodeName"] = "node-of-some-name-7"
    running = {"name": "mpi", "image": "pi", "restartCount": 0, "ready": True, "state": {"running": {"startedAt": NOW}}}
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": NOW} for type_ in types]
    return {**made, "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [running]}}


def _mpijob(number: int) -> Object:
    given = document(name=f"job-{number}", worker={"nodeSelector": {f"key-{n}": "value" for n in range(40)}})
    given["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(given)}
    return _stored(given, number)


def _config_map(number: int) -> Object:
    [made] = config_maps(a_kube_job(name=f"job-{number}", workers=10), (), KubeOptions())
    return _stored(made, number)


def _bytes_each(resource: Any, view: Any, make: Callable[[int], Object]) -> float:
    cache: Informer[Any] = Informer(None, resource, view)  # type: ignore[arg-type]
    count, texts = 500, [json.dumps(make(number)) for number in range(500)]
    gc.collect()
    tracemalloc.start()
    try:
        for text in texts:
            cache.put(decode("read", text.encode(), view))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()


def test_a_hundred_thousand_pods_and_ten_thousand_jobs_fit_into_a_small_memory() -> None:
    assert _bytes_each(kinds.PODS, views.Pod, _pod) < 2600
    assert _bytes_each(kinds.MPIJOBS, views.MPIJobView, _mpijob) < 5000
    assert _bytes_each(kinds.CONFIG_MAPS, views.ConfigMap, _config_map) < 4000


def test_what_a_job_says_is_read_back_whole() -> None:
    given = _mpijob(3)
    seen = decode("read", json.dumps({**given, "status": {"phase": "Running"}}).encode(), views.MPIJobView)
    assert (seen.spec, seen.status) == (given["spec"], {"phase": "Running"})
    assert seen.metadata.annotations == {}
    without = decode("read", json.dumps({"metadata": given["metadata"], "status": None}).encode(), views.MPIJobView)
    assert (without.spec, without.status) == ({}, {})
