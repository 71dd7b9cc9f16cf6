"""What can be done with a kubeconfig, whoever runs the cluster."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster.world import GOGC, PATIENCE


class Kubectl:
    kubeconfig: Path
    runs_pods: bool
    images: Mapping[str, str]
    _kubectl_program: Path

    def kubectl(
        self, *words: str, stdin: str | None = None, check: bool = True, timeout: float = 2 * PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self._kubectl_program), f"--kubeconfig={self.kubeconfig}", *words],
            text=True,
            capture_output=True,
            input=stdin or "",
            env={**os.environ, "GOGC": GOGC},
            timeout=timeout,
            check=False,
        )
        if "wait" in words and ".status.conditions accessor error" in done.stderr:
            time.sleep(0.1)  # old clients stumble over what is so new that it has no status yet
            return self.kubectl(*words, stdin=stdin, check=check, timeout=timeout)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        """(1, 36) of the API server. Clusters in the cloud say 27+."""
        said = json.loads(self.kubectl("get", "--raw=/version").stdout)
        return int(said["major"]), int(said["minor"].rstrip("+"))

    def apply(self, *objects: Mapping[str, Any], namespace: str | None = None) -> None:
        where = [f"--namespace={namespace}"] if namespace else []
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl(*where, "apply", "-f", "-", stdin=json.dumps(listed))

    def apply_file(self, path: Path, *words: str) -> list[str]:
        """As the guide says; what happened to each object."""
        return self.kubectl("apply", *self.lenient, *words, "-f", str(path)).stdout.splitlines()

    @property
    def lenient(self) -> list[str]:
        """What the guide says to add where the server does not know all words of the definition."""
        return ["--validate=false"] if self.version < (1, 30) else []

    def get(self, kind: str, name: str = "", namespace: str | None = None, labels: str = "") -> dict[str, Any]:
        """The object, or without a name the list of them."""
        where = [f"--namespace={namespace}"] if namespace else []
        chosen = [name] if name else [f"--selector={labels}"] if labels else []
        found: dict[str, Any] = json.loads(self.kubectl(*where, "get", kind, *chosen, "-o", "json").stdout)
        return found

    def has(self, kind: str, name: str, namespace: str | None = None) -> bool:
        where = [f"--namespace={namespace}"] if namespace else []
        return bool(self.kubectl(*where, "get", kind, name, "--ignore-not-found", "-o", "name").stdout)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is made of it there, or answered."""
        said = self.kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(body)).stdout
        found: dict[str, Any] = json.loads(said)
        return found

    def delete_all(self, kind: str, namespace: str) -> None:
        """Asks for it, and waits for nothing."""
        self.kubectl(f"--namespace={namespace}", "delete", kind, "--all", "--wait=false")

    @contextlib.contextmanager
    def fresh_namespace(self) -> Iterator[str]:
        """A namespace in which pods can be created at once; at the end it goes, and its pods without being asked."""
        name = f"test-{secrets.token_hex(4)}"
        self.create_namespace(name)
        try:
            # The service account that every pod needs is made by a controller, some time after the namespace.
            until(lambda: self.accepts_pods(name), f"pods are accepted in {name}")
            yield name
        finally:
            self.delete_namespace(name)

    def create_namespace(self, name: str) -> None:
        self.kubectl("create", "namespace", name)

    def accepts_pods(self, namespace: str) -> bool:
        pod = ("run", "probe", f"--namespace={namespace}", "--image=none", "--restart=Never", "--dry-run=server")
        return not self.kubectl(*pod, check=False).returncode

    def delete_namespace(self, name: str) -> None:
        pods = ("delete", "jobs,pods", "--all", "--force", "--grace-period=0", "--wait=false")
        self.kubectl(f"--namespace={name}", *pods, check=False)
        self.kubectl("delete", "namespace", name, "--wait=false")

    def wait_for_pods(self, namespace: str, *names: str, phase: str = "") -> None:
        """Until they are ready, or in the phase."""
        for name in names:
            until(lambda name=name: self._is(namespace, name, phase), lambda name=name: self.story(namespace, name))  # type: ignore[misc]

    def _is(self, namespace: str, name: str, phase: str) -> bool:
        status = self.get("pod", name, namespace)["status"]
        if phase:
            return bool(status.get("phase") == phase)
        return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))

    def story(self, namespace: str, pod: str) -> str:
        """What is known of a pod, for a test that waited in vain."""
        where = f"--namespace={namespace}"
        said = self.kubectl(where, "describe", "pod", pod, check=False).stdout
        return said + self.kubectl(where, "logs", pod, "--all-containers", "--tail=30", check=False).stdout

    def run_in(self, namespace: str, pod: str, *command: str, check: bool = True) -> str:
        return self.kubectl(f"--namespace={namespace}", "exec", pod, "--", *command, check=check).stdout


def until(condition: Callable[[], bool], what: str | Callable[[], str], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.2)
