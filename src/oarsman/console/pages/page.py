"""What every page stands on: who looks at it, in which language, through which service; and what it has around it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import Client, background_tasks, ui

from oarsman import names
from oarsman.console.console import Console, RequestContext
from oarsman.console.pages.live import LiveConnections
from oarsman.console.parts import widgets
from oarsman.console.parts.words import COOKIE, Words
from oarsman.errors import OarsmanError, UnauthenticatedError
from oarsman.service.models import Role
from oarsman.text.catalogue import LANGUAGES, N_, of_browser

_PATHS = (
    ("/", "dashboard", N_("Overview")),
    ("/jobs", "view_list", N_("Jobs")),
    ("/create", "add_circle", N_("New job")),
    ("/sweeps", "grid_view", N_("Sweeps")),
    ("/hosts", "dns", N_("Hosts and queue")),
    ("/environments", "inventory_2", N_("Environments")),
)
P = ParamSpec("P")
T = TypeVar("T")
Act = Callable[[], Awaitable[object]]
_THEME = "oarsman-theme"  # where the browser keeps the reader's choice
_AT_MOST_EVERY = 0.5  # seconds; however fast jobs change, nobody reads faster
_BUILT_WITHIN_SECONDS = 90.0  # longer than any answer is waited for; otherwise the framework shows an error instead
_STILL_HERE_SECONDS = 30.0  # after which somebody who sees no changes is asked for again


@dataclass(frozen=True, slots=True)
class PageContext(RequestContext):
    say: Words
    client: Client  # their browser's page
    namespace: str | None = None  # that the page is about

    @property
    def name(self) -> str:
        return self.service.identity.name

    @property
    def home(self) -> str:
        """The namespace of manifests that name none."""
        return self.backend.jobs.home or names.DEFAULT_NAMESPACE

    @property
    def may_change(self) -> bool:
        """In the namespace of the page, or anywhere: by one's role, and by what a cluster allows."""
        if self.service.identity.role is Role.VIEWER:
            return False
        return self.backend.rights.may_change(self.namespace)

    async def ask(self, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """An answer, of the service or (with `asyncio.to_thread`) of the console's own store.

        A page stays open for days. Whoever is no longer who opened it is not answered: what they began ends here, and
        the page is asked for anew, which leads to the login page or shows what their new role may see.
        """
        async with self.turn():
            if await asyncio.to_thread(self.still_holds):
                return await question(*args, **kwargs)
        if not self.client.is_deleted:
            with self.client:
                ui.navigate.reload()
        raise asyncio.CancelledError

    async def attempt(
        self, what: str, about: str, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Something that changes something: noted, and told if it was refused. What came of it; nothing: refused."""
        try:
            answer = await self.ask(question, *args, **kwargs)
        except OarsmanError as error:
            await self.note(what, about, error.code)
            _tell(self.say, error)
            return []
        await self.note(what, about)
        return [answer]

    async def tried(self, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What came of something that notes itself; None: it was refused, which was told."""
        try:
            return await self.ask(question, *args, **kwargs)
        except OarsmanError as error:
            _tell(self.say, error)
            return None

    async def _shown(self, refresh: Callable[[], Awaitable[Any]] | None) -> bool:
        """False: the cluster has shown them out. Who was shown out here is not answered, and does not come back."""
        try:
            await self.ask(asyncio.sleep, 0)
            if refresh is not None:
                await refresh()
        except UnauthenticatedError:  # the cluster was quicker to say so
            self.console.gate.doubt(self.caller)
            return False
        except OarsmanError as error:  # a cluster that does not answer, or refuses, has shown nobody out
            _tell(self.say, error)
        return True

    def on_changes(self, refresh: Callable[[], Awaitable[Any]], *, only: str | None = None) -> None:
        """Calls `refresh` when jobs have changed (or the one with that key), until the page is closed."""
        subscription = self.backend.job_index.subscribe()

        async def news() -> bool:
            await subscription.changed.wait()
            told = subscription.take()
            return told is not None and (only is None or told.reset or only in told.keys)

        self._follow(news, refresh, subscription.close)

    def on_check(self, refresh: Callable[[], Awaitable[Any]]) -> None:
        """Calls `refresh` when the check of the hosts is somewhere else."""
        checking, seen = self.backend.checking, None

        async def news() -> bool:
            nonlocal seen
            seen = await checking.other_than(seen)
            return True

        self._follow(news, refresh)

    def _follow(
        self,
        news: Callable[[], Awaitable[bool]],
        refresh: Callable[[], Awaitable[Any]],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """A page that is waited for goes to the browser as it is: this comes last."""
        client = ui.context.client

        async def follow() -> None:
            try:
                await client.connected()
                while not client.is_deleted:
                    concerned = False
                    with suppress(TimeoutError):
                        concerned = await asyncio.wait_for(news(), _STILL_HERE_SECONDS)
                    with client:
                        if not await self._shown(refresh if concerned else None):
                            ui.navigate.to("/login")
                            return
                    await asyncio.sleep(_AT_MOST_EVERY)
            finally:
                close()

        task = background_tasks.create(follow(), name="what changes on a page")
        client.on_delete(task.cancel)


def _tell(say: Words, error: OarsmanError) -> None:
    ui.notify(say.refusal(error), type="negative", multi_line=True)


def spoken(request: Request) -> Words:
    return Words(of_browser(request.cookies.get(COOKIE), request.headers.get("accept-language", "")))


class PagePart:
    """A page or a part of one: it speaks and asks as whoever looks at it."""

    firm: ui.element  # a place that is never drawn anew: what a handler says or opens goes there

    def __init__(self, context: PageContext) -> None:
        self.context = context
        self.say = context.say
        self.service = context.service

    def button(self, word: str, icon: str, act: Act, more: str = "") -> ui.button:
        async def within() -> None:
            with self.firm:
                await act()

        return ui.button(word, icon=icon, on_click=within).props(f"outline dense no-caps {more}")

    def offer(
        self, word: str, icon: str, act: Act, question: str = "", *, grave: bool = False, more: str = ""
    ) -> ui.button:
        """`question`: what is asked before it is done."""

        async def do() -> None:
            if not question or await widgets.sure(self.say, question, word, grave=grave):
                await act()

        return self.button(word, icon, do, more)


class Page(PagePart, ABC):
    """Made anew for everybody who opens it."""

    path: str
    title = ""  # in the catalogue; without one, the page is about one thing and has its name
    with_query = False  # whoever has to log in first comes back to what they asked, not only to the page

    @abstractmethod
    async def show(self, request: Request) -> None: ...


def register(console: Console, connections: LiveConnections, kind: type[Page]) -> None:
    """For those who are in; others go to the login page first, and come back."""

    @ui.page(kind.path, response_timeout=_BUILT_WITHIN_SECONDS)
    async def shown(request: Request) -> RedirectResponse | None:
        try:
            context = await entered(console, connections, request)
        except UnauthenticatedError:
            query = f"?{request.url.query}" if kind.with_query and request.url.query else ""
            back = quote(f"{request.scope['path']}{query}", safe="/")
            return RedirectResponse("/login" + (f"?to={back}" if back != "/" else ""))
        name = context.say(kind.title) if kind.title else request.path_params["name"]
        with framed(context, kind.path.partition("/{")[0], name):
            await kind(context).show(request)
        return None


async def entered(console: Console, connections: LiveConnections, request: Request) -> PageContext:
    """Who looks at the page that is just being made. Raises UnauthenticatedError for nobody."""
    caller = await asyncio.to_thread(console.gate.caller, request)  # it may wait for the file
    client = ui.context.client
    connections.belongs(client, caller)
    namespace = request.path_params.get("namespace")
    return PageContext.of(console, caller, say=spoken(request), client=client, namespace=namespace)


def key_of(request: Request) -> str:
    """Of the thing that a page is about."""
    return "{namespace}/{name}".format(**request.path_params)


def run_asked_for(asked: Mapping[str, str]) -> int | None:
    """Which run of a job; None: the newest."""
    run = asked.get("run", "")
    return int(run) if run.isdecimal() and len(run) < 10 else None


@contextmanager
def framed(context: PageContext, place: str, title: str) -> Iterator[None]:
    say = context.say
    _basics(say, title)
    with ui.header().classes("oarsman-header items-center"):
        with ui.link(target="/").classes("oarsman-brand"):
            widgets.logo()
            ui.label("Oarsman")
        with ui.element("nav").classes("oarsman-nav").props(f'id=oarsman-nav aria-label="{say("Pages")}"'):
            for address, icon, name in _PATHS:
                if address == "/create" and not context.may_change:
                    continue
                here = place == address or place.startswith(f"{address}/") if address != "/" else place == "/"
                with ui.link(target=address).classes("oarsman-place" + (" is-here" if here else "")) as link:
                    ui.icon(icon).props('aria-hidden="true"')
                    ui.label(say(name))
                if here:
                    link.props("aria-current=page")
        ui.space()
        _theme(say)
        _language(say)
        with ui.link(target="/account").classes("oarsman-place oarsman-guest") as account:
            ui.icon("person").props('aria-hidden="true"')
            ui.label(context.name)
        account.props["aria-label"] = say("Account: {name}", name=context.name)
        menu = ui.button(icon="menu").props("flat dense round aria-controls=oarsman-nav aria-expanded=false")
        menu.classes("oarsman-quiet oarsman-menu").on("click", js_handler="oarsman.switchMenu")
        menu.props["aria-label"] = say("Menu")
    with ui.column().classes("oarsman-page"):
        yield


@contextmanager
def outside(say: Words, title: str) -> Iterator[None]:
    """For what everybody may read, in or not."""
    _basics(say, title)
    with ui.header().classes("oarsman-header items-center"):
        ui.link("Oarsman", "/").classes("oarsman-brand")
        ui.space()
        _theme(say)
        _language(say)
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
    client = ui.context.client
    client.page = copy(client.page)  # which is everybody's: here it is in the reader's language
    client.page.language = "zh-CN" if say.language == "zh" else "en-US"
    ui.page_title(f"{title} · Oarsman")
    ui.colors(primary=widgets.PRIMARY)
    ui.add_css(widgets.CSS)
    ui.add_head_html(f"<script>{widgets.SCRIPT}</script>")


def _language(say: Words) -> None:
    other = say.other
    remember = f"document.cookie = '{COOKIE}={other}; path=/; max-age=31536000; samesite=lax'; location.reload()"
    button = ui.button(LANGUAGES[other], on_click=lambda: ui.run_javascript(remember))
    button.props("flat dense no-caps").classes("oarsman-quiet").props["lang"] = other


def _theme(say: Words) -> None:
    dark = ui.dark_mode()
    ui.on("oarsman-theme", lambda event: dark.set_value({"dark": True, "light": False}.get(str(event.args))))
    button = ui.button(icon="contrast").props(f'flat dense round aria-label="{say("Light or dark")}"')
    button.classes("oarsman-quiet").on("click", js_handler=f"() => oarsman.switchTheme('{_THEME}')")
    ui.run_javascript(f"emitEvent('oarsman-theme', localStorage.getItem('{_THEME}') || '')")
