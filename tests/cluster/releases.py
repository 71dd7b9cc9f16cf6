"""Helm, as a user calls it, on a cluster that the tests may install things on."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster.kubectl import Kubectl, until
from cluster.places import ROOT
from cluster.world import PATIENCE

CHART = ROOT / "deploy" / "chart" / "oarsman"
PODS = "app.kubernetes.io/name=oarsman"


class Release:
    """A release of the chart with the image of this source."""

    def __init__(self, cluster: Kubectl, name: str = "oarsman", namespace: str = "mpi-operator") -> None:
        self.cluster = cluster
        self.name = name
        self.namespace = namespace

    # -- Helm ------------------------------------------------------------------------------------------------
    def helm(self, verb: str, *words: str, values: Mapping[str, Any] | None = None, check: bool = True) -> str:
        program = runpy.run_path(str(ROOT / "scripts" / "manifests.py"))["helm"]()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
        done = subprocess.run(
            [program, f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={self.namespace}", verb, *words],
            input=json.dumps(values or {}),
            text=True,
            capture_output=True,
            env=environment,
            timeout=400,
            check=False,
        )
        if check and done.returncode:
            pods = self.cluster.kubectl(f"--namespace={self.namespace}", "describe", "pods", check=False).stdout
            raise RuntimeError(f"helm {verb} ended with {done.returncode}: {done.stderr}\n{pods}")
        return done.stdout

    def install(self, values: Mapping[str, Any], *words: str) -> str:
        given = _merged(self._image(), values)
        return self.helm(
            "install",
            self.name,
            str(CHART),
            "--create-namespace",
            "--wait",
            "--timeout=300s",
            "--values=-",
            *words,
            values=given,
        )

    def upgrade(self, values: Mapping[str, Any]) -> str:
        words = ("--reuse-values", "--wait", "--timeout=300s", "--values=-")
        return self.helm("upgrade", self.name, str(CHART), *words, values=values)

    def uninstall(self) -> None:
        """Nothing of it is left: no pods that a controller makes once more, no process, no lease of one that led."""
        self.helm("uninstall", self.name, check=False)
        until(lambda: not self._makers(), lambda: f"these are gone: {self._makers()}")
        uids = [pod["metadata"]["uid"] for pod in self.pods()]
        self.kubectl("delete", "pods", f"--selector={PODS}", "--force", "--grace-period=0", "--wait=false")
        until(lambda: not self.pods(), f"the pods of {self.name} are gone")
        until(lambda: not any(map(_processes, uids)), f"the processes of {self.name} are gone")
        self.kubectl("delete", "lease", "mpi-operator", "--ignore-not-found")

    def _makers(self) -> list[str]:
        kinds = ("deployments", "replicasets")
        found = (self.cluster.get(kind, namespace=self.namespace, labels=PODS)["items"] for kind in kinds)
        return [each["metadata"]["name"] for items in found for each in items]

    def _image(self) -> dict[str, Any]:
        repository, tag = self.cluster.images["operator"].rsplit(":", 1)
        delivery = {"image": self.cluster.images["busy"]}
        return {"image": {"repository": repository, "tag": tag}, "kubectlDelivery": delivery}

    # -- what it made ----------------------------------------------------------------------------------------
    def kubectl(self, *words: str, check: bool = True) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *words, check=check).stdout

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("pods", namespace=self.namespace, labels=PODS)["items"]
        return found

    def leader(self) -> str:
        """The pod that holds the lease; empty if none of those there are does."""
        if not self.cluster.has("lease", "mpi-operator", self.namespace):
            return ""
        spec = self.cluster.get("lease", "mpi-operator", self.namespace)["spec"]
        pod = str(spec.get("holderIdentity") or "").partition("_")[0]
        return pod if pod in [each["metadata"]["name"] for each in self.pods()] else ""

    def until_led(self, *, other_than: str = "", patience: float = PATIENCE) -> str:
        until(lambda: self.leader() not in ("", other_than), "a pod of the operator leads", patience)
        return self.leader()

    def kill(self, pod: str) -> None:
        """kill -9 of the operator's process in it: no word of farewell, and the lease is not given back."""
        uid = self.cluster.get("pod", pod, self.namespace)["metadata"]["uid"]
        operator = next((process for process, line in _processes(uid).items() if b"oarsman" in line), None)
        if operator is None:
            raise ProcessLookupError(f"no operator runs in {pod}")
        os.kill(operator, signal.SIGKILL)

    def until_whole(self) -> None:
        self.kubectl("rollout", "status", f"deployment/{self.name}", "--timeout=300s")

    def log(self) -> str:
        return self.kubectl("logs", f"--selector={PODS}", "--prefix", "--tail=-1", check=False)

    def ask(self, pod: str, port: int, path: str) -> str:
        """What a pod answers, through the API server."""
        place = f"/api/v1/namespaces/{self.namespace}/pods/{pod}:{port}/proxy{path}"
        return self.cluster.kubectl("get", f"--raw={place}").stdout


@contextlib.contextmanager
def released(cluster: Kubectl, values: Mapping[str, Any] | None = None) -> Iterator[Release]:
    release = Release(cluster)
    try:
        release.install(values or {})
        release.until_led()
        yield release
    finally:
        release.uninstall()


def _processes(uid: str) -> dict[int, bytes]:
    """The command lines of what runs in a pod on this machine; of a cluster elsewhere nothing is known."""
    found = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # others end while we look
            if folder.name.isdigit() and f"pod{uid}" in (folder / "cgroup").read_text():
                found[int(folder.name)] = (folder / "cmdline").read_bytes()
    return found


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(one)
    for name, value in other.items():
        inner = result.get(name)
        both = isinstance(inner, dict) and isinstance(value, dict)
        result[name] = _merged(inner, value) if both else value  # type: ignore[arg-type]
    return result
