"""Container log lines as log lines of ranks, and positions in the log of a job.

Pod logs have no offsets, so a position is a time and a count. A job may be read from several logs at once (launcher
and workers); a position says for each how far it was read, so that none waits for another, however clocks differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from oarsman import names
from oarsman.backends.base import JobRecord, LogLine, LogQuery
from oarsman.backends.kube.pod_log import BEGINNING, Spot, Written
from oarsman.errors import UnsupportedError, UserError
from oarsman.job import launch
from oarsman.job.job import Implementation, Job
from oarsman.status.tags import Spoken, Tags
from oarsman.store.logs import stamp
from oarsman.text.sentence import Text

_HYDRA: Final = (Implementation.MPICH, Implementation.INTEL)
_HYDRA_OPTIONS: Final = {"-prepend-rank", "--prepend-rank", "-l"}
_ENOUGH: Final = 200  # lines without a single tag: there will be none


class ContainerLogReader:
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
            Text("the lines of {key} do not say which rank wrote them", key=self._job.key),
            hint=Text(
                'set the annotation {name}: "true" and run it again; `oarsman submit` and `oarsman run` '
                "do so by themselves",
                name=names.ANNOTATION_TAG_OUTPUT,
            ),
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


LAUNCHER: Final = 0  # worker n is n + 1
_FORM: Final = re.compile(r"([1-9][0-9]{0,8})((?:\.[0-9]{1,7}-(?:0|[0-9]{23})-[0-9]{1,15})*)")
_DIGITS: Final = re.compile(r"[^0-9]")
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class LogPosition:
    attempt: int
    spots: Mapping[int, Spot] = field(default_factory=dict)

    def spot(self, source: int) -> Spot:
        """How far that log was read. One that was not asked for then goes on where the others are."""
        if source in self.spots:
            return self.spots[source]
        newest = max((stamp for stamp, _ in self.spots.values()), default="")
        return (newest, 0) if newest else BEGINNING

    def moved(self, source: int, spot: Spot) -> LogPosition:
        return LogPosition(self.attempt, {**self.spots, source: spot})

    def of(self, sources: Iterable[int]) -> LogPosition:
        """The same place, for these logs."""
        return LogPosition(self.attempt, {source: self.spot(source) for source in sources})

    @property
    def beginning(self) -> bool:
        return all(spot == BEGINNING for spot in self.spots.values())

    @property
    def text(self) -> str:
        return str(self.attempt) + "".join(
            f".{source}-{_DIGITS.sub('', stamp) or '0'}-{times}" for source, (stamp, times) in self.spots.items()
        )


def place(text: str, *, field: str) -> LogPosition:
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        if found is None:
            raise ValueError
        parts = (part.split("-") for part in found[2].split(".")[1:])
        return LogPosition(
            int(found[1]), {int(source): (_stamp(digits), int(times)) for source, digits, times in parts}
        )
    except ValueError:
        raise UserError(
            Text("{text} is no place in a log of this job", text=repr(text[:80])),
            field=field,
            hint=Text("hand back what an earlier page said"),
        ) from None


def _stamp(digits: str) -> str:
    if digits == "0":
        return ""
    when, parts = digits[:14], digits[14:]
    if datetime.strptime(when, "%Y%m%d%H%M%S").year < 1970:
        raise ValueError
    return f"{when[:4]}-{when[4:6]}-{when[6:8]}T{when[8:10]}:{when[10:12]}:{when[12:14]}.{parts}Z"
