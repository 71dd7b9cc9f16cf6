"""Lines of containers become lines of ranks, and those that were asked for are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from oarsman import names
from oarsman.errors import UnsupportedError
from oarsman.job import launch
from oarsman.job.job import Implementation, Job
from oarsman.runtime.cluster.podlog import Written
from oarsman.runtime.jobs import JobRecord, LogLine, LogQuery
from oarsman.status.tags import Spoken, Tags
from oarsman.store.logs import stamp

_HYDRA: Final = (Implementation.MPICH, Implementation.INTEL)
_HYDRA_OPTIONS: Final = {"-prepend-rank", "--prepend-rank", "-l"}
_ENOUGH: Final = 200  # lines without a single tag: there will be none


class Reader:
    """Reads the launcher's lines in their order. Remembers whether any of them said who wrote it."""

    def __init__(self, record: JobRecord, query: LogQuery) -> None:
        job = record.job
        self._job, self._query = job, query
        self._hosts = {job.worker_host(index) for index in query.workers}
        self._since = stamp(query.since) if query.since is not None else ""
        self._search = searcher(query.search)
        self._placement = record.status.placement or _expected(job)
        ranks = job.launch.processes if job.launch is not None else None
        words = set(job.launcher.container.argv)
        self._tags = Tags(hydra=job.implementation in _HYDRA or bool(words & _HYDRA_OPTIONS), ranks=ranks)
        self._untagged = 0
        self._newest = ""

    @property
    def takes_all(self) -> bool:
        """No line is left out for what it says, so the server may count them."""
        query = self._query
        return not (query.ranks or query.workers or query.launcher_only or query.stream or query.search)

    def read(self, written: Iterable[Written]) -> list[LogLine]:
        return [line for one in written if (line := self.take(one)) is not None]

    def take(self, written: Written) -> LogLine | None:
        """The line, if it is wanted."""
        spoken = self._tags.read(written.text)
        self._newest = written.stamp[:26] + "Z"
        if spoken is None:
            return None
        self._untagged += spoken.rank is None
        line = self._line(spoken)
        return line if self._wanted(line) else None

    def rest(self) -> list[LogLine]:
        """What was left without an end of line."""
        return [line for spoken in self._tags.rest() if self._wanted(line := self._line(spoken))]

    def of_worker(self, host: str, written: Iterable[Written]) -> list[LogLine]:
        """A worker's own words."""
        lines = (LogLine(when[:26] + "Z", None, host, "out", text) for when, text in written)
        return [line for line in lines if self._wanted(line)]

    def check(self, *, over: bool = True) -> None:
        """Somebody asked for a rank, and no line says which rank it is from."""
        query = self._query
        if self._tags.seen or not (query.ranks or query.stream) or not self._untagged:
            return
        if not over and (self._tagging or self._untagged < _ENOUGH):
            return
        if self._tagging and not query.ranks:
            return  # tagged as asked, and nothing of that kind was written
        raise UnsupportedError(
            f"the lines of {self._job.key} do not say which rank wrote them",
            hint=f'set the annotation {names.ANNOTATION_TAG_OUTPUT}: "true" and run it again; '
            "`oarsman submit` and `oarsman run` do so by themselves",
        )

    @property
    def _tagging(self) -> bool:
        return self._job.annotation(names.ANNOTATION_TAG_OUTPUT) == "true"

    def _line(self, spoken: Spoken) -> LogLine:
        launcher = self._job.launcher_host
        host = launcher if spoken.rank is None else self._placement.get(spoken.rank, launcher)
        return LogLine(self._newest, spoken.rank, host, spoken.stream, spoken.text)

    def _wanted(self, line: LogLine) -> bool:
        query = self._query
        return (
            (not query.ranks or line.rank in query.ranks)
            and (not self._hosts or line.host in self._hosts)
            and (not query.launcher_only or line.rank is None)
            and (query.stream is None or line.stream == query.stream)
            and line.stamp >= self._since
            and (self._search is None or self._search(line.text))
        )


def searcher(wanted: str | None) -> Callable[[str], bool] | None:
    """Case is ignored unless what is looked for has a capital letter."""
    if not wanted:
        return None
    if wanted != wanted.lower():
        return lambda text: wanted in text
    return lambda text: wanted in text.lower()


def _expected(job: Job) -> Mapping[int, str]:
    """Where ranks are meant to be, while nobody has seen them."""
    if job.launch is None:
        return {}
    hydra = True if job.implementation in _HYDRA else None
    hosts = launch.expected_placement(job.launch, job.hosts, job.slots_per_worker, hydra=hydra)
    return dict(enumerate(hosts or ()))
