"""The network of an inventory: a bridge in a world of its own, a cable to each host, and one to the machine.

the machine ── bridge in the switch ── hosts
 10.88.N.1                             10.88.N.11, .12, ...     N is the first that nobody on this machine uses
"""

from __future__ import annotations

import ipaddress
import json
import subprocess

from cluster.world import World

ROOM = 200  # hosts
DOCKER = "172.17.0.1/16"  # what every machine with Docker has


class Switch:
    def __init__(self, world: World) -> None:
        self._world = world
        self.number = 0

    def start(self) -> None:
        self._world.start()
        self._world.sh("ip link add hosts type bridge; ip link set hosts up")
        self._plug_in_machine()

    @property
    def machine(self) -> str:
        return f"10.88.{self.number}.1"

    @property
    def link(self) -> str:
        return _link(self.number)

    def address(self, host: int) -> str:
        return f"10.88.{self.number}.{10 + host}"

    def _plug_in_machine(self) -> None:
        """The name of the link is the claim to its addresses: the kernel gives a name once."""
        used = _routes()
        for number in range(1, 256):
            if any(ipaddress.IPv4Network(f"10.88.{number}.0/24").overlaps(other) for other in used):
                continue
            ends = ["type", "veth", "peer", "name", "machine", "netns", str(self._world.pid)]
            done = subprocess.run(
                ["ip", "link", "add", _link(number), *ends], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                self.number = number
                break
            if "exists" not in done.stderr:
                raise RuntimeError(f"no cable to the hosts: {done.stderr.strip()}")
        else:
            raise RuntimeError("every 10.88.N.0/24 is in use on this machine")
        self._world.sh("ip link set machine master hosts up")
        _ip("addr", "add", f"{self.machine}/24", "dev", self.link)
        _ip("link", "set", self.link, "up")

    def plug_in(self, host: World, number: int) -> None:
        """A host that comes back finds its cable gone, or about to go with the old namespace. Its card is the same."""
        self._world.sh(f"ip link del {host.name} 2>/dev/null || true")
        _ip(
            "link",
            "add",
            "name",
            host.name,
            "netns",
            str(self._world.pid),
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            str(host.pid),
        )
        self._world.sh(f"ip link set {host.name} master hosts up")
        # A bridge is up only with something in it, and an interface that is not up would be too easy to leave out.
        host.sh(f"""
            ip addr add {self.address(number)}/24 dev eth0
            ip link set eth0 address 02:88:00:00:{self.number:02x}:{10 + number:02x} up
            ip link add docker0 type bridge
            ip link add veth0 type veth peer name container
            ip link set veth0 master docker0 up
            ip link set container up
            ip addr add {DOCKER} dev docker0
            ip link set docker0 up
        """)

    def set_cable(self, host: str, state: str) -> None:
        self._world.sh(f"ip link set {host} {state}")

    def stop(self) -> None:
        self._world.kill()
        if self.number:  # the kernel would remove it, some time later
            subprocess.run(["ip", "link", "del", self.link], capture_output=True, check=False)


def _link(number: int) -> str:
    return f"oarsmanrack{number}"


def _routes() -> list[ipaddress.IPv4Network]:
    found = json.loads(_ip("-json", "-4", "route", "show", "table", "all") or "[]")
    return [ipaddress.IPv4Network(route["dst"], strict=False) for route in found if route["dst"] != "default"]


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
