"""What only some places can do, asked as the faces ask it."""

from __future__ import annotations

from pathlib import Path

from waiting import waiting

from oarsman.backends import base
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.local.backend import LocalBackend
from oarsman.backends.ssh.backend import SshBackend
from oarsman.engines.kube.client import Access
from oarsman.store.paths import Paths

ABILITIES = (
    base.StartsInFolder,
    base.Previews,
    base.HasInventory,
    base.HasOperator,
    base.HasNamespaces,
    base.HasRights,
    base.KeepsWorkers,
)


def abilities(backend: base.Backend) -> set[type]:
    return {one for one in ABILITIES if isinstance(backend, one)}


def test_each_place_has_its_own(tmp_path: Path) -> None:
    paths, access = Paths(tmp_path), Access(server="https://127.0.0.1:1", ssl=None, source="")
    places = (LocalBackend(paths), SshBackend(None, paths), KubeBackend(access))
    assert {backend.place: abilities(backend) for backend in places} == {
        "local": {base.StartsInFolder, base.Previews},
        "ssh": {base.StartsInFolder, base.Previews, base.HasInventory},
        "kube": {base.HasOperator, base.HasNamespaces, base.HasRights, base.KeepsWorkers},
    }


def test_jobs_of_this_machine_begin_in_folders_that_are_there(tmp_path: Path) -> None:
    here = waiting(LocalBackend(Paths(tmp_path)))
    (tmp_path / "file").touch()
    tried = (str(tmp_path), str(tmp_path / "file"), str(tmp_path / "none"), "tmp", ".", "", "/\0")
    assert [path for path in tried if here.has_folder(path)] == [str(tmp_path)]
