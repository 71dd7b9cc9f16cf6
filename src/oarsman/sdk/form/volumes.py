"""Volumes: folders and claims that both roles see at a path. Other kinds of volumes are neither shown nor touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarsman.errors import UsageError
from oarsman.sdk.form.places import container, drop, look, pod, put, roles
from oarsman.sdk.parts import Document, source_of, volume_name, volume_source

_SHOWN = {"name", "mountPath", "readOnly"}  # a mount that says more than this cannot be shown


def _list(document: Document, *path: str | int) -> list[Any]:
    found = look(document, *path)
    return found if isinstance(found, list) else []


def _mounts(document: Document, role: str) -> list[dict[str, Any]]:
    return [m for m in _list(document, *container(document, role), "volumeMounts") if isinstance(m, dict)]


def _volumes(document: Document, role: str) -> list[dict[str, Any]]:
    return [v for v in _list(document, *pod(role), "volumes") if isinstance(v, dict)]


def _of_role(document: Document, role: str) -> Iterator[dict[str, Any]]:
    sources = {volume.get("name"): source_of(volume) for volume in _volumes(document, role)}
    for mount in _mounts(document, role):
        source, path = sources.get(mount.get("name")), mount.get("mountPath")
        if source is not None and isinstance(path, str) and set(mount) <= _SHOWN:
            yield {"path": path, "source": source, "read_only": mount.get("readOnly") is True}


def read(document: Document) -> list[dict[str, Any]]:
    """Those of the launcher, then those that only the workers have."""
    found: dict[str, dict[str, Any]] = {}
    for role in roles(document):
        for volume in _of_role(document, role):
            found.setdefault(volume["path"], volume)
    return list(found.values())


def write(document: Document, value: list[dict[str, Any]]) -> None:
    before = {volume["path"]: volume for volume in read(document)}
    wanted = {volume["path"]: volume for volume in map(_checked, value)}
    if len(wanted) < len(value):
        raise UsageError("two volumes cannot be at the same path", field="volumes")
    for role in roles(document):
        here = {volume["path"]: volume for volume in _of_role(document, role)}
        taken = {mount.get("mountPath") for mount in _mounts(document, role)}
        for path, volume in here.items():
            if path not in wanted:
                _unmount(document, role, path)
            elif volume == before[path] != wanted[path]:
                _change(document, role, wanted[path])
        for path, volume in wanted.items():
            if path not in before and path in taken:
                raise UsageError(f"something else is already at {path}", field="volumes", hint="change it in the text")
            if path not in before:
                _mount(document, role, volume)


def _checked(volume: Any) -> dict[str, Any]:
    path, source = str(volume.get("path") or ""), str(volume.get("source") or "")
    if not path.startswith("/"):
        raise UsageError(f"a volume is mounted at a whole path, not '{path}'", field="volumes", hint="/data")
    if not source:
        raise UsageError(f"what is to be seen at {path}?", field="volumes", hint="a folder or the name of a claim")
    return {"path": path, "source": source, "read_only": bool(volume.get("read_only"))}


def _mount(document: Document, role: str, volume: dict[str, Any]) -> None:
    mounts = (*container(document, role), "volumeMounts")
    name = _volume_for(document, role, volume)
    read_only = {"readOnly": True} if volume["read_only"] else {}
    put(document, mounts, [*_list(document, *mounts), {"name": name, "mountPath": volume["path"], **read_only}])


def _volume_for(document: Document, role: str, volume: dict[str, Any]) -> str:
    """The name of a volume of the pod with that source: one that is there, or a new one."""
    known = {str(found.get("name")): source_of(found) for found in _volumes(document, role)}
    for name, source in known.items():
        if source == volume["source"]:
            return name
    name = wished = volume_name(volume["path"])
    number = 2
    while name in known:
        name, number = f"{wished}-{number}", number + 1
    path = (*pod(role), "volumes")
    put(document, path, [*_list(document, *path), {"name": name, **volume_source(volume["source"])}])
    return name


def _change(document: Document, role: str, volume: dict[str, Any]) -> None:
    mount = next(m for m in _mounts(document, role) if m.get("mountPath") == volume["path"])
    if volume["read_only"]:
        mount["readOnly"] = True
    else:
        mount.pop("readOnly", None)
    old = next(v for v in _volumes(document, role) if v.get("name") == mount["name"])
    if source_of(old) == volume["source"]:
        return
    if _uses(document, role, mount["name"]) == 1:
        kind = volume_source(volume["source"])
        for name in [key for key in old if key != "name"]:
            del old[name]
        old.update(kind)
    else:
        mount["name"] = _volume_for(document, role, volume)


def _unmount(document: Document, role: str, path: str) -> None:
    place = (*container(document, role), "volumeMounts")
    mounts = _list(document, *place)
    gone = next(m for m in mounts if isinstance(m, dict) and m.get("mountPath") == path)
    last = _uses(document, role, gone["name"]) == 1
    _keep(document, place, [mount for mount in mounts if mount is not gone])
    if last:
        volumes = (*pod(role), "volumes")
        kept = [v for v in _list(document, *volumes) if not (isinstance(v, dict) and v.get("name") == gone["name"])]
        _keep(document, volumes, kept)


def _keep(document: Document, path: tuple[str | int, ...], items: list[Any]) -> None:
    if items:
        put(document, path, items)
    else:
        drop(document, path)


def _uses(document: Document, role: str, name: str) -> int:
    """How many mounts of the pod are of that volume."""
    containers = [c for part in ("containers", "initContainers") for c in _list(document, *pod(role), part)]
    mounts = [m for c in containers if isinstance(c, dict) for m in _list(c, "volumeMounts") if isinstance(m, dict)]
    return sum(mount.get("name") == name for mount in mounts)
