"""Faces and supervisors that come and go."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from oarsman.backends.local.follow import SupervisorLink
from oarsman.control.supervisor import Supervisor
from oarsman.errors import StoreError, SupervisorError
from oarsman.store.paths import Paths

from .local_backends import PATIENCE, document, local_backend


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Paths]:
    paths = Paths(tmp_path / "state")
    paths.make()
    paths.make_run()
    yield paths
    paths.socket.unlink(missing_ok=True)
    paths.run.rmdir()


def test_a_supervisor_that_leaves_without_an_answer_is_not_believed(paths: Paths) -> None:
    heard: list[str] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(paths.socket))
    server.listen()

    def answer_the_second() -> None:
        for number in range(2):
            caller, _ = server.accept()
            with caller:
                if number == 1:
                    heard.append(json.loads(caller.recv(100))["poke"])
                    caller.sendall(b"{}\n")

    thread = threading.Thread(target=answer_the_second)
    thread.start()
    asyncio.run(SupervisorLink(paths).poke("uid"))
    thread.join()
    server.close()
    assert heard == ["uid"]


def test_a_socket_in_a_folder_that_others_can_write_to_is_not_trusted(paths: Paths) -> None:
    paths.run.chmod(0o777)
    with pytest.raises(StoreError, match="not a folder of this user alone"):
        SupervisorLink(paths).reach()


def test_a_supervisor_that_is_about_to_leave_takes_no_orders(paths: Paths) -> None:
    async def story() -> bytes:
        supervisor = Supervisor(paths)
        server = await asyncio.start_unix_server(supervisor._serve, paths.socket)
        supervisor._stop.set()
        reader, writer = await asyncio.open_unix_connection(paths.socket)
        writer.write(b'{"poke": "uid"}\n')
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        server.close()
        supervisor._store.close()
        return answer

    assert asyncio.run(story()) == b""


def started(paths: Paths, ready: int) -> None:
    words = [sys.executable, "-m", "oarsman.control.supervisor", str(ready)]
    environment = {**os.environ, "OARSMAN_STATE": str(paths.state)}
    subprocess.run(words, pass_fds=[ready], env=environment, check=True, timeout=PATIENCE)


def test_a_supervisor_whose_starter_was_killed_while_it_started_stays(paths: Paths) -> None:
    read, write = os.pipe()
    os.close(read)
    started(paths, write)
    os.close(write)
    deadline = time.monotonic() + PATIENCE
    while not re.search("is ready|failed", _log_of(paths)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert SupervisorLink(paths).stop(), _log_of(paths)
    _until_gone(paths)


def test_a_job_is_not_stored_before_somebody_looks_after_it(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cannot(_link: SupervisorLink) -> socket.socket:
        raise SupervisorError("there is none in this test")

    monkeypatch.setattr(SupervisorLink, "connect", cannot)
    jobs = local_backend(paths)
    with pytest.raises(SupervisorError):
        jobs.submit(document(), environment={}, folder=Path("/"))
    assert jobs.list() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_submit_that_is_ended_while_the_supervisor_starts_leaves_no_job_that_nobody_runs(
    paths: Paths, number: signal.Signals
) -> None:
    words = [sys.executable, "-m", "oarsman.cli", "submit", "-n", "1", "--oversubscribe", "--", "true"]
    environment = {**os.environ, "OARSMAN_STATE": str(paths.state)}
    deadline = time.monotonic() + PATIENCE
    with subprocess.Popen(words, env=environment, start_new_session=True, cwd=paths.state) as command:
        me = psutil.Process(command.pid)
        while not [child for child in me.children() if "oarsman.control.supervisor" in child.cmdline()]:
            assert command.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        if number == signal.SIGINT:
            os.killpg(command.pid, number)  # as a terminal does
        else:
            command.send_signal(number)
        command.wait(PATIENCE)
    while not (alive := SupervisorLink(paths).stop()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive, _log_of(paths)
    _until_gone(paths)


def _log_of(paths: Paths) -> str:
    return paths.supervisor_log.read_text() if paths.supervisor_log.exists() else ""


def _until_gone(paths: Paths) -> None:
    """The supervisor removes this folder last."""
    deadline = time.monotonic() + PATIENCE
    while paths.run.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    paths.make_run()
