"""A real Chromium in front of a real server."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import in_process
import pytest
from click.testing import Result
from playwright.sync_api import Browser, Page, expect
from ssh_hosts.fixtures import shared_rack  # noqa: F401
from waiting import waiting

from oarsman.backends.base import current_user
from oarsman.backends.local.backend import LocalBackend
from oarsman.console.security.accounts import Role
from oarsman.console.security.store import ConsoleStore, link
from oarsman.store.paths import Paths
from tests.browser.chromium import chromium
from tests.console.api.running import Served, served

PATIENCE = 100_000  # milliseconds; a busy machine takes its time
DESK = {"width": 1280, "height": 720}
LIGHT = "/healthz"  # an address of the server without any script
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "state") as found:
        yield found


class Windows:
    """They are used again: in a new one every script is fetched and compiled anew, which is half of what it costs."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: defaultdict[tuple[object, ...], list[Page]] = defaultdict(list)
        self._taken: list[tuple[tuple[object, ...], Page]] = []
        self._failed: list[str] = []

    def take(self, language: str, **options: Any) -> Page:
        look = (language, *sorted(options.items()))
        page = self._free[look].pop() if self._free[look] else self._new(language, options)
        self._taken.append((look, page))
        return page

    def _new(self, language: str, options: dict[str, Any]) -> Page:
        context = self._browser.new_context(locale=language, viewport=DESK, **options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        context.on("weberror", lambda error: self._failed.append(str(error.error)))
        return context.new_page()

    def give_back(self, server: Served) -> list[str]:
        """What scripts complained about. Whoever gets a window next is somebody who has seen nothing yet."""
        for look, page in self._taken:
            for other in page.context.pages[1:]:
                other.close()
            page.goto(server.address + LIGHT)
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
            page.context.clear_cookies()
            page.set_viewport_size(DESK)  # type: ignore[arg-type]
            self._free[look].append(page)
        self._taken.clear()
        failed, self._failed = self._failed, []
        return failed


@pytest.fixture(scope="package")
def windows() -> Iterator[Windows]:
    with chromium() as browser:
        yield Windows(browser)


Opened = Callable[..., Page]


@pytest.fixture
def opened(windows: Windows, server: Served) -> Iterator[Opened]:
    """A page of whoever owns the machine, or without a path of somebody who is not in and has seen nothing yet.

    At the end, no script of a page may have failed."""

    def open_(path: str | None = "/", language: str = "en-US", **options: object) -> Page:
        page = windows.take(language, **options)
        if path is not None:
            assert page.context.request.get(new_link(server), max_redirects=0).status == 303  # gives the cookie
            page.goto(server.address + path)
        return page

    yield open_
    assert windows.give_back(server) == []


@pytest.fixture(autouse=True)
def nothing_left(server: Served) -> Iterator[None]:
    """All files share the server: jobs of one test are not in the lists of another, and hold nothing it waits for."""
    jobs = jobs_of(server)
    before = {record.job.key for record in jobs.list()}  # those that a file keeps for all its tests
    yield
    delete(server, *({record.job.key for record in jobs.list()} - before))


def delete(server: Served, *keys: str) -> None:
    jobs = jobs_of(server)
    for key in keys:
        jobs.delete(key)
    while {record.job.key for record in jobs.list()} & {*keys}:
        time.sleep(0.02)


def jobs_of(server: Served) -> Any:
    """What the command stands on."""
    return waiting(LocalBackend(Paths(Path(server.environment["OARSMAN_STATE"]))))


def new_link(server: Served) -> str:
    """As `oarsman tokens link` makes it; a process for every page that is opened would take longer than the page."""
    with console_store(server) as store:
        assert store.links.address is not None
        return link(store.links.address, store.links.make(current_user()))


def console_store(server: Served) -> closing[ConsoleStore]:
    return closing(ConsoleStore(Paths(Path(server.environment["OARSMAN_STATE"])).console_database))


def oarsman(server: Served, *words: str, code: int | None = 0) -> Result:
    return in_process.oarsman(server.environment, Path(server.environment["OARSMAN_STATE"]).parent, *words, code=code)


def make_token(server: Served, *words: str) -> str:
    """Its number, by which it is revoked."""
    return str(json.loads(oarsman(server, "tokens", "add", "-o", "json", *words).stdout)["token"]["id"])


def make_account(server: Served, name: str, role: str) -> None:
    """Anew, if a first try of the same test has made it."""
    with console_store(server) as store:
        password = store.accounts.hash("correct horse")
        if name in {account.name for account in store.accounts.all()}:
            store.accounts.change(name, role=Role(role), hashed_password=password, disabled=False)
        else:
            store.accounts.add(name, Role(role), password)
