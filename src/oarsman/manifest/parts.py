"""Where things are in an MPIJob document, for those who change one: the builder's edits and the form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Document = dict[str, Any]
ROLES = ("Launcher", "Worker")
RANKS = ("-n", "-np", "--np", "--n")


def within(document: Document, *steps: str) -> Document:
    """The mapping at that place, made where it is missing."""
    for step in steps:
        if not isinstance(document.get(step), dict):
            document[step] = {}
        document = document[step]
    return document


def role_of(document: Document, role: str) -> Document | None:
    specs = within(document, "spec", "mpiReplicaSpecs")
    return within(specs, role) if isinstance(specs.get(role), dict) else None


def main_container(document: Document, role: str) -> Document | None:
    """The container that takes part in MPI, made where the role has none; None where there is no such role."""
    found = role_of(document, role)
    if found is None:
        return None
    containers = within(found, "template", "spec").setdefault("containers", [])
    if not containers:
        containers.append({"name": role.lower()})
    main: Document = containers[main_index(document, containers)]
    return main


def main_index(document: Document, containers: Any) -> int:
    """Which container takes part in MPI: the one that v1 names, or the first."""
    wanted = look(document, "spec", "mainContainer")
    named = [isinstance(c, dict) and c.get("name") == wanted for c in containers or ()]
    return named.index(True) if wanted and True in named else 0


def main_containers(document: Document) -> Iterator[Document]:
    for role in ROLES:
        container = main_container(document, role)
        if container is not None:
            yield container


def look(document: Any, *steps: str | int) -> Any:
    """What is at that place, or None; nothing is made."""
    for step in steps:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def total_slots(document: Document) -> int:
    workers = look(document, "spec", "mpiReplicaSpecs", "Worker", "replicas")
    launcher_too = workers is not None and look(document, "spec", "runLauncherAsWorker") is True
    return (_count(workers) + launcher_too) * _count(look(document, "spec", "slotsPerWorker"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def keep_filling_slots(document: Document, before: int) -> None:
    """A launch line that filled every slot goes on to do so; one that did not is left alone."""
    containers = look(document, "spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers")
    for part in ("command", "args"):
        words = look(containers, main_index(document, containers), part)
        for index, word in enumerate(words if isinstance(words, list) else []):
            if word in RANKS and words[index + 1 : index + 2] == [str(before)]:
                words[index + 1] = str(total_slots(document))
                return


# -- resources ----------------------------------------------------------------------------------------
def resource_key(amounts: Mapping[str, Any], resource: str) -> str:
    """`*/gpu` is whichever GPU the container already names, of any maker."""
    if not resource.endswith("/gpu"):
        return resource
    return next((known for known in amounts if str(known).endswith("/gpu")), resource)


# -- volumes --------------------------------------------------------------------------------------------
def volume_name(path: str) -> str:
    return "vol-" + (re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "root")[:50].strip("-")


def volume_source(source: str) -> Document:
    """A path is a folder of the host, anything else the name of a claim."""
    if source.startswith("/"):
        return {"hostPath": {"path": source}}
    return {"persistentVolumeClaim": {"claimName": source}}


def source_of(volume: Mapping[str, Any]) -> str | None:
    """The opposite: None for a kind of volume that a single word cannot say."""
    folder, claim = volume.get("hostPath"), volume.get("persistentVolumeClaim")
    if isinstance(folder, dict) and isinstance(folder.get("path"), str):
        return str(folder["path"])
    if isinstance(claim, dict) and isinstance(claim.get("claimName"), str):
        return str(claim["claimName"])
    return None
