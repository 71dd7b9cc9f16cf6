"""Open pages: their connections are of our own pages, of whoever opened them, and end with the session."""

from __future__ import annotations

import ast
import asyncio
import html
import importlib
import json
import pkgutil
import re
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import socketio

from oarsman.console import pages
from oarsman.console.pages import page
from oarsman.console.security.store import ConsoleStore
from oarsman.service.models import Role
from oarsman.store.paths import Paths

from ..api.running import Served, served
from .console import PASSWORD, quick_passwords

PATIENCE = 60.0
TRANSPORTS = ("websocket", "polling")
ON_EVERY = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "state") as found:
        assert found.process.stdout is not None
        reader = threading.Thread(target=found.process.stdout.read)  # what nobody reads would hold the server up
        reader.start()
        yield found
        found.process.kill()
        reader.join()


@pytest.fixture
def store(server: Served) -> Iterator[ConsoleStore]:
    found = ConsoleStore(Paths(Path(server.environment["OARSMAN_STATE"])).console_database, passwords=quick_passwords)
    yield found
    found.close()


def a_browser(server: Served) -> httpx.Client:
    return httpx.Client(
        base_url=server.address, timeout=PATIENCE, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
    )


class Person:
    """With an account of their own, logged in, who has opened a page."""

    def __init__(self, server: Served, store: ConsoleStore, role: Role = Role.ADMIN, page: str = "/people") -> None:
        self.server, self.store = server, store
        self.name = f"p{uuid.uuid4().hex[:8]}"
        store.accounts.add(self.name, role, store.accounts.hash(PASSWORD))
        self.client = a_browser(server)
        self.client.headers.update({"Origin": server.address, "X-Oarsman": "1"})
        answer = self.client.post("/api/v1/session", json={"name": self.name, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        self.page = self.opens(page)

    def opens(self, path: str) -> Mapping[str, str]:
        """What the script of the page says when it connects."""
        self.html = html.unescape(self.client.get(path, follow_redirects=True).text)
        return asked_by(self.html)

    @property
    def press_of_a_button(self) -> Mapping[str, Any]:
        """Of the one for the language, as the framework's script tells of it."""
        found = re.search(
            r'"(\d+)":{"tag":"q-btn",[^{}]*{[^{}]*"lang":"zh"},"events":\[{"listener_id":"([^"]+)"', self.html
        )
        assert found is not None
        return {"id": int(found[1]), "client_id": self.page["client_id"], "listener_id": found[2], "args": {}}

    @property
    def shows(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())}

    def leave(self) -> None:
        assert self.client.delete("/api/v1/session").status_code == 204


def asked_by(page: str) -> Mapping[str, str]:
    found = re.search(r"query: ({.*?})", html.unescape(page))
    assert found is not None, page[:2000]
    said = ast.literal_eval(found[1])
    more = {"tab_id": str(uuid.uuid4()), "document_id": str(uuid.uuid4()), "old_tab_id": ""}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (said | more).items()
    }


class Connection:
    def __init__(self, client: socketio.AsyncClient) -> None:
        self.client = client
        self.heard: list[tuple[str, Any]] = []
        self.ended = asyncio.Event()
        client.on("*", self._hears)
        client.on("disconnect", self.ended.set)

    async def _hears(self, event: str, said: Any = None) -> None:
        self.heard.append((event, said))

    async def hears(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in json.dumps(self.heard):  # noqa: ASYNC110  # whatever is heard may be it
                await asyncio.sleep(0.02)


@asynccontextmanager
async def connected(
    server: Served, asked: Mapping[str, str], shows: Mapping[str, str], transport: str, origin: str | None = ""
) -> AsyncIterator[Connection]:
    """`origin`: empty: the server's own; None: none is sent."""
    headers = {**shows, **({"Origin": origin or server.address} if origin is not None else {})}
    http = aiohttp.ClientSession(headers=headers)  # polling is many requests, each with what a browser sends
    client = socketio.AsyncClient(reconnection=False, http_session=http)
    client.eio.disconnect = partial(client.eio.disconnect, abort=True)  # polling would wait for an answer that is late
    found = Connection(client)
    query = str(httpx.QueryParams(dict(asked)))
    try:
        await client.connect(
            f"{server.address}?{query}",
            transports=[transport],
            socketio_path="/_nicegui_ws/socket.io",
            wait_timeout=PATIENCE,
        )
        yield found
    finally:
        await client.disconnect()
        await http.close()


async def is_refused(
    server: Served, asked: Mapping[str, str], shows: Mapping[str, str], transport: str, **more: Any
) -> bool:
    """In both ways in which a page can be named."""
    try:
        async with connected(server, asked, shows, transport, **more):
            return False
    except socketio.exceptions.ConnectionError:
        pass
    late = {name: value for name, value in asked.items() if name != "implicit_handshake"}
    try:
        async with connected(server, late, shows, transport, **more) as connection:
            return not await connection.client.call("handshake", late, timeout=PATIENCE)
    except socketio.exceptions.ConnectionError:
        return True


@ON_EVERY
def test_whoever_opened_a_page_is_kept_up_to_date(server: Served, store: ConsoleStore, transport: str) -> None:
    person = Person(server, store)

    async def run() -> None:
        async with connected(server, person.page, person.shows, transport) as connection:
            await connection.hears("oarsman-theme")
        assert not await is_refused(server, person.opens("/people"), person.shows, transport)

    asyncio.run(run())


STRANGERS: dict[str, Callable[[Person], tuple[Mapping[str, str], Mapping[str, str | None]]]] = {
    "nobody": lambda _: ({}, {}),
    "nobody from elsewhere": lambda _: ({}, {"origin": "http://evil.example"}),
    "another page with the cookie": lambda person: (person.shows, {"origin": "http://evil.example"}),
    "a page of another port": lambda person: (person.shows, {"origin": "http://127.0.0.1:1"}),
    "a page without an origin": lambda person: (person.shows, {"origin": "null"}),
    "no page": lambda person: (person.shows, {"origin": None}),
    "a guess": lambda person: ({"Cookie": person.shows["Cookie"][:-3] + "abc"}, {}),
    "another admin": lambda person: (Person(person.server, person.store).shows, {}),
    "a viewer": lambda person: (Person(person.server, person.store, Role.VIEWER, "/hosts").shows, {}),
    "the same person, logged in again": lambda person: (as_somebody_again(person), {}),
}


def as_somebody_again(person: Person) -> Mapping[str, str]:
    with a_browser(person.server) as client:
        client.headers.update({"Origin": person.server.address, "X-Oarsman": "1"})
        assert client.post("/api/v1/session", json={"name": person.name, "password": PASSWORD}).status_code == 200
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}


@ON_EVERY
@pytest.mark.parametrize("who", STRANGERS)
def test_nobody_else_gets_at_a_page(server: Served, store: ConsoleStore, transport: str, who: str) -> None:
    person = Person(server, store)
    shows, more = STRANGERS[who](person)
    assert asyncio.run(is_refused(server, person.page, shows, transport, **more))


@ON_EVERY
def test_nothing_is_done_on_a_page_through_the_connection_of_another(
    server: Served, store: ConsoleStore, transport: str
) -> None:
    """The framework takes what it is told about any page from any connection."""
    admin, viewer = Person(server, store), Person(server, store, Role.VIEWER, "/hosts")

    async def run() -> None:
        theirs = admin.page["client_id"]
        async with (
            connected(server, admin.page, admin.shows, transport) as watched,
            connected(server, viewer.page, viewer.shows, transport) as forging,
        ):
            await watched.hears("oarsman-theme")
            await forging.client.call("event", admin.press_of_a_button, timeout=PATIENCE)
            for event, said in (
                ("javascript_response", {"request_id": "1", "result": "x"}),
                ("ack", {"next_message_id": 10**9}),
                ("log", {"level": "error", "message": "x"}),
            ):
                await forging.client.call(event, {"client_id": theirs, **said}, timeout=PATIENCE)
                await forging.client.call(event, "nonsense", timeout=PATIENCE)
            for asked in (admin.page, {"client_id": theirs}, {}, "nonsense", None):
                assert not await forging.client.call("handshake", asked, timeout=PATIENCE)
            assert "document.cookie" not in json.dumps(watched.heard)
            await watched.client.call("event", admin.press_of_a_button, timeout=PATIENCE)
            await watched.hears("document.cookie")

    asyncio.run(run())


ENDS: dict[str, Callable[[Person, ConsoleStore], object]] = {
    "they log out": lambda person, _: person.leave(),
    "their role changes": lambda person, store: store.accounts.change(person.name, role=Role.VIEWER),
    "their password changes": lambda person, store: store.accounts.change(
        person.name, hashed_password=store.accounts.hash("another battery staple")
    ),
    "their account is removed": lambda person, store: store.accounts.remove(person.name),
    "they change the password themselves": lambda person, _: person.client.put(
        "/api/v1/me/password", json={"current": PASSWORD, "new": "another battery staple"}
    ).raise_for_status(),
}


@ON_EVERY
@pytest.mark.parametrize("what", ENDS)
def test_a_page_ends_with_the_session(server: Served, store: ConsoleStore, transport: str, what: str) -> None:
    person, other = Person(server, store), Person(server, store)
    shown = person.shows

    async def run() -> None:
        async with (
            connected(server, person.page, shown, transport) as connection,
            connected(server, other.page, other.shows, transport) as others,
        ):
            await connection.hears("oarsman-theme")
            await asyncio.to_thread(ENDS[what], person, store)
            async with asyncio.timeout(PATIENCE):
                await connection.ended.wait()
            assert ("run_javascript", {"code": "oarsman.ended()"}) in connection.heard
            assert others.client.connected
        again = {**person.page, "document_id": str(uuid.uuid4())}
        assert await is_refused(server, again, shown, transport)

    asyncio.run(run())


@ON_EVERY
def test_the_login_page_needs_no_session_and_only_our_own_pages(server: Served, transport: str) -> None:
    page = httpx.get(f"{server.address}/login", trust_env=False, timeout=PATIENCE).text

    async def run() -> None:
        assert await is_refused(server, asked_by(page), {}, transport, origin="http://evil.example")
        async with connected(server, asked_by(page), {}, transport) as connection:
            await connection.hears("oarsman-theme")

    asyncio.run(run())


def test_every_page_leads_nobody_to_the_login_page(server: Served) -> None:
    for module in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}."):
        importlib.import_module(module.name)
    kinds, left = [], page.Page.__subclasses__()
    while left:
        kinds.append(kind := left.pop())
        left += kind.__subclasses__()
    paths = sorted({kind.path.format(namespace="default", name="pi") for kind in kinds if hasattr(kind, "path")})
    assert len(paths) > 8
    cookie = f"oarsman-{httpx.URL(server.address).port}=made-up"
    for shown in ({}, {"Cookie": cookie}, {"Authorization": "Bearer oar_made-up"}):
        for path in paths:
            answer = httpx.get(server.address + path, headers=shown, trust_env=False, timeout=PATIENCE)
            assert answer.headers.get("location", "").startswith("/login"), (path, answer.status_code)


def test_a_connection_that_was_begun_goes_on_as_whoever_began_it(server: Served, store: ConsoleStore) -> None:
    """Polling is many requests, of which only the first one names the page."""
    person, stranger = Person(server, store), Person(server, store, Role.VIEWER, "/hosts")
    query = {**person.page, "EIO": "4", "transport": "polling"}
    begun = person.client.get("/_nicegui_ws/socket.io/", params=query)
    assert begun.status_code == 200, begun.text
    sid = json.loads(begun.text[1:])["sid"]
    for client in (stranger.client, a_browser(server)):
        client.headers["Origin"] = server.address
        for answer in (
            client.get("/_nicegui_ws/socket.io/", params={**query, "sid": sid}),
            client.post("/_nicegui_ws/socket.io/", params={**query, "sid": sid}, content="40"),
        ):
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
    assert person.client.post("/_nicegui_ws/socket.io/", params={**query, "sid": sid}, content="40").status_code == 200
