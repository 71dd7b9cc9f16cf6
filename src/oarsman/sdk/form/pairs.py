"""Fields that are names with values: labels, annotations and variables."""

from __future__ import annotations

from typing import Any

from oarsman.errors import UsageError
from oarsman.sdk.form.places import container, drop, look, put, roles
from oarsman.sdk.form.simple import Field, said
from oarsman.sdk.parts import Document

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
    found = look(document, *container(document, role), "env")
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _plain(document: Document, role: str) -> dict[str, str]:
    """Variables whose value is written down; others take it from elsewhere."""
    return {said(e.get("name")): said(e.get("value")) for e in _entries(document, role) if "valueFrom" not in e}


def read_env(document: Document) -> dict[str, str]:
    """Those of the launcher, then those that only the workers have."""
    return (
        {**_plain(document, "Worker"), **_plain(document, "Launcher")}
        if _plain(document, "Worker")
        else _plain(document, "Launcher")
    )


def write_env(document: Document, value: dict[str, str]) -> None:
    """A new variable is for both roles; one that differs between them is changed where it was as shown."""
    before = read_env(document)
    for name in value:
        if name not in before and all(_taken(document, role, name) for role in roles(document)):
            raise UsageError(f"{name} takes its value from elsewhere", field="env", hint="change it in the text")
    for role in roles(document):
        entries, plain = _entries(document, role), _plain(document, role)
        kept = [e for e in entries if "valueFrom" in e or said(e.get("name")) in value]
        for entry in kept:
            name = said(entry.get("name"))
            if "valueFrom" not in entry and plain[name] == before[name] != value[name]:
                entry["value"] = value[name]
        added = [n for n in value if n not in before and not _taken(document, role, n)]
        kept += [{"name": name, "value": value[name]} for name in added]
        path = (*container(document, role), "env")
        if kept:
            put(document, path, kept)
        elif entries:
            drop(document, path)


def _taken(document: Document, role: str, name: str) -> bool:
    return any(said(entry.get("name")) == name for entry in _entries(document, role))
