"""What operators scrape. Names that upstream's dashboards know are kept letter by letter; ours begin with `oarsman_`.

The caller counts a fact when it became one (a status write that was accepted), so nothing is counted twice. No label
takes a value that a user could make up without end: what is unknown beyond a bound is called `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from oarsman.version import __version__

OK, RETRY, ERROR = RESULTS = ("ok", "retry", "error")  # how a turn ended
OTHER = "other"
_MOST_VALUES = 64  # of one label

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PATIENT = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """One registry per operator: two of them in one process, as in tests, do not share numbers."""

    def __init__(self, *, process: bool = True) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else every counter has a second series
        self.registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=self.registry)
        self._of_upstream()
        self._of_the_loop()
        self._of_the_api()
        self._resources = _Bounded(_MOST_VALUES)
        self._verbs = _Bounded(_MOST_VALUES)
        self._states = _Bounded(_MOST_VALUES)

    def _of_upstream(self) -> None:
        self._created = self._counter("mpi_operator_jobs_created_total", "MPIJobs taken up.")
        self._successful = self._counter("mpi_operator_jobs_successful_total", "MPIJobs that succeeded.")
        self._failed = self._counter("mpi_operator_jobs_failed_total", "MPIJobs that failed.")
        self._info = Gauge(
            "mpi_operator_job_info", "1 for each MPIJob there is.", ["launcher", "namespace"], registry=self.registry
        )
        self._leader = Gauge("mpi_operator_is_leader", "1 while this process leads.", registry=self.registry)

    def _of_the_loop(self) -> None:
        self._depth = Gauge("oarsman_queue_depth", "Jobs that wait for a turn or have one.", registry=self.registry)
        self._turns = Histogram(
            "oarsman_reconcile_seconds",
            "Length of a turn of a job.",
            ["result"],
            buckets=_QUICK,
            registry=self.registry,
        )
        for result in RESULTS:
            self._turns.labels(result)
        self._starts = Histogram(
            "oarsman_job_start_seconds",
            "From a job's creation to the start of its launcher.",
            buckets=_PATIENT,
            registry=self.registry,
        )
        self._jobs = Gauge("oarsman_jobs", "MPIJobs by state.", ["state"], registry=self.registry)
        self._writes = self._counter("oarsman_status_writes_total", "Status writes that were accepted.")
        Gauge("oarsman_build_info", "1, with the version.", ["version"], registry=self.registry).labels(
            __version__
        ).set(1)

    def _of_the_api(self) -> None:
        self._requests = self._counter(
            "oarsman_api_requests_total", "Requests to the API server; code 0: no answer.", "verb", "resource", "code"
        )
        self._request_seconds = Histogram(
            "oarsman_api_request_seconds",
            "Length of a request to the API server.",
            ["verb"],
            buckets=_QUICK,
            registry=self.registry,
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    # -- jobs ------------------------------------------------------------------------------------------

    def job_created(self) -> None:
        self._created.inc()

    def job_succeeded(self) -> None:
        self._successful.inc()

    def job_failed(self) -> None:
        self._failed.inc()

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
        for state in self._states.values:
            self._jobs.labels(state).set(summed.get(state, 0))

    # -- the loop --------------------------------------------------------------------------------------

    def turn(self, result: str, seconds: float) -> None:
        self._turns.labels(result if result in RESULTS else ERROR).observe(max(seconds, 0.0))

    def status_written(self) -> None:
        self._writes.inc()

    def leading(self, leads: bool) -> None:
        self._leader.set(int(leads))

    def watch_queue(self, depth: Callable[[], float]) -> None:
        """The queue is asked when somebody scrapes. Who leads a second time has another queue: the last one counts."""
        self._depth.set_function(depth)

    # -- requests --------------------------------------------------------------------------------------

    def request(self, verb: str, plural: str, status: int | None, seconds: float) -> None:
        """What the client calls after each request; `status` is 0 or None if no answer came."""
        verb, plural = self._verbs.bound(verb), self._resources.bound(plural)
        code = str(status) if status is not None and 100 <= status <= 599 else "0"
        self._requests.labels(verb, plural, code).inc()
        self._request_seconds.labels(verb).observe(max(seconds, 0.0))

    # -- for who scrapes -------------------------------------------------------------------------------

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """The text, in the form the reader accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _Bounded:
    """The first so many values of a label pass; later ones are all `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.values: dict[str, None] = {}

    def bound(self, value: str) -> str:
        if value not in self.values:
            if len(self.values) >= self._most:
                value = OTHER
            self.values[value] = None
        return value
