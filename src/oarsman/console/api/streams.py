"""Answers as they come, over one request that lasts: server-sent events of jobs and their logs.

A stream ends with its source, when the client goes, when what the client showed is no longer good, and when the server
stops. In each case whatever the source had open is closed before the request counts as over.

Many follow one log: one task reads it, each page is encoded once, whoever is at that place gets it as it is. Somebody
who comes from an earlier place, or was slow, reads pages of their own until they are where the others are. Places are
compared, never understood: a page fits behind the place it began at.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from oarsman.backends.base import Backend, LogPage, LogQuery
from oarsman.console.api import problems
from oarsman.errors import NotFoundError, OarsmanError, RetryableError
from oarsman.portal import running, with_silences
from oarsman.service import JobService, views
from oarsman.service.job_index import JobIndex
from oarsman.service.listing import ToldJobs
from oarsman.service.models import JobQuery
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman.console")
HEARTBEAT_SECONDS = 15.0
ASKED_EVERY_SECONDS = 1.0  # whether what the client showed is still good; in a silence, with its heartbeat
MEDIA_TYPE = "text/event-stream"
STILL_HERE: Final = b": still here\n\n"
END: Final = b"event: end\ndata: {}\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # the second is for nginx in front of us
_EVENTS_AT_ONCE = 200  # in one block: a reset of ten thousand jobs must not hold up everybody else
_LINES_AT_ONCE = 1000  # that somebody who catches up reads at a time
_AHEAD = 32  # pages kept for one who is slow; older ones they read themselves
_MOST_FOLLOWED = 512  # logs read at the same time: each has files open
_MOST_OF_ONE = 64  # for one person, or one address
_ANSWERED_AT_ONCE, _MOST_ASKED = 4, 256  # for one person

Events = AsyncGenerator[bytes, None]  # blocks of whole events


def event(data: str, *, id: str | None = None, kind: str | None = None) -> bytes:
    """One event. JSON has no bare line breaks, so one data line is enough."""
    head = (f"event: {kind}\n" if kind else "") + (f"id: {id}\n" if id else "")
    return f"{head}data: {data}\n\n".encode()


class Streams:
    """All that are open, so that a server that stops can end them."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()
        self._logs: Counter[str] = Counter()  # that are followed, by who does
        self.stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def refuse_too_many(self, who: Collection[str]) -> None:
        if any(self._logs[each] >= _MOST_OF_ONE for each in who):
            raise RetryableError(
                Text("you follow {count} logs already, as many as one may at the same time", count=_MOST_OF_ONE),
                hint=Text("end some of them, or try again later"),
            )

    async def of_log(self, events: Events, who: Collection[str]) -> Events:
        """`who`: those of whose share it is, whatever backend it comes from."""
        self.refuse_too_many(who)
        self._logs.update(who)
        try:
            async with aclosing(events):
                async for block in events:
                    yield block
        finally:
            self._logs -= Counter(who)  # who follows none is forgotten

    async def ended(self, work: asyncio.Task[None]) -> None:
        self._open.add(work)
        work.add_done_callback(self._open.discard)
        if self.stopping:
            work.cancel()
        await asyncio.wait({work})

    def stop(self) -> None:
        self.stopping = True
        for work in self._open:
            work.cancel()


class Turns:
    """What people ask is answered a few at a time of each, so that nobody waits for all that somebody else asked."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._gates: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(self, who: str) -> AsyncIterator[None]:
        if self._asked[who] >= _MOST_ASKED:
            raise RetryableError(Text("you ask for too much at the same time"), hint=Text("try again later"))
        self._asked[who] += 1
        try:
            async with self._gates.setdefault(who, asyncio.Semaphore(_ANSWERED_AT_ONCE)):
                yield
        finally:
            self._asked -= Counter([who])  # who asks nothing is forgotten
            if who not in self._asked:
                del self._gates[who]


class EventStream(Response):
    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, events: Events, still_holds: Callable[[], bool] = lambda: True) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._events = events
        self._still_holds = still_holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with running(_gone(receive), self._send_all(send)) as (leaving, work):
            leaving.add_done_callback(lambda _: work.cancel())
            await self._streams.ended(work)
            if not leaving.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        try:
            async with aclosing(self._events) as events:
                checked = asyncio.get_running_loop().time()
                async for block in events:
                    now = asyncio.get_running_loop().time()
                    if block is STILL_HERE or now - checked >= ASKED_EVERY_SECONDS:  # also where there is no silence
                        if not await asyncio.to_thread(self._still_holds):
                            return
                        checked = now
                    await send({"type": "http.response.body", "body": block, "more_body": True})
            last = END
        except OarsmanError as error:
            last = event(problems.details(error).model_dump_json(by_alias=True, exclude_none=True), kind="problem")
        except OSError:  # the client went while we were sending
            return
        except Exception:
            log.exception("a stream failed")
            return
        await send({"type": "http.response.body", "body": last, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def described(what: str) -> Mapping[int | str, dict[str, object]]:
    """For OpenAPI: what the data of each event is."""
    text = f"Each event's data is a {what} in JSON. `event: end` comes last; `event: problem` has a ProblemDetails."
    return {200: {"description": text, "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}


async def job_changes(service: JobService, job_index: JobIndex, query: JobQuery) -> Events:
    told = ToldJobs(job_index, service.wanted(query))
    async with aclosing(job_index.changes(HEARTBEAT_SECONDS)) as changes:
        async for news in changes:
            if news is None:
                yield STILL_HERE
                continue
            events = (event(one.model_dump_json(by_alias=True, exclude_none=True)) for one in told.changes(news))
            while block := b"".join(islice(events, _EVENTS_AT_ONCE)):
                yield block


async def one_job(service: JobService, job_index: JobIndex, key: str) -> Events:
    """The job now, and whenever its row changes; ends when it is gone."""
    last: str | None = None
    uid = ""
    async with aclosing(job_index.changes(HEARTBEAT_SECONDS)) as changes:
        async for news in changes:
            if news is None:
                yield STILL_HERE
                continue
            if key not in news.keys and not news.reset:
                continue
            try:
                job = await service.job(key)
            except NotFoundError:
                return
            if uid and job.summary.uid != uid:  # another one of the same name
                return
            uid = job.summary.uid
            text = job.model_dump_json(by_alias=True)
            if text != last:
                last = text
                yield event(text)


class _Piece(NamedTuple):
    begins: str
    ends: str
    block: bytes


class _Listener:
    """What a follower has brought to one who listens."""

    def __init__(self) -> None:
        self.pieces: deque[_Piece] = deque(maxlen=_AHEAD)  # the oldest falls out: its reader notices the gap
        self._awake = asyncio.Event()
        self.over = False
        self.error: OarsmanError | None = None  # why it is over

    def tell(self, piece: _Piece) -> None:
        self.pieces.append(piece)
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


class _LogFollower:
    """One task that follows one log with one filter, for as long as anybody listens."""

    def __init__(self, pages: AsyncGenerator[LogPage, None], begins: str) -> None:
        self.listeners: set[_Listener] = set()
        self.task = asyncio.create_task(self._read(pages, begins), name="log follower")

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
        for listener in self.listeners:
            listener.end(error)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


class Followers:
    """Of one backend."""

    def __init__(self, jobs: Backend) -> None:
        self._jobs = jobs
        self._shared: dict[tuple[str, LogQuery], _LogFollower] = {}
        self._alone = 0  # those who read from the beginning, by themselves

    def __len__(self) -> int:
        return len(self._shared) + self._alone

    def follow(self, key: str, query: LogQuery, after: str | None) -> Events:
        """From that place on (None: the beginning) until the attempt is over."""
        return self._from_the_beginning(key, query) if after is None else self._with_others(key, query, after)

    async def _from_the_beginning(self, key: str, query: LogQuery) -> Events:
        self._refuse_too_many()
        self._alone += 1
        try:
            async with aclosing(with_silences(self._jobs.log_follow(key, query), HEARTBEAT_SECONDS)) as pages:
                async for page in pages:
                    yield STILL_HERE if page is None else encoded(page)
        finally:
            self._alone -= 1

    async def _with_others(self, key: str, query: LogQuery, after: str) -> Events:
        follower = self._shared.get((key, query))
        if follower is None or follower.task.done():  # nobody joins one that has told its listeners of the end
            self._refuse_too_many()
            pages = self._jobs.log_follow(key, query, after=after)
            follower = self._shared[key, query] = _LogFollower(pages, after)
        listener = _Listener()
        follower.listeners.add(listener)
        try:
            async with aclosing(self._behind(key, query, after, listener)) as blocks:
                async for block in blocks:
                    yield block
        finally:
            follower.listeners.discard(listener)
            if not follower.listeners:
                if self._shared.get((key, query)) is follower:
                    del self._shared[key, query]
                await follower.close()

    async def _behind(self, key: str, query: LogQuery, place: str, listener: _Listener) -> Events:
        """Read until nothing is left; then take what the follower brings, as long as it fits."""
        fits, target = False, ""
        while True:
            while not fits and place != target:  # pages of one's own, down to it if one meets it, else to the end
                page = await self._jobs.log_page(key, query, after=place, limit=_LINES_AT_ONCE)
                if page.after == place:
                    break
                page = _cut(page, target)
                place = page.after
                yield encoded(page)
            over = listener.over  # before looking at what it brought: nothing comes after it
            fits = True
            while listener.pieces:
                found = listener.pieces.popleft()
                if found.begins != place:
                    fits, target = False, found.ends
                    listener.pieces.clear()
                    break
                place = found.ends
                yield found.block
            if fits and over:
                if listener.error is not None:
                    raise listener.error
                return
            if fits and not await listener.wait():
                yield STILL_HERE

    def _refuse_too_many(self) -> None:
        if len(self) >= _MOST_FOLLOWED:
            raise RetryableError(
                Text("too many logs are being followed at the same time"), hint=Text("try again later")
            )

    async def close(self) -> None:
        for follower in list(self._shared.values()):
            await follower.close()


def encoded(page: LogPage) -> bytes:
    """A page without any line only says how far one has come: an id, which is no event by itself."""
    if not page.lines and page.live is None:
        return f"id: {page.after}\n\n".encode()
    return event(views.log_page(page).model_dump_json(by_alias=True), id=page.after)


def _cut(page: LogPage, target: str) -> LogPage:
    """The page up to the line that ends at `target`, if there is one."""
    for count, placed in enumerate(page.lines, 1):
        if placed.after == target:
            return replace(page, lines=page.lines[:count], after=target)
    return page
