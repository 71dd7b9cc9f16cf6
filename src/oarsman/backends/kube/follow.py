"""Objects as they are now and after each change, for as long as somebody looks; and so the jobs of the namespaces whose
jobs somebody may see.

A server that has agreed to a watch goes on with it when the right is taken away. So the question is asked again
from time to time, and what may no longer be seen is no longer told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from oarsman.backends.base import Batch, JobRecord
from oarsman.backends.kube.lookups import may
from oarsman.backends.kube.records import key_of
from oarsman.engines.kube import client
from oarsman.engines.kube.client import Kube, Resource, resources
from oarsman.errors import ForbiddenError
from oarsman.portal import running
from oarsman.text.sentence import Text

T = TypeVar("T")
Document = dict[str, Any]
Read = Callable[[Document], JobRecord]
Scope = tuple[str, ...] | None  # None: every namespace there is
_PAUSES: Final = client.Pauses(first=0.2, longest=3.0, refused=1.0)
_PATIENCE_SECONDS: Final = 120.0  # without a server; the first question is asked without any
_REFUSED_SECONDS: Final = 30.0  # a server that has just started may not know yet who may do what
_AGAIN_SECONDS: Final = 60.0
_MOST_NAMESPACES: Final = 200  # looked at for one who may not see all of them; each takes a watch of its own


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

    def limit(error: client.ApiError | client.AccessError) -> float | None:
        if isinstance(error, client.Gone):
            return patience
        if source.listed and isinstance(error, client.Forbidden | client.Unauthorized | client.NotFound):
            return _REFUSED_SECONDS
        return patience if source.listed and isinstance(error, client.ApiError) and error.retryable else 0.0

    source: client.ListWatch[Document] = client.ListWatch(
        kube, resource, namespace, patience=limit, pauses=_PAUSES, labels=labels, fields=fields
    )
    found: dict[str, T] = {}
    async with aclosing(source.news()) as news:
        async for item in news:
            if isinstance(item, client.Listed):
                if item.first:
                    found = {}
                found |= await asyncio.to_thread(lambda items: {key_of(one): read(one) for one in items}, item.items)
                if item.last:
                    yield ObjectChanges(whole=True, found=found)
                    found = {}
            elif item.object is not None:
                key = key_of(item.object)
                if item.type == "DELETED":
                    yield ObjectChanges(whole=False, found={}, gone=(key,))
                else:
                    yield ObjectChanges(whole=False, found={key: read(item.object)})


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


# -- jobs ---------------------------------------------------------------------------------------------
async def batches(kube: Kube, namespace: str | None, read: Read) -> AsyncGenerator[Batch, None]:
    """The jobs of one namespace, or of all of them."""
    try:
        async with aclosing(changes(kube, resources.MPIJOBS, namespace, read)) as found:
            async for news in found:
                yield Batch(records=tuple(news.found.values()), gone=news.gone, whole=news.whole)
    except client.Forbidden as error:
        if namespace is not None:
            raise
        message = Text("this user may not see the jobs of all namespaces: {why}", why=error.message)
        raise ForbiddenError(message, field="namespace", hint=Text("name a namespace")) from error


async def scope_of(kube: Kube, candidates: Sequence[str]) -> Scope:
    """Where the asker may see jobs: everywhere, or in these of the candidates and of the namespaces it may list."""
    if await may(kube, "list", None):
        return None
    known = dict.fromkeys(candidates)
    with suppress(client.Forbidden):
        known |= dict.fromkeys(sorted(found["metadata"]["name"] for found in await kube.list(resources.NAMESPACES)))
    asked = [name for name in known if name][:_MOST_NAMESPACES]
    answers = await asyncio.gather(*(may(kube, "list", name) for name in asked))
    return tuple(sorted(name for name, yes in zip(asked, answers, strict=True) if yes))


async def allowed_batches(
    kube: Kube, candidates: Sequence[str], read: Read, *, again: float = _AGAIN_SECONDS
) -> AsyncGenerator[Batch]:
    """Never ends by itself; with an error if there is no namespace whose jobs the asker may see."""
    while True:
        scope = await scope_of(kube, candidates)
        if scope == ():
            hint = Text(
                "ask for the role `view` in yours; if you have it, the console must be told the namespace's name"
            )
            raise ForbiddenError(Text("the cluster lets this user see jobs in no namespace"), hint=hint)
        async with aclosing(_of_scope(kube, scope, read, _changed(kube, candidates, scope, again))) as found:
            async for batch in found:
                yield batch


async def _changed(kube: Kube, candidates: Sequence[str], scope: Scope, again: float) -> None:
    """Returns when the asker may see other namespaces than these."""
    while True:
        await asyncio.sleep(again)
        try:
            if await scope_of(kube, candidates) != scope:
                return
        except client.ApiError as error:
            if not error.retryable:  # a server that is away for a moment has not taken any right away
                raise


Told = tuple[str | None, ObjectChanges[JobRecord]]  # of which namespace


class _Merged:
    """The news of several namespaces as one: first everything, once all have told what they have, then what changes."""

    def __init__(self, places: Sequence[str | None]) -> None:
        self._missing = set(places)
        self._known: dict[str | None, dict[str, JobRecord]] = {place: {} for place in places}

    def take(self, place: str | None, news: ObjectChanges[JobRecord]) -> Batch | None:
        known = self._known[place]
        gone = [key for key in known if key not in news.found] if news.whole else list(news.gone)
        for key in gone:
            known.pop(key, None)
        known.update(news.found)
        if not self._missing:
            return Batch(records=tuple(news.found.values()), gone=tuple(gone))
        self._missing.discard(place)
        if self._missing:
            return None
        return Batch(records=tuple(record for all in self._known.values() for record in all.values()), whole=True)


async def _of_scope(kube: Kube, scope: Scope, read: Read, end: Coroutine[Any, Any, None]) -> AsyncGenerator[Batch]:
    """Until `end` has ended."""
    places: Sequence[str | None] = (None,) if scope is None else scope
    queue: asyncio.Queue[Told] = asyncio.Queue(len(places))

    async def follow(place: str | None) -> None:
        async with aclosing(changes(kube, resources.MPIJOBS, place, read)) as found:
            async for news in found:
                await queue.put((place, news))

    merged = _Merged(places)
    async with running(end, *map(follow, places)) as tasks:
        while (told := await _next(queue, tasks)) is not None:
            batch = merged.take(*told)
            if batch is not None:
                yield batch


async def _next(queue: asyncio.Queue[Told], tasks: Sequence[asyncio.Task[None]]) -> Told | None:
    """The next news; None once a task has ended, whose error is ours too."""
    coming = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait({coming, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
                return None
        return coming.result()
    finally:
        coming.cancel()
