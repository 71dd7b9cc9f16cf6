"""What whoever runs the operator decides for all jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    cluster_domain: str = ""  # appended to the names of hosts; empty: names end in .svc
    kubectl_image: str = "oarsman/kubectl-delivery:latest"  # any image with a shell and kubectl
    gang_scheduler: str = ""  # volcano, or the name of a scheduler with the scheduler-plugins' PodGroup
    barrier_seconds: int = 300  # how long a worker that has an address may refuse a login
