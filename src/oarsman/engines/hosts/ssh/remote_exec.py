"""Commands that a launcher on one machine wants run on other hosts of its job, as it would with ssh."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from oarsman.engines.hosts.core import framing
from oarsman.engines.hosts.ssh import scripts

_PIECE = 4096  # bytes; packed they are five times as many at most, which a pipe takes at once


@dataclass(slots=True)
class Errand:
    asker: str
    host: socket.socket
    outputs: dict[int, str]  # read end of a pipe -> what the asker is told its bytes are
    exit: int | None = None


class Errands:
    """`answer` tells an asker something: who, what kind of word, the word."""

    def __init__(
        self, aliases: Mapping[str, str], run_folder: str, selector: selectors.BaseSelector,
        answer: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        self._aliases = aliases
        self._run_folder = run_folder
        self._selector = selector
        self._answer = answer
        self._under_way: dict[str, Errand] = {}

    def start(self, asker: str, host: str, command: str) -> None:
        self.drop(asker)  # one that was killed, and whose number another has now
        host = host.rpartition("@")[2]
        member = self._aliases.get(host) or self._aliases.get(host.partition(".")[0])
        try:
            if member is None:
                raise OSError(f"{host} is not a host of this job")
            channel = framing.connect(f"{self._run_folder}/h/{member}")
        except OSError as error:
            self._answer(asker, "err", scripts.packed(f"ssh: {host}: {error.strerror or error}\n"))
            self._answer(asker, "ended", "255")
            return
        quiet = os.open(os.devnull, os.O_RDONLY)
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        framing.send(channel, {"argv": ["/bin/sh", "-c", command]}, [quiet, out_end, err_end])
        for fd in (quiet, out_end, err_end):
            os.close(fd)
        errand = self._under_way[asker] = Errand(asker, channel, {out: "out", err: "err"})
        self._watch(channel, lambda _: self._hear(errand))
        self.go_on(asker)

    def go_on(self, asker: str) -> None:
        """It has taken what it was told, and is told more."""
        if (errand := self._under_way.get(asker)) is not None:
            relay = partial(self._relay, errand)
            for fd in errand.outputs:
                if fd not in self._selector.get_map():  # anybody on the machine's side can say so twice
                    self._watch(fd, relay)

    def drop(self, asker: str) -> None:
        """Like a closed connection: its command ends."""
        errand = self._under_way.pop(asker, None)
        if errand is not None:
            for fd in errand.outputs:
                self._forget(fd)
                os.close(fd)
            self._forget(errand.host)
            errand.host.close()

    def drop_all(self) -> None:
        for asker in list(self._under_way):
            self.drop(asker)

    def _relay(self, errand: Errand, fd: int) -> None:
        """One piece at a time: an asker that does not take it must not hold up what others are told."""
        chunk = os.read(fd, _PIECE)
        if chunk:
            for output in errand.outputs:
                self._forget(output)
            self._answer(errand.asker, errand.outputs[fd], scripts.packed(chunk.decode("utf-8", "surrogateescape")))
            return
        self._forget(fd)
        os.close(fd)
        del errand.outputs[fd]
        self._end_if_done(errand)

    def _hear(self, errand: Errand) -> None:
        message, _ = framing.receive(errand.host)
        if message is not None and "exit" not in message:
            return
        errand.exit = message["exit"] if message is not None else 255
        self._forget(errand.host)
        errand.host.close()
        self._end_if_done(errand)

    def _end_if_done(self, errand: Errand) -> None:
        """Not before all it said was handed on."""
        if errand.exit is not None and not errand.outputs:
            self._answer(errand.asker, "ended", str(errand.exit))
            del self._under_way[errand.asker]

    def _watch(self, thing: Any, callback: Callable[[Any], None]) -> None:
        self._selector.register(thing, selectors.EVENT_READ, callback)

    def _forget(self, thing: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(thing)
