"""How far this machine lets us separate hosts from one another, found by trying.

The trial runs in a child process, so that nothing of it stays.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from oarsman.text.sentence import Text


class Separation(NamedTuple):
    user: bool = False  # a user namespace is needed (not root) and can be had
    names: bool = False  # own host name: the one thing Open MPI cannot do without
    processes: bool = False  # own process numbers: nothing outlives its host
    mounts: bool = False  # own /dev/shm, volumes
    etc: bool = False  # own /etc/mpi and /etc/hosts
    network: bool = False  # own address on a private bridge
    trouble: str = ""  # the first refusal, in the kernel's words


def only_loopback() -> bool:
    """Whether this machine has no working network interface besides itself (a laptop on a plane, a closed sandbox)."""
    try:
        with open("/proc/net/route") as file:  # one line per route; none without an interface that leads anywhere
            return len(file.readlines()) <= 1
    except OSError:
        return False


def ip_command() -> str | None:
    import shutil  # job agents get here, too, and have no use for it

    return shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def probe() -> Separation:
    if sys.platform != "linux":
        return Separation(trouble=Text("{platform} has no namespaces", platform=sys.platform))
    if os.environ.get("OARSMAN_SEPARATION") == "none":
        return Separation(trouble=Text("switched off by OARSMAN_SEPARATION"))
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        result = Separation(trouble=Text("the trial itself failed"))
        with contextlib.suppress(BaseException):
            result = _try_everything()
        os.write(write, json.dumps(result._asdict()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    found = Separation(**json.loads(answer))
    if found.names and not found.network and only_loopback():
        # Hosts that cannot talk to each other are worse than one host.
        return Separation(trouble=found.trouble)
    return found


def _try_everything() -> Separation:
    from oarsman.engines.hosts.core import linux

    trouble: list[str] = []

    def works(step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            trouble.append(str(error))
            return False
        return True

    needs_user = os.getuid() != 0
    if needs_user and not works(linux.enter_own_user_namespace):
        return Separation(trouble=trouble[0])
    if not works(lambda: linux.unshare(linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)):
        return Separation(trouble=trouble[0])
    mounts = works(lambda: linux.unshare(linux.CLONE_NEWNS)) and works(_try_mounts)
    etc = mounts and works(_try_etc)
    network = works(lambda: linux.unshare(linux.CLONE_NEWNET)) and works(_try_network)
    processes = mounts and works(lambda: linux.unshare(linux.CLONE_NEWPID)) and works(_try_processes)
    return Separation(needs_user, True, processes, mounts, etc, network, trouble[0] if trouble else "")


def _try_mounts() -> None:
    from oarsman.engines.hosts.core import linux

    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", "/dev/shm", "tmpfs")


def _try_etc() -> None:
    import tempfile

    from oarsman.engines.hosts.core import linux

    layer = tempfile.mkdtemp(prefix="oarsman-")
    try:
        linux.mount("overlay", "/etc", "overlay", linux.MS_RDONLY, f"lowerdir={layer}:/etc")
    finally:
        os.rmdir(layer)


def _try_network() -> None:
    command = ip_command()
    if command is None:
        raise OSError(Text("the 'ip' command is not installed (package iproute2)"))
    run_ip(command, ["link add oarsman0 type bridge", "link add oarsman1 type veth peer name oarsman2"])


def _try_processes() -> None:
    from oarsman.engines.hosts.core import linux

    pid = os.fork()
    if pid == 0:
        try:
            linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(Text("a new /proc cannot be mounted"))


def run_ip(command: str, lines: list[str]) -> None:
    """One `ip` process for a whole list of changes, inside the caller's network namespace."""
    from oarsman.engines.hosts.core import linux

    read, write = os.pipe()
    os.write(write, ("\n".join(lines) + "\n").encode())
    os.close(write)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            linux.keep_network_rights_over_exec()
            os.dup2(read, 0)
            os.execv(command, [command, "-batch", "-"])
        os._exit(127)
    os.close(read)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(Text("ip refused: {line} ...", line=lines[0]))
