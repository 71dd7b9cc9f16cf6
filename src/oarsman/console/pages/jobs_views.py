"""Saved views: a name for what the list of jobs shows. They are the person's, in every browser."""

from __future__ import annotations

import asyncio
from functools import partial

from nicegui import ui

from oarsman.console.pages.context import PageContext
from oarsman.console.parts.job_query import JobsWanted
from oarsman.console.parts.widgets import answered
from oarsman.console.security.saved_views import LONGEST_NAME, Person, SavedView, SavedViews
from oarsman.errors import OarsmanError


class Views:
    """A menu: the views there are, and a way to add this one."""

    def __init__(self, context: PageContext, firm: ui.element, wanted: JobsWanted) -> None:
        self._context = context
        self._firm = firm
        self._wanted = wanted
        self._found: list[SavedView] = []
        with ui.button(context.say("Views"), icon="bookmarks").props("flat dense no-caps") as self._button:
            self._menu = ui.menu().classes("oarsman-views")
        self._button.set_visibility(False)

    @property
    def _store(self) -> SavedViews:
        return self._context.request_context.console.gate.store.views

    @property
    def _person(self) -> Person:
        request_context = self._context.request_context
        if request_context.caller.token is not None:
            return Person(None, f"cluster:{self._context.name}")
        return Person(request_context.caller.account, self._context.name)

    async def read(self) -> None:
        """After the jobs were shown: only then it is sure that somebody from a cluster is who they say."""
        self._found = await self._context.ask(asyncio.to_thread, self._store.all, self._person)
        self._button.set_visibility(True)
        self.draw()

    def draw(self) -> None:
        say, here = self._context.say, self._wanted.address()
        current = next((view.name for view in self._found if view.address == here), None)
        self._button.set_text(current or say("Views"))
        self._menu.clear()
        with self._menu:
            for view in self._found:
                self._item(view, here=view.name == current)
            if self._found:
                ui.separator()
            with ui.item(on_click=self._ask_name).props("clickable v-close-popup"):
                with ui.item_section().props("avatar"):
                    ui.icon("bookmark_add")
                with ui.item_section():
                    ui.label(say("Save this view…"))

    def _item(self, view: SavedView, *, here: bool) -> None:
        address = f"/jobs?{view.address}" if view.address else "/jobs"
        with ui.item(on_click=partial(ui.navigate.to, address)).props("clickable v-close-popup"):
            with ui.item_section():
                ui.label(view.name).classes("text-weight-bold" if here else "")
            with ui.item_section().props("side"):
                bin_ = ui.button(icon="delete").props("flat round dense size=sm")
                bin_.props["aria-label"] = self._context.say("Delete the view {name}", name=view.name)
                bin_.on("click.stop", partial(self._remove, view.name))

    async def _ask_name(self) -> None:
        say = self._context.say
        with self._firm, ui.dialog() as dialog, ui.card().classes("oarsman-dialog"):
            ui.label(say("Filter, order and columns are kept under this name.")).classes("oarsman-note")
            name = ui.input(say("Name of the view")).props(f"outlined dense autofocus maxlength={LONGEST_NAME}")
            name.on("keydown.enter", lambda: dialog.submit(True))
            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(say("Save"), on_click=lambda: dialog.submit(True)).props("unelevated no-caps")
        if await answered(dialog):
            await self._save(SavedView((name.value or "").strip(), self._wanted.address()))

    async def _save(self, view: SavedView) -> None:
        try:
            await self._context.ask(asyncio.to_thread, self._store.save, self._person, view)
        except OarsmanError as error:
            with self._firm:
                ui.notify(self._context.say.of(error.message), type="negative")
            return
        await self.read()

    async def _remove(self, name: str) -> None:
        await self._context.ask(asyncio.to_thread, self._store.remove, self._person, name)
        await self.read()
