"""Everything one can ask, answered from a backend: for one caller, with one role.

What the caller may not see does not exist for it; what it may see and not change is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from oarsman import names
from oarsman.backends.base import Attended, Backend, JobRecord, LogLine, LogPage
from oarsman.errors import ConflictError, NotFoundError, OarsmanError, UsageError
from oarsman.job.job import ApiVersion
from oarsman.manifest import convert as convert_manifest
from oarsman.manifest import job_from_document, to_yaml
from oarsman.service import documents, listing, preview, views
from oarsman.service.contract import ALL_JOBS, ALL_LINES
from oarsman.service.documents import for_another_run, merged
from oarsman.service.environments import EnvironmentService
from oarsman.service.job_index import IndexEntry, JobIndex, entry_of, sort_key
from oarsman.service.listing import glance
from oarsman.service.models import (
    AmountsView,
    Attention,
    Clone,
    Create,
    EventView,
    HostUsageView,
    HostView,
    Identity,
    JobList,
    JobQuery,
    JobView,
    LogFilter,
    LogPageView,
    Overview,
    PlanView,
    PreviewView,
    ProblemView,
    Progress,
    QueueEntry,
    ServerInfo,
    Template,
    UsagePoint,
)
from oarsman.service.preview import copies
from oarsman.service.progress import ProgressKept
from oarsman.service.rights import Action, may, require
from oarsman.service.streams import JobChanges, Mapped, ToldJobs
from oarsman.service.sweeps import Sweeping, SweepService
from oarsman.version import __version__

T = TypeVar("T")
_LATELY = timedelta(days=1)
_NOBODYS = ""  # the key of a holding that is somebody else's
_DOWNLOADED_AT_ONCE = 1 << 16
_LINES_AT_ONCE = 1000


class JobService(EnvironmentService, SweepService):
    """`job index`: where rows come from; without one, the backend is asked each time. `engine`: what it says of itself.

    `environment` and `folder` are what jobs get that mention none, on engines that use this machine.
    """

    def __init__(
        self,
        jobs: Backend,
        identity: Identity,
        job_index: JobIndex | None = None,
        *,
        engine: str = "local",
        accounts: bool = False,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        progress: ProgressKept | None = None,
        sweeping: Sweeping | None = None,
    ) -> None:
        self._jobs = jobs
        self.identity = identity
        self._job_index = job_index
        self._engine = engine
        self._accounts = accounts
        self._folder = folder
        self._environment = environment
        self._now = now
        self._progress = progress or ProgressKept()
        self._sweeping = sweeping or Sweeping()
        self._question: _Question | None = None

    # -- who may what --------------------------------------------------------------------------------
    @property
    def sees(self) -> listing.Visible:
        """Which rows the caller may see."""
        if may(self.identity, Action.SEE):
            return listing.everything
        allowed = cache(partial(may, self.identity, Action.SEE))  # asked of every row there is
        return lambda entry: allowed(entry.summary.owner)

    @property
    def _viewer(self) -> Identity | None:
        """Those who see the same share what was counted for one of them; None: whoever sees everything."""
        return None if may(self.identity, Action.SEE) else self.identity

    def _seen(self, key: str) -> JobRecord:
        """The job, if the caller may see it."""
        record = self._jobs.get(key)
        if not may(self.identity, Action.SEE, record.owner):
            raise NotFoundError(f"there is no job {key}")
        return record

    def _may_see(self, key: str) -> None:
        """The same for those who need no record: whoever sees everything need not ask whose it is."""
        if not may(self.identity, Action.SEE):
            self._seen(key)

    def _changing(self, key: str) -> JobRecord:
        record = self._seen(key)
        require(self.identity, Action.CHANGE, record.owner)
        return record

    # -- the place -----------------------------------------------------------------------------------
    def info(self) -> ServerInfo:
        return ServerInfo(
            version=__version__, engine=self._engine, home=self._jobs.home, accounts=self._accounts, me=self.identity
        )

    def hosts(self) -> Sequence[HostView]:
        require(self.identity, Action.LOOK)
        found = [HostView.of(host) for host in self._jobs.hosts()]
        if may(self.identity, Action.SEE):
            return found
        sees = self.sees
        mine = {entry.summary.key for entry in self._rows().entries() if sees(entry)}
        return [_discreet(host, mine) for host in found]

    def queue(self) -> Sequence[QueueEntry]:
        rows, sees = self._rows(), self.sees
        return rows.once(("queue", self._viewer), lambda: listing.queue(rows, sees))

    def overview(self) -> Overview:
        found = glance(self._rows(), self.sees, self._viewer)
        hosts = [HostView.of(host) for host in self._jobs.hosts()]
        used = [host.used for host in hosts if host.used is not None]
        return Overview(
            states=found.states,
            total=_sum([_room(host) for host in hosts]),
            held=_sum([host.held for host in hosts]),
            used=_sum(used) if used else None,
            failures=found.lately(self._now() - _LATELY),
        )

    # -- jobs ----------------------------------------------------------------------------------------
    def _rows(self, namespace: str | None = None) -> _Question | JobIndex:
        return self._job_index or _Question(self._jobs, namespace)

    def jobs(self, query: JobQuery = ALL_JOBS) -> JobList:
        """Without a job index, all jobs are read for the first page; the others are of the same."""
        rows = self._job_index or (self._question if query.cursor else None) or _Question(self._jobs, query.namespace)
        self._question = rows if isinstance(rows, _Question) else None
        page = listing.page(rows, query, self.sees)
        if not query.documents:
            return page
        known = rows.records if isinstance(rows, _Question) else {}
        records = {row.key: known.get(row.key) or self._gone_or_seen(row.key) for row in page.items}
        there = {key: views.document(record) for key, record in records.items() if record is not None}
        items = [row for row in page.items if row.key in there]
        return page.model_copy(update={"items": items, "documents": [there[row.key] for row in items]})

    def _gone_or_seen(self, key: str) -> JobRecord | None:
        with suppress(NotFoundError):
            return self._seen(key)
        return None

    def facets(self) -> listing.Facets:
        return listing.facets(self._rows(), self.sees, self._viewer)

    def job(self, key: str) -> JobView:
        return views.whole_job(self._seen(key))

    def create(self, wanted: Create) -> JobView:
        require(self.identity, Action.CREATE)
        document = preview.one_document(wanted)
        if wanted.replace:
            self._may_replace(document)
        return self._submit(
            document, folder=self._chosen_folder(wanted.folder), environment=wanted.environment, replace=wanted.replace
        )

    def _may_replace(self, document: Mapping[str, Any]) -> None:
        key = self._key_of(document)
        try:
            record = self._jobs.get(key)
        except NotFoundError:
            return
        if not may(self.identity, Action.CHANGE, record.owner):
            raise ConflictError(
                f"there is a job {key} already", field="metadata.name", hint="give this one another name"
            )

    def _key_of(self, document: Mapping[str, Any]) -> str:
        metadata = document["metadata"]
        return f"{metadata.get('namespace') or self._jobs.home}/{metadata['name']}"

    def _submit(
        self,
        document: Mapping[str, Any],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        replace: bool = False,
        owner: str | None = None,
    ) -> JobView:
        record = self._jobs.submit(
            document,
            environment={**self._surroundings(), **(environment or {})},
            folder=folder,
            replace=replace,
            owner=owner or self.identity.name,
        )
        return self._told(record)

    def _surroundings(self) -> Mapping[str, str]:
        return os.environ if self._environment is None else self._environment

    def _chosen_folder(self, asked: str | None) -> Path:
        if asked is None:
            return self._folder or Path.cwd()
        folder = Path(asked)
        usable = "\0" not in asked and folder.is_absolute()
        if self._engine != "kube" and not (usable and folder.is_dir()):
            raise UsageError(f"{asked!r} is not a folder of this machine", field="folder", hint="write a whole path")
        return folder

    def _told(self, record: JobRecord) -> JobView:
        """The answer to a change; the job index learns of it, so that the list shown next is not older."""
        if self._job_index is not None:
            self._job_index.learn(record)
        return views.whole_job(record)

    def delete(self, key: str) -> None:
        self._changing(key)
        self._jobs.delete(key)

    def scale(self, key: str, workers: int) -> JobView:
        self._changing(key)
        return self._told(self._jobs.scale(key, workers))

    def suspend(self, key: str) -> JobView:
        self._changing(key)
        return self._told(self._jobs.suspend(key))

    def resume(self, key: str) -> JobView:
        self._changing(key)
        return self._told(self._jobs.resume(key))

    def stop(self, key: str) -> JobView:
        self._changing(key)
        return self._told(self._jobs.stop(key))

    def rerun(self, key: str) -> JobView:
        record = self._changing(key)
        if not record.status.finished:
            raise ConflictError(f"{key} has not ended; it cannot be run again", hint="stop it first, or clone it")
        return self._submit(
            for_another_run(record.job.document),
            folder=record.folder or self._chosen_folder(None),
            replace=True,
            owner=record.owner,
        )

    def clone(self, key: str, wanted: Clone) -> JobView:
        record = self._seen(key)
        require(self.identity, Action.CREATE)
        document = merged(for_another_run(record.job.document), wanted.patch)
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict):
            raise UsageError("the patch leaves no metadata", field="patch.metadata")
        renamed = wanted.name or (metadata.get("name") if metadata.get("name") != record.job.name else None)
        folder = record.folder or self._chosen_folder(None)
        if renamed is not None:
            metadata["name"] = renamed
            job_from_document(document)
            return self._submit(document, folder=folder)
        return self._submit_under_free_name(document, record.job.name, folder)

    def _submit_under_free_name(self, document: dict[str, Any], name: str, folder: Path) -> JobView:
        """Somebody may be quicker; then the next name is tried."""
        for copy in copies(name):
            document["metadata"]["name"] = copy
            if self._taken(self._key_of(document)):
                continue
            with suppress(ConflictError):
                return self._submit(document, folder=folder)
        raise ConflictError(f"there are too many copies of {name}", field="name", hint="choose a name")

    def _taken(self, key: str) -> bool:
        try:
            self._jobs.get(key)
        except NotFoundError:
            return False
        return True

    # -- as they change ------------------------------------------------------------------------------
    def wanted(self, query: JobQuery) -> listing.Visible:
        return listing.matches(query, self.sees)

    def told(self, query: JobQuery, job_index: JobIndex) -> ToldJobs:
        return ToldJobs(job_index, self.wanted(query))

    def changes(self, query: JobQuery = ALL_JOBS) -> JobChanges:
        """Without a job index, one is kept for as long as somebody listens."""
        job_index = self._job_index or JobIndex(self._jobs)
        return JobChanges(job_index, self.told(query, job_index), own=self._job_index is None)

    def watch(self, key: str, *, timeout: float | None = None) -> Mapped[JobRecord, JobView]:
        """A job that somebody else makes under the same name is not shown to those who may not see it."""
        self._seen(key)
        texts = views.Texts()

        def shown(record: JobRecord) -> JobView | None:
            return views.whole_job(record, texts) if may(self.identity, Action.SEE, record.owner) else None

        return Mapped(self._jobs.watch(key, timeout=timeout), shown)

    # -- what a job said and did -----------------------------------------------------------------------
    def events(self, key: str) -> Sequence[EventView]:
        self._may_see(key)
        return [EventView.of(found) for found in self._jobs.events(key)]

    def log(
        self,
        key: str,
        only: LogFilter = ALL_LINES,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPageView:
        if after is not None and before is not None:
            raise UsageError("lines come after a place or before one, not both", field="before")
        self._may_see(key)
        return views.log_page(self._jobs.log_page(key, views.log_query(only), after=after, before=before, limit=limit))

    def follow_log(
        self, key: str, only: LogFilter = ALL_LINES, *, after: str | None = None
    ) -> Mapped[LogPage, LogPageView]:
        self._may_see(key)
        pages = self._jobs.log_follow(key, views.log_query(only), after=after)
        return Mapped(pages, lambda page: views.log_page(page) if page.lines else None)

    def lines(
        self,
        key: str,
        only: LogFilter = ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[Sequence[LogLine]]:
        self._may_see(key)
        query = replace(views.log_query(only), since=since, tail=tail, follow=follow)
        found = self._jobs.logs(key, query)
        at_once = 1 if follow else _LINES_AT_ONCE  # a line must not wait for the next one
        while block := list(islice(found, at_once)):
            yield block

    def download_log(self, key: str, only: LogFilter = ALL_LINES) -> Iterator[bytes]:
        """Plain text: time, rank and the line, for people and their tools."""
        self._may_see(key)
        block: list[str] = []
        size = 0
        for line in self._jobs.logs(key, views.log_query(only)):
            text = f"{line.stamp} {'-' if line.rank is None else line.rank} {line.host} {line.stream} {line.text}\n"
            block.append(text)
            size += len(text)
            if size > _DOWNLOADED_AT_ONCE:
                yield "".join(block).encode("utf-8", "replace")
                block, size = [], 0
        if block:
            yield "".join(block).encode("utf-8", "replace")

    def usage(self, key: str, *, since: datetime | None = None) -> Sequence[UsagePoint]:
        self._may_see(key)
        return [UsagePoint.of(sample) for sample in self._jobs.usage_series(key, since=since)]

    def usage_now(self, key: str) -> Sequence[HostUsageView]:
        self._may_see(key)
        return [HostUsageView.of(found) for found in self._jobs.usage(key)]

    def attention(self, key: str) -> Attention:
        record, jobs = self._seen(key), self._jobs
        if not isinstance(jobs, Attended):
            return Attention()
        if record.status.finished:
            return Attention(workers_left=_if_known(lambda: jobs.workers_left(record.job)) or 0)
        served = _if_known(lambda: jobs.served(record.job.namespace))
        return Attention(silence=_if_known(lambda: jobs.silence(key)), served=served)

    def progress(self, key: str) -> Progress:
        return self._progress.of(self._jobs, self._seen(key), self._now())

    # -- before it runs ------------------------------------------------------------------------------
    def preview(self, wanted: Create) -> PreviewView:
        require(self.identity, Action.LOOK)
        try:
            folder = self._chosen_folder(wanted.folder)
        except UsageError as error:
            wrong = ProblemView(field=error.field or "", message=error.message, hint=error.hint)
            return PreviewView(problems=[wrong])
        return preview.preview(
            self._jobs,
            wanted,
            local=self._engine == "local",
            environment=self._surroundings(),
            folder=folder,
            asks=self._viewer.name if self._viewer is not None else None,
        )

    def plan(self, wanted: Create) -> PlanView:
        require(self.identity, Action.LOOK)
        environment = {**self._surroundings(), **wanted.environment}
        folder = self._chosen_folder(wanted.folder)
        return PlanView.of(preview.planned(self._jobs, preview.one_document(wanted), environment, folder))

    def templates(self) -> Sequence[Template]:
        return documents.all_templates()

    def convert(self, document: Mapping[str, Any], api_version: str) -> tuple[str, Sequence[str]]:
        try:
            target = ApiVersion(api_version if "/" in api_version else f"{names.GROUP}/{api_version}")
        except ValueError:
            raise UsageError(
                f"there is no version '{api_version}'",
                field="apiVersion",
                hint=f"one of {', '.join(version.value for version in ApiVersion)}",
            ) from None
        job_from_document(document)
        found = convert_manifest(to_yaml([document]), "document", target)
        return found.text, found.losses


class _Question:
    """Rows of a backend that nobody follows: all are read each time."""

    def __init__(self, jobs: Backend, namespace: str | None = None) -> None:
        self._jobs, self._namespace = jobs, namespace
        self._entries: list[IndexEntry] | None = None
        self.records: dict[str, JobRecord] = {}

    def entries(self) -> Sequence[IndexEntry]:
        if self._entries is None:
            self.records = {record.job.key: record for record in self._jobs.list(self._namespace)}
            if not self.records and self._namespace is not None and isinstance(self._jobs, Attended):
                self._jobs.check_namespace(self._namespace)
            self._entries = [entry_of(record) for record in self.records.values()]
        return self._entries

    def ordered(self, by: str) -> Sequence[IndexEntry]:
        return sorted(self.entries(), key=sort_key(by))

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        return make()


def _if_known(ask: Callable[[], T]) -> T | None:
    """What is not known, because nobody answers or the caller may not ask, is left out."""
    with suppress(OarsmanError, OSError):
        return ask()
    return None


def _discreet(host: HostView, mine: set[str]) -> HostView:
    """What others hold stays visible as an amount, whose it is does not."""
    holdings = [held if held.key in mine else held.model_copy(update={"key": _NOBODYS}) for held in host.holdings]
    return host.model_copy(update={"holdings": holdings})


def _room(host: HostView) -> AmountsView:
    """Of a host that gets no jobs, no more than what they have of it."""
    return host.total if host.state == "ready" else host.held


def _sum(found: Sequence[AmountsView]) -> AmountsView:
    return AmountsView(
        cpus=sum(one.cpus for one in found),
        memory_bytes=sum(one.memory_bytes for one in found),
        gpus=sum(one.gpus for one in found),
    )
