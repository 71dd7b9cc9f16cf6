"""Environments and install commands on a real cluster: built once, found first by every rank, and waited for."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import waiting

from cluster.jobs import RESTRICTED_CONTAINER, RESTRICTED_POD, V1, V2BETA1, Object, Submitted, mpijob
from cluster.kubectl import until
from cluster.together import Place, together
from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube.client import load_access
from oarsman.errors import ConflictError
from oarsman.job.environment import EnvironmentRecord, EnvironmentWanted

pytestmark = pytest.mark.timeout(900)  # a body waits for others before it, and says more than a time limit

ENVIRONMENT, INSTALL = "oarsman.dev/environment", "oarsman.dev/install"
# Pods have no way to a registry: what they install lies in the claim itself.
REQUIREMENTS = "--no-index\n--find-links /opt/oarsman/environments/wheels\ngreeting==1.0\n"
RANK = """
import os, shutil, sys
from mpi4py import MPI
import greeting
first = shutil.which("python3").startswith(os.environ["VIRTUAL_ENV"])
print("rank", MPI.COMM_WORLD.rank, greeting.WORD, first, open("/tmp/installed").read().strip(), flush=True)
"""


def put_wheel(folder: Path) -> None:
    """A package of one line, as a wheel made by hand."""
    info = "greeting-1.0.dist-info"
    files = {
        "greeting.py": "WORD = 'good-day'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    sums = {name: hashlib.sha256(text.encode()).digest() for name, text in files.items()}
    record = [f"{name},sha256={base64.urlsafe_b64encode(s).rstrip(b'=').decode()}," for name, s in sums.items()]
    folder.mkdir(mode=0o755)
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": "\n".join([*record, f"{info}/RECORD,,", ""])}.items():
            wheel.writestr(name, text)


@contextlib.contextmanager
def claim(place: Place) -> Iterator[Path]:
    """The claim of the namespace; its volume is a folder of this machine, which all nodes of the tests share."""
    size, both = {"storage": "1Gi"}, {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
    with tempfile.TemporaryDirectory(prefix="oarsman-claim-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        put_wheel(Path(name) / "wheels")
        volume: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": place.namespace},
            "spec": {**both, "capacity": size, "hostPath": {"path": name}, "persistentVolumeReclaimPolicy": "Retain"},
        }
        wanted: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "oarsman-environments"},
            "spec": {**both, "volumeName": place.namespace, "resources": {"requests": size}},
        }
        place.cluster.apply(volume)
        place.cluster.apply(wanted, namespace=place.namespace)
        try:
            yield Path(name)
        finally:
            place.cluster.kubectl("delete", "persistentvolume", place.namespace, "--wait=false")


@contextlib.contextmanager
def a_door(place: Place) -> Iterator[KubeBackend]:
    found = waiting(KubeBackend(load_access(kubeconfig=Path(str(place.cluster.kubeconfig))), namespace=place.namespace))
    try:
        yield found
    finally:
        found.close()


def until_is(door: KubeBackend, name: str, state: str) -> EnvironmentRecord:
    until(lambda: door.environments.get(name).state == state, lambda: str(door.environments.get(name)), 400)
    return door.environments.get(name)


@together
def test_ranks_on_every_host_find_the_environment_first_with_any_mpi_and_either_version(place: Place) -> None:
    def greeting(name: str, mpi: str, debian: str, **spec: Any) -> Submitted:
        annotations = {ENVIRONMENT: debian, INSTALL: 'echo "$K_MPI_JOB_ROLE" >/tmp/installed'}
        program = ("python3", "-c", RANK)
        return place.submit(mpijob(name, place.image(mpi), program=program, annotations=annotations, **spec))

    with claim(place) as folder, a_door(place) as door:
        restricted = {
            "pod": {"securityContext": RESTRICTED_POD},
            "container": {"securityContext": RESTRICTED_CONTAINER},
        }
        jobs = [
            greeting("any-user", "openmpi4", "debian12", **restricted),
            greeting("exec", "openmpi4", "debian12", version=V1),
            greeting("five", "openmpi5", "debian13"),
            greeting("hydra", "mpich", "debian13", mpiImplementation="MPICH"),
        ]
        waiting = jobs[0].wait_for_condition("Queued")
        assert waiting["reason"] == "EnvironmentNotReady"
        assert "there is no environment debian12 in this namespace" in waiting["message"]
        assert jobs[0].pods() == []

        for name, mpi in (("debian12", "openmpi4"), ("debian13", "openmpi5")):
            wanted = EnvironmentWanted(name=name, requirements=REQUIREMENTS, image=place.image(mpi))
            door.environments.put(wanted, owner="ann")
        for submitted in jobs:
            submitted.wait_for("Succeeded", timeout=400)
            lines = [line for line in submitted.log().splitlines() if "rank " in line]
            assert sorted(lines) == [f"rank {rank} good-day True worker" for rank in (0, 1)]

        built = door.environments.get("debian12")
        assert (built.state, built.owner, built.used_by) == ("Ready", "ann", ())
        assert "greeting==1.0" in built.packages
        assert (built.python[:2], bool(built.size_bytes)) == ("3.", True)
        log = door.environments.log("debian12")
        assert log.ended
        assert "Successfully installed greeting-1.0" in log.text
        _same_contents_are_not_built_again(place, door, built, folder)


def _same_contents_are_not_built_again(place: Place, door: KubeBackend, built: EnvironmentRecord, folder: Path) -> None:
    trees = sorted(tree.name for tree in (folder / "builds").iterdir())
    door.environments.put(EnvironmentWanted(name="other", requirements=REQUIREMENTS, image=place.image("openmpi4")))
    assert until_is(door, "other", "Ready").digest == built.digest
    assert "already" in door.environments.log("other").text
    assert sorted(tree.name for tree in (folder / "builds").iterdir()) == trees
    door.environments.delete("debian13")
    until(lambda: len(list((folder / "builds").iterdir())) == 1, "the folder of a deleted one goes")
    door.environments.delete("other")
    assert (folder / built.digest / "bin").is_dir()  # debian12 has the same contents


@together
def test_an_environment_that_cannot_be_built_says_why_and_is_kept_while_a_job_waits_for_it(place: Place) -> None:
    with claim(place), a_door(place) as door:
        wrong = EnvironmentWanted(name="wrong", python="3.99", image=place.image("openmpi4"))
        door.environments.put(wrong)
        assert until_is(door, "wrong", "Failed").message == "there is no Python 3.99 in the image"
        submitted = place.submit(mpijob("waits", place.image(), annotations={ENVIRONMENT: "wrong"}))
        said = submitted.wait_for_condition("Queued")["message"]
        assert "environment wrong could not be built: there is no Python 3.99" in said
        with pytest.raises(ConflictError, match="waits"):
            door.environments.delete("wrong")


@pytest.mark.parametrize(
    ("version", "host", "role"),
    [(V2BETA1, "fails-worker-1", "worker"), (V1, "fails-worker-1", "worker"), (V2BETA1, "fails-launcher", "launcher")],
)
@together
def test_install_commands_that_fail_are_told_with_the_host(place: Place, version: str, host: str, role: str) -> None:
    install = f'if [ "$(uname -n)" = {host} ]; then echo the disk is full; exit 3; fi'
    submitted = place.submit(mpijob("fails", place.image(), version=version, annotations={INSTALL: install}))
    cause = submitted.wait_for("Failed")["cause"]
    assert cause["summary"] == f"{host}: the install commands failed with code 3: the disk is full"
    assert cause["host"] == host
    if role == "launcher":
        assert "the disk is full\n" in submitted.log()
