"""The headless Service that gives every pod of the job a name."""

from __future__ import annotations

from oarsman.engines.kube.objects.common import Object, metadata, selector
from oarsman.job.job import Job


def service(job: Job) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, job.name),
        "spec": {
            "clusterIP": "None",
            "selector": selector(job),
            # A launcher at the start barrier is not ready yet, and its workers must find it all the same.
            "publishNotReadyAddresses": True,
        },
    }
