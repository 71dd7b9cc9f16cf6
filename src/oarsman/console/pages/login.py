"""The way in: a name and a password, or a word about the link that the server printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from nicegui import ui

from oarsman.console.pages import shell
from oarsman.console.pages.guest import spoken

if TYPE_CHECKING:
    from oarsman.console.server import Console


# The password goes to the API by the browser itself, so that the cookie comes back to it and no page ever holds it.
_LOG_IN = """async () => {
    const field = (name) => document.querySelector(`.oarsman-login input[name=${name}]`).value;
    const answer = await fetch('/api/v1/session', {
        method: 'POST', credentials: 'same-origin',
        headers: {'Content-Type': 'application/json', 'X-Oarsman': '1'},
        body: JSON.stringify({name: field('name'), password: field('password')}),
    });
    const wanted = new URLSearchParams(location.search).get('to') || '/';
    if (answer.ok) { location.assign(/^\\/[^\\/\\\\]/.test(wanted) ? wanted : '/'); return; }
    const problem = await answer.json().catch(() => ({}));
    document.querySelector('.oarsman-login-trouble').textContent = problem.detail || answer.statusText;
}"""


def register(_: Console) -> None:
    @ui.page("/login")
    def page(request: Request) -> None:
        say = spoken(request)
        with shell.bare(say, say("Log in")):
            ui.label("Oarsman").classes("text-h5")
            ui.input(say("Name")).props('name="name" autocomplete="username" outlined dense autofocus')
            ui.input(say("Password")).props(
                'name="password" type="password" autocomplete="current-password" outlined dense'
            ).on("keydown.enter", js_handler=_LOG_IN)
            ui.label("").classes("oarsman-login-trouble text-negative").props('role="alert"')
            ui.button(say("Log in")).props("unelevated no-caps").on("click", js_handler=_LOG_IN)
            ui.label(say("On this machine: `oarsman tokens link` prints a link that opens the console once.")).classes(
                "oarsman-note"
            )
