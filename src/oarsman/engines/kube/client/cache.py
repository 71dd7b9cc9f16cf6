"""Objects by name and by index; newer ones win, and every change is told once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from oarsman.engines.kube.client.list_watch import is_older
from oarsman.engines.kube.client.meta import HasMeta, Meta

T = TypeVar("T", bound=HasMeta)
Key = tuple[str, str]  # namespace and name
Changed = Callable[[T | None, T | None], None]  # the object before and after

_log = logging.getLogger(__name__)


def key_of(meta: Meta) -> Key:
    return meta.namespace, meta.name


class Cache(Generic[T]):
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
