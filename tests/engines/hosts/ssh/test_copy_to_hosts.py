"""Copies of a job's folder on real hosts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.world import PATIENCE
from ssh_hosts import Host, Rack

from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.code import copy as copy_module
from oarsman.engines.hosts.ssh.code.copy import Copied, copy, plan_copy
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.errors import RetryableError, UserError

from .copied import ODD, change_text, contents, facts, rename, settle

TARGET = "/home/rower/.oarsman/code/x-12345678"
NAME = os.path.basename(TARGET)


def ssh_of(rack: Rack) -> Ssh:
    return Ssh(Inventory(file=rack.folder / "hosts", hosts=(), ssh_config=str(rack.ssh_config)))


async def bring(rack: Rack, code: Path, *hosts: Host, timeout: float = PATIENCE) -> dict[str, Copied]:  # noqa: ASYNC109
    tree = await asyncio.to_thread(plan_copy, code)
    ssh = ssh_of(rack)
    return await on_all(
        [SshHost(name=host.name) for host in hosts], lambda host: copy(ssh, host, tree, TARGET, timeout=timeout)
    )


def beside(host: Host) -> set[str]:
    return set(os.listdir(host.path(os.path.dirname(TARGET))))


def test_four_hosts_at_once_get_the_code_and_later_only_changes(rack: Rack, code: Path) -> None:
    done = asyncio.run(bring(rack, code, *rack))
    assert {each.files for each in done.values()} == {6 + len(ODD)}
    for host in rack:
        assert contents(host.path(TARGET)) == contents(code)
        assert beside(host) == {NAME, f"{NAME}.brought"}
        host.write(f"{TARGET}/pkg/result", "precious", "rower")
    assert set(asyncio.run(bring(rack, code, *rack)).values()) == {Copied(0, 0, 0)}
    change_text(code)
    rename(code)
    (code / "run.sh").chmod(0o644)
    (code / "outside").unlink()
    assert {(each.files, each.removed) for each in asyncio.run(bring(rack, code, *rack)).values()} == {(2, 2)}
    for host in rack:
        assert contents(host.path(TARGET)) == {
            **contents(code),
            "pkg/result": facts(host.path(f"{TARGET}/pkg/result")),
        }


def test_the_code_runs_there_as_the_user(rack: Rack, code: Path) -> None:
    (code / "run.sh").write_text('#!/bin/sh\ncat "$(dirname "$0")/train.py"\nid -un\n')
    asyncio.run(bring(rack, code, rack[0]))
    assert rack.ssh("node1", f"{TARGET}/run.sh").stdout == "print(1)\nrower\n"


def test_a_copy_goes_over_a_connection_that_is_open(rack: Rack, code: Path) -> None:
    host, control = SshHost(name="node1"), str(rack.folder / "control")
    config = rack.folder / "config-with-control"
    config.write_text(f"ControlPath {control}\n{rack.ssh_config.read_text()}")
    ssh = Ssh(Inventory(file=rack.folder / "hosts", hosts=(), ssh_config=str(config)))
    words = ssh.argv(host, "echo up; cat", control=control, master=True)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as master:
        assert master.stdout
        assert master.stdout.readline() == b"up\n"
        rack[0].faults.closed_port()
        assert asyncio.run(copy(ssh, host, plan_copy(code), TARGET, timeout=PATIENCE)).files
        assert contents(rack[0].path(TARGET)) == contents(code)
        with pytest.raises(RetryableError, match=r"node1.*: nothing listens on port 22"):
            asyncio.run(bring(rack, code, rack[0]))
        master.kill()


def test_root_of_a_host_owns_its_copy(rack: Rack, code: Path) -> None:
    os.chown(code / "train.py", 5001, 5001)
    tree = plan_copy(code)
    asyncio.run(copy(ssh_of(rack), SshHost(name="node1", user="root"), tree, "~/copy", timeout=PATIENCE))
    assert rack[0].path("/root/copy/train.py").stat().st_uid == 0
    assert contents(rack[0].path("/root/copy")) == contents(code)


def test_a_full_disk_is_named_with_its_host_and_leaves_nothing_behind(rack: Rack, code: Path) -> None:
    asyncio.run(bring(rack, code, rack[1]))
    (code / "large").write_bytes(os.urandom(1 << 20))
    with rack[1].faults.full_disk(left=256 << 10):
        with pytest.raises(UserError, match=r"node2: .*No space left on device") as raised:
            asyncio.run(bring(rack, code, rack[1]))
        assert "free some space" in str(raised.value.hint)
        assert beside(rack[1]) == {NAME, f"{NAME}.brought"}
        assert not rack[1].path(f"{TARGET}/large").exists()
    assert asyncio.run(bring(rack, code, rack[1]))["node2"].files == 1


def test_a_folder_that_cannot_be_written_is_named_with_its_host(rack: Rack, code: Path) -> None:
    rack[2].faults.unwritable("/home/rower")
    with pytest.raises(UserError, match=r"node3: .*Permission denied"):
        asyncio.run(bring(rack, code, rack[2]))


class HalfWay:
    """Archives stop after their first piece until they may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._real = copy_module.archive
        monkeypatch.setattr(copy_module, "archive", self._halting)

    def _halting(self, *given: Any) -> Iterator[bytes]:
        pieces = self._real(*given)
        yield next(pieces)
        self.reached.set()
        self.go_on.wait()
        yield from pieces


async def until(fact: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await asyncio.to_thread(fact):
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


async def interrupted(copying: asyncio.Future[Any], host: Host, stop: HalfWay, act: Callable[[], object]) -> str:
    """What a copy says to whom something happens when half of it is on the host."""
    try:
        staged = host.path(f"{TARGET}.new/tree")
        await until(lambda: stop.reached.is_set() and staged.is_dir(), "half of it is there")
        await asyncio.to_thread(act)
    finally:
        stop.go_on.set()
    try:
        await copying
    except RetryableError as error:
        return error.message
    return "done"


ACTS: dict[str, Callable[[Host], object]] = {
    "script": lambda host: host.sh("kill -9 $(ps -o pid= --user 5001) || :"),  # one may just have ended
    "power": lambda host: host.reboot(),
    "cable": lambda host: host.faults.cut(),
}


@pytest.mark.parametrize("what", ["script", "power", "cable"])
def test_a_copy_that_is_cut_off_half_way_shows_nothing_of_itself_and_is_repeated_whole(
    rack: Rack, code: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = rack[3]
    before = half_new(rack, code, host)

    async def story() -> str:
        stop = HalfWay(monkeypatch)
        return await interrupted(asyncio.ensure_future(bring(rack, code, host)), host, stop, lambda: ACTS[what](host))

    assert "node4: the connection was closed" in asyncio.run(story())
    host.faults.repair()
    assert contents(host.path(TARGET)) == before
    asyncio.run(bring(rack, code, host))
    assert contents(host.path(TARGET)) == contents(code)
    assert beside(host) == {NAME, f"{NAME}.brought"}


def test_a_copy_that_is_cancelled_half_way_ends_there_too(
    rack: Rack, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = rack[3]
    before = half_new(rack, code, host)

    async def story() -> None:
        stop = HalfWay(monkeypatch)
        task = asyncio.ensure_future(bring(rack, code, host))
        try:
            await until(stop.reached.is_set, "half of it is sent")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            stop.go_on.set()
        await until(lambda: beside(host) == {NAME, f"{NAME}.brought"}, "no file of it is left")
        await until(lambda: host.sh("ps -o args= --user 5001 || true") == "", "no process of it is left")

    asyncio.run(story())
    assert contents(host.path(TARGET)) == before
    asyncio.run(bring(rack, code, host))
    assert contents(host.path(TARGET)) == contents(code)


def half_new(rack: Rack, code: Path, host: Host) -> dict[str, tuple[Any, ...]]:
    """Code that is on the host, and has changed since."""
    asyncio.run(bring(rack, code, host))
    before = contents(host.path(TARGET))
    for name in ("train.py", "pkg/deep/data", "pkg/deep/more"):
        (code / name).write_bytes(os.urandom(600_000))
    settle(code)
    return before


@pytest.mark.parametrize(
    ("planted", "refused"),
    [
        ("mkdir -p /tmp/w/code && chown -R 1234 /tmp/w && chmod -R 777 /tmp/w", "/tmp/w/code"),
        ("mkdir -m 1777 -p /tmp/w/code && mkdir -m 777 /tmp/w/code/x && chown 1234 /tmp/w/code/x", "/tmp/w/code/x"),
        (
            "mkdir -m 1777 -p /tmp/w/code && ln -s /home/rower /tmp/w/code/x && chown -h 1234 /tmp/w/code/x",
            "/tmp/w/code/x",
        ),
        ("mkdir -m 1777 -p /tmp/w/code", ""),
        ("mkdir -p /tmp/w/code && chown -R rower /tmp/w", ""),
    ],
)
def test_code_is_never_put_where_somebody_else_made_room_for_it(
    rack: Rack, code: Path, planted: str, refused: str
) -> None:
    host = rack[0]
    host.sh(planted)
    bringing = copy(ssh_of(rack), SshHost(name=host.name), plan_copy(code), "/tmp/w/code/x", timeout=PATIENCE)
    try:
        if refused:
            with pytest.raises(UserError, match=f"{host.name}: {refused} belongs to somebody else"):
                asyncio.run(bringing)
            assert not host.path("/home/rower/train.py").exists()
        else:
            assert asyncio.run(bringing).files
    finally:
        host.sh("rm -rf /tmp/w")
