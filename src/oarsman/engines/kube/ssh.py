"""How the launcher logs in to a worker: whose sshd answers there, on which port, with which host key."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from oarsman.engines.kube.objects import secret
from oarsman.job.job import Job, Role

PORT: Final = 2222  # one that any user may open
_HOST_PORTS: Final = range(20000, 30000)  # below what the kernel and Kubernetes hand out
_LEARNT: Final = "/run/oarsman/ssh/known_hosts"  # keys we did not give out are not checked
_WITH_VALUE: Final = frozenset("bcCEghkopu")  # options of sshd that take a value; -f is looked at apart


@dataclass(frozen=True, slots=True, kw_only=True)
class SshServer:
    """The sshd of the workers. `ours`: started by our script, with a configuration of ours."""

    ours: bool
    pinned: bool  # it shows the host key we gave it
    options: tuple[str, ...] = ()
    port: int | None = None  # None: ours to choose, or the image's secret


def server_of(worker: Role) -> SshServer:
    """Read from the worker's command what its sshd will do."""
    argv = worker.container.argv
    if not argv:
        return SshServer(ours=True, pinned=True)
    if not worker.container.command or argv[0].rsplit("/", 1)[-1] != "sshd":
        return SshServer(ours=False, pinned=False)
    own_file, port, takes_value = False, None, ""
    for word in argv[1:]:
        if takes_value:
            port = int(word) if takes_value == "p" and word.isdigit() else port
            takes_value = ""
        elif word.startswith("-"):
            own_file = own_file or "f" in word
            takes_value = word[-1] if word[-1] in _WITH_VALUE else ""
    return SshServer(ours=not own_file, pinned=True, options=argv[1:], port=port)


def on_host_network(role: Role) -> bool:
    return bool((role.template.get("spec") or {}).get("hostNetwork"))


def port_of(job: Job, index: int) -> int | None:
    """Where that worker's sshd listens; None where only the image knows. On a host's network each has its own."""
    if job.worker is None:
        return None
    server = server_of(job.worker)
    if server.port is not None or not server.ours:
        return server.port
    if not on_host_network(job.worker):
        return PORT
    return _HOST_PORTS[(zlib.crc32(job.uid.encode()) + index) % len(_HOST_PORTS)]


def known_hosts_files(job: Job) -> list[str]:
    """One file for each Secret that holds host keys."""
    return [secret.KNOWN_HOSTS if shard == 0 else f"{secret.KNOWN_HOSTS}-{shard}" for shard in secret.shards(job)]


def client_config(job: Job) -> str:
    """The launcher's ssh configuration. The first value found counts, so the image's own words come last."""
    server = server_of(job.worker) if job.worker is not None else SshServer(ours=True, pinned=True)
    ports = {}
    if job.worker is not None and on_host_network(job.worker) and server.port is None and server.ours:
        ports = {f"{name} {name}.*": port_of(job, i) for i, name in enumerate(map(job.worker_host, range(job.workers)))}
    elif port := port_of(job, 0):
        ports = {f"{job.name}-worker-*": port}
    blocks = [f"Host {hosts}\n  Port {port}\n" for hosts, port in ports.items()]
    known = [f"/etc/oarsman/ssh/{file}" for file in known_hosts_files(job)] if server.pinned else [_LEARNT]
    common = {
        "IdentityFile": "/run/oarsman/ssh/id",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": " ".join(known),
        "GlobalKnownHostsFile": "/dev/null",
        "CheckHostIP": "no",  # pods that come later have the addresses of those that went
        "StrictHostKeyChecking": "yes" if server.pinned else "no",
        "BatchMode": "yes",
        "ConnectTimeout": "30",  # a busy host may take its time to answer
        "ConnectionAttempts": "10",
        "ServerAliveInterval": "30",
        "ServerAliveCountMax": "4",
        "LogLevel": "ERROR",
    }
    everywhere = "Host *\n" + "".join(f"  {name} {value}\n" for name, value in common.items())
    image = "" if server.ours else "Match all\n  Include /etc/ssh/ssh_config\n"
    return "".join(blocks) + everywhere + image
