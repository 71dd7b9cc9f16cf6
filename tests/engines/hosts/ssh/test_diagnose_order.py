"""Hosts are told of in the order of the inventory, whoever answers first. Their answers are given here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.diagnose import Finding, diagnosis
from oarsman.engines.hosts.ssh.diagnose.diagnosis import Diagnosis
from oarsman.engines.hosts.ssh.diagnose.judge import CONNECTED, HostSeen, WaySeen
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble

from .test_diagnose import FACTS

HOSTS = tuple(SshHost(name=name) for name in ("node3", "node1", "node2"))
SILENT = Trouble("timeout", "no answer")


class Answers:
    """Each host answers when the one that is to answer before it has; those with a broken folder mend it at once."""

    def __init__(self, turns: Sequence[str], *, silent: Sequence[str] = (), broken: Sequence[str] = ()) -> None:
        self._turns, self._silent, self._broken = turns, silent, set(broken)
        self._answered = {name: asyncio.Event() for name in turns}

    async def ask(self, _: Ssh, host: SshHost) -> HostSeen:
        place = self._turns.index(host.name)
        if place:
            await self._answered[self._turns[place - 1]].wait()
        self._answered[host.name].set()
        if host.name in self._silent:
            return HostSeen(host=host, trouble=SILENT)
        problem = "it vanished" if host.name in self._broken else ""
        self._broken.discard(host.name)
        return HostSeen(host=host, facts=replace(FACTS, folder_problem=problem))


async def every_way(
    _: Ssh, seen: Sequence[HostSeen], addresses: Mapping[str, str]
) -> tuple[dict[str, HostSeen], list[WaySeen]]:
    ways = [
        WaySeen(host=one.host.name, other=other.host, address="", code=0, call=CONNECTED)
        for one in seen
        for other in reversed(seen)
        if one is not other
    ]
    return {one.host.name: one for one in seen}, ways


@pytest.mark.parametrize("turns", ["node3 node1 node2", "node2 node1 node3", "node1 node3 node2"])
@pytest.mark.parametrize(("silent", "broken"), [([], []), (["node1"], []), ([], ["node3"]), (["node3"], ["node1"])])
def test_hosts_and_the_ways_between_them_are_told_of_in_the_order_of_the_inventory(
    monkeypatch: pytest.MonkeyPatch, turns: str, silent: list[str], broken: list[str]
) -> None:
    told: list[Sequence[Finding]] = []

    async def check() -> None:
        monkeypatch.setattr(diagnosis, "ask", Answers(turns.split(), silent=silent, broken=broken).ask)
        monkeypatch.setattr(diagnosis, "try_ways", every_way)
        await Diagnosis(Ssh(Inventory(file=Path("/hosts"), hosts=HOSTS)), HOSTS, told.append).run()

    asyncio.run(check())
    order = [host.name for host in HOSTS]
    alone = [found[0].host for found in told if found[0].step == "name" and not found[0].other]
    assert alone == order
    assert not [finding for found in told for finding in found if finding.step == "folder" and finding.level == "fail"]
    ways = list(dict.fromkeys((finding.host, finding.other) for found in told for finding in found if finding.other))
    there = [name for name in order if name not in silent]
    assert ways == [(one, other) for one in there for other in there if one != other]
