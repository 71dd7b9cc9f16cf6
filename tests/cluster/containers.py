"""containerd in a world, and the store that every containerd starts from.

The store is the root folder of a containerd that has imported every image, kept in the cache. A node's own root folder
links to the store's files, which nobody changes: unpacked layers only ever lie below what containers write, and blobs
are named by their content. Only containerd's two small databases are copied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from cluster import images
from cluster.build import Programs
from cluster.places import cache, locked, running, say
from cluster.world import PATIENCE, Program, World

BLOBS = "io.containerd.content.v1.content/blobs/sha256"
SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/snapshots"
DATABASES = ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db")
SOCKET = "/run/containerd.sock"

CONFIG = """\
version = 2
root = "{root}"
state = "/run/containerd"
disabled_plugins = [{disabled}]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE, which containers and small machines often lack, no score can be lowered.
  restrict_oom_score_adj = true
  max_concurrent_downloads = 1
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
"""
# The first would make a folder in the machine's /opt; the others are other ways to store what overlayfs stores.
UNUSED = (
    "internal.v1.opt",
    "snapshotter.v1.btrfs",
    "snapshotter.v1.zfs",
    "snapshotter.v1.aufs",
    "snapshotter.v1.devmapper",
)


class Containerd(Program):
    def __init__(self, world: World, programs: Programs, root: Path, *, pods: bool) -> None:
        unused = [f'"io.containerd.{name}"' for name in (*UNUSED, *(() if pods else ("grpc.v1.cri",)))]
        config = world.work / "containerd.toml"
        config.write_text(
            CONFIG.format(
                root=root, disabled=", ".join(unused), socket=SOCKET, pause=images.PAUSE, cni=world.work / "cni"
            )
        )
        self._ctr = programs["ctr"]
        self._root = root
        super().__init__(world, "containerd", [programs["containerd"], "--config", config, "--log-level", "warn"])

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.check()
            try:
                self.ctr("version")
                return
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def ctr(self, *words: str) -> str:
        return self.world.run(
            str(self._ctr), "--address", SOCKET, "--namespace", "k8s.io", "--timeout", f"{PATIENCE:.0f}s", *words
        )

    def load(self, image: images.Image) -> None:
        has = frozenset(os.listdir(self._root / BLOBS)) if (self._root / BLOBS).exists() else frozenset()
        with tempfile.TemporaryDirectory(dir=self.world.work) as folder:
            file = images.archive(image, Path(folder) / "image.tar", without=has)
            self.ctr("images", "import", str(file))


def _wanted() -> tuple[list[images.Image], Path]:
    wanted = [recipe() for recipe in images.RECIPES.values()]
    words = repr([(image.name, image.config, [layer.key for layer in image.layers()]) for image in wanted])
    return wanted, cache() / f"images-{hashlib.sha256(words.encode()).hexdigest()[:12]}"


def store() -> Path:
    """Where the store is, as it must be now."""
    return _wanted()[1]


def fill(programs: Programs) -> None:
    """Makes every image that is missing, which takes minutes the first time."""
    wanted, into = _wanted()
    with locked(into.with_suffix(".lock")):
        if into.exists():
            return
        for image in wanted:
            if image.top:
                image.top.make()
        part = into.with_suffix(".making")
        shutil.rmtree(part, ignore_errors=True)
        reading, writing = os.pipe()
        with tempfile.TemporaryDirectory(prefix="oarsman-images.") as work:
            world = World("images", Path(work), network=True, owner=reading)
            world.start()
            world.sh("mount -t tmpfs tmpfs /run")
            containerd = Containerd(world, programs, part, pods=False)
            containerd.start()
            try:
                containerd.wait()
                for image in wanted:
                    say(f"unpacking {image.name}")
                    containerd.load(image)
                containerd.kill(15)  # so that its databases are closed
            finally:
                world.kill()
                containerd.forget()
                os.close(reading)
                os.close(writing)
        _share_blobs(wanted, part)
        part.rename(into)


def _share_blobs(wanted: list[images.Image], root: Path) -> None:
    """A layer's tar and its blob are the same bytes: one copy on the disk is enough."""
    for layer in {layer for image in wanted for layer in image.layers()}:
        blob = root / BLOBS / layer.digest()
        blob.unlink()
        os.link(layer.tar, blob)


def link(root: Path) -> None:
    """Makes a containerd's root folder that has every image."""
    source = store()
    for name in DATABASES:
        (root / name).parent.mkdir(parents=True)
        shutil.copyfile(source / name, root / name)
    for folder in (BLOBS, SNAPSHOTS):
        (root / folder).mkdir(parents=True)
        for path in (source / folder).iterdir():
            (root / folder / path.name).symlink_to(path)


def drop_old(days: int = 14) -> None:
    """Stores of images that changed since, unless a running cluster has links into them."""
    newest = store()
    os.utime(newest)
    used = {os.path.realpath(path) for path in running().glob(f"*/node-*/containerd/{SNAPSHOTS}/1")}
    for folder in cache().glob("images-????????????"):
        old = time.time() - folder.stat().st_mtime > days * 86400
        if old and not any(path.startswith(f"{folder}/") for path in used):
            shutil.rmtree(folder)
