"""The hosts of one job, where they are other machines: made like those of one machine, but for what they are."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from oarsman.engines.bare import wire
from oarsman.engines.bare.over_ssh.host import RemoteHost
from oarsman.engines.bare.rack import Rack, RunningHost


class SshRack(Rack):
    elsewhere = True

    def publish(self, files: Mapping[str, str], hosts: Iterable[RunningHost]) -> None:
        super().publish(files, hosts)
        for host in hosts:
            with contextlib.suppress(OSError):
                wire.send(host.channel, {"do": "publish"})

    def _be_host(self, name: str, spec: Mapping[str, Any], _address: str, channel: socket.socket) -> NoReturn:
        os.setsid()
        RemoteHost(
            name=name, spec=spec, socket_path=self._socket_path(name), run_folder=self.run_folder, keeper=channel
        ).run()
