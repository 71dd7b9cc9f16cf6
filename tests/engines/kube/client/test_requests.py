"""What the client does when an API server, or the way to it, misbehaves."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from oarsman.engines.kube.client import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    Kube,
    Meta,
    NotFound,
    PartialObject,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreadable,
    on_behalf_of,
    resources,
)
from oarsman.engines.kube.client.resources import CONFIG_MAPS, NODES, PODS, SERVICES

from .fakes import FakeServer, cut, fake, listing, pod, refuse, reply, slow, stream, until

CONFIG_MAP = {"metadata": {"name": "a"}}


class Phase(msgspec.Struct):
    phase: str


class PodView(msgspec.Struct):
    metadata: Meta
    status: Phase | None = None


async def test_a_request_refused_for_now_is_sent_again_after_the_time_the_server_asks_for() -> None:
    busy = refuse(429, "TooManyRequests", headers={"Retry-After": "1"})
    async with fake(busy, reply(CONFIG_MAP)) as (server, kube):
        started = time.monotonic()
        await kube.create(CONFIG_MAPS, CONFIG_MAP, "default")
        assert time.monotonic() - started >= 1
        assert server.targets() == ["POST /api/v1/namespaces/default/configmaps"] * 2


async def test_a_server_that_never_has_time_is_given_up_after_five_tries() -> None:
    async with fake(refuse(429, "TooManyRequests")) as (server, kube):
        with pytest.raises(TooManyRequests) as caught:
            await kube.create(CONFIG_MAPS, CONFIG_MAP, "default")
        assert caught.value.retryable
        assert len(server.seen) == 5


async def test_503_with_retry_after_lets_even_a_create_be_sent_again() -> None:
    async with fake(refuse(503, headers={"Retry-After": "0"}), reply(CONFIG_MAP)) as (server, kube):
        await kube.create(CONFIG_MAPS, CONFIG_MAP, "default")
        assert len(server.seen) == 2


@pytest.mark.parametrize("trouble", [cut, refuse(503), refuse(500, message="etcdserver: leader changed")])
async def test_what_may_have_been_done_is_not_repeated(trouble: Any) -> None:
    async with fake(trouble) as (server, kube):
        for request in (
            kube.create(CONFIG_MAPS, CONFIG_MAP, "default"),
            kube.patch(CONFIG_MAPS, "a", {}, "default"),
        ):
            with pytest.raises(Unavailable) as caught:
                await request
            assert caught.value.retryable
        assert [request.method for request in server.seen] == ["POST", "PATCH"]


@pytest.mark.parametrize("trouble", [cut, refuse(503), refuse(500, message="etcdserver: request timed out")])
async def test_what_only_reads_or_deletes_is_repeated(trouble: Any) -> None:
    async with fake(trouble, reply(CONFIG_MAP), trouble, reply(), trouble, listing()) as (server, kube):
        assert await kube.get(CONFIG_MAPS, "a", "default") == CONFIG_MAP
        assert await kube.delete(CONFIG_MAPS, "a", "default", uid="a")
        assert await kube.list(CONFIG_MAPS) == []
        assert {request.method for request in server.seen} == {"GET", "DELETE"}


async def test_a_server_that_comes_back_in_time_is_not_noticed_as_gone() -> None:
    server = FakeServer(reply(CONFIG_MAP))
    await server.start()
    await server.stop()
    async with Kube(server.access) as kube:
        asked = asyncio.ensure_future(kube.get(CONFIG_MAPS, "a", "default"))
        await asyncio.sleep(0)
        await server.start()
        assert await asked == CONFIG_MAP
    await server.stop()


async def test_a_server_that_is_not_there_is_unavailable_and_named() -> None:
    server = FakeServer()
    await server.start()
    await server.stop()
    async with Kube(server.access) as kube:
        with pytest.raises(Unavailable, match=rf"create configmaps default/a: .*{server.port}"):
            await kube.create(CONFIG_MAPS, CONFIG_MAP, "default")


async def test_a_slow_answer_is_given_up_once_and_not_waited_for_five_times() -> None:
    async with fake(slow(20), timeout=0.2) as (server, kube):
        with pytest.raises(Unavailable) as caught:
            await kube.get(PODS, "a", "default")
        assert caught.value.reason == "Timeout"
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "reason", "kind", "retryable"),
    [
        (400, "BadRequest", Invalid, False),
        (401, "Unauthorized", Unauthorized, False),
        (403, "Forbidden", Forbidden, False),
        (404, "NotFound", NotFound, False),
        (405, "MethodNotAllowed", ApiError, False),
        (409, "AlreadyExists", AlreadyExists, False),
        (409, "Conflict", Conflict, True),
        (410, "Expired", Gone, True),
        (422, "Invalid", Invalid, False),
        (500, "InternalError", Unavailable, True),
        (504, "Timeout", Unavailable, True),
    ],
)
async def test_every_refusal_has_a_type_of_its_own(status: int, reason: str, kind: type, retryable: bool) -> None:
    async with fake(refuse(status, reason, "because")) as (_, kube):
        with pytest.raises(kind) as caught:
            await kube.create(PODS, {"metadata": {"generateName": "a-"}}, "ns")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.reason, error.message, error.retryable) == (status, reason, "because", retryable)
    assert str(error) == f"create pods ns/a-*: because ({status} {reason})"


async def test_what_the_server_found_wrong_is_listed_field_by_field() -> None:
    causes = [{"field": "spec.x", "message": "Required value", "reason": "FieldValueRequired"}]
    async with fake(refuse(422, "Invalid", details={"causes": causes})) as (_, kube):
        with pytest.raises(Invalid) as caught:
            await kube.create(PODS, {}, "ns")
    assert [(cause.field, cause.message) for cause in caught.value.causes] == [("spec.x", "Required value")]
    assert caught.value.field == "spec.x"


async def test_an_answer_of_something_in_front_of_the_server_is_shown() -> None:
    async with fake(reply(b"<html>Bad Gateway</html>", 502)) as (_, kube):
        with pytest.raises(Unavailable, match="Bad Gateway"):
            await kube.create(PODS, {}, "ns")


async def test_an_answer_that_is_no_object_says_so() -> None:
    async with fake(reply(b"<html>Welcome</html>")) as (_, kube):
        with pytest.raises(Unreadable, match="get pods ns/a: the answer cannot be read"):
            await kube.get(PODS, "a", "ns")


async def test_deleting_what_is_gone_or_what_has_a_successor_is_no_error() -> None:
    another = refuse(409, "Conflict", "Precondition failed: UID in precondition: a, UID in object meta: b")
    async with fake(reply(), refuse(404, "NotFound"), another, refuse(409, "Conflict", "changed")) as (server, kube):
        assert await kube.delete(PODS, "a", "ns", uid="a")
        assert not await kube.delete(PODS, "a", "ns", uid="a")
        assert not await kube.delete(PODS, "a", "ns", uid="a")
        with pytest.raises(Conflict):
            await kube.delete(PODS, "a", "ns", uid="a")
        options = {"propagationPolicy": "Background", "preconditions": {"uid": "a"}}
        assert msgspec.json.decode(server.bodies[0]) == options


async def test_a_list_comes_in_pages() -> None:
    pages = (listing(pod("a", 1), version=9, more="next"), listing(pod("b", 2), version=9))
    async with fake(*pages) as (server, kube):
        found = await kube.list(PODS, "default", view=PartialObject)
        assert [one.metadata.name for one in found] == ["a", "b"]
        assert [dict(request.query) for request in server.seen] == [
            {"limit": "500"},
            {"limit": "500", "continue": "next"},
        ]


async def test_a_list_whose_place_the_server_forgot_starts_over() -> None:
    pages = (listing(pod("old", 1), more="next"), refuse(410, "Expired"), listing(pod("new", 2)))
    async with fake(*pages) as (_, kube):
        assert [one.metadata.name for one in await kube.list(PODS, view=PartialObject)] == ["new"]


async def test_a_list_that_cannot_be_had_in_pages_is_taken_whole() -> None:
    begun, forgotten = listing(pod("old", 1), more="next"), refuse(410, "Expired")
    async with fake(begun, forgotten, begun, forgotten, listing(pod("new", 2))) as (server, kube):
        assert [one.metadata.name for one in await kube.list(PODS, view=PartialObject)] == ["new"]
        assert "limit" not in server.seen[-1].query


async def test_lists_without_items_are_empty_however_the_server_writes_it() -> None:
    async with fake(reply({"metadata": {"resourceVersion": "1"}, "items": None})) as (_, kube):
        assert await kube.list(PODS) == []


async def test_one_odd_object_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    good, odd = pod("good", 1) | {"status": {"phase": "Running"}}, pod("odd", 2) | {"status": {"phase": 7}}
    async with fake(listing(good, odd, good)) as (_, kube):
        assert [one.metadata.name for one in await kube.list(PODS, view=PodView)] == ["good", "good"]
    assert "default/odd cannot be read and is left out" in caplog.text


async def test_objects_of_a_megabyte_go_both_ways() -> None:
    large = {"metadata": {"name": "a"}, "data": {"x": "y" * 2_000_000}}
    async with fake(reply(large)) as (server, kube):
        assert await kube.create(CONFIG_MAPS, large, "default") == large
        assert msgspec.json.decode(server.bodies[0]) == large


async def test_log_lines_of_any_length_survive() -> None:
    pieces = (b"first\nse", b"cond\n\n", b"x" * 1_000_000, b"x" * 1_000_000 + b"\nlast")
    async with fake(stream(*pieces)) as (server, kube):
        found = [line async for line in kube.log("a", "ns", container="c", follow=True, tail=3, timestamps=True)]
        assert [len(line) for line in found] == [5, 6, 0, 2_000_000, 4]
        query = {"container": "c", "follow": "true", "tailLines": "3", "timestamps": "true"}
        assert dict(server.seen[0].query) == query


async def test_a_log_that_breaks_off_says_so_after_what_it_had() -> None:
    async with fake(stream(b"one\n", then="break")) as (_, kube):
        log = kube.log("a", "ns")
        assert await anext(log) == b"one"
        with pytest.raises(Unavailable, match="get pods/log ns/a"):
            await anext(log)


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    most = now = 0

    async def counting(request: Any) -> Any:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return await reply()(request)

    async with fake(counting, concurrency=3) as (_, kube):
        await asyncio.gather(*(kube.get(NODES, str(number)) for number in range(12)))
    assert most == 3


async def test_requests_for_a_small_job_do_not_wait_behind_all_those_for_a_large_one() -> None:
    async with fake(slow(0.01), concurrency=2) as (server, kube):

        async def ask(job: str, count: int) -> None:
            on_behalf_of.set(job)
            await asyncio.gather(*(kube.get(NODES, f"{job}-{number}") for number in range(count)))

        large = asyncio.create_task(ask("large", 30))
        await asyncio.sleep(0)  # every request of it is in the queue
        await asyncio.sleep(0)
        given_up = asyncio.create_task(ask("impatient", 1))
        await asyncio.sleep(0)
        given_up.cancel()
        await ask("small", 2)
        asked = [request.path.rsplit("/", 1)[1] for request in server.seen]
        assert asked.index("small-1") < 8
        await large
        assert len(server.seen) >= 32
        await ask("late", 3)  # every place was given back


async def test_after_a_burst_requests_keep_to_the_rate() -> None:
    async with fake(reply(), rate=(50, 5)) as (_, kube):
        started = time.monotonic()
        await asyncio.gather(*(kube.get(NODES, str(number)) for number in range(15)))
        assert time.monotonic() - started >= 0.19


async def test_every_try_is_observed() -> None:
    observed: list[tuple[str, str, int]] = []

    def observe(verb: str, plural: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        observed.append((verb, plural, status))

    async with fake(refuse(429), refuse(404, "NotFound"), cut, observe=observe) as (_, kube):
        assert not await kube.delete(PODS, "a", "ns", uid="a")
        with pytest.raises(Unavailable):
            await kube.create(PODS, {}, "ns")
    assert observed == [("delete", "pods", 429), ("delete", "pods", 404), ("create", "pods", 0)]


async def test_discovery_is_asked_once_a_minute_and_knows_what_is_missing() -> None:
    async with fake(refuse(404, "NotFound"), reply({"resources": [{"name": "pods"}]})) as (server, kube):
        assert not await kube.has(resources.MPIJOBS)
        assert await kube.has(PODS)
        assert await kube.has(PODS)
        assert not await kube.has(SERVICES)
        assert server.targets() == ["GET /apis/kubeflow.org/v2beta1", "GET /api/v1"]


async def test_the_version_of_a_server_is_two_numbers() -> None:
    async with fake(reply({"major": "1", "minor": "27+"})) as (_, kube):
        assert await kube.server_version() == (1, 27)


async def test_names_do_not_lead_elsewhere() -> None:
    async with fake(reply()) as (server, kube):
        await kube.get(PODS, "../../secrets/x?y#z", "ns")
        assert server.seen[0].raw_path == "/api/v1/namespaces/ns/pods/%2E%2E%2F%2E%2E%2Fsecrets%2Fx%3Fy%23z"


async def test_a_server_on_this_machine_is_not_asked_to_compress() -> None:
    async with fake(reply()) as (server, kube):
        await kube.get(PODS, "a", "ns")
        assert server.seen[0].headers["Accept-Encoding"] == "identity"
        assert server.seen[0].headers["User-Agent"].startswith("oarsman/")


async def test_a_watch_that_is_left_early_frees_its_connection() -> None:
    closed = asyncio.Event()

    async def watched(request: Any) -> Any:
        try:
            return await stream({"type": "ADDED", "object": pod("a", 1)}, then="quiet")(request)
        finally:
            closed.set()

    async with fake(watches=(watched,)) as (_, kube):
        changes = kube.watch(PODS, since="1")
        await anext(changes)
        await changes.aclose()
        await until(closed.is_set)
