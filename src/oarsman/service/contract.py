"""Everything one can ask of Oarsman, whoever answers: the service in this process, or a server through REST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from oarsman.backends.base import LogLine
from oarsman.service.models import (
    Attention,
    BuildLogView,
    Clone,
    Create,
    EnvironmentSpec,
    EnvironmentView,
    EventView,
    HostUsageView,
    HostView,
    JobChange,
    JobList,
    JobQuery,
    JobView,
    LogFilter,
    LogPageView,
    Overview,
    PlanView,
    PreviewView,
    Progress,
    QueueEntry,
    ServerInfo,
    SweepSpec,
    SweepView,
    Template,
    UsagePoint,
)

ALL_JOBS = JobQuery()
ALL_LINES = LogFilter()


class Service(Protocol):
    """`key` is "namespace/name". Errors are those of oarsman.errors, wherever the work was done."""

    def close(self) -> None:
        """Whatever is followed or handed in through it ends."""
        ...

    def info(self) -> ServerInfo: ...
    def overview(self) -> Overview: ...

    # -- jobs ----------------------------------------------------------------------------------------
    def jobs(self, query: JobQuery = ALL_JOBS) -> JobList: ...
    def job(self, key: str) -> JobView: ...
    def create(self, wanted: Create) -> JobView: ...
    def delete(self, key: str) -> None: ...
    def scale(self, key: str, workers: int) -> JobView: ...
    def suspend(self, key: str) -> JobView: ...
    def resume(self, key: str) -> JobView: ...
    def stop(self, key: str) -> JobView: ...
    def rerun(self, key: str) -> JobView:
        """An ended job once more, under its own name; what it left is deleted first."""
        ...

    def clone(self, key: str, wanted: Clone) -> JobView:
        """A new job like this one; submitted at once."""
        ...

    def changes(self, query: JobQuery = ALL_JOBS) -> Iterator[JobChange]:
        """First a reset and every job that matches, then what changes; for ever."""
        ...

    def watch(self, key: str, *, timeout: float | None = None) -> Iterator[JobView]:
        """The job now and after each change, until it is gone. Raises TimeoutError after so many seconds."""
        ...

    # -- what a job said and did ---------------------------------------------------------------------
    def events(self, key: str) -> Sequence[EventView]: ...
    def log(
        self,
        key: str,
        only: LogFilter = ALL_LINES,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPageView: ...
    def follow_log(
        self, key: str, only: LogFilter = ALL_LINES, *, after: str | None = None
    ) -> Iterator[LogPageView]: ...
    def lines(
        self,
        key: str,
        only: LogFilter = ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[Sequence[LogLine]]:
        """All lines, or the last ones, a block at a time; with `follow` as they come, until the attempt is over."""
        ...

    def download_log(self, key: str, only: LogFilter = ALL_LINES) -> Iterator[bytes]: ...
    def usage(self, key: str, *, since: datetime | None = None) -> Sequence[UsagePoint]: ...
    def usage_now(self, key: str) -> Sequence[HostUsageView]: ...
    def attention(self, key: str) -> Attention: ...
    def progress(self, key: str) -> Progress:
        """The numbers its lines name, and how far each rank is; of the newest attempt."""
        ...

    # -- before it runs ------------------------------------------------------------------------------
    def preview(self, wanted: Create) -> PreviewView:
        """Problems with their places, or what the job would become and whether it fits. Changes nothing."""
        ...

    def plan(self, wanted: Create) -> PlanView:
        """Everything the job would be, in full. Raises what is wrong with it. Changes nothing."""
        ...

    def templates(self) -> Sequence[Template]: ...
    def convert(self, document: Mapping[str, Any], api_version: str) -> tuple[str, Sequence[str]]:
        """YAML of that version, and what could not be carried over."""
        ...

    # -- the place -----------------------------------------------------------------------------------
    def hosts(self) -> Sequence[HostView]: ...
    def queue(self) -> Sequence[QueueEntry]: ...

    # -- environments --------------------------------------------------------------------------------
    def environments(self) -> Sequence[EnvironmentView]: ...
    def environment(self, name: str) -> EnvironmentView: ...
    def put_environment(self, wanted: EnvironmentSpec) -> EnvironmentView:
        """Make it, or change it; the build goes on after the answer."""
        ...

    def delete_environment(self, name: str) -> None: ...
    def environment_log(self, name: str, after: int = 0) -> BuildLogView:
        """What its build wrote behind that place."""
        ...

    # -- sweeps --------------------------------------------------------------------------------------
    def sweeps(self, namespace: str | None = None) -> Sequence[SweepView]:
        """Without their points, the newest first; of one namespace, or of all."""
        ...

    def sweep(self, key: str) -> SweepView: ...
    def create_sweep(self, wanted: SweepSpec) -> SweepView:
        """Begin one, or go on with it where it is there already and the same."""
        ...

    def stop_sweep(self, key: str) -> SweepView: ...
    def resume_sweep(self, key: str) -> SweepView:
        """Points that ended are not run again; those that were stopped, or have no job, are."""
        ...

    def delete_sweep(self, key: str) -> None: ...
