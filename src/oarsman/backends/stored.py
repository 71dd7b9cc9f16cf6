"""The jobs of this machine and of SSH hosts, for the faces: what is wanted goes into the store, the supervisor is told.

Reading needs no supervisor at all. Whatever changes something makes sure that one is running. The store and the logs
are read in threads; what waits, waits in the event loop to be notified.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import os
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from oarsman import names
from oarsman.backends.base import Batch, Document, Edits, EventRecord, JobRecord, current_user, merged
from oarsman.backends.local.follow import SharedChanges, SupervisorLink, changes, legible
from oarsman.backends.local.logs import LocalLogs
from oarsman.control.environments import Attaching, Attachment, LocalEnvironments, refuse_impossible
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.engines.hosts.core import cgroups, installed_mpi, limits
from oarsman.engines.hosts.core.job_spec import find_spec
from oarsman.errors import ConflictError, ForbiddenError, ManifestError, NotFoundError, Problem, UsageError, UserError
from oarsman.job.confined import confined_by
from oarsman.job.job import Job
from oarsman.manifest import job_checked_before, job_from_document
from oarsman.manifest.problems import cannot_start
from oarsman.plan.capacity import hosts, one_machine, queue
from oarsman.plan.capacity.gang import asked_by
from oarsman.plan.capacity.placement import Machine
from oarsman.portal import in_thread
from oarsman.status.codec import from_wire
from oarsman.store import samples
from oarsman.store.jobs import JobStore, NewJob, StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text, load

_MOST_KNOWN = 20_000  # jobs
_RUNS_KEPT = 10  # earlier ones, of each job
_TIME_STEP = 0.0005  # samples are noted to the millisecond
_umask_lock = threading.Lock()


class StoredBackend(Edits):
    """Of what its threads share, only a table of documents already read changes: each has a connection to the store of
    its own."""

    home = names.DEFAULT_NAMESPACE
    place: str
    shown: str | None = None  # the engine whose jobs are listed; None: all that are in the store
    _asks = _trusts = True  # see `limited`

    def __init__(self, paths: Paths | None = None, *, any_inventory: bool = True) -> None:
        """any_inventory: jobs may name the file of their hosts; else they get those that we were started with."""
        self._any_inventory = any_inventory
        self._paths = paths or Paths.default()
        self._paths.make()
        self._store = JobStore(self._paths.database)
        self._supervisor = SupervisorLink(self._paths)
        self._listening = SharedChanges(self._paths, self._store.anything_unfinished)
        logs = LocalLogs(self._paths, self._store, self._found, self._listening)
        self.logs, self.log_page, self.log_follow = logs.lines, logs.page, logs.follow
        self._known: dict[str, Job] = {}
        self.environments = LocalEnvironments(self._paths, self._store.unsettled, current_user)

    async def close(self) -> None:
        await asyncio.to_thread(self._store.close)

    def limited(self, *, asks: bool, trusts: bool) -> Self:
        other = copy.copy(self)
        other._asks, other._trusts = asks, trusts
        return other

    # -- what is wanted ------------------------------------------------------------------------------
    async def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replaces: str | None = None,
        owner: str | None = None,
    ) -> JobRecord:
        confined = confined_by(environment) is not None
        job, engine = await asyncio.to_thread(self._checked, document, folder)
        if owner not in (None, current_user()) and not confined:  # what somebody else wrote has no rights of ours
            hint = Text("run the command through the server that it came from: --server URL")
            raise ForbiddenError(Text("{key} is a job of {owner}", key=job.key, owner=owner), hint=hint)
        if why := await asyncio.to_thread(self._never_fits, job, engine):
            raise UserError(Text("{key} can never start: {why}", key=job.key, why=why), field="spec.mpiReplicaSpecs")
        await self._check_mpi(job, engine, environment, folder)
        keeping, to_clear = runs_kept() if replaces is not None else 0, list[str]()

        def add() -> StoredJob:
            wanted = NewJob(
                uid=str(uuid.uuid4()),
                namespace=job.namespace,
                name=job.name,
                engine=engine,
                owner=owner or current_user(),
                folder=str(folder.absolute()),
                document=job.document,
                now=datetime.now(UTC),
                environment={**environment, **_of_this_process()},
            )
            if replaces is not None:
                stored, to_clear[:] = self._store.replace(replaces, keeping=keeping, **wanted)
            else:
                stored = self._store.add(**wanted)
            self._known[stored.uid] = dataclasses.replace(job, **stored.identity)
            return stored

        await self._supervisor.ensure()
        if confined:
            await self._supervisor.check_that_it_confines()
        if replaces is not None:
            await self._until_it_can_be_replaced(job.key, replaces)
        adding = asyncio.create_task(asyncio.to_thread(add))
        try:
            record = await self._told(adding)
        except asyncio.CancelledError:  # whoever hands it in wants it no more, and will never know its name
            await asyncio.wait([adding])
            if adding.exception() is None:
                with contextlib.suppress(NotFoundError):  # it is gone already, and another may have its name
                    await asyncio.to_thread(self._store.request_stop, job.key, adding.result().uid)
            raise
        for uid in to_clear:
            await self._supervisor.poke(uid)
        return dataclasses.replace(record, limits=await asyncio.to_thread(self._limits_not_kept, job, engine))

    def _limits_not_kept(self, job: Job, engine: str) -> str:
        if not job.limits_memory:
            return ""
        return limits.not_kept(job, None if engine == "ssh" else cgroups.find(self._supervisor.pid()))

    def _checked(self, document: Mapping[str, Any], folder: Path) -> tuple[Job, str]:
        """The job, and the engine that runs it."""
        job = self._wanted(self._read(document))
        undecodable = any("\ud800" <= letter <= "\udfff" for letter in str(folder))
        if undecodable:  # no record can keep bytes that are no text
            wrong = Text("the name of this folder is not valid UTF-8: {name}", name=f"{str(folder)!a}")
            raise UserError(wrong, hint=Text("go to another one"))
        self._in_its_environment(job)
        return job, self._engine_of(job)

    async def _check_mpi(self, job: Job, engine: str, environment: Mapping[str, str], folder: Path) -> None:
        """One that is named by its path has to be there: whoever names it wants no other."""
        being_built = job.annotation(names.ANNOTATION_ENVIRONMENT)  # MPI and all, perhaps
        if not (self._trusts and job.mpi_path) or job.path_is_of_image or being_built:
            return
        if engine == "ssh":
            why = await self._no_mpi_on_hosts(job)
        else:
            why = await asyncio.to_thread(_no_mpi, job, environment, folder)
        if why is not None:
            hint = Text("name one that is there with --mpi, which also counts for a launch line with a path")
            raise UsageError(why, hint=hint)

    async def _no_mpi_on_hosts(self, job: Job) -> str | None:
        """Hosts that do not answer now may have it."""
        from oarsman.control.host_state import known_inventories
        from oarsman.engines.hosts.ssh.host_facts import mpi_not_there

        stated = job.annotation(names.ANNOTATION_INVENTORY)
        inventory_facts = await asyncio.to_thread(lambda: known_inventories(self._paths).of(stated))
        if not inventory_facts.fresh:
            await inventory_facts.look()
        return mpi_not_there(job, await inventory_facts.for_mpi_of(job, inventory_facts.facts))

    def _read(self, document: Mapping[str, Any]) -> Job:
        """The job of a document that somebody hands us. It has no files of its own yet, whatever uid it claims."""
        job = dataclasses.replace(job_from_document(document), uid="")
        if problems := cannot_start(job.warnings):
            raise ManifestError(problems)
        stated = job.annotation(names.ANNOTATION_INVENTORY)
        if stated and not self._any_inventory and stated != self._own_inventory:
            message = Text("this server uses only the hosts that it was started with")
            hint = Text("leave it out; `oarsman serve --on ssh --hosts FILE` starts a server for other hosts")
            field = f"metadata.annotations[{names.ANNOTATION_INVENTORY}]"
            raise ManifestError([Problem(source=job.name, line=0, column=0, field=field, message=message, hint=hint)])
        return job

    @property
    def _own_inventory(self) -> str:
        return ""

    def _wanted(self, job: Job) -> Job:
        """As it is kept."""
        return job

    async def _told(self, changing: asyncio.Task[StoredJob]) -> JobRecord:
        """Make the change, and tell the supervisor."""
        stored = await asyncio.shield(changing)
        await self._supervisor.poke(stored.uid)
        return await asyncio.to_thread(self._record, stored)

    async def has_folder(self, path: str) -> bool:
        return "\0" not in path and os.path.isabs(path) and await asyncio.to_thread(os.path.isdir, path)

    def _engine_of(self, job: Job) -> str:
        """A job that names its hosts runs there, whichever backend it comes through; mistakes in them are told."""
        inventory = job.annotation(names.ANNOTATION_INVENTORY)
        if not inventory:
            return self.place
        from oarsman.engines.hosts.ssh.inventory_file import load

        if self._any_inventory:  # else it is not the caller's: its text is not for them
            load(Path(inventory))
        return "ssh"

    def _never_fits(self, job: Job, engine: str) -> str:
        """Why it could not start even if nothing else ran. No host is asked for this: what is not known of one is no
        reason, and is found out when the job is to start."""
        asks_nothing = engine != "ssh" and not any(asked_by(job).values())
        if asks_nothing or not job.is_ours:
            return ""
        machines, rules = self._site(job, engine)
        return queue.Room(machines, (), rules).impossible(rules.gang_of(job, datetime.now(UTC), machines))

    def _site(self, job: Job, engine: str) -> tuple[Sequence[Machine], queue.SiteRules]:
        """The machines that it is for, as far as they are known here."""
        if engine == "ssh":
            from oarsman.control.host_state import known_inventories

            return known_inventories(self._paths).of(job.annotation(names.ANNOTATION_INVENTORY)).machines(), hosts
        from oarsman.engines.hosts.local import capacity  # late: it imports psutil, which is slow

        return [capacity.measure()], one_machine

    def _in_its_environment(self, job: Job) -> Attachment:
        """Raises ManifestError where there is none of that name, or one that cannot be had."""
        attached = Attaching(self._paths).of(job)
        refuse_impossible(job, attached, self.environments.known())
        return attached

    async def _until_it_can_be_replaced(self, key: str, uid: str) -> None:
        """Nothing of that job is left to end, or it is gone."""
        async with self._listening() as changes:
            while (stored := await asyncio.to_thread(self._store.by_uid, uid)) is not None and stored.key == key:
                if not (stored.deleting or from_wire(stored.status).finished):
                    hint = Text("stop it first: {command}", command=f"oarsman stop {stored.name}")
                    raise ConflictError(Text("{key} has not ended; it is not replaced", key=key), hint=hint)
                if stored.finished and not stored.deleting:
                    return
                await changes.wait()

    async def _edit(self, key: str, uid: str, edit: Callable[[Document], Document], what: str) -> JobRecord:
        def change() -> StoredJob:
            stored = self._store.get(key, uid)
            if from_wire(stored.status).finished:
                raise ConflictError(Text("{key} has ended; it cannot be {what}", key=key, what=what))
            document = merged(stored.document, edit(dict(stored.document)))
            if document == stored.document:
                return stored
            job = job_from_document(document)
            grows = job.workers > job_checked_before(stored.document).workers
            if why := self._never_fits(job, stored.engine) if grows else "":
                template = Text("{key} can never have {workers} workers: {why}")
                raise UserError(Text(template, key=key, workers=job.workers, why=why))
            return self._store.change_document(key, document, stored.uid, expected_generation=stored.generation)

        return await self._told(asyncio.create_task(asyncio.to_thread(change)))

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        def stop() -> StoredJob:
            stored = self._store.get(key, uid)
            if from_wire(stored.status).finished:
                raise ConflictError(Text("{key} has ended already", key=key))
            return self._store.request_stop(key, stored.uid)

        return await self._told(asyncio.create_task(asyncio.to_thread(stop)))

    async def delete(self, key: str, uid: str = "") -> None:
        stored = await asyncio.to_thread(self._store.request_delete, key, uid)
        await self._supervisor.poke(stored.uid)

    # -- what it became ------------------------------------------------------------------------------
    async def get(self, key: str) -> JobRecord:
        stored = await asyncio.to_thread(self._store.get, key)
        if self._asks and not stored.finished:
            await self._supervisor.attend()
            stored = await asyncio.to_thread(self._store.get, key)
        return await asyncio.to_thread(self._whole, stored)

    async def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        """All that can be read, in the order they came."""

        def listed() -> Sequence[JobRecord]:
            found = self._store.changes(None, namespace).jobs
            newest = {record.job.key: record for record in legible(found, self._record, self.shown)}
            return sorted(newest.values(), key=lambda record: (record.created_at, record.job.name))

        if self._asks and await asyncio.to_thread(self._store.anything_unfinished):
            await self._supervisor.attend()
        return await asyncio.to_thread(listed)

    @in_thread
    def runs(self, key: str) -> Sequence[JobRecord]:
        return list(legible(self._store.runs(key), self._record, None))

    @in_thread
    def events(self, key: str) -> Sequence[EventRecord]:
        return self._store.events(self._store.get(key).uid)

    async def watch(
        self,
        key: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # of a generator: its own waits, not those of its users
    ) -> AsyncGenerator[JobRecord, None]:
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        uid = (await asyncio.to_thread(self._store.get, key)).uid
        seen = -1
        async with self._listening() as changes:
            while (stored := await asyncio.to_thread(self._store.by_uid, uid)) is not None:
                if stored.revision != seen:
                    seen = stored.revision
                    yield await asyncio.to_thread(self._whole, stored)
                    continue
                async with asyncio.timeout_at(deadline):
                    await changes.wait()

    def follow(self, namespace: str | None = None) -> AsyncGenerator[Batch, None]:
        """Needs no supervisor, and keeps none alive: it is told by the store itself. If one dies while jobs are
        unfinished, another one is started."""
        return changes(self._listening, self._store, self._record, namespace, self.shown)

    # -- what it uses, and what there is -------------------------------------------------------------
    @in_thread
    def usage(self, key: str) -> Sequence[HostUsage]:
        from oarsman.control import usage  # psutil is slow to import, and only this needs it

        return usage.of_job(self._paths.job(self._store.get(key).uid))

    @in_thread
    def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """Strictly after `since`: hand the newest time back and only what is new comes."""
        start = since.timestamp() if since is not None else float("-inf")
        return [
            UsageSample(datetime.fromtimestamp(moment.time, UTC), host, *sample)
            for moment in samples.read(self._paths.job(self._store.get(key).uid))
            if moment.time > start + _TIME_STEP
            for host, sample in moment.hosts.items()
        ]

    def _unsettled(self) -> Sequence[JobRecord]:
        """Those that take room here, or wait for it."""
        return tuple(legible(self._store.unsettled(), self._record, self.place))

    # -- records -------------------------------------------------------------------------------------
    def _found(self, key: str) -> tuple[StoredJob, Job]:
        stored = self._store.get(key)
        return stored, self._job(stored)

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
            run=stored.run,
        )

    def _whole(self, stored: StoredJob) -> JobRecord:
        """With what it was prepared with, which is in a file: too slow for a list."""
        record, spec = self._record(stored), find_spec(self._paths.job(stored.uid))
        return record if spec is None else dataclasses.replace(record, mpi=spec.mpi, limits=load(spec.limits_told))

    def _job(self, stored: StoredJob) -> Job:
        """Those that go on are looked at again and again, and are kept; of those that ended there may be very many."""
        known = self._known.get(stored.uid)
        if known is not None and known.generation == stored.generation:
            job = known
        else:
            job = dataclasses.replace(job_checked_before(stored.document), **stored.identity)
        if stored.finished:
            self._known.pop(stored.uid, None)
            return job
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[stored.uid] = job
        return job


def runs_kept() -> int:
    text = os.environ.get(names.ENV_RUNS_KEPT) or str(_RUNS_KEPT)
    if not (text.isdecimal() and len(text) < 5):
        wrong = Text("{name} is not a number of runs: {text}", name=names.ENV_RUNS_KEPT, text=f"{text!r}")
        raise UsageError(wrong, hint=Text("0 keeps none; the default is {count}", count=_RUNS_KEPT))
    return int(text)


def _no_mpi(job: Job, environment: Mapping[str, str], folder: Path) -> str | None:
    if installed_mpi.choose(job, environment, folder) is not None:
        return None
    return installed_mpi.explain_absence(job, environment)


def _of_this_process() -> dict[str, str]:
    """What a job inherits besides variables. Through a server it is the server's: what a caller on another machine may
    use there says nothing about this one."""
    return {names.ENV_UMASK: f"{_umask():03o}", names.ENV_LIMITS: limits.write(limits.of_this_process())}


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
