"""Sweeps on any backend: points that have no job yet are submitted, as many at a time as allowed.

Nothing is kept: a sweep is its jobs. The first one carries the whole sweep and is submitted before any other, so
whatever is killed in between leaves something that can be resumed. Points that ended are never run again; those that
were stopped, or whose job was deleted, are. A point's metric is the last number its pattern finds in the job's log.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.backends.base import EVERYTHING, Backend, Batch, HasOperator, JobRecord, PlacedLine
from oarsman.errors import ConflictError, ManifestError, NotFoundError, OarsmanError, Problem, UsageError
from oarsman.job.pattern import Pattern
from oarsman.job.sweep import Parameters, Sweep, check, document_of, index_of, number_in, sweep_of
from oarsman.manifest import job_from_document
from oarsman.manifest.source import read
from oarsman.service.job_index import if_there
from oarsman.status.words import ENDED, STOPPED, state
from oarsman.text.sentence import Text

_ROUNDS = 10  # of looking for points that somebody else handed in while they were being stopped
Told = Callable[[JobRecord], object]
Mine = Callable[[JobRecord], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """What every job of a sweep is handed in with. `told` hears of each; `mine`: which jobs may be replaced."""

    environment: Mapping[str, str]
    folder: Path
    owner: str | None = None
    told: Told = lambda _: None
    mine: Mine = lambda _: True


class SweepRunner:
    def __init__(self, jobs: Backend) -> None:
        self._jobs = jobs

    # -- finding -------------------------------------------------------------------------------------
    async def found(self, key: str) -> Sweep | None:
        """What its first job says; None where that job is gone, or is none of a sweep."""
        first = await if_there(self._jobs.get(first_job(key)))
        return spec_of(first) if first is not None else None

    async def records(self, key: str) -> list[JobRecord]:
        """Its jobs. Costs a look at every job of the namespace."""
        namespace, _, name = key.partition("/")
        return [record for record in await self._jobs.list(namespace) if sweep_of(record.job) == name]

    # -- beginning -----------------------------------------------------------------------------------
    async def begin(self, wanted: Sweep, handing: Handing) -> Drive:
        """Everything that is wrong with any point is told before the first one is handed in, which this does not do.

        Raises ConflictError where another sweep has that name.
        """
        template, wanted, points = await asyncio.to_thread(checked, wanted, self._jobs.home)
        await self.is_there(wanted)
        return Drive(self._jobs, wanted, template, points, await self.records(wanted.key), handing)

    async def is_there(self, wanted: Sweep) -> bool:
        """This very one. Raises ConflictError where another has its name."""
        first = await if_there(self._jobs.get(wanted.job_key(0)))
        there = spec_of(first) if first is not None else wanted
        if there is None or not there.same_as(wanted):
            raise ConflictError(
                Text("there is another sweep {key} already", key=wanted.key),
                field="name",
                hint=Text("give this one another name, or delete the other"),
            )
        return first is not None

    async def resume(self, key: str, handing: Handing) -> Drive:
        """Raises NotFoundError where there is no such sweep, ConflictError where nobody knows what it was."""
        wanted = await self.found(key)
        if wanted is None:
            if not await self.records(key):
                raise NotFoundError(Text("there is no sweep {key}", key=key))
            raise ConflictError(
                Text("the first job of {key} is gone, and the definition of the sweep with it", key=key),
                hint=Text("run it again with the same command: points that finished are not repeated"),
            )
        return await self.begin(wanted, handing)

    # -- ending --------------------------------------------------------------------------------------
    async def stop(self, key: str, mine: Mine = lambda _: True, told: Told = lambda _: None) -> int:
        """Stop whatever has not ended, also what somebody hands in meanwhile. How many that were.

        `mine`: which jobs the caller may change; `told` hears of each that is stopped.
        """
        count = 0
        for _ in range(_ROUNDS):
            found = filter(mine, await self.records(key))
            going = [record for record in found if not record.status.finished and not record.stop_requested]
            for record in going:
                with suppress(ConflictError, NotFoundError):  # it ended, or was deleted, a moment ago
                    told(await self._jobs.stop(record.job.key, record.job.uid))
                    count += 1
            if not going:
                break
        return count

    async def delete(self, key: str, mine: Mine = lambda _: True) -> int:
        """The first job goes last: until then somebody could still resume."""
        found = sorted(filter(mine, await self.records(key)), key=lambda record: record.job.name, reverse=True)
        for record in found:
            with suppress(NotFoundError):
                await self._jobs.delete(record.job.key, record.job.uid)
        return len(found)


class Drive:
    """The points of one sweep on their way into jobs."""

    def __init__(
        self,
        jobs: Backend,
        sweep: Sweep,
        template: Mapping[str, Any],
        points: Sequence[Parameters],
        known: Iterable[JobRecord],
        handing: Handing,
    ) -> None:
        self.sweep = sweep
        self.total = len(points)
        self.interrupted = False  # somebody stops it, or deletes its jobs
        self.states: dict[int, str] = {}  # of every point that has a job
        self._jobs, self._template, self._points, self._handing = jobs, template, points, handing
        self._closed = False
        self._waiting: asyncio.Future[Batch | None] | None = None
        self._queues = not isinstance(jobs, HasOperator)  # other places let in what fits, however much was handed in
        self._inventory = ""  # the hosts that its jobs are for, whichever backend it is continued through
        stopped = {}
        for record in known:
            self._see(record)
            self._inventory = self._inventory or record.job.annotation(names.ANNOTATION_INVENTORY)
            if (was_stopped(record) or record.deleting) and handing.mine(record):
                stopped[self._index(record)] = record.job.uid
        self._left = set(stopped.values())  # uids of jobs that are to be replaced
        self._again = stopped
        self.todo = [index for index in range(self.total) if index not in self.states or index in stopped]

    # -- what is known -------------------------------------------------------------------------------
    @property
    def active(self) -> list[int]:
        return [index for index, state in self.states.items() if state not in ENDED]

    @property
    def over(self) -> bool:
        return not self.todo and not self.active

    def _index(self, record: JobRecord) -> int:
        found = index_of(self.sweep.name, record.job.name)
        assert found is not None  # only jobs of the sweep come here
        return found

    def _see(self, record: JobRecord) -> None:
        self.states[self._index(record)] = state(record.status)

    # -- handing in ----------------------------------------------------------------------------------
    async def hand_in(self, most: int | None = None) -> None:
        """What may be handed in now, without waiting for anything."""
        count = 0
        while self.todo and not (self._closed or self.interrupted) and (most is None or count < most):
            index = next((index for index in self.todo if self.states.get(index) in (None, *ENDED)), None)
            if index is None or not await self._room(index):
                return
            await self._submit(index)
            count += 1

    async def _room(self, index: int) -> bool:
        if self.sweep.at_once is None and self._queues:
            return True
        active = self.active
        if self.sweep.at_once is not None:
            return len(active) < self.sweep.at_once
        if not active:  # also where there is no room: then a job says so
            return True
        starting = any(self.states[index] != names.RUNNING for index in active)
        return not starting and (await self._jobs.fit(self._document(index))).now

    def _document(self, index: int) -> dict[str, Any]:
        document = document_of(self.sweep, self._template, index, self._points[index])
        if self._inventory:
            document["metadata"]["annotations"].setdefault(names.ANNOTATION_INVENTORY, self._inventory)
        return document

    async def _submit(self, index: int) -> None:
        handing = self._handing
        try:
            record = await self._jobs.submit(
                self._document(index),
                environment=handing.environment,
                folder=handing.folder,
                owner=handing.owner,
                replaces=self._again.get(index),
            )
        except ConflictError:
            record = await self._jobs.get(self.sweep.job_key(index))
            if sweep_of(record.job) != self.sweep.name:
                raise
            # Somebody else goes on with the same sweep, and was quicker.
        self.todo.remove(index)
        self._left.discard(record.job.uid)
        self._see(record)
        handing.told(record)

    # -- until all are in ----------------------------------------------------------------------------
    async def run(self, *, to_the_end: bool = False, seeing: Callable[[], object] = lambda: None) -> None:
        """Until all are handed in (or have ended), or `close()`, or somebody stops the sweep."""
        await self.hand_in()
        seeing()
        if self._done(to_the_end):
            return
        async with aclosing(self._jobs.follow(self.sweep.namespace)) as batches:
            while not self._closed and (batch := await self._next(batches)) is not None:
                await self._take(batch)
                if self.interrupted:
                    self.todo.clear()
                await self.hand_in()
                seeing()
                if self._done(to_the_end):
                    return

    async def _next(self, batches: AsyncGenerator[Batch, None]) -> Batch | None:
        """None: there is none, or somebody closed it. Only this waiting is cut short: what is submitted is finished."""
        self._waiting = asyncio.ensure_future(anext(batches, None))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._closed and self._waiting.cancelled():
                return None
            raise
        finally:
            self._waiting.cancel()

    def _done(self, to_the_end: bool) -> bool:
        return self._closed or (not self.todo and not (to_the_end and self.active))

    async def _take(self, batch: Batch) -> None:
        missed = set(self.states) if batch.whole else set()
        for record in batch.records:
            if record.job.namespace == self.sweep.namespace and sweep_of(record.job) == self.sweep.name:
                index = self._index(record)
                missed.discard(index)
                if record.job.uid in self._left and index not in self.todo:
                    continue  # old news of a job that was replaced
                self._see(record)
                stopped = (was_stopped(record) or record.deleting) and record.job.uid not in self._left
                self.interrupted = self.interrupted or stopped
        for key in [*batch.gone, *map(self.sweep.job_key, missed)]:
            await self._lose(key)

    async def _lose(self, key: str) -> None:
        """A job that is replaced goes as well: only one that stays away is gone."""
        namespace, _, name = key.partition("/")
        index = index_of(self.sweep.name, name) if namespace == self.sweep.namespace else None
        if index is None or index not in self.states:
            return
        if (record := await if_there(self._jobs.get(key))) is not None:
            self._see(record)
            return
        del self.states[index]
        self.interrupted = self.interrupted or index not in self.todo

    async def give_up(self) -> None:
        """Hand in nothing more, and go on waiting for what runs."""
        self.interrupted = True
        if not self.active:
            await self.close()

    async def close(self) -> None:
        self._closed = True
        if self._waiting is not None:
            self._waiting.cancel()


def first_job(sweep: str) -> str:
    """The key of the job that says what a sweep is."""
    namespace, _, name = sweep.partition("/")
    return Sweep(name=name, namespace=namespace, manifest="").job_key(0)


def was_stopped(record: JobRecord) -> bool:
    """By somebody, or is about to be: it has not come to an end of its own."""
    return state(record.status) == STOPPED if record.status.finished else record.stop_requested


def spec_of(record: JobRecord) -> Sweep | None:
    try:
        found = Sweep.from_json(record.job.annotation(names.ANNOTATION_SWEEP_SPEC))
        check(found)
    except (ValueError, UsageError):
        return None
    return found if (found.name, found.namespace) == (sweep_of(record.job), record.job.namespace) else None


def read_template(sweep: Sweep, home: str) -> tuple[Mapping[str, Any], Sweep]:
    """The one document of the manifest, unchecked (a placeholder is no number yet), and the sweep in its namespace."""
    documents, problems = read(sweep.manifest, "manifest")
    if problems:
        raise ManifestError(problems)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        wrong = Text("a sweep takes one MPIJob, as a mapping")
        raise ManifestError([Problem(source="manifest", line=1, column=1, field="", message=wrong)])
    template: dict[str, Any] = documents[0].value
    metadata = template.get("metadata")
    theirs = metadata.get("namespace") if isinstance(metadata, dict) else None
    if not sweep.namespace:
        sweep = replace(sweep, namespace=theirs if isinstance(theirs, str) and theirs else home)
    return template, sweep


def checked(wanted: Sweep, home: str, most: int | None = None) -> tuple[Mapping[str, Any], Sweep, Sequence[Parameters]]:
    """The template, the sweep in its namespace and its points, each of which (or the first `most`) becomes a valid
    job."""
    check(wanted)
    template, wanted = read_template(wanted, home)
    points = wanted.all_points()
    if len(points) * len(wanted.manifest) > _MOST_READ:
        wrong = Text("{count} points of a manifest of that length are too many", count=len(points))
        raise UsageError(wrong, field="manifest", hint=Text("a shorter manifest, or fewer points"))
    for index, parameters in enumerate(points[:most]):
        check_point(document_of(wanted, template, index, parameters), index, parameters)
    return template, wanted, points


def check_point(document: Mapping[str, Any], index: int, parameters: Parameters) -> None:
    try:
        job_from_document(document)
    except ManifestError as error:
        said = ", ".join(f"{name}={value}" for name, value in parameters.items())
        problems = [
            replace(found, message=Text("point {index} ({values}): {why}", index=index, values=said, why=found.message))
            for found in error.problems
        ]
        raise ManifestError(problems) from error


_MOST_READ = 32 << 20  # letters, of all points together
_LINES_AT_ONCE = 500
_PAGES = 4
_LONGEST_LINE = 2_000
_MOST_KEPT = 20_000
_FRESH_SECONDS = 5.0  # of a job that still writes


async def last_number(jobs: Backend, key: str, pattern: Pattern) -> float | None:
    """None: no line of the last ones says it, or there is no log."""
    before: str | None = None
    for _ in range(_PAGES):
        try:
            page = await jobs.log_page(key, EVERYTHING, before=before, limit=_LINES_AT_ONCE)
        except NotFoundError:
            return None
        found = await asyncio.to_thread(_last_in, pattern, page.lines)  # which lets others run while it matches
        if found is not None:
            return found
        before = page.before
        if before is None:
            return None
    return None


def _last_in(pattern: Pattern, lines: Sequence[PlacedLine]) -> float | None:
    numbers = (number_in(pattern, placed.line.text[:_LONGEST_LINE]) for placed in reversed(lines))
    return next((number for number in numbers if number is not None), None)


class MetricsKept:
    """What was found, per job: for good once it has ended, for a moment while it runs."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: OrderedDict[tuple[str, str], tuple[float | None, float | None]] = OrderedDict()

    async def of(self, jobs: Backend, key: str, uid: str, pattern: Pattern, *, ended: bool) -> float | None:
        name = (uid, pattern.pattern)
        value, until = self._kept.get(name, (None, 0.0))
        if until is None or (not ended and self._now() < until):
            return value
        try:
            value = await last_number(jobs, key, pattern)
        except OarsmanError:  # a log that cannot be read now is no reason to show nothing at all
            return value
        self._kept[name] = (value, None if ended else self._now() + _FRESH_SECONDS)
        self._kept.move_to_end(name)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return value
