"""The API server's verbs."""

from __future__ import annotations

import builtins
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Unpack
from urllib.parse import urlencode

from oarsman.engines.kube.client import codec
from oarsman.engines.kube.client.codec import WHOLE, Listed, Selection, T, WatchChange
from oarsman.engines.kube.client.errors import Conflict, Gone, NotFound
from oarsman.engines.kube.client.resources import PODS, Resource
from oarsman.engines.kube.client.transport import Request, Transport

_WATCH_SECONDS: Final = (300, 600)  # after which the server ends a watch; spread, so that not all end at once
_DEAD_AFTER: Final = 30  # seconds past that end
_DISCOVERY_SECONDS: Final = 60.0
_STREAMS_SINCE: Final = (1, 32)  # the first ones do not say when what was there has been told
PAGE_SIZE = 500
_JSON: Final = "application/json"
_PATCHES: Final = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}  # JSON is YAML
_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}  # others: GET


@dataclass(eq=False)
class Kube(Transport):
    """A thin client: one session, plain JSON, views instead of models."""

    _streams: bool | None = field(default=None, init=False, repr=False)
    _discovered: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict, init=False, repr=False)

    async def get(self, resource: Resource, name: str, namespace: str | None = None, *, view: type[T] = WHOLE) -> T:
        return await self._ask(_request("get", resource, namespace, name), view)

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, *, view: type[T] = WHOLE
    ) -> T:
        """In the namespace given, or else the one the body names."""
        metadata = body.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName", "") + "*"
        return await self._ask(
            _request("create", resource, namespace or metadata.get("namespace"), name, body=body), view
        )

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
        view: type[T] = WHOLE,
    ) -> T:
        """The body should name the version it replaces: when a connection breaks, HTTP allows a PUT to be repeated."""
        return await self._ask(_request("update", resource, namespace, name, subresource, body=body), view)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        kind: Literal["merge", "apply"] = "merge",
        subresource: str = "",
        view: type[T] = WHOLE,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        query = {"fieldManager": field_manager, "force": "true" if force else ""}
        request = _request("patch", resource, namespace, name, subresource, query, body=body, content=_PATCHES[kind])
        return await self._ask(request, view)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str,
        propagation: str = "Background",
    ) -> bool:
        """The very object that was looked at. False: it was gone already, or what has the name now is another one."""
        options = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        try:
            await self.ask(_request("delete", resource, namespace, name, body=options))
        except NotFound:
            return False
        except Conflict as conflict:
            if "precondition" in conflict.message.lower():
                return False
            raise
        return True

    async def pages(
        self, resource: Resource, namespace: str | None = None, *, view: type[T] = WHOLE, **which: Unpack[Selection]
    ) -> AsyncGenerator[Listed[T], None]:
        """When the server forgets where we were, the list starts over, with a page that says it is the first."""
        after, restarts = "", 0
        while True:
            limit = "" if restarts > 1 else str(PAGE_SIZE)  # too slow for this server's memory twice: all at once
            query = {**_selectors(which), "limit": limit, "continue": after}
            request = _request("list", resource, namespace, query=query)
            try:
                listing = codec.decode_list(request.trying, await self.ask(request), view)
            except Gone:
                if not after:
                    raise
                after, restarts = "", restarts + 1
                continue
            yield Listed(listing.items or [], listing.metadata.resource_version, first=not after)
            after = listing.metadata.continue_
            if not after:
                return

    async def list(
        self, resource: Resource, namespace: str | None = None, *, view: type[T] = WHOLE, **which: Unpack[Selection]
    ) -> builtins.list[T]:
        items: builtins.list[T] = []
        async for page in self.pages(resource, namespace, view=view, **which):
            if page.first:
                items.clear()
            items += page.items
        return items

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        since: str = "",
        view: type[T] = WHOLE,
        opened: Callable[[], None] | None = None,
        **which: Unpack[Selection],
    ) -> AsyncGenerator[WatchChange[T], None]:
        """Changes after the version `since`, until the server ends it. `opened` is called once the server agreed.

        Without a version it begins with what is there, where `streams_lists`.
        """
        seconds = random.randint(*_WATCH_SECONDS)
        query = {**_selectors(which), "watch": "true", "allowWatchBookmarks": "true"}
        query |= {"resourceVersion": since, "timeoutSeconds": str(seconds)}
        if not since:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = _request("watch", resource, namespace, query=query)
        async with self.stream(request, quiet=seconds + _DEAD_AFTER) as lines:
            if opened:
                opened()
            async for line in lines:
                change = codec.decode_change(request.trying, line, view)
                if change:
                    yield change

    async def log(
        self,
        pod: str,
        namespace: str,
        *,
        container: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        since_seconds: int | None = None,
        since_time: str | None = None,
        timestamps: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Lines without their ends, however long."""
        query = {
            "container": container or "",
            "follow": "true" if follow else "",
            "tailLines": "" if tail is None else str(tail),
            "sinceSeconds": "" if since_seconds is None else str(since_seconds),
            "sinceTime": since_time or "",
            "timestamps": "true" if timestamps else "",
        }
        request = _request("get", PODS, namespace, pod, "log", query, accept="*/*")
        # A program may be silent for days; only the kernel's probes tell then whether the server is there.
        async with self.stream(request, quiet=None if follow else _DEAD_AFTER) as lines:
            async for line in lines:
                yield line

    async def server_version(self) -> tuple[int, int]:
        found = await self.raw("GET", "/version")
        major, minor = (re.sub(r"\D.*", "", str(found.get(part, "0"))) for part in ("major", "minor"))  # "20+" is 20
        return int(major or 0), int(minor or 0)

    async def streams_lists(self) -> bool:
        """Whether a watch can begin with what is there, out of the server's memory. It may refuse it all the same."""
        if self._streams is None:
            self._streams = await self.server_version() >= _STREAMS_SINCE
        return self._streams

    async def has(self, resource: Resource) -> bool:
        """Whether the server knows the resource. Asked at most once a minute per group."""
        now = time.monotonic()
        asked, plurals = self._discovered.get(resource.root, (-_DISCOVERY_SECONDS, frozenset[str]()))
        if now - asked >= _DISCOVERY_SECONDS:
            try:
                found = await self.raw("GET", resource.root)
                plurals = frozenset(one["name"] for one in found.get("resources") or ())
            except NotFound:
                plurals = frozenset()
            self._discovered[resource.root] = (now, plurals)
        return resource.plural in plurals

    async def raw(
        self, method: str, path: str, *, body: object | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """For what is left."""
        request = Request(
            verb=method.lower(),
            method=method,
            target=path,
            plural="",
            trying=f"{method} {path}",
            headers={"Accept": _JSON, **({} if body is None else {"Content-Type": _JSON}), **(headers or {})},
            body=None if body is None else codec.encode(body),
        )
        return await self._ask(request, WHOLE)

    async def _ask(self, request: Request, view: type[T]) -> T:
        return codec.decode(request.trying, await self.ask(request), view)


def _selectors(which: Selection) -> dict[str, str]:
    return {"labelSelector": which.get("labels", ""), "fieldSelector": which.get("fields", "")}


def _request(
    verb: str,  # as the server's own metrics and its RBAC call it
    resource: Resource,
    namespace: str | None,
    name: str = "",
    subresource: str = "",
    query: Mapping[str, str] | None = None,
    *,
    body: object | None = None,
    accept: str = _JSON,
    content: str = _JSON,
) -> Request:
    """About one object, or about all of a namespace or of the cluster. Empty parts of the query are left out."""
    what = f"{verb} {resource.plural}/{subresource}" if subresource else f"{verb} {resource.plural}"
    if name:
        what += f" {namespace}/{name}" if namespace else f" {name}"
    elif namespace:
        what += f" in {namespace}"
    path = resource.path(namespace, None if verb == "create" else name, subresource)
    asked = urlencode({key: value for key, value in (query or {}).items() if value})
    return Request(
        verb=verb,
        method=_METHODS.get(verb, "GET"),
        target=f"{path}?{asked}" if asked else path,
        plural=resource.plural,
        trying=what,
        headers={"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content},
        body=None if body is None else codec.encode(body),
    )
