"""Parts of a cluster may die and come back; a cluster that ends leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cluster import cgroups, cleaning, network
from cluster.cluster import Cluster, start
from cluster.kubectl import until
from cluster.places import HERE, running
from cluster.pods import headless, sleeping


@pytest.mark.parametrize("victim", ["etcd", "apiserver"])
def test_objects_outlive_a_killed_part_of_the_control_plane(api: Cluster, api_namespace: str, victim: str) -> None:
    api.kubectl(f"--namespace={api_namespace}", "create", "configmap", "kept", "--from-literal=word=yes")
    program = getattr(api, victim)
    program.kill()
    assert not program.running
    program.start()
    api.apiserver.wait()
    assert api.get("configmap", "kept", api_namespace)["data"] == {"word": "yes"}


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


def test_a_cluster_that_is_stopped_leaves_nothing_behind() -> None:
    before = _traces()
    found = start("brief", pods=False)
    pids = [program.pid for program in found.programs]
    assert all(psutil.pid_exists(pid) for pid in pids)
    found.stop()
    assert not found.folder.exists()
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []
    assert _traces() - before == set()


def test_a_cluster_can_be_started_with_more_admission_plugins() -> None:
    found = start("strict", pods=False, admission=["PodSecurityPolicy"])
    try:
        found.kubectl("create", "serviceaccount", "somebody")
        until(lambda: "secrets" in found.get("serviceaccount", "somebody"), "its token is made")
        found.kubectl("create", "rolebinding", "edit", "--clusterrole=edit", "--serviceaccount=default:somebody")
        create = ("run", "pod", "--image=none", "--dry-run=server", "--as=system:serviceaccount:default:somebody")
        # The binding comes into force a moment later.
        until(lambda: "PodSecurityPolicy" in found.kubectl(*create, check=False).stderr, "the plugin refuses the pod")
    finally:
        found.stop()


OWNER = """
import sys, time
from cluster.cluster import start
found = start("orphan", pods=False)
print(found.name, *(program.pid for program in found.programs), flush=True)
time.sleep(1000)
"""


def test_a_cluster_ends_with_its_owner_even_if_that_is_killed() -> None:
    before = _traces()
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
    until(lambda: not _traces() - before, lambda: f"left: {_traces() - before}")


def _traces() -> set[str]:
    """What a cluster of one of the tests here could leave on the machine."""
    names = ("brief", "orphan")
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    groups = {str(path) for name in names for path in cgroups.left(cleaning.group_of(name))}
    links = network.links() & {cleaning.link_of(name) for name in names}
    return {mount for mount in mounts if str(running()) in mount} | groups | links
