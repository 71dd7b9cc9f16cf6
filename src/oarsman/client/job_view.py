"""What both faces of a job handle show: the job as last seen, what it is asked to become, and how its end is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Self

from oarsman import names
from oarsman.client import inputs, notebook
from oarsman.client.mpijob import MPIJob
from oarsman.errors import ConflictError, JobFailed
from oarsman.job.state import Cause
from oarsman.service.models import CauseView, JobSummary, JobView, LogFilter, LogPageView
from oarsman.status.words import ENDED, STOPPED
from oarsman.text import units

Until = Literal["finished", "succeeded", "failed", "running", "suspended", "deleted"]
Wish = Until | Callable[[JobSummary], bool]
_CONDITIONS = {"succeeded": names.SUCCEEDED, "failed": names.FAILED, "suspended": names.SUSPENDED}


@dataclass(slots=True)
class Seen:
    """What was last seen of a job; a handle and its synchronous face share it."""

    key: str
    job: JobView | None
    summary: JobSummary | None


class SeenJob:
    """A job as it was when last looked at. `refresh` and `wait` look again; reading a property never does."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def _see(self, job: JobView) -> Self:
        self._seen.job, self._seen.summary = job, job.summary
        return self

    @property
    def key(self) -> str:
        """namespace/name"""
        return self._seen.key

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]

    @property
    def summary(self) -> JobSummary:
        """The row of a job list: state, reason, workers ready, ranks, times."""
        if self._seen.summary is None:
            raise ConflictError(f"{self.key} has not been looked at yet", hint="refresh() does")
        return self._seen.summary

    @property
    def state(self) -> str:
        """Pending, Queued, Running, Suspended, Restarting, Stopping or Deleting; then Succeeded, Failed or Stopped."""
        return self.summary.state

    @property
    def cause(self) -> CauseView | None:
        """Why it failed, with rank, host and last lines; None if it has not."""
        if self._seen.job is not None:
            return self._seen.job.cause
        return CauseView.of(Cause(summary=self.summary.cause)) if self.summary.cause else None

    @property
    def finished(self) -> bool:
        return (self._seen.job is not None and ended(self._seen.job)) or self.state in ENDED

    @property
    def details(self) -> JobView:
        """All that was seen: conditions, timeline, attempts, ranks, completed manifest."""
        if self._seen.job is None:
            raise ConflictError(f"only the summary of {self.key} has been looked at", hint="refresh() fetches the rest")
        return self._seen.job

    @property
    def manifest(self) -> MPIJob:
        """The job as it was given; `str()` of it, or `.to_yaml()`, is YAML."""
        return MPIJob.from_yaml(self.details.manifest)

    def __repr__(self) -> str:
        return notebook.job_text(self.key, self._seen.summary)

    def _repr_html_(self) -> str:
        return notebook.job_html(self.key, self._seen.summary, self._seen.job)


# -- waiting ----------------------------------------------------------------------------------------
def ended(job: JobView) -> bool:
    return job.summary.state in ENDED or _holds(job, names.SUCCEEDED) or _holds(job, names.FAILED)


def _holds(job: JobView, condition: str) -> bool:
    return job.summary.state == condition or any(c.type == condition and c.status for c in job.conditions)


def reached(job: JobView, wish: Wish) -> bool:
    if callable(wish):
        return wish(job.summary)
    if wish == "finished":
        return ended(job)
    if wish == "running":  # one that ran and ended while nobody looked has been running
        runs = _holds(job, names.RUNNING) and not _holds(job, names.RESTARTING)
        return runs or (ended(job) and any(step.name == "launched" for step in job.timeline))
    return wish != "deleted" and _holds(job, _CONDITIONS[wish])


def settled(job: JobView, wish: Wish, *, check: bool) -> bool:
    """Whether there is nothing more to wait for. Raises if the job failed, or can no longer become as wished."""
    met, over = reached(job, wish), ended(job) and wish != "deleted"
    if not check or not (met or over):
        return met or over
    if _holds(job, names.FAILED) and (wish in ("finished", "succeeded") or (wish == "running" and not met)):
        raise failure(job)
    if not met:
        wished = "as wished" if callable(wish) else wish
        raise ConflictError(f"{job.summary.key} cannot become {wished}: it is {job.summary.state}")
    return True


def failure(job: JobView) -> JobFailed:
    """The cause in one line: which rank, where, why."""
    cause = job.cause
    head = f"{job.summary.name} {'stopped' if job.summary.state == STOPPED else 'failed'}"
    why = cause.summary if cause is not None else job.summary.cause or job.summary.message or "nobody knows why"
    if cause is None:
        return JobFailed(f"{head}: {why}")
    who = ""
    if cause.rank is not None and f"rank {cause.rank}" not in why:
        who = f"rank {cause.rank}"
    if cause.host and cause.host not in why:
        who = f"{who} on {cause.host}".strip()
    return JobFailed(
        f"{head}: {who}: {why}" if who else f"{head}: {why}",
        hint=cause.hint,
        rank=cause.rank,
        host=cause.host,
        exit_status=cause.exit_code,
        signal=cause.signal,
        last_lines=cause.last_lines,
    )


def happening(job: JobView) -> str:
    """One line about what the job does now."""
    summary, steps = job.summary, {step.name for step in job.timeline}
    if summary.state in ENDED:
        took = units.took(summary.started or summary.created, summary.ended, datetime.now(UTC))
        why = f": {summary.cause}" if summary.cause and summary.state != names.SUCCEEDED else ""
        return f"{summary.name}: {summary.state.lower()} after {took}{why}"
    if summary.state in ("Stopping", "Deleting", "Suspended", "Restarting"):
        return f"{summary.name}: {summary.state.lower()}" + (f": {summary.message}" if summary.message else "")
    if summary.queue_position is not None:
        place = f" for room, place {summary.queue_position}" if summary.queue_position else ""
        return f"{summary.name}: waiting{place}: {summary.message}"
    if "hostsUp" not in steps:
        return f"{summary.name}: starting hosts, {summary.workers_ready} of {summary.workers}"
    return f"{summary.name}: running" + ("" if "firstOutput" in steps else ", no output yet")


# -- what is asked for --------------------------------------------------------------------------------
def log_filter(rank: int | Sequence[int] | None, worker: int | Sequence[int] | None = None, **more: Any) -> LogFilter:
    def several(given: int | Sequence[int] | None) -> Sequence[int]:
        return () if given is None else (given,) if isinstance(given, int) else tuple(given)

    return inputs.valid(LogFilter, {"ranks": several(rank), "workers": several(worker), **more}, depth=1)


def pinned(only: LogFilter, page: LogPageView) -> LogFilter:
    """For the same attempt as that page: "the newest" may be another one when it is asked for again."""
    return only.model_copy(update={"attempt": page.attempt or None})
