"""The few system calls that make a host out of a process and that Python 3.11 does not wrap, and how far this machine
lets us separate hosts from one another with them, found by trying.

Everything here works for root and, inside a user namespace of their own, for anyone else.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final

from oarsman.engines.hosts.core.job_spec import Separation
from oarsman.text.sentence import Text

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_RAISE: Final = 2
_CAPABILITY_VERSION_3: Final = 0x20080522
_CAP_NET_ADMIN: Final = 12
_OPEN_TREE: Final = 428  # numbers that are the same wherever Linux runs
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442  # Linux 5.12
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
_MOVE_MOUNT_F_EMPTY_PATH: Final = 4
_MOUNT_ATTR_RDONLY: Final = 1
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING: Final = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(result, f"mount {target}")


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def take(path: str) -> int:
    """Of this folder or file a mount that is nowhere yet, with all that is mounted below it as it is now."""
    flags = ctypes.c_uint(_OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC)
    found = _libc.syscall(ctypes.c_long(_OPEN_TREE), ctypes.c_long(_AT_FDCWD), os.fsencode(path), flags)
    _check(min(found, 0), f"open_tree {path}")
    return int(found)


def put(taken: int, target: str) -> None:
    words = (ctypes.c_long(taken), b"", ctypes.c_long(_AT_FDCWD), os.fsencode(target))
    result = _libc.syscall(ctypes.c_long(_MOVE_MOUNT), *words, ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH))
    _check(result, f"move_mount {target}")
    os.close(taken)


def set_read_only(target: str) -> None:
    """For this mount and all below it. What else is said of a mount stays, which in a user namespace it has to."""
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    words = (ctypes.c_long(_AT_FDCWD), os.fsencode(target), ctypes.c_uint(_AT_RECURSIVE), attributes, size)
    _check(_libc.syscall(ctypes.c_long(_MOUNT_SETATTR), *words), f"mount_setattr {target}")


def give_up_rights(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Become this user, for good: without capabilities, and no program (`sudo`, `su`) gives rights any more. Until the
    next exec nobody but root can look into this process either."""
    if uid != os.getuid():
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, none), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")


def leave_keyring() -> None:
    """Whoever inherits a session has the keys that it holds, as another user too. Where nobody may ask for keys, a job
    may not either."""
    number = _KEYCTL.get(os.uname().machine)
    if number is None or _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None) >= 0:
        return
    if ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        _check(-1, "keyctl")


def become_subreaper() -> None:
    """Orphans among our descendants come home to us instead of to the machine's init, where that can be had."""
    if sys.platform == "linux":
        _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def end_with_parent(number: int) -> None:
    """Have the kernel send us this signal when the thread that started us ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def enter_own_user_namespace() -> None:
    """Become, under the same user id, the owner of all namespaces made from now on."""
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    for name, text in (("uid_map", f"{uid} {uid} 1"), ("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def keep_network_rights_over_exec() -> None:
    """Let the next exec keep CAP_NET_ADMIN, which an ordinary user id would otherwise lose there."""
    if os.getuid() == 0:
        return
    header, data = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, data), "capget")
    data[2] |= 1 << _CAP_NET_ADMIN  # inheritable, low word
    _check(_libc.capset(header, data), "capset")
    _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_NET_ADMIN, 0, 0), "prctl")


def run_ip(command: str, lines: list[str]) -> None:
    """One `ip` process for a whole list of changes, inside the caller's network namespace."""
    read, write = os.pipe()
    os.write(write, ("\n".join(lines) + "\n").encode())
    os.close(write)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            keep_network_rights_over_exec()
            os.dup2(read, 0)
            os.execv(command, [command, "-batch", "-"])
        os._exit(127)
    os.close(read)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(Text("ip refused: {line} ...", line=lines[0]))


def ip_command() -> str | None:
    import shutil  # job agents get here, too, and have no use for it

    return shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def only_loopback() -> bool:
    """Whether this machine has no working network interface besides itself (a laptop on a plane, a closed sandbox)."""
    with contextlib.suppress(OSError), open("/proc/net/route") as file:
        return len(file.readlines()) <= 1  # one line per route; none without an interface that leads anywhere
    return False


_TRIALS = 3
_TRIAL_SECONDS = 60


def probe() -> Separation:
    """What can be had here. The trial runs in a child process, so that nothing of it stays."""
    if sys.platform != "linux":
        return Separation(trouble=Text("{platform} has no namespaces", platform=sys.platform))
    if os.environ.get("OARSMAN_SEPARATION") == "none":
        return Separation(trouble=Text("switched off by OARSMAN_SEPARATION"))
    failed = Separation(trouble=Text("the trial itself failed"))
    found = next(filter(None, (_trial() for _ in range(_TRIALS))), failed)
    if found.names and not found.network and only_loopback():
        # Hosts that cannot talk to each other are worse than one host.
        return Separation(trouble=found.trouble)
    return found


def _trial() -> Separation | None:
    """None: it did not come to an end. A child of a process with threads may wait for ever for what one of them held,
    at times before it has set its alarm; and it neither outlives us nor gets out of here."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_TRIAL_SECONDS)
            end_with_parent(signal.SIGKILL)
            os.close(read)
            os.write(write, json.dumps(_try_everything()._asdict()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        ready = select.poll()  # select knows descriptors below 1024 only
        ready.register(file, select.POLLIN)
        answer = file.read() if ready.poll(_TRIAL_SECONDS * 1000) else b""
    if not answer:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return Separation(**json.loads(answer)) if answer else None


def _try_everything() -> Separation:
    trouble: list[str] = []

    def works(step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            trouble.append(str(error))
            return False
        return True

    needs_user = os.getuid() != 0
    if needs_user and not works(enter_own_user_namespace):
        return Separation(trouble=trouble[0])
    if not works(lambda: unshare(CLONE_NEWUTS | CLONE_NEWIPC)):
        return Separation(trouble=trouble[0])
    mounts = works(_try_mounts)
    etc = mounts and works(_try_etc)
    network = works(_try_network)
    processes = mounts and works(_try_processes)
    told = trouble[0] if trouble else ""
    confines = processes and works(_try_confining)
    return Separation(needs_user, True, processes, mounts, etc, network, told, confines)


def _try_mounts() -> None:
    unshare(CLONE_NEWNS)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", "/dev/shm", "tmpfs")


def _try_confining() -> None:
    mount("devpts", "/dev/pts", "devpts", options="newinstance,ptmxmode=0666")
    set_read_only("/")


def _try_etc() -> None:
    import tempfile

    layer = tempfile.mkdtemp(prefix="oarsman-")
    try:
        mount("overlay", "/etc", "overlay", MS_RDONLY, f"lowerdir={layer}:/etc")
    finally:
        os.rmdir(layer)


def _try_network() -> None:
    unshare(CLONE_NEWNET)
    command = ip_command()
    if command is None:
        raise OSError(Text("the 'ip' command is not installed (package iproute2)"))
    run_ip(command, ["link add oarsman0 type bridge", "link add oarsman1 type veth peer name oarsman2"])


def _try_processes() -> None:
    unshare(CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(Text("a new /proc cannot be mounted"))
