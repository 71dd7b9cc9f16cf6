"""The REST API as a page. It belongs to nobody: whoever may read the description may read this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request
from nicegui import ui

from oarsman.console.api import PREFIX
from oarsman.console.console import Console
from oarsman.console.pages.live import LiveConnections
from oarsman.console.pages.page import entered, framed, outside, spoken
from oarsman.console.parts.api_docs import html_of
from oarsman.console.parts.widgets import page_head
from oarsman.errors import OarsmanError
from oarsman.text.catalogue import N_

PATH, TITLE = "/docs", N_("REST API")


def register_docs(console: Console, connections: LiveConnections, description: Callable[[], Mapping[str, Any]]) -> None:
    @ui.page(PATH)
    async def docs(request: Request) -> None:
        say = spoken(request)
        try:
            context = await entered(console, connections, request)
        except OarsmanError:  # also where a cluster cannot say who it is
            frame = outside(say, say(TITLE))
        else:
            frame = framed(context, PATH, say(TITLE))
        with frame:
            with page_head(say(TITLE)):
                ui.link("openapi.json", f"{PREFIX}/openapi.json").classes("oarsman-link")
            written = html_of(description(), say, console.gate.site.address)
            ui.html(written, sanitize=False).classes("oarsman-api oarsman-card")
