"""The place jobs run at, and what a job would become there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from oarsman.console.api import PREFIX
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Visiting
from oarsman.service.models import Create, HostView, Overview, PreviewView, QueueEntry, ServerInfo, Template, Value

router = APIRouter(prefix=PREFIX)


class Convert(Value):
    """A document to be written in another version of the API."""

    document: Mapping[str, Any]
    api_version: Annotated[str, Field(max_length=100)]


class Converted(Value):
    manifest: str  # YAML
    losses: Sequence[str] = ()  # what that version cannot say


@router.get("/info", operation_id="getInfo", tags=["place"], responses=responses())
def info(visit: Visiting) -> ServerInfo:
    """The server, its engine, and who you are."""
    return visit.desk.info()


@router.get("/overview", operation_id="getOverview", tags=["place"], responses=responses())
def overview(visit: Visiting) -> Overview:
    """Jobs by state, what there is and what is used, and what failed in the last day."""
    return visit.desk.overview()


@router.get("/hosts", operation_id="listHosts", tags=["place"], responses=responses())
def hosts(visit: Visiting) -> list[HostView]:
    """The machines, what they have, and who holds what."""
    return list(visit.desk.hosts())


@router.get("/queue", operation_id="listQueue", tags=["place"], responses=responses())
def queue(visit: Visiting) -> list[QueueEntry]:
    """The jobs that wait, in order, each with the reason."""
    return list(visit.desk.queue())


@router.get("/templates", operation_id="listTemplates", tags=["before it runs"], responses=responses())
def templates(visit: Visiting) -> list[Template]:
    """Manifests to start from."""
    return list(visit.desk.templates())


@router.post("/preview", operation_id="previewJob", tags=["before it runs"], responses=responses(413))
def preview(visit: Visiting, wanted: Create) -> PreviewView:
    """What a manifest would become and whether it fits, or its mistakes with their places. Changes nothing."""
    return visit.desk.preview(wanted)


@router.post("/convert", operation_id="convertJob", tags=["before it runs"], responses=responses(413))
def convert(visit: Visiting, wanted: Convert) -> Converted:
    """The same job in the other version of the API, and what that version cannot say."""
    text, losses = visit.desk.convert(wanted.document, wanted.api_version)
    return Converted(manifest=text, losses=losses)
