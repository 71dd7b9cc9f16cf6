"""The way in: a name and a password, or, where the cluster decides who may what, one's own token for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from nicegui import ui

from oarsman.console.pages import shell
from oarsman.console.pages.context import spoken
from oarsman.console.parts.widgets import at_the_door
from oarsman.console.words import Words

if TYPE_CHECKING:
    from oarsman.console.console import Console


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


def register(console: Console) -> None:
    @ui.page("/login")
    def page(request: Request) -> None:
        say = spoken(request)
        with shell.bare(say, say("Log in")):
            ui.label("Oarsman").classes("text-h5")
            if request.query_params.get("link") == "used":
                ui.label(say("This link was used before, or is older than ten minutes.")).classes("is-bad")
            if console.backends.tokens_needed:
                _token(say)
            else:
                _password(say)


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
