"""The client for Python programs: jobs of this machine, of SSH hosts, of a cluster, or of a server; the same methods.

with Client() as client:
    job = client.run(["python", "train.py"], workers=2)
    print(job.state)
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, overload

from oarsman.client import inputs, job_view, notebook, places
from oarsman.client.environments import Environments
from oarsman.client.handle import JobHandle
from oarsman.client.inputs import Wanted
from oarsman.client.sweeps import SweepHandle, Sweeps
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


class Client:
    """Without an address the work is done in this process, as the command does it. Use it in a `with`, or close it."""

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
            places.needs_httpx()
            from oarsman.client.remote import RemoteService

            self._service = RemoteService(address, token=token, verify=verify)
        else:
            self._service = places.in_this_process(on, context, kubeconfig, namespace, hosts)

    def close(self) -> None:
        self._service.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- jobs that are to run ------------------------------------------------------------------------
    def submit(
        self,
        job: Wanted,
        *,
        replace: bool = False,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **changes: Any,
    ) -> JobHandle:
        """Hand in a job and return at once.

        job: an MPIJob, a manifest (text, a document, or a path that ends with .yaml), or a command.
        replace: take the place of an ended job of the same name.
        environment, folder: what it inherits; on this machine by default the variables and folder of this process.
        An environment that is text is the name of one: the set of packages the job runs in.
        changes: those of MPIJob, for a command (`workers=4`) as for a manifest (`env={"SEED": "7"}`).
        """
        made = self._service.create(self._create(job, changes, environment=environment, folder=folder, replace=replace))
        return self._handle(made)

    def run(
        self,
        job: Wanted,
        wait: bool = True,
        progress: bool = True,
        *,
        check: bool = True,
        timeout: float | None = None,
        replace: bool = False,
        environment: Mapping[str, str] | str | None = None,
        folder: str | os.PathLike[str] | None = None,
        **changes: Any,
    ) -> JobHandle:
        """Submit a job and wait for its end, telling how it goes. Raises JobFailed if `check` and it fails.

        Ctrl-C stops the job, waits until nothing of it is left and is then raised; a second one does not wait.
        """
        handle = self.submit(job, replace=replace, environment=environment, folder=folder, **changes)
        if not wait:
            return handle
        with notebook.LiveLine(wanted=progress) as shown:
            try:
                return handle.wait(timeout, check=check, seeing=lambda state: shown.show(job_view.happening(state)))
            except KeyboardInterrupt:
                shown.show(f"{handle.name}: stopping")
                handle.stop_and_wait()
                raise

    def preview(self, job: Wanted, **changes: Any) -> PreviewView:
        """What would become of it: problems with their places, or ranks, hosts, launch line and whether it fits."""
        return self._service.preview(self._create(job, changes))

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
    def jobs(
        self,
        *,
        namespace: str | None = None,
        states: str | Sequence[str] = (),
        owner: str | None = None,
        engine: str | None = None,
        sweep: str | None = None,
        search: str | None = None,
        sort: str = "-created",
    ) -> JobsFound:
        """The jobs that match, newest first; fetched page by page while one iterates."""
        return JobsFound(
            self._service,
            inputs.query(
                namespace or self._namespace, states, owner=owner, engine=engine, sweep=sweep, search=search, sort=sort
            ),
        )

    def job(self, name: str) -> JobHandle:
        """The job called `name` or `namespace/name`. Raises NotFoundError."""
        return JobHandle(self._service, self._key(name)).refresh()

    def delete(self, name: str) -> None:
        """Delete a job with its logs; a running one is stopped first."""
        self._service.delete(self._key(name))

    def changes(self, **only: Any) -> Iterator[JobChange]:
        """First every job, then what changes among them, for ever. `only` as for `jobs`."""
        return self._service.changes(self.jobs(**only).query)

    # -- sweeps ----------------------------------------------------------------------------------------
    def sweep(
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
    ) -> SweepHandle:
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
        return SweepHandle(self._service, self._service.create_sweep(spec))

    @property
    def sweeps(self) -> Sweeps:
        """The sweeps that are there: `client.sweeps.list()`, `client.sweeps.get("rates")`."""
        return Sweeps(self._service, self._key)

    def _key(self, name: str) -> str:
        return inputs.key_of(name, "" if "/" in name else self._namespace or self._service.info().home)

    def _handle(self, job: JobView) -> JobHandle:
        return JobHandle(self._service, job.summary.key, job=job)

    # -- the place -------------------------------------------------------------------------------------
    def templates(self) -> Sequence[Template]:
        """Manifests to begin with."""
        return self._service.templates()

    def convert(self, job: Wanted, api_version: str) -> tuple[str, Sequence[str]]:
        """YAML of "v1" or "v2beta1", and what could not be carried over."""
        return self._service.convert(inputs.document(self._create(job, {})), api_version)

    def hosts(self) -> Sequence[HostView]:
        """The machines jobs run on: what they have, what is promised, who holds it."""
        return notebook.Table(self._service.hosts())

    def queue(self) -> Sequence[QueueEntry]:
        """Who waits for room, in order, and why."""
        return notebook.Table(self._service.queue())

    @property
    def environments(self) -> Environments:
        """The sets of packages that jobs can run in: `client.environments.build("torch", ["torch"])`."""
        return Environments(self._service)

    def overview(self) -> Overview:
        """Jobs by state, capacity, failures of the last day."""
        return self._service.overview()

    def info(self) -> ServerInfo:
        """Version, engine, and who one is there."""
        return self._service.info()


class JobsFound(Sequence[JobHandle]):
    """Jobs as a lazy list: iterating fetches what it needs, `len` is what the first page said."""

    def __init__(self, service: Service, query: JobQuery) -> None:
        self._service = service
        self.query = query
        self._found: list[JobHandle] = []
        self._cursor: str | None = None
        self._total: int | None = None

    def _more(self) -> bool:
        """Fetch another page. False if there is none."""
        if self._total is not None and self._cursor is None:
            return False
        page = self._service.jobs(self.query.model_copy(update={"cursor": self._cursor}))
        self._total, self._cursor = page.total, page.next
        self._found += [JobHandle(self._service, item.key, summary=item) for item in page.items]
        return True

    def __iter__(self) -> Iterator[JobHandle]:
        index = 0
        while index < len(self._found) or self._more():
            yield from self._found[index:]
            index = len(self._found)

    def __len__(self) -> int:
        """How many match, on all pages."""
        if self._total is None:
            self._more()
        return self._total or 0

    @overload
    def __getitem__(self, index: int) -> JobHandle: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JobHandle]: ...
    def __getitem__(self, index: int | slice) -> JobHandle | Sequence[JobHandle]:
        last = index.stop if isinstance(index, slice) else index
        open_end = last is None or last < 0 or (isinstance(index, slice) and (index.start or 0) < 0)
        while (open_end or len(self._found) <= last) and self._more():
            pass
        return self._found[index]

    def __repr__(self) -> str:
        return notebook.jobs_text([job.summary for job in self[: notebook.ROWS]], len(self))

    def _repr_html_(self) -> str:
        return notebook.jobs_html([job.summary for job in self[: notebook.ROWS]], len(self))
