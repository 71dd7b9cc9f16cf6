"""What people hand in as a job: the same for both clients."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from oarsman.client.mpijob import MPIJob, text_of
from oarsman.client.places import current_folder
from oarsman.errors import UsageError
from oarsman.service.models import Create, EnvironmentSpec, SweepSpec, Value

Wanted = MPIJob | Mapping[str, Any] | Sequence[str] | str | os.PathLike[str]
V = TypeVar("V", bound=Value)
_FILES = (".yaml", ".yml", ".json")


def create(
    wanted: Wanted,
    changes: Mapping[str, Any],
    *,
    namespace: str | None,
    here: bool,
    environment: Mapping[str, str] | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    replace: bool = False,
) -> Create:
    """`here`: this machine hands the job in; it inherits the variables and the current folder as from the command."""
    if isinstance(environment, str):  # the name of one, as MPIJob takes it
        changes, environment = {**changes, "environment": environment}, None
    text, job = _text_or_job(wanted, changes)
    if namespace:
        job = (job or MPIJob.from_yaml(text)).placed(namespace)
    variables = dict(os.environ) if here and environment is None else dict(environment or {})
    place = current_folder() if here and folder is None else folder
    return Create(
        manifest=None if job is not None else text,
        document=job.to_dict() if job is not None else None,
        folder=os.fspath(place) if place is not None else None,
        environment=variables,
        replace=replace,
    )


def _text_or_job(wanted: Wanted, changes: Mapping[str, Any]) -> tuple[str, MPIJob | None]:
    """With the changes. Text stays text where it can: then a mistake is reported with its line."""
    if isinstance(wanted, MPIJob | Mapping):
        job = MPIJob.from_dict(wanted) if isinstance(wanted, Mapping) else wanted
        return "", job.changed(**changes)
    if words := _command(wanted):
        return "", MPIJob(changes.get("name"), command=words, **{k: v for k, v in changes.items() if k != "name"})
    is_text = isinstance(wanted, str) and not _names_a_file(wanted)
    text = str(wanted) if is_text else text_of(Path(os.fspath(wanted)))  # type: ignore[arg-type]  # no words: a path
    return text, MPIJob.from_yaml(text).changed(**changes) if changes else None


def _command(wanted: Wanted) -> list[str]:
    """The words of a command; empty if it is none."""
    if isinstance(wanted, MPIJob | Mapping | os.PathLike):
        return []
    if isinstance(wanted, str):
        if "\n" in wanted or _names_a_file(wanted) or wanted.lstrip().startswith("{"):
            return []
        words = shlex.split(wanted)
    else:
        words = [os.fspath(word) for word in wanted]
    if not words:
        raise UsageError("there is nothing to run", hint='client.run(["python", "train.py"], workers=2)')
    return words


def _names_a_file(text: str) -> bool:
    return "\n" not in text and text.endswith(_FILES) and not any(c.isspace() for c in text.strip())


def sweep_manifest(wanted: Wanted, changes: Mapping[str, Any]) -> str:
    """The text of a manifest with placeholders. Text stays as it is: a placeholder may stand where a number belongs."""
    text, job = _text_or_job(wanted, changes)
    return text if job is None else job.to_yaml()


def sweep_spec(**given: Any) -> SweepSpec:
    return valid(SweepSpec, {name: value for name, value in given.items() if value is not None})


def environment_spec(name: str, requirements: str | Path | Sequence[str], more: Mapping[str, Any]) -> EnvironmentSpec:
    if isinstance(requirements, Path):
        requirements = text_of(requirements, field="requirements")
    text = requirements if isinstance(requirements, str) else "\n".join(requirements)
    return valid(EnvironmentSpec, {"name": name, "requirements": text, **more})


def valid(model: type[V], given: Mapping[str, Any], *, depth: int = 2) -> V:
    """Raises UsageError that names what is wrong: the field, and so many steps into it."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"][:depth]))
        raise UsageError(f"{where}: {first['msg']}", field=where) from error


def key_of(name: str, namespace: str) -> str:
    """The key of `name` or `namespace/name`."""
    parts = name.split("/")
    if not all(parts) or len(parts) > 2:
        raise UsageError(f"'{name}' is not the name of a job", hint="write name or namespace/name")
    return name if len(parts) == 2 else f"{namespace}/{name}"
