"""What can be done with a kubeconfig, whoever runs the cluster."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


class Kubectl:
    kubeconfig: Path
    runs_pods: bool
    images: Mapping[str, str]
    _kubectl_program: Path

    def kubectl(
        self, *words: str, stdin: str | None = None, check: bool = True, timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self._kubectl_program), f"--kubeconfig={self.kubeconfig}", *words], text=True, capture_output=True,
            input=stdin or "", timeout=timeout, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    def apply(self, *objects: Mapping[str, Any], namespace: str | None = None) -> None:
        where = [f"--namespace={namespace}"] if namespace else []
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl(*where, "apply", "-f", "-", stdin=json.dumps(listed))

    def get(self, kind: str, name: str = "", namespace: str | None = None) -> dict[str, Any]:
        """The object, or without a name the list of them."""
        where = [f"--namespace={namespace}"] if namespace else []
        found: dict[str, Any] = json.loads(
            self.kubectl(*where, "get", kind, *([name] if name else []), "-o", "json").stdout
        )
        return found

    @contextlib.contextmanager
    def fresh_namespace(self) -> Iterator[str]:
        """A namespace in which pods can be created at once; at the end it goes, and its pods without being asked."""
        name = f"test-{secrets.token_hex(4)}"
        self.kubectl("create", "namespace", name)
        try:
            self._wait_until_pods_are_accepted(name)
            yield name
        finally:
            where = f"--namespace={name}"
            self.kubectl(
                where, "delete", "jobs,pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False
            )
            self.kubectl("delete", "namespace", name, "--wait=false")

    def _wait_until_pods_are_accepted(self, namespace: str) -> None:
        """The service account that every pod needs is made by a controller, some time after the namespace."""
        pod = ("run", "probe", f"--namespace={namespace}", "--image=none", "--restart=Never", "--dry-run=server")
        until(lambda: not self.kubectl(*pod, check=False).returncode, f"pods are accepted in {namespace}")

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


def until(condition: Callable[[], bool], what: str | Callable[[], str], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.1)
