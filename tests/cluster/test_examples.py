"""The examples on a cluster. The images they name cannot be built here, so equal ones of the tests take their place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.cluster import Cluster
from cluster.face import Face, a_face
from cluster.operator import Operator
from cluster.places import ROOT

WORKDIR = "/srv/oarsman"  # of examples/Dockerfile


@pytest.fixture
def face(cluster: Cluster, namespace: str, operator: Operator, tmp_path: Path) -> Face:
    return a_face(cluster, namespace, tmp_path)


def example(name: str, image: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "examples" / name / f"{name}.yaml").read_text())
    for role in manifest["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["image"] = image
    return manifest


def with_programs(manifest: dict[str, Any], face: Face) -> dict[str, Any]:
    """As if the image had the example's programs, where examples/Dockerfile puts them."""
    name = manifest["metadata"]["name"]
    programs = {path.name: path.read_text() for path in (ROOT / "examples" / name).glob("*.py")}
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": programs}
    face.cluster.apply(kept, namespace=face.namespace)
    for role in manifest["spec"]["mpiReplicaSpecs"].values():
        pod = role["template"]["spec"]
        pod["volumes"] = [{"name": "programs", "configMap": {"name": name}}]
        mount = {"name": "programs", "mountPath": f"{WORKDIR}/examples/{name}"}
        pod["containers"][0] |= {"workingDir": WORKDIR, "volumeMounts": [mount]}
    return manifest


def run(face: Face, manifest: dict[str, Any], code: int = 0) -> str:
    (face.home / "job.json").write_text(json.dumps(manifest))
    done = face.says("run", "job.json", code=code)
    return done.stdout + done.stderr  # what ranks wrote to either


def greetings(job: str) -> list[tuple[str, str]]:
    return [(str(rank), f"{job}-worker-{rank // 2}") for rank in range(4)]


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"])
def test_the_example_for_clusters_greets_from_two_workers(face: Face, cluster: Cluster, mpi: str) -> None:
    said = run(face, example("hello-cluster", cluster.images[mpi]))
    assert sorted(re.findall(r"Hello from rank (\d) of 4 on (\S+)", said)) == greetings("hello-cluster")


def test_an_example_for_one_machine_runs_in_an_image_with_its_programs(face: Face, cluster: Cluster) -> None:
    said = run(face, with_programs(example("hello", cluster.images["openmpi5"]), face))
    assert sorted(re.findall(r"Hello from rank (\d) of 4 on (\S+)", said)) == greetings("hello")


def test_ranks_that_know_nothing_of_mpi_meet_on_a_cluster_too(face: Face, cluster: Cluster) -> None:
    said = run(face, with_programs(example("torch-env", cluster.images["openmpi5"]), face))
    assert "All 4 met at torch-env-worker-0.torch-env." in said
    expected = {(str(rank), str(rank % 2), f"torch-env-worker-{rank // 2}") for rank in range(4)}
    assert set(re.findall(r"rank (\d) \(local (\d)\) on ([\w-]+)", said)) == expected


def test_the_example_that_fails_ends_with_its_code_on_a_cluster_too(face: Face, cluster: Cluster) -> None:
    # Open MPI 5 may lose what a rank wrote just before it called MPI_Abort.
    said = run(face, with_programs(example("fails-on-one-rank", cluster.images["openmpi4"]), face), code=3)
    assert "data/part-1.csv: no such file" in said
    assert re.search(r"cause: rank 1 .*code 3", face.says("describe", "fails-on-one-rank").stdout)
