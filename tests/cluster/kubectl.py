"""What can be done with a kubeconfig, whoever runs the cluster."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
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
        deadline = time.monotonic() + 60
        while (tried := self.kubectl(*pod, check=False)).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(tried.stderr)
            time.sleep(0.05)
