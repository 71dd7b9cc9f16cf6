"""What the server has of a resource, and then every change of it, through every kind of interruption.

A watch that the server ends is taken up where it was; history that the server forgot is listed anew; a server that went
away is asked again, for as long as whoever listens has patience.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, Generic

from oarsman.backoff import Backoff
from oarsman.engines.kube.client.codec import WHOLE, Listed, T, WatchChange
from oarsman.engines.kube.client.errors import ApiError, Gone, Invalid, Unavailable
from oarsman.engines.kube.client.kube import Kube
from oarsman.engines.kube.client.resources import Resource
from oarsman.errors import AccessError
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses(Backoff):
    first: float = 0.1
    longest: float = 15.0
    uniform: Callable[[float, float], float] | None = random.uniform
    refused: float = 30.0  # after an answer that only a person can change
    silence: float = 150.0  # the least that counts as suspicious, from a server that was heard regularly


Trouble = ApiError | AccessError
_AT_ONCE: Final = 100  # changes told before others get a turn
_PATIENCE: Final = 60.0
_SOON_SECONDS: Final = 1.0  # a watch that ends sooner without having told anything was no watch


def is_older(version: str, than: str) -> bool:
    """Versions are opaque by contract and integers in fact; what is not an integer is never called older."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)


@dataclass(eq=False)
class ListWatch(Generic[T]):
    """`patience` is asked at each trouble for how many seconds of it are endured; None: for ever. Then it is raised."""

    kube: Kube
    resource: Resource
    namespace: str | None
    _: KW_ONLY
    patience: Callable[[Trouble], float | None]
    pauses: Pauses
    view: type[T] = WHOLE
    labels: str = ""
    fields: str = ""
    stream: bool = False  # the first list comes as a watch, where the server can: neither side has all of it in memory

    def __post_init__(self) -> None:
        self._selection: dict[str, Any] = {"labels": self.labels, "fields": self.fields, "view": self.view}
        self._version = ""  # everything up to it was told
        self._must_list = True
        self._failures = 0
        self._answered = False  # since the last trouble
        self._failing_since = 0.0
        self.listed = False  # once at least
        self.trouble: str | None = None  # why changes are not heard of at the moment

    async def news(self) -> AsyncGenerator[Listed[T] | WatchChange[T], None]:
        """Never ends by itself."""
        while True:
            try:
                if self._must_list and await self._streams():
                    with suppress(Invalid):  # it does not do that
                        async with aclosing(self._stream()) as streamed:
                            async for one in streamed:
                                yield one
                    continue
                if self._must_list:
                    async with aclosing(self._list()) as pages:
                        async for page in pages:
                            yield page
                started, told = time.monotonic(), 0
                async with aclosing(self._watch()) as changes:
                    async for change in changes:
                        yield change
                        told += 1
                        if told % _AT_ONCE == 0:
                            await asyncio.sleep(0)
                if told or time.monotonic() - started > _SOON_SECONDS:
                    self._failures, pause = 0, 0.0
                else:
                    self._failures += 1
                    pause = self.pauses.after(self._failures)
            except (ApiError, AccessError) as error:
                pause = self._troubled(error)
            await asyncio.sleep(pause)

    async def _list(self) -> AsyncGenerator[Listed[T], None]:
        version, restored = "", False
        async with aclosing(self.kube.pages(self.resource, self.namespace, **self._selection)) as pages:
            async for page in pages:
                version, restored = page.version, is_older(page.version, self._version)
                yield replace(page, restored=restored)
        self._version, self._must_list, self.listed = version, False, True
        self._well()
        yield Listed([], version, last=True, restored=restored)

    async def _streams(self) -> bool:
        """Not for a list anew: that has to tell from the start whether the cluster went back in time."""
        return self.stream and not self._version and await self.kube.streams_lists()

    async def _stream(self) -> AsyncGenerator[Listed[T] | WatchChange[T], None]:
        """What is there, in parts, and then every change of it, in one answer. It is tried once."""
        part: list[T] = []
        first, self.stream = True, False
        async with aclosing(self._watch(patience=_PATIENCE)) as changes:
            async for change in changes:
                if not self._must_list:
                    yield change
                    continue
                if change.object is not None:
                    part.append(change.object)
                if part and (len(part) >= _AT_ONCE or change.all_there):
                    yield Listed(part, "", first=first)
                    part, first = [], False
                if change.all_there:
                    self._must_list, self.listed = False, True
                    yield Listed([], change.version, first=first, last=True)

    async def _watch(self, patience: float | None = None) -> AsyncGenerator[WatchChange[T], None]:
        """Until the server ends it, or is silent for much longer than between its bookmarks; some servers send none.

        `patience`: seconds that it may be silent before it has told what is there.
        """
        now = asyncio.get_running_loop().time
        bookmark = normal = deadline = None
        watched = self.kube.watch(
            self.resource, self.namespace, since=self._version, opened=self._well, **self._selection
        )
        async with aclosing(watched):
            while True:
                limit = now() + patience if patience is not None and self._must_list else deadline
                try:
                    async with asyncio.timeout_at(limit):
                        change = await anext(watched, None)
                except TimeoutError as error:
                    trying = f"watch {self.resource.plural}"
                    raise Unavailable(trying, Text("the server stopped responding"), reason="Timeout") from error
                if change is None:
                    return
                if change.type == "BOOKMARK":
                    normal, bookmark = None if bookmark is None else now() - bookmark, now()
                if normal is not None:
                    deadline = now() + max(self.pauses.silence, 3 * normal)
                self._failures = 0
                version = _version_of(change)
                if version and not is_older(version, self._version):
                    self._version = version
                yield change

    def knows(self, version: str) -> bool:
        """Whether everything up to this version was told."""
        return not self._must_list and (version == self._version or is_older(version, self._version))

    def _well(self) -> None:
        self.trouble, self._answered = None, True

    def _troubled(self, error: Trouble) -> float:
        """How long to wait before the next try."""
        self._failures += 1
        if self._answered:
            self._answered, self._failing_since = False, time.monotonic()
        limit = self.patience(error)
        if limit is not None and time.monotonic() - self._failing_since > limit:
            raise error
        if isinstance(error, Gone):
            self._must_list = True
            # The first time there is nothing to wait for: the server just has a shorter memory than we were away.
            return self.pauses.after(self._failures) if self._failures > 1 else 0.0
        self.trouble = str(error)
        if isinstance(error, AccessError) or not error.retryable:
            return self.pauses.spread(self.pauses.refused)
        return max(self.pauses.after(self._failures), error.retry_after or 0.0)


def _version_of(change: WatchChange[Any]) -> str:
    if change.object is None:
        return change.version
    if isinstance(change.object, dict):
        return str(change.object["metadata"]["resourceVersion"])
    return str(change.object.metadata.resource_version)
