"""The runs of a job: which there were, how each ended, and the way to its log."""

from __future__ import annotations

from nicegui import ui

from oarsman.console.pages.job.tabs import Tab
from oarsman.console.parts import widgets, words
from oarsman.console.parts.widgets import note
from oarsman.text.catalogue import N_

_LINK = '<q-td :props="props"><a class="oarsman-link" :href="props.row.href">{{ props.row.run }}</a></q-td>'


def address(key: str, run: int | None = None) -> str:
    """Of the page about that run; None: about the newest."""
    return f"/jobs/{key}" + ("" if run is None else f"?run={run}")


class RunsTab(Tab):
    name = N_("Runs")

    def build(self) -> None:
        titles = {
            "run": self.say("Run"),
            "state": self.say("State"),
            "created": self.say("Created"),
            "lasted": self.say("Duration"),
            "cause": self.say("Cause"),
        }
        self.table = widgets.table(self.say, "run", titles, sortable=False)
        self.table.add_slot("body-cell-run", _LINK)
        self.table.add_slot("body-cell-created", widgets.TIME)
        if self.job.summary.engine == "kube":
            note(self.say("On Kubernetes only the newest run of a job is kept."))
        else:
            note(self.say("Run again starts the next run. Earlier runs are deleted with the job."))

    async def refresh(self) -> None:
        found = await self.context.ask(self.service.runs, self.key)
        rows = [
            {
                "run": run.run,
                "state": self.say(run.state),
                "created": widgets.milliseconds(run.created),
                "lasted": words.duration(self.say, run.started, run.ended),
                "cause": self.say.of(run.cause),
                "href": address(self.key, run.run if number else None),
            }
            for number, run in enumerate(found)
        ]
        widgets.fill(self.table, rows)


def which(say: words.Words, key: str, run: int, *, chosen: bool) -> None:
    """What stands beside the name of a job that was run again; `chosen`: the page is about that run, and no other."""
    if chosen or run > 1:
        note(say("Run {number}", number=run))
    if chosen:
        ui.link(say("To the newest run"), address(key)).classes("oarsman-link")
