"""The jobs of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from oarsman import names
from oarsman.backends.base import Fit, HostRecord
from oarsman.backends.stored import StoredBackend
from oarsman.manifest import job_from_document


class LocalBackend(StoredBackend):
    engine = "local"

    def hosts(self) -> Sequence[HostRecord]:
        from oarsman.backends.local import capacity

        return [capacity.host(self._unsettled(), datetime.now(UTC))]

    def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        from oarsman.backends.local import capacity

        job = replace(job_from_document(document), owner=owner or "")
        if job.annotation(names.ANNOTATION_INVENTORY):
            from oarsman.backends.ssh.backend import SshBackend

            return SshBackend(None, self._paths).fit(document, owner=owner)
        answer = self._in_its_environment(job).admission
        found = capacity.fit(job, self._unsettled(), datetime.now(UTC))
        return found if answer is None else replace(found, now=False, reason=answer.reason)
