"""The client for programs with an event loop; `Client` is the same without one.

async with AsyncClient() as client:
    job = await client.run(["python", "train.py"], workers=2)
    async for line in job.logs():
        print(line.text)
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oarsman.client import inputs, job_view, notebook, places
from oarsman.client.face import like
from oarsman.client.handle import AsyncJobHandle
from oarsman.client.inputs import Wanted
from oarsman.client.mpijob import MPIJob
from oarsman.client.sweeps import AsyncSweepHandle, AsyncSweeps
from oarsman.errors import UserError
from oarsman.service.contract import Service
from oarsman.service.models import (
    Create,
    EnvironmentView,
    HostView,
    JobChange,
    JobQuery,
    Overview,
    Parameter,
    PreviewView,
    QueueEntry,
    ServerInfo,
    Template,
)

_PAGE = 200  # jobs asked for at a time
_LOOK_EVERY = 0.5  # seconds, at a build that is under way


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
        service: Service | None = None,
    ) -> None:
        """
        address: a server, "https://host:8443"; token: its API token, by default $OARSMAN_TOKEN; verify: a file with
        the certificate of its issuer, where that is not one everybody trusts.
        on: without an address, where jobs run: "local" (this machine), "ssh" (the hosts that the file `hosts` names,
        by default the one that the command would find) or "kube", with context and kubeconfig.
        namespace: of jobs and names that mention none.
        service: whoever does the work, if it is none of these.
        """
        self._namespace = namespace
        self._here = address is None and on != "kube" and service is None
        if service is not None:
            self._service = service
        elif address is not None:
            self._service = places.at_server(address, token, verify)
        else:
            self._service = places.in_this_process(on, context, kubeconfig, namespace, hosts)

    async def close(self) -> None:
        """Let go of what is open. Jobs go on."""
        await self._service.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- jobs that are to run ------------------------------------------------------------------------
    async def submit(
        self,
        /,
        job: Wanted,
        *,
        replace: bool = False,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **changes: Any,
    ) -> AsyncJobHandle:
        """Hand in a job and return at once.

        job: an MPIJob, a manifest (text, a document, or a path that ends with .yaml), or a command.
        replace: take the place of an ended job of the same name.
        environment, folder: what it inherits; on this machine by default the variables and folder of this process.
        An environment that is text is the name of one: the set of packages the job runs in.
        changes: those of MPIJob, for a command (`workers=4`) as for a manifest (`env={"SEED": "7"}`).
        """
        created = self._create(job, changes, environment=environment, folder=folder, replace=replace)
        made = await self._service.create(created)
        return AsyncJobHandle(self._service, made.summary.key, job=made)

    async def run(
        self,
        /,
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
        """Submit a job and wait for its end, telling how it goes. Raises JobFailed if `check` and it fails.

        If the task is cancelled (Ctrl-C does that too) the job is stopped, and cancelling goes on when nothing of it is
        left; cancelling a second time does not wait.
        """
        handle = await self.submit(job, replace=replace, environment=environment, folder=folder, **changes)
        if not wait:
            return handle
        with notebook.LiveLine(wanted=progress) as shown:
            try:
                return await handle.wait(timeout, check=check, seeing=lambda job: shown.show(job_view.happening(job)))
            except asyncio.CancelledError:
                shown.show(f"{handle.name}: stopping")
                await handle.stop_and_wait()
                raise

    async def preview(self, /, job: Wanted, **changes: Any) -> PreviewView:
        """What would become of it: problems with their places, or ranks, hosts, launch line and whether it fits."""
        return await self._service.preview(self._create(job, changes))

    def _create(self, job: Wanted, changes: Mapping[str, Any], **inherited: Any) -> Create:
        return inputs.create(job, changes, namespace=self._namespace, here=self._here, **inherited)

    # -- jobs that are there ---------------------------------------------------------------------------
    def query(
        self,
        *,
        namespace: str | None = None,
        states: str | Sequence[str] = (),
        owner: str | None = None,
        engine: str | None = None,
        sweep: str | None = None,
        search: str | None = None,
        sort: str = "-created",
    ) -> JobQuery:
        """What `jobs` asks for."""
        return JobQuery(
            namespace=namespace or self._namespace,
            states=(states,) if isinstance(states, str) else tuple(states),
            owner=owner,
            engine=engine,
            sweep=sweep,
            search=search,
            sort=sort,
            limit=_PAGE,
        )

    @like(query)
    async def jobs(self, **only: Any) -> AsyncGenerator[AsyncJobHandle, None]:
        """The jobs that match, newest first; fetched page by page while one iterates."""
        query, cursor, ended = self.query(**only), None, False
        while not ended:
            found, _, cursor = await self.page(query.model_copy(update={"cursor": cursor}))
            for job in found:
                yield job
            ended = cursor is None

    async def page(self, query: JobQuery) -> tuple[Sequence[AsyncJobHandle], int, str | None]:
        """Some of the jobs that match, how many all are, and the cursor of the page behind."""
        found = await self._service.jobs(query)
        return [AsyncJobHandle(self._service, one.key, summary=one) for one in found.items], found.total, found.next

    async def job(self, name: str) -> AsyncJobHandle:
        """The job called `name` or `namespace/name`. Raises NotFoundError."""
        return await AsyncJobHandle(self._service, await self._key(name)).refresh()

    async def delete(self, name: str) -> None:
        """Delete a job with its logs; a running one is stopped first."""
        await self._service.delete(await self._key(name))

    def changes(self, /, **only: Any) -> AsyncGenerator[JobChange, None]:
        """First every job, then what changes among them, for ever. `only` as for `jobs`."""
        return self._service.changes(self.query(**only))

    # -- sweeps ----------------------------------------------------------------------------------------
    async def sweep(
        self,
        /,
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
        """Run a job once for each point of a grid, or of a list. `{{name}}` in it becomes the value of a parameter.

        metric: a pattern whose first group is a number of the log: "loss: ([0-9.]+)".
        at_once: how many points run at a time; None: as many as fit. What was begun already is gone on with.
        """
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
        return AsyncSweepHandle(self._service, await self._service.create_sweep(spec))

    @property
    def sweeps(self) -> AsyncSweeps:
        """The sweeps that are there: `await client.sweeps.list()`."""
        return AsyncSweeps(self._service, self._key)

    async def _key(self, name: str) -> str:
        home = "" if "/" in name else self._namespace or (await self.info()).home
        return inputs.key_of(name, home)

    # -- the place -------------------------------------------------------------------------------------
    async def templates(self) -> Sequence[Template]:
        """Manifests to begin with."""
        return await self._service.templates()

    async def convert(self, job: Wanted, api_version: str) -> tuple[str, Sequence[str]]:
        """YAML of "v1" or "v2beta1", and what could not be carried over."""
        given = self._create(job, {})
        document = given.document or MPIJob.from_yaml(given.manifest or "").to_dict()
        found = await self._service.convert(document, api_version)
        return found.manifest, found.losses

    async def hosts(self) -> Sequence[HostView]:
        """The machines jobs run on: what they have, what is promised, who holds it."""
        return notebook.Table(await self._service.hosts())

    async def queue(self) -> Sequence[QueueEntry]:
        """Who waits for room, in order, and why."""
        return notebook.Table(await self._service.queue())

    @property
    def environments(self) -> AsyncEnvironments:
        """The sets of packages that jobs can run in: `await client.environments.build("torch", ["torch"])`."""
        return AsyncEnvironments(self._service)

    async def overview(self) -> Overview:
        """Jobs by state, capacity, failures of the last day."""
        return await self._service.overview()

    async def info(self) -> ServerInfo:
        """Version, engine, and who one is there."""
        return await self._service.info()


class AsyncEnvironments:
    """`client.environments`: iterate over it, ask for one by name, build and delete."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self) -> Sequence[EnvironmentView]:
        return notebook.Table(await self._service.environments())

    async def get(self, name: str) -> EnvironmentView:
        """Raises NotFoundError."""
        return await self._service.environment(name)

    async def build(
        self,
        /,
        name: str,
        requirements: str | Path | Sequence[str] = "",
        *,
        wait: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109
        **more: Any,
    ) -> EnvironmentView:
        """Make it or change it, and wait for the build; raises UserError with its last words if that fails.

        requirements: text as pip reads it, a list of it, or a Path. more: python="3.12", mpi="openmpi", description=.
        """
        found = await self._service.put_environment(inputs.environment_spec(name, requirements, more))
        deadline = None if timeout is None else time.monotonic() + timeout
        while wait and found.state in ("Waiting", "Building"):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"environment {name} is still being built")
            await asyncio.sleep(_LOOK_EVERY)
            found = await self.get(name)
        if wait and found.state == "Failed":
            raise UserError(
                f"environment {found.spec.name} could not be built: {found.message}",
                hint=f"client.environments.log({found.spec.name!r}) tells more",
            )
        return found

    async def log(self, name: str) -> str:
        """All that its newest build has written so far."""
        text, after = "", 0
        while piece := (page := await self._service.environment_log(name, after)).text:
            text, after = text + piece, page.after
        return text

    async def delete(self, name: str) -> None:
        """Raises ConflictError while a job that has not ended uses it."""
        await self._service.delete_environment(name)
