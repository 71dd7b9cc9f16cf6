"""The way in: a name and a password, or, where the cluster decides who may what, one's own token for it.

And once in: who one is here, the password, the tokens that programs use in one's name; and for admins, who may come in
and in which role, and what everybody did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

from fastapi import Request
from nicegui import ui
from pydantic import ValidationError

from oarsman.console.api import accounts as actions
from oarsman.console.console import Console
from oarsman.console.pages.page import Page, bare, spoken
from oarsman.console.parts import mistakes, widgets, words
from oarsman.console.parts.widgets import (
    MOMENT,
    TIME,
    answered,
    at_the_door,
    columns,
    heading,
    milliseconds,
    moment,
    note,
    page_head,
    submit_or_cancel,
    sure,
)
from oarsman.console.parts.words import Words
from oarsman.service.models import (
    Account,
    AccountChange,
    AccountRole,
    AuditEntry,
    MadeToken,
    NewAccount,
    NewToken,
    Role,
    Token,
)
from oarsman.service.rights import Action, may
from oarsman.text.catalogue import N_

T = TypeVar("T")
_NEWER = "kubectl create token NAME"
_OLDER = (
    "kubectl get secret $(kubectl get sa NAME -o jsonpath='{.secrets[0].name}') -o jsonpath='{.data.token}'"
    " | base64 --decode"
)


def _login(say: Words, address: str, *fields: tuple[str, str]) -> None:
    """`fields`: what each is called, and its attributes."""
    log_in = f"() => oarsman.logIn('{address}', {at_the_door(say)})"
    for title, attributes in fields:
        ui.input(title).props(f"{attributes} outlined dense").on("keydown.enter", js_handler=log_in)
    ui.label("").classes("oarsman-login-trouble text-negative").props('role="alert"')
    ui.button(say("Log in")).props("unelevated no-caps").on("click", js_handler=log_in)


def register_login(console: Console) -> None:
    @ui.page("/login")
    def login(request: Request) -> None:
        say = spoken(request)
        with bare(say, say("Log in")):
            with ui.row().classes("oarsman-brand"):
                widgets.logo()
                heading("Oarsman", 1)
            if request.query_params.get("link") == "used":
                ui.label(say("This link was used before, or is older than ten minutes.")).classes("is-bad")
            if not console.backends.tokens_needed:
                name = (say("Name"), 'name="name" autocomplete="username" autofocus')
                password = (say("Password"), 'name="password" type="password" autocomplete="current-password"')
                _login(say, "/api/v1/session", name, password)
                note(say("On this machine: `oarsman tokens link` prints a link that opens the console once."))
                return
            note(say("The console acts with your own rights on the cluster, and never with more."))
            attributes = 'name="token" type="password" autocomplete="off" spellcheck="false" autofocus'
            _login(say, "/api/v1/session/cluster", (say("Your token for the cluster"), attributes))
            note(say("This prints one for a service account:"))
            ui.label(_NEWER).classes("oarsman-lines")
            note(say("Before Kubernetes 1.24:"))
            ui.label(_OLDER).classes("oarsman-lines")


def _draw_all(say: Words, place: ui.column, found: Sequence[T], draw: Callable[[T], None]) -> None:
    place.clear()
    with place:
        if not found:
            note(say("There are none."))
        for one in found:
            draw(one)


class AccountPage(Page):
    path, title = "/account", N_("Account")

    async def show(self, _: Request) -> None:
        context, self.caller, self.gate = self.context, self.context.caller, self.context.console.gate
        self.firm = ui.element("div").classes("oarsman-nothing")
        with ui.row().classes("oarsman-card items-center w-full"):
            heading(context.name, 1)
            note(self.say(self.service.identity.role.value))
            ui.space()
            if may(self.service.identity, Action.ADMINISTER):
                ui.link(self.say("Accounts and audit log"), "/people")
            ui.button(self.say("Log out"), icon="logout").props("outline no-caps").on(
                "click", js_handler="oarsman.logOut"
            )
        if self.caller.token is not None:
            note(self.say("You came with a token of the cluster; it has no account here."))
            return
        if self.caller.account is not None:
            self._password()
        await self._tokens()

    def _password(self) -> None:
        with ui.column().classes("oarsman-card w-full oarsman-password"):
            heading(self.say("Password"))
            change = f"() => oarsman.changePassword({at_the_door(self.say)})"
            with ui.row().classes("items-center"):
                for name, label, fill in (
                    ("current", self.say("Current password"), "current-password"),
                    ("new", self.say("New password"), "new-password"),
                ):
                    field = ui.input(label).props(f'name={name} type=password autocomplete="{fill}" outlined dense')
                    field.on("keydown.enter", js_handler=change)
                ui.button(self.say("Change")).props("outline no-caps").on("click", js_handler=change)
            said = ui.label("").classes("oarsman-password-said").props("role=alert")
            said.props["data-done"] = self.say("Changed. Other sessions of yours have ended.")

    async def _tokens(self) -> None:
        with ui.column().classes("oarsman-card w-full items-stretch"):
            with ui.row().classes("items-center w-full"):
                heading(self.say("API tokens"))
                ui.link(self.say("REST API"), "/docs").classes("oarsman-link")
                ui.space()
                purpose = ui.input(self.say("What it is for")).props("outlined dense autocomplete=off")
                days = ui.number(self.say("Days it lasts"), min=1, max=3650, precision=0)
                days.props("outlined dense").classes("w-40")

                async def make() -> None:
                    wanted = NewToken(note=purpose.value or "", days=int(days.value) if days.value else None)
                    with self.firm:
                        made = await self.context.tried(
                            asyncio.to_thread, actions.make_token, wanted, self.caller, self.gate
                        )
                        if made is not None:
                            await self._show_secret(made)
                    await self._refresh()

                for field in (purpose, days):
                    field.on("keydown.enter", make)
                ui.button(self.say("New token"), icon="add", on_click=make).props("outline no-caps")
            self.place = ui.column().classes("w-full items-stretch")
        await self._refresh()

    async def _refresh(self) -> None:
        found = await self.context.ask(asyncio.to_thread, actions.tokens, self.caller, self.gate)
        _draw_all(self.say, self.place, found, self._token)

    def _token(self, token: Token) -> None:
        async def revoke() -> None:
            with self.firm:
                await self.context.tried(asyncio.to_thread, actions.revoke_token, token.id, self.caller, self.gate)
            await self._refresh()

        used = MOMENT if token.last_used else self.say("never used")
        until = self.say("until {time}", time=MOMENT) if token.expires else self.say("does not expire")
        times = filter(None, (token.created, token.expires, token.last_used))
        with ui.row().classes("items-center w-full"):
            ui.label(token.note or token.id)
            moment(*times, said=" · ".join((token.owner, MOMENT, until, used))).classes("oarsman-note")
            ui.space()
            ui.button(self.say("Revoke"), on_click=revoke).props("outline dense no-caps")

    async def _show_secret(self, made: MadeToken) -> None:
        with ui.dialog().props("persistent") as dialog, ui.card().classes("oarsman-wide-dialog"):
            ui.label(self.say("The token is shown this once. Keep it in a safe place."))
            ui.label(made.secret).classes("oarsman-lines oarsman-secret")
            with ui.row().classes("items-center"):
                ui.button(self.say("Close"), on_click=dialog.close).props("flat no-caps")
                copy = ui.button(self.say("Copy"), icon="content_copy").props("unelevated no-caps")
                copied = ui.label("").props("role=status").classes("oarsman-note")
                copied.props["data-done"] = self.say("Copied")
                copy.on("click", js_handler=f"() => oarsman.copy('.oarsman-secret', '#{copied.html_id}')")
        await answered(dialog)


_ROLES: dict[str, AccountRole] = {role.value: role for role in get_args(AccountRole)}
_ENTRIES = 50  # of the audit log, at a time


class PeoplePage(Page):
    path, title = "/people", N_("Accounts and audit log")

    async def show(self, _: Request) -> None:
        if not may(self.context.caller.identity, Action.ADMINISTER):
            ui.label(self.say("This page is for admins.")).classes("oarsman-card")
            return
        self.caller, self.gate = self.context.caller, self.context.console.gate
        self.cursor: str | None = None
        self.firm = ui.element("div").classes("oarsman-nothing")
        page_head(self.say(self.title))
        with ui.column().classes("oarsman-card w-full items-stretch"):
            with ui.row().classes("items-center w-full"):
                heading(self.say("Accounts"))
                ui.space()
                ui.button(self.say("New account"), icon="person_add", on_click=self._add).props("outline no-caps")
            self.accounts = ui.column().classes("w-full items-stretch")
        with ui.column().classes("oarsman-card w-full items-stretch"):
            heading(self.say("Audit log"))
            titles = {
                "time": self.say("Time"),
                "who": self.say("Who"),
                "what": self.say("What"),
                "about": self.say("About"),
                "outcome": self.say("Outcome"),
                "address": self.say("From"),
            }
            self.entries = ui.table(columns=columns(titles), rows=[], row_key="id").classes("w-full")
            widgets.readable(self.entries).props("flat dense wrap-cells hide-pagination")
            self.entries.pagination = {"rowsPerPage": 0}
            self.entries.add_slot("body-cell-time", TIME)
            self.older = ui.button(self.say("Older"), on_click=self._more).props("flat no-caps")
        await self._refresh()
        await self._more()

    async def _refresh(self) -> None:
        found = await self.context.ask(asyncio.to_thread, actions.accounts, self.caller, self.gate)
        _draw_all(self.say, self.accounts, found, self._account)

    def _account(self, account: Account) -> None:
        def change(**wanted: Any) -> Callable[[], Any]:
            return lambda: actions.change_account(account.name, AccountChange(**wanted), self.caller, self.gate)

        async def set_role(role: str) -> None:
            if role != account.role.value:
                await self._do(change(role=_ROLES[role]))

        with ui.row().classes("items-center w-full").props("role=group") as row:
            row.props["aria-label"] = account.name
            ui.label(account.name)
            moment(account.created).classes("oarsman-note")
            if account.disabled:
                ui.label(self.say("disabled")).classes("is-wait")
            ui.space()
            ui.select(
                {name: self.say(name) for name in _ROLES},
                value=account.role.value,
                label=self.say("Role"),
                on_change=lambda event: set_role(event.value),
            ).props("outlined dense options-dense").classes("w-32")
            word = self.say("Enable") if account.disabled else self.say("Disable")
            disabled = not account.disabled
            ui.button(word, on_click=lambda: self._do(change(disabled=disabled))).props("outline dense no-caps")
            ui.button(self.say("Remove"), on_click=lambda: self._remove(account)).props("outline dense no-caps")

    async def _remove(self, account: Account) -> None:
        question = self.say("Remove the account {name} with its tokens? Its jobs stay.", name=account.name)
        with self.firm:
            if await sure(self.say, question, self.say("Remove"), grave=True):
                await self._do(lambda: actions.remove_account(account.name, self.caller, self.gate))

    async def _add(self) -> None:
        with self.firm, ui.dialog() as dialog, ui.card():
            name = ui.input(self.say("Name")).props("outlined dense autocomplete=off")
            password = ui.input(self.say("Password")).props('outlined dense type=password autocomplete="new-password"')
            role = ui.select({name: self.say(name) for name in _ROLES}, value=Role.USER.value, label=self.say("Role"))
            role.props("outlined dense options-dense")
            said = ui.label("").classes("is-bad").props("role=alert")

            async def add() -> None:
                try:
                    wanted = NewAccount(name=name.value, role=_ROLES[role.value], password=password.value)
                except ValidationError as error:
                    called = (("name", self.say("Name")), ("password", self.say("Password")))
                    said.set_text(mistakes.in_one_line(self.say, error, called))
                    return
                if await self._do(lambda: actions.add_account(wanted, self.caller, self.gate)):
                    dialog.submit(True)

            submit_or_cancel(self.say, dialog, self.say("New account"), add)
        await answered(dialog)

    async def _do(self, act: Callable[[], Any]) -> object:
        with self.firm:
            done = await self.context.tried(asyncio.to_thread, act)
            await self._refresh()
        return done

    async def _more(self) -> None:
        found = await self.context.ask(asyncio.to_thread, actions.audit, self.caller, self.gate, _ENTRIES, self.cursor)
        self.cursor = found.next
        first = len(self.entries.rows)
        self.entries.add_rows(
            [
                {**self._told(one), "time": milliseconds(one.time), "id": first + position}
                for position, one in enumerate(found.items)
            ]
        )
        self.older.set_visibility(found.next is not None)

    def _told(self, one: AuditEntry) -> dict[str, Any]:
        """In the reader's language, as far as it is said in words of ours."""
        told = {"what": self.say(one.what), "about": words.about(self.say, one.what, one.about)}
        if one.address == N_("command"):
            told["address"] = self.say(one.address)
        return {**one.model_dump(mode="json"), **told, "outcome": words.outcome(self.say, one.outcome)}
