"""Which network is chosen, and what the MPIs are told about it."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from ssh_hosts import Rack

from oarsman.engines.hosts.ssh import probe
from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.interfaces import Address, Networks, connecting, unopposed, variables
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble

LO = "lo 127.0.0.1/8"
DOCKER = "docker0 172.17.0.1/16"
LINK = "eth0 fe80::1/64"


def addresses(*texts: str) -> list[Address]:
    """`NAME ADDRESS/PREFIX [way-out] [down] [SPEED]`."""
    found = []
    for text in texts:
        name, own, *more = text.split()
        address, prefix = own.split("/")
        speed = next((int(word) for word in more if word.isdigit()), None)
        found.append(
            Address(
                interface=name,
                address=address,
                prefix=int(prefix),
                loopback=name == "lo",
                up="down" not in more,
                default_route="way-out" in more,
                speed=speed,
            )
        )
    return found


def facts(**hosts: list[str]) -> dict[str, list[Address]]:
    return {host: addresses(*texts) for host, texts in hosts.items()}


def connected(
    hosts: dict[str, list[Address]],
    wanted: dict[str, str] | None = None,
    reached: dict[str, str] | None = None,
    rdma: tuple[str, ...] = (),
) -> Networks:
    found = connecting(hosts, wanted or {}, reached=reached, rdma=rdma)
    assert isinstance(found, Networks), found
    return found


def troubled(hosts: dict[str, list[Address]], wanted: dict[str, str] | None = None) -> Trouble:
    found = connecting(hosts, wanted or {})
    assert isinstance(found, Trouble), found
    return found


PLAIN = facts(a=[LO, DOCKER, LINK, "eth0 10.0.0.1/24"], b=[LO, DOCKER, LINK, "eth0 10.0.0.2/24"])
NAMED_APART = facts(a=[LO, DOCKER, "eth0 10.0.0.1/24"], b=[LO, DOCKER, "ens3 10.0.0.2/24"])
ROUTED = facts(a=[LO, DOCKER, "eth0 10.1.0.1/24 way-out"], b=[LO, DOCKER, "ens3 10.2.0.1/24 way-out"])
TWO = facts(
    a=["eth0 10.0.0.1/24", "eth1 10.9.0.1/24"],
    b=["eth0 10.0.0.2/24", "eth1 10.9.0.2/24"],
)


@pytest.mark.parametrize(
    ("hosts", "network"),
    [
        (PLAIN, "10.0.0.0/24"),
        (NAMED_APART, "10.0.0.0/24"),
        # the way out leads furthest
        (
            facts(
                a=["eth0 10.0.0.1/24", "eth1 10.9.0.1/24 way-out"],
                b=["eth0 10.0.0.2/24", "eth1 10.9.0.2/24 way-out"],
            ),
            "10.9.0.0/24",
        ),
        # the faster one, where nothing else speaks for either
        (
            facts(a=["e0 10.0.0.1/24 1000", "e1 10.9.0.1/24 25000"], b=["e0 10.0.0.2/24 1000", "e1 10.9.0.2/24 25000"]),
            "10.9.0.0/24",
        ),
        # a chain is as fast as its slowest link
        (
            facts(a=["e0 10.0.0.1/24 1000", "e1 10.9.0.1/24 25000"], b=["e0 10.0.0.2/24 1000", "e1 10.9.0.2/24 100"]),
            "10.0.0.0/24",
        ),
        # a tunnel says a speed and is slow all the same
        (
            facts(a=["e0 10.0.0.1/24", "tun0 10.8.0.1/16 10"], b=["e0 10.0.0.2/24", "tun0 10.8.0.2/16 10"]),
            "10.0.0.0/24",
        ),
        # down
        (facts(a=["e0 10.0.0.1/24 down", "e1 10.9.0.1/24"], b=["e0 10.0.0.2/24", "e1 10.9.0.2/24"]), "10.9.0.0/24"),
        # one host lacks the larger network
        (facts(a=["e0 10.0.0.1/24", "e1 10.9.0.1/16"], b=["e0 10.0.0.2/24"]), "10.0.0.0/24"),
        # IPv6 where there is no IPv4 in common
        (facts(a=[LINK, DOCKER, "eth0 fd00::1/64"], b=[LINK, DOCKER, "eth0 fd00::2/64"]), "fd00::/64"),
        (facts(a=["eth0 fd00::1/64", "eth0 10.0.0.1/24"], b=["eth0 fd00::2/64", "eth0 10.0.0.2/24"]), "10.0.0.0/24"),
        # an address that moves between hosts is nobody's
        (facts(a=["e0 10.0.0.9/24", "e0 10.0.0.1/24"], b=["e0 10.0.0.9/24", "e0 10.0.0.2/24"]), "10.0.0.0/24"),
        (facts(a=[LO, DOCKER, "eth0 10.0.0.1/24 way-out"]), "10.0.0.0/24"),
        (facts(a=[LO]), "127.0.0.0/8"),
    ],
)
def test_the_network_that_all_hosts_share_is_chosen(hosts: dict[str, list[Address]], network: str) -> None:
    found = connected(hosts)
    assert found.network == network
    assert set(found.ends) == set(hosts)
    assert len({end.address for end in found.ends.values()}) == len(hosts)
    assert "10.0.0.9" not in {end.address for end in found.ends.values()}


def test_the_network_that_ssh_came_over_is_preferred() -> None:
    assert connected(TWO, reached={"a": "10.9.0.1", "b": "10.9.0.2"}).network == "10.9.0.0/24"
    assert connected(TWO, reached={"a": "10.0.0.1", "b": "10.0.0.2"}).network == "10.0.0.0/24"


@pytest.mark.parametrize(
    ("wanted", "network", "ends"),
    [
        ({"a": "eth1", "b": "eth1"}, "10.9.0.0/24", ("eth1", "eth1")),
        ({"a": "10.9.0.0/24", "b": "eth1"}, "10.9.0.0/24", ("eth1", "eth1")),
        ({"a": "eth1"}, "10.9.0.0/24", ("eth1", "eth1")),
        ({"a": "10.0.0.0/8", "b": "10.0.0.0/8"}, "10.0.0.0/8", ("eth0", "eth0")),
        ({"a": "10.9.0.7/24", "b": "10.9.0.7/24"}, "10.9.0.0/24", ("eth1", "eth1")),
    ],
)
def test_what_the_inventory_names_is_used(wanted: dict[str, str], network: str, ends: tuple[str, str]) -> None:
    found = connected(TWO, wanted, reached={"a": "10.0.0.1", "b": "10.0.0.2"})
    assert found.network == network
    assert tuple(end.interface for end in found.ends.values()) == ends


@pytest.mark.parametrize("wanted", ["eth7", "192.168.0.0/16", "docker7", "lo", "nonsense/99"])
def test_a_network_that_a_host_does_not_have_is_named_with_what_it_has(wanted: str) -> None:
    found = troubled(PLAIN, {"b": wanted})
    assert found.kind == "interface"
    assert "b has no" in found.message
    assert wanted in found.message
    assert "eth0 (10.0.0.2/24)" in found.message


def test_hosts_behind_routers_use_the_addresses_that_ssh_uses() -> None:
    hosts = facts(a=[LO, DOCKER, "e0 10.1.0.1/24", "e1 10.3.0.1/24"], b=[LO, DOCKER, "e0 10.2.0.1/24"])
    found = connected(hosts, reached={"a": "10.3.0.1", "b": "10.2.0.1"})
    assert [end.address for end in found.ends.values()] == ["10.3.0.1", "10.2.0.1"]
    assert found.network == ""
    assert found.avoid == ("127.0.0.0/8", "10.1.0.0/24", "172.17.0.0/16")


def test_hosts_behind_routers_otherwise_use_their_way_out() -> None:
    assert [end.interface for end in connected(ROUTED).ends.values()] == ["eth0", "ens3"]


def test_a_host_that_cannot_tell_its_addresses_has_the_one_that_ssh_came_to() -> None:
    found = connected(facts(a=[], b=["e0 10.2.0.1/24"]), reached={"a": "10.3.0.1", "b": "10.2.0.1"})
    assert [end.address for end in found.ends.values()] == ["10.3.0.1", "10.2.0.1"]
    assert "PRTE_MCA_prte_if_include" not in variables(found, "a")


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (facts(a=["e0 10.0.2.15/24 way-out"], b=["e0 10.0.2.15/24 way-out"]), "a and b have the same addresses"),
        (facts(a=["e0 10.0.0.1/24"], b=[LO, LINK]), "b has no address"),
        (facts(a=["e0 10.0.0.1/24"], b=["e0 10.1.0.1/24"]), "a: e0 (10.0.0.1/24); b: e0 (10.1.0.1/24)"),
        (facts(a=["e0 10.0.0.1/24 way-out"], b=["e0 fd00::1/64 way-out"]), "no network connects"),
        (facts(a=[DOCKER, "e0 10.0.0.1/24"], b=[DOCKER, "e0 10.1.0.1/24"]), "no network connects"),
        (facts(a=[]), "a has no address"),
    ],
)
def test_hosts_that_nothing_connects_are_told_apart(hosts: dict[str, list[Address]], said: str) -> None:
    found = troubled(hosts)
    assert found.kind == "no-network"
    assert said in found.message
    assert found.hint


ONE_NAME = {
    "HYDRA_IFACE": "eth0",
    "I_MPI_HYDRA_IFACE": "eth0",
    "FI_TCP_IFACE": "eth0",
    "FI_SOCKETS_IFACE": "eth0",
    "NCCL_SOCKET_IFNAME": "=eth0",
    "GLOO_SOCKET_IFNAME": "eth0",
    "UCX_NET_DEVICES": "eth0",
    "PRTE_MCA_prte_if_include": "eth0",
}


def test_every_mpi_is_told_in_its_own_words() -> None:
    told = {"OMPI_MCA_btl_tcp_if_include": "10.0.0.0/24", "OMPI_MCA_oob_tcp_if_include": "10.0.0.0/24"}
    assert variables(connected(PLAIN), "b") == ONE_NAME | told


def test_ipv6_is_told_by_name_as_open_mpi_knows_no_ranges_of_it() -> None:
    found = connected(facts(a=["eth0 fd00::1/64"], b=["eth0 fd00::2/64"]))
    assert variables(found, "a") == ONE_NAME | {
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "OMPI_MCA_oob_tcp_if_include": "eth0",
    }


def test_where_names_differ_each_host_is_told_its_own_and_hydra_nothing() -> None:
    found = connected(NAMED_APART)
    assert not found.same_names
    told = variables(found, "b")
    assert told["NCCL_SOCKET_IFNAME"] == "=ens3"
    assert told["FI_TCP_IFACE"] == "ens3"
    assert told["PRTE_MCA_prte_if_include"] == "eth0,ens3"
    assert told["OMPI_MCA_btl_tcp_if_include"] == "10.0.0.0/24"
    assert not any("HYDRA" in name for name in told)


def test_behind_routers_open_mpi_is_told_what_not_to_use() -> None:
    told = variables(connected(ROUTED), "a")
    assert told["OMPI_MCA_btl_tcp_if_exclude"] == "127.0.0.0/8,172.17.0.0/16"
    assert told["OMPI_MCA_oob_tcp_if_include"] == "eth0,ens3"
    assert "OMPI_MCA_btl_tcp_if_include" not in told


def test_infiniband_of_any_host_is_not_switched_off() -> None:
    assert "UCX_NET_DEVICES" not in variables(connected(PLAIN, rdma=("a",)), "b")


def test_a_host_without_any_network_is_told_nothing() -> None:
    assert variables(connected(facts(a=[LO])), "a") == {}


@pytest.mark.parametrize(
    ("environment", "command", "gone"),
    [
        ([], ["mpirun", "-n", "2", "true"], set()),
        ([], ["mpirun", "--mca", "btl_tcp_if_exclude", "docker0,lo", "true"], {"OMPI_MCA_btl_tcp_if_include"}),
        ([], ["sh", "-c", "mpirun --mca btl_tcp_if_include eth1 true"], {"OMPI_MCA_btl_tcp_if_include"}),
        (["OMPI_MCA_btl_tcp_if_exclude"], [], {"OMPI_MCA_btl_tcp_if_include"}),
        (["PRTE_MCA_oob_tcp_if_exclude"], [], {"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}),
        ([], ["mpiexec", "-iface", "eth1", "true"], {"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"}),
        (["NCCL_SOCKET_IFNAME"], [], {"NCCL_SOCKET_IFNAME"}),
    ],
)
def test_what_the_user_decides_takes_back_what_would_contradict(
    environment: list[str], command: list[str], gone: set[str]
) -> None:
    told = variables(connected(PLAIN), "a")
    assert set(told) - set(unopposed(told, environment, command)) == gone


# -- real MPIs on real hosts, each of which has a docker0 of the same address --------------------------------------
MPIS = Path(__file__).resolve().parents[4] / ".mpi"
EXCHANGE = """
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Bcast(bytearray(1 << 20))
print(world.rank, world.allreduce(1), MPI.Get_processor_name())
"""
WORDS = {
    "openmpi4": "--host {0}:2,{1}:2 --prefix {2} --mca pml ob1 --mca btl self,tcp",
    "openmpi5": "--host {0}:2,{1}:2 --prefix {2} --mca pml ob1 --mca btl self,tcp",
    "mpich": "-hosts {0},{1} -ppn 2",
    "intel": "-hosts {0},{1} -ppn 2",
}


def found_on(rack: Rack) -> Networks:
    hosts = tuple(SshHost(name=host.name) for host in rack[:2])
    ssh = Ssh(Inventory(file=rack.folder / "hosts.yaml", hosts=hosts, ssh_config=str(rack.ssh_config)))

    async def ask(host: SshHost) -> probe.HostFacts:
        return probe.parse((await ssh.run(host, probe.script(host, patience=30), timeout=120)).out)

    said = asyncio.run(on_all(hosts, ask))
    return connected(
        {name: list(own.addresses) for name, own in said.items()},
        reached={name: own.reached for name, own in said.items()},
    )


@pytest.mark.mpi
@pytest.mark.parametrize("kind", WORDS)
def test_ranks_on_hosts_with_the_same_docker0_reach_each_other(kind: str, rack: Rack) -> None:
    rack.trust()
    networks = found_on(rack)
    first, second = (end.address for end in networks.ends.values())
    assert (first, second) == (rack[0].address, rack[1].address)
    folder = MPIS / kind
    told = [f"{name}={value}" for name, value in variables(networks, "node1").items()]
    words = WORDS[kind].format(first, second, folder).split()
    launch = [f"{folder}/bin/mpirun", *words, "-n", "4", f"{folder}/bin/python", "-c", EXCHANGE]
    path = f"PATH={folder}/bin:/usr/bin:/bin"  # Intel's mpirun looks there for the rest of itself
    done = rack.ssh("node1", shlex.join(["env", "-C", "/tmp", path, *told, *launch]))
    assert sorted(done.stdout.split("\n")[:-1]) == ["0 4 node1", "1 4 node1", "2 4 node2", "3 4 node2"], done
