"""Changes among the jobs of this machine, as they happen; and the supervisor, which is started if need be and poked.

What is written to the store is heard whether a supervisor runs or not. A connection to the supervisor is held only to
learn of its end: if jobs are unfinished then, another one is started. It does not keep an idle supervisor alive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from oarsman.backends.base import Batch, JobRecord
from oarsman.errors import ManifestError, OarsmanError, StoreError, SupervisorError
from oarsman.store.change_watch import ChangeWatch, readable
from oarsman.store.jobs import JobStore, StoreChanges, StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman")
_GRACE = 5.0  # whoever brought new work starts the supervisor; only if that one died do we
_TRY_AGAIN = 30.0
_TROUBLE_PAUSE = 1.0
_START_WITHIN = 60.0


class SupervisorLink:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def connect(self) -> socket.socket:
        """A connection to the supervisor, which is started if there is none."""
        deadline = time.monotonic() + _START_WITHIN
        while (sock := self.reach()) is None:
            self._paths.check_machine()
            if time.monotonic() > deadline:
                raise self._trouble(Text("the supervisor does not answer"))
            await asyncio.to_thread(self._start)
        return sock

    def reach(self) -> socket.socket | None:
        """A connection to the supervisor that is running, if one is."""
        if not self._paths.check_run():
            return None
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(os.fspath(self._paths.socket))
        except OSError:
            sock.close()
            return None
        return sock

    async def attend(self) -> None:
        """If no supervisor looks after jobs that still have something to do, start one and let it look at them."""
        if "_OARSMAN_COMPLETE" in os.environ:  # a tab key starts nothing
            return
        running = self.reach()
        if running is not None:
            running.close()
            return
        await self._told(settle=True)

    async def ensure(self) -> None:
        """Returns when a supervisor is running. It looks at the store by itself now and then, so what is stored from
        now on is looked after, whatever becomes of us."""
        (await self.connect()).close()

    async def check_that_it_confines(self) -> None:
        """One of an earlier version would run the jobs of others as if they were of its owner."""
        if not (await asyncio.to_thread(self._asked)).get("confines"):
            hint = Text("`oarsman supervisor stop` ends it, and the next one takes its jobs up")
            raise SupervisorError(Text("the supervisor is of an earlier version"), hint=hint)

    async def poke(self, uid: str) -> None:
        """Returns when a supervisor has taken note."""
        while not await self._told(poke=uid):
            pass  # it was on its way out and hung up; the next one is reached, or started

    async def _told(self, **message: Any) -> bool:
        """False: it hung up before it answered."""
        loop = asyncio.get_running_loop()
        with await self.connect() as sock:
            sock.setblocking(False)
            try:
                await loop.sock_sendall(sock, json.dumps(message).encode() + b"\n")
                return bool(await loop.sock_recv(sock, 64))
            except ConnectionError:
                return False

    def pid(self) -> int | None:
        """The process number of the supervisor, if one is running."""
        return self._asked().get("pid")

    def _asked(self) -> dict[str, int]:
        """What the supervisor says of itself; empty: none is running."""
        sock = self.reach()
        if sock is None:
            return {}
        with sock:
            sock.sendall(b'{"pid": true}\n')
            answer = sock.recv(256)
        return dict(json.loads(answer)) if answer else {}

    def stop(self) -> bool:
        """Ask the supervisor to go and wait until it is gone. Jobs go on. False if there was none."""
        sock = self.reach()
        if sock is None:
            return False
        with sock:
            sock.sendall(b'{"stop": true}\n')
            while sock.recv(4096):
                pass
        return True

    def _start(self) -> None:
        """Start one and wait for its word. If another start was quicker, ours leaves at once; that is fine."""
        read, write = os.pipe()
        with open(self._paths.supervisor_log, "ab") as log, os.fdopen(read, "rb") as ready:
            try:
                subprocess.run(
                    [sys.executable, "-m", "oarsman.control.supervisor", str(write)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[write],
                    check=True,
                    cwd="/",
                    start_new_session=True,  # what ends us (Ctrl-C, a closed terminal) is not meant for it
                    env={**os.environ, "OARSMAN_STATE": str(self._paths.state)},
                )
            except (OSError, subprocess.CalledProcessError) as error:
                raise SupervisorError(Text("the supervisor could not be started: {why}", why=error)) from error
            finally:
                os.close(write)
            answer = ready.read()
        if answer == b"":
            raise self._trouble(Text("the supervisor ended while starting"))
        if answer == b"busy":
            time.sleep(0.05)  # somebody else's is about to listen

    def _trouble(self, message: str) -> SupervisorError:
        return SupervisorError(message, hint=Text("its log is {path}", path=self._paths.supervisor_log))


class Listener:
    """One of those who wait."""

    def __init__(self, watch: int | None) -> None:
        self.watch = watch  # of the folder that it waits for as well
        self._rung = asyncio.Event()
        self._trouble: Exception | None = None

    def ring(self, trouble: Exception | None = None) -> None:
        self._trouble = trouble
        self._rung.set()

    async def wait(self) -> None:
        """Return when something may have changed since the last time."""
        await self._rung.wait()
        self._rung.clear()
        if self._trouble is not None:
            raise self._trouble


class LocalChanges:
    """For all who wait in one event loop: they share a change watch and a connection to the supervisor, which are there
    while anybody listens. `unfinished` says whether anything is left that needs a supervisor."""

    def __init__(self, paths: Paths, unfinished: Callable[[], bool]) -> None:
        self.loop = asyncio.get_running_loop()
        self._link = SupervisorLink(paths)
        self._unfinished = unfinished
        self._change_watch = ChangeWatch(paths.database)
        self._supervisor: socket.socket | None = None
        self._start_at: float | None = time.monotonic()  # None: there was no need for one when we last looked
        self._listeners: set[Listener] = set()
        self._task = self.loop.create_task(self._tell())

    @property
    def open(self) -> bool:
        return not self._task.done() and not self._task.cancelling()

    @asynccontextmanager
    async def listening(self, folder: Path | None = None) -> AsyncIterator[Listener]:
        """To the store, and to what happens in the folder."""
        listener = Listener(self._change_watch.add(folder) if folder is not None else None)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
            if listener.watch is not None:
                self._change_watch.remove(listener.watch)
            if not self._listeners:
                self._task.cancel()
                await asyncio.wait([self._task])

    async def _tell(self) -> None:
        try:
            while True:
                try:
                    store, folders = await self._heard()
                    for listener in self._listeners:
                        if store or listener.watch in folders:
                            listener.ring()
                except Exception as error:  # whoever waits is told, and decides
                    for listener in self._listeners:
                        listener.ring(error)
                    await asyncio.sleep(_TROUBLE_PAUSE)
        finally:
            self._change_watch.close()
            if self._supervisor is not None:
                self._supervisor.close()

    async def _heard(self) -> tuple[bool, set[int]]:
        """Whether the store may have changed, and the folders in which something happened."""
        await self._see_to_a_supervisor()
        change_watch, supervisor = self._change_watch.fileno(), self._supervisor
        watched = [change_watch] if change_watch is not None else []
        watched += [supervisor.fileno()] if supervisor is not None else []
        waits = [self._change_watch.patience()]
        if self._start_at is not None and supervisor is None:
            waits.append(self._start_at - time.monotonic())
        found = await readable(*watched, within=min((wait for wait in waits if wait is not None), default=None))
        if supervisor is not None and supervisor.fileno() in found:
            self._it_left(supervisor)
            return True, set()
        if not found:
            self._change_watch.silent()
            return True, set()
        return self._change_watch.heard()

    async def _see_to_a_supervisor(self) -> None:
        if self._supervisor is not None:
            return
        if not await asyncio.to_thread(self._unfinished):
            self._start_at = None
            return
        now = time.monotonic()
        if self._start_at is None:
            self._start_at = now + _GRACE
        self._supervisor = self._link.reach()
        if self._supervisor is None and now >= self._start_at:
            self._start_at = now + _TRY_AGAIN
            try:
                self._supervisor = await self._link.connect()
            except (OarsmanError, OSError) as error:
                log.warning("%s; tried again in %d s", error, _TRY_AGAIN)

    def _it_left(self, supervisor: socket.socket) -> None:
        with suppress(OSError):
            if supervisor.recv(4096):
                return  # it has nothing to say to us, but it lives
        supervisor.close()
        self._supervisor = None
        now = time.monotonic()
        # One that we started ourselves just now and that is gone already would not fare better at once.
        begun = self._start_at is not None and self._start_at - _TRY_AGAIN > now - _GRACE
        self._start_at = now + _GRACE if begun else now


Listening = Callable[..., AbstractAsyncContextManager[Listener]]


class SharedChanges:
    """One LocalChanges for all who listen in the same event loop, also to copies of a backend."""

    def __init__(self, paths: Paths, unfinished: Callable[[], bool]) -> None:
        self._paths, self._unfinished = paths, unfinished
        self._changes: LocalChanges | None = None

    def __call__(self, folder: Path | None = None) -> AbstractAsyncContextManager[Listener]:
        changes = self._changes
        if changes is None or not changes.open or changes.loop is not asyncio.get_running_loop():
            changes = self._changes = LocalChanges(self._paths, self._unfinished)
        return changes.listening(folder)


Read = Callable[[StoredJob], JobRecord]


async def changes(
    listening: Listening, store: JobStore, read: Read, namespace: str | None, engine: str | None = None
) -> AsyncGenerator[Batch, None]:
    """It listens before the first look, so nothing falls between a look and the wait after it."""
    revision: int | None = None
    async with listening() as news:
        while True:
            try:
                found = await asyncio.to_thread(store.changes, revision, namespace)
                if found.revision == revision:
                    await news.wait()
                    continue
            except StoreError as error:
                if revision is None:
                    raise
                log.warning("the store cannot be read: %s; tried again", error)
                await asyncio.sleep(_TROUBLE_PAUSE)
                continue
            revision = found.revision
            batch = await asyncio.to_thread(_batch, found, read, engine)
            if batch.whole or batch.records or batch.gone:
                yield batch


def _batch(found: StoreChanges, read: Read, engine: str | None) -> Batch:
    if found.whole:
        return Batch(records=legible(found.jobs, read, engine), whole=True)
    records, gone = [], list(found.gone)
    for stored in found.jobs:
        if engine not in (None, stored.engine):
            continue
        try:
            records.append(read(stored))
        except ManifestError:  # one that can no longer be read is no more
            gone.append(stored.key)
    return Batch(records=tuple(records), gone=tuple(gone))


def legible(found: Iterable[StoredJob], read: Read, engine: str | None) -> Iterator[JobRecord]:
    """Those of the engine. One that an older Oarsman took and this one cannot read must not hide the others."""
    for stored in found:
        if engine in (None, stored.engine):
            with suppress(ManifestError):
                yield read(stored)
