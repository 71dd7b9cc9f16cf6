"""Addresses that nobody on this machine uses, and the cables between the worlds.

the machine ── bridge in the control plane's world ── nodes
  .0.2                   .0.1                       .0.11, .0.12, pods in .16.0/24, .17.0/24; services in .128.0/20
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.world import World

SHARED = ipaddress.IPv4Network("100.64.0.0/10")  # for networks that are not routed outside: RFC 6598


@dataclass(frozen=True)
class Addresses:
    """One /16 of a cluster."""

    prefix: str  # the first two numbers

    @property
    def whole(self) -> str:
        return f"{self.prefix}.0.0/16"

    @property
    def control_plane(self) -> str:
        return f"{self.prefix}.0.1"

    @property
    def machine(self) -> str:
        return f"{self.prefix}.0.2"

    def node(self, number: int) -> str:
        return f"{self.prefix}.0.{10 + number}"

    def pods(self, number: int) -> str:
        return f"{self.prefix}.{15 + number}.0/24"

    @property
    def every_pod(self) -> str:
        return f"{self.prefix}.16.0/20"

    @property
    def services(self) -> str:
        return f"{self.prefix}.128.0/20"

    @property
    def kubernetes_service(self) -> str:
        return f"{self.prefix}.128.1"


def free_addresses() -> Addresses:
    used = list(_used())
    for network in SHARED.subnets(new_prefix=16):
        if not any(network.overlaps(other) for other in used):
            return Addresses(str(network.network_address).rsplit(".", 2)[0])
    raise RuntimeError(f"every /16 of {SHARED} is in use on this machine")


def _used() -> Iterable[ipaddress.IPv4Network]:
    routes = json.loads(_ip("-json", "-4", "route", "show", "table", "all") or "[]")
    for route in routes:
        if route["dst"] != "default":
            yield ipaddress.IPv4Network(route["dst"], strict=False)
    for name in _name_servers():
        yield ipaddress.IPv4Network(name)


def _name_servers() -> Iterable[str]:
    """Reached through the default route, and so in no list of routes."""
    try:
        with open("/etc/resolv.conf") as file:
            words = [line.split() for line in file]
    except FileNotFoundError:
        return
    for line in words:
        if len(line) > 1 and line[0] == "nameserver" and ":" not in line[1]:
            yield line[1]


def lay(control_plane: World, addresses: Addresses, link: str) -> None:
    """The bridge, and the cable to the machine.

    Its hardware address is ours to choose: a bridge takes that of one of its cables otherwise, and another one when a
    node goes or comes, and then nobody reaches it until they have asked for it anew.
    """
    subnet = f"{addresses.control_plane}/24"
    control_plane.sh(f"""
        ip link add nodes address {_hardware(0)} type bridge
        ip addr add {subnet} dev nodes
        ip link set nodes up
        echo 1 >/proc/sys/net/ipv4/ip_forward
    """)
    _ip("link", "add", link, "type", "veth", "peer", "name", "machine", "netns", str(control_plane.pid))
    control_plane.sh("ip link set machine master nodes up")
    _ip("addr", "add", f"{addresses.machine}/24", "dev", link)
    _ip("link", "set", link, "up")
    _ip("route", "add", addresses.whole, "via", addresses.control_plane, "dev", link)


def connect(control_plane: World, node: World, number: int, addresses: Addresses, nodes: int) -> None:
    """The cable to a node, and the ways to its pods."""
    me = addresses.node(number)
    # A node that comes back after it was killed finds its cable gone, or about to go with the old namespace.
    control_plane.sh(f"ip link del node{number} 2>/dev/null || true")
    _ip(
        "link",
        "add",
        "name",
        f"node{number}",
        "netns",
        str(control_plane.pid),
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "address",
        _hardware(number),
        "netns",
        str(node.pid),
    )
    others = "\n".join(
        f"ip route add {addresses.pods(other)} via {addresses.node(other)}"
        for other in range(1, nodes + 1)
        if other != number
    )
    node.sh(f"""
        ip addr add {me}/24 dev eth0
        ip link set eth0 up
        ip route add default via {addresses.control_plane}
        {others}
        echo 1 >/proc/sys/net/ipv4/ip_forward
    """)
    control_plane.sh(f"""
        ip link set node{number} master nodes up
        ip route replace {addresses.pods(number)} via {me}
        ip route replace {addresses.services} via {addresses.node(1)}
    """)


def _hardware(number: int) -> str:
    """Of the control plane (0) and the nodes; the same when a node comes back."""
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def links() -> set[str]:
    return {link["ifname"] for link in json.loads(_ip("-json", "link", "show") or "[]")}


def unlink(link: str) -> None:
    if link in links():
        subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
