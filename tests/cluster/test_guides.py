"""What the guides tell a reader to type on a cluster is typed on ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.guides import Reader, on_kube
from cluster.jobs import mpijob, submit_one
from cluster.operator import Operator

GUIDE = "docs/guide/kubernetes.md"


@pytest.fixture
def reader(cluster: Cluster, namespace: str, operator: Operator, tmp_path: Path) -> Reader:
    return Reader(cluster, namespace, tmp_path)


def ours(cluster: Cluster) -> dict[str, str]:
    image = cluster.images["openmpi4"]
    return {
        "s|oarsman/openmpi|registry.example/team/openmpi|": f"s|oarsman/openmpi:0.1.0|{image}|",
        "registry.example/solver:1 -- ./solver": f"{image} -- hostname",
    }


def test_the_first_job_says_hello_from_every_rank(reader: Reader, cluster: Cluster) -> None:
    said = reader.types(on_kube(GUIDE, "A first job"), ours(cluster))
    assert sorted(re.findall(r"Hello from rank (\d) of 4 on", said)) == ["0", "1", "2", "3"]


def test_the_commands_of_every_day_work_one_after_another(reader: Reader, cluster: Cluster) -> None:
    (reader.folder / "job.yaml").write_text(json.dumps(mpijob("pi", cluster.images["openmpi4"])))
    said = reader.types(on_kube(GUIDE, "Daily use"), ours(cluster))
    for part in ("pi succeeded after", "[rank 0 pi-worker-0]", "State:"):
        assert part in said


def test_the_number_of_workers_is_changed_by_oarsman_and_by_kubectl(reader: Reader, cluster: Cluster) -> None:
    job = submit_one(cluster, reader.namespace, mpijob("pi", cluster.images["openmpi4"], ["sleep", "120"]))
    job.wait_for("Running")
    reader.types(on_kube(GUIDE, "Change the number of workers"), {})
    found = cluster.get("mpijobs.v2beta1.kubeflow.org", "pi", reader.namespace)
    assert found["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_kubectl_shows_a_job_its_log_and_the_operators(reader: Reader, cluster: Cluster) -> None:
    job = submit_one(cluster, reader.namespace, mpijob("pi", cluster.images["openmpi4"]))
    job.wait_for("Succeeded")
    assert "apiVersion: kubeflow.org/v2beta1" in reader.types(on_kube(GUIDE, "What kubectl shows"), {})
    assert "rank 0 of 2 on pi-worker-0" in reader.types(on_kube("docs/guide/faq.md"), {})
    assert reader.types(on_kube(GUIDE, "When a job does not start"), {})
