"""What a job wrote: page by page, as it comes, or all of it as a file."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from oarsman.console.api import PREFIX, sse
from oarsman.console.api.jobs import JobName, LastEvent, Namespace
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Context
from oarsman.service import views
from oarsman.service.models import LogFilter, LogPageView

router = APIRouter(prefix=f"{PREFIX}/jobs/{{namespace}}/{{name}}/log", tags=["logs"])

Number = Annotated[int, Query(ge=0, le=10_000_000)]
Place = Annotated[str | None, Query(max_length=200, description="As an earlier answer gave it.")]


def only_of(
    rank: Annotated[list[Number] | None, Query(max_length=1000, description="May be given more than once.")] = None,
    worker: Annotated[list[Number] | None, Query(max_length=1000, description="May be given more than once.")] = None,
    launcher: Annotated[bool, Query(description="Only what the launcher itself said.")] = False,
    stream: Annotated[Literal["out", "err"] | None, Query()] = None,
    search: Annotated[str | None, Query(max_length=1000, description="Case matters if it has a capital.")] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1_000_000, description="Default: the newest.")] = None,
) -> LogFilter:
    return LogFilter(
        ranks=rank or (), workers=worker or (), launcher=launcher, stream=stream, search=search, attempt=attempt
    )


Only = Annotated[LogFilter, Depends(only_of)]


@router.get("", operation_id="readLog", responses=responses(404))
def read_log(
    context: Context,
    namespace: Namespace,
    name: JobName,
    only: Only,
    after: Place = None,
    before: Place = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
) -> LogPageView:
    """Lines after a place, before one, or (neither) the last ones. Its cost does not grow with the log."""
    return context.service.log(f"{namespace}/{name}", only, after=after, before=before, limit=limit)


@router.get(
    "/stream",
    operation_id="followLog",
    status_code=200,
    response_class=sse.EventStream,
    responses={**responses(404), **sse.described("LogPageView")},
)
def follow_log(
    context: Context,
    namespace: Namespace,
    name: JobName,
    only: Only,
    after: Place = None,
    last_event_id: LastEvent = None,
) -> sse.EventStream:
    """Lines as they come, from a place on (default: the beginning), until the attempt is over.

    The id of an event is the place behind it: whoever comes back with Last-Event-ID goes on there.
    """
    key = f"{namespace}/{name}"
    place = last_event_id or after
    context.service.log(key, only, after=place, limit=1)  # a job or a place that is not there is said at once
    return context.stream(context.backend.followers.follow(key, views.log_query(only), place))


@router.get(
    "/download",
    operation_id="downloadLog",
    status_code=200,
    response_class=Response,
    responses={
        **responses(404),
        200: {
            "description": "Time, rank (- for the launcher), host, stream and text of every line.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
)
def download_log(context: Context, namespace: Namespace, name: JobName, only: Only) -> StreamingResponse:
    """The whole log as a file."""
    key = f"{namespace}/{name}"
    context.service.job(key)
    headers = {"Content-Disposition": f'attachment; filename="{name}.log"'}
    return StreamingResponse(
        context.service.download_log(key, only), media_type="text/plain; charset=utf-8", headers=headers
    )
