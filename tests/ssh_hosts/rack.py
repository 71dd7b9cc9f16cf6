"""A rack: N hosts on one switch, and this machine beside them. It ends with this process, however that ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cluster.world import PATIENCE, World

from .host import PASSWORD, USER, Host, Place
from .wiring import ROOM, Switch

ROOT = Path(__file__).resolve().parents[2]
MPI = ROOT / ".mpi"
MEMORY = Path("/dev/shm")  # a layer over /etc needs a file system that is none of layers itself
NEEDED = ("sshd", "ssh", "ssh-keygen", "unshare", "nsenter", "ip", "iptables", "mount")
T = TypeVar("T")
CONFIG = """\
Host *
    User {user}
    IdentityFile {key}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    LogLevel ERROR
"""


class Rack(Sequence[Host]):
    """Made by rack(). A sequence of its hosts; the folder has what ssh on this machine needs to know."""

    def __init__(self, folder: Path, count: int, *, owner: int | None, visible: Sequence[Path] = ()) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.shared = shared_of(folder)
        self.ssh_config = self.home / ".ssh" / "config"
        self.known_hosts = self.home / ".ssh" / "known_hosts"
        self.key = self.home / ".ssh" / "id_ed25519"
        self.hosts: list[Host] = []
        self._count = count
        self._owner = owner
        self._visible = (MPI, *_pythons(), *visible)
        self._switch = Switch(self._world("switch"))

    # -- the hosts -----------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        return self.hosts[index]

    def __len__(self) -> int:
        return len(self.hosts)

    def host(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def address(self) -> str:
        """Of this machine, as the hosts see it."""
        return self._switch.machine

    def each(self, do: Callable[[Host], T]) -> list[T]:
        """On all hosts at once."""
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(do, self.hosts))

    def repair(self) -> None:
        """Undoes every fault that was planted on any host."""
        self.each(lambda host: host.faults.repair())

    def clean(self) -> None:
        """Repairs, ends what still runs, and gives every host and this side the files they had at first."""
        self.repair()
        self.each(lambda host: host.clean())
        _empty(self.shared)
        self._configure()

    # -- this machine's side -------------------------------------------------------------------------------
    @property
    def environment(self) -> dict[str, str]:
        """For programs that call ssh: an empty home of their own, and an ssh in PATH that has read hosts.ssh_config."""
        mine = {"HOME": str(self.home), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        return {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"} | mine

    def ssh(self, host: Host | str, *words: str, user: str = USER, **options: Any) -> subprocess.CompletedProcess[str]:
        """The real ssh, never asking anything. Options are those of subprocess.run."""
        name = host if isinstance(host, str) else host.name
        command = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", f"{user}@{name}", *words]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": PATIENCE} | options
        return subprocess.run(command, check=False, **options)

    def asking(self, password: str = PASSWORD) -> dict[str, str]:
        """An environment in which ssh is given this password when it asks for one."""
        program = self.home / "answer"
        program.write_text(f"#!/bin/sh\necho '{password}'\n")
        program.chmod(0o755)
        return self.environment | {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":"}

    def trust(self) -> None:
        """Lets rower go from every host to every host, by a key and known_hosts in their home."""
        secret, public = self.key.read_text(), self.key.with_suffix(".pub").read_text()
        for host in self.hosts:
            for name, text in (("id_ed25519", secret), ("id_ed25519.pub", public), ("known_hosts", self._known())):
                host.write(f"/home/{USER}/.ssh/{name}", text, USER, 0o600)

    def _known(self) -> str:
        return "".join(f"{host.name},{host.address} {host.public_key}\n" for host in self.hosts)

    def _configure(self) -> None:
        """Writes what ssh on this machine reads, as it was at first."""
        _empty(self.home, but=".ssh")
        _empty(self.home / ".ssh", but="id_ed25519*")
        self.known_hosts.write_text(self._known())
        named = "".join(f"Host {host.name}\n    HostName {host.address}\n" for host in self.hosts)
        self.ssh_config.write_text(named + CONFIG.format(user=USER, key=self.key, known=self.known_hosts))
        (self.folder / "bin").mkdir(exist_ok=True)
        for program in ("ssh", "scp", "sftp"):
            wrapper = self.folder / "bin" / program
            wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/{program} -F {self.ssh_config} "$@"\n')
            wrapper.chmod(0o755)

    # -- beginning and end ---------------------------------------------------------------------------------
    def start(self) -> None:
        self._prepare()
        self._switch.start()
        self._make_hosts()
        self.each(lambda host: host.start())
        self._configure()

    def _prepare(self) -> None:
        self.key.parent.mkdir(parents=True, mode=0o700)
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(self.key)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def _make_hosts(self) -> None:
        names = {f"node{number}": self._switch.address(number) for number in range(1, self._count + 1)}
        key = self.key.with_suffix(".pub").read_text().strip()
        for number, name in enumerate(names, 1):
            self.hosts.append(
                Host(self._world(name), Place(number, names, key, self._visible, self.shared), self._switch)
            )

    def _world(self, name: str) -> World:
        return World(name, self.folder / name, network=True, owner=self._owner)

    def stop(self) -> None:
        """Also after a start that failed half-way."""
        self.each(lambda host: host.end())
        self._switch.stop()
        remove(self.folder)


@contextlib.contextmanager
def rack(count: int = 4, *, visible: Sequence[Path] = ()) -> Iterator[Rack]:
    """Hosts node1, node2, ... that are gone without a trace at the end, also when this process is killed.

    visible: folders of the machine that hosts shall see, read-only, though they lie in its /tmp or behind a folder that
    not everybody may enter.
    """
    if reason := why_no_racks():
        raise RuntimeError(reason)
    if count > ROOM:
        raise ValueError(f"a rack has room for {ROOM} hosts")
    reading, writing = os.pipe()
    mark = os.environ.get("OARSMAN_TEST_RUN", "oarsman")  # by which a run of the tests knows what it left there
    folder = Path(tempfile.mkdtemp(prefix=f"{mark}-rack-", dir=MEMORY))
    found = Rack(folder, count, owner=reading, visible=visible)
    # Whoever kills this process leaves nobody else to remove the folders; worlds end by the end of the same pipe.
    cleaner = subprocess.Popen(
        ["sh", "-c", 'cat; exec rm -rf "$@"', "sh", folder, found.shared], stdin=reading, start_new_session=True
    )
    try:
        found.start()
        yield found
    finally:
        found.stop()
        os.close(writing)
        os.close(reading)
        cleaner.wait(PATIENCE)


def shared_of(folder: Path) -> Path:
    return Path(tempfile.gettempdir(), folder.name.replace("rack", "shared"))


def remove(folder: Path) -> None:
    """What a rack has written on the machine."""
    shutil.rmtree(shared_of(folder), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def why_no_racks() -> str:
    """Why no host can be made here; empty if nothing is in the way."""
    if os.geteuid() != 0:
        return "hosts with an sshd of their own are made of namespaces, which takes root here"
    searched = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [program for program in NEEDED if not shutil.which(program, path=searched)]
    missing += [] if MPI.is_dir() else ["the environments in .mpi"]
    return f"hosts with an sshd of their own need {', '.join(missing)}: say scripts/setup test" if missing else ""


def _pythons() -> set[Path]:
    """Where the Pythons lie that the environments with an MPI are made of: in somebody's home, perhaps."""
    return {python.resolve().parents[1] for python in MPI.glob("*/bin/python3")}


def _empty(folder: Path, but: str = "") -> None:
    for each in folder.iterdir():
        if but and each.match(but):
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
