"""MPI jobs by hand, without any operator: what the images can do, and what a pod needs for ssh under any user."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.pods import headless, pod, secret, sleeping

SUM = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
print("rank", world.rank, "on", socket.gethostname(), "sum", world.allreduce(world.rank + 1), flush=True)
"""
COMMANDS = {
    # Open MPI 4 cuts host names at the first dot unless it is told not to.
    "openmpi4": "mpirun --mca orte_keep_fqdn_hostnames 1 --allow-run-as-root -np 2 --host zero.peers:1,one.peers:1",
    "openmpi5": "mpirun --allow-run-as-root -np 2 --host zero.peers:1,one.peers:1",
    # MPICH gives workers the bare name of the launcher's host, which no DNS of a cluster knows.
    "mpich": "mpiexec -localhost launcher.peers -launcher ssh -np 2 -hosts zero.peers,one.peers",
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    file = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file.read_text(), Path(f"{file}.pub").read_text()


@pytest.mark.parametrize("mpi", COMMANDS)
def test_ranks_come_to_both_workers_over_ssh(cluster: Cluster, namespace: str, keys: tuple[str, str], mpi: str) -> None:
    """As root, with the keys mounted where root's ssh looks for them and the usual command for workers."""
    private, public = keys
    items = [{"key": "private", "path": "id_ed25519"}, {"key": "public", "path": "authorized_keys"}]
    volumes = [{"name": "keys", "secret": {"secretName": "keys", "items": items, "defaultMode": 0o600}}]
    mounts = {"volumeMounts": [{"name": "keys", "mountPath": "/root/.ssh"}]}
    nodes = [node["metadata"]["name"] for node in cluster.get("nodes")["items"]]

    def member(name: str, *command: str, **spec: Any) -> dict[str, Any]:
        made = sleeping(name, cluster.images[mpi], volumes=volumes, container=mounts, **spec)
        if command:
            made["spec"]["containers"][0]["command"] = list(command)
        return made

    cluster.apply(
        headless(publishNotReadyAddresses=True),
        secret("keys", private=private, public=public),
        member("launcher"),
        member("zero", "/usr/sbin/sshd", "-De", nodeName=nodes[0]),
        member("one", "/usr/sbin/sshd", "-De", nodeName=nodes[1]),
        namespace=namespace,
    )
    cluster.wait_for_pods(namespace, "launcher", "zero", "one")
    said = cluster.run_in(namespace, "launcher", "sh", "-c", f"{COMMANDS[mpi]} python3 -c '{SUM}'")
    assert sorted(said.splitlines()) == ["rank 0 on zero sum 3", "rank 1 on one sum 3"]


# All that ssh needs under a user without a name, from volumes: a list of users with that one in it (without, ssh ends
# at once and sshd knows nobody), a port above 1023, and no PAM. Root owns the keys and all may read them: nobody minds.
USERS = "root:x:0:0::/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\nanybody:x:12345:0::/tmp:/bin/sh\n"
SSHD = (
    "/usr/sbin/sshd -De -f /dev/null -p 2222 -h /keys/private -o AuthorizedKeysFile=/keys/public -o StrictModes=no "
    "-o UsePAM=no -o PidFile=none"
)
SSH = "ssh -F /dev/null -p 2222 -i /keys/private -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"


def test_a_user_without_a_name_reaches_another_pod_over_ssh(
    cluster: Cluster, namespace: str, keys: tuple[str, str]
) -> None:
    """In an image as its packages leave it, without any privilege and with a file system that cannot be written."""
    private, public = keys
    volumes = [
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o444}},
        {"name": "users", "secret": {"secretName": "users"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    container = {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "keys", "mountPath": "/keys"},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "users", "mountPath": "/etc/passwd", "subPath": "passwd"},
        ],
    }
    spec = {"volumes": volumes, "container": container, "securityContext": {"runAsUser": 12345}}
    image = cluster.images["openmpi4-plain"]
    cluster.apply(
        headless(publishNotReadyAddresses=True),
        secret("keys", private=private, public=public),
        secret("users", passwd=USERS),
        sleeping("asking", image, **spec),
        pod("answering", image, *SSHD.split(), **{**spec, "container": dict(container)}),
        namespace=namespace,
    )
    cluster.wait_for_pods(namespace, "asking", "answering")
    said = cluster.run_in(namespace, "asking", *SSH.split(), "answering.peers", "id -u; hostname")
    assert said.split() == ["12345", "answering"]
