"""The programs of a Kubernetes: those in KUBEBUILDER_ASSETS, or built out of Debian's source package."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from cluster.places import HERE, cache, locked, say

VERSION = "1.20.2"  # Debian 12's
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet", "kube-proxy")


class Programs:
    """Finds a program by its name; those that Kubernetes does not contain come from the machine."""

    def __init__(self, folder: Path, *, built_here: bool) -> None:
        self._folder = folder
        self.built_here = built_here

    def find(self, name: str) -> Path | None:
        beside = self._folder / name
        if beside.exists():
            return beside
        if name.startswith("kube") and name != "kubectl":
            return None  # another version's would not fit
        found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        return Path(found) if found else None

    def __getitem__(self, name: str) -> Path:
        found = self.find(name)
        if not found:
            raise RuntimeError(
                f"{name} is missing: say scripts/setup test, or name a folder that has it in KUBEBUILDER_ASSETS"
            )
        return found

    @property
    def runs_nodes(self) -> bool:
        return all(self.find(name) for name in (*NODE, "containerd", "runc"))


def programs() -> Programs:
    """What is there already; nothing is built here, because a test must not wait for that."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return Programs(Path(assets), built_here=False)
    return Programs(_built(), built_here=True)


def build() -> None:
    into = _built()
    with locked(into.with_name(f"{into.name}.lock")):
        if all((into / name).exists() for name in (*CONTROL_PLANE, *NODE)):
            return
        say(f"building Kubernetes {VERSION} from Debian's source, once")
        subprocess.run([str(HERE / "build-kubernetes"), str(into)], stdin=subprocess.DEVNULL, check=True)


def _built() -> Path:
    recipe = hashlib.sha256((HERE / "build-kubernetes").read_bytes()).hexdigest()[:8]
    return cache() / f"kubernetes-{VERSION}-{recipe}"
