"""Doors to a machine's jobs without a supervisor behind them, for tests of what the store alone can tell."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import Any, Generic, TypeVar

import pytest
from cli.fakes import SUCCEEDED
from waiting import waiting

from oarsman.backends.local.backend import LocalBackend
from oarsman.portal import PortalIterator
from oarsman.status.codec import to_wire
from oarsman.store import logs
from oarsman.store.paths import Paths

T = TypeVar("T")
NOW = datetime(2026, 11, 15, tzinfo=UTC)
PATIENCE = 120.0


def without_a_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said to be there, and has nothing to say: a real one would outlive the test, and so would its jobs."""
    nobody_is_told(monkeypatch)
    monkeypatch.setattr("oarsman.backends.local.follow.LocalChanges._see_to_a_supervisor", _nothing)


def nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.ensure", _nothing)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.check_that_it_confines", _nothing)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.poke", _nothing)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.attend", _nothing)


async def _nothing(*_given: object) -> None:
    pass


def local_backend(paths: Paths) -> LocalBackend:
    found: LocalBackend = waiting(LocalBackend(paths))
    return found


def document(name: str = "pi", **given: Any) -> dict[str, Any]:
    """One launcher. `resources` are its limits."""
    container = {"name": "l", "command": ["mpirun", "-n", "1", "hostname"]}
    if "resources" in given:
        container["resources"] = {"limits": given["resources"]}
    replica = {"template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": name,
            "namespace": given.get("namespace", "default"),
            "annotations": given.get("annotations", {}),
        },
        "spec": {"mpiReplicaSpecs": {"Launcher": replica}},
    }


def finished(jobs: LocalBackend, name: str = "pi", **given: Any) -> str:
    """A job that is over; its uid."""
    uid = jobs.submit(document(name, **given), environment={}, folder=Path("/")).job.uid
    jobs._store.write_status(uid, to_wire(SUCCEEDED), finished=True, now=NOW)
    return uid


def merged_log(jobs: LocalBackend, uid: str, attempt: int = 1) -> Path:
    path = logs.merged_path(jobs._paths.job(uid), attempt)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def line(text: str, rank: int | str = 0, host: str = "pi-worker-0", stream: str = "out", second: int = 6) -> str:
    return f"2026-11-15T04:05:{second:02d}.000000Z {rank} {host} {stream} {text}\n"


class Listener(Generic[T]):
    """Another thread that takes what comes, until it is closed."""

    def __init__(self, items: PortalIterator[T]) -> None:
        self._items = items
        self._queue: Queue[T | BaseException | None] = Queue()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for item in self._items:
                self._queue.put(item)
            self._queue.put(None)
        except BaseException as error:
            self._queue.put(error)

    def next(self) -> T:
        item = self._queue.get(timeout=PATIENCE)
        assert item is not None, "it has ended"
        if isinstance(item, BaseException):
            raise item
        return item

    def ends(self) -> bool:
        return self._queue.get(timeout=PATIENCE) is None

    def close(self) -> None:
        self._items.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@contextmanager
def listening(items: PortalIterator[T]) -> Iterator[Listener[T]]:
    listener = Listener(items)
    try:
        yield listener
    finally:
        listener.close()
