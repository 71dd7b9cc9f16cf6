"""One request's way to a desk: who asks, through which door, and how what they did is noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from oarsman.console.api.sse import Events, EventStream
from oarsman.console.backends import Door
from oarsman.console.security.gate import Caller, address
from oarsman.service import Desk

if TYPE_CHECKING:
    from oarsman.console.server import Console


@dataclass(frozen=True, slots=True)
class Visit:
    console: Console
    desk: Desk
    door: Door
    address: str
    caller: Caller

    def note(self, what: str, about: str, outcome: str = "ok") -> None:
        """What changed something goes into the audit log."""
        self.console.gate.store.audit.note(self.desk.identity.name, self.address, what, about, outcome)

    def stream(self, events: Events) -> EventStream:
        return EventStream(self.console.streams, events, self.still_holds)

    def still_holds(self) -> bool:
        """Whether the caller is still who they were. It may ask the cluster: not for the event loop."""
        return self.console.gate.still_holds(self.caller)


def visit(request: Request) -> Visit:
    """Not `async`: it reads a file and may ask a cluster, which is nothing for the event loop."""
    return visit_of(request.app.state.console, request)


def visit_of(console: Console, request: Request) -> Visit:
    """For pages too, which are an application of their own."""
    caller = console.gate.caller(request)
    door = console.doors.door(caller.token)
    return Visit(console, console.desk(door, caller.identity), door, address(request), caller)


Visiting = Annotated[Visit, Depends(visit)]
