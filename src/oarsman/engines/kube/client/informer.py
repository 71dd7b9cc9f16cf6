"""Keeps a copy of what the server has: lists once, then follows. Newer objects win, and each change is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar, Unpack

from oarsman.engines.kube.client.codec import HasMeta, Listed, Selection
from oarsman.engines.kube.client.errors import Gone
from oarsman.engines.kube.client.kube import Kube
from oarsman.engines.kube.client.list_watch import ListWatch, Pauses, Trouble, is_older
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
        index: Callable[[T], str | None] | None = None,
        changed: Changed[T] | None = None,
        pauses: Pauses = _PAUSES,
        stream: bool = False,
        **which: Unpack[Selection],
    ) -> None:
        self._plural, self._index, self._changed = resource.plural, index, changed
        self._items: dict[Key, T] = {}
        self._indexed: dict[str, dict[Key, T]] = {}
        self.synced = asyncio.Event()
        scopes = tuple(dict.fromkeys(namespaces)) if resource.namespaced else ()
        self._sources: dict[str | None, ListWatch[T]] = {
            scope: ListWatch(
                kube, resource, scope, patience=self._endless, pauses=pauses, view=view, stream=stream, **which
            )
            for scope in scopes or (None,)
        }

    async def run(self) -> None:
        """Follows for ever; ends by being cancelled."""
        async with asyncio.TaskGroup() as group:
            for scope, source in self._sources.items():
                group.create_task(self._follow(scope, source))

    @property
    def trouble(self) -> str | None:
        """Why changes are not heard of at the moment."""
        return next((source.trouble for source in self._sources.values() if source.trouble), None)

    def get(self, namespace: str, name: str) -> T | None:
        return self._items.get((namespace, name))

    def of(self, index_value: str) -> Collection[T]:
        """The objects with this value of the index, as they are now."""
        return tuple(self._indexed.get(index_value, {}).values())

    def all(self) -> Collection[T]:
        return tuple(self._items.values())

    def put(self, item: T, *, tell: bool = True) -> None:
        """Records one's own write at once, unless it is old news: of an object that was deleted since, say."""
        meta = item.metadata
        source = self._sources.get(None) or self._sources.get(meta.namespace)
        gone = (meta.namespace, meta.name) not in self._items and source and source.knows(meta.resource_version)
        if not gone:
            self._take_in(item, tell=tell)

    def _take_in(self, item: T, *, even_if_older: bool = False, tell: bool = True) -> None:
        """Unless something newer is known already."""
        meta = item.metadata
        key = meta.namespace, meta.name
        old = self._items.get(key)
        if old is not None:
            known = old.metadata
            if known.uid == meta.uid and known.resource_version == meta.resource_version:
                return
            if is_older(meta.resource_version, known.resource_version) and not even_if_older:
                return
            if known.uid != meta.uid:  # deleted and made again while nobody looked
                self.drop(*key, known.uid)
                old = None
            else:
                self._unindex(key, old)
        self._items[key] = item
        value = self._index(item) if self._index else None
        if value is not None:
            self._indexed.setdefault(value, {})[key] = item
        if tell:
            self._tell(old, item)

    def drop(self, namespace: str, name: str, uid: str) -> None:
        """Records a deletion, one's own at once, unless another object has the name now."""
        key = namespace, name
        old = self._items.get(key)
        if old is not None and old.metadata.uid == uid:
            del self._items[key]
            self._unindex(key, old)
            self._tell(old, None)

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

    async def _follow(self, scope: str | None, source: ListWatch[T]) -> None:
        """One scope: a namespace, or everything. A list takes in what is there, and drops what is no longer."""
        seen: set[Key] = set()
        async with aclosing(source.news()) as news:
            async for told in news:
                if isinstance(told, Listed):
                    if told.first:
                        seen.clear()
                    for count, item in enumerate(told.items, 1):
                        seen.add((item.metadata.namespace, item.metadata.name))
                        self._take_in(item, even_if_older=told.restored)
                        if count % _AT_ONCE == 0:
                            await asyncio.sleep(0)
                    if told.last:
                        self._drop_unseen(scope, seen, told)
                        seen.clear()
                        if all(each.listed for each in self._sources.values()):
                            self.synced.set()
                elif told.object is not None:
                    meta = told.object.metadata
                    if told.type == "DELETED":
                        self.drop(meta.namespace, meta.name, meta.uid)
                    else:
                        self._take_in(told.object)

    def _drop_unseen(self, scope: str | None, seen: set[Key], page: Listed[T]) -> None:
        for key, item in tuple(self._items.items()):
            if key in seen or scope not in (None, key[0]):
                continue
            # A write of our own that the list is too old to know stays; the watch will tell about it.
            if page.restored or not is_older(page.version, item.metadata.resource_version):
                self.drop(*key, item.metadata.uid)

    def _endless(self, error: Trouble) -> None:
        if isinstance(error, Gone):
            _log.info("%s; listing again", error)
        elif all(str(error) != source.trouble for source in self._sources.values()):
            _log.warning("not following %s: %s", self._plural, error)
