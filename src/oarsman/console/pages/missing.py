"""What is answered for an address that leads to no page: in the reader's language, and with the way back."""

from __future__ import annotations

from fastapi import Request
from fastapi.exception_handlers import http_exception_handler
from nicegui import Client, core, ui
from starlette.exceptions import HTTPException
from starlette.responses import Response

from oarsman.console.console import Console
from oarsman.console.pages.live import LiveConnections
from oarsman.console.pages.page import entered, framed, outside, spoken
from oarsman.console.parts.widgets import heading
from oarsman.errors import OarsmanError
from oarsman.text.catalogue import N_

_TITLE = N_("There is no such page")


def register_missing(console: Console, connections: LiveConnections) -> None:
    @core.app.exception_handler(404)
    async def missing(request: Request, error: HTTPException) -> Response:
        if request.scope["path"].startswith("/_nicegui"):  # a script, or a picture
            return await http_exception_handler(request, error)
        say = spoken(request)
        with Client(ui.page(""), request=request) as client:
            try:
                frame = framed(await entered(console, connections, request), "", say(_TITLE))
            except OarsmanError:
                frame = outside(say, say(_TITLE))
            with frame, ui.column().classes("oarsman-card w-full"):
                heading(say(_TITLE), 1)
                ui.label(say("Nothing leads to {address}.", address=request.scope["path"][:200]))
                ui.link(say("Overview"), "/").classes("oarsman-link")
        return client.build_response(request, 404)
