"""A document with mistakes, mended so that the rules behind the mistakes can be asked as well.

What is broken is taken out, what is required and not there gets a shim, and a misspelled field
that holds others is read as the field that was meant. Nobody ever sees the mended document: every
path that was touched is remembered, and no rule speaks about such a path or draws on it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from oarsman.errors import Problem
from oarsman.manifest.problems import Path
from oarsman.manifest.source import Document

_SHIMS: Mapping[str | int, Any] = {
    "metadata": {},
    "spec": {},
    "mpiReplicaSpecs": {},
    "Launcher": {},
    "template": {},
    "replicas": 1,
    "containers": [{"name": "x"}],
    "name": "x",
    "mountPath": "/",
    "path": "/",
    "fieldPath": "metadata.name",
    "containerPort": 1,
}


def unshared(value: Any) -> Any:
    """A copy in which no part stands in two places, as the parts behind aliases do."""
    if isinstance(value, dict):
        return {name: unshared(part) for name, part in value.items()}
    return [unshared(part) for part in value] if isinstance(value, list) else value


def mend(document: Document, problems: Iterable[Problem]) -> None:
    """Change the document's value, which must be its own, so that these problems are gone."""
    for problem in problems:
        path = document.path(problem)
        while path and isinstance(path[-1], int):  # an item goes with its list: other items keep their numbers
            path = path[:-1]
        document.doubts.add(path)
        if problem.stray:
            _settle_stray(document, path, problem.meant)
        else:
            _replace(document.value, path)


def _settle_stray(document: Document, path: Path, guess: str | None) -> None:
    *parents, name = path
    holder = _at(document.value, parents)
    if not isinstance(holder, dict) or name not in holder:
        return
    value = holder.pop(name)
    document.doubts.strays.add(str(name))
    if guess is None or holder.get(guess) is not None:
        return
    if value and isinstance(value, dict | list):
        holder[guess] = value
        document.doubts.spelling[(*parents, guess)] = str(name)
    else:
        document.doubts.add((*parents, guess))


def _replace(value: Any, path: Path) -> None:
    """Take out what is there, or put in what is missing."""
    holder = _at(value, path[:-1])
    if not path or not isinstance(holder, dict):
        return
    if path[-1] in holder:
        del holder[path[-1]]
    elif path[-1] in _SHIMS:
        holder[path[-1]] = copy.deepcopy(_SHIMS[path[-1]])


def _at(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
