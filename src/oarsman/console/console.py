"""What stands behind every request, of the API and of the pages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from starlette.requests import HTTPConnection

from oarsman.console.api.sse import Streams
from oarsman.console.backends import Backends, OpenBackend
from oarsman.console.security.gate import Gate
from oarsman.errors import ForbiddenError, UnauthenticatedError
from oarsman.service import JobService
from oarsman.service.models import Identity


class Console:
    """The API finds it in `app.state.console`; pages are given it."""

    def __init__(self, backends: Backends, gate: Gate, *, folder: Path | None = None) -> None:
        self.backends = backends
        self.gate = gate
        self.streams = Streams()
        self._folder = folder

    def service(self, backend: OpenBackend, identity: Identity) -> JobService:
        """For one caller. Cheap: one is made per request."""
        return JobService(
            backend.jobs,
            identity,
            backend.job_index,
            folder=self._folder,
            accounts=bool(self.gate.store.accounts.enabled()),
            progress=backend.progress,
            sweeping=backend.sweeping,
        )

    async def look_ahead(self, request: HTTPConnection) -> None:
        """What a page will need of the cluster, before it is drawn: that is done in one go.

        Raises what keeps the cluster from being asked. Whether somebody may come in is for the page to say.
        """
        if not self.backends.per_token:
            return
        with suppress(UnauthenticatedError, ForbiddenError):
            caller = await asyncio.to_thread(self.gate.caller, request)
            backend = self.backends.backend(caller.token)
            parts = request.url.path.split("/")
            try:
                await backend.rights.look(parts[2] if len(parts) > 3 and parts[1] in ("jobs", "sweeps") else None)
            except UnauthenticatedError:
                self.gate.doubt(caller)
                await asyncio.to_thread(self.gate.caller, request)

    async def close(self) -> None:
        self.streams.stop()
        await self.backends.close()
        self.gate.store.close()
