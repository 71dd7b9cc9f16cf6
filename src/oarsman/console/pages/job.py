"""One job: what it is, how far it is, why it failed, what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from oarsman.console.pages import shell
from oarsman.console.pages.guest import Guest, welcome
from oarsman.console.parts import amounts
from oarsman.console.parts.log_view import LogView
from oarsman.console.parts.state import state_badge
from oarsman.errors import NotFoundError, UnauthenticatedError
from oarsman.sdk.models import CauseView, Job

if TYPE_CHECKING:
    from oarsman.console.server import Console


_ENDED = ("Succeeded", "Failed")


def register(console: Console) -> None:
    @ui.page("/jobs/{namespace}/{name}")
    async def page(request: Request, namespace: str, name: str) -> RedirectResponse | None:
        key = f"{namespace}/{name}"
        try:
            guest = welcome(console, request)
        except UnauthenticatedError:
            return RedirectResponse(f"/login?to=/jobs/{key}")
        with shell.frame(guest, "/jobs", name):
            try:
                job = await guest.ask(guest.visit.desk.job, key)
            except NotFoundError as error:
                ui.label(error.message).classes("oarsman-card")
                return None
            await _Page(guest, key, job).show()
        return None


class _Page:
    def __init__(self, guest: Guest, key: str, job: Job) -> None:
        self.guest = guest
        self.key = key
        self.job = job

    async def show(self) -> None:
        say = self.guest.say
        self.firm = ui.element("div")  # what a handler says or opens goes here: the head is drawn anew at any moment
        self.head = ui.column().classes("w-full items-stretch")
        with ui.tabs().props("dense no-caps align=left").classes("w-full") as tabs:
            summary, ranks, log, happened, text = (
                ui.tab(name, label=say(name)) for name in ("Summary", "Ranks", "Logs", "Events", "YAML")
            )
        with ui.tab_panels(tabs, value=log).classes("w-full bg-transparent").props("keep-alive"):
            with ui.tab_panel(summary).classes("q-pa-none"):
                self.summary = ui.column().classes("w-full items-stretch")
            with ui.tab_panel(ranks).classes("q-pa-none"):
                self.ranks = ui.column().classes("w-full items-stretch")
            with ui.tab_panel(log).classes("q-pa-none"):
                self._log()
            with ui.tab_panel(happened).classes("q-pa-none"):
                self.events = ui.column().classes("w-full items-stretch oarsman-card")
            with ui.tab_panel(text).classes("q-pa-none"):
                self._yaml()
        await self._draw()
        self.guest.on_changes(self.refresh, only=self.key)

    async def refresh(self) -> None:
        try:
            found = await self.guest.ask(self.guest.visit.desk.job, self.key)
        except NotFoundError:
            ui.navigate.to("/jobs")
            return
        if found != self.job:
            self.job = found
            await self._draw()

    async def _draw(self) -> None:
        for place, draw in ((self.head, self._head), (self.summary, self._summary), (self.ranks, self._ranks)):
            place.clear()
            with place:
                draw()
        found = await self.guest.ask(self.guest.visit.desk.events, self.key)
        self.events.clear()
        with self.events:
            for event in reversed(list(found)):
                with ui.row().classes("items-baseline no-wrap"):
                    ui.label(amounts.moment(event.time)).classes("oarsman-note")
                    ui.label(event.reason + (f" ×{event.count}" if event.count > 1 else "")).classes(
                        "text-negative" if event.severity == "Warning" else ""
                    )
                    ui.label(event.message)

    # -- parts -------------------------------------------------------------------------------------------
    def _head(self) -> None:
        job, say = self.job.summary, self.guest.say
        with ui.row().classes("items-center w-full"):
            ui.label(job.name).classes("text-h5")
            state_badge(say, job.state)
            ui.label(amounts.duration(job.started, job.ended)).classes("oarsman-note")
            ui.space()
            if self.guest.may_change:
                self._buttons()
        if self.job.cause is not None and job.state == "Failed":
            self._cause(self.job.cause)
        elif job.message:
            ui.label(job.message).classes("oarsman-note")

    def _buttons(self) -> None:
        say, desk, state = self.guest.say, self.guest.visit.desk, self.job.summary.state
        ended = state in _ENDED
        offered: list[tuple[str, str, str, Any]] = []
        if state == "Deleting":
            return
        if ended:
            offered.append(("Run again", "replay", "rerun", desk.rerun))
        elif state == "Suspended":
            offered.append(("Resume", "play_arrow", "resume", desk.resume))
        else:
            offered.append(("Suspend", "pause", "suspend", desk.suspend))
        if not ended:
            offered.append(("Stop", "stop", "stop", desk.stop))
        for word, icon, what, act in offered:
            ui.button(say(word), icon=icon, on_click=lambda what=what, act=act: self._do(what, act)).props(
                "outline dense no-caps"
            )
        ui.button(say("Delete"), icon="delete", on_click=self._delete).props("outline dense no-caps color=negative")

    async def _do(self, what: str, act: Any) -> None:
        with self.firm:
            if await self.guest.attempt(what, self.key, act, self.key):
                await self.refresh()

    async def _delete(self) -> None:
        with self.firm:
            await self._confirm_delete()

    async def _confirm_delete(self) -> None:
        say, name = self.guest.say, self.job.summary.name
        with ui.dialog() as dialog, ui.card():
            ui.label(say("Type the name of the job to delete it with its logs: {name}", name=name))
            typed = ui.input(say("Name")).props("outlined dense autofocus")
            with ui.row():
                ui.button(say("No"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(say("Delete"), on_click=lambda: dialog.submit(True)).props(
                    "unelevated no-caps color=negative"
                ).bind_enabled_from(typed, "value", lambda value: value == name)
        if await dialog and await self.guest.attempt("delete", self.key, self.guest.visit.desk.delete, self.key):
            ui.navigate.to("/jobs")
        dialog.delete()

    def _cause(self, cause: CauseView) -> None:
        with ui.column().classes("oarsman-card oarsman-cause w-full"):
            ui.label(cause.summary).classes("text-subtitle1")
            if cause.hint:
                ui.label(cause.hint)
            if cause.last_lines:
                ui.label("\n".join(cause.last_lines)).classes("oarsman-lines")

    def _summary(self) -> None:
        job, say = self.job.summary, self.guest.say
        with ui.element("dl").classes("oarsman-card oarsman-facts"):
            for name, value in (
                ("Owner", job.owner), ("Where", say(job.engine)), ("Type", f"{job.implementation}, {job.api_version}"),
                ("Workers", f"{job.workers_ready}/{job.workers}"), ("Slots per worker", str(job.slots_per_worker)),
                ("Ranks", str(job.ranks) if job.ranks is not None else ""), ("Resources", amounts.resources(job)),
                ("Created", amounts.moment(job.created)), ("Folder", self.job.folder or ""),
            ):  # fmt: skip
                if value:
                    with ui.element("dt"):
                        ui.label(say(name))
                    with ui.element("dd"):
                        ui.label(value)
        with ui.row().classes("oarsman-card w-full oarsman-timeline"):
            for step in self.job.timeline:
                with ui.column().classes("items-center"):
                    ui.label(say(step.name))
                    ui.label(amounts.moment(step.time)).classes("oarsman-note")
        if len(self.job.attempts) > 1:
            with ui.column().classes("oarsman-card w-full"):
                ui.label(say("Attempts")).classes("text-subtitle1")
                for attempt in self.job.attempts:
                    why = f": {attempt.cause.summary}" if attempt.cause is not None else ""
                    ui.label(f"{attempt.number}. {say(attempt.outcome or 'Running')}{why}")

    def _ranks(self) -> None:
        say = self.guest.say
        if not self.job.ranks:
            ui.label(say("Where the ranks run is not known yet.")).classes("oarsman-note")
            return
        columns = [
            {"name": name, "label": say(title), "field": name, "align": "left", "sortable": True}
            for name, title in (("rank", "Rank"), ("host", "Host"), ("state", "State"), ("exit", "Exit code"))
        ]
        rows = [
            {"rank": r.rank, "host": r.host, "state": r.state, "exit": "" if r.exit_code is None else r.exit_code}
            for r in self.job.ranks
        ]
        ui.table(columns=columns, rows=rows, row_key="rank", pagination=50).props("flat dense").classes(
            "oarsman-card w-full"
        )

    def _log(self) -> None:
        say = self.guest.say
        wanted: dict[str, Any] = {}

        def change(name: str, value: Any) -> None:
            wanted[name] = value
            view.only(**wanted)

        with ui.row().classes("items-center w-full q-gutter-sm"):
            rank = ui.number(say("Rank"), min=0, precision=0)
            rank.props("outlined dense clearable debounce=300").classes("w-28")
            rank.on_value_change(lambda e: change("rank", None if e.value is None else int(e.value)))
            ui.input(say("Search"), on_change=lambda e: change("search", e.value)).props(
                "outlined dense clearable debounce=300"
            )
            ui.checkbox(say("Only errors"), on_change=lambda e: change("stream", "err" if e.value else None))
            ui.space()
            ui.link(say("Download"), f"/api/v1/jobs/{self.key}/log/download")
        view = LogView(say, self.key).classes("w-full")

    def _yaml(self) -> None:
        say = self.guest.say
        with ui.row():
            ui.label(say("As given")).classes("text-subtitle1")
        ui.codemirror(self.job.manifest, language="YAML", line_wrapping=True).props("readonly").classes("oarsman-card")
