"""The API in this process, in front of jobs in memory: with a token for each role."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from fastapi import FastAPI

from oarsman.console.console import Backends, Console
from oarsman.console.security.accounts import Passwords
from oarsman.console.security.gate import Gate
from oarsman.console.security.store import ConsoleStore
from oarsman.console.server import make_app
from oarsman.console.settings import Site
from oarsman.portal import Portal
from oarsman.service.models import Role

from .memory import MemoryJobs

API = "/api/v1"
SITE = Site(port=8470)


class Asking:
    """`ada` is a user, `vera` a viewer, `root` an admin."""

    def __init__(self, folder: Path, jobs: MemoryJobs) -> None:
        self.jobs = jobs
        self.portal = Portal()  # the loop of the server
        quick = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        self.store = ConsoleStore(folder / "console.db", passwords=lambda: quick)
        self.console = Console(Backends(lambda _: jobs), Gate(self.store, SITE), folder=folder)
        self.app: FastAPI = make_app(self.console)
        roles = {"ada": Role.USER, "bob": Role.USER, "vera": Role.VIEWER, "root": Role.ADMIN}
        self.tokens = {name: self._token(name, role) for name, role in roles.items()}

    def _token(self, name: str, role: Role) -> str:
        self.store.accounts.add(name, role, self.store.accounts.hash("correct horse battery"))
        return self.store.tokens.make(name, name)[1]

    def headers(self, name: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def __call__(self, method: str, path: str, *, by: str = "ada", **given: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            headers = {**(self.headers(by) if by else {}), **given.pop("headers", {})}
            async with httpx.AsyncClient(transport=transport, base_url=SITE.address) as client:
                return await client.request(method, f"{API}{path}", headers=headers, **given)

        return self.portal.run(ask())

    def close(self) -> None:
        self.portal.run(self.console.close())
        self.portal.close()


class InThisProcess(httpx.AsyncBaseTransport):
    """Requests of a client, answered by the application itself, in a loop of its own."""

    def __init__(self, ask: Asking) -> None:
        self._ask = ask

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().removeprefix(API)
        body = await request.aread()
        kind = {"Content-Type": request.headers["Content-Type"]} if body else {}
        answer = await asyncio.to_thread(self._ask, request.method, path, content=body, headers=kind)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@contextmanager
def asking(folder: Path, jobs: MemoryJobs | None = None) -> Iterator[Asking]:
    found = Asking(folder, jobs or MemoryJobs())
    try:
        yield found
    finally:
        found.close()
