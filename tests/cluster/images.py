"""The images that the tests run, and how they come into a node without a registry.

All images lie unpacked in one store in the cache. A node's containerd starts with links into it: no import, no copy.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.build import programs
from cluster.layers import Layer
from cluster.places import HERE, ROOT, cache, locked

REGISTRY = "oarsman.test"


@dataclass(frozen=True)
class Image:
    name: str
    top: Layer | None
    config: dict[str, Any] = field(default_factory=dict)

    def layers(self) -> tuple[Layer, ...]:
        return self.top.stack if self.top else ()


def pinned(package: str) -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line for line in lines if line.lower().startswith(f"{package}=="))


def wheels(python: str, into: Path, *requirements: str) -> Path:
    """Packages for another Python, from wheels alone."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-qq",
            "--no-input",
            "--disable-pip-version-check",
            "--no-compile",
            "--root-user-action=ignore",
            "--target",
            str(into),
            "--python-version",
            python,
            "--only-binary=:all:",
            "-c",
            str(ROOT / "constraints.txt"),
            *requirements,
        ],
        stdin=subprocess.DEVNULL,
        check=True,
        umask=0o022,
    )
    return into


DEBIAN12 = Layer("debian12", suite="bookworm", packages=("python3",))
DEBIAN13 = Layer("debian13", suite="trixie", packages=("python3",))


def _installed(name: str, debian: Layer, python: str, *packages: str) -> Layer:
    """ssh, an MPI, mpi4py and what environments are built with, as their packages leave them."""
    place = f"/usr/local/lib/python{python}/dist-packages"
    mpi4py = cache() / "wheels" / f"{pinned('mpi4py')}-{python}"
    if not mpi4py.exists():
        part = mpi4py.with_name(f"{mpi4py.name}.{os.getpid()}")
        wheels(python, part, "--no-deps", pinned("mpi4py")).rename(mpi4py)
    packages = ("openssh-server", "openssh-client", "python3-venv", *packages)
    return Layer(name, debian, packages=packages, files=((place, mpi4py),), version=mpi4py.name)


def _mpi(name: str, debian: Layer, python: str, *packages: str, links: tuple[tuple[str, str], ...] = ()) -> Image:
    """With what images for MPI jobs usually set for ssh."""
    installed = _installed(f"{name}-plain", debian, python, *packages)
    files = tuple((f"/etc/ssh/{program}_config.d/mpi.conf", HERE / f"{program}.conf") for program in ("ssh", "sshd"))
    version = hashlib.sha256(b"".join(path.read_bytes() for _, path in files)).hexdigest()[:8]
    folders = ("/run/sshd",)  # where sshd, started by root, confines its half that has no privileges
    return Image(
        f"{REGISTRY}/{name}:1", Layer(name, installed, files=files, version=version, folders=folders, links=links)
    )


def _plain(name: str, debian: Layer, python: str, *packages: str) -> Image:
    return Image(f"{REGISTRY}/{name}:1", _installed(name, debian, python, *packages))


def _busy() -> Image:
    found = programs()
    layer = Layer("busy", DEBIAN12, files=(("/usr/local/bin/kubectl", found["kubectl"]),), version=found.name)
    return Image(f"{REGISTRY}/busy:1", layer)


def _pause() -> Image:
    source = HERE / "pause.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    program = cache() / "pause" / digest
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        part = program.with_name(f"{digest}.{os.getpid()}")
        subprocess.run(["cc", "-Os", "-static", "-s", "-o", str(part), str(source)], check=True)
        part.rename(program)
    return Image(PAUSE, Layer("pause", files=(("/pause", program),), version=digest), {"Entrypoint": ["/pause"]})


PAUSE = f"{REGISTRY}/pause:1"
# Debian's MPICH has a name of its own; mpi4py's wheel looks for the name that all of MPICH's family share.
LIBMPI = (("/usr/lib/x86_64-linux-gnu/libmpi.so.12", "libmpich.so.12"),)
RECIPES: dict[str, Callable[[], Image]] = {
    "pause": _pause,
    "busy": _busy,
    "openmpi4": lambda: _mpi("openmpi4", DEBIAN12, "3.11", "openmpi-bin"),
    "openmpi4-plain": lambda: _plain("openmpi4-plain", DEBIAN12, "3.11", "openmpi-bin"),
    "openmpi5": lambda: _mpi("openmpi5", DEBIAN13, "3.13", "openmpi-bin"),
    "mpich": lambda: _mpi(
        "mpich", DEBIAN13, "3.13", "mpich", links=LIBMPI
    ),  # Debian 12's hangs in MPI_Finalize at times
}

NAMES = {name: f"{REGISTRY}/{name}:1" for name in RECIPES if name != "pause"}


def archive(image: Image, into: Path, *, without: frozenset[str] = frozenset()) -> Path:
    """An OCI archive; layers whose digests are named are left out, because the receiver has them."""
    digests = [layer.digest() for layer in image.layers()]
    defaults = {"Cmd": ["/bin/bash"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {**defaults, **image.config},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }
    ).encode()
    layer_type = "application/vnd.oci.image.layer.v1.tar"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [
                {"mediaType": layer_type, "digest": f"sha256:{digest}", "size": layer.tar.stat().st_size}
                for layer, digest in zip(image.layers(), digests, strict=True)
            ],
        }
    ).encode()
    entry = _descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    index = {"schemaVersion": 2, "manifests": [{**entry, "annotations": {"io.containerd.image.name": image.name}}]}
    with tarfile.open(into, "w") as out:
        _add(out, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(out, "index.json", json.dumps(index).encode())
        for blob in (manifest, config):
            _add(out, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        for layer, digest in zip(image.layers(), digests, strict=True):
            if digest not in without:
                out.add(layer.tar, f"blobs/sha256/{digest}")
    return into


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def _add(out: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    out.addfile(info, io.BytesIO(content))


def source_hash() -> str:
    digest = hashlib.sha256((ROOT / "constraints.txt").read_bytes() + (ROOT / "pyproject.toml").read_bytes())
    for path in sorted((ROOT / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def operator() -> Image:
    """The project as it is now: its dependencies, kept until they change, and its source as a small layer on top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["kube"], *extras["console"]]
    recipe = json.dumps([wanted, (ROOT / "constraints.txt").read_text()])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    folder = cache() / "wheels" / f"operator-{digest}"
    with locked(folder.with_name(f"{folder.name}.lock")):  # several clusters may start at once
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.{os.getpid()}")
            wheels("3.11", part, *wanted).rename(folder)
    dependencies = Layer("operator-dependencies", DEBIAN12, files=(("/opt/oarsman/lib", folder),), version=digest)
    source = Layer("operator", dependencies, files=(("/opt/oarsman/src", ROOT / "src"),), version=source_hash())
    source.make()
    _prune(source)
    config = {
        "Entrypoint": ["python3", "-m", "oarsman.cli"],
        "User": "65532:65532",
        "WorkingDir": "/",
        "Env": [
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH=/opt/oarsman/src:/opt/oarsman/lib",
            "PYTHONDONTWRITEBYTECODE=1",
            "PYTHONUNBUFFERED=1",
        ],
    }
    return Image(f"{REGISTRY}/operator:{source.version}", source, config)


def _prune(newest: Layer, keep: int = 5) -> None:
    """Every change of the source leaves a layer behind; the last few may still be wanted by a running cluster."""
    with locked(newest.tar.parent / "pruning.lock"):  # several clusters may start at once
        tars = sorted(newest.tar.parent.glob("operator-????????????.tar"), key=lambda path: path.stat().st_mtime)
        for old in tars[:-keep]:
            for path in (old, old.with_suffix(".sha256"), old.with_suffix(".lock")):
                path.unlink(missing_ok=True)
