"""What the kubelet and Prometheus ask: `/healthz`, `/readyz` and `/metrics`.

A check answers with the reason why not, or with nothing if all is well. Not alive means: restart me. Not ready means:
do not count on me yet. A process that follows the leader is both alive and ready.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from aiohttp import web

from oarsman.control.metrics import Metrics
from oarsman.errors import UsageError

log = logging.getLogger("oarsman.health")

Check = Callable[[], str | None]
Clock = Callable[[], float]

LEASE_GRACE = 20.0  # seconds after the lease's end, as upstream has it
LONGEST_TURN = 1800.0  # a thousand pods at the five requests a second that some ask for take minutes
LONGEST_SILENCE = 30.0


class Leadership(Protocol):
    """What is asked of an election."""

    @property
    def duration(self) -> float: ...

    @property
    def unrenewed_for(self) -> float | None:
        """Seconds since the last renewal while in office; None if not in office."""


def lease_is_renewed(election: Leadership, grace: float = LEASE_GRACE) -> Check:
    """Fails if this process is in office long after its lease has ended: it should have left by itself."""

    def check() -> str | None:
        seconds = election.unrenewed_for
        if seconds is None or seconds <= election.duration + grace:
            return None
        return f"leads, but its lease was last renewed {seconds:.0f} s ago"

    return check


class Turns:
    """Notices a turn that does not end."""

    def __init__(self, longest: float = LONGEST_TURN, clock: Clock = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._begun: dict[str, float] = {}

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        self._begun[key] = self._clock()
        try:
            yield
        finally:
            self._begun.pop(key, None)

    def __call__(self) -> str | None:
        key = min(self._begun, key=self._begun.__getitem__, default=None)
        if key is None:
            return None
        seconds = self._clock() - self._begun[key]
        return f"the turn of {key} has not ended for {seconds:.0f} s" if seconds > self._longest else None


class Reachable:
    """Notices an API server that does not answer any more. Fed with the outcome of every request."""

    def __init__(self, longest: float = LONGEST_SILENCE, clock: Clock = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._answered = False
        self._failing_since: float | None = None

    def request(self, verb: str, plural: str, status: int | None, seconds: float) -> None:
        if status is not None and 0 < status < 500:  # a refusal is an answer
            self._answered = True
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = self._clock()

    def __call__(self) -> str | None:
        if not self._answered:
            return "the API server has not answered yet"
        if self._failing_since is None:
            return None
        seconds = self._clock() - self._failing_since
        return f"the API server has not answered for {seconds:.0f} s" if seconds > self._longest else None


class HealthServer:
    """Serves on one or two ports; port 0 is off. Checks run when asked for."""

    def __init__(
        self,
        *,
        alive: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Metrics | None = None,
        health_port: int,
        monitoring_port: int,
        address: str = "",
    ) -> None:
        self._alive = alive
        self._ready = ready
        self._metrics = metrics
        self._address = address or None  # None: every address of the machine
        self._health_port = health_port
        self._monitoring_port = monitoring_port if metrics is not None else 0
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        routes: dict[int, list[web.RouteDef]] = {}
        if self._health_port:
            health = routes.setdefault(self._health_port, [])
            health += [web.get("/healthz", self._answer(self._alive)), web.get("/readyz", self._answer(self._ready))]
        if self._monitoring_port:
            routes.setdefault(self._monitoring_port, []).append(web.get("/metrics", self._scrape))
        try:
            for port, served in routes.items():
                await self._serve(port, served)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        while self._runners:
            await self._runners.pop().cleanup()

    async def _serve(self, port: int, routes: list[web.RouteDef]) -> None:
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        self._runners.append(runner)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address, port).start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error.strerror or error}",
                hint="choose others with --health-port and --monitoring-port; 0 is off",
            ) from error
        log.info("port %d serves %s", port, ", ".join(route.path for route in routes))

    def _answer(self, checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            found = {name: _reason(name, check) for name, check in checks.items()}
            reasons = [f"{name}: {reason}" for name, reason in found.items() if reason is not None]
            if reasons:
                return web.Response(status=503, text="".join(f"{reason}\n" for reason in reasons))
            return web.Response(text="ok\n")

        return answer

    async def _scrape(self, request: web.Request) -> web.Response:
        assert self._metrics is not None
        body, content_type = self._metrics.expose(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _reason(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        log.exception("the check %s failed itself", name)
        return f"the check failed: {error!r}"
