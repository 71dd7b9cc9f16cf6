"""All jobs: found, sorted and paged by the server, live without reload."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import events, ui

from oarsman.console.pages import shell
from oarsman.console.pages.guest import Guest, welcome
from oarsman.console.parts import amounts
from oarsman.console.parts.style import STATES
from oarsman.errors import OarsmanError, UnauthenticatedError
from oarsman.sdk.models import JobQuery, JobSummary

if TYPE_CHECKING:
    from oarsman.console.server import Console


_ROWS = 25
_SORTED = ("name", "state", "owner", "created", "workers", "priority")  # columns, and fields of the summary


def register(console: Console) -> None:
    @ui.page("/jobs")
    async def page(request: Request) -> RedirectResponse | None:
        try:
            guest = welcome(console, request)
        except UnauthenticatedError:
            return RedirectResponse("/login?to=/jobs")
        with shell.frame(guest, "/jobs", guest.say("Jobs")):
            await _Jobs(guest).show()
        return None


@dataclass
class _Wanted:
    """What the reader asked to see."""

    search: str = ""
    states: list[str] = field(default_factory=list)
    sort: str = "-created"
    rows: int = _ROWS
    cursors: list[str | None] = field(default_factory=lambda: [None])  # of the pages gone through so far

    def query(self) -> JobQuery:
        return JobQuery(
            states=tuple(self.states), search=self.search or None, sort=self.sort, limit=self.rows,
            cursor=self.cursors[-1],
        )  # fmt: skip


class _Jobs:
    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.wanted = _Wanted()
        self.next: str | None = None

    async def show(self) -> None:
        say = self.guest.say
        with ui.row().classes("items-center w-full q-gutter-sm"):
            ui.input(say("Search"), on_change=self._searched).props("outlined dense clearable debounce=300").classes(
                "w-64"
            )
            ui.select(
                {name: say(name) for name in STATES}, multiple=True, label=say("State"), on_change=self._chosen
            ).props("outlined dense use-chips").classes("min-w-40")
            ui.space()
            self.count = ui.label("").classes("oarsman-note")
        self.table = ui.table(
            columns=self._columns(), rows=[], row_key="key", selection="multiple" if self.guest.may_change else None
        )
        self.table.classes("oarsman-card w-full").props("flat dense wrap-cells hide-pagination binary-state-sort")
        self.table.on("request", self._sorted)
        self.table.add_slot("body-cell-name", _NAME)
        self.table.add_slot("body-cell-state", _STATE)
        self.table.add_slot("no-data", f"<span>{say('No job matches.')}</span>")
        with ui.row().classes("items-center w-full"):
            self.actions = ui.row().classes("q-gutter-sm")
            if self.guest.may_change:
                self._bulk()
            ui.space()
            self.back = _arrow("chevron_left", say("Newer page"), self._back)
            self.forth = _arrow("chevron_right", say("Next page"), self._forth)
        await self.refresh()
        self.guest.on_changes(self.refresh)

    def _columns(self) -> list[dict[str, Any]]:
        say = self.guest.say
        titles = {
            "name": say("Name"), "state": say("State"), "type": say("Type"), "where": say("Where"),
            "priority": say("Priority"), "workers": say("Workers"), "resources": say("Resources"),
            "owner": say("Owner"), "created": say("Created"), "duration": say("Duration"),
        }  # fmt: skip
        return [
            {"name": name, "label": title, "field": name, "align": "left", "sortable": name in _SORTED}
            for name, title in titles.items()
        ]

    # -- what is shown ---------------------------------------------------------------------------------
    async def refresh(self) -> None:
        try:
            found = await self.guest.ask(self.guest.visit.desk.jobs, self.wanted.query())
        except OarsmanError as error:
            self.count.set_text(error.message)
            return
        rows = [self._row(one) for one in found.items]
        if rows != self.table.rows:
            self.table.rows = rows
        self.next = found.next
        self.back.set_enabled(len(self.wanted.cursors) > 1)
        self.forth.set_enabled(found.next is not None)
        self.count.set_text(self.guest.say("{count} jobs", count=found.total))

    def _row(self, one: JobSummary) -> dict[str, Any]:
        say = self.guest.say
        icon, colour = STATES.get(one.state, ("help", "is-idle"))
        return {
            "key": one.key, "name": one.name, "namespace": one.namespace, "description": one.description,
            "state": say(one.state), "icon": icon, "colour": colour, "why": one.cause or one.message,
            "type": f"{one.implementation} {one.api_version.rpartition('/')[2]}", "where": say(one.engine),
            "priority": one.priority, "workers": f"{one.workers_ready}/{one.workers}",
            "resources": amounts.resources(one), "owner": one.owner, "created": amounts.moment(one.created),
            "duration": amounts.duration(one.started, one.ended),
        }  # fmt: skip

    # -- what the reader does --------------------------------------------------------------------------
    async def _searched(self, event: events.ValueChangeEventArguments[Any]) -> None:
        self.wanted.search, self.wanted.cursors = event.value or "", [None]
        await self.refresh()

    async def _chosen(self, event: events.ValueChangeEventArguments[Any]) -> None:
        self.wanted.states, self.wanted.cursors = list(event.value or ()), [None]
        await self.refresh()

    async def _sorted(self, event: events.GenericEventArguments) -> None:
        asked = event.args.get("pagination", {})
        by = asked.get("sortBy") if asked.get("sortBy") in _SORTED else "created"
        self.wanted.sort, self.wanted.cursors = f"-{by}" if asked.get("descending") else by, [None]
        self.table.pagination = {"rowsPerPage": 0, "sortBy": by, "descending": bool(asked.get("descending"))}
        await self.refresh()

    async def _back(self) -> None:
        self.wanted.cursors.pop()
        await self.refresh()

    async def _forth(self) -> None:
        self.wanted.cursors.append(self.next)
        await self.refresh()

    def _bulk(self) -> None:
        """What can be done to the jobs that are marked; nothing is, nothing can."""
        say, desk = self.guest.say, self.guest.visit.desk
        acts = (("Stop", "stop", "stop", desk.stop), ("Delete", "delete", "delete", desk.delete))
        self.actions.set_visibility(False)
        self.table.on_select(lambda _: self.actions.set_visibility(bool(self.table.selected)))
        with self.actions:
            for word, icon, what, act in acts:
                ask = partial(self._confirm, what, say(word), act)
                ui.button(say(word), icon=icon, on_click=ask).props("outline dense no-caps")

    async def _confirm(self, what: str, word: str, act: Any) -> None:
        say = self.guest.say
        keys = [row["key"] for row in self.table.selected]
        with ui.dialog() as dialog, ui.card():
            ui.label(say("{word}: {count} jobs?", word=word, count=len(keys)))
            for key in keys[:10]:
                ui.label(key).classes("oarsman-note")
            with ui.row():
                ui.button(say("No"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(word, on_click=lambda: dialog.submit(True)).props("unelevated no-caps")
        if await dialog:
            for key in keys:
                await self.guest.attempt(what, key, act, key)
            self.table.selected.clear()
            self.actions.set_visibility(False)
            await self.refresh()
        dialog.delete()


def _arrow(icon: str, words: str, act: Callable[[], Awaitable[None]]) -> ui.button:
    return ui.button(icon=icon, on_click=act).props(f'flat round dense aria-label="{words}"')


# Values are only ever interpolated as text, or bound as attributes; addresses are made of parts that are escaped.
_NAME = """
<q-td :props="props">
  <a class="oarsman-link"
     :href="['/jobs', props.row.namespace, props.row.name].map(encodeURI).join('/')">{{ props.row.name }}</a>
  <div class="oarsman-note">{{ props.row.description }}</div>
</q-td>
"""
_STATE = """
<q-td :props="props">
  <span class="oarsman-state" :class="props.row.colour">
    <q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.state }}
  </span>
  <div class="oarsman-note ellipsis" style="max-width: 26rem" :title="props.row.why">{{ props.row.why }}</div>
</q-td>
"""
