"""Which jobs somebody wants to see, in which order and columns: read from an address and written to one.

A link shows the same list to whoever opens it, and a saved view is a name for an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from oarsman.console.parts.style import STATES
from oarsman.service.models import JobQuery

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
