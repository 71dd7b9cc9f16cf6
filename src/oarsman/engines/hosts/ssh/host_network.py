"""The hosts of one job, where they are other machines: made like those of one machine, but for what they are."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from oarsman.engines.hosts.core import framing
from oarsman.engines.hosts.local.host_network import HostNetwork, RunningHost
from oarsman.engines.hosts.ssh.host import RemoteHost


class SshHostNetwork(HostNetwork):
    elsewhere = True

    def open(self) -> None:
        """Each rank has a connection and its logs, and all are open here: as many as we may have, not as is usual."""
        super().open()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def publish(self, files: Mapping[str, str], hosts: Iterable[RunningHost]) -> None:
        super().publish(files, hosts)
        for host in hosts:
            with contextlib.suppress(OSError):
                framing.send(host.channel, {"do": "publish"})

    def _be_host(self, name: str, spec: Mapping[str, Any], _address: str, channel: socket.socket) -> NoReturn:
        os.setsid()
        RemoteHost(
            name=name, spec=spec, socket_path=self._socket_path(name), run_folder=self.run_folder, agent=channel
        ).run()
