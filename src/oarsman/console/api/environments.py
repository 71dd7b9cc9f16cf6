"""Environments: named sets of packages, built once, that jobs run in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from oarsman.console.api import PREFIX
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Context
from oarsman.errors import UsageError
from oarsman.service.models import BuildLogView, EnvironmentSpec, EnvironmentView
from oarsman.text.sentence import Text

router = APIRouter(prefix=f"{PREFIX}/environments", tags=["environments"])

EnvironmentName = Annotated[
    str, Path(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", examples=["torch"])
]
_FARTHEST = 2**53  # what a JavaScript client counts exactly


@router.get("", operation_id="listEnvironments", responses=responses())
def list_environments(context: Context) -> list[EnvironmentView]:
    """All of them, by name, each with its state."""
    return list(context.service.environments())


@router.get("/{name}", operation_id="getEnvironment", responses=responses(404))
def get_environment(context: Context, name: EnvironmentName) -> EnvironmentView:
    """What is in it, how its build went, and which jobs use it."""
    return context.service.environment(name)


@router.put("/{name}", operation_id="putEnvironment", responses=responses(409, 413))
def put_environment(context: Context, name: EnvironmentName, wanted: EnvironmentSpec) -> EnvironmentView:
    """Make it, or change it. The build goes on after the answer; what is built already is not built again."""
    if wanted.name != name:
        raise UsageError(
            Text("the path says {path}, the body {body}", path=name, body=wanted.name),
            field="name",
            hint=Text("write the same name"),
        )
    made = context.service.put_environment(wanted)
    context.note("build environment", name)
    return made


@router.delete(
    "/{name}", operation_id="deleteEnvironment", status_code=204, response_class=Response, responses=responses(404, 409)
)
def delete_environment(context: Context, name: EnvironmentName) -> None:
    """Delete it with its files, unless a job that has not ended uses it."""
    context.service.delete_environment(name)
    context.note("delete environment", name)


@router.get("/{name}/log", operation_id="readBuildLog", responses=responses(404))
def build_log(
    context: Context,
    name: EnvironmentName,
    after: Annotated[int, Query(ge=0, le=_FARTHEST, description="`after` of the piece before.")] = 0,
) -> BuildLogView:
    """A piece of the newest build's log, from that place on; read on until it has ended."""
    return context.service.environment_log(name, after)
