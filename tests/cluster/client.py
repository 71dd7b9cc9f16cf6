"""The least of a client: requests with a kubeconfig's token, for waiting and for the cluster's DNS."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Refused(Exception):
    """The server answered, but not what was asked for."""


class Client:
    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        server = content["clusters"][0]["cluster"]
        self._place = urlsplit(server["server"])
        self._headers = {"Authorization": f"Bearer {content['users'][0]['user']['token']}"}
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)

    def get(self, path: str, timeout: float = 10) -> Any:
        connection, answer = self._ask(path, timeout)
        try:
            body = answer.read()
            return json.loads(body) if body.startswith(b"{") else body.decode()
        finally:
            connection.close()

    def watch(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        """Ends when the server ends it; raises if nothing, not even a bookmark, was heard for long."""
        connection, answer = self._ask(f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}", 90)
        try:
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def _ask(self, path: str, timeout: float) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            str(self._place.hostname), self._place.port, context=self._tls, timeout=timeout
        )
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise Refused(f"{path}: {answer.status} {answer.read(300).decode(errors='replace')}")
        except BaseException:
            connection.close()
            raise
        return connection, answer
