"""Fields that are names with values: labels, annotations and variables."""

from __future__ import annotations

from typing import Any

from oarsman.errors import UsageError
from oarsman.sdk.form.places import container, drop, items, look, mappings, put, roles, settle
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
