"""Informers, against a server that forgets, breaks off, repeats itself, refuses and goes away."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest

from oarsman.engines.kube.client import Informer, Kube, Meta, PartialObject, Pauses
from oarsman.engines.kube.client.resources import NODES, PODS

from .fakes import (
    GONE_EVENT,
    QUICK,
    QUIET,
    FakeServer,
    Handler,
    Told,
    bookmark,
    event,
    fake,
    following,
    listing,
    pod,
    refuse,
    reply,
    stream,
    until,
)


class Labelled(msgspec.Struct):
    metadata: Meta


def job_of(item: Labelled) -> str | None:
    return item.metadata.labels.get("job")


def names(informer: Informer[Any]) -> list[str]:
    return sorted(one.metadata.name for one in informer.all())


async def test_it_is_synced_once_everything_was_listed() -> None:
    pages = (listing(pod("a", 1), version=5, more="next"), listing(pod("b", 2), version=5))
    async with fake(*pages, watches=(QUIET,)) as (server, kube):
        told = Told()
        informer: Informer[PartialObject] = Informer(kube, PODS, PartialObject, changed=told)
        assert not informer.synced.is_set()
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        assert told == [(None, "a@1"), (None, "b@2")]
        assert informer.get("default", "a") is not None
        assert informer.get("default", "c") is None
        await until(server.watched)
        assert server.watched() == ["5"]
        task.cancel()
        await asyncio.wait([task])


NEW_SERVER = reply({"major": "1", "minor": "36"})
ALL_THERE = event("BOOKMARK", pod("", 9, annotations={"k8s.io/initial-events-end": "true"}))


async def test_a_server_that_can_streams_what_is_there_and_goes_on_with_what_changes() -> None:
    first = stream(
        *(event("ADDED", pod(f"p{number}", number + 1)) for number in range(250)),
        ALL_THERE,
        event("DELETED", pod("p7", 300)),
        then="quiet",
    )
    async with (
        fake(NEW_SERVER, watches=(first,)) as (server, kube),
        following(kube, PODS, PartialObject, stream=True) as informer,
    ):
        await informer.synced.wait()
        await until(lambda: len(informer.all()) == 249)
        [asked] = [request for request in server.seen if "watch" in request.query]
        assert asked.query["sendInitialEvents"] == "true"
        assert asked.query["resourceVersionMatch"] == "NotOlderThan"
        assert [request.path for request in server.lists()] == ["/version"]


async def test_a_stream_that_is_taken_up_again_goes_on_where_it_was() -> None:
    first = stream(event("ADDED", pod("a", 1)), ALL_THERE)
    then = stream(event("ADDED", pod("b", 10)), then="quiet")
    async with (
        fake(NEW_SERVER, watches=(first, then)) as (server, kube),
        following(kube, PODS, PartialObject, stream=True) as informer,
    ):
        await until(lambda: names(informer) == ["a", "b"])
        assert [request.query.get("resourceVersion", "") for request in server.seen] == ["", "", "9"]


@pytest.mark.parametrize(
    "watches",
    [
        pytest.param((refuse(422, "Invalid"), QUIET), id="it refuses"),
        pytest.param((stream(event("ADDED", pod("b", 3)), then="end"), QUIET), id="it ends before all was told"),
        pytest.param((stream(event("ADDED", pod("b", 3)), then="break"), QUIET), id="it breaks"),
    ],
)
async def test_a_server_that_does_not_stream_after_all_is_asked_for_a_list(watches: tuple[Handler, ...]) -> None:
    async with (
        fake(NEW_SERVER, listing(pod("a", 1), version=5), watches=watches) as (server, kube),
        following(kube, PODS, PartialObject, stream=True) as informer,
    ):
        await informer.synced.wait()
        assert names(informer) == ["a"]
        assert len(server.lists()) == 2


async def test_an_older_server_is_not_asked_to_stream() -> None:
    old = reply({"major": "1", "minor": "20+"})
    async with (
        fake(old, listing(pod("a", 1), version=5), watches=(QUIET,)) as (server, kube),
        following(kube, PODS, PartialObject, stream=True) as informer,
    ):
        await informer.synced.wait()
        await until(server.watched)
        assert server.watched() == ["5"]


async def test_changes_are_told_as_before_and_after() -> None:
    changes = stream(
        event("ADDED", pod("a", 6)), event("MODIFIED", pod("a", 7)), event("DELETED", pod("a", 8)), then="quiet"
    )
    async with fake(listing(version=5), watches=(changes,)) as (_, kube):
        told = Told()
        async with following(kube, PODS, PartialObject, changed=told) as informer:
            await until(lambda: len(told) == 3)
            assert told == [(None, "a@6"), ("a@6", "a@7"), ("a@7", None)]
            assert not informer.all()


async def test_a_watch_that_ended_goes_on_where_it_was_without_a_new_list() -> None:
    watches = (stream(event("ADDED", pod("a", 6))), stream(bookmark(42)), QUIET)
    async with fake(listing(version=5), watches=watches) as (server, kube), following(kube, PODS, PartialObject):
        await until(lambda: len(server.watched()) == 3)
        assert server.watched() == ["5", "6", "42"]
        assert len(server.lists()) == 1


async def test_a_stream_that_breaks_in_the_middle_of_a_line_loses_nothing() -> None:
    half = stream(event("ADDED", pod("a", 6)), b'{"type":"ADDED","object":{"metadata":{"na', then="break")
    ended = stream(b'{"type":"ADDED","obj')
    rest = stream(event("ADDED", pod("b", 7)), then="quiet")
    async with fake(listing(version=5), watches=(half, ended, rest)) as (server, kube):
        told = Told()
        async with following(kube, PODS, PartialObject, changed=told) as informer:
            await until(lambda: len(told) == 2)
            assert told == [(None, "a@6"), (None, "b@7")]
            assert server.watched() == ["5", "6", "6"]
            assert len(server.lists()) == 1
            assert informer.trouble is None


@pytest.mark.parametrize("gone", [stream(GONE_EVENT), refuse(410, "Expired")])
async def test_forgotten_history_is_made_up_for_by_a_list_that_tells_what_was_missed(gone: Any) -> None:
    before = listing(pod("deleted", 1), pod("changed", 2), pod("same", 3), version=5)
    after = listing(pod("changed", 8), pod("same", 3), pod("new", 9), version=10)
    async with fake(before, after, watches=(gone, QUIET)) as (server, kube):
        told = Told()
        async with following(kube, PODS, PartialObject, changed=told) as informer:
            await until(lambda: server.watched() == ["5", "10"])
            assert told[3:] == [("changed@2", "changed@8"), (None, "new@9"), ("deleted@1", None)]
            assert names(informer) == ["changed", "new", "same"]


async def test_a_list_that_starts_over_half_way_does_not_keep_what_only_the_first_half_had() -> None:
    pages = (listing(pod("old", 1), version=2, more="x"), refuse(410, "Expired"), listing(pod("new", 3), version=4))
    async with fake(*pages, watches=(QUIET,)) as (_, kube), following(kube, PODS, PartialObject) as informer:
        await informer.synced.wait()
        assert names(informer) == ["new"]


async def test_an_event_that_comes_twice_is_told_once() -> None:
    again = event("ADDED", pod("a", 6))
    changes = stream(again, again, event("MODIFIED", pod("a", 6)), event("ADDED", pod("z", 7)), then="quiet")
    async with fake(listing(version=5), watches=(changes,)) as (_, kube):
        told = Told()
        async with following(kube, PODS, PartialObject, changed=told):
            await until(lambda: (None, "z@7") in told)
            assert told == [(None, "a@6"), (None, "z@7")]


async def test_a_namesake_is_told_as_an_end_and_a_beginning() -> None:
    before, after = listing(pod("a", 1, uid="one"), version=5), listing(pod("a", 9, uid="two"), version=10)
    async with fake(before, after, watches=(stream(GONE_EVENT), QUIET)) as (_, kube):
        told = Told()
        async with following(kube, PODS, PartialObject, changed=told):
            await until(lambda: len(told) == 3)
            assert told == [(None, "a@1"), ("a@1", None), (None, "a@9")]


async def test_a_late_deletion_does_not_end_the_successor() -> None:
    late = stream(event("DELETED", pod("a", 6, uid="one")), event("ADDED", pod("z", 7)), then="quiet")
    async with fake(listing(version=5), watches=(stream(then="end"), late)) as (_, kube):
        informer: Informer[PartialObject] = Informer(kube, PODS, PartialObject, pauses=QUICK)
        informer.put(msgspec.convert(pod("a", 20, uid="two"), PartialObject))
        task = asyncio.create_task(informer.run())
        await until(lambda: names(informer) == ["a", "z"])
        task.cancel()
        await asyncio.wait([task])


async def test_ones_own_writes_are_seen_at_once_and_not_undone_by_older_news() -> None:
    changes = stream(event("MODIFIED", pod("a", 6)), event("ADDED", pod("z", 7)), then="quiet")
    async with fake(listing(pod("a", 1), version=5), watches=(changes,)) as (_, kube):
        told = Told()
        informer: Informer[PartialObject] = Informer(kube, PODS, PartialObject, changed=told)
        informer.put(msgspec.convert(pod("a", 9), PartialObject))
        informer.put(msgspec.convert(pod("b", 10), PartialObject))
        task = asyncio.create_task(informer.run())
        await until(lambda: (None, "z@7") in told)
        assert told == [(None, "a@9"), (None, "b@10"), (None, "z@7")]
        informer.drop("default", "b", "another")
        assert names(informer) == ["a", "b", "z"]
        informer.drop("default", "b", "uid-b")
        assert told[-1] == ("b@10", None)
        assert names(informer) == ["a", "z"]
        task.cancel()
        await asyncio.wait([task])


async def test_the_answer_to_an_own_write_does_not_bring_back_what_was_heard_of_as_gone() -> None:
    changes = stream(
        event("MODIFIED", pod("a", 6)), event("DELETED", pod("a", 8)), event("ADDED", pod("z", 9)), then="quiet"
    )
    async with (
        fake(listing(pod("a", 1), version=5), watches=(changes,)) as (_, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: names(informer) == ["z"])
        informer.put(msgspec.convert(pod("a", 6), PartialObject))
        informer.put(msgspec.convert(pod("y", 10), PartialObject))  # which the watch is still to tell of
        assert names(informer) == ["y", "z"]


async def test_the_index_follows_the_objects() -> None:
    first = listing(pod("a", 1, labels={"job": "x"}), pod("b", 2, labels={"job": "x"}), pod("c", 3), version=5)
    changes = stream(
        event("MODIFIED", pod("a", 6, labels={"job": "y"})),
        event("DELETED", pod("b", 7, labels={"job": "x"})),
        event("ADDED", pod("d", 8, labels={"job": "y"})),
        then="quiet",
    )
    async with fake(first, watches=(changes,)) as (_, kube), following(kube, PODS, Labelled, index=job_of) as informer:
        await until(lambda: informer.get("default", "d"))
        assert sorted(one.metadata.name for one in informer.of("y")) == ["a", "d"]
        assert not informer.of("x")


async def test_a_refusal_is_shown_and_tried_again_until_it_is_lifted() -> None:
    no = refuse(403, "Forbidden", "you may not list pods")
    async with (
        fake(no, no, listing(pod("a", 1), version=5), watches=(no, QUIET)) as (server, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: informer.trouble)
        assert informer.trouble == "list pods: you may not list pods (403 Forbidden)"
        assert not informer.synced.is_set()
        await informer.synced.wait()
        await until(lambda: len(server.watched()) == 2 and informer.trouble is None)
        assert len(server.lists()) == 3


async def test_a_server_that_goes_away_and_comes_back_is_followed_on() -> None:
    async with (
        fake(listing(pod("a", 1), version=5), watches=(QUIET,)) as (server, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(server.watched)
        await server.stop()
        await until(lambda: informer.trouble)
        server.watches = [stream(event("ADDED", pod("b", 6)), then="quiet")]
        await server.start()
        await until(lambda: names(informer) == ["a", "b"])
        assert informer.trouble is None
        assert len(server.lists()) == 1


async def test_a_server_that_is_not_up_yet_is_waited_for() -> None:
    server = FakeServer(listing(pod("a", 1), version=5), watches=(QUIET,))
    await server.start()
    await server.stop()
    async with Kube(server.access) as kube, following(kube, PODS, PartialObject) as informer:
        await until(lambda: informer.trouble)
        await server.start()
        await informer.synced.wait()
        assert informer.trouble is None
        await server.stop()


class Rising(Pauses):
    """Pauses that tell themselves from any other sleep: 1000, 2000, 3000, ... seconds."""

    def after(self, failures: int) -> float:
        return 1000.0 * failures


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Requests and long pauses in their order. The pauses pass at once."""
    found: list[object] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds >= 1000:
            found.append(seconds)
        await sleep(0 if seconds >= 1000 else seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return found


def noting(story: list[object], word: str, handler: Handler) -> Handler:
    async def noted(request: Any) -> Any:
        story.append(word)
        return await handler(request)

    return noted


async def test_watches_that_end_at_once_are_reopened_after_pauses_that_grow(story: list[object]) -> None:
    ending = noting(story, "watch", stream())
    async with (
        fake(listing(version=5), watches=(ending,)) as (_, kube),
        following(kube, PODS, PartialObject, pauses=Rising()),
    ):
        await until(lambda: len(story) >= 8)
    assert story[:8] == ["watch", 1000, "watch", 2000, "watch", 3000, "watch", 4000]


async def test_history_that_is_always_forgotten_is_listed_again_after_pauses_that_grow(story: list[object]) -> None:
    lists, forgotten = noting(story, "list", listing(version=5)), noting(story, "watch", stream(GONE_EVENT))
    async with fake(lists, watches=(forgotten,)) as (_, kube), following(kube, PODS, PartialObject, pauses=Rising()):
        await until(lambda: len(story) >= 10)
    at_once = ["list", "watch"]  # the first time there is nothing to wait for
    assert story[:10] == [*at_once, "list", "watch", 2000, "list", "watch", 3000, "list", "watch"]


async def test_a_cluster_restored_from_a_backup_is_believed() -> None:
    """Its versions start again lower than those we know."""
    too_large = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    future = refuse(504, "Timeout", "Timeout: Too large resource version: 100, current: 20", details=too_large)
    before = listing(pod("a", 90), pod("b", 95), version=100)
    restored = listing(pod("a", 15), version=20)
    async with (
        fake(before, restored, watches=(future, QUIET)) as (server, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: server.watched() == ["100", "20"])
        assert names(informer) == ["a"]
        assert informer.get("default", "a").metadata.resource_version == "15"


async def test_several_namespaces_are_followed_side_by_side() -> None:
    async def here(request: Any) -> Any:
        namespace = request.path.split("/")[4]
        return await listing(pod("a", 1, namespace), version=5)(request)

    async with (
        fake(here, watches=(QUIET,)) as (server, kube),
        following(kube, PODS, PartialObject, namespaces=["one", "two", "one"]) as informer,
    ):
        await informer.synced.wait()
        assert sorted(one.metadata.namespace for one in informer.all()) == ["one", "two"]
        paths = sorted(request.path for request in server.lists())
        assert paths == ["/api/v1/namespaces/one/pods", "/api/v1/namespaces/two/pods"]


async def test_it_is_not_synced_while_one_of_its_namespaces_refuses() -> None:
    async def partly(request: Any) -> Any:
        answer = refuse(403, "Forbidden") if "/two/" in request.path else listing(pod("a", 1, "one"), version=5)
        return await answer(request)

    async with (
        fake(partly, watches=(QUIET,)) as (_, kube),
        following(kube, PODS, PartialObject, namespaces=["one", "two"]) as informer,
    ):
        await until(lambda: informer.trouble and informer.all())
        assert "list pods in two" in informer.trouble
        assert not informer.synced.is_set()


async def test_what_has_no_namespace_is_followed_everywhere() -> None:
    async with (
        fake(listing(pod("n", 1, ""), version=5), watches=(QUIET,)) as (server, kube),
        following(kube, NODES, PartialObject, namespaces=["one", "two"]) as informer,
    ):
        await informer.synced.wait()
        assert informer.get("", "n")
        assert [request.path for request in server.lists()] == ["/api/v1/nodes"]


async def test_a_listener_that_fails_does_not_stop_the_following(caplog: pytest.LogCaptureFixture) -> None:
    def broken(old: object, new: object) -> None:
        raise RuntimeError("not today")

    async with (
        fake(listing(pod("a", 1), pod("b", 2), version=5), watches=(QUIET,)) as (_, kube),
        following(kube, PODS, PartialObject, changed=broken) as informer,
    ):
        await informer.synced.wait()
        assert names(informer) == ["a", "b"]
    assert "a change of default/a was not taken in" in caplog.text
    assert "not today" in caplog.text


async def test_a_burst_leaves_others_their_turn() -> None:
    burst = stream(*(event("ADDED", pod(f"p{number}", number + 6)) for number in range(3000)), then="quiet")
    pages = listing(*(pod(f"q{number}", number + 1) for number in range(3000)), version=5)
    async with fake(pages, watches=(burst,)) as (_, kube):
        turns: list[int] = []
        async with following(kube, PODS, PartialObject) as informer:
            while len(informer.all()) < 6000:
                turns.append(len(informer.all()))
                await asyncio.sleep(0)
        steps = [after - before for before, after in itertools.pairwise(turns)]
        assert max(steps) <= 100


async def test_objects_of_a_megabyte_are_followed() -> None:
    large = pod("a", 6, annotations={"x": "y" * 1_000_000})
    async with (
        fake(listing(version=5), watches=(stream(event("ADDED", large), then="quiet"),)) as (_, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: informer.get("default", "a"))
        assert len(informer.get("default", "a").metadata.annotations["x"]) == 1_000_000


async def test_an_object_that_cannot_be_read_does_not_stop_the_following() -> None:
    odd = event("ADDED", {"metadata": {"name": "odd", "generation": "many", "resourceVersion": "6"}})
    unheard_of = event("FLASH", {})
    changes = stream(unheard_of, event("ADDED", pod("a", 7)), then="quiet")
    async with (
        fake(listing(version=5), watches=(stream(odd), changes)) as (_, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: names(informer) == ["a"])


async def test_a_server_that_had_a_pulse_and_falls_silent_is_left() -> None:
    frozen = stream(bookmark(6), 0.05, bookmark(7), then="quiet")
    back = stream(event("ADDED", pod("a", 8)), then="quiet")
    async with (
        fake(listing(version=5), watches=(frozen, back)) as (server, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: names(informer) == ["a"])
        assert server.watched() == ["5", "7"]
        assert len(server.lists()) == 1


async def test_a_server_without_a_pulse_may_be_silent() -> None:
    """For longer than one that has a pulse: that one, silent since later, is left while this one is not."""
    quiet = stream(bookmark(6), event("ADDED", pod("a", 7)), then="quiet")
    frozen = stream(bookmark(6), 0.05, bookmark(7), then="quiet")
    back = stream(event("ADDED", pod("b", 8)), then="quiet")
    async with (
        fake(listing(version=5), watches=(quiet,)) as (server, kube),
        following(kube, PODS, PartialObject) as informer,
    ):
        await until(lambda: names(informer) == ["a"])
        async with (
            fake(listing(version=5), watches=(frozen, back)) as (_, regular),
            following(regular, PODS, PartialObject) as suspicious,
        ):
            await until(lambda: names(suspicious) == ["b"])
        assert informer.trouble is None
        assert server.watched() == ["5"]
