"""The first process of a host on its machine, minded by a test instead of ssh."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh import scripts

pytestmark = pytest.mark.timeout(120)
PATIENCE = 100.0


class Host:
    """A machine's folder for one job, and the host agents that are started on it."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.base = folder / "oarsman-0123456789ab"
        self.mark = f"OARSMAN_JOB={uuid.uuid4()}"
        self.folder = folder
        self._shell = shell
        self._started: list[subprocess.Popen[bytes]] = []

    def host_agent(
        self, member: str = "0", *, silence: int = 60, folder: str = "", hands_on: bool = False
    ) -> subprocess.Popen[bytes]:
        given = {"BASE": self.base, "RUN": self.base / member, "MARK": self.mark, "SILENCE": silence, "PORTS": "1"}
        given |= {"FOLDER": folder or self.folder, "HANDS_ON": "yes" if hands_on else ""}
        lines = "".join(f"{name}='{value}'\n" for name, value in given.items())
        files = scripts.writing({"env": f"export {self.mark}\n"}, seats="")
        host_agent = self._start(lines + files + scripts.script("host_agent"))
        self._started.append(host_agent)
        return host_agent

    def command(self, argv: list[str], member: str = "0") -> subprocess.Popen[bytes]:
        run = str(self.base / member)
        script = scripts.command(argv, run=run, number=1, folder="/", variables={})
        command = self._start(script)
        self._started.append(command)
        return command

    def _start(self, script: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["sh", "-c", scripts.RECEIVER.replace("/bin/sh", self._shell)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(scripts.line(script))
        process.stdin.flush()
        return process

    def close(self) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture(params=["/bin/sh", "bash --posix", "busybox sh"], ids=["dash", "bash", "busybox"])
def host(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Host]:
    host = Host(tmp_path, request.param)
    yield host
    host.close()


def until(fact: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def says(host_agent: subprocess.Popen[bytes]) -> str:
    assert host_agent.stdout is not None
    return host_agent.stdout.readline().decode().strip()


def order(host_agent: subprocess.Popen[bytes], words: str) -> None:
    assert host_agent.stdin is not None
    host_agent.stdin.write(f"{words}\n".encode())
    host_agent.stdin.flush()


def hang_up(host_agent: subprocess.Popen[bytes]) -> None:
    assert host_agent.stdin is not None
    host_agent.stdin.close()
    host_agent.wait(PATIENCE)


def is_up(host_agent: subprocess.Popen[bytes]) -> None:
    while not says(host_agent).startswith("up "):
        assert host_agent.poll() is None


def test_a_machine_that_cannot_serve_keeps_nothing(host: Host) -> None:
    host_agent = host.host_agent(folder="/proc/nowhere")
    said, _ = host_agent.communicate(timeout=PATIENCE)
    assert "failed" in said.decode()
    assert not host.base.exists()


def test_a_host_agent_that_hears_late_that_it_is_over_leaves_its_successor_alone(host: Host) -> None:
    first = host.host_agent()
    is_up(first)
    second = host.host_agent()
    is_up(second)
    command = host.command(["sleep", "600"])
    until((host.base / "0" / "p" / "1").exists, "the command did not start")
    hang_up(first)
    order(second, "heard 1")
    while says(second) != "alive 1":
        assert second.poll() is None
    assert command.poll() is None
    hang_up(second)
    assert command.wait(PATIENCE)
    until(lambda: not host.base.exists(), "its folder stayed")


def test_what_a_host_that_came_back_left_running_ends_before_it_serves_again(host: Host) -> None:
    first = host.host_agent()
    is_up(first)
    command = host.command(["sleep", "600"])
    until((host.base / "0" / "p" / "1").exists, "the command did not start")
    is_up(host.host_agent())
    assert command.wait(PATIENCE)


def test_a_command_that_is_only_starting_when_all_ends_never_begins(host: Host, tmp_path: Path) -> None:
    host_agent = host.host_agent()
    is_up(host_agent)
    (host.base / "0" / "env").write_text(
        f"export {host.mark}\n: >{tmp_path}/waits\nuntil [ -e {tmp_path}/go ]; do sleep 0.05; done\n"
    )
    command = host.command(["touch", str(tmp_path / "ran")])
    until((tmp_path / "waits").exists, "the command did not start")
    hang_up(host_agent)
    (tmp_path / "go").touch()
    command.wait(PATIENCE)
    assert not (tmp_path / "ran").exists()


def test_a_request_to_end_is_no_silence(host: Host, tmp_path: Path) -> None:
    host_agent = host.host_agent(silence=1)
    is_up(host_agent)
    saves = f"trap 'sleep 3; : >{tmp_path}/saved; exit' TERM; : >{tmp_path}/ready; sleep 600 & wait"
    host.command(["sh", "-c", saves])
    until((tmp_path / "ready").exists, "the command did not start")
    order(host_agent, "end 10")
    host_agent.wait(PATIENCE)
    assert (tmp_path / "saved").exists()


def test_what_lies_there_of_a_job_that_lost_its_machine_is_removed_by_the_next_one(host: Host) -> None:
    lost, lives, foreign = (host.folder / f"oarsman-00000000000{number}" for number in (1, 2, 3))
    for other, age in ((lost, 3600), (lives, 5)):
        (other / "0").mkdir(parents=True)
        (other / "0" / "agent.pid").write_text("1\n")
        (other / "0" / "heard").touch()
        os.utime(other / "0" / "heard", (time.time() - age,) * 2)
    foreign.mkdir()
    host_agent = host.host_agent()
    is_up(host_agent)
    until(lambda: not lost.exists(), "it stayed")
    hang_up(host_agent)
    assert sorted(host.folder.glob("oarsman-*")) == [lives, foreign]
