"""Pages of what a job wrote: the lines after a place, before one, or the last ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from oarsman.engines.kube.client import Kube
from oarsman.errors import UserError
from oarsman.runtime.cluster import log_stretch, logs, pods
from oarsman.runtime.cluster.lines import Reader
from oarsman.runtime.cluster.log_places import LAUNCHER, Place, place
from oarsman.runtime.cluster.log_stretch import Mouth, Placed, Stretch
from oarsman.runtime.cluster.podlog import Spot
from oarsman.runtime.jobs import JobRecord, LogPage, LogQuery, PlacedLine

MOST_LINES = 10_000


async def page(
    kube: Kube, record: JobRecord, query: LogQuery, *, after: str | None, before: str | None, limit: int
) -> LogPage:
    if after is not None and before is not None:
        raise UserError("a page is after a place or before one, not both", field="before")
    if limit < 1:
        raise UserError(f"{limit} lines are no page", field="limit")
    limit = min(limit, MOST_LINES)
    field = "after" if after is not None else "before"
    at = given_place(after if after is not None else before, query, field=field)
    number = at.attempt if at is not None else query.attempt
    launcher = await logs.launcher_of(kube, record.job, number)
    if launcher is None and not query.workers:
        return _without_a_pod(record, query, at)
    mouths = _mouths(kube, record, query, launcher)
    attempt = number or (pods.attempt_of(launcher) if launcher is not None else 1)
    at = None if at is None else at.of(mouths)
    if at is not None and after is not None:
        return _onwards(at, {s: await log_stretch.onwards(m, at.spot(s), limit) for s, m in mouths.items()}, limit)
    found = {
        source: await (log_stretch.last(m, limit) if at is None else log_stretch.back(m, at.spot(source), limit))
        for source, m in mouths.items()
    }
    return _back(attempt, found, limit)


def given_place(text: str | None, query: LogQuery, *, field: str) -> Place | None:
    if text is None:
        return None
    found = place(text, field=field)
    if query.attempt not in (None, found.attempt):
        raise UserError(f"that is a place in the log of attempt {found.attempt}, not {query.attempt}", field=field)
    return found


def _mouths(kube: Kube, record: JobRecord, query: LogQuery, launcher: pods.Pod | None) -> dict[int, Mouth]:
    job = record.job

    def reader() -> Reader:
        return Reader(record, query)

    found = {}
    if launcher is not None:
        container = logs.container_of(job)
        found[LAUNCHER] = Mouth(
            partial(logs.log_of_launcher, kube, job, launcher), reader, None, pods.began(launcher, container),
            pods.ended(launcher, container),
        )  # fmt: skip
    for index in query.workers:
        began = f"{record.created_at:%Y-%m-%dT%H:%M:%SZ}"
        found[index + 1] = Mouth(
            partial(logs.log_of_worker, kube, job, index), reader, job.worker_host(index), began, False
        )
    return found


def _onwards(at: Place, found: Mapping[int, Stretch], limit: int) -> LogPage:
    merged = list(_merged(found))
    lines, behind = _placed(at, merged[:limit])
    left = {source for source, _ in merged[limit:]}
    for source, stretch in found.items():
        if source not in left:
            behind = behind.moved(source, stretch.end)
    return LogPage(lines=lines, before=None if at.beginning else at.text, after=behind.text, attempt=at.attempt)


def _back(attempt: int, found: Mapping[int, Stretch], limit: int) -> LogPage:
    merged = list(_merged(found))
    kept = merged[-limit:]
    start = Place(attempt, {source: _start(source, stretch, merged, kept) for source, stretch in found.items()})
    lines, _ = _placed(start, kept)
    end = Place(attempt, {source: stretch.end for source, stretch in found.items()})
    return LogPage(lines=lines, before=None if start.beginning else start.text, after=end.text, attempt=attempt)


def _start(
    source: int, stretch: Stretch, merged: Sequence[tuple[int, Placed]], kept: Sequence[tuple[int, Placed]]
) -> Spot:
    """Where the next page above has to end, in one log: before what is shown of it."""
    shown = [placed for one, placed in kept if one == source]
    if not stretch.cut and len(shown) == sum(one == source for one, _ in merged):
        return stretch.start  # nothing was left out, so nothing has to be looked at again
    return shown[0].before if shown else stretch.end


def _merged(found: Mapping[int, Stretch]) -> Iterator[tuple[int, Placed]]:
    """By time, and each log in its own order."""
    if len(found) == 1:
        ((source, stretch),) = found.items()
        return ((source, placed) for placed in stretch.lines)
    lines = [(source, placed) for source, stretch in found.items() for placed in stretch.lines]
    return iter(sorted(lines, key=lambda one: one[1].after[0]))


def _placed(start: Place, lines: Sequence[tuple[int, Placed]]) -> tuple[tuple[PlacedLine, ...], Place]:
    found = []
    for source, placed in lines:
        start = start.moved(source, placed.after)
        found.append(PlacedLine(start.text, placed.line))
    return tuple(found), start


def _without_a_pod(record: JobRecord, query: LogQuery, at: Place | None) -> LogPage:
    if at is not None:
        return LogPage(lines=(), before=None, after=at.text, attempt=at.attempt)
    return kept_page(record, query.attempt)


def kept_page(record: JobRecord, attempt: int | None) -> LogPage:
    """What the status kept of a pod that is gone; an empty page where there was no pod yet."""
    lines = logs.kept(record, attempt)
    if lines == []:
        raise logs.gone(record, lines)
    number = attempt or max((one.number for one in record.status.attempts), default=1)
    behind = Place(number).text
    found = tuple(PlacedLine(behind, line) for line in lines or ())
    return LogPage(lines=found, before=None, after=behind, attempt=number)
