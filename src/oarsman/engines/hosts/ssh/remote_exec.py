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
from oarsman.engines.hosts.core.messages import COMMANDS, RESULTS, RunCommand
from oarsman.engines.hosts.ssh import scripts

_PIECE = 4096  # bytes; packed they are five times as many at most, which a pipe takes at once


@dataclass(slots=True)
class RemoteCommand:
    asker: str
    host: socket.socket
    outputs: dict[int, str]  # read end of a pipe -> what the asker is told its bytes are
    exit: int | None = None


class RemoteCommands:
    """`answer` tells an asker something: who, what kind of word, the word."""

    def __init__(
        self,
        aliases: Mapping[str, str],
        run_folder: str,
        selector: selectors.BaseSelector,
        answer: Callable[[str, str, str], None],
    ) -> None:
        self._aliases = aliases
        self._run_folder = run_folder
        self._selector = selector
        self._answer = answer
        self._under_way: dict[str, RemoteCommand] = {}

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
        COMMANDS.send(channel, RunCommand(["/bin/sh", "-c", command]), [quiet, out_end, err_end])
        for fd in (quiet, out_end, err_end):
            os.close(fd)
        remote_command = self._under_way[asker] = RemoteCommand(asker, channel, {out: "out", err: "err"})
        self._watch(channel, lambda _: self._hear(remote_command))
        self.go_on(asker)

    def go_on(self, asker: str) -> None:
        """It has taken what it was told, and is told more."""
        if (remote_command := self._under_way.get(asker)) is not None:
            relay = partial(self._relay, remote_command)
            for fd in remote_command.outputs:
                if fd not in self._selector.get_map():  # anybody on the machine's side can say so twice
                    self._watch(fd, relay)

    def drop(self, asker: str) -> None:
        """Like a closed connection: its command ends."""
        remote_command = self._under_way.pop(asker, None)
        if remote_command is not None:
            for fd in remote_command.outputs:
                self._forget(fd)
                os.close(fd)
            self._forget(remote_command.host)
            remote_command.host.close()

    def drop_all(self) -> None:
        for asker in list(self._under_way):
            self.drop(asker)

    def _relay(self, remote_command: RemoteCommand, fd: int) -> None:
        """One piece at a time: an asker that does not take it must not hold up what others are told."""
        chunk = os.read(fd, _PIECE)
        if chunk:
            for output in remote_command.outputs:
                self._forget(output)
            self._answer(
                remote_command.asker,
                remote_command.outputs[fd],
                scripts.packed(chunk.decode("utf-8", "surrogateescape")),
            )
            return
        self._forget(fd)
        os.close(fd)
        del remote_command.outputs[fd]
        self._end_if_done(remote_command)

    def _hear(self, remote_command: RemoteCommand) -> None:
        result, _ = RESULTS.receive(remote_command.host)
        if isinstance(result, framing.Unknown):
            return
        remote_command.exit = result.exit if result is not None else 255
        self._forget(remote_command.host)
        remote_command.host.close()
        self._end_if_done(remote_command)

    def _end_if_done(self, remote_command: RemoteCommand) -> None:
        """Not before all it said was handed on."""
        if remote_command.exit is not None and not remote_command.outputs:
            self._answer(remote_command.asker, "ended", str(remote_command.exit))
            del self._under_way[remote_command.asker]

    def _watch(self, thing: Any, callback: Callable[[Any], None]) -> None:
        self._selector.register(thing, selectors.EVENT_READ, callback)

    def _forget(self, thing: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(thing)
