"""The API server's verbs."""

from __future__ import annotations

import builtins
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from oarsman.engines.kube.client import requests
from oarsman.engines.kube.client.access import Access
from oarsman.engines.kube.client.codec import (
    WHOLE,
    ListPage,
    PartialObject,
    T,
    WatchChange,
    decode,
    decode_change,
    decode_list,
)
from oarsman.engines.kube.client.errors import ApiError, Conflict, Gone, NotFound
from oarsman.engines.kube.client.requests import PatchKind, Request, Selection
from oarsman.engines.kube.client.resources import PODS, Resource
from oarsman.engines.kube.client.transport import Bucket, HttpTransport, Observe
from oarsman.version import __version__

_WATCH_SECONDS: Final = (300, 600)  # after which the server ends a watch; spread, so that not all end at once
_DEAD_AFTER: Final = 30  # seconds past that end
_DISCOVERY_SECONDS: Final = 60.0


class Kube:
    """A thin client: one session, plain JSON, views instead of models."""

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = f"oarsman/{__version__}",
        concurrency: int = 64,
        rate: tuple[float, int] | None = None,
        observe: Observe | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.access = access
        self._transport = HttpTransport(
            access,
            user_agent=user_agent,
            concurrency=concurrency,
            bucket=Bucket(*rate) if rate else None,
            observe=observe,
            timeout=timeout,
        )
        self._discovered: dict[str, tuple[float, frozenset[str]]] = {}

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        view: type[T] = WHOLE,
        subresource: str | None = None,
    ) -> T:
        return await self._ask(requests.get(resource, name, namespace, subresource), view)

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        view: type[T] = WHOLE,
        dry_run: bool = False,
    ) -> T:
        """In the namespace given, or else the one the body names."""
        return await self._ask(requests.create(resource, body, namespace, dry_run=dry_run), view)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        view: type[T] = WHOLE,
    ) -> T:
        """The body should name the version it replaces: when a connection breaks, HTTP allows a PUT to be repeated."""
        return await self._ask(requests.replace(resource, name, body, namespace, subresource), view)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        kind: PatchKind = "merge",
        subresource: str | None = None,
        view: type[T] = WHOLE,
        field_manager: str | None = None,
        force: bool = False,
    ) -> T:
        """`body` is a mapping; for kind "json", a list of operations."""
        request = requests.patch(
            resource,
            name,
            body,
            namespace,
            kind=kind,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return await self._ask(request, view)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        grace: int | None = None,
        propagation: str = "Background",
    ) -> bool:
        """False: it was gone already, or what has the name now is another one."""
        request = requests.delete(resource, name, namespace, uid=uid, grace=grace, propagation=propagation)
        try:
            await self._transport.ask(request)
        except NotFound:
            return False
        except Conflict as conflict:
            if uid and "precondition" in conflict.message.lower():
                return False
            raise
        return True

    async def delete_all(self, resource: Resource, namespace: str | None, *, labels: str) -> None:
        try:
            await self._transport.ask(
                requests.delete_all(Selection(resource=resource, namespace=namespace, labels=labels))
            )
        except ApiError as error:
            if error.status != 405:  # services, for one, can only be deleted one by one on older servers
                raise
            for found in await self.list(resource, namespace, labels=labels, metadata_only=True, view=PartialObject):
                meta = found.metadata
                await self.delete(resource, meta.name, meta.namespace or None, uid=meta.uid)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        size: int = 500,
        view: type[T] = WHOLE,
        metadata_only: bool = False,
    ) -> AsyncGenerator[ListPage[T], None]:
        """When the server forgets where we were, the list starts over, with a page that says it is the first."""
        selection = Selection(
            resource=resource, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )
        after, restarts = "", 0
        while True:
            request = requests.page(selection, size=size, after=after)
            try:
                listing = decode_list(request.trying, await self._transport.ask(request), view)
            except Gone:
                if not after:
                    raise
                after, restarts = "", restarts + 1
                size = 0 if restarts > 1 else size  # too slow for this server's memory twice: take all at once
                continue
            yield ListPage(listing.items or [], listing.metadata.resource_version, first=not after)
            after = listing.metadata.continue_
            if not after:
                return

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        size: int = 500,
        view: type[T] = WHOLE,
        metadata_only: bool = False,
    ) -> builtins.list[T]:
        items: builtins.list[T] = []
        async for page in self.pages(
            resource, namespace, labels=labels, fields=fields, size=size, view=view, metadata_only=metadata_only
        ):
            if page.first:
                items.clear()
            items += page.items
        return items

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        since: str,
        view: type[T] = WHOLE,
        metadata_only: bool = False,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchChange[T], None]:
        """Changes after the version `since`, until the server ends it. `opened` is called once the server agreed."""
        selection = Selection(
            resource=resource, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )
        seconds = random.randint(*_WATCH_SECONDS)
        request = requests.watch(selection, since=since, seconds=seconds)
        async with self._transport.stream(request, quiet=seconds + _DEAD_AFTER) as lines:
            if opened:
                opened()
            async for line in lines:
                change = decode_change(request.trying, line, view)
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
        previous: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Lines without their ends, however long."""
        query = {
            "container": container,
            "follow": "true" if follow else None,
            "tailLines": tail,
            "sinceSeconds": since_seconds,
            "sinceTime": since_time,
            "timestamps": "true" if timestamps else None,
            "previous": "true" if previous else None,
        }
        request = requests.log(
            PODS, pod, namespace, {key: str(value) for key, value in query.items() if value is not None}
        )
        # A program may be silent for days; only the kernel's probes tell then whether the server is there.
        async with self._transport.stream(request, quiet=None if follow else _DEAD_AFTER) as lines:
            async for line in lines:
                yield line

    async def server_version(self) -> tuple[int, int]:
        found = await self.raw("GET", "/version")
        major, minor = (re.sub(r"\D.*", "", str(found.get(part, "0"))) for part in ("major", "minor"))  # "20+" is 20
        return int(major or 0), int(minor or 0)

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
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        view: type[T] = WHOLE,
    ) -> T:
        """For what is left. With `view=bytes` the answer comes as it is."""
        request = requests.raw(method, path, query or {}, body, headers)
        if view is bytes:
            return await self._transport.ask(request)  # type: ignore[return-value]  # T is bytes here
        return await self._ask(request, view)

    async def _ask(self, request: Request, view: type[T]) -> T:
        return decode(request.trying, await self._transport.ask(request), view)
