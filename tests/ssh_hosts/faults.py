"""What goes wrong with real hosts, each to be planted on one host and undone again.

Every method plants its fault at once and returns it: undo() undoes it, and so do the end of a `with`, `faults.repair()`
and the fixture `rack`. What lies in namespaces (cables, firewalls, mounts) is also gone when the host is started again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from .host import Host
    from .wiring import Switch

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
MPI = ("mpirun", "mpiexec")  # names that Debian's alternatives decide about


class Fault:
    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo: Callable[[], object] | None = undo

    def undo(self) -> None:
        """May be said more than once."""
        undo, self._undo = self._undo, None
        if undo:
            undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


class Faults:
    def __init__(self, host: Host, switch: Switch) -> None:
        self._host = host
        self._switch = switch
        self._planted: list[Fault] = []

    def repair(self) -> None:
        """Undoes all that was planted here, the last first, and switches the host on if it is off."""
        if not self._host.is_up:
            self._host.start()
        while self._planted:
            self._planted.pop().undo()

    # -- network -------------------------------------------------------------------------------------------
    def cut(self) -> Fault:
        """Pulls the cable: all traffic vanishes, nothing is refused; new connections end after ARP has given up."""
        self._switch.set_cable(self._host.name, "down")
        return self._until_reboot(lambda: self._switch.set_cable(self._host.name, "up"))

    def silence(self) -> Fault:
        """A firewall that drops everything in both directions: connections, old and new, wait for ever."""
        return self._firewall("INPUT -i eth0 -j DROP", "OUTPUT -o eth0 -j DROP")

    def drop_connections_from(self, other: Host | str) -> Fault:
        """A one-way firewall: `other`, a host or an address, waits for ever when it connects here."""
        return self._firewall(f"INPUT -s {_address(other)} -p tcp --syn -j DROP")

    def refuse_connections_from(self, other: Host | str) -> Fault:
        """The same, but `other` is told at once: connection refused."""
        return self._firewall(f"INPUT -s {_address(other)} -p tcp --syn -j REJECT --reject-with tcp-reset")

    def _firewall(self, *rules: str) -> Fault:
        for rule in rules:
            self._host.sh(f"iptables -w -I {rule}")
        return self._until_reboot(lambda: self._host.sh("\n".join(f"iptables -w -D {rule}" for rule in rules)))

    def slow(self, kilobits: int = 1000) -> Fault:
        """What the host sends leaves it at so many kilobits in a second."""
        self._host.sh(f"tc qdisc add dev eth0 root tbf rate {kilobits}kbit burst 16kb latency 400ms")
        return self._until_reboot(lambda: self._host.sh("tc qdisc del dev eth0 root"))

    def impatient(self) -> Fault:
        """Connections that nobody answers time out after three seconds, not after two minutes."""
        file = "/proc/sys/net/ipv4/tcp_syn_retries"
        before = self._host.sh(f"cat {file}").strip()
        self._host.sh(f"echo 1 >{file}")
        return self._until_reboot(lambda: self._host.sh(f"echo {before} >{file}"))

    def unknown_name(self, other: Host) -> Fault:
        """This host no longer resolves the name of another one."""
        return self._edit("/etc/hosts", lambda lines: [line for line in lines if other.name not in line.split()[1:]])

    # -- power ---------------------------------------------------------------------------------------------
    def power_off(self) -> Fault:
        """Everything on it ends at once; undo() switches it on again, with the same files and keys."""
        self._host.kill()
        return self._plant(lambda: None if self._host.is_up else self._host.start())

    def frozen(self) -> Fault:
        """Nothing on it makes a step, as if it had no memory left: its kernel takes connections, nobody answers."""
        self._host.freeze()
        return self._until_reboot(self._host.thaw)

    # -- sshd ----------------------------------------------------------------------------------------------
    def closed_port(self) -> Fault:
        """No sshd: connections are refused. Sessions that are open stay."""
        self._host.stop_sshd()
        return self._until_reboot(self._host.start_sshd)

    def other_host_key(self) -> Fault:
        """Another key than known_hosts has."""
        names = ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub")
        old = {name: self._host.path(f"/etc/ssh/{name}").read_text() for name in names}
        self._host.new_host_key()
        self._host.restart_sshd()

        def undo() -> None:
            for name, text in old.items():
                self._host.write(f"/etc/ssh/{name}", text, mode=0o644 if name.endswith(".pub") else 0o600)
            self._host.restart_sshd()

        return self._plant(undo)

    def other_port(self, port: int = 2222) -> Fault:
        """sshd listens there and no longer at port 22."""
        self._host.port = port
        self._host.restart_sshd()

        def undo() -> None:
            self._host.port = 22
            self._host.restart_sshd()

        return self._plant(undo)

    def key_not_admitted(self, user: str = "rower") -> Fault:
        """The user's key is not known here; the password is."""
        home = "/root" if user == "root" else f"/home/{user}"
        return self._edit(f"{home}/.ssh/authorized_keys", lambda lines: [])

    # -- MPI and its surroundings --------------------------------------------------------------------------
    def other_mpi(self, name: str = "mpich") -> Fault:
        """`mpirun` and `mpiexec` in PATH are those of .mpi/NAME here, by the same links that Debian's packages use."""
        folder = ROOT / ".mpi" / name / "bin"
        return self._link({program: str(folder / program) for program in MPI})

    def no_mpi(self) -> Fault:
        """No `mpirun` and no `mpiexec` in PATH."""
        return self._link(dict.fromkeys(MPI, "/nonexistent"))

    def path_only_in_profile(self, name: str = "openmpi5", user: str = "rower") -> Fault:
        """The only MPI is in a folder that ~/.profile adds to PATH, which shells read only when somebody logs in."""
        hidden = self.no_mpi()
        home = "/root" if user == "root" else f"/home/{user}"
        added = f"PATH={quote(str(ROOT / '.mpi' / name / 'bin'))}:$PATH; export PATH"
        self._host.write(f"{home}/.profile", f"{added}\n", user)

        def undo() -> None:
            self._host.path(f"{home}/.profile").unlink(missing_ok=True)
            hidden.undo()

        return self._plant(undo)

    def without(self, *programs: str) -> Fault:
        """These programs are not installed: python3, bash, ps. Other names of the same file are gone with it."""
        found = [f"{folder}/{name}" for name in programs for folder in FOLDERS if Path(folder, name).exists()]
        files = sorted({quote(str(Path(file).resolve())) for file in found})
        for file in files:
            self._host.sh(f"mount --bind /dev/null {file}")
        return self._until_reboot(lambda: self._host.sh("\n".join(f"umount {file}" for file in files)))

    def busybox(self, user: str = "rower") -> Fault:
        """The user's shell and all usual tools are busybox's; what busybox does not have is as before."""
        tools = "/etc/busybox"  # of all folders that are its own, the one that a clean-up leaves alone
        self._host.sh(f"mkdir -p {tools}; busybox --install -s {tools}")
        shell = self.login_shell(f"{tools}/sh", user)
        path = self._session_environment(PATH=f"{tools}:/usr/local/bin:/usr/bin:/bin")

        def undo() -> None:
            path.undo()
            shell.undo()
            self._host.sh(f"rm -r {tools}")

        return self._plant(undo)

    def clock_off(self, seconds: int = 3600) -> Fault:
        """Sessions from now on see the time shifted; sshd and what runs already do not."""
        library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
        assert library, "libfaketime is not installed: say scripts/setup test"
        return self._session_environment(LD_PRELOAD=str(library), FAKETIME=f"{seconds:+d}")

    def _session_environment(self, **given: str) -> Fault:
        self._host.environment |= given
        self._host.restart_sshd()

        def undo() -> None:
            for name in given:
                self._host.environment.pop(name, None)
            self._host.restart_sshd()

        return self._plant(undo)

    def _link(self, targets: dict[str, str]) -> Fault:
        for name, target in targets.items():
            self._host.sh(f"ln -sfn {quote(target)} /etc/alternatives/{name}")
        return self._plant(self._unlink_mpi)

    def _unlink_mpi(self) -> None:
        """As the machine has them."""
        for name in MPI:
            link = f"/etc/alternatives/{name}"
            target = os.readlink(link) if os.path.islink(link) else ""
            self._host.sh(f"ln -sfn {quote(target)} {link}" if target else f"rm -f {link}")

    # -- files ---------------------------------------------------------------------------------------------
    def unwritable(self, folder: str = "/home/rower") -> Fault:
        """The folder belongs to root: rower may look, not write."""
        found = self._host.path(folder).stat()
        self._host.sh(f"chown root:root {quote(folder)}; chmod 755 {quote(folder)}")

        def undo() -> None:
            os.chown(self._host.path(folder), found.st_uid, found.st_gid)
            self._host.path(folder).chmod(found.st_mode & 0o7777)

        return self._plant(undo)

    def full_disk(self, folder: str = "/home/rower", *, left: int = 0) -> Fault:
        """The folder is on a disk of its own with all that was in it, and `left` bytes free on it, in whole pages."""
        place = quote(folder)
        pages = left // 4096
        self._host.sh(f"""
            mkdir -p /run/disk; mount -t tmpfs -o size=4m,mode=755 tmpfs /run/disk
            cp -ax {place}/. /run/disk/ # not what is mounted there: this repository may be
            mount --move /run/disk {place}
            cat /dev/zero >{place}/.filling 2>/dev/null || true
            truncate -s -{pages * 4096} {place}/.filling
        """)
        return self._until_reboot(lambda: self._host.sh(f"umount -l {place}"))

    # -- users ---------------------------------------------------------------------------------------------
    def no_user(self, user: str = "rower") -> Fault:
        """Nobody of that name is known here."""
        return self._edit("/etc/passwd", lambda lines: [line for line in lines if not line.startswith(f"{user}:")])

    def other_uid(self, uid: int = 6001, user: str = "rower") -> Fault:
        """The user has another number here than elsewhere, and owns their home by it."""
        old = self._host.path(f"/home/{user}").stat().st_uid
        fault = self._edit("/etc/passwd", lambda lines: [_field(line, user, 2, str(uid)) for line in lines])
        self._host.sh(f"chown -R {uid} /home/{user}")

        def undo() -> None:
            fault.undo()
            self._host.sh(f"chown -R {old} /home/{user}")

        return self._plant(undo)

    def login_shell(self, shell: str, user: str = "rower") -> Fault:
        """The user's shell is another one; /usr/sbin/nologin is one, too."""
        return self._edit("/etc/passwd", lambda lines: [_field(line, user, 6, shell) for line in lines])

    # -- how ----------------------------------------------------------------------------------------------
    def _plant(self, undo: Callable[[], object]) -> Fault:
        fault = Fault(undo)
        self._planted.append(fault)
        return fault

    def _until_reboot(self, undo: Callable[[], object]) -> Fault:
        boot = self._host.boots
        return self._plant(lambda: undo() if self._host.is_up and self._host.boots == boot else None)

    def _edit(self, path: str, change: Callable[[list[str]], list[str]]) -> Fault:
        """In place, so that owner and mode stay."""
        file = self._host.path(path)
        before = file.read_text()
        file.write_text("".join(f"{line}\n" for line in change(before.splitlines())))
        return self._plant(lambda: self._host.path(path).write_text(before))


def _address(other: Host | str) -> str:
    return other if isinstance(other, str) else other.address


def _field(line: str, user: str, number: int, value: str) -> str:
    words = line.split(":")
    if words[0] == user:
        words[number] = value
    return ":".join(words)
