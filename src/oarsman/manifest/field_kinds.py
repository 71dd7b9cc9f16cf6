"""What a field is, and the fields that are one value: at one place, in one or both roles, or an amount."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

from oarsman.manifest.places import Document, container, drop, look, put, roles, said, settle
from oarsman.manifest.problems import Path
from oarsman.manifest.scalars import resolve

Kind = Literal["text", "words", "number", "choice", "pairs", "amount", "bool", "volumes"]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that can be said of a job: how it is read from a document, and how a document comes to say it.

    `write` says it wherever the job says it; None takes it out. Of a field that holds several values by their names, it
    writes those that are given and leaves the others; None takes one out.
    """

    name: str
    kind: Kind
    read: Callable[[Document], Any]
    write: Callable[[Document, Any], None]
    choices: tuple[str, ...] = ()  # what is usual; other values of a document are shown as they are
    minimum: int | None = None
    # For who sees what `read` returns and changes that: where the roles differ, what was not seen stays as it is, and
    # of several values those that are not given go. None: as `write` does it.
    change: Callable[[Document, Any], None] | None = None


def shown(kind: Kind, value: Any) -> Any:
    """A value of a document as a field shows it; what is of the wrong type is shown as absent."""
    if kind == "number":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "words":
        words = value if isinstance(value, list) else []
        return [said(word) for word in words if not isinstance(word, dict | list)]
    return said(value)


def at(name: str, kind: Kind, *path: str, choices: tuple[str, ...] = (), minimum: int | None = None) -> Field:
    """One value at one place."""
    return replace(_one_value(name, kind, lambda _: path), choices=choices, minimum=minimum)


def _one_value(name: str, kind: Kind, place: Callable[[Document], Path]) -> Field:
    """A part of a second counts as a whole one."""

    def read(document: Document) -> Any:
        return shown(kind, look(document, *place(document)))

    def write(document: Document, value: Any) -> None:
        settle(document, place(document), ceil(value) if isinstance(value, float) else value)

    return Field(name, kind, read, write)


def annotation(name: str, kind: Kind, key: str, *, choices: tuple[str, ...] = ()) -> Field:
    """Annotations are text whatever they mean. An empty one is written, so that the rules can refuse it."""
    path = ("metadata", "annotations", key)

    def read(document: Document) -> Any:
        text = said(look(document, *path))
        if kind == "number":
            return int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
        if kind == "bool":
            return {"true": True, "false": False}.get(text)
        return text

    def write(document: Document, value: Any) -> None:
        if value is None:
            drop(document, path)
        else:
            put(document, path, said(value))

    def change(document: Document, value: Any) -> None:
        write(document, None if value == "" else value)

    return Field(name, kind, read, write, choices, change=change)


# -- containers -------------------------------------------------------------------------------------------
def of_launcher(name: str, kind: Kind, key: str) -> Field:
    return _one_value(name, kind, lambda document: (*container(document, "Launcher"), key))


def of_both(name: str, kind: Kind, key: str) -> Field:
    """What the launcher and the workers usually share. The launcher's is shown.

    Who changes what is shown changes the launcher's, and the workers' if it was the same or not said.
    """

    def write(document: Document, value: Any) -> None:
        for role in roles(document):
            settle(document, (*container(document, role), key), value)

    def change(document: Document, value: Any) -> None:
        before = look(document, *container(document, "Launcher"), key)
        for role in roles(document):
            path = (*container(document, role), key)
            if role == "Launcher" or look(document, *path) in (before, None):
                settle(document, path, value)

    return replace(of_launcher(name, kind, key), write=write, change=change)


# -- amounts ----------------------------------------------------------------------------------------------
def amount(name: str, role: str, resource: str) -> Field:
    """A limit; a request that is there says the same, or it would keep the old amount."""

    def places(document: Document) -> tuple[Path, Path]:
        resources, key = (*container(document, role), "resources"), resource
        if resource.endswith("/gpu"):  # whichever GPU the container already names, of any maker
            found = [look(document, *resources, part) for part in ("limits", "requests")]
            known = [name for amounts in found if isinstance(amounts, dict) for name in amounts]
            key = next((name for name in known if str(name).endswith("/gpu")), resource)
        return (*resources, "limits", key), (*resources, "requests", key)

    def read(document: Document) -> str:
        limit, request = places(document)
        return said(look(document, *limit)) or said(look(document, *request))

    def write(document: Document, value: str | float | None) -> None:
        limit, request = places(document)
        if not value:
            drop(document, request)
            drop(document, limit)
            return
        put(document, limit, _as_written(str(value), document, limit))
        if look(document, *request) is not None:
            put(document, request, _as_written(str(value), document, request))

    return Field(name, "amount", read, write)


def _as_written(value: str, document: Document, path: Path) -> Any:
    """A number has quotes where the one before it had, or where others of the job have."""
    before = look(document, *path)
    if not _is_number(before):
        parts = [(role, part) for role in reversed(roles(document)) for part in ("limits", "requests")]
        found = [look(document, *container(document, role), "resources", part) for role, part in parts]
        others = [other for amounts in found if isinstance(amounts, dict) for other in amounts.values()]
        before = next(filter(_is_number, others), "")
    if isinstance(before, str):
        return value
    number = resolve(value) if _is_number(value) else value
    return number if said(number) == value else value


def _is_number(value: Any) -> bool:
    """Whether it is written in digits alone, with quotes or without."""
    return not isinstance(value, bool) and re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?", said(value)) is not None
