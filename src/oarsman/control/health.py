"""What the kubelet and Prometheus ask: `/healthz`, `/readyz` and `/metrics`.

A check answers with the reason why not, or with nothing if all is well. Not alive means: restart me. Not ready means:
do not count on me yet. A process that follows the leader is both alive and ready. Probes may be asked by anybody,
metrics by whoever the cluster lets read them (`metrics_access.py`).

Metrics that upstream's dashboards know keep their names letter by letter; ours begin with `oarsman_`. The caller counts
a fact when it became one (a status write that was accepted), so nothing is counted twice. No label takes a value that
a user could make up without end: what is unknown beyond a bound is called `other`.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from oarsman.control.metrics_access import PATH, MetricsReaders, own_certificate
from oarsman.engines.kube.lease import Election
from oarsman.errors import UsageError
from oarsman.version import __version__

log = logging.getLogger("oarsman.health")

Check = Callable[[], str | None]
Clock = Callable[[], float]

LEASE_GRACE = 20.0  # seconds after the lease's end, as upstream has it
LONGEST_TURN = 1800.0  # a thousand pods at the five requests a second that some ask for take minutes
LONGEST_SILENCE = 30.0

RESULTS = ("ok", "retry", "error")  # how a turn ended
OTHER = "other"
_MOST_VALUES = 64  # of one label

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PATIENT = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """One registry per operator: two of them in one process, as in tests, do not share numbers."""

    def __init__(self, *, process: bool = True) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else every counter has a second series
        self.registry = registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        quick = partial(Histogram, buckets=_QUICK, registry=registry)
        # -- those of upstream
        self.created = counter("mpi_operator_jobs_created_total", "MPIJobs taken up.")
        self.successful = counter("mpi_operator_jobs_successful_total", "MPIJobs that succeeded.")
        self.failed = counter("mpi_operator_jobs_failed_total", "MPIJobs that failed.")
        self._info = gauge("mpi_operator_job_info", "1 for each MPIJob there is.", ["launcher", "namespace"])
        self.leader = gauge("mpi_operator_is_leader", "1 while this process leads.")
        # -- turns and jobs
        self.queue_depth = gauge("oarsman_queue_depth", "Jobs that wait for a turn or have one.")
        self._turns = quick("oarsman_reconcile_seconds", "Length of a turn of a job.", ["result"])
        for result in RESULTS:
            self._turns.labels(result)
        self._starts = Histogram(
            "oarsman_job_start_seconds",
            "From a job's creation to the start of its launcher.",
            buckets=_PATIENT,
            registry=registry,
        )
        self._jobs = gauge("oarsman_jobs", "MPIJobs by state.", ["state"])
        self.status_writes = counter("oarsman_status_writes_total", "Status writes that were accepted.")
        gauge("oarsman_build_info", "1, with the version.", ["version"]).labels(__version__).set(1)
        # -- requests
        labels = ["verb", "resource", "code"]
        self._requests = counter("oarsman_api_requests_total", "Requests to the API server; code 0: no answer.", labels)
        self._request_seconds = quick("oarsman_api_request_seconds", "Length of a request to the API server.", ["verb"])
        self._resources, self._verbs, self._states = (_Bounded() for _ in range(3))

    def launcher_seen(self, namespace: str, launcher: str) -> None:
        self._info.labels(launcher=launcher, namespace=namespace).set(1)

    def job_gone(self, namespace: str, launcher: str) -> None:
        """Unlike upstream's, the series goes with the job. One that was never seen is no error."""
        with suppress(KeyError):  # raised by older versions of the library only
            self._info.remove(launcher, namespace)

    def started_after(self, seconds: float) -> None:
        self._starts.observe(max(seconds, 0.0))  # the launcher's node may be slow by a second

    def jobs(self, counts: Mapping[str, int]) -> None:
        """How many jobs are in each state now. A state that is not mentioned has none."""
        summed: dict[str, int] = {}
        for state, count in counts.items():
            known = self._states.bound(state)
            summed[known] = summed.get(known, 0) + count
        for state in self._states:
            self._jobs.labels(state).set(summed.get(state, 0))

    def turn(self, result: str, seconds: float) -> None:
        self._turns.labels(result if result in RESULTS else "error").observe(max(seconds, 0.0))

    def request(self, verb: str, plural: str, status: int | None, seconds: float) -> None:
        """What the client calls after each request; `status` is 0 or None if no answer came."""
        verb, plural = self._verbs.bound(verb), self._resources.bound(plural)
        code = str(status) if status is not None and 100 <= status <= 599 else "0"
        self._requests.labels(verb, plural, code).inc()
        self._request_seconds.labels(verb).observe(max(seconds, 0.0))

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """The text, in the form the reader accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _Bounded(dict[str, None]):
    """The first so many values of a label pass; later ones are all `other`."""

    def bound(self, value: str) -> str:
        known = value if value in self or len(self) < _MOST_VALUES else OTHER
        self[known] = None
        return known


def lease_is_renewed(election: Election) -> Check:
    """Fails if this process is in office long after its lease has ended: it should have left by itself."""

    def check() -> str | None:
        seconds = election.unrenewed_for
        if seconds is None or seconds <= election.duration + LEASE_GRACE:
            return None
        return f"leads, but its lease was last renewed {seconds:.0f} s ago"

    return check


@dataclass(eq=False)
class Turns:
    """Notices a turn that does not end."""

    longest: float = LONGEST_TURN
    clock: Clock = time.monotonic
    _begun: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        self._begun[key] = self.clock()
        try:
            yield
        finally:
            self._begun.pop(key, None)

    def __call__(self) -> str | None:
        key = min(self._begun, key=self._begun.__getitem__, default=None)
        if key is None:
            return None
        seconds = self.clock() - self._begun[key]
        return f"the turn of {key} has not ended for {seconds:.0f} s" if seconds > self.longest else None


@dataclass(eq=False)
class Reachable:
    """Notices an API server that does not answer any more. Fed with the outcome of every request."""

    longest: float = LONGEST_SILENCE
    clock: Clock = time.monotonic
    _answered: bool = False
    _failing_since: float | None = None

    def request(self, verb: str, plural: str, status: int | None, seconds: float) -> None:
        if status is not None and 0 < status < 500:  # a refusal is an answer
            self._answered = True
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = self.clock()

    def __call__(self) -> str | None:
        if not self._answered:
            return "the API server has not answered yet"
        if self._failing_since is None:
            return None
        seconds = self.clock() - self._failing_since
        return f"the API server has not answered for {seconds:.0f} s" if seconds > self.longest else None


@dataclass(eq=False, kw_only=True)
class HealthServer:
    """Serves on one or two ports; port 0 is off. Checks run when asked for.

    With `readers` the metrics are behind TLS, and for these alone. They have a port of their own then, because probes
    are plain.
    """

    alive: Mapping[str, Check]
    ready: Mapping[str, Check]
    metrics: Metrics
    health_port: int
    monitoring_port: int
    readers: MetricsReaders | None = None  # None: anybody may read them
    address: str = ""  # empty: every address of the machine
    _runners: list[web.AppRunner] = field(default_factory=list)

    async def start(self) -> None:
        if self.readers is not None and self.monitoring_port and self.monitoring_port == self.health_port:
            wrong = f"port {self.health_port} cannot serve both plain probes and metrics with authentication"
            raise UsageError(wrong, hint="choose another --monitoring-port, or --no-monitoring-auth")
        routes: dict[int, list[web.RouteDef]] = {}
        if self.health_port:
            health = routes.setdefault(self.health_port, [])
            health += [web.get("/healthz", self._answer(self.alive)), web.get("/readyz", self._answer(self.ready))]
        if self.monitoring_port:
            routes.setdefault(self.monitoring_port, []).append(web.get(PATH, self._scrape))
        try:
            for port, served in routes.items():
                private = self.readers is not None and port == self.monitoring_port
                await self._serve(port, served, own_certificate() if private else None)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        while self._runners:
            await self._runners.pop().cleanup()

    async def _serve(self, port: int, routes: list[web.RouteDef], tls: ssl.SSLContext | None) -> None:
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        self._runners.append(runner)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.address or None, port, ssl_context=tls).start()
        except OSError as error:
            hint = "choose others with --health-port and --monitoring-port; 0 is off"
            raise UsageError(f"cannot listen on port {port}: {error.strerror or error}", hint=hint) from error
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
        if self.readers is not None:
            verdict = await self.readers.verdict(request.headers.get("Authorization", ""))
            if verdict.status != 200:
                told = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
                return web.Response(status=verdict.status, text=f"{verdict.why}\n", headers=told)
        body, content_type = self.metrics.expose(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _reason(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        log.exception("the check %s failed itself", name)
        return f"the check failed: {error!r}"
