"""The jobs of a cluster, for the faces. What is wanted goes to the API server; the operator does the rest."""

from __future__ import annotations

import asyncio
import builtins
import copy
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from oarsman import names
from oarsman.backends.base import EVERYTHING, Batch, EventRecord, Fit, HostRecord, JobRecord, LogLine, LogPage, LogQuery
from oarsman.backends.kube import bridge, fit, follow, log_pages, logs, lookups, nodes, records, rights, usage
from oarsman.backends.kube import namespaces as allowed
from oarsman.backends.kube.environments import KubeEnvironments
from oarsman.backends.kube.errors import in_plain_words, no_namespace
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.engines.kube.client import Access, AlreadyExists, Forbidden, Kube, NotFound, resources
from oarsman.engines.kube.versions import document_of
from oarsman.errors import ConflictError, ForbiddenError, NotFoundError, UserError
from oarsman.job.job import ApiVersion, Job
from oarsman.job.policies import CleanPodPolicy
from oarsman.manifest import job_from_document

T = TypeVar("T")
Document = dict[str, Any]
SILENCE_SECONDS = 10.0  # a job that nobody has looked at for so long says that no operator is there


class KubeBackend:
    """Every method may be called from any thread. `close` is called at exit for those who forget it.

    `namespaces`: where to look for jobs if the user may not see those of all namespaces. None: then that is an error.
    """

    def __init__(
        self, access: Access, *, namespace: str | None = None, namespaces: Sequence[str] | None = None
    ) -> None:
        self.access = access
        self.home = namespace or access.namespace
        self._namespaces = namespaces
        self._bridge = bridge.shared()
        self._stack: AsyncExitStack | None = None
        self._kube: Kube | None = None
        self._opening = asyncio.Lock()
        self._known = records.RecordCache()
        self._sampler = usage.PodSampler()
        self._looker = nodes.Looker()

    @property
    def environments(self) -> KubeEnvironments:
        return KubeEnvironments(self._ask, self.home)

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
        """Programs and variables are those of the image: neither environment nor folder goes to the cluster."""
        job_from_document(document)
        return self._ask(lambda kube: self._submit(kube, records.to_send(document, self.home, owner), replace))

    async def _submit(self, kube: Kube, document: Document, replace: bool) -> JobRecord:
        key = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
        if replace:
            await self._replace(kube, key)
        try:
            return records.record(await kube.create(records.resource_of(document), document))
        except AlreadyExists as error:
            hint = f"delete it first: oarsman delete {key}"
            raise ConflictError(f"there is a job {key} already", hint=hint) from error

    async def _replace(self, kube: Kube, key: str) -> None:
        """Take a finished job of the same name away, and wait until it is gone."""
        try:
            found = await self._found(kube, key)
        except NotFoundError:
            return
        if not records.record(found).status.finished:
            hint = f"stop it first: oarsman stop {found['metadata']['name']}"
            raise ConflictError(f"{key} has not ended; it is not replaced", hint=hint)
        namespace, _, name = key.partition("/")
        await kube.delete(resources.MPIJOBS, name, namespace, uid=found["metadata"]["uid"], propagation="Foreground")
        async for _ in follow.one(kube, resources.MPIJOBS, namespace, name):
            pass

    def scale(self, key: str, workers: int) -> JobRecord:
        def edit(document: Document) -> Document:
            if "Worker" not in document["spec"]["mpiReplicaSpecs"]:
                raise UserError(f"{key} has no workers to scale", field="spec.mpiReplicaSpecs.Worker")
            return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}

        return self._edit(key, edit, "scaled")

    def suspend(self, key: str) -> JobRecord:
        return self._edit(key, lambda _: {"spec": {"runPolicy": {"suspend": True}}}, "suspended")

    def resume(self, key: str) -> JobRecord:
        return self._edit(key, lambda _: {"spec": {"runPolicy": {"suspend": False}}}, "resumed")

    def _edit(self, key: str, edit: Callable[[Document], Document], what: str) -> JobRecord:
        """Change what is wanted, if the result is still a valid job. A bad change changes nothing."""

        async def work(kube: Kube) -> JobRecord:
            found = await self._found(kube, key)
            if records.record(found).status.finished:
                raise ConflictError(f"{key} has ended; it cannot be {what}")
            document = document_of(found)
            patch = edit(document)
            changed = _merged(document, patch)
            if changed == document:
                return records.record(found)
            job_from_document(changed)
            return await self._patch(kube, key, document, patch)

        return self._ask(work)

    def stop(self, key: str) -> JobRecord:
        async def work(kube: Kube) -> JobRecord:
            found = await self._found(kube, key)
            if records.record(found).status.finished:
                raise ConflictError(f"{key} has ended already")
            patch = {"metadata": {"annotations": {names.ANNOTATION_STOP: "true"}}}
            return await self._patch(kube, key, document_of(found), patch)

        return self._ask(work)

    async def _patch(self, kube: Kube, key: str, document: Document, patch: Document) -> JobRecord:
        """Through the version the job was written in. Which one that was must not be forgotten by this change."""
        namespace, _, name = key.partition("/")
        if document["apiVersion"] == ApiVersion.V1.value:
            patch = _merged(patch, {"metadata": {"annotations": {names.ANNOTATION_API_VERSION: ApiVersion.V1.value}}})
        return records.record(await kube.patch(records.resource_of(document), name, patch, namespace))

    def delete(self, key: str) -> None:
        """The job is marked, and gone once nothing of it is left; `watch` ends then."""

        async def work(kube: Kube) -> None:
            found = await self._found(kube, key)
            namespace, _, name = key.partition("/")
            uid = found["metadata"]["uid"]
            await kube.delete(resources.MPIJOBS, name, namespace, uid=uid, propagation="Foreground")

        self._ask(work)

    # -- what it became ------------------------------------------------------------------------------
    def get(self, key: str) -> JobRecord:
        return self._ask(lambda kube: self._record(kube, key))

    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        """Of one namespace, or of all of them."""

        async def work(kube: Kube) -> builtins.list[JobRecord]:
            return [self._known.record(found) for found in await kube.list(resources.MPIJOBS, namespace)]

        return self._ask(work)

    def follow(self, namespace: str | None = None) -> Iterator[Batch]:
        """Any thread may close it."""

        async def source() -> AsyncGenerator[Batch]:
            kube = await self._opened()
            if namespace is None and self._namespaces is not None:
                async with aclosing(allowed.batches(kube, self._namespaces, self._known.record)) as batches:
                    async for batch in batches:
                        for key in batch.gone:
                            self._known.forget(key)
                        yield batch
                return
            found = follow.changes(kube, resources.MPIJOBS, namespace, self._known.record)
            try:
                async with aclosing(found):
                    async for news in found:
                        for key in news.gone:
                            self._known.forget(key)
                        yield Batch(records=tuple(news.found.values()), gone=news.gone, whole=news.whole)
            except Forbidden as error:
                if namespace is not None:
                    raise
                raise ForbiddenError(
                    f"this user may not see the jobs of all namespaces: {error.message}",
                    field="namespace",
                    hint="name a namespace",
                ) from error

        return self._stream(source)

    def events(self, key: str) -> Sequence[EventRecord]:
        async def work(kube: Kube) -> builtins.list[EventRecord]:
            found = await self._found(kube, key)
            return await records.of_object(kube, found)

        return self._ask(work)

    def watch(self, key: str, *, timeout: float | None = None) -> Iterator[JobRecord]:
        async def source() -> AsyncGenerator[JobRecord]:
            deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
            kube = await self._opened()
            await self._found(kube, key)
            namespace, _, name = key.partition("/")
            changes = follow.one(kube, resources.MPIJOBS, namespace, name)
            async with aclosing(changes):
                while True:
                    async with asyncio.timeout_at(deadline):
                        try:
                            found = await anext(changes)
                        except StopAsyncIteration:
                            return
                    yield records.record(found)

        return self._stream(source)

    def logs(self, key: str, query: LogQuery = EVERYTHING) -> Iterator[LogLine]:
        async def source() -> AsyncGenerator[builtins.list[LogLine]]:
            kube = await self._opened()
            record = await self._record(kube, key)
            async with aclosing(logs.read(kube, record, query)) as found:
                async for lines in found:
                    yield lines

        with closing(self._stream(source)) as batches:
            for lines in batches:
                yield from lines

    def log_page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        async def work(kube: Kube) -> LogPage:
            record = await self._record(kube, key)
            return await log_pages.page(kube, record, query, after=after, before=before, limit=limit)

        return self._ask(work)

    def log_follow(self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None) -> Iterator[LogPage]:
        """Any thread may close it."""

        async def source() -> AsyncGenerator[LogPage]:
            kube = await self._opened()
            record = await self._record(kube, key)
            async with aclosing(log_pages.pages(kube, record, query, after)) as found:
                async for page in found:
                    yield page

        return self._stream(source)

    def usage(self, key: str) -> Sequence[HostUsage]:
        async def work(kube: Kube) -> builtins.list[HostUsage]:
            return await usage.of_job(kube, await self._record(kube, key))

        return self._ask(work)

    def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """Empty where nothing measures. What is asked about is measured for some minutes more."""

        async def work(kube: Kube) -> Sequence[UsageSample]:
            return await self._sampler.of(kube, await self._record(kube, key), since)

        return self._ask(work)

    # -- where it runs -------------------------------------------------------------------------------
    def hosts(self) -> Sequence[HostRecord]:
        """The nodes; none for a user who may not see them, which `fit` says in words."""
        return self._ask(self._looker.records)

    def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        job = job_from_document(document)
        namespace = document["metadata"].get("namespace") or self.home

        async def work(kube: Kube) -> Fit:
            seen, quotas = await asyncio.gather(self._looker.look(kube), fit.quotas(kube, namespace))
            return fit.fit(job, seen, quotas)

        return self._ask(work)

    # -- what only a cluster can be asked --------------------------------------------------------------
    def silence(self, key: str) -> str | None:
        """Why nothing happens with a job that has been there for a while; None if something does."""

        async def work(kube: Kube) -> str | None:
            record = await self._record(kube, key)
            age = (datetime.now(UTC) - record.created_at).total_seconds()
            if record.status.conditions or age < SILENCE_SECONDS:
                return None
            return await lookups.why_silent(kube, record.job.namespace)

        with suppress(NotFoundError):
            return self._ask(work)
        return None

    def served(self, namespace: str) -> bool | None:
        return self._ask(lambda kube: lookups.served(kube, namespace))

    def workers_left(self, job: Job) -> int:
        if job.run_policy.clean_pod_policy is not CleanPodPolicy.NONE:
            return 0
        return self._ask(lambda kube: lookups.workers_left(kube, job))

    def check_namespace(self, namespace: str) -> None:
        if self._ask(lambda kube: lookups.lacks(kube, namespace)):
            raise no_namespace(namespace)

    def may_change(self, namespaces: Sequence[str | None]) -> bool:
        """Whether the user may change jobs in any of these namespaces; None: in all there are."""
        return self._ask(lambda kube: rights.may_change(kube, namespaces))

    def ask(self, work: Callable[[Kube], Coroutine[Any, Any, T]]) -> T:
        """For what is about the cluster and not about a job: `doctor` and `install`."""

        async def whole() -> T:
            return await work(await self._opened())

        return self._bridge.run(whole())

    def stream(self, source: Callable[[Kube], AsyncGenerator[T, None]]) -> Iterator[T]:
        """The same for what takes a while and says how far it is."""

        async def whole() -> AsyncGenerator[T, None]:
            async with aclosing(source(await self._opened())) as steps:
                async for step in steps:
                    yield step

        return self._stream(whole)

    def close(self) -> None:
        self._bridge.forget(self._close)
        self._bridge.run(self._close())

    # -- the way there ---------------------------------------------------------------------------------
    async def _record(self, kube: Kube, key: str) -> JobRecord:
        return records.record(await self._found(kube, key))

    async def _found(self, kube: Kube, key: str) -> Document:
        namespace, _, name = key.partition("/")
        try:
            return await kube.get(resources.MPIJOBS, name, namespace)
        except NotFound as error:
            if names.PLURAL not in error.message:  # the server does not know what an MPIJob is
                raise
            raise NotFoundError(f"there is no job {key}") from error

    def _ask(self, work: Callable[[Kube], Coroutine[Any, Any, T]]) -> T:
        with in_plain_words(self.access):
            return self.ask(work)

    def _stream(self, source: Callable[[], AsyncGenerator[T]]) -> bridge.LoopStream[T]:
        return self._bridge.stream(source, lambda: in_plain_words(self.access))

    async def _opened(self) -> Kube:
        async with self._opening:
            if self._kube is None:
                self._stack = AsyncExitStack()
                self._kube = await self._stack.enter_async_context(Kube(self.access))
                self._bridge.at_exit(self._close)
            return self._kube

    async def _close(self) -> None:
        await self._sampler.close()
        stack, self._stack, self._kube = self._stack, None, None
        if stack is not None:
            await stack.aclose()


def _merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """What a merge patch makes of a document."""
    result = copy.deepcopy(dict(document))
    for name, value in patch.items():
        inner = result.get(name)
        result[name] = _merged(inner if isinstance(inner, dict) else {}, value) if isinstance(value, dict) else value
    return result
