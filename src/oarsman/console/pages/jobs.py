"""All jobs: found, sorted and paged by the server, live without reload. What is shown stands in the address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request
from nicegui import events, ui

from oarsman.console.pages.page import Page, PageContext, PagePart
from oarsman.console.parts import job_rows
from oarsman.console.parts.job_rows import COLUMNS, ROWS, JobsWanted
from oarsman.console.parts.widgets import (
    ROWS_TOLD,
    STATES,
    Part,
    Ticking,
    answered,
    facts,
    fill,
    heading,
    note,
    popup,
    readable,
    submit_or_cancel,
)
from oarsman.console.security.store import LONGEST_NAME, Person, SavedView
from oarsman.errors import OarsmanError
from oarsman.service.listing import Facets
from oarsman.service.models import JobList
from oarsman.text.catalogue import N_


class Views(PagePart):
    """A menu: the views there are, and a way to add this one."""

    def __init__(self, context: PageContext, firm: ui.element, wanted: JobsWanted) -> None:
        super().__init__(context)
        self.firm = firm
        self._wanted = wanted
        self._found: list[SavedView] = []
        self._store = context.console.gate.store.views
        caller = context.caller
        known_here = caller.token is None
        self._person = Person(caller.account, context.name) if known_here else Person(None, f"cluster:{context.name}")
        self._button = ui.button(context.say("Views"), icon="bookmarks").props("flat dense no-caps")
        with self._button, popup(context.say("Views")):
            self._menu = ui.element("div").classes("oarsman-views")
        self._button.set_visibility(False)

    async def read(self) -> None:
        """After the jobs were shown: only then it is sure that somebody from a cluster is who they say."""
        self._found = await self.context.ask(asyncio.to_thread, self._store.all, self._person)
        self._button.set_visibility(True)
        self.draw()

    def draw(self) -> None:
        here = self._wanted.address()
        current = next((view.name for view in self._found if view.address == here), None)
        self._button.set_text(current or self.say("Views"))
        self._menu.clear()
        with self._menu:
            for view in self._found:
                address = f"/jobs?{view.address}" if view.address else "/jobs"
                with ui.item(on_click=partial(ui.navigate.to, address)).props("clickable v-close-popup"):
                    with ui.item_section():
                        ui.label(view.name).classes("text-weight-bold" if view.name == current else "")
                    with ui.item_section().props("side"):
                        bin_ = ui.button(icon="delete").props("flat round dense size=sm")
                        bin_.props["aria-label"] = self.say("Delete the view {name}", name=view.name)
                        bin_.on("click.stop", partial(self._remove, view.name))
            with ui.item(on_click=self._ask_name).props("clickable v-close-popup"):
                with ui.item_section().props("avatar"):
                    ui.icon("bookmark_add")
                with ui.item_section():
                    ui.label(self.say("Save this view…"))

    async def _ask_name(self) -> None:
        with self.firm, ui.dialog() as dialog, ui.card().classes("oarsman-dialog"):
            note(self.say("Filter, order and columns are kept under this name."))
            name = ui.input(self.say("Name of the view")).props(f"outlined dense autofocus maxlength={LONGEST_NAME}")
            name.on("keydown.enter", lambda: dialog.submit(True))
            submit_or_cancel(self.say, dialog, self.say("Save"))
        if not await answered(dialog):
            return
        view = SavedView((name.value or "").strip(), self._wanted.address())
        try:
            await self.context.ask(asyncio.to_thread, self._store.save, self._person, view)
        except OarsmanError as error:
            with self.firm:
                ui.notify(self.say.of(error.message), type="negative")
            return
        await self.read()

    async def _remove(self, name: str) -> None:
        await self.context.ask(asyncio.to_thread, self._store.remove, self._person, name)
        await self.read()


_NAMED = 10  # jobs in a question; the rest is a number


class _Act(NamedTuple):
    word: str
    icon: str
    what: str  # as the audit log calls it
    do: Callable[[str], Awaitable[object]]


class Bulk(PagePart):
    """What can be done to the marked jobs together: asked first, and told afterwards what was done and what was not.

    Marks stay when rows change and when pages are turned.
    """

    def __init__(
        self, context: PageContext, firm: ui.element, table: ui.table, refresh: Callable[[], Awaitable[Any]]
    ) -> None:
        super().__init__(context)
        self.firm = firm
        self._table = table
        self._refresh = refresh
        say, service = context.say, context.service
        with ui.row().classes("items-center") as self._buttons:
            self._count = note("")
            for act in (
                _Act(say("Stop"), "stop", "stop", service.stop),
                _Act(say("Suspend"), "pause", "suspend", service.suspend),
                _Act(say("Resume"), "play_arrow", "resume", service.resume),
                _Act(say("Run again"), "replay", "rerun", service.rerun),
                _Act(say("Delete"), "delete", "delete", service.delete),
            ):
                ui.button(act.word, icon=act.icon, on_click=partial(self._ask, act)).props("outline dense no-caps")
        table.on_select(lambda _: self._draw())
        self._draw()

    def clear(self) -> None:
        self._table.selected = []
        self._draw()

    def forget_the_gone(self) -> None:
        job_index = self.context.backend.job_index
        left = [row for row in self._table.selected if job_index.get(row["key"]) is not None]
        if len(left) != len(self._table.selected):
            self._table.selected = left
            self._draw()

    def _draw(self) -> None:
        count = len(self._table.selected)
        self._buttons.set_visibility(bool(count))
        self._count.set_text(self.say("{count} marked", count=count))

    async def _ask(self, act: _Act) -> None:
        keys = [row["key"] for row in self._table.selected]
        with self.firm, ui.dialog() as dialog, ui.card().classes("oarsman-dialog"):
            heading(self.say("{word}: {count} jobs?", word=act.word, count=len(keys)))
            for key in keys[:_NAMED]:
                note(key)
            if len(keys) > _NAMED:
                note(self.say("and {count} more", count=len(keys) - _NAMED))
            if act.what == "delete":
                ui.label(self.say("Their logs and earlier runs are deleted."))
            elif act.what == "rerun" and self.context.backend.jobs.place == "kube":
                ui.label(self.say("Their logs are deleted."))
            submit_or_cancel(self.say, dialog, act.word, grave=act.what == "delete")
        if await answered(dialog):
            await self._do(act, keys)

    async def _do(self, act: _Act, keys: Sequence[str]) -> None:
        refused = []
        with self.firm:
            working = ui.notification(timeout=None, spinner=True)
        for number, key in enumerate(keys, 1):
            working.message = self.say("{word}: {number} of {count}", word=act.word, number=number, count=len(keys))
            try:
                await self.context.ask(act.do, key)
                await self.context.note(act.what, key)
            except OarsmanError as error:
                await self.context.note(act.what, key, error.code)
                refused.append((key, self.say.of(error.message)))
        working.dismiss()
        self.clear()
        self._tell(act, len(keys) - len(refused), refused)
        await self._refresh()

    def _tell(self, act: _Act, done: int, refused: Sequence[tuple[str, str]]) -> None:
        summary = self.say("{word}: {done} done, {refused} refused", word=act.word, done=done, refused=len(refused))
        with self.firm:
            if not refused:
                ui.notify(summary, type="positive")
                return
            with ui.dialog(value=True) as dialog, ui.card().classes("oarsman-dialog"):
                heading(summary)
                facts(refused, "oarsman-refused", of_value="oarsman-note")
                ui.button(self.say("Close"), on_click=dialog.close).props("flat no-caps autofocus")
            dialog.on("hide", dialog.delete)


_FIRST = "oarsman run -n 4 -- hostname"


class JobsPage(Page):
    path, title, with_query = "/jobs", N_("Jobs"), True

    async def show(self, request: Request) -> None:
        self.wanted = JobsWanted.read(request.query_params)
        self.firm = ui.element("div").classes("oarsman-nothing")  # dialogs go here: what opens them may be redrawn
        self._head()
        self._filters()
        self._empty()
        self._table()
        self._foot()
        Ticking(self.say)
        if await self.refresh():
            await self.views.read()
        self.context.on_changes(self.refresh)

    def _head(self) -> None:
        with ui.row().classes("oarsman-head"):
            heading(self.say("Jobs"), 1)
            self.count = note("").props('role="status"')
            ui.space()
            self.views = Views(self.context, self.firm, self.wanted)
            self._column_chooser()
            if self.context.may_change:
                ui.button(self.say("New job"), icon="add").props("unelevated no-caps href=/create")

    def _filters(self) -> None:
        self.choices: dict[str, ui.select] = {}
        with ui.row().classes("items-center w-full oarsman-filters"):
            ui.input(self.say("Search"), value=self.wanted.search, on_change=partial(self._chosen, "search")).props(
                "outlined dense clearable debounce=300"
            )
            ui.select(
                {name: self.say(name) for name in STATES},
                multiple=True,
                label=self.say("State"),
                value=self.wanted.states,
                on_change=partial(self._chosen, "states"),
            ).props("outlined dense use-chips clearable")
            for name, title in (
                ("owner", self.say("Owner")),
                ("namespace", self.say("Namespace")),
                ("engine", self.say("Where")),
            ):
                value = getattr(self.wanted, name)
                self.choices[name] = ui.select(
                    [value] if value else [],
                    label=title,
                    value=value,
                    with_input=True,
                    clearable=True,
                    on_change=partial(self._chosen, name),
                ).props("outlined dense")
            self.all = ui.button(self.say("Show all"), icon="filter_alt_off", on_click=self._show_all)
            self.all.props("flat dense no-caps")

    def _column_chooser(self) -> None:
        self.told: tuple[str, ...] = ()
        button = ui.button(self.say("Columns"), icon="view_column").props("flat dense no-caps")
        with button, popup(self.say("Columns")):
            self.chooser = Part(ui.element("div"), lambda _: self._draw_chooser())

    def _draw_chooser(self) -> None:
        for name, (title, _) in COLUMNS.items():
            with ui.item().props("dense"), ui.item_section():
                box = ui.checkbox(self.say(title), value=name in self.told, on_change=partial(self._column, name))
                box.props("dense").set_enabled(name != "name")

    def _table(self) -> None:
        may = self.context.may_change
        self.table = ui.table(columns=[], rows=[], row_key="key", selection="multiple" if may else None)
        self.table.classes("oarsman-card oarsman-table oarsman-clickable w-full").props(
            "flat dense wrap-cells hide-pagination"
        )
        readable(self.table).props("binary-state-sort hide-selected-banner")
        for slot, template in (
            ("body-cell-name", job_rows.NAME),
            ("body-cell-state", job_rows.STATE),
            ("body-cell-created", job_rows.CREATED),
            ("body-cell-duration", job_rows.DURATION),
            ("item", job_rows.card(marked=may)),
            ("body-selection", job_rows.MARK),
            ("header-selection", job_rows.MARK_ALL % self.say("All on this page")),
            ("no-data", f"<span>{self.say('No job matches.')}</span>"),
        ):
            self.table.add_slot(slot, template)
        self.table.on("request", self._sorted, args=["pagination"])
        self.table.on("row-click", js_handler="oarsman.openRow")

    def _empty(self) -> None:
        with ui.column().classes("oarsman-card items-center w-full") as self.empty:
            heading(self.say("There are no jobs yet."))
            if self.context.may_change:
                ui.button(self.say("New job"), icon="add").props("unelevated no-caps href=/create")
                note(self.say("or, in a terminal:"))
                ui.label(_FIRST).classes("oarsman-lines")
        self.empty.set_visibility(False)

    def _foot(self) -> None:
        with ui.row().classes("items-center w-full oarsman-foot") as self.foot:
            self.bulk = Bulk(self.context, self.firm, self.table, self.refresh) if self.context.may_change else None
            ui.space()
            self.shown = note("").classes("oarsman-figures")
            self.back = ui.button(icon="chevron_left", on_click=partial(self._turn, -1)).props("flat round dense")
            self.back.props["aria-label"] = self.say("Page before")
            self.forth = ui.button(icon="chevron_right", on_click=partial(self._turn, 1)).props("flat round dense")
            self.forth.props["aria-label"] = self.say("Next page")

    async def refresh(self) -> bool:
        """Whether the service answered."""
        try:
            found, facets = await self.context.ask(self._look)
        except OarsmanError as error:
            self.count.set_text(self.say.of(error.message))
            return False
        self._offer(facets)
        known = bool(self.told and self.wanted.columns)  # the boxes of the menu say already what was chosen with them
        self._draw_columns(self.wanted.shown(facets))
        if not known:
            self.chooser.show(self.told)
        fill(self.table, [job_rows.row(self.say, one) for one in found.items])
        column, downwards = self.wanted.sorted_column
        order = {"page": 1, "rowsPerPage": ROWS, "rowsNumber": found.total, "sortBy": column, "descending": downwards}
        if self.table.pagination != order:
            self.table.pagination = order
        if self.bulk is not None:
            self.bulk.forget_the_gone()
        first = (self.wanted.page - 1) * ROWS
        self.shown.set_text(self.say(ROWS_TOLD, first=first + 1, last=first + len(found.items), total=found.total))
        self.back.set_enabled(self.wanted.page > 1)
        self.forth.set_enabled(found.next is not None)
        nothing = not found.total and not self.wanted.narrowed
        self.empty.set_visibility(nothing)
        self.table.set_visibility(not nothing)
        self.foot.set_visibility(bool(found.total))
        self.all.set_visibility(self.wanted.narrowed)
        self.count.set_text(self.say("{count} jobs", count=found.total))
        return True

    async def _look(self) -> tuple[JobList, Facets]:
        found = await self.service.jobs(self.wanted.query())
        if not found.items and self.wanted.page > 1:  # the jobs of this page are gone
            self.wanted.page = max(1, -(-found.total // ROWS))
            found = await self.service.jobs(self.wanted.query())
        return found, await self.service.facets()

    def _offer(self, facets: Facets) -> None:
        """A choice between less than two is none, and is not shown unless it was made."""
        found = {"owner": facets.owners, "namespace": facets.namespaces, "engine": facets.engines}
        for name, values in found.items():
            select, chosen = self.choices[name], getattr(self.wanted, name)
            offered = {value: self.say.engine(value) if name == "engine" else value for value in values}
            if chosen:
                offered.setdefault(chosen, chosen)
            if select.options != offered:
                select.set_options(offered, value=chosen)
            select.set_visibility(len(offered) > 1 or bool(chosen))

    def _draw_columns(self, shown: tuple[str, ...]) -> None:
        if shown != self.told:
            self.told = shown
            self.table.columns = job_rows.columns(self.say, shown)

    async def _chosen(self, name: str, event: events.ValueChangeEventArguments[Any]) -> None:
        value = list(event.value or ()) if name == "states" else event.value or ("" if name == "search" else None)
        if value == getattr(self.wanted, name):
            return
        setattr(self.wanted, name, value)
        if self.bulk is not None:
            self.bulk.clear()  # nobody deletes what they do not see
        await self._moved()

    def _show_all(self) -> None:
        ui.navigate.to(f"/jobs?{JobsWanted(sort=self.wanted.sort, columns=self.wanted.columns).address()}")

    async def _column(self, name: str, event: events.ValueChangeEventArguments[Any]) -> None:
        chosen = {*self.told, name} if event.value else {*self.told} - {name}
        self.wanted.columns = tuple(column for column in COLUMNS if column in chosen)
        self._draw_columns(self.wanted.columns)
        self._tell_address()

    async def _sorted(self, event: events.GenericEventArguments) -> None:
        asked = event.args.get("pagination") or {}
        self.wanted.sort_by(asked.get("sortBy"), bool(asked.get("descending")))
        await self._moved()

    async def _moved(self) -> None:
        self.wanted.page = 1
        self._tell_address()
        await self.refresh()

    def _tell_address(self) -> None:
        query = self.wanted.address(paged=True)
        ui.navigate.history.replace(f"/jobs?{query}" if query else "/jobs")
        self.views.draw()

    async def _turn(self, by: int) -> None:
        self.wanted.page = max(1, self.wanted.page + by)
        await self.refresh()
        self._tell_address()
