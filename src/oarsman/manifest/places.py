"""Where things are in an MPIJob document, which may be half written, empty or wrong, and how one place is changed."""

from __future__ import annotations

from typing import Any

from oarsman import names
from oarsman.errors import UsageError
from oarsman.job.job import ApiVersion
from oarsman.manifest.problems import Path, dotted
from oarsman.text.sentence import Text

Document = dict[str, Any]
ROLES = ("Launcher", "Worker")
WORKER: Path = ("spec", "mpiReplicaSpecs", "Worker")


def pod(role: str) -> Path:
    return ("spec", "mpiReplicaSpecs", role, "template", "spec")


def container(document: Document, role: str) -> Path:
    """Where the container is that takes part in MPI, or would be: the one that v1 names, or the first."""
    containers = look(document, *pod(role), "containers")
    wanted = look(document, "spec", "mainContainer")
    named = [look(one, "name") == wanted for one in containers] if isinstance(containers, list) else []
    return (*pod(role), "containers", named.index(True) if wanted and True in named else 0)


def roles(document: Document) -> tuple[str, ...]:
    """The launcher, and the workers if the job has any."""
    return ROLES if look(document, *WORKER) is not None else ROLES[:1]


def as_written(document: Any) -> Any:
    """A document that a cluster has printed, in the version it was written in: kubectl prints the one it prefers."""
    version = look(document, "spec", names.WRITTEN_AS)
    if look(document, "kind") != names.KIND or version not in [known.value for known in ApiVersion]:
        return document
    spec = {name: part for name, part in document["spec"].items() if name != names.WRITTEN_AS}
    return {**document, "apiVersion": version, "spec": spec}


def unshared(value: Any) -> Any:
    """A copy in which no part stands in two places, as the parts behind aliases do."""
    if isinstance(value, dict):
        return {name: unshared(part) for name, part in value.items()}
    return [unshared(part) for part in value] if isinstance(value, list) else value


# -- reading ------------------------------------------------------------------------------------------------
def look(document: Any, *steps: str | int) -> Any:
    """What is at that place, or None; nothing is made."""
    for step in steps:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def said(value: Any) -> str:
    """A scalar in the words of YAML."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def items(document: Document, path: Path) -> list[Any]:
    """The list at that place, empty where there is none."""
    found = look(document, *path)
    if found is not None and not isinstance(found, list):
        raise _out_of_shape(path)
    return list(found or ())


def mappings(document: Document, path: Path) -> list[dict[str, Any]]:
    """The items of the list at that place that can be looked into; none where it is no list."""
    found = look(document, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


# -- changing -----------------------------------------------------------------------------------------------
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
            raise _out_of_shape(path[: at + 1])
        holder = inner
    holder[path[-1]] = value


def _out_of_shape(path: Path) -> UsageError:
    """Something is there that would have to be thrown away."""
    place = dotted(path)
    wrong = Text("{place} is not what it should be", place=place)
    return UsageError(wrong, field=place, hint=Text("mend it in the text first"))


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
