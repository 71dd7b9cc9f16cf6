"""Who gets the operator's metrics, over real connections; the cluster's answers are a table."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest

from oarsman.control.health import HealthServer, Metrics
from oarsman.control.metrics_access import MetricsReaders
from oarsman.engines.kube.client import Forbidden, Unavailable
from oarsman.errors import UsageError

from .test_health import HERE, Clock, fine, free_ports

KNOWN = {"prometheus-token": "prometheus", "user-token": "ada"}


class Tables:
    """A cluster that knows these tokens, and lets prometheus alone get /metrics."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.trouble: Exception | None = None
        self.free: asyncio.Event | None = None

    async def raw(self, method: str, path: str, *, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path.rpartition("/")[2], body["spec"]))
        if self.free is not None:
            await self.free.wait()
        if self.trouble is not None:
            raise self.trouble
        if body["kind"] == "TokenReview":
            user = KNOWN.get(body["spec"]["token"])
            return {"status": {"authenticated": user is not None, "user": {"username": user or "", "groups": ["all"]}}}
        asked = body["spec"]["nonResourceAttributes"]
        allowed = (body["spec"]["user"], asked) == ("prometheus", {"path": "/metrics", "verb": "get"})
        return {"status": {"allowed": allowed}}

    @property
    def reviews(self) -> int:
        return [kind for kind, _ in self.asked].count("tokenreviews")


def told(story: Callable[[Tables, MetricsReaders, Clock], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        tables, clock = Tables(), Clock()
        await story(tables, MetricsReaders(tables, clock=clock), clock)  # type: ignore[arg-type]

    asyncio.run(asyncio.wait_for(play(), 60))


async def scrape(port: int, **headers: str) -> tuple[int, str]:
    anybodys = ssl.create_default_context()
    anybodys.check_hostname, anybodys.verify_mode = False, ssl.CERT_NONE
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"https://{HERE}:{port}/metrics", ssl=anybodys, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


def test_metrics_are_for_whom_the_cluster_lets_read_them_and_probes_for_everybody() -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        health, monitoring = free_ports(2)
        served = HealthServer(
            alive={"loop": fine},
            ready={"informers": fine},
            metrics=Metrics(process=False),
            health_port=health,
            monitoring_port=monitoring,
            readers=readers,
            address=HERE,
        )
        await served.start()
        try:
            expected = {
                "": 401,
                "Basic prometheus-token": 401,
                "Bearer ": 401,
                "Bearer unknown": 401,
                "Bearer user-token": 403,
                "Bearer prometheus-token": 200,
                "bearer prometheus-token": 200,
            }
            for header, status in expected.items():
                found, text = await scrape(monitoring, Authorization=header)
                assert (found, "mpi_operator_is_leader" in text) == (status, status == 200), header
            async with aiohttp.ClientSession() as client:
                for path in ("/healthz", "/readyz"):
                    async with client.get(f"http://{HERE}:{health}{path}") as answer:
                        assert answer.status == 200
                with pytest.raises(aiohttp.ClientError):  # nobody's token is asked for in plain text
                    await client.get(f"http://{HERE}:{monitoring}/metrics")
        finally:
            await served.stop()

    told(story)


def test_a_right_is_believed_for_a_minute_and_its_loss_is_noticed_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        for _ in range(3):
            assert (await readers.verdict("Bearer prometheus-token")).status == 200
        assert tables.reviews == 1
        monkeypatch.delitem(KNOWN, "prometheus-token")
        clock.now += 59
        assert (await readers.verdict("Bearer prometheus-token")).status == 200
        clock.now += 2
        assert (await readers.verdict("Bearer prometheus-token")).status == 401
        assert tables.reviews == 2

    told(story)


def test_any_number_of_wrong_tokens_pushes_out_no_right_one() -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        await readers.verdict("Bearer prometheus-token")
        for number in range(200):
            assert (await readers.verdict(f"Bearer wrong-{number}")).status == 401
        asked = tables.reviews
        assert (await readers.verdict("Bearer prometheus-token")).status == 200
        assert tables.reviews == asked

    told(story)


def test_a_flood_of_tokens_reaches_the_cluster_as_a_trickle() -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        tables.free = asyncio.Event()
        flood = [asyncio.ensure_future(readers.verdict(f"Bearer wrong-{number}")) for number in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert tables.reviews == 2
        tables.free.set()
        answers = [(await one).status for one in flood]
        assert (answers.count(401), answers.count(503)) == (32, 68)

    told(story)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Forbidden("create tokenreviews", "no", status=403), "system:auth-delegator"),
        (Unavailable("create tokenreviews", "gone"), "does not answer"),
    ],
)
def test_where_tokens_cannot_be_checked_nobody_gets_in(trouble: Exception, words: str) -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        tables.trouble = trouble
        found = await readers.verdict("Bearer prometheus-token")
        assert (found.status, words in found.why) == (503, True)
        tables.trouble = None
        assert (await readers.verdict("Bearer prometheus-token")).status == 200

    told(story)


def test_what_cannot_be_a_token_is_not_sent_to_the_cluster() -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        for text in ("a b", "a\nb", "é", "x" * 20_000):
            assert (await readers.verdict(f"Bearer {text}")).status == 401
        assert tables.asked == []

    told(story)


def test_the_port_of_plain_probes_cannot_be_that_of_private_metrics() -> None:
    async def story(tables: Tables, readers: MetricsReaders, clock: Clock) -> None:
        (port,) = free_ports(1)
        metrics = Metrics(process=False)
        both = HealthServer(
            alive={}, ready={}, metrics=metrics, health_port=port, monitoring_port=port, readers=readers, address=HERE
        )
        with pytest.raises(UsageError, match=f"port {port} cannot serve both"):
            await both.start()

    told(story)
