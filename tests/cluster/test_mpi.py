"""MPI jobs by hand, without any operator: what the images can do, and what a pod needs for ssh under any user."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.pods import headless, secret, sleeping

SUM = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
print("rank", world.rank, "on", socket.gethostname(), "sum", world.allreduce(world.rank + 1), flush=True)
"""
COMMANDS = {
    "openmpi4": "mpirun --allow-run-as-root --oversubscribe -np 2 --host zero.peers:1,one.peers:1",
    "openmpi5": "mpirun --allow-run-as-root --oversubscribe -np 2 --host zero.peers:1,one.peers:1",
    "mpich": "mpiexec -launcher ssh -np 2 -hosts zero.peers,one.peers",
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
        headless(publishNotReadyAddresses=True), secret("keys", private=private, public=public), member("launcher"),
        member("zero", "/usr/sbin/sshd", "-De", nodeName=nodes[0]),
        member("one", "/usr/sbin/sshd", "-De", nodeName=nodes[1]), namespace=namespace,
    )  # fmt: skip
    cluster.wait_for_pods(namespace, "launcher", "zero", "one")
    said = cluster.run_in(namespace, "launcher", "sh", "-c", f"{COMMANDS[mpi]} python3 -c '{SUM}'")
    assert sorted(said.splitlines()) == ["rank 0 on zero sum 3", "rank 1 on one sum 3"]
