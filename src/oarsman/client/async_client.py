"""The same client for programs with an event loop: the methods of `Client`, awaited.

async with AsyncClient() as client:
    job = await client.run(["python", "train.py"], workers=2)
    async for line in job.logs():
        print(line.text)
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from oarsman.client import inputs, job_view, notebook, places
from oarsman.client.async_handle import AsyncJobHandle
from oarsman.client.environments import AsyncEnvironments
from oarsman.client.inputs import Wanted
from oarsman.client.sweeps import AsyncSweepHandle, AsyncSweeps
from oarsman.client.threads import Carrier, InThreads
from oarsman.service import operations
from oarsman.service.contract import Service
from oarsman.service.models import (
    Create,
    HostView,
    JobChange,
    JobQuery,
    JobView,
    Overview,
    Parameter,
    PreviewView,
    QueueEntry,
    ServerInfo,
    Template,
)


class AsyncClient:
    """Arguments are those of `Client`. Use it in an `async with`, or close it."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        on: str = "local",
        context: str | None = None,
        kubeconfig: str | None = None,
        hosts: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        verify: str | os.PathLike[str] | ssl.SSLContext | bool = True,
        service: Service | Carrier | None = None,
    ) -> None:
        self._namespace = namespace
        self._here = address is None and on != "kube" and service is None
        self._carrier = _carrier(address, token, on, context, kubeconfig, hosts, namespace, verify, service)

    async def close(self) -> None:
        await self._carrier.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- jobs that are to run ------------------------------------------------------------------------
    async def submit(
        self,
        job: Wanted,
        *,
        replace: bool = False,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **changes: Any,
    ) -> AsyncJobHandle:
        """Hand in a job and return. See `Client.submit`."""
        created = self._create(job, changes, environment=environment, folder=folder, replace=replace)
        return self._handle(await self._carrier.do(operations.create(created)))

    async def run(
        self,
        job: Wanted,
        wait: bool = True,
        progress: bool = True,
        *,
        check: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - as everywhere else; a task of one's own has asyncio.timeout
        replace: bool = False,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **changes: Any,
    ) -> AsyncJobHandle:
        """Submit a job and wait for its end. Raises JobFailed if it fails, unless `check` is False.

        If the task is cancelled (Ctrl-C does that too) the job is stopped, and cancelling goes on when nothing of it is
        left; cancelling a second time does not wait.
        """
        handle = await self.submit(job, replace=replace, environment=environment, folder=folder, **changes)
        if not wait:
            return handle
        with notebook.LiveLine(wanted=progress) as shown:
            return await handle.wait_or_stop(
                timeout, check=check, seeing=lambda state: shown.show(job_view.happening(state))
            )

    async def preview(self, job: Wanted, **changes: Any) -> PreviewView:
        """What would become of it: problems with their places, or ranks, hosts, launch line and whether it fits."""
        return await self._carrier.do(operations.preview(self._create(job, changes)))

    def _create(
        self,
        job: Wanted,
        changes: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        replace: bool = False,
    ) -> Create:
        return inputs.create(
            job,
            changes,
            namespace=self._namespace,
            here=self._here,
            environment=environment,
            folder=folder,
            replace=replace,
        )

    # -- jobs that are there ---------------------------------------------------------------------------
    async def jobs(
        self,
        *,
        namespace: str | None = None,
        states: str | Sequence[str] = (),
        owner: str | None = None,
        engine: str | None = None,
        sweep: str | None = None,
        search: str | None = None,
        sort: str = "-created",
    ) -> AsyncGenerator[AsyncJobHandle, None]:
        """The jobs that match, newest first; fetched page by page while one iterates."""
        query: JobQuery | None = inputs.query(
            namespace or self._namespace, states, owner=owner, engine=engine, sweep=sweep, search=search, sort=sort
        )
        while query is not None:
            page = await self._carrier.do(operations.jobs(query))
            for item in page.items:
                yield AsyncJobHandle(self._carrier, item.key, summary=item)
            query = query.model_copy(update={"cursor": page.next}) if page.next else None

    async def job(self, name: str) -> AsyncJobHandle:
        """The job called `name` or `namespace/name`. Raises NotFoundError."""
        return await AsyncJobHandle(self._carrier, await self._key(name)).refresh()

    async def delete(self, name: str) -> None:
        """Delete a job with its logs; a running one is stopped first."""
        await self._carrier.do(operations.delete(await self._key(name)))

    def changes(self, *, states: str | Sequence[str] = (), **only: Any) -> AsyncIterator[JobChange]:
        """First every job, then what changes among them, for ever. `only` as for `jobs`."""
        namespace = only.pop("namespace", None) or self._namespace
        return self._carrier.stream(operations.changes(inputs.query(namespace, states, **only)))

    # -- sweeps ----------------------------------------------------------------------------------------
    async def sweep(
        self,
        job: Wanted,
        name: str,
        grid: Mapping[str, Sequence[Parameter]] | None = None,
        *,
        points: Sequence[Mapping[str, Parameter]] | None = None,
        metric: str | None = None,
        retries: int = 0,
        at_once: int | None = None,
        namespace: str | None = None,
        **changes: Any,
    ) -> AsyncSweepHandle:
        """Run a job once for each point of a grid, or of a list. See `Client.sweep`."""
        spec = inputs.sweep_spec(
            name=name,
            namespace=namespace or self._namespace,
            manifest=inputs.sweep_manifest(job, changes),
            grid=grid,
            points=points,
            metric=metric,
            retries=retries,
            at_once=at_once,
        )
        return AsyncSweepHandle(self._carrier, await self._carrier.do(operations.create_sweep(spec)))

    @property
    def sweeps(self) -> AsyncSweeps:
        """The sweeps that are there: `await client.sweeps.list()`."""
        return AsyncSweeps(self._carrier, self._key)

    async def _key(self, name: str) -> str:
        home = "" if "/" in name else self._namespace or (await self.info()).home
        return inputs.key_of(name, home)

    def _handle(self, job: JobView) -> AsyncJobHandle:
        return AsyncJobHandle(self._carrier, job.summary.key, job=job)

    # -- the place -------------------------------------------------------------------------------------
    async def templates(self) -> Sequence[Template]:
        """Manifests to begin with."""
        return await self._carrier.do(operations.templates())

    async def convert(self, job: Wanted, api_version: str) -> tuple[str, Sequence[str]]:
        """YAML of "v1" or "v2beta1", and what could not be carried over."""
        return await self._carrier.do(operations.convert(inputs.document(self._create(job, {})), api_version))

    async def hosts(self) -> Sequence[HostView]:
        """The machines jobs run on: what they have, what is promised, who holds it."""
        found = await self._carrier.do(operations.hosts())
        return notebook.Table(found)

    async def queue(self) -> Sequence[QueueEntry]:
        """Who waits for room, in order, and why."""
        found = await self._carrier.do(operations.queue())
        return notebook.Table(found)

    @property
    def environments(self) -> AsyncEnvironments:
        """The sets of packages that jobs can run in: `await client.environments.build("torch", ["torch"])`."""
        return AsyncEnvironments(self._carrier)

    async def overview(self) -> Overview:
        """Jobs by state, capacity, failures of the last day."""
        return await self._carrier.do(operations.overview())

    async def info(self) -> ServerInfo:
        """Version, engine, and who one is there."""
        return await self._carrier.do(operations.info())


def _carrier(
    address: str | None,
    token: str | None,
    on: str,
    context: str | None,
    kubeconfig: str | None,
    hosts: str | os.PathLike[str] | None,
    namespace: str | None,
    verify: str | os.PathLike[str] | ssl.SSLContext | bool,
    service: Service | Carrier | None,
) -> Carrier:

    if service is not None:
        return cast(Carrier, service) if hasattr(service, "do") else InThreads(service)
    if address is None:
        return InThreads(places.in_this_process(on, context, kubeconfig, namespace, hosts))
    places.needs_httpx()
    from oarsman.client.async_remote import OverRest

    return OverRest(address, token=token, verify=verify)
