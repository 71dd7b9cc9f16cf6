"""What one caller is told about changes: only what it may see, only what it asked for, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

from oarsman.sdk.catalogue import Catalogue, Entry, News
from oarsman.sdk.desk.listing import Visible
from oarsman.sdk.models import JobChange


class Told:
    """Remembers what the caller knows, so that a job it was never told of is not mentioned when it goes."""

    def __init__(self, catalogue: Catalogue, wanted: Visible) -> None:
        self._catalogue = catalogue
        self._wanted = wanted
        self._known: dict[str, int] = {}  # key -> revision

    def changes(self, news: News) -> Iterator[JobChange]:
        if news.reset:
            self._known.clear()
            yield JobChange(reset=True)
        for key in news.keys:
            change = self._change(key, self._catalogue.get(key))
            if change is not None:
                yield change

    def _change(self, key: str, entry: Entry | None) -> JobChange | None:
        if entry is not None and self._wanted(entry):
            if self._known.get(key) == entry.summary.revision and entry.summary.revision:
                return None
            self._known[key] = entry.summary.revision
            return JobChange(changed=entry.summary)
        return JobChange(removed=key) if self._known.pop(key, None) is not None else None
