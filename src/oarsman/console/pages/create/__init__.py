"""A new job: a form and its YAML side by side, each an editor of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from oarsman.console.pages import shell
from oarsman.console.pages.context import welcome
from oarsman.console.pages.create.page import CreatePage
from oarsman.errors import UnauthenticatedError

if TYPE_CHECKING:
    from oarsman.console.console import Console


def register(console: Console) -> None:
    @ui.page("/create")
    async def page(request: Request) -> RedirectResponse | None:
        try:
            context = welcome(console, request)
        except UnauthenticatedError:
            return RedirectResponse("/login?to=/create")
        with shell.frame(context, "/create", context.say("New job")):
            if not context.may_change:
                ui.label(context.say("You may look, and not start jobs.")).classes("oarsman-card")
                return None
            asked = request.query_params
            await CreatePage(context).show(
                template=asked.get("template"), earlier=asked.get("from"), name=asked.get("name")
            )
        return None
