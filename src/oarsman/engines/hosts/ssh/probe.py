"""What a host says about itself: the script that asks, and its answer as values."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from oarsman.engines.hosts.core.installed_mpi import FoundMpi, read_version
from oarsman.engines.hosts.ssh import inventory_hostfile as words
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.interfaces import Address
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.errors import RetryableError
from oarsman.job.mpi import Family
from oarsman.manifest.problems import quoted
from oarsman.text.sentence import Text, visible

PROTOCOL = "1"
_LEAST_ROOM = 1 << 20  # bytes
PATIENCE = 2  # seconds; a busy host may be given more
_UP, _LOOPBACK, _POINT_TO_POINT = 0x1, 0x8, 0x10  # of the kernel's interface flags
_INTERFACE = re.compile(r"[\w.:-]{1,15}", re.ASCII)  # MPIs are told them, several between commas
_Lines = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMpi:
    launcher: str
    real: str  # without links: two names of one MPI have the same
    family: Family | None  # None: it did not say in time, or it is none that we know
    version: str = ""
    says: str = ""  # the first lines of --version
    in_path: bool = False  # a command over ssh finds it
    in_login_path: bool = False  # a person who logs in finds it
    named: bool = False  # by the inventory
    daemons: tuple[str, ...] = ()  # what it starts on other hosts, as far as it lies beside it

    @property
    def found(self) -> FoundMpi | None:
        return FoundMpi(self.family, self.version, self.launcher) if self.family is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    hostname: str
    user: str
    uid: int
    home: str
    system: str
    architecture: str
    processors: int
    memory: int  # bytes
    memory_available: int
    load: float
    clock: float  # seconds of the epoch, when it began to answer
    gpus: tuple[str, ...]
    path: str  # of a command over ssh
    login_path: str | None  # of a person who logs in; None: the shell did not say
    mpis: tuple[HostMpi, ...]
    folder: str  # where jobs would keep their files
    folder_problem: str  # empty: it can be written
    folder_free: int | None  # bytes
    temporary_free: int | None
    addresses: tuple[Address, ...]
    reached: str  # its own address, to which this connection came; empty: unknown
    rdma: tuple[str, ...]  # InfiniBand, RoCE and their like
    complete: bool  # False: something hung, and what it would have said is missing

    @property
    def full(self) -> str:
        """The folder for which there is no room, not even for what starts a job."""
        room = {"/tmp": self.temporary_free, self.folder: self.folder_free}
        return next((folder for folder, free in room.items() if free is not None and free < _LEAST_ROOM), "")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> HostFacts:
        """ValueError if facts are missing, or make no sense."""
        return _reader().validate_python(data)


@cache
def _reader() -> TypeAdapter[HostFacts]:
    return TypeAdapter(HostFacts)


def script(host: SshHost, *, patience: int = PATIENCE) -> str:
    """The text for a shell on the host; it ends after so many seconds, whatever hangs there."""
    given = {"oarsman_folder": host.folder, "oarsman_mpi": host.mpi, "oarsman_patience": str(patience)}
    return scripts.assignments(given) + scripts.script("probe")


def parse(text: str) -> HostFacts:
    lines = _lines(text)

    def said(key: str, count: int) -> list[str]:
        """Its values; those that did not come are empty."""
        return [*(lines[key] or [()])[0], *[""] * count][:count]

    def one(key: str) -> str:
        return said(key, 1)[0]

    (user, uid), (system, architecture), (memory, available) = (said(key, 2) for key in ("user", "system", "memory"))
    folder, problem, free = said("folder", 3)
    try:
        return HostFacts(
            hostname=one("hostname"),
            user=user,
            uid=int(uid),
            home=one("home"),
            system=system,
            architecture=architecture,
            processors=words.number(one("processors") or "1", Text("a number of processors"), 1, words.MOST_SLOTS),
            memory=_kibibytes(memory) or 0,
            memory_available=_kibibytes(available) or 0,
            load=_number(one("load") or "0"),
            clock=_number(one("clock")),
            gpus=tuple(line[0] for line in lines["gpu"]),
            path=one("path"),
            login_path=one("login") or None,
            mpis=_mpis(lines),
            folder=folder,
            folder_problem=problem if folder else Text("no answer in time"),
            folder_free=_kibibytes(free),
            temporary_free=_kibibytes(one("temporary")),
            addresses=_addresses(lines),
            reached=words.address(one("reached")) if one("reached") and "%" not in one("reached") else "",
            rdma=tuple(line[0] for line in lines["rdma"]),
            complete=one("end") == "complete",
        )
    except ValueError as error:
        raise RetryableError(Text("a host's description of itself is invalid: {why}", why=error)) from error


def _lines(text: str) -> _Lines:
    """By key, from our first line on: what a shell's start-up files print comes before it."""
    rows = [[visible(word) for word in line.split("\t")] for line in text.splitlines()]
    start = next((number for number, row in enumerate(rows) if row[0] == "oarsman-probe" and len(row) == 2), None)
    if start is None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        said = Text("the host did not describe itself: it said {words}", words=repr(first[:100]))
        said = said if first else Text("the host did not describe itself: it said nothing")
        hint = Text("its shell may start something else: log in with ssh, and look at its start-up files")
        raise RetryableError(said, hint=hint)
    if rows[start][1] != PROTOCOL:
        template = Text("the host describes itself in version {its}; this is version {ours}")
        raise RetryableError(Text(template, its=rows[start][1], ours=PROTOCOL))
    lines: dict[str, list[list[str]]] = defaultdict(list)
    for key, *values in rows[start + 1 :]:
        if values:
            lines[key].append(values)
    if not lines["end"]:
        raise RetryableError(Text("the host stopped in the middle of describing itself"), hint=Text("try again"))
    return lines


def _kibibytes(text: str) -> int | None:
    return words.number(text, Text("an amount of memory"), 0, 1 << 50) * 1024 if text else None


def _number(text: str) -> float:
    if re.fullmatch(r"[0-9.]{1,30}", text):  # neither nan nor inf, which no JSON can say
        return float(text)
    raise ValueError(quoted(text))


def _mpis(lines: _Lines) -> tuple[HostMpi, ...]:
    """Each once, in the order in which they would be chosen: named, on PATH, on the PATH of a login, elsewhere."""
    versions: dict[str, list[str]] = defaultdict(list)
    for line in lines["version"]:
        versions[line[0]].append("\t".join(line[1:]))
    seen: dict[str, list[Sequence[str]]] = defaultdict(list)
    order = ("named", "path", "login", "usual")
    known = [line for line in lines["mpi"] if len(line) == 4 and line[0] in order]
    for line in sorted(known, key=lambda line: order.index(line[0])):
        seen[line[2]].append(line)
    return tuple(_mpi(real, places, "\n".join(versions[real]).strip()) for real, places in seen.items())


def _mpi(real: str, places: Sequence[Sequence[str]], says: str) -> HostMpi:
    where = {place[0] for place in places}
    family, version = read_version(says) or (None, "")
    return HostMpi(
        launcher=places[0][1],
        real=real,
        family=family,
        version=version,
        says=says,
        in_path="path" in where,
        in_login_path="login" in where,
        named="named" in where,
        daemons=tuple(places[0][3].split()),
    )


def _addresses(lines: _Lines) -> tuple[Address, ...]:
    """As `ip` says; without it, put together from what the kernel shows."""
    stated = [(line[0], line[1]) for line in lines["address"] if len(line) == 2]
    links = {line[0]: line[1:] for line in lines["interface"]}
    ways_out = {line[0] for line in lines["route"] if set(line[1:]) == {"00000000"}}
    ways_out6 = {line[0] for line in lines["route6"]}
    addresses = []
    for name, text in dict.fromkeys(stated or _from_kernel(lines)):
        try:
            own = ipaddress.ip_interface(text if "%" not in text else "")  # a scope could be any text
        except ValueError:
            continue  # what a later ip may print
        flags, speed = [*links.get(name, ()), "", ""][:2]
        up, loopback, point_to_point = _flags(flags)
        addresses.append(
            Address(
                interface=name if _INTERFACE.fullmatch(name) else "",
                address=str(own.ip),
                prefix=own.network.prefixlen,
                up=up,
                loopback=loopback or own.is_loopback,
                point_to_point=point_to_point,
                default_route=name in (ways_out if own.version == 4 else ways_out6) and not loopback,
                speed=int(speed) if speed.isdigit() and int(speed) > 0 else None,
            )
        )
    return tuple(addresses)


def _flags(text: str) -> tuple[bool, bool, bool]:
    """Up, loopback, point to point. An interface that says nothing is taken for one that works: it has an address."""
    if not text:
        return True, False, False
    if text.startswith("0x"):
        bits = int(text, 16)
        return bool(bits & _UP), bool(bits & _LOOPBACK), bool(bits & _POINT_TO_POINT)
    words = text.split(",")
    return "UP" in words, "LOOPBACK" in words, "POINTOPOINT" in words


def _from_kernel(lines: _Lines) -> list[tuple[str, str]]:
    """/proc tells own addresses and, apart from them, routes: an address belongs to the narrowest route around it."""
    routes = []
    for name, destination, mask in (line for line in lines["route"] if len(line) == 3):
        if mask not in ("Mask", "00000000"):
            routes.append((name, ipaddress.ip_network(f"{_dotted(destination)}/{_dotted(mask)}")))
    routes.sort(key=lambda route: -route[1].prefixlen)
    found = []
    for (own,) in lines["local"]:
        around = next(((name, net) for name, net in routes if ipaddress.ip_address(own) in net), None)
        if around is not None:
            found.append((around[0], f"{own}/{around[1].prefixlen}"))
        elif ipaddress.ip_address(own).is_loopback:
            found.append(("lo", f"{own}/8"))
    for name, number, prefix in (line for line in lines["local6"] if len(line) == 3):
        found.append((name, f"{ipaddress.IPv6Address(int(number, 16))}/{int(prefix, 16)}"))
    return found


def _dotted(number: str) -> str:
    """An IPv4 address as /proc/net/route shows it on the machines that there are: the first byte last."""
    return str(ipaddress.IPv4Address(bytes.fromhex(number)[::-1]))
