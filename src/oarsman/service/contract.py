"""Everything one can ask of Oarsman, whoever answers: the service in this process, or a server through REST.

This is the table of operations. To add one: declare it here, with its route, and write it in `JobService`. The REST
route, its description in OpenAPI, its entry in the audit log and the method of the remote client are made from this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Protocol

from pydantic import Field

from oarsman.backends.base import LogLine
from oarsman.service import models
from oarsman.service.operations import Arguments, Key, Operation, operation, operations_of

_DOTTED = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_FARTHEST = 2**53  # what a JavaScript client counts exactly
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=_LABEL, examples=["default"])]
JobKey = Annotated[str, Key("job", Field(min_length=1, max_length=253, pattern=_DOTTED, examples=["pi"]))]
SweepKey = Annotated[str, Key("sweep", Field(min_length=1, max_length=40, pattern=_LABEL, examples=["rates"]))]
EnvironmentName = Annotated[str, Field(min_length=1, max_length=63, pattern=_LABEL, examples=["torch"])]
Word = Annotated[str | None, Field(max_length=253)]
Run = Annotated[int | None, Field(ge=1, le=1_000_000, description="Of this run; default: the newest.")]
Place = Annotated[str | None, Field(max_length=200, description="As an earlier answer gave it.")]
Offset = Annotated[int, Field(ge=0, le=_FARTHEST, description="`after` of the piece before.")]
Limit = Annotated[int, Field(ge=1, le=10_000)]


def _behind(given: Arguments, page: models.LogPageView) -> Arguments:
    pinned = given["only"].model_copy(update={"attempt": page.attempt})  # "the newest" may be another one by now
    return {**given, "only": pinned, "after": page.after}


class Service(Protocol):
    """`key` is "namespace/name". Errors are those of oarsman.errors, wherever the work was done."""

    @operation("GET", "/info", "getInfo", tag="place", title="Info")
    async def info(self) -> models.ServerInfo:
        """The server, its engine, and who you are."""

    @operation("GET", "/overview", "getOverview", tag="place", title="Overview")
    async def overview(self) -> models.Overview:
        """Jobs by state, what there is and what is used, and what failed in the last day."""

    # -- jobs ----------------------------------------------------------------------------------------
    @operation("GET", "/jobs", "listJobs")
    async def jobs(self, query: models.JobQuery = models.ALL_JOBS) -> models.JobList:
        """One page of the jobs you may see."""

    @operation("GET", "/jobs/{namespace}/{name}", "getJob")
    async def job(self, key: JobKey, *, run: Run = None) -> models.JobView:
        """All that is known of a job, but for its log, its events and its usage."""

    @operation("GET", "/jobs/{namespace}/{name}/runs", "listRuns")
    async def runs(self, key: JobKey) -> Sequence[models.JobSummary]:
        """The job and what is kept of its earlier runs, the newest first."""

    @operation(
        "POST",
        "/jobs",
        "createJob",
        status=201,
        noted="submit",
        about="{answer.summary.key}",
        location="/jobs/{answer.summary.key}",
        unsure="the job was submitted",
    )
    async def create(self, wanted: models.Create) -> models.JobView:
        """Submit one job, as YAML text or as a document. It belongs to you."""

    @operation("DELETE", "/jobs/{namespace}/{name}", "deleteJob", noted="delete", unsure="{key} was deleted")
    async def delete(self, key: JobKey) -> None:
        """End the job if it runs, and remove it with its log and its earlier runs. It is gone when its stream ends."""

    @operation(
        "POST",
        "/jobs/{namespace}/{name}/scale",
        "scaleJob",
        noted="scale",
        about="{key} to {workers}",
        body=models.Scale,
    )
    async def scale(self, key: JobKey, workers: int) -> models.JobView:
        """Change the number of workers."""

    @operation("POST", "/jobs/{namespace}/{name}/suspend", "suspendJob", noted="suspend")
    async def suspend(self, key: JobKey) -> models.JobView:
        """End its processes and keep the job, to be resumed."""

    @operation("POST", "/jobs/{namespace}/{name}/resume", "resumeJob", noted="resume")
    async def resume(self, key: JobKey) -> models.JobView:
        """Let a suspended job start again."""

    @operation("POST", "/jobs/{namespace}/{name}/stop", "stopJob", noted="stop", unsure="'stop' reached {key}")
    async def stop(self, key: JobKey) -> models.JobView:
        """End the job for good; its log and its record stay."""

    @operation(
        "POST", "/jobs/{namespace}/{name}/rerun", "rerunJob", status=201, noted="rerun", unsure="'rerun' reached {key}"
    )
    async def rerun(self, key: JobKey) -> models.JobView:
        """Run an ended job once more under its own name. What it left is kept as an earlier run, where that can be."""

    @operation(
        "POST",
        "/jobs/{namespace}/{name}/clone",
        "cloneJob",
        status=201,
        noted="clone",
        about="{key} as {answer.summary.key}",
        location="/jobs/{answer.summary.key}",
        unsure="{key} was cloned",
    )
    async def clone(self, key: JobKey, wanted: models.Clone) -> models.JobView:
        """Submit a new job like this one, with changes (a JSON merge patch), under a free name unless you give one."""

    @operation("GET", "/jobs/stream", "streamJobs")
    def changes(self, query: models.JobQuery = models.ALL_JOBS) -> AsyncGenerator[models.JobChange, None]:
        """A reset and every job that matches, then what changes. Whoever comes back gets a reset again."""

    @operation("GET", "/jobs/{namespace}/{name}/watch", "watchJob")
    def watch(self, key: JobKey) -> AsyncGenerator[models.JobView, None]:
        """The job now and after each change, until it is gone."""

    # -- what a job said and did ---------------------------------------------------------------------
    @operation("GET", "/jobs/{namespace}/{name}/events", "listEvents")
    async def events(self, key: JobKey, *, run: Run = None) -> Sequence[models.EventView]:
        """What happened to the job, oldest first."""

    @operation("GET", "/jobs/{namespace}/{name}/log", "readLog", tag="logs")
    async def log(
        self,
        key: JobKey,
        only: models.LogFilter = models.ALL_LINES,
        *,
        after: Place = None,
        before: Place = None,
        limit: Limit = 500,
    ) -> models.LogPageView:
        """Lines after a place, before one, or (neither) the last ones. Its cost does not grow with the log."""

    @operation("GET", "/jobs/{namespace}/{name}/log/stream", "followLog", tag="logs", resumed=_behind)
    def follow_log(
        self, key: JobKey, only: models.LogFilter = models.ALL_LINES, *, after: Place = None
    ) -> AsyncGenerator[models.LogPageView, None]:
        """Lines as they come, from a place on (default: the beginning), until the attempt is over.

        The id of an event is the place behind it: whoever comes back with Last-Event-ID goes on there.
        """

    @operation("GET", "/jobs/{namespace}/{name}/log/download", "downloadLog", tag="logs")
    def download_log(self, key: JobKey, only: models.LogFilter = models.ALL_LINES) -> AsyncGenerator[bytes, None]:
        """The whole log as a file."""

    @operation("GET", "/jobs/{namespace}/{name}/usage", "getUsage")
    async def usage(
        self, key: JobKey, *, since: datetime | None = None, run: Run = None
    ) -> Sequence[models.UsagePoint]:
        """CPU, memory, network and GPUs of each of its hosts while it ran, oldest first."""

    @operation("GET", "/jobs/{namespace}/{name}/usage/now", "getUsageNow")
    async def usage_now(self, key: JobKey) -> Sequence[models.HostUsageView]:
        """Processes, CPU, memory and GPUs of each of its hosts at this moment."""

    @operation("GET", "/jobs/{namespace}/{name}/attention", "getAttention")
    async def attention(self, key: JobKey) -> models.Attention:
        """Who looks after the job, and what stays after its end, where that can be asked."""

    @operation("GET", "/jobs/{namespace}/{name}/progress", "getProgress")
    async def progress(self, key: JobKey, *, run: Run = None) -> models.Progress:
        """Numbers that its lines name again and again, such as loss or images/sec, and how far each rank is."""

    # -- before it runs ------------------------------------------------------------------------------
    @operation("POST", "/preview", "previewJob", tag="before it runs", title="Preview")
    async def preview(self, wanted: models.Create) -> models.PreviewView:
        """What a manifest would become and whether it fits, or its mistakes with their places. Changes nothing."""

    @operation("POST", "/plan", "planJob", tag="before it runs", title="Plan")
    async def plan(self, wanted: models.Create) -> models.PlanView:
        """Everything a job would be: hosts, ranks, files, variables, launch line and objects. Changes nothing."""

    @operation("GET", "/templates", "listTemplates", tag="before it runs", title="Templates")
    async def templates(self) -> Sequence[models.Template]:
        """Manifests to start from."""

    @operation("POST", "/convert", "convertJob", tag="before it runs", title="Convert", body=models.Convert)
    async def convert(self, document: Mapping[str, Any], api_version: str) -> models.Converted:
        """The same job in the other version of the API, and what that version cannot say."""

    # -- the place -----------------------------------------------------------------------------------
    @operation("GET", "/hosts", "listHosts", tag="place", title="Hosts")
    async def hosts(self) -> Sequence[models.HostView]:
        """The machines, what they have, and who holds what."""

    @operation("GET", "/queue", "listQueue", tag="place", title="Queue")
    async def queue(self) -> Sequence[models.QueueEntry]:
        """The jobs that wait, in order, each with the reason."""

    @operation("POST", "/doctor", "examinePlace", tag="place", title="Examine the Place")
    async def doctor(self) -> Sequence[models.DoctorFindingView]:
        """What is there to run jobs with, what is missing, and what would help. For admins. Changes nothing."""

    @operation(
        "POST",
        "/hosts/check",
        "checkHosts",
        tag="place",
        status=202,
        noted="check hosts",
        about="{wanted.named}",
    )
    async def check_hosts(self, wanted: models.HostsCheckWanted) -> models.HostsCheckView:
        """Check SSH hosts and every way between two of them, which goes on after the answer. For admins."""

    @operation("GET", "/hosts/check", "getHostsCheck", tag="place")
    async def hosts_check(self) -> models.HostsCheckView:
        """How far the newest check is, and what it found. For admins."""

    @operation("POST", "/hosts/trust/plan", "planTrust", tag="place")
    async def plan_trust(self, wanted: models.TrustWanted) -> models.TrustView:
        """What would be changed so that all hosts can log in to each other, or to undo it. Changes nothing.

        For the owner of the server's machine. Hosts that want a password are only named.
        """

    @operation(
        "POST",
        "/hosts/trust",
        "trustHosts",
        tag="place",
        noted="trust hosts",
        about="{answer.inventory}, undo: {wanted.undo}",
    )
    async def trust_hosts(self, wanted: models.TrustOrder) -> models.TrustView:
        """Do what the plan with that mark said, and try every login. For the owner of the server's machine."""

    # -- environments --------------------------------------------------------------------------------
    @operation("GET", "/environments", "listEnvironments")
    async def environments(self) -> Sequence[models.EnvironmentView]:
        """All of them, by name, each with its state."""

    @operation("GET", "/environments/{name}", "getEnvironment")
    async def environment(self, name: EnvironmentName) -> models.EnvironmentView:
        """What is in it, how its build went, and which jobs use it."""

    @operation(
        "PUT",
        "/environments/{name}",
        "putEnvironment",
        noted="build environment",
        about="{wanted.name}",
        at={"name": EnvironmentName},
    )
    async def put_environment(self, wanted: models.EnvironmentSpec) -> models.EnvironmentView:
        """Make it, or change it. The build goes on after the answer; what is built already is not built again."""

    @operation(
        "DELETE",
        "/environments/{name}",
        "deleteEnvironment",
        noted="delete environment",
        about="{name}",
        unsure="environment {name} was deleted",
    )
    async def delete_environment(self, name: EnvironmentName) -> None:
        """Delete it with its files, unless a job that has not ended uses it."""

    @operation("GET", "/environments/{name}/log", "readBuildLog", title="Build Log")
    async def environment_log(self, name: EnvironmentName, after: Offset = 0) -> models.BuildLogView:
        """A piece of the newest build's log, from that place on; read on until it has ended."""

    # -- sweeps --------------------------------------------------------------------------------------
    @operation("GET", "/sweeps", "listSweeps")
    async def sweeps(self, namespace: Word = None) -> Sequence[models.SweepView]:
        """Those you may see, the newest first, without their points."""

    @operation("GET", "/sweeps/{namespace}/{name}", "getSweep")
    async def sweep(self, key: SweepKey) -> models.SweepView:
        """Every point with its parameters, its state, why it failed, and the number found in its log."""

    @operation(
        "POST",
        "/sweeps",
        "createSweep",
        status=201,
        noted="begin sweep",
        about="{answer.key}",
        location="/sweeps/{answer.key}",
    )
    async def create_sweep(self, wanted: models.SweepSpec) -> models.SweepView:
        """Begin a sweep; the same one again goes on with it. Nothing is submitted if any of its points is wrong."""

    @operation("POST", "/sweeps/preview", "previewSweep")
    async def preview_sweep(self, wanted: models.SweepSpec) -> models.SweepPreview:
        """How many points a sweep would have and the first of them, or its mistakes by field. Changes nothing."""

    @operation("POST", "/sweeps/{namespace}/{name}/stop", "stopSweep", noted="stop sweep")
    async def stop_sweep(self, key: SweepKey) -> models.SweepView:
        """End what runs and hand in nothing more; results stay."""

    @operation("POST", "/sweeps/{namespace}/{name}/resume", "resumeSweep", noted="resume sweep")
    async def resume_sweep(self, key: SweepKey) -> models.SweepView:
        """Go on: points that have no job, or were stopped, are run; those that ended are not repeated."""

    @operation(
        "DELETE", "/sweeps/{namespace}/{name}", "deleteSweep", noted="delete sweep", unsure="sweep {key} was deleted"
    )
    async def delete_sweep(self, key: SweepKey) -> None:
        """Delete all its jobs with their logs; those that run are ended first."""

    # -- without a route of their own ------------------------------------------------------------------
    def lines(
        self,
        key: str,
        only: models.LogFilter = models.ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        live: bool = False,
    ) -> AsyncGenerator[Sequence[LogLine], None]:
        """All lines, or the last ones, a block at a time; with `follow` as they come, until the attempt is over. With
        `live` also those that have not ended yet, as LiveLines: a block that takes the place of the one before."""

    async def close(self) -> None:
        """Hand in nothing more, and let go of what is open."""


@cache
def operations() -> Mapping[str, Operation]:
    return operations_of(Service)
