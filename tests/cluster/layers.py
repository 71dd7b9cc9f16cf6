"""File systems of images, in layers: Debian out of debootstrap, and what is installed on top of it.

A layer is made once and kept as a tar in the cache under a hash of its recipe. Only the lowest layers are also kept as
folders, because others are made on top of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.places import cache, locked, say

# Documents and translations would be half of an image.
SLIM = """\
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/lintian/*
"""
CLEAN_BASE = "rm -rf usr/share/doc/* usr/share/man/* usr/share/locale/* usr/share/info/* var/log/*.log var/log/apt"
CLEAN = "apt-get clean; rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt /var/cache/ldconfig/aux-cache"
SKIPPED = ("var/cache/apt/archives", "var/lib/apt/lists", "var/cache/apt/pkgcache.bin", "var/cache/apt/srcpkgcache.bin")


@dataclass(frozen=True)
class Layer:
    """What is put on top of another layer; the words are the recipe, and their hash is the name in the cache."""

    name: str
    below: Layer | None = None
    suite: str = ""  # a whole Debian of this name
    packages: tuple[str, ...] = ()
    files: tuple[tuple[str, Path], ...] = ()  # (place in the image, file or folder here)
    version: str = ""  # of what lies in files
    folders: tuple[str, ...] = ()  # empty ones
    links: tuple[tuple[str, str], ...] = ()  # (place in the image, what it leads to)

    @property
    def key(self) -> str:
        words = (
            self.below.key if self.below else "",
            self.suite,
            *self.packages,
            *(place for place, _ in self.files),
            self.version,
            *self.folders,
            *self.links,
            SLIM,
            CLEAN_BASE,
            CLEAN,
        )
        return f"{self.name}-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"

    @property
    def tar(self) -> Path:
        return cache() / "layers" / f"{self.key}.tar"

    @property
    def folder(self) -> Path:
        return cache() / "layers" / self.key

    @property
    def stack(self) -> tuple[Layer, ...]:
        """From the lowest to this one."""
        return (*(self.below.stack if self.below else ()), self)

    def digest(self) -> str:
        return self.tar.with_suffix(".sha256").read_text()

    def make(self) -> None:
        if self.below:
            self.below.make()
        with locked(self.tar.with_suffix(".lock")):
            if not self.tar.with_suffix(".sha256").exists():
                say(f"layer {self.key}")
                mask = os.umask(0o022)  # every user of an image may read it, whatever the maker's habits
                try:
                    (self._make_debian if self.suite else self._make_on_top)()
                finally:
                    os.umask(mask)

    def _make_debian(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        part = self.folder.with_suffix(".making")
        shutil.rmtree(part, ignore_errors=True)
        include = [f"--include={','.join(self.packages)}"] if self.packages else []
        _run(["debootstrap", "--variant=minbase", *include, self.suite, str(part), *_mirror()])
        _run(["sh", "-euc", CLEAN_BASE], cwd=part)
        (part / "etc/dpkg/dpkg.cfg.d/slim").write_text(SLIM)
        (part / "etc/resolv.conf").write_text("")  # the mount point for the kubelet's; debootstrap copies the machine's
        (part / "etc/hostname").unlink(missing_ok=True)
        pack(part, self.tar)
        part.rename(self.folder)

    def _make_on_top(self) -> None:
        with tempfile.TemporaryDirectory(dir=cache() / "layers", prefix=f"{self.key}.") as name:
            work = Path(name)
            upper = work / "upper"
            for folder in ("upper", "work", "merged"):
                (work / folder).mkdir()
            for place, source in self.files:
                _put(source, upper / place.lstrip("/"))
            for place in self.folders:
                (upper / place.lstrip("/")).mkdir(parents=True)
            for place, target in self.links:
                path = upper / place.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(target)
            if self.packages:
                lower = ":".join(str(layer.folder) for layer in reversed(self.stack[:-1]))
                _run(
                    ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", self._installation(lower)],
                    work,
                )
                # What only stood in for the machine's own is not part of the layer.
                (upper / "etc/resolv.conf").unlink(missing_ok=True)
                (upper / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
            pack(upper, self.tar)

    def _installation(self, lower: str) -> str:
        apt = "apt-get -qq -o Dpkg::Use-Pty=0"
        install = f"{apt} update; {apt} install -y --no-install-recommends {' '.join(self.packages)}"
        return f"""
            options=redirect_dir=off,metacopy=off
            mount -t overlay overlay -o $options,lowerdir={lower},upperdir=upper,workdir=work merged
            mount --bind /dev merged/dev
            mount -t proc proc merged/proc
            mount --bind /etc/resolv.conf merged/etc/resolv.conf
            printf '#!/bin/sh\\nexit 101\\n' >merged/usr/sbin/policy-rc.d  # starts no service
            chmod +x merged/usr/sbin/policy-rc.d
            export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
            chroot merged sh -euc '{install}; {CLEAN}'
        """


def _mirror() -> list[str]:
    """Where this machine's own packages come from; debootstrap knows a place if the machine names none."""
    asked = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    return [uri for uri in asked if "security" not in uri][:1]


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{tail}")


def _put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def pack(folder: Path, tar: Path) -> None:
    """Writes the folder as the tar of a layer, with its digest beside it; what was deleted is marked as layers do."""
    part = tar.with_suffix(".tar.part")
    with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as archive:
        for place, names, files in os.walk(folder):
            names.sort()
            here = Path(place)
            if here != folder:
                archive.add(here, str(here.relative_to(folder)), recursive=False)
                if _opaque(here):
                    _mark(archive, here.relative_to(folder) / ".wh..wh..opq")
            names[:] = [name for name in names if not _link(archive, here / name, folder)]
            for name in sorted(files):
                path = here / name
                if str(path.relative_to(folder)).startswith(SKIPPED):
                    continue
                if _deleted(path):
                    _mark(archive, path.relative_to(folder).with_name(f".wh.{name}"))
                elif not stat.S_ISSOCK(path.lstat().st_mode):
                    archive.add(path, str(path.relative_to(folder)), recursive=False)
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    part.rename(tar)
    tar.with_suffix(".sha256").write_text(digest)


def _link(archive: tarfile.TarFile, path: Path, folder: Path) -> bool:
    """os.walk counts links to folders among the folders."""
    if path.is_symlink():
        archive.add(path, str(path.relative_to(folder)), recursive=False)
        return True
    return False


def _deleted(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _opaque(path: Path) -> bool:
    return "trusted.overlay.opaque" in os.listxattr(path) and os.getxattr(path, "trusted.overlay.opaque") == b"y"


def _mark(archive: tarfile.TarFile, place: Path) -> None:
    archive.addfile(tarfile.TarInfo(str(place)))
