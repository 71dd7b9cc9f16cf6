"""The hosts of one job, where they are other machines: for each a process here, which speaks for it."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Iterable, Mapping, Sequence

from oarsman.engines.hosts.core.cgroups import Group
from oarsman.engines.hosts.core.host_network import HostNetwork, RunningHost, report_failure
from oarsman.engines.hosts.core.job_spec import HostSpec, SshHostSpec
from oarsman.engines.hosts.core.orders import PublishFiles
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
            host.tell(PublishFiles())

    def _start(self, name: str, spec: HostSpec, channel: socket.socket, _group: Group, close: Sequence[int]) -> int:
        assert isinstance(spec, SshHostSpec)
        if pid := os.fork():
            return pid
        try:
            for fd in close:
                os.close(fd)
            os.setsid()
            RemoteHost(
                name=name, spec=spec, socket_path=self.socket_path(name), run_folder=self.run_folder, agent=channel
            ).run()
        except BaseException as error:
            report_failure(channel, error)
        os._exit(1)
