"""The faces' door to jobs on SSH hosts: that of this machine, with the same store and supervisor, for other hosts."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.engines.bare.over_ssh.inventory import load
from oarsman.engines.bare.over_ssh.survey import Survey
from oarsman.manifest import job_from_document
from oarsman.runtime.embedded import EmbeddedJobs
from oarsman.runtime.inventories import find
from oarsman.runtime.jobs import Fit, HostRecord, JobRecord
from oarsman.runtime.racks import surveys_of
from oarsman.store.places import Places


class RackJobs(EmbeddedJobs):
    engine = "ssh"

    def __init__(self, hosts: str | None = None, places: Places | None = None) -> None:
        super().__init__(places)
        self._given = hosts

    @property
    def inventory(self) -> Path:
        return find(self._given).absolute()

    def submit(
        self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path, replace: bool = False,
        owner: str | None = None,
    ) -> JobRecord:  # fmt: skip
        job_from_document(document)  # what is wrong with the job is said before what is wrong with the hosts
        wanted = self._with_inventory(document)
        return super().submit(wanted, environment=environment, folder=folder, replace=replace, owner=owner)

    def _with_inventory(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The job with the hosts it is for, which are read once before: mistakes in them are the submitter's to see."""
        wanted = copy.deepcopy(dict(document))
        annotations = wanted.setdefault("metadata", {}).setdefault("annotations", None) or {}
        wanted["metadata"]["annotations"] = annotations
        file = Path(annotations.setdefault(names.ANNOTATION_INVENTORY, str(self.inventory)))
        load(file)
        return wanted

    def _survey(self, file: Path | None = None) -> Survey:
        survey = surveys_of(self._places).of(str(file or self.inventory))
        if not survey.fresh:
            asyncio.run(survey.look())
        return survey

    def hosts(self) -> Sequence[HostRecord]:
        from oarsman.runtime import rack_room

        return rack_room.hosts(self._survey(), self._unsettled(), datetime.now(UTC), self._places)

    def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        from oarsman.runtime import rack_room

        job = job_from_document(document)
        stated = job.annotation(names.ANNOTATION_INVENTORY)
        survey = self._survey(Path(stated) if stated else None)
        return rack_room.fit(job, owner or "", survey, self._unsettled(), datetime.now(UTC), self._places)
