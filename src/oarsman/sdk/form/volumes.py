"""Volumes: folders and claims that both roles see at a path. Other kinds of volumes are neither shown nor touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarsman.errors import UsageError
from oarsman.sdk.form.places import container, items, mappings, pod, put, roles, settle
from oarsman.sdk.parts import Document, source_of, volume_name, volume_source

_SHOWN = {"name", "mountPath", "readOnly"}  # a mount that says more than this cannot be shown


def _mounts(document: Document, role: str) -> list[dict[str, Any]]:
    return mappings(document, (*container(document, role), "volumeMounts"))


def _volumes(document: Document, role: str) -> list[dict[str, Any]]:
    return mappings(document, (*pod(role), "volumes"))


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
    put(document, mounts, [*items(document, mounts), {"name": name, "mountPath": volume["path"], **read_only}])


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
    put(document, path, [*items(document, path), {"name": name, **volume_source(volume["source"])}])
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
    mounts, volumes = (*container(document, role), "volumeMounts"), (*pod(role), "volumes")
    gone = next(mount for mount in _mounts(document, role) if mount.get("mountPath") == path)
    if _uses(document, role, gone["name"]) == 1:
        unused = next(volume for volume in _volumes(document, role) if volume.get("name") == gone["name"])
        settle(document, volumes, [volume for volume in items(document, volumes) if volume is not unused])
    settle(document, mounts, [mount for mount in items(document, mounts) if mount is not gone])


def _uses(document: Document, role: str, name: str) -> int:
    """How many mounts of the pod are of that volume."""
    containers = [c for part in ("containers", "initContainers") for c in mappings(document, (*pod(role), part))]
    return sum(mount.get("name") == name for c in containers for mount in mappings(c, ("volumeMounts",)))
