"""Which environment a job of this machine runs in: found by its name until it starts, and kept from then on."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.errors import ManifestError
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.manifest.problems import Problem
from oarsman.runtime.embedded_environments import state_of, tree_of
from oarsman.store.environments import Shelf, pin, pinned
from oarsman.store.places import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    tree: Path | None = None  # its folder, once it is there
    digest: str = ""
    admission: Admission | None = None  # why the job does not start yet, or never will

    def equip(self, assignment: Assignment) -> Assignment:
        """As activating a virtual environment does."""
        if self.tree is None:
            return assignment
        given = {name: value for name, value in assignment.environment.items() if name != "PYTHONHOME"}
        path = os.pathsep.join([str(self.tree / "bin"), given.get("PATH", os.defpath)])
        return replace(
            assignment, packages=self.tree, environment={**given, "VIRTUAL_ENV": str(self.tree), "PATH": path}
        )


NOTHING = Attachment()
FIELD = f"metadata.annotations[{names.ANNOTATION_ENVIRONMENT}]"


def refusal(job: Job, attachment: Attachment, known: str) -> ManifestError | None:
    """Why nobody should hand in a job like this; `known` is the hint where there is no such environment."""
    answer = attachment.admission
    if answer is None or not answer.impossible:
        return None
    name = job.annotation(names.ANNOTATION_ENVIRONMENT)
    hint = known if answer.reason.startswith("there is no") else f"`oarsman env log {name}` tells more"
    return ManifestError([Problem(source=job.name, line=0, column=0, field=FIELD, message=answer.reason, hint=hint)])


class Attaching:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._shelf = Shelf(places.state)

    def of(self, job: Job) -> Attachment:
        """As things are. A job that has started has what it started with."""
        name = job.annotation(names.ANNOTATION_ENVIRONMENT)
        if not name:
            return NOTHING
        kept = pinned(self._places.job(job.uid)) if job.uid else None
        if kept is not None:
            tree = tree_of(self._shelf, kept)
            return Attachment(tree=tree, digest=kept) if tree is not None else _never(f"environment {name} is gone")
        named = self._shelf.get(name)
        if named is None:
            return _never(f"there is no environment {name}")
        contents = self._shelf.contents(named.digest)
        state, result = state_of(contents)
        if state == "Ready":
            return Attachment(tree=contents.tree(result.tree), digest=named.digest)
        if state == "Failed":
            return _never(f"environment {name} could not be built: {result.message}")
        return Attachment(admission=_not(f"environment {name} is being built"))

    def keep(self, job: Job) -> Attachment:
        """The same when the job starts: nobody takes it away, or makes something else of it, from now on."""
        with self._shelf.alone():
            found = self.of(job)
            if found.tree is not None:
                pin(self._places.job(job.uid), found.digest)
        return found


def _not(reason: str, *, impossible: bool = False) -> Admission:
    return Admission(admitted=False, reason=reason, impossible=impossible, about=names.REASON_ENVIRONMENT)


def _never(reason: str) -> Attachment:
    return Attachment(admission=_not(reason, impossible=True))
