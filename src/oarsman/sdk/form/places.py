"""Reading, setting and removing one place of a document that may be anything: half written, empty, or wrong."""

from __future__ import annotations

from typing import Any

from oarsman.errors import UsageError
from oarsman.manifest.problems import Path, dotted
from oarsman.sdk.parts import ROLES, Document, look, main_index

__all__ = ["Path", "container", "drop", "items", "look", "mappings", "pod", "put", "roles", "settle"]
_SPECS = ("spec", "mpiReplicaSpecs")


def pod(role: str) -> Path:
    return (*_SPECS, role, "template", "spec")


def container(document: Document, role: str) -> Path:
    """Where the container is that takes part in MPI, or would be."""
    containers = look(document, *pod(role), "containers")
    return (*pod(role), "containers", main_index(document, containers if isinstance(containers, list) else []))


def roles(document: Document) -> tuple[str, ...]:
    """The launcher, and the workers if the job has any."""
    return ROLES if look(document, *_SPECS, "Worker") is not None else ROLES[:1]


def put(document: Document, path: Path, value: Any) -> None:
    """Set one place; what it lies in is made. Something else that is there already is not thrown away."""
    holder: Any = document
    for at, step in enumerate(path[:-1]):
        inner = look(holder, step)
        if inner is None:
            inner = [] if isinstance(path[at + 1], int) else {}
            if isinstance(step, int):
                inner = {"name": str(path[2]).lower()}  # the only lists on the way are those of containers
                holder[step : step + 1] = [inner]
            else:
                holder[step] = inner
        if not isinstance(inner, list if isinstance(path[at + 1], int) else dict):
            raise out_of_shape(path[: at + 1])
        holder = inner
    holder[path[-1]] = value


def out_of_shape(path: Path) -> UsageError:
    """Something is there that the form would have to throw away."""
    place = dotted(path)
    return UsageError(f"{place} is not what it should be", field=place, hint="mend it in the text first")


def items(document: Document, path: Path) -> list[Any]:
    """The list at that place, empty where there is none."""
    found = look(document, *path)
    if found is not None and not isinstance(found, list):
        raise out_of_shape(path)
    return list(found or ())


def mappings(document: Document, path: Path) -> list[dict[str, Any]]:
    """The items of the list at that place that can be looked into; none where it is no list."""
    found = look(document, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def drop(document: Document, path: Path) -> None:
    """Remove one place, and the mappings that are empty without it."""
    holder = look(document, *path[:-1])
    if not isinstance(holder, dict) or path[-1] not in holder:
        return
    del holder[path[-1]]
    if not holder and len(path) > 1 and isinstance(path[-2], str):
        drop(document, path[:-1])


def settle(document: Document, path: Path, value: Any) -> None:
    """Set it, or remove it where the value says nothing."""
    if value is None or value == "" or value == [] or value == {}:
        drop(document, path)
    else:
        put(document, path, value)
