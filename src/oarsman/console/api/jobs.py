"""Jobs: list, make, look at, change, and hear of changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Response

from oarsman.console.api import PREFIX, feeds, sse
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Context
from oarsman.service.models import (
    Attention,
    Clone,
    Create,
    EventView,
    HostUsageView,
    JobList,
    JobQuery,
    JobView,
    Progress,
    Scale,
    UsagePoint,
)

router = APIRouter(prefix=f"{PREFIX}/jobs", tags=["jobs"])

Namespace = Annotated[
    str, Path(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", examples=["default"])
]
JobName = Annotated[
    str, Path(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", examples=["pi"])
]
Text = Annotated[str | None, Query(max_length=253)]
LastEvent = Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)]


def query_of(
    namespace: Text = None,
    state: Annotated[list[str] | None, Query(max_length=20, description="May be given more than once.")] = None,
    owner: Text = None,
    engine: Text = None,
    sweep: Annotated[str | None, Query(max_length=253, description="The points of this sweep.")] = None,
    search: Annotated[str | None, Query(max_length=1000, description="In name, description, reason and cause.")] = None,
    sort: Annotated[
        str, Query(max_length=40, description="A field of JobSummary; -field: largest first.")
    ] = "-created",
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    cursor: Annotated[str | None, Query(max_length=2000, description="`next` of the page before.")] = None,
    documents: Annotated[bool, Query(description="Whole jobs as well, as Kubernetes would print them.")] = False,
) -> JobQuery:
    return JobQuery(
        namespace=namespace,
        states=state or (),
        owner=owner,
        engine=engine,
        sweep=sweep,
        search=search,
        sort=sort,
        limit=limit,
        cursor=cursor,
        documents=documents,
    )


def filter_of(
    namespace: Text = None,
    state: Annotated[list[str] | None, Query(max_length=20)] = None,
    owner: Text = None,
    engine: Text = None,
    sweep: Text = None,
    search: Annotated[str | None, Query(max_length=1000)] = None,
) -> JobQuery:
    return JobQuery(namespace=namespace, states=state or (), owner=owner, engine=engine, sweep=sweep, search=search)


Wanted = Annotated[JobQuery, Depends(query_of)]
Watched = Annotated[JobQuery, Depends(filter_of)]


# -- all of them ------------------------------------------------------------------------------------
@router.get("", operation_id="listJobs", responses=responses())
def list_jobs(context: Context, query: Wanted) -> JobList:
    """One page of the jobs you may see."""
    return context.service.jobs(query)


@router.post("", operation_id="createJob", status_code=201, responses=responses(404, 409, 413))
def create_job(context: Context, wanted: Create, response: Response) -> JobView:
    """Submit one job, as YAML text or as a document. It belongs to you."""
    made = context.service.create(wanted)
    context.note("submit", made.summary.key)
    response.headers["Location"] = f"{PREFIX}/jobs/{made.summary.key}"
    return made


@router.get(
    "/stream",
    operation_id="streamJobs",
    status_code=200,
    response_class=sse.EventStream,
    responses={**responses(), **sse.described("JobChange")},
)
async def stream_jobs(context: Context, query: Watched, last_event_id: LastEvent = None) -> sse.EventStream:
    """A reset and every job that matches, then what changes. Whoever comes back gets a reset again."""
    return context.stream(feeds.job_changes(context.service, context.backend.job_index, query))


# -- one of them ------------------------------------------------------------------------------------
@router.get("/{namespace}/{name}", operation_id="getJob", responses=responses(404))
def get_job(context: Context, namespace: Namespace, name: JobName) -> JobView:
    """All that is known of a job, but for its log, its events and its usage."""
    return context.service.job(f"{namespace}/{name}")


@router.delete("/{namespace}/{name}", operation_id="deleteJob", status_code=204, responses=responses(404, 409))
def delete_job(context: Context, namespace: Namespace, name: JobName) -> None:
    """End the job if it runs, and remove it with its log. It is gone when its stream ends."""
    key = f"{namespace}/{name}"
    context.service.delete(key)
    context.note("delete", key)


@router.post("/{namespace}/{name}/scale", operation_id="scaleJob", responses=responses(404, 409, 413))
def scale_job(context: Context, namespace: Namespace, name: JobName, wanted: Scale) -> JobView:
    """Change the number of workers."""
    job = context.service.scale(f"{namespace}/{name}", wanted.workers)
    context.note("scale", f"{namespace}/{name} to {wanted.workers}")
    return job


@router.post("/{namespace}/{name}/suspend", operation_id="suspendJob", responses=responses(404, 409))
def suspend_job(context: Context, namespace: Namespace, name: JobName) -> JobView:
    """End its processes and keep the job, to be resumed."""
    job = context.service.suspend(f"{namespace}/{name}")
    context.note("suspend", f"{namespace}/{name}")
    return job


@router.post("/{namespace}/{name}/resume", operation_id="resumeJob", responses=responses(404, 409))
def resume_job(context: Context, namespace: Namespace, name: JobName) -> JobView:
    """Let a suspended job start again."""
    job = context.service.resume(f"{namespace}/{name}")
    context.note("resume", f"{namespace}/{name}")
    return job


@router.post("/{namespace}/{name}/stop", operation_id="stopJob", responses=responses(404, 409))
def stop_job(context: Context, namespace: Namespace, name: JobName) -> JobView:
    """End the job for good; its log and its record stay."""
    job = context.service.stop(f"{namespace}/{name}")
    context.note("stop", f"{namespace}/{name}")
    return job


@router.post("/{namespace}/{name}/rerun", operation_id="rerunJob", status_code=201, responses=responses(404, 409))
def rerun_job(context: Context, namespace: Namespace, name: JobName) -> JobView:
    """Run an ended job once more under its own name; what it left is deleted first."""
    job = context.service.rerun(f"{namespace}/{name}")
    context.note("rerun", f"{namespace}/{name}")
    return job


@router.post("/{namespace}/{name}/clone", operation_id="cloneJob", status_code=201, responses=responses(404, 409, 413))
def clone_job(context: Context, namespace: Namespace, name: JobName, wanted: Clone, response: Response) -> JobView:
    """Submit a new job like this one, with changes (a JSON merge patch), under a free name unless you give one."""
    job = context.service.clone(f"{namespace}/{name}", wanted)
    context.note("clone", f"{namespace}/{name} as {job.summary.key}")
    response.headers["Location"] = f"{PREFIX}/jobs/{job.summary.key}"
    return job


@router.get(
    "/{namespace}/{name}/watch",
    operation_id="watchJob",
    status_code=200,
    response_class=sse.EventStream,
    responses={**responses(404), **sse.described("Job")},
)
def watch_job(
    context: Context, namespace: Namespace, name: JobName, last_event_id: LastEvent = None
) -> sse.EventStream:
    """The job now and after each change, until it is gone."""
    key = f"{namespace}/{name}"
    context.service.job(key)  # whoever may not see it hears so at once
    return context.stream(feeds.one_job(context.service, context.backend.job_index, key))


@router.get("/{namespace}/{name}/events", operation_id="listEvents", responses=responses(404))
def list_events(context: Context, namespace: Namespace, name: JobName) -> list[EventView]:
    """What happened to the job, oldest first."""
    return list(context.service.events(f"{namespace}/{name}"))


@router.get("/{namespace}/{name}/usage", operation_id="getUsage", responses=responses(404))
def get_usage(
    context: Context, namespace: Namespace, name: JobName, since: Annotated[datetime | None, Query()] = None
) -> list[UsagePoint]:
    """CPU, memory, network and GPUs of each of its hosts while it ran, oldest first."""
    return list(context.service.usage(f"{namespace}/{name}", since=in_utc(since)))


@router.get("/{namespace}/{name}/usage/now", operation_id="getUsageNow", responses=responses(404))
def get_usage_now(context: Context, namespace: Namespace, name: JobName) -> list[HostUsageView]:
    """Processes, CPU, memory and GPUs of each of its hosts at this moment."""
    return list(context.service.usage_now(f"{namespace}/{name}"))


@router.get("/{namespace}/{name}/attention", operation_id="getAttention", responses=responses(404))
def get_attention(context: Context, namespace: Namespace, name: JobName) -> Attention:
    """Who looks after the job, and what stays after its end, where that can be asked."""
    return context.service.attention(f"{namespace}/{name}")


@router.get("/{namespace}/{name}/progress", operation_id="getProgress", responses=responses(404))
def get_progress(context: Context, namespace: Namespace, name: JobName) -> Progress:
    """Numbers that its lines name again and again, such as loss or images/sec, and how far each rank is."""
    return context.service.progress(f"{namespace}/{name}")


def in_utc(moment: datetime | None) -> datetime | None:
    """A time that mentions no zone is meant in UTC."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
