"""Tables of jobs: which jobs, in which order and columns, and how a browser shows them, as rows or as cards.

What is wanted is read from an address and written to one: a link shows the same list to whoever opens it, and a saved
view is a name for an address.

Values are only ever interpolated as text or bound as attributes; addresses are made here, of parts that are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams

from oarsman.console.parts import words
from oarsman.console.parts.widgets import STATES, milliseconds
from oarsman.console.parts.words import Words
from oarsman.service.models import JobQuery, JobSummary

ROWS = 25
NEWEST_FIRST = "-created"
# column -> the field of a summary that it is sorted by; how long a job took is none
COLUMNS = {
    "name": "name",
    "state": "state",
    "namespace": "namespace",
    "type": "implementation",
    "where": "engine",
    "queue": "queue",
    "priority": "priority",
    "workers": "workers",
    "resources": "cpus",
    "owner": "owner",
    "created": "created",
    "duration": None,
}
USUAL_COLUMNS = tuple(name for name in COLUMNS if name != "namespace")
_FIELDS = {field: column for column, field in COLUMNS.items() if field is not None}


@dataclass
class JobsWanted:
    search: str = ""
    states: list[str] = field(default_factory=list)
    owner: str | None = None
    namespace: str | None = None
    engine: str | None = None
    sort: str = NEWEST_FIRST
    columns: Sequence[str] = USUAL_COLUMNS
    cursors: list[str | None] = field(default_factory=lambda: [None])  # of the pages gone through so far

    @classmethod
    def read(cls, params: QueryParams) -> JobsWanted:
        """What is not understood is passed over: an old link shows too much rather than nothing."""
        sort = params.get("sort", "")
        asked = params.get("columns", "").split(",")
        return cls(
            search=params.get("search", ""),
            states=[state for state in STATES if state in params.getlist("state")],
            owner=params.get("owner", "") or None,
            namespace=params.get("namespace", "") or None,
            engine=params.get("engine", "") or None,
            sort=sort if sort.removeprefix("-") in _FIELDS else NEWEST_FIRST,
            columns=tuple(name for name in COLUMNS if name in asked) or USUAL_COLUMNS,
        )

    def address(self) -> str:
        """The query of the page, with what differs from the usual."""
        pairs = [
            ("search", self.search),
            *(("state", state) for state in self.states),
            ("owner", self.owner),
            ("namespace", self.namespace),
            ("engine", self.engine),
        ]
        if self.sort != NEWEST_FIRST:
            pairs.append(("sort", self.sort))
        if tuple(self.columns) != USUAL_COLUMNS:
            pairs.append(("columns", ",".join(self.columns)))
        return urlencode([(name, value) for name, value in pairs if value], errors="replace")

    def query(self) -> JobQuery:
        return JobQuery(
            states=tuple(self.states),
            owner=self.owner,
            namespace=self.namespace,
            engine=self.engine,
            search=self.search or None,
            sort=self.sort,
            limit=ROWS,
            cursor=self.cursors[-1],
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.search or self.states or self.owner or self.namespace or self.engine)

    @property
    def sorted_column(self) -> tuple[str, bool]:
        """The column, and whether the largest comes first."""
        return _FIELDS[self.sort.removeprefix("-")], self.sort.startswith("-")

    def sort_by(self, column: object, downwards: bool) -> None:
        name = COLUMNS.get(column) if isinstance(column, str) else None
        self.sort = f"-{name}" if name and downwards else name or NEWEST_FIRST
        self.cursors = [None]


def jobs_in(state: str) -> str:
    return f"/jobs?{JobsWanted(states=[state]).address()}"


CARDS_IF_NARROW = ':grid="Quasar.Screen.width < 700"'


def address(key: str) -> str:
    return f"/jobs/{quote(key, safe='/', errors='replace')}"


def titles(say: Words) -> dict[str, str]:
    return {
        "name": say("Name"),
        "state": say("State"),
        "namespace": say("Namespace"),
        "type": say("Type"),
        "where": say("Where"),
        "queue": say("Queue"),
        "priority": say("Priority"),
        "workers": say("Workers"),
        "resources": say("Resources"),
        "owner": say("Owner"),
        "created": say("Created"),
        "duration": say("Duration"),
    }


def columns(say: Words, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "label": title,
            "field": name,
            "align": "left",
            "sortable": COLUMNS[name] is not None,
            "classes": "oarsman-figures" if name in ("workers", "created", "duration") else "",
        }
        for name, title in titles(say).items()
        if name in wanted
    ]


def row(say: Words, one: JobSummary) -> dict[str, Any]:
    icon, colour = STATES.get(one.state, ("help", "is-idle"))
    counts = one.started is not None and one.ended is None and one.state != "Suspended"
    return {
        "key": one.key,
        "href": address(one.key),
        "name": one.name,
        "namespace": one.namespace,
        "description": one.description,
        "state": say(one.state),
        "icon": icon,
        "colour": colour,
        **_why(say, one.cause or one.message),
        "type": f"{one.implementation} {one.api_version.rpartition('/')[2]}",
        "where": say.engine(one.engine),
        "queue": _queue(say, one),
        "priority": one.priority,
        "workers": _workers(one),
        "resources": words.resources(say, one),
        "owner": one.owner,
        "created": words.moment(one.created)[5:-3],  # without year and seconds: rows are narrow
        "since": milliseconds(one.started) if counts and one.started is not None else None,
        "duration": words.duration(one.started, one.ended) if one.ended is not None else "",
    }


def _why(say: Words, sentence: str) -> dict[str, str]:
    """A row cuts it short: all of it is at the pointer, and what it was in English below."""
    said = say.of(sentence)
    return {"why": said, "why_said": sentence if said == sentence else f"{said}\n{sentence}"}


def _workers(one: JobSummary) -> str:
    """Of a job that has ended none is ready any more, and nobody wants to read that."""
    return f"{one.workers_ready}/{one.workers}" if one.ended is None else str(one.workers)


def _queue(say: Words, one: JobSummary) -> str:
    place = say("place {number}", number=one.queue_position) if one.queue_position else ""
    return " · ".join(part for part in (one.queue, place) if part)


_LINK = '<a class="oarsman-link" :href="props.row.href">{{ props.row.name }}</a>'
_BADGE = """
<span class="oarsman-state" :class="props.row.colour">
  <q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.state }}
</span>"""
_SPENT = """
<span v-if="props.row.since" :data-since="props.row.since"></span><span v-else>{{ props.row.duration }}</span>"""

NAME = f"""
<q-td :props="props">{_LINK}<div class="oarsman-note">{{{{ props.row.description }}}}</div></q-td>"""
STATE = f"""
<q-td :props="props">{_BADGE}
  <div class="oarsman-note ellipsis oarsman-why" :title="props.row.why_said">{{{{ props.row.why }}}}</div>
</q-td>"""
DURATION = f'<q-td :props="props">{_SPENT}</q-td>'
MARK = '<q-checkbox v-model="props.selected" dense :aria-label="props.row.name" />'
MARK_ALL = '<q-checkbox v-model="props.selected" dense aria-label="%s" />'


def card(*, marked: bool) -> str:
    """A row where there is no room for one. `marked`: it can be."""
    return f"""
<div class="col-12 oarsman-row-card">
  <div class="row items-center no-wrap" style="gap: 8px">{MARK if marked else ""}{_LINK}<q-space />{_BADGE}</div>
  <div class="oarsman-note">{{{{ props.row.why }}}}</div>
  <dl class="oarsman-facts">
    <template v-for="col in props.cols.filter((col) => !['name', 'state', 'duration'].includes(col.name) && col.value)"
              :key="col.name"><dt>{{{{ col.label }}}}</dt><dd>{{{{ col.value }}}}</dd></template>
    <template v-for="col in props.cols.filter((col) => col.name === 'duration' && (col.value || props.row.since))"
              :key="col.name"><dt>{{{{ col.label }}}}</dt><dd>{_SPENT}</dd></template>
  </dl>
</div>"""
