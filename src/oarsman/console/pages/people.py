"""For admins: who may come in and in which role, and what everybody did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

from fastapi import Request
from nicegui import ui
from pydantic import ValidationError

from oarsman.console.api import accounts as actions
from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext
from oarsman.console.parts import words
from oarsman.console.parts.widgets import answered, sure
from oarsman.console.security.gate import Caller
from oarsman.service.models import Account, AccountChange, AccountRole, NewAccount, Role
from oarsman.service.rights import Action, may
from oarsman.text.catalogue import N_

_ROLES: dict[str, AccountRole] = {role.value: role for role in get_args(AccountRole)}
_ENTRIES = 50  # of the audit log, at a time


def register(console: Console) -> None:
    @shell.page(console, "/people", N_("Accounts and audit log"))
    async def page(context: PageContext, _: Request) -> None:
        caller = context.request_context.caller
        if not may(caller.identity, Action.ADMINISTER):
            ui.label(context.say("This page is for admins.")).classes("oarsman-card")
            return
        await _People(context, caller).show()


class _People:
    def __init__(self, context: PageContext, caller: Caller) -> None:
        self.context = context
        self.caller = caller
        self.gate = context.request_context.console.gate
        self.cursor: str | None = None

    async def show(self) -> None:
        say = self.context.say
        self.firm = ui.element("div")
        with ui.column().classes("oarsman-card w-full items-stretch"):
            with ui.row().classes("items-center w-full"):
                ui.label(say("Accounts")).classes("text-subtitle1")
                ui.space()
                ui.button(say("New account"), icon="person_add", on_click=self._add).props("outline no-caps")
            self.accounts = ui.column().classes("w-full items-stretch")
        with ui.column().classes("oarsman-card w-full items-stretch"):
            ui.label(say("Audit log")).classes("text-subtitle1")
            self.entries = (
                ui.table(
                    columns=[
                        {"name": name, "label": say(title), "field": name, "align": "left"}
                        for name, title in (
                            ("time", N_("Time")),
                            ("who", N_("Who")),
                            ("what", N_("What")),
                            ("about", N_("About")),
                            ("outcome", N_("Outcome")),
                            ("address", N_("From")),
                        )
                    ],
                    rows=[],
                    row_key="id",
                )
                .props("flat dense wrap-cells hide-pagination")
                .classes("w-full")
            )
            self.entries.pagination = {"rowsPerPage": 0}
            self.older = ui.button(say("Older"), on_click=self._more).props("flat no-caps")
        await self._refresh()
        await self._more()

    # -- accounts --------------------------------------------------------------------------------------
    async def _refresh(self) -> None:
        found = await self.context.ask(asyncio.to_thread, actions.accounts, self.caller, self.gate)
        self.accounts.clear()
        with self.accounts:
            if not found:
                ui.label(self.context.say("There are none.")).classes("oarsman-note")
            for account in found:
                self._account(account)

    def _account(self, account: Account) -> None:
        say = self.context.say

        def change(**wanted: Any) -> Callable[[], Any]:
            return lambda: actions.change_account(account.name, AccountChange(**wanted), self.caller, self.gate)

        async def set_role(role: str) -> None:
            if role != account.role.value:
                await self._do(change(role=_ROLES[role]))

        with ui.row().classes("items-center w-full").props("role=group") as row:
            row.props["aria-label"] = account.name
            ui.label(account.name)
            ui.label(words.moment(account.created)).classes("oarsman-note")
            if account.disabled:
                ui.label(say("disabled")).classes("is-wait")
            ui.space()
            ui.select(
                {name: say(name) for name in _ROLES},
                value=account.role.value,
                label=say("Role"),
                on_change=lambda event: set_role(event.value),
            ).props("outlined dense options-dense").classes("w-32")
            word = say("Enable") if account.disabled else say("Disable")
            disabled = not account.disabled
            ui.button(word, on_click=lambda: self._do(change(disabled=disabled))).props("outline dense no-caps")
            ui.button(say("Remove"), on_click=lambda: self._remove(account)).props("outline dense no-caps")

    async def _remove(self, account: Account) -> None:
        say = self.context.say
        question = say("Remove the account {name} with its tokens? Its jobs stay.", name=account.name)
        with self.firm:
            if await sure(say, question, say("Remove"), grave=True):
                await self._do(lambda: actions.remove_account(account.name, self.caller, self.gate))

    async def _add(self) -> None:
        say = self.context.say
        with self.firm, ui.dialog() as dialog, ui.card():
            name = ui.input(say("Name")).props("outlined dense autocomplete=off")
            password = ui.input(say("Password")).props('outlined dense type=password autocomplete="new-password"')
            role = ui.select({name: say(name) for name in _ROLES}, value=Role.USER.value, label=say("Role"))
            role.props("outlined dense options-dense")
            said = ui.label("").classes("is-bad").props("role=alert")

            async def add() -> None:
                try:
                    wanted = NewAccount(name=name.value, role=_ROLES[role.value], password=password.value)
                except ValidationError as error:
                    said.set_text("; ".join(f"{say(str(e['loc'][0]))}: {e['msg']}" for e in error.errors()))
                    return
                if await self._do(lambda: actions.add_account(wanted, self.caller, self.gate)):
                    dialog.submit(True)

            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(say("New account"), on_click=add).props("unelevated no-caps")
        await answered(dialog)

    async def _do(self, act: Callable[[], Any]) -> bool:
        with self.firm:
            done = await self.context.tried(asyncio.to_thread, act)
            await self._refresh()
        return done

    # -- audit -----------------------------------------------------------------------------------------
    async def _more(self) -> None:
        found = await self.context.ask(asyncio.to_thread, actions.audit, self.caller, self.gate, _ENTRIES, self.cursor)
        self.cursor = found.next
        first = len(self.entries.rows)
        self.entries.add_rows(
            [
                {**one.model_dump(mode="json"), "time": words.moment(one.time), "id": first + position}
                for position, one in enumerate(found.items)
            ]
        )
        self.older.set_visibility(found.next is not None)
