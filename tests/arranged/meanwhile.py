"""What is done to a job. Each is a generator: what it does before the job is handed in, then while it runs; what it
undoes, it undoes when it is closed, after the job has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from engines.hosts.machine import Machine
from ssh_hosts import Host

from oarsman import names

from .cases import Case
from .site import Site

Doing = Iterator[None]
ACTIONS: dict[str, Callable[..., Doing]] = {}


def action(do: Callable[..., Doing]) -> Callable[..., Doing]:
    ACTIONS[do.__name__.replace("_", "-")] = do
    return do


@dataclass(frozen=True)
class At:
    """A case, where it runs."""

    site: Site
    case: Case

    @property
    def machine(self) -> Machine:
        return self.site.machine_of(self.case)

    @property
    def scratch(self) -> Path:
        return self.site.scratch_of(self.case)

    @property
    def host(self) -> Host:
        """The SSH host of the worker that something is done to."""
        assert self.site.rack is not None
        placed = self.site.ssh.machine_of(self.case.key)  # type: ignore[union-attr]
        return self.site.rack.host(placed[f"{self.case.name}-worker-{self.case.worker}"])

    def until_begun(self) -> None:
        self.machine.until_ranks(self.case.key, self.case.ranks)


def begin(at: At) -> Doing:
    name, *words = at.case.meanwhile.split() or ["nothing"]
    return ACTIONS[name](at, *words)


@action
def nothing(at: At) -> Doing:
    yield


@action
def write_data(at: At) -> Doing:
    """A file that is no program."""
    (at.scratch / "data").write_text("1 2 3\n")
    yield


@action
def install_elsewhere(at: At) -> Doing:
    """On every host but that of one worker. The hosts of the inventory are given to the workers in their order."""
    assert at.site.rack is not None
    program = "/home/rower/arranged"
    for worker, host in enumerate(at.site.rack[-2:]):
        host.path(program).unlink(missing_ok=True)
        if worker != at.case.worker:
            host.write(program, "#!/bin/sh\necho begun $RANK; exec sleep 900\n", "rower", 0o755)
    yield


@action
def kill_rank(at: At, rank: str, number: str) -> Doing:
    yield
    at.until_begun()
    shim = psutil.Process(at.machine.seen(at.case.key).ranks[int(rank)].pid)
    words = {"900", "mpi4py"}  # of the program; the other child keeps what it writes, and has all words of the shim
    (program,) = [child for child in shim.children() if words & set(child.cmdline()[:4])]
    program.send_signal(int(number))


@action
def kill_host(at: At) -> Doing:
    yield
    at.until_begun()
    os.kill(at.machine.seen(at.case.key).hosts[f"{at.case.name}-worker-{at.case.worker}"].process.pid, signal.SIGKILL)


@action
def kill_host_agent(at: At) -> Doing:
    """Of the only job there."""
    yield
    at.until_begun()
    at.host.sh("pkill -KILL -u rower -o -f 'IFS= read -r s'")


@action
def cut(at: At) -> Doing:
    yield
    at.until_begun()
    with at.host.faults.cut():
        yield


@action
def power_off(at: At) -> Doing:
    yield
    at.until_begun()
    with at.host.faults.power_off():
        yield


@action
def scale(at: At, *counts: str) -> Doing:
    """To the first number when it runs, to the next when all ranks do."""
    yield
    at.machine.until(at.case.key, lambda status: status.is_true(names.RUNNING))
    for count in counts:
        at.machine.jobs.scale(at.case.key, int(count))
        if count != counts[-1]:
            at.until_begun()


@action
def hold_everything(at: At) -> Doing:
    """Another job has all there is until this one says that it waits."""
    go = at.scratch / "go"
    script = f"until [ -e {go} ]; do sleep 0.1; done"
    holder = replace(at.case, kind=f"{at.case.kind}-holder", command=(), script=script)
    at.site.submit(holder)
    at.machine.until(holder.key, lambda status: status.is_true(names.RUNNING))
    yield
    at.machine.until(at.case.key, lambda status: status.queue is not None)
    go.touch()
    at.machine.until_finished(holder.key)
    at.machine.jobs.delete(holder.key)


@action
def starve(at: At, seconds: str) -> Doing:
    """Job agent and hosts, or what leads to these, are stopped for a while, in which the ranks end."""
    yield
    at.until_begun()
    seen = at.machine.seen(at.case.key)
    assert seen.agent is not None
    agent = psutil.Process(seen.agent.pid)
    hosts = [psutil.Process(host.process.pid) for host in seen.hosts.values() if host.process.pid]
    stopped = [agent, *(hosts if at.case.place == names.LOCAL else agent.children())]
    for process in stopped:
        process.suspend()
    (at.scratch / "go").touch()
    time.sleep(float(seconds))
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


@action
def suspend(at: At) -> Doing:
    yield
    at.until_begun()
    at.machine.jobs.suspend(at.case.key)
    at.machine.until(at.case.key, lambda status: status.is_true(names.SUSPENDED) and status.worker.active == 0)
    (at.scratch / "go").touch()
    at.machine.jobs.resume(at.case.key)


@action
def stop(at: At) -> Doing:
    yield
    at.until_begun()
    at.machine.jobs.stop(at.case.key)
