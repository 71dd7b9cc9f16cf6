"""A real Kubernetes cluster on this machine: started in seconds, gone without a trace."""

from __future__ import annotations

import http
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from cluster import cleaning, containers, images, network
from cluster.build import Programs, programs
from cluster.client import Client, Refused
from cluster.control_plane import ControlPlane, may_run_nodes
from cluster.kubectl import Kubectl
from cluster.node import Node, Place
from cluster.places import HERE, locked, running, try_lock
from cluster.world import PATIENCE, Program, World

NODES = 2


# Where the API server has what tests ask for.
PATHS = {
    **dict.fromkeys(("configmaps", "events", "nodes", "pods", "secrets", "serviceaccounts"), "/api/v1"),
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    **dict.fromkeys(("deployments", "replicasets"), "/apis/apps/v1"),
    "mpijobs.v1.kubeflow.org": "/apis/kubeflow.org/v1",
    "mpijobs.v2beta1.kubeflow.org": "/apis/kubeflow.org/v2beta1",
}
# Of these, apply() makes new ones itself.
MADE = {"ConfigMap", "MPIJob", "Pod", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount"}
PATHS |= {kind.removesuffix("s"): path for kind, path in PATHS.items() if kind.endswith("s")}


def _path(kind: str, name: str, namespace: str | None) -> str:
    plural = kind.partition(".")[0]
    plural = plural if plural.endswith("s") else f"{plural}s"
    within = "" if plural == "nodes" else f"/namespaces/{namespace or 'default'}"
    return f"{PATHS[kind]}{within}/{plural}" + (f"/{name}" if name else "")


class Cluster(Kubectl):
    """Made by start(). Its programs may be killed and started again: apiserver, etcd, nodes[0].kubelet and so on."""

    def __init__(self, name: str, *, pods: bool, detached: bool, lock: IO[str], found: Programs) -> None:
        self.name = name
        self.runs_pods = pods
        self.folder = running() / name
        self.nodes: list[Node] = []
        self._programs = found
        self._kubectl_program = found["kubectl"]
        self._lock = lock
        self._detached = detached
        self.images = {}
        cleaning.remove(name)  # what a killed run of this name left
        self.folder.mkdir()
        self._reading, self._writing = os.pipe()
        self._cleaner: subprocess.Popen[bytes] | None = None
        if not detached:
            # It inherits the lock: the name is free again only when it has done its work.
            self._cleaner = subprocess.Popen(
                [sys.executable, "-m", "cluster.cleaning", name],
                stdin=self._reading,
                pass_fds=[lock.fileno()],
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
                start_new_session=True,
                cwd="/",
            )

    def _world(self, name: str, *, network: bool) -> World:
        return World(name, self.folder / name, network=network, owner=None if self._detached else self._reading)

    def _start(self, admission: Sequence[str], *, audited: bool, features: Sequence[str]) -> None:
        names = [f"node-{number}" for number in range(1, NODES + 1)] if self.runs_pods else []
        world = self._world("control-plane", network=self.runs_pods)
        world.start()
        addresses = None
        if self.runs_pods:
            with locked(Path("/tmp/oarsman-addresses.lock")):  # one for all runs, whatever their TMPDIR
                addresses = network.free_addresses()
                network.lay(world, addresses, cleaning.link_of(self.name))
        self.control_plane = ControlPlane(
            world, self._programs, addresses, names, admission, audited=audited, features=features
        )
        self.control_plane.start()
        self.kubeconfig = self.control_plane.kubeconfig
        self.etcd = self.control_plane.etcd
        self.apiserver = self.control_plane.apiserver
        self.client: Client = self.control_plane.client
        for number, name in enumerate(names, 1):
            assert addresses
            place = Place(number, NODES, addresses, cleaning.group_of(self.name))
            self.nodes.append(Node(self._world(name, network=True), place, self.control_plane, self._programs))
        self.images = images.NAMES | {"operator": self.load_operator()} if self.runs_pods else {}
        with ThreadPoolExecutor() as pool:
            started = [pool.submit(node.start) for node in self.nodes]
            self.control_plane.wait()
            for node in started:
                node.result()
        self._wait_for_nodes()

    # -- what tests ask for often goes without kubectl ---------------------------------------------------
    def get(self, kind: str, name: str = "", namespace: str | None = None, labels: str = "") -> dict[str, Any]:
        if kind not in PATHS:
            return super().get(kind, name, namespace, labels)
        chosen = f"?labelSelector={quote(labels)}" if labels else ""
        found: dict[str, Any] = self.client.get(_path(kind, name, namespace) + chosen)
        return found

    def has(self, kind: str, name: str, namespace: str | None = None) -> bool:
        try:
            return bool(self.get(kind, name, namespace))
        except Refused as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise
            return False

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.client.ask("POST", path, body)
        return found

    def delete_all(self, kind: str, namespace: str) -> None:
        self.client.ask("DELETE", _path(kind, "", namespace))

    def apply(self, *objects: Mapping[str, Any], namespace: str | None = None) -> None:
        """Those that are there already, or are of no usual kind, are left to kubectl."""
        left = [each for each in objects if not self._made(each, namespace or "default")]
        if left:
            super().apply(*left, namespace=namespace)

    def _made(self, wanted: Mapping[str, Any], namespace: str) -> bool:
        version, kind = str(wanted["apiVersion"]), str(wanted["kind"])
        if kind not in MADE:
            return False
        group = f"apis/{version}" if "/" in version else f"api/{version}"
        within = wanted["metadata"].get("namespace", namespace)
        try:
            self.post(f"/{group}/namespaces/{within}/{kind.lower()}s", wanted)
        except Refused as error:
            if error.status != http.HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def create_namespace(self, name: str) -> None:
        self.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def accepts_pods(self, namespace: str) -> bool:
        pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "none", "image": "none"}]}}
        try:
            self.client.ask("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
        except Refused:
            return False
        return True

    def delete_namespace(self, name: str) -> None:
        for kind in ("jobs", "pods"):
            self.client.ask("DELETE", _path(kind, "", name) + "?gracePeriodSeconds=0&propagationPolicy=Background")
        self.client.ask("DELETE", f"/api/v1/namespaces/{name}")

    def _wait_for_nodes(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not all(self.is_ready(node) for node in self.nodes):
            for program in self.programs:
                program.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"nodes are not ready; see {self.folder}/node-*/*.log")
            time.sleep(0.1)

    def is_ready(self, node: Node) -> bool:
        try:
            found = self.client.get(f"/api/v1/nodes/{node.name}")
        except (Refused, OSError):
            return False
        conditions = found["status"].get("conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def load_operator(self) -> str:
        """Brings the operator as the source is now onto every node; the name of its image."""
        image = images.operator()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.load(image), self.nodes))
        return image.name

    @property
    def programs(self) -> list[Program]:
        return [*self.control_plane.programs, *(program for node in self.nodes for program in node.programs)]

    def stop(self) -> None:
        """Removes every trace, also after a start that failed half-way."""
        for node in self.nodes:
            node.kill()
        if hasattr(self, "control_plane"):
            self.control_plane.client.close()
            self.control_plane.world.kill()
            for program in self.programs:
                program.forget()
        cleaning.remove(self.name)
        self._leave()
        if self._cleaner:
            self._cleaner.wait(PATIENCE)

    def _leave(self) -> None:
        os.close(self._reading)
        os.close(self._writing)
        self._lock.close()


def start(
    name: str = "test",
    *,
    pods: bool = True,
    detached: bool = False,
    admission: Sequence[str] = (),
    audited: bool = False,
    features: Sequence[str] = (),
) -> Cluster:
    """A cluster of this name, or, while another has it, of this name and a number. Without pods: no nodes.

    It ends with this process, however this process ends, unless it is detached. admission: plugins beside the usual
    ones, such as AlwaysPullImages. audited: control_plane.audit counts what operators ask.
    features: gates to switch on, with all alpha versions.
    """
    if len(name) > 8:
        raise ValueError(f"{name} is too long: a network link is called after it")
    found = programs()
    if pods and (reason := why_no_pods()):
        raise RuntimeError(reason)
    cleaning.sweep()
    chosen, lock = _choose(name)
    cluster = Cluster(chosen, pods=pods, detached=detached, lock=lock, found=found)
    try:
        cluster._start(admission, audited=audited, features=features)
    except BaseException:
        cluster.stop()
        raise
    if detached:
        cluster._leave()
    return cluster


def refresh(name: str) -> list[str]:
    """Brings the images as they are now into a running cluster, the operator's among them; their names."""
    wanted = [recipe() for recipe in images.RECIPES.values()] + [images.operator()]
    for folder in sorted((running() / name).glob("node-*")):
        world = World(folder.name, folder, network=True, owner=None)
        world.attach()
        containerd = containers.Containerd(world, programs(), folder / "containerd", pods=True)
        for image in wanted:
            containerd.load(image)
    return [image.name for image in wanted]


def _choose(name: str) -> tuple[str, IO[str]]:
    for chosen in (name, *(f"{name}-{number}" for number in range(2, 20))):
        lock = try_lock(cleaning.lock_of(chosen))
        if lock and not cleaning.alive(chosen):
            return chosen, lock
        if lock:
            lock.close()
    raise RuntimeError(f"too many clusters are called {name}; see {running()}")


def why_no_pods() -> str:
    """Why no node can run here; empty if nothing is in the way."""
    found = programs()
    if not found.runs_nodes:
        return "pods need kubelet, kube-proxy, containerd and runc: say scripts/setup test" + (
            " (KUBEBUILDER_ASSETS names a control plane alone)" if not found.built_here else ""
        )
    if reason := may_run_nodes():
        return reason
    return "" if containers.store().exists() else "the images of the tests are not made yet: say scripts/setup test"
