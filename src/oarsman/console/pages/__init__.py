"""The pages, one file or folder each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from oarsman.console.console import Console


def make_app(console: Console, description: Callable[[], Mapping[str, Any]]) -> ASGIApp:
    """Once per process: NiceGUI keeps its pages in one place. Imported late, because it takes a second.

    `description`: of the API."""
    from fastapi import FastAPI
    from nicegui import ui

    from oarsman.console.pages import (
        account,
        checks,
        create,
        docs,
        environments,
        hosts,
        job,
        jobs,
        live,
        messages,
        missing,
        new_sweep,
        overview,
        page,
        sweeps,
    )
    from oarsman.console.parts import widgets

    app = FastAPI(openapi_url=None)
    connections = live.LiveConnections(console.gate)
    account.register_login(console)
    missing.register_missing(console, connections)
    docs.register_docs(console, connections, description)
    for kind in (
        account.AccountPage,
        account.PeoplePage,
        overview.OverviewPage,
        jobs.JobsPage,
        job.JobPage,
        create.CreatePage,
        sweeps.SweepsPage,
        new_sweep.NewSweepPage,
        sweeps.SweepPage,
        environments.EnvironmentsPage,
        hosts.HostsPage,
        checks.ChecksPage,
    ):
        page.register(console, connections, kind)
    ui.run_with(
        app,
        title="Oarsman",
        favicon=widgets.ICON,
        dark=None,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=30.0,
    )
    return connections.behind(messages.only_meaningful(app))
