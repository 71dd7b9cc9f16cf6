"""The routes of the service's operations, made from their declarations. Streams and files have answers of their own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, FastAPI, Header, Path, Query, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.fields import FieldInfo
from starlette.responses import StreamingResponse

from oarsman.console.api import PREFIX, streams
from oarsman.console.api.problems import responses
from oarsman.console.console import Context, RequestContext
from oarsman.errors import UsageError
from oarsman.service import sweeps
from oarsman.service.contract import Namespace, operations
from oarsman.service.models import JobQuery, LogFilter, ProblemDetails
from oarsman.service.models.base import few
from oarsman.service.operations import ONE_OF, Arguments, Operation
from oarsman.text.catalogue import N_
from oarsman.text.sentence import Text
from oarsman.version import __version__

router = APIRouter(prefix=PREFIX)

Word = Annotated[str | None, Query(max_length=253)]
Search = Annotated[str | None, Query(max_length=1000)]
Number = Annotated[int, Query(ge=0, le=10_000_000)]
LastEvent = Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)]


_MOST_FIELDS = 100  # of a body; each that nobody knows is a mistake
# What a JobQuery and a LogFilter are asked with: parameter -> type and default. Most are called as the fields are.
_SEVERAL = "May be given more than once."
_QUERY: dict[str, tuple[Any, Any]] = {
    "namespace": (Word, None),
    "state": (Annotated[list[str] | None, Query(max_length=20, description=_SEVERAL)], None),
    "owner": (Word, None),
    "engine": (Word, None),
    "sweep": (Annotated[str | None, Query(max_length=253, description="The points of this sweep.")], None),
    "search": (Annotated[Search, Query(description="In name, description, reason and cause.")], None),
    "sort": (
        Annotated[str, Query(max_length=40, description="A field of JobSummary; -field: largest first.")],
        "-created",
    ),
    "limit": (Annotated[int, Query(ge=1, le=1000)], 50),
    "offset": (Annotated[int, Query(ge=0, le=1_000_000, description="Rows to pass over, without a cursor.")], 0),
    "cursor": (Annotated[str | None, Query(max_length=2000, description="`next` of the page before.")], None),
    "documents": (Annotated[bool, Query(description="Whole jobs as well, as Kubernetes would print them.")], False),
}
_FILTER: dict[str, tuple[Any, Any]] = {
    "namespace": (Word, None),
    "state": (Annotated[list[str] | None, Query(max_length=20)], None),
    **dict.fromkeys(("owner", "engine", "sweep"), (Word, None)),
    "search": (Search, None),
}
_ONLY: dict[str, tuple[Any, Any]] = {
    "rank": (Annotated[list[Number] | None, Query(max_length=1000, description=_SEVERAL)], None),
    "worker": (Annotated[list[Number] | None, Query(max_length=1000, description=_SEVERAL)], None),
    "launcher": (Annotated[bool, Query(description="Only what the launcher itself said.")], False),
    "stream": (Annotated[Literal["out", "err"] | None, Query()], None),
    "search": (Annotated[Search, Query(description="Lines that contain it, whatever the case of its letters.")], None),
    **dict.fromkeys(
        ("attempt", "run"),
        (Annotated[int | None, Query(ge=1, le=1_000_000, description="Default: the newest.")], None),
    ),
}


def _signature(operation: Operation, extra: Mapping[str, tuple[Any, Any]]) -> inspect.Signature:
    """What the framework is to hand over: the segments of the path, the body, the query, and what is `extra`."""
    found: list[tuple[str, Any, Any]] = [("context", Context, inspect.Parameter.empty)]
    kinds: dict[str, Any] = {name: one.annotation for name, one in operation.arguments.items()}
    if operation.key is not None:
        kinds["namespace"], kinds["name"] = Namespace, Annotated[str, operation.key.name]
    kinds.update(operation.at)
    found += [(n, _placed(kinds[n], Path), inspect.Parameter.empty) for n in re.findall(r"{(\w+)}", operation.path)]
    if operation.whole_body:
        kind = kinds[operation.whole_body]
        found.append((operation.whole_body, Annotated[kind, few(_MOST_FIELDS), Body()], inspect.Parameter.empty))
    if operation.body is not None:
        found.append(("body", Annotated[operation.body, few(_MOST_FIELDS), Body()], inspect.Parameter.empty))
    plain = [one for one in operation.query if one.annotation not in (JobQuery, LogFilter)]
    found += [(one.name, _placed(one.annotation, Query), one.default) for one in plain]
    asked = {JobQuery: _FILTER if operation.streams else _QUERY, LogFilter: _ONLY}
    several = [asked[one.annotation] for one in operation.query if one.annotation in asked]
    found += [(name, kind, default) for made in (*several, extra) for name, (kind, default) in made.items()]
    by_name = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(n, by_name, annotation=a, default=d) for n, a, d in found])


def _placed(kind: Any, place: Callable[..., Any]) -> Any:
    """The type with its constraints, as a parameter of the path or the query."""
    says = next((mark for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, FieldInfo)), None)
    more = {} if says is None else {"description": says.description, "examples": says.examples}
    return Annotated[kind, place(**more)]


def _arguments(operation: Operation, given: dict[str, Any]) -> Arguments:
    """As the method takes them."""
    found = {name: given[name] for name in operation.arguments if name in given}
    if operation.key is not None:
        found["key"] = f"{given['namespace']}/{given['name']}"
    if operation.body is not None:
        found.update({name: getattr(given["body"], name) for name in operation.body.model_fields})
    for one in operation.query:
        if one.annotation in (JobQuery, LogFilter):
            parts = {name: given.get(ONE_OF.get(name, name)) for name in one.annotation.model_fields}
            found[one.name] = one.annotation(**{name: part for name, part in parts.items() if part is not None})
    for name in operation.at:
        said = getattr(given[operation.whole_body], name)
        if said != given[name]:
            raise UsageError(
                Text("the path says {path}, the body {body}", path=given[name], body=said),
                field=name,
                hint=Text("write the same name"),
            )
    return found


def _plain(operation: Operation) -> Callable[..., Awaitable[Any]]:
    async def answer(*, context: RequestContext, response: Response | None = None, **given: Any) -> Any:
        arguments = _arguments(operation, given)
        async with context.turn():
            found = await getattr(context.service, operation.name)(**arguments)
        if operation.noted:
            await context.note(operation.noted, operation.about.format(answer=found, **arguments))
        if response is not None:
            response.headers["Location"] = PREFIX + operation.location.format(answer=found)
        return found

    return answer


def _add(operation: Operation, answer: Callable[..., Awaitable[Any]], extra: Mapping[str, Any], **more: Any) -> None:
    answer.__signature__ = _signature(operation, extra)  # type: ignore[attr-defined]
    title = operation.title or re.sub(r"(?<!^)([A-Z])", r" \1", operation.id).title()
    refused = responses(*operation.refuses)
    router.add_api_route(
        operation.path,
        answer,
        methods=[operation.method],
        operation_id=operation.id,
        name=operation.name,
        summary=title,
        description=operation.text,
        tags=[operation.tag],
        **{**more, "responses": {**refused, **more.get("responses", {})}},
    )


_EVENTS = {"changes": "JobChange", "watch": "Job", "follow_log": "LogPageView"}  # what the data of each event is


async def _stream(context: RequestContext, name: str, given: Arguments, place: str | None) -> Response:
    """Whoever may not see it, or asks for a place that is not there, hears so at once."""
    service, backend = context.service, context.backend
    if name == "changes":
        return context.stream(streams.job_changes(service, backend.job_index, given["query"]))
    if name == "watch":
        await service.job(given["key"])
        return context.stream(streams.one_job(service, backend.job_index, given["key"]))
    key, only, after = given["key"], given["only"], place or given["after"]
    key, query = await service.log_query(key, only, live=True)
    await backend.jobs.log_page(key, query, after=after, limit=1)
    followed = backend.followers.follow(key, query, after)
    return context.stream(context.console.streams.of_log(followed, context.caller.counted_as))


async def _download_log(context: RequestContext, key: str, only: LogFilter) -> Response:
    await context.service.job(key, run=only.run)
    name = key.partition("/")[2] + ("" if only.run is None else f"-run-{only.run}")
    headers = {"Content-Disposition": f'attachment; filename="{name}.log"'}
    context.console.streams.refuse_too_many(context.caller.counted_as)  # while nothing is sent yet
    lines = context.while_it_holds(context.service.download_log(key, only))
    lines = context.console.streams.of_log(lines, context.caller.counted_as)
    return StreamingResponse(lines, media_type="text/plain; charset=utf-8", headers=headers)


_DOWNLOAD = {
    "description": "Time, rank (- for the launcher), host, stream and text of every line.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


def _special(operation: Operation) -> Callable[..., Awaitable[Any]]:
    async def answer(*, context: RequestContext, last_event_id: str | None = None, **given: Any) -> Response:
        arguments = _arguments(operation, given)
        if operation.name in _EVENTS:
            return await _stream(context, operation.name, arguments, last_event_id)
        return await _download_log(context, **arguments)

    return answer


def _add_all() -> None:
    for operation in operations().values():
        if operation.name in _EVENTS:
            described = streams.described(_EVENTS[operation.name])
            events = {"status_code": 200, "response_class": streams.EventStream, "responses": described}
            _add(operation, _special(operation), {"last_event_id": (LastEvent, None)}, **events)
        elif operation.streams:
            file = {"status_code": 200, "response_class": Response, "responses": {200: _DOWNLOAD}}
            _add(operation, _special(operation), {}, **file)
        elif operation.answer is type(None):
            _add(operation, _plain(operation), {}, status_code=204, response_class=Response)
        else:
            extra = {"response": (Response, inspect.Parameter.empty)} if operation.location else {}
            _add(operation, _plain(operation), extra, status_code=operation.status, response_model=operation.answer)


_add_all()


@router.get(
    "/sweeps/{namespace}/{name}/results.csv",
    operation_id="getSweepResults",
    tags=["sweeps"],
    response_class=Response,
    responses={**responses(404), 200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def get_results(
    context: Context,
    namespace: Annotated[Namespace, Path(examples=["default"])],
    name: Annotated[
        str, Path(min_length=1, max_length=40, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", examples=["rates"])
    ],
) -> Response:
    """A row per point, for a spreadsheet."""
    async with context.turn():
        view = await context.service.sweep(f"{namespace}/{name}")
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(sweeps.csv_text(view), media_type="text/csv", headers=headers)


_ABOUT = (
    N_("Create, watch and understand MPI jobs on every engine."),
    N_(
        "Programs send an API token as `Authorization: Bearer TOKEN`; browsers have a session cookie, and send "
        "`X-Oarsman: 1` with everything that changes something. Names are camelCase, times RFC 3339 in UTC. "
        "Every error is a ProblemDetails."
    ),
)
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token, or on Kubernetes your own token."},
    "session": {"type": "apiKey", "in": "cookie", "name": "oarsman", "description": "Its name ends with the port."},
}
_REFERENCE = "#/components/schemas/{model}"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def described(app: FastAPI) -> dict[str, Any]:
    routes = [route for route in app.routes if not isinstance(route, APIRoute) or route.include_in_schema]
    found = get_openapi(title="Oarsman", version=__version__, description="\n\n".join(_ABOUT), routes=routes)
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    problem = ProblemDetails.model_json_schema(ref_template=_REFERENCE, mode="serialization")
    schemas.update(problem.pop("$defs", {}))
    schemas["ProblemDetails"] = problem
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = _SECURITY
    found["security"] = [{name: []} for name in _SECURITY]
    return found
