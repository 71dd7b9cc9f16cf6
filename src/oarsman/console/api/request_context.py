"""One request's way to a service: who asks, on which backend, and how what they did is noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from oarsman.console.api.session import TheCaller
from oarsman.console.api.sse import Events, EventStream
from oarsman.console.backends import OpenBackend
from oarsman.console.security.gate import Caller, address
from oarsman.service import JobService

if TYPE_CHECKING:
    from oarsman.console.console import Console


@dataclass(frozen=True, slots=True)
class RequestContext:
    console: Console
    service: JobService
    backend: OpenBackend
    address: str
    caller: Caller

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
    return context_of(request.app.state.console, request, caller)


def context_of(console: Console, request: Request, caller: Caller) -> RequestContext:
    """For pages too, which are an application of their own."""
    backend = console.backends.backend(caller.token)
    return RequestContext(console, console.service(backend, caller.identity), backend, address(request), caller)


Context = Annotated[RequestContext, Depends(context)]
