"""Sweeps for the faces. A sweep belongs to the owner of its first job.

The tasks that submit points are kept per backend. Nothing of that is needed to go on: after the process ends, a sweep
with points left can be resumed.
"""

from __future__ import annotations

import asyncio
import csv
import io
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oarsman import names
from oarsman.backends.base import Backend, JobRecord
from oarsman.errors import ConflictError, ManifestError, NotFoundError, OarsmanError, RetryableError, UserError
from oarsman.job.sweep import NOT_SUBMITTED, Parameters, Sweep, index_of, pattern_of, unused
from oarsman.service.job_index import IndexEntry, JobIndex, Rows, if_there
from oarsman.service.models import (
    Identity,
    JobSummary,
    ProblemView,
    SweepPoint,
    SweepPreview,
    SweepSpec,
    SweepView,
)
from oarsman.service.preview import apart
from oarsman.service.rights import Action, may, require
from oarsman.status.words import ENDED, STOPPED
from oarsman.text.secrets import hidden
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.service.listing import Visible
    from oarsman.service.sweep_runs import Drive, Handing, MetricsKept, SweepRunner

log = logging.getLogger("oarsman.sweeps")
_AGAIN_AFTER_SECONDS = 5.0
_LAST_WORDS_SECONDS = 10.0
_MOST_KNOWN = 1_000
_LOOKED_AT = 5  # points of a sweep that is not begun yet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a text that begins so is run by spreadsheets
_FACTS = ("state", "metric", "duration_seconds", "attempts", "started", "ended", "cause", "job")


class Sweeping:
    """`at_first`: how many points are handed in before whoever asked gets an answer; None: all that may be now."""

    def __init__(self, at_first: int | None = None) -> None:
        self._at_first = at_first
        self._drives: dict[str, tuple[Drive, asyncio.Task[None]]] = {}
        self._known: OrderedDict[str, Sweep | None] = OrderedDict()

    @cached_property
    def metrics(self) -> MetricsKept:
        from oarsman.service.sweep_runs import MetricsKept  # late, here and below: most calls run no sweep

        return MetricsKept()

    # -- what a sweep is -----------------------------------------------------------------------------
    async def spec(self, jobs: Backend, key: str, uid: str) -> Sweep | None:
        """Of the sweep whose first job this is. Read once: it never changes."""
        if uid in self._known:
            return self._known[uid]
        if (record := await if_there(jobs.get(key))) is None:
            return None
        from oarsman.service.sweep_runs import spec_of

        found = self._known[uid] = spec_of(record)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    # -- going on ------------------------------------------------------------------------------------
    async def start(self, drive: Drive) -> None:
        """Hand in what may be now, and leave the rest to a task."""
        key = drive.sweep.key
        await self.end(key)
        await drive.hand_in(self._at_first)
        if drive.todo:
            task = asyncio.get_running_loop().create_task(self._go_on(key, drive), name=f"sweep {key}")
            self._drives[key] = (drive, task)

    async def _go_on(self, key: str, drive: Drive) -> None:
        try:
            while drive.todo:
                try:
                    await drive.run()
                    break
                except RetryableError as error:
                    log.warning("sweep %s: %s; tried again", key, error)
                    await asyncio.sleep(_AGAIN_AFTER_SECONDS)
        except OarsmanError as error:
            log.warning("sweep %s is left as it is: %s", key, error)
        except Exception:
            log.exception("sweep %s is left as it is", key)
        finally:
            if self._drives.get(key, (None, None))[0] is drive:
                del self._drives[key]

    def drives(self, key: str) -> bool:
        return key in self._drives

    @property
    def busy(self) -> bool:
        return bool(self._drives)

    async def end(self, key: str) -> None:
        """Nothing more of it is handed in from here; what is just being handed in is finished."""
        drive, task = self._drives.pop(key, (None, None))
        if drive is not None and task is not None:
            await drive.close()
            await asyncio.wait({task}, timeout=_LAST_WORDS_SECONDS)
            task.cancel()

    async def close(self) -> None:
        for key in list(self._drives):
            await self.end(key)


class SweepService:
    _jobs: Backend
    identity: Identity
    _job_index: JobIndex | None
    _sweeping: Sweeping

    if TYPE_CHECKING:  # what the rest of the service has

        @property
        def sees(self) -> Visible: ...
        @property
        def _viewer(self) -> Identity | None: ...
        async def _rows(self, namespace: str | None = None) -> Rows: ...
        async def _changing(self, key: str) -> JobRecord: ...
        def _surroundings(
            self, owner: str | None = None, asked: Mapping[str, str] | None = None, folder: Path | None = None
        ) -> Mapping[str, str]: ...
        async def _chosen_folder(self, asked: str | None) -> Path: ...

    @property
    def _runner(self) -> SweepRunner:
        from oarsman.service.sweep_runs import SweepRunner

        return SweepRunner(self._jobs)

    # -- looking -------------------------------------------------------------------------------------
    async def sweeps(self, namespace: str | None = None) -> Sequence[SweepView]:
        groups = (await self._groups(namespace)).items()
        wanted = [(key, jobs) for key, jobs in groups if namespace in (None, key.partition("/")[0])]
        found = [await self._sweep_view(key, jobs, points=False) for key, jobs in wanted]
        return sorted(found, key=lambda view: (view.created, view.key), reverse=True)

    async def sweep(self, key: str) -> SweepView:
        return await self._sweep_view(key, await self._jobs_of(key), points=True)

    async def _jobs_of(self, key: str) -> Mapping[int, JobSummary]:
        """By their points; at least one."""
        if jobs := (await self._groups(key.partition("/")[0])).get(key):
            return jobs
        raise NotFoundError(
            Text("there is no sweep {key}", key=key), hint=Text("`oarsman sweep list` shows those there are")
        )

    async def _groups(self, namespace: str | None = None) -> Mapping[str, Mapping[int, JobSummary]]:
        """The jobs of each sweep, found once for all who see the same. Not everybody may look at every namespace."""
        rows, sees = await self._rows(namespace), self.sees
        return rows.once(("sweeps", self._viewer), lambda: _grouped(rows.entries(), sees))

    async def _sweep_view(self, key: str, jobs: Mapping[int, JobSummary], *, points: bool) -> SweepView:
        namespace, _, name = key.partition("/")
        first = jobs.get(0)
        spec = await self._sweeping.spec(self._jobs, first.key, first.uid) if first is not None else None
        parameters = spec.all_points() if spec is not None else [{} for _ in range(max(jobs) + 1)]
        oldest = first or min(jobs.values(), key=lambda job: job.created)
        if points and not may(self.identity, Action.CHANGE, oldest.owner):
            parameters = await asyncio.to_thread(discreet, parameters)
        sweep = spec or Sweep(name=name, namespace=namespace, manifest="")
        words = Counter(point_state(jobs.get(index)) for index in range(len(parameters)))
        pattern = pattern_of(spec.metric) if points and spec is not None and spec.metric else None

        async def point(index: int) -> SweepPoint:
            job, key, values, metric = jobs.get(index), sweep.job_key(index), parameters[index], None
            if job is None:
                return SweepPoint(index=index, parameters=values, key=key, state=NOT_SUBMITTED)
            if pattern is not None and job.state in (*ENDED, names.RUNNING, names.RESTARTING):
                ended = job.ended is not None
                metric = await self._sweeping.metrics.of(self._jobs, job.key, job.uid, pattern, ended=ended)
            return SweepPoint(
                index=index,
                parameters=values,
                key=key,
                state=job.state,
                cause=job.cause,
                started=job.started,
                ended=job.ended,
                attempts=job.attempt,
                metric=metric,
            )

        return SweepView(
            key=key,
            name=name,
            namespace=namespace,
            owner=oldest.owner,
            created=oldest.created,
            state=state_of(words, driven=self._sweeping.drives(key)),
            total=len(parameters),
            states=dict(words),
            parameters=sweep.parameters,
            metric=sweep.metric,
            points=[await point(index) for index in range(len(parameters))] if points else (),
        )

    async def preview_sweep(self, wanted: SweepSpec) -> SweepPreview:
        """Of many points only the first are looked at: the others are when it is begun."""
        require(self.identity, Action.CREATE)
        from oarsman.service.sweep_runs import checked

        try:
            _, sweep, points = await apart(checked, sweep_of_spec(wanted), self._jobs.home, _LOOKED_AT)
            resumes = await self._runner.is_there(sweep)
        except ManifestError as error:
            return SweepPreview(problems=[ProblemView.of(problem) for problem in error.problems])
        except UserError as error:
            found = ProblemView(field=error.field or "", message=error.message, hint=error.hint)
            return SweepPreview(problems=[found])
        return SweepPreview(
            total=len(points),
            parameters=sweep.parameters,
            points=points[:_LOOKED_AT],
            resumes=resumes,
            warnings=unused(sweep),
        )

    # -- changing ------------------------------------------------------------------------------------
    async def create_sweep(self, wanted: SweepSpec) -> SweepView:
        require(self.identity, Action.CREATE)
        if self._job_index is not None:
            await self._groups()  # a job index that has begun to read must not miss what comes
        drive = await self.driven_sweep(wanted)
        await self._not_anothers(drive.sweep.key)
        await self._sweeping.start(drive)
        return await self.sweep(drive.sweep.key)

    async def _not_anothers(self, key: str) -> None:
        """A sweep is what its first job says: nobody gets at one by a job that only calls itself a point of it."""
        from oarsman.service.sweep_runs import first_job

        first = await if_there(self._jobs.get(first_job(key)))
        if first is not None and not may(self.identity, Action.CHANGE, first.owner):
            raise ConflictError(
                Text("there is a sweep {key} already", key=key), field="name", hint=Text("give this one another name")
            )

    async def driven_sweep(self, wanted: SweepSpec | str) -> Drive:
        """For whoever hands in the points itself and waits: a sweep to begin, or the key of one to go on with."""
        require(self.identity, Action.CREATE)
        folder = await self._chosen_folder(None)
        if isinstance(wanted, str):  # the rest of its points is whose the first one is
            return await self._runner.resume(wanted, self._handing(folder, (await self._first(wanted)).owner))
        return await self._runner.begin(sweep_of_spec(wanted), self._handing(folder, self.identity.name))

    async def resume_sweep(self, key: str) -> SweepView:
        first = await self._first(key)
        folder = first.folder or await self._chosen_folder(None)
        drive = await self._runner.resume(key, self._handing(folder, first.owner))
        await self._sweeping.start(drive)
        return await self.sweep(key)

    async def stop_sweep(self, key: str) -> SweepView:
        await self._first(key)
        view = await self._sweep_view(key, await self._jobs_of(key), points=False)
        if view.state in (names.SUCCEEDED, names.FAILED):
            raise ConflictError(Text("{key} has ended already", key=key))
        await self._sweeping.end(key)
        await self._runner.stop(key, self._mine, self._learn)
        return await self.sweep(key)

    async def delete_sweep(self, key: str) -> None:
        await self._first(key)
        await self._sweeping.end(key)
        await self._runner.delete(key, self._mine)

    async def close(self) -> None:
        await self._sweeping.close()
        await self._jobs.close()

    async def _first(self, key: str) -> JobRecord:
        """Its first job that is there, which the caller may change."""
        jobs = await self._jobs_of(key)
        record = await self._changing(jobs[min(jobs)].key)
        await self._not_anothers(key)
        return record

    def _mine(self, record: JobRecord) -> bool:
        return may(self.identity, Action.CHANGE, record.owner)

    def _handing(self, folder: Path, owner: str) -> Handing:
        from oarsman.service.sweep_runs import Handing

        environment = self._surroundings(owner, folder=folder)
        return Handing(environment=environment, folder=folder, owner=owner, told=self._learn, mine=self._mine)

    def _learn(self, record: JobRecord) -> None:
        if self._job_index is not None:
            self._job_index.learn(record)


def sweep_of_spec(wanted: SweepSpec) -> Sweep:
    grid = {name: list(values) for name, values in wanted.grid.items()}
    points = [dict(point) for point in wanted.points]
    return Sweep(**{**dict(wanted), "namespace": wanted.namespace or "", "grid": grid, "points": points})


def _grouped(entries: Sequence[IndexEntry], sees: Visible) -> Mapping[str, Mapping[int, JobSummary]]:
    found: dict[str, dict[int, JobSummary]] = {}
    for entry in entries:
        job = entry.summary
        if job.sweep and sees(entry):
            index = index_of(job.sweep, job.name)
            if index is not None:
                found.setdefault(f"{job.namespace}/{job.sweep}", {})[index] = job
    return found


def discreet(points: Sequence[Parameters]) -> Sequence[Parameters]:
    """As of a job, whoever may only look sees no secrets."""
    hide = cache(lambda name, value: hidden({"name": name, "value": value})["value"])
    return [{name: hide(name, one) if isinstance(one, str) else one for name, one in point.items()} for point in points]


def point_state(job: JobSummary | None) -> str:
    return NOT_SUBMITTED if job is None else job.state


def state_of(words: Mapping[str, int], *, driven: bool) -> str:
    """Of a sweep whose points have these states. `driven`: somebody here hands in those that have no job."""
    waiting = words.get(NOT_SUBMITTED, 0) + words.get(STOPPED, 0)
    if any(word not in (NOT_SUBMITTED, *ENDED) for word in words) or (driven and words.get(NOT_SUBMITTED)):
        return names.RUNNING
    if waiting:
        return STOPPED
    return names.FAILED if words.get(names.FAILED) else names.SUCCEEDED


# -- results as rows and as CSV ------------------------------------------------------------------------
def rows(view: SweepView) -> list[dict[str, Any]]:
    """The parameters of each point first, then what became of it."""
    return [
        {
            "point": point.index,
            **{_column(name): point.parameters.get(name) for name in view.parameters},
            "state": point.state,
            "metric": point.metric,
            "duration_seconds": seconds(point),
            "attempts": point.attempts,
            "started": point.started,
            "ended": point.ended,
            "cause": point.cause,
            "job": point.key,
        }
        for point in view.points
    ]


def seconds(point: SweepPoint) -> float | None:
    """How long it took, once it has ended."""
    if point.started is None or point.ended is None:
        return None
    return round((point.ended - point.started).total_seconds(), 3)


def _column(parameter: str) -> str:
    return f"parameter_{parameter}" if parameter in ("point", *_FACTS) else parameter


def csv_text(view: SweepView) -> str:
    file = io.StringIO()
    columns = ["point", *map(_column, view.parameters), *_FACTS]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for one in rows(view):
        writer.writerow([_cell(one[name]) for name in columns])
    return file.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _number(value) else value
    moment = getattr(value, "isoformat", None)
    return moment(timespec="milliseconds") if moment is not None else value


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
