"""The connections through which the framework keeps open pages up to date, and hears what is done on them.

The framework lets anybody in who names a page: from any origin, with no session, they are sent what it shows and can
press its buttons. Here a connection has to come from our own pages and gets at a page only if it shows what that page
was opened with; a session that has ended loses its connections, and its pages are asked for anew, which leads to the
login page.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from nicegui import Client, background_tasks, core
from socketio.exceptions import ConnectionRefusedError as Refused
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oarsman.console.api import problems
from oarsman.console.security.gate import Caller, Gate, address
from oarsman.console.security.throttle import network
from oarsman.errors import ForbiddenError, OarsmanError, RetryableError, UnauthenticatedError
from oarsman.text.sentence import Text

_PATH = "/_nicegui_ws"
_ASKED_EVERY_SECONDS = 1.0  # whether sessions are still good
_LEFT = 1001  # "going away": what a browser says that closes a page or goes to another one
_NO_PAGE = "Implicit handshake failed"  # at this word, the framework's script asks for the page anew
_ENDED = {"code": "oarsman.ended()"}  # of pages.js: asks for the page anew
_MOST_CONNECTIONS, _MOST_UNSEEN = 1000, 200  # of one address: of pages, and pages that no connection came to
_AT_ONCE, _A_SECOND = 500.0, 50.0  # things said on a page; typing and clicking are a tenth of it
_NAMES, _LONGEST = ("tab_id", "old_tab_id", "document_id"), 100  # that the framework keeps, whatever they are
_TAB_LASTS_SECONDS = 60.0  # what it keeps of a tab, where no page of ours puts anything; by itself for thirty days
Handler = Callable[..., Any]


class LiveConnections:
    """Those of this process; there is one framework in it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._openers: WeakKeyDictionary[Client, Caller] = WeakKeyDictionary()
        self._pages: dict[str, Client] = {}  # by the connection that is at it
        self._budgets: WeakKeyDictionary[Client, tuple[float, float]] = WeakKeyDictionary()
        core.sio.eio.cors_allowed_origins = []  # no other origin may read an answer
        core.app.storage.max_tab_storage_age = _TAB_LASTS_SECONDS
        handlers = core.sio.handlers["/"]
        for event, handler in handlers.items():
            handlers[event] = {
                "connect": self._connected,
                "handshake": self._shaken,
                "disconnect": self._disconnected,
                "log": _unheard,
            }.get(event, self._heard)(handler)

    def belongs(self, page: Client, caller: Caller) -> None:
        """Pages of nobody, such as the login page, show nothing of anybody."""
        self._openers[page] = caller

    def behind(self, app: ASGIApp) -> ASGIApp:
        """The application, reached by connections of our own pages alone; each goes on as whoever began it."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] in ("http", "websocket") and scope["path"].startswith(_PATH):
                try:
                    self._refuse_others(HTTPConnection(scope))
                except OarsmanError as error:
                    if scope["type"] == "http":
                        await problems.answer_error(error)(scope, receive, send)
                    else:
                        await receive()
                        await send({"type": "websocket.close", "code": 1008})
                    return
            elif scope["type"] == "http" and not scope["path"].startswith("/_nicegui"):
                _make_room(HTTPConnection(scope))
            await app(scope, _noting_who_leaves(scope, receive) if scope["type"] == "websocket" else receive, send)

        return answer

    def _refuse_others(self, request: HTTPConnection) -> None:
        self._gate.refuse_others_connections(request)
        began = core.sio.environ.get(request.query_params.get("sid", ""))
        if began is None:
            _refuse_too_many(request)
        elif self._shown(began) != self._gate.shown(request):
            raise ForbiddenError(Text("this connection was begun by somebody else"))

    def _shown(self, environ: dict[str, Any]) -> bytes:
        return self._gate.shown(HTTPConnection(environ["asgi.scope"]))

    # -- who gets at which page ----------------------------------------------------------------------
    async def _admitted(self, sid: str, environ: dict[str, Any], asked: Mapping[str, Any]) -> bool:
        page, names = asked.get("client_id"), (asked.get(name) or "" for name in _NAMES)
        client = Client.instances.get(page) if isinstance(page, str) else None
        if client is None or sid in self._pages or self._shown(environ) != self._gate.shown(client.request):
            return False
        if not all(isinstance(name, str) and len(name) <= _LONGEST for name in names):
            return False
        opener = self._openers.get(client)
        if opener is not None and not await self._holds(opener):
            return False
        if not self._pages:
            background_tasks.create(self._end_what_ended(), name="sessions of open pages")
        self._pages[sid] = client
        return True

    def _connected(self, handler: Handler) -> Handler:
        """Most pages are named by the connection itself."""

        async def connect(sid: str, environ: dict[str, Any], _: object = None) -> None:
            asked = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
            if asked.get("implicit_handshake") == "true":
                if not await self._admitted(sid, environ, asked):
                    raise Refused(_NO_PAGE)
                with suppress(KeyError, ValueError):  # an incomplete question
                    await handler(sid, environ)
                    return
                self._pages.pop(sid, None)
                raise Refused(_NO_PAGE)

        return connect

    def _shaken(self, handler: Handler) -> Handler:
        async def handshake(sid: str, asked: object = None, *_: object) -> bool:
            if not isinstance(asked, dict):
                return False
            if not await self._admitted(sid, core.sio.get_environ(sid), asked):
                return False
            done = False
            with suppress(KeyError, TypeError, ValueError):
                done = await handler(sid, asked)
            if not done:
                self._pages.pop(sid, None)
            return done

        return handshake

    def _heard(self, handler: Handler) -> Handler:
        """Whatever else is said, by a connection about the page that it is at. Nothing is waited for before it is
        handed on: it comes in the order in which it was said."""
        assert not inspect.iscoroutinefunction(handler), handler

        def heard(sid: str, said: object = None, *_: object) -> Any:
            page = self._pages.get(sid)
            if page is None or not isinstance(said, dict) or said.get("client_id") != page.id:
                return None
            if self._is_flooded(page):
                self._pages.pop(sid, None)
                background_tasks.create(core.sio.disconnect(sid), name="a page that says too much")
                return None
            with suppress(KeyError, TypeError, ValueError):
                return handler(sid, said)
            return None

        return heard

    def _is_flooded(self, page: Client) -> bool:
        """Whether more is said there than anybody does with a page: each thing said may be work for a thread."""
        now = time.monotonic()
        left, then = self._budgets.get(page, (_AT_ONCE, now))
        left = min(_AT_ONCE, left + (now - then) * _A_SECOND) - 1
        self._budgets[page] = left, now
        return left < 0

    def _disconnected(self, handler: Handler) -> Handler:
        def disconnect(sid: str, *_: object) -> Any:
            self._pages.pop(sid, None)
            return handler(sid)

        return disconnect

    # -- for how long --------------------------------------------------------------------------------
    async def _holds(self, caller: Caller) -> bool:
        """A cluster that does not answer has shown nobody out."""
        try:
            return await asyncio.to_thread(self._gate.still_holds, caller)
        except UnauthenticatedError:
            return False
        except OarsmanError:
            return True

    async def _end_what_ended(self) -> None:
        while self._pages:
            await asyncio.sleep(_ASKED_EVERY_SECONDS)
            openers = list({self._openers[page] for page in self._pages.values() if page in self._openers})
            held = await asyncio.gather(*map(self._holds, openers))
            ended = {opener for opener, holds in zip(openers, held, strict=True) if not holds}
            for sid in [sid for sid, page in self._pages.items() if self._openers.get(page) in ended]:
                self._pages.pop(sid, None)  # from now on it is not listened to
                await core.sio.emit("run_javascript", _ENDED, to=sid)
                await core.sio.disconnect(sid)


def _noting_who_leaves(scope: Scope, receive: Receive) -> Receive:
    """The framework keeps a page for a while after its connection: a network may have failed. A browser that goes to
    another page says so; nobody comes back to that one, and what it held is let go at once."""

    async def noting() -> Message:
        message = await receive()
        if message["type"] == "websocket.disconnect" and message.get("code") == _LEFT:
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("client_id", [""])
            page = Client.instances.get(asked[0])
            if page is not None and page.environ is not None and page.environ.get("asgi.scope") is scope:
                page.page.reconnect_timeout = 0.0  # every page has settings of its own: see `page._basics`
        return message

    return noting


def _refuse_too_many(request: HTTPConnection) -> None:
    """What is kept of a connection by polling stays for a while, though nobody comes back to it."""
    here = network(address(request))
    begun = (HTTPConnection(environ["asgi.scope"]) for environ in core.sio.environ.values())
    if sum(network(address(one)) == here for one in begun) >= _MOST_CONNECTIONS:
        raise RetryableError(Text("there are too many connections from this address already"))


def _make_room(request: HTTPConnection) -> None:
    """For another page: those that no connection comes to are kept for a minute."""
    here = network(address(request))
    unseen = [page for page in Client.instances.values() if not (page.has_socket_connection or page._delete_tasks)]
    of_one = [page for page in unseen if network(page.ip) == here]
    for page in of_one[: max(0, len(of_one) - _MOST_UNSEEN)]:
        page.delete()


def _unheard(_: Handler) -> Handler:
    """The log of the server is no place for browsers to write to."""
    return lambda *_: None
