"""What stands behind every request, of the API and of the pages.

A server opens one backend for everybody on this machine, and one per token on a cluster. On Kubernetes it has no rights
of its own: a request is answered with what the caller's own token may see and do. The gate has had the token verified
before it comes here. Backends that nobody has used for a while are closed, and there are never more than a few hundred.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from oarsman.backends.base import Backend, HasRights
from oarsman.console.api.accounts import TheCaller
from oarsman.console.api.streams import ASKED_EVERY_SECONDS, Events, EventStream, Followers, Streams, Turns
from oarsman.console.security.gate import Caller, Gate
from oarsman.errors import ForbiddenError, UnauthenticatedError
from oarsman.portal import in_background
from oarsman.service import JobService
from oarsman.service.checks import Checking
from oarsman.service.job_index import JobIndex
from oarsman.service.others import Others
from oarsman.service.progress import ProgressKept
from oarsman.service.sweeps import Sweeping
from oarsman.text.sentence import Text

_LASTS_SECONDS = 60.0
_MOST_NAMESPACES = 20  # looked at to find one in which something may be changed
_BOUND = 500
_MOST_BACKENDS = 256
_IDLE_SECONDS = 600.0
_POINTS_AT_FIRST = 20  # of a sweep, before whoever began it gets an answer


class RightsThere:
    """Of a cluster, by the user's own token; other places leave it to the roles.

    `namespaces`: those in which there are jobs to be changed.
    """

    def __init__(
        self, jobs: Backend, namespaces: Callable[[], Sequence[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._asked = jobs if isinstance(jobs, HasRights) else None
        self._namespaces = namespaces
        self._clock = clock
        self._known: dict[str | None, tuple[float, bool]] = {}

    async def look(self, namespace: str | None = None) -> bool:
        """May anything be changed there? None: anywhere. Asks if the last answer is too old."""
        if self._asked is None:
            return True
        known = self._known.get(namespace)
        if known is not None and self._clock() - known[0] < _LASTS_SECONDS:
            return known[1]
        wanted = [namespace] if namespace else [None, *self._namespaces()[:_MOST_NAMESPACES]]
        found = await self._asked.may_change(wanted)
        if len(self._known) >= _BOUND:
            self._known.clear()
        self._known[namespace] = (self._clock(), found)
        return found

    def may_change(self, namespace: str | None = None) -> bool:
        """The last answer, however old: what is tried is decided anew by the cluster, with its reason.

        Of a cluster that has not answered nothing can be changed either.
        """
        return self._asked is None or self._known.get(namespace, (0.0, False))[1]


class OpenBackend:
    """A way to jobs, with the tasks that follow them and their logs."""

    used = 0.0  # when somebody last asked for it

    def __init__(self, jobs: Backend) -> None:
        self.jobs = jobs
        self.job_index = JobIndex(jobs)
        self.followers = Followers(jobs)
        self.progress = ProgressKept()
        self.sweeping = Sweeping(at_first=_POINTS_AT_FIRST)
        self.checking = Checking()
        self.rights = RightsThere(jobs, self._namespaces)

    def _namespaces(self) -> list[str]:
        """The one of manifests that mention none, and those in which there are jobs."""
        home = [self.jobs.home] if self.jobs.home else []
        return list(dict.fromkeys([*home, *(key.partition("/")[0] for key in self.job_index.keys())]))  # noqa: SIM118

    @property
    def busy(self) -> bool:
        return bool(self.job_index.subscribers or len(self.followers) or self.sweeping.busy or self.checking.busy)

    async def close(self) -> None:
        await self.sweeping.close()
        await self.checking.close()
        await self.job_index.close()
        await self.followers.close()
        await self.jobs.close()


@dataclass(eq=False)
class Backends:
    """Of the server's event loop. `open_with(token)` opens a backend; token None: with the rights of whoever started
    the server.

    `tokens_needed`: nobody gets that one, because others than its owner can reach the server.
    """

    open_with: Callable[[str | None], Backend]
    per_token: bool = False
    tokens_needed: bool = False
    _held: OrderedDict[str, OpenBackend] = field(default_factory=OrderedDict)  # the one used longest ago comes first
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def backend(self, token: str | None = None) -> OpenBackend:
        if self.tokens_needed and not token:
            raise UnauthenticatedError(
                Text("this server acts with your own rights on the cluster, and has no token of yours"),
                hint=Text(
                    "log in with one, or send `Authorization: Bearer TOKEN`; `kubectl create token NAME` makes one"
                ),
            )
        name = hashlib.sha256(token.encode()).hexdigest() if token and self.per_token else ""
        wanted = self._held.get(name)
        if wanted is None:
            wanted = self._held[name] = OpenBackend(self.open_with(token))
        wanted.used = time.monotonic()
        self._held.move_to_end(name)
        for other, backend in list(self._held.items())[:-1]:
            idle = time.monotonic() - backend.used > _IDLE_SECONDS and not backend.busy
            if idle or len(self._held) > _MOST_BACKENDS:
                task = in_background(self._held.pop(other).close(), "closing what nobody uses")
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        return wanted

    def begin(self) -> None:
        """Where there is one backend for everybody, its jobs are read before the first one asks."""
        if not self.per_token:
            self.backend().job_index.begin()

    def __len__(self) -> int:
        return len(self._held)

    async def close(self) -> None:
        held, self._held = list(self._held.values()), OrderedDict()
        for backend in held:
            await backend.close()
        if self._closing:
            await asyncio.wait(self._closing)


class Console:
    """The API finds it in `app.state.console`; pages are given it."""

    def __init__(
        self, backends: Backends, gate: Gate, *, folder: Path | None = None, others: Others | None = None
    ) -> None:
        """`others`: what jobs get of this machine that come from accounts; None: they run elsewhere."""
        self.backends = backends
        self._others = others
        self.gate = gate
        self.streams = Streams()
        self.turns = Turns()
        self._folder = folder

    def service(self, backend: OpenBackend, caller: Caller) -> JobService:
        """For one caller. Cheap: one is made per request."""
        return JobService(
            backend.jobs,
            caller.identity,
            backend.job_index,
            folder=self._folder,
            others=self._others,
            by_account=caller.account is not None,
            accounts=bool(self.gate.store.accounts.enabled()),
            progress=backend.progress,
            sweeping=backend.sweeping,
            checking=backend.checking,
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
    caller: Caller

    @classmethod
    def of(cls, console: Console, caller: Caller, **more: Any) -> Self:
        backend = console.backends.backend(caller.token)
        return cls(console, console.service(backend, caller), backend, caller, **more)

    async def note(self, what: str, about: str, outcome: str = "ok") -> None:
        """What changed something goes into the audit log."""
        note = self.console.gate.store.audit.note
        await run_in_threadpool(note, self.caller.identity.name, self.caller.address, what, about, outcome)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """For what takes a while."""
        return self.console.turns.of(self.caller.identity.name)

    def stream(self, events: Events) -> EventStream:
        return EventStream(self.console.streams, events, self.still_holds)

    async def while_it_holds(self, blocks: AsyncGenerator[bytes, None]) -> Events:
        """However long somebody takes to take it all."""
        checked = time.monotonic()
        async with aclosing(blocks):
            async for block in blocks:
                if time.monotonic() - checked >= ASKED_EVERY_SECONDS:
                    if not await asyncio.to_thread(self.still_holds):
                        return
                    checked = time.monotonic()
                yield block

    def still_holds(self) -> bool:
        """Whether the caller is still who they were. It may ask the cluster: not for the event loop."""
        return self.console.gate.still_holds(self.caller)


async def context(request: Request, caller: TheCaller) -> RequestContext:
    return RequestContext.of(request.app.state.console, caller)


Context = Annotated[RequestContext, Depends(context)]
