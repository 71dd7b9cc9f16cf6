"""What stands behind every request, of the API and of the pages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from oarsman.console.api.accounts import TheCaller
from oarsman.console.api.sse import Events, EventStream, Streams
from oarsman.console.backends import Backends, OpenBackend
from oarsman.console.security.gate import Caller, Gate, address
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


@dataclass(frozen=True, slots=True)
class RequestContext:
    console: Console
    service: JobService
    backend: OpenBackend
    address: str
    caller: Caller

    @classmethod
    def of(cls, console: Console, request: Request, caller: Caller, **more: Any) -> Self:
        backend = console.backends.backend(caller.token)
        return cls(console, console.service(backend, caller.identity), backend, address(request), caller, **more)

    async def note(self, what: str, about: str, outcome: str = "ok") -> None:
        """What changed something goes into the audit log."""
        note = self.console.gate.store.audit.note
        await run_in_threadpool(note, self.service.identity.name, self.address, what, about, outcome)

    def stream(self, events: Events) -> EventStream:
        return EventStream(self.console.streams, events, self.still_holds)

    def still_holds(self) -> bool:
        """Whether the caller is still who they were. It may ask the cluster: not for the event loop."""
        return self.console.gate.still_holds(self.caller)


async def context(request: Request, caller: TheCaller) -> RequestContext:
    return RequestContext.of(request.app.state.console, request, caller)


Context = Annotated[RequestContext, Depends(context)]
