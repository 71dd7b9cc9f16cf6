"""Fields that are more than one value: the launch line, names with values, volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from oarsman.errors import UsageError
from oarsman.job.launch import LaunchLine, parse
from oarsman.manifest.form.simple import (
    Field,
    container,
    drop,
    items,
    look,
    mappings,
    pod,
    put,
    roles,
    said,
    settle,
    shown,
)
from oarsman.manifest.parts import Document, keep_filling_slots, source_of, total_slots, volume_name, volume_source

_WORKER = ("spec", "mpiReplicaSpecs", "Worker")
_OPTIONS = {"min": ("--min-np", "--min-num-proc"), "max": ("--max-np", "--max-num-proc")}
_COUNTS = ("-np", "--np", "-n", "--num-proc", *_OPTIONS["min"], *_OPTIONS["max"])


def count(name: str, *path: str) -> Field:
    """A number of workers or slots: a launch line that filled every slot goes on to do so."""

    def read(document: Document) -> Any:
        return shown("number", look(document, *path))

    def write(document: Document, value: int | None) -> None:
        before = total_slots(document)
        if value is not None and path[:3] == _WORKER and look(document, *_WORKER) is None:
            _add_workers(document)
        settle(document, path, value)
        keep_filling_slots(document, before)

    return Field(name, "number", read, write, minimum=1)


def _add_workers(document: Document) -> None:
    """Workers of a job that had none run what the launcher runs."""
    image = look(document, *container(document, "Launcher"), "image")
    put(document, (*_WORKER, "replicas"), None)
    put(document, (*container(document, "Worker"), "name"), "worker")
    if image is not None:
        put(document, (*container(document, "Worker"), "image"), image)


# -- elastic ------------------------------------------------------------------------------------------------
def bound(name: str, which: Literal["min", "max"]) -> Field:
    """The fewest or most ranks of an elastic job, which are words of its launch line."""

    def read(document: Document) -> int | None:
        line = _line(document)
        if line is None:
            return None
        return line.min_processes if which == "min" else line.max_processes

    def write(document: Document, value: int | None) -> None:
        line = _line(document)
        if line is None or not line.elastic:
            raise UsageError(
                "only a job that horovodrun starts with host discovery is elastic",
                field=name,
                hint="horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh ...",
            )
        if line.in_shell:
            raise UsageError("the launch line is inside a shell command", field=name, hint="change it in the text")
        _set_option(document, line, which, value)

    return Field(name, "number", read, write, minimum=1)


def _line(document: Document) -> LaunchLine | None:
    return parse([said(word) for _, word in _words(document)])


def _words(document: Document) -> list[tuple[str, Any]]:
    """The words of the launch line, each with the field it stands in."""
    found = ((part, look(document, *container(document, "Launcher"), part)) for part in ("command", "args"))
    return [(part, word) for part, words in found if isinstance(words, list) for word in words]


def _set_option(document: Document, line: LaunchLine, which: str, value: int | None) -> None:
    """Change the word behind the option, take both away, or add them behind the last number of ranks."""
    words = _words(document)
    texts = [said(word) for _, word in words]
    start = texts.index(line.path)
    place, width, form = start + 1, 0, _OPTIONS[which][0]
    for index in range(start + 1, start + 1 + len(line.options)):
        option, equals, _ = texts[index].partition("=")
        if option in _OPTIONS[which]:
            place, width, form = index, 1 if equals else 2, option + equals
            break
        if option in _COUNTS:
            place = index + (1 if equals else 2)
    new = [] if value is None else [f"{form}{value}"] if form.endswith("=") else [form, str(value)]
    part = words[min(place, len(words) - 1)][0]
    words[place : place + width] = [(part, word) for word in new]
    for part in ("command", "args"):
        settle(document, (*container(document, "Launcher"), part), [word for of, word in words if of == part])


_OURS = "oarsman.dev/"


def marks(name: str, *path: str, hide_ours: bool = False) -> Field:
    """Labels or annotations. Annotations of our own have fields of their own and are left alone here."""

    def read(document: Document) -> dict[str, str]:
        found = look(document, *path)
        if not isinstance(found, dict):
            return {}
        return {key: said(value) for key, value in found.items() if not (hide_ours and key.startswith(_OURS))}

    def write(document: Document, value: dict[str, str]) -> None:
        before = read(document)
        for key in value:
            if hide_ours and key.startswith(_OURS):
                raise UsageError(f"{key} has a place of its own", field=name, hint="set it there or in the text")
        for key in before:
            if key not in value:
                drop(document, (*path, key))
        for key, text in value.items():
            if before.get(key) != text:
                put(document, (*path, key), text)

    return Field(name, "pairs", read, write)


# -- variables --------------------------------------------------------------------------------------------
def _entries(document: Document, role: str) -> list[dict[str, Any]]:
    return mappings(document, (*container(document, role), "env"))


def _plain(document: Document, role: str) -> dict[str, str]:
    return {_name(entry): said(entry.get("value")) for entry in _entries(document, role) if _is_plain(entry)}


def read_env(document: Document) -> dict[str, str]:
    """Those of the launcher, then those that only the workers have."""
    found = _plain(document, "Launcher")
    for name, value in _plain(document, "Worker").items():
        found.setdefault(name, value)
    return found


def write_env(document: Document, value: dict[str, str]) -> None:
    """A new variable is for both roles; one that differs between them is changed where it was as shown."""
    before = read_env(document)
    for name in value:
        if name not in before and all(_taken(document, role, name) for role in roles(document)):
            raise UsageError(f"{name} takes its value from elsewhere", field="env", hint="change it in the text")
    for role in roles(document):
        path = (*container(document, role), "env")
        plain = _plain(document, role)
        gone = [entry for entry in _entries(document, role) if _is_plain(entry) and _name(entry) not in value]
        kept = [entry for entry in items(document, path) if not any(entry is one for one in gone)]
        for entry in kept:
            if _is_plain(entry) and plain[_name(entry)] == before[_name(entry)] != value[_name(entry)]:
                entry["value"] = value[_name(entry)]
        added = [name for name in value if name not in before and not _taken(document, role, name)]
        settle(document, path, [*kept, *({"name": name, "value": value[name]} for name in added)])


def _is_plain(entry: Any) -> bool:
    """Whether the value is written down; others take it from elsewhere."""
    return isinstance(entry, dict) and "valueFrom" not in entry


def _name(entry: dict[str, Any]) -> str:
    return said(entry.get("name"))


def _taken(document: Document, role: str, name: str) -> bool:
    return any(_name(entry) == name for entry in _entries(document, role))


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
