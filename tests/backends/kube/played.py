"""The operator's part, played by hand: status, pods and events of a job."""

from __future__ import annotations

from typing import Any

from oarsman import names
from oarsman.backends.base import JobRecord
from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube.client import resources
from oarsman.job.state import Status
from oarsman.manifest import documents
from oarsman.status.codec import to_wire
from tests.cli.fakes import MANIFEST

V1 = MANIFEST.replace("v2beta1", "v1").replace("  slotsPerWorker: 2", "  slotsPerWorker: 2\n  cleanPodPolicy: All")


def a_document(manifest: str = MANIFEST, **metadata: Any) -> dict[str, Any]:
    document = documents(manifest)[0]
    document["metadata"].update(metadata)
    return document


class Played:
    def __init__(self, jobs: KubeBackend) -> None:
        self._jobs = jobs

    def status(self, key: str, status: Status) -> None:
        namespace, _, name = key.partition("/")
        body = {"status": to_wire(status)}
        self._jobs.ask(lambda kube: kube.patch(resources.MPIJOBS, name, body, namespace, subresource="status"))

    def launcher(self, key: str, *, attempt: int = 1, suffix: str = "x", role: str = "launcher") -> None:
        namespace, _, name = key.partition("/")
        labels = {names.LABEL_JOB: name, names.LABEL_ROLE: role}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-launcher-{suffix}",
                "namespace": namespace,
                "labels": labels,
                "annotations": {names.ANNOTATION_ATTEMPT: str(attempt)},
            },
            "spec": {"restartPolicy": "Never", "containers": [{"name": "l", "image": "pi"}]},
        }
        self._jobs.ask(lambda kube: kube.create(resources.PODS, pod))

    def event(self, record: JobRecord, reason: str, message: str, **given: Any) -> None:
        job = record.job
        body = {
            "metadata": {"name": f"{job.name}.{reason.lower()}", "namespace": job.namespace},
            "involvedObject": {"kind": "MPIJob", "namespace": job.namespace, "name": job.name, "uid": job.uid},
            "type": "Normal",
            "reason": reason,
            "message": message,
            **given,
        }
        self._jobs.ask(lambda kube: kube.create(resources.EVENTS, body))
