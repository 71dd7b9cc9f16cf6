"""Keeps a copy of what the server has: lists once, then follows the changes, through every kind of interruption."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Generic

from oarsman.engines.kube.client.cache import Cache, Changed, Key, T, is_older, key_of
from oarsman.engines.kube.client.codec import WatchChange
from oarsman.engines.kube.client.errors import ApiError, Gone, Unavailable
from oarsman.engines.kube.client.kube import Kube
from oarsman.engines.kube.client.pace import Pauses, Pulse
from oarsman.engines.kube.client.resources import Resource
from oarsman.errors import AccessError
from oarsman.text.sentence import Text

_AT_ONCE = 100  # objects taken in before others get a turn
_PAUSES = Pauses()
_SOON = 1.0  # seconds; a watch that ends sooner without having told anything was no watch

_log = logging.getLogger(__name__)


class Informer(Generic[T]):
    """The objects of a resource, in all namespaces or those named. `changed(old, new)` hears of each change once."""

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        view: type[T],
        *,
        namespaces: Sequence[str] = (),
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        index: Callable[[T], str | None] | None = None,
        changed: Changed[T] | None = None,
        pauses: Pauses = _PAUSES,
    ) -> None:
        self._cache: Cache[T] = Cache(index, changed)
        self.synced = asyncio.Event()
        scopes = tuple(dict.fromkeys(namespaces)) if resource.namespaced else ()
        self._followers = [
            _Follower(
                kube,
                resource,
                view,
                scope,
                self._cache,
                labels=labels,
                fields=fields,
                metadata_only=metadata_only,
                pauses=pauses,
                listed=self._listed,
            )
            for scope in scopes or (None,)
        ]

    async def run(self) -> None:
        """Follows for ever; ends by being cancelled."""
        async with asyncio.TaskGroup() as group:
            for follower in self._followers:
                group.create_task(follower.follow())

    @property
    def trouble(self) -> str | None:
        """Why changes are not heard of at the moment."""
        return next((follower.trouble for follower in self._followers if follower.trouble), None)

    def get(self, namespace: str, name: str) -> T | None:
        return self._cache.get((namespace, name))

    def of(self, index_value: str) -> Collection[T]:
        """The objects with this value of the index, as they are now."""
        return self._cache.of(index_value)

    def all(self) -> Collection[T]:
        return self._cache.all()

    def put(self, item: T) -> None:
        """Records one's own write at once, unless something newer is known already."""
        self._cache.put(item)

    def drop(self, namespace: str, name: str, uid: str) -> None:
        """Records one's own deletion at once."""
        self._cache.drop((namespace, name), uid)

    def _listed(self) -> None:
        if all(follower.listed_once for follower in self._followers):
            self.synced.set()


class _Follower(Generic[T]):
    """Follows one scope: a namespace, or everything."""

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        view: type[T],
        scope: str | None,
        cache: Cache[T],
        *,
        labels: str,
        fields: str,
        metadata_only: bool,
        pauses: Pauses,
        listed: Callable[[], None],
    ) -> None:
        self._kube = kube
        self._resource = resource
        self._view = view
        self._scope = scope
        self._cache = cache
        self._labels = labels
        self._fields = fields
        self._metadata_only = metadata_only
        self._pauses = pauses
        self._listed = listed
        self._version = ""  # everything up to it is in the cache
        self._must_list = True
        self._failures = 0
        self.listed_once = False
        self.trouble: str | None = None

    async def follow(self) -> None:
        while True:
            try:
                if self._must_list:
                    await self._list()
                pause = await self._watch()
            except Gone as gone:
                _log.info("%s; listing again", gone)
                self._must_list = True
                self._failures += 1
                # The first time there is nothing to wait for: the server just has a shorter memory than we were away.
                pause = self._pauses.after(self._failures) if self._failures > 1 else 0.0
            except (ApiError, AccessError) as error:
                pause = self._troubled(error)
            await asyncio.sleep(pause)

    def _troubled(self, error: ApiError | AccessError) -> float:
        self._failures += 1
        if str(error) != self.trouble:
            _log.warning("not following %s: %s", self._resource.plural, error)
        self.trouble = str(error)
        if isinstance(error, AccessError) or not error.retryable:
            return self._pauses.after_refusal()
        return max(self._pauses.after(self._failures), error.retry_after or 0.0)

    def _well(self) -> None:
        self.trouble = None

    async def _list(self) -> None:
        """Takes in what is there, and drops what is no longer."""
        seen: set[Key] = set()
        version = ""
        backwards = False
        async for page in self._kube.pages(
            self._resource,
            self._scope,
            labels=self._labels,
            fields=self._fields,
            view=self._view,
            metadata_only=self._metadata_only,
        ):
            if page.first:
                seen.clear()
            version = page.version
            backwards = is_older(version, self._version)  # the cluster was restored from a backup
            for start in range(0, len(page.items), _AT_ONCE):
                for item in page.items[start : start + _AT_ONCE]:
                    seen.add(key_of(item.metadata))
                    self._cache.put(item, even_if_older=backwards)
                await asyncio.sleep(0)
        self._drop_unseen(seen, version, backwards)
        self._version = version
        self._must_list = False
        self._well()
        self.listed_once = True
        self._listed()

    def _drop_unseen(self, seen: set[Key], version: str, backwards: bool) -> None:
        for key in self._cache.keys_in(self._scope):
            item = self._cache.get(key)
            if key in seen or item is None:
                continue
            # A write of our own that the list is too old to know stays; the watch will tell about it.
            if backwards or not is_older(version, item.metadata.resource_version):
                self._cache.drop(key, item.metadata.uid)

    async def _watch(self) -> float:
        """Follows until the server ends it; how long to wait before the next one."""
        started = time.monotonic()
        changes = self._kube.watch(
            self._resource,
            self._scope,
            labels=self._labels,
            fields=self._fields,
            since=self._version,
            view=self._view,
            metadata_only=self._metadata_only,
            opened=self._well,
        )
        try:
            async with aclosing(changes), asyncio.timeout(None) as guard:
                told = await self._hear(changes, guard)
        except TimeoutError as error:
            trying = f"watch {self._resource.plural}"
            raise Unavailable(trying, Text("the server has fallen silent"), reason="Timeout") from error
        if told or time.monotonic() - started > _SOON:
            self._failures = 0
            return 0.0
        self._failures += 1
        return self._pauses.after(self._failures)

    async def _hear(self, changes: AsyncIterator[WatchChange[T]], guard: asyncio.Timeout) -> int:
        """Takes in changes to the end; how many there were. Bookmarks are the server's pulse."""
        now = asyncio.get_running_loop().time
        pulse = Pulse(self._pauses.silence)
        told = 0
        async for change in changes:
            guard.reschedule(pulse.heard(now(), regular=change.type == "BOOKMARK"))
            self._failures = 0
            self._take(change)
            told += 1
            if told % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return told

    def _take(self, change: WatchChange[T]) -> None:
        if change.object is None:
            self._heard(change.version)
            return
        meta = change.object.metadata
        if change.type == "DELETED":
            self._cache.drop(key_of(meta), meta.uid)
        else:
            self._cache.put(change.object)
        self._heard(meta.resource_version)

    def _heard(self, version: str) -> None:
        if version and not is_older(version, self._version):
            self._version = version
