"""A log, read by the browser itself from the REST API."""

from __future__ import annotations

from typing import Any

from nicegui.element import Element

from oarsman.console.words import Words


class LogView(Element, component="log_view.js"):
    def __init__(self, say: Words, key: str) -> None:
        super().__init__()
        self._props["url"] = f"/api/v1/jobs/{key}/log"
        self._props["filter"] = {}
        self._props["words"] = {
            "label": say("Log"), "older": say("Older lines…"), "empty": say("Nothing was written yet."),
            "latest": say("To the newest line"), "reconnecting": say("The connection is lost; trying again…"),
        }  # fmt: skip

    def only(self, **filter_: Any) -> None:
        """Which lines to show: rank, worker, launcher, stream, search, attempt."""
        self._props["filter"] = {name: value for name, value in filter_.items() if value not in (None, "", [], False)}
        self.update()
