"""What ranks of a machine write into files is handed on by its host agent, minded by a test instead of ssh."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from .test_host_agent import PATIENCE, Host, hang_up, host, is_up, order, says, until  # noqa: F401

pytestmark = pytest.mark.timeout(120)
OUT, ERR, OTHER = "1-7/1/rank.0/stdout", "1-7/1/rank.0/stderr", "1-7/1/rank.1/stdout"
BYTES = random.Random(7).randbytes
SAMPLES = [b"x", b"one\ntwo\nno end", b"\r\0\n\xff", BYTES(1 << 20), BYTES((1 << 20) + 1), BYTES(2_500_000)]


class Follower:
    """The host agent of a machine whose ranks write into files."""

    def __init__(self, host: Host) -> None:  # noqa: F811
        self.host = host
        self.host_agent = host.host_agent(hands_on=True)
        is_up(self.host_agent)

    def file(self, name: str) -> Path:
        return self.host.base / "0/o" / name

    def write(self, name: str, data: bytes) -> None:
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        with self.file(name).open("ab") as file:
            file.write(data)

    def heard_until(self, last: str) -> dict[str, bytes]:
        """What is handed on before that word."""
        heard: dict[str, bytes] = {}
        while (word := says(self.host_agent)) != last:
            assert word or self.host_agent.poll() is None, heard
            if word.startswith("said "):
                _, name, data = word.split(" ")
                assert len(word) < 4096  # lines of others would mix with longer ones
                heard[name] = heard.get(name, b"") + base64.b64decode(data)
        return heard

    def swept(self, number: int) -> dict[str, bytes]:
        order(self.host_agent, f"sweep {number}")
        return self.heard_until(f"emptied {number}")


@pytest.fixture
def follower(host: Host) -> Follower:  # noqa: F811
    return Follower(host)


@pytest.mark.parametrize("data", SAMPLES, ids=map(len, SAMPLES))
def test_every_byte_is_handed_on_once(follower: Follower, data: bytes) -> None:
    follower.write(OUT, data)
    assert follower.swept(1) == {OUT: data}
    assert follower.swept(2) == {}
    follower.write(OUT, b"more")
    assert follower.swept(3) == {OUT: b"more"}


def test_files_are_told_apart(follower: Follower) -> None:
    written = {OUT: b"out", ERR: b"err\n", OTHER: b"other\n"}
    for name, data in written.items():
        follower.write(name, data)
    assert follower.swept(1) == written


def test_nobody_need_ask(follower: Follower) -> None:
    follower.write(OUT, b"alive")
    word = says(follower.host_agent)
    assert base64.b64decode(word.removeprefix(f"said {OUT} ")) == b"alive"


def test_where_nothing_was_written_there_is_nothing_to_wait_for(follower: Follower) -> None:
    assert follower.swept(1) == {}


def test_the_rest_is_handed_on_before_the_host_agent_leaves(follower: Follower) -> None:
    data = BYTES(2_500_000)
    follower.write(OUT, data)
    order(follower.host_agent, "end 0")
    assert follower.heard_until("emptied last") == {OUT: data}
    assert follower.host_agent.wait(PATIENCE) == 0
    assert not follower.host.base.exists()


def test_what_was_handed_on_does_not_fill_the_disk(follower: Follower) -> None:
    follower.write(OUT, BYTES(3 << 20))
    follower.swept(1)
    assert follower.file(OUT).stat().st_blocks * 512 < 1 << 20
    follower.write(OUT, b"more")
    assert follower.swept(2) == {OUT: b"more"}


def left_of(host_agent: subprocess.Popen[bytes]) -> bool:
    try:
        os.killpg(host_agent.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_host_agent_that_is_killed_leaves_nobody_who_hands_on(follower: Follower) -> None:
    follower.write(OUT, BYTES(2_500_000))  # which nobody takes: whoever hands it on is stuck
    follower.host_agent.send_signal(signal.SIGKILL)
    follower.host_agent.wait()
    until(lambda: not left_of(follower.host_agent), "somebody stayed")
    assert not follower.host.base.exists()


def test_a_host_agent_that_is_killed_with_its_watchdog_leaves_nobody_who_hands_on(follower: Follower) -> None:
    main, watchdogs = psutil.Process(follower.host_agent.pid), []

    def watched() -> bool:
        for child in main.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                watchdogs.extend([child] if any(each.name() == "sleep" for each in child.children()) else [])
        return bool(watchdogs)

    until(watched, "nobody watches over it")
    main.suspend()
    for process in (*watchdogs, main):
        process.kill()
    follower.host_agent.wait()
    until(lambda: not left_of(follower.host_agent), "somebody stayed")


def test_a_host_agent_whose_connection_closes_leaves_nobody_who_hands_on(follower: Follower) -> None:
    follower.write(OUT, BYTES(2_500_000))
    hang_up(follower.host_agent)
    until(lambda: not left_of(follower.host_agent), "somebody stayed")
    assert not follower.host.base.exists()
