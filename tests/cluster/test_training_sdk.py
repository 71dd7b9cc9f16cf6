"""Kubeflow's own client, the training SDK, with jobs of both versions. It knows v1 alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.jobs import PATIENCE, V1, V2BETA1, mpijob
from cluster.kubectl import until
from cluster.operator import Operator

TOP = Path(__file__).parents[2]
PYTHON = TOP / ".tools" / "training-sdk" / "bin" / "python3"
PROGRAM = Path(__file__).with_name("by_training_sdk.py")


def by_sdk(cluster: Cluster, namespace: str, job: dict[str, Any], whose: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(PYTHON), "-P", str(PROGRAM), str(cluster.kubeconfig), namespace, whose],
        input=json.dumps(job),
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("version", [V1, V2BETA1])
def test_the_training_sdk_runs_a_job(cluster: Cluster, namespace: str, operator: Operator, version: str) -> None:
    job = mpijob("sdk", cluster.images["openmpi4"], annotations={"oarsman.dev/api-version": version}, version=V1)
    told = by_sdk(cluster, namespace, job, "master" if version == V1 else "all")
    assert told["succeeded"]
    assert told["conditions"][-1] == "Succeeded"
    assert (told["listed"], told["seen"]) == (["sdk"], 1)
    assert told["launchers"] == (["sdk-launcher"] if version == V1 else [])  # of v2beta1 the role is launcher
    (log,) = [log for pod, log in told["logs"].items() if pod.startswith("sdk-launcher")]
    assert sorted(log.splitlines()) == ["rank 0 of 2 on sdk-worker-0", "rank 1 of 2 on sdk-worker-1"]
    until(lambda: not cluster.get("pods", namespace=namespace)["items"], "the pods of the deleted job are gone")
