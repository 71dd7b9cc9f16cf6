"""One request's way to a desk: who asks, through which door, and how what they did is noted."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from oarsman.console.api.sse import Events, EventStream
from oarsman.console.doors import Door
from oarsman.console.security.credentials import TOKEN_PREFIX
from oarsman.console.security.gate import Caller, address
from oarsman.sdk.desk import Desk
from oarsman.sdk.models import Identity, Role

if TYPE_CHECKING:
    from oarsman.console.server import Console


@dataclass(frozen=True, slots=True)
class Visit:
    console: Console
    desk: Desk
    door: Door
    address: str
    caller: Caller | None  # None: somebody whom only the cluster knows

    def note(self, what: str, about: str, outcome: str = "ok") -> None:
        """What changed something goes into the audit log."""
        self.console.gate.store.audit.note(self.desk.identity.name, self.address, what, about, outcome)

    def stream(self, events: Events) -> EventStream:
        return EventStream(self.console.streams, events, self._still_holds)

    def _still_holds(self) -> bool:
        return self.caller is None or self.console.gate.still_holds(self.caller)


def visit(request: Request) -> Visit:
    """Not `async`: it reads a file, which is nothing for the event loop."""
    return visit_of(request.app.state.console, request)


def visit_of(console: Console, request: Request) -> Visit:
    """For pages too, which are an application of their own."""
    token = _cluster_token(request) if console.doors.per_token else None
    if token is not None:
        door, caller, identity = console.doors.door(token), None, _of_cluster(token)
    else:
        caller = console.gate.caller(request)
        door, identity = console.doors.door(), caller.identity
    return Visit(console, console.desk(door, identity), door, address(request), caller)


Visiting = Annotated[Visit, Depends(visit)]


def _cluster_token(request: Request) -> str | None:
    """A bearer token that is not one of ours: the caller's own, for the cluster."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    return secret if scheme.lower() == "bearer" and secret and not secret.startswith(TOKEN_PREFIX) else None


def _of_cluster(token: str) -> Identity:
    """The cluster checks the token and decides what it may do, with every request. This is only what to call it."""
    return Identity(name=_subject(token) or f"token-{hashlib.sha256(token.encode()).hexdigest()[:8]}", role=Role.ADMIN)


def _subject(token: str) -> str:
    try:
        payload = token.split(".")[1]
        said: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(said.get("sub") or "")[:200]
    except (IndexError, ValueError, AttributeError):
        return ""
