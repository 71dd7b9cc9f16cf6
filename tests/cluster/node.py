"""A node that runs pods: containerd, the kubelet and kube-proxy, in a world of their own."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import cgroups, containers, images
from cluster.build import Programs
from cluster.containers import SOCKET, Containerd
from cluster.control_plane import ControlPlane
from cluster.network import Addresses, connect
from cluster.world import Program, World

# The kubelet sets these for the whole machine. It shall find them set already, in files that are only the node's.
KERNEL = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


@dataclass(frozen=True)
class Place:
    """Which of the cluster's nodes one is."""

    number: int
    of: int
    addresses: Addresses
    group: str  # its control groups lie in this one


class Node:
    def __init__(self, world: World, place: Place, control_plane: ControlPlane, programs: Programs) -> None:
        self.name = world.name
        self.world = world
        self.address = place.addresses.node(place.number)
        self._place = place
        self._version = programs.version
        self._control_plane = control_plane
        self._group = f"{place.group}/{self.name}"
        self._loaded: dict[str, images.Image] = {}
        work = world.work
        self._root = work / "containerd"
        self.containerd = Containerd(world, programs, self._root, pods=True)
        kubeconfig = control_plane.user(f"system:node:{self.name}")
        self.kubelet = Program(
            world,
            "kubelet",
            [
                programs["kubelet"],
                f"--config={work / 'kubelet.json'}",
                f"--kubeconfig={kubeconfig}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.address}",
                *(["--container-runtime=remote"] if programs.version < (1, 27) else []),
                f"--container-runtime-endpoint=unix://{SOCKET}",
                "--root-dir=/var/lib/kubelet",
                "--cert-dir=/var/lib/kubelet/pki",
            ],
            {"AWS_EC2_METADATA_DISABLED": "true"},
        )  # it looks for that cloud, too, for four seconds
        self.kube_proxy = Program(world, "kube-proxy", [programs["kube-proxy"], f"--config={work / 'kube-proxy.json'}"])

    @property
    def programs(self) -> list[Program]:
        return [self.containerd, self.kubelet, self.kube_proxy]

    def start(self) -> None:
        """Switches the machine on; also after it was killed."""
        self._prepare()
        self.containerd.wait()
        self.kubelet.start()  # before there is an API server: it first looks for a Docker, for five seconds
        self.kube_proxy.start()
        for image in self._loaded.values():
            self.containerd.load(image)

    def _prepare(self) -> None:
        """All that can be done before there is an API server."""
        self.world.start()
        work = self.world.work
        cgroups.make(self._group)
        connect(self._control_plane.world, self.world, self._place.number, self._place.addresses, self._place.of)
        shutil.rmtree(self._root, ignore_errors=True)
        containers.link(self._root)
        for folder in ("lib", "log", "cni", "kernel"):
            (work / folder).mkdir(exist_ok=True)
        (work / "cni" / "pods.conflist").write_text(json.dumps(self._cni()))
        (work / "kubelet.json").write_text(json.dumps(self._kubelet()))
        (work / "kube-proxy.json").write_text(json.dumps(self._kube_proxy()))
        self.world.sh(f"""
            mount -t tmpfs tmpfs /run
            mount --bind {work}/lib /var/lib
            mount --bind {work}/log /var/log
            {self._kernel(work / "kernel")}
        """)
        self.containerd.start()

    def kill(self) -> None:
        """As if the machine had lost its power: its pods are gone, the API server learns of it by silence."""
        self.world.kill()
        for program in self.programs:
            program.forget()

    def load(self, image: images.Image) -> None:
        """Brings an image onto the node; it stays there when the node loses its power."""
        self._loaded[image.name.partition(":")[0]] = image
        if self.world.pid:
            self.containerd.load(image)

    def _kernel(self, folder: Path) -> str:
        lines = []
        for name, value in KERNEL.items():
            file = folder / name.replace("/", "-")
            file.write_text(f"{value}\n")
            lines.append(f"test ! -e /proc/sys/{name} || mount --bind {file} /proc/sys/{name}")
        return "\n".join(lines)

    def _cni(self) -> dict[str, Any]:
        # Every pod hangs on a cable of its own that the node routes: all traffic passes kube-proxy's rules, without
        # which a service would not work between two pods of one node.
        addresses = {
            "type": "host-local",
            "subnet": self._place.addresses.pods(self._place.number),
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}, ports]}

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failSwapOn": False,
            # Only this machine reaches it.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDomain": "cluster.local",
            "clusterDNS": [self._place.addresses.control_plane],
            "resolvConf": "",
            # A fairly full disk is no reason to throw out a test's pods or the images.
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "maxPods": 200,
            "serializeImagePulls": False,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "eventRecordQPS": 0,
            "registryPullQPS": 0,
            "nodeStatusUpdateFrequency": "4s",
            "syncFrequency": "10s",
            # It refuses machines with the older kind of control groups otherwise.
            **({"failCgroupV1": False} if self._version >= (1, 31) else {}),
        }

    def _kube_proxy(self) -> dict[str, Any]:
        kubeconfig = self._control_plane.certificates.kubeconfig(
            "system:kube-proxy", self._control_plane.server, self.world.work / "kube-proxy.kubeconfig"
        )
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "clusterCIDR": self._place.addresses.every_pod,
            "hostnameOverride": self.name,
            "bindAddress": self.address,
            "detectLocalMode": "ClusterCIDR",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        }
