"""The command with --on kube, as somebody has it who was given a kubeconfig."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from cluster.kubectl import Kubectl
from cluster.world import PATIENCE


class Face:
    """`oarsman --on kube` in one namespace."""

    def __init__(self, cluster: Kubectl, namespace: str, home: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.home = home

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "oarsman.cli", *words]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OARSMAN_", "KUBE"))}
        return {**kept, "OARSMAN_ON": "kube", "KUBECONFIG": str(self.home / "kubeconfig"), "HOME": str(self.home)}

    def says(self, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.words(*words),
            env=self.environment,
            cwd=self.home,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert code is None or done.returncode == code, (
            f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done

    def starts(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*words),
            env=self.environment,
            cwd=self.home,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def pods(self) -> list[str]:
        return [f"pod/{pod['metadata']['name']}" for pod in self.cluster.get("pods", namespace=self.namespace)["items"]]


def a_face(cluster: Kubectl, namespace: str, folder: Path) -> Face:
    content = json.loads(cluster.kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    (folder / "kubeconfig").write_text(json.dumps(content))
    return Face(cluster, namespace, folder)


class ended:
    """Whatever happens, the process is not left behind; one that hangs is killed after a while."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._late = threading.Timer(2 * PATIENCE, process.kill)

    def __enter__(self) -> None:
        self._late.start()

    def __exit__(self, *_: object) -> None:
        self._late.cancel()
        self._process.kill()
