"""The client for Python programs: jobs of this machine, of SSH hosts, of a cluster, or of a server; the same methods.

with Client() as client:
    job = client.run(["python", "train.py"], workers=2)
    print(job.state)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from oarsman.client import job_view, notebook
from oarsman.client.async_client import AsyncClient, AsyncEnvironments
from oarsman.client.face import Face, becomes, like, waits
from oarsman.client.handle import JobHandle
from oarsman.client.inputs import Wanted
from oarsman.client.sweeps import SweepHandle, Sweeps
from oarsman.portal import shared
from oarsman.service.models import JobChange, JobQuery


class Client(Face[AsyncClient]):
    """Without an address the work is done in this process, as the command does it. Use it in a `with`, or close it."""

    @like(AsyncClient.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(AsyncClient(*args, **kwargs))

    close = waits(AsyncClient.close)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- jobs that are to run ------------------------------------------------------------------------
    submit = becomes(AsyncClient.submit, JobHandle, "JobHandle")

    @like(AsyncClient.run)
    def run(
        self,
        job: Wanted,
        wait: bool = True,
        progress: bool = True,
        *,
        check: bool = True,
        timeout: float | None = None,
        **more: Any,
    ) -> JobHandle:
        """Submit a job and wait for its end, telling how it goes. Raises JobFailed if `check` and it fails.

        Ctrl-C stops the job, waits until nothing of it is left and is then raised; a second one does not wait.
        """
        handle = self.submit(job, **more)
        if not wait:
            return handle
        with notebook.LiveLine(wanted=progress) as shown:
            try:
                return handle.wait(timeout, check=check, seeing=lambda state: shown.show(job_view.happening(state)))
            except KeyboardInterrupt:
                shown.show(f"{handle.name}: stopping")
                handle.stop_and_wait()
                raise

    preview = waits(AsyncClient.preview)

    # -- jobs that are there ---------------------------------------------------------------------------
    @like(AsyncClient.jobs)
    def jobs(self, **only: Any) -> JobsFound:
        return JobsFound(self._of, self._of.query(**only))

    job = becomes(AsyncClient.job, JobHandle, "JobHandle")
    delete = waits(AsyncClient.delete)

    @like(AsyncClient.changes)
    def changes(self, **only: Any) -> Iterator[JobChange]:
        return shared().iterate(self._of.changes(**only))

    # -- sweeps ----------------------------------------------------------------------------------------
    sweep = becomes(AsyncClient.sweep, SweepHandle, "SweepHandle")

    @property
    def sweeps(self) -> Sweeps:
        """The sweeps that are there: `client.sweeps.list()`, `client.sweeps.get("rates")`."""
        return Sweeps(self._of.sweeps)

    # -- the place -------------------------------------------------------------------------------------
    templates = waits(AsyncClient.templates)
    convert = waits(AsyncClient.convert)
    hosts = waits(AsyncClient.hosts)
    queue = waits(AsyncClient.queue)

    @property
    def environments(self) -> Environments:
        """The sets of packages that jobs can run in: `client.environments.build("torch", ["torch"])`."""
        return Environments(self._of.environments)

    overview = waits(AsyncClient.overview)
    info = waits(AsyncClient.info)


class Environments(Face[AsyncEnvironments]):
    """`client.environments`: iterate over it, ask for one by name, build and delete."""

    list = waits(AsyncEnvironments.list)
    get = waits(AsyncEnvironments.get)
    build = waits(AsyncEnvironments.build)
    log = waits(AsyncEnvironments.log)
    delete = waits(AsyncEnvironments.delete)


class JobsFound(Sequence[JobHandle]):
    """Jobs as a lazy list: iterating fetches what it needs, `len` is what the first page said."""

    def __init__(self, client: AsyncClient, query: JobQuery) -> None:
        self._client = client
        self.query = query
        self._found: list[JobHandle] = []
        self._cursor: str | None = None
        self._total: int | None = None

    def _more(self) -> bool:
        """Fetch another page. False if there is none."""
        if self._total is not None and self._cursor is None:
            return False
        query = self.query.model_copy(update={"cursor": self._cursor})
        found, self._total, self._cursor = shared().run(self._client.page(query))
        self._found += [JobHandle(one) for one in found]
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
