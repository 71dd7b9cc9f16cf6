"""Many who follow one log: one thread reads it, each page is encoded once, whoever is at that place gets it as it is.

Somebody who comes from an earlier place, or was slow, reads pages of their own until they are where the others are.
Places are compared, never understood: a page fits behind the place it began at.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from oarsman.backends.base import Backend, LogPage, LogQuery
from oarsman.console.api.sse import HEARTBEAT_SECONDS, STILL_HERE, Events, event
from oarsman.errors import OarsmanError, RetryableError
from oarsman.service import views
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman.console")
_AT_ONCE = 1000  # lines that somebody who catches up reads at a time
_AHEAD = 32  # pages kept for one who is slow; older ones they read themselves
_MOST_FOLLOWED = 512  # logs read at the same time: each costs a thread
_LAST_WORDS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Piece:
    begins: str | None
    ends: str
    block: bytes


@dataclass(frozen=True, slots=True)
class _Over:
    error: OarsmanError | None


class _Listener:
    """The end of a follower that lies in an event loop. `patient`: the follower waits for it, being for nobody else."""

    def __init__(self, *, patient: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[_Piece] = deque(maxlen=_AHEAD)  # the oldest falls out: its reader notices the gap
        self._room = threading.Semaphore(_AHEAD) if patient else None
        self._awake = asyncio.Event()
        self.over: _Over | None = None

    def tell(self, piece: _Piece | _Over) -> None:
        """From any thread."""
        if isinstance(piece, _Over):
            self.over = piece
        else:
            if self._room is not None:
                self._room.acquire()
            self._pieces.append(piece)
        with suppress(RuntimeError):  # the loop is gone; so is whoever waited
            self._loop.call_soon_threadsafe(self._awake.set)

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
        if not self._pieces:
            return None
        if self._room is not None:
            self._room.release()
        return self._pieces.popleft()

    def forget(self) -> None:
        self._pieces.clear()

    def leave(self) -> None:
        """Nobody may be left waiting for room."""
        if self._room is not None:
            self._room.release(1 << 16)


class _LogFollower:
    """One thread that follows one log with one filter, for as long as anybody listens."""

    def __init__(self, pages: Iterator[LogPage], begins: str | None, gone: Callable[[_LogFollower], None]) -> None:
        self._pages = pages
        self._place = begins
        self._gone = gone
        self.listeners: frozenset[_Listener] = frozenset()
        self.thread = threading.Thread(target=self._read, name="log-follower", daemon=True)

    def _read(self) -> None:
        error: OarsmanError | None = None
        try:
            for page in self._pages:
                piece = _Piece(self._place, page.after, encoded(page))
                self._place = page.after
                for listener in self.listeners:
                    listener.tell(piece)
        except OarsmanError as problem:
            error = problem
        except Exception as problem:
            log.exception("a log could not be followed")
            error = RetryableError(Text("the log could not be followed: {why}", why=problem))
        self._gone(self)  # from now on nobody joins
        for listener in self.listeners:
            listener.tell(_Over(error))

    def close(self) -> None:
        if (close := getattr(self._pages, "close", None)) is not None:
            close()  # backends hand out iterators that any thread may close
        self.thread.join(_LAST_WORDS_SECONDS)


class Followers:
    """Of one backend."""

    def __init__(self, jobs: Backend) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, LogQuery], _LogFollower] = {}
        self._all: set[_LogFollower] = set()

    def __len__(self) -> int:
        return len(self._all)

    async def follow(self, key: str, query: LogQuery, after: str | None) -> Events:
        """From that place on (None: the beginning) until the attempt is over."""
        listener = _Listener(patient=after is None)
        # Somebody may go while they are still coming in: what was joined is left in any case.
        joining = asyncio.ensure_future(run_in_threadpool(self._join, key, query, after, listener))
        try:
            await asyncio.shield(joining)
            pieces = _from_the_beginning(listener) if after is None else self._behind(key, query, after, listener)
            async with aclosing(pieces) as found:
                async for block in found:
                    yield block
        finally:
            listener.leave()
            await asyncio.shield(self._left(joining, listener))

    async def _left(self, joining: asyncio.Future[_LogFollower], listener: _Listener) -> None:
        with suppress(OarsmanError):  # told already to whoever came
            await run_in_threadpool(self._leave, await joining, listener)

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
            if fits and over is not None:
                if over.error is not None:
                    raise over.error
                return
            if fits and not await listener.wait():
                yield STILL_HERE

    async def _catch_up(self, key: str, query: LogQuery, place: str, target: str) -> AsyncGenerator[_Piece, None]:
        """Pages of one's own, down to `target` if one meets it, and to the end otherwise."""
        while place != target:
            page = await run_in_threadpool(self._jobs.log_page, key, query, after=place, limit=_AT_ONCE)
            if page.after == place:
                return
            page = _cut(page, target)
            yield _Piece(place, page.after, encoded(page))
            place = page.after

    # -- coming and going ----------------------------------------------------------------------------
    def _join(self, key: str, query: LogQuery, after: str | None, listener: _Listener) -> _LogFollower:
        with self._lock:
            found = self._shared.get((key, query)) if after is not None else None
            if found is None:
                found = self._begin(key, query, after)
                found.listeners = frozenset({listener})
                found.thread.start()
            else:
                found.listeners |= {listener}
            return found

    def _begin(self, key: str, query: LogQuery, after: str | None) -> _LogFollower:
        if len(self._all) >= _MOST_FOLLOWED:
            raise RetryableError(
                Text("too many logs are being followed at the same time"), hint=Text("try again later")
            )
        follower = _LogFollower(self._jobs.log_follow(key, query, after=after), after, self._forget)
        self._all.add(follower)
        if after is not None:
            self._shared[key, query] = follower
        return follower

    def _leave(self, follower: _LogFollower, listener: _Listener) -> None:
        with self._lock:
            follower.listeners -= {listener}
            lonely = not follower.listeners
            if lonely:
                self._drop(follower)
        if lonely:
            follower.close()

    def _forget(self, follower: _LogFollower) -> None:
        with self._lock:
            self._drop(follower)

    def _drop(self, follower: _LogFollower) -> None:
        self._all.discard(follower)
        for name in [name for name, known in self._shared.items() if known is follower]:
            del self._shared[name]

    def close(self) -> None:
        with self._lock:
            followers = list(self._all)
        for follower in followers:
            for listener in follower.listeners:
                listener.leave()
            follower.close()


async def _from_the_beginning(listener: _Listener) -> Events:
    """All that a follower of one's own brings."""
    while True:
        over = listener.over
        while (found := listener.take()) is not None:
            yield found.block
        if over is not None:
            if over.error is not None:
                raise over.error
            return
        if not await listener.wait():
            yield STILL_HERE


def encoded(page: LogPage) -> bytes:
    """A page as an event. One without lines only says how far one has come: an id, which is no event by itself."""
    if not page.lines:
        return f"id: {page.after}\n\n".encode()
    return event(views.log_page(page).model_dump_json(by_alias=True), id=page.after)


def _cut(page: LogPage, target: str) -> LogPage:
    """The page up to the line that ends at `target`, if there is one."""
    for count, placed in enumerate(page.lines, 1):
        if placed.after == target:
            return replace(page, lines=page.lines[:count], after=target)
    return page
