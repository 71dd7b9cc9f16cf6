"""The jobs of a cluster, for the faces. What is wanted goes to the API server; the operator does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

from oarsman import names
from oarsman.backends import base
from oarsman.backends.base import Document, Edits, JobRecord, merged
from oarsman.backends.kube import follow, log_pages, logs, lookups, nodes, records, usage
from oarsman.backends.kube.environments import KubeEnvironments
from oarsman.backends.kube.lookups import in_plain_words
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.engines.kube.client import Access, AlreadyExists, Forbidden, Kube, NotFound, resources
from oarsman.engines.kube.views import document_of
from oarsman.errors import ConflictError, NotFoundError
from oarsman.job.job import ApiVersion, Job
from oarsman.manifest import job_from_document
from oarsman.text.sentence import Text

SILENCE_SECONDS = 10.0  # a job that nobody has looked at for so long says that no operator is there


class KubeBackend(Edits):
    """Its connection belongs to the event loop that first asks something.

    `namespaces`: where to look for jobs if the user may not see those of all namespaces. None: then that is an error.
    """

    place = "kube"

    def __init__(
        self, access: Access, *, namespace: str | None = None, namespaces: Sequence[str] | None = None
    ) -> None:
        self.access = access
        self.home = namespace or access.namespace
        self._namespaces = namespaces
        self._known = records.RecordCache()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: AsyncGenerator[Kube, None] | None = None

    @property
    def environments(self) -> KubeEnvironments:
        return KubeEnvironments(self._asking, self.home)

    # -- the way there -------------------------------------------------------------------------------
    async def kube(self) -> Kube:
        """The server itself, for what is about the cluster and not about a job: `doctor` and `install`."""
        loop = asyncio.get_running_loop()
        if self._connection is None or self._loop is not loop:
            self._loop, self._connection = loop, _connection(self.access)
            self._sampler, self._looker = usage.PodSampler(), nodes.Looker()
            self._kube = await anext(self._connection)  # does not wait, so nobody comes in between
        return self._kube

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[Kube]:
        """The server, whose refusals are said in plain words."""
        with in_plain_words(self.access):
            yield await self.kube()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._sampler.close()
            await connection.aclose()

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
        """Programs and variables are those of the image: neither environment nor folder goes to the cluster."""
        job_from_document(document)
        async with self._asking() as kube:
            sent = records.to_send(document, self.home, owner)
            key = records.key_of(sent)
            if replaces is not None and (run := await self._replace(kube, key, replaces)) > 1:
                sent["metadata"]["annotations"][names.ANNOTATION_RUN] = str(run)
            try:
                return records.record(await kube.create(records.resource_of(sent), sent))
            except AlreadyExists as error:
                hint = Text("delete it first: {command}", command=f"oarsman delete {key}")
                raise ConflictError(Text("there is a job {key} already", key=key), hint=hint) from error

    async def _replace(self, kube: Kube, key: str, uid: str) -> int:
        """Take this finished job away, and wait until it is gone. Which run the next one is."""
        try:
            found = await self._found(kube, key)
        except NotFoundError:
            return 1
        if found["metadata"]["uid"] != uid:
            return 1
        record = records.record(found)
        if not record.status.finished:
            hint = Text("stop it first: {command}", command=f"oarsman stop {found['metadata']['name']}")
            raise ConflictError(Text("{key} has not ended; it is not replaced", key=key), hint=hint)
        namespace, _, name = key.partition("/")
        await kube.delete(resources.MPIJOBS, name, namespace, uid=uid, propagation="Foreground")
        async for _ in follow.one(kube, resources.MPIJOBS, namespace, name):
            pass
        return record.run + 1

    async def _edit(self, key: str, uid: str, edit: Callable[[Document], Document], what: str) -> JobRecord:
        async with self._asking() as kube:
            found = await self._found(kube, key, uid)
            if records.record(found).status.finished:
                raise ConflictError(Text("{key} has ended; it cannot be {what}", key=key, what=what))
            document = document_of(found)
            patch = edit(document)
            changed = merged(document, patch)
            if changed == document:
                return records.record(found)
            job_from_document(changed)
            return await self._patch(kube, key, document, patch)

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        async with self._asking() as kube:
            found = await self._found(kube, key, uid)
            if records.record(found).status.finished:
                raise ConflictError(Text("{key} has ended already", key=key))
            patch = {"metadata": {"annotations": {names.ANNOTATION_STOP: "true"}}}
            return await self._patch(kube, key, document_of(found), patch)

    async def _patch(self, kube: Kube, key: str, document: Document, patch: Document) -> JobRecord:
        """Through the version the job was written in. Which one that was must not be forgotten by this change."""
        namespace, _, name = key.partition("/")
        patch = merged(
            patch, {"metadata": {"uid": document["metadata"]["uid"]}}
        )  # which the server refuses for another
        if document["apiVersion"] == ApiVersion.V1.value:
            patch = merged(patch, {"metadata": {"annotations": {names.ANNOTATION_API_VERSION: ApiVersion.V1.value}}})
        return records.record(await kube.patch(records.resource_of(document), name, patch, namespace))

    async def delete(self, key: str, uid: str = "") -> None:
        """The job is marked, and gone once nothing of it is left; `watch` ends then."""
        async with self._asking() as kube:
            found = await self._found(kube, key, uid)
            namespace, _, name = key.partition("/")
            uid = found["metadata"]["uid"]
            await kube.delete(resources.MPIJOBS, name, namespace, uid=uid, propagation="Foreground")

    # -- what it became ------------------------------------------------------------------------------
    async def get(self, key: str) -> JobRecord:
        async with self._asking() as kube:
            return await self._record(kube, key)

    async def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        """Of one namespace, or of all of them."""
        async with self._asking() as kube:
            found = await kube.list(resources.MPIJOBS, namespace)
        return await asyncio.to_thread(lambda: [self._known.record(one) for one in found])

    async def follow(self, namespace: str | None = None) -> AsyncGenerator[base.Batch, None]:
        async with self._asking() as kube:
            if namespace is None and self._namespaces is not None:
                found = follow.allowed_batches(kube, self._namespaces, self._known.record)
            else:
                found = follow.batches(kube, namespace, self._known.record)
            async with aclosing(found):
                async for batch in found:
                    for key in batch.gone:
                        self._known.forget(key)
                    yield batch

    async def events(self, key: str) -> Sequence[base.EventRecord]:
        async with self._asking() as kube:
            metadata = (await self._found(kube, key))["metadata"]
            of_it = f"involvedObject.uid={metadata['uid']}"
            events = map(records.event, await kube.list(resources.EVENTS, metadata["namespace"], fields=of_it))
            return sorted(events, key=lambda event: event.time)

    async def watch(
        self,
        key: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # of a generator: its own waits, not those of its users
    ) -> AsyncGenerator[JobRecord, None]:
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        namespace, _, name = key.partition("/")
        async with self._asking() as kube:
            await self._found(kube, key)
            async with aclosing(follow.one(kube, resources.MPIJOBS, namespace, name)) as changes:
                while True:
                    async with asyncio.timeout_at(deadline):
                        found = await anext(changes, None)
                    if found is None:
                        return
                    yield records.record(found)

    async def logs(
        self, key: str, query: base.LogQuery = base.EVERYTHING
    ) -> AsyncGenerator[Sequence[base.LogLine], None]:
        async with self._asking() as kube:
            record = await self._record(kube, key, query.uid)
            async with aclosing(logs.read(kube, record, query)) as found:
                async for lines in found:
                    if lines:
                        yield lines

    async def log_page(
        self, key: str, query: base.LogQuery = base.EVERYTHING, **where: Unpack[base.Where]
    ) -> base.LogPage:
        async with self._asking() as kube:
            return await log_pages.page(kube, await self._record(kube, key, query.uid), query, **where)

    async def log_follow(
        self, key: str, query: base.LogQuery = base.EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[base.LogPage, None]:
        async with self._asking() as kube:
            record = await self._record(kube, key, query.uid)
            async with aclosing(log_pages.pages(kube, record, query, after)) as found:
                async for page in found:
                    yield page

    async def usage(self, key: str) -> Sequence[HostUsage]:
        async with self._asking() as kube:
            return await usage.of_job(kube, await self._record(kube, key))

    async def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """Empty where nothing measures. What is asked about is measured for some minutes more."""
        async with self._asking() as kube:
            return await self._sampler.of(kube, await self._record(kube, key), since)

    # -- where it runs -------------------------------------------------------------------------------
    async def hosts(self) -> Sequence[base.HostRecord]:
        """The nodes; none for a user who may not see them, which `fit` says in words."""
        async with self._asking() as kube:
            return await self._looker.records(kube)

    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> base.Fit:
        job = job_from_document(document)
        namespace = document["metadata"].get("namespace") or self.home
        async with self._asking() as kube:
            seen, quotas = await asyncio.gather(self._looker.look(kube), nodes.quotas(kube, namespace))
            return nodes.fit(job, seen, quotas)

    # -- what only a cluster can be asked --------------------------------------------------------------
    async def silence(self, key: str) -> str | None:
        with suppress(NotFoundError):
            async with self._asking() as kube:
                record = await self._record(kube, key)
                age = (datetime.now(UTC) - record.created_at).total_seconds()
                if not record.status.conditions and age >= SILENCE_SECONDS:
                    return await lookups.why_silent(kube, record.job.namespace)
        return None

    async def served(self, namespace: str) -> bool | None:
        async with self._asking() as kube:
            with suppress(Forbidden):
                return any(leader.alive and leader.serves(namespace) for leader in await lookups.leaders(kube))
        return None

    async def lacks_namespace(self, namespace: str) -> bool:
        async with self._asking() as kube:
            return await lookups.lacks(kube, namespace)

    async def may_change(self, namespaces: Sequence[str | None]) -> bool:
        async with self._asking() as kube:
            verbs = ("create", "patch", "delete")  # what exactly is refused says why when it is tried
            asked = [lookups.may(kube, verb, namespace) for namespace in namespaces for verb in verbs]
            return any(await asyncio.gather(*asked))

    async def workers_left(self, job: Job) -> int:
        async with self._asking() as kube:
            with suppress(Forbidden):
                pods = await kube.list(resources.PODS, job.namespace, labels=lookups.selector(job, "worker"))
                main = job.worker.container.name if job.worker is not None else ""
                return sum(lookups.goes_on(pod, main) for pod in pods)
        return 0

    # -- objects ---------------------------------------------------------------------------------------
    async def _record(self, kube: Kube, key: str, uid: str = "") -> JobRecord:
        return records.record(await self._found(kube, key, uid))

    async def _found(self, kube: Kube, key: str, uid: str = "") -> Document:
        namespace, _, name = key.partition("/")
        try:
            found: Document = await kube.get(resources.MPIJOBS, name, namespace)
        except NotFound as error:
            if names.PLURAL not in error.message:  # the server does not know what an MPIJob is
                raise
            raise NotFoundError(Text("there is no job {key}", key=key)) from error
        if uid not in ("", found["metadata"]["uid"]):
            raise NotFoundError(Text("there is no job {key}", key=key))
        return found


async def _connection(access: Access) -> AsyncGenerator[Kube, None]:
    """A generator, because event loops that end close those that are left: whoever forgets `close` leaves nothing."""
    async with Kube(access) as kube:
        yield kube
