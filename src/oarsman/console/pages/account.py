"""The way in: a name and a password, or, where the cluster decides who may what, one's own token for it.

And once in: who one is here, the password, and the tokens that programs use in one's name.
"""

from __future__ import annotations

import asyncio

from fastapi import Request
from nicegui import ui

from oarsman.console.api import accounts as actions
from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext, spoken
from oarsman.console.parts import words
from oarsman.console.parts.widgets import answered, at_the_door
from oarsman.console.parts.words import Words
from oarsman.console.security.gate import Caller
from oarsman.service.models import MadeToken, NewToken, Token
from oarsman.service.rights import Action, may
from oarsman.text.catalogue import N_

# What is secret goes to the API by the browser itself, so that the cookie comes back to it and no page ever holds it.
_LOG_IN = """async () => {
    const fields = [...document.querySelectorAll('.oarsman-login input[name]')];
    const answer = await fetch('ADDRESS', {
        method: 'POST', credentials: 'same-origin',
        headers: {'Content-Type': 'application/json', 'X-Oarsman': '1'},
        body: JSON.stringify(Object.fromEntries(fields.map((field) => [field.name, field.value]))),
    });
    if (answer.ok) {
        const asked = new URLSearchParams(location.search).get('to') || '/';
        const wanted = URL.canParse(asked, location.origin) ? new URL(asked, location.origin).href : '/';
        location.assign(wanted.startsWith(location.origin + '/') ? wanted : '/');
        return;
    }
    const problem = await answer.json().catch(() => ({}));
    document.querySelector('.oarsman-login-trouble').textContent =
        WORDS[problem.detail] || problem.detail || answer.statusText;
}"""
_BY_PASSWORD = _LOG_IN.replace("ADDRESS", "/api/v1/session")
_BY_TOKEN = _LOG_IN.replace("ADDRESS", "/api/v1/session/cluster")

_NEWER = "kubectl create token NAME"
_OLDER = (
    "kubectl get secret $(kubectl get sa NAME -o jsonpath='{.secrets[0].name}') -o jsonpath='{.data.token}'"
    " | base64 --decode"
)


def _in_words(say: Words, script: str) -> str:
    return script.replace("WORDS", at_the_door(say))


def _password(say: Words) -> None:
    ui.input(say("Name")).props('name="name" autocomplete="username" outlined dense autofocus')
    ui.input(say("Password")).props(
        'name="password" type="password" autocomplete="current-password" outlined dense'
    ).on("keydown.enter", js_handler=_in_words(say, _BY_PASSWORD))
    _button(say, _in_words(say, _BY_PASSWORD))
    ui.label(say("On this machine: `oarsman tokens link` prints a link that opens the console once.")).classes(
        "oarsman-note"
    )


def _token(say: Words) -> None:
    ui.label(say("The console acts with your own rights on the cluster, and never with more.")).classes("oarsman-note")
    ui.input(say("Your token for the cluster")).props(
        'name="token" type="password" autocomplete="off" spellcheck="false" outlined dense autofocus'
    ).on("keydown.enter", js_handler=_in_words(say, _BY_TOKEN))
    _button(say, _in_words(say, _BY_TOKEN))
    ui.label(say("This prints one for a service account:")).classes("oarsman-note")
    ui.label(_NEWER).classes("oarsman-lines")
    ui.label(say("Before Kubernetes 1.24:")).classes("oarsman-note")
    ui.label(_OLDER).classes("oarsman-lines")


def _button(say: Words, act: str) -> None:
    ui.label("").classes("oarsman-login-trouble text-negative").props('role="alert"')
    ui.button(say("Log in")).props("unelevated no-caps").on("click", js_handler=act)


# Secrets go from the browser to the API by themselves: no page ever holds them.
_CHANGE_PASSWORD = """async () => {
    const field = (name) => document.querySelector(`.oarsman-password input[name=${name}]`);
    const said = document.querySelector('.oarsman-password-said');
    const answer = await fetch('/api/v1/me/password', {
        method: 'PUT', credentials: 'same-origin',
        headers: {'Content-Type': 'application/json', 'X-Oarsman': '1'},
        body: JSON.stringify({current: field('current').value, new: field('new').value}),
    });
    if (answer.ok) { said.textContent = said.dataset.done; setTimeout(() => location.reload(), 1500); return; }
    const problem = await answer.json().catch(() => ({}));
    const told = (problem.errors || []).map((e) => WORDS[e.message] || e.message).join('; ');
    said.textContent = told || WORDS[problem.detail] || problem.detail || answer.statusText;
}"""
_SIGN_OUT = """async () => {
    await fetch('/api/v1/session', {method: 'DELETE', credentials: 'same-origin', headers: {'X-Oarsman': '1'}});
    location.assign('/login');
}"""


def register(console: Console) -> None:
    @ui.page("/login")
    def login(request: Request) -> None:
        say = spoken(request)
        with shell.bare(say, say("Log in")):
            ui.label("Oarsman").classes("text-h5")
            if request.query_params.get("link") == "used":
                ui.label(say("This link was used before, or is older than ten minutes.")).classes("is-bad")
            if console.backends.tokens_needed:
                _token(say)
            else:
                _password(say)

    @shell.page(console, "/account", N_("Account"))
    async def page(context: PageContext, _: Request) -> None:
        await _Account(context).show()


class _Account:
    def __init__(self, context: PageContext) -> None:
        self.context = context
        self.gate = context.request_context.console.gate

    async def show(self) -> None:
        context, say = self.context, self.context.say
        self.firm = ui.element("div")
        with ui.row().classes("oarsman-card items-center w-full"):
            ui.icon("person").props('aria-hidden="true"').classes("text-h5")
            ui.label(context.name).classes("text-h6")
            ui.label(say(context.request_context.service.identity.role.value)).classes("oarsman-note")
            ui.space()
            if may(context.request_context.service.identity, Action.ADMINISTER):
                ui.link(say("Accounts and audit log"), "/people")
            ui.button(say("Log out"), icon="logout").props("outline no-caps").on("click", js_handler=_SIGN_OUT)
        caller = context.request_context.caller
        if caller.token is not None:
            ui.label(say("You came with a token of the cluster; it has no account here.")).classes("oarsman-note")
            return
        if caller.account is not None:
            self._password()
        await self._tokens(caller)

    def _password(self) -> None:
        say = self.context.say
        with ui.column().classes("oarsman-card w-full oarsman-password"):
            ui.label(say("Password")).classes("text-subtitle1")
            with ui.row().classes("items-center"):
                for name, label, fill in (
                    ("current", say("Current password"), "current-password"),
                    ("new", say("New password"), "new-password"),
                ):
                    ui.input(label).props(f'name={name} type=password autocomplete="{fill}" outlined dense')
                change = _CHANGE_PASSWORD.replace("WORDS", at_the_door(say))
                ui.button(say("Change")).props("outline no-caps").on("click", js_handler=change)
            said = ui.label("").classes("oarsman-password-said").props("role=alert")
            said.props["data-done"] = say("Changed. Other sessions of yours have ended.")

    # -- tokens ----------------------------------------------------------------------------------------
    async def _tokens(self, caller: Caller) -> None:
        say = self.context.say
        with ui.column().classes("oarsman-card w-full items-stretch"):
            with ui.row().classes("items-center w-full"):
                ui.label(say("API tokens")).classes("text-subtitle1")
                ui.space()
                note = ui.input(say("What it is for")).props("outlined dense autocomplete=off")
                days = ui.number(say("Days it lasts"), min=1, max=3650, precision=0).props("outlined dense")
                days.classes("w-40")

                async def make() -> None:
                    wanted = NewToken(note=note.value or "", days=int(days.value) if days.value else None)
                    made: list[MadeToken] = []

                    def token() -> None:
                        made.append(actions.make_token(wanted, caller, self.gate))

                    with self.firm:
                        if await self.context.tried(asyncio.to_thread, token):
                            await self._show_secret(made[0])
                    await self._refresh(caller)

                ui.button(say("New token"), icon="add", on_click=make).props("outline no-caps")
            self.place = ui.column().classes("w-full items-stretch")
        await self._refresh(caller)

    async def _refresh(self, caller: Caller) -> None:
        say = self.context.say
        found = await self.context.ask(asyncio.to_thread, actions.tokens, caller, self.gate)
        self.place.clear()
        with self.place:
            if not found:
                ui.label(say("There are none.")).classes("oarsman-note")
            for token in found:
                self._token(token, caller)

    def _token(self, token: Token, caller: Caller) -> None:
        say = self.context.say

        async def revoke() -> None:
            with self.firm:
                await self.context.tried(asyncio.to_thread, actions.revoke_token, token.id, caller, self.gate)
            await self._refresh(caller)

        used = words.moment(token.last_used) or say("never used")
        until = say("until {time}", time=words.moment(token.expires)) if token.expires else say("does not expire")
        with ui.row().classes("items-center w-full"):
            ui.label(token.note or token.id)
            ui.label(" · ".join((token.owner, words.moment(token.created), until, used))).classes("oarsman-note")
            ui.space()
            ui.button(say("Revoke"), on_click=revoke).props("outline dense no-caps")

    async def _show_secret(self, made: MadeToken) -> None:
        say = self.context.say
        with ui.dialog().props("persistent") as dialog, ui.card().classes("oarsman-wide-dialog"):
            ui.label(say("The token is shown this once. Keep it in a safe place."))
            ui.label(made.secret).classes("oarsman-lines oarsman-secret")
            ui.button(say("Close"), on_click=dialog.close).props("flat no-caps")
        await answered(dialog)
