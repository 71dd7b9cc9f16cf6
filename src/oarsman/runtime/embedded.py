"""The faces' door to the jobs of this machine: what is wanted goes into the store, the supervisor is told.

Reading needs no supervisor at all. Whatever changes something makes sure that one is running.
"""

from __future__ import annotations

import contextlib
import copy
import getpass
import os
import select
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.errors import ConflictError, ManifestError, NotFoundError, UserError
from oarsman.manifest import job_from_document
from oarsman.runtime.caller import Caller
from oarsman.runtime.jobs import EVERYTHING, EventRecord, HostUsage, JobRecord, LogLine, LogQuery
from oarsman.status.wire import from_wire
from oarsman.store import logs as stored_logs
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.places import Places


class EmbeddedJobs:
    home = names.DEFAULT_NAMESPACE

    def __init__(self, places: Places | None = None) -> None:
        self._places = places or Places.default()
        self._places.make()
        self._store = JobStore(self._places.database)
        self._caller = Caller(self._places)

    # -- what is wanted ------------------------------------------------------------------------------
    def submit(
        self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path, replace: bool = False
    ) -> JobRecord:
        job = job_from_document(document)
        if _undecodable(str(folder)):
            raise UserError(f"the name of this folder is not valid UTF-8: {str(folder)!a}", hint="go to another one")
        if replace:
            self._replace(job.key)
        stored = self._store.add(
            uid=str(uuid.uuid4()), namespace=job.namespace, name=job.name, engine="embedded", owner=_user(),
            folder=str(folder.absolute()), document=document, now=datetime.now(UTC),
            environment={**environment, names.ENV_UMASK: f"{_umask():03o}"},
        )  # fmt: skip
        self._caller.poke(stored.uid)
        return _record(stored)

    def _replace(self, key: str) -> None:
        """Take a finished job of the same name away, and wait until it is gone."""
        try:
            stored = self._store.get(key)
        except NotFoundError:
            return
        if not from_wire(stored.status).finished:
            raise ConflictError(
                f"{key} has not ended; it is not replaced", hint=f"stop it first: oarsman stop {stored.name}"
            )
        with contextlib.suppress(NotFoundError):  # it may be gone before we look
            self.delete(key)
            for _ in self.watch(key):
                pass

    def scale(self, key: str, workers: int) -> JobRecord:
        def edit(spec: dict[str, Any]) -> None:
            worker = spec["mpiReplicaSpecs"].get("Worker")
            if worker is None:
                raise UserError(f"{key} has no workers to scale", field="spec.mpiReplicaSpecs.Worker")
            worker["replicas"] = workers

        return self._edit(key, edit, "scaled")

    def suspend(self, key: str) -> JobRecord:
        return self._edit(key, lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True), "suspended")

    def resume(self, key: str) -> JobRecord:
        return self._edit(key, lambda spec: spec.setdefault("runPolicy", {}).update(suspend=False), "resumed")

    def _edit(self, key: str, change: Callable[[dict[str, Any]], None], what: str) -> JobRecord:
        """Change what is wanted, if the result is still a valid job. A bad change changes nothing."""
        stored = self._store.get(key)
        if from_wire(stored.status).finished:
            raise ConflictError(f"{key} has ended; it cannot be {what}")
        document = copy.deepcopy(dict(stored.document))
        change(document["spec"])
        if document == stored.document:
            return _record(stored)
        job_from_document(document)
        stored = self._store.change_document(key, document, expected_generation=stored.generation)
        self._caller.poke(stored.uid)
        return _record(stored)

    def stop(self, key: str) -> JobRecord:
        if from_wire(self._store.get(key).status).finished:
            raise ConflictError(f"{key} has ended already")
        stored = self._store.request_stop(key)
        self._caller.poke(stored.uid)
        return _record(stored)

    def delete(self, key: str) -> None:
        self._caller.poke(self._store.request_delete(key).uid)

    # -- what it became ------------------------------------------------------------------------------
    def get(self, key: str) -> JobRecord:
        stored = self._store.get(key)
        if not stored.finished:
            self._caller.attend()
            stored = self._store.get(key)
        return _record(stored)

    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        """All that can be read; one that an older Oarsman took and this one does not must not hide the others."""
        if self._store.unfinished():
            self._caller.attend()
        records = []
        for stored in self._store.all(namespace):
            with contextlib.suppress(ManifestError):
                records.append(_record(stored))
        return records

    def events(self, key: str) -> Sequence[EventRecord]:
        return [
            EventRecord(
                time=event.time, first_time=event.first_time, severity=event.severity, reason=event.reason,
                message=event.message, count=event.count,
            )
            for event in self._store.events(self._store.get(key).uid)
        ]  # fmt: skip

    def watch(self, key: str, *, timeout: float | None = None) -> Iterator[JobRecord]:
        deadline = None if timeout is None else time.monotonic() + timeout
        uid = self._store.get(key).uid
        seen = -1
        with self._caller.watching() as changes:
            while True:
                stored = self._store.by_uid(uid)
                if stored is None:
                    return
                if stored.revision != seen:
                    seen = stored.revision
                    yield _record(stored)
                    continue
                changes.wait(uid, deadline)

    def usage(self, key: str) -> Sequence[HostUsage]:
        from oarsman.runtime import usage  # psutil is slow to import, and only this needs it

        return usage.of_job(self._places.job(self._store.get(key).uid))

    # -- logs ----------------------------------------------------------------------------------------
    def logs(self, key: str, query: LogQuery = EVERYTHING) -> Iterator[LogLine]:
        stored = self._store.get(key)
        folder = self._places.job(stored.uid)
        attempt = query.attempt or max(stored_logs.attempts(folder), default=1)
        path = stored_logs.merged_path(folder, attempt)
        reader = stored_logs.Reader(path, wanted=_filter(_record(stored), query), tail=query.tail)
        return self._follow(stored.uid, reader, attempt) if query.follow else reader.news()

    def _follow(self, uid: str, reader: stored_logs.Reader, attempt: int) -> Iterator[LogLine]:
        """Every line until the attempt is over. Its last lines are written before its end is on record."""
        try:
            with self._caller.watching() as changes:
                while True:
                    over = self._attempt_over(uid, attempt)
                    yield from reader.news()
                    if over:
                        return
                    self._await_news(reader, changes.fileno())
                    changes.drain()
        finally:
            reader.close()

    @staticmethod
    def _await_news(reader: stored_logs.Reader, changes: int) -> None:
        descriptor = reader.fileno()
        if descriptor is None:
            select.select([changes], [], [], 0.25)
            return
        readable, _, _ = select.select([descriptor, changes], [], [])
        if descriptor in readable:
            reader.acknowledge()

    def _attempt_over(self, uid: str, number: int) -> bool:
        stored = self._store.by_uid(uid)
        if stored is None:
            return True
        status = from_wire(stored.status)
        ended = any(attempt.number == number and attempt.finished_at is not None for attempt in status.attempts)
        return ended or status.finished


def _undecodable(text: str) -> bool:
    """Whether it holds bytes that are no text, which no record can keep."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have them
        return str(os.getuid())


def _umask() -> int:
    """It can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _filter(record: JobRecord, query: LogQuery) -> stored_logs.Wanted:
    if query == LogQuery(attempt=query.attempt, follow=query.follow, tail=query.tail):
        return lambda _line: True
    hosts = {record.job.worker_host(index) for index in query.workers}
    since = stored_logs.stamp(query.since) if query.since is not None else ""

    def wanted(line: LogLine) -> bool:
        return (
            (not query.ranks or line.rank in query.ranks)
            and (not hosts or line.host in hosts)
            and (not query.launcher_only or line.rank is None)
            and (query.stream is None or line.stream == query.stream)
            and line.stamp >= since
        )

    return wanted


def _record(stored: StoredJob) -> JobRecord:
    job = job_from_document(stored.document)
    job = replace(job, uid=stored.uid, generation=stored.generation, created_at=stored.created_at)
    return JobRecord(
        job=job, status=from_wire(stored.status), created_at=stored.created_at, owner=stored.owner,
        folder=Path(stored.folder), engine=stored.engine, deleting=stored.deleting,
        stop_requested=stored.stop_requested, revision=stored.revision,
    )  # fmt: skip
