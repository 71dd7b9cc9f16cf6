"""Tables of jobs: which jobs, in which order and columns, and how a browser shows them, as rows or as cards.

What is wanted is read from an address and written to one: a link shows the same list to whoever opens it, and a saved
view is a name for an address.

Values are only ever interpolated as text or bound as attributes; addresses are made here, of parts that are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams

from oarsman.console.parts import words
from oarsman.console.parts.widgets import STATES, milliseconds
from oarsman.console.parts.words import Words
from oarsman.service.listing import Facets
from oarsman.service.models import JobQuery, JobSummary
from oarsman.text.catalogue import N_

ROWS = 25
NEWEST_FIRST = "-created"
_SAY_NOTHING = ("Running", "Succeeded")  # states whose message is their name once more
# column -> what it is called, and the field of a summary that it is sorted by; how long a job took is none
COLUMNS = {
    "name": (N_("Name"), "name"),
    "state": (N_("State"), "state"),
    "namespace": (N_("Namespace"), "namespace"),
    "type": (N_("Type"), "implementation"),
    "where": (N_("Where"), "engine"),
    "queue": (N_("Queue"), "queue"),
    "priority": (N_("Priority"), "priority"),
    "workers": (N_("Workers"), "workers"),
    "resources": (N_("Resources"), "cpus"),
    "owner": (N_("Owner"), "owner"),
    "created": (N_("Created"), "created"),
    "duration": (N_("Duration"), None),
}
_ALWAYS = ("name", "state", "workers", "resources", "created", "duration")
_CLASSES = {
    "name": "oarsman-name",
    "state": "oarsman-states",
    **dict.fromkeys(("workers", "resources", "created", "duration"), "oarsman-figures"),
}
_FIELDS = {field: column for column, (_, field) in COLUMNS.items() if field is not None}
_PAGE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_CHOICES = ("owner", "namespace", "engine")


@dataclass
class JobsWanted:
    search: str = ""
    states: list[str] = field(default_factory=list)
    owner: str | None = None
    namespace: str | None = None
    engine: str | None = None
    sort: str = NEWEST_FIRST
    columns: Sequence[str] = ()  # none chosen: those that tell jobs apart
    page: int = 1

    @classmethod
    def read(cls, params: QueryParams) -> JobsWanted:
        """What is not understood is passed over: an old link shows too much rather than nothing."""
        sort = params.get("sort", "")
        asked = params.get("columns", "").split(",")
        chosen: dict[str, Any] = {name: params.get(name) or None for name in _CHOICES}
        return cls(
            search=params.get("search", ""),
            states=[state for state in STATES if state in params.getlist("state")],
            **chosen,
            sort=sort if sort.removeprefix("-") in _FIELDS else NEWEST_FIRST,
            columns=tuple(name for name in COLUMNS if name in asked),
            page=int(page) if _PAGE.fullmatch(page := params.get("page", "")) else 1,
        )

    def address(self, *, paged: bool = False) -> str:
        """The query of the page, with what differs from the usual. `paged`: with the number of the page."""
        chosen = self._chosen.items()
        pairs = [("search", self.search), *(("state", state) for state in self.states), *chosen]
        if self.sort != NEWEST_FIRST:
            pairs.append(("sort", self.sort))
        if self.columns:
            pairs.append(("columns", ",".join(self.columns)))
        if paged and self.page > 1:
            pairs.append(("page", str(self.page)))
        return urlencode([(name, value) for name, value in pairs if value], errors="replace")

    def query(self) -> JobQuery:
        return JobQuery(
            **self._chosen,
            states=tuple(self.states),
            search=self.search or None,
            sort=self.sort,
            limit=ROWS,
            offset=(self.page - 1) * ROWS,
        )

    @property
    def _chosen(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _CHOICES}

    def shown(self, facets: Facets) -> tuple[str, ...]:
        """What is the same for every job is said nowhere, unless it was asked for."""
        differ = {
            "namespace": facets.namespaces,
            "type": facets.types,
            "where": facets.engines,
            "queue": facets.queues,
            "priority": facets.priorities,
            "owner": facets.owners,
        }
        told = (*_ALWAYS, *(name for name, values in differ.items() if len(values) > 1))
        return tuple(name for name in COLUMNS if name in (self.columns or told))

    @property
    def narrowed(self) -> bool:
        return bool(self.search or self.states or any(self._chosen.values()))

    @property
    def sorted_column(self) -> tuple[str, bool]:
        """The column, and whether the largest comes first."""
        return _FIELDS[self.sort.removeprefix("-")], self.sort.startswith("-")

    def sort_by(self, column: object, downwards: bool) -> None:
        _, name = COLUMNS.get(column, ("", None)) if isinstance(column, str) else ("", None)
        self.sort = f"-{name}" if name and downwards else name or NEWEST_FIRST
        self.page = 1


def jobs_in(state: str) -> str:
    return f"/jobs?{JobsWanted(states=[state]).address()}"


def address(key: str) -> str:
    return f"/jobs/{quote(key, safe='/', errors='replace')}"


def columns(say: Words, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "label": say(title),
            "field": name,
            "align": "left",
            "sortable": field is not None,
            "classes": _CLASSES.get(name, ""),
        }
        for name, (title, field) in COLUMNS.items()
        if name in wanted
    ]


def rests(one: JobSummary) -> bool:
    """It starts again by itself, when the time has come; one that has a place in the queue waits for room."""
    return one.state == "Restarting" and one.queue_position is None


def row(say: Words, one: JobSummary) -> dict[str, Any]:
    icon, colour = STATES.get(one.state, ("help", "is-idle"))
    sentence = one.cause or ("" if one.state in _SAY_NOTHING else one.message)
    why = " · ".join(part for part in words.error_first(say, sentence) if part)
    place = say("place {number}", number=one.queue_position) if one.queue_position else ""
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
        # a row cuts it short: all of it is at the pointer, and what it was in English below
        "why": why,
        "failed": one.state == "Failed",
        "why_said": sentence if why == sentence else f"{why}\n{sentence}",
        "retry": milliseconds(one.retry_at) if one.retry_at and rests(one) else None,
        "type": f"{one.implementation} {one.api_version.rpartition('/')[2]}",
        "where": say.engine(one.engine),
        "queue": " · ".join(part for part in (one.queue, place) if part),
        "priority": one.priority,
        # of a job that has ended none is ready any more, and nobody wants to read that
        "workers": f"{one.workers_ready}/{one.workers}" if one.ended is None else str(one.workers),
        "resources": words.resources(say, one),
        "owner": one.owner,
        "created": milliseconds(one.created),
        "since": milliseconds(one.started) if counts and one.started is not None else None,
        "duration": words.duration(say, one.started, one.ended) if one.ended is not None else "",
    }


_LINK = '<a class="oarsman-link" :href="props.row.href">{{ props.row.name }}</a>'
BADGE = """
<span class="oarsman-state" :class="props.row.colour">
  <q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.state }}
</span>"""
_SPENT = """
<span v-if="props.row.since" :data-since="props.row.since"></span><span v-else>{{ props.row.duration }}</span>"""

_CREATED = '<oarsman-time :at="props.row.created" :data-ago="props.row.created" />'

NAME = f"""
<q-td :props="props">{_LINK}<div class="oarsman-note">{{{{ props.row.description }}}}</div></q-td>"""
STATE = f"""
<q-td :props="props">{BADGE}
  <span v-if="props.row.retry" class="oarsman-note oarsman-figures oarsman-retry" :data-until="props.row.retry"></span>
  <div v-if="props.row.why" class="ellipsis oarsman-why" :class="props.row.failed ? '' : 'oarsman-note'"
       :title="props.row.why_said">{{{{ props.row.why }}}}</div>
</q-td>"""
CREATED = f'<q-td :props="props">{_CREATED}</q-td>'
DURATION = f'<q-td :props="props">{_SPENT}</q-td>'
MARK = '<q-checkbox v-model="props.selected" dense :aria-label="props.row.name" />'
MARK_ALL = '<q-checkbox v-model="props.selected" dense aria-label="%s" />'


def card(*, marked: bool) -> str:
    """A row where there is no room for one: two lines. `marked`: it can be."""
    return f"""
<div class="col-12 oarsman-row-card">
  <div class="oarsman-row-line">{MARK if marked else ""}{_LINK}<q-space />{BADGE}</div>
  <div class="oarsman-row-line oarsman-note"><span class="ellipsis" :title="props.row.why_said">{{{{
    props.row.why || props.row.description || props.row.resources }}}}</span><q-space />
    <span class="oarsman-figures">{_SPENT}<template
      v-if="props.row.since || props.row.duration"> · </template>{_CREATED}</span>
  </div>
</div>"""
