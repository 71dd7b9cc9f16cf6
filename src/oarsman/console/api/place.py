"""The place jobs run at, and what a job would become there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from oarsman.console.api import PREFIX
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Context
from oarsman.service.models import (
    Create,
    HostView,
    Overview,
    PlanView,
    PreviewView,
    QueueEntry,
    ServerInfo,
    Template,
    Value,
)

router = APIRouter(prefix=PREFIX)


class Convert(Value):
    """A document to be written in another version of the API."""

    document: Mapping[str, Any]
    api_version: Annotated[str, Field(max_length=100)]


class Converted(Value):
    manifest: str  # YAML
    losses: Sequence[str] = ()  # what that version cannot say


@router.get("/info", operation_id="getInfo", tags=["place"], responses=responses())
def info(context: Context) -> ServerInfo:
    """The server, its engine, and who you are."""
    return context.service.info()


@router.get("/overview", operation_id="getOverview", tags=["place"], responses=responses())
def overview(context: Context) -> Overview:
    """Jobs by state, what there is and what is used, and what failed in the last day."""
    return context.service.overview()


@router.get("/hosts", operation_id="listHosts", tags=["place"], responses=responses())
def hosts(context: Context) -> list[HostView]:
    """The machines, what they have, and who holds what."""
    return list(context.service.hosts())


@router.get("/queue", operation_id="listQueue", tags=["place"], responses=responses())
def queue(context: Context) -> list[QueueEntry]:
    """The jobs that wait, in order, each with the reason."""
    return list(context.service.queue())


@router.get("/templates", operation_id="listTemplates", tags=["before it runs"], responses=responses())
def templates(context: Context) -> list[Template]:
    """Manifests to start from."""
    return list(context.service.templates())


@router.post("/preview", operation_id="previewJob", tags=["before it runs"], responses=responses(413))
def preview(context: Context, wanted: Create) -> PreviewView:
    """What a manifest would become and whether it fits, or its mistakes with their places. Changes nothing."""
    return context.service.preview(wanted)


@router.post("/plan", operation_id="planJob", tags=["before it runs"], responses=responses(413))
def plan(context: Context, wanted: Create) -> PlanView:
    """Everything a job would be: hosts, ranks, files, variables, launch line and objects. Changes nothing."""
    return context.service.plan(wanted)


@router.post("/convert", operation_id="convertJob", tags=["before it runs"], responses=responses(413))
def convert(context: Context, wanted: Convert) -> Converted:
    """The same job in the other version of the API, and what that version cannot say."""
    text, losses = context.service.convert(wanted.document, wanted.api_version)
    return Converted(manifest=text, losses=losses)
