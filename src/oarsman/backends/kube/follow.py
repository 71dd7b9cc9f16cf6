"""Objects as they are now and after each change, for as long as somebody looks.

A watch that the server ends is taken up where it was; history that the server forgot is read anew; a server that
went away is asked again, for a while or for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from oarsman.backends.kube.records import key_of
from oarsman.engines.kube.client import ApiError, Forbidden, Gone, Kube, NotFound, Resource, Unauthorized, Unavailable
from oarsman.engines.kube.client.codec import WatchChange
from oarsman.engines.kube.client.pace import Pauses, Pulse
from oarsman.text.sentence import Text

T = TypeVar("T")
Document = dict[str, Any]
_PAUSES: Final = Pauses(first=0.2, longest=3.0)
_PATIENCE_SECONDS: Final = 120.0  # without a server; the first question is asked without any
_REFUSED_SECONDS: Final = 30.0  # a server that has just started may not know yet who may do what
_SOON_SECONDS: Final = 1.0  # a watch that ends sooner without having told anything was no watch
_AT_ONCE: Final = 50  # objects read before others get a turn
_REFUSALS: Final = (Forbidden, Unauthorized, NotFound)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChanges(Generic[T]):
    """What there is by its key, if `whole`; else what changed and what is gone."""

    whole: bool
    found: Mapping[str, T]
    gone: tuple[str, ...] = ()


async def changes(
    kube: Kube,
    resource: Resource,
    namespace: str | None,
    read: Callable[[Document], T],
    *,
    labels: str = "",
    fields: str = "",
    patience: float | None = None,
) -> AsyncGenerator[ObjectChanges[T]]:
    """All objects, then every change. Never ends by itself; without a limit to its patience, hardly with an error."""
    follower = _ObjectFollower(kube, resource, namespace, read, labels, fields)
    failures, failing_since = 0, 0.0
    while True:
        error: ApiError | None = None
        try:
            async with aclosing(follower.turn()) as turn:
                async for news in turn:
                    if news is not None:
                        yield news
        except Gone as gone:
            error = gone
        except ApiError as trouble:
            if not follower.listed_once or not (trouble.retryable or isinstance(trouble, _REFUSALS)):
                raise
            error = trouble
        if follower.well:
            failures = 0
        if error is None and follower.well:
            continue
        if follower.answered:
            failing_since = time.monotonic()
        limit = _REFUSED_SECONDS if isinstance(error, _REFUSALS) else patience
        if error is not None and limit is not None and time.monotonic() - failing_since > limit:
            raise error
        failures += 1
        if failures > 1 or not isinstance(error, Gone):  # the first time the server just has a short memory
            await asyncio.sleep(_PAUSES.after(failures))


class _ObjectFollower(Generic[T]):
    """Lists if it has to, then watches until the server ends that."""

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        namespace: str | None,
        read: Callable[[Document], T],
        labels: str,
        fields: str,
    ) -> None:
        self._kube, self._resource, self._namespace, self._read = kube, resource, namespace, read
        self._labels, self._fields = labels, fields
        self._version = ""
        self.listed_once = False
        self.answered = False  # the server did, at least once, in this turn
        self.well = False  # and the watch was one: it told something, or lasted

    async def turn(self) -> AsyncGenerator[ObjectChanges[T] | None]:
        """None: the server was heard, but nothing changed."""
        self.answered = self.well = False
        if not self._version:
            yield await self._whole()
        started = time.monotonic()
        watched = self._kube.watch(
            self._resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            since=self._version,
            opened=self._opened,
        )
        try:
            async with aclosing(watched), aclosing(_with_a_pulse(watched, self._resource)) as heard:
                async for change in heard:
                    self.well = True
                    yield self._news(change)
        except Gone:
            self._version = ""
            raise
        finally:
            self.well = self.well or (self.answered and time.monotonic() - started > _SOON_SECONDS)

    def _opened(self) -> None:
        self.answered = True

    async def _whole(self) -> ObjectChanges[T]:
        found: dict[str, T] = {}
        version = ""
        pages = self._kube.pages(self._resource, self._namespace, labels=self._labels, fields=self._fields)
        async for page in pages:
            if page.first:
                found.clear()
            for number, item in enumerate(page.items, 1):
                found[key_of(item)] = self._read(item)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            version = page.version
        self._version, self.listed_once, self.answered = version, True, True
        return ObjectChanges(whole=True, found=found)

    def _news(self, change: WatchChange[Document]) -> ObjectChanges[T] | None:
        if change.object is None:
            self._version = change.version or self._version
            return None
        self._version = change.object["metadata"]["resourceVersion"]
        key = key_of(change.object)
        if change.type == "DELETED":
            return ObjectChanges(whole=False, found={}, gone=(key,))
        return ObjectChanges(whole=False, found={key: self._read(change.object)})


async def _with_a_pulse(
    watched: AsyncGenerator[WatchChange[Document], None], resource: Resource
) -> AsyncGenerator[WatchChange[Document]]:
    """The same changes; an error once a server that was heard regularly has fallen silent."""
    now = asyncio.get_running_loop().time
    pulse, deadline = Pulse(_PAUSES.silence), None
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                change = await anext(watched)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            trying = f"watch {resource.plural}"
            raise Unavailable(trying, Text("the server has fallen silent"), reason="Timeout") from error
        deadline = pulse.heard(now(), regular=change.type == "BOOKMARK")
        yield change


async def objects(
    kube: Kube, resource: Resource, namespace: str | None, *, labels: str = "", fields: str = ""
) -> AsyncGenerator[Mapping[str, Document]]:
    """Every object of the selection by its name. Never ends by itself."""
    known: dict[str, Document] = {}
    found = changes(
        kube, resource, namespace, lambda item: item, labels=labels, fields=fields, patience=_PATIENCE_SECONDS
    )
    async with aclosing(found):
        async for news in found:
            if news.whole:
                known.clear()
            known.update(news.found)
            for key in news.gone:
                known.pop(key, None)
            yield {item["metadata"]["name"]: item for item in known.values()}


async def one(kube: Kube, resource: Resource, namespace: str | None, name: str) -> AsyncGenerator[Document]:
    """One object until it is gone. Another one of the same name is not the same."""
    uid = None
    async with aclosing(objects(kube, resource, namespace, fields=f"metadata.name={name}")) as states:
        async for state in states:
            found = state.get(name)
            if found is None or uid not in (None, found["metadata"]["uid"]):
                return
            uid = found["metadata"]["uid"]
            yield found
