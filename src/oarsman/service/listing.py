"""Pages of jobs that match a query, and counts by state. A cursor names the last row shown: jobs come and go."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import NamedTuple

from oarsman import names
from oarsman.errors import UsageError
from oarsman.service.job_index import IndexChanges, IndexEntry, JobIndex, Rows, comparable, sort_key
from oarsman.service.models import JobChange, JobList, JobQuery, JobSummary, QueueEntry, RecentFailure
from oarsman.status import words
from oarsman.text.sentence import Text, listed

_IN_LINE = (names.REASON_WAITING, names.REASON_RESTARTING)  # not: for hosts, or for an answer
Visible = Callable[[IndexEntry], bool]


def page(rows: Rows, query: JobQuery, visible: Visible) -> JobList:
    by, downwards = field_of(query.sort)
    wanted = matches(query, visible)
    ordered = rows.ordered(by)
    matching = list(ordered) if wanted is everything else [entry for entry in ordered if wanted(entry)]
    if downwards:
        matching.reverse()
    start = _start(matching, query.cursor, by, downwards) if query.cursor else query.offset
    shown = matching[start : start + query.limit]
    more = start + query.limit < len(matching)
    return JobList(
        items=[entry.summary for entry in shown],
        total=len(matching),
        next=_cursor(query.sort, by, shown[-1]) if more and shown else None,
    )


class Facets(NamedTuple):
    """What the rows differ in: the choices that a filter offers, in the order of the alphabet."""

    owners: Sequence[str]
    namespaces: Sequence[str]
    engines: Sequence[str]
    types: Sequence[str]
    queues: Sequence[str]
    priorities: Sequence[int]


def facets(rows: Rows, visible: Visible, viewer: Hashable) -> Facets:
    """Found once for all who see the same (`viewer`), and again when a job has changed."""

    def found() -> Facets:
        seen = [entry.summary for entry in rows.entries() if visible(entry)]
        owners, namespaces, engines, types, queues = (
            sorted({getattr(row, field) for row in seen} - {""})
            for field in ("owner", "namespace", "engine", "implementation", "queue")
        )
        return Facets(owners, namespaces, engines, types, queues, sorted({row.priority for row in seen}))

    return rows.once(("facets", viewer), found)


def queue(rows: Rows, visible: Visible) -> Sequence[QueueEntry]:
    """Those far from the head have no place on record; they are counted here, behind those that have one."""
    seen = [(entry, entry.waiting) for entry in rows.entries() if entry.waiting is not None]
    last: Counter[str] = Counter()  # by engine
    for entry, found in seen:
        last[entry.summary.engine] = max(last[entry.summary.engine], found.position)
    far = [(entry, found) for entry, found in seen if not found.position and entry.summary.reason in _IN_LINE]
    places: dict[str, int] = {}
    for entry, found in sorted(far, key=lambda pair: (-pair[1].priority, pair[0].summary.created, pair[1].key)):
        last[entry.summary.engine] += 1
        places[found.key] = last[entry.summary.engine]
    waiting = [found for entry, found in seen if visible(entry)]
    placed = [found.model_copy(update={"position": places.get(found.key, found.position)}) for found in waiting]
    return sorted(placed, key=lambda found: (found.position, found.key))


def field_of(sort: str) -> tuple[str, bool]:
    """The field of the summary, by either of its names, and whether the largest comes first."""
    name = sort.removeprefix("-")
    if name not in _FIELDS:
        raise UsageError(
            Text("jobs cannot be sorted by '{name}'", name=name),
            field="sort",
            hint=Text("one of {names}", names=listed(sorted(set(_FIELDS.values())))),
        )
    return _FIELDS[name], sort.startswith("-")


_FIELDS = {spelled: name for name, field in JobSummary.model_fields.items() for spelled in (name, field.alias or name)}


def everything(_: IndexEntry) -> bool:
    return True


def matches(query: JobQuery, visible: Visible) -> Visible:
    """Only what was asked for is looked at: this runs for every job there is."""
    tests: list[Visible] = [] if visible is everything else [visible]
    states = {words.known(state) for state in query.states}
    searched = (query.search or "").lower()
    if searched:
        tests.insert(0, lambda entry: searched in entry.text)
    if states:
        tests.insert(0, lambda entry: entry.summary.state in states)
    engine = names.PLACE_ALIASES.get(query.engine, query.engine) if query.engine is not None else None
    given = {"namespace": query.namespace, "owner": query.owner, "engine": engine, "sweep": query.sweep}
    if exact := [(field, value) for field, value in given.items() if value is not None]:
        tests.insert(0, lambda entry: all(getattr(entry.summary, field) == value for field, value in exact))
    if len(tests) < 2:
        return tests[0] if tests else everything
    return lambda entry: all(test(entry) for test in tests)


def _cursor(sort: str, by: str, last: IndexEntry) -> str:
    value, key = sort_key(by)(last)
    said = json.dumps([sort, None if value == float("-inf") else value, key], separators=(",", ":"))
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def _start(matching: Sequence[IndexEntry], cursor: str, by: str, downwards: bool) -> int:
    """Where the rows behind the cursor begin, whether or not its own row is still there."""
    place = _place(cursor, by, downwards)
    key = sort_key(by)
    if downwards:  # sorted the other way round: look from the end
        return len(matching) - bisect_left(list(reversed(matching)), place, key=key)
    return bisect_right(matching, place, key=key)


def _place(cursor: str, by: str, downwards: bool) -> tuple[str | float, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        sort, value, key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if field_of(sort) == (by, downwards) and isinstance(key, str):
            place = comparable(by, value)
            return place, key
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise UsageError(
        Text("this cursor does not belong to this list"),
        field="cursor",
        hint=Text("hand back `next` of the page before, with the same `sort`"),
    )


_MOST_FAILURES = 50


@dataclass(frozen=True, slots=True)
class Glance:
    states: Mapping[str, int]
    failures: Sequence[RecentFailure]  # the newest, however old

    def lately(self, since: datetime) -> Sequence[RecentFailure]:
        return [failure for failure in self.failures if failure.ended >= since]


def glance(rows: Rows, visible: Visible, viewer: Hashable) -> Glance:
    """Counted once for all who see the same (`viewer`): however many look, jobs are gone through once per change."""

    def counted() -> Glance:
        seen = [entry.summary for entry in rows.entries() if visible(entry)]
        failed = ((row.ended, row.key, row) for row in seen if row.state == names.FAILED and row.ended is not None)
        newest = nlargest(_MOST_FAILURES, failed, key=lambda found: found[:2])
        return Glance(
            Counter(row.state for row in seen),
            [RecentFailure(key=key, ended=ended, cause=row.cause or row.message) for ended, key, row in newest],
        )

    return rows.once(("glance", viewer), counted)


class ToldJobs:
    """What one caller is told of changes: only what it may see, and nothing twice. It remembers what the caller knows,
    so that a job it was never told of is not mentioned when it goes."""

    def __init__(self, job_index: JobIndex, wanted: Visible) -> None:
        self._job_index = job_index
        self._wanted = wanted
        self._known: dict[str, int] = {}  # key -> revision

    def changes(self, news: IndexChanges) -> Iterator[JobChange]:
        if news.reset:
            self._known.clear()
            yield JobChange(reset=True)
        for key in news.keys:
            entry = self._job_index.get(key)
            if entry is None or not self._wanted(entry):
                if self._known.pop(key, None) is not None:
                    yield JobChange(removed=key)
            elif not entry.summary.revision or self._known.get(key) != entry.summary.revision:
                self._known[key] = entry.summary.revision
                yield JobChange(changed=entry.summary)
