"""The backends a server opens: one for everybody on this machine, one per token on a cluster.

On Kubernetes the server has no rights of its own: a request is answered with what the caller's own token may
see and do. The gate has had the token verified before it comes here. Backends that nobody has used for a while are
closed, and there are never more than a few hundred.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from oarsman.backends.base import Backend
from oarsman.console.api.followers import Followers
from oarsman.console.rights import RightsThere
from oarsman.errors import UnauthenticatedError
from oarsman.service.job_index import JobIndex
from oarsman.service.progress import ProgressKept
from oarsman.service.sweeps import Sweeping
from oarsman.text.sentence import Text

_MOST_BACKENDS = 256
_IDLE_SECONDS = 600.0
_POINTS_AT_FIRST = 20  # of a sweep, before whoever began it gets an answer


class OpenBackend:
    """A way to jobs, with the thread that follows them and the threads that follow their logs."""

    def __init__(self, jobs: Backend, engine: str) -> None:
        self.jobs = jobs
        self.engine = engine
        self.job_index = JobIndex(jobs)
        self.followers = Followers(jobs)
        self.progress = ProgressKept()
        self.sweeping = Sweeping(at_first=_POINTS_AT_FIRST)
        self.rights = RightsThere(getattr(jobs, "may_change", None), self._namespaces)

    def _namespaces(self) -> list[str]:
        """The one of manifests that mention none, and those in which there are jobs."""
        home = [self.jobs.home] if self.jobs.home else []
        return list(dict.fromkeys([*home, *(key.partition("/")[0] for key in self.job_index.keys())]))  # noqa: SIM118

    @property
    def busy(self) -> bool:
        return bool(self.job_index.subscribers or len(self.followers) or self.sweeping.busy)

    def close(self) -> None:
        self.sweeping.close()
        self.job_index.close()
        self.followers.close()
        if (close := getattr(self.jobs, "close", None)) is not None:
            close()


@dataclass(slots=True)
class _Held:
    backend: OpenBackend
    used: float


class Backends:
    """`open_with(token)` opens a backend; token None: with the rights of whoever started the server.

    `tokens_needed`: nobody gets that one, because others than its owner can reach the server.
    """

    def __init__(
        self,
        open_with: Callable[[str | None], Backend],
        engine: str,
        *,
        per_token: bool = False,
        tokens_needed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self.per_token = per_token
        self.tokens_needed = per_token and tokens_needed
        self._open_with = open_with
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()  # the one used longest ago comes first

    def backend(self, token: str | None = None) -> OpenBackend:
        if self.tokens_needed and not token:
            raise UnauthenticatedError(
                Text("this server acts with your own rights on the cluster, and has no token of yours"),
                hint=Text(
                    "log in with one, or send `Authorization: Bearer TOKEN`; `kubectl create token NAME` makes one"
                ),
            )
        name = _name(token if self.per_token else None)
        with self._lock:
            held = self._held.get(name)
            if held is None:
                held = self._held[name] = _Held(OpenBackend(self._open_with(token), self.engine), 0.0)
            held.used = self._clock()
            self._held.move_to_end(name)
            spare = self._spare()
        for backend in spare:
            backend.close()
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

    def close(self) -> None:
        with self._lock:
            held, self._held = list(self._held.values()), OrderedDict()
        for one in held:
            one.backend.close()


def _name(token: str | None) -> str:
    return hashlib.sha256(token.encode()).hexdigest() if token else ""
