"""Talking to the supervisor from a face: start it if needed, poke it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from oarsman.errors import SupervisorError
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_START_WITHIN = 60.0


class SupervisorLink:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def connect(self) -> socket.socket:
        """A connection to the supervisor, which is started if there is none."""
        deadline = time.monotonic() + _START_WITHIN
        while (sock := self.reach()) is None:
            if time.monotonic() > deadline:
                raise SupervisorError(
                    Text("the supervisor does not answer"),
                    hint=Text("its log is {path}", path=self._paths.supervisor_log),
                )
            await asyncio.to_thread(self._start)
        return sock

    def reach(self) -> socket.socket | None:
        """A connection to the supervisor that is running, if one is."""
        self._paths.check_run()
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
        sock = self.reach()
        if sock is None:
            return None
        with sock:
            sock.sendall(b'{"pid": true}\n')
            answer = sock.recv(256)
        return int(json.loads(answer)["pid"]) if answer else None

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
                    env={**os.environ, "OARSMAN_STATE": str(self._paths.state)},
                )
            except (OSError, subprocess.CalledProcessError) as error:
                raise SupervisorError(Text("the supervisor could not be started: {why}", why=error)) from error
            finally:
                os.close(write)
            answer = ready.read()
        if answer == b"":
            raise SupervisorError(
                Text("the supervisor ended while starting"),
                hint=Text("its log is {path}", path=self._paths.supervisor_log),
            )
        if answer == b"busy":
            time.sleep(0.05)  # somebody else's is about to listen
