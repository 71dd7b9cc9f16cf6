"""Jobs of all namespaces that somebody may see: of every one, or, if that is refused, of each that allows it.

A server that has agreed to a watch goes on with it when the right is taken away. So the question is asked again
from time to time, and what may no longer be seen is no longer told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from oarsman.backends.base import Batch, JobRecord
from oarsman.backends.kube import follow as following
from oarsman.backends.kube.lookups import may
from oarsman.engines.kube.client import ApiError, Forbidden, Kube, resources
from oarsman.errors import ForbiddenError
from oarsman.text.sentence import Text

Read = Callable[[dict[str, Any]], JobRecord]
Scope = tuple[str, ...] | None  # None: every namespace there is
_AGAIN_SECONDS: Final = 60.0
_MOST_NAMESPACES: Final = 200  # looked at for one who may not see all of them; each takes a watch of its own


async def scope_of(kube: Kube, candidates: Sequence[str]) -> Scope:
    """Where the asker may see jobs: everywhere, or in these of the candidates and of the namespaces it may list."""
    if await may(kube, "list", None):
        return None
    known = dict.fromkeys(candidates)
    with suppress(Forbidden):
        known |= dict.fromkeys(sorted(found["metadata"]["name"] for found in await kube.list(resources.NAMESPACES)))
    asked = [name for name in known if name][:_MOST_NAMESPACES]
    answers = await asyncio.gather(*(may(kube, "list", name) for name in asked))
    return tuple(sorted(name for name, yes in zip(asked, answers, strict=True) if yes))


async def batches(
    kube: Kube, candidates: Sequence[str], read: Read, *, again: float = _AGAIN_SECONDS
) -> AsyncGenerator[Batch]:
    """Never ends by itself; with an error if there is no namespace whose jobs the asker may see."""
    while True:
        scope = await scope_of(kube, candidates)
        if scope == ():
            raise ForbiddenError(
                Text("the cluster lets this user see jobs in no namespace"),
                hint=Text(
                    "ask for the role `view` in yours; if you have it, the console must be told the namespace's name"
                ),
            )
        changed = asyncio.create_task(_until_changed(kube, candidates, scope, again))
        try:
            async with aclosing(_of_scope(kube, scope, read)) as found, aclosing(_until(changed, found)) as told:
                async for batch in told:
                    yield batch
        finally:
            changed.cancel()


async def _until_changed(kube: Kube, candidates: Sequence[str], scope: Scope, again: float) -> None:
    while True:
        await asyncio.sleep(again)
        try:
            if await scope_of(kube, candidates) != scope:
                return
        except ApiError as error:
            if not error.retryable:  # a server that is away for a moment has not taken any right away
                raise


async def _until(end: asyncio.Task[None], found: AsyncGenerator[Batch]) -> AsyncGenerator[Batch]:
    """What comes until `end` is done, whose error is ours too."""
    while True:
        coming = asyncio.ensure_future(anext(found))
        try:
            await asyncio.wait({coming, end}, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                end.result()
                return
            yield coming.result()
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.wait({coming})


Told = tuple[str | None, following.ObjectChanges[JobRecord]]  # of which namespace


class _Merged:
    """The news of several namespaces as one: first everything, once all have told what they have, then what changes."""

    def __init__(self, places: Sequence[str | None]) -> None:
        self._missing = set(places)
        self._known: dict[str | None, dict[str, JobRecord]] = {place: {} for place in places}

    def take(self, place: str | None, news: following.ObjectChanges[JobRecord]) -> Batch | None:
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


async def _of_scope(kube: Kube, scope: Scope, read: Read) -> AsyncGenerator[Batch]:
    places: Sequence[str | None] = (None,) if scope is None else scope
    queue: asyncio.Queue[Told] = asyncio.Queue(len(places))

    async def follow(place: str | None) -> None:
        async with aclosing(following.changes(kube, resources.MPIJOBS, place, read)) as changes:
            async for news in changes:
                await queue.put((place, news))

    tasks = [asyncio.create_task(follow(place)) for place in places]
    merged = _Merged(places)
    try:
        while True:
            batch = merged.take(*await _next(queue, tasks))
            if batch is not None:
                yield batch
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _next(queue: asyncio.Queue[Told], tasks: Sequence[asyncio.Task[None]]) -> Told:
    """The next news; or the error of a task that failed: none of them ends otherwise."""
    coming = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait({coming, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return coming.result()
    finally:
        coming.cancel()
