"""What is done on hosts for a job whose job agent was killed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from oarsman.engines.hosts.core.job_spec import write_spec
from oarsman.engines.hosts.core.journal import HostDown, HostMade, HostUp, Noted
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.transport import SshTransport

from ..specs import a_spec

PATIENCE = 100.0
NODES = ("node1", "node2", "node3")


def test_what_a_supervisor_that_was_killed_still_sweeps_is_waited_for(tmp_path: Path) -> None:
    """It would end what the next supervisor has begun meanwhile."""
    told = tmp_path / "told"
    told.touch()
    slow = f"echo begins >>{shlex.quote(str(told))}; sleep 1; echo ends >>{shlex.quote(str(told))}"
    write_spec(tmp_path, a_spec(cleanup={"node1": ["sh", "-c", slow]}))

    def clear_up() -> None:
        SshTransport(None).clear_up("uid-a", Seen(), tmp_path, tmp_path / "run")  # type: ignore[arg-type]

    supervisor = os.fork()
    if supervisor == 0:
        clear_up()
        os._exit(0)
    deadline = time.monotonic() + PATIENCE
    while not told.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    clear_up()
    assert told.read_text().split() == ["begins", "ends", "begins", "ends"]


def test_a_machine_on_which_a_host_was_lost_is_cleared_when_the_job_is_deleted(tmp_path: Path) -> None:
    """Whoever looks after a host there may have been killed together with the one that looks after both."""
    seen, told = Seen(), tmp_path / "told"
    for machine, reason in (("node1", "killed"), ("node2", "")):
        host = f"pi-{machine}"
        for fact in (HostMade(host, 0, False, 2, "once", "", [], machine), HostUp(host), HostDown(host, reason, False)):
            seen.learn(Noted(0.0, fact))
    ways = {machine: ["sh", "-c", f"{{ echo {machine}; cat; }} >>{shlex.quote(str(told))}"] for machine in NODES}
    write_spec(tmp_path, a_spec(cleanup=ways))
    SshTransport(None).forget("uid-a", seen, tmp_path)  # type: ignore[arg-type]
    assert told.read_text().split()[0] == "node1"
    assert "OARSMAN_JOB=uid-a" in told.read_text()
    assert "node2" not in told.read_text()


@pytest.mark.parametrize("shell", ["sh", "busybox sh"])
def test_what_carries_the_mark_is_found_wherever_in_its_environment_it_is(shell: str, tmp_path: Path) -> None:
    marked = subprocess.Popen(["sleep", "1000"], env={"FIRST": "1", "OARSMAN_JOB": "uid-b", "LAST": "1"})
    other = subprocess.Popen(["sleep", "1000"], env={"FIRST": "1", "OARSMAN_JOB": "uid-c"})
    script = f"MARK=OARSMAN_JOB=uid-b\nBASE={shlex.quote(str(tmp_path / 'base'))}\n{scripts.script('cleanup')}"
    tools = tmp_path / "bin"
    tools.mkdir()
    if shell != "sh":
        (tools / "grep").symlink_to("/usr/bin/busybox")
    try:
        environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
        subprocess.run([*shell.split(), "-c", script], check=True, timeout=PATIENCE, env=environment)
        assert marked.wait(PATIENCE) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (marked, other):
            process.kill()
            process.wait()
