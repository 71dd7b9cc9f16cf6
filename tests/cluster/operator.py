"""The operator, as users get it: a Deployment that Helm makes from the chart, with the image of this source."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import subprocess
from collections.abc import Iterator

from cluster.kubectl import Kubectl
from cluster.places import ROOT

NAMESPACE = "mpi-operator"
BARRIER_SECONDS = 90  # below the default, as a test that waits in vain waits this long; on a busy machine pods need 50

_CHART = ROOT / "deploy" / "chart" / "oarsman"


class Operator:
    def __init__(self, cluster: Kubectl) -> None:
        self._cluster = cluster

    def log(self, lines: int = -1) -> str:
        """Of all its pods, the one that leads among them."""
        selector = "app.kubernetes.io/name=oarsman"
        return self._cluster.kubectl(
            f"--namespace={NAMESPACE}", "logs", f"--selector={selector}", "--prefix", f"--tail={lines}", check=False
        ).stdout


@contextlib.contextmanager
def installed(cluster: Kubectl) -> Iterator[Operator]:
    repository, tag = cluster.images["operator"].rsplit(":", 1)
    values = {
        "image": {"repository": repository, "tag": tag},
        "kubectlDelivery": {"image": cluster.images["busy"]},
        "gangScheduling": "none",  # unless a job names a scheduler itself, which the chart then allows
        "extraArgs": [f"--start-barrier={BARRIER_SECONDS}s"],
    }
    # --install: on a cluster that stays, an earlier run may have been killed before it took the release away.
    _helm(
        cluster,
        "upgrade",
        "oarsman",
        str(_CHART),
        "--install",
        "--create-namespace",
        "--wait",
        "--timeout=300s",
        "--values=-",
        stdin=json.dumps(values),
    )
    try:
        yield Operator(cluster)
    finally:
        _helm(cluster, "uninstall", "oarsman")


def _helm(cluster: Kubectl, *words: str, stdin: str = "") -> None:
    program = runpy.run_path(str(ROOT / "scripts" / "manifests.py"))["helm"]()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
    done = subprocess.run(
        [program, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={NAMESPACE}", *words],
        input=stdin,
        text=True,
        capture_output=True,
        env=environment,
        timeout=400,
        check=False,
    )
    if done.returncode:
        pods = cluster.kubectl(f"--namespace={NAMESPACE}", "describe", "pods", check=False).stdout
        raise RuntimeError(f"helm {words[0]} ended with {done.returncode}: {done.stderr}\n{pods}")
