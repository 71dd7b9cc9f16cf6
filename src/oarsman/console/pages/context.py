"""Who looks at a page, in which language, through which service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from fastapi import Request
from nicegui import Client, background_tasks, ui

from oarsman.console.console import Console, RequestContext, context_of
from oarsman.console.parts.words import COOKIE, Words
from oarsman.errors import OarsmanError, UnauthenticatedError
from oarsman.service.models import Role
from oarsman.text.catalogue import of_browser

P = ParamSpec("P")
T = TypeVar("T")
_AT_MOST_EVERY = 0.5  # seconds; however fast jobs change, nobody reads faster
_STILL_HERE_SECONDS = 30.0  # after which somebody who sees no changes is asked for again


@dataclass(frozen=True, slots=True)
class PageContext:
    request_context: RequestContext
    say: Words
    client: Client  # their browser's page
    namespace: str | None = None  # that the page is about

    @property
    def name(self) -> str:
        return self.request_context.service.identity.name

    @property
    def may_change(self) -> bool:
        """In the namespace of the page, or anywhere: by one's role, and by what a cluster allows."""
        if self.request_context.service.identity.role is Role.VIEWER:
            return False
        return self.request_context.backend.rights.may_change(self.namespace)

    async def ask(self, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """An answer, of the service or (with `asyncio.to_thread`) of the console's own store.

        A page stays open for days. Whoever is no longer who opened it is not answered: what they began ends here, and
        the page is asked for anew, which leads to the login page or shows what their new role may see.
        """
        if await asyncio.to_thread(self.request_context.still_holds):
            return await question(*args, **kwargs)
        if not self.client.is_deleted:
            with self.client:
                ui.navigate.reload()
        raise asyncio.CancelledError

    async def attempt(
        self, what: str, about: str, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> bool:
        """Something that changes something: noted, and told if it was refused. Whether it was done."""
        try:
            await self.ask(question, *args, **kwargs)
        except OarsmanError as error:
            await self.request_context.note(what, about, error.code)
            _tell(self.say, error)
            return False
        await self.request_context.note(what, about)
        return True

    async def tried(self, question: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> bool:
        """The same for what notes itself."""
        try:
            await self.ask(question, *args, **kwargs)
        except OarsmanError as error:
            _tell(self.say, error)
            return False
        return True

    async def _shown(self, refresh: Callable[[], Awaitable[Any]] | None) -> bool:
        """False: the cluster has shown them out. Who was shown out here is not answered, and does not come back."""
        try:
            await self.ask(asyncio.sleep, 0)
            if refresh is not None:
                await refresh()
        except UnauthenticatedError:  # the cluster was quicker to say so
            self.request_context.console.gate.doubt(self.request_context.caller)
            return False
        except OarsmanError as error:  # a cluster that does not answer, or refuses, has shown nobody out
            _tell(self.say, error)
        return True

    def on_changes(self, refresh: Callable[[], Awaitable[Any]], *, only: str | None = None) -> None:
        """Calls `refresh` when jobs have changed (or the one with that key), until the page is closed."""
        client = ui.context.client
        subscription = self.request_context.backend.job_index.subscribe()

        async def follow() -> None:
            try:
                await client.connected()
                while not client.is_deleted:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(subscription.changed.wait(), _STILL_HERE_SECONDS)
                    told = subscription.take() if subscription.changed.is_set() else None
                    concerned = told is not None and (only is None or told.reset or only in told.keys)
                    with client:
                        if not await self._shown(refresh if concerned else None):
                            ui.navigate.to("/login")
                            return
                    await asyncio.sleep(_AT_MOST_EVERY)
            finally:
                subscription.close()

        task = background_tasks.create(follow(), name="changes of jobs")
        client.on_delete(task.cancel)


def _tell(say: Words, error: OarsmanError) -> None:
    ui.notify(say.refusal(error), type="negative", multi_line=True)


def welcome(console: Console, request: Request) -> PageContext:
    """Raises UnauthenticatedError: the way in is the login page."""
    namespace = request.path_params.get("namespace")
    found = context_of(console, request, console.gate.caller(request))
    return PageContext(found, spoken(request), ui.context.client, namespace)


def spoken(request: Request) -> Words:
    return Words(of_browser(request.cookies.get(COOKIE), request.headers.get("accept-language", "")))
