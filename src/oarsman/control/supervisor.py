"""The supervisor: one per user, started when a job needs it, gone when nothing is left to do.

It may be killed at any moment. Jobs go on without it, and the next one takes them up.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import sys
from logging.handlers import RotatingFileHandler

from oarsman.control.admission import on_this_machine
from oarsman.control.environments import Attaching
from oarsman.control.host_state import ssh_hosts
from oarsman.control.queue import WorkQueue
from oarsman.control.reconciler import EngineSite, Reconciler
from oarsman.control.store_records import StoreRecords
from oarsman.control.usage import EVERY_SECONDS, Sampler
from oarsman.engines.hosts.core import journal
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.local import capacity
from oarsman.store.jobs import JobStore
from oarsman.store.paths import Paths

log = logging.getLogger("oarsman")
_IDLE_SECONDS = 60.0
_RESYNC_SECONDS = 30.0
_SETTLE_SECONDS = 2.0


class Supervisor:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._store = JobStore(paths.database)
        self._queue = WorkQueue()
        environments = Attaching(paths)
        here = HostsEngine(job_folder=paths.job, run_folder=paths.job_run)
        ssh, on_ssh = ssh_hosts(paths, self._queue.add, environments)
        on_here = on_this_machine(capacity.measure(), self._queue.add, environments)
        self._engines = here, ssh
        self._admission = on_here, on_ssh
        self._reconciler = Reconciler(
            StoreRecords(self._store, self._queue.add),
            EngineSite(here, on_here),
            self._queue,
            others={ssh.name: EngineSite(ssh, on_ssh)},
        )
        self._sampler = Sampler(paths.job, every=float(os.environ.get("OARSMAN_SAMPLE_SECONDS", EVERY_SECONDS)))
        self._stop = asyncio.Event()
        self._idle = float(os.environ.get("OARSMAN_IDLE_SECONDS", _IDLE_SECONDS))

    async def run(self, ready: int | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        for engine in self._engines:
            await engine.start(self._queue.add)
        for stored in self._store.unfinished():
            try:
                await self._reconciler.adopt(stored.uid)
            except Exception:  # one unreadable job must not keep all others from being looked after
                log.exception("%s could not be taken up", stored.key)
            self._queue.add(stored.uid)
        for stored in self._store.waiting_for_ttl():
            self._queue.add(stored.uid)
        for uid in self._paths.jobs() - self._store.uids():  # killed between removing the record and the rest
            if not self._store.keeps(uid) or (self._paths.job(uid) / journal.FILE).exists():
                self._queue.add(uid)
        with contextlib.suppress(FileNotFoundError):
            self._paths.socket.unlink()
        server = await asyncio.start_unix_server(self._serve, self._paths.socket)
        _tell(ready, b"ok")
        log.info("supervisor %d is ready", os.getpid())
        beside = (self._leave_when_idle(), self._look_at_everything_again(), self._sample())
        turning, stopping, *others = map(asyncio.create_task, (self._reconciler.run(), self._stop.wait(), *beside))
        await asyncio.wait({turning, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (turning, stopping, *others):
            task.cancel()
        server.close()
        for engine in self._engines:
            await engine.close()
        with contextlib.suppress(OSError):
            self._paths.socket.unlink()
        if not self._store.anything_unfinished():
            self._paths.lock.write_text("")  # any machine may go on
        self._store.close()
        log.info("supervisor %d ends", os.getpid())
        if turning.done() and not turning.cancelled():
            turning.result()

    async def _look_at_everything_again(self) -> None:
        """Nothing should be missed; should it be all the same, it costs half a minute and no more."""
        while True:
            await asyncio.sleep(_RESYNC_SECONDS)
            try:
                for stored in self._store.unfinished():
                    self._queue.add(stored.uid)
            except Exception:  # a locked store, for one; this is to go on to the end
                log.exception("the jobs could not be looked at again")

    async def _sample(self) -> None:
        """In a thread: the loop goes on turning meanwhile. No trouble with figures is worth a job."""
        while True:
            await asyncio.sleep(self._sampler.every)
            holders = [uid for admission in self._admission for uid in admission.holders]
            if holders:
                try:
                    await asyncio.to_thread(self._sampler.look, holders)
                except Exception:
                    log.exception("usage could not be sampled")

    async def _leave_when_idle(self) -> None:
        """No job, no TTL to wait for: nobody needs us."""
        while True:
            await asyncio.sleep(self._idle)
            try:
                busy = len(self._queue) or self._store.unfinished() or self._store.waiting_for_ttl()
            except Exception:
                log.exception("whether anything is left to do could not be found out")
                continue
            if not busy:
                self._stop.set()
                return

    # -- those who call ------------------------------------------------------------------------------
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for line in reader:
                if self._stop.is_set():
                    return  # without an answer the caller turns to the next one
                message = json.loads(line)
                if "poke" in message:
                    self._queue.add(message["poke"])
                    writer.write(b"{}\n")
                elif "settle" in message:
                    with contextlib.suppress(TimeoutError):  # every job is looked at once, or it is soon enough anyway
                        async with asyncio.timeout(_SETTLE_SECONDS):
                            await self._queue.idle()
                    writer.write(b"{}\n")
                elif "stop" in message:
                    self._stop.set()
                elif "pid" in message:
                    writer.write(json.dumps({"pid": os.getpid(), "confines": True}).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()


def _tell(ready: int | None, word: bytes) -> None:
    """Whoever started us may be gone; the jobs are not."""
    if ready is not None:
        with contextlib.suppress(BrokenPipeError):
            os.write(ready, word)
        os.close(ready)


def main() -> None:
    """Become a daemon and supervise. The pipe given as argument is told `ok`, or `busy` if one is here already."""
    ready = int(sys.argv[1]) if len(sys.argv) > 1 else None
    if os.fork():
        os._exit(0)
    os.setsid()
    paths = Paths.default()
    paths.make()
    lock = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _tell(ready, b"busy")
        sys.exit(0)
    paths.claim()
    paths.make_run()  # not before: the one that was here removes it when it leaves
    os.chdir("/")
    os.umask(0o077)
    handler = RotatingFileHandler(paths.supervisor_log, maxBytes=5 << 20, backupCount=1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[handler])
    try:
        asyncio.run(Supervisor(paths).run(ready))
    except Exception:
        log.exception("the supervisor failed")
        raise
    finally:  # only now have the threads ended that clear away what jobs had in it
        with contextlib.suppress(OSError):  # it stays if a job is still running
            paths.run.rmdir()


if __name__ == "__main__":
    main()
