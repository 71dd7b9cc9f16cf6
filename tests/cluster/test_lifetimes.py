"""Parts of a cluster may die and come back; a cluster that ends leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cluster import cgroups, cleaning, network
from cluster.cluster import Cluster, start
from cluster.control_plane import ControlPlane
from cluster.kubectl import until
from cluster.places import HERE, running
from cluster.pods import headless, sleeping


@pytest.fixture(scope="module")
def mortal() -> Iterator[Cluster]:
    """A control plane that nobody else needs."""
    found = start("mortal", pods=False, admission=["AlwaysPullImages"])
    yield found
    found.stop()


@pytest.mark.parametrize("victim", ["etcd", "apiserver"])
def test_objects_outlive_a_killed_part_of_the_control_plane(mortal: Cluster, victim: str) -> None:
    mortal.kubectl("create", "configmap", victim, "--from-literal=word=yes")
    program = getattr(mortal, victim)
    program.kill()
    assert not program.running
    program.start()
    mortal.apiserver.wait()
    assert mortal.get("configmap", victim)["data"] == {"word": "yes"}


def test_a_cluster_can_be_started_with_more_admission_plugins(mortal: Cluster) -> None:
    # It does not wait for a token: the controllers may still be looking for the server that was killed.
    alone = '{"spec": {"automountServiceAccountToken": false, "serviceAccountName": "somebody"}}'
    mortal.kubectl("create", "serviceaccount", "somebody")
    create = ("run", "pod", "--image=none", "--image-pull-policy=Never", "--dry-run=server", f"--overrides={alone}")
    made = json.loads(mortal.kubectl(*create, "-o", "json").stdout)
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_a_pod_outlives_its_kubelet(cluster: Cluster, namespace: str) -> None:
    node = cluster.nodes[0]
    cluster.apply(headless(), sleeping("pod", cluster.images["busy"], nodeName=node.name), namespace=namespace)
    cluster.wait_for_pods(namespace, "pod")
    cluster.run_in(namespace, "pod", "touch", "/tmp/mark")
    node.kubelet.kill()
    node.kubelet.start()
    asked = ("ls", "/tmp/mark")  # by way of the kubelet, which is away for some seconds
    until(lambda: cluster.run_in(namespace, "pod", *asked, check=False) == "/tmp/mark\n", "the same container answers")


def test_a_node_that_lost_its_power_runs_pods_again(cluster: Cluster, namespace: str) -> None:
    node = cluster.nodes[1]
    node.kill()
    assert not any(program.running for program in node.programs)
    node.start()
    cluster.apply(headless(), sleeping("pod", cluster.images["busy"], nodeName=node.name), namespace=namespace)
    cluster.wait_for_pods(namespace, "pod")
    assert cluster.run_in(namespace, "pod", "hostname") == "pod\n"


# -- what ends a cluster does not ask whether it is ready, and until it is it takes some seconds of CPU ----------------
def test_a_cluster_that_is_stopped_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlPlane, "wait", lambda _: None)
    found = start("brief", pods=False)
    pids = [program.pid for program in found.programs]
    assert all(psutil.pid_exists(pid) for pid in pids)
    found.stop()
    assert not found.folder.exists()
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []
    assert _traces(found.name) == set()


OWNER = """
import sys, time
from cluster.cluster import start
found = start("orphan", pods=False)
print(found.name, *(program.pid for program in found.programs), flush=True)
time.sleep(1000)
"""


def test_a_cluster_ends_with_its_owner_even_if_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, env=environment, text=True)
    with owner:
        assert owner.stdout
        name, *words = owner.stdout.readline().split()
        pids = [int(word) for word in words]
        assert len(pids) >= 2
        owner.send_signal(signal.SIGKILL)
    until(lambda: not any(psutil.pid_exists(pid) for pid in pids), "its programs end")
    until(lambda: not (running() / name).exists(), "its folder goes")
    until(lambda: not _traces(name), lambda: f"left: {_traces(name)}")


def _traces(name: str) -> set[str]:
    """What a cluster of this name could leave on the machine."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    groups = {str(path) for path in cgroups.left(cleaning.group_of(name))}
    links = network.links() & {cleaning.link_of(name)}
    return {mount for mount in mounts if Path(mount).is_relative_to(running() / name)} | groups | links
