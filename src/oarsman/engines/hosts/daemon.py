"""How a job agent comes to life: away from whoever started it, with a word when it is ready."""

from __future__ import annotations

import os
import sys

from oarsman import trees
from oarsman.engines.hosts.core import agent_lock, limits
from oarsman.engines.hosts.core.host import HostNetwork
from oarsman.engines.hosts.core.job_agent import JobAgent
from oarsman.engines.hosts.core.job_spec import read_spec
from oarsman.engines.hosts.core.journal import Journal
from oarsman.engines.hosts.local.host import LocalHostNetwork
from oarsman.text.sentence import Text


def main() -> None:
    """Become a daemon, tell the parent that all is well, keep the job until it ends."""
    folder = sys.argv[1]
    ready_read, ready_write = os.pipe()
    if os.fork():
        os.close(ready_write)
        with os.fdopen(ready_read, "rb") as ready:
            trouble = ready.read().decode()
        if trouble != "ok":
            sys.stderr.write(trouble or Text("the job agent died while starting"))
        sys.exit(0 if trouble == "ok" else 1)
    os.close(ready_read)
    os.setsid()
    os.umask(0o077)
    os.chdir("/")
    if agent_lock.hold(folder) is None:
        os.write(ready_write, agent_lock.TAKEN.encode())
        os._exit(1)
    log = os.open(f"{folder}/agent.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    limits.open_more_files()  # a rank takes one
    try:
        spec = read_spec(folder)
        os.makedirs(spec.run_folder, mode=0o700, exist_ok=True)
        if spec.elsewhere:
            from oarsman.engines.hosts.ssh.host import SshHostNetwork

            network: HostNetwork = SshHostNetwork(spec, folder)
        else:
            network = LocalHostNetwork(spec)
        network.open()
        agent = JobAgent(folder, spec, network, Journal(folder))
    except BaseException as error:
        os.write(ready_write, f"{type(error).__name__}: {error}".encode())
        raise
    try:
        agent.run(ready_write)
    finally:
        trees.remove(spec.run_folder)
