"""A real Chromium in front of a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from ssh_hosts.fixtures import shared_rack  # noqa: F401

from oarsman.backends.base import current_user
from oarsman.console.security.accounts import Role
from oarsman.console.security.store import ConsoleStore, link
from oarsman.store.paths import Paths
from tests.browser.chromium import chromium
from tests.console.api.running import OARSMAN, Served, served

expect.set_options(timeout=100_000)  # a busy machine takes its time


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "state") as found:
        yield found


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, server: Served) -> Iterator[Opened]:
    """A page of whoever owns the machine, or without a path of somebody who is not in and has seen nothing yet.

    At the end, no script of a page may have failed."""
    contexts, failed = [], []

    def open_(path: str | None = "/", language: str = "en-US", **options: object) -> Page:
        context = browser.new_context(locale=language, viewport={"width": 1280, "height": 720}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(100_000)
        page.on("pageerror", lambda error: failed.append(str(error)))
        if path is not None:
            assert context.request.get(new_link(server), max_redirects=0).status == 303  # gives the cookie
            page.goto(server.address + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert failed == []


def new_link(server: Served) -> str:
    """As `oarsman tokens link` makes it; a process for every page that is opened would take longer than the page."""
    with console_store(server) as store:
        assert store.links.address is not None
        return link(store.links.address, store.links.make(current_user()))


def console_store(server: Served) -> closing[ConsoleStore]:
    return closing(ConsoleStore(Paths(Path(server.environment["OARSMAN_STATE"])).console_database))


def oarsman(server: Served, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [OARSMAN, *words],
        env=server.environment,
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=Path(server.environment["OARSMAN_STATE"]).parent,
    )
    assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def make_account(server: Served, name: str, role: str) -> None:
    with console_store(server) as store:
        store.accounts.add(name, Role(role), store.accounts.hash("correct horse"))
