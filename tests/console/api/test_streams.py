"""Streams over a real connection: who hears what, and that nothing is left behind when they go."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn

from oarsman.backends.base import EVERYTHING, LogLine, LogQuery
from oarsman.console.security.gate import Caller
from oarsman.console.server import Server, listen
from oarsman.console.settings import ConsoleSettings
from oarsman.errors import NotFoundError
from oarsman.service.models import ALL_LINES, Identity, Role

from .asking import API, Asking, asking
from .memory import SUCCEEDED, MemoryJobs
from .running import events


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(tmp_path) as found:
        yield found


@contextmanager
def listening(ask: Asking) -> Iterator[tuple[httpx.Client, Server]]:
    """A real server in a thread of its own, and a client of ada's."""
    ready = threading.Event()
    with listen(ConsoleSettings(port=0)) as sock:
        server = Server(uvicorn.Config(ask.app, log_config=None, lifespan="on"), ask.console, ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        ready.wait()
        address = f"http://127.0.0.1:{sock.getsockname()[1]}{API}"
        limits = httpx.Limits(max_connections=200)
        try:
            given = {"headers": ask.headers("ada"), "trust_env": False, "limits": limits, "timeout": 60}
            with httpx.Client(base_url=address, **given) as client:
                yield client, server
        finally:
            server.should_exit = True
            thread.join()


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails by the test's own time limit."""
    while not condition():
        threading.Event().wait(0.01)


def followers(ask: Asking) -> int:
    return len(ask.console.backends.backend().followers)


def texts(block: str) -> list[str]:
    return [line["text"] for line in json.loads(block)["lines"]]


def test_many_who_follow_one_log_share_one_follower_and_all_hear_everything(ask: Asking) -> None:
    ask.jobs.add()
    ask.jobs.say("default/pi", *map(str, range(10)))
    with listening(ask) as (client, _), ExitStack() as open_streams:
        heard = []
        for number in range(20):
            url = f"/jobs/default/pi/log/stream?after={number % 10}"
            heard.append(events(open_streams.enter_context(client.stream("GET", url))))
        for number, one in enumerate(heard):
            assert texts(next(one)[2])[0] == str(number % 10)
        assert followers(ask) == 1
        ask.jobs.say("default/pi", "the last")
        for one in heard:
            assert texts(next(one)[2]) == ["the last"]
        ask.jobs.become("default/pi", SUCCEEDED)
        assert {next(one)[0] for one in heard} == {"end"}
        wait_until(lambda: followers(ask) == 0)


def test_a_log_nobody_follows_any_more_is_not_read_any_more(ask: Asking) -> None:
    ask.jobs.add()
    with listening(ask) as (client, _):
        for url in ("/jobs/default/pi/log/stream", "/jobs/default/pi/log/stream?after=0"):
            with client.stream("GET", url) as response:
                assert response.status_code == 200
                wait_until(lambda: followers(ask) == 1)
            wait_until(lambda: followers(ask) == 0 and len(ask.console.streams) == 0)


def test_whoever_stops_listening_to_the_jobs_is_forgotten(ask: Asking) -> None:
    ask.jobs.add()
    with listening(ask) as (client, _):
        job_index = ask.console.backends.backend().job_index
        for url in ("/jobs/stream", "/jobs/default/pi/watch"):
            with client.stream("GET", url) as response:
                heard = events(response)
                next(heard)
                assert job_index.subscribers == 1
            wait_until(lambda: job_index.subscribers == 0 and len(ask.console.streams) == 0)


def test_a_server_that_stops_ends_its_streams_and_all_that_follows(ask: Asking) -> None:
    ask.jobs.add()
    with listening(ask) as (client, server), ExitStack() as open_streams:
        backend = ask.console.backends.backend()
        urls = ("/jobs/stream", "/jobs/default/pi/watch", "/jobs/default/pi/log/stream")
        heard = [events(open_streams.enter_context(client.stream("GET", url))) for url in urls]
        wait_until(lambda: len(ask.console.streams) == 3)
        server.should_exit = True
        assert [list(one)[-1:] for one in heard][2] == []  # no `end`: whoever comes back goes on
    assert not backend.busy
    assert backend.job_index._task is None


def test_a_watched_job_is_told_until_it_is_gone(ask: Asking) -> None:
    ask.jobs.add()
    with listening(ask) as (client, _), client.stream("GET", "/jobs/default/pi/watch") as response:
        heard = events(response)
        assert json.loads(next(heard)[2])["summary"]["state"] == "Running"
        ask.jobs.become("default/pi", SUCCEEDED)
        assert json.loads(next(heard)[2])["summary"]["state"] == "Succeeded"
        ask.jobs.vanish("default/pi")
        assert [kind for kind, _, _ in heard] == ["end"]


def test_whoever_may_only_look_watches_a_job_without_its_secrets(ask: Asking) -> None:
    ask.jobs.add(metadata={"annotations": {"example.org/token": "s3cret"}})
    with listening(ask) as (client, _):
        for name, told in (("ada", True), ("vera", False)):
            with client.stream("GET", "/jobs/default/pi/watch", headers=ask.headers(name)) as response:
                assert ("s3cret" in next(events(response))[2]) is told, name


def test_a_silent_stream_shows_that_it_is_alive_and_ends_with_the_token(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.console.api.streams.HEARTBEAT_SECONDS", 0.05)
    with listening(ask) as (client, _), client.stream("GET", "/jobs/stream") as response:
        lines = response.iter_lines()
        while next(lines) != ": still here":
            pass
        (token,) = ask.store.tokens.all("ada")
        ask.store.tokens.revoke(token.id, "ada")
        assert "event: end" not in list(lines)


def test_a_stream_that_is_never_silent_ends_with_the_token_too(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.console.api.streams.ASKED_EVERY_SECONDS", 0.0)
    ask.jobs.add()
    with listening(ask) as (client, _), client.stream("GET", "/jobs/default/pi/log/stream?after=0") as response:
        lines = response.iter_lines()
        ask.jobs.say("default/pi", "before")
        while "before" not in next(lines):
            pass
        (token,) = ask.store.tokens.all("ada")
        ask.store.tokens.revoke(token.id, "ada")
        ask.jobs.say("default/pi", "after")
        assert not any("after" in line for line in lines)


def test_somebody_who_reads_slowly_misses_nothing(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.console.api.streams._AHEAD", 1)
    ask.jobs.add()
    with listening(ask) as (client, _), client.stream("GET", "/jobs/default/pi/log/stream?after=0") as response:
        wait_until(lambda: followers(ask) == 1)
        for number in range(200):
            ask.jobs.say("default/pi", str(number))
        ask.jobs.become("default/pi", SUCCEEDED)
        heard = [text for kind, _, data in events(response) if kind == "message" for text in texts(data)]
    assert heard == [str(number) for number in range(200)]


def test_somebody_who_reads_slowly_hears_nothing_of_a_job_that_has_the_name_by_now(ask: Asking) -> None:
    ask.jobs.add()
    ask.jobs.say("default/pi", "ada's")
    caller = Caller(Identity(name="ada", role=Role.USER), "ada", "session", "127.0.0.1", b"")

    async def heard() -> list[str]:
        backend = ask.console.backends.backend()
        _, query = await ask.console.service(backend, caller).log_query("default/pi", ALL_LINES)
        async with aclosing(backend.followers.follow("default/pi", query, "0")) as blocks:
            found = [(await anext(blocks)).decode()]  # and is not asked for more until the name has changed hands
            ask.jobs.vanish("default/pi")
            ask.jobs.add(owner="bob")
            ask.jobs.say("default/pi", "ada's", "bob's")
            with suppress(NotFoundError):
                found.append((await anext(blocks)).decode())
            return found

    lines = "".join(ask.portal.run(heard()))
    assert ("ada's" in lines, "bob's" in lines) == (True, False)


class LongLog(MemoryJobs):
    """A download of it does not end by itself."""

    async def logs(self, key: str, query: LogQuery = EVERYTHING) -> AsyncGenerator[Sequence[LogLine], None]:
        while True:
            async for lines in super().logs(key, query):
                yield lines
            await asyncio.sleep(0.5)


def test_a_download_ends_with_the_account(tmp_path: Path) -> None:
    with asking(tmp_path, LongLog()) as ask:
        ask.jobs.add("pi", SUCCEEDED)
        ask.jobs.say("default/pi", "a line")
        with listening(ask) as (client, _), client.stream("GET", "/jobs/default/pi/log/download") as answer:
            lines = answer.iter_lines()
            next(lines)
            ask.store.accounts.change("ada", disabled=True)
            for _ in lines:  # ends, or the test does by its own limit
                pass


def test_a_stream_that_talks_ends_with_the_account_at_once(tmp_path: Path) -> None:
    with asking(tmp_path) as ask:
        ask.jobs.add("pi")
        with listening(ask) as (client, _), client.stream("GET", "/jobs/default/pi/log/stream") as answer:
            found = events(answer)
            ask.jobs.say("default/pi", "a line")
            next(found)
            ask.store.accounts.change("ada", disabled=True)
            began = time.monotonic()
            talking = threading.Event()

            def talk() -> None:
                while not talking.wait(0.1):
                    ask.jobs.say("default/pi", "more")

            talker = threading.Thread(target=talk)
            talker.start()
            try:
                for _ in found:
                    pass
            finally:
                talking.set()
                talker.join()
            assert time.monotonic() - began < 10


def test_the_downloads_of_one_person_are_as_few_as_the_logs_that_they_follow(tmp_path: Path) -> None:
    """Each holds some of a log in memory for as long as nobody takes it."""
    with asking(tmp_path, LongLog()) as ask:
        ask.jobs.add("pi", SUCCEEDED)
        ask.jobs.say("default/pi", "a line")
        with listening(ask) as (client, _), ExitStack() as stack:
            taken = []
            for _ in range(64):
                answer = stack.enter_context(client.stream("GET", "/jobs/default/pi/log/download"))
                taken.append(answer.iter_bytes())
                next(taken[-1])
            with client.stream("GET", "/jobs/default/pi/log/download") as answer:
                assert answer.status_code == 503
