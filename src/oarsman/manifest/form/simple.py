"""Fields that are one value at one place of a document, which may be half written, empty or wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oarsman import names
from oarsman.errors import UsageError
from oarsman.manifest.parts import ROLES, Document, look, main_index, resource_key
from oarsman.manifest.problems import Path, dotted
from oarsman.manifest.quantity import QuantityError, parse
from oarsman.manifest.scalars import resolve

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


Kind = Literal["text", "words", "number", "choice", "pairs", "amount", "bool", "volumes"]
EMPTY: Mapping[str, Any] = {
    "text": "",
    "words": [],
    "number": None,
    "choice": "",
    "pairs": {},
    "amount": "",
    "bool": None,
    "volumes": [],
}


@dataclass(frozen=True, slots=True)
class Field:
    """One thing the form shows: how it is read from a document, and how a document comes to say it."""

    name: str
    kind: Kind
    read: Callable[[Document], Any]
    write: Callable[[Document, Any], None]
    choices: tuple[str, ...] = ()  # what is usual; other values of a document are shown as they are
    minimum: int | None = None


def shown(kind: Kind, value: Any) -> Any:
    """A value of a document as the form shows it; what is of the wrong type is shown as absent."""
    if kind == "number":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "words":
        words = value if isinstance(value, list) else []
        return [said(word) for word in words if not isinstance(word, dict | list)]
    return said(value)


def said(value: Any) -> str:
    """A scalar in the words of YAML."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def accepted(field: Field, value: Any) -> Any:
    """The value if the field can hold it; nothing said is the empty value of its kind."""
    empty = EMPTY[field.kind]
    if isinstance(value, float) and value.is_integer():  # what a browser sends for a whole number
        value = int(value)
    if field.kind == "amount" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if value is None or value == "" or (value in ([], {}) and field.kind in ("words", "pairs", "volumes")):
        return empty
    wanted: dict[Kind, Any] = {"number": int, "bool": bool, "words": Sequence, "pairs": Mapping, "volumes": Sequence}
    kind = wanted.get(field.kind, str)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise UsageError(f"{field.name} cannot be {value!r}", field=field.name)
    if field.kind == "words":
        if isinstance(value, str):
            raise UsageError(f"{field.name} is a list of words", field=field.name, hint='["python", "train.py"]')
        return [str(word) for word in value]
    if field.kind == "pairs":
        return {str(name): str(given) for name, given in value.items()}
    if field.kind == "number" and field.minimum is not None and value < field.minimum:
        raise UsageError(f"{field.name} must be at least {field.minimum}, not {value}", field=field.name)
    if field.kind == "amount":
        return _amount(field.name, value)
    return value


def _amount(name: str, value: str) -> str:
    try:
        parse(value)
    except QuantityError as error:
        raise UsageError(str(error), field=name, hint=error.hint) from None
    return value.strip()


# -- one place ------------------------------------------------------------------------------------------
def at(name: str, kind: Kind, *path: str, choices: tuple[str, ...] = (), minimum: int | None = None) -> Field:
    def read(document: Document) -> Any:
        return shown(kind, look(document, *path))

    def write(document: Document, value: Any) -> None:
        settle(document, path, value)

    return Field(name, kind, read, write, choices, minimum)


def annotation(name: str, kind: Kind, key: str, *, choices: tuple[str, ...] = ()) -> Field:
    """Annotations are text whatever they mean."""
    path = ("metadata", "annotations", key)

    def read(document: Document) -> Any:
        text = said(look(document, *path))
        if kind == "number":
            return int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
        if kind == "bool":
            return {"true": True, "false": False}.get(text)
        return text

    def write(document: Document, value: Any) -> None:
        settle(document, path, None if value is None else said(value))

    return Field(name, kind, read, write, choices)


# -- containers -------------------------------------------------------------------------------------------
def of_launcher(name: str, kind: Kind, key: str) -> Field:
    def read(document: Document) -> Any:
        return shown(kind, look(document, *container(document, "Launcher"), key))

    def write(document: Document, value: Any) -> None:
        settle(document, (*container(document, "Launcher"), key), value)

    return Field(name, kind, read, write)


def of_both(name: str, kind: Kind, key: str) -> Field:
    """What the launcher and the workers usually share. The launcher's is shown.

    A change is made to the launcher's, and to the workers' if it was the same or not said.
    """

    def read(document: Document) -> Any:
        return shown(kind, look(document, *container(document, "Launcher"), key))

    def write(document: Document, value: Any) -> None:
        before = look(document, *container(document, "Launcher"), key)
        for role in roles(document):
            path = (*container(document, role), key)
            if role == "Launcher" or look(document, *path) in (before, None):
                settle(document, path, value)

    return Field(name, kind, read, write)


def amount(name: str, role: str, resource: str) -> Field:
    """A limit; a request that is there says the same, or it would keep the old amount."""

    def places(document: Document) -> tuple[Path, Path]:
        resources = (*container(document, role), "resources")
        limits, requests = (look(document, *resources, part) for part in ("limits", "requests"))
        known = [*limits] if isinstance(limits, dict) else []
        known += [*requests] if isinstance(requests, dict) else []
        key = resource_key(dict.fromkeys(known), resource)
        return (*resources, "limits", key), (*resources, "requests", key)

    def read(document: Document) -> str:
        limit, request = places(document)
        return said(look(document, *limit)) or said(look(document, *request))

    def write(document: Document, value: str) -> None:
        limit, request = places(document)
        if not value:
            drop(document, request)
            drop(document, limit)
            return
        put(document, limit, _as_written(value, document, limit))
        if look(document, *request) is not None:
            put(document, request, _as_written(value, document, request))

    return Field(name, "amount", read, write)


def _as_written(value: str, document: Document, path: Path) -> Any:
    """A number has quotes where the one before it had, or where others of the job have."""
    before = look(document, *path)
    if not _is_number(before):
        before = next(filter(_is_number, _amounts(document)), "")
    if isinstance(before, str):
        return value
    number = resolve(value) if _is_number(value) else value
    return number if said(number) == value else value


def _amounts(document: Document) -> Iterator[Any]:
    for role in reversed(roles(document)):
        for part in ("limits", "requests"):
            found = look(document, *container(document, role), "resources", part)
            yield from found.values() if isinstance(found, dict) else ()


def _is_number(value: Any) -> bool:
    """Whether it is written in digits alone, with quotes or without."""
    return not isinstance(value, bool) and re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?", said(value)) is not None


# -- two places -------------------------------------------------------------------------------------------
OLD_CLEAN_POLICY, CLEAN_POLICY = ("spec", "cleanPodPolicy"), ("spec", "runPolicy", "cleanPodPolicy")
IMPLEMENTATION, MPI = ("spec", "mpiImplementation"), ("metadata", "annotations", names.ANNOTATION_MPI)
IMPLEMENTATIONS = ("OpenMPI", "MPICH", "Intel")
_SPELLING = {name.lower(): name for name in IMPLEMENTATIONS}


def read_clean_policy(document: Document) -> str:
    return said(look(document, *OLD_CLEAN_POLICY)) or said(look(document, *CLEAN_POLICY))


def write_clean_policy(document: Document, value: str) -> None:
    """The older place of v1 wins where it is used."""
    if not value:
        drop(document, OLD_CLEAN_POLICY)
        drop(document, CLEAN_POLICY)
    else:
        put(document, OLD_CLEAN_POLICY if look(document, *OLD_CLEAN_POLICY) is not None else CLEAN_POLICY, value)


def _is_v1(document: Document) -> bool:
    return said(look(document, "apiVersion")) == f"{names.GROUP}/v1"


def read_mpi(document: Document) -> str:
    """v1 has no field for it, so there it is an annotation, which may also be a path."""
    if not _is_v1(document):
        return said(look(document, *IMPLEMENTATION))
    text = said(look(document, *MPI))
    return _SPELLING.get(text, text)


def write_mpi(document: Document, value: str) -> None:
    if _is_v1(document):
        settle(document, MPI, value.lower() if value in IMPLEMENTATIONS else value)
    else:
        settle(document, IMPLEMENTATION, value)


def write_api_version(document: Document, value: str) -> None:
    """What the two versions say in different places moves along."""
    mpi, policy = read_mpi(document), look(document, *OLD_CLEAN_POLICY)
    moves = mpi in IMPLEMENTATIONS
    if moves:
        write_mpi(document, "")
    settle(document, ("apiVersion",), value)
    if moves:
        write_mpi(document, mpi)
    if policy is not None and not _is_v1(document):
        write_clean_policy(document, "")
        write_clean_policy(document, said(policy))
