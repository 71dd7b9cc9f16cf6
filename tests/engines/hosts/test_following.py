"""Real jobs, looked at as a console does: all of them, their logs and what their hosts use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import TypeVar

import inotify_simple
import psutil
import pytest

from oarsman.backends.base import Batch
from oarsman.backends.local.follow import SupervisorLink
from oarsman.portal import PortalIterator

from .machine import PATIENCE, WAITS, Machine, mpijob, python

pytestmark = pytest.mark.mpi
T = TypeVar("T")
OVERSUBSCRIBE = {"oarsman.dev/oversubscribe": "true"}


@contextmanager
def heard(items: PortalIterator[T]) -> Iterator[Queue[T]]:
    """What comes, taken by another thread until the block ends."""
    queue: Queue[T] = Queue()
    thread = threading.Thread(target=lambda: [queue.put(item) for item in items])
    thread.start()
    try:
        yield queue
    finally:
        items.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(queue: Queue[Batch], wanted: Callable[[Batch], bool]) -> Batch:
    while not wanted(batch := queue.get(timeout=PATIENCE)):
        pass
    return batch


def test_a_follower_sees_a_job_through_although_its_supervisor_is_killed(own_machine: Machine) -> None:
    with heard(own_machine.jobs.follow()) as batches:
        assert batches.get(timeout=PATIENCE).whole
        assert SupervisorLink(own_machine.paths).pid() is None  # looking on starts nothing
        key = own_machine.submit(mpijob("pi", ["mpirun", "-n", "2", *python(WAITS)], annotations=OVERSUBSCRIBE))
        until(batches, lambda batch: any(record.status.attempts for record in batch.records))
        own_machine.until_ranks(key, 2)
        first = own_machine.supervisor()
        first.kill()
        psutil.wait_procs([first], timeout=PATIENCE)
        seen = own_machine.seen(key)
        assert seen.launcher is not None
        host = next(one for one in seen.hosts.values() if one.launcher)
        for child in psutil.Process(host.process.pid).children():
            child.kill()
        until(batches, lambda batch: any(record.status.finished for record in batch.records))
        own_machine.jobs.delete(key)
        until(batches, lambda batch: batch.gone == (key,))


BUSY = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nprint('begun', flush=True)\nwhile True: pass\n"


def until_sampled(machine: Machine, key: str, host: str) -> None:
    """Wait until the file of samples tells of work on that host."""
    folder = machine.paths.job(machine.uid(key))
    with inotify_simple.INotify() as notifier:
        notifier.add_watch(str(folder), inotify_simple.flags.MODIFY)
        while not any(one.host == host and one.cpu_percent > 10 for one in machine.jobs.usage_series(key)):
            notifier.read(timeout=1000)


def test_hosts_and_samples_tell_what_a_job_has_and_uses(own_machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_SAMPLE_SECONDS", "0.2")
    one_cpu = {"resources": {"limits": {"cpu": "1"}}}
    key = own_machine.submit(mpijob("busy", ["mpirun", "-n", "1", *python(BUSY)], workers=1, launcher=one_cpu))
    own_machine.until_ranks(key, 1)
    (host,) = own_machine.jobs.hosts()
    assert [(held.key, held.amounts.cpus) for held in host.holdings] == [(key, 1.0)]
    all_there_are = {"resources": {"limits": {"cpu": str(int(host.total.cpus))}}}
    fit = own_machine.jobs.fit(mpijob("all", ["true"], workers=1, launcher=all_there_are))
    assert (fit.now, fit.ever) == (False, True)
    assert f"(held by {key}: 1)" in fit.reason
    until_sampled(own_machine, key, "busy-worker-0")
    own_machine.jobs.stop(key)
    own_machine.until_finished(key)
    series = own_machine.jobs.usage_series(key)
    assert {sample.host for sample in series} == {"busy-launcher", "busy-worker-0"}
    assert [sample.time for sample in series] == sorted(sample.time for sample in series)
    worker = [sample for sample in series if sample.host == "busy-worker-0"]
    assert max(sample.memory_bytes for sample in worker) > 1 << 20
    assert all(sample.gpu_percent is None for sample in series)


def test_a_log_is_followed_page_by_page_to_the_end_of_a_real_job(machine: Machine) -> None:
    talk = ["mpirun", "-n", "2", "sh", "-c", "echo hello; echo oh >&2"]
    key = machine.submit(mpijob("talks", talk, annotations=OVERSUBSCRIBE))
    lines = [placed.line for page in machine.jobs.log_follow(key) for placed in page.lines]
    assert sorted((line.rank, line.text) for line in lines if line.rank is not None) == [
        (0, "hello"),
        (0, "oh"),
        (1, "hello"),
        (1, "oh"),
    ]
    machine.until_finished(key)
    assert [placed.line for placed in machine.jobs.log_page(key).lines] == lines
