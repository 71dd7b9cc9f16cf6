"""Jobs on SSH hosts, for the faces: as on this machine, with the same store and supervisor, for other hosts."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oarsman import names
from oarsman.backends.base import Batch, Fit, HostRecord, JobRecord
from oarsman.backends.local.follow import changes
from oarsman.backends.stoppable import Stoppable
from oarsman.backends.stored import StoredBackend
from oarsman.control.ssh import known_inventories
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.engines.hosts.ssh.inventory_file import find, load
from oarsman.job.job import Job
from oarsman.manifest import job_from_document
from oarsman.plan.capacity.amounts import Capacity
from oarsman.store.paths import Paths

if TYPE_CHECKING:
    from oarsman.backends.base import Preview


class SshBackend(StoredBackend):
    engine = "ssh"

    def __init__(self, hosts: str | None = None, paths: Paths | None = None) -> None:
        super().__init__(paths)
        self._given = hosts
        self._known_inventories = known_inventories(self._paths)
        self._asking = threading.Lock()

    @property
    def inventory(self) -> Path:
        return find(self._given).absolute()

    def check(self) -> None:
        """Raises what is wrong with the inventory, before somebody relies on it."""
        load(self.inventory)

    def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replace: bool = False,
        owner: str | None = None,
    ) -> JobRecord:
        job_from_document(document)  # what is wrong with the job is said before what is wrong with the hosts
        wanted = self._with_inventory(document)
        return super().submit(wanted, environment=environment, folder=folder, replace=replace, owner=owner)

    def _with_inventory(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The job with the hosts it is for."""
        wanted = copy.deepcopy(dict(document))
        annotations = wanted.setdefault("metadata", {}).setdefault("annotations", None) or {}
        wanted["metadata"]["annotations"] = annotations
        if names.ANNOTATION_INVENTORY not in annotations:
            annotations[names.ANNOTATION_INVENTORY] = str(self.inventory)
        return wanted

    # -- the jobs that run there, and no others; of the rest of the store, those that are asked for by name ---------
    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        return [record for record in super().list(namespace) if record.engine == self.engine]

    def follow(self, namespace: str | None = None) -> Stoppable[Batch]:
        return Stoppable(lambda stop: _on_hosts(changes(self._paths, self._store, self._record, namespace, stop)))

    # -- the hosts --------------------------------------------------------------------------------------------------
    def inventory_facts(self, file: Path | None = None) -> InventoryFacts:
        """What the hosts said lately; one thread asks them, the others wait for the same answers."""
        with self._asking:
            inventory_facts = self._known_inventories.of(str(file or self.inventory))
            if not inventory_facts.fresh:
                asyncio.run(inventory_facts.look())
            return inventory_facts

    def hosts(self) -> Sequence[HostRecord]:
        from oarsman.backends.ssh import capacity

        return capacity.hosts(self.inventory_facts(), self._unsettled(), datetime.now(UTC), self._paths)

    def held(self) -> Mapping[str, Capacity]:
        """What jobs have of each host, without asking any of them."""
        from oarsman.backends.ssh import capacity

        return capacity.held(self._unsettled(), datetime.now(UTC), self._paths)

    def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        from oarsman.backends.ssh import capacity

        job = job_from_document(document)
        answer = self._in_its_environment(job).admission
        inventory_facts = self.inventory_facts(_inventory(job))
        found = capacity.fit(job, owner or "", inventory_facts, self._unsettled(), datetime.now(UTC), self._paths)
        return found if answer is None else replace(found, now=False, reason=answer.reason, machines={})

    def refusals(self, job: Job) -> Sequence[str]:
        """What of it SSH hosts cannot honour."""
        from oarsman.backends.ssh import preview

        return preview.refusals(job)

    def preview(self, document: Mapping[str, Any], environment: Mapping[str, str]) -> Preview:
        """What a job would be on these hosts."""
        from oarsman.backends.ssh import preview

        job = job_from_document(document)
        return preview.preview(job, self.fit(document), self.inventory_facts(_inventory(job)), environment)


def _inventory(job: Job) -> Path | None:
    """The hosts that the job itself names."""
    stated = job.annotation(names.ANNOTATION_INVENTORY)
    return Path(stated) if stated else None


def _on_hosts(batches: Generator[Batch, None, None]) -> Generator[Batch, None, None]:
    with closing(batches):
        for batch in batches:
            yield replace(
                batch, records=tuple(record for record in batch.records if record.engine == SshBackend.engine)
            )
