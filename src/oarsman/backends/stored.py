"""The jobs of this machine and of SSH hosts, for the faces: what is wanted goes into the store, the supervisor is told.

Reading needs no supervisor at all. Whatever changes something makes sure that one is running.
"""

from __future__ import annotations

import contextlib
import copy
import getpass
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.backends.base import EVERYTHING, Batch, EventRecord, JobRecord, LogLine, LogPage, LogQuery
from oarsman.backends.local.follow import Readable, changes
from oarsman.backends.local.logs import LocalLogs
from oarsman.backends.local.supervisor_link import SupervisorLink
from oarsman.backends.stoppable import Stoppable
from oarsman.control.environments import Attaching, Attachment, LocalEnvironments, refusal
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.errors import ConflictError, NotFoundError, UserError
from oarsman.job.job import Job
from oarsman.manifest import job_checked_before, job_from_document
from oarsman.status.codec import from_wire
from oarsman.store import samples
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_MOST_KNOWN = 20_000  # jobs
_TIME_STEP = 0.0005  # samples are noted to the millisecond
_umask_lock = threading.Lock()


class StoredBackend:
    """Any number of threads may use one of these at the same time: each has a connection to the store of its own,
    and nothing else is shared that changes, but for a table of documents already read."""

    home = names.DEFAULT_NAMESPACE
    engine: str

    def __init__(self, paths: Paths | None = None) -> None:
        self._paths = paths or Paths.default()
        self._paths.make()
        self._store = JobStore(self._paths.database)
        self._caller = SupervisorLink(self._paths)
        self._logs = LocalLogs(self._paths, self._store)
        self._known: dict[str, Job] = {}
        self.environments = LocalEnvironments(self._paths, self._store.unsettled, _user)

    # -- what is wanted ------------------------------------------------------------------------------
    def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replace: bool = False,
        owner: str | None = None,
    ) -> JobRecord:
        job = job_from_document(document)
        if _undecodable(str(folder)):
            raise UserError(
                Text("the name of this folder is not valid UTF-8: {name}", name=f"{str(folder)!a}"),
                hint=Text("go to another one"),
            )
        self._in_its_environment(job)
        engine = self._engine_of(job)
        if replace:
            self._replace(job.key)
        stored = self._store.add(
            uid=str(uuid.uuid4()),
            namespace=job.namespace,
            name=job.name,
            engine=engine,
            owner=owner or _user(),
            folder=str(folder.absolute()),
            document=document,
            now=datetime.now(UTC),
            environment={**environment, names.ENV_UMASK: f"{_umask():03o}"},
        )
        self._caller.poke(stored.uid)
        return self._record(stored)

    def _engine_of(self, job: Job) -> str:
        """A job that names its hosts runs there, whichever backend it comes through; mistakes in them are told."""
        inventory = job.annotation(names.ANNOTATION_INVENTORY)
        if not inventory:
            return self.engine
        from oarsman.engines.hosts.ssh.inventory_file import load

        load(Path(inventory))
        return "ssh"

    def _in_its_environment(self, job: Job) -> Attachment:
        """Raises ManifestError where there is none of that name, or one that cannot be had."""
        attached = Attaching(self._paths).of(job)
        refused = refusal(job, attached, self.environments.known())
        if refused is not None:
            raise refused
        return attached

    def _replace(self, key: str) -> None:
        """Take a finished job of the same name away, and wait until it is gone."""
        try:
            stored = self._store.get(key)
        except NotFoundError:
            return
        if not from_wire(stored.status).finished:
            raise ConflictError(
                Text("{key} has not ended; it is not replaced", key=key),
                hint=Text("stop it first: {command}", command=f"oarsman stop {stored.name}"),
            )
        with contextlib.suppress(NotFoundError):  # it may be gone before we look
            self.delete(key)
            for _ in self.watch(key):
                pass

    def scale(self, key: str, workers: int) -> JobRecord:
        def edit(spec: dict[str, Any]) -> None:
            worker = spec["mpiReplicaSpecs"].get("Worker")
            if worker is None:
                raise UserError(Text("{key} has no workers to scale", key=key), field="spec.mpiReplicaSpecs.Worker")
            worker["replicas"] = workers

        return self._edit(key, edit, Text("scaled"))

    def suspend(self, key: str) -> JobRecord:
        return self._edit(key, lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True), Text("suspended"))

    def resume(self, key: str) -> JobRecord:
        return self._edit(key, lambda spec: spec.setdefault("runPolicy", {}).update(suspend=False), Text("resumed"))

    def _edit(self, key: str, change: Callable[[dict[str, Any]], None], what: str) -> JobRecord:
        """Change what is wanted, if the result is still a valid job. A bad change changes nothing."""
        stored = self._store.get(key)
        if from_wire(stored.status).finished:
            raise ConflictError(Text("{key} has ended; it cannot be {what}", key=key, what=what))
        document = copy.deepcopy(dict(stored.document))
        change(document["spec"])
        if document == stored.document:
            return self._record(stored)
        job_from_document(document)
        stored = self._store.change_document(key, document, expected_generation=stored.generation)
        self._caller.poke(stored.uid)
        return self._record(stored)

    def stop(self, key: str) -> JobRecord:
        if from_wire(self._store.get(key).status).finished:
            raise ConflictError(Text("{key} has ended already", key=key))
        stored = self._store.request_stop(key)
        self._caller.poke(stored.uid)
        return self._record(stored)

    def delete(self, key: str) -> None:
        self._caller.poke(self._store.request_delete(key).uid)

    # -- what it became ------------------------------------------------------------------------------
    def get(self, key: str) -> JobRecord:
        stored = self._store.get(key)
        if not stored.finished:
            self._caller.attend()
            stored = self._store.get(key)
        return self._record(stored)

    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        """All that can be read, in the order they came."""
        if self._store.anything_unfinished():
            self._caller.attend()
        found = self._store.changes(None, namespace).jobs
        newest = {record.job.key: record for record in Readable(found, self._record)}
        return sorted(newest.values(), key=lambda record: (record.created_at, record.job.name))

    def events(self, key: str) -> Sequence[EventRecord]:
        return [
            EventRecord(
                time=event.time,
                first_time=event.first_time,
                severity=event.severity,
                reason=event.reason,
                message=event.message,
                count=event.count,
            )
            for event in self._store.events(self._store.get(key).uid)
        ]

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
                    yield self._record(stored)
                    continue
                changes.wait(uid, deadline)

    def follow(self, namespace: str | None = None) -> Stoppable[Batch]:
        """Needs no supervisor, and keeps none alive: it is told by the store itself. If one dies while jobs are
        unfinished, another one is started. `close()` ends it from any thread, also while one waits in `next()`."""
        return Stoppable(lambda stop: changes(self._paths, self._store, self._record, namespace, stop))

    # -- what it uses, and what there is -------------------------------------------------------------
    def usage(self, key: str) -> Sequence[HostUsage]:
        from oarsman.control import usage  # psutil is slow to import, and only this needs it

        return usage.of_job(self._paths.job(self._store.get(key).uid))

    def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """Strictly after `since`: hand the newest time back and only what is new comes."""
        start = since.timestamp() if since is not None else float("-inf")
        return [
            UsageSample(
                time=datetime.fromtimestamp(moment.time, UTC),
                host=host,
                cpu_percent=sample.cpu_percent,
                memory_bytes=sample.memory_bytes,
                received_bytes_per_second=sample.received,
                sent_bytes_per_second=sample.sent,
                gpu_percent=sample.gpu_percent,
                gpu_memory_bytes=sample.gpu_memory_bytes,
            )
            for moment in samples.read(self._paths.job(self._store.get(key).uid))
            if moment.time > start + _TIME_STEP
            for host, sample in moment.hosts.items()
        ]

    def _unsettled(self) -> Sequence[JobRecord]:
        """Those that take room here, or wait for it."""
        unsettled = Readable(self._store.unsettled(), self._record)
        return [record for record in unsettled if record.engine == self.engine]

    # -- logs ----------------------------------------------------------------------------------------
    def logs(self, key: str, query: LogQuery = EVERYTHING) -> Iterator[LogLine]:
        stored = self._store.get(key)
        return self._logs.lines(stored, self._record(stored).job, query)

    def log_page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        """With filters or a search it looks at a bounded part of the log: a page may have fewer lines than `limit`, or
        none, and still have a `before`; one after a place is at the end only if `after` stays the same."""
        stored = self._store.get(key)
        return self._logs.page(stored, self._record(stored).job, query, after=after, before=before, limit=limit)

    def log_follow(self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None) -> Stoppable[LogPage]:
        """A page without lines says how far a search has come. `close()` ends it from any thread."""
        stored = self._store.get(key)
        job = self._record(stored).job
        if after is not None:
            self._logs.check(stored, query, after)
        return Stoppable(lambda stop: self._logs.follow_pages(stored, job, query, after, stop))

    # -- records -------------------------------------------------------------------------------------
    def _record(self, stored: StoredJob) -> JobRecord:
        return JobRecord(
            job=self._job(stored),
            status=from_wire(stored.status),
            created_at=stored.created_at,
            owner=stored.owner,
            folder=Path(stored.folder),
            engine=stored.engine,
            deleting=stored.deleting,
            stop_requested=stored.stop_requested,
            revision=stored.revision,
        )

    def _job(self, stored: StoredJob) -> Job:
        """Those that go on are looked at again and again, and are kept; of those that ended there may be very many."""
        known = self._known.get(stored.uid)
        if known is not None and known.generation == stored.generation:
            job = known
        else:
            job = job_checked_before(stored.document)
            job = replace(
                job, uid=stored.uid, generation=stored.generation, created_at=stored.created_at, owner=stored.owner
            )
        if stored.finished:
            self._known.pop(stored.uid, None)
            return job
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[stored.uid] = job
        return job


def _undecodable(text: str) -> bool:
    """Whether it holds bytes that are no text, which no record can keep."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have them
        return str(os.getuid())


def _umask() -> int:
    """Where the kernel does not say, it can only be read by setting it, and then by one thread at a time."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    with _umask_lock:
        mask = os.umask(0o077)
        os.umask(mask)
        return mask
