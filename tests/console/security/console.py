"""A console with nothing but its security, a clock that is moved by hand, and browsers to attack it with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from fastapi import FastAPI

from oarsman.console.api import accounts, problems
from oarsman.console.security.accounts import Passwords
from oarsman.console.security.gate import Gate
from oarsman.console.security.headers import security_headers
from oarsman.console.security.store import ConsoleStore
from oarsman.console.settings import Site
from oarsman.service.models import Role

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
PASSWORD = "correct horse battery"
OWN = {"X-Oarsman": "1", "Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}


class Clock:
    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> datetime:
        return START + self.passed

    def seconds(self) -> float:
        return self.passed.total_seconds()

    def move(self, **by: float) -> None:
        self.passed += timedelta(**by)


def quick_passwords() -> Passwords:
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


class Console:
    def __init__(self, path: Path, clock: Clock, **site: Any) -> None:
        self.path = path
        self.site = Site(**{"port": 8080, **site})
        self.store = ConsoleStore(path, now=clock.now, passwords=quick_passwords)
        self.gate = Gate(self.store, self.site, clock=clock.seconds)
        self.app = FastAPI()
        self.app.state.gate = self.gate
        problems.install(self.app)
        for router in (accounts.router, accounts.once):
            self.app.include_router(router)
        self.app.add_middleware(security_headers, site=self.site)

    def account(self, name: str, role: Role = Role.USER, password: str = PASSWORD) -> None:
        self.store.accounts.add(name, role, self.store.accounts.hash(password))

    def browser(self, **options: Any) -> Browser:
        return Browser(self, **options)

    def logged_in(self, name: str, role: Role = Role.USER) -> Browser:
        self.account(name, role)
        browser = self.browser()
        assert browser.log_in(name).status_code == 200
        return browser

    def owner(self) -> Browser:
        """The machine's owner, come in by a link."""
        browser = self.browser()
        assert browser.get(self.gate.new_link().removeprefix(self.site.address)).status_code == 303
        return browser

    def audited(self) -> list[tuple[str, str, str, str]]:
        return [(e.who, e.what, e.about, e.outcome) for e in self.store.audit.page(limit=1000).items]


@dataclass
class Browser:
    console: Console
    address: str = "127.0.0.1"
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=lambda: dict(OWN))  # of a page of the console itself

    def ask(self, method: str, path: str, json: Any = None, **headers: str) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.console.app, client=(self.address, 50000))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
                sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
                if self.cookies:
                    sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
                return await client.request(method, path, json=json, headers=sent)

        answer = asyncio.run(send())
        for name, value in answer.cookies.items():
            self.cookies[name] = value
        return answer

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.ask("GET", path, **headers)

    def log_in(self, name: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
        return self.ask("POST", "/api/v1/session", {"name": name, "password": password}, **headers)

    def me(self, **headers: str) -> httpx.Response:
        return self.get("/api/v1/me", **headers)
