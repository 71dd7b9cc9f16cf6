"""Talking to the supervisor from a face: start it if needed, poke it, hear what changed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from oarsman.backends.stoppable import readable
from oarsman.errors import SupervisorError
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_START_WITHIN = 60.0


class ChangedKeys:
    """A stream of keys that changed. If the supervisor dies another one is started and the stream goes on."""

    def __init__(self, caller: SupervisorLink) -> None:
        self._caller = caller
        self._socket = self._subscribe()
        self._buffer = b""

    def _subscribe(self) -> socket.socket:
        """Returns when the supervisor has us on its list: what changes from now on is heard of."""
        sock = self._caller.connect()
        sock.sendall(b'{"watch": true}\n')
        sock.recv(1, socket.MSG_PEEK)
        return sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def wait(self, uid: str, deadline: float | None) -> None:
        """Return when `uid` may have changed; TimeoutError when the deadline passes first."""
        while True:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise TimeoutError
            if readable(self._socket.fileno(), timeout=remaining) and self._read(uid):
                return

    def drain(self) -> None:
        """Forget what has arrived; the caller looks at everything anyway."""
        while readable(self._socket.fileno(), timeout=0):
            self._read("")

    def _read(self, uid: str) -> bool:
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self._socket.close()
            self._socket = self._subscribe()
            return True
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return any(json.loads(line).get("uid") in (uid, None) for line in lines)

    def close(self) -> None:
        self._socket.close()


class SupervisorLink:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def connect(self) -> socket.socket:
        """A connection to the supervisor, which is started if there is none."""
        deadline = time.monotonic() + _START_WITHIN
        while True:
            sock = self.reach()
            if sock is not None:
                return sock
            if time.monotonic() > deadline:
                raise SupervisorError(
                    Text("the supervisor does not answer"),
                    hint=Text("its log is {path}", path=self._paths.supervisor_log),
                )
            self._start()

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

    def attend(self) -> None:
        """If no supervisor looks after jobs that still have something to do, start one and let it look at them."""
        if "_OARSMAN_COMPLETE" in os.environ:  # a tab key starts nothing
            return
        running = self.reach()
        if running is not None:
            running.close()
            return
        with self.connect() as sock:
            sock.sendall(b'{"settle": true}\n')
            sock.recv(64)

    def poke(self, uid: str) -> None:
        """Returns when a supervisor has taken note."""
        while not self._poked(uid):
            pass  # it was on its way out and hung up; the next one is reached, or started

    def _poked(self, uid: str) -> bool:
        with self.connect() as sock, contextlib.suppress(ConnectionError):
            sock.sendall(json.dumps({"poke": uid}).encode() + b"\n")
            return bool(sock.recv(64))
        return False

    @contextlib.contextmanager
    def watching(self) -> Iterator[ChangedKeys]:
        changes = ChangedKeys(self)
        try:
            yield changes
        finally:
            changes.close()

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
