"""A log, read by the browser itself from the REST API."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from nicegui.element import Element

from oarsman.console.words import Words


class LogView(Element, component="log_view.js"):
    def __init__(self, say: Words, key: str, run: str = "") -> None:
        super().__init__()
        self._props.update({"url": f"/api/v1/jobs/{key}/log", "filter": {}, "run": run, "wrap": True, "stamps": False})
        self._props["words"] = {
            "label": say("Log"),
            "older": say("Older lines…"),
            "empty": say("Nothing was written yet."),
            "latest": say("To the newest line"),
            "reconnecting": say("The connection is lost; trying again…"),
        }

    def only(self, **filter_: Any) -> None:
        """Which lines to show: rank, worker, launcher, stream, search, attempt."""
        self._props["filter"] = {name: value for name, value in filter_.items() if value not in (None, "", [], False)}
        self.update()

    @property
    def download(self) -> str:
        """The address of a file with the lines that are shown, and all those before them."""
        asked = {name: "true" if value is True else value for name, value in self._props["filter"].items()}
        return f"{self._props['url']}/download" + (f"?{urlencode(asked, doseq=True)}" if asked else "")

    def look(self, *, wrap: bool | None = None, stamps: bool | None = None) -> None:
        """How lines are shown; what is None stays as it is."""
        self._props.update({name: on for name, on in (("wrap", wrap), ("stamps", stamps)) if on is not None})
        self.update()

    def reads(self, run: str) -> None:
        """Another run of the job, or another attempt: the newest lines are elsewhere now."""
        if run != self._props["run"]:
            self._props["run"] = run
            self.update()
