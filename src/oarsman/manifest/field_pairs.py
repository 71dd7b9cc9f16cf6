"""Fields that hold several values, each with a name of its own: labels, annotations, variables, volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oarsman.errors import UsageError
from oarsman.manifest.field_kinds import Field
from oarsman.manifest.places import Document, container, drop, items, look, mappings, pod, put, roles, said, settle
from oarsman.text.sentence import Text

_OURS = "oarsman.dev/"


def marks(name: str, *path: str, hide_ours: bool = False) -> Field:
    """Labels or annotations. Our own annotations have fields of their own: here they are not shown."""

    def read(document: Document) -> dict[str, str]:
        found = look(document, *path)
        if not isinstance(found, dict):
            return {}
        return {key: said(value) for key, value in found.items() if not (hide_ours and key.startswith(_OURS))}

    def write(document: Document, value: Mapping[str, Any]) -> None:
        for key, text in value.items():
            if text is None:
                drop(document, (*path, key))
            else:
                put(document, (*path, key), str(text))

    def change(document: Document, value: dict[str, str]) -> None:
        before = read(document)
        for key in value:
            if hide_ours and key.startswith(_OURS):
                wrong = Text("{key} has a place of its own", key=key)
                raise UsageError(wrong, field=name, hint=Text("set it there or in the text"))
        write(document, {key: None for key in before if key not in value})
        write(document, {key: text for key, text in value.items() if before.get(key) != text})

    return Field(name, "pairs", read, write, change=change)


# -- variables --------------------------------------------------------------------------------------------
def variables(name: str) -> Field:
    return Field(name, "pairs", _read_env, _write_env, change=_change_env)


def _read_env(document: Document) -> dict[str, str]:
    """Those of the launcher, then those that only the workers have."""
    found = _plain(document, "Launcher")
    return found | {name: value for name, value in _plain(document, "Worker").items() if name not in found}


def _write_env(document: Document, value: Mapping[str, Any]) -> None:
    """For both roles, in the place of whatever has the name: later variables may refer to it."""
    for role in roles(document):
        path = (*container(document, role), "env")
        new = {name: {"name": name, "value": str(given)} for name, given in value.items() if given is not None}
        entries = []
        for entry in items(document, path):
            name = _name(entry)
            if name not in value:
                entries.append(entry)
            elif name in new:
                entries.append(new.pop(name))
        settle(document, path, [*entries, *new.values()])


def _change_env(document: Document, value: dict[str, str]) -> None:
    """A new variable is for both roles; one that differs between them is changed where it was as shown."""
    before = _read_env(document)
    for name in value:
        if name not in before and all(_taken(document, role, name) for role in roles(document)):
            wrong = Text("{name} takes its value from elsewhere", name=name)
            raise UsageError(wrong, field="env", hint=Text("change it in the text"))
    for role in roles(document):
        path = (*container(document, role), "env")
        plain = _plain(document, role)
        kept = [entry for entry in items(document, path) if not _is_plain(entry) or _name(entry) in value]
        for entry in kept:
            if _is_plain(entry) and plain[_name(entry)] == before[_name(entry)] != value[_name(entry)]:
                entry["value"] = value[_name(entry)]
        added = [name for name in value if name not in before and not _taken(document, role, name)]
        settle(document, path, [*kept, *({"name": name, "value": value[name]} for name in added)])


def _plain(document: Document, role: str) -> dict[str, str]:
    entries = mappings(document, (*container(document, role), "env"))
    return {_name(entry): said(entry.get("value")) for entry in entries if _is_plain(entry)}


def _is_plain(entry: Any) -> bool:
    """Whether the value is written down; others take it from elsewhere."""
    return isinstance(entry, dict) and "valueFrom" not in entry


def _name(entry: Any) -> str:
    return said(look(entry, "name"))


def _taken(document: Document, role: str, name: str) -> bool:
    return any(_name(entry) == name for entry in mappings(document, (*container(document, role), "env")))


# -- volumes ----------------------------------------------------------------------------------------------
_SHOWN = {"name", "mountPath", "readOnly"}  # a mount that says more than this cannot be shown


def volumes(name: str) -> Field:
    """A volume is shown as {path, source, read_only}, and named by its path: a path in the job.

    A source is a folder of the host ("/data"), the name of a PersistentVolumeClaim ("claim"), or, for `write`, a source
    as Kubernetes has it; there a ":ro" behind a word is for a volume that can only be read.
    """
    return Field(name, "volumes", _read_volumes, _write_volumes, change=_change_volumes)


def _read_volumes(document: Document) -> list[dict[str, Any]]:
    """Those of the launcher, then those that only the workers have."""
    found: dict[str, dict[str, Any]] = {}
    for role in roles(document):
        for volume in _of_role(document, role):
            found.setdefault(volume["path"], volume)
    return list(found.values())


def _of_role(document: Document, role: str) -> Iterator[dict[str, Any]]:
    sources = {volume.get("name"): _source_of(volume) for volume in _volumes(document, role)}
    for mount in _mounts(document, role):
        source, path = sources.get(mount.get("name")), mount.get("mountPath")
        if source is not None and isinstance(path, str) and set(mount) <= _SHOWN:
            yield {"path": path, "source": source, "read_only": mount.get("readOnly") is True}


def _write_volumes(document: Document, value: Mapping[str, str | Mapping[str, Any] | None]) -> None:
    for role in roles(document):
        for path, source in value.items():
            _check_path(path)
            if any(mount.get("mountPath") == path for mount in _mounts(document, role)):
                _unmount(document, role, path)
            if source is not None:
                said = _written(source.removesuffix(":ro")) if isinstance(source, str) else source
                _mount(document, role, path, said, read_only=isinstance(source, str) and source.endswith(":ro"))


def _change_volumes(document: Document, value: list[dict[str, Any]]) -> None:
    before = {volume["path"]: volume for volume in _read_volumes(document)}
    wanted = {volume["path"]: volume for volume in map(_checked, value)}
    if len(wanted) < len(value):
        raise UsageError(Text("two volumes cannot be at the same path"), field="volumes")
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
                wrong = Text("something else is already at {path}", path=path)
                raise UsageError(wrong, field="volumes", hint=Text("change it in the text"))
            if path not in before:
                _mount(document, role, path, volume["source"], read_only=volume["read_only"])


def _checked(volume: Any) -> dict[str, Any]:
    path, source = str(volume.get("path") or ""), str(volume.get("source") or "")
    _check_path(path)
    if not source:
        wrong = Text("what is to be seen at {path}?", path=path)
        raise UsageError(wrong, field="volumes", hint=Text("a folder or the name of a claim"))
    return {"path": path, "source": source, "read_only": bool(volume.get("read_only"))}


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        wrong = Text("a volume is mounted at a whole path, not '{path}'", path=path)
        raise UsageError(wrong, field="volumes", hint="/data")


def _mounts(document: Document, role: str) -> list[dict[str, Any]]:
    return mappings(document, (*container(document, role), "volumeMounts"))


def _volumes(document: Document, role: str) -> list[dict[str, Any]]:
    return mappings(document, (*pod(role), "volumes"))


def _mount(document: Document, role: str, path: str, source: str | Mapping[str, Any], *, read_only: bool) -> None:
    mounts = (*container(document, role), "volumeMounts")
    mount = {"name": _volume_for(document, role, path, source), "mountPath": path}
    put(document, mounts, [*items(document, mounts), {**mount, "readOnly": True} if read_only else mount])


def _volume_for(document: Document, role: str, path: str, source: str | Mapping[str, Any]) -> str:
    """The name of a volume of the pod with that source: a new one, or for a word the one there is."""
    known = {str(found.get("name")): _source_of(found) for found in _volumes(document, role)}
    for name, there in known.items():
        if there is not None and there == source:
            return name
    name = wished = "vol-" + (re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "root")[:50].strip("-")
    number = 2
    while name in known:
        name, number = f"{wished}-{number}", number + 1
    place = (*pod(role), "volumes")
    volume = {"name": name, **(_written(source) if isinstance(source, str) else source)}
    put(document, place, [*items(document, place), volume])
    return name


def _written(source: str) -> Document:
    """A path is a folder of the host, anything else the name of a claim."""
    if source.startswith("/"):
        return {"hostPath": {"path": source}}
    return {"persistentVolumeClaim": {"claimName": source}}


def _source_of(volume: Mapping[str, Any]) -> str | None:
    """The opposite: None for a kind of volume that a single word cannot say."""
    folder, claim = volume.get("hostPath"), volume.get("persistentVolumeClaim")
    if isinstance(folder, dict) and isinstance(folder.get("path"), str):
        return str(folder["path"])
    if isinstance(claim, dict) and isinstance(claim.get("claimName"), str):
        return str(claim["claimName"])
    return None


def _change(document: Document, role: str, volume: dict[str, Any]) -> None:
    mount = next(m for m in _mounts(document, role) if m.get("mountPath") == volume["path"])
    if volume["read_only"]:
        mount["readOnly"] = True
    else:
        mount.pop("readOnly", None)
    old = next(v for v in _volumes(document, role) if v.get("name") == mount["name"])
    if _source_of(old) == volume["source"]:
        return
    if _uses(document, role, mount["name"]) == 1:
        for name in [key for key in old if key != "name"]:
            del old[name]
        old.update(_written(volume["source"]))
    else:
        mount["name"] = _volume_for(document, role, volume["path"], volume["source"])


def _unmount(document: Document, role: str, path: str) -> None:
    mounts, volumes = (*container(document, role), "volumeMounts"), (*pod(role), "volumes")
    gone = next(mount for mount in _mounts(document, role) if mount.get("mountPath") == path)
    if _uses(document, role, gone.get("name")) == 1:
        unused = next((volume for volume in _volumes(document, role) if volume.get("name") == gone.get("name")), None)
        settle(document, volumes, [volume for volume in items(document, volumes) if volume is not unused])
    settle(document, mounts, [mount for mount in items(document, mounts) if mount is not gone])


def _uses(document: Document, role: str, name: Any) -> int:
    """How many mounts of the pod are of that volume."""
    containers = [c for part in ("containers", "initContainers") for c in mappings(document, (*pod(role), part))]
    return sum(mount.get("name") == name for c in containers for mount in mappings(c, ("volumeMounts",)))
