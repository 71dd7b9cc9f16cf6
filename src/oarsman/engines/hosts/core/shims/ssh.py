"""The shim for ssh: `ssh [options] HOST [options] COMMAND...` runs COMMAND on a host of this job.

It stays on the caller's side. If the host dies there is no answer, and it ends with 255 as ssh
would; a host that took its own messenger along would look like success to Open MPI 5.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from oarsman.engines.hosts.core.messages import COMMANDS, RESULTS, Exited, RunCommand, connect
from oarsman.engines.hosts.core.shims import shell_of

_TAKES_VALUE = frozenset("BbcDEeFIiJLlmOoPpQRSWw")
LOST = 255


def split(words: Sequence[str]) -> tuple[str, str]:
    """The host and the command, with ssh's options before and after the host left out."""
    rest = _after_options(words)
    if not rest:
        return "", ""
    host = rest[0].rpartition("@")[2]
    return host, " ".join(_after_options(rest[1:]))


def _after_options(words: Sequence[str]) -> Sequence[str]:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        if word == "--":
            return words[position + 1 :]
        position += 2 if len(word) == 2 and word[1] in _TAKES_VALUE else 1
    return words[position:]


def _complain(text: str) -> int:
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\r\n".encode())
    return LOST


def run(words: Sequence[str]) -> int:
    host, command = split(words)
    if not host:
        return _complain("usage: ssh [options] host command")
    folder = os.environ["OARSMAN_RUN"]
    names = (host, host.partition(".")[0])
    path = next((f"{folder}/h/{name}" for name in names if os.path.exists(f"{folder}/h/{name}")), None)
    if path is None:
        return _complain(f"ssh: Could not resolve hostname {host}: Name or service not known")
    try:
        channel = connect(path)
    except OSError as error:
        return _complain(f"ssh: connect to host {host}: {error.strerror}")
    shell = [shell_of(os.environ), *(["-c", command] if command else [])]
    try:
        COMMANDS.send(channel, RunCommand(shell), [0, 1, 2])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(LOST))  # closing the channel ends the command
        while True:
            result, _ = RESULTS.receive(channel)
            if result is None:
                return _complain(f"Connection to {host} closed by remote host.")
            if isinstance(result, Exited):
                return LOST if result.signal else result.exit
    except OSError as error:
        return _complain(f"ssh: {host}: {error.strerror}")


def main() -> None:
    sys.exit(run(sys.argv[1:]))
