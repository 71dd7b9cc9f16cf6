"""The programs of a Kubernetes: those in KUBEBUILDER_ASSETS, or of the version that KUBERNETES names, built once.

And kwok, which plays nodes and kubelets."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from cluster.places import HERE, cache, locked, say

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet", "kube-proxy")
OLDEST = "1.20"  # out of Debian 12's source package, for machines that reach no Go modules
# The others come out of Go modules, whose newest of each minor version these are.
RELEASES = {
    OLDEST: "1.20.2",
    "1.29": "1.29.6",
    "1.30": "1.30.14",
    "1.31": "1.31.14",
    "1.32": "1.32.13",
    "1.33": "1.33.13",
    "1.34": "1.34.4",
    "1.35": "1.35.4",
    "1.36": "1.36.3",
}
NEWEST = list(RELEASES)[-1]
KWOK, KWOK_VERSION = "kwok", "0.8.0"


class Programs:
    """Finds a program by its name; those that Kubernetes does not contain come from the machine."""

    def __init__(self, folder: Path, *, built_here: bool) -> None:
        self._folder = folder
        self.name = folder.name
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

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        """(1, 36): which flags there are depends on it."""
        said = subprocess.run([self["kube-apiserver"], "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"v(\d+)\.(\d+)", said)
        if not found:
            raise RuntimeError(f"kube-apiserver --version said {said!r}")
        return int(found[1]), int(found[2])


def programs() -> Programs:
    """What is there already; nothing is built here, because a test must not wait for that."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return Programs(Path(assets), built_here=False)
    # Where nobody says which, and the newest could not be built, the oldest was.
    minor = next(filter(is_built, _wanted()), _wanted()[0])
    return Programs(_folder(minor), built_here=True)


def build(what: str = "") -> None:
    """kwok, a Kubernetes, or without a name that of KUBERNETES or the newest. CalledProcessError: it cannot be had."""
    what = what or _wanted()[0]
    into = _folder(what)
    with locked(into.with_name(f"{into.name}.lock")):
        if is_built(what):
            return
        say(f"building {' '.join(_release(what))} from {'Debian' if what == OLDEST else 'Go modules'}, once")
        subprocess.run([*_recipe(what), into], stdin=subprocess.DEVNULL, check=True)


def is_built(what: str) -> bool:
    return all((_folder(what) / name).exists() for name in ([KWOK] if what == KWOK else (*CONTROL_PLANE, *NODE)))


def kwok() -> Path | None:
    """Ours, or the machine's own."""
    found = shutil.which(KWOK)
    return _folder(KWOK) / KWOK if is_built(KWOK) else Path(found) if found else None


def _wanted() -> list[str]:
    named = os.environ.get("KUBERNETES", "")
    if named and named not in RELEASES:
        raise RuntimeError(f"KUBERNETES={named}: say one of {', '.join(RELEASES)}")
    return [named] if named else [NEWEST, OLDEST]


def _release(what: str) -> tuple[str, str]:
    return (KWOK, KWOK_VERSION) if what == KWOK else ("kubernetes", RELEASES[what])


def _recipe(what: str) -> list[str | Path]:
    name, version = _release(what)
    return [HERE / "build-from-debian", version] if what == OLDEST else [HERE / "build-from-modules", name, version]


def _folder(what: str) -> Path:
    script = Path(_recipe(what)[0])
    return cache() / f"{'-'.join(_release(what))}-{hashlib.sha256(script.read_bytes()).hexdigest()[:8]}"
