"""Keeps a copy of what the server has: lists once, then follows. Newer objects win, and each change is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from oarsman.engines.kube.client.codec import HasMeta, Meta, WatchChange
from oarsman.engines.kube.client.errors import Gone
from oarsman.engines.kube.client.kube import Kube
from oarsman.engines.kube.client.list_watch import Listed, ListWatch, Pauses, Trouble, is_older
from oarsman.engines.kube.client.resources import Resource

T = TypeVar("T", bound=HasMeta)
Key = tuple[str, str]  # namespace and name
Changed = Callable[[T | None, T | None], None]  # the object before and after

_AT_ONCE = 100  # objects taken in before others get a turn
_PAUSES = Pauses()

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
                scope,
                self._cache,
                self._listed,
                view=view,
                labels=labels,
                fields=fields,
                metadata_only=metadata_only,
                pauses=pauses,
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
        scope: str | None,
        cache: Cache[T],
        listed: Callable[[], None],
        **selection: Any,
    ) -> None:
        self._plural, self._scope, self._cache, self._listed = resource.plural, scope, cache, listed
        self._source: ListWatch[T] = ListWatch(kube, resource, scope, patience=self._endless, **selection)
        self._seen: set[Key] = set()

    @property
    def listed_once(self) -> bool:
        return self._source.listed

    @property
    def trouble(self) -> str | None:
        return self._source.trouble

    def _endless(self, error: Trouble) -> None:
        if isinstance(error, Gone):
            _log.info("%s; listing again", error)
        elif str(error) != self.trouble:
            _log.warning("not following %s: %s", self._plural, error)

    async def follow(self) -> None:
        async with aclosing(self._source.news()) as news:
            async for item in news:
                if isinstance(item, Listed):
                    await self._list(item)
                else:
                    self._take(item)

    async def _list(self, page: Listed[T]) -> None:
        """Takes in what is there, and drops what is no longer."""
        if page.first:
            self._seen.clear()
        for start in range(0, len(page.items), _AT_ONCE):
            for item in page.items[start : start + _AT_ONCE]:
                self._seen.add(key_of(item.metadata))
                self._cache.put(item, even_if_older=page.restored)
            await asyncio.sleep(0)
        if page.last:
            self._drop_unseen(page)
            self._listed()

    def _drop_unseen(self, page: Listed[T]) -> None:
        for key in self._cache.keys_in(self._scope):
            item = self._cache.get(key)
            if key in self._seen or item is None:
                continue
            # A write of our own that the list is too old to know stays; the watch will tell about it.
            if page.restored or not is_older(page.version, item.metadata.resource_version):
                self._cache.drop(key, item.metadata.uid)
        self._seen.clear()

    def _take(self, change: WatchChange[T]) -> None:
        if change.object is None:
            return
        meta = change.object.metadata
        if change.type == "DELETED":
            self._cache.drop(key_of(meta), meta.uid)
        else:
            self._cache.put(change.object)


def key_of(meta: Meta) -> Key:
    return meta.namespace, meta.name


class Cache(Generic[T]):
    """Objects by name and by index."""

    def __init__(self, index: Callable[[T], str | None] | None, changed: Changed[T] | None) -> None:
        self._items: dict[Key, T] = {}
        self._index = index
        self._indexed: dict[str, dict[Key, T]] = {}
        self._changed = changed

    def get(self, key: Key) -> T | None:
        return self._items.get(key)

    def of(self, index_value: str) -> Collection[T]:
        return tuple(self._indexed.get(index_value, {}).values())

    def all(self) -> Collection[T]:
        return tuple(self._items.values())

    def keys_in(self, namespace: str | None) -> list[Key]:
        """The keys in a namespace, or all."""
        return [key for key in self._items if namespace is None or key[0] == namespace]

    def put(self, item: T, *, even_if_older: bool = False) -> None:
        meta = item.metadata
        key = key_of(meta)
        old = self._items.get(key)
        if old is not None:
            known = old.metadata
            if known.uid == meta.uid and known.resource_version == meta.resource_version:
                return
            if is_older(meta.resource_version, known.resource_version) and not even_if_older:
                return
            if known.uid != meta.uid:  # deleted and made again while nobody looked
                self.drop(key, known.uid)
                old = None
        self._store(key, old, item)
        self._tell(old, item)

    def drop(self, key: Key, uid: str) -> None:
        """Forgets the object, unless another one has its name now."""
        old = self._items.get(key)
        if old is not None and old.metadata.uid == uid:
            del self._items[key]
            self._unindex(key, old)
            self._tell(old, None)

    def _store(self, key: Key, old: T | None, new: T) -> None:
        if old is not None:
            self._unindex(key, old)
        self._items[key] = new
        value = self._index(new) if self._index else None
        if value is not None:
            self._indexed.setdefault(value, {})[key] = new

    def _unindex(self, key: Key, old: T) -> None:
        value = self._index(old) if self._index else None
        if value is not None:
            same = self._indexed[value]
            del same[key]
            if not same:
                del self._indexed[value]

    def _tell(self, old: T | None, new: T | None) -> None:
        if self._changed is None:
            return
        try:
            self._changed(old, new)
        except Exception:  # the cache must go on following, whatever its listener makes of a change
            meta = (new or old).metadata  # type: ignore[union-attr]  # one of them is there
            _log.exception("a change of %s/%s was not taken in", meta.namespace, meta.name)
