"""`oarsman install` brings the operator, without Helm, and `oarsman uninstall` takes it away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from cluster.face import Face, a_face
from cluster.jobs import mpijob, submit_one
from cluster.kubectl import until


@pytest.fixture
def face(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Face]:
    """Nothing of an operator is there, neither now nor for the next test, even if this one fails half-way."""
    found = a_face(cluster, namespace, tmp_path)
    until_without_operator(found)
    yield found
    found.says("uninstall", "--yes")
    until_without_operator(found)


def until_without_operator(face: Face) -> None:
    """Its pods end some time after their Deployment, and its lease is only known to be nobody's when it is over."""
    cluster = face.cluster
    pods = lambda: [pod["metadata"]["name"] for pod in cluster.get("pods", namespace="mpi-operator")["items"]]  # noqa: E731
    until(lambda: not pods(), lambda: f"these pods are gone: {pods()}")
    place = ("get", "namespace", "mpi-operator", "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    until(lambda: cluster.kubectl(*place).stdout != "Terminating", "its namespace is gone, or not ours to delete")
    until(lambda: face.says("doctor", code=None).returncode != 0, "no operator is heard of")


def test_oarsman_brings_the_operator_and_takes_it_away(cluster: Cluster, namespace: str, face: Face) -> None:
    sick = face.says("doctor", code=None)
    assert sick.returncode
    assert "oarsman install --image IMAGE" in sick.stdout
    dry = face.says("install", "--dry-run").stdout
    assert "deployment mpi-operator/oarsman would be created" in dry
    said = face.says("install", "--image", cluster.images["operator"]).stdout
    assert "customresourcedefinition mpijobs.kubeflow.org" in said
    assert "deployment mpi-operator/oarsman runs, 2/2 pods" in said
    again = face.says("install", "--image", cluster.images["operator"]).stdout.splitlines()
    # A pod that is slow to say that it is well is waited for once more, which changes nothing either.
    assert [line for line in again if not line.endswith((" unchanged", " pods"))] == []
    assert again[-1] == "deployment mpi-operator/oarsman runs, 2/2 pods"
    until(lambda: face.says("doctor", code=None).returncode == 0, "the doctor is content")
    job = submit_one(cluster, namespace, mpijob("first", cluster.images["openmpi4"], ["true"], workers=0))
    job.wait_for("Succeeded")

    gone = face.says("uninstall", "--yes").stdout
    assert "customresourcedefinition mpijobs.kubeflow.org kept" in gone
    assert "deployment mpi-operator/oarsman deleted" in gone
    assert face.says("list", "-o", "name").stdout == "mpijob/first\n"
    until_without_operator(face)
