"""Everything one can ask, answered from a backend: for one caller, with one role.

What the caller may not see does not exist for it; what it may see and not change is refused by name.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from oarsman import names
from oarsman.backends.base import (
    Backend,
    HasNamespaces,
    JobRecord,
    KeepsRuns,
    LooksAhead,
    StartsInFolder,
    merged,
    run_key,
)
from oarsman.errors import ConflictError, NotFoundError, UsageError, UserError
from oarsman.job.confined import passed
from oarsman.job.job import ApiVersion
from oarsman.job.remarks import remarks
from oarsman.manifest import convert as convert_manifest
from oarsman.manifest import job_from_document, to_yaml
from oarsman.manifest.convert import Conversion
from oarsman.service import documents, listing, models, preview, views
from oarsman.service.checks import Checking, CheckService
from oarsman.service.documents import for_another_run
from oarsman.service.environments import EnvironmentService
from oarsman.service.job_index import JobIndex, Rows, RowsRead, if_there
from oarsman.service.listing import ToldJobs, glance
from oarsman.service.others import Others
from oarsman.service.output import OutputService
from oarsman.service.preview import copies
from oarsman.service.rights import Action, may, require
from oarsman.service.sweeps import Sweeping, SweepService
from oarsman.text.secrets import hidden
from oarsman.text.sentence import Text, listed
from oarsman.version import __version__

if TYPE_CHECKING:
    from oarsman.service.progress import ProgressKept

T = TypeVar("T")
_LATELY = timedelta(days=1)


class JobService(OutputService, EnvironmentService, SweepService, CheckService):
    """`job index`: where rows come from; without one, the backend is asked each time.

    `environment` and `folder` are what jobs get that mention none, at places that use this machine's. `others`: what
    those get that are not of its owner; `by_account`: the caller is not.
    """

    def __init__(
        self,
        jobs: Backend,
        identity: models.Identity,
        job_index: JobIndex | None = None,
        *,
        accounts: bool = False,
        others: Others | None = None,
        by_account: bool = False,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        progress: ProgressKept | None = None,
        sweeping: Sweeping | None = None,
        checking: Checking | None = None,
    ) -> None:
        self.identity = identity
        self._asks, self._trusts = may(identity, Action.CREATE), may(identity, Action.ADMINISTER)
        if isinstance(jobs, LooksAhead) and not (self._asks and self._trusts):
            jobs = jobs.limited(asks=self._asks, trusts=self._trusts)
        self._jobs = jobs
        self._job_index = job_index
        self._accounts = accounts
        self._others = others
        self._by_account = by_account
        self._folder = folder
        self._environment = environment
        self._now = now
        self._progress = progress
        self._sweeping = sweeping or Sweeping()
        self._checking = checking or Checking()
        self._read: RowsRead | None = None

    # -- who may what --------------------------------------------------------------------------------
    @property
    def sees(self) -> listing.Visible:
        """Which rows the caller may see."""
        if may(self.identity, Action.SEE):
            return listing.everything
        allowed = cache(partial(may, self.identity, Action.SEE))  # asked of every row there is
        return lambda entry: allowed(entry.summary.owner)

    @property
    def _viewer(self) -> models.Identity | None:
        """Those who see the same share what was counted for one of them; None: whoever sees everything."""
        return None if may(self.identity, Action.SEE) else self.identity

    def _of_run(self, key: str, run: int | None) -> str:
        """What a backend calls that run of the job."""
        if "#" in key:
            raise NotFoundError(Text("there is no job {key}", key=key))
        if run is not None and not isinstance(self._jobs, KeepsRuns):
            raise NotFoundError(Text("a cluster keeps only the newest run of a job"))
        return run_key(key, run)

    async def _seen(self, key: str, run: int | None = None) -> JobRecord:
        """The job, or an earlier run of it, if the caller may see it."""
        record = await self._jobs.get(self._of_run(key, run))
        if not may(self.identity, Action.SEE, record.owner):
            raise NotFoundError(Text("there is no job {key}", key=key))
        return record

    async def _may_see(self, key: str, run: int | None = None) -> tuple[str, str]:
        """The same for those who need no record: whoever sees everything need not ask whose it is. What a backend calls
        it, and the uid of the job that was looked at; none: it does not matter which one has that name."""
        uid = "" if may(self.identity, Action.SEE) else (await self._seen(key, run)).job.uid
        return self._of_run(key, run), uid

    async def _changing(self, key: str) -> JobRecord:
        record = await self._seen(key)
        require(self.identity, Action.CHANGE, record.owner)
        return record

    # -- the place -----------------------------------------------------------------------------------
    async def info(self) -> models.ServerInfo:
        refusal: UserError | None = None
        try:
            self._surroundings()
        except UserError as error:
            refusal = error
        return models.ServerInfo(
            version=__version__,
            engine=self._jobs.place,
            home=self._jobs.home,
            accounts=self._accounts,
            me=self.identity,
            refusal=refusal.message if refusal is not None else "",
            refusal_hint=(refusal.hint if refusal is not None else None) or "",
        )

    async def hosts(self) -> Sequence[models.HostView]:
        require(self.identity, Action.LOOK)
        found = [models.HostView.of(host) for host in await self._jobs.hosts()]
        if may(self.identity, Action.SEE):
            return found
        sees = self.sees
        mine = {entry.summary.key for entry in (await self._rows()).entries() if sees(entry)}
        return [views.discreet(host, mine) for host in found]

    async def queue(self) -> Sequence[models.QueueEntry]:
        rows, sees = await self._rows(), self.sees
        return rows.once(("queue", self._viewer), lambda: listing.queue(rows, sees))

    async def overview(self) -> models.Overview:
        found = glance(await self._rows(), self.sees, self._viewer)
        hosts = [models.HostView.of(host) for host in await self._jobs.hosts()]
        used = [host.used for host in hosts if host.used is not None]
        room = [host.total if host.state == "ready" else host.held for host in hosts]  # one that gets no more jobs
        return models.Overview(
            states=found.states,
            total=views.summed(room),
            held=views.summed([host.held for host in hosts]),
            used=views.summed(used) if used else None,
            failures=found.lately(self._now() - _LATELY),
        )

    # -- jobs ----------------------------------------------------------------------------------------
    async def _rows(self, namespace: str | None = None) -> Rows:
        if self._job_index is not None:
            await self._job_index.ready()
            return self._job_index
        return await self._read_rows(namespace)

    async def _read_rows(self, namespace: str | None) -> RowsRead:
        records = await self._jobs.list(namespace)
        jobs = self._jobs
        if not records and namespace and isinstance(jobs, HasNamespaces) and await jobs.lacks_namespace(namespace):
            from oarsman.backends.kube.lookups import no_namespace  # late: only there namespaces can be missing

            raise no_namespace(namespace)
        return await asyncio.to_thread(RowsRead, records)  # of ten thousand jobs that takes seconds

    async def jobs(self, query: models.JobQuery = models.ALL_JOBS) -> models.JobList:
        """Without a job index, all jobs are read for the first page; the others are of the same."""
        known: Mapping[str, JobRecord] = {}
        rows: Rows
        if self._job_index is not None:
            rows = await self._rows()
        else:
            if self._read is None or not query.cursor:
                self._read = await self._read_rows(query.namespace)
            rows, known = self._read, self._read.records
        page = listing.page(rows, query, self.sees)
        if not query.documents:
            return page
        records = {row.key: known.get(row.key) or await if_there(self._seen(row.key)) for row in page.items}
        seen = {key: await self._shown(record) for key, record in records.items() if record is not None}
        there = {key: views.document(record) for key, record in seen.items()}
        items = [row for row in page.items if row.key in there]
        return page.model_copy(update={"items": items, "documents": [there[row.key] for row in items]})

    async def facets(self) -> listing.Facets:
        return listing.facets(await self._rows(), self.sees, self._viewer)

    async def job(self, key: str, *, run: int | None = None) -> models.JobView:
        return await preview.apart(views.whole_job, await self._shown(await self._seen(key, run)))

    async def runs(self, key: str) -> Sequence[models.JobSummary]:
        """An earlier one that was of somebody else is theirs."""
        newest, jobs = await self._seen(key), self._jobs
        found = await jobs.runs(key) if isinstance(jobs, KeepsRuns) else [newest]
        return [views.summary(record) for record in found if may(self.identity, Action.SEE, record.owner)]

    async def _shown(self, record: JobRecord) -> JobRecord:
        """Whoever may only look at a job sees no secrets in it."""
        if may(self.identity, Action.CHANGE, record.owner):
            return record
        document = await preview.apart(hidden, record.job.document)
        return replace(record, job=replace(record.job, document=document))

    async def create(self, wanted: models.Create) -> models.JobView:
        require(self.identity, Action.CREATE)
        document = await preview.apart(preview.one_document, wanted)
        may_be_hidden = not may(self.identity, Action.CHANGE)  # nobody is told to delete a job that they do not see
        there = await if_there(self._jobs.get(self._key_of(document))) if wanted.replace or may_be_hidden else None
        if there is not None and not may(self.identity, Action.CHANGE, there.owner):
            raise ConflictError(
                Text("there is a job {key} already", key=there.job.key),
                field="metadata.name",
                hint=Text("give this one another name"),
            )
        return await self._submit(
            document,
            folder=await self._chosen_folder(wanted.folder),
            environment=wanted.environment,
            replaces=there.job.uid if wanted.replace and there is not None else None,
        )

    def _key_of(self, document: Mapping[str, Any]) -> str:
        metadata = document["metadata"]
        return f"{metadata.get('namespace') or self._jobs.home}/{metadata['name']}"

    async def _submit(
        self,
        document: Mapping[str, Any],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        replaces: str | None = None,
        owner: str | None = None,
    ) -> models.JobView:
        owner = owner or self.identity.name
        record = await self._jobs.submit(
            document,
            environment=self._surroundings(owner, environment, folder),
            folder=folder,
            replaces=replaces,
            owner=owner,
        )
        return await self._told(record)

    def _surroundings(
        self, owner: str | None = None, asked: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> Mapping[str, str]:
        """The variables of a job of this owner (None: the caller's). Those of this process are for its own owner alone,
        and not for what somebody else wrote."""
        owner, asked = owner or self.identity.name, asked or {}
        servers = os.environ if self._environment is None else self._environment
        if self._others is None or not (self._by_account or owner != self.identity.name):
            return {**servers, **asked}
        if not may(self.identity, Action.CREATE):
            return passed(servers)  # nothing will run
        if folder is not None:
            self._others.check_folder(folder)
        return self._others.surroundings(owner, servers, asked)

    async def _chosen_folder(self, asked: str | None) -> Path:
        if asked is None or not self._asks:
            return self._folder or Path.cwd()
        if isinstance(self._jobs, StartsInFolder) and not await self._jobs.has_folder(asked):
            raise UsageError(
                Text("{path} is not a folder of this machine", path=f"{asked!r}"),
                field="folder",
                hint=Text("write a whole path"),
            )
        return Path(asked)

    async def _told(self, record: JobRecord) -> models.JobView:
        """The answer to a change; the job index learns of it, so that the list shown next is not older."""
        self._learn(record)
        return await preview.apart(views.whole_job, record)

    async def delete(self, key: str) -> None:
        await self._jobs.delete(key, (await self._changing(key)).job.uid)

    async def scale(self, key: str, workers: int) -> models.JobView:
        found = await self._changing(key)
        return await self._told(await self._jobs.scale(key, workers, found.job.uid))

    async def suspend(self, key: str) -> models.JobView:
        found = await self._changing(key)
        return await self._told(await self._jobs.suspend(key, found.job.uid))

    async def resume(self, key: str) -> models.JobView:
        found = await self._changing(key)
        return await self._told(await self._jobs.resume(key, found.job.uid))

    async def stop(self, key: str) -> models.JobView:
        found = await self._changing(key)
        return await self._told(await self._jobs.stop(key, found.job.uid))

    async def rerun(self, key: str) -> models.JobView:
        record = await self._changing(key)
        if not record.status.finished:
            raise ConflictError(
                Text("{key} has not ended; it cannot be run again", key=key), hint=Text("stop it first, or clone it")
            )
        return await self._submit(
            await preview.apart(for_another_run, record.job.document),
            folder=record.folder or await self._chosen_folder(None),
            replaces=record.job.uid,
            owner=record.owner,
        )

    async def clone(self, key: str, wanted: models.Clone) -> models.JobView:
        record = await self._seen(key)
        require(self.identity, Action.CREATE)
        fresh = await preview.apart(for_another_run, record.job.document)
        document = await preview.apart(merged, fresh, wanted.patch)
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict):
            raise UsageError(Text("the patch leaves no metadata"), field="patch.metadata")
        renamed = wanted.name or (metadata.get("name") if metadata.get("name") != record.job.name else None)
        folder = record.folder or await self._chosen_folder(None)
        if renamed is not None:
            metadata["name"] = renamed
            await preview.apart(job_from_document, document)
            return await self._submit(document, folder=folder)
        return await self._submit_under_free_name(document, record.job.name, folder)

    async def _submit_under_free_name(self, document: dict[str, Any], name: str, folder: Path) -> models.JobView:
        """Somebody may be quicker; then the next name is tried."""
        for copy in copies(name):
            document["metadata"]["name"] = copy
            if await if_there(self._jobs.get(self._key_of(document))) is not None:
                continue
            with suppress(ConflictError):
                return await self._submit(document, folder=folder)
        raise ConflictError(
            Text("there are too many copies of {name}", name=name), field="name", hint=Text("choose a name")
        )

    # -- as they change ------------------------------------------------------------------------------
    def wanted(self, query: models.JobQuery) -> listing.Visible:
        return listing.matches(query, self.sees)

    async def changes(self, query: models.JobQuery = models.ALL_JOBS) -> AsyncGenerator[models.JobChange, None]:
        """Without a job index, one is kept for as long as somebody listens."""
        job_index = self._job_index or JobIndex(self._jobs)
        told = ToldJobs(job_index, self.wanted(query))
        try:
            async with aclosing(job_index.changes()) as found:
                async for news in found:
                    for change in told.changes(news) if news is not None else ():
                        yield change
        finally:
            if job_index is not self._job_index:
                await job_index.close()

    async def watch(self, key: str) -> AsyncGenerator[models.JobView, None]:
        """A job that somebody else makes under the same name is not shown to those who may not see it."""
        await self._seen(key)
        texts = views.Texts()
        async with aclosing(self._jobs.watch(key)) as records:
            async for record in records:
                if may(self.identity, Action.SEE, record.owner):
                    yield await preview.apart(views.whole_job, await self._shown(record), texts)

    # -- before it runs ------------------------------------------------------------------------------
    async def preview(self, wanted: models.Create) -> models.PreviewView:
        require(self.identity, Action.LOOK)
        try:
            environment = self._surroundings()
        except UserError as error:  # the caller's jobs cannot be run here
            return models.PreviewView(problems=[models.ProblemView(field="", message=error.message, hint=error.hint)])
        found = await preview.preview(
            self._jobs,
            wanted,
            environment=environment,
            folder=self._chosen_folder(wanted.folder),
            owner=self._viewer.name if self._viewer is not None else None,
            asks=self._asks,
        )
        if found.document is None or wanted.replace or not self._asks:
            return found
        taken = await self.taken(self._key_of(found.document))
        return found if taken is None else models.PreviewView(problems=[taken])

    async def taken(self, key: str) -> models.ProblemView | None:
        """What keeps a new job from that name, as `create` would say it."""
        require(self.identity, Action.CREATE)
        if await if_there(self._jobs.get(key)) is None:
            return None
        said = Text("there is a job {key} already", key=key)
        return models.ProblemView(field="metadata.name", message=said, hint=Text("give this one another name"))

    async def plan(self, wanted: models.Create) -> models.PlanView:
        """With the variables of this machine and what is installed there: for those whose jobs get them."""
        require(self.identity, Action.CREATE)
        folder = await self._chosen_folder(wanted.folder)
        environment = self._surroundings(None, wanted.environment, folder)
        document, job = await preview.apart(preview.read, wanted)
        planned = await preview.planned(self._jobs, document, environment, folder, trusts=self._trusts)
        return models.PlanView.of(planned).model_copy(update={"warnings": remarks(job)})

    async def templates(self) -> Sequence[models.Template]:
        return documents.all_templates()

    async def convert(self, document: Mapping[str, Any], api_version: str) -> models.Converted:
        try:
            target = ApiVersion(api_version if "/" in api_version else f"{names.GROUP}/{api_version}")
        except ValueError:
            raise UsageError(
                Text("there is no version '{version}'", version=api_version),
                field="apiVersion",
                hint=Text("one of {names}", names=listed(version.value for version in ApiVersion)),
            ) from None

        def convert() -> Conversion:
            job_from_document(document)
            return convert_manifest(to_yaml([document]), "document", target)

        found = await preview.apart(convert)
        return models.Converted(manifest=found.text, losses=found.losses)
