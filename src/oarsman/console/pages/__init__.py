"""The pages, one file each. `add` puts them in front of a server that has the API already."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

    from oarsman.console.server import Console


def add(app: FastAPI, console: Console) -> None:
    """Once per process: NiceGUI keeps its pages in one place. Imported late, because it takes a second."""
    from nicegui import ui

    from oarsman.console.pages import guest, job, jobs, login, overview, shell

    guest.serve(console)
    for page in (login, overview, jobs, job):
        page.register()
    ui.run_with(
        app, title="Oarsman", favicon=shell.ICON, dark=None, show_welcome_message=False, binding_refresh_interval=None,
        reconnect_timeout=30.0,
    )  # fmt: skip
