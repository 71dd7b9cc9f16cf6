"""All jobs of a cluster and what changes among them, through every kind of interruption."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cluster.cluster import Cluster
from waiting import waiting

from oarsman import names
from oarsman.backends.base import Batch, current_user
from oarsman.backends.kube import follow, records
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.kube.follow import ObjectChanges
from oarsman.engines.kube.client import Forbidden, load_access, resources
from oarsman.engines.kube.client.credentials import Impersonating
from oarsman.engines.kube.client.list_watch import Pauses
from oarsman.engines.kube.client.resources import PODS
from oarsman.errors import UserError
from tests.engines.kube.client.fakes import (
    GONE_EVENT,
    QUIET,
    bookmark,
    event,
    fake,
    listing,
    pod,
    refuse,
    stream,
    until,
)

from .played import Played, a_document
from .test_backend import a_status, submit


def keys(batch: Batch) -> list[str]:
    return sorted(record.job.key for record in batch.records)


def test_first_comes_everything_and_then_each_change(jobs: KubeBackend, played: Played) -> None:
    first = submit(jobs).job.key
    followed = jobs.follow(jobs.home)
    whole = next(followed)
    assert (keys(whole), whole.whole, whole.gone) == ([first], True, ())
    second = submit(jobs, a_document(name="second")).job.key
    assert keys(next(followed)) == [second]
    played.status(first, a_status(names.RUNNING))
    change = next(followed)
    assert [(record.job.key, record.status.phase) for record in change.records] == [(first, "Running")]
    assert not change.whole
    jobs.delete(second)
    while not (gone := next(followed)).gone:  # first it is marked
        assert keys(gone) == [second]
    assert (gone.gone, gone.records, gone.whole) == ((second,), (), False)
    followed.close()
    assert list(followed) == []


def test_jobs_of_all_namespaces_are_followed_by_those_who_may_see_them(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    followed = jobs.follow()
    assert key in keys(next(followed))
    followed.close()


def test_one_who_waits_is_let_go_when_another_thread_closes(jobs: KubeBackend) -> None:
    followed = jobs.follow(jobs.home)
    begun, seen = threading.Event(), []

    def wait() -> None:
        for batch in followed:
            seen.append(batch)
            begun.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(120)
    followed.close()
    thread.join(120)
    assert not thread.is_alive()
    assert [batch.whole for batch in seen] == [True]


def test_what_has_not_changed_is_not_read_a_second_time(jobs: KubeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(jobs)
    read = []
    monkeypatch.setattr(records, "record", lambda found, real=records.record: read.append(found) or real(found))
    (first,) = jobs.list(jobs.home)
    followed = jobs.follow(jobs.home)
    assert next(followed).records == (first,)
    assert len(read) == 1
    change = {"spec": {"runPolicy": {"suspend": True}}}
    jobs.ask(lambda kube: kube.patch(resources.MPIJOBS, "pi", change, jobs.home))
    (changed,) = next(followed).records
    assert changed.job.run_policy.suspend
    assert jobs.list(jobs.home) == [changed]
    assert len(read) == 2
    followed.close()


def test_no_more_records_are_kept_than_agreed() -> None:
    known = records.RecordCache(most=2)
    documents = [a_document(name=name, namespace="x", uid=name, resourceVersion="1") for name in ("a", "b", "c")]
    first = known.record(documents[0])
    assert known.record(documents[0]) is first
    for document in documents[1:]:
        known.record(document)
    assert known.record(documents[0]) is not first


def test_one_who_may_not_see_all_namespaces_is_told_to_name_one(served: Cluster) -> None:
    access = load_access(kubeconfig=Path(str(served.kubeconfig)))
    nobody = waiting(
        KubeBackend(replace(access, credentials=Impersonating(access.credentials, user="nobody", uid="", groups=())))
    )
    try:
        with pytest.raises(UserError, match="may not see the jobs of all namespaces") as caught:
            next(nobody.follow())
        assert (caught.value.field, caught.value.hint) == ("namespace", "name a namespace")
        with pytest.raises(UserError, match="this user may not do that"):
            next(nobody.follow("default"))
    finally:
        nobody.close()


def test_a_job_belongs_to_those_on_whose_behalf_it_was_submitted(jobs: KubeBackend) -> None:
    mine = submit(jobs)
    theirs = jobs.submit(a_document(name="theirs"), environment={}, folder=Path.cwd(), owner="ada")
    assert jobs.get(theirs.job.key).owner == "ada"
    assert jobs.get(mine.job.key).owner == current_user()


# -- trouble -------------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_PAUSES", Pauses(first=0.01, longest=0.05, refused=0.05, silence=0.2))


def story(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def read(item: dict[str, Any]) -> str:
    return str(item["metadata"]["resourceVersion"])


async def told(found: AsyncGenerator[ObjectChanges[str]]) -> tuple[bool, dict[str, str], tuple[str, ...]]:
    news = await anext(found)
    return news.whole, dict(news.found), news.gone


def test_a_watch_that_ends_or_breaks_goes_on_where_it_was() -> None:
    async def work() -> None:
        watches = (
            stream(event("ADDED", pod("b", 6)), bookmark(8)),
            stream(event("MODIFIED", pod("a", 9)), then="break"),
            stream(event("DELETED", pod("b", 10)), then="quiet"),
        )
        async with (
            fake(listing(pod("a", 1), version=5), watches=watches) as (server, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            assert await told(found) == (True, {"default/a": "1"}, ())
            assert await told(found) == (False, {"default/b": "6"}, ())
            assert await told(found) == (False, {"default/a": "9"}, ())
            assert await told(found) == (False, {}, ("default/b",))
            assert server.watched() == ["5", "8", "9"]
            assert len(server.lists()) == 1

    story(work())


def test_history_that_was_forgotten_is_read_anew() -> None:
    async def work() -> None:
        pages = (listing(pod("a", 1), version=5), listing(pod("b", 7), version=8))
        watches = (stream(GONE_EVENT), refuse(410, "Expired", "too old"), QUIET)
        async with (
            fake(*pages, watches=watches) as (server, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            assert await told(found) == (True, {"default/a": "1"}, ())
            assert await told(found) == (True, {"default/b": "7"}, ())
            assert await told(found) == (True, {"default/b": "7"}, ())
            assert len(server.lists()) == 3

    story(work())


def test_a_server_that_restarts_is_waited_for_and_may_refuse_at_first() -> None:
    async def work() -> None:
        async with (
            fake(listing(pod("a", 1), version=5), watches=(QUIET,)) as (server, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            await told(found)
            waiting = asyncio.create_task(told(found))
            await until(server.watched)
            await server.stop()
            no = refuse(403, "Forbidden", "not yet")
            server.watches = [no, no, stream(event("ADDED", pod("b", 6)), then="quiet")]
            await server.start()
            assert await waiting == (False, {"default/b": "6"}, ())
            assert len(server.lists()) == 1

    story(work())


def test_rights_that_were_taken_away_end_it_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_REFUSED_SECONDS", 0.2)

    async def work() -> None:
        no = refuse(403, "Forbidden", "no more")
        async with (
            fake(listing(pod("a", 1), version=5), watches=(no,)) as (_, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            await told(found)
            with pytest.raises(Forbidden):
                await told(found)

    story(work())


def test_a_server_that_falls_silent_is_asked_again() -> None:
    async def work() -> None:
        watches = (
            stream(bookmark(6), 0.01, bookmark(7), then="quiet"),
            stream(event("ADDED", pod("b", 8)), then="quiet"),
        )
        async with (
            fake(listing(version=5), watches=watches) as (server, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            await told(found)
            assert await told(found) == (False, {"default/b": "8"}, ())
            assert server.watched() == ["5", "7"]

    story(work())


def test_watches_that_end_at_once_are_not_reopened_in_a_rush(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []

    class Counted(Pauses):
        def after(self, failures: int) -> float:
            pauses.append(failures)
            return 0.0

    monkeypatch.setattr(follow, "_PAUSES", Counted())

    async def work() -> None:
        enough = stream(event("ADDED", pod("b", 6)), then="quiet")
        async with (
            fake(listing(version=5), watches=(stream(), stream(GONE_EVENT), stream(GONE_EVENT), enough)) as (_, kube),
            aclosing(follow.changes(kube, PODS, None, read)) as found,
        ):
            for _ in range(3):
                assert (await told(found))[0]
            assert await told(found) == (False, {"default/b": "6"}, ())

    story(work())
    assert pauses == [1, 2, 3]
