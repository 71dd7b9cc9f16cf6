"""The headless Service that gives every pod of the job a name."""

from __future__ import annotations

from oarsman.engines.kube.client.resources import SERVICES
from oarsman.engines.kube.objects.common import Object, owned, selector
from oarsman.job.job import Job


def service(job: Job) -> Object:
    # A launcher at the start barrier is not ready yet, and its workers must find it all the same.
    spec = {"clusterIP": "None", "selector": selector(job), "publishNotReadyAddresses": True}
    return owned(job, SERVICES, job.name, spec=spec)
