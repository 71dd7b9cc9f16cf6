"""The least of a client: who waits asks often, and kubectl takes 0.2 s of CPU each time."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Refused(RuntimeError):
    """The server answered, but not what was asked for."""

    def __init__(self, path: str, status: int, body: str) -> None:
        super().__init__(f"{path}: {status} {body}")
        self.status = status


class Client:
    """Asks for things over connections that it keeps: to make one costs both sides more than most questions do."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        server = content["clusters"][0]["cluster"]
        self._place = urlsplit(server["server"])
        self._headers = {"Authorization": f"Bearer {content['users'][0]['user']['token']}"}
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._kept: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    def get(self, path: str, timeout: float = 60) -> Any:
        return self.ask("GET", path, timeout=timeout)

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None, timeout: float = 60) -> Any:
        connection, answer = self._answer(path, timeout, verb, json.dumps(body) if body is not None else None)
        try:
            said = answer.read()
        except BaseException:
            connection.close()
            raise
        self._kept.append(connection)
        return json.loads(said) if said.startswith(b"{") else said.decode()

    def watch(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        """Ends when the server ends it; raises if nothing, not even a bookmark, was heard for long."""
        connection, answer = self._ask(f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}", 90)
        try:
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def _answer(
        self, path: str, timeout: float, verb: str, body: str | None
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        """What only looks may be said twice, so it is tried first on a connection that the server may have closed."""
        if verb == "GET" and self._kept:
            with contextlib.suppress(OSError, http.client.HTTPException, IndexError):
                return self._ask(path, timeout, verb, body, self._kept.pop())
        return self._ask(path, timeout, verb, body)

    def _ask(
        self,
        path: str,
        timeout: float,
        verb: str = "GET",
        body: str | None = None,
        kept: http.client.HTTPSConnection | None = None,
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        connection = kept or http.client.HTTPSConnection(
            str(self._place.hostname), self._place.port, context=self._tls, timeout=timeout
        )
        if connection.sock:
            connection.sock.settimeout(timeout)
        try:
            connection.request(verb, path, body, {**self._headers, "Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status >= 300:
                raise Refused(path, answer.status, answer.read(300).decode(errors="replace"))
        except BaseException:
            connection.close()
            raise
        return connection, answer
