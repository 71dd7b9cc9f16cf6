"""What every page has around it: where one is, where one can go, language and theme, who one is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from oarsman.console.console import Console
from oarsman.console.pages.context import PageContext, welcome
from oarsman.console.parts import widgets
from oarsman.console.parts.words import COOKIE, Words
from oarsman.errors import UnauthenticatedError
from oarsman.text.catalogue import LANGUAGES, N_

Drawn = Callable[[PageContext, Request], Awaitable[None]]
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'><rect width='32' height='32' rx='7' fill='#0b6e99'/>"
    "<path d='M7 25 22 8' stroke='#fff' stroke-width='3' stroke-linecap='round'/>"
    "<ellipse cx='23.5' cy='7.5' rx='3' ry='5' transform='rotate(42 23.5 7.5)' fill='#fff'/>"
    "<path d='M5 21q4-3 8 0t8 0 6 0' stroke='#9ad1e8' stroke-width='2' fill='none'/></svg>"
)
_PATHS = (
    ("/", "dashboard", N_("Overview")),
    ("/jobs", "view_list", N_("Jobs")),
    ("/create", "add_circle", N_("New job")),
    ("/sweeps", "grid_view", N_("Sweeps")),
    ("/hosts", "dns", N_("Hosts and queue")),
    ("/environments", "inventory_2", N_("Environments")),
)


def page(console: Console, path: str, title: str = "", *, with_query: bool = False) -> Callable[[Drawn], Drawn]:
    """A page for those who are in; others go to the login page first, and come back, `with_query` to what they asked.

    `title` is in the catalogue. Without one, the page is about one thing and has its name.
    """

    def register(draw: Drawn) -> Drawn:
        @ui.page(path)
        async def shown(request: Request) -> RedirectResponse | None:
            try:
                context = welcome(console, request)
            except UnauthenticatedError:
                query = f"?{request.url.query}" if with_query and request.url.query else ""
                back = quote(f"{request.scope['path']}{query}", safe="/")
                return RedirectResponse("/login" + (f"?to={back}" if back != "/" else ""))
            name = context.say(title) if title else request.path_params["name"]
            with _frame(context, path.partition("/{")[0], name):
                await draw(context, request)
            return None

        return draw

    return register


def key_of(request: Request) -> str:
    """Of the thing that a page is about."""
    return "{namespace}/{name}".format(**request.path_params)


@contextmanager
def _frame(context: PageContext, place: str, title: str) -> Iterator[None]:
    say = context.say
    _basics(say, title)
    with ui.header().classes("oarsman-header items-center"):
        ui.link("Oarsman", "/").classes("oarsman-brand")
        with ui.element("nav").classes("row no-wrap oarsman-nav").props(f'aria-label="{say("Pages")}"'):
            for address, icon, name in _PATHS:
                if address == "/create" and not context.may_change:
                    continue
                with ui.link(target=address).classes("oarsman-place" + (" is-here" if address == place else "")):
                    ui.icon(icon).props('aria-hidden="true"')
                    ui.label(say(name))
        ui.space()
        _theme(say)
        _language(say)
        with ui.link(target="/account").classes("oarsman-place oarsman-guest").props(f'aria-label="{say("Account")}"'):
            ui.icon("person").props('aria-hidden="true"')
            ui.label(context.name)
    with ui.column().classes("oarsman-page"):
        yield


@contextmanager
def bare(say: Words, title: str) -> Iterator[None]:
    """For those who are not in yet."""
    _basics(say, title)
    with ui.column().classes("absolute-center items-stretch oarsman-card oarsman-login"):
        yield
    with ui.row().classes("fixed-top-right q-ma-md"):
        _theme(say)
        _language(say)


def _basics(say: Words, title: str) -> None:
    ui.page_title(f"{title} · Oarsman")
    ui.colors(primary=widgets.PRIMARY)
    ui.add_css(widgets.CSS)
    ui.run_javascript(f"document.documentElement.lang = '{'zh-CN' if say.language == 'zh' else 'en'}'")


def _language(say: Words) -> None:
    other = say.other
    ui.button(LANGUAGES[other], on_click=lambda: _remember(COOKIE, other)).props("flat dense no-caps").classes(
        "oarsman-quiet"
    ).props(f'lang="{other}"')


def _theme(say: Words) -> None:
    dark = ui.dark_mode()
    ui.on("oarsman-theme", lambda event: dark.set_value({"dark": True, "light": False}.get(event.args)))
    ui.button(icon="contrast").props(f'flat dense round aria-label="{say("Light or dark")}"').classes(
        "oarsman-quiet"
    ).on("click", js_handler=_SWITCH_THEME)
    ui.run_javascript(f"emitEvent('oarsman-theme', localStorage.getItem('{_THEME}') || '')")


_THEME = "oarsman-theme"
_SWITCH_THEME = f"""() => {{
    const dark = !document.body.classList.contains('body--dark');
    localStorage.setItem('{_THEME}', dark ? 'dark' : 'light');
    emitEvent('oarsman-theme', dark ? 'dark' : 'light');
}}"""


def _remember(cookie: str, value: str) -> None:
    ui.run_javascript(
        f"document.cookie = '{cookie}={value}; path=/; max-age=31536000; samesite=lax'; location.reload()"
    )
