"""Objects as they are now and after each change, for as long as somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from oarsman.backends.kube.records import key_of
from oarsman.engines.kube.client import (
    AccessError,
    ApiError,
    Forbidden,
    Gone,
    Kube,
    Listed,
    ListWatch,
    NotFound,
    Pauses,
    Resource,
    Unauthorized,
)

T = TypeVar("T")
Document = dict[str, Any]
_PAUSES: Final = Pauses(first=0.2, longest=3.0, refused=1.0)
_PATIENCE_SECONDS: Final = 120.0  # without a server; the first question is asked without any
_REFUSED_SECONDS: Final = 30.0  # a server that has just started may not know yet who may do what


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
) -> AsyncGenerator[ObjectChanges[T], None]:
    """All objects, then every change. Never ends by itself; without a limit to its patience, hardly with an error."""

    def limit(error: ApiError | AccessError) -> float | None:
        if isinstance(error, Gone):
            return patience
        if source.listed and isinstance(error, Forbidden | Unauthorized | NotFound):
            return _REFUSED_SECONDS
        return patience if source.listed and isinstance(error, ApiError) and error.retryable else 0.0

    source: ListWatch[Document] = ListWatch(
        kube, resource, namespace, patience=limit, pauses=_PAUSES, labels=labels, fields=fields
    )
    found: dict[str, T] = {}
    async with aclosing(source.news()) as news:
        async for item in news:
            if isinstance(item, Listed):
                if item.first:
                    found = {}
                found.update(await asyncio.to_thread(_read, item.items, read))
                if item.last:
                    yield ObjectChanges(whole=True, found=found)
                    found = {}
            elif item.object is not None:
                key = key_of(item.object)
                if item.type == "DELETED":
                    yield ObjectChanges(whole=False, found={}, gone=(key,))
                else:
                    yield ObjectChanges(whole=False, found={key: read(item.object)})


def _read(items: list[Document], read: Callable[[Document], T]) -> dict[str, T]:
    return {key_of(item): read(item) for item in items}


async def objects(
    kube: Kube, resource: Resource, namespace: str | None, *, labels: str = "", fields: str = ""
) -> AsyncGenerator[Mapping[str, Document], None]:
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


async def one(kube: Kube, resource: Resource, namespace: str | None, name: str) -> AsyncGenerator[Document, None]:
    """One object until it is gone. Another one of the same name is not the same."""
    uid = None
    async with aclosing(objects(kube, resource, namespace, fields=f"metadata.name={name}")) as states:
        async for state in states:
            found = state.get(name)
            if found is None or uid not in (None, found["metadata"]["uid"]):
                return
            uid = found["metadata"]["uid"]
            yield found
