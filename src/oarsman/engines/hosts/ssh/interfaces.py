"""Which network connects the hosts of a job, and what each MPI has to be told so that it uses that one alone.

Left to itself an MPI takes every interface, and believes that two hosts with a docker0 of 172.17.0.1 meet there.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.text.sentence import Text, sentences

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Known: TypeAlias = Mapping[str, Sequence["Address"]]  # by host
_VIRTUAL = (
    *("docker", "br-", "virbr", "vmnet", "vboxnet", "podman", "lxc", "lxd", "nerdctl"),
    *("veth", "cni", "flannel", "cali", "cilium", "weave", "kube", "vxlan", "tun", "tap", "wg", "tailscale", "zt"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    interface: str  # empty: not known
    address: str
    prefix: int
    up: bool = True
    loopback: bool = False
    point_to_point: bool = False
    default_route: bool = False
    speed: int | None = None  # Mbit/s; None: unknown, as with most virtual machines

    def __str__(self) -> str:
        return f"{self.interface or '?'} ({self.address}/{self.prefix})"

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.address)

    @property
    def network(self) -> Network:
        return ipaddress.ip_network(f"{self.address}/{self.prefix}", strict=False)

    @property
    def usable(self) -> bool:
        """Whether another host could ever connect to it."""
        return self.up and not (self.loopback or self.ip.is_loopback or self.ip.is_link_local or self.ip.is_multicast)

    @property
    def virtual(self) -> bool:
        return self.interface.startswith(_VIRTUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    ends: Mapping[str, Address]  # by host
    network: str = ""  # the one range that all ends are in; empty: they reach each other through routers
    avoid: tuple[str, ...] = ()  # ranges that the hosts have, and that do not connect them
    rdma: bool = False  # a host has InfiniBand or its like, which a choice among interfaces must not switch off

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The names in use, each once; none if one is unknown."""
        names = tuple(dict.fromkeys(end.interface for end in self.ends.values()))
        return names if all(names) else ()

    @property
    def same_names(self) -> bool:
        return len(self.interfaces) == 1


def connecting(
    facts: _Known, wanted: Mapping[str, str], *, reached: Mapping[str, str] | None = None, rdma: Collection[str] = ()
) -> Networks | Trouble:
    """The network for these hosts.

    `wanted` is what the inventory says (a name or a range), `reached` each host's own address that ssh came to, and
    `rdma` the hosts with InfiniBand or its like.
    """
    reached = reached or {}
    candidates: dict[str, list[Address]] = {}
    for host, addresses in facts.items():
        candidates[host] = _wanted(addresses or _only(reached.get(host)), wanted.get(host, ""))
        if wanted.get(host) and not candidates[host]:
            there = ", ".join(map(str, addresses)) or Text("no network that is known")
            template = Text("{host} has no working network {wanted}; it has {there}")
            message = Text(template, host=host, wanted=wanted[host], there=there)
            return Trouble("interface", message, Text("correct the interface of the host in the inventory"))
    if len(facts) == 1 and not any(candidates.values()):
        candidates = {host: [address for address in addresses if address.loopback] for host, addresses in facts.items()}
    found = _in_one_range(candidates, wanted, reached) or _through_routers(facts, candidates, reached)
    return found if isinstance(found, Trouble) else replace(found, rdma=any(host in rdma for host in facts))


def _only(address: str | None) -> list[Address]:
    """A host that could not tell its addresses has at least the one that ssh came to."""
    if not address:
        return []
    return [Address(interface="", address=address, prefix=ipaddress.ip_address(address).max_prefixlen)]


def _range(wanted: str) -> Network | None:
    """None: it is the name of an interface."""
    try:
        return ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return None


def _wanted(addresses: Iterable[Address], wanted: str) -> list[Address]:
    usable = [address for address in addresses if address.usable]
    if network := _range(wanted):
        return [address for address in usable if address.ip in network]
    return [address for address in usable if wanted in ("", address.interface)]


def _in_one_range(candidates: _Known, wanted: Mapping[str, str], reached: Mapping[str, str]) -> Networks | None:
    """The best range in which each host has an address that no other host has."""
    holders = Counter(own for addresses in candidates.values() for own in {address.address for address in addresses})
    rooms: dict[Network, dict[str, list[Address]]] = {}
    for host, addresses in candidates.items():
        for address in addresses:
            if holders[address.address] == 1:
                network = _range(wanted.get(host, "")) or address.network
                rooms.setdefault(network, {}).setdefault(host, []).append(address)
    common = {
        network: {host: _best(room[host], reached.get(host)) for host in candidates}
        for network, room in rooms.items()
        if len(room) == len(candidates)
    }
    if not common:
        return None
    network = max(common, key=lambda network: _merit(network, common[network], reached))
    return Networks(ends=common[network], network=str(network), avoid=_others(candidates, common[network]))


def _best(addresses: Sequence[Address], reached: str | None) -> Address:
    return max(addresses, key=lambda own: (own.address == reached, own.default_route, not own.virtual))


def _merit(network: Network, ends: Mapping[str, Address], reached: Mapping[str, str]) -> tuple[object, ...]:
    """What is known to work counts most: ssh came over it; then how far it leads, its kind, speed and size."""
    return (
        network.version == 4,
        sum(ipaddress.ip_address(reached[host]) in network for host in ends if reached.get(host)),
        sum(end.default_route for end in ends.values()),
        not any(end.virtual for end in ends.values()),
        min(end.speed or 0 for end in ends.values()),
        network.num_addresses,
        str(network),
    )


def _through_routers(facts: _Known, candidates: _Known, reached: Mapping[str, str]) -> Networks | Trouble:
    """No range in common: the addresses that ssh uses, or those with a way out, are the best that is known."""
    for version in (4, 6):
        ends = {}
        for host, addresses in candidates.items():
            known = [own for own in addresses if own.ip.version == version]
            used = [own for own in known if own.address == reached.get(host)]
            if used := used or [own for own in known if own.default_route]:
                ends[host] = used[0]
        if len(ends) == len(facts) and len({end.address for end in ends.values()}) == len(ends):
            return Networks(ends=ends, avoid=_others(facts, ends))
    return _no_network(facts, candidates)


def _no_network(facts: _Known, candidates: _Known) -> Trouble:
    hint = Text("name the network of each host in the inventory (interface: eth1, or interface: 10.0.0.0/24)")
    lonely = next((host for host in facts if not candidates[host]), None)
    if lonely is not None:
        message = Text("{host} has no address that another host could connect to", host=lonely)
        return Trouble("no-network", message, hint)
    owners: dict[frozenset[str], str] = {}
    for host, addresses in candidates.items():
        other = owners.setdefault(frozenset(own.address for own in addresses), host)
        if other != host:
            template = Text("{one} and {other} have the same addresses, as if they were one machine")
            hint = Text("leave one of them out of the inventory, or give each its own address")
            return Trouble("no-network", Text(template, one=other, other=host), hint)
    all_of_them = sentences(
        Text("{host}: {why}", host=host, why=", ".join(map(str, own)) or Text("none"))
        for host, own in candidates.items()
    )
    return Trouble("no-network", Text("no network connects the hosts ({all})", all=all_of_them), hint)


def _others(facts: _Known, ends: Mapping[str, Address]) -> tuple[str, ...]:
    """IPv4 ranges of the hosts without any of the chosen addresses; MPI knows no other kind of range."""
    chosen = [end.ip for end in ends.values()]
    ranges = {own.network for addresses in facts.values() for own in addresses if own.ip.version == 4}
    ranges = {network for network in ranges if not network.is_loopback and not any(ip in network for ip in chosen)}
    return ("127.0.0.0/8", *sorted(map(str, ranges)))


def variables(networks: Networks, host: str) -> dict[str, str]:
    """What the MPIs and their friends read, for a process on this host: defaults, which a user's own values replace.

    Left alone on purpose: PMIx, whose daemons speak with the ranks of their own host, and MPICH's MPIR_CVAR_CH3_*, of
    which Hydra sets one itself, from HYDRA_IFACE or the hostfile, and MPICH refuses two.
    """
    end = networks.ends[host]
    if end.loopback:
        return {}  # one host alone: PRRTE refuses to use nothing but loopback, and nobody needs to be told
    told = _open_mpi(networks)
    if networks.same_names:  # Hydra has one name for all hosts
        told |= {"HYDRA_IFACE": end.interface, "I_MPI_HYDRA_IFACE": end.interface}
    if end.interface:
        told |= {"FI_TCP_IFACE": end.interface, "FI_SOCKETS_IFACE": end.interface}
        told |= {"NCCL_SOCKET_IFNAME": f"={end.interface}", "GLOO_SOCKET_IFNAME": end.interface}
        if not networks.rdma:  # a list for UCX is of all devices, so that InfiniBand would be left out
            told["UCX_NET_DEVICES"] = end.interface
    return told


def _open_mpi(networks: Networks) -> dict[str, str]:
    """The same on every host, as mpirun hands it on: so no list of ranges, as it warns of each that a host lacks."""
    told = {}
    in_ipv4 = networks.network and ipaddress.ip_network(networks.network).version == 4
    if in_ipv4 or networks.same_names:
        only = networks.network if in_ipv4 else networks.interfaces[0]
        told = {"OMPI_MCA_btl_tcp_if_include": only, "OMPI_MCA_oob_tcp_if_include": only}
    else:
        told["OMPI_MCA_btl_tcp_if_exclude"] = ",".join(networks.avoid)
        if networks.interfaces:
            told["OMPI_MCA_oob_tcp_if_include"] = ",".join(networks.interfaces)
    if networks.interfaces:  # names: PRRTE 3 does not find the range of an interface that has an IPv6 address as well
        told["PRTE_MCA_prte_if_include"] = ",".join(networks.interfaces)
    return told


def unopposed(told: Mapping[str, str], environment: Iterable[str], command: Iterable[str]) -> dict[str, str]:
    """Without what the user has decided, by a variable's name or in the words of the command.

    Open MPI uses no TCP at all if one says what to use and the other what not to use: one word of the user's on the
    subject, such as the well-known `--mca btl_tcp_if_exclude docker0,lo`, takes back all of ours.
    """
    names = set(environment)
    said = "\n".join([*names, *command])
    opposed = set()
    if "btl_tcp_if_" in said:
        opposed |= {name for name in told if "btl_tcp_if_" in name}
    if "oob_tcp_if_" in said or "prte_if_" in said:  # two names of one thing in PRRTE
        opposed |= {name for name in told if "oob_tcp_if_" in name or "prte_if_" in name}
    if "-iface" in said:
        opposed |= {"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"}
    return {name: value for name, value in told.items() if name not in names | opposed}
