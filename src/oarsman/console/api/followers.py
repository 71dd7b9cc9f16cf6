"""Many who follow one log: one task reads it, each page is encoded once, whoever is at that place gets it as it is.

Somebody who comes from an earlier place, or was slow, reads pages of their own until they are where the others are.
Places are compared, never understood: a page fits behind the place it began at.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from oarsman.backends.base import Backend, LogPage, LogQuery
from oarsman.console.api.sse import HEARTBEAT_SECONDS, STILL_HERE, Events, event
from oarsman.errors import OarsmanError, RetryableError
from oarsman.service import views
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman.console")
_AT_ONCE = 1000  # lines that somebody who catches up reads at a time
_AHEAD = 32  # pages kept for one who is slow; older ones they read themselves
_MOST_FOLLOWED = 512  # logs read at the same time: each has files open


@dataclass(frozen=True, slots=True)
class _Piece:
    begins: str
    ends: str
    block: bytes


class _Listener:
    """What a follower has brought to one who listens."""

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque(maxlen=_AHEAD)  # the oldest falls out: its reader notices the gap
        self._awake = asyncio.Event()
        self.over = False
        self.error: OarsmanError | None = None  # why it is over

    def tell(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._awake.set()

    def end(self, error: OarsmanError | None) -> None:
        self.over, self.error = True, error
        self._awake.set()

    async def wait(self) -> bool:
        """Whether there is something; False: not for a while."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._awake.wait()
        except TimeoutError:
            return False
        self._awake.clear()
        return True

    def take(self) -> _Piece | None:
        return self._pieces.popleft() if self._pieces else None

    def forget(self) -> None:
        self._pieces.clear()


class _LogFollower:
    """One task that follows one log with one filter, for as long as anybody listens."""

    def __init__(self, pages: AsyncGenerator[LogPage, None], begins: str, gone: Callable[[_LogFollower], None]) -> None:
        self.listeners: set[_Listener] = set()
        self._gone = gone
        self._task = asyncio.create_task(self._read(pages, begins), name="log follower")

    async def _read(self, pages: AsyncGenerator[LogPage, None], place: str) -> None:
        error: OarsmanError | None = None
        try:
            async with aclosing(pages):
                async for page in pages:
                    piece = _Piece(place, page.after, encoded(page))
                    place = page.after
                    for listener in self.listeners:
                        listener.tell(piece)
        except OarsmanError as problem:
            error = problem
        except Exception as problem:
            log.exception("a log could not be followed")
            error = RetryableError(Text("the log could not be followed: {why}", why=problem))
        self._gone(self)  # from now on nobody joins
        for listener in self.listeners:
            listener.end(error)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


class Followers:
    """Of one backend."""

    def __init__(self, jobs: Backend) -> None:
        self._jobs = jobs
        self._shared: dict[tuple[str, LogQuery], _LogFollower] = {}
        self._alone = 0  # those who read from the beginning, by themselves

    def __len__(self) -> int:
        return len(self._shared) + self._alone

    async def follow(self, key: str, query: LogQuery, after: str | None) -> Events:
        """From that place on (None: the beginning) until the attempt is over."""
        blocks = self._from_the_beginning(key, query) if after is None else self._with_others(key, query, after)
        async with aclosing(blocks):
            async for block in blocks:
                yield block

    async def _from_the_beginning(self, key: str, query: LogQuery) -> Events:
        self._refuse_too_many()
        self._alone += 1
        try:
            async with aclosing(_with_silences(self._jobs.log_follow(key, query))) as pages:
                async for page in pages:
                    yield STILL_HERE if page is None else encoded(page)
        finally:
            self._alone -= 1

    async def _with_others(self, key: str, query: LogQuery, after: str) -> Events:
        follower = self._shared.get((key, query)) or self._begin(key, query, after)
        listener = _Listener()
        follower.listeners.add(listener)
        try:
            async with aclosing(self._behind(key, query, after, listener)) as blocks:
                async for block in blocks:
                    yield block
        finally:
            follower.listeners.discard(listener)
            if not follower.listeners:
                self._forget(follower)
                await follower.close()

    async def _behind(self, key: str, query: LogQuery, place: str, listener: _Listener) -> Events:
        """Read until nothing is left; then take what the follower brings, as long as it fits."""
        fits, target = False, ""
        while True:
            if not fits:
                async with aclosing(self._catch_up(key, query, place, target)) as missed:
                    async for piece in missed:
                        place = piece.ends
                        yield piece.block
            over = listener.over  # before looking at what it brought: nothing comes after it
            fits = True
            while (found := listener.take()) is not None:
                if found.begins != place:
                    fits, target = False, found.ends
                    listener.forget()
                    break
                place = found.ends
                yield found.block
            if fits and over:
                if listener.error is not None:
                    raise listener.error
                return
            if fits and not await listener.wait():
                yield STILL_HERE

    async def _catch_up(self, key: str, query: LogQuery, place: str, target: str) -> AsyncGenerator[_Piece, None]:
        """Pages of one's own, down to `target` if one meets it, and to the end otherwise."""
        while place != target:
            page = await self._jobs.log_page(key, query, after=place, limit=_AT_ONCE)
            if page.after == place:
                return
            page = _cut(page, target)
            yield _Piece(place, page.after, encoded(page))
            place = page.after

    # -- coming and going ----------------------------------------------------------------------------
    def _refuse_too_many(self) -> None:
        if len(self) >= _MOST_FOLLOWED:
            raise RetryableError(
                Text("too many logs are being followed at the same time"), hint=Text("try again later")
            )

    def _begin(self, key: str, query: LogQuery, after: str) -> _LogFollower:
        self._refuse_too_many()
        pages = self._jobs.log_follow(key, query, after=after)
        follower = self._shared[key, query] = _LogFollower(pages, after, self._forget)
        return follower

    def _forget(self, follower: _LogFollower) -> None:
        for name in [name for name, known in self._shared.items() if known is follower]:
            del self._shared[name]

    async def close(self) -> None:
        for follower in list(self._shared.values()):
            await follower.close()


async def _with_silences(pages: AsyncGenerator[LogPage, None]) -> AsyncGenerator[LogPage | None, None]:
    """What comes; None: nothing did for a while."""
    async with aclosing(pages):
        while True:
            coming = asyncio.ensure_future(anext(pages, None))
            try:
                while not (await asyncio.wait({coming}, timeout=HEARTBEAT_SECONDS))[0]:
                    yield None
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.wait({coming})
            page = coming.result()
            if page is None:
                return
            yield page


def encoded(page: LogPage) -> bytes:
    """A page without lines only says how far one has come: an id, which is no event by itself."""
    if not page.lines:
        return f"id: {page.after}\n\n".encode()
    return event(views.log_page(page).model_dump_json(by_alias=True), id=page.after)


def _cut(page: LogPage, target: str) -> LogPage:
    """The page up to the line that ends at `target`, if there is one."""
    for count, placed in enumerate(page.lines, 1):
        if placed.after == target:
            return replace(page, lines=page.lines[:count], after=target)
    return page
