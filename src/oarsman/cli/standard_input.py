"""Standard input of a job in the foreground: ours, given to whoever starts its launcher, once.

A pipe or a file is given as it is, so nobody copies anything. A terminal is not: read from another session it would
take what is typed for the shell while we are in the background. There we read ourselves, as long as it is ours.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import tempfile
import threading
from contextlib import suppress

from oarsman import names
from oarsman.store.paths import short_temp

_LOOK_SECONDS = 0.2
_READ_SIZE = 1 << 16


class StandardInput:
    """Within a `with`, jobs that are handed in find it; `wanted` is False where it is not to be had."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and _is_something()
        self._over = threading.Event()

    def __enter__(self) -> StandardInput:
        if self._wanted:
            self._folder = tempfile.mkdtemp(prefix="oarsman-", dir=short_temp())
            self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._server.bind(f"{self._folder}/i")
            self._server.listen(1)
            os.environ[names.ENV_INPUT] = f"{self._folder}/i"
            threading.Thread(target=self._give, name="stdin", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._wanted:
            os.environ.pop(names.ENV_INPUT, None)
            with suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._withdraw()

    def _withdraw(self) -> None:
        self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _give(self) -> None:
        with suppress(OSError):
            caller, _ = self._server.accept()
            self._withdraw()
            with caller:
                if not os.isatty(0):
                    socket.send_fds(caller, [b"i"], [0])
                    return
                read, write = os.pipe()
                socket.send_fds(caller, [b"i"], [read])
                os.close(read)
            with os.fdopen(write, "wb", buffering=0) as typed:
                self._hand_on(typed.fileno())

    def _hand_on(self, typed: int) -> None:
        """Until the end is typed. In the background a read fails, instead of halting us."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTIN])
        while not self._over.is_set():
            if not select.select([0], [], [], _LOOK_SECONDS)[0]:
                continue
            try:
                data = os.read(0, _READ_SIZE)
            except OSError:
                self._over.wait(_LOOK_SECONDS)
                continue
            if not data:
                return
            while data:
                data = data[os.write(typed, data) :]


def _is_something() -> bool:
    try:
        return not os.path.samestat(os.fstat(0), os.stat(os.devnull))
    except OSError:  # it is closed
        return False
