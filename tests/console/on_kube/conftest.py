"""A console for others in front of a real API server, and people with different rights on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from cluster.cluster import Cluster
from cluster.people import CHANGE, SEE, person

from oarsman.backends import open_reviewer
from oarsman.console import server
from oarsman.console.console import Console
from oarsman.console.security.credentials import ClusterTokens
from oarsman.console.security.gate import Gate
from oarsman.console.security.store import ConsoleStore
from oarsman.console.server import make_app
from oarsman.console.settings import ConsoleSettings
from oarsman.portal import Portal, shared
from oarsman.store.paths import Paths

OWN = {"X-Oarsman": "1", "Origin": "http://127.0.0.1:8470", "Sec-Fetch-Site": "same-origin"}


@dataclass
class Clock:
    passed: float = 0.0

    def __call__(self) -> float:
        return self.passed


@dataclass
class Office:
    """The console, started anew with `again`, with what it keeps in one folder."""

    cluster: Cluster
    namespace: str
    folder: Path
    clock: Clock = field(default_factory=Clock)
    tokens: dict[str, str] = field(default_factory=dict)

    def open(self) -> Office:
        self.settings = ConsoleSettings(
            host="0.0.0.0",
            engine="kube",
            insecure=True,
            kubeconfig=str(self.cluster.kubeconfig),
            paths=Paths(self.folder),
        )
        self.settings.paths.make()
        self.portal = Portal()  # the loop of the server
        self.reviewer = open_reviewer(kubeconfig=self.settings.kubeconfig)
        store = ConsoleStore(self.settings.paths.console_database)
        tokens = ClusterTokens(lambda token: shared().run(self.reviewer.known(token)), clock=self.clock)
        gate = Gate(store, self.settings.site(8470), cluster=tokens, clock=self.clock)
        self.console = Console(server._backends(self.settings), gate)
        self.app = make_app(self.console)
        return self

    def close(self) -> None:
        self.portal.run(self.console.close())
        shared().run(self.reviewer.close())
        self.portal.close()

    def again(self) -> None:
        self.close()
        self.open()

    def person(self, name: str, **given: Any) -> str:
        self.tokens[name] = person(self.cluster, self.namespace, name, **given)
        return self.tokens[name]

    def ask(self, method: str, path: str, by: str = "", *, token: str = "", **given: Any) -> httpx.Response:
        """With the bearer token of somebody, by name or as it is; or, with neither, by what `cookies` there are."""
        token = token or self.tokens.get(by, "")
        headers = {**({"Authorization": f"Bearer {token}"} if token else OWN), **given.pop("headers", {})}
        cookies = given.pop("cookies", None)

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            address = "http://127.0.0.1:8470"
            async with httpx.AsyncClient(transport=transport, base_url=address, cookies=cookies) as client:
                return await client.request(method, f"/api/v1{path}", headers=headers, **given)

        return self.portal.run(asked())

    def log_in(self, name: str) -> dict[str, str]:
        answer = self.ask("POST", "/session/cluster", json={"token": self.tokens[name]})
        assert answer.status_code == 200, answer.text
        return dict(answer.cookies)


@pytest.fixture
def office(served: Cluster, api_namespace: str, tmp_path: Path) -> Iterator[Office]:
    found = Office(served, api_namespace, tmp_path / "state").open()
    yield found
    found.close()


@pytest.fixture
def people(office: Office) -> Office:
    """`edith` may change jobs, `vera` may see them, `nils` may nothing."""
    office.person("edith", verbs=CHANGE)
    office.person("vera", verbs=SEE)
    office.person("nils")
    return office
