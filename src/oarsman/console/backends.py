"""The backends a server opens: one for everybody on this machine, one per token on a cluster.

On Kubernetes the server has no rights of its own: a request is answered with what the caller's own token may
see and do. The gate has had the token verified before it comes here. Backends that nobody has used for a while are
closed, and there are never more than a few hundred.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oarsman.backends.base import Backend, HasRights
from oarsman.console.api.followers import Followers
from oarsman.errors import UnauthenticatedError
from oarsman.service.job_index import JobIndex
from oarsman.service.progress import ProgressKept
from oarsman.service.sweeps import Sweeping
from oarsman.text.sentence import Text

_LASTS_SECONDS = 60.0
_MOST_NAMESPACES = 20  # looked at to find one in which something may be changed
_BOUND = 500


class RightsThere:
    """Of a cluster, by the user's own token; other places leave it to the roles.

    `namespaces`: those in which there are jobs to be changed.
    """

    def __init__(
        self,
        jobs: Backend,
        namespaces: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
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


_MOST_BACKENDS = 256
_IDLE_SECONDS = 600.0
_POINTS_AT_FIRST = 20  # of a sweep, before whoever began it gets an answer


class OpenBackend:
    """A way to jobs, with the tasks that follow them and their logs."""

    def __init__(self, jobs: Backend) -> None:
        self.jobs = jobs
        self.job_index = JobIndex(jobs)
        self.followers = Followers(jobs)
        self.progress = ProgressKept()
        self.sweeping = Sweeping(at_first=_POINTS_AT_FIRST)
        self.rights = RightsThere(jobs, self._namespaces)

    def _namespaces(self) -> list[str]:
        """The one of manifests that mention none, and those in which there are jobs."""
        home = [self.jobs.home] if self.jobs.home else []
        return list(dict.fromkeys([*home, *(key.partition("/")[0] for key in self.job_index.keys())]))  # noqa: SIM118

    @property
    def busy(self) -> bool:
        return bool(self.job_index.subscribers or len(self.followers) or self.sweeping.busy)

    async def close(self) -> None:
        await self.sweeping.close()
        await self.job_index.close()
        await self.followers.close()
        await self.jobs.close()


@dataclass(slots=True)
class _Held:
    backend: OpenBackend
    used: float


class Backends:
    """Of the server's event loop. `open_with(token)` opens a backend; token None: with the rights of whoever started
    the server.

    `tokens_needed`: nobody gets that one, because others than its owner can reach the server.
    """

    def __init__(
        self,
        open_with: Callable[[str | None], Backend],
        *,
        per_token: bool = False,
        tokens_needed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_token = per_token
        self.tokens_needed = per_token and tokens_needed
        self._open_with = open_with
        self._clock = clock
        self._held: OrderedDict[str, _Held] = OrderedDict()  # the one used longest ago comes first
        self._closing: set[asyncio.Task[None]] = set()

    def backend(self, token: str | None = None) -> OpenBackend:
        if self.tokens_needed and not token:
            raise UnauthenticatedError(
                Text("this server acts with your own rights on the cluster, and has no token of yours"),
                hint=Text(
                    "log in with one, or send `Authorization: Bearer TOKEN`; `kubectl create token NAME` makes one"
                ),
            )
        name = _name(token if self.per_token else None)
        held = self._held.get(name)
        if held is None:
            held = self._held[name] = _Held(OpenBackend(self._open_with(token)), 0.0)
        held.used = self._clock()
        self._held.move_to_end(name)
        for backend in self._spare():
            task = asyncio.create_task(backend.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return held.backend

    def begin(self) -> None:
        """Where there is one backend for everybody, its jobs are read before the first one asks."""
        if not self.per_token:
            self.backend().job_index.begin()

    def _spare(self) -> list[OpenBackend]:
        """Those to be closed: unused for long, or too many."""
        now = self._clock()
        found = []
        for name, held in list(self._held.items())[:-1]:
            idle = now - held.used > _IDLE_SECONDS and not held.backend.busy
            if idle or len(self._held) > _MOST_BACKENDS:
                del self._held[name]
                found.append(held.backend)
        return found

    def __len__(self) -> int:
        return len(self._held)

    async def close(self) -> None:
        held, self._held = list(self._held.values()), OrderedDict()
        for one in held:
            await one.backend.close()
        if self._closing:
            await asyncio.wait(self._closing)


def _name(token: str | None) -> str:
    return hashlib.sha256(token.encode()).hexdigest() if token else ""
