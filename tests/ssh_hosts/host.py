"""One host: its world, its files, its sshd."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster.world import PATIENCE, World

from .faults import Faults
from .mounts import boot_script
from .wiring import Switch

PASSWORD = "stroke-oar-7"
USER, UID = "rower", 5001
PID_FILE, LOG = "/run/sshd.pid", "/run/sshd.log"
SSHD_CONFIG = """\
ListenAddress {address}:{port}
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile {pid_file}
UsePAM no
UseDNS no
PasswordAuthentication yes
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
LogLevel VERBOSE
MaxStartups 200
MaxSessions 200
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
# What OpenSSH would choose first takes a client 70 ms of a core at each login, ten times all the rest together.
KexAlgorithms curve25519-sha256
{environment}
"""


@dataclass(frozen=True)
class Place:
    """Which of the rack's hosts one is, and what it shares with the others."""

    number: int
    names: Mapping[str, str]  # address of every host, by name
    key: str  # the public key that is admitted
    visible: tuple[Path, ...]  # folders of the machine that must be seen, wherever they lie
    shared: Path  # one that all of them may write to


class Host:
    def __init__(self, world: World, place: Place, switch: Switch) -> None:
        self.name = world.name
        self.number = place.number
        self.address = place.names[world.name]
        self.port = 22
        self.boots = 0
        self.environment: dict[str, str] = {}  # what sshd gives to every session
        self.faults = Faults(self, switch)
        self._world = world
        self._place = place
        self._switch = switch
        self._install()

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    # -- power ---------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Switches it on and waits for its sshd; also after it was killed."""
        self._world.start()
        self.boots += 1
        self._switch.plug_in(self._world, self.number)
        self._world.sh(boot_script(self._world.work, self._place.visible, self._place.shared))
        self.start_sshd()

    def kill(self) -> None:
        """As if it had lost its power: every process ends at once, and the network hears nothing of it."""
        self._switch.set_cable(self.name, "down")  # the kernel would say good-bye for each connection
        self.end()

    def end(self) -> None:
        """For good, whatever state it is in."""
        self._world.kill()

    def reboot(self) -> None:
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stops every process but the first."""
        self.sh("kill -STOP -1")

    def thaw(self) -> None:
        self.sh("kill -CONT -1")

    @property
    def is_up(self) -> bool:
        return bool(self._world.pid)

    def attach(self) -> None:
        """To be said instead of start() where another process has started it."""
        self._world.attach()

    # -- sshd ----------------------------------------------------------------------------------------------
    def start_sshd(self) -> None:
        """It goes into the background by itself, and is nobody's child but the host's first process's.

        With -r it does not execute itself anew for each connection, which is a third of what a login takes.
        """
        if self._listens():
            return
        self.run("/usr/sbin/sshd", "-r", "-f", "/etc/ssh/sshd_config", "-E", LOG)
        self._wait(self._listens, "listens")

    def stop_sshd(self) -> None:
        """The port closes; sessions that are open stay."""
        if not self.path(PID_FILE).exists():
            return
        pid = self.path(PID_FILE).read_text().strip()
        self.sh(f"kill -9 {pid}; rm {PID_FILE}")
        self._wait(lambda: not self.path(f"/proc/{pid}").exists(), "ends")

    def _wait(self, fact: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not fact():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no sshd of {self.name} {what}: {self.log()}")
            time.sleep(0.005)

    def restart_sshd(self) -> None:
        """As its configuration and keys are now."""
        self.write("/etc/ssh/sshd_config", self._sshd_config())
        self.stop_sshd()
        self.start_sshd()

    def _listens(self) -> bool:
        """Asked of the kernel: a firewall or a cut cable is no reason to think that it is not there."""
        wanted = f"{socket.htonl(int.from_bytes(socket.inet_aton(self.address), 'big')):08X}:{self.port:04X}"
        rows = [line.split() for line in Path(f"/proc/{self._world.pid}/net/tcp").read_text().splitlines()[1:]]
        return any(row[1] == wanted and row[3] == "0A" for row in rows)

    def log(self) -> str:
        """What its sshd has said since the host was switched on."""
        return self.path(LOG).read_text(errors="replace")

    def _sshd_config(self) -> str:
        given = " ".join(f"{name}={value}" for name, value in self.environment.items())
        environment = f"SetEnv {given}" if given else ""
        return SSHD_CONFIG.format(address=self.address, port=self.port, pid_file=PID_FILE, environment=environment)

    @property
    def public_key(self) -> str:
        """Of the host, as known_hosts has it: kind and key."""
        return " ".join(self._etc("ssh/ssh_host_ed25519_key.pub").read_text().split()[:2])

    def new_host_key(self) -> None:
        file = self._etc("ssh/ssh_host_ed25519_key")
        file.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(file)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    # -- files and commands, without ssh -------------------------------------------------------------------
    def path(self, path: str) -> Path:
        """The same file, as this process reaches it while the host is up. Its symbolic links must be relative."""
        return Path(f"/proc/{self._world.pid}/root{path}")

    def write(self, path: str, text: str, user: str = "root", mode: int = 0o644) -> None:
        """Also while it is switched off, if it is below /etc, /home or /root. Missing folders become the user's."""
        file = self.path(path) if self.is_up else self._world.work / path.lstrip("/")
        owner = UID if user == USER else 0
        for folder in reversed([folder for folder in file.parents if not folder.exists()]):
            folder.mkdir(0o700 if folder.name == ".ssh" else 0o755)
            os.chown(folder, owner, owner)
        file.write_text(text)
        file.chmod(mode)
        os.chown(file, owner, owner)

    def run(self, *words: str) -> str:
        """As root; what it printed. A failure raises RuntimeError."""
        return self._world.run(*words)

    def sh(self, script: str) -> str:
        return self._world.sh(script)

    def commands(self, user: str = USER) -> list[str]:
        """What runs there on behalf of a user, apart from the sshd that holds the session."""
        return list(self._commands(user).values())

    def state_of_commands(self, user: str = USER) -> str:
        """The same, with what each waits for: for whoever did not expect it there."""
        return "\n".join(f"{_state(folder)} {words}" for folder, words in self._commands(user).items())

    def _commands(self, user: str) -> dict[Path, str]:
        uid = UID if user == USER else 0
        folders = [folder for folder in self.path("/proc").iterdir() if folder.name.isdigit()]
        found = {folder: _command(folder) for folder in folders if _owner(folder) == uid}
        return {folder: words for folder, words in found.items() if words and not words.startswith(("sshd:", "[sshd]"))}

    # -- how it was at first -------------------------------------------------------------------------------
    def clean(self) -> None:
        """Ends all sessions and what they left running, and makes homes and temporary folders as they were."""
        if len([each for each in self.path("/proc").iterdir() if each.name.isdigit()]) > 2:  # init and sshd
            self.sh("kill -9 -1")
            self._wait(lambda: not self._listens(), "ends")
            self.start_sshd()
        for folder in ("/home", "/root", "/tmp", "/var/tmp", "/dev/shm"):
            self._empty(self.path(folder))
        self._furnish()

    def _empty(self, folder: Path) -> None:
        for each in folder.iterdir():
            inside = each.relative_to(self.path("/"))
            if any(seen.is_relative_to(f"/{inside}") for seen in (*self._place.visible, self._place.shared)):
                continue  # the machine's
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()

    def _install(self) -> None:
        """What is kept while it is switched off. /etc is a layer over the machine's."""
        for folder in ("etc/ssh", "work", "home", "root", "var/tmp"):
            (self._world.work / folder).mkdir(parents=True)
        (self._world.work / "var" / "tmp").chmod(0o1777)
        for name, text in self._files().items():
            self.write(f"/etc/{name}", text, mode=0o640 if name == "shadow" else 0o644)
        self.new_host_key()
        self._furnish()

    def _furnish(self) -> None:
        for home, user in (("/root", "root"), (f"/home/{USER}", USER)):
            self.write(f"{home}/.ssh/authorized_keys", f"{self._place.key}\n", user, 0o600)
        self._root_folder.chmod(0o711)

    @property
    def _root_folder(self) -> Path:
        return self.path("/root") if self.is_up else self._world.work / "root"

    def _etc(self, name: str) -> Path:
        return self.path(f"/etc/{name}") if self.is_up else self._world.work / "etc" / name

    def _files(self) -> dict[str, str]:
        known = "".join(f"{address} {name}\n" for name, address in self._place.names.items())
        secret = hashed(PASSWORD)
        return {
            "hostname": f"{self.name}\n",
            "hosts": f"127.0.0.1 localhost\n{known}",
            "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
            "resolv.conf": "",
            "passwd": _with("passwd", f"{USER}:x:{UID}:{UID}:Rower:/home/{USER}:/bin/sh"),
            "group": _with("group", f"{USER}:x:{UID}:"),
            "shadow": _with("shadow", f"root:{secret}:19000:0:99999:7:::", f"{USER}:{secret}:19000:0:99999:7:::"),
            "ssh/sshd_config": self._sshd_config(),
        }


def _with(file: str, *lines: str) -> str:
    """The machine's file with these lines instead of its own about the same names."""
    names = {line.partition(":")[0] for line in lines}
    others = [line for line in Path("/etc", file).read_text().splitlines() if line.partition(":")[0] not in names]
    return "\n".join([*others, *lines, ""])


def hashed(password: str) -> str:
    """As /etc/shadow has it; newer Pythons have no module for it."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return str(library.crypt(password.encode(), b"$6$oarsman$").decode())


def _command(process: Path) -> str:
    """Its words, or its name if it has ended and nobody has asked how; empty if it is gone."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join(words).strip() or f"[{(process / 'comm').read_text().strip()}]"
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _state(process: Path) -> str:
    """Its number, its parent's, what it does in the kernel, which signals it ignores and which files it has open."""
    try:
        stat = (process / "stat").read_text().rpartition(")")[2].split()
        ignored = re.findall(r"Sig(?:Ign|Cgt|Pnd):\t(\w+)", (process / "status").read_text())
        doing = (process / "wchan").read_text()
        files = {fd.name: os.readlink(fd) for fd in (process / "fd").iterdir()}
    except OSError as error:
        return f"{process.name} {error.strerror}"
    return f"{process.name} of {stat[1]} {stat[0]} {doing} {ignored} {files}"


def _owner(process: Path) -> int:
    try:
        return process.stat().st_uid
    except FileNotFoundError:
        return -1
