"""Faces and supervisors that come and go."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarsman.backends.local.follow import SupervisorLink
from oarsman.control.supervisor import Supervisor
from oarsman.errors import StoreError
from oarsman.store.paths import Paths


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
