"""How fast the ways between hosts are, as far as can be known with nothing but ssh and the usual tools there.

Each round has pairs that share no host, so that no measurement is in the way of another.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.text.sentence import Text, sentences

MEBIBYTES = 64  # sent for each bandwidth
_SECONDS = 60.0
_RTT = re.compile(r"= ([\d.]+)/([\d.]+)/")  # of ping's last line: least/average/...

ROUND_TRIPS = 50  # of a line through ssh, where there is no ping
LATENCY_IS = Text("round trip of ping, or of a line through ssh where there is no ping")
BANDWIDTH_IS = Text("{n} MiB through ssh, so at most what its encryption does on one core", n=MEBIBYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    host: str
    other: str
    latency: float | None = None  # seconds there and back; None: could not be measured
    latency_by: str = ""  # ping or ssh
    bandwidth: float | None = None  # bytes per second
    why: str = ""  # what could not be measured, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSummary:
    least: float
    middle: float
    most: float
    slowest: Speed


def rounds(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Everybody with everybody once, as tournaments do: one stays, the others go round the table."""
    table: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    found = []
    for _ in range(len(table) - 1):
        half = len(table) // 2
        facing = zip(table[:half], reversed(table[half:]), strict=True)
        found.append([(one, other) for one, other in facing if one is not None and other is not None])
        table = [table[0], table[-1], *table[1:-1]]
    return found


def summary(speeds: Iterable[Speed], what: str) -> SpeedSummary | None:
    """Of the latency the slowest is the longest; of the bandwidth the smallest."""
    known = [speed for speed in speeds if getattr(speed, what) is not None]
    if not known:
        return None
    values = [getattr(speed, what) for speed in known]
    slowest = (max if what == "latency" else min)(known, key=lambda speed: float(getattr(speed, what)))
    return SpeedSummary(least=min(values), middle=median(values), most=max(values), slowest=slowest)


async def measure(
    ssh: Ssh,
    hosts: Sequence[SshHost],
    addresses: Mapping[str, str],
    trusting: Callable[[str, str], bool],
    tell: Callable[[Speed], None] = lambda speed: None,
) -> list[Speed]:
    by_name = {host.name: host for host in hosts}
    found: list[Speed] = []

    async def one(host: str, other: str) -> None:
        speed = await _pair(ssh, by_name[host], by_name[other], addresses[other], trusting(host, other))
        found.append(speed)
        tell(speed)

    for pairs in rounds(list(by_name)):
        await asyncio.gather(*(one(host, other) for host, other in pairs))
    return found


async def _pair(ssh: Ssh, host: SshHost, other: SshHost, address: str, trusting: bool) -> Speed:
    answer = await ssh.run(host, script(other, address, trusting), timeout=_SECONDS)
    if answer.trouble is not None:
        return Speed(host=host.name, other=other.name, why=answer.trouble.message)
    return parsed(host.name, other.name, answer.out, trusting)


def script(other: SshHost, address: str, trusting: bool) -> str:
    """Times come from the clock of the host, so that the way from here does not matter."""
    ping = f"LC_ALL=C ping -q -c 10 -i 0.2 -w 5 {shlex.quote(address)} 2>/dev/null </dev/null\n"
    if not trusting:
        return ping
    words = ["ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", "-o", "Compression=no"]
    words += [word for name, value in (("-l", other.user), ("-p", other.port)) if value for word in (name, str(value))]
    reach = shlex.join([*words, "--", other.target])
    return _SCRIPT.format(ping=ping, reach=reach, trips=ROUND_TRIPS, mebibytes=MEBIBYTES)


# The first line through ssh is not counted, as that is logging in; of the bandwidth an empty transfer is taken off.
_SCRIPT = """\
{ping}
moment() {{ date "+$1 %s.%N"; }}
folder=$(mktemp -d) && mkfifo "$folder/there" "$folder/back" && {{
    {reach} cat <"$folder/there" >"$folder/back" 2>/dev/null &
    exec 3>"$folder/there" 4<"$folder/back"
    echo >&3; read -r _ <&4 && {{
        moment trip
        n=0; while [ "$n" -lt {trips} ]; do echo >&3; read -r _ <&4; n=$((n + 1)); done
        moment trip
    }}
    exec 3>&- 4<&-
}}
rm -rf "$folder"
send() {{ head -c $(($1 * 1048576)) /dev/zero | {reach} 'cat >/dev/null'; }}
moment send; send 0; moment send; send {mebibytes} && moment send
"""


def parsed(host: str, other: str, text: str, trusting: bool) -> Speed:
    ping, trips, sends = _RTT.search(text), _moments(text, "trip"), _moments(text, "send")
    latency, by = (float(ping[1]) / 1000, "ping") if ping else (None, "")
    if latency is None and len(trips) == 2:
        latency, by = (trips[1] - trips[0]) / ROUND_TRIPS, "ssh"
    bandwidth = None
    if len(sends) == 3:
        empty, full = sends[1] - sends[0], sends[2] - sends[1]
        bandwidth = MEBIBYTES * (1 << 20) / max(full - empty, 0.001)
    why = [] if latency is not None else [Text("there is no ping on {host}", host=host)]
    if bandwidth is None:
        why.append(
            Text("sending failed on {host}", host=host)
            if trusting
            else Text("{host} cannot log in to {other}", host=host, other=other)
        )
    return Speed(host=host, other=other, latency=latency, latency_by=by, bandwidth=bandwidth, why=sentences(why))


def _moments(text: str, what: str) -> list[float]:
    return [float(word) for word in re.findall(rf"^{what} ([\d.]+)$", text, re.MULTILINE)]
