"""Jobs on SSH hosts, for the faces: as on this machine, with the same store and supervisor, for other hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.backends.base import Fit, HostRecord, Preview
from oarsman.backends.local.follow import legible
from oarsman.backends.stored import StoredBackend
from oarsman.control.host_state import known_inventories
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.inventory_file import find, load
from oarsman.job.job import Job
from oarsman.plan.capacity.amounts import Capacity
from oarsman.portal import in_thread
from oarsman.store.paths import Paths


class SshBackend(StoredBackend):
    place = "ssh"
    shown = "ssh"  # of the rest of the store, those that are asked for by name

    def __init__(self, hosts: str | None = None, paths: Paths | None = None, *, any_inventory: bool = True) -> None:
        super().__init__(paths, any_inventory=any_inventory)
        self._given = hosts
        self._known_inventories = known_inventories(self._paths)
        self._reading = asyncio.Lock()

    @property
    def inventory(self) -> Path:
        return find(self._given).absolute()

    @property
    def _own_inventory(self) -> str:
        return str(self.inventory)

    @in_thread
    def check(self) -> None:
        load(self.inventory)

    @in_thread
    def read(self) -> tuple[Inventory, Paths]:
        """The inventory as it is now, and where it is kept what its hosts said."""
        return load(self.inventory), self._paths

    def _wanted(self, job: Job) -> Job:
        """With the hosts it is for."""
        if names.ANNOTATION_INVENTORY in job.annotations:
            return job
        named = {names.ANNOTATION_INVENTORY: str(self.inventory)}
        metadata = job.document["metadata"]
        metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **named}}
        return replace(job, annotations={**job.annotations, **named}, document={**job.document, "metadata": metadata})

    async def inventory_facts(self, job: Job | None = None) -> InventoryFacts:
        """What the hosts, or those that the job itself names, said lately; one asks them, the others wait for the same
        answers."""
        stated = job.annotation(names.ANNOTATION_INVENTORY) if job is not None else ""
        async with self._reading:
            inventory_facts = await asyncio.to_thread(lambda: self._known_inventories.of(stated or str(self.inventory)))
        if self._asks and not inventory_facts.fresh:
            await inventory_facts.look()
        return inventory_facts

    async def hosts(self) -> Sequence[HostRecord]:
        from oarsman.backends.ssh import capacity

        facts = await self.inventory_facts()
        return await asyncio.to_thread(lambda: capacity.hosts(facts, self._unsettled(), datetime.now(UTC), self._paths))

    @in_thread
    def held(self) -> Mapping[str, Capacity]:
        from oarsman.backends.ssh import capacity

        return capacity.held(self._unsettled(), datetime.now(UTC), self._paths)

    @in_thread
    def failed_on(self) -> Mapping[str, float]:
        """By host: when an attempt last failed of which it, or a rank on it, was the cause."""
        found: dict[str, float] = {}
        for record in legible(self._store.changes(None).jobs, self._record, self.place):
            for attempt in record.status.attempts:
                if attempt.ended is not None and attempt.cause is not None and attempt.cause.host:
                    host = record.status.machines.get(attempt.cause.host, attempt.cause.host)
                    found[host] = max(found.get(host, 0.0), attempt.ended.timestamp())
        return found

    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        from oarsman.backends.ssh import capacity

        job = await asyncio.to_thread(self._read, document)
        answer = (await asyncio.to_thread(self._in_its_environment, job)).admission
        facts = await self.inventory_facts(job)
        site, job = capacity.site(facts.machines(), self._paths), replace(job, owner=owner or "")
        found = await asyncio.to_thread(lambda: site.fit(job, self._unsettled(), datetime.now(UTC)))
        return found if answer is None else replace(found, now=False, reason=answer.reason, machines={})

    def refusals(self, job: Job) -> Sequence[str]:
        from oarsman.backends.ssh import capacity

        return capacity.refusals(job)

    async def preview(self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path) -> Preview:
        from oarsman.backends.ssh import capacity

        job = await asyncio.to_thread(self._read, document)
        fit, inventory_facts = await self.fit(document), await self.inventory_facts(job)
        known = inventory_facts.facts
        facts = {name: known[name] for name in set(fit.machines.values()) if name in known}
        if self._trusts:
            facts = await inventory_facts.for_mpi_of(job, facts)
        told = partial(capacity.preview, trusts=self._trusts)
        return await asyncio.to_thread(told, job, fit, inventory_facts, environment, {**known, **facts})
