"""etcd, the API server, the controller manager and the scheduler, in a world of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cluster.audit import Audit
from cluster.build import Programs
from cluster.certificates import Certificates
from cluster.client import Client, Refused
from cluster.network import Addresses
from cluster.places import HERE
from cluster.world import PATIENCE, Program, World

# What 1.20 needs to be told, and newer ones no longer know.
OF_1_20 = "--feature-gates=TTLAfterFinished=true"
NO_PLAIN_PORT = "--port=0"
# What no test asks of 1.20: a quarter of what the API server takes to start and to take up a new kind of object.
UNUSED = (
    "admissionregistration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiregistration.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "coordination.k8s.io/v1beta1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1beta1",
    "scheduling.k8s.io/v1beta1",
    "storage.k8s.io/v1beta1",
)


class ControlPlane:
    """With addresses it has a network of its own that nodes join; without, it listens on the machine's loopback."""

    def __init__(
        self,
        world: World,
        programs: Programs,
        addresses: Addresses | None,
        nodes: list[str],
        admission: Sequence[str],
        *,
        audited: bool = False,
        features: Sequence[str] = (),
    ) -> None:
        self.world = world
        self._programs = programs
        self._addresses = addresses
        self._admission = admission
        self.audit = Audit(world.work)
        self._audited = audited
        self._gates = [f"--feature-gates={','.join(f'{name}=true' for name in features)}"] if features else []
        self.address = addresses.control_plane if addresses else "127.0.0.1"
        self._ports = dict(
            zip(("etcd", "peer", "secure"), (2379, 2380, 6443) if addresses else _free_ports(3), strict=True)
        )
        self.server = f"https://{self.address}:{self._ports['secure']}"
        self.certificates = Certificates(world.work / "certificates")
        services = addresses.services if addresses else "10.96.0.0/20"
        first_service = addresses.kubernetes_service if addresses else "10.96.0.1"
        self.certificates.make(
            [
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
                "localhost",
            ],
            [self.address, "127.0.0.1", first_service],
            nodes,
        )
        self.kubeconfig = self.certificates.kubeconfig("admin", self.server, world.work / "kubeconfig")
        self.client = Client(self.kubeconfig)
        self.etcd = Etcd(world, "etcd", self._etcd())
        self.apiserver = ApiServer(world, "kube-apiserver", self._apiserver(services))
        self.apiserver.client = self.client
        self.others = [
            Program(world, name, command)
            for name, command in (
                ("kube-controller-manager", self._controller_manager()),
                ("kube-scheduler", self._scheduler()),
            )
            if programs.find(name)
        ]
        if addresses:
            dns = self.certificates.kubeconfig("dns", self.server, world.work / "dns.kubeconfig")
            command = [sys.executable, "-m", "cluster.dns", str(dns), self.address]
            self.others.append(Program(world, "dns", command, {"PYTHONPATH": str(HERE.parent)}))

    def start(self) -> None:
        self.etcd.start()
        self.apiserver.start()  # waits for etcd itself
        for program in self.others:
            program.start()

    def wait(self) -> None:
        self.apiserver.wait()

    @property
    def programs(self) -> list[Program]:
        return [self.etcd, self.apiserver, *self.others]

    def user(self, name: str) -> Path:
        return self.certificates.kubeconfig(name, self.server, self.world.work / f"{name.replace(':', '-')}.kubeconfig")

    def _etcd(self) -> list[str | Path]:
        here, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peer"))
        return [
            self._programs["etcd"],
            "--name=test",
            f"--data-dir={self.world.work / 'etcd'}",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",  # 100,000 pods and what they were pass the usual 2 GiB
            f"--listen-client-urls={here}",
            f"--advertise-client-urls={here}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--log-level=warn",
        ]

    def _apiserver(self, services: str) -> list[str | Path]:
        keys = self.certificates.folder
        reconciler = [] if self._addresses else ["--endpoint-reconciler-type=none"]  # a loopback address is no endpoint
        return [
            self._programs["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            f"--bind-address={'0.0.0.0' if self._addresses else '127.0.0.1'}",
            f"--advertise-address={self.address}",
            f"--secure-port={self._ports['secure']}",
            *reconciler,
            f"--service-cluster-ip-range={services}",
            f"--cert-dir={keys}",
            f"--tls-cert-file={keys / 'apiserver.crt'}",
            f"--tls-private-key-file={keys / 'apiserver.key'}",
            f"--client-ca-file={keys / 'ca.crt'}",
            f"--service-account-key-file={keys / 'service-accounts.key'}",
            f"--service-account-signing-key-file={keys / 'service-accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={keys / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",  # else logs and exec try to resolve the node's name
            "--enable-aggregator-routing=true",  # webhooks are called at their pods: no kube-proxy runs here
            # The controller manager makes service accounts; where there is none, no pod could ever be created.
            *([] if self._programs.find("kube-controller-manager") else ["--disable-admission-plugins=ServiceAccount"]),
            *([f"--enable-admission-plugins={','.join(self._admission)}"] if self._admission else []),
            *(self.audit.flags() if self._audited else []),
            *([*self._gates, "--runtime-config=api/alpha=true"] if self._gates else []),
            "--enable-priority-and-fairness=false",  # watches its queues all the time: half of what an idle server does
            *self._old(OF_1_20, f"--runtime-config={','.join(f'{group}=false' for group in UNUSED)}"),
        ]

    def _old(self, *flags: str) -> list[str]:
        return list(flags) if self._programs.version == (1, 20) else []

    def _controller_manager(self) -> list[str | Path]:
        keys = self.certificates.folder
        kubeconfig = self.user("system:kube-controller-manager")
        ports = [] if self._addresses else [f"--secure-port={_free_ports(1)[0]}", "--bind-address=127.0.0.1"]
        return [
            self._programs.find("kube-controller-manager") or "",
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={keys / 'service-accounts.key'}",
            f"--root-ca-file={keys / 'ca.crt'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            *self._old(NO_PLAIN_PORT, OF_1_20),
            f"--cert-dir={keys}",
            *ports,
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=20s",
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            f"--cluster-signing-cert-file={keys / 'ca.crt'}",
            f"--cluster-signing-key-file={keys / 'ca.key'}",
        ]

    def _scheduler(self) -> list[str | Path]:
        ports = [] if self._addresses else [f"--secure-port={_free_ports(1)[0]}", "--bind-address=127.0.0.1"]
        return [
            self._programs.find("kube-scheduler") or "",
            f"--kubeconfig={self.user('system:kube-scheduler')}",
            "--leader-elect=false",
            *self._gates,
            *self._old(NO_PLAIN_PORT),
            f"--cert-dir={self.certificates.folder}",
            *ports,
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]


class Etcd(Program):
    """Its data outlive it; the API server waits for it to come back."""


class ApiServer(Program):
    client: Client

    def wait(self) -> None:
        """Until it is ready to be asked for anything."""
        self._until(lambda: self.client.get("/readyz", timeout=5) == "ok")

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.check()
            try:
                if condition():
                    return
                trouble: object = "not ready"
            except (OSError, Refused) as refused:
                trouble = refused
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {trouble}; see {self.log}")
            time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def may_run_nodes() -> str:
    """Why this machine cannot run nodes; empty if it can."""
    if os.geteuid() != 0:
        return "nodes need root: they mount file systems and make control groups and network namespaces"
    tried = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True, check=False)
    return f"nodes need namespaces of their own: {tried.stderr.strip()}" if tried.returncode else ""
