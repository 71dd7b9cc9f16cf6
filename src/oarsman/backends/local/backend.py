"""The jobs of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.backends.base import Fit, HostRecord, Preview
from oarsman.backends.stored import StoredBackend
from oarsman.job.job import Job
from oarsman.portal import in_thread


class LocalBackend(StoredBackend):
    place = "local"

    @in_thread
    def hosts(self) -> Sequence[HostRecord]:
        from oarsman.backends.local import capacity

        return [capacity.host(self._unsettled(), datetime.now(UTC), asks=self._asks)]

    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        job = replace(await asyncio.to_thread(self._read, document), owner=owner or "")
        if job.annotation(names.ANNOTATION_INVENTORY):
            from oarsman.backends.ssh.backend import SshBackend

            return await SshBackend(None, self._paths).fit(document, owner=owner)
        return await self._fit(job)

    @in_thread
    def _fit(self, job: Job) -> Fit:
        from oarsman.backends.local import capacity

        answer = self._in_its_environment(job).admission
        found = replace(capacity.this_machine().fit(job, self._unsettled(), datetime.now(UTC)), machines={})
        return found if answer is None else replace(found, now=False, reason=answer.reason)

    @in_thread
    def preview(self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path) -> Preview:
        from oarsman.backends.local import capacity  # late: it imports the whole engine

        job = self._read(document)
        self._in_its_environment(job)
        return capacity.preview(job, environment, folder, trusts=self._trusts)
