"""What probes are told, on which port, and why not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from oarsman.control.health import Check, HealthServer, Metrics, Reachable, Turns, lease_is_renewed
from oarsman.errors import UsageError

HERE = "127.0.0.1"


def fine() -> str | None:
    return None


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HERE, 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def server(
    *,
    alive: Mapping[str, Check] | None = None,
    ready: Mapping[str, Check] | None = None,
    health: int,
    monitoring: int = 0,
) -> HealthServer:
    return HealthServer(
        alive=alive or {"loop": fine},
        ready=ready or {"informers": fine},
        metrics=Metrics(process=False),
        health_port=health,
        monitoring_port=monitoring,
        address=HERE,
    )


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://{HERE}:{port}{path}") as answer:
        return answer.status, await answer.text()


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HERE, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_port_serves_its_own_paths() -> None:
    async def story() -> None:
        health, monitoring = free_ports(2)
        served = server(health=health, monitoring=monitoring)
        await served.start()
        try:
            assert await ask(health, "/healthz") == (200, "ok\n")
            assert await ask(health, "/readyz") == (200, "ok\n")
            assert (await ask(health, "/metrics"))[0] == 404
            assert (await ask(monitoring, "/healthz"))[0] == 404
            status, text = await ask(monitoring, "/metrics")
            assert (status, "mpi_operator_is_leader 0.0\n" in text) == (200, True)
        finally:
            await served.stop()
        assert not await listens(health)

    run(story())


def test_one_port_can_serve_everything() -> None:
    async def story() -> None:
        (port,) = free_ports(1)
        served = server(health=port, monitoring=port)
        await served.start()
        try:
            assert [(await ask(port, path))[0] for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 200]
        finally:
            await served.stop()

    run(story())


def test_port_0_is_off() -> None:
    async def story() -> None:
        served = server(health=0, monitoring=0)
        await served.start()
        assert served._runners == []
        await served.stop()

    run(story())


def test_a_failure_tells_every_reason_in_plain_text() -> None:
    def broken() -> str | None:
        raise ZeroDivisionError("oh")

    async def story() -> None:
        (port,) = free_ports(1)
        checks = {"loop": lambda: "stuck", "fine": fine, "odd": broken}
        served = server(alive=checks, ready={"informers": lambda: "pods are not known yet"}, health=port)
        await served.start()
        try:
            status, text = await ask(port, "/healthz")
            assert status == 503
            assert text == "loop: stuck\nodd: the check failed: ZeroDivisionError('oh')\n"
            assert await ask(port, "/readyz") == (503, "informers: pods are not known yet\n")
        finally:
            await served.stop()

    run(story())


def test_a_taken_port_is_a_mistake_that_names_the_port_and_leaves_nothing_open() -> None:
    async def story() -> None:
        (port,) = free_ports(1)
        with socket.create_server((HERE, 0)) as taken:
            served = server(health=port, monitoring=taken.getsockname()[1])
            with pytest.raises(UsageError, match=f"port {taken.getsockname()[1]}"):
                await served.start()
        assert not await listens(port)

    run(story())


@dataclass
class Office:
    unrenewed_for: float | None
    duration: float = 15.0


@pytest.mark.parametrize(("seconds", "well"), [(None, True), (0.0, True), (34.0, True), (36.0, False)])
def test_a_leader_whose_lease_ended_long_ago_is_not_alive(seconds: float | None, well: bool) -> None:
    reason = lease_is_renewed(Office(seconds))()
    assert (reason is None) == well
    assert well or reason == "leads, but its lease was last renewed 36 s ago"


def test_a_turn_that_does_not_end_is_noticed_and_named() -> None:
    clock = Clock()
    turns = Turns(longest=60, clock=clock)
    assert turns() is None
    with turns.turn("ns/slow"):
        clock.now += 50
        with turns.turn("ns/quick"):
            clock.now += 11
            assert turns() == "the turn of ns/slow has not ended for 61 s"
    assert turns() is None


def test_an_api_server_that_stopped_answering_is_noticed_after_a_while() -> None:
    clock = Clock()
    reachable = Reachable(longest=30, clock=clock)
    assert reachable() == "the API server has not answered yet"
    reachable.request("list", "pods", 403, 0.1)
    assert reachable() is None
    clock.now += 100
    assert reachable() is None  # nothing was asked meanwhile
    reachable.request("list", "pods", 0, 0.1)
    clock.now += 20
    reachable.request("list", "pods", 503, 0.1)
    assert reachable() is None
    clock.now += 11
    assert reachable() == "the API server has not answered for 31 s"
    reachable.request("list", "pods", 200, 0.1)
    assert reachable() is None
