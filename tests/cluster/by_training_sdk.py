"""A program for the environment of the training SDK (`scripts/setup`): create, wait for, read and delete a job.

by_training_sdk.py KUBECONFIG NAMESPACE WHOSE: the MPIJob is on stdin, as JSON, and on stdout what was told of it.
WHOSE: "master" asks for the log of the master, as the SDK does by default; "all" for those of all pods.
"""

from __future__ import annotations

import json
import sys

from kubeflow.training import KubeflowOrgV1MPIJob, TrainingClient  # only in that environment

KIND = "MPIJob"


class _Answer:
    """What the SDK's own reader of models takes."""

    def __init__(self, document: dict[str, object]) -> None:
        self.data = json.dumps(document)


def main(kubeconfig: str, namespace: str, master: str) -> None:
    client = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind=KIND)
    job = client.api_client.deserialize(_Answer(json.load(sys.stdin)), KubeflowOrgV1MPIJob)
    name = job.metadata.name
    client.create_job(job)
    seen: list[str] = []
    ended = client.wait_for_job_conditions(
        name, wait_timeout=200, polling_interval=1, callback=lambda found: seen.append(found.metadata.uid)
    )
    logs, _ = client.get_job_logs(name, is_master=master == "master")
    told = {
        "conditions": [one.type for one in ended.status.conditions if one.status == "True"],
        "succeeded": client.is_job_succeeded(name),
        "listed": [one.metadata.name for one in client.list_jobs()],
        "launchers": client.get_job_pod_names(name, is_master=True),
        "logs": logs,
        "seen": len(set(seen)),
    }
    client.delete_job(name)
    print(json.dumps(told))


main(*sys.argv[1:])
