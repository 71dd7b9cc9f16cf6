"""`oarsman install` brings the operator, without Helm, and `oarsman uninstall` takes it away."""

from __future__ import annotations

from pathlib import Path

from cluster.cluster import Cluster
from cluster.face import a_face
from cluster.jobs import mpijob, submit_one
from cluster.kubectl import until


def test_oarsman_brings_the_operator_and_takes_it_away(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    face = a_face(cluster, namespace, tmp_path)
    sick = face.says("doctor", code=None)
    assert sick.returncode
    assert "oarsman install --image IMAGE" in sick.stdout
    dry = face.says("install", "--dry-run").stdout
    assert "deployment mpi-operator/oarsman would be created" in dry
    try:
        said = face.says("install", "--image", cluster.images["operator"], "--timeout", "90s").stdout
        assert "customresourcedefinition mpijobs.kubeflow.org" in said
        assert "deployment mpi-operator/oarsman runs, 2/2 pods" in said
        lines = face.says("install", "--image", cluster.images["operator"]).stdout.splitlines()
        assert [line for line in lines if not line.endswith((" unchanged", " 2/2 pods"))] == []
        until(lambda: face.says("doctor", code=None).returncode == 0, "the doctor is content")
        job = submit_one(cluster, namespace, mpijob("first", cluster.images["openmpi4"], ["true"], workers=0))
        job.wait_for("Succeeded")
    finally:
        gone = face.says("uninstall", "--yes").stdout
    assert "customresourcedefinition mpijobs.kubeflow.org kept" in gone
    assert "deployment mpi-operator/oarsman deleted" in gone
    assert face.says("list", "-o", "name").stdout == "mpijob/first\n"
    pods = ("get", "pods", "--namespace=mpi-operator", "-o", "name")
    until(lambda: not cluster.kubectl(*pods).stdout, "the operator's pods are gone")
    place = ("get", "namespace", "mpi-operator", "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    until(lambda: cluster.kubectl(*place).stdout != "Terminating", "its namespace is gone, or not ours to delete")
